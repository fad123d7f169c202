"""The tables of `tmt inspect`, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from transformer_mt.reporting.table import Line, aligned

if TYPE_CHECKING:
    from transformer_mt.workflows.inspect import ParameterRow, ShapeRow

MEANINGS = (  # (a module's path, what happens there)
    (r"", "ids"),
    (r"\w+_embedding", "a vector for each token (sections 3.4, 3.5)"),
    (r"encoder\..*\.self_attention", "source positions ask source positions: Q = M = S (section 3.2)"),
    (r"decoder\..*\.self_attention", "target positions ask themselves and those before: Q = M = T (section 3.2.3)"),
    (r".*\.cross_attention", "target positions ask source positions: Q = T, M = S (section 3.2.3)"),
    (r".*\.around_.*", "residual connection, dropout and normalisation around it (section 3.1)"),
    (r".*\.feed_forward", "two layers, the same at each position (section 3.3)"),
    (r"encoder", "what leaves the stack: the memory that the decoder asks"),
    (r"decoder", "what leaves the stack"),
    (r"generator", "a logit for each token that may come next (section 3.4)"),
)
BYTES_OF_FLOAT32, COPIES_IN_ADAM = 4, 4


def parameter_lines(rows: Sequence[ParameterRow], counts: Mapping[str, int]) -> list[str]:
    """All parameters, the parts of the model they belong to, and the memory they take. counts: of each part."""
    total, trainable = sum(row.count for row in rows), sum(row.count for row in rows if row.trainable)
    table: list[Line] = [("parameter", "letters", "shape", "count")]
    table += [(row.name, _in_brackets(row.letters), _product(row.shape), f"{row.count:,}") for row in rows]
    parts: list[Line] = [("part", "parameters", "share")]
    for name, count in counts.items():
        parts.append((name.replace("_", " "), f"{count:,}", f"{count / total:.1%}"))
    parts += [("total", f"{total:,}", "100.0%"), ("trainable", f"{trainable:,}", f"{trainable / total:.1%}")]
    ties = [f"{alias} is {row.name}: one tensor, counted once" for row in rows for alias in row.aliases]
    return [*aligned(table, "<<>>"), *ties, "", *aligned(parts, "<>>"), "", _memory(total)]


def shape_lines(layers: Mapping[str, int], steps: Sequence[ShapeRow]) -> list[str]:
    """The way of a batch: each module, and below it the tensors it makes. One layer stands for all of its stack.

    layers: how many the encoder and the decoder have.
    """
    table: list[Line] = []
    for path, group in groupby(steps, key=lambda step: step.path):
        if re.match(r"\w+\.layers\.[1-9]", path):
            continue
        if path in ("encoder", "decoder"):
            table += _repeats(path, layers[path])
        table += ["", f"{path or 'batch'}: {_meaning(path)}"]
        table += [(f"  {step.name}", _in_brackets(step.letters), _product(step.shape)) for step in group]
    return [*_legend(steps), *aligned(table, "<<<")]


def _legend(steps: Sequence[ShapeRow]) -> list[str]:
    size = {letter: number for step in steps for letter, number in zip(step.letters, step.shape, strict=True)}
    return [
        "The shapes of a batch, layer by layer:",
        f"  B = {size['B']} sentences, S = {size['S']} source positions, T = {size['T']} target positions,",
        f"  D = {size['D']:,} model width, F = {size['F']:,} feed-forward width, V = {size['V']:,} target tokens,",
        f"  H = {size['H']} heads of width K = {size['K']}; Q positions that ask, M positions that answer.",
        "  Masks are True where one may attend.",
    ]


def _repeats(stack: str, layers: int) -> list[Line]:
    if layers == 1:
        return []
    which = f"{stack}.layers.1" + (f" to {stack}.layers.{layers - 1}" if layers > 2 else "")
    return ["", f"{which}: the same shapes again, with weights of their own"]


def _meaning(path: str) -> str:
    return next(meaning for pattern, meaning in MEANINGS if re.fullmatch(pattern, path))


def _memory(count: int) -> str:
    weights = _mebibytes(count * BYTES_OF_FLOAT32)
    training = _mebibytes(count * BYTES_OF_FLOAT32 * COPIES_IN_ADAM)
    return f"memory in float32: weights {weights}; training with Adam {training} (weights, gradients, two moments)"


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


def _in_brackets(letters: Iterable[str]) -> str:
    return f"[{', '.join(letters)}]"


def _product(shape: Iterable[int]) -> str:
    return " × ".join(f"{size:,}" for size in shape)
