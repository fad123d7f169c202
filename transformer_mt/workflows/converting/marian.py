"""Models of Marian in the form of Hugging Face, such as OPUS-MT, as models of this program.

Both are the paper's post-norm Transformer. Two things differ. Marian's positions have all sines before all cosines,
where the paper alternates them. So the coordinates of the residual stream change their order in every weight that reads
or writes them, and the model computes the same. And Marian numbers the pieces of both languages in one vocabulary;
here, each side has its own pieces, and the single characters of the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from transformer_mt.errors import TmtError, from_os_error, reason
from transformer_mt.files.opening import read_small
from transformer_mt.model.positions import sinusoidal_positions
from transformer_mt.runtime.weights import read_weights
from transformer_mt.text.tokenizers.base import LARGEST, problems_in
from transformer_mt.text.tokenizers.piece_file import Piece, model_of, pieces_of
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK

CONFIG, LANGUAGES, VOCABULARY = "config.json", "tokenizer_config.json", "vocab.json"
PIECES = ("source.spm", "target.spm")
WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
NEVER = -100.0  # bias of what is never written: so small that its share of the label smoothing does not count
_UNKNOWN = 10.0  # by so much an unknown character scores below the least piece, in SentencePiece
_NORMAL = (1, 4, 6)  # kinds of pieces that text has: normal ones, those given by the user, and bytes
_TAG = re.compile(r">>[^<>]+<<")  # a piece that names the target language, in a model of several
_COPY = "Copy the whole folder again."
_ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
_Activation = Literal["swish", "silu", "relu", "gelu"]


class MarianConfig(BaseModel):
    """The keys of config.json that this program needs; their names and defaults are those of Hugging Face."""

    model_type: Literal["marian"]
    d_model: int = Field(1024, ge=2, multiple_of=2)
    encoder_layers: int = Field(12, ge=1)
    decoder_layers: int = Field(12, ge=1)
    encoder_attention_heads: int = Field(16, ge=1)
    decoder_attention_heads: int = Field(16, ge=1)
    encoder_ffn_dim: int = Field(4096, ge=1)
    decoder_ffn_dim: int = Field(4096, ge=1)
    activation_function: _Activation = "gelu"
    scale_embedding: bool = False
    normalize_before: Literal[False] = False
    normalize_embedding: Literal[False] = False
    add_final_layer_norm: Literal[False] = False
    share_encoder_decoder_embeddings: Literal[True] = True
    max_position_embeddings: int = Field(1024, ge=2)
    dropout: float = Field(0.1, ge=0, lt=1)
    decoder_start_token_id: int = Field(58100, ge=0)
    eos_token_id: int = Field(0, ge=0)
    num_beams: int = Field(1, ge=1)

    def keys(self) -> dict[str, Any]:
        """The section `model` of a config. Raises ValueError if the encoder and the decoder have other sizes."""
        for one in ("attention_heads", "ffn_dim"):
            if getattr(self, f"encoder_{one}") != getattr(self, f"decoder_{one}"):
                raise ValueError(f"encoder_{one} and decoder_{one} differ")
        return {
            "d_model": self.d_model,
            "n_heads": self.encoder_attention_heads,
            "d_ff": self.encoder_ffn_dim,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "dropout": self.dropout,
            "norm": "post",
            "positions": "sinusoidal",
            "scale_embeddings": self.scale_embedding,
            "tie_embeddings": "decoder",
            "activation": _ACTIVATIONS[self.activation_function],
        }


class PieceModel(NamedTuple):
    """SentencePiece of one side. rows: of each piece in Marian's vocabulary; model: the file that has these pieces"""

    rows: list[int | None]
    model: bytes
    algorithm: str


def read_config(folder: Path) -> MarianConfig:
    """Raises TmtError if this is no such model, or if it computes what this program does not."""
    values = _read_json(folder / CONFIG)
    try:
        with problems_in(CONFIG):
            return MarianConfig.model_validate(values)
    except ValueError as error:
        problem = f"this model cannot be converted: {reason(error)}"
        remedy = "Models of the type marian that normalise after each sub-layer can be converted, such as OPUS-MT."
        raise TmtError(problem, place=folder / CONFIG, remedy=remedy) from None


