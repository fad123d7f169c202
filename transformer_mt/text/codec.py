"""Sentences to ids and back: casing, tokenizer and vocabulary of one side, in one object and one folder.

tokenizer.json   the kind of tokenizer and its settings
vocabulary.txt   one token per line, in the order of the ids
...              what the casing and the tokenizer learned
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.schema import OneTokenizer
from transformer_mt.errors import TmtError
from transformer_mt.files.checksum import sha256_of
from transformer_mt.text.casing import Casing
from transformer_mt.text.tokenizers.base import Tokenizer
from transformer_mt.text.vocabulary import EOS, MARKS, UNK, Vocabulary

SETTINGS, VOCABULARY = "tokenizer.json", "vocabulary.txt"
SOURCE, TARGET = "source", "target"  # folders of the two sides
_REMEDY = "Prepare again with `tmt prepare --force`, or copy the whole model folder again."


class Segmenter:
    """Casing and tokenizer: text to tokens and back. It is trained before the vocabulary is counted.

    lossless: whether both steps can be undone exactly (see `Tokenizer`)
    """

    def __init__(self, config: OneTokenizer, language: str) -> None:
        self.config = config
        self.language = language
        self.casing = Casing(config.case)
        self.tokenizer: Tokenizer = config.tokenizer(config, language)
        self.lossless = self.tokenizer.lossless and self.casing.lossless

    def train(self, sentences: Iterable[str]) -> None:
        """Learn casing and tokens from the first `training_sentences` sentences."""
        sample: Iterable[str] = islice(sentences, self.config.training_sentences)
        if self.config.case == "true":
            sample = list(sample)
            self.casing.train(sample)
        self.tokenizer.train(self.casing.apply(sentence) for sentence in sample)

    def tokenize(self, text: str) -> list[str]:
        return self.tokenizer.tokenize(self.casing.apply(text))

    def sample(self, text: str, random: random.Random) -> list[str]:
        return self.tokenizer.sample(self.casing.apply(text), random)

    def detokenize(self, tokens: Sequence[str]) -> str:
        return self.casing.undo(self.tokenizer.detokenize(tokens))

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = {"language": self.language, "tokenizer": self.config.model_dump(mode="json")}
        (folder / SETTINGS).write_text(json.dumps(settings, indent=1, ensure_ascii=False), encoding="utf-8")
        self.casing.save(folder)
        self.tokenizer.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Segmenter:
        """Raises OSError, ValueError, KeyError or TypeError if a file is missing or damaged."""
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        try:
            config = TypeAdapter(OneTokenizer).validate_python(settings["tokenizer"])
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{SETTINGS}: {' '.join([*map(str, first['loc']), first['msg']])}") from None
        return cls.of(config, settings["language"], folder)

    @classmethod
    def of(cls, config: OneTokenizer, language: str, folder: Path) -> Segmenter:
        """What was learned in a folder, with other settings. Raises OSError or ValueError if a file is damaged."""
        segmenter = cls(config, language)
        segmenter.casing.load(folder)
        segmenter.tokenizer.load(folder)
        return segmenter


def tokenizers_digest(folder: Path, files: str = "*") -> str:
    """A hash of the tokenizers in a folder. files: a pattern; the vocabularies alone decide what each id means.

    Raises OSError if a file cannot be read.
    """
    digest = sha256()
    for file in sorted(file for side in (SOURCE, TARGET) for file in (folder / side).glob(files)):
        digest.update(f"{file.parent.name}/{file.name} {sha256_of(file)}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Codec:
    """A trained segmenter and the vocabulary that numbers its tokens."""

    segmenter: Segmenter
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Ids of a sentence, with the end token."""
        return [*self.vocabulary.encode(self.segmenter.tokenize(text)), EOS]

    def sample(self, text: str, random: random.Random) -> list[int]:
        """Like `encode`, with a random segmentation if the tokenizer has one."""
        return [*self.vocabulary.encode(self.segmenter.sample(text, random)), EOS]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The sentence up to the end token, on one line, without the other marks.

        unknown: words to write for the ids UNK, in order; `<unk>` is written when none is left
        """
        tokens, words = [], iter(unknown)
        for index in ids:
            if index == EOS:
                break
            if index == UNK:
                tokens.append(next(words, MARKS[UNK]))
            elif index >= len(MARKS):
                tokens.append(self.vocabulary.tokens[index])
        return " ".join(self.segmenter.detokenize(tokens).split())

    def save(self, folder: Path) -> None:
        self.segmenter.save(folder)
        (folder / VOCABULARY).write_text("".join(f"{token}\n" for token in self.vocabulary.tokens), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Codec:
        """Raises TmtError if a file is missing or damaged."""
        try:
            segmenter = Segmenter.load(folder)
            tokens = (folder / VOCABULARY).read_bytes().decode("utf-8").split("\n")[:-1]
            if (segmenter.tokenizer.inventory() or tokens) != tokens:
                raise ValueError(f"{VOCABULARY} does not match the tokenizer in this folder")
            return cls(segmenter, Vocabulary(tokens))
        except FileNotFoundError as error:
            raise TmtError("a tokenizer file is missing", place=error.filename, remedy=_REMEDY) from None
        except (ValueError, KeyError, TypeError) as error:  # bad JSON, bad settings, damaged model, bad UTF-8
            raise TmtError(f"the tokenizer is damaged: {error}", place=folder, remedy=_REMEDY) from None


def save_codecs(codecs: tuple[Codec, Codec], folder: Path) -> None:
    """Write source/, and target/ unless the two sides share one codec; `load_codecs` reads them."""
    source, target = codecs
    source.save(folder / SOURCE)
    if target is not source:
        target.save(folder / TARGET)


def load_codecs(folder: Path) -> tuple[Codec, Codec]:
    """Source and target codec of a model directory or of prepared data; the same object twice if it is shared.

    Raises TmtError if a file is missing or damaged.
    """
    source = Codec.load(folder / SOURCE)
    return source, (Codec.load(folder / TARGET) if (folder / TARGET).exists() else source)
