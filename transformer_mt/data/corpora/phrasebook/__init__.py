"""The embedded corpus: a grammar of our own that says the same things in Korean, English and German.

`generate` streams sentence pairs in any direction between "ko", "en" and "de". The same arguments give the
same pairs on every machine. What one says is drawn in `sampling` (a `Meaning`), and said by `korean`, `english` and
`german`; the words are the tables in `lexicon`.

What is held out. Each meaning contains combinations of words: a verb with its object (and both halves of "bread
and milk"), a verb with its place, an adjective with its noun, a spot ("under the bed") with what is there. A stable
hash reserves 5 % of all combinations for validation and 5 % for the test, for every seed alike. A training
sentence holds no reserved combination; a test sentence holds at least one that is reserved for the test and none that
is reserved for validation, and the other way round. So each test sentence asks for a combination that
never occurred in training, of words that did.

What a source determines. Korean determines its English and German translation, and these each other. Korean has
two levels of politeness that English and German do not show: with Korean as the source both occur anywhere; with
Korean as the target a sentence is formal exactly if it opens with a courtesy (Excuse me, I am sorry but,
Ladies and gentlemen).

All pairs of one stream have distinct sources, however many are drawn; the record of what was given takes
16 MiB and does not grow. It is a hash without chaining, so a few sentences that were never given count as given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from zlib import crc32

from transformer_mt.data.corpora.phrasebook import english, german, korean
from transformer_mt.data.corpora.phrasebook.holdout import split_of
from transformer_mt.data.corpora.phrasebook.meaning import Meaning
from transformer_mt.data.corpora.phrasebook.sampling import Sampler
from transformer_mt.errors import TmtError

LANGUAGES = ("ko", "en", "de")
SPLITS = ("train", "validation", "test")

_REALISERS: dict[str, Callable[[Meaning], str]] = {
    "ko": korean.realise,
    "en": english.realise,
    "de": german.realise,
}
_SEEN_BITS = 27
_PATIENCE = 200_000


def generate(source: str, target: str, split: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Stream `count` pairs (source sentence, target sentence) of a split.

    source, target: two of LANGUAGES.  split: one of SPLITS.  The same seed gives the same pairs, and a larger
    count continues a smaller one.  Raises TmtError when the grammar has no further sentence for the split.
    """
    assert source != target, source
    assert split in SPLITS, split
    say_source, say_target = _REALISERS[source], _REALISERS[target]
    seen = _Seen()
    given = 0
    meanings = _meanings(split, seed, polite_freely=source == "ko")
    while given < count:
        for _ in range(_PATIENCE):
            meaning = next(meanings)
            sentence = say_source(meaning)
            if seen.add(sentence):
                break
        else:
            raise TmtError(
                f"the phrasebook has no more {split} sentences after {given:,}",
                remedy=f"Ask for at most {given:,} with `{split}: {given}` under `corpus`.",
            )
        given += 1
        yield sentence, say_target(meaning)


def _meanings(split: str, seed: int, polite_freely: bool) -> Iterator[Meaning]:
    """Meanings that may stand in the split, without end."""
    sampler = Sampler(Random(f"{split} {seed}"), polite_freely)
    while True:
        meaning = sampler.draw()
        if split_of(meaning) == split:
            yield meaning


class _Seen:
    """A set of strings of fixed size: never forgets one, now and then believes it has seen a new one."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << (_SEEN_BITS - 3))

    def add(self, text: str) -> bool:
        """Whether the string is new; it is not afterwards."""
        place = crc32(text.encode()) >> (32 - _SEEN_BITS)
        byte, bit = place >> 3, 1 << (place & 7)
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        return True
