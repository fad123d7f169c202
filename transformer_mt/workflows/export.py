"""Writes a model in CTranslate2's format, after comparing its translations with those of the original."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer_mt.config.direction import Direction
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared, open_prepared, prepared_folder
from transformer_mt.decoding.choosing import WHOLE, direction_for, directions_of
from transformer_mt.decoding.choosing import Wanted as Wanted
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError, checked_number, from_os_error, number_of
from transformer_mt.evaluation.scores import check_parallel, score
from transformer_mt.exporting.agreement import (
    CHANCE,
    ENOUGH,
    MOST_LOSS,
    ROUNDING,
    Agreement,
    Scores,
    compare,
    random_lines,
    scores,
)
from transformer_mt.exporting.ctranslate2 import (
    QUANTIZATIONS,
    load_engine,
    require_ctranslate2,
    require_export_folder,
    write_export,
)
from transformer_mt.exporting.origin import is_exported
from transformer_mt.files.lines import lines_of, path_of
from transformer_mt.files.lock import lock
from transformer_mt.reporting.notes import note
from transformer_mt.runtime.device import keep_freed_memory
from transformer_mt.text.vocabulary import MARKS
from transformer_mt.workflows.engines import note_sources
from transformer_mt.workflows.models import find_models
from transformer_mt.workflows.test_sets import written_by

# The search of both engines: without the settings that CTranslate2 lacks.
_SHARED: dict[str, Any] = {"method": "beam", "coverage_penalty": 0.0, "min_length_ratio": 0.0, "no_repeat_ngram": 0}


@dataclass(frozen=True)
class SearchAgreement:
    """Both engines with one search. equal: share of the sentences with equal translations.

    In float32 (None otherwise):
    score_difference: the largest between log-probabilities of a token of the translations
    disadvantage:     by how many standard errors those of the export are less likely, by the scores of the original
    loss:             by how much each different one is less likely, in nats
    """

    beam: int
    equal: float
    bleu: dict[str, float] | None  # tmt, ctranslate2, difference; None without references
    sentences_per_second: dict[str, float]  # tmt, ctranslate2
    score_difference: float | None = None
    disadvantage: float | None = None
    loss: float | None = None


@dataclass(frozen=True)
class ExportReport:
    folder: str
    quantization: str
    sentences: int
    searches: list[SearchAgreement] = field(default_factory=list)

    @property
    def table(self) -> str:
        """Both engines, search by search."""
        folder = Path(self.folder)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
        titles = f"{'BLEU tmt':>8} {'exported':>8} {'change':>7}   {'sentences/s tmt':>15} {'exported':>8}"
        lines = [f"{folder}: CTranslate2, {self.quantization}, {size:.1f} MB", f"{'search':<8} {'equal':>7}   {titles}"]
        for one in self.searches:
            search = "greedy" if one.beam == 1 else f"beam {one.beam}"
            bleu = "{tmt:8.2f} {ctranslate2:8.2f} {difference:+7.2f}".format(**one.bleu) if one.bleu else f"{'-':>25}"
            ours, theirs = one.sentences_per_second.values()
            faster = f"({theirs / ours:.1f} x)"
            lines.append(f"{search:<8} {one.equal:7.1%}   {bleu}   {ours:15,.0f} {theirs:8,.0f} {faster}")
        if any(one.equal < 1 for one in self.searches):
            rounds = f"; {self.quantization} rounds the weights, so words change"
            why = "" if self.quantization == "float32" else rounds
            lines.append(f"equal: the same text, of {self.sentences} sentences{why}. BLEU says if they became worse")
        return "\n".join(lines)


class _Sample(NamedTuple):
    """Sentences of a direction, with their references; these may be missing."""

    direction: Direction
    lines: list[str]
    references: list[str]


def export(
    output: str | Path,
    model: str | Path | None = None,
    *,
    format_: str = "ctranslate2",
    quantization: str = "float32",
    sample: int = 200,
    source: str | Path | None = None,
    reference: str | Path | None = None,
    threads: int | None = None,
    wanted: str | Wanted = WHOLE,
) -> ExportReport:
    """Write a model for CTranslate2 into the folder `output`, after comparing both on a sample of sentences.

    model:     a folder; default: the run that finished last
    sample:    number of sentences to compare
    source:    file of sentences to compare; default: the validation split
    reference: file of their translations by people, for BLEU
    threads:   CPU threads; None: one per core
    wanted:    the direction of `source`, for a model of several
    Raises TmtError if CTranslate2 is missing or does not support the model, if `output` contains other files, and (exit
    code 1) if translations differ in float32. In these cases, nothing is written.
    """
    output = path_of(output)
    source, reference = (None if file is None else path_of(file) for file in (source, reference))
    _check_options(format_, quantization, source, reference)
    checked_number(sample, "sample")
    Computing(threads=threads)  # checks the number
    wanted = Wanted.of(wanted)
    require_ctranslate2()
    require_export_folder(output)
    directory = load_model_directory(find_models(() if model is None else model)[0])
    samples = [_as_scored(one, directory.config) for one in _samples(directory, sample, source, reference, wanted)]
    searches: list[SearchAgreement] = []

    def prove(written: Path) -> None:
        searches.extend(_compared(directory, written, samples, threads, quantization == "float32"))
        _require_agreement(output, searches)

    with _locked(output):
        replaced = _earlier_name(output)
        write_export(directory, output, quantization, prove)
    if replaced and replaced != directory.config.name:
        note(f"{output}: replaced the export of another model, {replaced}, by that of {directory.config.name}")
    _note_other_search(directory)
    if make_search(directory.config.decoding).constrained_rows:
        note(
            "addresses and placeholders are left to the exported model: if it loses one, a note says so,"
            " but only the run itself translates such a line again"
        )
    return ExportReport(str(output), quantization, sum(len(one.lines) for one in samples), searches)


def _locked(output: Path) -> ExitStack:
    """A lock for the exports of this user to a folder, which is replaced itself. Raises TmtError if it is held."""
    name = hashlib.sha256(f"{Path.home()}\n{output.resolve()}".encode("utf-8", "surrogateescape")).hexdigest()
    held = TmtError("another process exports here", place=output, remedy="Wait, or name another folder.")
    try:
        return lock(Path(tempfile.gettempdir()) / f"tmt-export-{name[:16]}.lock", held)
    except OSError as error:
        raise from_os_error(error, "locking the folder of an export") from None


def _earlier_name(output: Path) -> str:
    """The name of the model that was exported to this folder before; empty if there is none, or if it is unknown."""
    try:
        return load_config(output / CONFIG).name if is_exported(output) else ""
    except TmtError:  # written by another version
        return ""


def _note_other_search(directory: ModelDirectory) -> None:
    """Print a note if CTranslate2 does not have the model's own search, so that the export needs other settings."""
    from transformer_mt.exporting.engine import refuse_unsupported  # needs CTranslate2

    try:
        refuse_unsupported(make_search(directory.config.decoding), directory.folder)
    except TmtError as refusal:
        note(f"the export cannot search as this model does: {refusal.message}. {refusal.remedy}")


