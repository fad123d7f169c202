"""The figures of docs/scoring.md come from this script: it runs with any model of the phrasebook's languages."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_alignment.py"


def test_it_prints_error_rates_of_every_layer_and_areas(tiny_model: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tiny_model), "--pairs", "6"])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    output = capsys.readouterr().out
    assert output.count("AER") == 2 * 2 * 2 + 1, "two layers, two steps, two kinds of links, and what tmt score writes"
    assert output.count("gain of at least") == 2


def test_it_takes_only_a_model(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path / "nothing")])
    with pytest.raises(Exception, match="no such model folder"):
        runpy.run_path(str(SCRIPT), run_name="__main__")
