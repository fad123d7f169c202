"""The practice table: its header, its languages, and the faults that the tutorial's report counts."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_phrasebook_table.py"


def _table(file: Path, *options: str) -> list[tuple[str, str]]:
    subprocess.run([sys.executable, str(SCRIPT), "--to", str(file), *options], check=True, stdout=subprocess.DEVNULL)
    rows = [tuple(line.split("\t")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [(source, target) for source, target in rows]


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    return _table(tmp_path_factory.mktemp("table") / "new" / "german.tsv", "--pairs", "400")


def test_the_first_row_names_the_columns(german: list[tuple[str, str]]) -> None:
    assert german[0] == ("german", "english")
    assert len(german) == 401


def test_of_a_hundred_rows_five_have_a_fault(german: list[tuple[str, str]]) -> None:
    rows = german[1:]
    assert sum(not target for _, target in rows) == 4
    assert sum(source == target for source, target in rows) == 4
    assert sum(source != source.strip() for source, _ in rows) == 4
    assert sum(one == other for one, other in pairwise(rows)) == 4
    assert all(
        unicodedata.is_normalized("NFC", source) for number, (source, _) in enumerate(rows, 1) if number % 100 != 55
    )


def test_another_seed_gives_other_sentences(german: list[tuple[str, str]], tmp_path: Path) -> None:
    other = _table(tmp_path / "other.tsv", "--pairs", "400", "--seed", "2")
    assert len(set(german) & set(other)) < 20


def test_korean(tmp_path: Path) -> None:
    rows = _table(tmp_path / "korean.tsv", "--pairs", "5", "--source", "ko")
    assert rows[0] == ("korean", "english")
    assert all("\uac00" <= source.strip()[0] <= "\ud7a3" for source, _ in rows[1:])
