"""The pages about the paper as notebooks: all of their text and examples, in cells that run one after the other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.conftest import ROOT, blocks
from tests.docs.test_examples import _comments_below_print, matches
from tests.forks import PYTHON

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made") / "notebooks"
    command = [sys.executable, "scripts/make_notebooks.py", "--to", str(made)]
    assert "6 notebooks" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return made


def cells(folder: Path, name: str, kind: str) -> list[str]:
    notebook = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids)
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def pages() -> list[Path]:
    return sorted((ROOT / "docs" / "paper").glob("*.md"))


@pytest.mark.parametrize("paper_page", pages(), ids=lambda page: page.stem)
def test_a_notebook_has_all_of_its_page(folder: Path, paper_page: Path) -> None:
    page = paper_page
    text, code = cells(folder, page.stem, "markdown"), cells(folder, page.stem, "code")
    again = f"(docs/paper/{page.name}; scripts/make_notebooks.py writes the notebook)"
    examples = [one.text.strip() for one in blocks() if one.page == page and one.run and one.kind == "python"]
    assert [one.partition("unfold it\n")[2] or one for one in code if one in examples or "@title" in one] == examples, (
        f"an example of the page is not a cell, or not in this order {again}"
    )
    whole = "\n".join(text)
    left = re.search(r"^(!!!|\?\?\?|<!-- run)|\{\{ code|only-dark|\{ #|title=", whole, re.M)
    assert not left, f"a mark that only the site understands is in the notebook: {left[0]} {again}"
    source = page.read_text(encoding="utf-8")
    links_to_pages = len(re.findall(r"\]\(\w+\.md#", source))
    assert whole.count(".ipynb#") == links_to_pages, f"a link to a section is lost {again}"
    source = re.sub(r" \{ #.*\}$", "", source, flags=re.M)
    source = re.sub(r"^If you see the names.*$", "", source, flags=re.M)  # only of use on the page
    for name, anchor in re.findall(r"\]\((?:(\w+)\.ipynb)?#([\w-]+)\)", whole):
        other = "\n".join(cells(folder, name, "markdown")) if name else whole
        assert f'<a id="{anchor}"></a>' in other, f"no section #{anchor} in {name or page.stem}.ipynb {again}"
    for line in re.findall(r"^#+ .*$|^[A-Z][^|`\[$\n]{60,}$", source, re.M):  # headings and plain lines of text
        assert line in "\n".join([whole, *code]), f"this line is lost: {line} {again}"
    answers = re.findall(r"^# Your answer", "\n".join(code), re.M)
    assert len(answers) == source.count('!!! question "'), f"a question needs one cell for its answer {again}"
    for name in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", whole):
        assert (folder / name).is_file(), f"a link leads to {name}, which is not beside the notebook {again}"
    links = re.findall(r"blob/main/([^)#\s]+)", whole)
    assert not (dead := [link for link in links if not (ROOT / link).exists()]), (
        f"not in the repository: {dead} {again}"
    )


def test_all_pages_are_notebooks(folder: Path) -> None:
    assert {file.stem for file in folder.glob("*.ipynb")} == {page.stem for page in pages()}


def made_again(folder: Path) -> str:
    command = [sys.executable, "scripts/make_notebooks.py", "--to", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stderr


def test_answers_of_a_reader_are_not_lost(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "mine")
    assert made_again(tmp_path / "mine") == "", "nothing has changed"
    file = tmp_path / "mine" / "layers.ipynb"
    answered = file.read_text(encoding="utf-8").replace('"# Your answer"', '"print(42)"', 1)
    file.write_text(answered, encoding="utf-8")
    assert f"{file} would be replaced, and may have answers of yours" in made_again(tmp_path / "mine")
    assert file.read_text(encoding="utf-8") == answered


def test_the_first_cell_finds_the_program_from_a_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    assert made_again(tmp_path / "link") == ""
    first = cells(tmp_path / "link", "layers", "code")[0]
    (way,) = re.findall(r"os\.chdir\('(.*)'\)", first)
    assert (tmp_path / "a" / "b" / way).resolve() == ROOT


def test_the_cells_run_one_after_the_other(folder: Path, environment: dict[str, str]) -> None:
    """In one process, unlike the examples of the pages; the magics of IPython are left out."""
    first, *code = cells(folder, "embeddings", "code")
    assert "%load_ext autoreload\n%autoreload 2\n" in first
    program = "\n".join([re.sub(r"^%.*$", "", first, flags=re.M), *code])
    command: Any = [*PYTHON, "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = "\n".join(line for one in code for line in _comments_below_print(one))
    assert matches(shown, done.stdout), done.stdout
