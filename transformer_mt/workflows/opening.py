"""Opening the folder of a run, and what the user should know about an earlier start of it."""

from __future__ import annotations

from typing import Any

from transformer_mt.config.schema import Config
from transformer_mt.data.parent import Parent
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.run_facts import other_code
from transformer_mt.training.schedules.base import ends_with
from transformer_mt.workflows.parents import keep_parent


def open_run(
    run: RunDirectory, config: Config, facts: dict[str, Any], fresh: bool = False, parent: Parent | None = None
) -> list[str]:
    """Open the folder of the run. Returns notes for the user. facts: of this start"""
    aside = run.move_aside() if fresh else None
    starts, goes_on = run.starts, bool(run.checkpoints.steps())
    try:
        changed = run.open(config, facts)
        if parent is not None:
            keep_parent(parent, run.folder)
    except BaseException:
        if aside is not None:
            run.bring_back(aside)
        raise
    notes = [f"previous run moved to {aside}"] if aside is not None else []
    if starts and not goes_on:
        notes.append("note       an earlier start of this run saved nothing; it begins again")
    if goes_on and (other := other_code(starts, facts)):
        notes.append(f"note       goes on with other code than it began with: {', '.join(other)}")
    notes += [f"changed since the run started (old | new): {line}" for line in changed]
    end = ends_with(config.training)
    ends = (f"training.{end}:", "training.max_steps:")  # if max_steps was removed, max_epochs may now be the end
    if end and any(line.startswith(ends) for line in changed):
        notes.append("the learning rate of further updates jumps, because its schedule now ends at another step")
    if any(line.startswith("training.validate_every:") for line in changed):
        notes.append("validations come at other steps now: training.patience and the best checkpoint depend on them")
    return notes
