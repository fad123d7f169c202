"""The results of an evaluation, for people (aligned text) and for programs (one JSON object)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tabulate import tabulate

from transformer_mt.errors import visible
from transformer_mt.evaluation.comparison import Comparison
from transformer_mt.evaluation.metrics import BY_DEFAULT
from transformer_mt.evaluation.scores import ORDERS, BleuTable, Score
from transformer_mt.evaluation.sentences import Bucket, Example


@dataclass(frozen=True)
class Report:
    """All results of one system on one test set. What was not requested is None or empty.

    name:        of the test set
    scores:      by metric, on natural text
    intervals:   by metric, half the width of the 95 % confidence interval; empty for too few or too many sentences
    lowercased:  BLEU that ignores case
    literature:  BLEU on lower-cased Moses tokens, as in papers
    loss:        of the model on the references, in nats per token
    search:      how the translations were searched, such as `beam 5`; empty if unknown
    decoding:    all settings of that search; empty if unknown
    models:      folders of the model, or of the models of an ensemble; empty if others translated
    baseline:    the folder of the model, or the file of translations, that `comparison` compares with
    left_out:    pairs of its files that were dropped when it was prepared
    hypotheses:  the translations, line by line
    best, worst: sentences by chrF
    """

    name: str
    sentences: int
    length_ratio: float
    scores: dict[str, Score]
    lowercased: Score | None = None
    literature: Score | None = None
    table: BleuTable | None = field(default=None, repr=False)
    loss: float | None = None
    buckets: Sequence[Bucket] = field(default=(), repr=False)
    best: Sequence[Example] = field(default=(), repr=False)
    worst: Sequence[Example] = field(default=(), repr=False)
    intervals: dict[str, float] = field(default_factory=dict)
    comparison: dict[str, Comparison] = field(default_factory=dict)
    search: str = ""
    decoding: Mapping[str, Any] = field(default_factory=dict, repr=False)
    models: Sequence[str] = ()
    baseline: str = ""
    left_out: int = 0
    hypotheses: Sequence[str] = field(default=(), repr=False)

    def __str__(self) -> str:
        return as_text(self)

    @property
    def perplexity(self) -> float | None:
        """exp(loss), per token; None without a loss, or if the result is above 1e304."""
        return None if self.loss is None or self.loss > 700 else math.exp(self.loss)


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain values. All keys but those of further metrics are always present; None: not requested."""
    bleu = report.scores.get("bleu")
    lowercased, literature = report.lowercased, report.literature
    return {
        **{name: report.scores[name].value if name in report.scores else None for name in _keys(report)},
        "intervals": report.intervals or None,
        "signature": bleu.signature if bleu else next((one.signature for one in report.scores.values()), None),
        "signatures": {name: one.signature for name, one in report.scores.items()},
        "test_set": report.name,
        "sentences": report.sentences,
        "left_out": report.left_out or None,
        "model": (report.models[0] if len(report.models) == 1 else list(report.models)) or None,
        "search": report.search or None,
        "decoding": dict(report.decoding) or None,
        "length_ratio": report.length_ratio,
        "loss": report.loss,
        "perplexity": report.perplexity,
        "lowercased_bleu": {"bleu": lowercased.value, "signature": lowercased.signature} if lowercased else None,
        "literature_bleu": {"bleu": literature.value, "signature": literature.signature} if literature else None,
        "bleu_table": asdict(report.table) if report.table else None,
        "buckets": [asdict(bucket) for bucket in report.buckets],
        "best": [asdict(example) for example in report.best],
        "worst": [asdict(example) for example in report.worst],
        "baseline": report.baseline or None,
        "comparison": {
            name: {**asdict(one), "significant": one.significant, "verdict": one.verdict or None}
            for name, one in report.comparison.items()
        }
        or None,
    }


def _keys(report: Report) -> list[str]:
    """The metrics that its JSON has: those by default, and what else was requested."""
    return list(dict.fromkeys((*BY_DEFAULT, *report.scores)))


