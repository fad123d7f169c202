"""The rules of the code, checked on its source: imports, content and length of files.

A failing rule lists each violation as file:line.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from transformer_mt.config.choices import CHOICES, choice

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "transformer_mt"

# Every room, lowest first, with the rooms that it may import besides itself and `errors`.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "config": set(),
    "files": set(),
    "phrasebook": set(),
    "text": {"config", "files"},
    "runtime": {"config", "files"},
    "reporting": {"config", "files"},
    "evaluation": {"config", "files"},
    "model": {"config"},
    "kernels": {"model", "config"},
    "corpora": {"phrasebook", "text", "config", "files"},
    "data": {"corpora", "text", "config", "files"},
    "decoding": {"model", "kernels", "runtime", "text", "config", "files"},
    "training": {"data", "model", "kernels", "runtime", "reporting", "config", "files"},
    "exporting": {"model", "decoding", "text", "config", "files"},
}
ROOMS["workflows"] = {*ROOMS}
ROOMS["serving"] = {"workflows", "decoding", "reporting", "text", "config", "files"}
ROOMS["cli"] = {"serving", "workflows", "reporting", "config", "files", "runtime.distributed"}
ROOMS["cli"] |= {"evaluation.metrics", "evaluation.report"}
API = {
    "load_config",
    "compare_runs",
    "Config",
    "Computing",
    "Glossary",
    "TestFiles",
    "TmtError",
    "Translator",
    "Wanted",
} | {
    *("average", "evaluate", "evaluate_directions", "export", "load", "prepare", "score", "synthesize", "train"),
    *("translate_document", "tune"),
}
# A search knows a step function and never a model; of text, only the ids of <s> and </s>.
ALGORITHMS = {"decoding.greedy_search", "decoding.beam_search", "decoding.random_sampling", "decoding.step"} | {
    *("decoding.constraints", "decoding.hypotheses", "decoding.beam_tree")
}
SEARCHING = {
    *ALGORITHMS,
    "decoding.searches",
    "decoding.request",
    "kernels.top_candidates",
    "config",
    "text.vocabulary",
}
# Third-party packages that a room may import; rooms that are not listed may import all.
OUTSIDE: dict[str, set[str]] = {
    "errors": set(),
    "config": {"pydantic", "pydantic_core", "yaml"},
    "files": {"charset_normalizer", "filelock", "requests", "urllib3", "tqdm", "zstandard", "fsspec", "aiohttp"},
    "phrasebook": set(),
    "model": {"torch"},
    "kernels": {"torch", "triton"},
}
NAMING_MODULES = {"", "config.choices", "cli.main"}  # these import modules by name
WITHOUT_TORCH = {"errors", "config", "files", "phrasebook", "text", "reporting", "evaluation", "corpora", "cli"}
LONGEST_FILE = 400
LONGEST_FUNCTION = 60


@dataclass(frozen=True)
class Import:
    """One import: by which module (without the name of the package), of which module, where, and when."""

    by: str
    of: str
    place: str
    at_the_top: bool


def _modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _name(path: Path) -> str:
    inside = path.relative_to(PACKAGE).with_suffix("")
    return ".".join(part for part in inside.parts if part != "__init__")


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def _walk(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it is only executed by a call or a type checker."""
    for child in ast.iter_child_nodes(node):
        waits = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waits = waits or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
        yield child, waits
        yield from _walk(child, waits)


