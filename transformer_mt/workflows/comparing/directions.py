"""Means of scores over the directions of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from transformer_mt.evaluation.metrics import METRICS as MEASURES


def with_means(scores: Mapping[str, dict[str, Any]], directions: Sequence[object]) -> dict[str, dict[str, Any]]:
    """The scores, and behind those of the directions of a test set their mean, in which each direction counts the same.

    Two means compare only if they are of the same directions, and if the scores of each direction compare.
    directions: of the model; a mean needs scores of at least two of them
    """
    found = dict[str, dict[str, Any]]()
    for name, entry in scores.items():
        found[name] = entry
        test_set = name.rpartition(" ")[0]
        names = [one for one in scores if one in {f"{test_set} {direction}" for direction in directions}]
        if len(names) > 1 and name == names[-1]:
            found[f"{test_set} mean"] = _mean({one: scores[one] for one in sorted(names)})
    return found


def _mean(entries: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """An entry like those of the directions, with the metrics that all of these have."""
    each = list(entries.values())
    measures = [one for one in MEASURES if all(one in entry for entry in each)]
    signatures = {one: [str(entry["signatures"].get(one)) for entry in each] for one in measures}
    sentences = [entry.get("sentences") for entry in each]
    return {
        **{one: mean(entry[one] for entry in each) for one in measures},
        **{key: _of_all(entries, key) for key in ("text", "decoding")},
        "weights": {name: entry.get("weights") for name, entry in entries.items()},
        "signatures": {one: "; ".join(dict.fromkeys(some)) for one, some in signatures.items()},
        "search": f"mean of {len(each)} directions",
        "sentences": sum(sentences) if all(isinstance(one, int) for one in sentences) else None,
    }


def _of_all(entries: Mapping[str, dict[str, Any]], key: str) -> dict[str, Any] | None:
    """The values by name; None if one is unknown."""
    found = {name: entry.get(key) for name, entry in entries.items()}
    return found if all(found.values()) else None
