"""How good are a model's translations, or those in a file?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.config.load import SCORES
from transformer_mt.config.schema import Config
from transformer_mt.config.section import LANGUAGE
from transformer_mt.data.prepared import open_prepared, prepared_folder
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.searches.base import option_of
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.examine import System, Words, examine
from transformer_mt.evaluation.metrics import METRICS, notice_of
from transformer_mt.evaluation.record import store_scores
from transformer_mt.evaluation.report import Report, as_json
from transformer_mt.evaluation.scores import check_parallel, moses_tokenized
from transformer_mt.files.lines import lines_of, printable
from transformer_mt.reporting.bars import bar
from transformer_mt.reporting.notes import note
from transformer_mt.text.vocabulary import bleu_of_tokens
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.models import (
    config_of_model,
    find_models,
    search_settings,
)

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator

UNSCORED = Computing(scored=False)  # the log-probability of a translation says nothing here
File = Path | None


@dataclass(frozen=True)
class TestFiles:
    """What to score, if it is not a split of the model's data. Paths of text files, line by line parallel.

    source:     sentences to translate; hypothesis: translations that exist already
    reference:  translations by people
    tokenized:  the references as published for BLEU on lower-cased Moses tokens, such as *.lc.norm.tok.de
    """

    source: File = None
    reference: File = None
    hypothesis: File = None
    tokenized: File = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, Path(value) if value is not None else None)


@dataclass(frozen=True)
class TestSet:
    """What is to be translated and compared with what. sources: empty if not known. key: its name in scores.json; a
    pipe has none."""

    name: str
    key: str
    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class Output:
    """Translations, and what only their translator knows. settings: what was translated, and how."""

    lines: list[str]
    words: Words | None = None
    loss: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def evaluate(
    models: str | Path | Sequence[str | Path] = (),
    *,
    split: str | None = None,
    files: TestFiles | None = None,
    baseline: str | File = None,
    metrics: str | Sequence[str] = METRICS,
    tokenized: bool = False,
    language: str | None = None,
    search: Mapping[str, Any] | None = None,
    computing: Computing = UNSCORED,
) -> Report:
    """Translate a test set and score it; or score the translations of `files.hypothesis`.

    models:    a folder, or several for an ensemble. Default: the run that finished last
    split:     of the first model's data, such as validation. Default: its first test set
    baseline:  another system's translations, or its model folder (searched alike): paired bootstrap resampling
    tokenized: also lower-cased BLEU, and BLEU on lower-cased Moses tokens as in papers
    language:  ISO code of the target; default: the model's
    search:    settings of `decoding` that differ from the model's own
    Figures of a single model are kept beside it, in scores.json. Raises TmtError if files or settings do not fit.
    """
    files, changes = files or TestFiles(), search or {}
    baseline = Path(baseline) if baseline is not None else None
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if unknown := [name for name in metrics if name not in METRICS]:
        raise TmtError(f"unknown metric '{unknown[0]}'", remedy=f"Use {', '.join(METRICS)}.")
    _check_files(split, files)
    _check_settings(changes, files.hypothesis, baseline, language)
    needed = models or files.hypothesis is None or files.reference is None
    several = [models] if isinstance(models, (str, Path)) else models
    folders = find_models([Path(folder) for folder in several]) if needed else []
    config = config_of_model(folders[0]) if folders else None
    target = language or (config.data.target if config else "")
    test_set = _test_set(config, split, files)
    decoding = search_settings(folders[0], changes) if folders else None
    # The baseline first: a mistake there would waste the translating that follows.
    others = _baseline(baseline, changes, computing, test_set, config)
    if files.tokenized is not None:
        published = _beside(test_set, files.tokenized)
    else:
        published = moses_tokenized(test_set.references, target) if tokenized else []
    if files.hypothesis:
        output = Output(_beside(test_set, files.hypothesis))
    else:
        output = _translate(load_translator(folders, decoding, computing), test_set, with_loss=True)
    if notice := notice_of(target, test_set.references):
        note(notice)
    report = _examine(test_set, output, target, metrics, others, published)
    if len(folders) == 1 and files.hypothesis is None:
        _store(folders[0], test_set.key, report, output.settings)
    return report


def evaluate_splits(folder: Path, names: Sequence[str], device: str) -> Iterator[tuple[str, Report]]:
    """Score a model on splits of its data, one after the other, keeping the figures with it."""
    if not names:
        return
    config = config_of_model(folder)
    translator = load_translator([folder], config.decoding, Computing(device=device, scored=False))
    for name in names:
        test_set = _test_set(config, name, TestFiles())
        output = _translate(translator, test_set)
        report = _examine(test_set, output, config.data.target, ("bleu", "chrf"))
        _store(folder, test_set.key, report, output.settings)
        yield test_set.name, report


def _examine(
    test_set: TestSet,
    output: Output,
    language: str,
    metrics: Sequence[str],
    baseline: Sequence[str] = (),
    published: Sequence[str] = (),
) -> Report:
    system = System(
        name=test_set.name,
        hypotheses=output.lines,
        references=test_set.references,
        language=language,
        sources=test_set.sources,
        baseline=baseline,
        tokenized_references=published,
        words=output.words,
        loss=output.loss,
    )
    return examine(system, metrics, bleu_of_tokens if "bleu" in metrics else None)


def _check_files(split: str | None, files: TestFiles) -> None:
    if files.reference is not None and split is not None:
        raise TmtError("--split and --reference both name the test set", remedy="Give one of them.")
    if files.source is not None and files.reference is None:
        raise TmtError("--source has no --reference to be compared with", remedy="Add --reference FILE.")
    if files.reference is not None and files.source is None and files.hypothesis is None:
        raise TmtError(
            "--reference alone leaves nothing to score",
            remedy="Add --source FILE to have it translated, or --hypothesis FILE to score translations at hand.",
        )


def _check_settings(changes: Mapping[str, Any], hypothesis: File, baseline: File, language: str | None) -> None:
    wanted = [key for key, value in changes.items() if value is not None]
    if wanted and hypothesis is not None and (baseline is None or not baseline.is_dir()):
        option = "--mbr" if wanted[0] == "method" else option_of(wanted[0])
        raise TmtError(
            f"{option} says how to translate, but --hypothesis holds the translations", remedy="Leave one of them out."
        )
    if language is not None and not re.fullmatch(LANGUAGE, language):
        remedy = "Give two or three small letters, as in the config: de, en, ko."
        raise TmtError(f"--language: '{language}' is no ISO code", remedy=remedy)


def _test_set(config: Config | None, split: str | None, files: TestFiles) -> TestSet:
    """The files given, or a split of the model's data."""
    source, reference = files.source, files.reference
    if reference is not None:
        places = printable(reference), printable(reference.resolve()) if reference.is_file() else ""
        test_set = TestSet(*places, lines_of(source) if source else [], lines_of(reference))
        if source is not None:
            check_parallel(test_set.sources, str(source), test_set.references, str(reference))
        return test_set
    assert config is not None
    folder = prepared_folder(config)
    if not folder.is_dir():
        raise TmtError(
            "the data this model was trained on is not here, so it has no test set",
            place=folder,
            remedy="Start tmt where it was trained, or name files:  --source FILE --reference FILE",
        )
    prepared = open_prepared(config)
    name = prepared.named(split or "test")
    return TestSet(name, name, *prepared.raw(name))


