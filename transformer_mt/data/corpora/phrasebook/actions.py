"""Draws sentences about what somebody does: the verb chooses everything else.

This module knows sense, not languages: that one drinks drinks, that a habit has no number of times.
"""

from __future__ import annotations

from typing import Any

from transformer_mt.data.corpora.phrasebook import pools
from transformer_mt.data.corpora.phrasebook.lexicon.adverbs import FREQUENCIES, NOW
from transformer_mt.data.corpora.phrasebook.lexicon.beings import WE, WHO, YOU, I
from transformer_mt.data.corpora.phrasebook.lexicon.entries import Pronoun, Verb
from transformer_mt.data.corpora.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase
from transformer_mt.data.corpora.phrasebook.phrases import Phrases, plain, same

_HABIT_SHARE, _TIME_SHARE = 0.75, 0.6


class Actions(Phrases):
    """Statements, questions and requests with a full verb."""

    def _action(self) -> Meaning:
        verb = self._one(pools.SCHEDULE)
        mood = self._random.random()
        if mood < 0.08 and _may_be_asked_for(verb):
            return self._request(verb)
        question = self._question(verb) if mood > 0.7 else ""
        subject = WHO if question == "who" else self._doer(verb, bool(question))
        modality = self._modality(verb, subject, question)
        tense = "present" if modality else self._one(verb.tenses)
        if tense == "progressive" and question in ("when", "why", "many"):
            tense = "past" if "past" in verb.tenses else "present"
        deniable = modality != "must" and question in ("", "why")
        negative = deniable and self._chance(0.4 if question == "why" else 0.2)
        slots = self._slots(verb, subject, question, negative)
        when = self._when(verb, tense, modality, question, negative, slots)
        announced = not negative and (tense == "future" or modality in ("can", "must"))
        courtesy = self._manners(question, subject, negative, announced)
        when["fronted"] = bool(when.get("fronted")) and not courtesy["opener"]
        return Meaning("action", subject, tense, negative, question, modality, verb=verb, **slots, **when, **courtesy)

    def _request(self, verb: Verb) -> Meaning:
        negative = self._chance(0.15)
        slots = self._slots(verb, YOU, "", negative)
        time = self._one(pools.VERB_TIMES[verb]["future"]) if self._chance(0.2) else None
        courtesy = self._manners("", YOU, negative, announced=True)
        return Meaning("action", YOU, negative=negative, request=True, verb=verb, time=time, **slots, **courtesy)

    def _question(self, verb: Verb) -> str:
        """A kind of question that leaves enough to be understood."""
        pool = ["yesno", "yesno", "yesno", "who", "when", "why"]
        nouns = pools.OBJECTS[verb]
        if nouns and verb.main:
            pool += ["whom", "whom"] if _takes_people(verb) else ["what", "what"]
        counted = not verb.generic and verb.ko not in pools.SINGLE and not _takes_people(verb)
        if counted and any(noun.counter for noun in nouns):
            pool += ["many"]
        if pools.PLACES[verb] and (nouns or verb.main):
            pool += ["where", "where"]
        if verb.together and "tool" not in verb.required:
            pool += ["companion"]
        question = self._one(pool)
        stative = verb.tenses == ("present",)
        return "yesno" if stative and question in ("when", "where", "companion") else question

    def _modality(self, verb: Verb, subject: Participant, question: str) -> str:
        if not verb.modal or question in ("when", "why", "many") or not self._chance(0.2):
            return ""
        wishing = subject in (I, WE, YOU)
        if question:
            return self._one(("want", "can")) if wishing else "can"
        return self._one(("want", "want", "can", "must") if wishing else ("can", "must"))

    def _slots(self, verb: Verb, subject: Participant, question: str, negative: bool) -> dict[str, Any]:
        """Object, recipient, company, place, tool and manner."""
        slots: dict[str, Any] = {}
        if pools.PLACES[verb] and question != "where" and ("place" in verb.required or self._chance(0.35)):
            slots["place"] = self._one(pools.PLACES[verb])
        if pools.OBJECTS[verb] and question not in ("what", "whom"):
            slots.update(self._objects(verb, subject, question, negative, "place" in slots))
        if verb.recipient and ("recipient" in verb.required or self._chance(0.8)):
            slots["recipient"] = self._other(subject)
        if verb.together and not negative:
            self._company(subject, question, slots)
        free = len(slots) < 3 and question != "companion"
        if pools.TOOLS[verb] and ("tool" in verb.required or (free and self._chance(0.3))):
            slots["tool"] = self._one(pools.TOOLS[verb])
        if pools.MANNERS[verb] and not negative and "tool" not in slots and self._chance(0.15):
            slots["manner"] = self._one(pools.MANNERS[verb])
        return slots

    def _doer(self, verb: Verb, asked: bool) -> Participant:
        if "person" in verb.subjects and not ("pet" in verb.subjects and self._chance(0.3)):
            return self._person(asked)
        noun = self._one(pools.SUBJECTS[verb])
        if "kin" in noun.classes:
            return Phrase(noun, self._one(("my", "my", "our", "his", "her")))
        return Phrase(noun, self._one(("the", "this", "that", "my" if "pet" in noun.classes else "the")))

    def _company(self, subject: Participant, question: str, slots: dict[str, Any]) -> None:
        target = slots.get("object")
        if question == "companion" or isinstance(target, Pronoun):
            return
        draw = self._random.random()
        if draw < 0.06 and not subject.plural:
            slots["alone"] = True
        elif draw < 0.2:
            companion = self._other(subject)
            if target is None or not same(target, companion):
                slots["companion"] = companion

    def _objects(self, verb: Verb, subject: Participant, question: str, negative: bool, place: bool) -> dict[str, Any]:
        nouns = pools.OBJECTS[verb]
        if _takes_people(verb):
            return {"object": self._patient(verb, subject)}
        noun = self._one(nouns)
        if question == "many":
            countable = tuple(other for other in nouns if other.counter)
            return {"object": Phrase(self._one(countable), count=PLURAL)}
        first = self._thing(noun, verb, simple=negative, place=place)
        if negative or first != plain(first) or not self._chance(0.2):
            return {"object": first}
        partner = self._one(tuple(other for other in nouns if not other.classes.isdisjoint(noun.classes)))
        if partner is noun or partner.mass != noun.mass or not partner.classes.isdisjoint(pools.KNOWN):
            return {"object": first}
        return {"object": first, "second": partner}

    def _patient(self, verb: Verb, subject: Participant) -> Participant:
        """A person as the object, of those the verb takes."""
        while True:
            other = self._other(subject, pronouns="pronoun" in verb.objects)
            if isinstance(other, Pronoun) or not other.noun.classes.isdisjoint(verb.objects):
                return other

    def _when(
        self, verb: Verb, tense: str, modality: str, question: str, negative: bool, slots: dict[str, Any]
    ) -> dict[str, Any]:
        """Time and frequency."""
        times = pools.VERB_TIMES[verb]
        if tense == "progressive":
            return {"time": NOW}
        if question == "when":
            return {}
        if modality:
            return {"time": self._one(times["future"])} if self._chance(0.3) else {}
        if tense == "present":
            return self._habit(verb, question, negative, slots)
        # "I read" and "I cut" tell their tense only by their time
        if verb.en_past == verb.en or self._chance(_TIME_SHARE):
            return {"time": self._one(times[tense]), "fronted": not question and self._chance(0.3)}
        return {}

    def _habit(self, verb: Verb, question: str, negative: bool, slots: dict[str, Any]) -> dict[str, Any]:
        staying = not verb.modal or ("place" in verb.required and not verb.goal)
        if staying or negative or not self._chance(_HABIT_SHARE):
            return {}
        if self._chance(0.4) and question in ("", "yesno") and not {"manner", "alone"} & slots.keys():
            return {"frequency": self._one(FREQUENCIES)}
        return {"time": self._one(pools.VERB_TIMES[verb]["present"]), "fronted": not question and self._chance(0.25)}


def _may_be_asked_for(verb: Verb) -> bool:
    """Whether one can ask somebody to do it: not to live in Seoul, not to be a rabbit."""
    return verb.modal and "person" in verb.subjects and (not verb.required or verb.goal or verb.recipient)


def _takes_people(verb: Verb) -> bool:
    return not {"person", "kin", "close", "name"}.isdisjoint(verb.objects)