def _check_options(format_: str, quantization: str, source: Path | None, reference: Path | None) -> None:
    if format_ != "ctranslate2":
        raise TmtError(f"unknown format '{format_}'", place="--format", remedy="Use ctranslate2.")
    if quantization not in QUANTIZATIONS:
        remedy = f"Use one of {', '.join(QUANTIZATIONS)}."
        raise TmtError(f"unknown quantization '{quantization}'", place="--quantization", remedy=remedy)
    if reference is not None and source is None:
        raise TmtError("--reference needs an --input", remedy="Add --input FILE.")


def _samples(
    directory: ModelDirectory, count: int, source: Path | None, reference: Path | None, wanted: Wanted
) -> list[_Sample]:
    """Sentences to compare, with their references if these are known; of each direction, if they are not of a file."""
    sources, references = lines_of(source) if source else [], lines_of(reference) if reference else []
    data = directory.config.data
    fitting = [] if source else directions_of(data, wanted)
    chosen = fitting or [direction_for(data, *wanted)]
    if source is not None:
        note_sources(data, chosen[0])
    prepared, why = prepared_folder(directory.config), "no prepared data here"
    if source is None and prepared.is_dir():
        try:
            of_data = open_prepared(directory.config)
            if data.directions is not None:
                if found := _of_directions(of_data, chosen, count):
                    return found
                why = f"no validation pairs of {', '.join(map(str, chosen))}"
            else:
                sources, references = of_data.raw("validation")
        except TmtError as error:
            why = f"{error.place}: {error.message}"
    if references:
        check_parallel(sources, str(source or prepared), references, str(reference or prepared))
    if source is not None and not any(line.strip() for line in sources):
        raise TmtError("this file has no sentences", place=source, remedy="Name a file with one sentence per line.")
    if not sources:
        note(f"{why}; comparing on sentences of random tokens")
        tokens = directory.source.vocabulary.untagged[len(MARKS) :]
        longest = min(20, data.max_length - 1 - len(data.tags[:1]))
        sources = random_lines(tokens, directory.source.segmenter.detokenize, count, longest)
        return [_Sample(one, sources[number :: len(chosen)], []) for number, one in enumerate(chosen[:count])]
    places = [place for place, line in enumerate(sources) if line.strip()][:count]
    return [_Sample(chosen[0], *([side[place] for place in places] if side else [] for side in (sources, references)))]


