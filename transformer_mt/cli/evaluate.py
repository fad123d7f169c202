"""`tmt evaluate`: how good are a model's translations, or those in a file?"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_mt.cli.options import (
    DeviceOption,
    JsonOption,
    MbrOption,
    SamplesOption,
    ThreadsOption,
    UtilityOption,
    print_json,
    printable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from transformer_mt.config.schema import Config
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.evaluation.examine import Words
    from transformer_mt.evaluation.report import Report

File = Path | None
_MODEL = "Model folder; several are used together. Default: the run that finished last."
_SPLIT = "Split of the model's data, such as validation. Default: its first test set."
_SOURCE = "Sentences to translate, instead of a split."
_REFERENCE = "Their translations by people, line by line."
_HYPOTHESIS = "Score these translations; none are made."
_BASELINE = "Another system's translations, or its model folder (searched alike): paired bootstrap resampling."
_TOKENIZED = "Also lower-cased BLEU, and BLEU on lower-cased Moses tokens as in papers."
_PUBLISHED = "The references as published for --tokenized, such as *.lc.norm.tok.de."
_LANGUAGE = "Target language (ISO code). Default: the model's."
_BEAM = "Beam width; 1: greedy. Default: the model's."
_LENGTH_PENALTY = "GNMT length penalty. Default: the model's."


@dataclass(frozen=True)
class Task:
    """What is to be translated and compared with what. sources: empty when not known. key: its name in
    scores.json; a pipe has none."""

    name: str
    key: str
    sources: list[str]
    references: list[str]


@dataclass(frozen=True)
class Output:
    """Translations, and what only their translator could tell."""

    lines: list[str]
    words: Words | None = None
    loss: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def evaluate(
    bleu: Annotated[bool, typer.Option("--bleu", help="BLEU. Without --bleu, --chrf, --ter: all three.")] = False,
    chrf: Annotated[bool, typer.Option("--chrf", help="chrF.")] = False,
    ter: Annotated[bool, typer.Option("--ter", help="TER, the translation edit rate.")] = False,
    model: Annotated[list[Path] | None, typer.Option("--model", "-m", metavar="DIR", help=_MODEL)] = None,
    split: Annotated[str | None, typer.Option("--split", metavar="NAME", help=_SPLIT)] = None,
    source: Annotated[File, typer.Option("--source", metavar="FILE", help=_SOURCE)] = None,
    reference: Annotated[File, typer.Option("--reference", metavar="FILE", help=_REFERENCE)] = None,
    hypothesis: Annotated[File, typer.Option("--hypothesis", metavar="FILE", help=_HYPOTHESIS)] = None,
    baseline: Annotated[File, typer.Option("--baseline", metavar="FILE", help=_BASELINE)] = None,
    tokenized: Annotated[bool, typer.Option("--tokenized", help=_TOKENIZED)] = False,
    tokenized_reference: Annotated[File, typer.Option("--tokenized-reference", metavar="FILE", help=_PUBLISHED)] = None,
    language: Annotated[str | None, typer.Option("--language", help=_LANGUAGE)] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help=_BEAM)] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", help=_LENGTH_PENALTY)] = None,
    mbr: MbrOption = False,
    samples: SamplesOption = None,
    utility: UtilityOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Score translations against references: BLEU, chrF, TER with signatures, examples, and significance."""
    from transformer_mt.cli.models import find_models, load_translator, search_settings
    from transformer_mt.evaluation.examine import System, examine
    from transformer_mt.evaluation.metrics import METRICS, notice_of

    given = {"beam": beam, "length_penalty": length_penalty, "samples": samples, "utility": utility}
    given["method"] = "mbr" if mbr else None
    _check_files(split, source, reference, hypothesis)
    _check_options(given, hypothesis, baseline, language)
    metrics = [name for name, wanted in zip(METRICS, (bleu, chrf, ter), strict=True) if wanted] or list(METRICS)
    folders = find_models(model) if model or hypothesis is None or reference is None else []
    config = _config(folders[0]) if folders else None
    target = language or (config.data.target if config else "")
    task = _task(config, split, source, reference)
    decoding = search_settings(folders[0], given) if folders else None
    others = _baseline(baseline, given, device, threads, task, config)  # now: a mistake would waste what follows
    published = _tokenized(tokenized, tokenized_reference, task, target)
    if hypothesis:
        output = Output(_beside(task, hypothesis))
    else:
        output = _translate(load_translator(folders, decoding, device, threads, scored=False), task, with_loss=True)
    system = System(
        name=task.name,
        hypotheses=output.lines,
        references=task.references,
        language=target,
        sources=task.sources,
        baseline=others,
        tokenized_references=published,
        words=output.words,
        loss=output.loss,
    )
    if notice := notice_of(target, task.references):
        print(f"tmt: {notice}", file=sys.stderr)
    report = examine(system, metrics, _bleu_of_tokens() if "bleu" in metrics else None)
    if len(folders) == 1 and hypothesis is None:
        _store(folders[0], task.key, report, output.settings)
    _print(report, json)


