"""Any number of sentences, as ids, through the configured search: sorted by length, batched by tokens, in order again.

Knows models, ids and `DecodingConfig`; never text.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import torch

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.ensemble import Ensemble
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched
from transformer_mt.decoding.searches.base import Sentences, make_search
from transformer_mt.decoding.step import Limits, pad
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
    way = make_search(decoding)
    decoders = [IncrementalDecoder(model, way.needs_attention) for model in models]
    decoder: IncrementalDecoder | Ensemble = decoders[0] if len(decoders) == 1 else Ensemble(decoders)
    device = next(models[0].parameters()).device
    positions = min((model.max_positions for model in models if model.max_positions is not None), default=None)
    results: list[list[SearchResult]] = [[] for _ in requests]
    lengths = [len(request.source) for request in requests]
    with torch.inference_mode():
        for batch in batched(lengths, way.rows, decoding.batch_tokens, positions):
            asked = [requests[index] for index in batch]
            shortest, longest = zip(*(allowed_lengths(one, decoding, positions) for one in asked), strict=True)
            prefixes = [request.prefix for request in asked]
            sources = [request.source for request in asked]
            source_BS = pad(sources, device)
            looked = Coverage((source_BS == PAD).float(), attrgetter("attention_NS")) if way.needs_attention else None
            limits = Limits.of(shortest, longest, prefixes, decoding.no_repeat_ngram, device)
            cache = decoder.start(source_BS)
            found = way.find(Sentences(decoder.step, cache, limits, sources, looked, seed, scored))
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
