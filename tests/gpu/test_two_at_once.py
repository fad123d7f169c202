"""Two threads that search batches of one model at the same time: on a GPU with enough memory, and here on a CPU."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.decoding import batches, budget
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.budget import Budget, budget_for
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Request
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.device import set_up
from transformer_mt.text.vocabulary import EOS

SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
VOCABULARY, GIB = 60, 2**30
SEARCHES = [{"beam": 1}, {"beam": 3, "n_best": 2}, {"method": "sample", "n_best": 2, "beam": 1}]


@pytest.fixture
def model(make_config: Callable[..., Any]) -> Callable[..., Any]:
    def make(device: str = "cpu", **sizes: Any) -> Any:
        torch.manual_seed(1)
        where = set_up(RuntimeConfig(device=device, precision="float32", tf32=False)).device
        return build_model(make_config({**SMALL, **sizes}), VOCABULARY, VOCABULARY, where).eval()

    return make


def requests(number: int) -> list[Request]:
    generator = random.Random(5)
    lengths = [generator.randint(3, 20) for _ in range(number)]
    return [Request([*(generator.randint(4, VOCABULARY - 1) for _ in range(length)), EOS]) for length in lengths]


def ids(results: list[list[Any]]) -> list[list[tuple[int, ...]]]:
    return [[one.ids for one in found] for found in results]


class Starts:
    """Which thread starts which batches. meet: the first two wait for each other; fail: raises errors"""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail: Callable[[bool, int], Exception | None]) -> None:
        start, meeting = IncrementalDecoder.start, threading.Barrier(2)
        self.mine, self.others, main = list[int](), list[int](), threading.current_thread()

        def start_or_fail(decoder: IncrementalDecoder, source_BS: Any) -> Any:
            mine = threading.current_thread() is main
            started = self.mine if mine else self.others
            started.append(len(source_BS))
            if len(started) == 1:
                meeting.wait(60)
            if (error := fail(mine, len(source_BS))) is not None:
                raise error
            return start(decoder, source_BS)

        monkeypatch.setattr(IncrementalDecoder, "start", start_or_fail)
        monkeypatch.setattr(batches, "second_stream", lambda _: None)  # there is one on a GPU only
        monkeypatch.setattr(batches, "budget_for", lambda *_: Budget(5, 10_000, at_once=2))


@pytest.mark.parametrize("options", SEARCHES)
def test_two_threads_find_what_one_finds(
    options: dict[str, Any], model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer, decoding = model().double(), DecodingConfig(**options)
    expected = ids(search([transformer], requests(33), decoding))
    starts = Starts(monkeypatch, lambda mine, size: None)
    assert ids(search([transformer], requests(33), decoding)) == expected
    assert sorted(starts.mine + starts.others) == [3, *[5] * 6]


@pytest.mark.parametrize("who", ["the other thread", "this thread", "both"])
def test_if_memory_runs_out_beside_another_search_one_goes_on_alone(
    who: str, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that has no memory beside another is not split: it has enough alone."""
    failing = {"the other thread": [False], "this thread": [True], "both": [True, False]}[who]
    n_failures = len(failing)

    def fail(mine: bool, size: int) -> Exception | None:
        if mine not in failing:
            return None
        failing.remove(mine)
        return torch.OutOfMemoryError("CUDA out of memory")

    transformer, decoding = model().double(), DecodingConfig(beam=3)
    expected = ids(search([transformer], requests(43), decoding))
    starts, given_back = Starts(monkeypatch, fail), list[None]()
    monkeypatch.setattr(batches, "give_back_memory", lambda: given_back.append(None))
    assert ids(search([transformer], requests(43), decoding)) == expected
    assert given_back
    sizes = sorted(starts.mine + starts.others)
    assert sizes == [3, *[5] * (8 + n_failures)], "those that failed come again, whole"
    assert len(starts.others) < len(starts.mine)


