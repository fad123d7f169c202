"""A figure to draw in: off screen, in one style, light or dark, as PNG or SVG, with a Hangul font.

matplotlib is imported inside the functions and used without pyplot, so that a picture leaves no state behind.
The same data gives the same bytes: no dates, no random names. An SVG holds its letters as outlines, so that it looks
the same on every machine. A Hangul font comes with the installation and draws what matplotlib's own font cannot; a
box, without a warning, stands for a character that neither font has.
"""

from __future__ import annotations

import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.replace import replaced_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Colors:
    """The colours of a theme. quiet: of what explains; series: after Okabe and Ito, darker where paper
    would swallow them; shades: of weights from 0 to 1."""

    paper: str
    ink: str
    quiet: str
    frame: str
    grid: str
    series: tuple[str, ...]
    shades: tuple[str, ...]


COLORS: dict[Theme, Colors] = {
    "light": Colors(
        paper="#FFFFFF",
        ink="#1F2328",
        quiet="#57606A",
        frame="#8C959F",
        grid="#E4E7EB",
        series=("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B77900", "#2B88C0", "#000000"),
        shades=("#FFFFFF", "#D6E6F4", "#8FBFE0", "#3B8BC4", "#0B5394", "#062B52"),
    ),
    "dark": Colors(
        paper="#0D1117",
        ink="#E6EDF3",
        quiet="#A5AFBA",
        frame="#6E7681",
        grid="#252B33",
        series=("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#FFFFFF"),
        shades=("#0D1117", "#12304A", "#1C5A8A", "#3F93CF", "#94CDF2", "#F4FAFF"),
    ),
}
PLAIN, SMALL = 11, 9.5  # points; a picture 9 inches wide has letters of 14 and 12 pixels at a width of 800
_BASE_FONT = "DejaVu Sans"  # matplotlib's own
_BOX, _ELLIPSIS = "\u25a1", "\u2026"
_FORMATS = {"": "png", ".png": "png", ".svg": "svg"}  # by the ending of the file


def _style(colors: Colors) -> dict[Any, Any]:
    from matplotlib.rcsetup import cycler

    return {
        "font.family": list(_font_files()),
        "font.size": PLAIN,
        "figure.facecolor": colors.paper,
        "savefig.facecolor": colors.paper,
        "text.color": colors.ink,
        "text.parse_math": False,  # a token may be a dollar sign
        "axes.facecolor": colors.paper,
        "axes.prop_cycle": cycler(color=colors.series),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": colors.frame,
        "axes.labelcolor": colors.quiet,
        "axes.titlecolor": colors.ink,
        "axes.titlelocation": "left",
        "axes.titlesize": 12.5,
        "axes.titlepad": 10,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": colors.grid,
        "grid.linewidth": 0.9,
        "legend.frameon": False,
        "legend.labelcolor": colors.ink,
        "xtick.color": colors.frame,
        "ytick.color": colors.frame,
        "xtick.labelcolor": colors.quiet,
        "ytick.labelcolor": colors.quiet,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "svg.fonttype": "path",
        "svg.hashsalt": "transformer_mt",
    }


@contextmanager
def canvas(
    file: Path,
    inches: tuple[float, float],
    theme: Theme = "light",
    dpi: int = 150,
    title: str = "",
    description: str = "",
) -> Iterator[Figure]:
    """A figure of this width and height, saved as `file` if the block ends without an error; follows links.

    Inside the block, "C0", "C1", ... are the series of the theme. dpi: of a PNG.
    title, description: kept in the file, for those who cannot see the picture
    Raises TmtError if the file ends in neither .png nor .svg, is not a regular file, such as a device or a pipe, or
    cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    kind = picture_format(file)
    with matplotlib.rc_context(_style(COLORS[theme])):
        figure = Figure(figsize=inches, dpi=dpi, layout=None)
        yield figure
        with _named_in_errors(file), replaced_file(_with_folder(file)) as aside:
            _save(figure, aside, kind, drawable(title), drawable(description))


def _save(figure: Figure, file: Path, kind: str, title: str, description: str) -> None:
    """Write the figure. Its title and description are texts of a PNG, and the first elements of an SVG."""
    if kind == "png":
        figure.savefig(file, format=kind, metadata={"Title": title, "Description": description} if title else None)
        return
    figure.savefig(file, format=kind, metadata={"Date": None, "Creator": None})
    if title:
        words = f' role="img">\n <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>'
        drawn = file.read_text(encoding="utf-8")
        file.write_text(re.sub("(<svg [^>]*)>", lambda start: start[1] + words, drawn, count=1), encoding="utf-8")


def check_theme(theme: Theme) -> None:
    """Raises TmtError for an unknown one: callers in Python may give any."""
    if theme not in COLORS:
        raise TmtError(f"no theme {theme!r}", remedy="There are: light, dark.")


def check_writable(file: Path) -> None:
    """Creates the folder of a picture. Raises TmtError, as `canvas` does, if no picture can be written there."""
    picture_format(file)
    with _named_in_errors(file), tempfile.TemporaryFile(dir=_with_folder(file).parent):
        pass


def _with_folder(file: Path) -> Path:
    """The file that a link points to, or the file itself; creates its folder."""
    file = Path(os.path.realpath(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


@contextmanager
def _named_in_errors(file: Path) -> Iterator[None]:
    """Errors of the operating system name the picture, not a temporary file beside it."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, "writing a picture", file) from None


