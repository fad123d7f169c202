"""Batches made ready ahead: the same ones, not too many, with their errors, and no thread left."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.data.conftest import Each, stored
from transformer_mt.data.batching import Batch, Batches, Update
from transformer_mt.data.loader import Loader
from transformer_mt.data.planning import BatchSize, Cursor
from transformer_mt.data.store import Store
from transformer_mt.errors import TmtError
from transformer_mt.text.vocabulary import EOS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder, generator = tmp_path_factory.mktemp("store"), random.Random(2)
    pairs = []
    for number in range(300):
        source, target = generator.randint(1, 20), generator.randint(1, 20)
        pairs.append(([4 + number, *[7] * (source - 1), EOS], [*[9] * target, EOS]))
    return stored(folder, pairs)


def batches_of(store: Store, **options: Any) -> Batches:
    return Batches(store, BatchSize(tokens=120), 1, **options)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("batches-")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert threads() == []


def equal(one: Update, other: Update) -> bool:
    tensors = zip(one.batches, other.batches, strict=True)
    return one[1:] == other[1:] and all(
        torch.equal(a, b) for pair in tensors for a, b in zip(*pair, strict=True) if a is not None
    )


@pytest.mark.parametrize("window", [1_000, 80])
@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_it_gives_the_updates_in_order_over_epochs(store: Store, ahead: int, window: int) -> None:
    expected = batches_of(store, window=window, accumulate=2)
    loader, cursor, epochs = Loader(batches_of(store, window=window, accumulate=2), ahead), Cursor(), set[int]()
    while cursor.epoch < 4:
        update = loader.next(cursor)
        assert equal(update, expected.at(cursor))
        epochs.add(cursor.epoch)
        cursor = update.next
    assert epochs == {1, 2, 3}
    assert bool(threads()) == (ahead > 0)
    loader.close()


def test_it_goes_on_at_another_place(store: Store) -> None:
    """As after a resumed checkpoint."""
    loader, expected = Loader(batches_of(store), 3), batches_of(store)
    for cursor in (Cursor(), Cursor(2, 0, 4), Cursor(2, 0, 5), Cursor(1, 0, 1)):
        assert equal(loader.next(cursor), expected.at(cursor))
    loader.close()


def test_only_a_few_updates_are_ready(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, made, enough = batches_of(store), list[Cursor](), threading.Event()
    at = batches.at

    def counted(cursor: Cursor) -> Update:
        made.append(cursor)
        if len(made) == 4:
            enough.set()
        return at(cursor)

    monkeypatch.setattr(batches, "at", counted)
    loader = Loader(batches, 3)
    loader.next(Cursor())
    assert enough.wait(10)
    assert loader.ahead == 3
    loader._assembler.submit(lambda: None).result()  # type: ignore[union-attr]  # all before it are done
    assert len(made) == 4, "the one that was taken, and three more"
    loader.close()


def test_an_error_comes_out_with_its_message(store: Store) -> None:
    """After the updates that were ready before it; asking again raises it again."""

    def sample(pair: int, _: random.Random) -> tuple[list[int], list[int]]:
        if armed and pair == bad:
            raise TmtError("the text of this pair is damaged", place="train/source.txt")
        return [4 + pair, EOS], [9, EOS]

    armed = False
    batches = Batches(store, BatchSize(sentences=20), 1, sampler=Each(sample))
    bad, armed = int(batches.plan(1).batches[2][0]), True
    loader, cursor = Loader(batches, 4), Cursor()
    for _ in range(2):
        cursor = loader.next(cursor).next
    for _ in range(2):
        with pytest.raises(TmtError, match=r"train/source.txt: the text of this pair is damaged"):
            loader.next(cursor)
    loader.close()


def test_batches_for_cuda_are_pinned_in_the_thread(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is needed: what CUDA would do is replaced."""
    pinned, devices = list[str](), list[tuple[str, torch.device]]()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(threading.current_thread().name) or self)
    monkeypatch.setattr(
        torch.cuda, "set_device", lambda device: devices.append((threading.current_thread().name, device))
    )
    for packing, tensors in ((False, 4), (True, 8)):
        pinned.clear()
        loader = Loader(batches_of(store, packing=packing), 1, torch.device("cuda", 1))
        batch = loader.next(Cursor()).batches[0]
        loader.close()
        assert isinstance(batch, Batch)
        assert (batch.layout is not None) == packing
        assert len(pinned) % tensors == 0
        assert len(pinned) >= tensors
        assert all(name.startswith("batches-assembly") for name in pinned)
    assert {device for _, device in devices} == {torch.device("cuda", 1)}, "not on the first GPU of the machine"


def test_closing_is_safe_at_any_time(store: Store, tmp_path: Path) -> None:
    loader = Loader(batches_of(store), 2)
    loader.close()
    loader.next(Cursor())
    loader.close()
    loader.close()
