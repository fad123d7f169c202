#!/usr/bin/env python3
"""Draw the pictures of streams on a GPU in docs/pictures, each for a light and a dark page.

    python scripts/draw_streams.py [--to docs/pictures]

`span-blocks` counts what kernels compute; `cuda-graph` is a sketch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from draw_paper import WIDTH, Ink
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from transformer_mt.reporting.canvas import COLORS, canvas

SENTENCES = (9, 26, 40, 70)  # tokens
START = 1.0  # time to start a kernel; that of the kernels below
KERNELS = (0.3, 0.5, 0.25, 0.6, 0.35, 0.3, 0.55, 0.25, 0.4, 0.3)


def blocks_of(size: int, length: int) -> list[tuple[int, int]]:
    """First query and first key of the blocks that causal attention computes for one sentence."""
    return [(query, key) for query in range(0, length, size) for key in range(0, query + size, size) if key < length]


def span_blocks(figure: Figure, ink: Ink) -> None:
    """Scores that attention in the decoder computes for sentences, by the size of its blocks."""
    names = {128: "FlashAttention:\nblocks of 128", 16: "ours:\nblocks of 16"}
    shown = figure.subplots(len(names), len(SENTENCES), sharex=True, sharey=True)
    for row, (size, name) in zip(shown, names.items(), strict=True):
        row[0].set_ylabel(name)
        for axes, length in zip(row, SENTENCES, strict=True):
            blocks = blocks_of(size, length)
            for query, key in blocks:
                axes.add_patch(Rectangle((key, query), size, size, facecolor=ink.second, linewidth=0))
            stairs = range(1, length + 1)  # a query attends to its own place and those before
            axes.stairs(stairs, range(length + 1), orientation="horizontal", fill=True, color=ink.first)
            needed = length * (length + 1) / 2 / (len(blocks) * size**2)
            axes.set_title(f"{length} tokens: {100 * needed:.2g} %", fontsize=9)
            axes.set(xlim=(0, 128), ylim=(128, 0), aspect="equal", xticks=[], yticks=[])
            axes.grid(visible=False)


def timeline(axes: Axes, ink: Ink, title: str, starts: list[tuple[float, float]], begins: list[float]) -> None:
    """What the program and the GPU do; starts: (time, duration) in which the program starts kernels."""
    lanes = {"program": 1.0, "GPU": 0.0}
    for x, width in starts:
        axes.add_patch(Rectangle((x, 1.0), width, 0.7, facecolor=ink.second, edgecolor=ink.page))
    for x, width in zip(begins, KERNELS, strict=True):
        axes.add_patch(Rectangle((x, 0.0), width, 0.7, facecolor=ink.first, edgecolor=ink.page))
    axes.set(xlim=(0, len(KERNELS) * START + 0.8), ylim=(-0.15, 1.85), title=title, xticks=[])
    axes.set_yticks([y + 0.35 for y in lanes.values()], list(lanes))
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def cuda_graph(figure: Figure, ink: Ink) -> None:
    """The first kernels of an update: started one by one, and as a graph."""
    above, below = figure.subplots(2, 1)
    each = [number * START for number in range(len(KERNELS))]
    timeline(above, ink, "each kernel started by the program", [(x, START) for x in each], [x + START for x in each])
    ends = [START, *(START + end for end in accumulate(KERNELS))]
    timeline(below, ink, "a graph started by the program", [(0.0, START)], ends[:-1])
    below.set_xlabel("time")


PICTURES: dict[str, tuple[Callable[[Figure, Ink], None], float]] = {  # with their height in inches
    "cuda-graph": (cuda_graph, 2.5),
    "span-blocks": (span_blocks, 3.2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"), help="folder to draw in (docs/pictures)")
    folder = parser.parse_args().to
    for name, (function, height) in PICTURES.items():
        for theme in COLORS:
            file = folder / f"{name}{'-dark' if theme == 'dark' else ''}.svg"
            with canvas(file, (WIDTH, height), theme) as figure:
                figure.set_layout_engine("constrained")
                function(figure, Ink.of(theme))
                for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
                    patch.set_alpha(0)
            print(f"{file}  {file.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
