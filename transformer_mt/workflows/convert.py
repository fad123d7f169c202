"""Makes a model folder of a model that another program has trained."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer_mt.config.schema import Config, OneTokenizer
from transformer_mt.config.section import NAME
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError, first_of
from transformer_mt.files.lines import path_of
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import require_finite, require_fit
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.tokenizers.base import problems_in
from transformer_mt.text.tokenizers.sentencepiece import FILE
from transformer_mt.text.vocabulary import MARKS, Vocabulary
from transformer_mt.workflows.converting.directions import SHOWN, Directions, one_direction, tagged_directions
from transformer_mt.workflows.converting.marian import (
    CONFIG,
    PIECES,
    WEIGHTS,
    MarianConfig,
    PieceModel,
    read_config,
    read_languages,
    read_pieces,
    read_tensors,
)

_UNUSUAL = "A model needs sizes that docs/configuration.md allows."


@dataclass(frozen=True)
class Converted:
    """The model that was written.

    pieces:   of the source and of the target
    left_out: tags that `target` may name instead: a language has several
    unknown:  tags without the code of a language, which the model does not have
    """

    folder: str
    direction: str
    parameters: int
    pieces: tuple[int, int]
    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What was written, and what was left out, in lines of text."""
        sides = " and ".join(f"{number:,}" for number in self.pieces)
        directions = first_of(self.direction.split(", "), SHOWN)
        lines = [
            f"left out: {first_of(tags, SHOWN)} ({why})"
            for tags, why in ((self.left_out, "--to TAG takes one of them"), (self.unknown, "no code of a language"))
            if tags
        ]
        return "\n".join([*lines, f"{self.folder}: {directions}, {self.parameters:,} parameters, {sides} tokens"])


def convert(model: str | Path, output: str | Path, source: str | None = None, target: str | None = None) -> Converted:
    """Write a model folder with the weights and pieces of a model of Marian in Hugging Face's form (OPUS-MT).

    source, target: languages; default: those that the folder names. Of a model with tags for its target languages,
                    all, or `target` alone: a code, or the name of a tag
    Raises TmtError if `model` cannot be converted, or if something is in the folder `output` already.
    """
    model, output = path_of(model), path_of(output)
    if not model.exists():
        remedy = f"Download it first:  hf download {model} --local-dir {model.name}   (pip install huggingface_hub)"
        raise TmtError("no such folder", place=model, remedy=remedy)
    if not (model / CONFIG).is_file() or ((model / WEIGHTS).exists() and not (model / WEIGHTS).is_file()):
        remedy = f"Give a folder of Hugging Face with {CONFIG}, {WEIGHTS}, vocab.json, source.spm and target.spm."
        raise TmtError("this is no model of Marian", place=model, remedy=remedy)
    if output.exists():
        raise TmtError("this exists already, and is not replaced", place=output, remedy="Choose another folder.")
    marian, (first, second, tags) = read_config(model), read_pieces(model)
    sides, named = (first, second), read_languages(model)
    if tags:
        wanted = tagged_directions(tags, named, source, target, model)
    else:
        wanted = one_direction(named, source, target, model)
    config = _config(marian, sides, wanted, output, model / CONFIG)
    weights = read_tensors(model, marian, sides, [tags[name] for name in wanted.targets.values() if name])
    data = config.data
    codecs = (
        _codec(config.source_tokenizer, data.source_language, sides[0], model / PIECES[0], data.tags),
        _codec(config.target_tokenizer, data.target_language, sides[1], model / PIECES[1]),
    )
    sizes = len(codecs[0]), len(codecs[1])
    require_finite(weights, model / WEIGHTS)
    with torch.device("meta"):
        shapes = {name: list(one.shape) for name, one in weights.items()}
        require_fit(build_model(config, *sizes, "meta"), shapes, model / WEIGHTS)
    save_model_directory(output, config, weights, codecs)
    number = sum(one.numel() for one in weights.values())
    return Converted(str(output), data.direction, number, sizes, wanted.left_out, wanted.unknown)


def _config(
    marian: MarianConfig, sides: tuple[PieceModel, PieceModel], wanted: Directions, output: Path, file: Path
) -> Config:
    """The config of the model folder. file: that of Marian, for messages"""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", output.name).strip("-.")
    options = [
        {"kind": "sentencepiece", "algorithm": one.algorithm, "vocab_size": max(32, len(one.rows) + len(MARKS))}
        for one in sides
    ]
    try:
        with problems_in(CONFIG):
            return Config.model_validate(
                {
                    "name": name if re.fullmatch(NAME, name) else "converted",
                    "data": {
                        **wanted.keys(),
                        "max_length": min(marian.max_position_embeddings, 4096),
                        "cleaning": {"unicode": "NFKC", "whitespace": "collapse"},  # as its pieces were made
                    },
                    "tokenizer": {"source": options[0], "target": options[1]},
                    "model": marian.keys(),
                    "training": {"max_epochs": 1},
                    "decoding": {"beam": marian.num_beams if marian.num_beams > 1 else 4, "length_penalty": 1.0},
                }
            )
    except ValueError as error:
        raise TmtError(f"this model cannot be converted: {error}", place=file, remedy=_UNUSUAL) from None


def _codec(options: OneTokenizer, language: str, pieces: PieceModel, file: Path, tags: Sequence[str] = ()) -> Codec:
    """file: of the pieces, for messages"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, FILE).write_bytes(pieces.model)
        try:
            segmenter = Segmenter.of(options, language, Path(folder))
            return Codec(segmenter, Vocabulary(segmenter.tokenizer.inventory() or [], tags))
        except ValueError as error:
            raise TmtError(f"the pieces cannot be used: {error}", place=file, remedy="Copy them again.") from None
