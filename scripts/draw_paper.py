#!/usr/bin/env python3
"""Draw the pictures of docs/paper with the program's own functions, each for a light and a dark page.

    python scripts/draw_paper.py [--to docs/paper] [--only NAME ...] [--model runs/quickstart/model]

The picture `attention` needs the trained model of the quickstart; without --model it is left as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import paper_diagrams
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from transformer_mt.config.model import ModelConfig
from transformer_mt.config.training import TrainingConfig
from transformer_mt.data.planning import BatchSize, by_length, cut
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.label_smoothing import smoothed_cross_entropy
from transformer_mt.model.masks import causal_mask, padding_mask
from transformer_mt.model.positions import sinusoidal_positions
from transformer_mt.model.transformer import Transformer
from transformer_mt.reporting.canvas import COLORS, Theme, canvas
from transformer_mt.training.schedules.base import make_schedule

SENTENCE = "누가 열 시에 이 코트를 입었습니까?"  # made by the grammar of the phrasebook
WIDTH = 5.8  # inches: narrow, so that letters stay legible on a telephone


@dataclass(frozen=True)
class Ink:
    """What a page's theme draws with: lines in three colours, a faint one, and a fill for nothing."""

    page: str
    text: str
    faint: str
    fill: str
    first: str
    second: str
    third: str

    @classmethod
    def of(cls, theme: Theme) -> Ink:
        colors = COLORS[theme]
        return cls(colors.paper, colors.ink, colors.frame, colors.grid, *colors.series[:3])

    @property
    def shades(self) -> LinearSegmentedColormap:
        """From nothing to much."""
        return LinearSegmentedColormap.from_list("shades", [self.fill, self.first])

    @property
    def signed(self) -> LinearSegmentedColormap:
        """From -1 to 1."""
        return LinearSegmentedColormap.from_list("signed", [self.second, self.page, self.first])


def positions(figure: Figure, ink: Ink) -> None:
    """Section 3.5: the table that is added to the embeddings."""
    axes = figure.add_subplot(xlabel="coordinate i of the vector", ylabel="position")
    image = axes.imshow(sinusoidal_positions(50, 128), cmap=ink.signed, aspect="auto", vmin=-1, vmax=1)
    axes.grid(visible=False)
    bar = figure.colorbar(image, ticks=[-1, 0, 1])
    bar.outline.set_visible(False)  # type: ignore[operator]


def position_products(figure: Figure, ink: Ink) -> None:
    """Section 3.5: how alike two positions are."""
    axes = figure.add_subplot(xlabel="distance k between the two positions", ylabel="dot product / (d_model / 2)")
    distances = torch.arange(-60, 61)
    for d_model, colour in ((32, ink.second), (128, ink.third), (512, ink.first)):
        table_PD = sinusoidal_positions(121, d_model)
        axes.plot(distances, table_PD @ table_PD[60] / (d_model / 2), color=colour, label=f"d_model {d_model}")
    axes.set_ylim(bottom=0)
    axes.legend()


def weights_of(query_QK: Tensor, key_MK: Tensor) -> Tensor:
    """The attention weights [Q, M]: with unit vectors as values, the contexts are the weights."""
    return scaled_dot_product_attention(query_QK[None, None], key_MK[None, None], torch.eye(len(key_MK))[None, None])[
        0, 0
    ]


def scaling(figure: Figure, ink: Ink) -> None:
    """Section 3.2.1: what dividing by sqrt(d_k) is for."""
    torch.manual_seed(1)
    axes = figure.add_subplot(xlabel="width of a head d_k", ylabel="largest of 16 weights, mean")
    widths = [2**power for power in range(1, 11)]
    divided, plain = [], []
    for width in widths:
        draws = [(torch.randn(50, width), torch.randn(16, width)) for _ in range(100)]
        divided.append(mean(float(weights_of(q_QK, k_MK).amax(dim=1).mean()) for q_QK, k_MK in draws))
        plain.append(mean(float(weights_of(q_QK * width**0.5, k_MK).amax(dim=1).mean()) for q_QK, k_MK in draws))
    axes.plot(widths, plain, color=ink.second, marker=".", label="without the division")
    axes.plot(widths, divided, color=ink.first, marker=".", label="divided by the root of d_k")
    axes.axhline(1 / 16, color=ink.faint, linestyle="--", label="all 16 equal")
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.set_ylim(0, 1.3)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.legend(loc="upper left")


