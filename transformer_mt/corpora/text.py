"""Parallel files: line n of one is the translation of line n of the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from transformer_mt.config.data import TextPair
from transformer_mt.corpora.base import FilesCorpus, Pair
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import path_of, read_lines


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """The pairs of two files. Raises TmtError, at the end of the shorter one, where their lengths differ."""
    sources, targets = read_lines(source), read_lines(target)
    for one, other in zip_longest(sources, targets):
        if one is None or other is None:
            longer, last = (targets, other) if one is None else (sources, one)
            raise _misaligned(source, target, one is None, last[0] - 1, last[0] + sum(1 for _ in longer))
        yield Pair(one[1], other[1], at(source, one[0]))


def _misaligned(source: Path, target: Path, target_is_longer: bool, few: int, many: int) -> TmtError:
    n_source, n_target = (few, many) if target_is_longer else (many, few)
    return TmtError(
        f"the files do not align: {source} has {n_source:,} lines and {target} has {n_target:,}",
        place=at(source if target_is_longer else target, few),
        remedy="Line n of one must be the translation of line n of the other. Count them with `wc -l`.",
    )


class TextCorpus(FilesCorpus):
    def _paths(self, part: TextPair) -> tuple[Path, ...]:
        return path_of(part.source), path_of(part.target)

    def _read(self, *files: Path) -> Iterator[Pair]:
        return read_parallel(*files)
