"""Prepared data whose tokens are those of a SentencePiece model that was given: it belongs to that file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from transformer_mt.config.schema import Config
from transformer_mt.data import prepare as pipeline
from transformer_mt.data.parent import Parent
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError

NFKC = {"unicode": "NFKC"}


def written(file: Path, size: int = 30) -> Path:
    """Trains pieces as another program would."""
    sentences = [f"der Satz {number} hier, the sentence {number} here" for number in range(60)]
    with file.open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=model, vocab_size=size, minloglevel=2, num_threads=1
        )
    return file


@pytest.fixture
def config(workshop: Any) -> Config:
    tokenizer = {"kind": "sentencepiece_model", "file": str(written(workshop.folder / "own.spm")), "shared": True}
    made: Config = workshop.config(workshop.splits(workshop.numbered(20)), tokenizer=tokenizer, cleaning=NFKC)
    return made


def file_of(config: Config) -> Path:
    (file,) = config.source_tokenizer.files
    return file


def test_the_ids_are_those_of_the_pieces(config: Config) -> None:
    ready = prepare(config)
    library = sentencepiece.SentencePieceProcessor(model_file=str(file_of(config)))
    source, target = ready.codecs()
    assert source.vocabulary == target.vocabulary
    store = ready.store("train")
    for row in range(len(store)):
        text = source.decode(store.source[row])
        pieces = library.encode(text, out_type=str)
        assert source.vocabulary.decode(store.source[row]) == [*pieces, "</s>"]
    assert file_of(config).name in {Path(file.path).name for file in ready.manifest.files}


def test_another_file_prepares_again_and_a_copy_does_not(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(config)
    said = list[str]()
    written(file_of(config), 33)
    assert prepare(config, say=said.append).is_new
    assert "changed since the data was prepared" in said[0]
    assert "own.spm" in said[0]
    os.utime(file_of(config), (1, 1))
    monkeypatch.setattr(pipeline, "Selection", None)  # preparing again would fail
    assert not prepare(config).is_new


def test_the_prepared_data_are_used_without_the_file(config: Config) -> None:
    prepare(config)
    file_of(config).unlink()
    said = list[str]()
    assert not prepare(config, say=said.append).is_new
    assert "using this data, which was prepared before" in said[0]


def test_a_bad_file_is_found_before_the_corpus_is_read(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "clean_stream", None)
    usual = type(config.data.cleaning)()
    wrong = config.model_copy(update={"data": config.data.model_copy(update={"cleaning": usual})})
    with pytest.raises(TmtError, match="form NFKC"):
        prepare(wrong)
    file_of(config).write_bytes(b"something else")
    with pytest.raises(TmtError, match="not a SentencePiece model that can be used"):
        prepare(config)
    file_of(config).unlink()
    with pytest.raises(TmtError, match="the file of the tokenizer is missing"):
        prepare(config)
    file_of(config).mkdir()
    with pytest.raises(TmtError, match="the file of the tokenizer is not a regular file"):
        prepare(config)


def test_a_model_to_start_from_needs_no_file(config: Config, tmp_path: Path) -> None:
    first = prepare(config)
    shutil.copytree(first.folder, tmp_path / "parent")
    file_of(config).unlink()
    parent = Parent("parent", tmp_path / "parent", config.data.all_directions)
    further = prepare(config, force=True, parent=parent)
    assert further.is_new
    assert further.codecs()[0].vocabulary == first.codecs()[0].vocabulary
    assert "own.spm" not in {Path(file.path).name for file in further.manifest.files}
