"""The reports of all directions of a model, for people and for programs: a row for each, and the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformer_mt.evaluation.metrics import METRICS
from transformer_mt.evaluation.report import Report, aligned, as_json


def mean_scores(reports: Mapping[str, Report]) -> dict[str, float]:
    """The mean of each metric over the directions."""
    first = next(iter(reports.values()))
    return {
        name: sum(one.scores[name].value for one in reports.values()) / len(reports)
        for name in METRICS
        if name in first.scores
    }


def directions_as_json(reports: Mapping[str, Report]) -> dict[str, Any]:
    """The mean, and the report of each direction as `as_json` writes it."""
    return {
        "mean": {name: mean_scores(reports).get(name) for name in METRICS},
        "directions": {name: as_json(one) for name, one in reports.items()},
    }


def directions_as_text(reports: Mapping[str, Report]) -> str:
    """A row for each direction; then how the difference from a baseline was tested, and the signatures."""
    metrics, first = mean_scores(reports), next(iter(reports.values()))
    names = [first.scores[metric].name for metric in metrics]
    rows: list[Sequence[str]] = [("direction", "sentences", *names, "loss")]
    for direction, one in reports.items():
        values = [f"{one.scores[metric].value:.2f}" for metric in metrics]
        rows.append((direction, f"{one.sentences:,}", *values, "" if one.loss is None else f"{one.loss:.3f}"))
    rows.append(("mean", "", *(f"{value:.2f}" for value in metrics.values()), ""))
    parts = [f"{first.search}\n{aligned(rows)}".lstrip("\n"), _comparisons(reports), _signatures(reports)]
    return "\n\n".join(part for part in parts if part)


def _comparisons(reports: Mapping[str, Report]) -> str:
    rows: list[Sequence[str]] = [("direction", "", "baseline", "this system", "difference", "p")]
    for direction, report in reports.items():
        for one in report.comparison.values():
            difference = f"{one.system - one.baseline:+.2f}"
            values = (f"{one.baseline:.2f}", f"{one.system:.2f}", difference, f"{one.p_value:.4f} {one.verdict:<6}")
            rows.append((direction, one.metric, *values))
    if len(rows) == 1:
        return ""
    return f"Paired bootstrap resampling in each direction (better or worse: p < 0.05)\n{aligned(rows)}"


def _signatures(reports: Mapping[str, Report]) -> str:
    """The signatures, each once with the directions that have it: BLEU's tokenizer depends on the language."""
    found: dict[str, list[str]] = {}
    for direction, report in reports.items():
        for one in report.scores.values():
            found.setdefault(f"{one.name}|{one.signature}", []).append(direction)
    alike = len(reports)
    return "\n".join(
        f"{signature}  ({'all' if len(some) == alike else ', '.join(some)})" for signature, some in found.items()
    )
