"""What a model was trained on: exact for small corpora, an honest sample of large ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.data import trained_on
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError

HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=40)


def _of(values: list[int]) -> TrainedOn:
    hashes = np.array(values, np.uint64)
    return TrainedOn.of_blocks([{"source": hashes, "target": hashes[:3]}])


@given(HASHES, HASHES)
def test_it_knows_each_sentence_and_survives_the_file(known: list[int], others: list[int]) -> None:
    one, asked = _of(known), np.array([*known, *others], np.uint64)
    wanted = sum(value in set(known) for value in [*known, *others])
    assert one.seen(asked) == (wanted, 1.0)


@given(st.sets(st.integers(0, 2**64 - 1), max_size=60), st.sets(st.integers(0, 2**64 - 1), max_size=60))
def test_of_large_corpora_a_sample_is_decided_exactly(one: set[int], other: set[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trained_on, "MOST", 20)
        both = _of(list(one)).with_parent(_of(list(other)))
        assert len(both.hashes["source"]) <= 20
        count, share = both.seen(np.array([*one, *other], np.uint64))
        decided = {value for value in one | other if value <= share * 2**64}
        assert count <= len([*one, *other])
        assert {int(value) for value in both.hashes["source"]} <= one | other
        if share == 1.0:
            assert {int(value) for value in both.hashes["source"]} == one | other
        else:
            assert abs(len({int(value) for value in both.hashes["source"]}) - len(decided)) <= 1  # rounding of share


def test_a_file_is_read_back_and_a_damaged_one_is_reported(tmp_path: Path) -> None:
    assert TrainedOn.read(tmp_path) is None
    (tmp_path / TRAINED_ON).write_bytes(_of([5, 3, 3]).with_parent(None).to_bytes())
    found = TrainedOn.read(tmp_path)
    assert found is not None
    assert found.hashes["source"].tolist() == [3, 5]
    assert not found.complete
    assert not _of([1]).with_parent(found).complete
    (tmp_path / TRAINED_ON).write_bytes(b"damaged")
    with pytest.raises(TmtError, match="not a readable safetensors file") as error:
        TrainedOn.read(tmp_path)
    assert error.value.place == str(tmp_path / TRAINED_ON)
