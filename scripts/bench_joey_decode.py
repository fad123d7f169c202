"""How fast JoeyNMT 2.3.0 decodes: run by the Python that has it installed, for `bench_decode.py --joey PYTHON`.

    PYTHON scripts/bench_joey_decode.py THREADS VOCABULARY SENTENCES SOURCE_TOKENS FORCED_LENGTH REPEAT

Random weights of size Tiny, random sentences, translations of exactly FORCED_LENGTH tokens, batches of 32 sentences
(larger ones are no faster there). Prints {"1": seconds, "5": seconds}: the best of REPEAT for each beam width.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

SENTENCES_A_BATCH = 32


def main() -> None:
    threads, size, sentences, source_tokens, forced, repeat = map(int, sys.argv[1:])
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    vocabulary = vocabulary_of(size)
    model = build_model(sizes(), vocabulary, vocabulary).eval()
    batches = [
        random_batch(min(SENTENCES_A_BATCH, sentences - start), source_tokens, vocabulary)
        for start in range(0, sentences, SENTENCES_A_BATCH)
    ]
    length = {"max_output_length": forced, "min_output_length": forced}

    def translate(beam: int) -> float:
        started = time.perf_counter()
        for batch in batches:
            search(model, batch, beam_size=beam, beam_alpha=0.6, **length)
        return time.perf_counter() - started

    print(json.dumps({beam: min(translate(beam) for _ in range(repeat)) for beam in (1, 5)}))


def vocabulary_of(size: int) -> Vocabulary:
    marks = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    ids = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_id": None}
    return Vocabulary([f"w{index}" for index in range(4, size)], SimpleNamespace(**marks, **ids, lang_tags=[]))


def sizes() -> dict[str, object]:
    stack = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 128, "scale": True},
        "hidden_size": 128,
        "ff_size": 256,
        "dropout": 0.0,
    }
    initial = {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"}
    return {**initial, "tied_embeddings": True, "tied_softmax": True, "encoder": dict(stack), "decoder": dict(stack)}


def random_batch(sentences: int, source_tokens: int, vocabulary: Vocabulary) -> Batch:
    words = torch.randint(4, len(vocabulary), (sentences, source_tokens))
    source = torch.cat([words, torch.full((sentences, 1), vocabulary.eos_index)], dim=1)
    return Batch(
        src=source,
        src_length=torch.full((sentences,), source.size(1)),
        src_prompt_mask=None,
        trg=None,
        trg_prompt_mask=None,
        indices=torch.arange(sentences),
        device=torch.device("cpu"),
        pad_index=vocabulary.pad_index,
        eos_index=vocabulary.eos_index,
        is_train=False,
    )


if __name__ == "__main__":
    main()
