"""The picture of a sentence's attention: blocks of small maps, with the tokens on their outer axes.

All measures are inches. A map's cell is as large as legible tokens need it, and smaller for long sentences,
where only every second, third ... token is written.
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
    """One kind of attention: its maps [H, Q, M] layer by layer, and the tokens of both axes."""

    name: str
    layers: list[Any]
    rows: list[str]
    columns: list[str]

    @property
    def heads(self) -> int:
        return int(self.layers[0].shape[0])


def plot_attention(
    maps: Mapping[str, ArrayLike],
    rows: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    file: Path,
    title: str,
) -> Path:
    """Every attention map of a sentence: a block a kind of attention, in it a row a layer and a column a head.

    maps:          weights [H, Q, M] of each attention module, by its path in the model, such as
                   `decoder.layers.0.cross_attention`: the number is the layer, the rest names the kind.
    rows, columns: the Q query tokens and the M key tokens, by the same paths.
    """
    blocks = _blocks(maps, rows, columns)
    cell = _cell(max(len(tokens) for block in blocks for tokens in (block.rows, block.columns)))
    left = _MARGIN + 0.25 + max(_written(block.rows) for block in blocks)
    width = left + max(_width(block, cell) + _written(block.rows) for block in blocks) + _MARGIN
    height = _TITLE + sum(_height(block, cell) for block in blocks)
    with canvas(file, (max(width, 6.0), height), dpi=100) as figure:
        figure.text(_MARGIN / figure.get_figwidth(), 1 - 0.3 / height, drawable(title), fontsize=16, va="top")
        top = height - _TITLE
        for block in blocks:
            _draw_block(figure, block, left, top, cell)
            top -= _height(block, cell)
        _draw_scale(figure)
    return file


def _blocks(
    maps: Mapping[str, ArrayLike], rows: Mapping[str, Sequence[str]], columns: Mapping[str, Sequence[str]]
) -> list[Block]:
    """The maps by kind of attention, in the order given; layers by number."""
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
    shown = drawable(token)
    return shown if len(shown) <= _LONGEST_TOKEN else shown[: _LONGEST_TOKEN - 1] + "\u2026"


def _cell(tokens: int) -> float:
    """Side of a cell for the longest axis of so many tokens."""
    return min(max(_CELL, _SMALLEST_MAP / tokens), _LARGEST_MAP / tokens)


def _written(tokens: Sequence[str]) -> float:
    """Room for the longest token: Hangul is about twice as wide as Latin."""
    return max(sum(0.115 if ord(character) > 0x1100 else 0.075 for character in token) for token in tokens) + 0.1


def _width(block: Block, cell: float) -> float:
    return block.heads * (len(block.columns) * cell + _GAP) - _GAP


def _height(block: Block, cell: float) -> float:
    return _HEADING + len(block.layers) * _row_height(block, cell) + _BETWEEN


def _row_height(block: Block, cell: float) -> float:
    """A layer's maps and the tokens beneath them."""
    return len(block.rows) * cell + _written(block.columns) + _GAP


def _draw_block(figure: Figure, block: Block, left: float, top: float, cell: float) -> None:
    """Place a block's heading and maps; `left` and `top` of its first map's heading, from the lower left corner."""
    full_width, full_height = figure.get_size_inches()
    across, down = len(block.columns) * cell, len(block.rows) * cell
    figure.text(_MARGIN / full_width, top / full_height, block.name, fontsize=13, va="top")
    for layer, map_HQM in enumerate(block.layers):
        bottom = top - _HEADING - layer * _row_height(block, cell) - down
        for head in range(block.heads):
            x = left + head * (across + _GAP)
            axes = figure.add_axes((x / full_width, bottom / full_height, across / full_width, down / full_height))
            _draw_map(axes, map_HQM[head])
            axes.set_yticks([])
            axes.set_xticks([])
            _write(axes, "x", block.columns, cell)
            if head == 0:
                _write(axes, "y", block.rows, cell)
                y = (bottom + down / 2) / full_height
                name = f"layer {layer + 1}"
                figure.text(_MARGIN / full_width, y, name, rotation=90, va="center", ha="center", color="#555555")
            if head == block.heads - 1 and head > 0:
                _write(axes, "y", block.rows, cell)
                axes.yaxis.tick_right()
            if layer == 0:
                axes.set_title(f"head {head + 1}", fontsize=9, loc="center", pad=5, color="#555555")


def _draw_map(axes: Axes, weights_QM: Any) -> None:
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    colors = LinearSegmentedColormap.from_list("attention", _COLORS)
    axes.imshow(weights_QM, cmap=colors, norm=PowerNorm(0.6, 0.0, 1.0), aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color="#BBBBBB", linewidth=0.6)


def _write(axes: Axes, axis: str, tokens: Sequence[str], cell: float) -> None:
    """Tokens along one axis, as many as there is room for."""
    every = math.ceil(_LINE / cell - 1e-9)
    size = 8.0
    shown = range(0, len(tokens), every)
    labels = [tokens[place] for place in shown]
    if axis == "y":
        axes.set_yticks(shown, labels, fontsize=size)
    else:
        axes.set_xticks(shown, labels, fontsize=size, rotation=90)
    axes.tick_params(axis=axis, length=0, pad=3)  # type: ignore[arg-type]


def _draw_scale(figure: Figure) -> None:
    """What the colours mean, in the upper right corner."""
    import numpy as np

    width, height = figure.get_size_inches()
    axes = figure.add_axes(((width - 2.4) / width, (height - 0.5) / height, 2.0 / width, 0.13 / height))
    _draw_map(axes, np.linspace(0, 1, 101)[None])
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "\u00bc", "\u00bd", "\u00be", "1"], fontsize=8)
    axes.set_yticks([])
    axes.tick_params(length=2)
    axes.set_title("how much a row's token attends to a column's", fontsize=8, loc="center", pad=3, color="#555555")
