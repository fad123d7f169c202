"""The pieces of a SentencePiece model that exists already, such as that of a published system or of another program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.section import FileName
from transformer_mt.config.tokenizer import TokenizerConfig
from transformer_mt.errors import TmtError, from_os_error, reason
from transformer_mt.files.lines import path_of
from transformer_mt.files.opening import read_small, require_fetched
from transformer_mt.text.tokenizers.base import LARGEST
from transformer_mt.text.tokenizers.piece_file import IDENTITY, Content, content_of, model_of, require_bearable
from transformer_mt.text.tokenizers.sentencepiece import MorphemeKind, Sampling, SentencepieceTokenizer


class SentencepieceModelTokenizer(SentencepieceTokenizer):
    """Splits as SentencePiece does with this file. Its marks and control symbols are left out: ours take their place.

    The rules of the file for Unicode are left out too; `data.cleaning.unicode` must do the same.
    """

    class Options(TokenizerConfig):
        kind: Literal["sentencepiece_model"]
        file: FileName = Field(description="a SentencePiece model, mostly *.model or *.spm; nothing is learned")
        sampling: Sampling = 0.0
        morphemes: MorphemeKind = "none"

        @property
        def files(self) -> list[Path]:
            return [path_of(self.file)]

    config: Options  # type: ignore[assignment]

    @classmethod
    def verify(cls, options: TokenizerConfig, cleaning: CleaningConfig) -> None:
        assert isinstance(options, cls.Options)
        normalizer = _read(options.file).normalizer
        if normalizer != IDENTITY and cleaning.unicode != "NFKC":
            raise TmtError(
                f"the pieces of {options.file} are made for text in Unicode's form NFKC ({normalizer}), and this key is"
                f" {cleaning.unicode}",
                place="data.cleaning.unicode",
                remedy="Set  data.cleaning.unicode: NFKC",
            )

    def train(self, sentences: Iterable[str]) -> None:
        """Reads the file instead. Raises TmtError if it is missing or damaged, or if it cannot be used."""
        content = _read(self.config.file)
        pieces = [piece for piece in content.pieces if "\n" not in piece.text]  # no text has line breaks
        model = model_of(pieces, content.algorithm, content.split_digits, content.keeps_spaces)
        try:
            require_bearable(model)
            self._load(model)
        except (RuntimeError, ValueError) as error:
            raise _unusable(self.config.file, error) from None


def _read(name: str) -> Content:
    file = path_of(name)
    try:
        return content_of(read_small(file, LARGEST))
    except OSError as error:
        raise from_os_error(error, "reading the pieces of the tokenizer", file) from None
    except ValueError as error:
        require_fetched(file, "pieces")
        raise _unusable(name, error) from None


def _unusable(name: str, error: Exception) -> TmtError:
    return TmtError(
        f"not a SentencePiece model that can be used: {reason(error)}",
        place=name,
        remedy="Pieces of unigram or BPE can be used, with the rules nmt_nfkc, nfkc or identity for Unicode, and a"
        " space before the first word; for lower case, those that were learned from lower-cased text, with"
        " tokenizer.case: lower. If the file is damaged, copy it again. kind: sentencepiece learns pieces.",
    )
