"""What a search writes: its table, its picture and the winning config."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.load import key_path, put_value
from transformer_mt.config.schema import Config
from transformer_mt.config.space import Space, short_names, shown
from transformer_mt.config.yaml_source import read_yaml, write_yaml
from transformer_mt.errors import number_of
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.replace import first_free, replace_text, replaced_file
from transformer_mt.reporting.canvas import Theme
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.table import aligned, duration
from transformer_mt.reporting.trials import TrialCurve, draw_trials
from transformer_mt.workflows.tuning.study import Measure, Trial, ranked

BEST, PICTURE = "best.yaml", "trials.png"  # in the folder of a search
HEADINGS: dict[Measure, str] = {"loss": "valid loss", "bleu": "greedy BLEU"}


def table(trials: Sequence[Trial], space: Space, measure: Measure) -> list[str]:
    """The trials, the best first, with their values; those that failed at the end, with the reason."""
    order = ranked(trials, measure)
    keys = short_names(list(space.ranges))
    rows = [["rank", "trial", HEADINGS[measure], "validations", "time", "", *keys]]
    for rank, one in enumerate(order, start=1):
        score = one.score(measure)
        rows.append(
            [
                *(str(rank), str(one.number), f"{score:.3f}" if measure == "loss" else f"{score:.2f}"),
                *(str(one.validations), duration(one.seconds), one.state, *map(shown, one.values.values())),
            ]
        )
    lines = aligned(rows, ">>>>><" + ">" * len(keys)) if order else []
    failed = [one for one in trials if one.state == "failed"]
    for one in failed:
        values = ", ".join(f"{key} {shown(value)}" for key, value in one.values.items())
        lines.append(f"trial {one.number} failed ({values}): {one.message}")
    return lines


def draw(trials: Sequence[Trial], measure: Measure, file: Path, theme: Theme = "light") -> Path:
    """Draw all trials. Raises TmtError if the file cannot be written."""
    order = ranked(trials, measure)
    curves = [TrialCurve(one.number, one.scores, one.times) for one in trials if one.scores]
    return draw_trials(curves, order[0].number if order else None, measure, file, theme)


def write_best(base: Config, best: Config, trials: Sequence[Trial], space: Space, measure: Measure, file: Path) -> None:
    """Write the winning config: the keys that the user wrote, with the values of the best trial, as comments say.

    best: the config of the best trial, whose prepared data is used again
    """
    order = ranked(trials, measure)
    winner = order[0]
    values = copy.deepcopy(base.model_dump(mode="json", exclude_unset=True))
    for key, value in winner.values.items():
        put_value(values, key_path(key), value, key)
    values["name"] = f"{base.name[:95]}-best"  # a name has at most 100 characters
    values["data"]["prepared"] = best.data.prepared
    text = write_yaml(without_credentials_in(values))
    head, written = _head(order, len(trials), measure), file.with_name(f".{file.name}.sha256")
    known = written.read_text(encoding="utf-8", errors="replace").split() if written.exists() else []
    before = sha256_of(file) if file.exists() else ""
    if known and before and before not in known:
        old = first_free(lambda number: file.with_suffix(f".old{number}.yaml"))
        note(f"{file} was changed by hand: it is now {file.replace(old).name}")
    with replaced_file(file) as aside:
        aside.write_text(text, encoding="utf-8")
        lines, places = text.splitlines(), read_yaml(aside).lines
        for key in winner.values:
            lines[places[key_path(key)] - 1] += f"  # searched: {space.ranges[key]}"
        aside.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
        replace_text(written, f"{before} {sha256_of(aside)}")  # both: the process may be killed before the next line


def _head(order: Sequence[Trial], tried: int, measure: Measure) -> list[str]:
    winner, name = order[0], HEADINGS[measure]
    lines = [
        f"# The best of {tried} trials: trial {winner.number}, {name} {winner.score(measure):.4g} after"
        f" {number_of(winner.validations, 'validation')} ({winner.state}).",
        "# Train it with:  tmt train --config FILE   with the name of this file.",
    ]
    if len(order) > 1:
        others = ", ".join(f"trial {one.number} {one.score(measure):.4g}" for one in order[1:4])
        lines.insert(1, f"# Behind it: {others}.")
    return lines


def as_json(trials: Sequence[Trial], measure: Measure) -> list[dict[str, Any]]:
    """The trials by number, each with its rank; None if it has no score."""
    ranks = {one.number: rank for rank, one in enumerate(ranked(trials, measure), start=1)}
    return [
        {
            "trial": one.number,
            "rank": ranks.get(one.number),
            "state": one.state,
            "values": one.values,
            measure: one.score(measure),
            "validations": one.validations,
            "seconds": one.seconds,
            "message": one.message,
        }
        for one in trials
    ]
