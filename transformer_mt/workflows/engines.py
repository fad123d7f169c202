"""Models ready to translate. Each engine is imported when it is chosen: CTranslate2 does without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.interpreter import Computing, Interpreter
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import QUANTIZATIONS as QUANTIZATIONS
from transformer_mt.exporting.ctranslate2 import is_exported, load_engine

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator

ENGINES = ("tmt", "ctranslate2")


def load_model(
    folders: Sequence[Path],
    decoding: DecodingConfig | None = None,
    computing: Computing | None = None,
    engine: str = "tmt",
) -> Interpreter:
    """One model, or an ensemble, ready to translate. engine: one of ENGINES; an exported folder needs the second.

    Raises TmtError if a folder holds no model, the models do not fit each other, or the engine cannot do it.
    """
    if engine not in ENGINES:
        raise TmtError(f"'{engine}' is no engine", place="--engine", remedy=f"Use {' or '.join(ENGINES)}.")
    computing = computing or Computing()
    if engine == "tmt" and not any(map(is_exported, folders)):
        return load_translator(folders, decoding, computing)
    if len(folders) > 1:
        raise TmtError("CTranslate2 takes one model", remedy="An ensemble needs --engine tmt and model folders.")
    return load_engine(folders[0], decoding, computing)


def load_translator(
    folders: Sequence[Path], decoding: DecodingConfig | None = None, computing: Computing | None = None
) -> Translator:
    """As `load_model`, with our own engine."""
    from transformer_mt.decoding.translator import Translator

    return Translator.load(folders, decoding, computing or Computing())
