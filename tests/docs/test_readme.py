"""The README: one screen to start, the same in both languages, and pictures that PyPI shows too."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
MOST_LINES = 200


def _fences(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.S | re.M)


def _headings(text: str) -> list[int]:
    """The level of each heading."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    return [len(marks) for marks in re.findall(r"^(#+) ", prose, re.M)]


def _commands(text: str) -> list[str]:
    """Commands and code, without comments, which are translated."""
    lines = []
    for kind, block in _fences(text):
        shell = kind in ("", "console", "sh", "bash")
        shown = [line for line in block.splitlines() if not shell or line.startswith("$ ")]
        lines += [re.sub(r"\s+# .*|^# .*", "", line).rstrip() for line in shown]
    return [line for line in lines if line]


@pytest.fixture
def english() -> str:
    return ENGLISH.read_text(encoding="utf-8")


@pytest.fixture
def korean() -> str:
    return KOREAN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_it_is_read_in_three_minutes(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_both_languages_have_the_same_headings(english: str, korean: str) -> None:
    assert _headings(korean) == _headings(english)


def test_both_languages_have_the_same_commands(english: str, korean: str) -> None:
    assert _commands(korean) == _commands(english)


def test_both_languages_show_the_same_pictures(english: str, korean: str) -> None:
    pictures = r"!\[[^]]*\]\(([^)\s]+)|<img[^>]*src=\"([^\"]+)|srcset=\"([^\"]+)"
    assert re.findall(pictures, korean) == re.findall(pictures, english)


def test_links_of_the_readme_work_on_pypi_too() -> None:
    """The description of the package, in which the build makes the README's links whole."""
    printed = subprocess.check_output([sys.executable, "-m", "hatchling", "metadata"], cwd=ROOT, text=True)
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", json.loads(printed)["readme"]["text"], flags=re.S | re.M)
    links = re.findall(r"\]\(\s*([^)\s]+)", prose) + re.findall(r'\b(?:href|src|srcset)="([^"]+)"', prose)
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