def masks(figure: Figure, ink: Ink) -> None:
    """Section 3.2.3: who may look at whom."""
    source, target = ["나는", "왔어요", "</s>", "<pad>"], ["<s>", "I", "came", "."]
    may_look = padding_mask(torch.tensor([[5, 6, 3, 0]]), 0)[0, 0].expand(4, -1)
    panels = {
        "encoder": (source, source, may_look),
        "decoder, itself": (target, target, causal_mask(torch.empty(1, 1, 4, 1))[0, 0]),
        "decoder, source": (target, source, may_look),
    }
    for axes, (title, (rows, columns, mask_QM)) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        axes.imshow(mask_QM, cmap=ink.shades, vmin=0, vmax=1)
        axes.set_title(title, fontsize=10)
        axes.set_xticks(range(4), columns, fontsize=7)
        axes.set_yticks(range(4), rows, fontsize=8.5)
        axes.set_xticks(np.arange(0.5, 3), minor=True)
        axes.set_yticks(np.arange(0.5, 3), minor=True)
        axes.grid(visible=False)
        axes.grid(which="minor", color=ink.page, linewidth=2)
        axes.tick_params(length=0, which="both")
        axes.spines[:].set_visible(False)


def gradients(figure: Figure, ink: Ink) -> None:
    """Section 3.1: how the gradient arrives at the layers of a deep decoder that nobody has trained yet."""
    axes = figure.add_subplot(
        xlabel="layer of the decoder (18 is next to the loss)", ylabel="norm of the gradient of W1"
    )
    for norm, colour in (("post", ink.second), ("pre", ink.first)):
        torch.manual_seed(1)
        sizes = {"d_model": 64, "n_heads": 4, "d_ff": 256, "encoder_layers": 2, "decoder_layers": 18, "dropout": 0.0}
        model = Transformer(ModelConfig.model_validate({**sizes, "norm": norm}), 50, 50)
        source_BS, target_BT, right_N = (torch.randint(4, 50, shape) for shape in ((16, 10), (16, 10), (160,)))
        logits_NV = model.generate_logits(model(source_BS, target_BT)).flatten(0, 1)
        (smoothed_cross_entropy(logits_NV, right_N, 0.0) / len(right_N)).backward()
        norms = [layer.feed_forward.inner.weight.grad.norm() for layer in model.decoder.layers]  # type: ignore[union-attr]
        axes.plot(range(1, 19), norms, color=colour, marker=".", label=f"{norm}-norm")
    axes.set_yscale("log")
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.set_xticks(range(1, 19, 2))
    axes.legend()


def padding(figure: Figure, ink: Ink) -> None:
    """Section 5.1: what batches of similar lengths save."""
    lengths = np.random.default_rng(4).poisson(9, 120) + 1
    orders = {"in random order": np.arange(len(lengths)), "by length": by_length(lengths, lengths)}
    for axes, (title, order) in zip(figure.subplots(1, 2, sharey=True), orders.items(), strict=True):
        ordered, row, filled = lengths[order], 0, 0
        for part in cut(ordered, BatchSize(tokens=200)):
            batch = ordered[part]
            edges, whole = np.arange(row, row + len(batch) + 1), np.full_like(batch, batch.max())
            for widths, colour in ((whole, ink.second), (batch, ink.first)):
                axes.stairs(widths, edges, orientation="horizontal", fill=True, color=colour)
            row += len(batch) + 2  # a gap between batches
            filled += whole.sum()
        axes.set_title(f"{title}: {1 - ordered.sum() / filled:.0%} padding")
        axes.set_xlabel("tokens")
        axes.grid(visible=False)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)


def noam(figure: Figure, ink: Ink) -> None:
    """Section 5.3, equation 3."""
    axes = figure.add_subplot(xlabel="step", ylabel="learning rate")
    settings = ((512, 4000, ink.first), (512, 8000, ink.third), (256, 4000, ink.second))
    steps = range(1, 20_001, 50)
    for d_model, warmup, colour in settings:
        schedule = make_schedule(TrainingConfig(schedule="noam", warmup_steps=warmup, max_epochs=1), d_model, 1)
        rates = [schedule.rate(step) for step in steps]
        axes.plot(steps, rates, color=colour, label=f"d_model {d_model}, warmup {warmup:,}")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    axes.legend()