def _imported(node: ast.AST, by: str, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = node.module or ""
    if node.level:
        here = ["transformer_mt", *by.split(".")] if by else ["transformer_mt"]
        here = here[: len(here) - node.level + is_package]
        origin = ".".join([*here, origin]).rstrip(".")
    if origin in {"transformer_mt", *(f"transformer_mt.{room}" for room in ROOMS)}:
        return [f"{origin}.{alias.name}" for alias in node.names]  # a room, or a file in it
    return [origin]


@functools.cache
def _imports() -> tuple[Import, ...]:
    return tuple(
        Import(_name(path), of, _place(path, getattr(node, "lineno", 0)), not waits)
        for path in _modules()
        for node, waits in _walk(_tree(path))
        for of in _imported(node, _name(path), path.name == "__init__.py")
    )


def _room(name: str) -> str:
    return name.split(".")[0]


def _ours() -> Iterator[tuple[Import, str]]:
    """Imports of modules of this package, with the module without the name of the package."""
    for one in _imports():
        if _room(one.of) == "transformer_mt":
            yield one, one.of.removeprefix("transformer_mt").lstrip(".")


def _outside() -> Iterator[Import]:
    return (one for one in _imports() if _room(one.of) not in {"transformer_mt", *sys.stdlib_module_names})


def _within(name: str, places: set[str]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


def _told(offences: list[str]) -> str:
    return "\n  ".join(["against the rules of the code:", *offences])


def test_the_imports_are_read() -> None:
    assert _within("beam", {"beam"})
    assert not _within("beams", {"beam"})
    read = ast.parse("from . import masks\nfrom ..errors import at\nimport torch.nn as nn").body
    found = [_imported(node, "model.layers", False) for node in read]
    assert found == [["transformer_mt.model.masks"], ["transformer_mt.errors.at"], ["torch.nn"]]
    assert len(list(_ours())) > 100
    assert {"torch", "pydantic", "typer"} <= {one.of for one in _outside()}


def test_every_file_belongs_to_a_known_room() -> None:
    assert {_room(_name(path)) for path in _modules()} == {"", "__main__", *ROOMS}


def test_nothing_imports_upward() -> None:
    offences = [
        f"{one.place}  {one.by} imports {target}"
        for one, target in _ours()
        if _room(one.by) in ROOMS
        and target.split(".")[0] not in ("__version__", *(API if _room(one.by) == "cli" else ()))
        and not _within(target, {_room(one.by), "errors", *ROOMS[_room(one.by)]})
    ]
    assert not offences, _told(offences)


def test_the_root_imports_a_room_only_when_it_is_used() -> None:
    assert not [
        one.place for one in _imports() if one.by == "" and one.at_the_top and _room(one.of) == "transformer_mt"
    ]


def test_a_search_imports_no_model() -> None:
    offences = [
        f"{one.place}  {one.by} imports {target}"
        for one, target in _ours()
        if _within(one.by, {*ALGORITHMS, "decoding.searches"}) and not _within(target, {*SEARCHING, "errors"})
    ]
    assert not offences, _told(offences)


# Words that are not in the paper, and must not be in `model`.
MACHINERY = (
    r"\b(?:device|devices|cuda|cpu|gpu|mps|cache|cached|autocast|autograd|bfloat16|beams?|hypothes[ie]s|watch|note)\b"
)


def test_the_model_contains_only_the_paper() -> None:
    offences = [
        f"{_place(path, number)}  {line.strip()}"
        for path in (PACKAGE / "model").rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(MACHINERY, line, re.IGNORECASE)
    ]
    assert not offences, _told(offences)
    _require_small("model", sorted((PACKAGE / "model").rglob("*.py")), 430)


def _require_small(room: str, paths: Sequence[Path], most: int) -> None:
    """Docstrings, comments and empty lines do not count."""
    sizes = {path.name: _code_lines(path) for path in paths}
    largest = ", ".join(f"{name} {size}" for name, size in sorted(sizes.items(), key=lambda one: -one[1])[:3])
    number = sum(sizes.values())
    assert number <= most, (
        f"{room}/ has {number} lines of code, and at most {most} (the largest: {largest}). Write less, move what"
        " belongs elsewhere, or raise this number in a change that says why."
    )


def _code_lines(path: Path) -> int:
    documented = {
        line
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    with tokenize.open(path) as file:
        tokens = [one for one in tokenize.generate_tokens(file.readline) if one.type not in _NO_CODE]
    return len({line for one in tokens for line in range(one.start[0], one.end[0] + 1)} - documented)


_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def test_a_choice_is_one_file_in_the_room_of_its_family() -> None:
    rooms = {"tokenizer": "text", "corpus": "corpora", "schedule": "training", "optimizer": "training"}
    rooms["tracker"] = "reporting"
    for family, lines in CHOICES.items():
        for name, line in lines.items():
            assert line.startswith(f"transformer_mt.{rooms.get(family, 'decoding')}."), line
            assert isinstance(choice(family, name), type)


def test_reading_a_config_imports_nothing_heavy() -> None:
    code = "import json, sys, transformer_mt.config.schema; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "spacy", "sentencepiece", "soynlp", "openpyxl", "requests", "sacrebleu", "matplotlib"}
    heavy |= {"regex", "lxml"}
    assert not heavy & set(json.loads(answer.stdout))


def test_low_rooms_import_only_permitted_packages() -> None:
    offences = [
        f"{one.place}  {one.by} imports {one.of}"
        for one in _outside()
        if _room(one.of) not in OUTSIDE.get(_room(one.by), {_room(one.of)})
    ]
    assert not offences, _told(offences)


def test_only_known_modules_import_by_name() -> None:
    offences = [
        _place(path, node.lineno)
        for path in _modules()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Name)
        and node.id in ("import_module", "__import__")
        and _name(path) not in NAMING_MODULES
    ]
    assert not offences, _told(offences)


def test_only_the_room_files_replaces_locks_and_syncs_files() -> None:
    own = re.compile(r"os\.(replace|rename|fsync|link)\b|\bFileLock\b|\bflock\b|\.rename\(")
    allowed = {"training.run_directory"}  # --fresh renames a run
    offences = [
        _place(path, number)
        for path in _modules()
        if _room(_name(path)) != "files" and _name(path) not in allowed
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if own.search(line)
    ]
    assert not offences, _told(offences)


def test_rooms_without_tensors_do_not_import_torch() -> None:
    offences = [
        f"{one.place}  {one.by} imports {one.of}"
        for one in _outside()
        if _room(one.of) == "torch" and _room(one.by) in WITHOUT_TORCH and "tensorboard" not in one.of
    ]
    assert not offences, _told(offences)


def test_commands_import_only_typer_before_they_are_called() -> None:
    """All modules of `cli` that `tmt --help` imports."""
    light = {"typer", "transformer_mt.cli", "transformer_mt.errors", "transformer_mt.__version__"}
    light |= {"transformer_mt.reporting.program", "transformer_mt.reporting.terminal"}
    light |= {"transformer_mt.serving.limits", "transformer_mt.evaluation.metrics"}  # they import only the library
    late = {"cli.answers", "cli.streaming", "cli.inspect_tables"}  # imported when a command runs
    offences = [
        f"{one.place}  {one.by} imports {one.of}: put it inside the command's function"
        for one in _imports()
        if one.at_the_top
        and _room(one.by) == "cli"
        and (one.by not in late and not _within(one.of, {*light, *sys.stdlib_module_names}))
    ]
    assert not offences, _told(offences)


def test_the_table_of_rooms_in_the_docs_is_up_to_date() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE))
    names = {
        "nothing": "",
        "every room above": ", ".join(sorted(set(ROOMS) - {"errors", "workflows", "serving", "cli"})),
    }
    documented = {room: {*filter(None, names.get(allowed, allowed).split(", "))} for room, allowed in rows.items()}
    assert documented == {room: allowed - {"errors", room} for room, allowed in ROOMS.items()}
    assert list(documented) == list(ROOMS), "lowest first"


