"""Do two engines translate alike, and how fast is each? Knows only that both take lines and hand translations out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transformer_mt.decoding.interpreter import Interpreter

ENOUGH = 0.99  # of the sentences; float32 sums in another order, which now and then tips a near tie
_WARM_UP = 8  # sentences that are not timed


@dataclass(frozen=True)
class Agreement:
    """ours, theirs: the translations, line by line. Seconds are those of all lines."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    our_seconds: float
    their_seconds: float

    @property
    def share(self) -> float:
        """Of the lines, those with the same translation."""
        return sum(one == other for one, other in zip(self.ours, self.theirs, strict=True)) / len(self.ours)


def compare(ours: Interpreter, theirs: Interpreter, lines: Sequence[str]) -> Agreement:
    """Translate the same lines, at least one, with both."""
    translated, seconds = [], []
    for engine in (ours, theirs):
        list(engine.translate(lines[:_WARM_UP]))
        start = time.perf_counter()
        translated.append(tuple(translation.text for translation in engine.translate(lines)))
        seconds.append(time.perf_counter() - start)
    return Agreement(translated[0], translated[1], seconds[0], seconds[1])


def made_up_lines(
    tokens: Sequence[str], detokenize: Callable[[Sequence[str]], str], count: int, longest: int
) -> list[str]:
    """Sentences of random tokens, the same ones each time: where there are no real ones, they show at least that.

    longest: tokens of a sentence at most.
    """
    draw = random.Random(1)
    return [detokenize(draw.choices(tokens, k=draw.randint(1, longest))) for _ in range(count)]
