"""One interface (`base`), one file a kind. `make_tokenizer` picks the kind that a config names."""

from __future__ import annotations

from transformer_mt.config.tokenizer import (
    CharacterConfig,
    OneTokenizer,
    SentencepieceConfig,
    SoynlpConfig,
    SpacyConfig,
)
from transformer_mt.text.tokenizers.base import Tokenizer


def make_tokenizer(config: OneTokenizer, language: str) -> Tokenizer:
    """An untrained tokenizer of the configured kind. Each kind's library is imported only here."""
    if isinstance(config, SentencepieceConfig):
        from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer

        return SentencepieceTokenizer(config, language)
    if isinstance(config, SpacyConfig):
        from transformer_mt.text.tokenizers.spacy import SpacyTokenizer

        return SpacyTokenizer(language)
    if isinstance(config, SoynlpConfig):
        from transformer_mt.text.tokenizers.soynlp import SoynlpTokenizer

        return SoynlpTokenizer(config.min_word_frequency)
    if isinstance(config, CharacterConfig):
        from transformer_mt.text.tokenizers.character import CharacterTokenizer

        return CharacterTokenizer()
    from transformer_mt.text.tokenizers.whitespace import WhitespaceTokenizer

    return WhitespaceTokenizer()
