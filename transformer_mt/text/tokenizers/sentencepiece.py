"""SentencePiece: subword pieces by byte-pair encoding or a unigram language model.

Its pieces are lossless. Its ids are lossless only with `byte_fallback`; without it, an unseen character becomes <unk>.

While a model is trained, segmentations can be drawn at random (subword_sampling.py), word by word: no piece contains a
space inside.
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from transformer_mt.config.languages import two_letters
from transformer_mt.config.section import Probability
from transformer_mt.config.tokenizer import TokenizerConfig
from transformer_mt.errors import TmtError
from transformer_mt.files.opening import read_small
from transformer_mt.text.tokenizers.base import LARGEST, Tokenizer
from transformer_mt.text.tokenizers.more_merges import SPACE, more_pieces, with_pieces
from transformer_mt.text.tokenizers.morphemes import Morphemes
from transformer_mt.text.tokenizers.piece_file import NORMAL, Content, content_of, require_bearable
from transformer_mt.text.tokenizers.subword_sampling import Drops, bpe_dropout, sample_bpe, sample_unigram
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK, Vocabulary

FILE = "sentencepiece.model"
LONGEST = 16  # most characters in a piece that is learned here
_MARKS = frozenset(MARKS)
_DIGIT = re.compile("[0-9０-９]")  # those that SentencePiece splits


# Two keys of several kinds. Each kind declares them itself: the order of its keys is a part of saved tokenizers.
Sampling = Annotated[
    Probability,
    Field(
        description="while training, segmentations drawn at random: BPE-dropout probability, or for unigram the"
        " power (alpha) to which their probabilities are raised; 0: none"
    ),
]
MorphemeKind = Annotated[
    Literal["none", "mecab"],
    Field(description="split Korean into morphemes first (needs: pip install python-mecab-ko)"),
]


class SentencepieceTokenizer(Tokenizer):
    lossless = True

    class Options(TokenizerConfig):
        kind: Literal["sentencepiece"]
        algorithm: Literal["bpe", "unigram"] = Field("bpe", description="byte-pair encoding or unigram language model")
        vocab_size: Annotated[int, Field(ge=32, le=256_000)] = Field(
            8_000, description="pieces, the four special tokens included"
        )
        byte_fallback: bool = Field(False, description="spell unknown characters as bytes instead of <unk>")
        split_digits: bool = Field(
            False, description="each digit from 0 to 9 is a piece, so that numbers are read and written digit by digit"
        )
        character_coverage: float = Field(1.0, ge=0.98, le=1.0, description="share of characters the pieces must cover")
        sampling: Sampling = 0.0
        morphemes: MorphemeKind = "none"

        @model_validator(mode="after")
        def _fits_together(self) -> SentencepieceTokenizer.Options:
            if self.extend and self.algorithm == "unigram":
                raise ValueError("extend adds merges of pieces, which algorithm: unigram does not have")
            return self

        @property
        def size(self) -> int:
            return self.vocab_size

    def __init__(self, options: Options, language: str) -> None:
        import sentencepiece

        self.config = options
        self.morphemes = Morphemes() if options.morphemes == "mecab" and two_letters(language) == "ko" else None
        self._library = sentencepiece
        self._pieces = sentencepiece.SentencePieceProcessor()

    def train(self, sentences: Iterable[str]) -> None:
        """Raises TmtError if the corpus is too small for `vocab_size`, or has more different characters."""
        model = io.BytesIO()
        failed: list[BaseException] = []  # of reading, such as a Ctrl-C: the library would make another error of it

        def watched() -> Iterator[str]:
            try:
                yield from map(self.morphemes.split, sentences) if self.morphemes else sentences
            except BaseException as error:
                failed.append(error)
                raise

        self._library.set_random_generator_seed(0)
        try:
            self._library.SentencePieceTrainer.train(
                sentence_iterator=watched(),
                model_writer=model,
                model_type=self.config.algorithm,
                vocab_size=self.config.vocab_size,
                character_coverage=self.config.character_coverage,
                byte_fallback=self.config.byte_fallback,
                split_digits=self.config.split_digits,
                normalization_rule_name="identity",  # data.cleaning normalises; here the text must not change
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                pad_piece=MARKS[PAD],
                unk_piece=MARKS[UNK],
                unk_surface=MARKS[UNK],
                bos_piece=MARKS[BOS],
                eos_piece=MARKS[EOS],
                num_threads=1,  # the trained pieces must not depend on the machine
                max_sentence_length=1 << 20,
                max_sentencepiece_length=LONGEST,
                minloglevel=2,
            )
        except (RuntimeError, OSError) as error:
            if failed:
                raise failed[0] from None
            raise _untrainable(str(error), self.config.vocab_size) from None
        self._load(model.getvalue())

    def _load(self, model: bytes) -> None:
        self._pieces.load_from_serialized_proto(model)
        for name in ("_learned", "_longest", "_scores"):  # of the previous model
            self.__dict__.pop(name, None)

    @cached_property
    def _learned(self) -> Content:
        try:
            return content_of(self._pieces.serialized_model_proto())
        except ValueError as error:
            remedy = "Copy the whole folder of the model again."
            raise TmtError(f"this SentencePiece model cannot draw segmentations: {error}", remedy=remedy) from None

    @cached_property
    def _longest(self) -> int:
        """Most characters in a piece."""
        return max(map(len, self._scores), default=1)

    @cached_property
    def _scores(self) -> dict[str, float]:
        """The scores of all pieces that are learned; only sampling needs them."""
        return {piece.text: piece.score for piece in self._learned.pieces if piece.kind == NORMAL}

    def tokenize(self, text: str) -> list[str]:
        prepared = self.morphemes.split(text) if self.morphemes else text
        pieces: list[str] = self._pieces.encode(prepared, out_type=str)
        if _MARKS.isdisjoint(pieces):
            return pieces
        # Unigram joins neighbouring unknown characters. Text that looks like a mark must not become that mark.
        return [part for piece in pieces for part in (piece if piece in _MARKS else [piece])]

    def ids_of(self, texts: list[str]) -> list[list[int]]:
        prepared = [self.morphemes.split(text) for text in texts] if self.morphemes else texts
        ids: list[list[int]] = self._pieces.encode(prepared, num_threads=1)
        marked = [row for row, text in enumerate(prepared) if "<" in text and any(mark in text for mark in MARKS)]
        if marked:
            vocabulary = Vocabulary(self.inventory())
            for row in marked:
                ids[row] = vocabulary.encode(self.tokenize(texts[row]))
        return ids

    def sample(self, text: str, random: random.Random) -> list[str]:
        pieces = self.tokenize(text)
        if not self.config.sampling:
            return pieces
        drops = Drops(self.config.sampling, random) if self._learned.algorithm == "bpe" else None

        def draw(word: list[str]) -> list[str]:
            if drops is not None:
                found = sample_bpe(word, self._scores, drops)
                return found if self._scores.keys() >= set(found) else word  # a letter may be no piece of its own
            return sample_unigram("".join(word), self._scores, self.config.sampling, random, self._longest)

        sampled: list[str] = []
        word: list[str] = []  # the usual pieces of the current word
        for piece in pieces:
            known = piece in self._scores
            if not known or piece.startswith(SPACE):
                sampled += draw(word)
                word = []
            (word if known else sampled).append(piece)  # unknown characters and byte pieces stay as they are
        return sampled + draw(word)

    def extend(self, sentences: Iterable[str], most: int) -> list[str]:
        """Continues BPE on these sentences. The old pieces keep their ids, and are merged before the new ones."""
        if self._learned.algorithm != "bpe":
            problem = (
                "extend adds merges of pieces, which the unigram model that this training starts from does not have"
            )
            raise TmtError(problem, place="tokenizer.extend", remedy="Remove extend.")
        words, known = Counter[tuple[str, ...]](), set(self.inventory())
        for sentence in sentences:
            found = self.tokenize(sentence)
            pieces = [part for one in found for part in ([one] if one in known else one)]  # unknown characters
            single = [self._learned.split_digits and _DIGIT.search(piece) is not None for piece in pieces]
            joins = [not (piece.startswith(SPACE) or own) for piece, own in zip(pieces, single, strict=True)]
            starts = [n for n, joined in enumerate(joins) if n == 0 or not joined or single[n - 1]]
            words.update(tuple(pieces[start:end]) for start, end in pairwise([*starts, len(pieces)]))
        new = more_pieces(words, known, most, LONGEST)
        model = self._pieces.serialized_model_proto()
        self._load(with_pieces(model, new, min(self._scores.values(), default=0.0) - 1))
        return new

    def parts(self, token: str) -> list[str]:
        pieces = bpe_dropout(token, self._scores, Drops(0.0, random.Random(0)))
        return [piece for piece in pieces if piece in self._scores]

    def detokenize(self, tokens: Sequence[str]) -> str:
        text = self._pieces.decode_pieces(list(tokens))
        return self.morphemes.join(text) if self.morphemes else text

    def inventory(self) -> list[str]:
        return [self._pieces.id_to_piece(index) for index in range(self._pieces.get_piece_size())]

    def save(self, folder: Path) -> None:
        (folder / FILE).write_bytes(self._pieces.serialized_model_proto())

    def load(self, folder: Path) -> None:
        model = read_small(folder / FILE, LARGEST)
        try:
            require_bearable(model)
            self._load(model)
            if len(self._pieces.decode_pieces([MARKS[UNK]])) > LONGEST:
                raise ValueError("its text for unknown pieces is too long")
        except (RuntimeError, MemoryError, ValueError) as error:
            raise ValueError(f"{FILE} is damaged: {error or 'it asks for too much memory'}") from None


def _untrainable(problem: str, vocab_size: int) -> TmtError:
    """The error for a failed training. problem: SentencePiece's message."""
    needed = re.search(r"required_chars\. \d+ vs (\d+)", problem)
    if needed:
        return TmtError(
            f"{vocab_size} pieces are too few: the characters of the training split and the marks need {needed[1]}",
            place="tokenizer.vocab_size",
            remedy=f"Raise tokenizer.vocab_size, well above {needed[1]}, or lower tokenizer.character_coverage.",
        )
    fitting = re.search(r"value <= (\d+)", problem)
    if fitting or "high" in problem or "vocab" in problem.lower():
        limit = f" (at most {fitting.group(1)})" if fitting else ""
        return TmtError(
            f"the training split is too small for {vocab_size} pieces{limit}",
            place="tokenizer.vocab_size",
            remedy="Lower tokenizer.vocab_size, or add more text.",
        )
    return TmtError(
        f"SentencePiece could not be trained: {problem.strip().splitlines()[-1]}",
        place="tokenizer",
        remedy="Check the training split, and the keys under tokenizer.",
    )