def evaluate_splits(folder: Path, names: Sequence[str], device: str) -> Iterator[tuple[str, list[str]]]:
    """Score a model on splits of its data, one after the other, keeping the figures with it.

    Yields the name of a split, and its BLEU and chrF with their signatures, a line each.
    """
    from transformer_mt.cli.models import load_translator
    from transformer_mt.evaluation.examine import System, examine

    config = _config(folder)
    translator = load_translator([folder], config.decoding, device, scored=False)
    for name in names:
        task = _task(config, name, None, None)
        output = _translate(translator, task)
        system = System(task.name, output.lines, task.references, config.data.target, task.sources, words=output.words)
        report = examine(system, ("bleu", "chrf"), _bleu_of_tokens())
        _store(folder, task.key, report, output.settings)
        yield name, [f"{task.name}  {score.line}" for score in report.scores.values()]


def _check_files(split: str | None, source: File, reference: File, hypothesis: File) -> None:
    from transformer_mt.errors import TmtError

    if reference is not None and split is not None:
        raise TmtError("--split and --reference both name the test set", remedy="Give one of them.")
    if source is not None and reference is None:
        raise TmtError("--source has no --reference to be compared with", remedy="Add --reference FILE.")
    if reference is not None and source is None and hypothesis is None:
        raise TmtError(
            "--reference alone leaves nothing to score",
            remedy="Add --source FILE to have it translated, or --hypothesis FILE to score translations at hand.",
        )


def _check_options(given: dict[str, Any], hypothesis: File, baseline: File, language: str | None) -> None:
    from transformer_mt.cli.models import option_of
    from transformer_mt.config.section import LANGUAGE
    from transformer_mt.errors import TmtError

    wanted = [key for key, value in given.items() if value is not None]
    if wanted and hypothesis is not None and (baseline is None or not baseline.is_dir()):
        option = "--mbr" if wanted[0] == "method" else option_of(wanted[0])
        raise TmtError(
            f"{option} says how to translate, but --hypothesis holds the translations", remedy="Leave one of them out."
        )
    if language is not None and not re.fullmatch(LANGUAGE, language):
        remedy = "Give two or three small letters, as in the config: de, en, ko."
        raise TmtError(f"--language: '{language}' is no ISO code", remedy=remedy)


def _config(folder: Path) -> Config:
    from transformer_mt.config.load import CONFIG, load_config
    from transformer_mt.errors import TmtError

    file = folder / CONFIG
    if not file.is_file():
        raise TmtError("this is no model folder", place=folder, remedy="Give the `model` folder of a finished run.")
    return load_config(file)


def _task(config: Config | None, split: str | None, source: File, reference: File) -> Task:
    """The files given, or a split of the model's data."""
    from transformer_mt.data.prepared import open_prepared, prepared_folder
    from transformer_mt.errors import TmtError
    from transformer_mt.evaluation.scores import check_parallel
    from transformer_mt.files.lines import lines_of

    if reference is not None:
        places = printable(reference), printable(reference.resolve()) if reference.is_file() else ""
        task = Task(*places, lines_of(source) if source else [], lines_of(reference))
        if source is not None:
            check_parallel(task.sources, str(source), task.references, str(reference))
        return task
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
    return Task(name, name, *prepared.raw(name))


