"""Batches: their content and order, for one or several processes."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.conftest import Each, stored
from transformer_mt.data.batching import Batches, batch_of
from transformer_mt.data.planning import BatchSize, by_length, cut
from transformer_mt.data.store import Store
from transformer_mt.text.vocabulary import BOS, EOS, PAD


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """501 pairs of random lengths; each source starts with a unique id."""
    folder, generator = tmp_path_factory.mktemp("store"), random.Random(2)
    pairs = []
    for number in range(501):
        source, target = generator.randint(1, 40), generator.randint(1, 40)
        pairs.append(([4 + number, *[7] * (source - 1), EOS], [*[9] * target, EOS]))
    return stored(folder, pairs)


def pairs_of(batches: Batches, epoch: int) -> list[int]:
    """The numbers of the pairs in the batches of an epoch, in order."""
    seen = []
    for update in range(batches.updates(epoch)):
        for batch in batches.update(epoch, update):
            seen += (batch.source_BS[:, 0] - 4).tolist() if batch.tokens else []
    return seen


SIZES = [BatchSize(tokens=300), BatchSize(sentences=16), BatchSize(tokens=16)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bucket", [True, False])
def test_each_pair_comes_exactly_once_an_epoch(store: Store, size: BatchSize, bucket: bool):
    batches = Batches(store, size, 1, bucket_by_length=bucket)
    for epoch in (1, 2):
        assert sorted(pairs_of(batches, epoch)) == list(range(501))


def test_the_order_depends_only_on_seed_and_epoch(store: Store):
    size = BatchSize(tokens=300)
    batches = Batches(store, size, 1)
    second = pairs_of(batches, 2)
    assert pairs_of(Batches(store, size, 1), 2) == second  # without epoch 1 before it
    assert pairs_of(batches, 1) != second
    assert pairs_of(Batches(store, size, 2), 2) != second


def test_resuming_within_an_epoch_gives_the_same_batches(store: Store):
    size = BatchSize(tokens=300)
    whole, resumed = Batches(store, size, 1), Batches(store, size, 1)
    for update in range(5, whole.updates(3)):
        for one, other in zip(whole.update(3, update), resumed.update(3, update), strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one[:4], other[:4], strict=True))


@given(sizes=st.lists(st.integers(1, 50), max_size=60), budget=st.integers(16, 200))
def test_no_batch_is_over_budget_unless_one_sentence_is(sizes: list[int], budget: int):
    slices = cut(np.array(sizes, dtype=np.int64), BatchSize(tokens=budget))
    assert [number for part in slices for number in range(len(sizes))[part]] == list(range(len(sizes)))
    for part, following in zip(slices, [*slices[1:], None], strict=False):
        within = sizes[part]
        assert len(within) == 1 or max(within) * len(within) <= budget
        if following is not None:  # and no batch had room for the next sentence
            assert max([*within, sizes[following.start]]) * (len(within) + 1) > budget


def test_the_budget_counts_padding_of_the_longer_side(store: Store):
    batches = Batches(store, BatchSize(tokens=300), 1)
    for update in range(batches.updates(1)):
        (batch,) = batches.update(1, update)
        assert max(batch.source_BS.numel(), batch.target_out_BT.numel()) <= 300


def test_neighbours_have_similar_lengths(store: Store):
    source, target = store.source.lengths, store.target.lengths
    order = by_length(source, target)
    assert sorted(order) == list(range(len(store)))
    assert (np.diff(target[order]) >= 0).all()
    assert np.abs(np.diff(source[order])).mean() < np.abs(np.diff(source)).mean() / 3


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_processes_share_an_epoch_and_take_the_same_number_of_updates(store: Store, world: int, accumulate: int):
    size = BatchSize(tokens=300)
    shares = [Batches(store, size, 1, rank=rank, world=world, accumulate=accumulate) for rank in range(world)]
    single = Batches(store, size, 1, accumulate=world * accumulate)
    assert len({share.updates(1) for share in shares} | {single.updates(1)}) == 1
    assert Counter(pair for share in shares for pair in pairs_of(share, 1)) == Counter(range(501))
    for update in range(single.updates(1)):  # together, the processes compute the update of a single process
        together = sum(batch.tokens for share in shares for batch in share.update(1, update))
        assert together == sum(batch.tokens for batch in single.update(1, update))
        assert all(share.update(1, update) for share in shares)


def test_an_emptied_batch_has_no_real_tokens(store: Store):
    batches = [Batches(store, BatchSize(sentences=100), 1, rank=rank, world=4) for rank in range(4)]
    assert batches[0].updates(1) == 2  # six batches: two processes have nothing left in the second update
    assert [share.update(1, 1)[0].tokens > 0 for share in batches] == [True, True, False, False]
    empty = batches[3].update(1, 1)[0]
    assert empty.source_BS.numel() > 0
    assert (empty.target_out_BT == PAD).all()


def test_weights_repeat_a_corpus_or_draw_a_part_of_it(store: Store):
    batches = Batches(store, BatchSize(tokens=300), 1, parts=[(101, 2.5), (400, 0.25)])
    first, second = Counter(pairs_of(batches, 1)), Counter(pairs_of(batches, 2))
    assert sum(first[pair] for pair in range(101)) == 252
    assert {first[pair] for pair in range(101)} == {2, 3}
    assert sum(first[pair] for pair in range(101, 501)) == 100
    assert max(first[pair] for pair in range(101, 501)) == 1
    assert first != second  # the part is drawn again in each epoch


@pytest.mark.parametrize(
    "options", [{}, {"packing": True}, {"sampler": Each(lambda pair, random: ([4, EOS], [9, EOS]))}]
)
def test_ids_of_all_kinds_of_batches_have_the_type_of_indices(store: Store, options: dict[str, Any]):
    """A GPU would convert others again and again, and torch.compile would make other graphs."""
    batch = Batches(store, BatchSize(tokens=300), 1, **options).update(1, 0)[0]
    for one in (batch, batch.halves()[0], batch.emptied()):
        assert {ids.dtype for ids in one[:4]} == {torch.int64}


def test_the_decoder_reads_one_position_behind():
    batch = batch_of([[5, EOS], [5, 6, EOS]], [[7, 8, EOS], [9, EOS]])
    assert batch.source_BS.tolist() == [[5, EOS, PAD], [5, 6, EOS]]
    assert batch.target_in_BT.tolist() == [[BOS, 7, 8], [BOS, 9, PAD]]
    assert batch.target_out_BT.tolist() == [[7, 8, EOS], [9, EOS, PAD]]
    assert batch.real_N.tolist() == [0, 1, 2, 3, 4]
    first, second = batch.halves()
    assert (first.tokens, second.tokens) == (3, 2)


def drawn(pair: int, random: random.Random) -> tuple[list[int], list[int]]:
    pieces = random.randint(1, 30)
    return [4 + pair, *[7] * pieces, EOS], [9] * pieces + [EOS]


def test_segmentations_differ_between_epochs_and_repeat_with_the_seed(store: Store):
    def sources(seed: int, epoch: int) -> dict[int, list[int]]:
        batches = Batches(store, BatchSize(tokens=300), seed, sampler=Each(drawn), max_length=64)
        rows = [row for u in range(batches.updates(epoch)) for b in batches.update(epoch, u) for row in b.source_BS]
        return {int(row[0]) - 4: row[row != PAD].tolist() for row in rows}

    first = sources(1, 1)
    assert sorted(first) == list(range(501))
    assert sources(1, 1) == first
    assert sources(1, 2) != first
    assert sources(2, 1) != first


def test_a_pair_repeated_in_an_epoch_is_segmented_differently(store: Store):
    batches = Batches(store, BatchSize(sentences=16), 1, sampler=Each(drawn), max_length=64, parts=[(501, 6.0)])
    rows: dict[int, set[int]] = {}
    for update in range(batches.updates(1)):
        for row in batches.update(1, update)[0].source_BS:
            rows.setdefault(int(row[0]), set()).add(int((row != PAD).sum()))
    assert len(rows) == 501
    assert np.mean([len(lengths) for lengths in rows.values()]) > 4  # of 6 draws from 30 lengths


def test_the_plan_counts_drawn_tokens(store: Store):
    """With segmentations twice as long, batches have fewer sentences and stay within the budget."""

    def twice(pair: int, _: random.Random) -> tuple[list[int], list[int]]:
        return [7] * (2 * int(store.source.lengths[pair])), [8] * (2 * int(store.target.lengths[pair]))

    batches = Batches(store, BatchSize(tokens=600), 1, sampler=Each(twice))
    for update, shape in enumerate(batches.shapes(1)):
        (batch,) = batches.update(1, update)
        assert (len(batch.source_BS), batch.source_BS.shape[1], batch.target_out_BT.shape[1]) == shape
        assert max(batch.source_BS.numel(), batch.target_out_BT.numel()) <= 600 or shape[0] == 1


def test_the_plan_counts_at_most_max_length_tokens(store: Store):
    batches = Batches(store, BatchSize(sentences=50), 1, sampler=Each(drawn), max_length=12)
    assert max(max(source, target) for _, source, target in batches.shapes(1)) == 12


def test_a_drawn_segmentation_that_is_too_long_is_not_used(store: Store):
    batches = Batches(store, BatchSize(sentences=50), 1, sampler=Each(drawn), max_length=12)
    for update in range(batches.updates(1)):
        for row in batches.update(1, update)[0].source_BS:
            length, pair = int((row != PAD).sum()), int(row[0]) - 4
            assert length <= 12 or length == store.source.lengths[pair]


@pytest.mark.corpora
def test_padding_of_multi30k_is_below_5_percent(corpora, tmp_path: Path):
    import gzip

    folder = corpora / "multi30k"
    sides = []
    for language in ("en", "de"):
        (file,) = folder.glob(f"train.{language}.gz")
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            sides.append([line.split() for line in lines])
    pairs = [([5] * len(source) + [EOS], [5] * len(target) + [EOS]) for source, target in zip(*sides, strict=True)]
    batches, real, places = Batches(stored(tmp_path, pairs), BatchSize(tokens=4096), 1), 0, 0
    for update in range(batches.updates(1)):
        (batch,) = batches.update(1, update)
        for side in (batch.source_BS, batch.target_out_BT):
            real, places = real + int((side != PAD).sum()), places + side.numel()
    assert 1 - real / places < 0.05
