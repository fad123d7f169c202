"""The data doctor: what `tmt prepare` found, as plain data. `cli.prepare_tables` puts it into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import Passed
from transformer_mt.data.encoding import SideCounts, Written
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES
from transformer_mt.data.tokenising import SOURCE, TARGET, Findings
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import MARKS

Report = dict[str, Any]
LONGEST = 512  # sentences beyond are counted together in the histogram


def report_of(
    config: Config,
    selection: Selection,
    found: Findings,
    written: Mapping[str, Written],
    codecs: Mapping[str, Codec],
    passed: Iterable[Passed],
) -> Report:
    """All figures: pairs by split and rule, lengths, unknown words, vocabularies, leaks, outliers."""
    return {
        "name": config.name,
        "languages": {SOURCE: config.data.source, TARGET: config.data.target},
        "pairs": _funnel(selection),
        "passed": [one._asdict() for one in passed],
        "splits": {split: _split(split, note, found) for split, note in written.items()},
        "vocabulary": {side: len(codec) for side, codec in codecs.items()},
        "words": {side: len(codec) - len(MARKS) for side, codec in codecs.items()},
        "shared_vocabulary": config.has_shared_vocabulary,
        "counts_words": {side: codec.segmenter.tokenizer.inventory() is None for side, codec in codecs.items()},
        "case": {side: codec.segmenter.config.case for side, codec in codecs.items()},
        "lossless": {side: codec.segmenter.lossless for side, codec in codecs.items()},
        "max_length": config.data.max_length,
        "leaks": selection.leaks,
        "leaks_dropped": config.data.cleaning.leaks,
        "overlaps": selection.overlaps,
        "outliers": {kind: {"pairs": n, "places": found.places[kind]} for kind, n in found.outliers.items()},
    }


def _funnel(selection: Selection) -> dict[str, Any]:
    """For each split as it was read: pairs read, changed by each rule, dropped by each rule, kept."""
    table: dict[str, Any] = {}
    for stream in selection.streams:
        row = table.setdefault(stream.split, {"read": 0, "changed": Counter(), "dropped": Counter(), "kept": 0})
        drops = stream.dropped + Counter(selection.dropped(stream))
        row["read"] += stream.read
        row["changed"] += stream.changed
        row["dropped"] += drops
        row["kept"] += stream.read - sum(drops.values())
    return table


def _split(split: str, written: Written, found: Findings) -> dict[str, Any]:
    sides = {side: _side(written.sides[side], found.spaced[split, side]) for side in SIDES}
    return {"pairs": written.pairs, "cut": written.cut, **sides}


def _side(counts: SideCounts, words: int) -> dict[str, Any]:
    """Tokens before any cut, without end marks; words are what stands between spaces."""
    sentences = sum(counts.lengths.values())
    tokens = sum(length * count for length, count in counts.lengths.items())
    return {
        "tokens": tokens,
        "mean": round(tokens / max(1, sentences), 2),
        "percentile_95": _percentile(counts.lengths, 0.95),
        "longest": max(counts.lengths, default=0),
        "words": words,
        "tokens_per_word": round(tokens / max(1, words), 3),
        "unknown": counts.unknown,
        "unknown_rate": round(counts.unknown / max(1, tokens), 6),
        "histogram": _histogram(counts.lengths),
    }


def _percentile(lengths: Mapping[int, int], share: float) -> int:
    """The length that at least this share of the sentences does not exceed."""
    needed, seen = share * sum(lengths.values()), 0
    for length, count in sorted(lengths.items()):
        seen += count
        if seen >= needed:
            return length
    return 0


def _histogram(lengths: Mapping[int, int]) -> list[int]:
    """Sentences of n tokens at place n; the last place also has those beyond LONGEST."""
    bins = [0] * (min(LONGEST, max(lengths, default=0)) + 1)
    for length, count in lengths.items():
        bins[min(length, LONGEST)] += count
    return bins
