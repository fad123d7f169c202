"""Looking at a model without running it in earnest: its parameters, and the shapes on the way through it.

Answers two questions a student is asked: how many parameters are there and where, and which shape has each
tensor. Returns rows; how they are printed is the command line's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_mt.model.transformer import Transformer
from transformer_mt.model.watch import watching

PARTS = ("source_embedding", "target_embedding", "encoder", "decoder", "generator")
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


@dataclass(frozen=True)
class ParameterRow:
    """One parameter tensor. A tied one has one row, under its first name; `aliases` are the others."""

    name: str
    shape: tuple[int, ...]
    letters: tuple[str, ...]
    count: int
    trainable: bool
    aliases: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """The part of figure 1 it belongs to, one of PARTS."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class ShapeRow:
    """One tensor on the way: the module that made it, its name, and its shape in letters and in numbers."""

    path: str
    name: str
    letters: tuple[str, ...]
    shape: tuple[int, ...]


def parameter_table(model: Transformer) -> list[ParameterRow]:
    """All parameters in the order of the model, each tensor once."""
    names: dict[nn.Parameter, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)
    return [
        ParameterRow(
            first, tuple(parameter.shape), _letters_of(first), parameter.numel(), parameter.requires_grad, tuple(others)
        )
        for parameter, (first, *others) in names.items()
    ]


def count_parts(rows: Sequence[ParameterRow]) -> dict[str, int]:
    """Parameters of each part of figure 1; a tied tensor counts for the part that names it first."""
    return {part: sum(row.count for row in rows if row.part == part) for part in PARTS}


def example_batch(model: Transformer, sentences: int = 2, source: int = 7, target: int = 5) -> tuple[Tensor, Tensor]:
    """Ids of a batch whose sizes are easy to tell apart: source_BS and target_BT, on the model's device."""
    longest = model.max_positions or max(source, target)
    device = model.generator.weight.device
    sizes = ((sentences, min(length, longest)) for length in (source, target))
    source_BS, target_BT = (torch.zeros(size, dtype=torch.int64, device=device) for size in sizes)
    return source_BS, target_BT


def walk_of_shapes(model: Transformer, source_BS: Tensor, target_BT: Tensor) -> list[ShapeRow]:
    """Send a batch through the model, from ids to logits, and write down each tensor it shows (`watch.note`).

    Works on a model without storage (device `meta`) too. The model keeps its training mode; no gradients.
    """
    rows: list[ShapeRow] = []

    def write_down(path: str, name: str, tensor: Tensor) -> None:
        plain, _, suffix = name.rpartition("_")
        part = path.partition(".")[0] or ("generator" if plain == "logits" else "")
        letters = tuple(suffix.replace("T", "S") if part in SOURCE_SIDE else suffix)
        rows.append(ShapeRow(path or part, plain, letters, tuple(tensor.shape)))

    training = model.training
    model.eval()
    try:
        with torch.no_grad(), watching(model, write_down):
            model.generate_logits(model(source_BS, target_BT))
    finally:
        model.train(training)
    return rows


def _letters_of(name: str) -> tuple[str, ...]:
    ending = next(ending for ending in LETTERS_OF_PARAMETERS if name.endswith(ending))
    return tuple(LETTERS_OF_PARAMETERS[ending].split())
