"""How much a search decodes at once: enough for a GPU, not more than its memory has room for.

A step of a search starts 120 to 180 kernels at base size, which takes the host as long for one row as for thousands. A
GPU is busy only with thousands of rows; a CPU is as fast with few, which fit its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.request import MOST_SENTENCES
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import free_memory

GPU_ROWS, GPU_TOKENS = 16_384, 524_288  # rows are hypotheses; tokens are source tokens, with padding, times rows
SHARE = 0.8  # of the free memory; translations longer than expected need the rest
TARGET = 4  # cells for each source token: translations of twice the length, and moved cells exist twice
USUAL = 2  # the same for translations of the same length
LOGIT_BYTES = 40  # of a logit with all that sampling makes of it at once, for sorting
USUAL_LOGIT_BYTES = 11  # the same of a beam
SCORED_TOKENS, ALIGNED_TOKENS = 2048, 12_288  # of given translations; of the scored, all logits exist at once
GPU_SCORED_TOKENS, SCORED_LOGIT_BYTES = 32_768, 12  # the bytes of a logit with its logarithm, and a sum over models


class Budget(NamedTuple):
    """The limits of a batch, as `request.batched` takes them.

    sentences: the most sentences
    tokens:    the most source tokens, with padding, times the rows of a sentence
    at_once:   how many such batches there is memory for, if translations are about as long as their sources; 1 if the
               user has set the tokens
    """

    sentences: int
    tokens: int
    at_once: int = 1


def budget_for(models: Sequence[Transformer], decoding: DecodingConfig, rows: int) -> Budget:
    """The limits on the device of the models. rows: hypotheses of a sentence that are decoded at once."""
    device = models[0].generator.weight.device
    if device.type != "cuda":
        return Budget(MOST_SENTENCES, decoding.token_budget)
    return gpu_budget(models, decoding, rows, free_memory(device))


def budget_of_given(models: Sequence[Transformer], scored: bool, attentive: bool) -> Budget:
    """The same for given translations. scored, attentive: whether log-probabilities and attention are needed."""
    device = models[0].generator.weight.device
    if device.type != "cuda" or not scored:
        return Budget(MOST_SENTENCES, SCORED_TOKENS if scored else ALIGNED_TOKENS)
    logits = sum(len(model.generator.weight) for model in models)
    room = int(SHARE * free_memory(device) / (logits * SCORED_LOGIT_BYTES))
    tokens = max(SCORED_TOKENS, min(ALIGNED_TOKENS if attentive else GPU_SCORED_TOKENS, room))
    return Budget(tokens, tokens)


def gpu_budget(models: Sequence[Transformer], decoding: DecodingConfig, rows: int, free: int) -> Budget:
    """The limits with so many bytes of free memory; half of them for keys and values, half for logits.

    An estimate: if it is too high, the search splits the batch.
    """
    room, pairs, logits = SHARE * free / 2, 0, 0
    for model in models:
        sizes, weight = model.config, model.generator.weight
        pairs += 2 * sizes.decoder_layers * sizes.d_model * weight.itemsize  # a key and a value in each layer
        logits += len(weight)
    most, usual = (pairs * (1 / rows + cells) for cells in (TARGET, USUAL))  # rows share the memory of their sentence
    sentences = max(1, min(GPU_ROWS, int(room / (logits * LOGIT_BYTES))) // rows)
    tokens = max(1, decoding.batch_tokens or min(GPU_TOKENS, int(room / most)))
    of_logit = USUAL_LOGIT_BYTES if decoding.method == "beam" else LOGIT_BYTES
    used = sentences * rows * logits * of_logit + tokens * usual
    return Budget(sentences, tokens, at_once=2 if 2 * used <= free and decoding.batch_tokens is None else 1)
