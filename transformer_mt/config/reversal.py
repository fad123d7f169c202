"""The config of the opposite direction: from the target language to the source language."""

from __future__ import annotations

from typing import Any

from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError

_SWAPPED = {"source": "target", "source_column": "target_column"}
_OTHER = {**_SWAPPED, **{other: one for one, other in _SWAPPED.items()}}


def reversed_config(config: Config) -> Config:
    """The same corpora, splits, sizes and training with languages, files, columns and tokenizers exchanged.

    Raises TmtError if the training starts from a model with a tokenizer for each language.
    """
    if config.training.start_from is not None and not config.has_shared_tokenizer:
        raise TmtError(
            f"{config.training.start_from} has a tokenizer for each language, so no model of the opposite direction can"
            " start from it",
            place="training.start_from",
            remedy="Name trained models of the opposite direction in synthesis.models, or remove training.start_from."
            " If only teachers shall not start from it:  --set 'synthesis.teacher=[training.start_from=null]'",
        )
    values = config.model_dump(mode="json")
    data = values["data"] = _exchanged(values["data"])
    values["tokenizer"] = _exchanged(values["tokenizer"])
    data["cleaning"]["leaks"] = _OTHER.get(data["cleaning"]["leaks"], data["cleaning"]["leaks"])
    for corpus in data["corpus"]:
        corpus.pop("sha256", None)  # in the order of the files, which is another one; the config has been checked
    return Config.model_validate(values)


def _exchanged(value: Any) -> Any:
    if isinstance(value, dict):
        return {_OTHER.get(key, key): _exchanged(inside) for key, inside in value.items()}
    return [_exchanged(one) for one in value] if isinstance(value, list) else value
