"""Which words of a sentence and its translation mean the same: the truth for word alignments.

The grammar itself says it. `marked` puts an invisible letter before each word of a word's forms, another letter for
each part of the meaning (the verb, the noun of the object, its adjective, ...). The realisers then write the marked
meaning like any other: endings follow a word, so they do not see what comes before it. Words of two languages with the
same letter belong together.

Only words of the lexicon are marked. Pronouns, articles, numbers, auxiliaries and question words are not: annotators
disagree about them, and languages leave them out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeVar

from transformer_mt.phrasebook.lexicon.entries import Adjective, Adverbial, GermanNoun, Noun, Place, Verb
from transformer_mt.phrasebook.meaning import Meaning, Participant, Phrase

Link = tuple[int, int]  # positions of a source word and of a target word, from 0
Entry = TypeVar("Entry", Noun, Verb, Place, Adverbial, Adjective)

_ENTRIES = ("verb", "place", "tool", "manner", "time", "frequency", "adjective", "degree", "spot", "second")
_PARTICIPANTS = ("subject", "object", "recipient", "companion")
_PARTS = (*_ENTRIES, *(f"{who} {part}" for who in _PARTICIPANTS for part in ("noun", "adjective")))
_CONTENT, _FUNCTION = 0xE000, 0xE100  # marks of content words and of the articles and prepositions that go with them
_WORD, MARKS = re.compile(r"\S+"), re.compile("[\ue000-\ue1ff]")
_CONTAINERS = len(_PARTS)  # the container of part n has the mark n + _CONTAINERS
_ENGLISH = "a an the at in on to by with for of"
_GERMAN = "an in auf im am um ins ans zu zum zur nach mit der die das den dem einem einer"
_FUNCTION_WORDS = frozenset([*_ENGLISH.split(), *_GERMAN.split(), "씨"])


@dataclass(frozen=True)
class AlignedPair:
    """A sentence pair with its true word alignment. Words are separated by white space.

    sure:     links of content words, without doubt
    possible: these, and links inside expressions of several words (Och and Ney 2003, section 5.1)
    """

    source: str
    target: str
    sure: frozenset[Link]
    possible: frozenset[Link]


def links(source: str, target: str) -> tuple[frozenset[Link], frozenset[Link]]:
    """The sure and the possible links between two marked sentences.

    A content word is surely linked to each content word of a single-word expression (지난주에: last, week). Two
    expressions with the same number of content words are linked in their order, if they are fixed (세 시에: three
    o'clock). All words of an expression are possible links.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    ours, theirs = _places(source), _places(target)
    for part in ours.keys() & theirs.keys():
        (content, function), (other_content, other_function) = ours[part], theirs[part]
        possible |= set(product(content + function, other_content + other_function))
        if 1 in (len(content), len(other_content)):
            sure |= set(product(content, other_content))
        elif part != _PARTS.index("verb") and len(content) == len(other_content):
            sure |= set(zip(content, other_content, strict=True))
    return frozenset(sure), frozenset(possible)


def _places(sentence: str) -> dict[int, tuple[list[int], list[int]]]:
    """The positions of the content words and of the function words of each part of the meaning."""
    found: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for position, word in enumerate(sentence.split(" ")):
        for mark in set(map(ord, MARKS.findall(word))):
            found[mark & 0xFF][mark >= _FUNCTION].append(position)
    return found


def marked(meaning: Meaning) -> Meaning:
    """The same meaning with marked words."""
    changes: dict[str, object] = {}
    for name in _ENTRIES:
        entry = getattr(meaning, name)
        changes[name] = entry and _marked(entry, _PARTS.index(name))
    for name in _PARTICIPANTS:
        changes[name] = _marked_participant(getattr(meaning, name), name)
    return replace(meaning, **changes)  # type: ignore[arg-type]


def _marked_participant(participant: Participant | None, name: str) -> Participant | None:
    if not isinstance(participant, Phrase):
        return participant
    adjective = participant.adjective and _marked(participant.adjective, _PARTS.index(f"{name} adjective"))
    return replace(participant, noun=_marked(participant.noun, _PARTS.index(f"{name} noun")), adjective=adjective)


@cache  # so that equal words stay identical
def _marked(entry: Entry, part: int) -> Entry:
    """The entry with marked forms."""

    def mark(text: str, part: int = part) -> str:
        kinds = {word: _FUNCTION if word in _FUNCTION_WORDS else _CONTENT for word in text.split()}
        if part == _PARTS.index("spot") and len(kinds) > 1:  # the noun: 책상 위에, on the desk, auf dem Schreibtisch
            noun = text.split()[0 if text[0] >= "가" else -1]
            kinds = {word: _CONTENT if word == noun else _FUNCTION for word in kinds}
        if part == _PARTS.index("degree"):  # zu heiß: too hot
            kinds = dict.fromkeys(kinds, _CONTENT)
        return _WORD.sub(lambda word: chr(kinds[word[0]] + part) + word[0], text)

    def german(noun: GermanNoun, part: int = part) -> GermanNoun:
        return replace(
            noun,
            singular=mark(noun.singular, part),
            plural=mark(noun.plural, part),
            oblique=mark(noun.oblique, part),
        )

    def fields(*names: str) -> dict[str, Any]:
        return {name: mark(getattr(entry, name)) for name in names}

    if isinstance(entry, Noun):
        container, counter = entry.container, entry.counter
        if container is not None:
            one, counter = part + _CONTAINERS, mark(counter, part + _CONTAINERS)
            english = {"en": mark(container.en, one), "en_plural": mark(container.en_plural, one)}
            container = replace(container, **english, de=german(container.de, one))
        feminine = entry.feminine and german(entry.feminine)
        forms = fields("ko", "en", "en_plural")
        return replace(entry, **forms, de=german(entry.de), feminine=feminine, container=container, counter=counter)
    if isinstance(entry, Verb):
        forms = fields("ko", "ko_head", "en", "en_third", "en_past", "en_ing")
        names = ("infinitive", "ich", "er", "participle", "prefix")
        de = replace(entry.de, **{name: mark(getattr(entry.de, name)) for name in names})  # type: ignore[arg-type]
        return replace(entry, **forms, de=de, opposite=(mark(entry.opposite[0]), entry.opposite[1]))
    if isinstance(entry, Adjective):
        return replace(entry, **fields("ko", "en", "de", "de_stem"))
    if isinstance(entry, Place):
        return replace(entry, **fields("ko", "en", "en_goal", "de", "de_goal"))
    return replace(entry, **fields("ko", "en", "de"))
