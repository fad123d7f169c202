"""Runs the configured search on any number of sentences: sorts them by length, makes batches, restores their order.

This file knows models, ids and `DecodingConfig`, not text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from operator import attrgetter

import torch

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.budget import budget_for
from transformer_mt.decoding.constraints import Constraints
from transformer_mt.decoding.ensemble import Ensemble
from transformer_mt.decoding.graphed import GraphedDecoder
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched
from transformer_mt.decoding.searches.base import Search, Sentences, make_search
from transformer_mt.decoding.step import Limits, pad
from transformer_mt.errors import TmtError, is_out_of_memory
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.graphs import give_back_memory
from transformer_mt.text.vocabulary import PAD


def search(
    models: Sequence[Transformer],
    requests: Sequence[Request],
    decoding: DecodingConfig,
    seed: int = 0,
    scored: bool = True,
    method: Search | None = None,
    first_tag: int | None = None,
) -> list[list[SearchResult]]:
    """What the configured search finds for each request, in the order of the requests; best first, samples as drawn.

    models: one, or the members of an ensemble; in eval mode, on one device
    seed:   of the samples
    scored: False lets greedy search skip the scores, which are then 0
    method: another search than the configured one
    first_tag: ids from here on are tags, which are never written; None: there are none
    """
    method = method or make_search(decoding)
    device = next(models[0].parameters()).device
    positions = min((model.max_positions for model in models if model.max_positions is not None), default=None)
    results: dict[int, list[SearchResult]] = {}
    attention = attrgetter("attention_NS")
    decoder, attentive = _decoder(models, method.needs_attention), _decoder(models, True)

    def find(batch: Sequence[int]) -> list[list[SearchResult]]:
        sources = [requests[index].source for index in batch]
        prefixes = [requests[index].prefix for index in batch]
        shortest, longest = zip(
            *(allowed_lengths(requests[index], decoding, positions) for index in batch), strict=True
        )
        source_BS = pad(sources, device)
        coverage = None
        if method.needs_attention:
            coverage = Coverage((source_BS == PAD).float(), attention)
        limits = Limits.of(shortest, longest, prefixes, decoding.no_repeat_ngram, device, first_tag)
        constraints, bound = None, requests[batch[0]]
        if bound.constraints:
            needed = [requests[index].constraints for index in batch]
            constraints = Constraints.of(needed, bound.joining, source_BS.shape[1], attention, device)
        chosen = decoder if constraints is None else attentive
        cache, every = chosen.start(source_BS), any(requests[index].every for index in batch)
        sentences = Sentences(chosen.step, cache, limits, sources, coverage, seed, scored, constraints, every)
        return method.find(sentences)

    own_device = torch.cuda.device(device) if device.type == "cuda" else nullcontext()  # of kernels in Triton
    try:
        with torch.inference_mode(), own_device:
            for batch, found in _in_parts(_batches(models, requests, method, decoding, positions), find):
                results.update(zip(batch, found, strict=True))
    finally:
        for one in (decoder, attentive):
            one.release()
    return [results[index] for index in range(len(requests))]


def _in_parts(
    batches: Iterable[Sequence[int]], find: Callable[[Sequence[int]], list[list[SearchResult]]]
) -> Iterator[tuple[Sequence[int], list[list[SearchResult]]]]:
    """Each batch with what `find` finds; if memory runs out, the parts of it, and of the batches after it.

    Raises TmtError if memory runs out in a single sentence.
    """
    n_parts = 1
    for batch in batches:
        size = -(-len(batch) // n_parts)
        waiting = [batch[start : start + size] for start in range(0, len(batch), size)]
        while waiting:
            part, found = waiting.pop(0), None
            try:
                found = find(part)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            if found is not None:
                yield part, found
            elif len(part) == 1:
                raise TmtError(
                    "out of memory in a single sentence",
                    remedy="Use a smaller beam, fewer samples, shorter sentences, or another device: --device cpu.",
                )
            else:  # outside of `except`, where the error would keep the tensors of the failed search
                give_back_memory()
                half = -(-len(part) // 2)
                n_parts = max(n_parts, -(-len(batch) // half))
                waiting = [part[:half], part[half:], *waiting]


def _decoder(models: Sequence[Transformer], with_attention: bool) -> IncrementalDecoder | Ensemble:
    on_cuda = models[0].generator.weight.device.type == "cuda"
    decoders = [(GraphedDecoder if on_cuda else IncrementalDecoder)(model, with_attention) for model in models]
    return decoders[0] if len(decoders) == 1 else Ensemble(decoders)


def _batches(
    models: Sequence[Transformer],
    requests: Sequence[Request],
    method: Search,
    decoding: DecodingConfig,
    positions: int | None,
) -> Iterator[list[int]]:
    """Batches of indices, first of the requests without constraints, then of those with constraints."""
    free = [index for index, request in enumerate(requests) if not request.constraints]
    bound = [index for index, request in enumerate(requests) if request.constraints]
    assert method.constrained_rows or not bound, "the caller refuses constraints that the method does not support"
    for indices, rows in ((free, method.rows), (bound, method.constrained_rows)):
        if not indices:
            continue
        lengths, budget = [len(requests[index].source) for index in indices], budget_for(models, decoding, rows)
        for batch in batched(lengths, rows, budget.tokens, positions, budget.sentences):
            yield [indices[place] for place in batch]


def translate_ids(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    decoding: DecodingConfig,
    device: torch.device | str = "cpu",
    first_tag: int | None = None,
) -> list[list[int]]:
    """The best translation of each source (ids with the end token), without its end token; used by validation.

    The model is in eval mode during the search, and then in its previous mode again.
    """
    assert next(model.parameters()).device.type == torch.device(device).type, "move the model to the device first"
    training = model.training
    model.eval()
    try:
        requests = [Request(source) for source in sources]
        results = search([model], requests, decoding, scored=decoding.beam > 1, first_tag=first_tag)
    finally:
        model.train(training)
    return [list(found[0].tokens) for found in results]
