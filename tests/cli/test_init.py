"""`tmt init`: writes a config to start from, and never overwrites a file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import typer
from typer.testing import CliRunner, Result

from transformer_mt.cli.init import FIRST, init
from transformer_mt.config.load import load_config
from transformer_mt.config.yaml_source import read_yaml
from transformer_mt.errors import USER_FAULT, TmtError
from transformer_mt.phrasebook import generate
from transformer_mt.workflows.configs import shipped_configs, write_config

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = [path.relative_to(CONFIGS).with_suffix("").as_posix() for path in sorted(CONFIGS.rglob("*.yaml"))]


@pytest.fixture
def tmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that runs `tmt init` with arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(init)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments)

    return run


def _fault(result: Result) -> TmtError:
    assert isinstance(result.exception, TmtError)
    assert result.exception.exit_code == USER_FAULT
    return result.exception


def shipped(name: str, written: Path) -> str:
    """A shipped config; the commands in its comments train the file that was written."""
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    return text.replace(f"--config configs/{name}.yaml", f"--config {written.name}")


@pytest.mark.parametrize("name", NAMES)
def test_each_shipped_config_is_written_as_it_is(tmt, name: str) -> None:
    result = tmt(name)
    written = Path(f"{name.rsplit('/', 1)[-1]}.yaml")
    assert result.exit_code == 0
    assert written.read_text(encoding="utf-8") == shipped(name, written)
    assert load_config(written).name
    assert result.stdout == ""
    assert f"tmt train --config {written}" in result.stderr


def test_it_writes_to_the_given_file(tmt, tmp_path: Path) -> None:
    assert tmt("files.yaml", "-o", "mine.yaml").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]
    written = (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert "tmt train --config mine.yaml " in written, "its comments name the file"
    assert "files.yaml" not in written
    assert tmt("quickstart", "-o", "ours.yaml").exit_code == 0
    assert "tmt train --config ours.yaml\n" in (tmp_path / "ours.yaml").read_text(encoding="utf-8")


def test_a_dash_means_stdout(tmt, tmp_path: Path) -> None:
    assert tmt("files", "--output", "-").stdout == (CONFIGS / "files.yaml").read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_not_changed(tmt, tmp_path: Path) -> None:
    (tmp_path / "files.yaml").write_text("mine")
    fault = _fault(tmt("files"))
    assert fault.place == "files.yaml"
    assert "-o" in fault.remedy
    assert (tmp_path / "files.yaml").read_text() == "mine"


def test_places_that_cannot_be_written(tmt, tmp_path: Path) -> None:
    assert "folder" in _fault(tmt("files", "-o", str(tmp_path))).message
    assert "no such folder" in _fault(tmt("files", "-o", "none/c.yaml")).message


@pytest.mark.parametrize("name", NAMES)
def test_a_config_with_a_schema_names_it_and_is_valid(tmt, tmp_path: Path, name: str) -> None:
    """What an editor does: find the schema by the first line, and check the config by it."""
    assert tmt(name, "--schema").exit_code == 0
    written = tmp_path / f"{name.rsplit('/', 1)[-1]}.yaml"
    first, _, rest = written.read_text(encoding="utf-8").partition("\n")
    assert rest == shipped(name, written)
    assert first.startswith("# yaml-language-server: $schema=")
    schema = json.loads((tmp_path / first.rpartition("=")[2]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    values = read_yaml(written).values
    jsonschema.validate(values, schema)
    with pytest.raises(jsonschema.ValidationError, match="modle"):
        jsonschema.validate({**values, "modle": {}}, schema)


def test_the_schema_alone(tmt, tmp_path: Path) -> None:
    result = tmt("--schema")
    assert result.stderr.endswith("# yaml-language-server: $schema=tmt.schema.json\n")
    assert json.loads(tmt("--schema", "-o", "-").stdout) == json.loads(Path("tmt.schema.json").read_text("utf-8"))


def test_an_older_schema_is_replaced_and_another_file_is_not(tmt, tmp_path: Path) -> None:
    assert tmt("--schema").exit_code == 0
    whole = Path("tmt.schema.json").read_bytes()
    Path("tmt.schema.json").write_bytes(whole[: len(whole) // 2] + b'"title": "transformer_mt config"')
    assert tmt("--schema").exit_code == 0
    assert Path("tmt.schema.json").read_bytes() == whole
    Path("tmt.schema.json").write_text("mine")
    assert "exists already" in _fault(tmt("--schema")).message
    assert Path("tmt.schema.json").read_text() == "mine"


def test_a_schema_cannot_go_with_stdout(tmt) -> None:
    assert "writes no file" in _fault(tmt("files", "--schema", "-o", "-")).message


@pytest.mark.parametrize(("name", "nearest"), [("flies", "files"), ("multi30k-ende", "multi30k-en-de")])
def test_an_unknown_name_gets_the_nearest_one_as_a_suggestion(tmt, tmp_path: Path, name: str, nearest: str) -> None:
    fault = _fault(tmt(name))
    assert f"Did you mean '{nearest}'?" in fault.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_name_cannot_leave_the_folder(tmt) -> None:
    assert "unknown config" in _fault(tmt("../pyproject")).message


def test_the_configs_to_start_from_come_first() -> None:
    names = list(shipped_configs(FIRST))
    assert sorted(names) == sorted(NAMES)
    assert [name for name in names if name in FIRST] == names[: len([name for name in names if name in FIRST])]


def test_an_installed_package_carries_its_configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a wheel they are inside the package."""
    package = tmp_path / "transformer_mt"
    (package / "configs" / "classics").mkdir(parents=True)
    (package / "configs" / "quickstart.yaml").write_text("name: inside\n")
    (package / "configs" / "classics" / "paper.yaml").write_text("name: paper\n")
    monkeypatch.setattr("transformer_mt.workflows.configs.files", lambda name: package)
    assert list(shipped_configs(FIRST)) == ["quickstart", "classics/paper"]


