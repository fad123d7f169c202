"""Scores the translations of a model, or those in a file."""

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
from transformer_mt.data.prepared import Prepared, prepared_folder
from transformer_mt.decoding.computing import FLOAT32, Computing
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.searches.base import option_of, search_name
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.examine import System, Words, examine
from transformer_mt.evaluation.metrics import METRICS, notice_of
from transformer_mt.evaluation.record import store_scores
from transformer_mt.evaluation.report import Report, as_json
from transformer_mt.evaluation.scores import check_parallel, moses_tokenized
from transformer_mt.files.lines import lines_of, path_of, paths_of, printable
from transformer_mt.reporting.bars import bar
from transformer_mt.reporting.notes import note
from transformer_mt.text.vocabulary import bleu_of_tokens
from transformer_mt.workflows.directions import evaluate_directions
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.models import (
    config_of_model,
    find_models,
    search_settings,
)

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator

UNSCORED = Computing(scored=False)  # evaluation does not use the scores of a search
File = Path | None


@dataclass(frozen=True)
class TestFiles:
    """Text files to score instead of a split of the model's data. Line N of each belongs to line N of the others.

    source:     sentences to translate
    reference:  translations by people
    hypothesis: translations to score instead of translating `source`
    tokenized:  the references as published for BLEU on lower-cased Moses tokens, such as *.lc.norm.tok.de
    """

    source: File = None
    reference: File = None
    hypothesis: File = None
    tokenized: File = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, path_of(value) if value is not None else None)


@dataclass(frozen=True)
class TestSet:
    """Sentences and their references.

    key:     name in scores.json; empty for a pipe, which is not stored there
    sources: empty if they are not known
    """

    name: str
    key: str
    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class Output:
    """Translations of a test set.

    words:    the hypotheses and references in tokens of the model, if these are words
    loss:     nats per token of the references
    settings: the search settings and a digest of the test set, for scores.json
    search:   the search in a few words; empty if others translated
    """

    lines: list[str]
    words: Words | None = None
    loss: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    search: str = ""


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
    """Translate a test set and score it, or score the translations in `files.hypothesis`.

    models:    a folder, or several for an ensemble; default: the run that finished last
    split:     of the first model's data, such as validation; default: the first test set
    baseline:  translations of another system, or its model folder, which is searched with the same settings; the report
               then has paired bootstrap resampling
    tokenized: also lower-cased BLEU, and BLEU on lower-cased Moses tokens as in papers
    language:  ISO code of the target; default: that of the model
    search:    settings of `decoding` that replace those of the model
    The scores of a single model are stored in its folder, in scores.json.
    Raises TmtError if files or settings do not fit together.
    """
    files, changes = files or TestFiles(), search or {}
    baseline = path_of(baseline) if baseline is not None else None
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if unknown := [name for name in metrics if name not in METRICS]:
        raise TmtError(f"unknown metric '{unknown[0]}'", remedy=f"Use one of {', '.join(METRICS)}.")
    _check_files(split, files)
    _check_settings(changes, files.hypothesis, baseline, language)
    needed = models or files.hypothesis is None or files.reference is None
    folders = find_models(paths_of(models)) if needed else []
    config = config_of_model(folders[0]) if folders else None
    target = language or (config.data.one_direction.target if config else "")
    test_set = _test_set(config, split, files)
    decoding = search_settings(folders[0], changes) if folders else None
    # The baseline comes first, so that an error in it is found before the long translation.
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
    """Score a model on splits of its data, one after the other, and store the scores in its folder."""
    if not names:
        return
    config = config_of_model(folder)
    if config.data.directions is not None:
        for name, report in evaluate_directions(folder, Prepared.open(prepared_folder(config)), names, device):
            _store(folder, name, report, {"decoding": config.decoding.model_dump(mode="json")})
            yield name, report
        return
    translator = load_translator([folder], config.decoding, Computing(device=device, scored=False))
    for name in names:
        test_set = _test_set(config, name, TestFiles())
        output = _translate(translator, test_set)
        report = _examine(test_set, output, config.data.one_direction.target, ("bleu", "chrf"))
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
        search=output.search,
    )
    return examine(system, metrics, bleu_of_tokens if "bleu" in metrics else None)


def _check_files(split: str | None, files: TestFiles) -> None:
    if files.reference is not None and split is not None:
        raise TmtError("--split and --reference both name a test set", remedy="Remove one of them.")
    if files.source is not None and files.reference is None:
        raise TmtError("--source needs a --reference", remedy="Add --reference FILE.")
    if files.reference is not None and files.source is None and files.hypothesis is None:
        raise TmtError(
            "--reference needs translations to compare with",
            remedy="Add --source FILE to translate it, or --hypothesis FILE to score existing translations.",
        )


