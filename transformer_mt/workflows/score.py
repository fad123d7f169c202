"""Scores sentence pairs: how probable is each target as the translation of its source?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.decoding.choosing import WHOLE
from transformer_mt.decoding.choosing import Wanted as Wanted
from transformer_mt.decoding.forced import PairScore as PairScore
from transformer_mt.decoding.interpreter import Computing as Computing
from transformer_mt.errors import TmtError, number_of
from transformer_mt.evaluation.alignment import pharaoh as pharaoh
from transformer_mt.files.lines import check_exists, count_lines, path_of, read_lines
from transformer_mt.reporting.bars import bar
from transformer_mt.workflows.translate import open_translator, turned

DEFAULT = Computing()


@dataclass
class ScoreTotals:
    """Sums over all pairs. nats: -log p; tokens: of the targets, end tokens included."""

    pairs: int = 0
    tokens: int = 0
    nats: float = 0.0

    def add(self, one: PairScore) -> None:
        self.pairs += 1
        self.tokens += len(one.tokens)
        self.nats -= one.log_probability

    def __str__(self) -> str:
        if not self.pairs:
            return "both files are empty"
        loss = self.nats / self.tokens
        perplexity = f"{math.exp(loss):,.2f}" if loss < 700 else "infinite"
        counted = f"{number_of(self.pairs, 'pair')}, {self.tokens:,} tokens"
        return f"{counted}: {loss:.4f} nats per token, perplexity {perplexity}"


def score(
    source: str | Path,
    target: str | Path,
    models: str | Path | Sequence[str | Path] = (),
    *,
    align: bool = False,
    gain: bool = False,
    computing: Computing = DEFAULT,
    engine: str = "tmt",
    wanted: str | Wanted = WHOLE,
) -> Iterator[PairScore]:
    """The score of each sentence pair of two files, in order. They are read in chunks, so they may have any size.

    source, target: text files, plain or compressed; line n of one belongs to line n of the other
    models:         a run or model folder, or several for an ensemble; default: the run that finished last
    align:          whether scores have alignments of words
    gain:           whether scores say what the source adds, which finds wrong pairs best; takes about twice the time
    wanted:         the direction, for a model of several
    To score sentences instead of files, use `load(...).score(source, target)`.
    Raises TmtError, before a model is loaded, if a file cannot be read or if their numbers of lines differ.
    """
    files, known = (path_of(source), path_of(target)), 0
    for file in files:
        check_exists(file)
    if all(file.is_file() for file in files):  # a pipe can be read only once
        known, others = map(count_lines, files)
        if known != others:
            raise TmtError(
                f"{source} has {known:,} lines, {target} has {others:,}",
                remedy="Line n of one must belong to line n of the other. Look for a line break inside a sentence,"
                " or for a program that removed empty lines.",
            )
    translator, _ = open_translator(models, {}, computing, engine)
    sources, targets = ((text for _, text in read_lines(file, any_text=True)) for file in files)
    scores = turned(translator, wanted).score(sources, targets, align, gain)
    return iter(bar(iterable=scores, desc="scoring", total=known or None))
