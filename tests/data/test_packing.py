"""Batches as streams: every pair once an epoch, in streams of one length, for one or several processes."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.conftest import Each, stored
from transformer_mt.data.batching import Batch, Batches
from transformer_mt.data.packing import StreamSize, balanced, joined
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.store import Store
from transformer_mt.text.vocabulary import BOS, EOS, PAD

PAIRS, SIZE = 501, BatchSize(tokens=512)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Pairs of random lengths, the targets about half as long; each source starts with a unique id."""
    folder, generator = tmp_path_factory.mktemp("store"), random.Random(2)
    pairs = []
    for number in range(PAIRS):
        source = generator.randint(1, 40)
        target = min(40, round(source * generator.uniform(0.2, 0.8)))
        pairs.append(([100 + number, *[7] * (source - 1), EOS], [*[9] * target, EOS]))
    return stored(folder, pairs)


def batches_of(store: Store, **options: object) -> Batches:
    return Batches(store, SIZE, 1, packing=True, **options)  # type: ignore[arg-type]


def sentences(batch: Batch) -> list[tuple[list[int], list[int], list[int]]]:
    """Source, what the decoder reads and what it predicts, of each pair of a stream."""
    layout = batch.layout
    assert layout is not None
    found = []
    for pair in range(layout.pairs):
        source, target = (
            slice(*starts[pair : pair + 2]) for starts in (layout.source_starts_X, layout.target_starts_X)
        )
        found.append(
            (
                batch.source_BS[0, source].tolist(),
                batch.target_in_BT[0, target].tolist(),
                batch.target_out_BT[0, target].tolist(),
            )
        )
    return found


def pairs_of(batches: Batches, epoch: int) -> list[int]:
    seen = []
    for update in range(batches.updates(epoch)):
        for batch in batches.update(epoch, update):
            seen += [source[0] - 100 for source, _, _ in sentences(batch)] if batch.tokens else []
    return seen


def test_a_stream_has_whole_sentences_with_their_positions() -> None:
    size = StreamSize(source=8, target=9, pairs=3, longest=4)
    batch = Batch.packed(joined([[5, EOS], [5, 6, EOS]]), joined([[7, 8, 9, EOS], [EOS]]), size)
    assert batch.source_BS.tolist() == [[5, EOS, 5, 6, EOS, PAD, PAD, PAD]]
    assert batch.target_in_BT.tolist() == [[BOS, 7, 8, 9, BOS, PAD, PAD, PAD, PAD]]
    assert batch.target_out_BT.tolist() == [[7, 8, 9, EOS, EOS, PAD, PAD, PAD, PAD]]
    assert batch.real_N.tolist() == [0, 1, 2, 3, 4]
    assert (batch.tokens, batch.pairs) == (5, 2)
    assert batch.layout is not None
    assert batch.layout.source_positions_S.tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert batch.layout.target_positions_T.tolist() == [0, 1, 2, 3, 0, 0, 1, 2, 3]
    assert batch.layout.source_starts_X.tolist() == [0, 2, 5, 8, 8, 8, 8]
    assert batch.layout.target_starts_X.tolist() == [0, 4, 5, 9, 9, 9, 9]


def test_each_pair_comes_exactly_once_an_epoch(store: Store) -> None:
    batches = batches_of(store)
    first, second = pairs_of(batches, 1), pairs_of(batches, 2)
    assert sorted(first) == sorted(second) == list(range(PAIRS))
    assert first != second
    assert pairs_of(batches_of(store), 2) == second, "the order depends only on seed and epoch"


def test_all_batches_have_the_same_shapes(store: Store) -> None:
    batches = batches_of(store)
    shapes = {
        tuple(tensor.shape for tensor in (*batch[:3], *batch.layout[:4]))  # type: ignore[misc]
        for epoch in (1, 2)
        for update in range(batches.updates(epoch))
        for batch in batches.update(epoch, update)
    }
    assert len(shapes) == 1
    ((source, target, _, *_),) = shapes
    assert source == (1, 512)
    assert target[1] < 300, "the stream of the shorter side is shorter"
    assert set(batches.shapes(1)) == {(1, source[1], target[1])}
    assert batches.padding(1) < 0.1  # only 25 sentences fit; a stream for a GPU has a thousand


def test_sentences_arrive_unchanged(store: Store) -> None:
    for batch in batches_of(store).update(1, 0):
        for source, read, predicted in sentences(batch):
            pair = source[0] - 100
            assert source == store.source[pair]
            assert predicted == store.target[pair]
            assert read == [BOS, *predicted[:-1]]


@pytest.mark.parametrize("world", [2, 3])
def test_processes_share_an_epoch(store: Store, world: int) -> None:
    shares = [batches_of(store, rank=rank, world=world, accumulate=2) for rank in range(world)]
    assert len({share.updates(1) for share in shares}) == 1
    assert Counter(pair for share in shares for pair in pairs_of(share, 1)) == Counter(range(PAIRS))


