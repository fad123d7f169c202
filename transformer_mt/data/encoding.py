"""The third pass: build vocabularies from word counts, and join the ids of all shards to stores.

It does not read sentences again: for each shard and side, a table maps the number of a word to its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.data.parallel import Progress
from transformer_mt.data.store import SIDES, SOURCE, TARGET, StoreWriter
from transformer_mt.data.tokenising import SCRATCH, Tokenised, words_of
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
    folder: Path, written: Sequence[Tokenised], splits: Sequence[str], codecs: Mapping[str, Codec], progress: Progress
) -> None:
    """Join what workers have written for each shard to the stores of all splits; word numbers become ids."""
    scratch, total, done = folder / SCRATCH, sum(one.pairs for one in written), 0
    with ExitStack() as stack:
        stores = {split: stack.enter_context(StoreWriter(folder / split)) for split in splits}
        for one in written:
            words, _ = words_of(scratch, one)
            tables = [
                None
                if some is None
                else np.array([*range(len(MARKS)), *codecs[side].vocabulary.encode(some)], np.int32)
                for side, some in zip(SIDES, words, strict=True)
            ]
            with (scratch / f"{one.name}.ids").open("rb") as file:
                for split, pairs, sizes in one.stored:
                    sides = []
                    for size, table in zip(sizes, tables, strict=True):
                        lengths, ids = (np.frombuffer(file.read(4 * count), "<i4") for count in (pairs, size))
                        sides.append((lengths, ids if table is None else table[ids]))
                    stores[split].extend(*sides)
            done += one.pairs
            progress("writing ids", done, done / max(1, total))
