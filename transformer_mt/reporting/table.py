"""The table of a run, line by line: how good the model was at each validation, and a few translations."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

from tabulate import tabulate

from transformer_mt.reporting.terminal import columns_of_text

Line = Sequence[str] | str  # cells, or a line without columns
TableForm = Literal["text", "markdown", "latex"]
_FORMS = {"text": "plain", "markdown": "pipe", "latex": "latex_booktabs"}  # of tabulate
_MARKUP = re.compile(r"[|*`<\[]")  # in Markdown; _ only at the ends of words
ONE_LINE = 100  # columns that a sample needs to be readable in one line


def aligned(table: Sequence[Line], sides: str, form: TableForm = "text") -> list[str]:
    """The lines of a table with aligned columns; in the form "text" a line that is a string stays as it is.

    sides: < or > per column
    form:  the first row of the others is a head
    """
    rows = [row for row in table if not isinstance(row, str)]
    if form == "markdown":
        rows = [[_MARKUP.sub(r"\\\g<0>", cell) for cell in row] for row in rows]
    places = [{"<": "left", ">": "right"}[side] for side in sides]
    headers = () if form == "text" else "firstrow"
    text = tabulate(
        rows, headers, _FORMS[form], colalign=places, disable_numparse=True, preserve_whitespace=form == "text"
    )
    lines = iter(text.split("\n"))
    if form != "text":
        return list(lines)
    return [row if isinstance(row, str) else next(lines).rstrip() for row in table]


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# The columns of a validation: heading, width, key of the value, how to write it.
COLUMNS: tuple[tuple[str, int, str, Callable[[Any], str]], ...] = (
    ("epoch", 5, "epoch", str),
    ("step", 9, "step", "{:,}".format),
    ("train loss", 10, "train_loss", "{:.3f}".format),
    ("valid loss", 10, "loss", "{:.3f}".format),
    ("perplexity", 10, "perplexity", lambda value: f"{value:.2f}" if value < 1e6 else f"{value:.2e}"),
    ("greedy BLEU", 11, "bleu", "{:.2f}".format),
    ("time", 7, "seconds", duration),
)


OMITTED = ("perplexity", "train_loss")  # keys that narrow terminals do not show, the first one first
BETWEEN, BEST = "  ", "  *"


def table_head(columns: int | None = None) -> str:
    """The headings of `table_row`."""
    return BETWEEN.join(heading.rjust(width) for heading, width, _, _ in _fitting(columns))


def table_row(values: Mapping[str, Any], columns: int | None = None) -> str:
    """A validation in one line, without some figures if it would be longer than `columns`; a star marks the best."""
    cells = (
        ("-" if values[key] is None else written(values[key])).rjust(width)
        for _, width, key, written in _fitting(columns)
    )
    return BETWEEN.join(cells) + (BEST if values["best"] else "")


def _fitting(columns: int | None) -> list[tuple[str, int, str, Callable[[Any], str]]]:
    """COLUMNS, or those of them that a row of this length holds."""
    shown = list(COLUMNS)
    for key in OMITTED:
        needed = sum(width + len(BETWEEN) for _, width, _, _ in shown) - len(BETWEEN) + len(BEST)
        if columns is not None and needed > columns:
            shown = [column for column in shown if column[2] != key]
    return shown


def sample_line(source: str, translation: str, reference: str, columns: int | None = None) -> str:
    """`source -> translation (reference)` in at most `columns`; texts that are too long get equal shares.

    With few columns the source gets a line of its own. None: whole texts in one line.
    """
    indent, arrow = "       ", "  ->  "
    room = max(30, (columns or 0) - len(indent) - len(arrow) - len("   ()"))
    if columns is None:
        source, translation, reference = (" ".join(text.split()) for text in (source, translation, reference))
    elif columns >= ONE_LINE:
        source, translation, reference = _shared([source, translation, reference], room)
    else:
        source = shortened(source, columns - len(indent)) + f"\n{indent}"
        translation, reference = _shared([translation, reference], room)
    return f"{indent}{source}{arrow}{translation}   ({reference})"


def _shared(texts: Sequence[str], room: int) -> list[str]:
    """The texts in `room` columns together."""
    shares = {}
    for done, place in enumerate(sorted(range(len(texts)), key=lambda place: columns_of_text(texts[place]))):
        shares[place] = min(columns_of_text(texts[place]), room // (len(texts) - done))
        room -= shares[place]
    return [shortened(text, shares[place]) for place, text in enumerate(texts)]


def shortened(text: str, columns: int) -> str:
    """The text in one line of at most `columns`, cut with an ellipsis; a Hangul letter takes two columns."""
    text = " ".join(text.split())
    if columns_of_text(text) <= columns:
        return text
    so_far = list(accumulate(map(columns_of_text, text)))
    return text[: bisect_right(so_far, columns - 1)].rstrip() + "…"
