"""The pictures of the documentation are those that scripts/draw_pictures.sh draws, each light and dark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
# recorded; drawn by draw_architecture.py; drawn in the tutorial; taken by draw_screens.py;
# drawn by draw_trials.py; drawn by the commands of docs/comparing.md; drawn by draw_streams.py
NOT_DRAWN = re.compile(
    r"terminal\.svg|(training|translating)-path-(light|dark)\.svg|tutorial(-dark)?\.svg|serve-[a-z]+(-dark)?\.png"
    r"|trials(-dark)?\.svg|seeds(-dark)?\.svg|(span-blocks|cuda-graph)(-dark)?\.svg"
)
RECORD = "import sys; print(*sys.argv[1:], sep='\\t', file=open('commands.tsv', 'a', encoding='utf-8'))"


def test_every_picture_is_drawn_by_the_script_and_there_in_both_themes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("this system has no bash")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "draw_pictures.sh", tmp_path / "scripts")
    (tmp_path / "record.py").write_text(RECORD, encoding="utf-8")
    environment = {**os.environ, "TMT": f"{sys.executable} record.py"}
    subprocess.run([bash, "scripts/draw_pictures.sh"], cwd=tmp_path, env=environment, check=True, timeout=60)
    commands = [line.split("\t") for line in (tmp_path / "commands.tsv").read_text(encoding="utf-8").splitlines()]
    drawn = {Path(next(word for word in words if word.endswith(".svg"))).name: words[-1] for words in commands}
    kept = {file.name for file in (ROOT / "docs" / "pictures").iterdir() if not NOT_DRAWN.fullmatch(file.name)}
    assert kept == set(drawn)
    assert all(theme == ("dark" if name.endswith("-dark.svg") else "light") for name, theme in drawn.items())
    assert {name.replace("-dark.svg", ".svg") for name in drawn} <= kept


def test_the_pictures_of_streams_are_drawn(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "draw_streams.py", "--to", tmp_path]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    drawn = {file.name for file in tmp_path.iterdir()}
    assert drawn == {f"{name}{end}.svg" for name in ("span-blocks", "cuda-graph") for end in ("", "-dark")}
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for name in drawn:
        assert f"](pictures/{name}#only-{'dark' if '-dark' in name else 'light'})" in page
        assert (ROOT / "docs" / "pictures" / name).is_file()
