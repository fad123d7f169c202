"""What a person sees of a run: in terminals of several widths, with and without colours, and in a pipe."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import unicodedata
from pathlib import Path

import pexpect
import pytest

from tests.forks import PYTHON
from transformer_mt.reporting.program import quoted
from transformer_mt.reporting.table import table_head, table_row
from transformer_mt.reporting.terminal import columns_of, has_colours, wrapped

ROOT = Path(__file__).resolve().parents[2]
COLOUR = re.compile(r"\x1b\[\d*m")
TRAIN = [*PYTHON, "-m", "transformer_mt", "train", "--config", "small.yaml", "--device", "cpu"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
for name in ("NO_COLOR", "COLUMNS", "CI"):
    ENVIRONMENT.pop(name, None)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the config of a small training, Korean to English."""
    folder = tmp_path_factory.mktemp("terminal")
    values = {
        "name": "small",
        "data": {
            "source": "ko",
            "target": "en",
            "corpus": {"kind": "phrasebook", "train": 20_000, "validation": 30, "test": 20},
            "workers": 1,
        },
        "tokenizer": {"kind": "character"},
        "model": {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1},
        "training": {"max_epochs": 10, "max_steps": 30, "batch_tokens": 1_500, "bleu_sentences": 10},
    }
    values["training"]["validate_every"] = 15
    (folder / "small.yaml").write_text(json.dumps(values), encoding="utf-8")
    return folder


