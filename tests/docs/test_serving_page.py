"""The requests of docs/serving.md, below `<!-- serve -->`, get the answers that stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.conftest import Block
from tests.docs.test_examples import matches

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_BLOCK = re.compile(r"^<!-- serve -->\n```console\n(.*?)^```$", re.M | re.S)
_USUAL = "http://127.0.0.1:5000"


@pytest.fixture
def address(quickstart_run: Path, environment: dict[str, str]) -> Iterator[str]:
    """A server with the model of the quickstart."""
    command = [sys.executable, "-m", "transformer_mt", "serve", "--model", str(quickstart_run), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield next(line for line in process.stdout if line.startswith("page")).split()[1]
        process.terminate()
    assert process.returncode == 0


def test_the_requests_of_the_page_get_its_answers(address: str) -> None:
    page = ROOT / "docs" / "serving.md"
    texts = _BLOCK.findall(page.read_text(encoding="utf-8"))
    requests = [one for text in texts for one in Block(page, 0, "console", text, True).commands()]
    assert len(requests) > 4
    for command, shown in requests:
        typed = ["bash", "-c", command.replace(_USUAL, address)]
        printed = subprocess.run(typed, capture_output=True, text=True, check=True).stdout
        assert matches(shown, printed), f"$ {command}\nshows\n{shown}\nbut prints\n{printed}"
