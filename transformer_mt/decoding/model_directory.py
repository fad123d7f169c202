"""The model directory: one folder with all that translation needs, and no file that can run code.

config.yaml          the config with all defaults filled in
model.safetensors    the weights, and checksums of them and of the tokenizers
trained_on.safetensors   hashes of the training sentences (`data.trained_on`); older versions did not write it
source/, target/     tokenizer and vocabulary of each side (`text.codec`); only source/ if both sides share one
scores.json          what `tmt evaluate` measured; absent before
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from transformer_mt.config.load import CONFIG, SCORES, dump_config, load_config
from transformer_mt.config.runs import EXPORT, EXPORT_WEIGHTS, STEPS, TRAINED_ON, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import require_utf8
from transformer_mt.files.replace import recover, replaced_folder
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.weights import (
    digest_of_weights,
    facts_of_weights,
    load_weights,
    read_shapes,
    read_weights,
    require_fit,
    save_weights,
)
from transformer_mt.text.codec import (
    SOURCE,
    TARGET,
    VOCABULARY,
    Codec,
    load_codecs,
    save_codecs,
    tokenizer_files,
    tokenizers_digest,
)

_TIED = {  # by `tie_embeddings`: names of weights that are stored under another one
    "none": (),
    "decoder": ("generator.weight",),
    "all": ("target_embedding.tokens.weight", "generator.weight"),
}
_CHECKSUMS = "sha256"  # one entry in the file of the weights, because safetensors writes several in a random order
_TENSORS = "tensors"  # in place of a file's name: of the weights
_SPARE = 8  # `_max_parameters` of a real model is about two to four times what it has
_REMEDY = (
    "Copy the whole model folder again: weights and tokenizers belong together. If it belongs to a run, move it away;"
    " `tmt average --run RUN` then writes it again from the checkpoints."
)
OWN_FILES = (CONFIG, WEIGHTS, SCORES, SOURCE, TARGET, STEPS)


@dataclass(frozen=True)
class ModelDirectory:
    """A loaded model with its two codecs. fingerprint: sha256 of the weights; None if they come from no file."""

    folder: Path
    config: Config
    model: Transformer
    source: Codec
    target: Codec
    fingerprint: str | None = None


def load_model_directory(folder: Path, device: torch.device | str = "cpu") -> ModelDirectory:
    """The model in eval mode, on the device. Raises TmtError if the folder is incomplete or damaged.

    The folder may come from a stranger: nothing many times larger than its files is allocated before all sizes have
    been compared.
    """
    recover(folder)
    require_no_export(folder)
    if not (folder / CONFIG).is_file() or not (folder / WEIGHTS).is_file():
        raise TmtError(
            f"not a model directory: {CONFIG} or {WEIGHTS} is missing",
            place=folder,
            remedy="Give the `model` folder of a finished run, such as runs/NAME/model.",
        )
    config, file = load_config(folder / CONFIG), folder / WEIGHTS
    shapes = read_shapes(file)
    _require_all_files(folder)  # without target/, the source's tokenizer would be used for both sides
    source, target = load_codecs(folder, _rows(shapes, SOURCE), _rows(shapes, TARGET))
    sizes = len(source), len(target)
    _require_layers(folder, config, shapes)
    if _max_parameters(config, sum(sizes)) > _SPARE * sum(map(math.prod, shapes.values())):
        require_weights_fit(folder, config, *sizes)  # without memory; but torch imports its compiler for that
    with torch.random.fork_rng(devices=[]):  # its first weights are drawn, and replaced
        model = build_model(config, *sizes, device)
    weights, fingerprint = _verified_weights(folder)
    load_weights(model, weights, file)
    return ModelDirectory(folder, config, model.eval(), source, target, fingerprint)


def require_no_export(folder: Path) -> None:
    """Raises TmtError if the folder has an export for CTranslate2 and no model."""
    if (folder / WEIGHTS).is_file():
        return
    has_weights = (folder / EXPORT_WEIGHTS).exists()
    if (folder / EXPORT).exists() and not (has_weights and (folder / CONFIG).exists()):
        missing = CONFIG if has_weights else f"its weights, {EXPORT_WEIGHTS}"
        remedy = "Copy the whole folder again, or export the model again."
        raise TmtError(f"an export for CTranslate2 without {missing}", place=folder, remedy=remedy)
    if has_weights:
        raise TmtError(
            "this is an export for CTranslate2, and here a model is needed",
            place=folder,
            remedy="Name the model that it was made from; `tmt translate` and `tmt score` take both.",
        )


def require_weights_fit(folder: Path, config: Config, source_size: int, target_size: int) -> None:
    """Raises TmtError unless the weights are those of such a model. Only their shapes are read.

    source_size, target_size: of the vocabularies
    """
    file = folder / WEIGHTS
    shapes = read_shapes(file)
    _require_layers(folder, config, shapes)
    with torch.device("meta"):
        require_fit(build_model(config, source_size, target_size, "meta"), shapes, file)


def _require_layers(folder: Path, config: Config, shapes: Mapping[str, Sequence[int]]) -> None:
    for stack, layers in (("encoder", config.model.encoder_layers), ("decoder", config.model.decoder_layers)):
        found = len({name.split(".")[2] for name in shapes if re.match(rf"{stack}\.layers\.\d", name)})
        if found != layers:
            problem = f"the weights do not fit the model: {found} {stack} layers in the file, {layers} in the config"
            remedy = f"Set model.{stack}_layers in {folder / CONFIG} to {found}."
            raise TmtError(problem, place=folder / WEIGHTS, remedy=remedy)


def _max_parameters(config: Config, vocabularies: int) -> int:
    """Upper bound of the number of parameters, without biases and norms. vocabularies: tokens of both"""
    model, rows = config.model, vocabularies + config.max_positions
    layer = 8 * model.d_model**2 + 3 * model.d_model * model.d_ff  # two attentions and SwiGLU
    return (model.encoder_layers + model.decoder_layers) * layer + 2 * rows * model.d_model


def read_model_weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a model directory. Raises TmtError if they or the tokenizers differ from what was saved."""
    return _verified_weights(folder)[0]


