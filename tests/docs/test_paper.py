"""The pages of docs/paper: their pictures are those that the script draws, their letters those of the model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import transformer_mt.model
from tests.docs.conftest import Block

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


def test_the_searches_of_the_toy_find_what_the_page_says(all_blocks: tuple[Block, ...]) -> None:
    """They stand in three blocks, which a reader joins."""
    page = FOLDER / "decoding.md"
    names: dict[str, Any] = {}
    for block in all_blocks:
        if block.page == page and block.kind == "python" and not block.run and "checkpoints" not in block.text:
            exec(block.text, names)
    assert names["greedy"]() == (("a", "cat", "</s>"), pytest.approx(0.0936))
    assert names["beam"](1) == names["greedy"]()
    for width in (2, 3, 4):
        assert names["beam"](width) == (("the", "cat", "</s>"), pytest.approx(0.1872))


@pytest.mark.slow
def test_a_look_inside_follows_the_training_above_it(all_blocks: tuple[Block, ...], capsys: Any) -> None:
    of_page = [one for one in all_blocks if one.page == FOLDER / "training.md" and one.kind == "python"]
    (place,) = (place for place, one in enumerate(of_page) if "register_forward_hook" in one.text)
    exec(of_page[place - 1].text + of_page[place].text, {})
    *_, printed = capsys.readouterr().out.splitlines()
    assert of_page[place].text.splitlines()[-1] == f"# {printed}"


def test_the_letters_are_those_of_the_model() -> None:
    page = (FOLDER / "index.md").read_text(encoding="utf-8")
    shown = re.findall(r"\| ([A-Z]) (?=\| \w)", page)
    legend = re.findall(r"(?:^| {2,})([A-Z])  +[a-z]", transformer_mt.model.__doc__ or "", re.M)
    assert sorted(shown) == sorted(legend)
