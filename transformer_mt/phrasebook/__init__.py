"""The embedded corpus: a grammar that generates sentence pairs in Korean, English and German.

`generate` streams sentence pairs in any direction between "ko", "en" and "de". The same arguments give the same
pairs on every machine. `sampling` draws a `Meaning`; `korean`, `english` and `german` turn it into a sentence; the
tables in `lexicon` contain the words.

Held-out combinations. Each meaning contains combinations of words: a verb with its object (and with both nouns of
"bread and milk"), a verb with its place, an adjective with its noun, a spot ("under the bed") with the thing that is
there. A stable hash reserves 5 % of all combinations for validation and 5 % for the test; the seed does not change
them. A training sentence contains no reserved combination. A test sentence contains at least one combination
reserved for the test and none reserved for validation; for a validation sentence it is the reverse. So each test
sentence has a combination that never occurs in training, while its words do occur there.

One translation for each source. In every direction a source sentence has exactly one translation. Korean has two
levels of politeness that English and German do not show. If Korean is the source, any sentence may have either
level. If Korean is the target, a sentence is formal exactly when it opens with a courtesy (Excuse me, I am sorry but,
Ladies and gentlemen).

All pairs of one stream have distinct sources. The record of the sources needs 16 MiB for any number of pairs. It
stores one bit for each hash value, so it skips a few new sentences that share a hash value with an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from zlib import crc32

from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import english, german, korean
from transformer_mt.phrasebook.alignment import AlignedPair, links, marked
from transformer_mt.phrasebook.holdout import split_of
from transformer_mt.phrasebook.meaning import Meaning
from transformer_mt.phrasebook.sampling import Sampler

LANGUAGES = ("ko", "en", "de")
SPLITS = ("train", "validation", "test")

_REALISERS: dict[str, Callable[[Meaning], str]] = {
    "ko": korean.realise,
    "en": english.realise,
    "de": german.realise,
}
_HASH_BITS = 27
_MAX_REPEATS = 200_000  # known sentences in a row before the grammar counts as exhausted


def generate(source: str, target: str, split: str, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Stream `count` pairs (source sentence, target sentence) of a split.

    source, target: two of LANGUAGES.  split: one of SPLITS.  The same seed gives the same pairs, and a larger
    count continues a smaller one.  Raises TmtError when the grammar has no more sentences for the split.
    """
    say = _REALISERS[target]
    return ((sentence, say(meaning)) for meaning, sentence in _draw(source, target, split, count, seed))


def generate_aligned(source: str, target: str, split: str, count: int, seed: int) -> Iterator[AlignedPair]:
    """As `generate`, each pair with its true word alignment."""
    say_source, say_target = _REALISERS[source], _REALISERS[target]
    for meaning, sentence in _draw(source, target, split, count, seed):
        same = marked(meaning)
        yield AlignedPair(sentence, say_target(meaning), *links(say_source(same), say_target(same)))


def _draw(source: str, target: str, split: str, count: int, seed: int) -> Iterator[tuple[Meaning, str]]:
    """The meanings that `generate` writes, each with its source sentence."""
    assert source != target, source
    assert split in SPLITS, split
    say_source, seen = _REALISERS[source], _Seen()
    sampler = Sampler(Random(f"{split} {seed}"), polite_freely=source == "ko")
    meanings = (meaning for meaning in iter(sampler.draw, None) if split_of(meaning) == split)  # endless
    for given in range(count):
        for meaning in islice(meanings, _MAX_REPEATS):
            sentence = say_source(meaning)
            if seen.add(sentence):
                break
        else:
            raise TmtError(
                f"the phrasebook has no more {split} sentences after {given:,}",
                remedy=f"Set `{split}: {given}` or less under `data.corpus`.",
            )
        yield meaning, sentence


class _Seen:
    """A set of strings in constant memory, with one bit for each hash value. It may report a new string as old."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << (_HASH_BITS - 3))

    def add(self, text: str) -> bool:
        """Add a string and return whether it was new."""
        place = crc32(text.encode()) >> (32 - _HASH_BITS)
        byte, bit = place >> 3, 1 << (place & 7)
        if self._bits[byte] & bit:
            return False
        self._bits[byte] |= bit
        return True