def _verified_weights(folder: Path) -> tuple[dict[str, Tensor], str]:
    """As `read_model_weights`, with the checksum of the weights."""
    weights = read_weights(folder / WEIGHTS)
    digest = digest_of_weights(weights)
    if _saved_checksums(folder).get(_TENSORS) not in (None, digest):
        raise TmtError("the weights are damaged: their checksum differs", place=folder / WEIGHTS, remedy=_REMEDY)
    require_saved_tokenizers(folder)
    return weights, digest


def _require_all_files(folder: Path) -> None:
    """Raises TmtError if a file of the tokenizers is missing that was saved with the weights."""
    missing = _saved_checksums(folder).keys() - {_TENSORS, *map(_name, tokenizer_files(folder))}
    if missing:
        files = ", ".join(sorted(missing)[:3])
        raise TmtError(f"saved with the weights, and missing now: {files}", place=folder, remedy=_REMEDY)


def require_saved_tokenizers(folder: Path) -> None:
    """Raises TmtError unless the tokenizers are those that were saved with the weights."""
    _require_all_files(folder)
    saved = _saved_checksums(folder)
    for file in tokenizer_files(folder):  # never a name that the file of the weights gives
        if file.is_file() and saved.get(_name(file)) not in (None, sha256_of(file)):
            problem = "damaged, or not the file that the weights beside it were trained with: its checksum differs"
            raise TmtError(problem, place=file, remedy=_REMEDY)


def _saved_checksums(folder: Path) -> dict[str, str]:
    """By name. Older versions wrote none. Raises TmtError if the weights cannot be read."""
    lines = facts_of_weights(folder / WEIGHTS).get(_CHECKSUMS, "").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _checksums(folder: Path, weights: Mapping[str, Tensor]) -> str:
    """What `read_model_weights` compares, in the format of sha256sum."""
    digests = [(digest_of_weights(weights), _TENSORS)]
    digests += [(sha256_of(file), _name(file)) for file in tokenizer_files(folder)]
    return "".join(f"{digest}  {name}\n" for digest, name in digests)


def _name(file: Path) -> str:
    return f"{file.parent.name}/{file.name}"


def vocabularies_digest(folder: Path) -> str:
    """A hash that says what each id means."""
    return tokenizers_digest(folder, VOCABULARY)


def _rows(shapes: Mapping[str, Sequence[int]], side: str) -> int | None:
    """The tokens for which the weights have embeddings; None if that is unclear."""
    one = f"{side}_embedding.tokens.weight"
    return next((shapes[name][0] for name in (one, f"{SOURCE}_embedding.tokens.weight") if shapes.get(name)), None)


def save_model_directory(
    folder: Path,
    config: Config,
    weights: Mapping[str, Tensor],
    codecs: tuple[Codec, Codec],
    trained_on: bytes | None = None,
) -> None:
    """Write a model directory. codecs: of source and target; the same object twice if they are shared.

    weights:    those of `named_weights`, or of `state_dict`, which has tied ones under each of their names
    trained_on: content of the file with that name; None: keep the file that is there
    Other files in an existing folder, such as an export or notes, are kept.
    Raises TmtError if the folder is the current one.
    """
    require_replaceable(folder)
    weights = {name: one for name, one in weights.items() if name not in _TIED[config.model.tie_embeddings]}
    with replaced_folder(folder) as aside:
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name in OWN_FILES or (entry.name == TRAINED_ON and trained_on is not None):
                continue
            if entry.is_dir() and not entry.is_symlink():  # copied, because a kill after moving it would lose it
                shutil.copytree(entry, aside / entry.name, symlinks=True)
            else:
                shutil.copy2(entry, aside / entry.name, follow_symlinks=False)
        (aside / CONFIG).write_text(dump_config(config), encoding="utf-8")
        save_codecs(codecs, aside)
        save_weights(weights, aside / WEIGHTS, {_CHECKSUMS: _checksums(aside, weights)})
        if trained_on is not None:
            (aside / TRAINED_ON).write_bytes(trained_on)


def require_replaceable(folder: Path) -> None:
    """Raises TmtError if the folder is the current one, or has it inside, or if its name is not UTF-8."""
    require_utf8(folder)
    if Path.cwd().is_relative_to(folder.resolve()):
        remedy = "Name another folder, or leave this one first:  cd .."
        raise TmtError("the current folder cannot be replaced", place=folder, remedy=remedy)
