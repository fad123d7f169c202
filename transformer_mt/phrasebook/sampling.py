"""Draws meanings: the words and grammatical choices of a sentence."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from transformer_mt.phrasebook.actions import Actions
from transformer_mt.phrasebook.meaning import Meaning
from transformer_mt.phrasebook.states import States


class Sampler(Actions, States):
    """Draws any number of meanings; see `Phrases` for the arguments."""

    def __init__(self, random: Random, polite_freely: bool) -> None:
        super().__init__(random, polite_freely)
        percent: dict[Callable[[], Meaning], int] = {
            self._action: 63,
            self._quality: 16,
            self._identity: 6,
            self._existence: 7,
            self._location: 4,
            self._possession: 4,
        }
        self._kinds = tuple(draw for draw, share in percent.items() for _ in range(share))

    def draw(self) -> Meaning:
        """The next meaning."""
        return self._one(self._kinds)()