def as_text(report: Report) -> str:
    """The report as text. The scores come first, in sacreBLEU's standard form."""
    scores = [one.line for one in report.scores.values()]
    if report.lowercased:  # other forms of BLEU have a label, because they cannot be compared with the first line
        scores.append(f"lower-cased:  {report.lowercased.line}")
    if report.literature:
        scores.append(f"lower-cased, Moses-tokenised, as in papers:  {report.literature.line}")
    facts = [size(report), f"length ratio {report.length_ratio:.3f}"]
    if report.search:
        facts.insert(1, report.search)
    if report.loss is not None:
        perplexity = "above 1e304" if report.perplexity is None else f"{report.perplexity:,.3f}"
        facts.append(f"references: loss {report.loss:.3f}, perplexity {perplexity} a token")
    parts = [
        "\n".join(filter(None, [*scores, chance(report)])),
        " · ".join(facts),
        _table(report.table) if report.table else "",
        _comparison(report) if report.comparison else "",
        _buckets(report.buckets) if len(report.buckets) > 1 else "",
        _examples("best", report.best, report.name) if report.best else "",
        _examples("worst", report.worst, report.name) if report.worst else "",
    ]
    return "\n\n".join(part for part in parts if part)


def size(report: Report) -> str:
    """How many sentences were scored, and how many of its files were left out: scores of all differ."""
    if not report.left_out:
        return f"{report.sentences:,} sentences of {report.name}"
    every = report.sentences + report.left_out
    verb = "was" if report.left_out == 1 else "were"
    return (
        f"{report.sentences:,} of {every:,} sentences of {report.name}"
        f" ({report.left_out:,} {verb} left out when it was prepared)"
    )


def chance(report: Report) -> str:
    """How much of the scores is chance, in a line; empty if that is not known, or if the comparison shows it."""
    found = ", ".join(f"{report.scores[name].name} ± {width:.2f}" for name, width in report.intervals.items())
    if not found or report.comparison:
        return ""
    return f"on very many sentences of this kind (95 %, bootstrap resampling): {found}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text in columns: the first column is aligned to the left, the others to the right."""
    sides = ["left", *["right"] * (len(rows[0]) - 1)]
    text = tabulate(rows, tablefmt="plain", colalign=sides, disable_numparse=True, preserve_whitespace=True)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _table(table: BleuTable) -> str:
    """BLEU-1 to BLEU-4: of each order alone, and of all orders up to it."""
    rows = [
        ("", *(f"BLEU-{n}" for n in ORDERS)),
        ("individual", *(f"{value:.2f}" for value in table.individual)),
        ("cumulative", *(f"{value:.2f}" for value in table.cumulative)),
    ]
    return f"By n-gram order (unsmoothed, {table.tokens})\n{aligned(rows)}"


def _comparison(report: Report) -> str:
    rows: list[Sequence[str]] = [("", "baseline", "this system", "difference", "p")]
    rows += map(_compared, report.comparison.values())
    lines = [f"baseline: {visible(report.baseline)}"] if report.baseline else []
    lines += [f"{one.metric}|{one.signature}" for one in report.comparison.values()]
    return "\n".join([_RESAMPLED, aligned(rows), *lines])


_RESAMPLED = "Paired bootstrap resampling (95 % intervals; better or worse than the baseline: p < 0.05)"


def _compared(one: Comparison) -> tuple[str, ...]:
    """A row of a table: metric, both scores, their difference, p and the verdict."""
    return (
        one.metric,
        f"{one.baseline:.2f} ± {one.baseline_interval:.2f}",
        f"{one.system:.2f} ± {one.system_interval:.2f}",
        f"{one.system - one.baseline:+.2f}",
        f"{one.p_value:.4f} {one.verdict:<6}",
    )


def span_of(bucket: Bucket) -> str:
    """The lengths in a bucket, such as `6 to 10`."""
    if bucket.longest is None:
        return f"{bucket.shortest} or more"
    return f"{max(bucket.shortest, 1)} to {bucket.longest}"


