"""Loads models for translation. An engine is imported when it is used, because CTranslate2 does not need PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.data import DataConfig
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import SEVERAL, Direction
from transformer_mt.decoding.choosing import Wanted, directions_of
from transformer_mt.decoding.interpreter import Computing, Interpreter
from transformer_mt.decoding.searches.base import settings_in_use
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import QUANTIZATIONS as QUANTIZATIONS
from transformer_mt.exporting.ctranslate2 import load_engine
from transformer_mt.exporting.origin import is_exported
from transformer_mt.reporting.notes import note

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator

ENGINES = ("tmt", "ctranslate2")


def load_model(
    folders: Sequence[Path],
    decoding: DecodingConfig | None = None,
    computing: Computing | None = None,
    engine: str = "tmt",
) -> Interpreter:
    """Load one model, or several as an ensemble. engine: one of ENGINES; an exported folder always uses ctranslate2.

    Raises TmtError if a folder has no model, if the models do not fit together, or if the engine does not support them.
    """
    if engine not in ENGINES:
        raise TmtError(f"unknown engine '{engine}'", place="--engine", remedy=f"Use {' or '.join(ENGINES)}.")
    computing = computing or Computing()
    if engine == "tmt" and not any(map(is_exported, folders)):
        return load_translator(folders, decoding, computing)
    if len(folders) > 1:
        raise TmtError(
            "CTranslate2 cannot use an ensemble", remedy="Name one model, or use --engine tmt with model folders."
        )
    return load_engine(folders[0], decoding, computing)


def load_translator(
    folders: Sequence[Path], decoding: DecodingConfig | None = None, computing: Computing | None = None
) -> Translator:
    """As `load_model`, with the engine `tmt`. PyTorch is imported here, so scoring files does not load it."""
    from transformer_mt.decoding.translator import Translator

    return Translator.load(folders, decoding, computing or Computing())


def note_sources(data: DataConfig, direction: Direction | None) -> None:
    """Print a note if several sources fit: no language's rules then split and clean sentences."""
    if direction is not None and direction.source == SEVERAL:
        *others, last = [one.source for one in directions_of(data, Wanted(direction.target))]
        note(
            f"several source languages fit: add --from {', '.join(others)} or {last}, so that sentences are split and"
            " cleaned as in this language; text in another one is zero-shot, and usually translated worse"
        )


def note_searches(own: DecodingConfig, baseline: DecodingConfig) -> None:
    """Say which settings of the two searches differ: a difference of scores may come from them alone."""
    mine, others = settings_in_use(own), settings_in_use(baseline)
    differ = [key for key in mine.keys() & others.keys() if mine[key] != others[key]]
    if differ:
        told = "; ".join(f"{key} {mine[key]}, the baseline {others[key]}" for key in sorted(differ))
        note(f"the models search with different settings: {told}. An option of the search sets it for both")
