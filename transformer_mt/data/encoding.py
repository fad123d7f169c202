"""The third pass: build vocabularies from word counts, and join the ids of all shards to stores.

It does not read sentences again: for each shard and side, a table maps the number of a word to its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from transformer_mt.config.direction import TARGET_TAG
from transformer_mt.config.tokenizer import WordsConfig
from transformer_mt.data.parallel import Progress
from transformer_mt.data.passes import Origin
from transformer_mt.data.store import SIDES, SOURCE, TARGET, StoreWriter
from transformer_mt.data.tokenising import SCRATCH, Numbers, Tokenised, words_of
from transformer_mt.errors import TmtError
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import MARKS, Vocabulary


def build_codecs(
    segmenters: Mapping[str, Segmenter],
    words: Mapping[str, Counter[str]],
    shared: bool,
    known: Mapping[str, Sequence[str]] | None = None,
    tags: Sequence[str] = (),
) -> dict[str, Codec]:
    """Codecs by side; the vocabulary comes from a subword tokenizer or from counts. shared: count both sides as one.

    known: by side, a vocabulary whose words keep their ids; the config says how many words are added to it
    tags:  the last tokens of the source vocabulary
    Raises TmtError if a tag is a word of the vocabulary.
    """
    if shared:
        words = dict.fromkeys(SIDES, words[SOURCE] + words[TARGET])
    codecs: dict[str, Codec] = {}
    for side, segmenter in segmenters.items():
        inventory, settings = segmenter.tokenizer.inventory(), segmenter.config
        if side == TARGET and segmenter is segmenters[SOURCE]:
            codecs[side] = codecs[SOURCE]
        elif inventory is not None:
            codecs[side] = Codec(segmenter, _tagged(inventory, tags if side == SOURCE else ()))
        else:
            if not isinstance(settings, WordsConfig):
                name = type(segmenter.tokenizer).__name__
                raise TypeError(
                    f"{name} has no inventory, so its Options must be a WordsConfig, with a vocabulary size"
                )
            most = settings.max_size if known is None else None
            vocabulary = Vocabulary.count(words[side], settings.min_frequency, most)
            if known is not None:
                old = set(known[side])
                new = [word for word in vocabulary.tokens if word not in old]
                vocabulary = Vocabulary([*known[side], *new[: settings.extend]])
            codecs[side] = Codec(segmenter, _tagged(vocabulary.tokens, tags if side == SOURCE else ()))
    return codecs


def _tagged(tokens: Sequence[str], tags: Sequence[str]) -> Vocabulary:
    if word := next((tag for tag in tags if tag in tokens), None):
        is_free = not TARGET_TAG.fullmatch(word)  # a target language has only one tag
        in_corpus = "change this word in the corpus."
        remedy = f"Choose another tag, or {in_corpus}" if is_free else in_corpus.capitalize()
        raise TmtError(f"tag '{word}' is a word of the corpus", place="data.corpus", remedy=remedy)
    return Vocabulary(tokens, tags)


def write_ids(
    folder: Path,
    written: Sequence[Tokenised],
    splits: Sequence[str],
    codecs: Mapping[str, Codec],
    origins: Sequence[Origin],
    progress: Progress,
) -> None:
    """Join what workers have written for each shard to the stores of all splits; word numbers become ids.

    origins: of the pairs of each stream; their tags are put before the ids of the source
    """
    scratch, total, done = folder / SCRATCH, sum(one.pairs for one in written), 0
    with ExitStack() as files:
        stores = {split: StoreWriter(folder / split, files) for split in splits}
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
                    tags = codecs[SOURCE].vocabulary.tag_ids(origins[one.stream].tags_in(split))
                    sides = []
                    for size, table in zip(sizes, tables, strict=True):
                        lengths, ids = (np.frombuffer(file.read(4 * count), "<i4") for count in (pairs, size))
                        sides.append((lengths, ids if table is None else table[ids]))
                    source, target = sides
                    stores[split].extend(_after_tags(*source, tags) if tags else source, target)
            done += one.pairs
            progress("writing ids", done, done / max(1, total))


def _after_tags(lengths: Numbers, ids: Numbers, tags: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Lengths and ids of sentences, each with the tags before it."""
    starts = np.cumsum(lengths) - lengths
    tagged = np.insert(ids, np.repeat(starts, len(tags)), np.tile(np.array(tags, np.int32), len(starts)))
    return lengths + np.int32(len(tags)), tagged
