"""What a user ships: one folder with all that translating needs, and nothing that could run code.

config.yaml          the resolved config
model.safetensors    the weights
source/, target/     tokenizer and vocabulary of each side (`text.codec`); with a shared one, only source/
scores.json          what `tmt evaluate` measured; absent until then
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer_mt.config.load import CONFIG, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.model.transformer import Transformer
from transformer_mt.model.weights import load_weights, read_weights, save_weights
from transformer_mt.text.codec import SOURCE, TARGET, Codec, load_codecs, save_codecs
from transformer_mt.text.vocabulary import PAD

WEIGHTS, SCORES = "model.safetensors", "scores.json"
OURS = (CONFIG, WEIGHTS, SCORES, SOURCE, TARGET, ".steps")  # the last a run's note of the checkpoints it is made of


@dataclass(frozen=True)
class ModelDirectory:
    """A loaded model with its two codecs."""

    folder: Path
    config: Config
    model: Transformer
    source: Codec
    target: Codec


def build_model(config: Config, source_vocab: int, target_vocab: int) -> Transformer:
    """The model a config describes, freshly initialised from torch's generator."""
    return Transformer(config.model, source_vocab, target_vocab, PAD, config.max_positions)


def load_model_directory(folder: Path, device: torch.device | str = "cpu") -> ModelDirectory:
    """Raises TmtError where the folder is none, incomplete or damaged."""
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise TmtError(
            "this is no model directory (it needs config.yaml and model.safetensors)",
            place=folder,
            remedy="Give the `model` folder of a finished run, such as runs/NAME/model.",
        )
    config = load_config(folder / CONFIG)
    source, target = load_codecs(folder)
    model = build_model(config, len(source), len(target))
    load_weights(model, read_weights(folder / WEIGHTS), folder / WEIGHTS)
    return ModelDirectory(folder, config, model.to(device).eval(), source, target)


def save_model_directory(
    folder: Path, config: Config, weights: Mapping[str, Tensor], codecs: tuple[Codec, Codec]
) -> None:
    """Write a model directory. codecs: of source and target; one object where they are shared.

    What a former one at this place holds of others, an export or notes, stays.
    """
    with written_aside(folder) as aside:
        _carry_over(folder, aside)
        (aside / CONFIG).write_text(dump_config(config), encoding="utf-8")
        save_weights(weights, aside / WEIGHTS)
        save_codecs(codecs, aside)


def _carry_over(folder: Path, aside: Path) -> None:
    """Copy what is not a model's own; moving it would lose it where the program is killed."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name in OURS:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, aside / entry.name, symlinks=True)
        else:
            shutil.copy2(entry, aside / entry.name, follow_symlinks=False)


@contextmanager
def written_aside(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `folder` when the block ends well; what was there goes."""
    folder = folder.resolve()  # a link stays one, to the new folder
    if folder == Path.cwd():
        raise TmtError("this is the folder you are in, which cannot be replaced", place=folder, remedy="Name another.")
    aside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    replaced = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.replace(replaced)
    aside.replace(folder)
    shutil.rmtree(replaced, ignore_errors=True)
