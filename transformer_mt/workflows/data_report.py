"""The report of `prepare` as lines of text: pairs, sentences, examples, and remarks (`data_remarks`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from transformer_mt.corpora.base import WHOLE
from transformer_mt.data.doctor import DataReport, PairCounts
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.errors import visible
from transformer_mt.reporting.table import Line, aligned
from transformer_mt.reporting.terminal import LABEL_COLUMNS, wrapped
from transformer_mt.workflows.data_remarks import remarks as remarks


def report_lines(report: DataReport, columns: int | None = None) -> list[str]:
    """The report for a person: a table of pairs, a table of sentences, three pairs of each split, then remarks.

    columns: width of the terminal, into which the pairs are wrapped
    """
    languages = report.languages
    what = ", ".join(report.directions) or f"{languages[SOURCE]} -> {languages[TARGET]}"
    lines = [f"{report.name}: {what}", ""]
    pairs, sentences = _pairs_table(report.pairs), _sentences_table(report)
    lines += [*aligned(pairs, "<" + ">" * len(report.pairs)), "", *aligned(sentences, "<<>>>>>>>"), ""]
    if report.directions:
        lines += [*aligned(_directions_table(report), "<" + ">" * (1 + len(report.splits))), ""]
    if report.corpora:
        lines += [*aligned(_corpora_table(report), "<<>>>>"), ""]
    sizes = report.vocabulary
    if report.shared_vocabulary:
        of = "all" if report.directions else "both"
        lines.append(f"vocabulary: {sizes[SOURCE]:,} tokens for {of} languages")
    else:
        lines.append(
            "vocabularies: " + ", ".join(f"{sizes[side]:,} tokens {report.language_of(side)}" for side in SIDES)
        )
    lines += [f"tokenizers: {reused}" for reused in _reused(report)]
    for split, examples in report.examples.items():
        lines += ["", f"pairs of {split}:"]
        for number, pair in enumerate(examples):
            coded = zip(report.codes(split, number), pair, strict=True)
            sides = [f"  {code}: {visible(text)}" for code, text in coded]
            lines += [wrapped(line, columns, len("  de: ")) for line in sides] if columns else sides
    for number, remark in enumerate(remarks(report)):
        lines += [""] if number == 0 else []
        lines += [f"- {remark.text}", *(f"  {line}" for line in remark.lines)]
    return lines


def short_report(report: DataReport) -> Iterator[str]:
    """The report in a few labelled lines, for training that prepares its data itself."""
    indent = " " * LABEL_COLUMNS
    drops = Counter[str]()
    for row in report.pairs.values():
        drops.update(row.dropped)
    kept = ", ".join(f"{figures.pairs:,} {split}" for split, figures in report.splits.items())
    rules = ", ".join(f"{count:,} {rule}" for rule, count in drops.items())
    yield f"pairs      {kept}" + (f"; dropped: {rules}" if rules else "")
    for reused in _reused(report):
        yield f"tokenizers {reused}"
    for number, pair in enumerate(report.examples.get("train", ())):
        for code, text in zip(report.codes("train", number), pair, strict=True):
            yield f"{indent}{code}: {text}"
    for remark in remarks(report):
        yield f"note       {remark.text}"
        for line in remark.lines:
            yield f"{indent}{line}"


def _reused(report: DataReport) -> Iterator[str]:
    """Where the tokenizers come from, with `training.start_from`."""
    if (parent := report.parent) is None:
        return
    names = {SOURCE: ""} if report.shared_vocabulary else {side: f" {report.languages[side]}" for side in SIDES}
    added = " and ".join(f"{parent.added[side]:,}{name}" for side, name in names.items())
    more = f", with {added} new tokens of this corpus" if any(parent.added.values()) else ""
    yield f"those of {parent.name}{more}"


def _pairs_table(pairs: Mapping[str, PairCounts]) -> list[Line]:
    rows: list[Line] = [["pairs", *("whole corpus" if split == WHOLE else split for split in pairs)]]
    rows.append(["read", *(f"{row.read:,}" for row in pairs.values())])
    for verb in ("changed", "dropped"):
        for rule in sorted({rule for row in pairs.values() for rule in getattr(row, verb)}):
            rows.append([f"{verb}: {rule}", *(f"{getattr(row, verb).get(rule, 0):,}" for row in pairs.values())])
    rows.append(["kept", *(f"{row.kept:,}" for row in pairs.values())])
    return rows


def _sentences_table(report: DataReport) -> list[Line]:
    rows: list[Line] = [
        ["split", "language", "pairs", "tokens", "mean", "95 % within", "longest", "tokens/word", "unknown"]
    ]
    for name, split in report.splits.items():
        for side in SIDES:
            figures, first = split.side(side), side == SOURCE
            rows.append(
                [
                    name if first else "",
                    report.language_of(side),
                    f"{split.pairs:,}" if first else "",
                    f"{figures.tokens:,}",
                    f"{figures.mean:.1f}",
                    f"{figures.percentile_95:,}",
                    f"{figures.longest:,}",
                    f"{figures.tokens_per_word:.2f}",
                    f"{figures.unknown_rate:.2%}",
                ]
            )
    return rows


def _directions_table(report: DataReport) -> list[Line]:
    rows: list[Line] = [["direction", *report.splits, "seen in an epoch"]]
    for name, figures in report.directions.items():
        counts = (f"{figures.pairs[split]:,}" for split in report.splits)
        rows.append([name, *counts, f"{figures.seen:,}"])
    return rows


def _corpora_table(report: DataReport) -> list[Line]:
    rows: list[Line] = [["corpus", "", "read", "train", "weight", "share of an epoch"]]
    for one in report.corpora:
        figures = f"{one.read:,}", f"{one.train:,}", f"{one.weight:.2f}", f"{one.share:.1%}"
        rows.append([str(one.number), visible(one.name), *figures])
    return rows
