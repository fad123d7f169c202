"""Compares two engines: how many translations are equal, what each engine says of them, and how fast it is."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from transformer_mt.decoding.interpreter import Interpreter
from transformer_mt.decoding.request import length_penalty

ENOUGH = 0.99  # share of equal translations; another order of float32 sums can change a near tie
ROUNDING = 1e-3  # by so much the log-probabilities of a token may differ in float32, in nats
# By so much the translations of one engine may be less likely, if many differ: standard errors, and nats for each.
CHANCE, MOST_LOSS = 2.5, 1.0
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


@dataclass(frozen=True)
class Scores:
    """What both engines say of the translations of both.

    differences: between their log-probabilities of each token, in nats
    losses:      of each line with two different translations: the score of ours minus that of theirs, by our engine
    """

    differences: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()

    def __add__(self, other: Scores) -> Scores:
        return Scores(self.differences + other.differences, self.losses + other.losses)

    @property
    def difference(self) -> float:
        """The largest between log-probabilities of a token; not a number if one is none."""
        return max(self.differences, key=lambda one: (math.isnan(one), one))

    @property
    def disadvantage(self) -> float:
        """By how many standard errors theirs are less likely. It is about 0 if near ties decided."""
        squares = sum(one * one for one in self.losses)
        return sum(self.losses) / math.sqrt(squares) if squares else 0.0

    @property
    def loss(self) -> float:
        """By how much each of theirs is less likely, in nats: of a few, the standard error says little."""
        return sum(self.losses) / max(len(self.losses), 1)


def scores(ours: Interpreter, theirs: Interpreter, lines: Sequence[str], found: Agreement) -> Scores:
    """What both engines say of the translations of these lines."""
    alpha = ours.decoding.length_penalty
    targets = [*found.ours, *found.theirs]
    own, other = (list(engine.score([*lines, *lines], targets)) for engine in (ours, theirs))
    pairs = (zip(one.token_scores, two.token_scores, strict=True) for one, two in zip(own, other, strict=True))
    penalised = [float(one.log_probability / length_penalty(len(one.tokens), alpha)) for one in own]
    both = zip(penalised[: len(lines)], penalised[len(lines) :], found.ours, found.theirs, strict=True)
    losses = tuple(one - two for one, two, text, other_text in both if text != other_text)
    return Scores(tuple(abs(one - two) for one, two in chain(*pairs)), losses)


def random_lines(
    tokens: Sequence[str], detokenize: Callable[[Sequence[str]], str], count: int, longest: int
) -> list[str]:
    """Sentences of random tokens, the same in each run: a comparison if there are no real sentences.

    longest: most tokens in a sentence
    """
    draw = random.Random(1)
    return [detokenize(draw.choices(tokens, k=draw.randint(1, longest))) for _ in range(count)]
