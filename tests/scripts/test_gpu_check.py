"""scripts/gpu_check.py: it runs on a machine that has only torch and numpy, and one failure does not end the rest."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

SCRIPTS = Path(__file__).parents[2] / "scripts"
# As sitecustomize.py, this is in all processes: they can import nothing but torch, what torch needs, and numpy.
ONLY_TORCH = """
import sys
from importlib.machinery import PathFinder

ALLOWED = {*sys.stdlib_module_names, "torch", "torchgen", "functorch", "numpy", "nvidia", "triton", "typing_extensions"}
ALLOWED |= {"sympy", "mpmath", "networkx", "jinja2", "markupsafe", "fsspec", "filelock", "setuptools", "transformer_mt"}
ALLOWED |= {"gpu_cases", "gpu_kernels", "gpu_parity", "gpu_run", "gpu_search", "flops", "synthetic", "stand_ins"}
everything = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    is_there = name.partition(".")[0] in ALLOWED or name.startswith("_")
    return everything(name, path, target) if is_there else None

PathFinder.find_spec = find_spec
"""


@pytest.fixture
def gpu_check(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("gpu_check")


@pytest.mark.slow
def test_every_measurement_runs_with_nothing_but_torch_and_numpy(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ONLY_TORCH)
    refused = subprocess.run([sys.executable, "-c", "import pydantic"], env=environment(tmp_path), capture_output=True)
    assert b"No module named 'pydantic'" in refused.stderr, "the test hides it"
    command = [sys.executable, str(SCRIPTS / "gpu_check.py"), "--dry-run", "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    measured = json.loads((tmp_path / "found.json").read_text())["measured"]
    listed = subprocess.run([*command[:3], "--list"], env=environment(tmp_path), capture_output=True, text=True).stdout
    assert [one["part"] for one in measured] == [line.split()[0] for line in listed.splitlines()[1:]]
    for one in measured:
        assert one["rows"], one
        assert all(row.get("ok", True) for row in one["rows"]), one
    resumed = [row for one in measured if one["part"] == "resume" for row in one["rows"]]
    assert [row["equal to the bit"] for row in resumed] == ["True"] * 4, "Adam and Muon, before and after the kill"


def environment(folder: Path) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("COV", "PYTEST"))}
    return inherited | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def test_without_a_gpu_it_says_so_and_exits_with_2(gpu_check, monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(SystemExit) as ended:
        gpu_check.find_gpu()
    assert ended.value.code == 2
    assert "built without CUDA" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_failure_is_reported_and_ends_only_its_measurement(gpu_check, tmp_path: Path, capsys, monkeypatch) -> None:
    def fails(run: Any) -> Any:
        raise ValueError("such a pity")

    def killed(run: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs(run: Any) -> Any:
        time.sleep(60)

    monkeypatch.setattr(gpu_check, "LEAST_SECONDS", 0.1)
    monkeypatch.setattr(gpu_check, "PATIENCE", 0.0)
    cases = [fails, killed, hangs, lambda run: [{"speed": 7.0, "ok": False}]]
    named = [gpu_check.Case("machine", getattr(one, "__name__", ""), one) for one in cases]
    report = gpu_check.Report(tmp_path / "found.json")
    gpu_check.run_part("machine", named, gpu_check.Run("cpu", toy=True), 4.0, report)
    measured = json.loads((tmp_path / "found.json").read_text())["measured"]
    problems = [re.sub(r"after [12] s;", "after N s;", one.get("problem", "")).splitlines()[-1:] for one in measured]
    assert problems == [  # how many seconds are left for the third depends on the machine
        ["ValueError: such a pity"],
        ["the process died with exit code -9"],
        ["stopped after N s; --minutes gives it more"],
        [],
    ]
    assert gpu_check.differs(measured[3]["rows"])
    assert "NO" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        (["base"], ["base"]),
        (["base, muon", "TF32"], ["base, muon", "base, float32 (TF32)"]),
        (["cuDNN attention on, one"], ["base, cuDNN attention on, one shape"]),
        (["no such"], []),
    ],
)
def test_cases_are_chosen_by_their_name_or_else_by_a_part_of_it(gpu_check, texts: list[str], chosen: list[str]) -> None:
    names = [one.name for one in gpu_check.CASES if one.part == "train"]
    assert [name for name in names if gpu_check.is_chosen(name, texts)] == chosen


def test_a_name_of_no_measurement_is_an_error(gpu_check, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu_check.py", "--cases", "base", "compield"])
    with pytest.raises(SystemExit) as ended:
        gpu_check.parse()
    assert ended.value.code == 2
    assert "no measurement has 'compield' in its name" in capsys.readouterr().err


def test_the_stand_in_for_pydantic_has_the_defaults_of_the_config(gpu_check) -> None:
    """The same sections, once with pydantic and once without."""
    names = "transformer_mt.config.model", "transformer_mt.config.training", "transformer_mt.config.decoding"
    code = (
        "import importlib, json, sys; sys.path.insert(0, sys.argv[1])\n"
        "if sys.argv[2] == 'hidden': sys.modules['pydantic'] = None\n"
        "import stand_ins\n"
        f"with stand_ins.installed(): modules = [importlib.import_module(name) for name in {names!r}]\n"
        "made = [modules[0].ModelConfig(d_model=64), modules[1].TrainingConfig(max_steps=1, optimizer='muon')]\n"
        "made += [modules[1].RuntimeConfig(), modules[2].DecodingConfig(beam=3)]\n"
        "print(json.dumps([{k: v for k, v in vars(one).items()} for one in made], sort_keys=True))\n"
    )
    shown = []
    for how in ("hidden", "there"):
        done = subprocess.run([sys.executable, "-c", code, str(SCRIPTS), how], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown.append(done.stdout)
    assert shown[0] == shown[1]
    assert SimpleNamespace(**json.loads(shown[0])[0]).d_model == 64


@pytest.mark.slow
def test_bench_train_needs_no_corpus() -> None:
    options = ["--shapes", "fixed", "--size", "toy", "--vocabulary", "100", "--batch-tokens", "300", "--steps", "2"]
    command = [sys.executable, str(SCRIPTS / "bench_train.py"), "--synthetic", *options, "--precision", "float32"]
    done = subprocess.run([*command, "--rounds", "1"], capture_output=True, text=True, cwd=SCRIPTS.parent)
    assert "random sentences, fixed lengths" in done.stdout, done.stderr
    assert "of the measured matrix peak" in done.stdout
    assert "s per epoch" not in done.stdout, "there is no corpus to pass over"
