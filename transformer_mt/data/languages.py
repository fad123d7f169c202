"""Whether a file has sentences of its languages: finds swapped columns, ids, and sentences of another language.

Of each file the first lines are checked, and later lines one in many: recognising a language takes as long as all the
cleaning of a pair. With `cleaning.language: drop`, every pair is checked.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from transformer_mt.corpora.base import Pair
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.errors import TmtError
from transformer_mt.text.language import is_long, is_number, other_language, same_language
from transformer_mt.text.script import foreign_script

FIRST_LINES, LATER_LINES = 500, 47  # each of the first lines, then one in 47: a prime, as data may be periodic
MOST = 0.5  # of the pairs checked; if more have the same fault, the file is refused
FEWEST_SWAPPED, FEWEST_NUMBERS = 3, 20
PLACES = 5  # of the first pairs of each kind of finding


def is_sampled(number: int) -> bool:
    """Whether this line of a file is checked, if not all are."""
    return number <= FIRST_LINES or number % LATER_LINES == 0


@dataclass
class FileLanguages:
    """What the check of one file has found.

    judged:  pairs with two sides that are long enough to recognise their language
    swapped: those with each language on the side of the other
    numbers: by side: cells that are a number or an id; number: the first of them
    wrong:   pairs with a sentence in another language
    others:  by side: sentences that are in another language, by its code
    places:  of the first pairs with such a sentence
    """

    checked: int = 0
    judged: int = 0
    swapped: int = 0
    number: str = ""
    numbers: Counter[str] = field(default_factory=Counter)
    others: dict[str, Counter[str]] = field(default_factory=lambda: {side: Counter() for side in SIDES})
    wrong: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, other: FileLanguages) -> None:
        self.checked += other.checked
        self.judged += other.judged
        self.number = self.number or other.number
        self.swapped += other.swapped
        self.wrong += other.wrong
        self.numbers.update(other.numbers)
        for side in SIDES:
            self.others[side].update(other.others[side])
        self.places = [*self.places, *other.places][:PLACES]


Languages = dict[str, FileLanguages]  # by file


@dataclass(frozen=True)
class LanguageCheck:
    """Checks pairs, and counts what it finds in `found`. source, target: the languages of the two sides."""

    source: str
    target: str
    all_pairs: bool
    found: Languages = field(default_factory=dict)

    def __call__(self, pair: Pair) -> bool:
        """Whether a side of the pair is in another language; False if this pair is not in the sample."""
        file, _, line = pair.place.rpartition(":")
        number = int(line) if line.isdecimal() else 0
        if not self.all_pairs and not is_sampled(number):
            return False
        found = self.found.setdefault(file, FileLanguages())
        found.checked += 1
        sides = (SOURCE, pair.source, self.source, self.target), (TARGET, pair.target, self.target, self.source)
        looks: list[str | None] = []
        for side, text, own, opposite in sides:
            code = other_language(text, own)
            looks.append(opposite if code is not None and same_language(code, opposite) else code)
            if is_number(text):
                found.numbers[side] += 1
                found.number = found.number or text.strip()
        by_script = all(foreign_script(text, own) for _, text, own, _ in sides)
        found.swapped += by_script or looks == [self.target, self.source]
        found.judged += by_script or all(is_long(text) for _, text, *_ in sides)
        if not any(looks):
            return False
        found.wrong += 1
        found.places = [*found.places, pair.place][:PLACES]
        for side, code in zip(SIDES, looks, strict=True):
            found.others[side].update([code] if code else ())
        return True


def merge(found: Languages, more: Languages) -> None:
    for file, one in more.items():
        found.setdefault(file, FileLanguages()).add(one)


def require_sentences(
    found: Languages, source: str, target: str, keys: str = "data.source and data.target", swapped: bool = False
) -> None:
    """Raises TmtError if a file has its languages swapped, or numbers or ids where sentences should be.

    keys: that name the languages; swapped: the source column of the file is the target
    """
    for file, one in found.items():
        if one.swapped >= FEWEST_SWAPPED and one.swapped > MOST * one.judged:
            raise TmtError(
                f"source and target are swapped: {one.swapped:,} of the {one.judged:,} pairs checked have"
                f" {target} as source and {source} as target",
                place=file,
                remedy="Swap source_column and target_column of this file (kind: text: source and target), or swap"
                f" {keys}. {_OFF}",
            )
        for side in SIDES:
            if one.numbers[side] >= FEWEST_NUMBERS and one.numbers[side] > MOST * one.checked:
                raise TmtError(
                    f"the {side} has numbers or ids instead of sentences: {one.numbers[side]:,} of the {one.checked:,}"
                    f" pairs checked, such as '{one.number}'",
                    place=file,
                    remedy=f"Check {_OTHER[side] if swapped else side}_column, which is counted from 0. {_OFF}",
                )


_OTHER = {SOURCE: TARGET, TARGET: SOURCE}
_OFF = "If the data is right, set data.cleaning.language: off."
