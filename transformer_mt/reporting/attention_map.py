"""The picture of a sentence's attention: blocks of small maps, with the tokens on their outer axes.

All measures are inches. Every token is written as long as a sentence has at most 40 of them; of longer ones
every second, third ... token is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.errors import TmtError
from transformer_mt.reporting.canvas import (
    COLORS,
    PLAIN,
    SMALL,
    Theme,
    broken_into_lines,
    canvas,
    drawable,
    fitted,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_CELL, _SMALLEST_MAP, _LARGEST_MAP = 0.19, 1.3, 5.7
_GAP, _MARGIN, _HEADING, _HEADS, _BETWEEN = 0.14, 0.3, 0.34, 0.26, 0.3
_LAYER, _NAME = 0.3, 0.62  # room for the name of a layer, and of a head
_LINE, _TITLE = 0.14, 16.0  # height of a written token; points of the title
_TOKEN_WIDTH = 1.5  # of a written token; longer ones are cut
_NARROWEST = 6.0
_WIDEST = 11.0  # beyond this width, the heads of a single layer are spread over several rows
_SCALE = "attention of a row's token to a column's token"
KINDS = {"encoder": "encoder self_attention", "decoder": "decoder self_attention", "cross": "decoder cross_attention"}
Tokens = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Block:
    """One kind of attention: rows of maps [Q, M], each with its name, and the tokens of both axes."""

    name: str
    rows: list[tuple[str, list[tuple[str, Any]]]]  # layer, then the heads by name
    queries: list[str]
    keys: list[str]

    def row_height(self, cell: float) -> float:
        """Height of a row of maps, with the names above them and the tokens below."""
        return _HEADS + len(self.queries) * cell + _written(self.keys) + _GAP

    def apart(self, cell: float) -> float:
        """From the left side of a map to that of the next one: at least the room for its name."""
        return max(len(self.keys) * cell + _GAP, _NAME)

    def right(self, cell: float) -> float:
        """Width of the widest row, with the tokens to its right."""
        heads = max(len(maps) for _, maps in self.rows)
        return heads * self.apart(cell) - _GAP + (_written(self.queries) if heads > 1 else 0)


def plot_attention(
    maps: Mapping[str, ArrayLike],
    queries: Tokens,
    keys: Tokens,
    file: Path,
    title: str,
    *,
    which: str = "all",
    theme: Theme = "light",
) -> Path:
    """Draw the attention maps of a sentence: a block per kind of attention, in it a row per layer, a column per head.

    maps:          weights [H, Q, M] of each attention module, by its path in the model, such as
                   `decoder.layers.0.cross_attention`: the number is the layer, the rest names the kind.
    queries, keys: the Q query tokens and the M key tokens, by the same paths.
    which:         `all`, or KIND[.LAYER[.HEAD]]; KIND is encoder, decoder or cross, HEAD a number or `mean`.
    Raises TmtError if there is no such map.
    """
    blocks = _blocks(maps, queries, keys, which)
    longest = max(len(tokens) for block in blocks for tokens in (block.queries, block.keys))
    cell = min(max(_CELL, _SMALLEST_MAP / longest), _LARGEST_MAP / longest)
    blocks = [_spread(block, cell) for block in blocks] if which != "all" else blocks
    left = _MARGIN + _LAYER + max(_written(block.queries) for block in blocks)
    width = max(left + max(block.right(cell) for block in blocks) + _MARGIN, _NARROWEST)
    heights = [_HEADING + len(block.rows) * block.row_height(cell) + _BETWEEN for block in blocks]
    lines = broken_into_lines(drawable(title), _TITLE, width - 2 * _MARGIN, 3)
    head = _MARGIN + len(lines) * 0.3 + 0.65
    height = head + sum(heights)
    description = [f"{one.name}: rows {' '.join(one.queries)}, columns {' '.join(one.keys)}" for one in blocks]
    with canvas(file, (width, height), theme, 100, title, f"{_SCALE}. {'; '.join(description)}") as figure:
        for number, line in enumerate(lines):
            y = 1 - (_MARGIN + 0.3 * number) / height
            figure.text(_MARGIN / width, y, line, fontsize=_TITLE, va="top")
        _draw_scale(figure, height - head + 0.3, theme)
        top = height - head
        for block, block_height in zip(blocks, heights, strict=True):
            _draw_block(figure, block, left, top, cell, theme)
            top -= block_height
    return file


def _blocks(maps: Mapping[str, ArrayLike], queries: Tokens, keys: Tokens, which: str) -> list[Block]:
    """The maps that are wanted, by kind of attention, in the order of `maps`; layers by number."""
    import numpy as np

    kind, layer, head = _parsed(which)
    kinds: dict[str, list[tuple[int, str]]] = {}
    for path in maps:
        parts = path.split(".")
        number = 1 + next((int(part) for part in parts if part.isdigit()), 0)
        name = f"{parts[0]} {parts[-1]}"
        if KINDS.get(kind, name) == name and layer in (None, number):
            kinds.setdefault(name, []).append((number, path))
    blocks = []
    for name, paths in kinds.items():
        first = paths[0][1]
        rows = [(f"layer {number}", _heads(np.asarray(maps[path]), head)) for number, path in sorted(paths)]
        tokens = ([_cut(token) for token in side[first]] for side in (queries, keys))
        blocks.append(Block(name.replace("_", "-").capitalize(), rows, *tokens))
    if not blocks or not all(row for block in blocks for _, row in block.rows):
        raise TmtError(f"no attention map '{which}' in this model", remedy=_USAGE)
    return blocks


_USAGE = "Give all, or encoder, decoder or cross, then a layer, then a head or mean:  cross  cross.2  cross.2.1"


def _parsed(which: str) -> tuple[str, int | None, str]:
    """Kind, layer and head; empty or None for all. Raises TmtError if `which` cannot be read."""
    if which == "all":
        return "", None, ""
    match = re.fullmatch(rf"({'|'.join(KINDS)})(?:\.([1-9]\d*)(?:\.([1-9]\d*|mean))?)?", which)
    if match is None:
        raise TmtError(f"'{which}' names no attention map", remedy=_USAGE)
    return match[1], int(match[2]) if match[2] else None, match[3] or ""


def check_which(which: str) -> None:
    """Raises TmtError if `which` is not one of the forms that `plot_attention` reads."""
    _parsed(which)


def _heads(map_HQM: Any, head: str) -> list[tuple[str, Any]]:
    """The heads that are wanted, by name."""
    if head == "mean":
        return [(f"mean of {len(map_HQM)} heads", map_HQM.mean(0))]
    named = [(f"head {number}", map_QM) for number, map_QM in enumerate(map_HQM, start=1)]
    return [one for one in named if head in ("", one[0].removeprefix("head "))]


def _spread(block: Block, cell: float) -> Block:
    """The heads of a single layer over several rows if one row would be too wide: about as wide as high."""
    across, (name, maps) = block.apart(cell), block.rows[0]
    if len(block.rows) > 1 or len(maps) * across <= _WIDEST:
        return block
    sizes = range(1, len(maps) + 1)
    each = next(n for n in sizes if n * across > 0.8 * math.ceil(len(maps) / n) * block.row_height(cell))
    each = math.ceil(len(maps) / math.ceil(len(maps) / each))  # no row is much shorter than the others
    spread = [(name, maps[start : start + each]) for start in range(0, len(maps), each)]
    return Block(block.name, spread, block.queries, block.keys)


def _cut(token: str) -> str:
    """The token as it is written: a box for what no font has, an ellipsis for a long end."""
    return fitted(drawable(token), SMALL, _TOKEN_WIDTH)


def _written(tokens: Sequence[str]) -> float:
    """Room for the longest token."""
    return max(text_width(token, SMALL) for token in tokens) + 0.12


def _draw_block(figure: Figure, block: Block, left: float, top: float, cell: float, theme: Theme) -> None:
    """Draw a block's heading and maps. left, top: of the maps and the heading, from the lower left corner."""
    width, height = figure.get_size_inches()
    quiet = COLORS[theme].quiet
    across, down = len(block.keys) * cell, len(block.queries) * cell
    figure.text(_MARGIN / width, top / height, block.name, fontsize=13, va="top")
    for row, (layer, maps) in enumerate(block.rows):
        bottom = top - _HEADING - row * block.row_height(cell) - _HEADS - down
        for place, (name, map_QM) in enumerate(maps):
            x = left + place * block.apart(cell)
            axes = figure.add_axes((x / width, bottom / height, across / width, down / height))
            _draw_map(axes, map_QM, theme)
            axes.set_yticks([])
            axes.set_title(name, fontsize=SMALL, loc="center", pad=5, color=quiet)
            _write(axes, "x", block.keys, cell)
            if place == 0:
                _write(axes, "y", block.queries, cell)
            elif place == len(maps) - 1:
                _write(axes, "y", block.queries, cell)
                axes.yaxis.tick_right()
        y = (bottom + down / 2) / height
        x = (_MARGIN + _LAYER / 3) / width
        figure.text(x, y, layer, rotation=90, va="center", ha="center", color=quiet, fontsize=PLAIN)


