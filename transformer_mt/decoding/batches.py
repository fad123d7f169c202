"""Runs the configured search on any number of sentences: sorts them by length, makes batches, restores their order.

This file knows models, ids and `DecodingConfig`, not text.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import torch
from torch import Tensor

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.beam_search import Coverage
from transformer_mt.decoding.budget import budget_for
from transformer_mt.decoding.constraints import Constraints
from transformer_mt.decoding.ensemble import Ensemble
from transformer_mt.decoding.graphed import GraphedDecoder
from transformer_mt.decoding.incremental import IncrementalDecoder, require_same_steps
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched
from transformer_mt.decoding.searches.base import Search, Sentences, make_search
from transformer_mt.decoding.step import Limits, Step, pad
from transformer_mt.errors import TmtError, is_out_of_memory
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import second_stream
from transformer_mt.runtime.graphs import give_back_memory
from transformer_mt.text.vocabulary import PAD

Batch = Sequence[int]  # indices of requests
Find = Callable[[Batch], list[list[SearchResult]]]
Found = tuple[Batch, list[list[SearchResult]]]
Decoder = IncrementalDecoder | Ensemble
R = TypeVar("R")


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
    task = _Task(models, requests, decoding, method or make_search(decoding), seed, scored, first_tag)
    waiting, at_once = task.batches()
    results: dict[int, list[SearchResult]] = {}
    with task.finder() as find, closing(_found(waiting, find, task if at_once > 1 else None)) as found_batches:
        for batch, found in found_batches:
            results.update(zip(batch, found, strict=True))
    return [results[index] for index in range(len(requests))]


@dataclass(frozen=True)
class _Task:
    """What `search` is given."""

    models: Sequence[Transformer]
    requests: Sequence[Request]
    decoding: DecodingConfig
    method: Search
    seed: int
    scored: bool
    first_tag: int | None

    @property
    def device(self) -> torch.device:
        return self.models[0].generator.weight.device

    @property
    def positions(self) -> int | None:
        return min((model.max_positions for model in self.models if model.max_positions is not None), default=None)

    def batches(self) -> tuple[deque[Batch], int]:
        """First those of the requests without constraints, then of those with constraints; and how many at once."""
        free = [index for index, request in enumerate(self.requests) if not request.constraints]
        bound = [index for index, request in enumerate(self.requests) if request.constraints]
        method = self.method
        assert method.constrained_rows or not bound, "the caller refuses constraints that the method does not support"
        found, at_once = deque[Batch](), 2
        for indices, rows in ((free, method.rows), (bound, method.constrained_rows)):
            if not indices:
                continue
            lengths = [len(self.requests[index].source) for index in indices]
            budget = budget_for(self.models, self.decoding, rows)
            some = batched(lengths, rows, budget.tokens, self.positions, budget.sentences)
            found.extend([indices[place] for place in batch] for batch in some)
            at_once = min(at_once, budget.at_once)
        return found, at_once

    @contextmanager
    def finder(self, stream: torch.cuda.Stream | None = None, stop: threading.Event | None = None) -> Iterator[Find]:
        """What searches a batch, with decoders of its own, in the current thread.

        stream: None: the current one. stop: makes a search end at its next step, with a CancelledError
        """
        decoder, attentive = self._decoder(self.method.needs_attention), self._decoder(True)
        own_device = torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()  # of Triton
        try:
            with torch.inference_mode(), own_device, nullcontext() if stream is None else torch.cuda.stream(stream):
                yield partial(self._find, decoder, attentive, stop)
        finally:
            if stream is not None:
                stream.synchronize()  # a search that failed may still run, in memory that is given back now
            for one in (decoder, attentive):
                one.release()

    def _decoder(self, with_attention: bool) -> Decoder:
        kind = GraphedDecoder if self.device.type == "cuda" else IncrementalDecoder
        decoders = [kind(model, with_attention) for model in self.models]
        return decoders[0] if len(decoders) == 1 else Ensemble(decoders)

    def _find(
        self, decoder: Decoder, attentive: Decoder, stop: threading.Event | None, batch: Batch
    ) -> list[list[SearchResult]]:
        """attentive: the decoder of sentences with constraints"""
        requests, device = [self.requests[index] for index in batch], self.device
        sources, attention = [one.source for one in requests], attrgetter("attention_NS")
        shortest, longest = zip(*(allowed_lengths(one, self.decoding, self.positions) for one in requests), strict=True)
        source_BS = pad(sources, device)
        coverage = None
        if self.method.needs_attention:
            coverage = Coverage((source_BS == PAD).float(), attention)
        prefixes, no_repeat = [one.prefix for one in requests], self.decoding.no_repeat_ngram
        limits = Limits.of(shortest, longest, prefixes, no_repeat, device, self.first_tag)
        constraints = None
        if requests[0].constraints:
            needed, joining = [one.constraints for one in requests], requests[0].joining
            constraints = Constraints.of(needed, joining, source_BS.shape[1], attention, device)
            decoder = attentive
        cache, every = decoder.start(source_BS), any(one.every for one in requests)
        step, scored = decoder.step if stop is None else _until(stop, decoder.step), self.scored
        sentences = Sentences(step, cache, limits, sources, coverage, self.seed, scored, constraints, every)
        return self.method.find(sentences)


def _found(waiting: deque[Batch], find: Find, task: _Task | None) -> Generator[Found, None, None]:
    """Each batch with its results. With a task, a second thread takes batches too.

    Where a search has few sentences left, it takes the program longer than the GPU, which then computes the other one.
    If memory runs out in either thread, what is left is searched by this one alone.
    """
    left, stop = deque[Batch](), threading.Event()

    def take(find_here: Find) -> Iterator[Found]:
        for batch in _taken(waiting):
            if (found := _unless_memory_runs_out(find_here, batch)) is None:
                left.extend((batch, *_taken(waiting)))
                return
            yield batch, found

    def take_too(finder: AbstractContextManager[Find]) -> list[Found]:
        try:
            with finder as find_there:
                return list(take(find_there))
        except BaseException:
            waiting.clear()
            raise

    if task is not None and len(waiting) > 1:
        with ThreadPoolExecutor(1, "search") as threads:
            try:
                other = threads.submit(take_too, task.finder(second_stream(task.device), stop))
                yield from take(find)
                yield from other.result()
            finally:
                stop.set()
    if left:
        give_back_memory()
    yield from in_parts(_taken(left or waiting), find)


def _until(stop: threading.Event, step: Step[Any]) -> Step[Any]:
    def step_unless_stopped(previous_N: Tensor, cache: Any) -> tuple[Tensor, Any]:
        if stop.is_set():
            raise CancelledError
        return step(previous_N, cache)

    return step_unless_stopped


def _taken(waiting: deque[Batch]) -> Iterator[Batch]:
    """Batches from the start until there are none; several threads may take them."""
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def in_parts(batches: Iterable[Batch], find: Callable[[Batch], list[R]]) -> Iterator[tuple[Batch, list[R]]]:
    """Each batch with what `find` finds; if memory runs out, the parts of it, and of the batches after it.

    Raises TmtError if memory runs out in a single sentence.
    """
    n_parts = 1
    for batch in batches:
        size = -(-len(batch) // n_parts)
        waiting = [batch[start : start + size] for start in range(0, len(batch), size)]
        while waiting:
            part = waiting.pop(0)
            if (found := _unless_memory_runs_out(find, part)) is not None:
                yield part, found
            elif len(part) == 1:
                raise TmtError(
                    "out of memory in a single sentence",
                    remedy="Use a smaller beam, fewer samples, shorter sentences, or another device: --device cpu.",
                )
            else:
                give_back_memory()
                half = -(-len(part) // 2)
                n_parts = max(n_parts, -(-len(batch) // half))
                waiting = [part[:half], part[half:], *waiting]


def _unless_memory_runs_out(find: Callable[[Batch], list[R]], batch: Batch) -> list[R] | None:
    """What `find` finds; None if memory runs out. The error, which keeps the tensors of the search, is gone then."""
    try:
        return find(batch)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    return None


def translate_ids(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    decoding: DecodingConfig,
    first_tag: int | None = None,
) -> list[list[int]]:
    """The best translation of each source (ids with the end token), without its end token; used by validation.

    The model is in eval mode during the search, and then in its previous mode again.
    Raises TmtError if steps of a search compute something else than the model.
    """
    require_same_steps(model.config)
    training = model.training
    model.eval()
    try:
        requests = [Request(source) for source in sources]
        results = search([model], requests, decoding, scored=decoding.beam > 1, first_tag=first_tag)
    finally:
        model.train(training)
    return [list(found[0].tokens) for found in results]
