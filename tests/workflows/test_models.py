"""The model that is used if none is given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.finding import find_model
from transformer_mt.errors import TmtError
from transformer_mt.workflows.models import changed_settings


def finished(folder: Path, age: int = 0) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"")
    os.utime(folder / "model.safetensors", (10**9 - age, 10**9 - age))
    return folder


def test_the_run_that_finished_last_or_the_given_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TmtError, match="no finished run under runs/"):
        find_model(None)
    older, newer = finished(Path("runs/older/model"), age=60), finished(Path("runs/newer/model"))
    assert find_model(None) == newer
    assert find_model(Path("runs/older")) == find_model(older) == older
    with pytest.raises(TmtError, match="no such model folder"):
        find_model(Path("runs/another"))


def test_a_model_that_a_killed_process_had_renamed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    for given in (None, Path("runs/one"), Path("runs/one/model")):
        finished(Path("runs/one") / f".model.{int(gone.stdout)}.old")
        assert find_model(given) == Path("runs/one/model")
        (Path("runs/one/model") / "model.safetensors").unlink()
        Path("runs/one/model").rmdir()


def test_a_method_may_be_given_as_in_a_config() -> None:
    """In Python, that is the only way to give options of a search."""
    own = DecodingConfig(beam=4)
    assert changed_settings(own, {"method": {"kind": "sample"}}).method == "sample"
    assert changed_settings(own, {"method": {"kind": "beam"}, "beam": 2}).beam == 2
    with pytest.raises(TmtError, match="method"):
        changed_settings(own, {"method": {"kind": "nope"}})