def watch(place: Path, columns: int, **environment: str) -> str:
    """Everything that `tmt train` writes to a terminal of this width."""
    child = pexpect.spawn(
        TRAIN[0],
        [*TRAIN[1:], "--fresh"],
        cwd=place,
        env={**ENVIRONMENT, "TERM": "xterm-256color", **environment},
        dimensions=(24, columns),
        encoding="utf-8",
        timeout=150,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    return child.before


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def lines_of(screen: str) -> list[str]:
    """What stays on the screen: without colours, bars, and the results (long lines on stdout)."""
    plain = COLOUR.sub("", screen).replace("\r\n", "\n")
    lines = [line.rpartition("\r")[2].rstrip() for line in plain.split("\n")]
    return [line for line in lines if line and not line.startswith("test  ")]


def bars_of(screen: str) -> list[str]:
    parts = re.split(r"[\r\n]", COLOUR.sub("", screen))
    return [part for part in parts if part.startswith("epoch 1/10")]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_run_fits_the_terminal(place: Path, width: int) -> None:
    screen = watch(place, width)
    lines, bars = lines_of(screen), bars_of(screen)
    assert max(map(columns, [*lines, *bars])) <= width
    labels = [line.split()[0] for line in lines if re.match(r"\w+ +", line) and line[11:12].strip()]
    assert [label for label in labels if label in ("run", "data", "model", "machine", "done", "next")] == [
        *("run", "data", "model", "machine"),
        *("done", "model", "next"),
    ]
    heads = [line for line in lines if line.split()[:2] == ["epoch", "step"]]
    assert heads == [table_head(width)]
    assert ("perplexity" in heads[0]) == (width >= 80)
    assert sum("  ->  " in line for line in lines) == 6, "three samples after each of two validations"
    with_figures = [bar for bar in bars if "loss" in bar]
    assert with_figures
    form = r"epoch 1/10 +\d+%{}, loss \d+\.\d{{3}}  [\d,]+ tokens/s  left \d+:\d\d *"
    drawn = r"\|.*\| \d+/\d+" if width >= 80 else ""
    assert all(re.fullmatch(form.format(drawn), bar) for bar in with_figures), with_figures
    assert COLOUR.search(screen)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_ends_with_what_it_reached_and_what_comes_next(place: Path) -> None:
    lines = lines_of(watch(place, 80))
    end = lines[next(number for number, line in enumerate(lines) if line.startswith("done ")) :]
    assert re.fullmatch(r"done       max_steps 30 reached: 30 updates in 0:\d\d, best valid loss \d\.\d{3}", end[0])
    assert end[1:] == [
        "model      runs/small/model (checkpoint of step 30)",
        "plots      runs/small/plots",
        "next       python -m transformer_mt translate --model runs/small",
        "           to train on, repeat the command with --set training.max_steps=60",
        "scores     of test, translated with beam 5",
    ]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_nothing_is_lost_without_colours(place: Path, environment: dict[str, str]) -> None:
    screen = watch(place, 80, **environment)
    assert "\x1b[" not in screen
    assert bool(bars_of(screen)) == ("TERM" not in environment)
    assert any(line.endswith("  *") for line in lines_of(screen)), "the best validation has a star too"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_pipe_gets_plain_lines_and_the_results_alone_on_stdout(place: Path) -> None:
    done = subprocess.run(
        [*TRAIN, "--fresh"], cwd=place, env=ENVIRONMENT, capture_output=True, timeout=150, check=False
    )
    out, error = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 0
    assert [line[:10] for line in out.splitlines()] == ["test  BLEU", "test  chrF"]
    assert not {"\r", "\x1b", "\x08"} & set(out + error)
    log = (place / "runs" / "small" / "train.log").read_text(encoding="utf-8")
    logged = [line.partition("  ")[2] for line in log.splitlines()]
    results = [logged.pop(logged.index(line)) for line in out.splitlines()]
    assert len(results) == 2, "the log has them, too"
    assert [line for line in error.splitlines() if not line.startswith("tmt: ")][-len(logged) :] == logged


# ---------------------------------------------------------------- the parts


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colours(environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert has_colours(Terminal()) == coloured
    assert not has_colours(io.StringIO())


def test_the_width_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns_of(io.StringIO()) == 120
    assert columns_of(Terminal()) == 80
    monkeypatch.setenv("COLUMNS", "66")
    assert columns_of(Terminal()) == 66


def test_long_lines_are_broken_under_their_text() -> None:
    text = "machine    cuda:0 (A card with a long name), bfloat16, 8 processes; a step needs about 12,345 MiB"
    assert wrapped(text, 200) == text
    first, second = wrapped(text, 60).split("\n")
    assert len(first) <= 60
    assert second == " " * 11 + "processes; a step needs about 12,345 MiB"
    assert f"{first} {second.strip()}" == text
    hint = "           for a longer run, start again with --fresh --set training.max_epochs=20"
    assert wrapped(hint, 80).split("\n")[1] == " " * 11 + "training.max_epochs=20"
    path = "run        " + "x" * 100
    assert path.split()[1] in wrapped(path, 40), "paths are never broken"


def test_lines_are_broken_by_columns_of_which_hangul_takes_two() -> None:
    assert wrapped("한국어 문장", 11) == "한국어 문장"
    assert wrapped("한국어 문장", 10) == "한국어\n  문장"
    assert wrapped("  가나 다라  마바", 10) == "  가나\n  다라\n  마바"


@pytest.mark.parametrize(("width", "missing"), [(77, []), (76, ["perplexity"]), (60, ["perplexity", "train loss"])])
def test_narrow_tables_leave_out_figures(width: int, missing: list[str]) -> None:
    values = {"epoch": 7, "step": 12, "train_loss": 2.5, "loss": 2.2, "perplexity": 9.4, "bleu": 31.4, "seconds": 75.0}
    head, row = table_head(width), table_row({**values, "best": True}, width)
    assert len(row) <= width
    assert [name for name in ("perplexity", "train loss") if name not in head] == missing
    assert ("9.40" in row) == ("perplexity" in head)


@pytest.mark.parametrize(("path", "text"), [("runs/a", "runs/a"), ("my runs/a", "'my runs/a'"), ("$a", "'$a'")])
def test_paths_in_commands(path: str, text: str) -> None:
    assert quoted(Path(path)) == text
