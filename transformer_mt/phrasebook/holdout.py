"""The combinations of words that training never sees.

A meaning contains combinations: a verb with each object, a verb with its place, an adjective with its noun
(before it or in the predicate), a spot with the thing that is there. A stable hash reserves 5 % of them for
validation and 5 % for the test. The seed of the corpus does not change this choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b

from transformer_mt.phrasebook.meaning import Meaning, Participant, Phrase

_SALT = "phrasebook 1"
_PERCENT = 5


@cache
def owner(kind: str, first: str, second: str) -> str:
    """The split that a combination is reserved for; "" if every split may contain it."""
    digest = blake2b(f"{_SALT}|{kind}|{first}|{second}".encode(), digest_size=4).digest()
    share = int.from_bytes(digest, "big") % 100
    return "validation" if share < _PERCENT else "test" if share < 2 * _PERCENT else ""


def combinations(meaning: Meaning) -> Iterator[tuple[str, str, str]]:
    """The combinations of words in a meaning, as (kind, word, word) in Korean dictionary forms."""
    verb = meaning.verb
    if verb is not None:
        if isinstance(meaning.object, Phrase):
            yield "object", verb.ko, meaning.object.noun.ko
        if meaning.second is not None:
            yield "object", verb.ko, meaning.second.ko
        if meaning.place is not None:
            yield "place", verb.ko, meaning.place.ko
    for participant in (meaning.subject, meaning.object):
        if isinstance(participant, Phrase) and participant.adjective is not None:
            yield "adjective", participant.adjective.ko, participant.noun.ko
    if meaning.adjective is not None and isinstance(meaning.subject, Phrase):
        yield "adjective", meaning.adjective.ko, meaning.subject.noun.ko
    if meaning.spot is not None:
        thing: Participant | None = meaning.object or meaning.subject
        if isinstance(thing, Phrase):
            yield "spot", meaning.spot.ko, thing.noun.ko


def split_of(meaning: Meaning) -> str:
    """The only split that may contain a meaning; "" if it has combinations reserved for validation and for the test."""
    split = "train"
    for combination in combinations(meaning):
        reserved = owner(*combination)
        if reserved:
            if split not in ("train", reserved):
                return ""
            split = reserved
    return split
