"""Successive halving: a trial that is behind does not go on.

Li et al. 2018, "A System for Massively Parallel Hyperparameter Tuning", for one trial at a time: after 1, 3, 9, ...
times `first_rung` validations, a trial goes on only if it is among the best third of all trials that came as far, or
the best of the first few. All follows from the scores, so that a killed search decides the same again. Optuna's pruner
does not: its notes in the journal change what it says of a trial that asks twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from transformer_mt.config.schema import Config
from transformer_mt.workflows.tuning.study import Measure, Trial

REDUCTION = 3  # one of so many trials goes on after each rung
STOPPED = "stopped:"  # begins the reason of a trial that is behind
RUNGS = 2  # the first rung is at 1/REDUCTION**RUNGS of a whole trial, if that has so many validations


def first_rung(config: Config, updates: Callable[[], int]) -> int:
    """The first validation after which a trial may be stopped; 1 if only the time limits a trial.

    updates: counts those of an epoch; called only if the config mixes epochs and updates
    """
    settings = config.training
    epochs, steps, every = settings.max_epochs, settings.max_steps, settings.validate_every
    wholes = []
    if epochs is not None:
        wholes.append(epochs if every is None else epochs * updates() // every)
    if steps is not None:
        wholes.append(steps // (updates() if every is None else every))
    return int(max(1, min(wholes, default=1) // REDUCTION**RUNGS))


def why_stopped(trials: Sequence[Trial], validation: int, first: int, measure: Measure) -> str:
    """Why the last of these trials ends after this validation; empty if it goes on. first: see `first_rung`"""
    rung = first
    while rung < validation:
        rung *= REDUCTION
    if rung != validation:
        return ""
    scores = [one.scores[rung] for one in trials if rung in one.scores]
    best = sorted(scores, reverse=measure == "bleu")[: max(1, len(scores) // REDUCTION)]
    if scores[-1] in best:
        return ""
    return f"{STOPPED} not among the best {len(best)} of {len(scores)} after validation {validation}"
