"""The README is held to the program: its reference is the schema's, and its commands and files exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import torch

from transformer_mt.config.load import load_config
from transformer_mt.kernels.build import build_model

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.S | re.M)
COMMANDS = [
    line.removeprefix("$ ").partition("   #")[0].strip()
    for kind, block in BLOCKS
    for line in block.splitlines()
    if kind in ("", "console", "sh", "bash")
    if line.startswith(("tmt ", "$ tmt "))
]


def _update_readme() -> object:
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "scripts" / "update_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_that_of_the_schema() -> None:
    assert _update_readme().updated(README) == README, "run: python scripts/update_readme.py"  # type: ignore[attr-defined]


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_of_the_readme_has_only_options_that_exist(command: str) -> None:
    from importlib import import_module

    import typer

    words = [word for word in shlex.split(command.split(" > ")[0].split(" | ")[0].split(" < ")[0]) if word != "..."]
    name, given = words[1], [word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "-"]
    app = typer.Typer()
    app.command(name)(getattr(import_module(f"transformer_mt.cli.{name}"), name))
    options = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    assert set(given) <= options | {"-h", "--help"}, f"unknown in `{command}`"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"(?:configs|scripts)/[A-Za-z0-9_./-]+\w", README))))
def test_a_file_named_in_the_readme_exists(name: str) -> None:
    assert (ROOT / name).exists()


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(((?!https?:|#)[^)]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("image", re.findall(r"!\[[^]]*\]\(([^)]+)\)", README))
def test_a_picture_of_the_readme_exists(image: str) -> None:
    assert (ROOT / image).stat().st_size > 5_000


def test_the_base_model_of_the_readme_is_that_of_the_paper(tmp_path: Path) -> None:
    (keys,) = (block for kind, block in BLOCKS if kind == "yaml")
    file = tmp_path / "base.yaml"
    file.write_text("name: base\ndata: {source: en, target: de, corpus: {kind: multi30k}}\n" + keys, encoding="utf-8")
    config = load_config(file)
    d, f, words = 512, 2048, 37_000  # table 3, base
    norms, attention, feed_forward = 2 * d, 4 * (d * d + d), 2 * d * f + d + f
    encoder, decoder = attention + feed_forward + 2 * norms, 2 * attention + feed_forward + 3 * norms
    with torch.device("meta"):
        model = build_model(config, words, words, device="meta")
    assert sum(weight.numel() for weight in model.parameters()) == words * d + 6 * (encoder + decoder)
    training = config.training
    assert (training.optimizer, training.betas, training.epsilon) == ("adam", (0.9, 0.98), 1e-9)
    assert (training.schedule, training.warmup_steps, training.label_smoothing) == ("noam", 4000, 0.1)
    assert (config.model.dropout, config.decoding.beam, config.decoding.length_penalty) == (0.1, 4, 0.6)


def test_the_python_of_the_readme_translates(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = (block for kind, block in BLOCKS if kind == "python")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "quickstart").symlink_to(tiny_model.parent)
    assert tiny_model.name == "model"
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.count("\n") == 1
