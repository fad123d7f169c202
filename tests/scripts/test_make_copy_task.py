"""The script of the copy task, and the config of The Annotated Transformer with its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from transformer_mt.config.load import load_config
from transformer_mt.data.prepare import prepare

ROOT = Path(__file__).parents[2]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    command = [sys.executable, ROOT / "scripts" / "make_copy_task.py", "--to", folder, "--pairs", "300"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_each_line_is_ten_symbols_that_begin_with_one_and_its_own_translation(written: Path):
    lines = (written / "train.source").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 300
    assert all(len(line.split()) == 10 and line.startswith("1 ") for line in lines)
    assert {symbol for line in lines for symbol in line.split()} == {str(symbol) for symbol in range(1, 11)}
    for split in ("train", "validation", "test"):
        assert (written / f"{split}.source").read_bytes() == (written / f"{split}.target").read_bytes()


def test_the_annotated_config_prepares_it_without_dropping_a_pair(written: Path, tmp_path: Path):
    overrides = [
        f"data.corpus.{split}.{side}={written / f'{split}.{side}'}"
        for split in ("train", "validation", "test")
        for side in ("source", "target")
    ]
    config = load_config(
        ROOT / "configs" / "classics" / "annotated.yaml", [*overrides, f"data.prepared={tmp_path / 'prepared'}"]
    )
    prepared = prepare(config)
    assert prepared.parts == [(300, 1.0)]
    for codec in prepared.codecs():
        assert len(codec) == 4 + 10
