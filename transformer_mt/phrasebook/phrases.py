"""Draws the parts of a sentence: people, things, numbers, determiners and courtesy.

Every draw uses one random generator and tuples in a fixed order, so that a seed gives the same parts on every
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from transformer_mt.phrasebook import pools
from transformer_mt.phrasebook.lexicon.beings import HE, KIN, NAMES, PEOPLE, SHE, THEY, WE, YOU, I
from transformer_mt.phrasebook.lexicon.entries import Adjective, Noun, Pronoun, Verb
from transformer_mt.phrasebook.meaning import PLURAL, Participant, Phrase

T = TypeVar("T")

_SPEAKERS = (I, I, I, I, I, WE, WE, HE, HE, SHE, SHE, THEY)
_OBJECT_PRONOUNS = (I, HE, SHE, WE)
_GROWN = tuple(noun for noun in PEOPLE if noun.ko in ("남자", "여자"))


class Phrases:
    """A random generator and the parts of sentences that it draws.

    polite_freely: any sentence may be formal; otherwise only a sentence with an opener is, so that its English or
                   German translation determines the Korean sentence
    """

    def __init__(self, random: Random, polite_freely: bool) -> None:
        self._random, self._polite_freely = random, polite_freely

    def _one(self, pool: Sequence[T]) -> T:
        return pool[int(self._random.random() * len(pool))]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _manners(self, question: str, subject: Participant, negative: bool, announced: bool = False) -> dict[str, Any]:
        """The fields "opener" and "formal". announced: a plan or a request, as a speaker says it to an audience."""
        opener = ""
        ours = subject in (I, WE, YOU)
        if question:
            opener = "excuse" if self._chance(0.25) else ""
        elif announced and ours and self._chance(0.3):
            opener = "everyone"
        elif negative and ours and subject is not YOU and self._chance(0.5):
            opener = "sorry"
        formal = bool(opener) or (self._polite_freely and self._chance(0.45))
        return {"opener": opener, "formal": formal}

    def _person(self, asked: bool = False) -> Participant:
        """A person as the subject. asked: the sentence is a question, so "you" takes the place of other pronouns."""
        draw = self._random.random()
        if draw < 0.5:
            return YOU if asked else self._one(_SPEAKERS)
        if draw < 0.68:
            return Phrase(self._one(NAMES))
        return self._kin() if draw < 0.82 else self._someone()

    def _kin(self) -> Phrase:
        """A relative with the owner: my mother, her husband."""
        noun = self._one(KIN)
        owners = {"남편": ("my", "her"), "아내": ("my", "his")}.get(noun.ko, ("my", "my", "my", "our", "his", "her"))
        return Phrase(noun, self._one(owners))

    def _someone(self) -> Phrase:
        """A definite person: the doctor, these students, my friend."""
        noun = self._one(PEOPLE)
        close = "close" in noun.classes
        determiner = self._one(("my", "my", "our", "his", "her") if close else ("the", "the", "this", "that"))
        several = self._chance(0.15 if close else 0.2)
        return Phrase(noun, determiner, count=PLURAL if several else 1)

    def _other(self, subject: Participant, pronouns: bool = True) -> Participant:
        """A person other than the subject, for the object, the recipient or the company."""
        while True:
            draw = self._random.random()
            if draw < 0.25 and pronouns:
                other: Participant = self._one(_OBJECT_PRONOUNS)
            elif draw < 0.5:
                other = Phrase(self._one(NAMES))
            else:
                other = self._kin() if draw < 0.75 else self._someone()
            if not same(subject, other):
                return other

    def _thing(self, noun: Noun, verb: Verb, simple: bool, place: bool) -> Phrase:
        """A thing as the object: bread, two cups of coffee, the red apple, three books.

        simple: without a number; place: a place follows, so "that" is left out (in German it ends in "dort").
        """
        if verb.generic or (noun.mass and not noun.classes.isdisjoint(pools.ABSTRACT)):
            adjective = None if noun.mass else self._attribute(noun, 0.15)
            return Phrase(noun, adjective=adjective, count=PLURAL, kind=verb.generic)
        if noun.mass:
            if noun.container and not simple and self._chance(0.35):
                return Phrase(noun, count=self._one((1, 1, 2, 2, 3, 4)))
            determiner = self._one(("bare", "bare", "bare", "the", "this"))
            return Phrase(noun, determiner, self._attribute(noun, 0.25), count=PLURAL)
        countable = not simple and noun.counter and verb.ko not in pools.SINGLE
        if countable and self._chance(0.2):
            numbers = pools.ALL_NUMBERS if verb.ko in pools.BULK else pools.SMALL_NUMBERS
            return Phrase(noun, adjective=self._attribute(noun, 0.15), count=self._one(numbers))
        draw, count = self._random.random(), 1
        if draw < 0.5 and noun.classes.isdisjoint(pools.KNOWN):
            determiner = "bare"
        elif draw < 0.72 and verb.ko not in pools.GAINED and not noun.classes.isdisjoint(pools.OWNED):
            determiner = self._one(("my", "my", "our", "his", "her"))
        else:
            determiner = self._one(("the", "the", "this") if place else ("the", "this", "that"))
            if countable and determiner != "that":
                count = self._one((1, 1, 1, 1, 2, 3))
        return Phrase(noun, determiner, self._attribute(noun, 0.25), count)

    def _attribute(self, noun: Noun, probability: float) -> Adjective | None:
        """An adjective before the noun, or None."""
        fitting = pools.ATTRIBUTES[noun]
        return self._one(fitting) if fitting and self._chance(probability) else None

    def _subject(self, noun: Noun) -> Phrase:
        """A thing, animal or person as the subject of a sentence with be."""
        if noun.mass:
            bare = not noun.classes.isdisjoint(pools.ABSTRACT)
            return Phrase(noun, "bare" if bare else self._one(("the", "this", "that")), count=PLURAL)
        if "kin" in noun.classes:
            return self._kin() if noun.sex else Phrase(noun, "my")
        if "close" in noun.classes:
            return Phrase(noun, self._one(("my", "our", "his", "her")))
        owned = not noun.classes.isdisjoint(pools.OWNED)
        pool: tuple[str, ...] = ("my", "our", "his", "her", "the", "this", "that") if owned else ("the", "this", "that")
        living = not noun.classes.isdisjoint(("person", "animal"))
        return Phrase(noun, self._one(pool), count=PLURAL if living and self._chance(0.2) else 1)

    def _professional(self, asked: bool) -> Participant:
        """A person that a profession can describe. asked: see `_person`."""
        draw = self._random.random()
        if draw < 0.45:
            return YOU if asked else self._one(_SPEAKERS)
        if draw < 0.7:
            return Phrase(self._one(NAMES))
        return self._kin() if draw < 0.9 else Phrase(self._one(_GROWN), self._one(("the", "this", "that")))

    def _exhibit(self) -> Phrase:
        """A thing that the speaker points at: (this is) my book."""
        noun = self._one(pools.SHOWN)
        if noun.mass:
            return Phrase(noun, adjective=self._attribute(noun, 0.25), count=PLURAL)
        owned = not noun.classes.isdisjoint(pools.OWNED)
        determiner = self._one(("bare", "bare", "my", "our", "his", "her")) if owned else "bare"
        return Phrase(noun, determiner, self._attribute(noun, 0.3))

    def _present(self, noun: Noun, question: str, negative: bool) -> Phrase:
        """A thing that is there: a red apple, three books, bread."""
        adjective = self._attribute(noun, 0.2)
        if question == "many":
            return Phrase(noun, count=PLURAL if noun.counter or noun.mass else 1)
        if noun.mass:
            if noun.container and not negative and self._chance(0.4):
                return Phrase(noun, count=self._one((1, 2, 3)))
            return Phrase(noun, adjective=adjective, count=PLURAL)
        if noun.counter and not negative and self._chance(0.4):
            return Phrase(noun, adjective=adjective, count=self._one(pools.ALL_NUMBERS))
        return Phrase(noun, adjective=adjective)


def same(one: Participant, other: Participant) -> bool:
    """Whether two participants are, or may be, the same person."""
    if isinstance(one, Pronoun) and isinstance(other, Pronoun):
        return one is other or {one.person, other.person} == {1} or (one.person == other.person == 3)
    if isinstance(one, Phrase) and isinstance(other, Phrase):
        return one.noun is other.noun
    return False
