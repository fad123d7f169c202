"""Epochs in windows: every pair once, in an order as random as that of a whole epoch, for any number of processes."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.conftest import Each, stored
from transformer_mt.data import store as storing
from transformer_mt.data.batching import Batch, Batches
from transformer_mt.data.planning import BatchSize, Cursor, best_width, by_length, cut
from transformer_mt.data.store import Counts, Store
from transformer_mt.data.windows import BLOCK_PAIRS, Permutation, Windows, epoch_size
from transformer_mt.errors import TmtError
from transformer_mt.text.vocabulary import EOS

PAIRS, WINDOW, SIZE = 1003, 200, BatchSize(tokens=300)


def write_store(folder: Path, pairs: int) -> Store:
    """Pairs of random lengths; each source starts with a unique id."""
    generator = random.Random(2)
    written = []
    for number in range(pairs):
        source, target = generator.randint(1, 40), generator.randint(1, 40)
        written.append(([100 + number, *[7] * (source - 1), EOS], [*[9] * target, EOS]))
    return stored(folder, written)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_store(tmp_path_factory.mktemp("store"), PAIRS)


def batches_of(store: Store, **options: Any) -> Batches:
    return Batches(store, options.pop("size", SIZE), options.pop("seed", 1), **{"window": WINDOW, **options})


def first_pairs(batch: Batch) -> list[int]:
    """The numbers of the pairs of a batch: of its sources."""
    if not batch.tokens:
        return []
    if batch.layout is None:
        return (batch.source_BS[:, 0] - 100).tolist()
    starts = batch.layout.source_starts_X[: batch.pairs].long()
    return (batch.source_BS[0, starts] - 100).tolist()


def pairs_from(batches: Batches, cursor: Cursor) -> list[list[int]]:
    """The pairs of each micro-batch, to the end of the epoch."""
    found, epoch = list[list[int]](), cursor.epoch
    while cursor.epoch == epoch:
        update = batches.at(cursor)
        found += [first_pairs(batch) for batch in update.batches]
        cursor = update.next
    return found


def flat(lists: list[list[int]]) -> list[int]:
    return [number for one in lists for number in one]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"bucket_by_length": False},
    {"size": BatchSize(sentences=16)},
    {"size": BatchSize(tokens=512), "packing": True},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_each_pair_comes_exactly_once_an_epoch(store: Store, options: dict[str, Any]) -> None:
    batches = batches_of(store, **options)
    assert batches.windows == 6
    first, second = (flat(pairs_from(batches, Cursor(epoch))) for epoch in (1, 2))
    assert sorted(first) == sorted(second) == list(range(PAIRS))
    assert first != second
    assert flat(pairs_from(batches_of(store, **options), Cursor(2))) == second, "it depends on seed and epoch only"
    assert flat(pairs_from(batches_of(store, seed=2, **options), Cursor(2))) != second


@pytest.mark.parametrize("options", OPTIONS)
def test_batches_have_the_sentences_of_the_store_and_keep_their_size(store: Store, options: dict[str, Any]) -> None:
    batches = batches_of(store, **options)
    cursor, limit = Cursor(1), options.get("size", SIZE)
    while cursor.epoch == 1:
        update = batches.at(cursor)
        (batch,) = update.batches
        source, target = batch.source_BS.numel(), batch.target_out_BT.numel()
        assert limit.tokens is None or max(source, target) <= limit.tokens
        assert update.size == (batch.tokens, source, target)
        for pair, sentence in zip(first_pairs(batch), sentences(batch), strict=True):
            assert sentence == store.source[pair]
        cursor = update.next


def sentences(batch: Batch) -> list[list[int]]:
    if batch.layout is None:
        return [row[: row.index(EOS) + 1] for row in batch.source_BS.tolist()]
    starts = batch.layout.source_starts_X.tolist()
    return [batch.source_BS[0, starts[pair] : starts[pair + 1]].tolist() for pair in range(batch.pairs)]


@pytest.mark.parametrize("before", [0, 7, 40])
@pytest.mark.parametrize("after", [(1, 1), (2, 1), (3, 2)])
def test_an_epoch_goes_on_at_the_same_pair_with_another_number_of_processes(
    store: Store, before: int, after: tuple[int, int]
) -> None:
    """Two processes stop somewhere in the epoch; others go on, and together see what is left: no pair twice."""
    first, seen, cursor = [batches_of(store, rank=rank, world=2) for rank in range(2)], list[int](), Cursor(3)
    for _ in range(before):
        updates = [one.at(cursor) for one in first]
        seen += [pair for update in updates for batch in update.batches for pair in first_pairs(batch)]
        (cursor,) = {update.next for update in updates}
    world, accumulate = after
    shares = [
        pairs_from(batches_of(store, rank=rank, world=world, accumulate=accumulate), cursor) for rank in range(world)
    ]
    assert len({len(share) // accumulate for share in shares}) == 1, "all take the same number of updates"
    rest = [pair for share in shares for pair in flat(share)]
    assert sorted(seen + rest) == list(range(PAIRS))
    assert sorted(rest) == sorted(flat(pairs_from(batches_of(store), cursor)))


def test_a_process_assembles_only_its_own_batches(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assembled: list[list[int]] = []
    gather = storing.Side.gather

    def counted(side: storing.Side, rows: Counts, width: int, padding: int) -> Any:
        assembled.append(rows.tolist())
        return gather(side, rows, width, padding)

    monkeypatch.setattr(storing.Side, "gather", counted)
    update = batches_of(store, rank=1, world=4, accumulate=2).at(Cursor(1))
    assert len(update.batches) == 2
    assert len(assembled) == 4, "two batches of two sides, of the eight batches of the update"


def test_weights_repeat_a_corpus_or_draw_a_part_of_it(store: Store) -> None:
    parts = [(101, 2.5), (3, 0.1), (899, 0.25)]
    counts = [Counter(flat(pairs_from(batches_of(store, parts=parts), Cursor(epoch)))) for epoch in range(1, 41)]
    for count in counts:
        assert sum(count[pair] for pair in range(101)) == 252
        assert {count[pair] for pair in range(101)} == {2, 3}
        assert sum(count[pair] for pair in range(101, 104)) == 1, "each corpus gives at least one pair"
        assert sum(count[pair] for pair in range(104, PAIRS)) == 225
        assert max(count[pair] for pair in range(104, PAIRS)) == 1
    assert epoch_size(parts) == 252 + 1 + 225
    total = sum((Counter({pair: count[pair] for pair in range(104, PAIRS)}) for count in counts), Counter[int]())
    assert max(total.values()) < 25, "all are drawn equally often: 10 times of 40, with a deviation of 2.7"
    assert len(total) > 890


def test_segmentations_are_drawn_for_each_place_of_a_pair(store: Store) -> None:
    def drawn(pair: int, generator: random.Random) -> tuple[list[int], list[int]]:
        pieces = generator.randint(1, 30)
        return [100 + pair, *[7] * pieces, EOS], [9] * pieces + [EOS]

    def lengths(epoch: int, **options: Any) -> dict[int, list[int]]:
        batches, cursor = batches_of(store, sampler=Each(drawn), max_length=64, **options), Cursor(epoch)
        found: dict[int, list[int]] = {}
        while cursor.epoch == epoch:
            update = batches.at(cursor)
            assert update.size.tokens is None
            for batch in update.batches:
                for pair, sentence in zip(first_pairs(batch), sentences(batch), strict=True):
                    found.setdefault(pair, []).append(len(sentence))
            cursor = update.next
        return found

    first = lengths(1)
    assert sorted(first) == list(range(PAIRS))
    assert first == lengths(1)
    assert first != lengths(2)
    twice = lengths(1, parts=[(PAIRS, 2.0)])
    assert np.mean([one != other for one, other in twice.values()]) > 0.9
    packed = lengths(1, packing=True, size=BatchSize(tokens=512))
    assert sorted(packed) == list(range(PAIRS))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("packing", [False, True])
def test_a_sampler_with_processes_is_asked_for_several_updates_at_once(store: Store, packing: bool, rank: int) -> None:
    def drawn(pair: int, generator: random.Random) -> tuple[list[int], list[int]]:
        pieces = generator.randint(1, 30)
        return [100 + pair, *[7] * pieces, EOS], [9] * pieces + [EOS]

    asked = list[int]()

    class Counted(Each):
        def __call__(self, pairs: Sequence[tuple[int, str]]) -> list[Any]:
            asked.append(len(pairs))
            return super().__call__(pairs)

    def read(together: int, cursors: list[Cursor] | None = None) -> tuple[list[Any], list[Cursor]]:
        options: Any = {"packing": packing, "rank": rank, "world": 2, "accumulate": 2, "size": BatchSize(tokens=600)}
        batches = batches_of(store, sampler=Counted(drawn, together), max_length=64, **options)
        asked.clear()
        places, cursor, found = list[Cursor](), Cursor(1), []
        while cursor.epoch < 3 if cursors is None else len(places) < len(cursors):
            places.append(cursor if cursors is None else cursors[len(places)])
            update = batches.at(places[-1])
            found.append([[tensor.tolist() for tensor in batch[:4]] for batch in update.batches])
            cursor = update.next
        return found, places

    expected, places = read(1)
    n_calls = len(asked)
    assert read(200)[0] == expected
    assert len(asked) < 0.4 * n_calls
    assert max(asked) < 300, "no more than one update more than it was asked for"
    for order in (places[7:] + places[:7], places[::-1], [*places[:5], places[2], *places[3:9]]):
        of_place = dict(zip(places, expected, strict=True))
        assert read(200, order)[0] == [of_place[place] for place in order]


def reference_plan(store: Store, epoch: int, seed: int) -> list[list[int]]:
    """The plan of a whole epoch, as all versions make it for a corpus of one window."""
    generator = np.random.default_rng([seed, epoch])
    pairs = np.arange(len(store))
    generator.shuffle(pairs)
    source, target = store.source.lengths[pairs], store.target.lengths[pairs]
    order = by_length(source, target)
    batches = [pairs[order][part].tolist() for part in cut(np.maximum(source, target)[order], SIZE)]
    generator.shuffle(batches)
    return batches


def test_a_small_corpus_has_the_batches_of_older_versions(store: Store) -> None:
    """Else a run of an older version would not go on where it stopped."""
    batches = Batches(store, SIZE, 5)
    assert batches.windows == 1
    for epoch in (1, 2):
        assert [one.tolist() for one in batches.plan(epoch).batches] == reference_plan(store, epoch, 5)
        assert pairs_from(batches, Cursor(epoch)) == reference_plan(store, epoch, 5)


def test_neighbours_do_not_stay_neighbours(tmp_path: Path) -> None:
    """In the corpus, neighbours are alike: it is sorted. All windows and batches have pairs from everywhere in it."""
    store = write_store(tmp_path, 12_000)
    windowed, whole = Batches(store, SIZE, 1, window=3_000), Batches(store, SIZE, 1)
    means, spreads, near = [], [], {}
    for batches in (windowed, whole):
        plans = [batches.plan(1, window) for window in range(batches.windows)]
        gaps = [np.diff(np.sort(batch)) for plan in plans for batch in plan.batches]
        near[batches] = np.mean(np.concatenate(gaps) < BLOCK_PAIRS)
        if batches is windowed:
            members = [np.concatenate(plan.batches) for plan in plans]
            means, spreads = [one.mean() for one in members], [one.std() for one in members]
    assert means == pytest.approx([6_000] * 4, rel=0.1)  # 3,000 pairs in 188 blocks: deviation of 4 %
    assert spreads == pytest.approx([12_000 / 12**0.5] * 4, rel=0.1)
    assert near[windowed] < near[whole] + 0.05
    order = np.concatenate([np.concatenate(windowed.plan(1, window).batches) for window in range(4)])
    assert np.mean(np.abs(np.diff(order)) < BLOCK_PAIRS) < 0.02, "0.3 % by chance"


def test_windows_of_each_epoch_are_others(store: Store) -> None:
    first, second = (Windows([(PAIRS, 1.0)], 6, 1, epoch) for epoch in (1, 2))
    starts = [set(windows.runs(0)[0].tolist()) for windows in (first, second)]
    assert len(starts[0] & starts[1]) <= 3, "blocks begin at other pairs, too"


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**64 - 1))
def test_a_permutation_has_every_number_once(size: int, seed: int) -> None:
    order = Permutation(size, np.random.default_rng(seed))
    assert sorted(order(np.arange(size)).tolist()) == list(range(size))
    assert order(np.array([size - 1])) == order(np.arange(size))[-1:], "each is computed alone"


def test_permutations_are_uniform() -> None:
    """Over many keys, each number comes to each place equally often, and follows each other one."""
    size, keys = 11, 8_000
    places, following = np.zeros((size, size)), np.zeros((size, size))
    for key in range(keys):
        order = Permutation(size, np.random.default_rng(key))(np.arange(size))
        places[np.arange(size), order] += 1
        following[order[:-1], order[1:]] += 1
    assert chi_square(places) < 200, "121 on average, with a deviation of 16"
    assert chi_square(following[~np.eye(size, dtype=bool)]) < 190, "110 on average"


def chi_square(counts: np.ndarray[Any, Any]) -> float:
    return float(((counts - counts.mean()) ** 2 / counts.mean()).sum())


def test_an_estimate_of_updates_is_near_and_the_share_of_an_epoch_exact(store: Store) -> None:
    batches, cursor, counted, before = batches_of(store, accumulate=2), Cursor(2), 0, list[int]()
    while cursor.epoch == 2:
        before.append(batches.updates_before(cursor))
        cursor, counted = batches.at(cursor).next, counted + 1
    assert batches.updates(2) == batches.updates(1) == pytest.approx(counted, rel=0.1)
    assert before == sorted(before), "a schedule never goes back"
    assert (before[0], before[-1]) == (0, pytest.approx(batches.updates(2) - 1, abs=2))
    assert all(count < batches.updates(2) for count in before)


def test_a_plan_that_has_changed_goes_on_after_the_same_share(store: Store) -> None:
    planner = batches_of(store).planner
    batches = len(planner.plan(2, 3).batches)
    place = Cursor(2, 3, 5)
    assert planner.restored(place, 6, batches) == (place, True)
    assert planner.restored(Cursor(2), 1, 0) == (Cursor(2), True), "the beginning of an epoch is always exact"
    moved, exact = planner.restored(Cursor(2, 0, 60), 1, 120)
    assert (moved, exact) == (Cursor(2, 3, 0), False)
    moved, exact = planner.restored(Cursor(2, 3, 2 * batches), 6, 4 * batches)
    assert (moved.window, exact) == (3, False)
    assert moved.batch == batches // 2
    assert planner.restored(Cursor(2, 0, 500), 1, 120) == (Cursor(3), False), "there was more of it than there is now"


def test_planning_takes_the_memory_of_a_window_whatever_the_size_of_the_corpus(tmp_path: Path) -> None:
    peaks = []
    for pairs in (200_000, 800_000):
        store = sparse_store(tmp_path / str(pairs), pairs)
        batches = Batches(store, SIZE, 1, window=10_000)
        tracemalloc.start()
        batches.at(Cursor(1, 3, 0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert "lengths" not in vars(store.source), "those of all pairs"
    assert peaks[1] < 1.1 * peaks[0]


def test_ids_of_two_windows_are_in_memory(store: Store) -> None:
    """Of the current one and of the next, which is read ahead; older ones are read again if they are used again."""
    batches = batches_of(store)
    for window in range(4):
        batches.planner.read_ahead(1, window)
    loaded = ["ids" in vars(batches.plan(1, window).store.source) for window in range(4)]
    assert loaded == [False, False, True, True]
    again = batches.at(Cursor(1, 0, 0)).batches[0]
    assert first_pairs(again) == batches.plan(1, 0).batches[0].tolist()


def test_a_tiny_part_of_a_large_corpus_is_an_epoch(store: Store) -> None:
    batches = batches_of(store, parts=[(PAIRS, 1e-9)])
    assert len(flat(pairs_from(batches, Cursor(1)))) == batches.updates(1) == 1


def sparse_store(folder: Path, pairs: int) -> Store:
    """All sentences have the same length, and no text on the disk."""
    folder.mkdir()
    for side in storing.SIDES:
        (3 * np.arange(pairs + 1)).astype("<i8").tofile(folder / f"{side}.offsets")
        with (folder / f"{side}.ids").open("wb") as file:
            file.truncate(4 * 3 * pairs)
    return Store(folder)


def test_damage_is_found_where_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(tmp_path, PAIRS)
    monkeypatch.setattr(storing, "CHECKED_AT_ONCE", 10)
    store.source.require_below(1_000)  # as of a large store: not read now
    for options in ({}, {"window": 2_000}):
        with pytest.raises(TmtError, match="an id is not in the vocabulary"):
            flat(pairs_from(batches_of(store, **options), Cursor(1)))
    store = write_store(tmp_path, PAIRS)
    with (tmp_path / "target.ids").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(TmtError, match="a file is incomplete"):
        flat(pairs_from(batches_of(store), Cursor(1)))
    (tmp_path / "target.ids").unlink()
    with pytest.raises(TmtError, match="a file of the prepared data is missing"):
        Store(tmp_path)


def log_normal(pairs: int, spread: float) -> tuple[Counts, Counts]:
    """Lengths as of subwords in news; spread: of the ratio of both sides."""
    generator = np.random.default_rng(1)
    drawn = 22 * np.exp(generator.normal(0, 0.6, pairs))
    other = drawn * np.exp(generator.normal(0, spread, pairs))
    source, target = (np.clip(side.round(), 2, 128).astype(np.int64) for side in (drawn, other))
    return source, target


@pytest.mark.parametrize(("tokens", "most"), [(4096, 0.02), (12_800, 0.035), (25_600, 0.05)])
def test_padding_of_a_window_is_below_5_percent(tokens: int, most: float) -> None:
    source, target = log_normal(1 << 18, 0.15)

    def padding(width: int) -> float:
        order = by_length(source, target, width)
        begins = [part.start for part in cut(np.maximum(source, target)[order], BatchSize(tokens=tokens))]
        rows = np.diff(begins, append=len(order))
        places = sum((rows * np.maximum.reduceat(side[order], begins)).sum() for side in (source, target))
        return 1 - float((source.sum() + target.sum()) / places)

    width = best_width(source, target, np.maximum(source, target).sum() / tokens)
    assert padding(width) < most
    assert padding(width) <= padding(1)


def test_tensors_of_windows_have_the_type_of_indices(store: Store) -> None:
    for options in OPTIONS:
        batch = batches_of(store, **options).at(Cursor(1)).batches[0]
        assert {ids.dtype for ids in batch[:4]} == {torch.int64}