def read_languages(folder: Path) -> tuple[str, str]:
    """The languages of the source and of the target as the folder names them; "" if it does not."""
    values = _read_json(folder / LANGUAGES) if (folder / LANGUAGES).exists() else {}
    return str(values.get("source_lang") or ""), str(values.get("target_lang") or "")


def read_pieces(folder: Path) -> tuple[PieceModel, PieceModel]:
    """Those of the source and of the target. Raises TmtError if they are damaged, or of several target languages."""
    numbers = _read_json(folder / VOCABULARY)
    if not all(isinstance(number, int) and number >= 0 for number in numbers.values()):
        raise TmtError("not readable: each piece needs a number", place=folder / VOCABULARY, remedy=_COPY)
    if tags := sorted(filter(_TAG.fullmatch, numbers)):
        problem = f"this model translates into {len(tags)} languages or kinds of text ({', '.join(tags[:5])})"
        remedy = "Only models of one direction can be converted."
        raise TmtError(problem, place=folder / VOCABULARY, remedy=remedy)
    source, target = (_pieces_of_side(folder / name, numbers) for name in PIECES)
    return source, target


def _pieces_of_side(file: Path, numbers: Mapping[str, int]) -> PieceModel:
    try:
        pieces, algorithm = pieces_of(read_small(file, LARGEST))
        text = [piece for piece in pieces if piece.kind in _NORMAL and piece.text not in MARKS]
        if algorithm not in ("unigram", "bpe") or len({piece.text for piece in text}) < len(text):
            raise ValueError("its algorithm is not unigram or BPE, or it has a piece twice")
    except OSError as error:
        raise from_os_error(error, "reading the pieces", file) from None
    except ValueError as error:
        raise TmtError(f"not a readable SentencePiece model: {reason(error)}", place=file, remedy=_COPY) from None
    if not any(piece.text in numbers for piece in text):
        raise TmtError(f"none of its pieces is in {VOCABULARY}", place=file, remedy=_COPY)
    # Characters that this side lacks were trained with the number that the other side gives them.
    least = min(piece.score for piece in text) - _UNKNOWN
    known = {piece.text for piece in text}
    text += [Piece(one, least) for one in numbers if len(one) == 1 and one not in known]
    marks = [Piece(mark, kind=2 if index == UNK else 3) for index, mark in enumerate(MARKS)]
    rows = [numbers.get(piece.text) for piece in text]
    return PieceModel(rows, model_of([*marks, *text], algorithm), algorithm)


def read_tensors(folder: Path, config: MarianConfig, sides: tuple[PieceModel, PieceModel]) -> dict[str, Tensor]:
    """The weights with the names and shapes of this program. Raises TmtError if they are not those of the config."""
    if not (folder / WEIGHTS).exists() and (folder / PICKLED).exists():
        save = "AutoModelForSeq2SeqLM.from_pretrained('.').save_pretrained('.')"
        remedy = f'In this folder:  python -c "from transformers import AutoModelForSeq2SeqLM; {save}"'
        problem = f"the weights are pickled: reading {PICKLED} can run any code, so it is not read"
        raise TmtError(problem, place=folder, remedy=remedy)
    tensors = _Tensors({name: one.float() for name, one in read_weights(folder / WEIGHTS).items()}, folder / WEIGHTS)
    shared = tensors.take("model.shared.weight")
    _require_known(tensors, config, shared)
    order = torch.arange(config.d_model).view(2, -1).T.reshape(-1)  # sine, cosine, sine, ...
    weights: dict[str, Tensor] = {}
    for side, pieces in zip(("source", "target"), sides, strict=True):
        rows = torch.tensor(_rows(pieces, config))
        if int(rows.max()) >= len(shared):
            problem = f"{VOCABULARY} has numbers up to {int(rows.max())}, and the weights have {len(shared)} embeddings"
            raise TmtError(problem, place=folder, remedy=_COPY)
        weights[f"{side}_embedding.tokens.weight"] = shared[rows][:, order]
    bias = tensors.take("final_logits_bias", len(shared)).reshape(-1)[rows]
    never = [PAD, BOS, *(index for index, row in enumerate(sides[1].rows, len(MARKS)) if row is None)]
    weights["generator.bias"] = bias.index_fill(0, torch.tensor(never), NEVER)
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            weights |= _layer(tensors, f"{stack}.layers.{number}.", stack == "decoder", order)
    tensors.require_empty()
    return weights


