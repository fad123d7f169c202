"""The generated pages are up to date, and the page of messages has every one that the source can raise."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITE = "run: python scripts/update_docs.py"
PAGE = ROOT / "docs" / "troubleshooting.md"


@pytest.fixture(scope="module")
def scripts() -> dict[str, ModuleType]:
    from importlib import import_module

    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return {name: import_module(name) for name in ("messages", "remedies", "update_docs", "griffe_docstrings")}
    finally:
        sys.path.pop(0)


def test_the_pages_are_those_of_the_source(scripts: dict[str, ModuleType]) -> None:
    for page, write in scripts["update_docs"].PAGES.items():
        assert page.read_text(encoding="utf-8") == write(), f"{page.name} is old; {WRITE}"


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\\", ""))


def _constants(node: ast.AST) -> list[str]:
    return [
        one.value.strip()
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value.strip()) >= 12
    ]


def _raised() -> list[tuple[str, ast.Call]]:
    found = []
    for path in sorted((ROOT / "transformer_mt").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                found.append((f"{path.relative_to(ROOT)}:{node.lineno}", node))
    return found


def test_every_error_of_the_source_is_on_the_page() -> None:
    page = _plain(PAGE.read_text(encoding="utf-8"))
    sites = [(place, call) for place, call in _raised() if getattr(call.func, "id", "") == "TmtError"]
    assert len(sites) > 150
    missing = [
        f"{place}  {text}"
        for place, call in sites
        for text in [
            text for part in (*call.args[:1], *(one.value for one in call.keywords)) for text in _constants(part)
        ]
        if _plain(text) not in page
    ]
    assert missing == [], WRITE


def test_causes_belong_to_functions_that_exist(scripts: dict[str, ModuleType]) -> None:
    homes = {one.home for one in scripts["messages"].messages()}
    assert set(scripts["remedies"].CAUSES) <= homes, "a function was renamed: rename its cause in scripts/remedies.py"


def test_what_the_page_must_have(scripts: dict[str, ModuleType]) -> None:
    printed = "\n".join(one.printed for one in scripts["messages"].messages())
    for words in (
        "must be a whole number",
        "is not divisible by n_heads",
        "the disk is full while DOING",
        "iconv -f CP949",
    ):
        assert words in printed
    assert not re.search(r"[{}]", re.sub(r"`[^`]*`", "", printed)), "a part known only at run time was not replaced"


def test_the_page_of_the_api_has_every_public_name() -> None:
    import transformer_mt

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    assert set(transformer_mt.__all__) - {"__version__"} <= shown


def test_docstrings_become_lists(scripts: dict[str, ModuleType]) -> None:
    as_markdown = scripts["griffe_docstrings"].as_markdown
    text = "Loads.\n\nname: of the\n    run. size (int): in tokens.\nRaises TmtError if none.\n\nother: no list"
    lists = "- `name`: of the run.\n- `size`: in tokens."
    assert as_markdown(text, {"name", "size"}) == f"Loads.\n\n{lists}\n\nRaises TmtError if none.\n\nother: no list"
