"""From a corpus to ids: what the rules drop, the content of the splits, and the alignment of pairs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pydantic import ValidationError

from transformer_mt.data.parallel import CHUNK
from transformer_mt.data.prepared import Prepared
from transformer_mt.errors import TmtError
from transformer_mt.text.vocabulary import EOS, UNK

pytestmark = pytest.mark.slow

ODD = "\t\n\r\v\f\x00\x07\x1c\x1d\x1e\x1f\x7f\x85\xa0\xad\u200b\u2028\u2029\u2581\ufeff\ufffe\ud800\udfff\U0001f600"
PLAIN = {"kind": "whitespace", "min_frequency": 1}


def _pair_counts(prepared: Any, split: str) -> tuple[int, dict[str, int], int]:
    row = prepared.manifest.report["pairs"][split]
    return row["read"], dict(row["dropped"]), row["kept"]


# Cleaning


@pytest.mark.parametrize(
    ("pair", "rule"),
    [
        (("", "nothing"), "empty side"),
        (("nichts", " \u200b\t"), "empty side"),
        (("gleich", "gleich"), "identical sides"),
        (("a" * 2_001, "long"), "too many characters"),
        (("der Satz 1 hier", "the sentence 1 here"), "duplicate"),
        (("  der Satz\t1 hier ", "the sentence 1 here\r"), "duplicate"),
        (("der Satz 10000 hier", "the sentence 10000 here"), "leak"),
        (("DER SATZ 20001, HIER!", "The sentence 20001 here."), "leak"),
        (("eins " * 128, "one " * 100), "longer than max_length"),
        (("eins", "one " * 20), "length ratio"),
    ],
)
def test_each_rule_drops_its_training_pair_and_counts_it(workshop: Any, pair: tuple[str, str], rule: str) -> None:
    prepared = workshop.prepare(workshop.splits([*workshop.numbered(4), pair, *workshop.numbered(2, 4)]))
    assert _pair_counts(prepared, "train") == (7, {rule: 1}, 6)
    assert workshop.sentences(prepared, "train") == workshop.numbered(6)
    assert _pair_counts(prepared, "validation") == _pair_counts(prepared, "test") == (3, {}, 3)


@pytest.mark.parametrize(
    ("pair", "rules"),
    [
        (("gleich", "gleich"), {"identical": False}),
        (("a" * 2_001, "long"), {"max_characters": 3_000}),
        (("der Satz 1 hier", "the sentence 1 here"), {"duplicates": False}),
        (("der Satz 10000 hier", "the sentence 10000 here"), {"leaks": "off"}),
        (("eins", "one " * 20), {"max_ratio": None}),
    ],
)
def test_each_rule_can_be_switched_off(workshop: Any, pair: tuple[str, str], rules: dict[str, Any]) -> None:
    prepared = workshop.prepare(workshop.splits([*workshop.numbered(4), pair]), cleaning=rules)
    assert _pair_counts(prepared, "train") == (5, {}, 5)


@pytest.mark.parametrize(
    ("text", "rules", "changed"),
    [
        ("Ko\u0308ln", {}, "NFC"),
        ("Ｋöln", {"unicode": "NFKC"}, "NFKC"),
        ("Kö\u00adln", {}, "control characters"),
        ("Köln\u00a0 am Rhein", {}, "white space"),
        ("ㅋㅋㅋㅋㅋㅋ", {"max_repeats": 2}, "repeats"),
    ],
)
def test_each_rule_that_changes_sentences_counts_them(
    workshop: Any, text: str, rules: dict[str, Any], changed: str
) -> None:
    corpus = workshop.splits([*workshop.numbered(4), (text, "Cologne")], validation=[(text, "Cologne on the Rhine")])
    prepared = workshop.prepare(corpus, cleaning=rules, source="ko")
    pairs = prepared.manifest.report["pairs"]
    assert [pairs[split]["changed"] for split in ("train", "validation", "test")] == [{changed: 1}, {changed: 1}, {}]


def test_korean_repeats_are_shortened_only_on_the_korean_side(workshop: Any) -> None:
    corpus = workshop.splits([("ㅋㅋㅋㅋㅋㅋ", "ㅋㅋㅋㅋㅋㅋ ha"), *workshop.numbered(2)])
    prepared = workshop.prepare(corpus, cleaning={"max_repeats": 2}, source="ko")
    assert workshop.sentences(prepared, "train")[0] == ("ㅋㅋ", "ㅋㅋㅋㅋㅋㅋ ha")


def test_evaluation_splits_lose_only_pairs_with_an_empty_side(workshop: Any) -> None:
    unusual = [
        ("gleich", "gleich"),
        ("gleich", "gleich"),
        ("a" * 2_001, "long"),
        ("eins", "one " * 20),
        ("eins " * 300, "one"),
        ("", "nothing"),
    ]
    prepared = workshop.prepare(workshop.splits(workshop.numbered(4), validation=unusual, test=unusual))
    for split in ("validation", "test"):
        assert _pair_counts(prepared, split) == (6, {"empty side": 1}, 5)
        assert prepared.raw(split)[0] == [source for source, _ in unusual[:-1]]


def test_evaluation_sentences_are_cut_and_counted(workshop: Any) -> None:
    exact, long = ("a " * 9).strip(), ("a " * 10).strip()
    test = [(exact, "short"), (long, "short"), ("kurz", long), ("kurz", exact)]
    prepared = workshop.prepare(workshop.splits(workshop.numbered(4), test=test), max_length=10)
    store, figures = prepared.store("test"), prepared.manifest.report["splits"]["test"]
    assert store.source.lengths.tolist() == [10, 10, 2, 2]
    assert store.target.lengths.tolist() == [2, 2, 10, 10]
    assert all(store.source[row][-1] == EOS for row in range(4))
    assert (figures["cut"], figures["source"]["longest"]) == (2, 10)
    assert prepared.raw("test")[0][1] == long  # not cut: translations are scored against it


def test_raw_text_of_evaluation_splits_is_not_cleaned(workshop: Any) -> None:
    raw = [("Ko\u0308ln\u00a0 ist „groß“", "Cologne\u2028is\u200b big "), ("ja", "yes")]
    prepared = workshop.prepare(workshop.splits(workshop.numbered(4), test=raw))
    assert list(zip(*prepared.raw("test"), strict=True)) == raw


# Splits and several corpora


def test_a_corpus_is_divided_by_seed_and_no_pair_is_lost(workshop: Any) -> None:
    pairs = workshop.numbered(100)

    def splits(seed: int, **data: Any) -> dict[str, set[tuple[str, str]]]:
        corpus = workshop.whole(pairs, split={"seed": seed})
        prepared = workshop.prepare(corpus, tokenizer={"kind": "character", "min_frequency": 1}, **data)
        found = {split: workshop.sentences(prepared, split) for split in prepared.splits}
        assert {split: len(sentences) for split, sentences in found.items()} == {
            "train": 80,
            "validation": 10,
            "test": 10,
        }
        return {split: set(sentences) for split, sentences in found.items()}

    once = splits(1)
    assert set.union(*once.values()) == set(pairs)
    assert splits(1, prepared=str(workshop.folder / "elsewhere")) == once
    assert splits(2) != once


def test_a_corpus_is_divided_at_random(workshop: Any) -> None:
    prepared = workshop.prepare(workshop.whole(workshop.numbered(100)))
    assert sorted(workshop.sentences(prepared, "test")) != sorted(workshop.numbered(10, 90))


def test_split_sizes_are_shares_or_numbers_of_pairs(workshop: Any) -> None:
    sizes = {
        (0.25, 7): (25, 7),
        (1, 0): (1, 0),  # no test set
        (0.001, 0.001): (1, 1),  # a share gives at least one pair
    }
    for (validation, test), expected in sizes.items():
        corpus = workshop.whole(workshop.numbered(100), split={"validation": validation, "test": test})
        splits = workshop.prepare(corpus).manifest.splits
        assert (splits["validation"], splits.get("test", 0), sum(splits.values())) == (*expected, 100)


@pytest.mark.parametrize(("validation", "test"), [(5, 5), (0.5, 5), (10, 0.1)])
def test_splits_that_leave_no_training_pair_are_refused(workshop: Any, validation: float, test: float) -> None:
    corpus = workshop.whole(workshop.numbered(10), split={"validation": validation, "test": test})
    with pytest.raises(TmtError, match="a corpus of 10 pairs is too small"):
        workshop.prepare(corpus)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_an_empty_split_is_reported_by_name(workshop: Any, split: str) -> None:
    with pytest.raises(TmtError, match=f"no pair is left in the {split} split"):
        workshop.prepare(workshop.splits(**{"train": workshop.numbered(4), split: [("", "nothing")]}))
    assert not (workshop.folder / "prepared" / "work").exists()


def test_a_training_split_that_is_empty_after_tokenising_is_reported(workshop: Any) -> None:
    with pytest.raises(TmtError, match="no pair is left in the train split"):
        workshop.prepare(workshop.splits(workshop.numbered(4)), max_length=3)


def test_several_corpora_are_concatenated_with_their_weights(workshop: Any) -> None:
    one = workshop.splits([*workshop.numbered(10), ("doppelt", "twice"), ("eins", "one " * 20)], name="one", weight=3)
    two = workshop.whole([("doppelt", "twice"), *workshop.numbered(20, 100)], name="two", weight=0.5)
    prepared = workshop.prepare(one, two)
    assert prepared.parts == [(11, 3.0), (16, 0.5)]
    assert prepared.manifest.splits == {"train": 27, "validation": 5, "test": 5}
    assert workshop.sentences(prepared, "train")[:11] == [*workshop.numbered(10), ("doppelt", "twice")]
    assert set(workshop.sentences(prepared, "train")[11:]) < set(workshop.numbered(20, 100))
    assert _pair_counts(prepared, "train") == (12, {"length ratio": 1}, 11)
    assert _pair_counts(prepared, "all") == (21, {"duplicate": 1}, 20)


def test_a_corpus_for_training_may_contain_only_duplicates(workshop: Any) -> None:
    none = {"validation": 0, "test": 0}
    again = workshop.whole(workshop.numbered(5), name="again", split=none)
    more = workshop.whole(workshop.numbered(8), name="more", split=none)
    prepared = workshop.prepare(workshop.splits(workshop.numbered(6)), again, more)
    assert [pairs for pairs, _ in prepared.parts] == [6, 0, 2]
    assert prepared.manifest.splits == {"train": 8, "validation": 3, "test": 3}


def test_leaks_are_found_across_corpora(workshop: Any) -> None:
    one = workshop.splits(workshop.numbered(10), name="one")
    two = workshop.splits(workshop.numbered(3, 20), name="two", validation=workshop.numbered(2, 5), test=[("x", "y")])
    prepared = workshop.prepare(one, two)
    assert _pair_counts(prepared, "train") == (13, {"leak": 2}, 11)
    assert prepared.parts == [(8, 1.0), (3, 1.0)]
    assert prepared.manifest.report["leaks"]["validation"] == {"pair": 2, "source": 2, "target": 2}


def test_test_sets_keep_their_names(workshop: Any) -> None:
    names = ("duplicate", "leak", "news", "talks.2", "lengths", "manifest.json-1")
    sets = {name: workshop.table(name, workshop.numbered(2, 100 * n)) for n, name in enumerate(names, start=1)}
    prepared = workshop.prepare({**workshop.splits(workshop.numbered(5)), "test": sets})
    assert prepared.splits == ("train", "validation", *names)
    for number, name in enumerate(names, start=1):
        assert list(zip(*prepared.raw(name), strict=True)) == workshop.numbered(2, 100 * number)
    assert _pair_counts(prepared, "train") == (5, {}, 5)


@pytest.mark.parametrize("name", ["source", "target", "scratch", "plots", "manifest.json"])
def test_test_sets_cannot_have_names_of_other_folders(workshop: Any, name: str) -> None:
    corpus = {**workshop.splits(workshop.numbered(5)), "test": {name: workshop.table("other", workshop.numbered(2))}}
    with pytest.raises(ValueError, match=f"'{name}' cannot be the name of a test set"):
        workshop.config(corpus)


# Text of any kind


def _odd_text(chance: random.Random) -> str:
    return "".join(chance.choice(ODD) if chance.random() < 0.5 else chance.choice("abc  ") for _ in range(12))


@pytest.mark.parametrize("without_cleaning", [False, True])
@pytest.mark.parametrize(
    "tokenizer",
    [
        PLAIN,
        {"kind": "character", "min_frequency": 1},
        {"kind": "spacy", "min_frequency": 1, "case": "lower"},
        {"kind": "soynlp", "min_frequency": 1},
        {"kind": "sentencepiece", "vocab_size": 60, "byte_fallback": False, "sampling": 0.1, "shared": True},
    ],
    ids=lambda tokenizer: tokenizer["kind"],
)
def test_no_character_breaks_the_alignment(workshop: Any, tokenizer: dict[str, Any], without_cleaning: bool) -> None:
    chance = random.Random(4)
    numbers = {"train": range(100), "validation": range(10), "test": range(10, 20)}
    splits = {
        split: [(f"q{n} {_odd_text(chance)}", f"z{n} {_odd_text(chance)}") for n in numbers[split]] for split in numbers
    }
    off = {"control_characters": False, "unicode": "off", "whitespace": "off"} if without_cleaning else {}
    prepared = workshop.prepare(workshop.splits(**splits), tokenizer=tokenizer, cleaning={"max_ratio": None, **off})
    texts = numbers if tokenizer.get("sampling") else ("validation", "test")
    found = [(split, workshop.sentences(prepared, split)) for split in numbers]
    found += [(split, list(zip(*prepared.raw(split), strict=True))) for split in texts]
    for split, pairs in found:
        starts = [tuple(side.split()[0] for side in pair) for pair in pairs]
        assert starts == [(f"q{n}", f"z{n}") for n in numbers[split]]


def test_raw_text_is_valid_utf8_even_for_lone_surrogates(workshop: Any) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(3), test=[("halb \ud83d", "half \udc00 char")]))
    text = (prepared.folder / "test" / "source.txt").read_bytes().decode("utf-8")
    assert text == "halb \ufffd\n"
    assert prepared.raw("test") == (["halb \ufffd"], ["half \ufffd char"])


# Tokenizers and vocabularies


def test_vocabularies_count_only_the_kept_training_pairs(workshop: Any) -> None:
    dropped = [("gleich gleich", "gleich gleich"), ("lang " * 200, "long " * 200), ("der Satz 10000 hier",) * 2]
    prepared = workshop.prepare(
        workshop.splits([*workshop.numbered(3), *dropped]), tokenizer={"kind": "whitespace", "min_frequency": 2}
    )
    source, target = prepared.codecs()
    assert source.vocabulary.tokens[4:] == ["Satz", "der", "hier"]
    assert target.vocabulary.tokens[4:] == ["here", "sentence", "the"]
    assert prepared.store("test").source[0].count(UNK) == 1


def test_a_shared_vocabulary_is_one_folder_and_one_object(workshop: Any) -> None:
    tokenizer = {"kind": "sentencepiece", "vocab_size": 64, "shared": True}
    prepared = workshop.prepare(workshop.whole(workshop.numbered(200)), tokenizer=tokenizer)
    source, target = prepared.codecs()
    assert source is target
    assert not (prepared.folder / "target").exists()
    assert len(source) == 64
    assert prepared.manifest.report["vocabulary"] == {"source": 64, "target": 64}
    assert set(workshop.sentences(prepared, "train")) <= set(workshop.numbered(200))
    for split in prepared.splits:
        assert prepared.store(split).source.ids.max() < 64


def test_two_languages_share_a_vocabulary_but_not_their_tokenizer_rules(workshop: Any) -> None:
    """English rules split "don't"; German ones keep it whole."""
    train = [(f"Haus {n} blau", f"don't {n} blue") for n in range(20)]
    tokenizer = {"kind": "spacy", "shared": True, "min_frequency": 1}
    source, target = workshop.prepare(workshop.splits(train), tokenizer=tokenizer).codecs()
    assert source.vocabulary == target.vocabulary
    assert {"Haus", "n't"} <= set(source.vocabulary.tokens)
    assert target.decode(target.encode("don't 3 blue")) == "don't 3 blue"


def test_a_shared_tokenizer_learns_from_at_most_training_sentences(workshop: Any) -> None:
    """Both sides share the limit; the pairs are spread over the corpus."""
    tokenizer = {"kind": "sentencepiece", "vocab_size": 40, "shared": True, "training_sentences": 20}
    corpus = workshop.splits([("aaa", "bbb")] * 45 + [("ccc", "ddd")] * 45 + [("xyz", "uvw")])
    prepared = workshop.prepare(corpus, tokenizer={**tokenizer, "vocab_size": 32}, cleaning={"duplicates": False})
    characters = set("".join(prepared.codecs()[0].vocabulary.tokens[4:]))
    assert set("abcd") <= characters


def test_text_for_sampling_has_the_order_of_the_ids_even_after_drops(workshop: Any) -> None:
    pairs = workshop.numbered(300)
    damaged = list(pairs)
    for place, bad in (
        (0, ("eins", "one " * 30)),
        (7, ("gleich", "gleich")),
        (100, pairs[3]),
        (299, ("a " * 200, "b")),
    ):
        damaged[place] = bad
    tokenizer = {"kind": "sentencepiece", "vocab_size": 70, "sampling": 0.1, "shared": True}
    prepared = workshop.prepare(workshop.whole(damaged), tokenizer=tokenizer)
    codec, store = prepared.codecs()[0], prepared.store("train")
    sources, targets = prepared.training_text()
    assert len(sources) == len(targets) == len(store) > 200
    assert [codec.encode(text) for text in sources] == [store.source[row] for row in range(len(store))]
    assert [codec.encode(text) for text in targets] == [store.target[row] for row in range(len(store))]


def test_training_text_that_lacks_lines_is_refused(workshop: Any) -> None:
    tokenizer = {"kind": "sentencepiece", "vocab_size": 70, "sampling": 0.1, "shared": True}
    prepared = workshop.prepare(workshop.whole(workshop.numbered(300)), tokenizer=tokenizer)
    file = prepared.folder / "train" / "target.txt"
    file.write_bytes(file.read_bytes().partition(b"\n")[2])
    with pytest.raises(TmtError, match="the text files are damaged: 240 sources, 239 targets and 240 pairs") as error:
        prepared.training_text()
    assert "tmt prepare" in error.value.remedy


def test_training_text_is_stored_only_for_sampling(workshop: Any) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(5)))
    with pytest.raises(TmtError, match="the text of this split is not stored"):
        prepared.raw("train")


# Processes


@pytest.mark.parametrize(
    "tokenizer",
    [
        {"source": {"kind": "soynlp", "min_frequency": 1}, "target": {"kind": "whitespace"}},
        {"kind": "sentencepiece", "vocab_size": 100, "sampling": 0.1, "shared": True},
    ],
    ids=["words", "pieces"],
)
def test_two_workers_write_the_same_bytes_as_one(workshop: Any, tokenizer: dict[str, Any]) -> None:
    pairs = workshop.numbered(2 * CHUNK + 7)
    pairs[5], pairs[CHUNK + 1], pairs[2 * CHUNK] = ("", "nothing"), pairs[3], ("eins", "one " * 30)
    corpus = workshop.whole(pairs)
    one = workshop.prepare(corpus, tokenizer=tokenizer, workers=1)
    two = workshop.prepare(corpus, tokenizer=tokenizer, workers=2, prepared=str(workshop.folder / "two"))
    content = workshop.content(one.folder)
    assert content == workshop.content(two.folder)
    assert {"source/vocabulary.txt", "train/source.ids", "test/target.offsets", "manifest.json"} < set(content)


def test_a_word_of_the_vocabulary_that_a_flipped_bit_changes_is_noticed(workshop: Any) -> None:
    folder = workshop.prepare(workshop.splits(workshop.numbered(3)), tokenizer={"kind": "whitespace"}).folder
    assert Prepared.open(folder).codecs()
    (folder / "target" / ".DS_Store").write_bytes(b"of the system")
    assert Prepared.open(folder).codecs()
    file = folder / "target" / "vocabulary.txt"
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    with pytest.raises(TmtError, match="the tokenizers are damaged: their checksum differs") as error:
        Prepared.open(folder).codecs()
    assert "--force" in error.value.remedy


def test_a_manifest_with_a_flipped_bit_in_a_name_is_damaged(workshop: Any) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(3)), tokenizer={"kind": "whitespace"})
    sides = prepared.manifest.report["vocabulary"]
    sides["tarfet"] = sides.pop("target")
    with pytest.raises(TmtError, match="the manifest is damaged"):
        prepared.store("train")


def test_a_corpus_may_have_train_alone_if_another_gives_validation_pairs(workshop: Any) -> None:
    alone = {"kind": "jsonl", "train": workshop.table("more", workshop.numbered(50, 1_000))}
    prepared = workshop.prepare(workshop.splits(workshop.numbered(20)), alone)
    assert prepared.manifest.splits == {"train": 70, "validation": 3, "test": 3}
    for others in ((), (workshop.whole(workshop.numbered(20), split={"validation": 0, "test": 2}),)):
        with pytest.raises(ValidationError, match="`train` needs `validation` too, here or in another corpus"):
            workshop.config(alone, *others)
