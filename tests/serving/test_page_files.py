"""The files of the page: they are complete, come from nowhere else, and keep to its content security policy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import transformer_mt.serving

PAGE = Path(transformer_mt.serving.__file__).parent / "page"
FILES = sorted(file for file in PAGE.iterdir() if file.suffix in (".html", ".css", ".js", ".svg"))
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which nobody fetches


def code(file: Path) -> str:
    return file.read_text(encoding="utf-8").replace(NAMESPACE, "")


def test_the_page_has_all_files_that_it_names() -> None:
    names = {name for file in FILES for name in re.findall(r'(?:"static/|from "\./)([\w.-]+)', code(file))}
    assert {"app.js", "style.css", "dom.js"} <= names
    assert not [name for name in names if not (PAGE / name).is_file()]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_comes_from_elsewhere_and_nothing_is_inline(file: Path) -> None:
    text = code(file)
    assert not re.search(r"https?:|url\(|@import|(?<![:\w])//\w", text.replace("url(#tip)", "").replace("// ", ""))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    if file.suffix == ".html":
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    if file.suffix == ".js":
        assert 'setAttribute("style"' not in text
        assert text.startswith("//"), "the first line says what the file is for"
    assert len(text.splitlines()) <= 400


def test_without_javascript_the_page_says_what_is_missing() -> None:
    said = re.search("<noscript>(.*?)</noscript>", code(PAGE / "index.html"), re.S)
    assert said is not None
    assert "needs JavaScript" in said[1]
    assert 'href="docs"' in said[1], "relative: a proxy may serve the page under a path of its own"
