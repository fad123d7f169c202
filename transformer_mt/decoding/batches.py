"""Any number of sentences, as ids, through the configured search: sorted by length, batched by tokens, in order again.

Knows models, ids and `DecodingConfig`; never text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.ensemble import EnsembleCache, ensemble_step
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched
from transformer_mt.decoding.searches.base import Search, Sentences, make_search
from transformer_mt.decoding.step import Limits, Step
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import PAD


def search(
    models: Sequence[Transformer],
    requests: Sequence[Request],
    decoding: DecodingConfig,
    seed: int = 0,
    scored: bool = True,
) -> list[list[SearchResult]]:
    """What the configured search finds for each request, best first (samples: in the order drawn), in input order.

    models: one, or the members of an ensemble, in eval mode, on one device. scored: False spares greedy search
    the scores, which are then 0.
    """
    results: list[list[SearchResult]] = [[] for _ in requests]
    way, lengths = make_search(decoding), [len(request.source) for request in requests]
    with torch.inference_mode():
        for batch in batched(lengths, way.rows, decoding.batch_tokens, _max_positions(models)):
            found = _search_batch(models, [requests[index] for index in batch], way, seed, scored)
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
    models: Sequence[Transformer], requests: Sequence[Request], way: Search, seed: int, scored: bool
) -> list[list[SearchResult]]:
    source_BS = pad([request.source for request in requests], next(models[0].parameters()).device)
    step, cache = _start(models, source_BS, way.needs_attention)

    def attention_of(cache: Any) -> Tensor:
        """That of an ensemble's first member."""
        first = cache.members[0] if len(models) > 1 else cache
        return first.attention_NS[:, : source_BS.shape[1]]

    limits = _limits(requests, way.decoding, _max_positions(models), source_BS.device)
    sources = [request.source for request in requests]
    return way.find(Sentences(step, cache, limits, sources, source_BS == PAD, attention_of, seed, scored))


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
