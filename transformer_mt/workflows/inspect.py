"""Shows the parameters of a model, and the shapes of all tensors between ids and logits."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer_mt.config.data import DataConfig
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import open_prepared
from transformer_mt.decoding.attention_maps import attention_replaced
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.model import attention
from transformer_mt.model.embedding import Embedding
from transformer_mt.model.feed_forward import FeedForward
from transformer_mt.model.layers import Decoder, Encoder, Residual
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.transformer import Transformer
from transformer_mt.training.starting import freeze
from transformer_mt.workflows.models import find_models

PARTS = ("source_embedding", "target_embedding", "encoder", "decoder", "generator")
_EXAMPLE_LENGTHS = 7, 5  # of source and target
SOURCE_SIDE = ("source_embedding", "encoder")

LETTERS_OF_PARAMETERS = {
    "tokens.weight": "V D",
    "positions.table.weight": "P D",
    "query_key_value.weight": "3D D",
    "query_key_value.bias": "3D",
    "attention.output.weight": "D D",
    "attention.output.bias": "D",
    "inner.weight": "F D",
    "inner.bias": "F",
    "gate.weight": "F D",
    "gate.bias": "F",
    "outer.weight": "D F",
    "outer.bias": "D",
    "gamma": "D",
    "beta": "D",
    "generator.weight": "V D",
    "generator.bias": "V",
}

MEANINGS = (  # (a module's path, what happens there)
    (r"", "ids"),
    (r"\w+_embedding", "a vector for each token (sections 3.4, 3.5)"),
    (r"encoder\..*\.self_attention", "source positions attend to source positions: Q = M = S (section 3.2)"),
    (
        r"decoder\..*\.self_attention",
        "target positions attend to these and earlier ones: Q = M = T (section 3.2.3)",
    ),
    (r".*\.cross_attention", "target positions attend to source positions: Q = T, M = S (section 3.2.3)"),
    (r".*\.around_.*", "residual connection, dropout and normalisation around it (section 3.1)"),
    (r".*\.feed_forward", "two layers, the same at each position (section 3.3)"),
    (r"encoder", "output of the stack: the memory that the decoder attends to"),
    (r"decoder", "output of the stack"),
    (r"generator", "a logit for each possible next token (section 3.4)"),
)


@dataclass(frozen=True)
class ParameterRow:
    """One parameter tensor. A tied tensor has one row with its first name; `aliases` are its other names."""

    name: str
    shape: tuple[int, ...]
    letters: tuple[str, ...]
    count: int
    trainable: bool
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShapeRow:
    """One tensor: the module that computes it, its name, and its shape in letters and in numbers."""

    path: str
    name: str
    letters: tuple[str, ...]
    shape: tuple[int, ...]


class Described(NamedTuple):
    """A model and its `data` section, which names its directions and tags."""

    model: Transformer
    data: DataConfig


def shipped_model(folder: Path | None) -> Described:
    """The model in a folder, with its weights; default: the run that finished last."""
    directory = load_model_directory(find_models(() if folder is None else folder)[0])
    freeze(directory.model, directory.config.training.freeze)
    return Described(directory.model, directory.config.data)


def described_model(
    file: Path, overrides: Sequence[str] = (), source_vocab: int | None = None, target_vocab: int | None = None
) -> Described:
    """The model of a config on the device `meta`, with shapes but without memory.

    source_vocab, target_vocab: sizes of the vocabularies; default: those of the prepared data, or of the config.
    Raises TmtError if they are not known.
    """
    config = load_config(file, overrides)
    sizes = _vocabulary_sizes(config, file, source_vocab, target_vocab)
    with torch.device("meta"):
        model = build_model(config, *sizes, device="meta")
    freeze(model, config.training.freeze)
    return Described(model, config.data)


def _vocabulary_sizes(config: Config, file: Path, source: int | None, target: int | None) -> tuple[int, int]:
    if config.has_shared_vocabulary:
        source, target = source or target, target or source
        if source != target:
            raise TmtError(
                f"both languages share one vocabulary, which cannot have both {source} and {target} tokens",
                place=file,
                remedy="Give one size, or set tokenizer.shared: false.",
            )
    if source and target:
        return source, target
    try:
        prepared = [len(codec) for codec in open_prepared(config).codecs()]
    except TmtError:  # not prepared, or prepared with other settings
        prepared = [0, 0]
    tags = len(config.data.tags)
    n_tags = tags, tags if config.has_shared_vocabulary else 0
    configured = [
        one.size and one.size + more
        for one, more in zip((config.source_tokenizer, config.target_tokenizer), n_tags, strict=True)
    ]
    if config.training.start_from is not None:  # vocabularies of another model, which may have been extended
        configured = [None, None]
    source = source or prepared[0] or configured[0]
    target = target or prepared[1] or configured[1]
    if source and target:
        return source, target
    raise TmtError(
        "the vocabulary sizes are unknown, because the data is not prepared yet",
        place=file,
        remedy=f"Give --source-vocab N --target-vocab N, or run `tmt prepare --config {file}` first.",
    )


def parameter_table(model: Transformer) -> list[ParameterRow]:
    """All parameters in the order of the model; a tied tensor appears once."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    rows = []
    for parameter, (first, *others) in names.items():
        letters = next(letters for ending, letters in LETTERS_OF_PARAMETERS.items() if first.endswith(ending))
        rows.append(
            ParameterRow(
                name=first,
                shape=tuple(parameter.shape),
                letters=tuple(letters.split()),
                count=parameter.numel(),
                trainable=parameter.requires_grad,
                aliases=tuple(others),
            )
        )
    return rows


