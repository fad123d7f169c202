"""Which words fit which: the lexicon sorted into the slots of a sentence.

The tables are built once, on import, from the classes of the words. Every tuple keeps the order of the lexicon,
so that a seed gives the same sentences on every machine.
"""

from __future__ import annotations

from transformer_mt.phrasebook.lexicon import adjectives, adverbs, beings, motion, nouns, places, verbs
from transformer_mt.phrasebook.lexicon.entries import Adjective, Adverbial, Noun, Place, Verb

NOUNS: tuple[Noun, ...] = (
    *nouns.FOOD,
    *nouns.DRINKS,
    *nouns.PAPER,
    *nouns.CLOTHES,
    *nouns.THINGS,
    *nouns.IDEAS,
    *beings.PEOPLE,
    *beings.KIN,
    *beings.ANIMALS,
)
PLACE_NOUNS = tuple(place.noun for place in places.PLACES if place.noun)
VERBS: tuple[Verb, ...] = (*verbs.TRANSITIVE, *motion.INTRANSITIVE, *motion.MOTION)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# nouns that never take "a": abstract ones, and things that are known to the listener (the door)
ABSTRACT = _set("language science sport keys heard weather")
KNOWN = _set("opening switched room task tale")
# nouns that may take "my"
OWNED = _set("personal clothes headwear vehicle device pet bookish readable picture toy switched room furniture")
# verbs that make sense with a large number of things
BULK = _set("사다 보내다 읽다 그리다 보다 잡다 심다 받다 만들다 굽다 필요하다")
# verbs that take one thing at a time
SINGLE = _set("입다 운전하다 타다 사용하다 켜다 끄다 열다 닫다 청소하다 연습하다")
# verbs with an object that the subject does not have yet
GAINED = _set("빌리다 사다 고르다 받다 만들다 짓다 심다 필요하다")

SMALL_NUMBERS = (2, 2, 2, 3, 3, 3, 4, 4, 5)
ALL_NUMBERS = (2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 20)


def fitting(classes: tuple[str, ...] | frozenset[str], pool: tuple[Noun, ...]) -> tuple[Noun, ...]:
    """The nouns of a pool that belong to one of the classes; `classes` may also name a noun itself."""
    return tuple(noun for noun in pool if noun.ko in classes or not noun.classes.isdisjoint(classes))


OBJECTS: dict[Verb, tuple[Noun, ...]] = {verb: fitting(verb.objects, NOUNS) for verb in VERBS}
SUBJECTS: dict[Verb, tuple[Noun, ...]] = {verb: fitting(verb.subjects, NOUNS) for verb in VERBS}
PLACES: dict[Verb, tuple[Place, ...]] = {
    verb: tuple(place for place in places.PLACES if not place.tags.isdisjoint(verb.places)) for verb in VERBS
}
TOOLS: dict[Verb, tuple[Adverbial, ...]] = {
    verb: tuple(tool for tool in adverbs.TOOLS if not set(tool.tag.split()).isdisjoint(verb.tools)) for verb in VERBS
}
MANNERS: dict[Verb, tuple[Adverbial, ...]] = {
    verb: tuple(manner for manner in adverbs.MANNERS if manner.tag in verb.manners) for verb in VERBS
}
TIMES: dict[str, tuple[Adverbial, ...]] = {
    tense: tuple(time for time in adverbs.TIMES if tense in time.tenses) for tense in ("past", "present", "future")
}
VERB_TIMES: dict[Verb, dict[str, tuple[Adverbial, ...]]] = {
    verb: {tense: tuple(time for time in pool if time.tag in verb.times) for tense, pool in TIMES.items()}
    for verb in VERBS
}
ADJECTIVES: dict[Noun, tuple[Adjective, ...]] = {
    noun: tuple(
        adjective
        for adjective in adjectives.ADJECTIVES
        if noun.ko in adjective.classes or not noun.classes.isdisjoint(adjective.classes)
    )
    for noun in (*NOUNS, *PLACE_NOUNS, *beings.NAMES)
}
ATTRIBUTES: dict[Noun, tuple[Adjective, ...]] = {
    noun: tuple(adjective for adjective in fitted if adjective.attributive) for noun, fitted in ADJECTIVES.items()
}
STATES = tuple(adjective for adjective in adjectives.ADJECTIVES if "pronoun" in adjective.classes)
SPOT_THINGS: dict[Adverbial, tuple[Noun, ...]] = {
    spot: tuple(
        noun
        for noun in fitting(_set(" ".join(places.SPOT_CONTENTS[tag] for tag in spot.tag.split())), NOUNS)
        if noun.ko != spot.ko.split()[0]  # no table on the table
    )
    for spot in places.SPOTS
}
QUALIFIED = tuple(noun for noun in (*NOUNS, *PLACE_NOUNS) if ADJECTIVES[noun])
POSSESSIONS = tuple(
    noun for noun in fitting(_set("vehicle pet personal device sibling close bookish"), NOUNS) if noun.counter
)
SHOWN = fitting(_set("fruit drink bookish picture clothes personal stationery plant toy device small"), NOUNS)
SCHEDULE = tuple(verb for verb in VERBS for _ in range(verb.weight))
# verbs with a person as the object
PERSONAL = frozenset(verb for verb in VERBS if not _set("person kin close name").isdisjoint(verb.objects))
# verbs for requests: actions of people, not states such as living in a city
REQUESTED = frozenset(
    verb
    for verb in VERBS
    if verb.modal and "person" in verb.subjects and (not verb.required or verb.goal or verb.recipient)
)
