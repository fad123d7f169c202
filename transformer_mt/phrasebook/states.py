"""Draws sentences about states: qualities, identities, existence, location and possession."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transformer_mt.phrasebook import pools
from transformer_mt.phrasebook.lexicon.adjectives import DEGREES
from transformer_mt.phrasebook.lexicon.beings import PROFESSIONS, THAT, THIS, WHO, YOU
from transformer_mt.phrasebook.lexicon.places import SPOTS
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase
from transformer_mt.phrasebook.phrases import Phrases

_PASSING_TENSES = ("present", "present", "past", "future")
_LASTING_TENSES = ("present", "present", "present", "past")


class States(Phrases):
    """Sentences with be and have."""

    def _quality(self) -> Meaning:
        """A person, thing or animal with an adjective: the soup was very hot, why are you tired."""
        question = self._one(("",) * 7 + ("yesno", "yesno", "why", "who"))
        if question == "who" or self._chance(0.3):
            subject: Participant = WHO if question == "who" else self._person(bool(question))
        else:
            subject = self._subject(self._one(pools.QUALIFIED))
        noun = subject.noun if isinstance(subject, Phrase) else None
        adjective = self._one(pools.ADJECTIVES[noun] if noun else pools.STATES)
        passing = "passing" in adjective.classes or (noun is not None and "weather" in noun.classes)
        timeless = isinstance(subject, Phrase) and subject.noun.mass and subject.determiner == "bare" and not passing
        tense = "present" if timeless else self._one(_PASSING_TENSES if passing else _LASTING_TENSES)
        negative = question in ("", "why") and self._chance(0.2)
        when: dict[str, Any] = {}
        if passing and tense != "present" and self._chance(0.7):
            when = {"time": self._one(pools.TIMES[tense]), "fronted": not question and self._chance(0.3)}
        degree = None
        if not negative and not question and self._chance(0.4):
            degree = self._one(DEGREES if noun and "person" not in noun.classes else DEGREES[:2])
        courtesy = self._manners(question, subject, negative)
        when["fronted"] = bool(when.get("fronted")) and not courtesy["opener"]
        return Meaning(
            "quality", subject, tense, negative, question, adjective=adjective, degree=degree, **when, **courtesy
        )

    def _identity(self) -> Meaning:
        """A thing that the speaker points at, or a person with a profession: this is my book, she is a doctor."""
        question = self._one(("", "", "", "", "yesno", "who", "what"))
        if question == "what":
            subject: Participant = self._one((THIS, THAT))
            return Meaning("identity", subject, question="what", **self._manners("what", subject, False))
        negative = not question and self._chance(0.2)
        tense = "present"
        if question != "who" and self._chance(0.5):
            subject, described = self._one((THIS, THAT)), self._exhibit()
        else:
            subject = WHO if question == "who" else self._professional(bool(question))
            noun = self._one(PROFESSIONS)
            tense = self._one(("present", "present", "past"))
            several = subject.plural and subject is not YOU
            described = Phrase(noun, adjective=self._attribute(noun, 0.3), count=PLURAL if several else 1)
        courtesy = self._manners(question, subject, negative)
        return Meaning("identity", subject, tense, negative, question, object=described, **courtesy)

    def _existence(self) -> Meaning:
        """Things at a spot: there are two books on the desk."""
        spot = self._one(SPOTS)
        question = self._one(("", "", "", "", "yesno", "many", "what"))
        tense = self._one(("present", "present", "past"))
        negative = not question and self._chance(0.2)
        thing: Phrase | None = None
        if question != "what":
            thing = self._present(self._one(pools.SPOT_THINGS[spot]), question, negative)
            question = "yesno" if question == "many" and not thing.noun.counter else question
        time = self._one(pools.TIMES["past"]) if tense == "past" and self._chance(0.4) else None
        subject = thing or WHO
        courtesy = self._manners(question, WHO, negative)
        return Meaning("existence", subject, tense, negative, question, object=thing, spot=spot, time=time, **courtesy)

    def _location(self) -> Meaning:
        """The spot of a known thing: my book is on the desk, where is the cat."""
        spot = self._one(SPOTS)
        subject = self._subject(self._one(pools.SPOT_THINGS[spot]))
        if subject.determiner == "that":
            subject = replace(subject, determiner="the")
        question = self._one(("", "", "", "yesno", "where"))
        tense = self._one(("present", "present", "past"))
        negative = not question and self._chance(0.2)
        courtesy = self._manners(question, subject, negative)
        return Meaning(
            "location", subject, tense, negative, question, spot=None if question == "where" else spot, **courtesy
        )

    def _possession(self) -> Meaning:
        """A person with a thing, an animal or a relative: I have two brothers."""
        question = self._one(("", "", "", "", "yesno", "many"))
        subject = self._person(bool(question))
        noun = self._one(pools.POSSESSIONS)
        while isinstance(subject, Phrase) and not subject.noun.name and "person" not in subject.noun.classes:
            subject = self._person(bool(question))
        negative = not question and self._chance(0.2)
        tense = self._one(("present", "present", "present", "past"))
        counted = question == "many" or (not negative and self._chance(0.4))
        number = PLURAL if question == "many" else self._one(pools.SMALL_NUMBERS)
        alive = not noun.classes.isdisjoint(("kin", "person"))
        adjective = None if alive or question == "many" else self._attribute(noun, 0.25)
        thing = Phrase(noun, adjective=adjective, count=number if counted else 1)
        courtesy = self._manners(question, subject, negative)
        return Meaning("possession", subject, tense, negative, question, object=thing, **courtesy)