def picture_format(file: Path) -> str:
    """`png` or `svg`, by the ending of the file; png if it has none. Raises TmtError as `canvas` does."""
    if file.exists() and not file.is_file():
        remedy = "Name a file, such as picture.png or picture.svg."
        raise TmtError("not a regular file, so no picture can be written here", place=file, remedy=remedy)
    if file.suffix.lower() not in _FORMATS:
        raise TmtError(
            f"pictures cannot be written as {file.suffix}", place=file, remedy="Name a file that ends in .png or .svg."
        )
    return _FORMATS[file.suffix.lower()]


def drawable(text: str) -> str:
    """The text with a box for each character that no font has."""
    known = _characters()
    return "".join(character if ord(character) in known else _BOX for character in text)


def text_width(text: str, points: float) -> float:
    """Width in inches of a drawable text in this size, and a little more: hinting widens small letters."""
    return 1.03 * sum(map(_advance, text)) * points / 72


def fitted(text: str, points: float, inches: float) -> str:
    """The text, or its beginning and an ellipsis, in at most this width."""
    if text_width(text, points) <= inches:
        return text
    widths = [text_width(character, points) for character in text]
    left = inches - text_width(_ELLIPSIS, points)
    return text[: bisect_right(list(accumulate(widths)), left)].rstrip() + _ELLIPSIS


def broken_into_lines(text: str, points: float, inches: float, lines: int) -> list[str]:
    """The text in at most this number of lines, broken at spaces; the last line ends in an ellipsis if text is left."""
    rows, words = [""], text.split(" ")
    for place, word in enumerate(words):
        longer = f"{rows[-1]} {word}" if rows[-1] else word
        if not rows[-1] or text_width(longer, points) <= inches:
            rows[-1] = longer
        elif len(rows) < lines:
            rows.append(word)
        else:
            rows[-1] = " ".join([rows[-1], *words[place:]])
            break
    return [fitted(row, points, inches) for row in rows]


@cache
def _font_files() -> dict[str, str]:
    """The files of the fonts to use, by family, the preferred font first. Registers the Hangul font in matplotlib."""
    from matplotlib import font_manager

    found = {_BASE_FONT: str(font_manager.findfont(_BASE_FONT))}
    package = find_spec("koreanize_matplotlib")  # find_spec does not import it, which would change global settings
    if package is not None and package.origin is not None:
        file = Path(package.origin).parent / "fonts" / "NanumGothic.ttf"
        if file.is_file():
            font_manager.fontManager.addfont(file)
            found["NanumGothic"] = str(file)
    return found


@cache
def _fonts() -> list[tuple[Any, frozenset[int]]]:
    """The fonts, the preferred one first, each with the code points it has, without control characters."""
    from matplotlib.ft2font import FT2Font

    fonts = [FT2Font(file) for file in _font_files().values()]
    for font in fonts:
        font.set_size(100, 72)
    # without control characters: a line break would break the line
    return [(font, frozenset(font.get_charmap()) - frozenset(range(32))) for font in fonts]


@cache
def _characters() -> frozenset[int]:
    """The code points of all characters that a font has."""
    return frozenset().union(*(codes for _, codes in _fonts()))


@cache
def _advance(character: str) -> float:
    """Width of a character, as a share of the size of its font."""
    for font, codes in _fonts():
        if ord(character) in codes:
            return float(font.load_char(ord(character)).linearHoriAdvance / 65536 / 100)  # of 100 points
    return 1.0
