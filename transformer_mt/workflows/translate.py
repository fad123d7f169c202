"""Opens a translator with its search settings, and draws its attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer_mt.decoding.interpreter import Computing as Computing
from transformer_mt.decoding.interpreter import Hypothesis as Hypothesis
from transformer_mt.decoding.interpreter import Interpreter as Interpreter
from transformer_mt.decoding.interpreter import Translation as Translation
from transformer_mt.errors import TmtError
from transformer_mt.reporting.attention_map import plot_attention
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.models import find_models, search_settings


def open_translator(
    models: Sequence[Path] | None, search: Mapping[str, Any], computing: Computing, engine: str
) -> tuple[Interpreter, list[Path]]:
    """A translator, and the folders of its models. search: settings that replace those of the first model."""
    folders = find_models(models)
    return load_model(folders, search_settings(folders[0], search), computing, engine), folders


def draw_attention(translator: Interpreter, line: str, prefix: str, file: Path) -> Path:
    """Draw all attention maps of the first model for a sentence and its translation.

    Raises TmtError if the engine of the translator cannot return all attention weights.
    """
    from transformer_mt.decoding.translator import Translator

    if not isinstance(translator, Translator):
        raise TmtError("--attention needs --engine tmt", remedy="CTranslate2 returns the attention of one layer only.")
    seen = translator.attention(line, prefix=prefix)
    return plot_attention(seen.maps, seen.rows, seen.columns, file, line)
