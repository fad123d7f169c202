"""German inflection: articles, adjective endings, nouns in their cases, finite verbs.

Cases are "nom", "acc" and "dat"; genders "m", "f", "n" and, for every plural, "pl". This module knows
words; their order is the business of `german`.
"""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.data.corpora.phrasebook.lexicon.entries import GermanNoun, GermanVerb, Pronoun
from transformer_mt.data.corpora.phrasebook.meaning import PLURAL, Participant, Phrase

NUMERALS = (
    "",
    "ein",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
)
_CASES = {"nom": 0, "acc": 1, "dat": 2}

# endings by gender, each as nominative, accusative, dative
_DEFINITE = {"m": "der den dem", "f": "die die der", "n": "das das dem", "pl": "die die den"}
_THIS = {"m": "er en em", "f": "e e er", "n": "es es em", "pl": "e e en"}
_A = {"m": "- en em", "f": "e e er", "n": "- - em", "pl": "e e en"}
_WEAK = {"m": "e en en", "f": "e e en", "n": "e e en", "pl": "en en en"}
_MIXED = {"m": "er en en", "f": "e e en", "n": "es es en", "pl": "en en en"}
_STRONG = {"m": "er en em", "f": "e e er", "n": "es es em", "pl": "e e en"}
_POSSESSIVES = {"my": "mein", "our": "unser", "his": "sein", "her": "ihr"}

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


def _ending(table: dict[str, str], gender: str, case: str) -> str:
    return table[gender].split()[_CASES[case]].strip("-")


def numeral(count: int) -> str:
    return "zwanzig" if count == 20 else NUMERALS[count]


def determiner(name: str, gender: str, case: str, negative: bool = False) -> str:
    """The declined determiner of a phrase; "" for a bare plural."""
    if name == "bare":
        if gender == "pl" and not negative:
            return ""
        return ("kein" if negative else "ein") + _ending(_A, gender, case)
    if name == "this":
        return "dies" + _ending(_THIS, gender, case)
    if name in ("the", "that"):
        return _ending(_DEFINITE, gender, case)
    return _POSSESSIVES[name] + _ending(_A, gender, case)


def adjective_ending(name: str, gender: str, case: str, article: bool) -> str:
    """Weak after der and dieser, mixed after ein and mein, strong where no article shows the case."""
    if not article:
        return _ending(_STRONG, gender, case)
    return _ending(_WEAK if name in ("the", "this", "that") else _MIXED, gender, case)


def decline(noun: GermanNoun, case: str, plural: bool) -> str:
    """The noun alone: den Studenten, den Kindern."""
    if plural:
        add = case == "dat" and not noun.plural.endswith(("n", "s"))
        return noun.plural + ("n" if add else "")
    return noun.singular if case == "nom" else noun.oblique


@lru_cache(maxsize=1 << 15)
def noun_phrase(participant: Participant, case: str = "nom", negative: bool = False, feminine: bool = False) -> str:
    """A participant in a case: einen roten Apfel, meinem Bruder, zwei Tassen Kaffee, ihn; negative: keinen Apfel.

    feminine: of a profession, the word for a woman.
    """
    if isinstance(participant, Pronoun):
        return participant.de[_CASES[case]]
    noun = participant.noun
    if noun.name:
        return noun.de.singular
    if noun.container and participant.count != PLURAL:
        return _measured(participant, case)
    german = noun.feminine if feminine and noun.feminine else noun.de
    plural = participant.plural
    gender = "pl" if plural else german.gender
    article = "" if _no_article(participant, negative) else determiner(participant.determiner, gender, case, negative)
    words = [article] if article else []
    if participant.count > 1:
        words.append(numeral(participant.count))
    if participant.adjective:
        words.append(
            participant.adjective.de_stem + adjective_ending(participant.determiner, gender, case, bool(article))
        )
    words.append(decline(german, case, plural))
    if participant.determiner == "that":
        words.append("dort")
    return " ".join(words)


def _no_article(phrase: Phrase, negative: bool) -> bool:
    return phrase.determiner == "bare" and not negative and (phrase.noun.mass or phrase.count != 1)


def _measured(phrase: Phrase, case: str) -> str:
    """eine Tasse Kaffee, zwei Tassen Kaffee: the container is declined, the content stands as it is."""
    container = phrase.noun.container
    assert container is not None
    plural = phrase.count > 1
    gender = "pl" if plural else container.de.gender
    amount = numeral(phrase.count) if plural else determiner("bare", gender, case)
    return f"{amount} {decline(container.de, case, plural)} {phrase.noun.de.singular}"


def person(subject: Participant) -> int:
    """Column of a conjugation: 0 ich, 1 er, 2 wir, sie and Sie."""
    if subject.plural:
        return 2
    return {1: 0, 2: 2, 3: 1}[subject.person] if isinstance(subject, Pronoun) else 1


def present(verb: GermanVerb, column: int) -> str:
    """The finite form, without the prefix that is split off."""
    return (verb.ich, verb.er, verb.infinitive)[column]
