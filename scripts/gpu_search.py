"""Searches of gpu_check.py: translations of random sentences by a model with random weights, as long as their sources.

Random weights rarely choose the end token, so the length limit ends the translations.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace

import torch
from gpu_kernels import kernels_of
from gpu_run import Row, Run, now
from synthetic import RandomStore, random_model

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.decoding import batches
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.budget import Budget, budget_for
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult
from transformer_mt.kernels import attention
from transformer_mt.kernels.narrow import round_to_bfloat16
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import peak_memory, set_up


@dataclass(frozen=True)
class RandomSearch:
    """How to translate, and what. weights: number format"""

    model: Transformer
    requests: list[Request]
    decoding: DecodingConfig
    weights: str

    @classmethod
    def of(
        cls, run: Run, beam: int, narrow: bool, batch_tokens: int | None = None, shapes: str = "varied"
    ) -> RandomSearch:
        """batch_tokens: `decoding.batch_tokens`; None: what the project takes on the device; shapes: as of `Setting`"""
        setting = replace(run.setting(shapes=shapes), updates=40)
        model = random_model(setting, set_up(RuntimeConfig(device=run.device)).device).eval()
        if narrow:
            round_to_bfloat16(model)
        store = RandomStore(setting)
        requests = [Request(store.source[index]) for index in range(len(store))]
        decoding = DecodingConfig(beam=beam, max_length_ratio=1.0, max_length_offset=1, batch_tokens=batch_tokens)
        return cls(model, requests, decoding, "bfloat16" if narrow else "float32")

    @property
    def device(self) -> torch.device:
        return self.model.generator.weight.device

    @property
    def name(self) -> str:
        return f"beam {self.decoding.beam}" if self.decoding.beam > 1 else "greedy"

    @property
    def budget(self) -> Budget:
        return budget_for([self.model], self.decoding, self.decoding.beam)

    @property
    def whose_attention(self) -> str:
        """Whose attention to a past the first steps of a full batch of sentences of mean length take."""
        weight = self.model.generator.weight
        heads = self.model.decoder.layers[0].self_attention.n_heads
        beam, tokens = self.decoding.beam, sum(len(one.source) for one in self.requests) / len(self.requests)
        sentences = min(self.budget.sentences, int(self.budget.tokens / (beam * tokens)))
        example = weight.new_empty(sentences, heads, beam, weight.shape[1] // heads)
        with torch.inference_mode():
            return "PyTorch's" if attention.own_attention(example, example, example) is None else "ours"

    def __call__(self, count: int | None = None) -> list[list[SearchResult]]:
        """Translate the first `count` sentences, without scores as `tmt translate` does; None: all."""
        return search([self.model], self.requests[:count], self.decoding, scored=False)


def decode(
    run: Run, beam: int, narrow: bool, batch_tokens: int | None = None, own: bool = True, graphs: bool = True
) -> list[Row]:
    """Sentences a second. own: with our attention to a past, where it fits; graphs: with steps as CUDA graphs"""
    if not own:
        attention.own_attention = lambda *_: None
    if not graphs:
        batches.GraphedDecoder = IncrementalDecoder
    translate = RandomSearch.of(run, beam, narrow, batch_tokens)
    device, budget, most = translate.device, translate.budget, len(translate.requests)
    count = 8 if run.toy else max(1024, budget.at_once * budget.sentences)
    translate(count)  # compiles kernels, which depend on the size of the batch
    gc.freeze()  # as `tmt translate` does
    while True:
        started = now(device)
        found = translate(count)
        seconds = now(device) - started
        if seconds >= run.seconds / 2 or count >= most:
            break
        count = min(most, int(count * max(2, run.seconds / seconds)))
    tokens = sum(len(results[0].ids) for results in found)
    return [
        {
            "search": translate.name,
            "weights": translate.weights,
            "attention": translate.whose_attention,
            "batches": f"{budget.at_once} of {budget.sentences:,} sentences, {budget.tokens:,} tokens",
            "sentences/s": len(found) / seconds,
            "tokens/s": tokens / seconds,
            "sentences": len(found),
            "tokens a sentence": tokens / len(found),
            "GiB": peak_memory(device) / 2**30,
        }
    ]


def profile_search(run: Run, beam: int, narrow: bool) -> list[Row]:
    """The kernels of the search for a full batch, in which all sentences are equally long."""
    translate = RandomSearch.of(run, beam, narrow, shapes="fixed")
    count = 8 if run.toy else min(len(translate.requests), translate.budget.sentences)
    translate(count)
    name = f"{translate.name}, {translate.weights}, {count:,} sentences"
    return kernels_of(lambda: translate(count), 1, translate.device, name)
