"""Stores of ids: writing, reading, and damaged files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.conftest import stored
from transformer_mt.data.store import Store, StoreWriter
from transformer_mt.errors import TmtError

ids = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20)
PAIRS = [([5, 3], [6, 7, 3]), ([3], [9, 3]), ([8, 9, 10, 3], [3])]


@given(pairs=st.lists(st.tuples(ids, ids), max_size=30))
def test_a_store_reads_what_was_written(pairs: list[tuple[list[int], list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = stored(Path(folder), pairs)
        assert len(store) == len(pairs)
        assert [(store.source[row], store.target[row]) for row in range(len(store))] == pairs
        assert store.source.lengths.tolist() == [len(source) for source, _ in pairs]
        assert store.target.lengths.tolist() == [len(target) for _, target in pairs]


def test_files_are_little_endian_on_every_machine(tmp_path: Path) -> None:
    stored(tmp_path, PAIRS)
    assert (tmp_path / "source.ids").read_bytes() == b"".join(
        number.to_bytes(4, "little") for source, _ in PAIRS for number in source
    )
    assert (tmp_path / "target.offsets").read_bytes() == b"".join(
        number.to_bytes(8, "little") for number in (0, 3, 5, 6)
    )


def test_gathered_sentences_are_padded(tmp_path: Path) -> None:
    store = stored(tmp_path, PAIRS)
    rows = np.array([2, 1, 0])
    assert store.source.gather(rows, 5, 0).tolist() == [[8, 9, 10, 3, 0], [3, 0, 0, 0, 0], [5, 3, 0, 0, 0]]
    assert store.source.gather(rows, 2, -1).tolist() == [[8, 9], [3, -1], [5, 3]]


def test_an_opened_store_stays_on_disk(tmp_path: Path) -> None:
    store = stored(tmp_path, PAIRS)
    for values in (store.source.ids, store.source.offsets):
        assert isinstance(values.base, np.memmap)
        assert not values.flags.writeable


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "source.ids").unlink(), "missing"),
        (lambda folder: (folder / "target.offsets").unlink(), "missing"),
        (lambda folder: _cut(folder / "source.ids", 4), "do not match"),
        (lambda folder: _cut(folder / "source.ids", 3), "incomplete"),
        (lambda folder: _cut(folder / "target.offsets", 8), "do not match"),
        (lambda folder: _cut(folder / "target.offsets", 5), "incomplete"),
        (lambda folder: (folder / "source.ids").write_bytes(b""), "do not match"),
        (lambda folder: (folder / "source.offsets").write_bytes(b""), "do not match"),
        (lambda folder: _offsets(folder / "source.offsets", [1, 2, 3, 7]), "do not match"),
        (lambda folder: _offsets(folder / "source.offsets", [0, 2, 7]), "different numbers of sentences"),
        (lambda folder: _offsets(folder / "source.offsets", [0, 5, 3, 7]), "no tokens"),
        (lambda folder: _offsets(folder / "source.offsets", [0, 2, 2, 7]), "no tokens"),
    ],
)
def test_a_damaged_store_is_reported(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    stored(tmp_path, PAIRS)
    damage(tmp_path)
    with pytest.raises(TmtError, match=message) as caught:
        assert Store(tmp_path).source.lengths.sum() < 0
    assert str(tmp_path) in caught.value.place
    assert "--force" in caught.value.remedy


def _cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:-size])


def _offsets(file: Path, values: list[int]) -> None:
    file.write_bytes(np.array(values, dtype="<i8").tobytes())


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_windows_are_those_of_the_store_that_was_opened(tmp_path: Path) -> None:
    """Also if another process prepares the data again meanwhile."""
    old, new = ([[number, 2]] * 6 for number in (5, 7))
    for name in ("data", "new"):
        (tmp_path / name).mkdir()
    stored(tmp_path / "data", [(one, one) for one in old])
    store = Store(tmp_path / "data")
    first, second = np.array([0]), np.array([3])
    one = store.excerpt(first, np.array([3]))
    stored(tmp_path / "new", [(one, one) for one in new])
    (tmp_path / "data").rename(tmp_path / "aside")
    (tmp_path / "new").rename(tmp_path / "data")
    shutil.rmtree(tmp_path / "aside")
    for window in (one, store.excerpt(second, np.array([3]))):
        assert [window.source[place] for place in range(3)] == old[:3]


def test_the_caller_closes_the_files_of_a_writer(tmp_path: Path) -> None:
    one = np.array([1]), np.array([3], np.int32)
    with ExitStack() as files:
        writer = StoreWriter(tmp_path, files)
    with pytest.raises(ValueError, match="closed"):
        writer.extend(one, one)


def test_an_id_outside_of_the_vocabulary_is_reported(tmp_path: Path) -> None:
    store = stored(tmp_path, PAIRS)
    size = int(store.source.ids.max()) + 1
    store.source.require_below(size)
    with pytest.raises(TmtError, match="an id is not in the vocabulary"):
        store.source.require_below(size - 1)
    content = bytearray((tmp_path / "source.ids").read_bytes())
    content[3] ^= 0x80  # the sign
    (tmp_path / "source.ids").write_bytes(content)
    with pytest.raises(TmtError, match="an id is not in the vocabulary"):
        Store(tmp_path).source.require_below(size)