def _translate(translator: Translator, test_set: TestSet, with_loss: bool = False, whose: str = "the model") -> Output:
    lines = translator.translate(test_set.sources)
    translations = list(bar(iterable=lines, desc="translating", total=len(test_set.sources)))
    loss, cut = None, {"source": sum(translation.is_cut for translation in translations)}
    if with_loss:
        of_references = translator.reference_loss(test_set.sources, test_set.references)
        loss, cut["reference"] = of_references.nats / of_references.tokens, of_references.n_cut
    for what, number in cut.items():
        if number:
            only = ", for the loss alone" if what == "reference" else ""
            many = f"{number:,} {what}{'' if number == 1 else 's'}"
            told = f"{many} cut to the {translator.max_length} tokens that {whose} reads{only}"
            note(f"{test_set.name}: {told}")
    segmenter, words = translator.target.segmenter, None
    if segmenter.tokenizer.finds_words:  # the table of n-gram orders then counts these, not BLEU's own tokens
        name, hypotheses = f"the model's {segmenter.config.kind} words", [one.tokens for one in translations]
        words = Words(name, hypotheses, [segmenter.tokenize(line) for line in test_set.references])
    text = "\n".join([*test_set.sources, *test_set.references]).encode("utf-8", "replace")
    return Output(
        [translation.text for translation in translations],
        words,
        loss,
        # By the digest, figures of other sentences are told apart from those of these.
        {"decoding": translator.decoding.model_dump(mode="json"), "text": sha256(text).hexdigest()},
    )


def _beside(test_set: TestSet, file: Path) -> list[str]:
    """The lines of a file, as many as there are references. Raises TmtError if they are more or fewer."""
    lines = lines_of(file)
    check_parallel(lines, str(file), test_set.references, f"the test set {test_set.name}")
    return lines


def _baseline(
    file: File, changes: Mapping[str, Any], computing: Computing, test_set: TestSet, config: Config | None
) -> list[str]:
    """A file of translations, or the translations of another model. config: that of the model to compare with."""
    if file is None:
        return []
    if not file.is_dir():
        return _beside(test_set, file)
    if not test_set.sources:
        raise TmtError("a model as baseline needs sentences to translate", place=file, remedy="Add --source FILE.")
    folder = find_model(file)
    direction = config_of_model(folder).data.direction
    if config is not None and direction != config.data.direction:
        raise TmtError(
            f"this baseline translates {direction}, not {config.data.direction}",
            place=folder,
            remedy="Name a model of the same direction, or a file of translations.",
        )
    translator = load_translator([folder], search_settings(folder, changes), computing)
    return _translate(translator, test_set, whose="the baseline").lines


def _store(folder: Path, key: str, report: Report, settings: dict[str, Any]) -> None:
    """Keep the figures beside the model; if that folder cannot be written, say so and go on. key: empty for none."""
    elsewhere = ("test_set", "buckets", "best", "worst", "comparison", "signature")
    figures = {name: value for name, value in as_json(report).items() if name not in elsewhere}
    figures["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    try:
        if key:
            store_scores(folder / SCORES, key, settings, figures)
    except OSError as error:
        note(f"the scores were not stored with the model: {error}")
