"""What a config with `training.start_from` leaves out: keys of `model` and `tokenizer` have the values of that model.

So have those of `data.cleaning` that decide how a text is read (`unicode`, `whitespace`).

A config that names other values is not changed here; `workflows.parents` refuses what does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.runs import CONFIG, MODEL, RUNS
from transformer_mt.config.yaml_source import YamlSource, read_yaml
from transformer_mt.errors import TmtError

START = ("training", "start_from")
# Keys of `model` that may differ from those of the model to start from; all others decide what its weights mean.
FREE_OF_MODELS = ("dropout", "attention_dropout", "feed_forward_dropout", "attention", "norm_kernel", "embedding_init")
READING = ("unicode", "whitespace")  # keys of `data.cleaning` that change what a sentence is read as
SIDES = ("source", "target")  # of a tokenizer section with one for each language


def with_inherited(source: YamlSource, run: Path | None = None, fresh: bool = False) -> YamlSource:
    """The values of a config, with those that it takes from the model to start from.

    run: folder of the run; default: runs/NAME. A run that has begun with this model keeps what it began with, so the
    folder of the model is not read, and may be gone. fresh: it begins again
    Raises TmtError if something is left out and there is no such model.
    """
    own, start = source.values, _start_of(source.values)
    if start is None or not _lacks(own):
        return source
    begun = None if fresh else _values(run or RUNS / str(own.get("name")))
    if begun is not None and _start_of(begun) == start:
        parent = begun
    else:
        folder = Path(start)
        with suppress(RuntimeError):  # no such user: `~` is a part of the name
            folder = folder.expanduser()
        found = _values(folder / MODEL) or _values(folder)
        if found is None and {"kind", "source"} & set(_section(own, "tokenizer")):
            return source  # a training looks for the folder again; the config of a finished model does not need it
        if found is None:
            raise TmtError(
                f"'training.start_from': there is no model in {start}, so what this config leaves out of `model` and"
                " `tokenizer` is unknown",
                place=source.place(START),
                remedy="Name the folder of a finished run, such as runs/NAME, or of a model.",
            )
        parent = found
    sides = set(SIDES) & set(_section(own, "tokenizer"))
    if sides and "source" not in _section(parent, "tokenizer"):
        side = min(sides)
        raise TmtError(
            f"'tokenizer.{side}': the model in {start} has one tokenizer for both languages",
            place=source.place(("tokenizer", side)),
            remedy="Write its keys without `source` and `target`, such as  tokenizer: {extend: 300}",
        )
    given = own.get("model", {})
    model = {key: value for key, value in _section(parent, "model").items() if key in ModelConfig.model_fields}
    if model.get("positions") == "learned" and model.get("max_positions") is None:
        model["max_positions"] = _section(parent, "data").get("max_length")  # rows of the table
    inherited = {
        "tokenizer": _tokenizer(_section(parent, "tokenizer"), own.get("tokenizer", {})),
        "model": {**model, **given} if isinstance(given, Mapping) else given,
    }
    data = _section(own, "data")
    cleaning = data.get("cleaning", {})
    read = {key: one for key, one in _section(_section(parent, "data"), "cleaning").items() if key in READING}
    if data and isinstance(cleaning, Mapping) and read.keys() - cleaning.keys():
        inherited["data"] = {**data, "cleaning": {**read, **cleaning}}
    return YamlSource(source.file, {**own, **inherited}, source.lines)


def _start_of(values: Mapping[str, Any]) -> str | None:
    start = _section(values, "training").get("start_from")
    return start if isinstance(start, str) and start else None


def _section(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = values.get(name)
    return section if isinstance(section, Mapping) else {}


def _lacks(own: Mapping[str, Any]) -> bool:
    """Whether a key of `model` is left out, or the tokenizer or a part of it. Complete configs need no other file."""
    tokenizer = _section(own, "tokenizer")
    sides = [_section(tokenizer, side) for side in SIDES] if "source" in tokenizer else [tokenizer]
    complete = all("kind" in side and "extend" in side for side in sides)
    return not complete or not set(ModelConfig.model_fields) <= set(_section(own, "model"))


def _values(folder: Path) -> dict[str, Any] | None:
    return read_yaml(folder / CONFIG).values if (folder / CONFIG).is_file() else None


def _tokenizer(parent: Mapping[str, Any], own: Any) -> Any:
    """The tokenizer section: that of the parent, with the keys of this config. The parent's own extension is done."""
    if not isinstance(own, Mapping):
        return own
    if "source" in parent:
        parts = own if set(SIDES) & set(own) else dict.fromkeys(SIDES, own)
        return {**parts, **{side: _tokenizer(_section(parent, side), parts.get(side, {})) for side in SIDES}}
    if own.get("kind", parent.get("kind")) != parent.get("kind"):
        return own
    return {**{key: value for key, value in parent.items() if key != "extend"}, **own}
