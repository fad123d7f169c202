"""How many sentences a GPU translates at once: enough to be busy, not more than its memory has room for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding import batches, budget
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.budget import (
    GPU_ROWS,
    GPU_TOKENS,
    SCORED_LOGIT_BYTES,
    Budget,
    budget_for,
    budget_of_given,
    gpu_budget,
)
from transformer_mt.decoding.ensemble import mean_log_probability
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import MOST_SENTENCES, Request
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.decoding.step import GPU_LOOK_STEPS, LOOK_STEPS
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import EOS

GIB = 2**30
LENGTH = 25  # tokens of a source, without its end token
AS_LONG = DecodingConfig(max_length_ratio=1.0, max_length_offset=1, min_length_ratio=1.0)


def model(vocabulary: int = 400, device: str = "cpu", **sizes: Any) -> Transformer:
    config = ModelConfig.model_validate({"tie_embeddings": "all", **sizes})
    with torch.device(device):
        return Transformer(config, vocabulary, vocabulary, parts=parts_for(config, "cpu")).eval()


def sentences(number: int, length: int = LENGTH, vocabulary: int = 400) -> list[Request]:
    torch.manual_seed(3)
    return [Request([*torch.randint(4, vocabulary, (length,)).tolist(), EOS]) for _ in range(number)]


class Peak(TorchDispatchMode):
    """The largest number of bytes that the tensors made inside the block have had at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.most, self.known = 0, 0, set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, Tensor) and (storage := tensor.untyped_storage())._cdata not in self.known:
                self.known.add(storage._cdata)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return made

    def _free(self, number: int, size: int) -> None:
        self.known.discard(number)
        self.now -= size


