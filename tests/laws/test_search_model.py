"""Laws of search with a model: with or without cache, in a batch or alone, one model or an ensemble of equal ones."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.batches import search, translate_ids
from transformer_mt.decoding.beam_search import BeamOptions, beam_search
from transformer_mt.decoding.greedy_search import greedy_search
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request, SearchResult, batched
from transformer_mt.decoding.step import Limits
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer

PAD, EOS = 0, 3
SHORT = DecodingConfig(max_length_ratio=1.0, max_length_offset=3)
METHODS = {
    name: SHORT.model_copy(update=options)
    for name, options in {
        "greedy": {"beam": 1},
        "beam": {"beam": 4, "n_best": 3},
        "coverage": {"beam": 3, "coverage_penalty": 0.4, "n_best": 3},
        "no repeats": {"beam": 3, "no_repeat_ngram": 2, "min_length_ratio": 0.5},
        "sample": {"method": "sample", "n_best": 3, "top_k": 8, "top_p": 0.9, "temperature": 0.8},
        "mbr": {"method": "mbr", "samples": 4},
        "mbr of a beam": {"method": "mbr", "candidates": "beam", "beam": 4},
    }.items()
}


@functools.cache
def model(seed: int = 1, positions: str = "sinusoidal") -> Transformer:
    torch.manual_seed(seed)
    config = ModelConfig(
        d_model=16, n_heads=4, d_ff=32, encoder_layers=2, decoder_layers=2, positions=positions, embedding_init="xavier"
    )
    built = Transformer(config, 30, 30, PAD, 20, parts_for(config, "cpu"))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.mul_(1.5)  # sharper choices
    return built.double().eval()


def requests(count: int) -> list[Request]:
    torch.manual_seed(2)
    lengths = torch.randint(1, 12, (count,)).tolist()
    return [Request([*torch.randint(4, 30, (length,)).tolist(), EOS]) for length in lengths]


def same(one: list[list[SearchResult]], other: list[list[SearchResult]]) -> bool:
    assert [[found.ids for found in best] for best in one] == [[found.ids for found in best] for best in other]
    scores = [[found.score for best in results for found in best] for results in (one, other)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    return True


@pytest.mark.parametrize("decoding", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_batch_translates_each_sentence_as_if_alone(decoding: DecodingConfig, positions: str) -> None:
    transformer, sentences = model(positions=positions), requests(12)
    together = search([transformer], sentences, decoding)
    small = decoding.model_copy(update={"batch_tokens": 40})
    assert same(together, search([transformer], sentences, small))
    assert same(together, [search([transformer], [one], decoding)[0] for one in sentences])


class Prefix(NamedTuple):
    """A cache of tokens alone: each step reads the whole prefix again."""

    source_BS: Tensor
    rows_NT: Tensor

    def select(self, sentences_B: Tensor) -> Prefix:
        rows_BWT = self.rows_NT.unflatten(0, (len(self.source_BS), -1))
        return Prefix(self.source_BS[sentences_B], rows_BWT[sentences_B].flatten(0, 1))

    def reorder(self, rows_N: Tensor) -> Prefix:
        return Prefix(self.source_BS, self.rows_NT[rows_N])


def uncached_step(previous_N: Tensor, cache: Prefix) -> tuple[Tensor, Prefix]:
    rows_NT = torch.cat([cache.rows_NT, previous_N[:, None]], dim=1)
    source_NS = cache.source_BS.repeat_interleave(len(rows_NT) // len(cache.source_BS), dim=0)
    hidden_NTD = model()(source_NS, rows_NT)
    return model().generate_logits(hidden_NTD[:, -1]), Prefix(cache.source_BS, rows_NT)


@pytest.mark.parametrize("beam", [1, 4])
def test_search_with_the_cache_equals_search_without(beam: int) -> None:
    sources = [one.source for one in requests(9)]
    width = max(map(len, sources))
    source_BS = torch.tensor([[*source, *[PAD] * (width - len(source))] for source in sources])
    limits, decoder = Limits.of([0] * 9, list(range(4, 13))), IncrementalDecoder(model())
    with torch.inference_mode():
        step, cache = decoder.step, decoder.start(source_BS)
        prefix = Prefix(source_BS, torch.empty(9, 0, dtype=torch.long))
        if beam == 1:
            cached = [[one] for one in greedy_search(step, cache, limits)]
            plain = [[one] for one in greedy_search(uncached_step, prefix, limits)]
        else:
            cached = beam_search(step, cache, limits, BeamOptions(beam, alpha=0.6))
            plain = beam_search(uncached_step, prefix, limits, BeamOptions(beam, alpha=0.6))
    assert same(cached, plain)


@pytest.mark.parametrize("decoding", METHODS.values(), ids=METHODS)
def test_an_ensemble_of_a_model_and_its_twin_is_the_model(decoding: DecodingConfig) -> None:
    assert same(search([model()], requests(8), decoding), search([model(), model()], requests(8), decoding))


def test_an_ensemble_follows_the_mean_of_probabilities() -> None:
    sentences = requests(10)
    together = search([model(1), model(5)], sentences, DecodingConfig(beam=1, length_penalty=0.0))
    for one, (found,) in zip(sentences, together, strict=True):
        target = torch.tensor([[2, *found.ids[:-1]]])
        with torch.inference_mode():
            p_2TV = torch.stack(
                [m.generate_logits(m(torch.tensor([one.source]), target))[0].softmax(-1) for m in (model(1), model(5))]
            )
        mean_TV = p_2TV.mean(0).log()
        assert found.log_probability == pytest.approx(
            float(mean_TV.gather(1, torch.tensor([found.ids]).T).sum()), abs=1e-3
        )
        mean_TV[:, [0, 2]] = -torch.inf
        assert mean_TV.argmax(-1).tolist() == list(found.ids)


def test_a_request_for_every_result_gets_all_that_a_beam_finds() -> None:
    decoding = METHODS["beam"].model_copy(update={"n_best": 1})
    best = search([model()], requests(6), decoding)
    every = search([model()], [replace(one, every=True) for one in requests(6)], decoding)
    assert all(len(found) == 1 for found in best)
    assert all(len(found) > 1 for found in every)
    assert same(best, [found[:1] for found in every])


def test_every_sentence_is_in_one_batch_that_keeps_to_the_budget() -> None:
    lengths = [5, 1, 60, 5, 5, 9, 200, 3]
    batches = list(batched(lengths, 2, 120))
    assert sorted(index for batch in batches for index in batch) == list(range(8))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[index] for index in batch) * len(batch) * 2 <= 120


def test_validation_gets_ids_without_end_marks_and_its_model_back_in_training_mode() -> None:
    transformer = model(7)
    transformer.train()
    sources = [one.source for one in requests(6)]
    results = translate_ids(transformer, sources, DecodingConfig(beam=1))
    assert transformer.training
    transformer.eval()
    expected = [list(found[0].tokens) for found in search([transformer], requests(6), DecodingConfig(beam=1))]
    assert results == expected
    assert all(EOS not in ids for ids in results)