def test_a_batch_without_memory_when_alone_is_split(model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    transformer, decoding = model().double(), DecodingConfig(beam=3)
    expected = ids(search([transformer], requests(33), decoding))
    starts = Starts(monkeypatch, lambda mine, size: torch.OutOfMemoryError("CUDA out of memory") if size > 3 else None)
    assert ids(search([transformer], requests(33), decoding)) == expected
    assert starts.mine[:4] == [5, 5, 3, 2]
    assert starts.others == [5]


def test_ctrl_c_ends_the_other_search_at_its_next_step(
    model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    step, main, steps, waits = IncrementalDecoder.step, threading.current_thread(), [0], threading.Event()

    def step_or_interrupt(decoder: IncrementalDecoder, *given: Any) -> Any:
        if threading.current_thread() is main:
            waits.wait(60)
            raise KeyboardInterrupt
        steps[0] += 1
        waits.set()
        time.sleep(0.2)
        return step(decoder, *given)

    monkeypatch.setattr(IncrementalDecoder, "step", step_or_interrupt)
    Starts(monkeypatch, lambda mine, size: None)
    with pytest.raises(KeyboardInterrupt):
        search([model()], requests(400), DecodingConfig(beam=3))
    assert steps[0] < 4
    assert not [one for one in threading.enumerate() if one.name.startswith("search")]


@pytest.mark.parametrize("mine", [True, False])
def test_an_error_of_either_thread_is_raised_and_ends_both(
    mine: bool, model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(monkeypatch, lambda here, size: RuntimeError("broken kernel") if here is mine else None)
    with pytest.raises(RuntimeError, match="broken kernel"):
        search([model()], requests(400), DecodingConfig(beam=3))
    assert len(starts.mine) + len(starts.others) < 80, "batches of five sentences are left"
    assert not [one for one in threading.enumerate() if one.name.startswith("search")]


def test_a_sentence_without_memory_in_both_threads_ends_with_advice(
    model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Starts(monkeypatch, lambda mine, size: torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(TmtError, match="out of memory in a single sentence"):
        search([model()], requests(30), DecodingConfig(beam=3))


class OfBaseSizeOnGpu:
    config = ModelConfig()

    class generator:  # noqa: N801
        class weight:  # noqa: N801
            device, itemsize = torch.device("cuda"), 4

            def __len__(self) -> int:
                return 32_000

        weight = weight()  # type: ignore[assignment, misc]


@pytest.mark.parametrize(
    ("options", "at_once"), [({"beam": 1}, 2), ({"beam": 5}, 2), ({"method": "sample"}, 1), ({"batch_tokens": 500}, 1)]
)
def test_two_batches_need_memory_for_both_and_a_user_who_lets_the_program_choose(
    options: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "free_memory", lambda device: 24 * GIB)
    decoding = DecodingConfig(**options)
    assert budget_for([OfBaseSizeOnGpu()], decoding, decoding.beam).at_once == at_once  # type: ignore[list-item]


@pytest.mark.gpu
@pytest.mark.parametrize("options", SEARCHES)
def test_two_threads_find_what_one_finds_on_a_gpu(
    options: dict[str, Any], model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer = model("cuda", d_model=64, n_heads=4, d_ff=128, encoder_layers=2, decoder_layers=2)
    decoding = DecodingConfig(**options)
    assert budget_for([transformer], decoding, 3).at_once == 2
    monkeypatch.setattr(batches, "budget_for", lambda *_: Budget(150, 100_000, at_once=2))
    threads, start = set[str](), IncrementalDecoder.start

    def seen(decoder: IncrementalDecoder, source_BS: Any) -> Any:
        threads.add(threading.current_thread().name)
        return start(decoder, source_BS)

    monkeypatch.setattr(IncrementalDecoder, "start", seen)
    together = [ids(search([transformer], requests(600), decoding)) for _ in range(2)]
    assert len(threads) == 2
    monkeypatch.setattr(batches, "budget_for", lambda *_: Budget(150, 100_000))
    alone = ids(search([transformer], requests(600), decoding))
    for found in together:
        assert sum(one[0] == other[0] for one, other in zip(found, alone, strict=True)) > 585, "rounding may decide"
