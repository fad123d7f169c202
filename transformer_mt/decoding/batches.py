"""Runs the configured search on any number of sentences: sorts them by length, makes batches, restores their order.

This file knows models, ids and `DecodingConfig`, not text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import torch

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.constraints import Constraints
from transformer_mt.decoding.ensemble import Ensemble
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched
from transformer_mt.decoding.searches.base import Search, Sentences, make_search
from transformer_mt.decoding.step import Limits, pad
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import PAD


def search(
    models: Sequence[Transformer],
    requests: Sequence[Request],
    decoding: DecodingConfig,
    seed: int = 0,
    scored: bool = True,
    method: Search | None = None,
) -> list[list[SearchResult]]:
    """What the configured search finds for each request, in the order of the requests; best first, samples as drawn.

    models: one, or the members of an ensemble; in eval mode, on one device
    seed:   of the samples
    scored: False lets greedy search skip the scores, which are then 0
    method: another search than the configured one
    """
    method = method or make_search(decoding)
    device = next(models[0].parameters()).device
    positions = min((model.max_positions for model in models if model.max_positions is not None), default=None)
    results: list[list[SearchResult]] = [[] for _ in requests]
    attention = attrgetter("attention_NS")
    decoder, attentive = _decoder(models, method.needs_attention), _decoder(models, True)
    with torch.inference_mode():
        for batch in _batches(requests, method, decoding, positions):
            sources = [requests[index].source for index in batch]
            prefixes = [requests[index].prefix for index in batch]
            shortest, longest = zip(
                *(allowed_lengths(requests[index], decoding, positions) for index in batch), strict=True
            )
            source_BS = pad(sources, device)
            coverage = None
            if method.needs_attention:
                coverage = Coverage((source_BS == PAD).float(), attention)
            limits = Limits.of(shortest, longest, prefixes, decoding.no_repeat_ngram, device)
            constraints, bound = None, requests[batch[0]]
            if bound.constraints:
                needed = [requests[index].constraints for index in batch]
                constraints = Constraints.of(needed, bound.joining, source_BS.shape[1], attention, device)
            step = (decoder if constraints is None else attentive).step
            cache = decoder.start(source_BS)
            found = method.find(Sentences(step, cache, limits, sources, coverage, seed, scored, constraints))
            for index, results_of_one in zip(batch, found, strict=True):
                results[index] = results_of_one
    return results


def _decoder(models: Sequence[Transformer], with_attention: bool) -> IncrementalDecoder | Ensemble:
    decoders = [IncrementalDecoder(model, with_attention) for model in models]
    return decoders[0] if len(decoders) == 1 else Ensemble(decoders)


def _batches(
    requests: Sequence[Request], method: Search, decoding: DecodingConfig, positions: int | None
) -> Iterator[list[int]]:
    """Batches of indices, first of the requests without constraints, then of those with constraints."""
    free = [index for index, request in enumerate(requests) if not request.constraints]
    bound = [index for index, request in enumerate(requests) if request.constraints]
    assert method.constrained_rows or not bound, "the caller refuses constraints that the method does not support"
    for indices, rows in ((free, method.rows), (bound, method.constrained_rows)):
        lengths = [len(requests[index].source) for index in indices]
        for batch in batched(lengths, rows, decoding.batch_tokens, positions):
            yield [indices[place] for place in batch]


def translate_ids(
    model: Transformer, sources: Sequence[Sequence[int]], decoding: DecodingConfig, device: torch.device | str = "cpu"
) -> list[list[int]]:
    """The best translation of each source (ids with the end token), without its end token; used by validation.

    The model is in eval mode during the search, and then in its previous mode again.
    """
    assert next(model.parameters()).device.type == torch.device(device).type, "move the model to the device first"
    training = model.training
    model.eval()
    try:
        results = search([model], [Request(source) for source in sources], decoding, scored=decoding.beam > 1)
    finally:
        model.train(training)
    return [list(found[0].tokens) for found in results]
