"""The generated pages are up to date, and the page of messages has every one that the source can raise."""

from __future__ import annotations

import ast
import re
import subprocess
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


def _calls(*names: str, room: str = "") -> list[tuple[str, ast.Call]]:
    """Every call of a function or method with one of these names, and where it is."""
    found = []
    for path in sorted((ROOT / "transformer_mt" / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
                found.append((f"{path.relative_to(ROOT).as_posix()}:{node.lineno}", node))
    return found


def test_every_error_of_the_source_is_on_the_page() -> None:
    page = _plain(PAGE.read_text(encoding="utf-8"))
    sites = _calls("TmtError")
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


def test_every_note_of_the_source_is_on_the_page() -> None:
    page = _plain(PAGE.read_text(encoding="utf-8"))
    called = [*_calls("note", room="workflows"), *_calls("say", "_say"), *_calls("append", room="decoding")]
    sites = [(place, call) for place, call in called if re.search("note|say|notes.append$", ast.unparse(call.func))]
    results = re.compile("f?['\"](?:run|data|packing|model|machine|done|next|epoch)? {2}")
    notes = [(place, call) for place, call in sites if call.args and not results.match(ast.unparse(call.args[0]))]
    found = [(place, text) for place, call in notes for text in _constants(call.args[0])]
    assert len(found) > 15
    assert [f"{place}  {text}" for place, text in found if _plain(text) not in page] == [], WRITE


def _chapters() -> dict[str, str]:
    """The text of each heading of the first two levels, under its title."""
    parts = re.split("^##+ (.*)$", re.sub("^####", "-", PAGE.read_text(encoding="utf-8"), flags=re.M), flags=re.M)
    return {title: _plain(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(
    ("chapter", "note"),
    [
        ("Notes: models and checkpoints", "averaged only the newest N checkpoints"),
        ("Notes: evaluating", "NAME: N references cut to MAX_LENGTH tokens, the limit of the model, for the loss only"),
        ("Notes: exporting", "comparing on sentences of random tokens"),
        ("Notes: translating", "the translation was stopped after N tokens"),
        ("Notes: translating", "N unknown words: SHOWN"),
        ("Notes: translating", "the model does not know; it writes <unk> for them"),
        ("Notes: translating", "invalid bytes were replaced by U+FFFD"),
        ("Notes: training", "stopping after this step and saving a checkpoint"),
        ("Notes: preparing data", "N training pairs also in SPLIT: dropped"),
    ],
)
def test_a_note_stands_in_its_chapter(chapter: str, note: str) -> None:
    chapters = _chapters()
    assert note in chapters[chapter]
    assert [title for title, text in chapters.items() if note in text] == [chapter]


def test_titles_are_readable() -> None:
    titles = re.findall("^#### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    of_code = re.compile(r"TEXT,|[A-Z]TEXT|COUNTED|PLOT|MARKS|HAVE|NEAR|\bG[ET]\b")
    assert [title for title in titles if of_code.search(title)] == []


def test_a_message_that_cannot_be_read_is_an_error(scripts: dict[str, ModuleType]) -> None:
    messages = scripts["messages"]
    deep = ast.parse("+".join(["'a b'", *(f"name{number}" for number in range(20))]), mode="eval").body
    with pytest.raises(messages.LimitError, match="expressions deep"):
        messages.texts_of(deep, messages.Scope(messages.Module("made", ast.Module([], []))))
    forms = [["one", "two"]] * 4
    with pytest.raises(messages.LimitError, match="more than 8 forms"):
        messages._joined(forms)


USAGE_ERRORS = (
    (["plot", "--zzz"], "No such option: OPTION"),
    (["tarin"], "No such command 'NAME'."),
    (["train"], "Missing option 'OPTION'."),
    (["download"], "Missing argument 'NAME'."),
    (["translate", "--beam"], "Option 'OPTION' requires an argument."),
    (["translate", "--beam", "x"], "a valid integer, unable to parse string as an integer"),
    (["translate", "--length-penalty", "x"], "a valid number, unable to parse string as a number"),
    (["translate", "--beam", "0"], "Input should be greater than or equal to N"),
    (["translate", "--threads", "5000"], "Input should be less than or equal to N"),
    (["plot", "--theme", "blue"], "'VALUE' is not one of CHOICES."),
    (["train", "-c", "a.yaml", "b.yaml"], "Got unexpected extra argument(s) (VALUE)"),
)


def test_usage_errors_are_those_of_the_command_line() -> None:
    """Each entry of the page is what `tmt` prints, with something else for words in capitals and for `...`."""
    page = PAGE.read_text(encoding="utf-8")
    entries = re.findall(r"```text\n((?:Usage: |Error: )(?:.*\n)*?)```", page)
    assert len(entries) == len(USAGE_ERRORS)
    for arguments, title in USAGE_ERRORS:
        command = [sys.executable, "-m", "transformer_mt.cli.main", *arguments]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8").stderr
        (entry,) = [entry for entry in entries if title in entry]
        pattern = re.sub(r"\\ \\\.\\\.\\\.", ".*", re.escape(entry.rstrip("\n")))
        pattern = re.sub(r"\b(?:OPTION|COMMAND|NAME|VALUE|CHOICES|N)\b", ".+", pattern)
        hint = r"(?: \(Possible options: .*\)| Did you mean .*)?(?:\n  .*)*\n"
        assert re.fullmatch(pattern + hint, printed), f"{entry}\n{printed}"


def test_causes_belong_to_functions_that_exist(scripts: dict[str, ModuleType]) -> None:
    homes = {one.home for one in scripts["messages"].messages()}
    assert set(scripts["remedies"].CAUSES) <= homes, "a function was renamed: rename its cause in scripts/remedies.py"


def test_what_the_page_must_have(scripts: dict[str, ModuleType]) -> None:
    printed = "\n".join(one.printed for one in scripts["messages"].messages())
    for words in (
        "must be a whole number",
        "is not divisible by n_heads",
        "the disk is full while DOING",
        "iconv -f CP1252",
    ):
        assert words in printed
    assert not re.search(r"\{[\w.!]*\}", re.sub(r"`[^`]*`", "", printed)), (
        "a part known only at run time was not replaced"
    )


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
