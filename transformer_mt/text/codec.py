"""Sentences to ids and back: casing, tokenizer and vocabulary of one side, in one object and one folder.

tokenizer.json   the kind of tokenizer and its settings
vocabulary.txt   one token per line, in the order of the ids
tags.txt         the last tokens of it, if they are tags: `<2de>` before a source says into which language
...              what the casing and the tokenizer learned
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from transformer_mt.config.direction import TAG
from transformer_mt.config.schema import OneTokenizer
from transformer_mt.config.section import LANGUAGE
from transformer_mt.errors import CONTROLS, TmtError, from_os_error, reason
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.opening import read_small
from transformer_mt.text.casing import Casing
from transformer_mt.text.tokenizers.base import LARGEST, Tokenizer, problems_in, read_json
from transformer_mt.text.vocabulary import EOS, MARKS, UNK, Vocabulary

SETTINGS, VOCABULARY, TAGS = "tokenizer.json", "vocabulary.txt", "tags.txt"
SOURCE, TARGET = "source", "target"  # folders of the two sides
MOST_TOKENS = 1 << 21  # of a vocabulary; embeddings of so many have gigabytes
_REMEDY = "Copy the whole model folder again; prepared data is made again by `tmt prepare --config CONFIG --force`."


class _Settings(TypedDict):
    """The content of tokenizer.json. tokenizer: as in a config."""

    language: str
    tokenizer: dict[str, Any]


class Segmenter:
    """Casing and tokenizer: text to tokens and back. It is trained before the vocabulary is counted.

    lossless: whether both steps can be undone exactly (see `Tokenizer`)
    """

    def __init__(self, config: OneTokenizer, language: str) -> None:
        self.config = config
        self.language = language
        self.casing = Casing(config.case, language)
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

    def ids_of(self, texts: list[str]) -> list[list[int]] | None:
        """The ids of each sentence, if the tokenizer fixes them (`Tokenizer.ids_of`)."""
        return self.tokenizer.ids_of(texts if self.config.case == "keep" else list(map(self.casing.apply, texts)))

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
        """Raises OSError or ValueError if a file is missing or damaged."""
        settings = read_json(folder / SETTINGS, _Settings)
        if not re.fullmatch(LANGUAGE, settings["language"]):
            raise ValueError(f"{SETTINGS}: the language is not an ISO 639 code")
        with problems_in(SETTINGS):
            config = TypeAdapter(OneTokenizer).validate_python(settings["tokenizer"])
        return cls.of(config, settings["language"], folder)

    @classmethod
    def of(cls, config: OneTokenizer, language: str, folder: Path) -> Segmenter:
        """What was learned in a folder, with other settings. Raises OSError or ValueError if a file is damaged."""
        segmenter = cls(config, language)
        segmenter.casing.load(folder)
        segmenter.tokenizer.load(folder)
        return segmenter


def tokenizer_files(folder: Path, files: str = "*") -> list[Path]:
    """The files of the tokenizers in a folder, sorted, without hidden ones of the system. files: a pattern."""
    found = (file for side in (SOURCE, TARGET) for file in (folder / side).glob(files))
    return sorted(file for file in found if not file.name.startswith("."))


def tokenizers_digest(folder: Path, files: str = "*") -> str:
    """A hash of the tokenizers in a folder. files: a pattern; the vocabularies alone decide what each id means.

    Raises OSError if a file cannot be read.
    """
    digest = sha256()
    for file in tokenizer_files(folder, files):
        digest.update(f"{file.parent.name}/{file.name} {sha256_of(file)}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Codec:
    """A trained segmenter and the vocabulary that numbers its tokens."""

    segmenter: Segmenter
    vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def tags(self) -> tuple[str, ...]:
        """The last tokens of the vocabulary, which text never contains."""
        return self.vocabulary.tags

    @property
    def first_tag(self) -> int | None:
        """The id from which on all are tags, which no search writes; None without tags."""
        return len(self) - len(self.tags) if self.tags else None

    def encode(self, text: str, tags: Sequence[str] = ()) -> list[int]:
        """Ids of a sentence, with the end token. tags: some of its tags, which come first"""
        return [*self.vocabulary.tag_ids(tags), *self.vocabulary.encode(self.segmenter.tokenize(text)), EOS]

    def sample(self, text: str, random: random.Random, tags: Sequence[str] = ()) -> list[int]:
        """Like `encode`, with a random segmentation if the tokenizer has one."""
        return [*self.vocabulary.tag_ids(tags), *self.vocabulary.encode(self.segmenter.sample(text, random)), EOS]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The sentence up to the end token, on one line, without other marks, tags and control characters.

        A stranger's model may have them in its vocabulary, and a terminal acts on them.

        unknown: words to write for the ids UNK, in order; `<unk>` is written when none is left
        """
        known, first, end = self.vocabulary.tokens, len(MARKS), len(self) - len(self.tags)
        tokens, given = [], iter(unknown)
        for index in ids:
            if first <= index < end:
                tokens.append(known[index])
            elif index == EOS:
                break
            elif index == UNK:
                tokens.append(next(given, MARKS[UNK]))
        text = self.segmenter.detokenize(tokens)
        words = text.split()
        if CONTROLS.search(text):  # rarely
            words = [clean for word in words if (clean := CONTROLS.sub("", word))]
        return " ".join(words)

    def save(self, folder: Path) -> None:
        self.segmenter.save(folder)
        (folder / VOCABULARY).write_text("".join(f"{token}\n" for token in self.vocabulary.tokens), encoding="utf-8")
        if self.tags:
            (folder / TAGS).write_text("".join(f"{tag}\n" for tag in self.tags), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, size: int | None = None) -> Codec:
        """Raises TmtError if a file is missing or damaged.

        size: the number of tokens that the weights have embeddings for, if they are known
        """
        try:
            written = read_small(folder / VOCABULARY, LARGEST)
            if written.count(b"\n") > MOST_TOKENS:
                raise ValueError(f"{VOCABULARY} has more than {MOST_TOKENS:,} lines")
            if size is not None and written.count(b"\n") != size:
                raise ValueError(f"{VOCABULARY} has {written.count(10):,} lines, but the model has {size:,} tokens")
            segmenter = Segmenter.load(folder)
            tokens = written.decode("utf-8").split("\n")[:-1]
            tags = _tags_in(folder)
            words = tokens[: max(0, len(tokens) - len(tags))]
            if tokens[len(words) :] != tags:
                raise ValueError(f"{VOCABULARY} does not end with the tags of {TAGS}")
            if (segmenter.tokenizer.inventory() or words) != words:
                raise ValueError(f"{VOCABULARY} does not match the tokenizer in this folder")
            return cls(segmenter, Vocabulary(words, tags))
        except FileNotFoundError as error:
            raise TmtError("a tokenizer file is missing", place=error.filename, remedy=_REMEDY) from None
        except OSError as error:
            raise from_os_error(error, "reading a tokenizer") from None
        except ValueError as error:
            raise TmtError(f"the tokenizer is damaged: {reason(error)}", place=folder, remedy=_REMEDY) from None


def _tags_in(folder: Path) -> list[str]:
    """Raises OSError or ValueError if the file is damaged."""
    if not (folder / TAGS).exists():
        return []
    tags = read_small(folder / TAGS, LARGEST).decode("utf-8").split("\n")[:-1]
    if not tags or not all(re.fullmatch(TAG, tag) for tag in tags):
        raise ValueError(f"{TAGS} has lines that are no tags")
    return tags


def save_codecs(codecs: tuple[Codec, Codec], folder: Path) -> None:
    """Write source/, and target/ unless the two sides share one codec; `load_codecs` reads them."""
    source, target = codecs
    source.save(folder / SOURCE)
    if target is not source:
        target.save(folder / TARGET)


def load_codecs(folder: Path, source_size: int | None = None, target_size: int | None = None) -> tuple[Codec, Codec]:
    """Source and target codec of a model directory or of prepared data; the same object twice if it is shared.

    source_size, target_size: of the vocabularies, if they are known from the weights
    Raises TmtError if a file is missing or damaged.
    """
    source = Codec.load(folder / SOURCE, source_size)
    return source, (Codec.load(folder / TARGET, target_size) if (folder / TARGET).exists() else source)
