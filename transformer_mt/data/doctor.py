"""The data doctor: what `tmt prepare` found, as data (`report_of`) and as lines to read (`report_lines`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from transformer_mt.config.schema import Config
from transformer_mt.data.encoding import SOURCE, TARGET, Findings, Written, kinds_of_tokens
from transformer_mt.data.reading import WHOLE, Stream
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import Store
from transformer_mt.text.codec import Codec

Report = dict[str, Any]
LONGEST = 512  # lengths beyond are counted together in the histogram


def report_of(
    folder: Path,
    config: Config,
    streams: Sequence[Stream],
    selection: Selection,
    found: Findings,
    written: Mapping[str, Written],
    codecs: Mapping[str, Codec],
) -> Report:
    """All figures as plain data: pairs by split and rule, lengths, unknown words, vocabularies, leaks, outliers."""
    return {
        "name": config.name,
        "languages": {SOURCE: config.data.source, TARGET: config.data.target},
        "pairs": _funnel(streams, selection, found),
        "splits": {split: _split(folder, split, note, found) for split, note in written.items()},
        "vocabulary": {side: len(codec) for side, codec in codecs.items()},
        "words": {side: kinds_of_tokens(codec) for side, codec in codecs.items()},
        "shared_vocabulary": codecs[SOURCE] is codecs[TARGET],
        "lossless": {side: codec.segmenter.lossless for side, codec in codecs.items()},
        "max_length": config.data.max_length,
        "leaks": selection.leaks,
        "leaks_dropped": config.data.cleaning.leaks,
        "outliers": {kind: {"pairs": n, "places": found.places.get(kind, [])} for kind, n in found.outliers.items()},
    }


def _funnel(streams: Sequence[Stream], selection: Selection, found: Findings) -> dict[str, Any]:
    """For each split as it was read: pairs read, dropped by each rule, kept."""
    table: dict[str, Any] = {}
    for stream in streams:
        row = table.setdefault(stream.split, {"read": 0, "dropped": {}, "kept": 0})
        drops = {**stream.dropped, **selection.dropped(stream)}
        row["read"] += stream.read
        for rule, count in drops.items():
            row["dropped"][rule] = row["dropped"].get(rule, 0) + count
        row["kept"] += stream.read - sum(drops.values())
    trained = WHOLE if "train" not in table else "train"
    for rule, count in found.dropped.items():
        table[trained]["dropped"][rule] = count
        table[trained]["kept"] -= count
    return table


def _split(folder: Path, split: str, written: Written, found: Findings) -> dict[str, Any]:
    store = Store(folder / split)
    sides = {}
    for side, stored in ((SOURCE, store.source), (TARGET, store.target)):
        lengths = stored.lengths - 1  # without end marks
        tokens = int(lengths.sum())
        words = found.spaced[split, side]
        sides[side] = {
            "tokens": tokens,
            "mean": round(tokens / max(1, len(lengths)), 2),
            "percentile_95": int(np.percentile(lengths, 95)) if len(lengths) else 0,
            "longest": int(lengths.max()) if len(lengths) else 0,
            "tokens_per_word": round(tokens / max(1, words), 3),
            "unknown_rate": round(written.unknown[side] / max(1, tokens), 6),
            "histogram": np.bincount(np.minimum(lengths, LONGEST), minlength=1).tolist(),
        }
    return {"pairs": written.pairs, "cut": written.cut, **sides}


def report_lines(report: Report) -> list[str]:
    """The report for a reader: a table of pairs, a table of sentences, then what deserves a look."""
    languages = report["languages"]
    lines = [f"{report['name']}: {languages[SOURCE]} -> {languages[TARGET]}", ""]
    return [*lines, *_pairs_table(report["pairs"]), "", *_sentences_table(report), "", *_remarks(report)]


def _pairs_table(pairs: Mapping[str, Any]) -> list[str]:
    rules = sorted({rule for row in pairs.values() for rule in row["dropped"]})
    rows = [["pairs", *("to be split" if split == WHOLE else split for split in pairs)]]
    rows.append(["read", *(f"{row['read']:,}" for row in pairs.values())])
    for rule in rules:
        rows.append([f"- {rule}", *(f"{row['dropped'].get(rule, 0):,}" for row in pairs.values())])
    rows.append(["kept", *(f"{row['kept']:,}" for row in pairs.values())])
    return aligned(rows)


def _sentences_table(report: Report) -> list[str]:
    head = ["split", "pairs", "language", "tokens", "mean", "95 %", "longest", "tokens/word", "unknown"]
    rows = [head]
    for name, split in report["splits"].items():
        for side in (SOURCE, TARGET):
            figures = split[side]
            rows.append(
                [
                    name if side == SOURCE else "",
                    f"{split['pairs']:,}" if side == SOURCE else "",
                    report["languages"][side],
                    f"{figures['tokens']:,}",
                    f"{figures['mean']:.1f}",
                    str(figures["percentile_95"]),
                    str(figures["longest"]),
                    f"{figures['tokens_per_word']:.2f}",
                    f"{figures['unknown_rate']:.2%}",
                ]
            )
    return aligned(rows)


def _remarks(report: Report) -> Iterable[str]:
    sizes, languages = report["vocabulary"], report["languages"]
    if report["shared_vocabulary"]:
        yield f"vocabulary: {sizes[SOURCE]:,} tokens, shared by both sides"
    else:
        yield f"vocabularies: {sizes[SOURCE]:,} {languages[SOURCE]}, {sizes[TARGET]:,} {languages[TARGET]}"
    for side in (SOURCE, TARGET):
        if not report["lossless"][side]:
            yield f"the {languages[side]} tokenizer is not lossless: spaces or case are restored as well as can be"
    for name, split in report["splits"].items():
        if split["cut"]:
            yield f"{name}: {split['cut']:,} pairs hold a sentence that is cut at {report['max_length']} tokens"
    for name, leaks in report["leaks"].items():
        yield from _leaks(name, leaks, report["leaks_dropped"])
    for kind, outlier in report["outliers"].items():
        what = "have a side in a foreign script" if kind == "script" else "differ too much in length"
        yield f"{outlier['pairs']:,} training pairs {what}, such as {', '.join(outlier['places'][:3])}"


def _leaks(name: str, leaks: Mapping[str, int], rule: str) -> Iterable[str]:
    fate = {"pair": rule in ("pair", "source"), "source": rule == "source"}
    if leaks["pair"]:
        yield f"{leaks['pair']:,} training pairs also stand in {name}: {'dropped' if fate['pair'] else 'KEPT'}"
    only_source = leaks["source"] - leaks["pair"]
    if only_source > 0 and not fate["source"]:
        yield (f"{only_source:,} more share their source with {name}: kept (data.cleaning.leaks: source drops them)")
    elif only_source > 0:
        yield f"{only_source:,} more share their source with {name}: dropped"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with columns one below the other: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