def count_parts(rows: Sequence[ParameterRow]) -> dict[str, int]:
    """The number of parameters in each part of figure 1; a tied tensor counts for its first part."""
    return {part: sum(row.count for row in rows if row.name.partition(".")[0] == part) for part in PARTS}


def positional_encodings(model: Transformer, most: int) -> Tensor | None:
    """The vectors [P, D] that the model adds to embeddings at its first positions, at most `most` of them.

    None if it adds none (rotary positions).
    """
    positions = model.source_embedding.positions
    if positions is None:
        return None
    with torch.inference_mode():
        table_PD: Tensor = positions(0, most if model.max_positions is None else min(most, model.max_positions))
    return table_PD.float().cpu()


def example_batch(model: Transformer) -> tuple[Tensor, Tensor]:
    """Ids of two sentences, source_BS and target_BT of different lengths, on the device of the model."""
    longest = model.max_positions or max(_EXAMPLE_LENGTHS)
    device = model.generator.weight.device
    sizes = ((2, min(length, longest)) for length in _EXAMPLE_LENGTHS)
    source_BS, target_BT = (torch.zeros(size, dtype=torch.int64, device=device) for size in sizes)
    return source_BS, target_BT


def walk_of_shapes(model: Transformer, source_BS: Tensor, target_BT: Tensor) -> list[ShapeRow]:
    """Run the model on a batch, from ids to logits, and record each tensor that its code names.

    Also works on the device `meta`. Restores the training mode of the model; computes no gradients.
    """
    walk = _Walk(model)
    training, tracing = model.training, sys.gettrace()
    model.eval()
    try:
        with torch.no_grad(), attention_replaced(model, lambda path: attention.scaled_dot_product_attention):
            sys.settrace(walk.enter)
            model.generate_logits(model(source_BS, target_BT))
    finally:
        sys.settrace(tracing)
        model.train(training)
    return walk.rows


def meaning(path: str) -> str:
    """What happens in the module of a `ShapeRow`, in a few words."""
    return next(meaning for pattern, meaning in MEANINGS if re.fullmatch(pattern, path))


class _Walk:
    """Reads the local variables of the functions in `model` while they run (`sys.settrace`).

    The names of tensors in `model` end in their dimensions, so the code needs no extra lines for this.
    """

    SHOWN = (Transformer, Embedding, Encoder, Decoder, Residual, MultiHeadAttention, FeedForward)

    def __init__(self, model: Transformer) -> None:
        self.rows: list[ShapeRow] = []
        self.paths = {id(one): path for path, one in model.named_modules() if isinstance(one, self.SHOWN)}
        self.seen: dict[object, Tensor] = {}  # keeps the tensors alive, so that each id stays unique

    def enter(self, frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        """Called by Python for each function call; returns a function that Python calls for each line."""
        if not frame.f_globals.get("__name__", "").startswith("transformer_mt.model."):
            return None
        caller: FrameType | None = frame
        while caller is not None and not isinstance(caller.f_locals.get("self"), nn.Module):
            caller = caller.f_back  # a function outside of a module counts for the module that called it
        path = self.paths.get(id(caller.f_locals["self"])) if caller is not None else None
        if path is None:
            return None
        if frame.f_code is Transformer.forward.__code__:  # `encode` and `decode` show its arguments
            return None
        arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]

        def look(frame: FrameType, event: str, value: object) -> Callable[..., Any]:
            for name, tensor in frame.f_locals.items():
                if isinstance(tensor, Tensor) and not (name in arguments and id(tensor) in self.seen):
                    self._note(path, name, tensor)
            return look

        return look

    def _note(self, path: str, name: str, tensor: Tensor) -> None:
        plain, _, suffix = name.rpartition("_")
        if plain in ("", "x") or (path, plain) in self.seen or (id(tensor), plain) in self.seen:
            return
        self.seen[path, plain] = self.seen[id(tensor), plain] = self.seen[id(tensor)] = tensor
        part = path.partition(".")[0] or ("generator" if plain == "logits" else "")
        letters = tuple(suffix.replace("T", "S") if part in SOURCE_SIDE else suffix)
        self.rows.append(ShapeRow(path or part, plain, letters, tuple(tensor.shape)))
