"""Writes the pages of docs/paper as notebooks, with their pictures, to read and run them in Jupyter.

    python scripts/make_notebooks.py [--to notebooks]

Examples are cells; what they print stands in comments. After each exercise comes an empty cell, and its answer is
folded. Code of the program stands as text: it is what the examples import. Needs nothing but this repository.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs_hooks import LINK, REPOSITORY, ROOT, with_code

PAPER = ROOT / "docs" / "paper"
PAGES = ("index", "embeddings", "attention", "layers", "training", "decoding")
_HEAD = re.compile(r"\A---\n.*?\n---\n", re.S)
_DARK = re.compile(r"^!\[[^\]]*\]\([^)]*#only-dark\)\n", re.M)
_BOX = re.compile(r'^(?P<mark>!!!|\?\?\?) (?P<kind>\w+) "(?P<title>[^"]*)"\n(?P<text>(?:[ ]{4}[^\n]*\n|[ ]*\n)+)', re.M)
_EXAMPLE = re.compile(r"^<!-- run -->\n```python\n(?P<code>.*?)^```$", re.M | re.S)
_HEADING = re.compile(r"^(##+ (.*?))(?: \{ #([\w-]+) \})?$", re.M)
_TITLE = re.compile(r'^```python title="([^"]*)"$', re.M)
_FOR_PAGES = re.compile(
    r"^(?:If you prefer notebooks|If you see the names of functions in double braces).*?\n\n", re.M | re.S
)
_FIRST = """# What you edit in transformer_mt/ counts in the next cell. Write commands as  !tmt inspect
%load_ext autoreload
%autoreload 2
import os

os.path.exists("scripts/make_notebooks.py") or os.chdir({root!r});
"""
_HIDDEN = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # the second is for Colab


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path("notebooks"), metavar="FOLDER")
    folder = parser.parse_args().to.resolve()
    written = {}
    for name in PAGES:
        page = (PAPER / f"{name}.md").read_text(encoding="utf-8")
        written[folder / f"{name}.ipynb"] = json.dumps(notebook(name, page, _way(folder)), indent=1) + "\n"
    if folder == PAPER or (folder.exists() and not folder.is_dir()):
        parser.error(f"{folder} is no folder for notebooks: choose another one with --to")
    for file, text in written.items():
        if file.exists() and file.read_text(encoding="utf-8") != text:
            parser.error(f"{file} would be replaced, and may have answers of yours: move it, or choose another --to")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in written.items():
        file.write_text(text, encoding="utf-8")
    for picture in PAPER.glob("*-light.svg"):
        shutil.copy(picture, folder)
    print(f"{folder}: {len(PAGES)} notebooks. Open them with:  jupyter lab {shlex.quote(str(folder))}")


def _way(folder: Path) -> str:
    """From the folder to this repository."""
    try:
        return os.path.relpath(ROOT, folder)
    except ValueError:  # another drive
        return str(ROOT)


def notebook(name: str, page: str, root: str) -> dict[str, Any]:
    """The notebook of a page, as JSON has it (nbformat 4.5). root: the way from its folder to this repository"""
    text = _DARK.sub("", _FOR_PAGES.sub("", _HEAD.sub("", page)))
    text = LINK.sub(_link, text).replace("-light.svg#only-light", "-light.svg")
    cells = list(_cells(_TITLE.sub(r"`\1`\n\n```python", with_code(_HEADING.sub(_anchored, text)))))
    if any(cell["cell_type"] == "code" for cell in cells):
        cells.insert(0, _code(_FIRST.format(root=root)))
    cells = [{"id": f"{name}-{number}", **cell} for number, cell in enumerate(cells, 1)]
    language = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": language, "cells": cells}


def _anchored(heading: re.Match[str]) -> str:
    """A heading below its anchor, which is that of the page."""
    words = re.sub(r"[^\w\s-]", "", heading[2]).lower().split()
    return f'<a id="{heading[3] or "-".join(words)}"></a>\n\n{heading[1]}'


def _link(found: re.Match[str]) -> str:
    """A link to another page of the paper is one to its notebook; others lead to the repository, and pictures stay."""
    before, target, anchor = found.groups(default="")
    if target.endswith(".svg"):
        return found[0]
    if (stem := target.removesuffix(".md")) in PAGES:
        return f"{before}{stem}.ipynb{anchor})"
    return f"{before}{REPOSITORY}{posixpath.normpath(f'docs/paper/{target}')}{anchor})"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    """The cells of a page: what is between the boxes, and the boxes."""
    end = 0
    for box in _BOX.finditer(text):
        yield from _plain(text[end : box.start()])
        inside = textwrap.dedent(box["text"])
        if box["mark"] == "???":
            yield from _plain(inside, folded=box["title"])
        else:
            yield from _plain(f"**{box['title']}**\n\n{inside}")
        if box["kind"] == "question":
            yield _code("# Your answer\n")
        end = box.end()
    yield from _plain(text[end:])


def _plain(text: str, folded: str = "") -> Iterator[dict[str, Any]]:
    """Text and examples. folded: the title under which they are hidden"""
    end = 0
    for example in _EXAMPLE.finditer(text):
        yield from _markdown(text[end : example.start()], folded)
        title = f"# @title {folded}: run this cell, or unfold it\n" if folded else ""
        yield _code(title + example["code"], _HIDDEN if folded else {})
        end = example.end()
    yield from _markdown(text[end:], folded)


def _markdown(text: str, folded: str) -> Iterator[dict[str, Any]]:
    text = text.replace("<!-- run -->\n", "").strip()
    if text:
        shown = f"<details><summary>{folded}</summary>\n\n{text}\n\n</details>" if folded else text
        yield {"cell_type": "markdown", "metadata": {}, "source": shown.splitlines(keepends=True)}


def _code(code: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    lines = code.rstrip("\n").splitlines(keepends=True)
    return {
        "cell_type": "code",
        "metadata": metadata or {},
        "execution_count": None,
        "outputs": list[Any](),
        "source": lines,
    }


if __name__ == "__main__":
    main()