def _drawn() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_architecture", ROOT / "scripts" / "draw_architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_boxes_of_the_pictures_are_functions_of_the_code() -> None:
    boxes = {box for groups in _drawn().PATHS.values() for _, rows in groups for row in rows for box in row}
    missing = []
    for file, name in boxes:
        path = PACKAGE / f"{file}.py"
        place: ast.AST | None = _tree(path) if path.exists() else None
        for part in name.split("."):
            children = ast.iter_child_nodes(place) if place is not None else ()
            place = next((one for one in children if getattr(one, "name", "") == part), None)
        if place is None:
            missing.append(f"{file}.py has no {name}")
    assert not missing, "change scripts/draw_architecture.py: " + "; ".join(missing)


def test_the_pictures_are_drawn_by_the_script() -> None:
    old = [file.name for file, text in _drawn().pictures().items() if file.read_text(encoding="utf-8") != text]
    assert not old, f"{old}: run python scripts/draw_architecture.py"


def test_help_of_all_commands_loads_nothing_heavy() -> None:
    code = (
        "import json, sys; from transformer_mt.cli import main; main.add_commands('--help');"
        "print(json.dumps(sorted(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(answer.stdout))
    heavy = {"torch", "numpy", "pydantic", "yaml", "spacy", "rich", "tqdm", "sacrebleu", "requests", "matplotlib"}
    assert "typer" in loaded
    assert not heavy & loaded


def test_prepared_data_are_found_without_torch(tmp_path: Path) -> None:
    """Importing it takes three times as long as everything else that a second `tmt prepare` does."""
    corpus = "{kind: phrasebook, train: 60, validation: 20, test: 20}"
    config = f"name: light\ndata: {{source: ko, target: en, corpus: {corpus}}}\ntokenizer: {{kind: whitespace}}\n"
    (tmp_path / "light.yaml").write_text(config + "training: {max_epochs: 1}\n", encoding="utf-8")
    code = "import sys, transformer_mt as tmt; tmt.prepare('light.yaml'); print('torch' in sys.modules)"
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    tries = [
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=here, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert tries[1].stdout.splitlines()[-1:] == ["False"], tries[1].stderr  # the first builds torchtext's vocabulary


def test_torchtext_is_imported_in_one_module() -> None:
    assert {one.by for one in _outside() if _room(one.of) == "torchtext"} == {"text.vocabulary"}


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
BETWEEN_PROCESSES = {"data.parallel"}  # messages, as in multiprocessing; never a file
UNSAFE_NAMES = {
    *("torch.load", "torch.save", "eval", "exec"),
    *("yaml.Loader", "yaml.FullLoader", "yaml.UnsafeLoader", "yaml.unsafe_load", "yaml.full_load"),
}


def test_untrusted_files_cannot_run_code() -> None:
    offences = [
        f"{one.place}  {one.of}"
        for one in _imports()
        if _room(one.of) in UNSAFE_MODULES and one.by not in BETWEEN_PROCESSES
    ]
    for path in [*_modules(), *ROOT.glob("scripts/*.py")]:
        for node in ast.walk(_tree(path)):
            named = isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in UNSAFE_NAMES
            allowed = (
                isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False"
            )
            if named or allowed:
                offences.append(f"{_place(path, getattr(node, 'lineno', 0))}  {ast.unparse(node)}")
    assert not offences, _told(offences)


def test_the_form_of_a_pull_request_has_the_list_of_contributing() -> None:
    form = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Before you send it\n")[2]
    listed = re.findall(r"^- (.*)$", section.partition("\n## ")[0], re.MULTILINE)
    assert listed
    assert re.findall(r"^- \[ \] (.*)$", form, re.MULTILINE) == listed


def test_contributing_names_tests_that_exist_and_all_rooms_have_some() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {*re.findall(r"\btests/[\w/.]*\w", text)}
    assert not (missing := [name for name in named if not (ROOT / name).exists()]), f"CONTRIBUTING.md names {missing}"
    elsewhere = {"errors", "corpora", "phrasebook"}  # tests/test_errors.py, tests/data
    assert not (bare := [room for room in {*ROOMS} - elsewhere if not (ROOT / "tests" / room).is_dir()]), bare


def test_no_file_is_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _modules()}
    offences = [
        f"{path.relative_to(ROOT)} has {length} lines, and at most {LONGEST_FILE}: move a part into another module"
        for path, length in lengths.items()
        if length > LONGEST_FILE
    ]
    assert not offences, _told(offences)


def test_no_function_is_long() -> None:
    offences = []
    for path in _modules():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    most = f"at most {LONGEST_FUNCTION}: move a part into another function"
                    offences.append(f"{_place(path, node.lineno)}  {node.name} has {length} lines, and {most}")
    assert not offences, _told(offences)


def test_every_module_has_a_docstring() -> None:
    assert not (bare := [_place(path, 1) for path in _modules() if not ast.get_docstring(_tree(path))]), _told(bare)


def test_there_are_no_modules_for_leftovers() -> None:
    leftovers = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py"}
    assert not [str(path) for path in _modules() if path.name in leftovers]


@functools.cache
def _tracked() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def test_no_file_has_a_path_of_a_developer_s_machine() -> None:
    homes = "|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/[a-z]", "/Us" + "ers/[a-z]", "/tm" + "p/w/"])
    paths = re.compile(rf"(?<![\w.~$}}])(?:{homes})")
    neighbour = re.compile(r"\.\./sha" + "red")
    offences = []
    for path in _tracked():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        gate = path == ROOT / ".ci" / "run"
        offences += [
            _place(path, number)
            for number, line in enumerate(lines, 1)
            if paths.search(line) or (not gate and neighbour.search(line))
        ]
    assert not offences, _told(offences)


def test_no_corpus_or_model_is_in_the_repository() -> None:
    large = [
        f"{path.relative_to(ROOT)} ({path.stat().st_size:,} bytes)"
        for path in _tracked()
        if path.stat().st_size > 1_000_000
    ]
    assert not large, _told(large)


def test_commands_are_thin() -> None:
    """They parse, call a workflow and print."""
    paths = sorted(path for path in (PACKAGE / "cli").rglob("*.py") if path.name != "completion.py")
    functions = [node for path in paths for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef)]
    waiting = [node for one in functions for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)]
    _require_small("cli", paths, 1500)
    assert len(waiting) <= 36, "imports inside of functions: a command imports its workflow, and little else"


def test_importing_the_package_is_instant() -> None:
    code = "import json, sys, transformer_mt; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [name for name in json.loads(answer.stdout) if name.startswith("transformer_mt")] == ["transformer_mt"]
