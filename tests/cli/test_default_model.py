"""Which model a command uses if none is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from transformer_mt.decoding.finding import find_model


def test_the_run_that_finished_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only finished runs count: one that is still training has no model yet."""
    monkeypatch.chdir(tmp_path)
    for name, finished in (("first", 100), ("last", 300), ("second", 200)):
        weights = Path("runs", name, "model", "model.safetensors")
        weights.parent.mkdir(parents=True)
        weights.touch()
        os.utime(weights, (finished, finished))
    Path("runs", "training", "checkpoints").mkdir(parents=True)
    assert find_model(None) == Path("runs", "last", "model")
    assert find_model(Path("runs", "second")) == Path("runs", "second", "model")
