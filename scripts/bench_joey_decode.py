"""Measures the decoding of JoeyNMT 2.3.0. `bench_decode.py --joey PYTHON` runs it with a Python that has JoeyNMT.

    PYTHON scripts/bench_joey_decode.py < WORK

WORK is JSON: threads, repeat, vocabulary (its size), sizes (d_model, n_heads, d_ff, layers), weights (an .npz file, or
null for random weights), sources (lists of JoeyNMT's ids, with the end token), alpha, max_length, and min_length.
Batches are 32 sentences in the order given, each sorted by length, as in JoeyNMT's `translate` (larger batches are not
faster). Prints {beam: {"seconds": the best of repeat, "ids": [...]}} for beams 1 and 5.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

SENTENCES_A_BATCH = 32


def main() -> None:
    work = json.load(sys.stdin)
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(work["threads"])
    torch.manual_seed(0)
    vocabulary = vocabulary_of(work["vocabulary"])
    model = build_model(sizes(**work["sizes"]), vocabulary, vocabulary).eval()
    if work["weights"]:
        with np.load(work["weights"]) as weights:
            model.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
    length = {"max_output_length": work["max_length"], "min_output_length": work["min_length"]}
    sources = work["sources"]
    groups = [sources[start : start + SENTENCES_A_BATCH] for start in range(0, len(sources), SENTENCES_A_BATCH)]

    def translate(beam: int) -> dict[str, Any]:
        started, ids = time.perf_counter(), []
        for group in groups:
            batch = batch_of(group, vocabulary)
            back = batch.sort_by_src_length()
            found = search(model, batch, beam_size=beam, beam_alpha=work["alpha"], **length)[0]
            ids += [cut(found[place].tolist(), vocabulary.eos_index) for place in back]
        return {"seconds": time.perf_counter() - started, "ids": ids}

    best = {
        beam: min((translate(beam) for _ in range(work["repeat"])), key=lambda run: run["seconds"]) for beam in (1, 5)
    }
    print(json.dumps(best))


def cut(ids: list[int], end: int) -> list[int]:
    """The ids up to the end token, inclusive."""
    return ids[: ids.index(end) + 1] if end in ids else ids


def vocabulary_of(size: int) -> Vocabulary:
    marks = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    ids = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_id": None}
    return Vocabulary([f"w{index}" for index in range(4, size)], SimpleNamespace(**marks, **ids, lang_tags=[]))


def sizes(d_model: int, n_heads: int, d_ff: int, layers: int) -> dict[str, object]:
    stack = {
        "type": "transformer",
        "num_layers": layers,
        "num_heads": n_heads,
        "embeddings": {"embedding_dim": d_model, "scale": True},
        "hidden_size": d_model,
        "ff_size": d_ff,
        "dropout": 0.0,
        "layer_norm": "pre",
    }
    initial = {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"}
    return {**initial, "tied_embeddings": True, "tied_softmax": True, "encoder": dict(stack), "decoder": dict(stack)}


def batch_of(sources: list[list[int]], vocabulary: Vocabulary) -> Batch:
    width = max(map(len, sources))
    padded = [source + [vocabulary.pad_index] * (width - len(source)) for source in sources]
    return Batch(
        src=torch.tensor(padded),
        src_length=torch.tensor([len(source) for source in sources]),
        src_prompt_mask=None,
        trg=None,
        trg_prompt_mask=None,
        indices=torch.arange(len(sources)),
        device=torch.device("cpu"),
        pad_index=vocabulary.pad_index,
        eos_index=vocabulary.eos_index,
        is_train=False,
    )


if __name__ == "__main__":
    main()