def _translate(translator: Translator, task: Task, with_loss: bool = False, whose: str = "the model") -> Output:
    from tqdm import tqdm

    progress = tqdm(translator.translate(task.sources), "translating", len(task.sources), leave=False, disable=None)
    translations = list(progress)
    loss, cut = None, {"source": sum(translation.is_cut for translation in translations)}
    if with_loss:
        of_references = translator.reference_loss(task.sources, task.references)
        loss, cut["reference"] = of_references.nats / of_references.tokens, of_references.n_cut
    for what, number in cut.items():
        if number:
            only = ", for the loss alone" if what == "reference" else ""
            many = f"{number:,} {what}{'' if number == 1 else 's'}"
            told = f"{many} cut to the {translator.max_length} tokens that {whose} reads{only}"
            print(f"tmt: {task.name}: {told}", file=sys.stderr)
    return Output(
        [translation.text for translation in translations],
        _words(translator, [translation.tokens for translation in translations], task.references),
        loss,
        {"decoding": translator.decoding.model_dump(mode="json"), "text": _digest(task)},
    )


def _digest(task: Task) -> str:
    """By which figures of other sentences are told apart from those of these."""
    from hashlib import sha256

    return sha256("\n".join([*task.sources, *task.references]).encode("utf-8", "replace")).hexdigest()


def _words(translator: Translator, hypotheses: list[Any], references: list[str]) -> Words | None:
    """The model's own tokens, where they are words: what the table of n-gram orders is counted on elsewhere."""
    from transformer_mt.evaluation.examine import Words

    segmenter = translator.target.segmenter
    if not segmenter.tokenizer.finds_words:
        return None
    return Words(
        f"the model's {segmenter.config.kind} words", hypotheses, [segmenter.tokenize(line) for line in references]
    )


def _beside(task: Task, file: Path) -> list[str]:
    """The lines of a file, as many as there are references. Raises TmtError where they are more or fewer."""
    from transformer_mt.evaluation.scores import check_parallel
    from transformer_mt.files.lines import lines_of

    lines = lines_of(file)
    check_parallel(lines, str(file), task.references, f"the test set {task.name}")
    return lines


def _baseline(
    file: File, given: dict[str, Any], device: str, threads: int | None, task: Task, config: Config | None
) -> list[str]:
    """A file of translations, or the translations of another model. config: that of the model to compare with."""
    from transformer_mt.cli.models import find_model, load_translator, search_settings
    from transformer_mt.errors import TmtError

    if file is None:
        return []
    if not file.is_dir():
        return _beside(task, file)
    if not task.sources:
        raise TmtError("a model as baseline needs sentences to translate", place=file, remedy="Add --source FILE.")
    folder = find_model(file)
    direction = _config(folder).data.direction
    if config is not None and direction != config.data.direction:
        raise TmtError(
            f"this baseline translates {direction}, not {config.data.direction}",
            place=folder,
            remedy="Name a model of the same direction, or a file of translations.",
        )
    translator = load_translator([folder], search_settings(folder, given), device, threads, scored=False)
    return _translate(translator, task, whose="the baseline").lines


def _tokenized(wanted: bool, published: File, task: Task, language: str) -> list[str]:
    """The references in the papers' form: as published, or brought into it."""
    from transformer_mt.evaluation.scores import moses_tokenized

    if published is not None:
        return _beside(task, published)
    return moses_tokenized(task.references, language) if wanted else []


def _bleu_of_tokens() -> Any:
    from transformer_mt.text.vocabulary import bleu_of_tokens

    return bleu_of_tokens


def _print(report: Report, json: bool) -> None:
    from transformer_mt.evaluation.report import as_json, as_text

    if json:
        print_json(as_json(report))
    else:
        print(as_text(report))


def _store(folder: Path, key: str, report: Report, settings: dict[str, Any]) -> None:
    """Keep the figures beside the model; where that folder cannot be written, say so and go on. key: empty for none."""
    from datetime import datetime, timezone

    from transformer_mt.decoding.model_directory import SCORES
    from transformer_mt.evaluation.record import store_scores
    from transformer_mt.evaluation.report import as_json

    told_elsewhere = ("test_set", "buckets", "best", "worst", "comparison", "signature")
    figures = {key: value for key, value in as_json(report).items() if key not in told_elsewhere}
    figures["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    try:
        if key:
            store_scores(folder / SCORES, key, settings, figures)
    except OSError as error:
        print(f"tmt: the scores were not stored with the model: {error}", file=sys.stderr)
