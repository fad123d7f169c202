"""German inflection: articles, adjective endings, nouns in their cases, finite verbs.

Cases are "nom", "acc" and "dat"; genders are "m", "f", "n" and, for every plural, "pl". This module knows
words; `german` puts them in order.
"""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.phrasebook.lexicon.entries import GermanNoun, Pronoun
from transformer_mt.phrasebook.meaning import PLURAL, Participant

_ONE_TO_TWELVE = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
NUMERALS = {**dict(enumerate(_ONE_TO_TWELVE, start=1)), 20: "zwanzig"}
_CASES = ("nom", "acc", "dat")


def _table(masculine: str, feminine: str, neuter: str, plural: str) -> dict[tuple[str, str], str]:
    """Endings by (gender, case), from one row of three cases for each gender; "-" is no ending."""
    rows = {"m": masculine, "f": feminine, "n": neuter, "pl": plural}
    return {
        (gender, case): ending.strip("-")
        for gender, row in rows.items()
        for case, ending in zip(_CASES, row.split(), strict=True)
    }


_DEFINITE = _table("der den dem", "die die der", "das das dem", "die die den")
_THIS = _table("er en em", "e e er", "es es em", "e e en")
_A = _table("- en em", "e e er", "- - em", "e e en")
_WEAK = _table("e en en", "e e en", "e e en", "en en en")
_MIXED = _table("er en en", "e e en", "es es en", "en en en")
_STRONG = _table("er en em", "e e er", "es es em", "e e en")
_POSSESSIVES = {"my": "mein", "our": "unser", "his": "sein", "her": "ihr"}

# finite verbs by the columns of `person`
HABEN = ("habe", "hat", "haben")
SEIN = ("bin", "ist", "sind")
WAR = ("war", "war", "waren")
HATTE = ("hatte", "hatte", "hatten")
WERDEN = ("werde", "wird", "werden")
MODALS = {
    "can": ("kann", "kann", "können"),
    "must": ("muss", "muss", "müssen"),
    "want": ("möchte", "möchte", "möchten"),
}


def person(subject: Participant) -> int:
    """The column of a finite verb: 0 for ich, 1 for er, 2 for wir, sie and Sie."""
    if subject.plural:
        return 2
    return {1: 0, 2: 2, 3: 1}[subject.person] if isinstance(subject, Pronoun) else 1


def determiner(name: str, gender: str, case: str, negative: bool = False) -> str:
    """The declined determiner of a phrase; "" for a bare plural."""
    if name == "bare":
        if gender == "pl" and not negative:
            return ""
        return ("kein" if negative else "ein") + _A[gender, case]
    if name == "this":
        return "dies" + _THIS[gender, case]
    if name in ("the", "that"):
        return _DEFINITE[gender, case]
    return _POSSESSIVES[name] + _A[gender, case]


def decline(noun: GermanNoun, case: str, plural: bool) -> str:
    """The noun alone: den Studenten, den Kindern."""
    if plural:
        add = case == "dat" and not noun.plural.endswith(("n", "s"))
        return noun.plural + ("n" if add else "")
    return noun.singular if case == "nom" else noun.oblique


@lru_cache(maxsize=1 << 15)
def noun_phrase(participant: Participant, case: str = "nom", negative: bool = False, feminine: bool = False) -> str:
    """A participant in a case: einen roten Apfel, meinem Bruder, zwei Tassen Kaffee, ihn; negative: keinen Apfel.

    feminine: take the word for a woman if the noun is a profession.
    """
    if isinstance(participant, Pronoun):
        return participant.de[_CASES.index(case)]
    noun, name, count, plural = participant.noun, participant.determiner, participant.count, participant.plural
    if noun.name:
        return noun.de.singular
    if noun.container and count != PLURAL:
        # the container is declined, its content is not: einer Tasse Kaffee
        measure = noun.container.de
        amount = NUMERALS[count] if plural else determiner("bare", measure.gender, case)
        return f"{amount} {decline(measure, case, plural)} {noun.de.singular}"
    german = noun.feminine if feminine and noun.feminine else noun.de
    gender = "pl" if plural else german.gender
    article = "" if name == "bare" and noun.mass and not negative else determiner(name, gender, case, negative)
    words = [article] if article else []
    if count > 1:
        words.append(NUMERALS[count])
    if participant.adjective:
        # strong if no article shows the case, weak after der and dieser, mixed after ein and mein
        endings = _STRONG if not article else _WEAK if name in ("the", "this", "that") else _MIXED
        words.append(participant.adjective.de_stem + endings[gender, case])
    words.append(decline(german, case, plural))
    if name == "that":
        words.append("dort")
    return " ".join(words)
