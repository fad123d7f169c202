"""The report of `tmt prepare` as lines of text: pairs, sentences, and remarks, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_mt.reporting.table import Line, aligned

if TYPE_CHECKING:
    from transformer_mt.workflows.prepare import DataReport, PairCounts

SIDES = SOURCE, TARGET = "source", "target"
WHOLE = "all"  # the split of a corpus before it is divided
OUTLIERS = {  # by kind: what they are, and what was done with them
    "script": "without a letter of their language on one side: kept",
    "length ratio": "with very different lengths: dropped",
}
MANY_UNKNOWN = 0.02  # share of the tokens in validation
MANY_DROPPED = 0.1  # share of the pairs read
MANY_TOKENS = 3.0  # per word
LONGEST_ALLOWED = 4_096  # data.max_length accepts no more
SHOWN = 3  # examples of outliers


class Remark(NamedTuple):
    """Something unusual in the data, and what can be done about it."""

    text: str
    remedy: str = ""


def report_lines(report: DataReport) -> list[str]:
    """The report for a person: a table of pairs, a table of sentences, then remarks."""
    languages = report.languages
    lines = [f"{report.name}: {languages[SOURCE]} -> {languages[TARGET]}", ""]
    pairs, sentences = _pairs_table(report.pairs), _sentences_table(report)
    lines += [*aligned(pairs, "<" + ">" * len(report.pairs)), "", *aligned(sentences, "<<>>>>>>>"), ""]
    sizes = report.vocabulary
    if report.shared_vocabulary:
        lines.append(f"vocabulary: {sizes[SOURCE]:,} tokens for both languages")
    else:
        lines.append("vocabularies: " + ", ".join(f"{sizes[side]:,} tokens {languages[side]}" for side in SIDES))
    for number, (text, remedy) in enumerate(remarks(report)):
        lines += [""] if number == 0 else []
        lines += [f"- {text}", *([f"  {remedy}"] if remedy else [])]
    return lines


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
                    report.languages[side],
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


def remarks(report: DataReport) -> Iterator[Remark]:
    """What is unusual in the data, the most serious first."""
    for passed in report.passed:
        text = f"{passed.place}: {counted(passed.rows, 'row')} not read: {passed.reason}"
        yield Remark(text, _see(passed.first, passed.rows, passed.remedy))
    for split, leaks in report.leaks.items():
        yield from _leaks(split, leaks, report.leaks_dropped)
    for overlap in report.overlaps:
        yield from _overlap(overlap)
    yield from _drops(report.pairs)
    yield from _cuts(report)
    for kind, outlier in report.outliers.items():
        text = f"{counted(outlier.pairs, 'training pair')} {OUTLIERS[kind]}"
        yield Remark(text, _see(outlier.places, outlier.pairs))
    for side in SIDES:
        yield from _tokenizer(report, side)


def _see(places: Sequence[str], total: int, remedy: str = "") -> str:
    """The first places of a number of pairs, and what to do."""
    more = ", ..." if total > len(places[:SHOWN]) else ""
    return f"See {', '.join(places[:SHOWN])}{more}. {remedy}".rstrip(" .") + "." * bool(remedy) if places else remedy


def _leaks(split: str, leaks: Mapping[str, int], rule: str) -> Iterator[Remark]:
    if leaks["pair"]:
        outcome = "kept" if rule == "off" else "dropped"
        remedy = f"They raise the score on {split}; data.cleaning.leaks: pair drops them." if rule == "off" else ""
        yield Remark(f"{counted(leaks['pair'], 'training pair')} also in {split}: {outcome}", remedy)
    others = leaks["source"] - leaks["pair"]
    if others > 0:
        outcome = "dropped" if rule == "source" else "kept"
        remedy = "" if rule == "source" else "data.cleaning.leaks: source drops them too."
        what = counted(others, "training pair")
        yield Remark(f"{what} with a source of {split} and another translation: {outcome}", remedy)


def _overlap(overlap: Mapping[str, Any]) -> Iterator[Remark]:
    split, other = overlap["splits"]
    if overlap["source"]:
        same = f"{overlap['pair']:,} with the same translation: kept"
        yield Remark(
            f"{counted(overlap['source'], 'source sentence')} of {other} also in {split}, {same}",
            f"A model selected on {split} has an advantage there." if split == "validation" else "",
        )


def _drops(pairs: Mapping[str, PairCounts]) -> Iterator[Remark]:
    for split, row in pairs.items():
        for rule, count in row.dropped.items():
            if count > MANY_DROPPED * row.read:
                name = "the corpus" if split == WHOLE else split
                yield Remark(
                    f"'{rule}' drops {count / row.read:.0%} of {name}",
                    "If that is not intended, check the files, data.cleaning and data.max_length.",
                )


def _cuts(report: DataReport) -> Iterator[Remark]:
    for name, split in report.splits.items():
        if split.cut:
            longest = max(split.side(side).longest for side in SIDES)
            yield Remark(
                f"{counted(split.cut, 'pair')} of {name} cut at {report.max_length:,} tokens",
                f"data.max_length: {longest + 1} keeps all of them whole." if longest < LONGEST_ALLOWED else "",
            )


def _tokenizer(report: DataReport, side: str) -> Iterator[Remark]:
    language, figures = report.languages[side], report.splits["validation"].side(side)
    if figures.unknown_rate > MANY_UNKNOWN:
        words = "Lower min_frequency, or use kind: sentencepiece, which splits rare words."
        pieces = "byte_fallback: true spells them in bytes; character_coverage: 1.0 keeps every letter of training."
        yield Remark(
            f"{figures.unknown_rate:.1%} of the {language} tokens in validation are unknown",
            words if report.counts_words[side] else pieces,
        )
    if figures.tokens_per_word > MANY_TOKENS and not report.counts_words[side]:
        yield Remark(
            f"words of {language} take {figures.tokens_per_word:.1f} tokens on average",
            "A larger vocab_size makes sentences shorter, and training and translation faster.",
        )
    if side == TARGET and report.case[side] == "lower":
        yield Remark(
            "translations are in lower case",
            "With case: keep or case: true they have upper case again, as references usually do.",
        )
    elif side == TARGET and not report.lossless[side]:
        yield Remark(f"the {language} tokenizer loses spaces or case", "Translations restore them as far as possible.")


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
