"""Averages checkpoints of a run into its model, or into another folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from transformer_mt.config.load import CONFIG, SCORES, load_config
from transformer_mt.config.runs import TRAINED_ON, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.data.parent import hashes_for_model
from transformer_mt.data.prepared import Prepared, open_prepared
from transformer_mt.decoding.model_directory import (
    read_model_weights,
    require_saved_tokenizers,
    save_model_directory,
)
from transformer_mt.errors import TmtError, checked_number
from transformer_mt.files.lines import path_of
from transformer_mt.kernels.build import build_model
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.program import quoted
from transformer_mt.runtime.device import set_up
from transformer_mt.text.codec import Codec, load_codecs
from transformer_mt.training.ending import Candidate, best_of
from transformer_mt.training.run_directory import FRESH, FinalModel, RunDirectory
from transformer_mt.workflows.candidates import Scorer
from transformer_mt.workflows.models import default_model
from transformer_mt.workflows.parents import parent_of

_LAST = 5  # checkpoints, as in the paper (section 6.1)
_IN_PYTHON = " (in Python: force=True)"


@dataclass(frozen=True)
class AverageReport:
    """steps:    of the averaged checkpoints
    compared: their mean and the model before, on the validation split; empty if there was nothing to compare
    replaced: False if the mean scores lower, or is the model already; True for another folder
    """

    model: Path
    steps: list[int]
    compared: Sequence[Candidate] = ()
    replaced: bool = True


def average(
    run: str | Path | None = None,
    last: int | None = None,
    force: bool = False,
    *,
    steps: Sequence[int] = (),
    output: str | Path | None = None,
) -> AverageReport:
    """Replace the model of a run by the mean of its last checkpoints, without damaged ones.

    run:    its folder; default: the run that finished last
    last:   number of checkpoints, newest first; default: 5
    force:  also replace a model that scores higher on the validation split, or that cannot be compared
    steps:  of the checkpoints to take, instead of the last ones
    output: folder for the mean, without a comparison; the model of the run then stays as it is
    Raises TmtError if there is no usable checkpoint, if there is none of a step, if the two models cannot be compared,
    or if there is such a folder.
    """
    run = default_model().parent if run is None else run
    last, steps = _LAST if last is None and not steps else last, sorted({*steps})
    if last is not None:
        checked_number(last, "last")
    if last is not None and steps:
        raise TmtError("--last and --step both choose checkpoints", remedy="Remove one of them.")
    if output is not None and force:
        raise TmtError("--force has no effect: with --output nothing is replaced", remedy="Remove one of them.")
    target = path_of(output) if output is not None else None
    if target is not None and (target.exists() or target.is_symlink()):
        raise TmtError("this exists already", place=target, remedy="Name a new folder, or remove this one.")
    directory = RunDirectory(path_of(run))
    if not directory.checkpoints.steps():
        raise TmtError(
            "no checkpoints in this folder", place=run, remedy="Name the folder of a run, such as runs/NAME."
        )
    with closing(directory):
        directory.lock()
        return _average(directory, _chosen(directory, last, steps), force, target)


def _chosen(directory: RunDirectory, last: int | None, wanted: list[int]) -> list[int]:
    """The steps of the checkpoints to average: the last ones, or those that are wanted."""
    run, config = directory.folder, load_config(directory.folder / CONFIG)
    if last is None:
        if missing := [step for step in wanted if step not in directory.checkpoints.steps()]:
            there = ", ".join(map(str, directory.checkpoints.steps()))
            raise TmtError(f"no checkpoint of step {missing[0]}", place=run, remedy=f"There are: {there}.")
        return wanted
    checkpoint, problems = directory.checkpoints.newest()
    if checkpoint is None:
        raise TmtError("no usable checkpoint in this run", place=run, remedy="\n  ".join(problems))
    undamaged, damaged = directory.checkpoints.undamaged()
    for problem in dict.fromkeys([*problems, *damaged]):
        note(f"{problem}: not averaged")
    usable = [step for step in undamaged if step <= checkpoint.state.step]
    steps = checkpoint.state.latest(usable)[-min(last, config.training.kept_last) :]
    if len(steps) < last:
        newest = "checkpoint" if len(steps) == 1 else f"{len(steps)} checkpoints"
        note(f"averaged only the newest {newest}; training.keep_last decides how many a run keeps")
    return steps


def _average(directory: RunDirectory, steps: list[int], force: bool, output: Path | None) -> AverageReport:
    config = load_config(directory.folder / CONFIG)
    if output is not None:
        codecs, seen = _belongings(directory, config)
        if seen is None and (kept := directory.model / TRAINED_ON).is_file():
            seen = kept.read_bytes()
        save_model_directory(output, config, directory.checkpoints.mean_weights(steps), codecs, seen)
        return AverageReport(output, steps)
    final = directory.recorded_model()
    is_whole = all((directory.model / name).is_file() for name in (CONFIG, WEIGHTS))
    if not force and final is not None and sorted(final.steps) == steps and is_whole:
        read_model_weights(directory.model)  # raises TmtError if they are damaged
        return AverageReport(directory.model, steps, replaced=False)
    codecs, seen = _belongings(directory, config)
    weights = directory.checkpoints.mean_weights(steps)
    compared = _compared(directory, config, final, steps, weights, force)
    if compared and best_of(compared) is not compared[0] and not force:
        return AverageReport(directory.model, steps, compared, replaced=False)
    had_scores = (directory.model / SCORES).exists()
    save_model_directory(directory.model, config, weights, codecs, seen)
    directory.record_final_model(FinalModel(steps, "average", compared=compared))
    if had_scores:
        model = quoted(directory.folder)
        note(f"the scores of the previous model are removed; measure the new one:  tmt evaluate --bleu --model {model}")
    return AverageReport(directory.model, steps, compared)


def _belongings(directory: RunDirectory, config: Config) -> tuple[tuple[Codec, Codec], bytes | None]:
    """The tokenizers of a run, and the hashes of its training sentences; None if its model has them."""
    if directory.model.is_dir():
        if (directory.model / WEIGHTS).exists():
            require_saved_tokenizers(directory.model)  # else damaged ones would get new checksums
        return load_codecs(directory.model), None
    prepared = _prepared(directory, config)
    return prepared.codecs(), hashes_for_model(prepared.folder, parent_of(config, directory.folder))


def _prepared(run: RunDirectory, config: Config) -> Prepared:
    """The prepared data of a run. Raises TmtError if it is missing, or was prepared again from other files."""
    prepared = open_prepared(config)
    try:
        run.require_same_corpus(prepared.identity())
    except TmtError as error:
        error.remedy = error.remedy.partition(f", or start again with {FRESH}")[0]  # there is nothing to start here
        raise
    return prepared


def _compared(
    run: RunDirectory,
    config: Config,
    final: FinalModel | None,
    steps: list[int],
    weights: Mapping[str, Tensor],
    force: bool,
) -> list[Candidate]:
    """The mean and the model that it would replace, with their scores; empty if there is no other model.

    final: the model before
    Raises TmtError without the prepared data; with `force`, that is a note.
    """
    if final is None or not (run.model / WEIGHTS).is_file() or sorted(final.steps) == steps:
        return []
    new, old = Candidate(["mean" if len(steps) > 1 else "checkpoint"], steps), Candidate(["before"], final.steps)
    try:
        scorer = Scorer(config, _prepared(run, config), set_up(config.runtime))
    except TmtError as error:
        if force:
            note(f"not compared with the model before: {error.place}: {error.message}")
            return []
        remedy = f"{error.remedy}\n  To replace the model without a comparison:  --force{_IN_PYTHON}"
        problem = f"{error.message}, so the mean cannot be compared with the model of this run"
        raise TmtError(problem, place=error.place, remedy=remedy) from None
    weights_before = read_model_weights(run.model)
    note(f"compared on {scorer.describe()}")
    source, target = scorer.prepared.codecs()
    model = build_model(config, len(source), len(target), scorer.machine.device)
    return scorer.compare([new, old], lambda one: weights if one is new else weights_before, model, note)
