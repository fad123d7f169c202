"""Compares two engines: how many translations are equal, and how fast each engine is."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_mt.decoding.interpreter import Interpreter

ENOUGH = 0.99  # share of equal translations; another order of float32 sums can change a near tie
ROUNDING = 1e-3  # by so much the log-probabilities of a token may differ in float32, in nats
_WARM_UP = 8  # sentences that are not timed


@dataclass(frozen=True)
class Agreement:
    """Translations by both engines, line by line, and the seconds that each needed for all lines."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    our_seconds: float
    their_seconds: float

    @property
    def share(self) -> float:
        """Share of lines with equal translations, 0 to 1."""
        return sum(one == other for one, other in zip(self.ours, self.theirs, strict=True)) / len(self.ours)


def compare(ours: Interpreter, theirs: Interpreter, lines: Sequence[str]) -> Agreement:
    """Translate the same lines, at least one, with both engines."""
    translated, seconds = [], []
    for engine in (ours, theirs):
        list(engine.translate(lines[:_WARM_UP], split=False))
        start = time.perf_counter()
        translated.append(tuple(translation.text for translation in engine.translate(lines, split=False)))
        seconds.append(time.perf_counter() - start)
    return Agreement(translated[0], translated[1], seconds[0], seconds[1])


def score_difference(ours: Interpreter, theirs: Interpreter, lines: Sequence[str], targets: Sequence[str]) -> float:
    """The largest difference between the engines' log-probabilities of a token of these translations, in nats.

    Unlike a search, it does not grow if many translations are nearly equally likely.
    """
    scored = zip(*(engine.score(lines, targets) for engine in (ours, theirs)), strict=True)
    tokens = (pair for both in scored for pair in zip(*(one.token_scores for one in both), strict=True))
    return float(max(abs(one - other) for one, other in tokens))


def random_lines(
    tokens: Sequence[str], detokenize: Callable[[Sequence[str]], str], count: int, longest: int
) -> list[str]:
    """Sentences of random tokens, the same in each run: a comparison if there are no real sentences.

    longest: most tokens in a sentence
    """
    draw = random.Random(1)
    return [detokenize(draw.choices(tokens, k=draw.randint(1, longest))) for _ in range(count)]