def test_resuming_within_an_epoch_gives_the_same_batches(store: Store) -> None:
    whole, resumed = batches_of(store), batches_of(store)
    list(map(whole.updates, (1, 2)))
    for update in range(5, whole.updates(3)):
        assert sentences(whole.update(3, update)[0]) == sentences(resumed.update(3, update)[0])


def test_drawn_segmentations_never_overflow_a_stream(store: Store) -> None:
    """All have the length of the stored ones or up to twice as much; nothing is lost, most are drawn."""

    def drawn(pair: int, generator: random.Random) -> tuple[list[int], list[int]]:
        source, target = store.source[pair], store.target[pair]
        more = generator.choice([1, 2])
        return [source[0], *[8] * (more * len(source) - 2), EOS], [8] * (more * len(target) - 1) + [EOS]

    batches, new = batches_of(store, sampler=Each(drawn), max_length=80), 0
    assert sorted(pairs_of(batches, 1)) == list(range(PAIRS))
    for update in range(batches.updates(1)):
        for source, _, predicted in sentences(batches.update(1, update)[0]):
            pair = source[0] - 100
            is_stored = (source, predicted) == (store.source[pair], store.target[pair])
            assert is_stored or 7 not in source
            new += not is_stored
    assert new > 0.8 * PAIRS


def test_both_streams_become_full_together(store: Store) -> None:
    """However many pairs are taken: the shares of both sides differ by less than one sentence."""
    source, target = store.source.lengths, store.target.lengths
    order = balanced(source, target)
    assert sorted(order) == list(range(PAIRS))
    ahead = (source[order] / source.sum() - target[order] / target.sum()).cumsum()
    longest = max(source.max() / source.sum(), target.max() / target.sum())
    assert np.abs(ahead).max() < longest
    assert np.abs((source / source.sum() - target / target.sum()).cumsum()).max() > longest, "as it was before"


def test_a_stream_has_room_for_the_longest_sentence(store: Store) -> None:
    batches = Batches(store, BatchSize(tokens=16), 1, packing=True)
    assert batches.streams is not None
    assert (batches.streams.source, batches.streams.target) == (41, int(store.target.lengths.max()))
    assert sorted(pairs_of(batches, 1)) == list(range(PAIRS))


@given(
    lengths=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=60),
    source=st.integers(12, 80),
    target=st.integers(12, 80),
    pairs=st.integers(1, 9),
)
def test_batches_are_within_their_size_and_as_full_as_possible(
    lengths: list[tuple[int, int]], source: int, target: int, pairs: int
) -> None:
    size = StreamSize(source, target, pairs, longest=12)
    sides = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    slices = size.fill(*sides)
    assert [number for part in slices for number in range(len(lengths))[part]] == list(range(len(lengths)))
    for part in slices:
        assert (sides[:, part].sum(axis=1) <= (source, target)).all()
        assert part.stop - part.start <= pairs
        longer = slice(part.start, part.stop + 1)
        if part.stop < len(lengths):
            assert longer.stop - longer.start > pairs or (sides[:, longer].sum(axis=1) > (source, target)).any()
        layout = size.lay_out(*sides[:, part])
        for starts_X, length in ((layout.source_starts_X, source), (layout.target_starts_X, target)):
            assert len(starts_X) == size.spans + 1
            assert 0 <= starts_X.diff().min() <= starts_X.diff().max() <= 12
            assert (starts_X[0], starts_X[-1]) == (0, length)


@pytest.mark.corpora
def test_padding_of_multi30k(corpora, tmp_path: Path) -> None:
    """Of words; for an epoch, whose last stream is not full, and for full streams. The docs have these figures."""
    sides = []
    for language in ("en", "de"):
        (file,) = (corpora / "multi30k").glob(f"train.{language}.gz")
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            sides.append([line.split() for line in lines])
    pairs = [([5] * len(source) + [EOS], [5] * len(target) + [EOS]) for source, target in zip(*sides, strict=True)]
    store = stored(tmp_path, pairs)
    print()
    for tokens, most in ((2048, 0.01), (4096, 0.01), (25_600, 0.03)):
        batches = Batches(store, BatchSize(tokens=tokens), 1, packing=True)
        all_of_them = [batches.update(1, update)[0] for update in range(batches.updates(1))]
        full = sorted(all_of_them, key=lambda batch: batch.tokens)[1:]
        shares = [(ids_1L == PAD).float().mean() for batch in full for ids_1L in (batch.source_BS, batch.target_out_BT)]
        rows = Batches(store, BatchSize(tokens=tokens), 1).padding(1)
        epoch, of_full = batches.padding(1), float(torch.stack(shares).mean())
        print(f"{tokens:,}: rows {rows:.2%}, streams {epoch:.2%}, full streams {of_full:.2%}")
        assert epoch < min(rows, most)
        assert of_full < 0.01