def _buckets(buckets: Sequence[Bucket]) -> str:
    rows = [("tokens", "sentences", "BLEU", "chrF2", "length ratio")]
    for one in buckets:
        rows.append(
            (span_of(one), f"{one.sentences:,}", f"{one.bleu:.2f}", f"{one.chrf:.2f}", f"{one.length_ratio:.3f}")
        )
    return f"By length of the reference\n{aligned(rows)}"


def _examples(which: str, examples: Sequence[Example], test_set: str) -> str:
    parts = [f"The {len(examples)} {which} by chrF2 (line of {test_set}: chrF2)"]
    for one in examples:
        source = f"\n  source      {visible(one.source)}" if one.source else ""
        references = "".join(f"\n  reference   {visible(text)}" for text in (one.reference, *one.others))
        parts.append(f"line {one.line}: {one.chrf:.1f}{source}{references}\n  hypothesis  {visible(one.hypothesis)}")
    return "\n".join(parts)


def directions_as_json(reports: Mapping[str, Report]) -> dict[str, Any]:
    """The mean of each metric, and the report of each direction as `as_json` writes it."""
    keys = dict.fromkeys(name for one in reports.values() for name in _keys(one))
    values = {name: [one.scores[name].value for one in reports.values() if name in one.scores] for name in keys}
    return {
        "mean": {name: sum(some) / len(some) if len(some) == len(reports) else None for name, some in values.items()},
        "directions": {name: as_json(one) for name, one in reports.items()},
    }


def directions_as_text(reports: Mapping[str, Report]) -> str:
    """A row for each direction; then how the difference from a baseline was tested, and the signatures."""
    first = next(iter(reports.values()))
    columns = {direction: _columns(one) for direction, one in reports.items()}
    rows: list[Sequence[str]] = [("direction", "sentences", *_columns(first), "loss")]
    for direction, one in reports.items():
        values = [f"{score.value:.2f}" for score in columns[direction].values()]
        rows.append((direction, f"{one.sentences:,}", *values, "" if one.loss is None else f"{one.loss:.3f}"))
    means = (sum(some[name].value for some in columns.values()) / len(columns) for name in _columns(first))
    rows.append(("mean", "", *(f"{value:.2f}" for value in means), ""))
    parts = [
        f"{first.search}\n{aligned(rows)}".lstrip("\n"),
        _comparisons_by_direction(reports),
        _signatures_by_direction(reports),
    ]
    return "\n\n".join(part for part in parts if part)


def _columns(report: Report) -> dict[str, Score]:
    """The scores in a row of `directions_as_text`."""
    found = {one.name: one for one in report.scores.values()}
    others = {"lower-cased": report.lowercased, "as in papers": report.literature}
    return found | {name: one for name, one in others.items() if one is not None}


def _comparisons_by_direction(reports: Mapping[str, Report]) -> str:
    rows: list[Sequence[str]] = [("direction", "", "baseline", "this system", "difference", "p")]
    signatures: list[str] = []
    for direction, report in reports.items():
        rows += [(direction, *_compared(one)) for one in report.comparison.values()]
        signatures += [f"{one.metric}|{one.signature}" for one in report.comparison.values()]
    if len(rows) == 1:
        return ""
    return "\n".join([_RESAMPLED, aligned(rows), *dict.fromkeys(signatures)])


def _signatures_by_direction(reports: Mapping[str, Report]) -> str:
    """The signatures, each once with the directions that have it: BLEU's tokenizer depends on the language."""
    found: dict[str, list[str]] = {}
    for direction, report in reports.items():
        for label, one in _columns(report).items():
            name = one.name if label == one.name else f"{label}: {one.name}"
            found.setdefault(f"{name}|{one.signature}", []).append(direction)
    alike = len(reports)
    return "\n".join(
        f"{signature}  ({'all' if len(some) == alike else ', '.join(some)})" for signature, some in found.items()
    )
