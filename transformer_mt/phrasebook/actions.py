"""Draws sentences about actions. The verb is drawn first; it limits all other choices.

This module knows which choices make sense together (a negative sentence has no manner). It does not know how a
language says them.
"""

from __future__ import annotations

from typing import Any

from transformer_mt.phrasebook import pools
from transformer_mt.phrasebook.lexicon.adverbs import FREQUENCIES, NOW
from transformer_mt.phrasebook.lexicon.beings import WE, WHO, YOU, I
from transformer_mt.phrasebook.lexicon.entries import Pronoun, Verb
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase
from transformer_mt.phrasebook.phrases import Phrases, same


class Actions(Phrases):
    """Statements, questions and requests with a full verb."""

    def _action(self) -> Meaning:
        """A sentence with a full verb; 8 % are requests, 30 % questions."""
        verb = self._one(pools.SCHEDULE)
        mood = self._random.random()
        if mood < 0.08 and verb in pools.REQUESTED:
            negative = self._chance(0.15)
            slots = self._slots(verb, YOU, "", negative)
            time = self._one(pools.VERB_TIMES[verb]["future"]) if self._chance(0.2) else None
            courtesy = self._manners("", YOU, negative, announced=True)
            return Meaning("action", YOU, negative=negative, request=True, verb=verb, time=time, **slots, **courtesy)
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

    def _question(self, verb: Verb) -> str:
        """A kind of question that fits the verb and leaves enough words to understand it."""
        pool = ["yesno", "yesno", "yesno", "who", "when", "why"]
        nouns, personal = pools.OBJECTS[verb], verb in pools.PERSONAL
        if nouns and verb.main:
            pool += ["whom", "whom"] if personal else ["what", "what"]
        counted = not verb.generic and verb.ko not in pools.SINGLE and not personal
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
        """want, can, must, or "" for none; only I, we and you want something."""
        if not verb.modal or question in ("when", "why", "many") or not self._chance(0.2):
            return ""
        wishing = subject in (I, WE, YOU)
        if question:
            return self._one(("want", "can")) if wishing else "can"
        return self._one(("want", "want", "can", "must") if wishing else ("can", "must"))

    def _doer(self, verb: Verb, asked: bool) -> Participant:
        """The subject: a person, a relative, an animal or a thing, as the verb allows."""
        if "person" in verb.subjects and not ("pet" in verb.subjects and self._chance(0.3)):
            return self._person(asked)
        noun = self._one(pools.SUBJECTS[verb])
        if "kin" in noun.classes:
            return Phrase(noun, self._one(("my", "my", "our", "his", "her")))
        return Phrase(noun, self._one(("the", "this", "that", "my" if "pet" in noun.classes else "the")))

    def _slots(self, verb: Verb, subject: Participant, question: str, negative: bool) -> dict[str, Any]:
        """Place, object, recipient, company, tool and manner, by the names of their fields in `Meaning`."""
        slots: dict[str, Any] = {}
        if pools.PLACES[verb] and question != "where" and ("place" in verb.required or self._chance(0.35)):
            slots["place"] = self._one(pools.PLACES[verb])
        if pools.OBJECTS[verb] and question not in ("what", "whom"):
            slots.update(self._objects(verb, subject, question, negative, "place" in slots))
        if verb.recipient and ("recipient" in verb.required or self._chance(0.8)):
            slots["recipient"] = self._other(subject)
        target, asked = slots.get("object"), question == "companion"
        if verb.together and not negative and not asked and not isinstance(target, Pronoun):
            draw = self._random.random()
            if draw < 0.06 and not subject.plural:
                slots["alone"] = True
            elif draw < 0.2:
                companion = self._other(subject)
                if target is None or not same(target, companion):
                    slots["companion"] = companion
        free = len(slots) < 3 and not asked
        if pools.TOOLS[verb] and ("tool" in verb.required or (free and self._chance(0.3))):
            slots["tool"] = self._one(pools.TOOLS[verb])
        if pools.MANNERS[verb] and not negative and "tool" not in slots and self._chance(0.15):
            slots["manner"] = self._one(pools.MANNERS[verb])
        return slots

    def _objects(self, verb: Verb, subject: Participant, question: str, negative: bool, place: bool) -> dict[str, Any]:
        """The object, and sometimes a second noun that shares a class with it ("bread and milk")."""
        if verb in pools.PERSONAL:
            while True:
                other = self._other(subject, pronouns="pronoun" in verb.objects)
                if isinstance(other, Pronoun) or not other.noun.classes.isdisjoint(verb.objects):
                    return {"object": other}
        nouns = pools.OBJECTS[verb]
        noun = self._one(nouns)
        if question == "many":
            return {"object": Phrase(self._one([other for other in nouns if other.counter]), count=PLURAL)}
        first = self._thing(noun, verb, simple=negative, place=place)
        plain = Phrase(noun, count=PLURAL if noun.mass or first.kind else 1, kind=first.kind)
        if negative or first != plain or not self._chance(0.2):
            return {"object": first}
        partner = self._one([other for other in nouns if not other.classes.isdisjoint(noun.classes)])
        fits = partner is not noun and partner.mass == noun.mass and partner.classes.isdisjoint(pools.KNOWN)
        return {"object": first, "second": partner} if fits else {"object": first}

    def _when(
        self, verb: Verb, tense: str, modality: str, question: str, negative: bool, slots: dict[str, Any]
    ) -> dict[str, Any]:
        """Time or frequency, and whether the time comes first; empty if the sentence says neither."""
        times = pools.VERB_TIMES[verb]
        if tense == "progressive":
            return {"time": NOW}
        if question == "when":
            return {}
        if modality:
            return {"time": self._one(times["future"])} if self._chance(0.3) else {}
        if tense == "present":
            staying = not verb.modal or ("place" in verb.required and not verb.goal)
            if staying or negative or not self._chance(0.75):
                return {}
            if self._chance(0.4) and question in ("", "yesno") and not {"manner", "alone"} & slots.keys():
                return {"frequency": self._one(FREQUENCIES)}
            return {"time": self._one(times["present"]), "fronted": not question and self._chance(0.25)}
        # only a time shows the tense of "I read" and "I cut"
        if verb.en_past == verb.en or self._chance(0.6):
            return {"time": self._one(times[tense]), "fronted": not question and self._chance(0.3)}
        return {}
