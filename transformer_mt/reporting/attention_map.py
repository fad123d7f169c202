"""The picture of a sentence's attention: blocks of small maps, with the tokens on their outer axes.

All measures are inches. A cell of a map is large enough for legible tokens. It is smaller for long sentences: then only
every second, third ... token is written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.reporting.canvas import canvas, drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

_CELL, _SMALLEST_MAP, _LARGEST_MAP = 0.17, 1.2, 5.0
_GAP, _MARGIN, _HEADING, _BETWEEN = 0.12, 0.35, 0.62, 0.35
_TITLE = 0.95
_LINE = 0.13  # height of a written token
_LONGEST_TOKEN = 16  # characters; longer ones are cut
_COLORS = ("#FFFFFF", "#D6E6F4", "#8FBFE0", "#3B8BC4", "#0B5394", "#062B52")


@dataclass(frozen=True)
class Block:
    """One kind of attention: the maps [H, Q, M] of each layer, and the tokens of both axes."""

    name: str
    layers: list[Any]
    rows: list[str]
    columns: list[str]

    def row_height(self, cell: float) -> float:
        """Height of a layer's maps and of the tokens below them."""
        return len(self.rows) * cell + _written(self.columns) + _GAP


def plot_attention(
    maps: Mapping[str, ArrayLike],
    rows: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    file: Path,
    title: str,
) -> Path:
    """Draw every attention map of a sentence: a block per kind of attention, in it a row per layer, a column per head.

    maps:          weights [H, Q, M] of each attention module, by its path in the model, such as
                   `decoder.layers.0.cross_attention`: the number is the layer, the rest names the kind.
    rows, columns: the Q query tokens and the M key tokens, by the same paths.
    """
    blocks = _blocks(maps, rows, columns)
    longest = max(len(tokens) for block in blocks for tokens in (block.rows, block.columns))
    cell = min(max(_CELL, _SMALLEST_MAP / longest), _LARGEST_MAP / longest)
    left = _MARGIN + 0.25 + max(_written(block.rows) for block in blocks)
    right = max(
        len(block.layers[0]) * (len(block.columns) * cell + _GAP) - _GAP + _written(block.rows) for block in blocks
    )
    heights = [_HEADING + len(block.layers) * block.row_height(cell) + _BETWEEN for block in blocks]
    width, height = max(left + right + _MARGIN, 6.0), _TITLE + sum(heights)
    with canvas(file, (width, height), dpi=100) as figure:
        figure.text(_MARGIN / figure.get_figwidth(), 1 - 0.3 / height, drawable(title), fontsize=16, va="top")
        top = height - _TITLE
        for block, block_height in zip(blocks, heights, strict=True):
            _draw_block(figure, block, left, top, cell)
            top -= block_height
        _draw_scale(figure)
    return file


def _blocks(
    maps: Mapping[str, ArrayLike], rows: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[str]]
) -> list[Block]:
    """The maps by kind of attention, in the order of `maps`; layers by number."""
    import numpy as np

    kinds: dict[str, list[tuple[int, str]]] = {}
    for path in maps:
        parts = path.split(".")
        layer = next((int(part) for part in parts if part.isdigit()), 0)
        name = f"{parts[0]} {parts[-1]}".replace("_", "-").capitalize()
        kinds.setdefault(name, []).append((layer, path))
    return [
        Block(
            name,
            [np.asarray(maps[path]) for _, path in sorted(paths)],
            [_short(token) for token in rows[paths[0][1]]],
            [_short(token) for token in columns[paths[0][1]]],
        )
        for name, paths in kinds.items()
    ]


def _short(token: str) -> str:
    """The token as it is written: a box for what no font has, an ellipsis for a long end."""
    shown = drawable(token)
    return shown if len(shown) <= _LONGEST_TOKEN else shown[: _LONGEST_TOKEN - 1] + "\u2026"


def _written(tokens: Sequence[str]) -> float:
    """Room for the longest token: Hangul is about twice as wide as Latin."""
    return max(sum(0.115 if ord(character) > 0x1100 else 0.075 for character in token) for token in tokens) + 0.1


def _draw_block(figure: Figure, block: Block, left: float, top: float, cell: float) -> None:
    """Draw a block's heading and maps. left, top: of the maps and the heading, from the lower left corner."""
    full_width, full_height = figure.get_size_inches()
    heads, across, down = len(block.layers[0]), len(block.columns) * cell, len(block.rows) * cell
    figure.text(_MARGIN / full_width, top / full_height, block.name, fontsize=13, va="top")
    for layer, map_HQM in enumerate(block.layers):
        bottom = top - _HEADING - layer * block.row_height(cell) - down
        for head in range(heads):
            x = left + head * (across + _GAP)
            axes = figure.add_axes((x / full_width, bottom / full_height, across / full_width, down / full_height))
            _draw_map(axes, map_HQM[head])
            axes.set_yticks([])
            _write(axes, "x", block.columns, cell)
            if head == 0:
                _write(axes, "y", block.rows, cell)
                y = (bottom + down / 2) / full_height
                name = f"layer {layer + 1}"
                figure.text(_MARGIN / full_width, y, name, rotation=90, va="center", ha="center", color="#555555")
            if head == heads - 1 and head > 0:
                _write(axes, "y", block.rows, cell)
                axes.yaxis.tick_right()
            if layer == 0:
                axes.set_title(f"head {head + 1}", fontsize=9, loc="center", pad=5, color="#555555")


def _draw_map(axes: Axes, weights_QM: Any) -> None:
    """Draw one map: white for 0, dark blue for 1."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    colors = LinearSegmentedColormap.from_list("attention", _COLORS)
    axes.imshow(weights_QM, cmap=colors, norm=PowerNorm(0.6, 0.0, 1.0), aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#BBBBBB", linewidth=0.6)


def _write(axes: Axes, axis: str, tokens: Sequence[str], cell: float) -> None:
    """Write tokens along one axis, as many as there is room for."""
    every = math.ceil(_LINE / cell - 1e-9)
    shown, labels = range(0, len(tokens), every), tokens[::every]
    if axis == "y":
        axes.set_yticks(shown, labels, fontsize=8)
    else:
        axes.set_xticks(shown, labels, fontsize=8, rotation=90)
    axes.tick_params(axis=axis, length=0, pad=3)  # type: ignore[arg-type]


def _draw_scale(figure: Figure) -> None:
    """Draw the meaning of the colours, in the upper right corner."""
    import numpy as np

    width, height = figure.get_size_inches()
    axes = figure.add_axes(((width - 2.4) / width, (height - 0.5) / height, 2.0 / width, 0.13 / height))
    _draw_map(axes, np.linspace(0, 1, 101)[None])
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "\u00bc", "\u00bd", "\u00be", "1"], fontsize=8)
    axes.set_yticks([])
    axes.tick_params(length=2)
    axes.set_title("how much a row's token attends to a column's", fontsize=8, loc="center", pad=3, color="#555555")
