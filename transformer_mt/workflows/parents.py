"""The model that a training starts from: finding it, whether it fits the config, and what the run keeps of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from transformer_mt.config.inheritance import FREE_OF_MODELS
from transformer_mt.config.load import CONFIG, differences, load_config
from transformer_mt.config.runs import TRAINED_ON, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.data.parent import Parent
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.model_directory import require_no_export, require_weights_fit
from transformer_mt.errors import TmtError
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import path_of
from transformer_mt.files.replace import replaced_folder
from transformer_mt.reporting.table import aligned
from transformer_mt.runtime.weights import read_shapes
from transformer_mt.text.codec import SOURCE, TARGET
from transformer_mt.training.run_directory import RunDirectory

KEPT = "parent"  # in the folder of the run: the parent's tokenizers and config, without weights
FITTING = ("data.source", "data.target", "model.", "tokenizer.")  # keys that must be those of the parent, except
FREE_OF_TOKENIZERS = ("extend", "sampling", "training_sentences", "min_frequency", "min_word_frequency")


def parent_of(config: Config, run: Path, fresh: bool = False) -> Parent | None:
    """The model that a config starts from; None if it starts from random weights.

    run: a run that has begun keeps what it needs, so that the model may change or go. fresh: it begins again
    Raises TmtError if there is no such model, or if it does not fit the config.
    """
    start = config.training.start_from
    if start is None:
        return None
    kept, directory = run / KEPT, RunDirectory(run)
    has_begun = bool(directory.checkpoints.steps())  # else no weights were read
    if not fresh and has_begun and (kept / CONFIG).is_file() and load_config(run / CONFIG).training.start_from == start:
        folder = kept
    else:
        folder = find_parent(config)
        if directory.contains(folder):
            remedy = "Give the new run another name or --run-dir, so that the model it starts from stays as it is."
            raise TmtError("this run would start from its own model", place="training.start_from", remedy=remedy)
    of_parent = load_config(folder / CONFIG)
    if folder != kept:  # a run of an older version that has begun without them goes on
        _require_tags(config, of_parent)
        _require_sides(config, of_parent)
    require_fit(config, of_parent)
    parent = Parent(start, folder, of_parent.data.all_directions)
    if (folder / WEIGHTS).exists():  # a stranger's config may claim any size, and a model of that size is built next
        require_weights_fit(folder, of_parent, *map(len, parent.codecs))
    return parent


def checksum_of_parent(config: Config) -> str:
    """The checksum of the weights to start from. Raises TmtError if they are missing, or no weights."""
    file = find_parent(config) / WEIGHTS
    read_shapes(file)
    return sha256_of(file)


def _require_tags(config: Config, parent: Config) -> None:
    """Raises TmtError if the parent reads a tag before each source, and the config would train it without."""
    if parent.data.directions is not None and config.data.directions is None:
        raise TmtError(
            f"the model in {config.training.start_from} has directions, so it reads a tag before each source",
            place="training.start_from",
            remedy=f"In `data`, write  directions: [{config.data.direction}]  in place of source and target, or choose"
            " another model.",
        )


def _require_sides(config: Config, parent: Config) -> None:
    """Raises TmtError if one of its tokenizers would read a language that only the other one has learned."""
    if config.data.directions is None or parent.has_shared_tokenizer:
        return
    asked, known = config.data.all_directions, parent.data.all_directions
    for side in ("source", "target"):
        own = {getattr(one, side) for one in known}
        other = {getattr(one.reversed, side) for one in known} - own
        if wrong := sorted(other & {getattr(one, side) for one in asked}):
            raise TmtError(
                f"the {side} tokenizer of {config.training.start_from} has learned {', '.join(sorted(own))}, not"
                f" {', '.join(wrong)}",
                place="data.directions",
                remedy="Start from a model with a shared tokenizer (tokenizer.shared), or train without start_from.",
            )


def find_parent(config: Config) -> Path:
    """The model folder that training.start_from names. Raises TmtError if it has no model."""
    folder = find_model(path_of(config.training.start_from or ""))
    if not (folder / CONFIG).is_file():
        remedy = "Name a run folder, such as runs/NAME, or its folder `model`, in training.start_from."
        raise TmtError("not a model folder", place=folder, remedy=remedy)
    require_no_export(folder)
    return folder


def require_fit(config: Config, parent: Config) -> None:
    """Raises TmtError with a table of the keys whose values differ, if weights or tokenizers cannot be used."""
    rows = [[" ".join(["", "", key]), *values.split(" | ")] for key, values in _misfits(config, parent)]
    if config.model.positions == "learned" == parent.model.positions and config.max_positions != parent.max_positions:
        rows.append(["  model.max_positions", str(parent.max_positions), str(config.max_positions)])
    if not rows:
        return
    table = "\n  ".join(aligned([["  key", "model", "config"], *rows], "<<<"))
    keys = [row[0].strip() for row in rows]
    if any(key.startswith("data.") for key in keys):
        remedy = (
            f"This model translates {parent.data.direction}: choose a model for {config.data.direction}, or one of the"
            " opposite direction with a shared tokenizer (tokenizer.shared)."
        )
    else:
        remedy = "Remove these keys from the config, which then takes them from the model, or choose another model."
    problem = f"the model in {config.training.start_from} does not fit this config:\n  {table}"
    raise TmtError(problem, place="training.start_from", remedy=remedy)


def _misfits(config: Config, parent: Config) -> list[tuple[str, str]]:
    """The keys with other values, and both values as `parent | config`."""
    found = []
    for line in differences(parent, config):
        key, _, values = line.partition(": ")
        section, _, name = key.partition(".")
        free = name in FREE_OF_MODELS if section == "model" else name.rpartition(".")[2] in FREE_OF_TOKENIZERS
        if key in ("data.source", "data.target") and (config.data.directions or _is_opposite(config, parent)):
            continue  # tags are added to the vocabulary; one tokenizer knows both languages of the opposite direction
        if key == "model.max_positions":
            continue  # compared as it takes effect
        if key.startswith(FITTING) and not free:
            found.append((key, values))
    return found


def _is_opposite(config: Config, parent: Config) -> bool:
    """Whether a model of one direction starts from one of the opposite direction that has the same tokenizer."""
    if parent.data.directions is not None or not parent.has_shared_tokenizer:
        return False
    return config.data.one_direction == parent.data.one_direction.reversed


def keep_parent(parent: Parent, run: Path) -> None:
    """Copy what a begun run needs of its parent: prepared data can then be made again without it."""
    if parent.folder == run / KEPT:
        return
    with replaced_folder(run / KEPT) as aside:
        for name in (CONFIG, TRAINED_ON):
            if (parent.folder / name).exists():
                shutil.copy(parent.folder / name, aside / name)
        for side in (SOURCE, TARGET):
            if (parent.folder / side).is_dir():
                shutil.copytree(parent.folder / side, aside / side)
