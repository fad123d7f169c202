"""One model for several directions: pairs of each, tags, weights, and leaks between directions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.conftest import Workshop
from tests.data.test_selection import Bench
from transformer_mt.config.direction import Direction
from transformer_mt.config.schema import Config
from transformer_mt.data import partitions, reading
from transformer_mt.data.parent import Parent
from transformer_mt.data.passes import Origin
from transformer_mt.data.prepare import prepare
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.sampling import SegmentationSampler
from transformer_mt.data.selection import DROPPED_LEAKS, OTHER
from transformer_mt.data.weighing import weighted
from transformer_mt.errors import TmtError
from transformer_mt.workflows.data_remarks import remarks

KO_EN, EN_KO, DE_EN = Direction("ko", "en"), Direction("en", "ko"), Direction("de", "en")
BOTH = {"directions": ["de-en", "en-de"], "source": None, "target": None}
sentences = st.sampled_from(["a", "A!", "b", "c", "d", "e"])
pairs = st.lists(st.tuples(sentences, sentences), max_size=8)


def ids(prepared: Prepared, split: str) -> list[list[int]]:
    store = prepared.store(split)
    return [list(store.source[row]) for row in range(len(store))]


def test_each_pair_is_prepared_once_for_each_direction(workshop: Workshop) -> None:
    rows = workshop.numbered(6)
    prepared = workshop.prepare(workshop.splits(rows, languages=["de", "en"]), **BOTH)
    swapped = [(target, source) for source, target in rows]
    assert workshop.sentences(prepared, "train") == [*rows, *swapped]
    assert prepared.places("train") == {"de-en": [*range(6)], "en-de": [*range(6, 12)]}
    assert prepared.places("test") == {"de-en": [*range(3)], "en-de": [*range(3, 6)]}
    source = prepared.codecs()[0]
    assert source.tags == ("<2en>", "<2de>")
    tags = source.vocabulary.tag_ids(source.tags)
    for split, number in (("train", 6), ("validation", 3), ("test", 3)):
        assert [one[0] for one in ids(prepared, split)] == [tags[0]] * number + [tags[1]] * number
    assert prepared.raw("test")[0][0] == "der Satz 20000 hier"
    assert prepared.raw("test")[0][3] == "the sentence 20000 here"
    figures = prepared.report.directions
    assert {name: one.pairs["train"] for name, one in figures.items()} == {"de-en": 6, "en-de": 6}


def test_a_corpus_of_one_direction_with_a_tag_has_it_only_in_training(workshop: Workshop) -> None:
    natural = workshop.splits(workshop.numbered(4), languages=["de", "en"])
    made = workshop.splits(
        workshop.numbered(5, 100), workshop.numbered(2, 300), workshop.numbered(2, 400), "made", direction="de-en",
        tag="<synthetic>",
    )  # fmt: skip
    prepared = workshop.prepare(natural, made, **BOTH)
    source = prepared.codecs()[0]
    assert source.tags == ("<2en>", "<2de>", "<synthetic>")
    to_english, to_german, synthetic = source.vocabulary.tag_ids(source.tags)
    starts = [one[:2] for one in ids(prepared, "train")]
    assert [one[0] for one in starts] == [to_english] * 4 + [to_german] * 4 + [to_english] * 5
    assert [one[1] == synthetic for one in starts] == [False] * 8 + [True] * 5
    assert not any(synthetic in one for one in [*ids(prepared, "validation"), *ids(prepared, "test")])
    assert [run.tags for run in prepared.runs("train")] == [["<2en>"], ["<2de>"], ["<2en>", "<synthetic>"]]


def test_a_tag_alone_needs_no_directions(workshop: Workshop) -> None:
    plain = workshop.splits(workshop.numbered(4))
    tagged = workshop.splits(workshop.numbered(5, 100), name="more", tag="<synthetic>")
    prepared = workshop.prepare(plain, tagged)
    source, target = prepared.codecs()
    assert (source.tags, target.tags) == (("<synthetic>",), ())
    last = len(source) - 1
    assert [one[0] == last for one in ids(prepared, "train")] == [False] * 4 + [True] * 5


def test_without_tags_nothing_is_written_that_older_versions_did_not_write(workshop: Workshop) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(4)))
    manifest = json.loads((prepared.folder / "manifest.json").read_text(encoding="utf-8"))
    assert {"runs"}.isdisjoint(manifest)
    assert {"directions", "of_examples"}.isdisjoint(manifest["report"])
    assert {"directions"}.isdisjoint(manifest["settings"]["data"])
    assert {"tag", "languages", "direction"}.isdisjoint(manifest["settings"]["data"]["corpus"][0])
    assert not list(prepared.folder.rglob("tags.txt"))


def test_max_length_counts_tags_and_cuts_the_sentence(workshop: Workshop) -> None:
    train = [(" ".join("abcdef"[:size]), "x y z") for size in (4, 5, 6)]
    test = [(" ".join("uvwxyz"), "x x x")]
    corpus = workshop.splits(train, test, test, direction="de-en", tag="<made>")
    prepared = workshop.prepare(corpus, directions=["de-en"], source=None, target=None, max_length=7)
    assert [source for source, _ in workshop.sentences(prepared, "train")] == ["a b c d"]  # 2 tags and the end token
    first = ids(prepared, "test")[0]
    assert (len(first), first[0]) == (7, prepared.codecs()[0].vocabulary.tag_ids(["<2en>"])[0])


def test_a_tag_that_is_a_word_of_the_corpus_is_refused(workshop: Workshop) -> None:
    rows = [*workshop.numbered(3), ("ein <made> Wort", "a word")]
    with pytest.raises(TmtError, match="tag '<made>' is a word of the corpus"):
        workshop.prepare(workshop.splits(rows, tag="<made>"))
    rows[-1] = ("ein <2en> Wort", "a word")
    with pytest.raises(TmtError, match="tag '<2en>' is a word of the corpus") as caught:
        workshop.prepare(workshop.splits(rows, languages=["de", "en"]), **BOTH)
    assert caught.value.remedy == "Change this word in the corpus."


def test_random_segmentations_keep_the_tags(workshop: Workshop) -> None:
    tokenizer = {"kind": "sentencepiece", "vocab_size": 60, "sampling": 0.5, "shared": True}
    corpus = workshop.splits(workshop.numbered(30), languages=["de", "en"])
    prepared = workshop.prepare(corpus, tokenizer=tokenizer, **BOTH)
    sample = SegmentationSampler(prepared)
    to_english, to_german = prepared.codecs()[0].vocabulary.tag_ids(["<2en>", "<2de>"])
    drawn = sample([(pair, str(pair)) for pair in range(60)])
    assert [source[0] for source, _ in drawn] == [to_english] * 30 + [to_german] * 30
    stored = ids(prepared, "train")
    assert any(source != stored[pair] for pair, (source, _) in enumerate(drawn))
    decode = prepared.codecs()[0].decode
    assert all(decode(source) == decode(stored[pair]) for pair, (source, _) in enumerate(drawn))


@settings(max_examples=80, deadline=None)
@given(
    train=st.tuples(pairs, pairs, pairs),
    held_out=st.tuples(pairs, pairs, pairs),
    rule=st.sampled_from(list(DROPPED_LEAKS)),
    block=st.sampled_from([2, 1_000]),
)
def test_no_training_pair_has_a_sentence_of_a_held_out_pair_of_another_direction(
    train: Sequence[Any], held_out: Sequence[Any], rule: str, block: int
) -> None:
    """Compared with a simple implementation, sentence by sentence."""
    directions = KO_EN, EN_KO, DE_EN
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "BLOCK", block)
        patch.setattr(reading, "SHARD", block)
        bench = Bench(Path(folder), leaks=rule)
        for split, columns in (("train", train), ("validation", held_out)):
            for direction, some in zip(directions, columns, strict=True):
                bench.add(split, some).origin = Origin(direction)
        selection = bench.select()
        kept = [
            (stream.origin.direction, pair)
            for stream, pairs_of in zip(selection.streams, _by_stream(selection), strict=True)
            for pair in pairs_of
        ]
    plain = lambda text: text.strip("!").lower()  # noqa: E731
    held = {
        (language, plain(text), direction)
        for direction, some in zip(directions, held_out, strict=True)
        for pair in some
        for language, text in zip(direction, pair, strict=True)
    }
    own_rule = {"pair": "both", "off": "none"}.get(rule, rule)
    expected, sentences_found = [], 0
    for direction, some in zip(directions, train, strict=True):
        own = held_out[directions.index(direction)]
        for pair in dict.fromkeys(some):
            found = [
                any((language, plain(text), other) in held for other in directions if other != direction)
                for language, text in zip(direction, pair, strict=True)
            ]
            sentences_found += sum(found)
            if (any(found) and rule != "off") or _leaks(pair, own, own_rule, plain):
                continue
            expected.append((direction, pair))
    assert kept == expected
    assert selection.leaks["validation"][OTHER] == sentences_found


def _leaks(pair: tuple[str, str], own: Sequence[tuple[str, str]], rule: str, plain: Any) -> bool:
    source, target = map(plain, pair)
    same = [(plain(one) == source, plain(other) == target) for one, other in own]
    judge = {"both": all, "source": lambda both: both[0], "target": lambda both: both[1], "either": any}
    return rule in judge and any(judge[rule](both) for both in same)


def _by_stream(selection: Any) -> list[list[tuple[str, str]]]:
    lines = iter([(line.source, line.target) for line in selection.selected("train")])
    return [[next(lines) for _ in range(count)] for count in selection.counts("train")]


def test_the_reversed_pair_of_a_test_set_is_no_training_pair(workshop: Workshop) -> None:
    forward = workshop.splits(workshop.numbered(5), name="forward", direction="de-en")
    others = [*workshop.numbered(4, 500), ("der Satz 20001 hier", "the sentence 20001 here!"), ("neu", "new")]
    back = workshop.splits(others, workshop.numbered(2, 600), workshop.numbered(2, 700), "back", languages=["de", "en"])
    prepared = workshop.prepare(forward, back, **BOTH)
    found = workshop.sentences(prepared, "train")
    assert ("new", "neu") in found
    assert not any("20001" in source for source, _ in found)
    assert prepared.report.leaks["test"][OTHER] == 2


def test_equal_pairs_of_two_directions_are_no_duplicates(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for split, some in (("train", [("x", "y"), ("x", "y")]), ("validation", [("v", "w")])):
        for direction in (KO_EN, DE_EN):
            bench.add(split, some).origin = Origin(direction)
    assert bench.select().counts("train") == [1, 1, 0, 0]


def test_a_temperature_weighs_directions_and_the_weight_of_a_corpus_stays() -> None:
    parts = [(900, 1.0), (50, 2.0), (0, 1.0), (100, 1.0)]
    found = weighted(parts, 2.0, ["a", "a", "a", "b"])
    seen = [pairs * weight for (pairs, _), weight in zip(parts, found, strict=True)]
    assert sum(seen) == pytest.approx(1_100)
    assert (seen[0] + seen[1]) / seen[3] == pytest.approx(np.sqrt(10))
    assert found[1] / found[0] == pytest.approx(2)
    assert weighted(parts, None, ["a", "a", "a", "b"]) == [weight for _, weight in parts]


def test_a_direction_without_validation_pairs_is_reported_and_one_without_training_pairs_refused(
    workshop: Workshop,
) -> None:
    both = workshop.splits(workshop.numbered(4), direction="de-en")
    training_only = {"validation": 0, "test": 0}
    back = workshop.whole(workshop.numbered(5, 100), "back", direction="en-de", split=training_only)
    report = workshop.prepare(both, back, **BOTH).report
    assert "no validation pairs for en-de" in "\n".join(remark.text for remark in remarks(report))
    leaked = workshop.whole([(target, source) for source, target in workshop.numbered(3, 20_000)], "leaked")
    with pytest.raises(TmtError, match="no pair is left in the train split for en-de") as caught:
        workshop.prepare(both, {**leaked, "direction": "en-de", "split": training_only}, **BOTH)
    assert "'leak' drops 3 of 3 pairs" in (caught.value.remedy or "")


def test_a_message_about_columns_fits_a_file_that_is_read_in_reverse(workshop: Workshop) -> None:
    rows = [(f"{number}", f"the sentence of this number is {number}") for number in range(40)]
    settings = {"languages": ["de", "en"], "split": {"validation": 0.1, "test": 0}}
    data = {"directions": ["en-de"], "source": None, "target": None}
    with pytest.raises(TmtError, match="the target has numbers or ids") as caught:
        workshop.prepare(workshop.whole(rows, **settings), **data)
    assert "Check source_column" in (caught.value.remedy or "")


def test_a_parent_without_tags_keeps_its_vocabulary_and_one_with_tags_gets_no_words(workshop: Workshop) -> None:
    one = workshop.prepare(workshop.splits(workshop.numbered(5)), prepared=str(workshop.folder / "one"))
    corpus = workshop.splits(workshop.numbered(4, 50), languages=["de", "en"])
    parent = Parent("runs/one", one.folder, (Direction("de", "en"),))
    many = prepare(workshop.config(corpus, tokenizer={"kind": "whitespace", "min_frequency": 1}, **BOTH), parent=parent)
    known, tokens = one.codecs()[0].vocabulary.tokens, many.codecs()[0].vocabulary.tokens
    assert tokens == [*known, "<2en>", "<2de>"]
    values = workshop.config(corpus, **BOTH).model_dump(mode="json")
    values["tokenizer"]["extend"], values["training"]["start_from"] = 3, "runs/many"
    with pytest.raises(TmtError, match="a model with tags cannot get new words"):
        Parent("runs/many", many.folder, (Direction("en", "de"), Direction("de", "en"))).with_tags(
            Config.model_validate(values)
        )


@pytest.mark.parametrize(
    "data",
    [{"source": "en", "target": "de"}, {**BOTH, "directions": ["en-de"]}, BOTH],
    ids=["reversed", "one tagged direction", "both directions"],
)
def test_sentences_that_a_parent_of_another_direction_was_trained_on_are_reported(
    workshop: Workshop, data: dict[str, Any]
) -> None:
    rows = workshop.numbered(5)
    one = workshop.prepare(workshop.splits(rows), prepared=str(workshop.folder / "one"))
    test = [*rows[:2], ("ganz neu", "quite new")]
    languages = {"languages": ["de", "en"]} if "directions" in data else {}
    if not languages:
        test = [(target, source) for source, target in test]
    corpus = workshop.splits(workshop.numbered(4, 50), test=test, name="child", **languages)
    config = workshop.config(corpus, tokenizer={"kind": "whitespace", "min_frequency": 1}, **data)
    report = prepare(config, parent=Parent("runs/one", one.folder, (Direction("de", "en"),))).report
    assert report.parent is not None
    count = 2 * len(config.data.all_directions)
    assert report.parent.seen["test"] == {"source": count, "target": count}
    assert report.parent.seen["validation"] == {"source": 0, "target": 0}
