"""The meaning of a sentence, independent of any language.

A meaning consists of words of the lexicon and of grammatical choices. `korean`, `english` and `german` add word
order, endings and particles.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformer_mt.phrasebook.lexicon.entries import Adjective, Adverbial, Noun, Place, Pronoun, Verb

PLURAL = 0


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun with its determiner, adjective and number.

    determiner: bare ("a" in English, no word in Korean), the, this, that, my, our, his, her
    count:      1, a larger number, or PLURAL (students, 학생들); for a mass noun the number of its containers, or
                PLURAL if there is no container (water)
    kind:       the bare noun means the whole kind: (I like) apples
    """

    noun: Noun
    determiner: str = "bare"
    adjective: Adjective | None = None
    count: int = 1
    kind: bool = False

    @property
    def plural(self) -> bool:
        """Whether a verb with this subject takes the plural."""
        return self.count != 1 and not (self.noun.mass and self.count == PLURAL)

    @property
    def indefinite(self) -> bool:
        """Whether "no" can come before the noun: no apple, kein Apfel."""
        return self.determiner == "bare" and not self.noun.name


Participant = Phrase | Pronoun


@dataclass(frozen=True, slots=True)
class Meaning:
    """One sentence.

    kind:      action, quality (is red), identity (is a doctor), existence (there is), location (is on the desk),
               possession (I have)
    modality:  "", want, can, must
    question:  "", yesno, who, what, whom, companion, where, when, why, many
               what and whom ask for the object, who for the subject, many for the number of the object
    request:   Please ...
    formal:    the Korean ending (갑니다, not 가요); English and German do not show it
    opener:    "", excuse, sorry, everyone: a courtesy before the sentence
    fronted:   the time comes first
    second:    the second noun of an object such as "bread and milk"
    """

    kind: str
    subject: Participant
    tense: str = "present"
    negative: bool = False
    question: str = ""
    modality: str = ""
    request: bool = False
    formal: bool = False
    opener: str = ""
    verb: Verb | None = None
    object: Participant | None = None
    second: Noun | None = None
    recipient: Participant | None = None
    companion: Participant | None = None
    alone: bool = False
    place: Place | None = None
    tool: Adverbial | None = None
    manner: Adverbial | None = None
    time: Adverbial | None = None
    fronted: bool = False
    frequency: Adverbial | None = None
    adjective: Adjective | None = None
    degree: Adverbial | None = None
    spot: Adverbial | None = None

    @property
    def action(self) -> Verb:
        """The verb of a meaning of kind action."""
        assert self.verb is not None
        return self.verb
