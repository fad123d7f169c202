"""Installation: declared dependencies, consistent versions, a complete wheel, and the scripts for a new clone.

The scripts run in a copy of the project with a pip that installs nothing, so the cases of a newcomer (second run,
incomplete environment, no network, no Python) are tested in seconds.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Distributions with another import name.
IMPORTED_AS = {
    "pillow": "PIL",
    "pyyaml": "yaml",
    "python-mecab-ko": "mecab",
    "markdown-it-py": "markdown_it",
    "mlflow-skinny": "mlflow",
}
# Declared for their data or for another package, never imported.
NEVER_IMPORTED = {
    "koreanize-matplotlib",  # the Hangul font of the plots
    "httptools",  # the parser of uvicorn
    "sqlalchemy",  # these two for a store of MLflow in a file
    "alembic",
    "tensorboard",  # what torch.utils.tensorboard needs
}
WITH_TORCH = {"triton"}  # of PyTorch for CUDA, which pins it; without it, streams have another attention
TOOLS = {"ruff", "mypy", "types-pyyaml", "types-tqdm", "pytest-timeout", "hatchling", "editables"}
FEATURES = sorted(set(PROJECT["optional-dependencies"]) - {"test", "docs", "dev", "mutation", "fuzz"})


def _requirements(lines: list[str]) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in requirements}


def _module(distribution: str) -> str:
    return IMPORTED_AS.get(distribution, distribution.replace("-", "_"))


def _imported(folder: Path) -> dict[str, str]:
    """Third-party modules that the Python files of a folder import, each with one place."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                found[name.split(".")[0]] = f"{path.relative_to(ROOT)}:{node.lineno}"
    own = {"transformer_mt", "conftest", "tests", "tomllib", *sys.stdlib_module_names}
    return {name: place for name, place in found.items() if name not in own}


def _declared(*extras: str) -> dict[str, Requirement]:
    lines = list(PROJECT["dependencies"])
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    declared = _requirements(lines)
    declared.pop("transformer-mt", None)
    return declared


def test_everything_imported_is_declared() -> None:
    declared = {_module(name) for name in _declared(*FEATURES)}
    missing = {name: place for name, place in _imported(ROOT / "transformer_mt").items() if name not in declared}
    missing = {name: place for name, place in missing.items() if name not in WITH_TORCH}
    assert not missing, f"imported, but not in pyproject.toml: {missing}"


def test_everything_declared_is_imported() -> None:
    imported = _imported(ROOT / "transformer_mt")
    unused = {name for name in _declared(*FEATURES) if _module(name) not in imported} - NEVER_IMPORTED
    assert not unused, f"in pyproject.toml, but imported nowhere: {unused}"


def test_everything_imported_by_tests_is_declared() -> None:
    declared = {_module(name) for name in _declared(*FEATURES, "test")}
    missing = {name: place for name, place in _imported(ROOT / "tests").items() if name not in declared}
    assert not missing, f"imported by tests, but not in the extra `test`: {missing}"


def test_the_packages_asked_for_are_dependencies() -> None:
    asked = {"torch", "spacy", "soynlp", "torchtext", "sacrebleu", "tqdm", "pyyaml"}
    assert asked <= set(_declared())
    assert str(_declared()["torchtext"].specifier) == "==0.6.0"


