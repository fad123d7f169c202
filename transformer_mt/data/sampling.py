"""Random segmentations of the training pairs. Without torch, so that other processes which draw them start fast."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from random import Random

from transformer_mt.data.parallel import LostError, Workers, chunks
from transformer_mt.data.prepared import Prepared
from transformer_mt.errors import TmtError
from transformer_mt.text.codec import Codec, load_codecs, tokenizers_digest

DRAWN_TOGETHER = 32  # pairs that a worker segments before it sends them: some milliseconds of work
TURNS = 2  # of each worker for the pairs that are asked for at once
SampledPair = tuple[Sequence[int], Sequence[int]]  # ids of both sides, with end tokens
SeededText = tuple[str, str, Sequence[str], str]  # source, target, tags of the source, and what seeds the draw


class SegmentationSampler:
    """Draws segmentations of the training pairs of prepared data: each call draws again; the tags stay.

    together:  the number of pairs that it is best asked for at once
    processes: that draw; 1: this one does. Segmentations do not depend on their number
    say:       called with a message if one of them was lost. This process then draws all: only slower
    """

    def __init__(self, prepared: Prepared, processes: int = 1, say: Callable[[str], None] = print) -> None:
        self.workers, self._say = Workers(processes), say
        self.together = 1 if processes == 1 else TURNS * DRAWN_TOGETHER * self.workers.number
        self._sources, self._targets = prepared.training_text()
        self._tags = [run.tags for run in prepared.runs("train")]
        self._ends = list(accumulate(run.pairs for run in prepared.runs("train")))
        self._draw = _Draw(prepared.folder.absolute(), prepared.manifest.tokenizers, prepared.codecs())

    def __call__(self, pairs: Sequence[tuple[int, str]]) -> list[SampledPair]:
        """Of these pairs: numbers, each with what seeds its draw. No draw depends on another."""
        texts = [(self._sources[pair], self._targets[pair], self._tags_of(pair), seed) for pair, seed in pairs]
        try:
            return [*chain.from_iterable(self.workers.map(self._draw, chunks(texts, DRAWN_TOGETHER)))]
        except LostError:
            self.close()
            self.workers, self.together = Workers(1), 1
            self._say("a process that draws segmentations was killed; this one draws them now, more slowly")
            return self._draw(texts)

    def _tags_of(self, pair: int) -> Sequence[str]:
        return self._tags[bisect_right(self._ends, pair)]

    def close(self) -> None:
        """End its processes. The next call starts new ones."""
        self.workers.close()


class _Draw:
    """What a worker does. It loads the tokenizers itself: not all of them can be sent.

    folder: of the prepared data; digest: of its tokenizers
    """

    def __init__(self, folder: Path, digest: str, codecs: tuple[Codec, Codec] | None = None) -> None:
        self.folder, self.digest, self.codecs = folder, digest, codecs

    def __reduce__(self) -> tuple[type[_Draw], tuple[Path, str]]:
        return _Draw, (self.folder, self.digest)

    def __call__(self, texts: Sequence[SeededText]) -> list[SampledPair]:
        source_codec, target_codec = self.codecs = self.codecs or self._load()
        drawn: list[SampledPair] = []
        for source, target, tags, seed in texts:
            random = Random(seed)
            drawn.append((source_codec.sample(source, random, tags), target_codec.sample(target, random)))
        return drawn

    def _load(self) -> tuple[Codec, Codec]:
        if self.digest not in ("", tokenizers_digest(self.folder)):
            problem = "this data was prepared again while a training uses it, with other tokenizers"
            remedy = "Give one of the two configs another name, and repeat the command of the training."
            raise TmtError(problem, place=self.folder, remedy=remedy)
        return load_codecs(self.folder)
