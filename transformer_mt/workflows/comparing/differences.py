"""Whether the means of two groups of seeds differ by more than the seeds explain: the t-test of Welch (1947)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from scipy.special import stdtr, stdtrit

from transformer_mt.workflows.comparing.groups import SeedGroup, Spread, made_in
from transformer_mt.workflows.comparing.summary import Origin, RunSummary, vocabularies_of

_SIDES = 0.975  # a 95 % confidence interval leaves out 2.5 % on each side


@dataclass(frozen=True)
class Difference:
    """The mean of a group minus that of the first group.

    interval: half the width of its 95 % confidence interval
    p_value:  probability of a difference at least this large, if many seeds would give both groups the same mean
    Both are None if no seed changed anything.
    """

    value: float
    interval: float | None
    p_value: float | None


@dataclass(frozen=True)
class GroupDifference:
    """A group of seeds compared with the first one. What is missing in one of them, or does not compare, is missing."""

    names: Sequence[str]
    settings: Mapping[str, Any]
    loss: Difference | None
    bleu: Difference | None
    scores: Mapping[str, Mapping[str, Difference]]


def differences_of(
    groups: Sequence[SeedGroup], runs: Sequence[RunSummary], origins: Sequence[Origin]
) -> list[GroupDifference]:
    """Each group but the first, compared with the first. runs, origins: with all runs of the groups."""
    known = {run.name: (run, origin) for run, origin in zip(runs, origins, strict=True)}
    return [_compared(groups[0], group, known) for group in groups[1:]]


def welch(first: Spread, other: Spread) -> Difference:
    """other minus first. The degrees of freedom are those of Welch and Satterthwaite."""
    value = other.mean - first.mean
    variances = [one.deviation**2 / one.runs for one in (first, other)]
    if not sum(variances):
        return Difference(value, None, None)
    error = sqrt(sum(variances))
    shares = [
        (part / sum(variances)) ** 2 / (one.runs - 1) for part, one in zip(variances, (first, other), strict=True)
    ]
    freedom = 1 / sum(shares)
    p_value = 2 * float(stdtr(freedom, -abs(value) / error))
    return Difference(value, float(stdtrit(freedom, _SIDES)) * error, p_value)


def _compared(first: SeedGroup, other: SeedGroup, known: Mapping[str, tuple[RunSummary, Origin]]) -> GroupDifference:
    origins = [known[group.names[0]][1] for group in (first, other)]
    same_pairs = origins[0].corpus == origins[1].corpus and _validated_on(origins[0]) == _validated_on(origins[1])
    vocabularies = vocabularies_of(origins)
    sentences = [one.config and one.config.training.bleu_sentences for one in origins]
    scores: dict[str, dict[str, Difference]] = {}
    for test_set, spreads in first.scores.items():
        for measure, spread in spreads.items():
            if (own := other.scores.get(test_set, {}).get(measure)) is None:
                continue
            if _way(first, known, test_set, measure) == _way(other, known, test_set, measure):
                scores.setdefault(test_set, {})[measure] = welch(spread, own)
    return GroupDifference(
        other.names,
        other.settings,
        _if(same_pairs and vocabularies[0] == vocabularies[1], first.loss, other.loss),
        _if(same_pairs and sentences[0] == sentences[1], first.bleu, other.bleu),
        scores,
    )


def _validated_on(origin: Origin) -> object:
    """The settings that decide the pairs of validation, beside the contents of the files."""
    if origin.config is None:
        return None
    corpora = {"__all__": {"kind", "files", "validation", "split", "seed"}}
    return origin.config.data.model_dump(
        include={"source": True, "target": True, "directions": True, "corpus": corpora}
    )


def _if(compares: bool, first: Spread | None, other: Spread | None) -> Difference | None:
    return welch(first, other) if compares and first is not None and other is not None else None


def _way(
    group: SeedGroup, known: Mapping[str, tuple[RunSummary, Origin]], test_set: str, measure: str
) -> Mapping[str, Any]:
    """How the scores of a group were made: alike in all runs that have them."""
    entries = [known[name][0].scores.get(test_set, {}) for name in group.names]
    return next(made_in(entry, measure) for entry in entries if measure in entry)
