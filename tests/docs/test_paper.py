"""The pages of docs/paper: their pictures are those that the script draws, their letters those of the model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_mt.model

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "paper"


def test_each_picture_of_a_page_is_there_for_light_and_dark() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))
    shown = re.findall(r"\]\((\w+-(light|dark)\.svg)#only-\2\)", text)
    assert {name for name, _ in shown} == {file.name for file in FOLDER.glob("*.svg")}
    assert len(shown) == text.count(".svg")


@pytest.mark.slow
def test_the_script_draws_the_pictures_of_the_pages(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "draw_paper.py", "--to", tmp_path]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    drawn = {file.name for file in tmp_path.iterdir()}
    of_a_model = {"attention-light.svg", "attention-dark.svg"}
    assert drawn | of_a_model == {file.name for file in FOLDER.glob("*.svg")}
    assert all(5_000 < file.stat().st_size < 100_000 for file in tmp_path.iterdir())


def test_the_letters_are_those_of_the_model() -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"\| ([A-Z]) (?=\| \w)", page)
    legend = re.findall(r"(?:^| {2,})([A-Z])  +[a-z]", transformer_mt.model.__doc__ or "", re.M)
    assert sorted(shown) == sorted(legend)