def _constraints() -> list[Requirement]:
    lines = (ROOT / "scripts" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_constraints_pin_each_direct_dependency_once_within_its_range(python: str) -> None:
    pins: dict[str, Version] = {}
    for one in _constraints():
        if one.marker is None or one.marker.evaluate({"python_version": python}):
            (specifier,) = one.specifier
            assert specifier.operator == "==", one
            assert canonicalize_name(one.name) not in pins, one
            pins[canonicalize_name(one.name)] = Version(specifier.version)
    for name, wanted in _declared(*FEATURES, "test", "docs", "dev").items():
        if wanted.marker and not wanted.marker.evaluate({"python_version": python}):
            continue
        assert name in pins, f"{name} is declared, but not pinned in scripts/constraints.txt"
        assert wanted.specifier.contains(pins[name]), f"{wanted} excludes the tested {pins[name]}"
    assert pins["torch"] == Version("2.13.0")


def test_the_version_has_one_home() -> None:
    import transformer_mt

    assert "version" in PROJECT["dynamic"]
    assert re.search(rf"^## \[{re.escape(transformer_mt.__version__)}\]", _text("CHANGELOG.md"), re.MULTILINE)


def test_the_addresses_are_those_of_the_repository() -> None:
    repository = re.findall(r"^repository-code: (\S+)$", _text("CITATION.cff"), re.MULTILINE)
    assert [PROJECT["urls"]["Homepage"]] == repository
    assert {"Documentation", "Issues", "Changelog"} <= set(PROJECT["urls"])
    assert all(address.startswith(repository[0]) for address in PROJECT["urls"].values())


def test_the_classifiers_name_every_python_that_is_allowed() -> None:
    from trove_classifiers import classifiers

    assert [one for one in PROJECT["classifiers"] if one not in classifiers] == []
    allowed = SpecifierSet(PROJECT["requires-python"])
    named = {
        one.rpartition(" ")[2]
        for one in PROJECT["classifiers"]
        if one.startswith("Programming Language :: Python :: 3.")
    }
    assert named == {f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in allowed}


def test_every_python_that_is_tested_is_accepted_by_the_scripts() -> None:
    listed = re.findall(r'"(3\.\d+)"', re.search(r"python: (\[.*\])", _text(".github/workflows/checks.yml"))[1])  # type: ignore[index]
    accepted = re.search(r"^ +(3\.10(?: \| 3\.\d+)*)\)$", _text("scripts/environment.sh"), re.MULTILINE)
    assert accepted is not None
    assert listed == accepted[1].split(" | ")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_wheel_and_the_sdist_have_the_same_bytes_when_they_are_built_again(tmp_path: Path) -> None:
    built = []
    for name in ("one", "other"):
        skipped = shutil.ignore_patterns(".*", "__pycache__", "runs", "mutants", "pictures", "site")
        copy = Path(shutil.copytree(ROOT, tmp_path / name / "source", ignore=skipped))
        if name == "other":  # a later checkout, by a user with other permissions
            for file in copy.rglob("*"):
                os.utime(file, (1, 2_000_000_000))
                file.chmod(0o700 if file.is_dir() else file.stat().st_mode & ~0o044)
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / name / "dist")]
        subprocess.run(command, cwd=copy, check=True, capture_output=True, timeout=60)
        built.append({file.name: file.read_bytes() for file in (tmp_path / name / "dist").iterdir()})
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_the_wheel_has_the_package_its_configs_and_its_licence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "transformer_mt").rglob("*.py")}
    configs = {f"transformer_mt/{path.relative_to(ROOT)}" for path in (ROOT / "configs").rglob("*.yaml")}
    assert sources <= names
    assert configs
    assert configs <= names
    assert "transformer_mt/py.typed" in names
    assert any(name.endswith("/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"transformer_mt"}


def test_the_dockerfile_passes_hadolint() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    if not hadolint.exists():
        pytest.skip("hadolint is not installed here")
    done = subprocess.run([hadolint, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_gets_every_file_that_it_copies() -> None:
    kept = {line.removeprefix("!") for line in _text(".dockerignore").splitlines() if line.startswith("!")}
    copied = [
        line.split()[1:-1]
        for line in _text("Dockerfile").splitlines()
        if line.startswith("COPY ") and "--from" not in line
    ]
    assert {name for names in copied for name in names} == kept
    assert all((ROOT / name).exists() for name in kept)


# ---- the scripts ----

FAKE_PIP = """#!/usr/bin/env bash
# replaces the python of the environment
case "$*" in
  *"-m pip install"*)
    echo "$*" >> pip.log
    [ ! -e no-network ] || { echo "ERROR: NewConnectionError: no route"; exit 1; }
    [ ! -e interrupted ] || kill -KILL $PPID
    printf '#!/usr/bin/env bash\\necho "tmt $*"\\n[ ! -e "fail-$1" ] || { echo "because of this" >&2; exit 2; }\\n' \\
      > "$(dirname "$0")/tmt"
    chmod +x "$(dirname "$0")/tmt"
    echo "Installing collected packages: one, two"
    ;;
  "-m "*) echo "ran $*" ;;
  *) exec REAL "$@" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the project in which `python -m venv` creates an environment with a pip that installs nothing."""
    clone = tmp_path / "a clone"
    shutil.copytree(ROOT / "scripts", clone / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    tools = clone / "tools"
    tools.mkdir()
    (clone / "fake").write_text(FAKE_PIP.replace("REAL", sys.executable))
    python = tools / "python3.11"
    python.write_text(
        "#!/usr/bin/env bash\n"
        f'if [ "${{1:-}} ${{2:-}}" != "-m venv" ]; then exec {sys.executable} "$@"; fi\n'
        'rm -rf "$4"; mkdir -p "$4/bin"; cp fake "$4/bin/python"; chmod +x "$4/bin/python"; echo > "$4/pyvenv.cfg"\n'
    )
    python.chmod(0o755)
    return clone


def _script(clone: Path, name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{clone / 'tools'}:/usr/bin:/bin", **variables}
    environment.pop("PYTHON", None) if "PYTHON" not in variables else None
    command = ["bash", str(clone / "scripts" / name), *arguments]
    return subprocess.run(command, cwd=clone.parent, env=environment, capture_output=True, text=True, check=False)


def _installations(clone: Path) -> list[str]:
    log = clone / "pip.log"
    return log.read_text().splitlines() if log.exists() else []


def test_quickstart_trains_scores_and_translates(clone: Path) -> None:
    done = _script(clone, "quickstart", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("tmt ")]
    assert said[0] == "tmt train --config configs/quickstart.yaml --device cpu"
    assert said[1].startswith("tmt evaluate --bleu")
    assert said[2].startswith("tmt translate")
    assert len(re.findall(r"[.?]", said[2])) == 3
    assert all("-c" in line or "--constraint" in line for line in _installations(clone))


def test_quickstart_translates_new_sentences_with_known_words() -> None:
    from transformer_mt.config.load import load_config
    from transformer_mt.phrasebook import generate

    (corpus,) = load_config(ROOT / "configs" / "quickstart.yaml").data.corpus
    assert corpus.kind == "phrasebook"
    training = {korean for korean, _ in generate("ko", "en", "train", corpus.train, corpus.seed)}
    words = {word for sentence in training for word in sentence.split()}
    sentences = re.findall(r'^  "(.+)"$', _text("scripts/quickstart"), re.MULTILINE)
    assert len(sentences) == 3
    assert not training & set(sentences)
    assert {word for sentence in sentences for word in sentence.split()} <= words


def test_a_second_run_installs_nothing(clone: Path) -> None:
    for name in ("quickstart", "test"):
        assert _script(clone, name).returncode == 0
        before = _installations(clone)
        again = _script(clone, name)
        assert again.returncode == 0
        assert "up to date" in again.stdout
        assert _installations(clone) == before


def test_changed_dependencies_are_installed_into_the_existing_environment(clone: Path) -> None:
    _script(clone, "quickstart")
    (clone / ".venv" / "mark").touch()
    with (clone / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    assert _script(clone, "quickstart").returncode == 0
    assert len(_installations(clone)) == 2
    assert (clone / ".venv" / "mark").exists()


def test_an_incomplete_environment_is_created_again(clone: Path) -> None:
    (clone / "interrupted").touch()
    assert _script(clone, "quickstart").returncode != 0
    (clone / "interrupted").unlink()
    (clone / ".venv" / "mark").touch()
    again = _script(clone, "quickstart")
    assert again.returncode == 0, again.stderr
    assert "incomplete" in again.stdout
    assert not (clone / ".venv" / "mark").exists()


def test_a_moved_clone_creates_its_environment_again(clone: Path) -> None:
    _script(clone, "quickstart")
    moved = clone.rename(clone.parent / "elsewhere")
    done = _script(moved, "quickstart")
    assert done.returncode == 0, done.stderr
    assert len(_installations(moved)) == 2


def test_another_python_creates_the_environment_again(clone: Path) -> None:
    _script(clone, "quickstart")
    other = clone / "tools" / "python3.12"
    says = "case $* in *version_info*) echo 3.12; exit ;; esac\n"
    other.write_text((clone / "tools" / "python3.11").read_text().replace("if [", says + "if [", 1))
    other.chmod(0o755)
    done = _script(clone, "quickstart", PYTHON=str(other))
    assert "again" in done.stdout
    assert len(_installations(clone)) == 2


def test_an_environment_of_the_user_is_used_and_kept(clone: Path) -> None:
    subprocess.run([clone / "tools" / "python3.11", "-m", "venv", "--clear", ".venv"], cwd=clone, check=True)
    (clone / ".venv" / "mark").touch()
    assert _script(clone, "quickstart").returncode == 0
    assert len(_installations(clone)) == 1
    assert (clone / ".venv" / "mark").exists()


def test_a_missing_network_is_reported(clone: Path) -> None:
    (clone / "no-network").touch()
    done = _script(clone, "test")
    assert done.returncode == 2
    assert "Check the network" in done.stderr
    (clone / "no-network").unlink()
    assert _script(clone, "test").returncode == 0


def test_a_failing_step_is_named_and_nothing_runs_after_it(clone: Path) -> None:
    (clone / "fail-evaluate").touch()
    done = _script(clone, "quickstart")
    assert done.returncode == 2
    assert done.stderr.index("because of this") < done.stderr.index("quickstart stopped at: Scoring")
    assert "tmt translate" not in done.stdout


def test_an_unsupported_python_is_refused_by_name(clone: Path) -> None:
    done = _script(clone, "quickstart", PYTHON="/bin/false")
    assert done.returncode == 2
    assert "PYTHON=/bin/false" in done.stderr
    assert not (clone / ".venv").exists()


def test_a_missing_python_is_reported(clone: Path) -> None:
    for name in ("python3.10", "python3.11", "python3.12", "python3.13", "python3", "python"):
        (clone / "tools" / name).write_text("#!/bin/sh\nexit 127\n")
        (clone / "tools" / name).chmod(0o755)
    done = _script(clone, "quickstart")
    assert done.returncode == 2
    assert "no Python 3.10, 3.11, 3.12, 3.13 or 3.14" in done.stderr


def test_torch_can_come_from_another_index(clone: Path) -> None:
    assert _script(clone, "quickstart", TMT_TORCH_INDEX="https://index.invalid").returncode == 0
    first, second = _installations(clone)
    assert "--index-url https://index.invalid torch" in first
    assert "index.invalid" not in second


def test_arguments_of_test_go_only_to_pytest(clone: Path) -> None:
    everything = _script(clone, "test").stdout
    assert [tool for tool in ("ruff check", "ruff format", "mypy", "pytest") if f"ran -m {tool}" in everything] == [
        *("ruff check", "ruff format", "mypy", "pytest")
    ]
    some = _script(clone, "test", "tests/model", "-x").stdout
    assert "ran -m pytest tests/model -x" in some
    assert "ruff" not in some


@pytest.mark.parametrize("name", ["quickstart", "test"])
def test_help_explains_and_does_nothing(clone: Path, name: str) -> None:
    done = _script(clone, name, "--help")
    assert done.returncode == 0
    assert f"./scripts/{name}" in done.stdout
    assert "PYTHON=" in done.stdout
    assert "source" not in done.stdout
    assert not _installations(clone)


def test_the_scripts_can_be_executed() -> None:
    for name in ("scripts/quickstart", "scripts/test", ".ci/run"):
        assert os.access(ROOT / name, os.X_OK), f"chmod +x {name}"


def test_the_installed_command_is_that_of_this_package() -> None:
    entries = importlib.metadata.entry_points(group="console_scripts", name="tmt")
    if not entries:
        pytest.skip("transformer_mt is not installed here")
    assert [entry.value for entry in entries] == ["transformer_mt.cli.main:run"]
