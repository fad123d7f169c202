"""The entries of the lexicon: words with their forms in Korean, English and German.

The functions below read the compact notation of the tables in this folder. Entries compare by identity: two words
are the same only if they are the same row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GermanNoun:
    """A noun: nominative, gender (m, f, n), plural, and the form of the other singular cases (den Studenten)."""

    singular: str
    gender: str
    plural: str
    oblique: str


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A thing, animal or person.

    classes:    groups that the noun belongs to; verbs and adjectives choose their nouns by these
    counter:    the Korean counter (개, 마리, 권); "" if the phrasebook never counts the noun
    container:  the measure of a mass noun (a cup of, eine Tasse)
    mass:       no article and no plural: water, music, Korean
    feminine:   the German word for a woman in this profession
    name:       the noun is the name of a person
    """

    ko: str
    en: str
    en_plural: str
    de: GermanNoun
    classes: frozenset[str]
    counter: str = ""
    container: Container | None = None
    mass: bool = False
    feminine: GermanNoun | None = None
    sex: str = ""
    name: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """A measure for a mass noun: 잔, cup, Tasse."""

    ko: str
    en: str
    en_plural: str
    de: GermanNoun


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    """A personal pronoun; person 1 to 3. German forms: nominative, accusative, dative."""

    ko: str
    ko_subject: str
    ko_formal: str
    en: str
    en_object: str
    de: tuple[str, str, str]
    person: int
    plural: bool
    sex: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective and the classes of nouns that it fits.

    ko, kind:     dictionary form and conjugation class
    de_stem:      the stem that takes the German endings (teuer, teur-)
    attributive:  it may come before its noun
    """

    ko: str
    kind: str
    en: str
    de: str
    de_stem: str
    classes: frozenset[str]
    attributive: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """The forms of a German verb.

    infinitive:  without the prefix
    ich, er:     first and third person, without the prefix
    participle:  with the prefix
    prefix:      the separable part (auf in aufstehen)
    sein:        the Perfekt takes sein, not haben
    """

    infinitive: str
    ich: str
    er: str
    participle: str
    prefix: str
    sein: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb and the parts that a sentence with it may have.

    ko, kind:      dictionary form and conjugation class; ko_head comes before it (사진을 찍다)
    subjects:      classes of nouns that may be the subject
    objects:       classes of nouns that may be the object; empty for an intransitive verb
    ko_marker:     particle of the object (를, 가, 에게)
    en_preposition, de_preposition, de_case: how English and German attach the object
    places:        tags of places where it happens; goal: the place is the destination
    place_marker:  Korean particle of the place (에서, 에)
    required:      slots that every sentence fills
    modal:         it goes with want, can and must
    generic:       a bare object means the whole kind: I like apples
    opposite:      a separate Korean verb for the negation: 알다, 모르다
    together:      people may do it alone or with somebody
    times:         tags of the times it goes with: day (days and hours), week (weeks, seasons), long (months, years)
    main:          the first entry of its word in each language; only this one allows questions without the object
    weight:        how often the verb is drawn
    """

    ko: str
    kind: str
    ko_head: str
    en: str
    en_third: str
    en_past: str
    en_ing: str
    de: GermanVerb
    subjects: tuple[str, ...] = ("person",)
    objects: tuple[str, ...] = ()
    ko_marker: str = "를"
    en_preposition: str = ""
    de_preposition: str = ""
    de_case: str = "acc"
    recipient: bool = False
    places: tuple[str, ...] = ()
    place_marker: str = "에서"
    goal: bool = False
    tools: tuple[str, ...] = ()
    manners: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    tenses: tuple[str, ...] = ("past", "present", "future", "progressive")
    modal: bool = True
    generic: bool = False
    opposite: tuple[str, str] = ("", "")
    main: bool = True
    together: bool = True
    times: tuple[str, ...] = ("day", "week", "long")
    weight: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A place: the Korean noun, and English and German phrases for the location and for the destination (goal)."""

    ko: str
    en: str
    en_goal: str
    de: str
    de_goal: str
    tags: frozenset[str]
    noun: Noun | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """A fixed expression: a time, frequency, manner, tool, degree or spot. tenses: the tenses that a time goes with."""

    ko: str
    en: str
    de: str
    tenses: tuple[str, ...] = ()
    tag: str = ""


def german_noun(entry: str) -> GermanNoun:
    """Read "der Apfel, Äpfel", "das Wasser" or "der Student, Studenten, Studenten" (the third is the oblique form)."""
    article_and_noun, *rest = entry.split(", ")
    article, singular = article_and_noun.split(" ", 1)
    plural = rest[0] if rest else ""
    oblique = rest[1] if len(rest) > 1 else singular
    return GermanNoun(singular, {"der": "m", "die": "f", "das": "n"}[article], plural, oblique)


def german_verb(entry: str) -> GermanVerb:
    """Read "lesen liest gelesen" or "auf|stehen steht aufgestanden sein"; sein at the end is the auxiliary.

    "|" ends a separable prefix; "_" is a space.
    """
    infinitive, er, participle, *auxiliary = entry.split(" ")
    prefix, _, infinitive = infinitive.rpartition("|")
    participle, prefix = participle.replace("_", " "), prefix.replace("_", " ")
    if not er.endswith("t"):
        ich = er  # ich mag, er mag
    elif infinitive.endswith("eln"):
        ich = infinitive[:-3] + "le"
    else:
        ich = infinitive.removesuffix("n").removesuffix("e") + "e"
    return GermanVerb(infinitive, ich, er, participle, prefix, auxiliary == ["sein"])


def english_s(word: str) -> str:
    """The regular -s of a plural or of the third person: boxes, cherries, goes, plays."""
    if word.endswith(("s", "x", "z", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def english_past(base: str) -> str:
    """The regular past: cooked, danced, studied."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def english_ing(base: str, doubled: bool = False) -> str:
    """The -ing form: cooking, dancing; swimming with a doubled consonant."""
    if doubled:
        return base + base[-1] + "ing"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + "ing"