def _rows(pieces: PieceModel, config: MarianConfig) -> list[int]:
    """The row of each token of one side: Marian begins a translation with what it pads with."""
    start, end, unknown = config.decoder_start_token_id, config.eos_token_id, 1
    marks = {PAD: start, UNK: unknown, BOS: start, EOS: end}
    return [*(marks[index] for index in range(len(MARKS))), *(unknown if row is None else row for row in pieces.rows)]


def _layer(tensors: _Tensors, name: str, is_decoder: bool, order: Tensor) -> dict[str, Tensor]:
    """One layer. order: of the coordinates of the residual stream"""
    found: dict[str, Tensor] = {}
    attentions = {"self_attention": "self_attn", **({"cross_attention": "encoder_attn"} if is_decoder else {})}
    for own, theirs in attentions.items():
        three = [f"model.{name}{theirs}.{one}_proj" for one in "qkv"]
        matrix, bias = (torch.cat([tensors.take(f"{one}.{part}") for one in three]) for part in ("weight", "bias"))
        found |= {f"{name}{own}.query_key_value.weight": matrix[:, order], f"{name}{own}.query_key_value.bias": bias}
        for part in ("weight", "bias"):
            found[f"{name}{own}.output.{part}"] = tensors.take(f"model.{name}{theirs}.out_proj.{part}")[order]
    found[f"{name}feed_forward.inner.weight"] = tensors.take(f"model.{name}fc1.weight")[:, order]
    found[f"{name}feed_forward.inner.bias"] = tensors.take(f"model.{name}fc1.bias")
    for part in ("weight", "bias"):
        found[f"{name}feed_forward.outer.{part}"] = tensors.take(f"model.{name}fc2.{part}")[order]
    norms = {own: f"{theirs}_layer_norm" for own, theirs in attentions.items()} | {"feed_forward": "final_layer_norm"}
    for own, theirs in norms.items():
        for part, their_part in (("gamma", "weight"), ("beta", "bias")):
            found[f"{name}around_{own}.norm.{part}"] = tensors.take(f"model.{name}{theirs}.{their_part}")[order]
    return found


def _require_known(tensors: _Tensors, config: MarianConfig, shared: Tensor) -> None:
    """Raises TmtError if positions are not the paper's, or embeddings not shared; both are often stored again."""
    half = sinusoidal_positions(config.max_position_embeddings, config.d_model)
    sines = torch.cat([half[:, 0::2], half[:, 1::2]], dim=1)
    copies = {f"model.{stack}.embed_positions.weight": sines for stack in ("encoder", "decoder")}
    copies |= {f"model.{stack}.embed_tokens.weight": shared for stack in ("encoder", "decoder")}
    for name, expected in (copies | {"lm_head.weight": shared}).items():
        found = tensors.left.pop(name, expected)
        if found.shape != expected.shape or not torch.allclose(found, expected, atol=1e-3):
            problem = f"{name} differs from what a model of Marian has there"
            remedy = "Models with shared embeddings and with positions of sines and cosines can be converted."
            raise TmtError(problem, place=tensors.file, remedy=remedy)


class _Tensors:
    """Tensors by name, each of which is used once."""

    def __init__(self, left: dict[str, Tensor], file: Path) -> None:
        self.left, self.file = left, file

    def take(self, name: str, zeros: int | None = None) -> Tensor:
        """zeros: how many stand for a tensor that is missing. Raises TmtError if it may not be missing."""
        if name not in self.left and zeros is not None:
            return torch.zeros(zeros)
        if name not in self.left:
            raise TmtError(f"the weights have no tensor {name}", place=self.file, remedy=_COPY)
        return self.left.pop(name)

    def require_empty(self) -> None:
        if self.left:
            problem = f"{len(self.left)} tensors belong to no model of this config, such as {min(self.left)}"
            raise TmtError(problem, place=self.file, remedy="Check that config.json belongs to these weights.")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(read_small(file, LARGEST))
    except OSError as error:
        raise from_os_error(error, "reading a model", file) from None
    except (ValueError, RecursionError) as error:
        raise TmtError(f"not readable: {reason(error)}", place=file, remedy=_COPY) from None
    if not isinstance(values, dict):
        raise TmtError("not readable: it is no JSON object", place=file, remedy=_COPY)
    return values
