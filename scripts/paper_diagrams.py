"""The diagrams of docs/paper: boxes and arrows. Drawn by draw_paper.py beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import Tensor

from transformer_mt.decoding.beam_search import BeamOptions, beam_search
from transformer_mt.decoding.step import Limits
from transformer_mt.text.vocabulary import BOS, MARKS

if TYPE_CHECKING:
    from draw_paper import Ink

WORDS = [*MARKS, "a", "the", "cat", "dog", "bird", "sleeps"]
NEXT = {  # what may follow a prefix, and how likely it is: the toy model of the page "Decoding"
    "": {"a": 0.5, "the": 0.4, "cat": 0.1},
    "a": {"cat": 0.36, "dog": 0.34, "bird": 0.3},
    "the": {"cat": 0.9, "dog": 0.1},
}
AFTER_NOUN = {"</s>": 0.52, "sleeps": 0.48}


def bare(figure: Figure, width: float, height: float) -> Axes:
    """Axes without axes; the origin is the lower left corner."""
    axes: Axes = figure.add_subplot()
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return axes


def box(axes: Axes, x: float, y: float, text: str, colour: str, width: float = 2.2, height: float = 0.55) -> None:
    """A box around its middle (x, y)."""
    corner, shape = (x - width / 2, y - height / 2), "round,pad=0,rounding_size=0.1"
    axes.add_patch(FancyBboxPatch(corner, width, height, shape, facecolor="none", edgecolor=colour, linewidth=1.6))
    axes.text(x, y, text, ha="center", va="center")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})


def line(axes: Axes, points: list[tuple[float, float]], colour: str) -> None:
    axes.plot([x for x, _ in points], [y for _, y in points], color=colour, linewidth=1.2)


def norms(figure: Figure, ink: Ink) -> None:
    """Section 3.1: two places for the normalisation."""
    axes = bare(figure, 10, 5.2)
    orders = {
        "post-norm (the paper)": ["sub-layer", "dropout", "+", "norm"],
        "pre-norm": ["norm", "sub-layer", "dropout", "+"],
    }
    for middle, (title, steps) in zip((2.4, 7.2), orders.items(), strict=True):
        axes.text(middle + 0.4, 5.0, title, ha="center", va="top", fontsize=11)
        arrow(axes, (middle, 0.0), (middle, 0.72), ink.text)
        for number, step in enumerate(steps):
            y = 1.0 + number
            colour = {"norm": ink.second, "+": ink.first}.get(step, ink.faint)
            box(axes, middle, y, step, colour, width=0.6 if step == "+" else 2.2)
            arrow(axes, (middle, y + 0.28), (middle, y + (0.72 if number < 3 else 0.6)), ink.text)
        place = 1.0 + steps.index("+")
        line(axes, [(middle, 0.3), (middle + 1.8, 0.3), (middle + 1.8, place)], ink.first)
        arrow(axes, (middle + 1.8, place), (middle + 0.32, place), ink.first)
        axes.text(middle + 1.92, (place + 0.3) / 2, "x", va="center", color=ink.first)


def model(figure: Figure, ink: Ink) -> None:
    """Figure 1, with the names of our modules."""
    axes = bare(figure, 10, 9.2)
    left, right, wide = 2.4, 7.4, 3.6
    rows = {
        "source ids [B, S]": (left, 0.4, ink.faint),
        "source_embedding\n+ positions": (left, 1.5, ink.third),
        "self_attention ": (left, 4.7, ink.first),
        "feed_forward ": (left, 5.7, ink.second),
        "target ids [B, T]\nshifted right": (right, 0.4, ink.faint),
        "target_embedding\n+ positions": (right, 1.5, ink.third),
        "self_attention, causal": (right, 3.2, ink.first),
        "cross_attention": (right, 4.7, ink.first),
        "feed_forward": (right, 5.7, ink.second),
        "generator": (right, 7.6, ink.third),
        "logits [B, T, V]": (right, 8.7, ink.faint),
    }
    for text, (x, y, colour) in rows.items():
        in_layer = colour in (ink.first, ink.second)
        box(axes, x, y, text.strip() + ("\nadd & norm" if in_layer else ""), colour, width=wide, height=0.7)
    for x, steps in ((left, (0.4, 1.5, 4.7, 5.7)), (right, (0.4, 1.5, 3.2, 4.7, 5.7, 7.6, 8.7))):
        for below, above in pairwise(steps):
            arrow(axes, (x, below + 0.35), (x, above - 0.35), ink.text)
    for x, bottom in ((left, 4.0), (right, 2.5)):
        line(axes, [(x - 2, bottom), (x + 2, bottom), (x + 2, 6.4), (x - 2, 6.4), (x - 2, bottom)], ink.faint)
        axes.text(x + 2, 6.48, "N ×", ha="right", va="bottom")
    line(axes, [(left, 6.05), (left, 7.3), (4.9, 7.3), (4.9, 4.7)], ink.text)
    arrow(axes, (4.9, 4.7), (right - wide / 2, 4.7), ink.text)
    axes.text(left + 0.1, 7.4, "memory [B, S, D]", va="bottom")


def cache(figure: Figure, ink: Ink) -> None:
    """Which positions a decoder computes to write six tokens."""
    for axes, title, cached in zip(
        figure.subplots(1, 2), ("without a cache: 21", "with a cache: 6"), (0, 1), strict=True
    ):
        for step in range(6):
            for position in range(step + 1):
                new = position == step
                face = ink.first if new else "none" if cached else ink.second
                edge = ink.faint if face == "none" else face
                axes.add_patch(Rectangle((position + 0.08, 5.08 - step), 0.84, 0.84, facecolor=face, edgecolor=edge))
        axes.set(xlim=(0, 6), ylim=(0, 6), aspect="equal", title=title, xlabel="target position", ylabel="step")
        axes.set_xticks([place + 0.5 for place in range(6)], [str(place + 1) for place in range(6)])
        axes.set_yticks([place + 0.5 for place in range(6)], [str(6 - place) for place in range(6)])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)


@dataclass(frozen=True)
class Prefixes:
    """The cache of the toy model: the words of each row."""

    rows: list[list[str]]

    def select(self, sentences_B: Tensor) -> Prefixes:
        return self.reorder(sentences_B)

    def reorder(self, rows_N: Tensor) -> Prefixes:
        return Prefixes([self.rows[row] for row in rows_N.tolist()])


def beam(figure: Figure, ink: Ink) -> None:
    """The tree of a beam search with beam 2 over a toy model."""
    asked: list[list[str]] = []

    def step(previous_N: Tensor, prefixes: Prefixes) -> tuple[Tensor, Prefixes]:
        pairs = zip(prefixes.rows, previous_N.tolist(), strict=True)
        rows = [row if word == BOS else [*row, WORDS[word]] for row, word in pairs]
        asked.extend(row for row in rows if row not in asked)
        logits_NV = torch.full((len(rows), len(WORDS)), -math.inf)
        for number, row in enumerate(rows):
            for word, p in following(row).items():
                logits_NV[number, WORDS.index(word)] = math.log(p)
        return logits_NV, Prefixes(rows)

    (found,) = beam_search(step, Prefixes([[]]), Limits.of([0], [5]), BeamOptions(beam=2, early=False))
    done = [[WORDS[word] for word in one.ids] for one in found]
    axes = figure.add_subplot(xlim=(-0.35, 4.6), ylim=(7.5, -1.2))
    axes.axis("off")
    free = iter(range(100))

    def place(row: list[str], p: float) -> float:
        """Draw the tree below a prefix; returns its height. p: its probability."""
        alive, is_done = row in asked, row in done
        children = sorted(following(row).items(), key=lambda pair: -pair[1]) if alive else []
        heights = [place([*row, word], p * p_word) for word, p_word in children]
        y = sum(heights) / len(heights) if heights else float(next(free))
        for (word, _), below in zip(children, heights, strict=True):
            kept = [*row, word] in asked or [*row, word] in done
            line(axes, [(len(row) + 0.3, y), (len(row) + 0.7, below)], ink.first if kept else ink.faint)
        colour = ink.third if is_done else ink.text
        label = f"{row[-1]}\n{p:.3f}{' ✓' if is_done else ''}" if row else "<s>"
        opacity = 1.0 if alive or is_done else 0.6
        axes.text(len(row), y, label, ha="center", va="center", fontsize=9, color=colour, alpha=opacity)
        return y

    place([], 1.0)
    for column in range(1, 5):
        axes.text(column, -1.1, f"step {column}", ha="center", va="center", fontsize=9)


def following(row: list[str]) -> dict[str, float]:
    if row and row[-1] in ("cat", "dog", "bird"):
        return AFTER_NOUN
    return {"</s>": 1.0} if row and row[-1] == "sleeps" else NEXT[" ".join(row)]
