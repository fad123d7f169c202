"""Models of Marian in the form of Hugging Face, such as OPUS-MT, as models of this program.

Both are the paper's post-norm Transformer. Two things differ. Marian's positions have all sines before all cosines,
where the paper alternates them. So the coordinates of the residual stream change their order in every weight that reads
or writes them, and the model computes the same. And Marian numbers the pieces of both languages in one vocabulary;
here, each side has its own pieces, and the single characters of the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from transformer_mt.errors import TmtError, from_os_error, reason
from transformer_mt.files.opening import read_small, require_fetched
from transformer_mt.model.positions import sinusoidal_positions
from transformer_mt.runtime.weights import read_weights
from transformer_mt.text.tokenizers.base import LARGEST, problems_in
from transformer_mt.text.tokenizers.piece_file import BYTE, IDENTITY, UNUSED, Piece, content_of, model_of
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK

CONFIG, GENERATION, LANGUAGES = "config.json", "generation_config.json", "tokenizer_config.json"
VOCABULARY = "vocab.json"
PIECES = ("source.spm", "target.spm")
WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"
NEVER = -100.0  # bias of what is never written: so small that its share of the label smoothing does not count
_UNKNOWN = 10.0  # by so much an unknown character scores below the least piece, in SentencePiece
_TAG = re.compile(r">>([\w-]{1,32})<<")  # it stands before a source, and names the language to translate into
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SHARED = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
_COPY = "Copy the whole folder again."
_ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
_Activation = Literal["swish", "silu", "relu", "gelu"]


class MarianConfig(BaseModel):
    """The keys of config.json that this program needs; their names and defaults are those of Hugging Face."""

    model_type: Literal["marian"]
    d_model: int = Field(1024, ge=2, le=1 << 16, multiple_of=2)
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
    tie_word_embeddings: Literal[True] = True
    static_position_embeddings: Literal[True] = True
    max_position_embeddings: int = Field(1024, ge=2, le=1 << 16)
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    decoder_start_token_id: int = Field(58100, ge=0, lt=1 << 31)
    eos_token_id: int = Field(0, ge=0, lt=1 << 31)
    num_beams: int = Field(1, ge=1, le=256)

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
            "attention_dropout": self.attention_dropout,
            "feed_forward_dropout": self.activation_dropout,
            "norm": "post",
            "positions": "sinusoidal",
            "scale_embeddings": self.scale_embedding,
            "tie_embeddings": "decoder",
            "activation": _ACTIVATIONS[self.activation_function],
        }


class PieceModel(NamedTuple):
    """SentencePiece of one side.

    unknown, end, rows: the numbers of `<unk>`, `</s>` and each piece in Marian's vocabulary; None: it lacks the piece
    model:              the file that has these pieces
    """

    unknown: int
    end: int
    rows: list[int | None]
    model: bytes
    algorithm: str


def read_config(folder: Path) -> MarianConfig:
    """Raises TmtError if this is no such model, or if it computes what this program does not."""
    values = _read_json(folder / CONFIG)
    if (folder / GENERATION).exists():  # newer versions have the beam there
        values |= {key: one for key, one in _read_json(folder / GENERATION).items() if key == "num_beams"}
    try:
        with problems_in(CONFIG):
            return MarianConfig.model_validate(values)
    except ValueError as error:
        problem = f"this model cannot be converted: {reason(error)}"
        remedy = "Models as OPUS-MT has them can be converted: shared embeddings, norms after each sub-layer."
        raise TmtError(problem, place=folder / CONFIG, remedy=remedy) from None


def read_languages(folder: Path) -> tuple[str, str]:
    """The languages of the source and of the target as the folder names them; "" if it does not."""
    values = _read_json(folder / LANGUAGES) if (folder / LANGUAGES).exists() else {}
    return str(values.get("source_lang") or ""), str(values.get("target_lang") or "")


def read_pieces(folder: Path) -> tuple[PieceModel, PieceModel, dict[str, int]]:
    """Those of the source and of the target, and the number of each tag by its name: `por` for `>>por<<`.

    Raises TmtError if they are damaged.
    """
    numbers = _read_json(folder / VOCABULARY)
    if not all(type(number) is int and 0 <= number < 1 << 31 for number in numbers.values()):
        raise TmtError("not readable: each piece needs a number", place=folder / VOCABULARY, remedy=_COPY)
    if len(set(numbers.values())) < len(numbers) or not {MARKS[UNK], MARKS[EOS]} <= numbers.keys():
        problem = f"two pieces have one number, or {MARKS[UNK]} or {MARKS[EOS]} is missing"
        raise TmtError(problem, place=folder / VOCABULARY, remedy=_COPY)
    tags = {found[1]: number for piece, number in numbers.items() if (found := _TAG.fullmatch(piece))}
    source, target = (_pieces_of_side(folder / name, numbers) for name in PIECES)
    return source, target, tags


def _pieces_of_side(file: Path, numbers: Mapping[str, int]) -> PieceModel:
    try:
        pieces, algorithm, normalizer, _, keeps_spaces = content_of(read_small(file, LARGEST))
        text = [piece for piece in pieces if piece.kind != UNUSED and not _TAG.fullmatch(piece.text)]
        if normalizer == IDENTITY:
            raise ValueError(f"its normalizer is {IDENTITY}, and that of OPUS-MT is nmt_nfkc")
        if keeps_spaces:
            raise ValueError("it changes texts in another way: remove_extra_whitespaces=false")
        if any(piece.kind == BYTE for piece in text) or any(not piece.text.isprintable() for piece in text):
            raise ValueError("it has pieces for bytes or control characters, which no model of OPUS-MT has")
    except OSError as error:
        raise from_os_error(error, "reading the pieces", file) from None
    except ValueError as error:
        require_fetched(file, "pieces")
        remedy = "Pieces as those of OPUS-MT can be converted. If the file is damaged, copy it again."
        raise TmtError(f"not a readable SentencePiece model: {reason(error)}", place=file, remedy=remedy) from None
    if not any(piece.text in numbers for piece in text):
        raise TmtError(f"none of its pieces is in {VOCABULARY}", place=file, remedy=_COPY)
    # A character that this side lacks was trained with the number that the other side gives it, if it stood alone.
    least = min(piece.score for piece in text) - _UNKNOWN
    known = {piece.text for piece in text}
    text += [Piece(one, least) for one in numbers if len(one) == 1 and one.isprintable() and one not in known]
    rows = [numbers.get(piece.text) for piece in text]
    unknown, end = numbers[MARKS[UNK]], numbers[MARKS[EOS]]
    return PieceModel(unknown, end, rows, model_of(text, algorithm), algorithm)


def read_tensors(
    folder: Path, config: MarianConfig, sides: tuple[PieceModel, PieceModel], tags: Sequence[int]
) -> dict[str, Tensor]:
    """The weights with the names and shapes of this program. Raises TmtError if they are not those of the config.

    tags: their numbers, in the order of the tags of the source vocabulary
    """
    _require_safe(folder)
    if (end := sides[0].end) != config.eos_token_id:
        problem = f"{VOCABULARY} gives {MARKS[EOS]} the number {end}, and {CONFIG} {config.eos_token_id}"
        raise TmtError(problem, place=folder, remedy=_COPY)
    tensors = _Tensors(folder / WEIGHTS)
    width, size = config.d_model, tensors.size_of_vocabulary(config.d_model)
    shared = tensors.take(tensors.first(_SHARED), size, width)
    tensors.require_known(config, shared)
    order = torch.arange(width).view(2, -1).T.reshape(-1)  # sine, cosine, sine, ...
    rows = [torch.tensor([*_rows(one, config), *more]) for one, more in zip(sides, (tags, ()), strict=True)]
    if max(int(one.max()) for one in rows) >= size:
        problem = f"{VOCABULARY} or {CONFIG} has larger numbers than the {size:,} rows of the embeddings"
        raise TmtError(problem, place=folder, remedy=_COPY)
    weights = {
        f"{side}_embedding.tokens.weight": shared[one][:, order]
        for side, one in zip(("source", "target"), rows, strict=True)
    }
    bias = tensors.take("final_logits_bias", 1, size) if "final_logits_bias" in tensors.left else torch.zeros(1, size)
    never = [PAD, BOS, *(index for index, row in enumerate(sides[1].rows, len(MARKS)) if row is None)]
    weights["generator.bias"] = bias[0, rows[1]].index_fill(0, torch.tensor(never), NEVER)
    for stack, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            weights |= _layer(tensors, f"{stack}.layers.{number}.", config, order)
    tensors.require_empty()
    return weights


def _require_safe(folder: Path) -> None:
    """Raises TmtError if the weights are there as a pickle only."""
    if not (folder / WEIGHTS).exists() and (folder / PICKLED).exists():
        tensors_of = f"torch.load('{PICKLED}', 'cpu', weights_only=True).items()"
        save = f"save_file({{name: one.contiguous().clone() for name, one in {tensors_of}}}, '{WEIGHTS}')"
        remedy = (
            "PyTorch can read its tensors alone, and save them anew. In this folder:\n"
            f'python -c "import torch; from safetensors.torch import save_file; {save}"'
        )
        problem = f"the weights are pickled: reading {PICKLED} can run any code, so it is not read"
        raise TmtError(problem, place=folder, remedy=remedy)


def _rows(pieces: PieceModel, config: MarianConfig) -> list[int]:
    """The row of each token of one side: Marian begins a translation with what it pads with."""
    start = config.decoder_start_token_id
    marks = {PAD: start, UNK: pieces.unknown, BOS: start, EOS: pieces.end}
    others = [pieces.unknown if row is None else row for row in pieces.rows]
    return [*(marks[index] for index in range(len(MARKS))), *others]


def _layer(tensors: _Tensors, name: str, config: MarianConfig, order: Tensor) -> dict[str, Tensor]:
    """One layer. order: of the coordinates of the residual stream"""
    found: dict[str, Tensor] = {}
    width, inner = config.d_model, config.encoder_ffn_dim
    attentions = {"self_attention": "self_attn"}
    if name.startswith("decoder"):
        attentions["cross_attention"] = "encoder_attn"
    for own, theirs in attentions.items():
        three = [f"model.{name}{theirs}.{one}_proj" for one in "qkv"]
        matrix = torch.cat([tensors.take(f"{one}.weight", width, width) for one in three])
        found[f"{name}{own}.query_key_value.weight"] = matrix[:, order]
        found[f"{name}{own}.query_key_value.bias"] = torch.cat([tensors.take(f"{one}.bias", width) for one in three])
        output = f"model.{name}{theirs}.out_proj"
        found[f"{name}{own}.output.weight"] = tensors.take(f"{output}.weight", width, width)[order]
        found[f"{name}{own}.output.bias"] = tensors.take(f"{output}.bias", width)[order]
    found[f"{name}feed_forward.inner.weight"] = tensors.take(f"model.{name}fc1.weight", inner, width)[:, order]
    found[f"{name}feed_forward.inner.bias"] = tensors.take(f"model.{name}fc1.bias", inner)
    found[f"{name}feed_forward.outer.weight"] = tensors.take(f"model.{name}fc2.weight", width, inner)[order]
    found[f"{name}feed_forward.outer.bias"] = tensors.take(f"model.{name}fc2.bias", width)[order]
    norms = {own: f"{theirs}_layer_norm" for own, theirs in attentions.items()} | {"feed_forward": "final_layer_norm"}
    for own, theirs in norms.items():
        for part, their_part in (("gamma", "weight"), ("beta", "bias")):
            found[f"{name}around_{own}.norm.{part}"] = tensors.take(f"model.{name}{theirs}.{their_part}", width)[order]
    return found


class _Tensors:
    """The tensors of a file, each of which is used once."""

    def __init__(self, file: Path) -> None:
        self.file, self.left = file, read_weights(file)
        if wrong := sorted(name for name, one in self.left.items() if one.dtype not in _FLOATS):
            raise TmtError(f"{wrong[0]} has no floating-point numbers", place=file, remedy=_COPY)

    def first(self, names: Sequence[str]) -> str:
        """The first tensor of these that there is: one that several parts share is stored under one of its names."""
        return next((f"{one}.weight" for one in names if f"{one}.weight" in self.left), f"{names[0]}.weight")

    def size_of_vocabulary(self, width: int) -> int:
        found = self.left.get(self.first(_SHARED))
        return len(found) if found is not None and found.dim() == 2 and found.shape[1] == width else 0

    def take(self, name: str, *shape: int) -> Tensor:
        """As float32. Raises TmtError if it is missing or has another shape."""
        if name not in self.left:
            raise TmtError(f"the weights have no tensor {name}", place=self.file, remedy=_COPY)
        if (found := self.left.pop(name)).shape != shape:
            problem = f"shape of {name}: {list(found.shape)} in the file, {list(shape)} by {CONFIG}"
            raise TmtError(problem, place=self.file, remedy=_COPY)
        return found.float()

    def require_known(self, config: MarianConfig, shared: Tensor) -> None:
        """Drop what is stored again. Raises TmtError if positions are not the paper's, or embeddings not shared."""
        for stack in ("encoder", "decoder"):
            if (name := f"model.{stack}.embed_positions.weight") in self.left:
                table = sinusoidal_positions(config.max_position_embeddings, config.d_model)
                self._drop(name, torch.cat([table[:, 0::2], table[:, 1::2]], dim=1))
        for name in _SHARED:
            self._drop(f"{name}.weight", shared)

    def _drop(self, name: str, expected: Tensor) -> None:
        found = self.left.pop(name, expected)
        if found.shape != expected.shape or not torch.allclose(found.float(), expected, atol=1e-2):
            problem = f"{name} differs from what a model of Marian has there"
            remedy = "Models with shared embeddings and with positions of sines and cosines can be converted."
            raise TmtError(problem, place=self.file, remedy=remedy)

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
