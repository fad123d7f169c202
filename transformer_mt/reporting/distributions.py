"""Pictures of many sentences: their lengths, how often tokens occur, and scores by length. Knows numbers only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.reporting.canvas import PLAIN, SMALL, Theme, canvas, drawable, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INCHES = (9.0, 4.6)
_COVERED = 0.9  # share of all tokens; a dot marks the entry that reaches it
Lengths = Mapping[str, Sequence[int]]  # by side, such as "source (de)": element n counts the sentences of n tokens
Frequencies = Mapping[str, Sequence[int]]  # by side: how often each entry of the vocabulary occurs


def plot_data(lengths: Lengths | None, frequencies: Frequencies | None, file: Path, theme: Theme = "light") -> Path:
    """Draw a histogram of sentence lengths for each side; and beside it the frequency of each vocabulary entry by its
    rank, and how many make up most of the text. None: without it."""
    sides = " and ".join(lengths if lengths is not None else frequencies or {})
    panels = len([one for one in (lengths, frequencies) if one is not None])
    title = "Sentences by length and vocabulary entries by frequency"
    with canvas(file, _INCHES, theme, title=title, description=sides) as figure:
        if lengths is not None:
            _draw_lengths(_panel(figure, 0, panels, "Sentences by length"), lengths)
        if frequencies is not None:
            _draw_vocabulary(_panel(figure, panels - 1, panels, "Frequency of vocabulary entries"), frequencies)
    return file


def plot_scores(
    scores: Sequence[tuple[str, int, float, float]], title: str, file: Path, theme: Theme = "light"
) -> Path:
    """Draw scores by sentence length.

    scores: for each group of sentences the range of lengths ("6 to 10"), their number, BLEU and chrF.
    """
    description = "; ".join(f"{span} tokens: BLEU {bleu:.1f}, chrF2 {chrf:.1f}" for span, _, bleu, chrf in scores)
    with canvas(file, _INCHES, theme, title=title, description=description) as figure:
        axes = _panel(figure, 0, 1, fitted(drawable(title), 12.5, 5.6))
        width = 0.36
        for place, name in enumerate(("BLEU", "chrF2")):
            values = [row[2 + place] for row in scores]
            middles = [group + (place - 0.5) * (width + 0.03) for group in range(len(scores))]
            axes.bar(middles, values, width, color=f"C{place}", label=name)
            for middle, value in zip(middles, values, strict=True):
                axes.annotate(
                    f"{value:.1f}", (middle, value), (0, 3), textcoords="offset points", ha="center", fontsize=SMALL
                )
        axes.set_xticks(range(len(scores)), [f"{span}\n{number:,}" for span, number, _, _ in scores])
        axes.set_xlim(-0.6, max(len(scores), 3) - 0.4)
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("tokens of the reference, and number of sentences", fontsize=PLAIN)
        axes.set_ylim(0, 108)
        axes.set_yticks(range(0, 101, 20))
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.3, fontsize=PLAIN)
    return file


def _panel(figure: Figure, place: int, panels: int, title: str) -> Axes:
    """One of the panels of a figure, side by side. place: from 0."""
    width, height = figure.get_size_inches()
    left, gap, right = 0.85, 0.95, 0.25
    each = (width - left - right - gap * (panels - 1)) / panels
    x = left + place * (each + gap)
    return figure.add_axes((x / width, 0.72 / height, each / width, 1 - 1.22 / height), title=title)


def _draw_lengths(axes: Axes, lengths: Lengths) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    for place, (side, counts) in enumerate(lengths.items()):
        mean = sum(n * count for n, count in enumerate(counts)) / max(1, sum(counts))
        edges = [n - 0.5 for n in range(len(counts) + 1)]
        axes.stairs(counts, edges, fill=True, color=f"C{place}", alpha=0.18)
        axes.stairs(counts, edges, color=f"C{place}", linewidth=1.8, label=drawable(f"{side}: mean {mean:.1f}"))
    axes.set_xlabel(_cut_off_the_longest(axes, lengths.values()), fontsize=PLAIN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 2.5, 5, 10]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylabel("sentences", fontsize=PLAIN)
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=PLAIN)  # "best" takes a second if the curve is long


def _draw_vocabulary(axes: Axes, frequencies: Frequencies) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for place, (side, counts) in enumerate(frequencies.items()):
        ranked = sorted((count for count in counts if count), reverse=True)
        if not ranked:
            continue
        so_far = list(accumulate(ranked))
        rank = bisect_left(so_far, _COVERED * so_far[-1]) + 1
        label = f"{drawable(side)}: {len(ranked):,} entries in use,\n{rank:,} make up {_COVERED:.0%} of tokens"
        axes.plot(range(1, len(ranked) + 1), ranked, "o-", color=f"C{place}", markevery=[rank - 1], label=label)
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.margins(x=0.05, y=0.08)
    axes.set_xlabel("rank of the entry", fontsize=PLAIN)
    axes.set_ylabel("occurrences", fontsize=PLAIN)
    axes.legend(loc="lower left", fontsize=PLAIN)


def _cut_off_the_longest(axes: Axes, lengths: Iterable[Sequence[int]]) -> str:
    """End the x axis before a few very long sentences, which would squeeze the rest; returns its name."""
    right, longest = 1, 1
    for counts in lengths:
        so_far = list(accumulate(counts))
        if so_far and so_far[-1]:
            right = max(right, bisect_left(so_far, 0.998 * so_far[-1]))
            longest = max(longest, bisect_left(so_far, so_far[-1]))
    if longest < 1.5 * right:
        axes.set_xlim(0, longest + 1)
        return "tokens"
    axes.set_xlim(0, 1.25 * right)
    return f"tokens (the longest: {longest:,})"
