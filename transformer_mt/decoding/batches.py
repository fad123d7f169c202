"""Any number of sentences, as ids, through the configured search: sorted by length, batched by tokens, in order again.

Knows models, ids and `DecodingConfig`; never text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.beam import BeamOptions, Coverage, beam_search
from transformer_mt.decoding.ensemble import EnsembleCache, ensemble_step
from transformer_mt.decoding.greedy import greedy_search
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Found, Request, allowed_lengths, batched, rows_of
from transformer_mt.decoding.sampling import sample
from transformer_mt.decoding.search import Limits, Step
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import PAD


def search(
    models: Sequence[Transformer],
    requests: Sequence[Request],
    decoding: DecodingConfig,
    seed: int = 0,
    scored: bool = True,
) -> list[list[Found]]:
    """What the configured search finds for each request, best first (samples: in the order drawn), in input order.

    models: one, or the members of an ensemble, in eval mode, on one device. scored: False spares greedy search
    the scores, which are then 0.
    """
    results: list[list[Found]] = [[] for _ in requests]
    with torch.inference_mode():
        for batch in batched([len(request.source) for request in requests], decoding, _max_positions(models)):
            found = _search_batch(models, [requests[index] for index in batch], decoding, seed, scored)
            for index, one in zip(batch, found, strict=True):
                results[index] = one
    return results


def translate_ids(
    model: Transformer, sources: Sequence[Sequence[int]], decoding: DecodingConfig, device: torch.device | str = "cpu"
) -> list[list[int]]:
    """The first that the search finds for each source (ids with the end mark), without its end mark: for validation.

    The model is put into eval mode meanwhile, and back.
    """
    assert next(model.parameters()).device.type == torch.device(device).type, "move the model to the device first"
    training = model.training
    model.eval()
    try:
        results = search([model], [Request(source) for source in sources], decoding, scored=decoding.beam > 1)
    finally:
        model.train(training)
    return [list(found[0].tokens) for found in results]


def pad(rows: Sequence[Sequence[int]], device: torch.device | str) -> Tensor:
    """Ids [B, T], filled up with PAD on the right."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=device)


def _search_batch(
    models: Sequence[Transformer], requests: Sequence[Request], decoding: DecodingConfig, seed: int, scored: bool
) -> list[list[Found]]:
    device = next(models[0].parameters()).device
    source_BS = pad([request.source for request in requests], device)
    limits = _limits(requests, decoding, _max_positions(models), device)
    step, cache = _start(models, source_BS, decoding.coverage_penalty > 0)
    alpha = decoding.length_penalty
    if not decoding.by_beam:
        seeds = [_seed(request.source, seed) for request in requests]
        temperature, top_k, top_p = decoding.temperature, decoding.top_k, decoding.top_p
        return sample(step, cache, limits, seeds, rows_of(decoding), temperature, top_k, top_p, alpha)
    if decoding.beam == 1 and not decoding.coverage_penalty:
        return [[found] for found in greedy_search(step, cache, limits, alpha, scored)]
    n_best = decoding.n_best if decoding.method == "beam" else decoding.beam
    options = BeamOptions(decoding.beam, n_best, alpha, decoding.coverage_penalty)
    if not options.beta:
        return beam_search(step, cache, limits, options)

    def attention(cache: Any) -> Tensor:
        """That of an ensemble's first member."""
        first = cache.members[0] if len(models) > 1 else cache
        return first.attention_NS[:, : source_BS.shape[1]]

    return beam_search(step, cache, limits, options, Coverage((source_BS == PAD).float(), attention))


def _max_positions(models: Sequence[Transformer]) -> int | None:
    """The shortest table of learned positions; None where no model has one."""
    return min((model.max_positions for model in models if model.max_positions is not None), default=None)


def last_cross_attention(model: Transformer) -> str:
    """Path of the module whose attention tells best which source token a target token comes from."""
    return f"decoder.layers.{len(model.decoder.layers) - 1}.cross_attention"


def _start(models: Sequence[Transformer], source_BS: Tensor, with_attention: bool) -> tuple[Step[Any], Any]:
    decoders = [IncrementalDecoder(model, with_attention) for model in models]
    if len(decoders) == 1:
        return decoders[0].step, decoders[0].start(source_BS)
    return ensemble_step([decoder.step for decoder in decoders]), EnsembleCache(
        tuple(decoder.start(source_BS) for decoder in decoders)
    )


def _limits(
    requests: Sequence[Request], decoding: DecodingConfig, max_positions: int | None, device: torch.device
) -> Limits:
    shortest, longest = zip(*(allowed_lengths(request, decoding, max_positions) for request in requests), strict=True)
    prefixes = [request.prefix for request in requests]
    return Limits.of(shortest, longest, prefixes, decoding.no_repeat_ngram, device)


def _seed(source: Sequence[int], seed: int) -> int:
    """A sentence's own seed: what is drawn for it depends on nothing around it."""
    digest = hashlib.blake2b(repr((seed, list(source))).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
