"""The tables of `tmt inspect`, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from transformer_mt.reporting.table import Line, aligned
from transformer_mt.workflows.inspect import meaning

if TYPE_CHECKING:
    from transformer_mt.workflows.inspect import ParameterRow, ShapeRow

BYTES_OF_FLOAT32, COPIES_IN_ADAM = 4, 4


def parameter_lines(rows: Sequence[ParameterRow], counts: Mapping[str, int]) -> list[str]:
    """All parameters, the parts of the model, and the memory they take. counts: parameters of each part."""
    total, trainable = sum(row.count for row in rows), sum(row.count for row in rows if row.trainable)
    table: list[Line] = [("parameter", "letters", "shape", "count")]
    table += [(row.name, *_shape(row), f"{row.count:,}") for row in rows]
    parts: list[Line] = [("part", "parameters", "share")]
    for name, count in counts.items():
        parts.append((name.replace("_", " "), f"{count:,}", f"{count / total:.1%}"))
    parts += [("total", f"{total:,}", "100.0%"), ("trainable", f"{trainable:,}", f"{trainable / total:.1%}")]
    ties = [f"{alias} is {row.name}: one tensor, counted once" for row in rows for alias in row.aliases]
    size = total * BYTES_OF_FLOAT32 / 2**20
    memory = (
        f"memory in float32: weights {size:,.1f} MiB; training with Adam {size * COPIES_IN_ADAM:,.1f} MiB"
        " (weights, gradients, two moments)"
    )
    return [*aligned(table, "<<>>"), *ties, "", *aligned(parts, "<>>"), "", memory]


def shape_lines(layers: Mapping[str, int], steps: Sequence[ShapeRow]) -> list[str]:
    """Each module, and below it the tensors it makes. Only the first layer of a stack is shown.

    layers: number of layers of the encoder and the decoder.
    """
    table: list[Line] = []
    for path, group in groupby(steps, key=lambda step: step.path):
        if re.match(r"\w+\.layers\.[1-9]", path):
            continue
        if path in layers and layers[path] > 1:
            others = f"{path}.layers.1" + (f" to {path}.layers.{layers[path] - 1}" if layers[path] > 2 else "")
            table += ["", f"{others}: the same shapes, with other weights"]
        table += ["", f"{path or 'batch'}: {meaning(path)}"]
        table += [(f"  {step.name}", *_shape(step)) for step in group]
    return [*_legend(steps), *aligned(table, "<<<")]


def _legend(steps: Sequence[ShapeRow]) -> list[str]:
    size = {letter: number for step in steps for letter, number in zip(step.letters, step.shape, strict=True)}
    return [
        "The shapes of a batch, layer by layer:",
        f"  B = {size['B']} sentences, S = {size['S']} source positions, T = {size['T']} target positions,",
        f"  D = {size['D']:,} model width, F = {size['F']:,} feed-forward width, V = {size['V']:,} target tokens,",
        f"  H = {size['H']} heads of width K = {size['K']}; Q query positions, M key positions.",
        "  Masks are True where attention is allowed.",
    ]


def _shape(row: ParameterRow | ShapeRow) -> tuple[str, str]:
    """In letters and in numbers."""
    return f"[{', '.join(row.letters)}]", " × ".join(f"{size:,}" for size in row.shape)
