"""Draws the two ways of a sentence for docs/architecture.md, as SVG for light and for dark pages.

python scripts/draw_architecture.py

A box is a function or class of the package; `tests/test_architecture.py` checks that each exists, and that the pictures
are those of this file.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"

Box = tuple[str, str]  # file without .py, and the name in it
Group = tuple[str, list[list[Box]]]  # title, and rows of boxes in the order in which a sentence meets them

TRAINING: list[Group] = [
    (
        "First pass: read and clean",
        [
            [("files/lines", "read_lines"), ("corpora/tables", "pick_columns"), ("data/reading", "Cleaner")],
            [("text/batches", "Batch.clean"), ("data/reading", "clean_stream")],
        ],
    ),
    (
        "Second pass: select and tokenize",
        [
            [
                ("data/selection", "Selection"),
                ("data/tokenising", "Tokenising"),
                ("data/store", "StoreWriter"),
            ]
        ],
    ),
    (
        "An update of the weights",
        [
            [
                ("data/batching", "Batches.at"),
                ("training/gradients", "Gradients"),
                ("training/step", "TrainingStep"),
            ],
            [
                ("model/transformer", "Transformer.encode"),
                ("model/transformer", "Transformer.decode"),
                ("kernels/loss", "linear_cross_entropy"),
            ],
        ],
    ),
]
TRANSLATING: list[Group] = [
    (
        "A line comes in",
        [
            [("cli/main", "main"), ("cli/translate", "translate"), ("cli/streaming", "translate_all")],
            [
                ("decoding/interpreter", "Interpreter.translate"),
                ("text/cleaning", "clean_text"),
                ("text/codec", "Segmenter.tokenize"),
            ],
        ],
    ),
    (
        "A search: tokens to the step, logits and a longer cache back",
        [
            [
                ("decoding/batches", "search"),
                ("decoding/incremental", "IncrementalDecoder.start"),
                ("model/transformer", "Transformer.encode"),
            ],
            [("decoding/beam_search", "beam_search"), ("decoding/incremental", "IncrementalDecoder.step")],
        ],
    ),
    (
        "A line goes out",
        [
            [
                ("decoding/searches/base", "Search.choose"),
                ("text/codec", "Codec.decode"),
                ("cli/answers", "Writer.write"),
            ]
        ],
    ),
]
PATHS = {"training": TRAINING, "translating": TRANSLATING}
BOTH_WAYS = ("beam_search", "IncrementalDecoder.step")  # each calls for the other's answer until all sentences end

COLORS = {
    "light": {
        "ink": "#1f2328",
        "quiet": "#57606a",
        "line": "#57606a",
        "box": "#ffffff",
        "edge": "#0969da",
        "group": "#f3f6fa",
    },
    "dark": {
        "ink": "#e6edf3",
        "quiet": "#9da7b3",
        "line": "#9da7b3",
        "box": "#161b22",
        "edge": "#58a6ff",
        "group": "#242b36",
    },
}
WIDTH, BOX, HEIGHT, GAP, PADDING, TITLE = 760, 212, 48, 36, 20, 26
SANS, MONO = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif", "ui-monospace, Menlo, Consolas, monospace"


def drawing(groups: list[Group], theme: str) -> str:
    """The SVG of one way."""
    colors, parts, top = COLORS[theme], [], PADDING
    previous: tuple[float, float] | None = None  # the middle of the lower edge of the box before
    for title, rows in groups:
        size = TITLE + len(rows) * (HEIGHT + GAP) - GAP + PADDING
        frame = f'<rect x="8" y="{top - 8}" width="{WIDTH - 16}" height="{size + 8}" rx="8" fill="{colors["group"]}"/>'
        head = f'<text x="{PADDING + BOX / 2 + 14:g}" y="{top + 12}" class="title">{escape(title)}</text>'
        parts += [frame, head]
        for number, row in enumerate(rows):
            y = top + TITLE + number * (HEIGHT + GAP)
            for column, box in enumerate(row):
                x = PADDING + column * (BOX + (WIDTH - 2 * PADDING - 3 * BOX) / 2)
                parts.append(_box(box, x, y, colors))
                parts.append(_arrow(previous, x, y, column, row))
                previous = (x, y)
        top += size + 16
    total = top - 8
    style = (
        f"text{{font-family:{SANS};fill:{colors['ink']}}}.title{{font-size:14px;font-weight:600}}"
        f".file{{font-size:12px;fill:{colors['quiet']}}}.name{{font-size:13px;font-family:{MONO}}}"
        f".arrow{{fill:none;stroke:{colors['line']};stroke-width:1.5;marker-end:url(#end)}}"
        f".back{{marker-start:url(#end)}}"
    )
    head = (
        '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto-start-reverse">'
        f'<path d="M0 0L8 4L0 8z" fill="{colors["line"]}"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:g}" width="{WIDTH}" height="{total:g}"'
        ' role="img">'
        f"<style>{style}</style><defs>{head}</defs>\n" + "\n".join(filter(None, parts)) + "\n</svg>\n"
    )


def _box(box: Box, x: float, y: float, colors: dict[str, str]) -> str:
    file, name = box
    middle = x + BOX / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}" rx="6" fill="{colors["box"]}"'
        f' stroke="{colors["edge"]}"/>'
        f'<text x="{middle:g}" y="{y + 19:g}" text-anchor="middle" class="file">{escape(file)}</text>'
        f'<text x="{middle:g}" y="{y + 37:g}" text-anchor="middle" class="name">{escape(name)}</text>'
    )


def _arrow(previous: tuple[float, float] | None, x: float, y: float, column: int, row: list[Box]) -> str:
    """From the box before to this one: straight within a row, around the corner to the next."""
    if previous is None:
        return ""
    before_x, before_y = previous
    if column:
        both = {row[column - 1][1], row[column][1]} == set(BOTH_WAYS)
        return (
            f'<path class="arrow{" back" if both else ""}" d="M{before_x + BOX + 2:g} {y + HEIGHT / 2:g}H{x - 2:g}"/>'
        )
    start, end = before_x + BOX / 2, x + BOX / 2
    turn = before_y + HEIGHT + GAP / 2 - 4
    return f'<path class="arrow" d="M{start:g} {before_y + HEIGHT:g}V{turn:g}H{end:g}V{y - 2:g}"/>'


def pictures() -> dict[Path, str]:
    """Every file with its text."""
    return {
        PICTURES / f"{name}-path-{theme}.svg": drawing(groups, theme)
        for name, groups in PATHS.items()
        for theme in COLORS
    }


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for file, text in pictures().items():
        file.write_text(text, encoding="utf-8")
