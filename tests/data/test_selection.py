"""Duplicates, splits and leaks, compared with a simple implementation of the rules."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import SplitConfig
from transformer_mt.corpora.base import WHOLE, Pair
from transformer_mt.corpora.parts import Texts
from transformer_mt.data import partitions, reading
from transformer_mt.data.parallel import chunks
from transformer_mt.data.reading import Cleaner, Item, Reading
from transformer_mt.data.selection import DROPPED_LEAKS, Selection
from transformer_mt.data.shards import Stream

Pairs = Sequence[tuple[str, str]]
sentences = st.sampled_from(["a", "A", "a!", "b", "c c", "CC", "d"])
pairs = st.lists(st.tuples(sentences, sentences.map(str.upper)), max_size=12)


class Bench:
    """Streams with given pairs, as the first pass writes them."""

    def __init__(self, folder: Path, **rules: Any) -> None:
        self.folder, self.rules, self.numbers = folder, CleaningConfig(identical=False, **rules), count()
        self.streams: list[Stream] = []

    def add(self, split: str, pairs: Pairs, division: SplitConfig | None = None) -> Stream:
        stream = Stream(split, 1.0, division, self.folder, f"{next(self.numbers)}-{split}")
        read = (Pair(source, target, f"file:{row}") for row, (source, target) in enumerate(pairs))
        cleaner = Cleaner(self.rules, "de", "en", stream.trains)
        work = Reading(stream, cleaner, cast(Any, None))
        for number, some in enumerate(chunks(read, reading.SHARD)):
            done = work(Item(f"{stream.name}-{number}", None, Texts.of(some)))
            stream.shards += done.shards
            stream.counts.add(done.counts)
        self.streams.append(stream)
        return stream

    def select(self) -> Selection:
        return Selection(self.streams, self.rules)


def _pairs(selection: Selection, split: str) -> list[tuple[str, str]]:
    return [(line.source, line.target) for line in selection.selected(split)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_first_of_equal_pairs_is_kept_across_corpora_and_partitions(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "BLOCK", 7)  # many partitions and shards
    monkeypatch.setattr(reading, "SHARD", 4)
    first = [(f"s{n % 10}", f"t{n % 10}") for n in range(30)]
    second = [(f"s{n}", f"t{n}") for n in range(20)]
    one, two = bench.add("train", first), bench.add("train", second)
    bench.add("validation", [("v", "v")] * 3)
    selection = bench.select()
    assert _pairs(selection, "train") == [(f"s{n}", f"t{n}") for n in range(20)]
    assert (selection.dropped(one), selection.dropped(two)) == ({"duplicate": 20}, {"duplicate": 10})
    assert [line.place for line in selection.selected("train")][9:12] == ["file:9", "file:10", "file:11"]
    assert selection.count("validation") == 3


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        ("off", ["a", "a", "B!", "c", "d", "e"]),
        ("pair", ["a", "c", "d", "e"]),
        ("source", ["c", "d", "e"]),
        ("target", ["a", "c", "d"]),
        ("either", ["c", "d"]),
    ],
)
def test_leaks_are_dropped_by_rule_and_always_counted(tmp_path: Path, rule: str, kept: list[str]) -> None:
    bench = Bench(tmp_path, leaks=rule)
    bench.add("train", [("a", "one"), ("a", "other"), ("B!", "TWO"), ("c", "three"), ("d", "four"), ("e", "One!")])
    bench.add("validation", [("a", "one")])
    bench.add("news", [("b", "two."), ("x", "y")])
    selection = bench.select()
    assert [source for source, _ in _pairs(selection, "train")] == kept
    assert selection.leaks == {
        "validation": {"pair": 1, "source": 2, "target": 2},
        "news": {"pair": 1, "source": 1, "target": 1},
    }


def test_an_empty_training_split_names_the_rules_and_their_first_pairs(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_characters=3)
    bench.add("train", [("a", "one"), ("", "two"), ("long", "lang")])
    bench.add("validation", [("a", "one")])
    error = bench.select().nothing_left("train")
    assert error.message == "no pair is left in the train split"
    assert error.remedy.splitlines() == [
        "'empty side' drops 1 of 3 pairs (check the columns of the files), such as:",
        "    file:1:  | two",
        "  'too many characters' drops 1 of 3 pairs (check data.cleaning.max_characters), such as:",
        "    file:2: long | lang",
        "  'leak' drops 1 of 3 pairs (check data.cleaning.leaks), such as:",
        "    file:0: a | one",
    ]


def test_overlaps_between_evaluation_splits_are_counted_and_kept(bench: Bench) -> None:
    bench.add("train", [("t", "t")])
    bench.add("validation", [("a", "one"), ("b", "two")])
    bench.add("news", [("A!", "one"), ("b", "zwei"), ("c", "three")])
    bench.add("talks", [("c", "three"), ("c", "three")])
    selection = bench.select()
    assert selection.overlaps == [
        {"splits": ["validation", "news"], "pair": 1, "source": 2},
        {"splits": ["validation", "talks"], "pair": 0, "source": 0},
        {"splits": ["news", "talks"], "pair": 2, "source": 2},
    ]
    assert [selection.count(split) for split in selection.splits] == [1, 2, 3, 2]


@settings(max_examples=60)
@given(
    whole=pairs,
    train=pairs,
    validation=pairs,
    news=pairs,
    rule=st.sampled_from(list(DROPPED_LEAKS)),
    block=st.sampled_from([2, 5, 1_000]),
)
def test_selection_equals_a_simple_implementation_of_its_rules(
    whole: Pairs, train: Pairs, validation: Pairs, news: Pairs, rule: str, block: int
) -> None:
    whole = [*whole, *((f"w{n}", f"w{n}") for n in range(8))]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "BLOCK", block)
        patch.setattr(reading, "SHARD", block)
        bench = Bench(Path(folder), leaks=rule)
        streams = [
            bench.add(WHOLE, whole, SplitConfig(validation=0.2, test=3)),
            bench.add("train", train),
            bench.add("validation", validation),
            bench.add("news", news),
        ]
        selection = bench.select()
        found = {split: _pairs(selection, split) for split in selection.splits}

        unique = list(dict.fromkeys(whole)), [pair for pair in dict.fromkeys(train) if pair not in whole]
        assert selection.dropped(streams[0]).get("duplicate", 0) == len(whole) - len(unique[0])
        assert selection.dropped(streams[1]).get("duplicate", 0) == len(train) - len(unique[1])
        assert len(found["test"]) == 3
        assert len(found["validation"]) == max(1, round(0.2 * len(unique[0]))) + len(validation)
        assert found["news"] == list(news)

        held_out = [pair for split in ("test", "validation", "news") for pair in found[split]]
        candidates = [
            pair
            for part in unique
            for pair in part
            if pair not in found["test"] + found["validation"][: -len(validation) or None]
        ]
        assert found["train"] == [pair for pair in candidates if not _leaks(pair, held_out, rule)]
        total = sum(map(len, found.values())) + sum(sum(selection.dropped(stream).values()) for stream in streams)
        assert total == len(whole) + len(train) + len(validation) + len(news)


def _leaks(pair: tuple[str, str], held_out: Pairs, rule: str) -> bool:
    def plain(text: str) -> str:
        return "".join(letter for letter in text.lower() if letter.isalpha() or letter.isdigit())

    if rule in ("source", "either") and plain(pair[0]) in {plain(source) for source, _ in held_out}:
        return True
    if rule in ("target", "either") and plain(pair[1]) in {plain(target) for _, target in held_out}:
        return True
    return rule == "pair" and tuple(map(plain, pair)) in {(plain(source), plain(target)) for source, target in held_out}


def test_faults_found_by_tokenising_drop_only_their_pairs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "BLOCK", 4)
    monkeypatch.setattr(reading, "SHARD", 2)
    train = bench.add("train", [(f"s{n}", f"t{n}") for n in range(5)] + [("s1", "t1")])
    validation = bench.add("validation", [("v1", "v1"), ("v2", "v2")])
    selection = bench.select()
    selection.discard({"longer than max_length": [1], "length ratio": [3, 4]})
    assert _pairs(selection, "train") == [("s0", "t0"), ("s2", "t2")]
    assert selection.dropped(train) == {"duplicate": 1, "longer than max_length": 1, "length ratio": 2}
    assert selection.dropped(validation) == {}
