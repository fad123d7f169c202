"""Draws meanings: which words and choices make a sentence somebody could say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from transformer_mt.data.corpora.phrasebook.actions import Actions
from transformer_mt.data.corpora.phrasebook.meaning import Meaning
from transformer_mt.data.corpora.phrasebook.states import States


class Sampler(Actions, States):
    """An endless stream of meanings; see `Phrases` for what it is made with."""

    def __init__(self, random: Random, polite_freely: bool) -> None:
        super().__init__(random, polite_freely)
        kinds: list[tuple[int, Callable[[], Meaning]]] = [
            (63, self._action),
            (16, self._quality),
            (6, self._identity),
            (7, self._existence),
            (4, self._location),
            (4, self._possession),
        ]
        self._kinds = tuple(draw for weight, draw in kinds for _ in range(weight))

    def draw(self) -> Meaning:
        """The next meaning."""
        return self._one(self._kinds)()
