"""Terms in translations: each exactly once, copies byte for byte, with every tokenizer; other lines as before."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_mt.cli import main
from transformer_mt.config.schema import Config
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.model_directory import ModelDirectory
from transformer_mt.decoding.term_reader import Piece
from transformer_mt.decoding.terms import Term, reopened
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import Vocabulary

WORDS = {
    "en": "the cat sees a small house and 7 dogs in 9 towns near Paris",
    "ko": "고양이는 작은 집을 보고 개는 7 시에 9 마을에서 Paris 로 가요",
}
TOKENIZERS: dict[str, dict[str, Any]] = {
    "character": {"kind": "character"},
    "words": {"kind": "whitespace"},
    "words lower": {"kind": "whitespace", "case": "lower"},
    "spacy true": {"kind": "spacy", "case": "true"},
    "bpe": {"kind": "sentencepiece", "vocab_size": 90},
    "bytes": {"kind": "sentencepiece", "vocab_size": 330, "byte_fallback": True},
    "unigram": {"kind": "sentencepiece", "vocab_size": 60, "algorithm": "unigram"},
    "soynlp": {"kind": "soynlp"},
}
COPIES = ["https://a.example/b?c=1", "b.c+d@mail.example", "{name}", "%(count)s", "1.234,56", "2024", "7", "42"]


def random_model(kind: str, **decoding: Any) -> Translator:
    """A model with random weights that never saw the copies; English both ways, or Korean with soynlp."""
    source, target = ("ko", "ko") if kind == "soynlp" else ("en", "en")
    values = {
        "name": "terms",
        "data": {"source": source, "target": "de" if target == "en" else "en", "corpus": {"kind": "phrasebook"}},
        "tokenizer": TOKENIZERS[kind] | ({} if "vocab_size" in TOKENIZERS[kind] else {"min_frequency": 1}),
        "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 2},
        "training": {"max_epochs": 1},
        "decoding": {"max_length_ratio": 1.0, "max_length_offset": 8, "beam": 3, **decoding},
    }
    values["data"]["max_length"] = 64
    config = Config.model_validate(values)
    words = WORDS[target].split()
    draw = random.Random(1)
    sentences = [" ".join(draw.choices(words, k=8)).capitalize() + "." for _ in range(120)]
    segmenter = Segmenter(config.source_tokenizer, target)
    segmenter.train(sentences)
    tokens = segmenter.tokenizer.inventory()
    counts = Counter(token for sentence in sentences for token in segmenter.tokenize(sentence))
    codec = Codec(segmenter, Vocabulary(tokens) if tokens else Vocabulary.count(counts))
    torch.manual_seed(4)
    model = build_model(config, len(codec), len(codec)).eval()
    return Translator([ModelDirectory(Path(), config, model, codec, codec)])


@pytest.fixture(scope="module")
def models() -> dict[str, Translator]:
    return {kind: random_model(kind) for kind in TOKENIZERS}


def copies_of(texts: list[str]) -> list[Term]:
    return [Term(text, text) for text in texts]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_copies_are_in_the_translation_exactly_once(models: dict[str, Translator], kind: str) -> None:
    draw, words = random.Random(2), WORDS["ko" if kind == "soynlp" else "en"].split()
    words = [word for word in words if word not in COPIES]
    lines, terms = [], []
    for _ in range(25):
        some = draw.sample(COPIES, k=draw.randint(1, 4))
        line = draw.choices(words, k=draw.randint(1, 6)) + some
        lines.append(" ".join(draw.sample(line, k=len(line))))
        terms.append(copies_of(sorted(some, key=lambda text: f" {lines[-1]} ".find(f" {text} "))))
    for line, some, answer in zip(lines, terms, models[kind].translate(lines, terms=terms), strict=True):
        assert not [note for note in answer.notes if "without" in note], (line, answer)
        for term in some:
            alone = answer.text
            for other in some:  # 42 may be a part of another copy
                if term.target in other.target and other != term:
                    alone = alone.replace(other.target, " ")
            word = rf"(?<![A-Za-z0-9]){re.escape(term.target)}(?![A-Za-z0-9])"
            assert len(re.findall(word, alone)) == 1, (line, answer.text, term)


LINE = st.lists(
    st.sampled_from([*"abcdef", "cat", "{x}", "{yy}", "http://u.example", "9", "31"]), min_size=1, max_size=7
)


@settings(max_examples=30)
@given(lines=st.lists(LINE, min_size=1, max_size=4))
def test_any_line_of_words_and_copies(tiny_model: Path, lines: list[list[str]]) -> None:
    translator = _tiny(tiny_model)
    texts = [" ".join(words) for words in lines]
    terms = [copies_of([word for word in words if not word.isalpha()]) for words in lines]
    answers = list(translator.translate(texts, terms=terms))
    plain = list(translator.translate(texts))
    for words, answer, before in zip(lines, answers, plain, strict=True):
        expected = Counter(word for word in words if not word.isalpha())
        assert Counter(word for word in answer.text.split() if word in expected) == expected
        if not expected:
            assert (answer.text, answer.tokens, answer.notes) == (before.text, before.tokens, before.notes)


_LOADED: dict[Path, Translator] = {}


def _tiny(folder: Path) -> Translator:
    if folder not in _LOADED:
        _LOADED[folder] = Translator.load([folder])
    return _LOADED[folder]


def test_a_line_does_not_depend_on_its_neighbours(models: dict[str, Translator]) -> None:
    translator = models["bpe"]
    lines = ["the cat", "see {name} near Paris", "a small {name} and {x} house", "7 dogs", "{name} 9"]
    glossary = Glossary({"cat": "tower", "small": "near the house"})
    terms = [glossary.terms(line) for line in lines]
    together = list(translator.translate(lines, terms=terms))
    for line, some, answer in zip(lines, terms, together, strict=True):
        alone = next(translator.translate([line], terms=[some]))
        assert (alone.text, alone.notes) == (answer.text, answer.notes)
        if not some:
            assert alone.tokens == next(translator.translate([line])).tokens


@pytest.mark.parametrize("kind", ["character", "words", "spacy true", "bpe"])
def test_terms_of_several_words_are_forced(models: dict[str, Translator], kind: str) -> None:
    for answer in models[kind].translate(["the cat sees a house"] * 2, terms=[[Term("cat", "small dogs")]] * 2):
        assert answer.text.lower().count("small dogs") == 1
        assert not [note for note in answer.notes if "without" in note]


def test_a_line_of_terms_alone_needs_no_model(models: dict[str, Translator]) -> None:
    (answer,) = models["bpe"].translate(["  {a}: cat, 7! "], terms=[[*copies_of(["{a}"]), Term("cat", "feline")]])
    assert answer.text == "{a}: feline, 7!"


def test_text_that_the_vocabulary_cannot_spell_is_written_all_the_same(models: dict[str, Translator]) -> None:
    for kind, translator in models.items():
        line = "고양이는 가요" if kind == "soynlp" else "the cat sees"
        (answer,) = translator.translate([line], terms=[[Term(line.split()[0], "Größe  ∞ (ß)")]])
        assert answer.text.count("Größe  ∞ (ß)") == 1, kind


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4, "n_best": 3}, {"coverage_penalty": 0.2}])
def test_terms_with_other_searches(options: dict[str, Any]) -> None:
    translator = random_model("bpe", **options)
    terms = [*copies_of(["{x}"]), Term("cat", "house")]
    (answer,) = translator.translate(["see {x} cat"], ["the small"], terms=[terms])
    for one in answer.n_best:
        assert one.text.startswith("the small")
        assert one.text.count("{x}") == one.text.count("house") == 1
    assert 1 <= len(answer.n_best) <= options.get("n_best", 1)


def test_searches_and_terms_that_cannot_be_are_refused() -> None:
    for options in ({"method": "sample"}, {"method": "mbr", "samples": 4}):
        with pytest.raises(TmtError, match="beam search"):
            next(random_model("words", **options).translate(["a {x}"], terms=[copies_of(["{x}"])]))
    other_engine = random_model("words")
    other_engine.constrains = False  # type: ignore[misc]
    with pytest.raises(TmtError, match="this engine"):
        next(other_engine.translate(["a {x}"], terms=[copies_of(["{x}"])]))
    by_beam = random_model("words", method="mbr", candidates="beam")
    assert "{x}" in next(by_beam.translate(["a {x}"], terms=[copies_of(["{x}"])])).text
    for term in (Term("dog", "Hund"), Term("cat", " "), Term("", "x")):
        with pytest.raises(TmtError, match="not in the line"):
            next(by_beam.translate(["a cat"], terms=[[term]]))


def test_what_could_not_be_placed_is_noted() -> None:
    translator = random_model("bpe", max_length_ratio=0.0, max_length_offset=1, no_repeat_ngram=1)
    (answer,) = translator.translate(["cat cat a"], terms=[[Term("cat", "Paris")] * 2])
    assert any(note.startswith("without the term") for note in answer.notes)


def test_an_ensemble_and_many_copies() -> None:
    one = random_model("bpe")
    members = [ModelDirectory(Path(), one.config, one.models[0], one.source, one.target)] * 2
    many = [f"{{field{number}}}" for number in range(12)]
    line = " ".join(islice((word for pair in zip(cycle(["cat"]), many, strict=False) for word in pair), 24))
    (answer,) = Translator(members).translate([line], terms=[copies_of(many)])
    assert all(answer.text.count(text) == 1 for text in many)


def test_a_quotation_touches_what_it_opens(models: dict[str, Translator]) -> None:
    (answer,) = models["words"].translate(["the ( {x} ) cat"], terms=[copies_of(["{x}"])])
    assert answer.text.count("{x}") == 1


@pytest.mark.parametrize(
    ("text", "opener", "expected"),
    [
        ("A man #) runs.", "(", "A man (#) runs."),
        ("A man (#) runs.", "(", "A man (#) runs."),
        ("A man (in #) runs.", "(", "A man (in #) runs."),
        ("A man # runs.", "(", "A man # runs."),
        ('He calls #".', '"', 'He calls "#".'),
        ('He "calls #".', '"', 'He "calls #".'),
        ("He calls #“.", "„", "He calls „#“."),
    ],
)
def test_a_bracket_that_closes_after_a_copy_opens_before_it(text: str, opener: str, expected: str) -> None:
    assert reopened(text, "#", opener) == expected


def test_a_glossary_binds_the_places_that_it_has_found(models: dict[str, Translator]) -> None:
    """Not the first place with the same text: `3만` is another number than 3, and `catfish` no cat."""
    translator = models["soynlp"]
    line = "개는 3만 집을 보고 3 시에 가요."
    spans = Glossary({}).spans(line)
    for piece in (*translator._parts(line, "", spans), Piece(line, "", spans)):
        bound = translator._read(*piece).bound
        assert bound is not None
        assert [given for _, given in bound.parts] == ["개는 3만 집을 보고 ", "3", " 시에 가요."]
    spans = Glossary({"고양이": "cat"}).spans("고양이털은 고양이 집에")
    assert [span.start for span in spans] == [6]


@pytest.mark.parametrize(("kind", "part"), [("bpe", "hous"), ("bytes", "hous"), ("unigram", "ho")])
def test_a_term_whose_beginning_has_more_tokens_than_its_line(
    models: dict[str, Translator], kind: str, part: str
) -> None:
    translator = models[kind]
    line = "house" if len(part) == 2 else "houses"
    tokenize = translator.source.segmenter.tokenize
    assert len(tokenize(part)) > len(tokenize(line))
    answer = translator.translate(line, terms=[Term(part, "the cat")])
    assert "the cat" in answer.text.casefold()
    (bound,) = [one.bound for one in [translator._read(line, "", [Term(part, "the cat")])] if one.bound is not None]
    assert all(place < len(tokenize(line)) for one in bound.constraints for place in one.sources)


def test_the_shortest_member_of_an_ensemble_decides_what_is_read() -> None:
    long, short = random_model("words"), random_model("words")
    data = short.config.data.model_copy(update={"max_length": 6})
    directories = [
        ModelDirectory(Path(), config, one.models[0], one.source, one.target)
        for one, config in ((long, long.config), (short, short.config.model_copy(update={"data": data})))
    ]
    answer = Translator(directories).translate("the cat sees a small house and dogs", terms=[Term("dogs", "a cat")])
    assert "cut to 5 of 8 tokens" in " ".join(answer.notes)


def test_a_prefix_comes_first_also_in_pieces() -> None:
    translator = random_model("words", no_repeat_ngram=2)
    line, terms = "{a} the cat sees. {b} a small house", [Term("{a}", "{a}"), Term("{b}", "{b}")]
    pieces = translator.terms.read(line, terms, "near Paris").pieces
    assert [piece.prefix for piece in pieces if piece.prefix] == ["near Paris"]
    assert pieces[0].prefix == "near Paris"


@pytest.mark.parametrize("kind", ["bpe", "bytes", "words"])
def test_an_n_best_list_with_terms_has_different_texts(models: dict[str, Translator], kind: str) -> None:
    translator, draw = random_model(kind, beam=8, n_best=6), random.Random(1)
    lines = [" ".join(draw.choices(WORDS["en"].split(), k=draw.randint(2, 6))) for _ in range(30)]
    terms = Glossary({"cat": "small house", "Paris": "town", "dogs": "cat"})
    for answer in translator.translate(lines, terms=terms):
        texts = [one.text for one in answer.n_best]
        assert len(set(texts)) == len(texts), texts


def test_an_unknown_word_of_the_prefix_is_not_a_stand_in() -> None:
    """If no word can stand for a copy, `<unk>` does; then a prefix with unknown words would be taken for it."""
    translator = random_model("words")
    translator.terms.tokens._stand_ins = []
    answer = translator.translate("the {name} sees a house", "zzz the cat", terms=[Term("{name}", "{name}")])
    assert answer.text.startswith("<unk> the cat"), answer
    assert answer.text.count("{name}") == 1


def test_a_glossary_is_not_overwritten(tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    glossary = tmp_path / "g.tsv"
    glossary.write_text("cat\tKatze\n", encoding="utf-8")
    files = ["--glossary", str(glossary), "--output", str(tmp_path / "." / "g.tsv")]
    assert main.main(["translate", "--model", str(tiny_model), *files, "a cat"]) == 2
    assert "--output is the same file as --glossary" in capsys.readouterr().err
    assert glossary.read_text(encoding="utf-8") == "cat\tKatze\n"
