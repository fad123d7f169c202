"""Draws the parts of a sentence: somebody, something, how many, whose, and with what courtesy.

Every draw comes from one random generator over tuples in a fixed order, so that a seed means the same on every
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from transformer_mt.data.corpora.phrasebook import pools
from transformer_mt.data.corpora.phrasebook.lexicon.beings import HE, KIN, NAMES, PEOPLE, SHE, THEY, WE, YOU, I
from transformer_mt.data.corpora.phrasebook.lexicon.entries import Adjective, Noun, Pronoun, Verb
from transformer_mt.data.corpora.phrasebook.meaning import PLURAL, Participant, Phrase

T = TypeVar("T")

_SPEAKERS = (I, I, I, I, I, WE, WE, HE, HE, SHE, SHE, THEY)
_OBJECT_PRONOUNS = (I, HE, SHE, WE)
_GROWN = tuple(noun for noun in PEOPLE if noun.ko in ("남자", "여자"))


class Phrases:
    """Chance and the parts drawn with it.

    polite_freely: let any sentence be formal; otherwise only those that open with a courtesy, so that a
                   language without the two levels determines the Korean sentence
    """

    def __init__(self, random: Random, polite_freely: bool) -> None:
        self._random, self._polite_freely = random, polite_freely

    def _one(self, pool: Sequence[T]) -> T:
        return pool[int(self._random.random() * len(pool))]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _manners(self, question: str, subject: Participant, negative: bool, announced: bool = False) -> dict[str, Any]:
        """Opener and politeness. announced: a plan or a request, as one tells an audience."""
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
        """Somebody who does something."""
        draw = self._random.random()
        if draw < 0.5:
            return YOU if asked else self._one(_SPEAKERS)
        if draw < 0.68:
            return Phrase(self._one(NAMES))
        return self._kin() if draw < 0.82 else self._someone()

    def _kin(self) -> Phrase:
        noun = self._one(KIN)
        owners = {"남편": ("my", "her"), "아내": ("my", "his")}.get(noun.ko, ("my", "my", "my", "our", "his", "her"))
        return Phrase(noun, self._one(owners))

    def _someone(self) -> Phrase:
        """A definite person: the doctor, these students, my friend."""
        noun = self._one(PEOPLE)
        if "close" in noun.classes:
            return Phrase(noun, self._one(("my", "my", "our", "his", "her")), count=PLURAL if self._chance(0.15) else 1)
        return Phrase(noun, self._one(("the", "the", "this", "that")), count=PLURAL if self._chance(0.2) else 1)

    def _other(self, subject: Participant, pronouns: bool = True) -> Participant:
        """Somebody it is done to or with, other than the subject."""
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
        """A thing something is done to. simple: no number; place: a place follows, so not "that ... there"."""
        if verb.generic or (noun.mass and not noun.classes.isdisjoint(pools.ABSTRACT)):
            adjective = None if noun.mass else self._attribute(noun, 0.15)
            return Phrase(noun, adjective=adjective, count=PLURAL, kind=verb.generic)
        if noun.mass:
            return self._portion(noun, simple)
        if not simple and noun.counter and verb.ko not in pools.SINGLE and self._chance(0.2):
            numbers = pools.ALL_NUMBERS if verb.ko in pools.BULK else pools.SMALL_NUMBERS
            return Phrase(noun, adjective=self._attribute(noun, 0.15), count=self._one(numbers))
        determiner = self._determiner(noun, place, verb.ko not in pools.GAINED)
        count = 1
        if determiner in ("the", "this") and not simple and noun.counter and verb.ko not in pools.SINGLE:
            count = self._one((1, 1, 1, 1, 2, 3))
        return Phrase(noun, determiner, self._attribute(noun, 0.25), count)

    def _portion(self, noun: Noun, simple: bool) -> Phrase:
        """Bread, the cold milk, two cups of coffee."""
        if noun.container and not simple and self._chance(0.35):
            return Phrase(noun, count=self._one((1, 1, 2, 2, 3, 4)))
        determiner = self._one(("bare", "bare", "bare", "the", "this"))
        return Phrase(noun, determiner, self._attribute(noun, 0.25), count=PLURAL)

    def _determiner(self, noun: Noun, place: bool, owned: bool) -> str:
        known = not noun.classes.isdisjoint(pools.KNOWN)
        draw = self._random.random()
        if draw < 0.5 and not known:
            return "bare"
        if draw < 0.72 and owned and not noun.classes.isdisjoint(pools.OWNED):
            return self._one(("my", "my", "our", "his", "her"))
        return self._one(("the", "the", "this") if place else ("the", "this", "that"))

    def _attribute(self, noun: Noun, probability: float) -> Adjective | None:
        fitting = pools.ATTRIBUTES[noun]
        return self._one(fitting) if fitting and self._chance(probability) else None

    def _subject(self, noun: Noun) -> Phrase:
        """A thing, animal or person that is spoken about."""
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
        draw = self._random.random()
        if draw < 0.45:
            return YOU if asked else self._one(_SPEAKERS)
        if draw < 0.7:
            return Phrase(self._one(NAMES))
        return self._kin() if draw < 0.9 else Phrase(self._one(_GROWN), self._one(("the", "this", "that")))

    def _exhibit(self) -> Phrase:
        """What one points at."""
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
            counted = noun.container and not negative and self._chance(0.4)
            return (
                Phrase(noun, count=self._one((1, 2, 3))) if counted else Phrase(noun, adjective=adjective, count=PLURAL)
            )
        if noun.counter and not negative and self._chance(0.4):
            return Phrase(noun, adjective=adjective, count=self._one(pools.ALL_NUMBERS))
        return Phrase(noun, adjective=adjective)


def same(one: Participant, other: Participant) -> bool:
    """Whether two participants would be the same person."""
    if isinstance(one, Pronoun) and isinstance(other, Pronoun):
        return one is other or {one.person, other.person} == {1} or (one.person == other.person == 3)
    if isinstance(one, Phrase) and isinstance(other, Phrase):
        return one.noun is other.noun
    return False


def plain(phrase: Phrase) -> Phrase:
    """The same noun with nothing around it."""
    return Phrase(phrase.noun, count=PLURAL if phrase.noun.mass or phrase.kind else 1, kind=phrase.kind)