def _as_scored(sample: _Sample, config: Config) -> _Sample:
    """With its references in the form in which `evaluate` compares them."""
    written = written_by(config, sample.direction)
    return sample._replace(references=list(map(written, sample.references)))


def _of_directions(prepared: Prepared, directions: Sequence[Direction], count: int) -> list[_Sample]:
    """Validation pairs of each direction, about `count` together."""
    sides, places = prepared.raw("validation"), prepared.places("validation", -(-count // len(directions)))
    return [
        _Sample(one, *([side[place] for place in places[str(one)]] for side in sides))
        for one in directions
        if str(one) in places
    ]


class _FreeTranslator(Translator):
    """Leaves addresses and placeholders to the model, as CTranslate2 does."""

    constrains = False


def _compared(
    directory: ModelDirectory, exported: Path, samples: Sequence[_Sample], threads: int | None, exact: bool
) -> list[SearchAgreement]:
    """Compare greedy search, and beam search with the beam of the model. exact: the weights are not rounded"""
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
    own, number = directory.config.decoding, sum(len(one.lines) for one in samples)
    if any(getattr(own, key) != value for key, value in _SHARED.items()):
        note("compared with plain beam search, because CTranslate2 does not have all search settings of this model")
    searches, threads = [], threads or torch.get_num_threads()
    for beam in (1, own.beam if own.beam > 1 else 5):
        decoding = own.model_copy(update={**_SHARED, "beam": beam, "n_best": 1})
        note(f"translating {number_of(number, 'sentence')} with both engines, beam {beam}")
        engine = load_engine(exported, decoding, Computing(device="cpu", threads=threads))
        ours = _FreeTranslator([directory], decoding)
        results = [compare(ours.turned(one.direction), engine.turned(one.direction), one.lines) for one in samples]
        share = sum(result.share * len(one.lines) for result, one in zip(results, samples, strict=True)) / number
        seconds = [sum(result.our_seconds for result in results), sum(result.their_seconds for result in results)]
        speed = {"tmt": number / seconds[0], "ctranslate2": number / seconds[1]}
        agreement = SearchAgreement(beam, share, _bleu(results, samples), speed)
        if exact:
            found = Scores()
            for result, one in zip(results, samples, strict=True):
                found += scores(ours.turned(one.direction), engine.turned(one.direction), one.lines, result)
            agreement = replace(
                agreement, score_difference=found.difference, disadvantage=found.disadvantage, loss=found.loss
            )
        searches.append(agreement)
    return searches


def _bleu(results: Sequence[Agreement], samples: Sequence[_Sample]) -> dict[str, float] | None:
    """BLEU of both engines, the mean over directions, and its difference; None without references."""
    if not all(one.references for one in samples):
        return None
    ours, theirs = (
        sum(
            score(side, one.references, one.direction.target, ("bleu",))["bleu"].value
            for side, one in zip(sides, samples, strict=True)
        )
        / len(samples)
        for sides in ([result.ours for result in results], [result.theirs for result in results])
    )
    return {"tmt": ours, "ctranslate2": theirs, "difference": theirs - ours}


def _require_agreement(output: Path, searches: Sequence[SearchAgreement]) -> None:
    """Raises TmtError if scores or searches differ in float32, which is a bug; with fewer bits they may differ."""
    report = "Nothing was written. This is a bug: please report it with the model's config.yaml."
    for one in searches:
        if one.score_difference is None or one.disadvantage is None or one.loss is None:
            continue
        if not one.score_difference <= ROUNDING:  # it may be no number
            raise TmtError(
                f"VERIFICATION FAILED: log-probabilities of tokens differ by up to {one.score_difference:.1e}",
                place=output,
                remedy=report,
                exit_code=1,
            )
        if one.equal >= ENOUGH:
            continue
        if not (one.disadvantage <= CHANCE and one.loss <= MOST_LOSS):
            raise TmtError(
                f"VERIFICATION FAILED: with beam {one.beam} only {one.equal:.1%} of the translations are equal, and the"
                f" others are less likely (by {one.loss:.2f} nats each)",
                place=output,
                remedy=report,
                exit_code=1,
            )
        note(
            f"only {one.equal:.1%} of the translations with beam {one.beam} are equal, but the others are about as"
            " likely, as of a model that is hardly trained; if yours is well trained, report it"
        )