def test_a_config_for_the_users_own_table(tmt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.workflows.proposal.timing.SECONDS", 0.0)
    pairs = generate("de", "en", "train", 60, 1)
    Path("mine.csv").write_text("".join(f'"{de}";"{en}"\n' for de, en in pairs), encoding="utf-8")
    result = tmt("files", "--data", "mine.csv", "-o", "mine.yaml")
    assert result.exit_code == 0, result.exception
    assert result.stdout == ""
    assert "German (de) to English (en)" in result.stderr
    assert "tmt train --config mine.yaml" in result.stderr
    assert load_config("mine.yaml").name == "mine"
    assert "exists already" in _fault(tmt("files", "--data", "none.csv", "-o", "mine.yaml")).message
    assert tmt("--data", "mine.csv", "--source", "en", "--target", "de", "-o", "-").stdout.count("source: en") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "mine.yaml"]


def test_control_characters_of_a_table_do_not_reach_the_terminal(tmt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.workflows.proposal.timing.SECONDS", 0.0)
    pairs = generate("de", "en", "train", 60, 1)
    Path("mine.tsv").write_text("".join(f"{de}\x1b[31m\x07\t{en}\n" for de, en in pairs), encoding="utf-8")
    result = tmt("files", "--data", "mine.tsv", "-o", "mine.yaml")
    assert result.exit_code == 0, result.exception
    assert "\\x1b[31m\\x07" in result.stderr
    assert not {"\x1b", "\x07"} & {*result.stderr}


def test_options_of_data_need_data(tmt) -> None:
    assert "needs --data" in _fault(tmt("files", "--source", "de")).message
    assert "needs the config `files`" in _fault(tmt("quickstart", "--data", "a.csv")).message


def test_a_full_disk_leaves_no_part_of_a_config(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before, file = resource.getrlimit(resource.RLIMIT_FSIZE), tmp_path / "c.yaml"
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_config(file, "a" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not file.exists()
