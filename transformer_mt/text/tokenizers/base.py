"""The interface of all tokenizers: learn from sentences, split a sentence into tokens, join tokens."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.tokenizer import TokenizerConfig
from transformer_mt.files.opening import read_small

LARGEST = 1 << 26  # bytes of a file of a tokenizer; a stranger's file must not fill the memory
T = TypeVar("T")


class Tokenizer(ABC):
    """A kind of tokenizer; `Options` are its keys in the config.

    lossless:     whether detokenize(tokenize(text)) == text, for every text with single spaces and without the
                  tokenizer's own marks. As ids, a token that is not in the vocabulary becomes `<unk>`, except with
                  SentencePiece's `byte_fallback`, which spells unknown characters as bytes.
    one_language: whether its rules belong to one language, so that two languages need two tokenizers
    finds_words:  whether its tokens are words, so that scores can be computed from them
    """

    Options: ClassVar[type[TokenizerConfig]]
    lossless: ClassVar[bool] = False
    one_language: ClassVar[bool] = False
    finds_words: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "tokenize" in vars(cls) and "ids_of" not in vars(cls):  # the parent's ids are those of its own tokens
            cls.ids_of = Tokenizer.ids_of  # type: ignore[method-assign]

    def __init__(self, options: TokenizerConfig, language: str) -> None:  # noqa: B027
        """language: an ISO code."""

    @classmethod  # noqa: B027
    def verify(cls, options: TokenizerConfig, cleaning: CleaningConfig) -> None:
        """Raises TmtError if a file that the options name cannot be used, or does not fit to how texts are cleaned."""

    def train(self, sentences: Iterable[str]) -> None:  # noqa: B027 (most kinds learn nothing)
        """Learn from the sentences of the training split. The same sentences must give the same tokenizer."""

    @abstractmethod
    def tokenize(self, text: str) -> list[str]:
        """The tokens of a sentence; none for an empty one."""

    def ids_of(self, texts: list[str]) -> list[list[int]] | None:
        """The places of the tokens of each sentence in `inventory`, and UNK for others; None if nothing fixes them.

        A faster way to what `tokenize` returns.
        """
        return None

    def sample(self, text: str, random: random.Random) -> list[str]:
        """A random segmentation, for subword regularisation; by default the usual one."""
        return self.tokenize(text)

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """The natural text of these tokens, as exactly as the tokenizer can.

        There may be others than `tokenize` returns, such as a word of the source: they stand as they are.
        """

    def inventory(self) -> list[str] | None:
        """All tokens in the order of their ids, if the tokenizer fixes them; else None. They begin with MARKS."""
        return None

    def extend(self, sentences: Iterable[str], most: int) -> list[str]:
        """Learn at most `most` more tokens from sentences and return them, if `inventory` is fixed.

        All other tokens keep their ids. Raises NotImplementedError if the kind cannot do that.
        """
        raise NotImplementedError

    def parts(self, token: str) -> list[str]:
        """The tokens that spell a text which is no token of this tokenizer; none if it has no smaller tokens."""
        return []

    def save(self, folder: Path) -> None:  # noqa: B027
        """Write what `train` learned into an existing folder."""

    def load(self, folder: Path) -> None:  # noqa: B027
        """Read what `save` wrote. Raises OSError or ValueError if it is missing or damaged."""


def read_json(file: Path, shape: type[T]) -> T:
    """What a tokenizer saved as JSON. Raises OSError, and ValueError if it is damaged or has another shape."""
    with problems_in(file.name):
        return TypeAdapter(shape).validate_json(read_small(file, LARGEST), strict=True)


@contextmanager
def problems_in(name: str) -> Iterator[None]:
    """Values of a file are validated here: a ValidationError becomes a ValueError about its first problem."""
    try:
        yield
    except ValidationError as error:
        first: Any = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{name}: {' '.join([*map(str, first['loc']), first['msg']])}") from None