def test_a_gpu_with_room_decodes_thousands_of_rows_and_a_cpu_as_many_sentences_as_before() -> None:
    base = [model(32_000, "meta")]
    assert gpu_budget(base, DecodingConfig(), 1, 160 * GIB) == Budget(GPU_ROWS, GPU_TOKENS, at_once=2)
    assert gpu_budget(base, DecodingConfig(), 5, 160 * GIB) == Budget(GPU_ROWS // 5, GPU_TOKENS, at_once=2)
    assert budget_for([model(d_model=16)], DecodingConfig(), 5) == Budget(MOST_SENTENCES, 12_288)
    assert budget_for([model(d_model=16)], DecodingConfig(batch_tokens=60), 5) == Budget(MOST_SENTENCES, 60)


def test_less_memory_two_models_or_a_setting_make_smaller_batches() -> None:
    base = model(32_000, "meta")
    small, two = gpu_budget([base], DecodingConfig(), 5, 4 * GIB), gpu_budget([base] * 2, DecodingConfig(), 5, 4 * GIB)
    assert 0 < two.tokens < small.tokens < GPU_TOKENS
    assert 0 < two.sentences < small.sentences < GPU_ROWS // 5
    assert gpu_budget([base], DecodingConfig(batch_tokens=500), 5, 4 * GIB).tokens == 500
    assert gpu_budget([base], DecodingConfig(), 5, 0) == Budget(1, 1), "a sentence is always tried"


def test_a_gpu_scores_given_translations_in_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = type("Weight", (), {"device": torch.device("cuda"), "__len__": lambda self: 32_000})()
    on_gpu, found = SimpleNamespace(generator=SimpleNamespace(weight=weight)), []
    for free, number in ((160 * GIB, 1), (8 * GIB, 1), (8 * GIB, 2), (0, 1)):
        monkeypatch.setattr(budget, "free_memory", lambda device, free=free: free)
        found.append(budget_of_given([on_gpu] * number, scored=True, attentive=False).tokens)
    assert found[0] == 32_768 > found[1] > found[2] > found[3] == 2048
    monkeypatch.setattr(budget, "free_memory", lambda device: 160 * GIB)
    assert budget_of_given([on_gpu], scored=True, attentive=True).tokens == 12_288, "attention maps are not estimated"
    assert budget_of_given([on_gpu], scored=False, attentive=True) == Budget(MOST_SENTENCES, 12_288)
    assert budget_of_given([model(d_model=16)], scored=True, attentive=False) == Budget(MOST_SENTENCES, 2048)


@pytest.mark.parametrize("models", [1, 2, 3])
def test_scores_need_the_estimated_memory(models: int) -> None:
    with Peak() as peak:
        mean_log_probability([torch.zeros(200, 8000) for _ in range(models)])
    assert 0.6 < peak.most / (models * 200 * 8000 * SCORED_LOGIT_BYTES) < 1.01


def test_scores_of_a_batch_that_does_not_fit_are_the_same(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator, generate, sizes = Translator.load(tiny_model), Transformer.generate_logits, list[int]()
    lines = ["hello", "ab", "q", "some words", "xyz"]
    expected = [one.log_probability for one in translator.score(lines, lines)]

    def generate_if_it_fits(self: Transformer, hidden_BTD: Tensor) -> Tensor:
        sizes.append(len(hidden_BTD))
        if len(hidden_BTD) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(self, hidden_BTD)

    monkeypatch.setattr(Transformer, "generate_logits", generate_if_it_fits)
    assert [one.log_probability for one in translator.score(lines, lines)] == pytest.approx(expected, abs=1e-4)
    assert sizes == [5, 3, 2, 1, 2]


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 5}, {"method": "sample", "n_best": 5, "top_p": 0.9}])
@pytest.mark.parametrize("vocabulary", [400, 8000])
def test_a_batch_of_this_size_fits_into_the_memory(
    options: dict[str, Any], vocabulary: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Translations are as long as their sources; the search looks and makes room as on a GPU."""
    monkeypatch.setitem(LOOK_STEPS, "cpu", GPU_LOOK_STEPS)
    transformer = model(vocabulary, d_model=32, n_heads=4, d_ff=128)
    decoding, free = AS_LONG.model_copy(update=options), 64 * 2**20
    rows = make_search(decoding).rows
    found = gpu_budget([transformer], decoding, rows, free)
    number = min(found.sentences, found.tokens // rows // (LENGTH + 1))
    requests = sentences(number, vocabulary=vocabulary)
    monkeypatch.setattr(batches, "budget_for", lambda *_: found)
    with Peak() as peak:
        search([transformer], requests, decoding)
    assert 0.1 * free < peak.most < 0.5 * free, "with room for translations of twice the length"


def limited(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Lets memory run out in batches of more than `most` sentences. Returns the sizes of the batches to come."""
    start, sizes = IncrementalDecoder.start, list[int]()

    def start_if_it_fits(self: IncrementalDecoder, source_BS: Tensor) -> Any:
        sizes.append(len(source_BS))
        if len(source_BS) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return start(self, source_BS)

    monkeypatch.setattr(IncrementalDecoder, "start", start_if_it_fits)
    return sizes


@pytest.mark.parametrize(
    "options", [{"beam": 1}, {"beam": 3, "n_best": 2}, {"method": "sample", "n_best": 2, "beam": 1}]
)
def test_a_batch_that_does_not_fit_is_split_and_nothing_else_changes(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer = model(60, d_model=16, n_heads=2, d_ff=32, encoder_layers=1, decoder_layers=1).double()
    requests = [request for length in (3, 7, 5, 9, 2) for request in sentences(2, length, vocabulary=60)]
    decoding = AS_LONG.model_copy(update=options)

    def ids(results: Sequence[Sequence[Any]]) -> list[list[tuple[int, ...]]]:
        return [[one.ids for one in found] for found in results]

    expected = ids(search([transformer], requests, decoding))
    sizes = limited(monkeypatch, 3)
    assert ids(search([transformer], requests, decoding)) == expected
    assert sizes == [10, 5, 3, 2, 5, 3, 2]
    sizes.clear()
    monkeypatch.setattr(batches, "budget_for", lambda *_: Budget(5, 10_000))
    assert ids(search([transformer], requests, decoding)) == expected
    assert sizes == [5, 3, 2, 3, 2], "the second batch is not tried in one piece"


def test_a_sentence_that_does_not_fit_ends_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 0)
    with pytest.raises(TmtError, match="out of memory in a single sentence") as failure:
        search([model(60, d_model=16, n_heads=2)], sentences(3, vocabulary=60), AS_LONG)
    assert "smaller beam" in failure.value.remedy


def test_other_errors_are_not_taken_for_a_full_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(IncrementalDecoder, "start", fail)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        search([model(60, d_model=16, n_heads=2)], sentences(3, vocabulary=60), AS_LONG)


def test_the_free_memory_of_a_gpu_includes_what_pytorch_keeps_for_reuse(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Callable[[Any], Any]] = {
        "mem_get_info": lambda device: (10 * GIB, 80 * GIB),
        "memory_reserved": lambda device: 7 * GIB,
        "memory_allocated": lambda device: 4 * GIB,
    }
    for name, answer in seen.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    monkeypatch.setattr(budget, "gpu_budget", lambda models, decoding, rows, free: Budget(1, free))

    class OnGpu:
        class generator:  # noqa: N801
            weight = type("Weight", (), {"device": torch.device("cuda")})

    assert budget_for([OnGpu()], DecodingConfig(), 1) == Budget(1, 13 * GIB)  # type: ignore[list-item]
