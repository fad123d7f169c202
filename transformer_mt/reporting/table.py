"""The table of a run, line by line: how good the model was at each validation, and a few of its translations."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from tabulate import tabulate

COLUMNS = (
    ("epoch", 5),
    ("step", 9),
    ("train loss", 10),
    ("valid loss", 10),
    ("perplexity", 10),
    ("valid BLEU", 10),
    ("time", 7),
)


Line = Sequence[str] | str  # cells, or a line that keeps no columns


def aligned(table: Sequence[Line], sides: str) -> list[str]:
    """Rows in columns, each set to its side (< or >); a line that is one string stays as it is."""
    rows = [row for row in table if not isinstance(row, str)]
    places = [{"<": "left", ">": "right"}[side] for side in sides]
    text = tabulate(rows, tablefmt="plain", colalign=places, disable_numparse=True, preserve_whitespace=True)
    lines = iter(text.split("\n"))
    return [row if isinstance(row, str) else next(lines).rstrip() for row in table]


def table_head() -> str:
    return "  ".join(name.rjust(width) for name, width in COLUMNS)


def table_row(values: Mapping[str, Any]) -> str:
    """One validation; a star marks the best so far."""
    cells = [
        str(values["epoch"]),
        f"{values['step']:,}",
        _number(values["train_loss"], "{:.3f}"),
        _number(values["loss"], "{:.3f}"),
        _number(values["perplexity"], "{:.2f}"),
        _number(values["bleu"], "{:.2f}"),
        duration(values["seconds"]),
    ]
    row = "  ".join(cell.rjust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))
    return row + ("  *" if values["best"] else "")


def sample_line(source: str, translation: str, reference: str, columns: int) -> str:
    """source -> translation (reference), in so many columns; of what is too long, each gets the same share."""
    indent, arrow = "       ", "  ->  "
    room = max(30, columns - len(indent) - len(arrow) - len("   ()"))
    texts, shares = [source, translation, reference], {}
    for left, place in enumerate(sorted(range(3), key=lambda place: _columns(texts[place]))):
        shares[place] = min(_columns(texts[place]), room // (3 - left))
        room -= shares[place]
    source, translation, reference = (shortened(text, shares[place]) for place, text in enumerate(texts))
    return f"{indent}{source}{arrow}{translation}   ({reference})"


def shortened(text: str, columns: int) -> str:
    """The text in one line, with an ellipsis where it needs more columns; Hangul takes two a letter."""
    text = " ".join(text.split())
    if _columns(text) <= columns:
        return text
    while text and _columns(text) > columns - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
