"""What the phrasebook knows about a word: its forms in Korean, English and German.

The tables of this folder are written with the functions below, in the notation of a dictionary. Entries are
compared by identity: two words are the same only if they are the same row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GermanNoun:
    """A noun's nominative, gender (m, f, n), plural, and the form of the other singular cases (den Studenten)."""

    singular: str
    gender: str
    plural: str
    oblique: str


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A thing, animal or person.

    classes:    what it is; verbs and adjectives choose their partners by these
    counter:    the Korean counter (개, 마리, 권); "" when the noun is not counted here
    container:  English and German measure of a mass noun (a cup of, eine Tasse)
    mass:       no article and no plural: water, music, Korean
    feminine:   the German word for a woman of this profession
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
    """A measure of something that cannot be counted: 잔, cup, Tasse."""

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
    """ko is the dictionary form, kind its conjugation class; de_stem takes the German endings (teuer, teur-)."""

    ko: str
    kind: str
    en: str
    de: str
    de_stem: str
    classes: frozenset[str]
    attributive: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """infinitive without its prefix; er: third person; participle with everything; prefix: what is split off."""

    infinitive: str
    ich: str
    er: str
    participle: str
    prefix: str
    sein: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb with its frame: who does what, to whom, where, with what.

    ko, kind:      dictionary form and conjugation class; ko_head stands before it (사진을 찍다)
    subjects:      classes of nouns that may be the subject
    objects:       classes of nouns that may be the object; empty: intransitive
    ko_marker:     particle of the object (를, 가, 에게)
    en_preposition, de_preposition, de_case: how English and German attach the object
    places:        tags of places where it happens; goal: the place is where it goes to
    place_marker:  Korean particle of the place (에서, 에)
    required:      slots that must be filled
    generic:       a bare object means the kind: I like apples
    opposite:      a verb of its own for the negation: 알다, 모르다
    together:      one can do it alone or with somebody
    times:         the times it goes with: days and hours, weeks and seasons, months and years
    main:          the first entry of its word in each language, so that a question may leave out the object
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
    """Where something happens: Korean noun, and whole phrases for "there" and "thither" in English and German."""

    ko: str
    en: str
    en_goal: str
    de: str
    de_goal: str
    tags: frozenset[str]
    noun: Noun | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """A fixed expression: a time, a frequency, a manner, a tool, a degree. tenses: where a time may stand."""

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
    """Read "lesen liest gelesen", "auf|stehen steht aufgestanden sein"; 'sein' at the end is the auxiliary."""
    infinitive, er, participle, *auxiliary = entry.split(" ")
    prefix, _, infinitive = infinitive.rpartition("|")
    participle, prefix = participle.replace("_", " "), prefix.replace("_", " ")
    return GermanVerb(infinitive, _ich(infinitive, er), er, participle, prefix, auxiliary == ["sein"])


def _ich(infinitive: str, er: str) -> str:
    if not er.endswith("t"):
        return er  # ich mag, er mag
    if infinitive.endswith("eln"):
        return infinitive[:-3] + "le"
    return infinitive.removesuffix("n") if infinitive.endswith("en") else infinitive[:-1] + "e"


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
    """cooking, dancing, and with a doubled consonant swimming."""
    if doubled:
        return base + base[-1] + "ing"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + "ing"
