"""What a user ships: one folder with all that translating needs, and nothing that could run code.

config.yaml          the resolved config
model.safetensors    the weights
source/, target/     tokenizer and vocabulary of each side (`text.codec`); with a shared one, only source/
scores.json          what `tmt evaluate` measured; absent until then
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer_mt.config.load import CONFIG, SCORES, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import recover, replaced_folder
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.weights import load_weights, read_weights, save_weights
from transformer_mt.text.codec import SOURCE, TARGET, Codec, load_codecs, save_codecs

WEIGHTS = "model.safetensors"
OURS = (CONFIG, WEIGHTS, SCORES, SOURCE, TARGET, ".steps")  # the last a run's note of the checkpoints it is made of


@dataclass(frozen=True)
class ModelDirectory:
    """A loaded model with its two codecs."""

    folder: Path
    config: Config
    model: Transformer
    source: Codec
    target: Codec


def load_model_directory(folder: Path, device: torch.device | str = "cpu") -> ModelDirectory:
    """Raises TmtError where the folder is none, incomplete or damaged."""
    recover(folder)
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise TmtError(
            "this is no model directory (it needs config.yaml and model.safetensors)",
            place=folder,
            remedy="Give the `model` folder of a finished run, such as runs/NAME/model.",
        )
    config = load_config(folder / CONFIG)
    source, target = load_codecs(folder)
    model = build_model(config, len(source), len(target), device)
    load_weights(model, read_weights(folder / WEIGHTS), folder / WEIGHTS)
    return ModelDirectory(folder, config, model.eval(), source, target)


def save_model_directory(
    folder: Path, config: Config, weights: Mapping[str, Tensor], codecs: tuple[Codec, Codec]
) -> None:
    """Write a model directory. codecs: of source and target; one object where they are shared.

    Other files in an existing folder, such as an export or notes, are kept.
    """
    require_replaceable(folder)
    with replaced_folder(folder) as aside:
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name in OURS:
                continue
            if entry.is_dir() and not entry.is_symlink():  # copied: moving it would lose it if the program is killed
                shutil.copytree(entry, aside / entry.name, symlinks=True)
            else:
                shutil.copy2(entry, aside / entry.name, follow_symlinks=False)
        (aside / CONFIG).write_text(dump_config(config), encoding="utf-8")
        save_weights(weights, aside / WEIGHTS)
        save_codecs(codecs, aside)


def require_replaceable(folder: Path) -> None:
    """Raises TmtError if this program stands in the folder: it cannot be replaced then."""
    if folder.resolve() == Path.cwd():
        raise TmtError("this is the folder you are in, which cannot be replaced", place=folder, remedy="Name another.")