def _check_settings(changes: Mapping[str, Any], hypothesis: File, baseline: File, language: str | None) -> None:
    wanted = [key for key, value in changes.items() if value is not None]
    if wanted and hypothesis is not None and (baseline is None or not baseline.is_dir()):
        option = "--mbr" if wanted[0] == "method" else option_of(wanted[0])
        raise TmtError(
            f"{option} has no effect, because --hypothesis has the translations already", remedy="Remove one of them."
        )
    if language is not None and not re.fullmatch(LANGUAGE, language):
        remedy = "Use a code of two or three small letters, such as de, en or ko."
        raise TmtError(f"'{language}' is not an ISO 639 code", place="--language", remedy=remedy)


def _test_set(config: Config | None, split: str | None, files: TestFiles) -> TestSet:
    """The test set in the files, or a split of the model's data."""
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
            "the prepared data of this model is not here, so there is no test set",
            place=folder,
            remedy="Start tmt in the folder of the training, or name files:  --source FILE --reference FILE",
        )
    prepared = Prepared.open(folder)
    if not prepared.is_of(config):
        raise TmtError(
            "this data was prepared with another config of the same name, so its splits differ from those of the model",
            place=folder,
            remedy="Prepare it with the config of the run (runs/NAME/config.yaml), or score files:"
            "  --source FILE --reference FILE",
        )
    if split == "train" or split not in (None, "test", *prepared.splits):  # training pairs are not stored as text
        others = ", ".join(prepared.splits[1:])
        problem = "the training split is not for evaluation" if split == "train" else f"unknown split '{split}'"
        raise TmtError(problem, place=folder, remedy=f"Use one of: {others}.")
    name = prepared.named(split or "test")
    return TestSet(name, name, *prepared.raw(name))


def _translate(translator: Translator, test_set: TestSet, with_loss: bool = False, model: str = "the model") -> Output:
    lines = translator.translate(test_set.sources, split=False)
    translations = list(bar(iterable=lines, desc="translating", total=len(test_set.sources)))
    loss, limit = None, f"cut to {translator.max_length} tokens, the limit of {model}"
    if count := sum(translation.is_cut for translation in translations):
        note(f"{test_set.name}: {count:,} source{'' if count == 1 else 's'} {limit}")
    if with_loss:
        of_references = translator.reference_loss(test_set.sources, test_set.references)
        loss = of_references.nats / of_references.tokens
        if count := of_references.n_cut:
            note(f"{test_set.name}: {count:,} reference{'' if count == 1 else 's'} {limit}, for the loss only")
    segmenter, words = translator.target.segmenter, None
    if segmenter.tokenizer.finds_words:  # then the table of BLEU-1 to BLEU-4 counts these, not BLEU's own tokens
        name, hypotheses = f"the model's {segmenter.config.kind} words", [one.tokens for one in translations]
        words = Words(name, hypotheses, [segmenter.tokenize(line) for line in test_set.references])
    text = "\n".join([*test_set.sources, *test_set.references]).encode("utf-8", "replace")
    rounded = translator.weights if translator.weights != FLOAT32 else None
    return Output(
        [translation.text for translation in translations],
        words,
        loss,
        # The digest shows whether stored scores are of the same sentences.
        {
            "decoding": translator.decoding.model_dump(mode="json"),
            "weights": rounded,
            "text": sha256(text).hexdigest(),
        },
        search_name(translator.decoding) + (f", {rounded} weights" if rounded else ""),
    )


def _beside(test_set: TestSet, file: Path) -> list[str]:
    """The lines of a file. Raises TmtError if their number is not that of the references."""
    lines = lines_of(file)
    check_parallel(lines, str(file), test_set.references, f"the test set {test_set.name}")
    return lines


def _baseline(
    file: File, changes: Mapping[str, Any], computing: Computing, test_set: TestSet, config: Config | None
) -> list[str]:
    """The translations of a baseline: a file, or a model folder. config: that of the evaluated model."""
    if file is None:
        return []
    if not file.is_dir():
        return _beside(test_set, file)
    if not test_set.sources:
        raise TmtError("a baseline model needs sentences to translate", place=file, remedy="Add --source FILE.")
    folder = find_model(file)
    direction = config_of_model(folder).data.direction
    if config is not None and direction != config.data.direction:
        raise TmtError(
            f"this baseline translates {direction}, not {config.data.direction}",
            place=folder,
            remedy="Name a model for the same languages, or a file of translations.",
        )
    translator = load_translator([folder], search_settings(folder, changes), computing)
    return _translate(translator, test_set, model="the baseline").lines


def _store(folder: Path, key: str, report: Report, settings: dict[str, Any]) -> None:
    """Store the scores in the folder of the model, or print a note if that fails. key: empty to store nothing."""
    not_stored = ("test_set", "buckets", "best", "worst", "comparison", "signature")
    figures = {name: value for name, value in as_json(report).items() if name not in not_stored}
    figures["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    try:
        if key:
            store_scores(folder / SCORES, key, settings, figures)
    except OSError as error:
        note(f"could not store the scores in the folder of the model: {error}")