def smoothing(figure: Figure, ink: Ink) -> None:
    """Section 5.4: what the model is asked for, and what it pays for being too sure."""
    vocabulary, epsilon = 8, 0.1
    left, right = figure.subplots(1, 2)
    asked = np.full(vocabulary, epsilon / vocabulary)
    asked[3] += 1 - epsilon
    left.bar(range(vocabulary), asked, color=[ink.second if word == 3 else ink.first for word in range(vocabulary)])
    left.set_xticks(range(vocabulary))
    left.set(title="target distribution, V = 8", xlabel="token (3 is right)", ylabel="probability")
    p_right = torch.linspace(0.3, 0.9999, 400)
    for value, colour in ((0.0, ink.third), (epsilon, ink.first)):
        rest = ((1 - p_right) / (vocabulary - 1)).log()
        logits_NV = torch.stack([p_right.log(), *[rest] * (vocabulary - 1)], dim=1)
        first_N = torch.zeros(1, dtype=torch.long)
        losses = [smoothed_cross_entropy(row[None], first_N, value) for row in logits_NV]
        right.plot(p_right, losses, color=colour, label=f"epsilon {value:g}")
    right.set(title="loss", xlabel="probability of the right token")
    right.set_ylim(0, 1.3)
    right.legend(loc="lower left")


def attention(figure: Figure, ink: Ink, model: Path) -> None:
    """Section 3.2.3: how the decoder of a trained model looks at the source."""
    from transformer_mt.decoding.translator import Translator

    translator = Translator.load(model)
    maps = translator.attention(SENTENCE)
    last = f"decoder.layers.{translator.config.model.decoder_layers - 1}.cross_attention"
    weights_HQM, source, target = maps.maps[last], maps.columns[last], maps.rows[last]
    shown = zip(figure.subplots(2, 2, sharex=True, sharey=True).flat, weights_HQM, strict=True)
    for head, (axes, weights_QM) in enumerate(shown, start=1):
        axes.imshow(weights_QM, cmap=ink.shades, vmin=0, vmax=1)
        axes.set_title(f"head {head}", fontsize=10)
        axes.set_xticks(range(len(source)), ["\n".join(token) for token in source], fontsize=9)  # from top to bottom
        axes.set_yticks(range(len(target)), target, fontsize=9)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    figure.supylabel("token to be written", fontsize=10)


PICTURES: dict[str, tuple[Callable[..., None], float]] = {  # with their height in inches
    "attention": (attention, 5.9),
    "beam": (paper_diagrams.beam, 3.9),
    "cache": (paper_diagrams.cache, 3.0),
    "gradients": (gradients, 3.2),
    "masks": (masks, 2.1),
    "model": (paper_diagrams.model, 6.0),
    "noam": (noam, 3.2),
    "norms": (paper_diagrams.norms, 3.6),
    "padding": (padding, 3.0),
    "position_products": (position_products, 3.2),
    "positions": (positions, 3.4),
    "scaling": (scaling, 3.2),
    "smoothing": (smoothing, 3.0),
}


def draw(name: str, folder: Path, *arguments: Path) -> list[Path]:
    """Draw a picture for light and dark pages, without a background. arguments: the trained model, if it needs one."""
    function, height = PICTURES[name]
    files = []
    for theme in COLORS:
        files.append(folder / f"{name}-{theme}.svg")
        with canvas(files[-1], (WIDTH, height), theme) as figure:
            figure.set_layout_engine("constrained")
            function(figure, Ink.of(theme), *arguments)
            for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
                patch.set_alpha(0)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("docs/paper"), help="folder to draw in (docs/paper)")
    parser.add_argument("--only", nargs="+", choices=sorted(PICTURES), help="these pictures only")
    parser.add_argument("--model", type=Path, help="trained model of the quickstart, for the picture `attention`")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or PICTURES:
        if name != "attention" or arguments.model is not None:
            for file in draw(name, arguments.to, *([arguments.model] if name == "attention" else [])):
                print(f"{file}  {file.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
