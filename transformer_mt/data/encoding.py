"""The third pass: build vocabularies from word counts, and replace the word numbers in the stores by ids.

It does not read sentences again: a table for each side maps each number to its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.data.parallel import Progress
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES, SOURCE, TARGET, replace_ids
from transformer_mt.data.tokenising import WordNumbers
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import MARKS, Vocabulary


def build_codecs(
    segmenters: Mapping[str, Segmenter],
    words: Mapping[str, Counter[str]],
    shared: bool,
    known: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Codec]:
    """Codecs by side; the vocabulary comes from a subword tokenizer or from counts. shared: count both sides as one.

    known: by side, a vocabulary whose words keep their ids; the config says how many words are added to it
    """
    if shared:
        words = dict.fromkeys(SIDES, words[SOURCE] + words[TARGET])
    codecs: dict[str, Codec] = {}
    for side, segmenter in segmenters.items():
        inventory, settings = segmenter.tokenizer.inventory(), segmenter.config
        if side == TARGET and segmenter is segmenters[SOURCE]:
            codecs[side] = codecs[SOURCE]
        elif inventory is not None:
            codecs[side] = Codec(segmenter, Vocabulary(inventory))
        else:
            assert isinstance(settings, WordsConfig)
            most = settings.max_size if known is None else None
            vocabulary = Vocabulary.count(words[side], settings.min_frequency, most)
            if known is not None:
                old = set(known[side])
                new = [word for word in vocabulary.tokens if word not in old]
                vocabulary = Vocabulary([*known[side], *new[: settings.extend]])
            codecs[side] = Codec(segmenter, vocabulary)
    return codecs


def write_ids(
    folder: Path,
    selection: Selection,
    numbers: Mapping[str, WordNumbers],
    codecs: Mapping[str, Codec],
    progress: Progress,
) -> None:
    """Replace word numbers by ids in the stores of all splits."""
    encoded = {side: codecs[side].vocabulary.encode(numbers[side]) for side in SIDES}
    ids = {side: np.array([*range(len(MARKS)), *words], np.int32) for side, words in encoded.items()}
    done = 0
    for split in selection.splits:
        for side in SIDES:
            replace_ids(folder / split, side, ids[side])
        done += selection.count(split)
        progress("writing ids", done)
