"""Pieces from a file of SentencePiece: they must split as the library itself does with that file."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.errors import TmtError
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.tokenizers.piece_file import NORMAL, UNUSED, Piece, model_of
from transformer_mt.text.tokenizers.sentencepiece_model import SentencepieceModelTokenizer
from transformer_mt.text.vocabulary import MARKS, UNK, Vocabulary

_DRAW = random.Random(3)
_WORDS = ["".join(_DRAW.choices("aeinorstlhcpm", k=_DRAW.randint(2, 7))) for _ in range(200)]
TEXT = [" ".join(_DRAW.choices(_WORDS, k=5)) + f" {number}" for number in range(300)]
ODD = [
    "two  spaces   here",
    "a zebra ünïcode <ent> then 漢字 <s> x",
    "😀 <0x41> </s>",
    "2024 <pad>",
    "",
    "unbelievably" * 30,
]
MODELS: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "bpe": {"model_type": "bpe"},
    "identity": {"normalization_rule_name": "identity"},
    "bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 400},
    "symbols": {"model_type": "bpe", "user_defined_symbols": ["<ent>", "the"], "control_symbols": ["<mask>"]},
    "long": {"model_type": "unigram", "split_by_whitespace": False, "max_sentencepiece_length": 30},
    "several spaces": {"model_type": "bpe", "remove_extra_whitespaces": False},
    "other marks": {"bos_id": -1, "pad_id": 3, "unk_piece": "[UNK]", "eos_piece": "[EOS]"},
}


def written(folder: Path, **options: Any) -> sentencepiece.SentencePieceProcessor:
    """Trains a model as another program would, and writes it to the file `given.spm`."""
    model = io.BytesIO()
    settings = {"vocab_size": 90, "minloglevel": 2, "num_threads": 1, **options}
    text = iter(settings.pop("sentences", TEXT))
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=text, model_writer=model, **settings)
    (folder / "given.spm").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def options(folder: Path, **values: object) -> SentencepieceModelTokenizer.Options:
    given = {"kind": "sentencepiece_model", "file": str(folder / "given.spm"), **values}
    return SentencepieceModelTokenizer.Options.model_validate(given)


def segmenter(folder: Path, **values: object) -> Segmenter:
    made = Segmenter(options(folder, **values), "en")
    made.train([])
    return made


@pytest.mark.parametrize("name", MODELS)
def test_it_splits_as_sentencepiece_does_with_the_file(tmp_path: Path, name: str) -> None:
    library, made = written(tmp_path, **MODELS[name]), segmenter(tmp_path)
    (tmp_path / "given.spm").unlink()  # it is a part of the tokenizer now
    made.save(tmp_path / "saved")
    pieces = made.tokenizer.inventory() or []
    assert tuple(pieces[:4]) == MARKS
    assert set(pieces) - set(MARKS) == {
        library.id_to_piece(index)
        for index in range(library.get_piece_size())
        if not (library.is_control(index) or library.is_unknown(index))
    }
    vocabulary = Vocabulary(pieces)
    for one in (made, Segmenter.load(tmp_path / "saved")):
        for text in [*TEXT[:50], *ODD]:
            tokens = one.tokenize(text)
            unmarked = [part for token in tokens for part in (token if token in MARKS else [token])]
            assert unmarked == [
                part for token in library.encode(text, out_type=str) for part in (token if token in MARKS else [token])
            ]
            assert one.ids_of([text]) == [vocabulary.encode(tokens)]


def test_the_ids_are_not_those_of_the_file_whose_marks_stand_elsewhere(tmp_path: Path) -> None:
    library, made = written(tmp_path, bos_id=-1, pad_id=3, unk_id=0, eos_id=1), segmenter(tmp_path)
    assert made.ids_of(["漢"]) == [[(made.tokenizer.inventory() or []).index("▁"), UNK]]
    assert library.encode("漢")[-1] == library.unk_id() != UNK


@pytest.mark.parametrize("name", ["unigram", "bpe", "bytes", "long"])
def test_segmentations_can_be_drawn(tmp_path: Path, name: str) -> None:
    written(tmp_path, **MODELS[name])
    made = segmenter(tmp_path, sampling=0.3)
    made.save(tmp_path / "saved")
    made = Segmenter.load(tmp_path / "saved")
    drawn = {tuple(made.sample(TEXT[0], random.Random(seed))) for seed in range(20)}
    assert len(drawn) > 5
    assert {made.detokenize(one) for one in drawn} == {TEXT[0]}
    assert {piece for one in drawn for piece in one} <= set(made.tokenizer.inventory() or [])


def test_long_pieces_are_drawn_too(tmp_path: Path) -> None:
    long = "uncharacteristically"
    written(tmp_path, sentences=[*TEXT, *[f"{long} {long}"] * 400], vocab_size=120, max_sentencepiece_length=30)
    made = segmenter(tmp_path, sampling=0.03)
    assert made.tokenize(long) == [f"▁{long}"]
    drawn = [made.sample(long, random.Random(seed)) for seed in range(300)]
    assert [f"▁{long}"] in drawn
    assert any(len(one) > 1 for one in drawn)


def test_bpe_merges_through_unused_pieces_as_sentencepiece_does(tmp_path: Path) -> None:
    scores = {"abc": -1.0, "ab": 0.0, "a": -2.0, "b": -3.0, "c": -4.0, "▁": -5.0}
    pieces = [Piece(text, score, UNUSED if text == "ab" else NORMAL) for text, score in scores.items()]
    (tmp_path / "given.spm").write_bytes(model_of(pieces, "bpe"))
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "given.spm"))
    made = segmenter(tmp_path)
    for text in ("abc", "ab", "cab abab"):
        assert made.tokenize(text) == library.encode(text, out_type=str)
    assert made.tokenize("abc") == ["▁", "abc"]


def test_nothing_known_is_drawn_as_unknown(tmp_path: Path) -> None:
    """The letters of a piece may be no pieces of their own."""
    (tmp_path / "given.spm").write_bytes(model_of([Piece("▁ab", -1.0), Piece("ab", -2.0), Piece("▁", -3.0)], "bpe"))
    made = segmenter(tmp_path, sampling=0.5)
    known = set(made.tokenizer.inventory() or [])
    assert all(set(made.sample("ab ab", random.Random(seed))) <= known for seed in range(30))


def test_a_symbol_given_by_the_user_is_never_drawn_apart(tmp_path: Path) -> None:
    written(tmp_path, **MODELS["symbols"])
    made = segmenter(tmp_path, sampling=0.9)
    for seed in range(20):
        assert "<ent>" in made.sample("oral <ent> tale", random.Random(seed))


def test_pieces_can_be_added_to_bpe(tmp_path: Path) -> None:
    written(tmp_path, model_type="bpe", split_digits=True)
    made = segmenter(tmp_path).tokenizer
    before = made.inventory() or []
    new = made.extend(["zyzzyva zyzzyva 1234 1234"] * 5, 20)
    assert "zy" in {piece.strip("▁") for piece in new}
    assert not any(len(piece) > 1 and set("1234") & set(piece) for piece in new), "the file has single digits"
    assert made.inventory() == before + new


def test_unigram_cannot_be_extended(tmp_path: Path) -> None:
    written(tmp_path, model_type="unigram")
    with pytest.raises(TmtError, match="unigram model that this training starts from"):
        segmenter(tmp_path).tokenizer.extend(TEXT, 20)


@pytest.mark.parametrize(("name", "fits"), [("bpe", False), ("identity", True)])
def test_the_form_of_unicode_must_be_that_of_the_pieces(tmp_path: Path, name: str, fits: bool) -> None:
    written(tmp_path, **MODELS[name])
    given = options(tmp_path)
    SentencepieceModelTokenizer.verify(given, CleaningConfig(unicode="NFKC"))
    if fits:
        SentencepieceModelTokenizer.verify(given, CleaningConfig())
        return
    with pytest.raises(TmtError, match=r"made for text in Unicode's form NFKC \(nmt_nfkc\), and .* is NFC") as error:
        SentencepieceModelTokenizer.verify(given, CleaningConfig())
    assert error.value.remedy == "Set  data.cleaning.unicode: NFKC"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model_type": "char"}, "not unigram or BPE"),
        ({"normalization_rule_name": "nmt_nfkc_cf"}, r"in another way than .* \(nmt_nfkc_cf\)"),
        ({"add_dummy_prefix": False}, "in another way: add_dummy_prefix=false"),
        ({"treat_whitespace_as_suffix": True}, "spaces at the ends of words"),
    ],
)
def test_what_splits_otherwise_is_refused(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    written(tmp_path, **settings)
    for use in (lambda: segmenter(tmp_path), lambda: SentencepieceModelTokenizer.verify(options(tmp_path), NFKC)):
        with pytest.raises(TmtError, match=said) as error:
            use()
        assert error.value.place == str(tmp_path / "given.spm")
        assert "tokenizer.case: lower" in error.value.remedy


NFKC = CleaningConfig(unicode="NFKC")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has no pieces"),
        (model_of([], "bpe"), "it has no pieces"),
        (model_of([Piece("a"), Piece("b"), Piece("a")], "bpe"), "it has a piece twice"),
        (model_of([Piece("a"), Piece("b" * 200)], "bpe"), r"its piece \d+ has more than 127 bytes"),
        (b"PK\x03\x04", "not a SentencePiece model"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"{}", "not a SentencePiece model"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "given.spm").write_bytes(content)
    with pytest.raises(TmtError, match=said):
        SentencepieceModelTokenizer.verify(options(tmp_path), NFKC)


def test_a_file_that_ends_early_is_refused_or_has_all_pieces(tmp_path: Path) -> None:
    written(tmp_path, model_type="bpe", normalization_rule_name="identity")
    whole, complete, refused = (tmp_path / "given.spm").read_bytes(), segmenter(tmp_path), list[int]()
    for end in range(len(whole)):
        (tmp_path / "given.spm").write_bytes(whole[:end])
        try:
            made = segmenter(tmp_path)
            assert made.tokenizer.inventory() == complete.tokenizer.inventory()
            assert made.tokenize(TEXT[0]) == complete.tokenize(TEXT[0])
        except TmtError:
            refused.append(end)
    assert len(whole) - len(refused) < 40, "only what follows the pieces and the names of the rules may be missing"