def _draw_map(axes: Axes, weights_QM: Any, theme: Theme) -> None:
    """Draw one map: paper for 0, the strongest shade for 1. Its cells stay sharp however much an SVG is enlarged."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    colors = LinearSegmentedColormap.from_list("attention", COLORS[theme].shades)
    axes.imshow(weights_QM, cmap=colors, norm=PowerNorm(0.6, 0.0, 1.0), aspect="auto", interpolation="none")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.6)


def _write(axes: Axes, axis: str, tokens: Sequence[str], cell: float) -> None:
    """Write the tokens along one axis, or every second, third ... if there is no room for all."""
    every = math.ceil(_LINE / cell - 1e-9)
    shown, labels = range(0, len(tokens), every), tokens[::every]
    if axis == "y":
        axes.set_yticks(shown, labels, fontsize=SMALL)
    else:
        axes.set_xticks(shown, labels, fontsize=SMALL, rotation=90)
    axes.tick_params(axis=axis, length=0, pad=3)  # type: ignore[arg-type]


def _draw_scale(figure: Figure, y: float, theme: Theme) -> None:
    """Draw the meaning of the colours from the left margin. y: of its middle, from below."""
    import numpy as np

    width, height = figure.get_size_inches()
    long, thick = 1.4, 0.13
    axes = figure.add_axes(((_MARGIN + 0.15) / width, (y - thick / 2) / height, long / width, thick / height))
    _draw_map(axes, np.linspace(0, 1, 101)[None], theme)
    axes.set_xticks([])
    axes.set_yticks([])
    color, middle = COLORS[theme].quiet, y / height
    for x, text, side in ((0.08, "0", "right"), (0.15 + long + 0.07, "1", "left"), (long + 0.5, _SCALE, "left")):
        text = fitted(text, SMALL, width - _MARGIN - x)
        figure.text((_MARGIN + x) / width, middle, text, fontsize=SMALL, color=color, va="center", ha=side)
