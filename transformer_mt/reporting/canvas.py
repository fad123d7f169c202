"""A figure to draw in: off screen, in one style, with a Hangul font.

matplotlib is imported inside the functions and used without pyplot, so that a picture leaves no state behind.
A Hangul font comes with the installation and draws what matplotlib's own font cannot; a box, without a warning,
stands for a character that neither font has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replaced_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#8E4585"  # colour-blind people can distinguish them
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#333333",
    "axes.titlecolor": "#222222",
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titlepad": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "text.parse_math": False,  # a token may be a dollar sign
}
_BASE_FONT = "DejaVu Sans"  # matplotlib's own
_BOX = "\u25a1"


@contextmanager
def canvas(file: Path, inches: tuple[float, float], dpi: int = 120) -> Iterator[Figure]:
    """A figure of this width and height, saved as the PNG `file` if the block ends without an error; follows links.

    Raises TmtError if `file` is not a regular file: the picture would replace a device or a pipe.
    """
    import matplotlib
    from matplotlib.figure import Figure

    file = Path(os.path.realpath(file))
    if file.exists() and not file.is_file():
        raise TmtError("a picture needs a file of its own, and this is none", place=file, remedy="Name another place.")
    file.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({**_STYLE, "font.family": list(_font_files())}):
        figure = Figure(figsize=inches, dpi=dpi, layout=None)
        yield figure
        with replaced_file(file) as aside:
            figure.savefig(aside, format="png")


def drawable(text: str) -> str:
    """The text with a box for each character that no font has."""
    known = _characters()
    return "".join(character if ord(character) in known else _BOX for character in text)


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
def _characters() -> frozenset[int]:
    """The code points of all characters that a font has, without control characters."""
    from matplotlib.ft2font import FT2Font

    codes = frozenset(code for file in _font_files().values() for code in FT2Font(file).get_charmap())
    return codes - frozenset(range(32))  # a line break would break the line
