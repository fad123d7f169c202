"""The phrasebook as a corpus: deterministic, without repeated sentences, one translation each, with held-out pairs."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from itertools import islice
from random import Random

import pytest

from transformer_mt import phrasebook
from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import english, generate, german, korean
from transformer_mt.phrasebook.holdout import combinations, split_of
from transformer_mt.phrasebook.sampling import Sampler

pytestmark = pytest.mark.slow

SAY = {"ko": korean.realise, "en": english.realise, "de": german.realise}


def meanings(count: int, polite_freely: bool, seed: int = 1):
    sampler = Sampler(Random(seed), polite_freely)
    return [sampler.draw() for _ in range(count)]


@pytest.fixture(scope="module")
def free():
    return meanings(50_000, polite_freely=True)


@pytest.fixture(scope="module")
def bound():
    return meanings(50_000, polite_freely=False)


@pytest.fixture(scope="module")
def corpus():
    return {split: list(generate("ko", "en", split, count, 1)) for split, count in
            (("train", 20_000), ("validation", 500), ("test", 1_000))}  # fmt: skip


def conflicts(drawn, source: str, target: str) -> list[tuple[str, str, str]]:
    known: dict[str, str] = {}
    pairs = ((SAY[source](meaning), SAY[target](meaning)) for meaning in drawn)
    return [(text, known[text], other) for text, other in pairs if known.setdefault(text, other) != other]


@pytest.mark.parametrize("target", ["en", "de"])
def test_korean_determines_its_translation(free, target):
    assert conflicts(free, "ko", target) == []


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("en", "de"), ("en", "ko"), ("de", "ko")])
def test_a_source_determines_its_translation(bound, source, target):
    assert conflicts(bound, source, target) == []


def test_same_seed_same_pairs_other_seed_other_pairs():
    one = list(generate("ko", "en", "train", 300, 1))
    assert one == list(generate("ko", "en", "train", 300, 1))
    assert one[:100] == list(generate("ko", "en", "train", 100, 1))
    other = set(generate("ko", "en", "train", 300, 2))
    assert len(other & set(one)) < 30


def test_hash_randomisation_changes_nothing():
    code = (
        "from hashlib import sha256\n"
        "from transformer_mt.phrasebook import generate\n"
        "print(sha256(repr(list(generate('de', 'en', 'test', 200, 3))).encode()).hexdigest())"
    )
    here = sha256(repr(list(generate("de", "en", "test", 200, 3))).encode()).hexdigest()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        assert run.stdout.strip() == here, run.stderr


def test_pairs_are_distinct_within_and_across_splits(corpus):
    pairs = [pair for split in corpus.values() for pair in split]
    assert len({source for source, _ in pairs}) == len(pairs) == 21_500


def test_no_combination_of_the_test_occurs_in_training(free):
    seen = {split: set() for split in phrasebook.SPLITS}
    for meaning in free:
        split = split_of(meaning)
        if split:
            seen[split].update(combinations(meaning))
    reserved = seen["test"] - seen["train"]
    assert len(reserved) > 100
    for meaning in free:
        held = {split for split in phrasebook.SPLITS[1:] if set(combinations(meaning)) & (seen[split] - seen["train"])}
        if split_of(meaning) in phrasebook.SPLITS[1:]:
            assert held == {split_of(meaning)}, korean.realise(meaning)


def test_held_out_objects_do_not_occur_in_training_text(corpus):
    def objects(pairs, verb: str) -> set[str]:
        return {source.split()[-2] for source, target in pairs if f" {verb} " in target}

    train, test = objects(corpus["train"], "likes"), objects(corpus["test"], "likes")
    assert train
    assert test
    assert not train & test


def test_each_word_of_the_test_occurs_in_training(corpus):
    def words(split: str) -> set[str]:
        return {word.strip(".,?").lower() for _, target in corpus[split] for word in target.split()}

    assert words("test") <= words("train")
    assert words("validation") <= words("train")


def test_at_least_three_hundred_content_words_are_used(free):
    used = {(kind, a) for m in free for kind, a, _ in combinations(m)} | {b for m in free for *_, b in combinations(m)}
    assert len(used) >= 300


def test_sentences_are_clean_and_short(corpus):
    for source, target in corpus["train"]:
        for text in (source, target):
            assert text == " ".join(text.split())
            assert text[-1] in ".?"
            assert len(text.split()) <= 20
        assert target[0].isupper()


def test_both_politeness_levels_occur_with_korean_as_the_source(corpus):
    formal = sum(source[:-1].endswith(("니다", "니까", "십시오")) for source, _ in corpus["train"])
    assert 0.3 < formal / len(corpus["train"]) < 0.7


def test_every_direction_streams():
    for source in phrasebook.LANGUAGES:
        for target in phrasebook.LANGUAGES:
            if source != target:
                assert len(list(islice(generate(source, target, "validation", 10**7, 1), 20))) == 20


def test_an_exhausted_grammar_says_so(monkeypatch):
    monkeypatch.setattr(phrasebook, "_MAX_REPEATS", 3)
    monkeypatch.setattr(phrasebook, "_HASH_BITS", 6)
    with pytest.raises(TmtError, match="no more train sentences"):
        list(generate("ko", "en", "train", 1_000, 1))
