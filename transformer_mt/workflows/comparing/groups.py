"""Means and standard deviations over runs that differ only in their seed."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from transformer_mt.evaluation.metrics import METRICS as MEASURES
from transformer_mt.workflows.comparing.summary import Origin, RunSummary

SEED = "seed"


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of `runs` runs (divided by runs - 1)."""

    mean: float
    deviation: float
    runs: int


@dataclass(frozen=True)
class SeedGroup:
    """Finished runs that differ in nothing but `seed`.

    scores: by test set and metric, if they were made in the same way in all runs that have them
    What was not measured in at least two runs is missing.
    """

    names: Sequence[str]
    settings: Mapping[str, Any]
    loss: Spread | None
    bleu: Spread | None
    scores: Mapping[str, Mapping[str, Spread]]


def groups_of(runs: Sequence[RunSummary], origins: Sequence[Origin]) -> tuple[list[SeedGroup], list[str]]:
    """All groups of at least two seeds, and what a reader must know of them."""
    alike: dict[Hashable, list[tuple[int, RunSummary]]] = {}
    for run, origin in zip(runs, origins, strict=True):
        config, made_of = origin.config, (origin.corpus, origin.parent)
        if run.state == "finished" and config is not None and not origin.has_other_history and None not in made_of:
            settings = {key: value for key, value in (origin.settings or {}).items() if key != SEED}
            key = (*made_of, origin.tokenizers, json.dumps(settings, sort_keys=True))
            alike.setdefault(key, []).append((config.seed, run))
    groups, notes = list[SeedGroup](), list[str]()
    for some in alike.values():
        by_seed = dict(reversed(some))  # the first run of each seed
        if len(by_seed) < 2:
            continue
        members = [run for seed, run in some if by_seed[seed] is run]
        groups.append(_group(members))
        without = [run.name for run in members if run.loss is None]
        if without and groups[-1].loss is not None:
            names = ", ".join(without)
            notes.append(f"{names}: no validation loss that is a number, so the mean of the loss has only other seeds")
        for seed, run in some:
            if (first := by_seed[seed]) is not run:
                notes.append(f"{run.name} has the settings and the seed of {first.name}: the mean has only one of them")
    return groups, notes


def made_in(entry: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """What decides whether two scores compare: the sentences, the search, the number format, the form of the metric."""
    own = {key: entry.get(key) for key in ("text", "decoding", "weights")}
    return {**own, "signature": entry["signatures"].get(measure)}


def _group(runs: Sequence[RunSummary]) -> SeedGroup:
    scores: dict[str, dict[str, Spread]] = {}
    for test_set in dict.fromkeys(test_set for run in runs for test_set in run.scores):
        entries = [run.scores[test_set] for run in runs if test_set in run.scores]
        for measure in MEASURES:
            having = [one for one in entries if measure in one]
            spread = _spread([one[measure] for one in having])
            if spread is not None and all(made_in(one, measure) == made_in(having[0], measure) for one in having):
                scores.setdefault(test_set, {})[measure] = spread
    settings = {key: value for key, value in (runs[0].settings or {}).items() if key != SEED}
    loss, bleu = _spread([run.loss for run in runs]), _spread([run.bleu for run in runs])
    return SeedGroup([run.name for run in runs], settings, loss, bleu, scores)


def _spread(values: Sequence[float | None]) -> Spread | None:
    found = [value for value in values if value is not None]
    return Spread(mean(found), stdev(found), len(found)) if len(found) > 1 else None
