"""The `tokenizer` section: how sentences become tokens, on each side or on both alike."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator

from transformer_mt.config.section import Positive, Probability, Section

Case = Literal["keep", "lower", "true"]


class TokenizerConfig(Section):
    case: Case = Field("keep", description="keep the case, lower it, or truecase (sentence starts as elsewhere)")
    shared: bool = Field(False, description="one vocabulary for both languages")
    training_sentences: Positive = Field(
        1_000_000,
        description="at most this many training pairs are read to train the tokenizer (bounds its memory)",
    )

    @field_validator("case", mode="before")
    @classmethod
    def _true_case(cls, value: Any) -> Any:
        return "true" if value is True else value  # YAML reads `case: true` as a boolean


class WordsConfig(TokenizerConfig):
    """Tokenizers whose vocabulary is a list of words by frequency."""

    min_frequency: Positive = Field(2, description="words seen less often become <unk>")
    max_size: Positive | None = Field(None, description="most words to keep, the four marks apart; null: all")


class SpacyConfig(WordsConfig):
    kind: Literal["spacy"]


class WhitespaceConfig(WordsConfig):
    kind: Literal["whitespace"]


class CharacterConfig(WordsConfig):
    kind: Literal["character"]


class SoynlpConfig(WordsConfig):
    kind: Literal["soynlp"]
    training_sentences: Positive = Field(
        200_000, description="at most this many training pairs are read to learn the cohesion scores"
    )
    min_word_frequency: Positive = Field(5, description="substrings seen less often get no cohesion score")


class SentencepieceConfig(TokenizerConfig):
    kind: Literal["sentencepiece"]
    algorithm: Literal["bpe", "unigram"] = Field("bpe", description="byte-pair encoding or unigram language model")
    vocab_size: Annotated[int, Field(ge=32, le=256_000)] = Field(8_000, description="pieces, the four marks included")
    byte_fallback: bool = Field(False, description="spell unknown characters as bytes instead of <unk>")
    character_coverage: float = Field(1.0, ge=0.98, le=1.0, description="share of characters the pieces must cover")
    sampling: Probability = Field(
        0.0,
        description="while training, segmentations drawn at random: BPE-dropout probability, or for unigram the power"
        " (alpha) to which their probabilities are raised; 0: none",
    )
    morphemes: Literal["none", "mecab"] = Field(
        "none", description="split Korean into morphemes first (extra: pip install 'transformer_mt[mecab]')"
    )


OneTokenizer = Annotated[
    SpacyConfig | SoynlpConfig | SentencepieceConfig | CharacterConfig | WhitespaceConfig,
    Field(discriminator="kind"),
]


class SidesConfig(Section):
    """A tokenizer of its own for each side."""

    source: OneTokenizer = Field(description="tokenizer of the source, of any kind")
    target: OneTokenizer = Field(description="tokenizer of the target, of any kind")


def _form(value: Any) -> str:
    if isinstance(value, SidesConfig):
        return "sides"
    return "sides" if isinstance(value, dict) and {"source", "target"} & set(value) else "both"


AnyTokenizer = Annotated[
    Annotated[OneTokenizer, Tag("both")] | Annotated[SidesConfig, Tag("sides")], Discriminator(_form)
]
