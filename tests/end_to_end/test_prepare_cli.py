"""`tmt prepare` as a user runs it: with a download from a local server, with real corpora, and a second time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.forks import PYTHON

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ["-m", "transformer_mt.cli.main", "prepare", "--config", "config.yaml"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _write(folder: Path, corpus: dict[str, Any], tokenizer: dict[str, Any], **data: Any) -> None:
    config = {
        "name": "cli",
        "data": {"source": "en", "target": "de", "corpus": corpus, "workers": 2, **data},
        "tokenizer": tokenizer,
        "training": {"max_epochs": 1},
    }
    (folder / "config.yaml").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")


@pytest.fixture
def tmt(tmp_path: Path) -> Run:
    """Runs `tmt prepare` with these options in a folder with config.yaml."""

    def run(*options: str, python: Sequence[str] = PYTHON) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*python, *COMMAND, *options], cwd=tmp_path, env=_environment(), capture_output=True, text=True, timeout=150
        )

    return run


@pytest.fixture
def server(corpora: Any) -> Iterator[str]:
    """The folder of Multi30k, served over HTTP on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(corpora / "multi30k"))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _seconds_of_children() -> float:
    """CPU time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


WORDS = {"kind": "spacy", "case": "lower", "min_frequency": 2}


@pytest.mark.corpora
def test_multi30k_has_the_published_vocabulary_sizes(tmp_path: Path, server: str, tmt: Run) -> None:
    _write(tmp_path, {"kind": "multi30k", "directory": "data/multi30k", "mirror": server}, WORDS)
    start = _seconds_of_children()
    done = tmt(python=[sys.executable])  # a fork is no child
    preparing = _seconds_of_children() - start
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "data" / "prepared" / "cli"
    assert {file.name for file in (tmp_path / "data" / "multi30k").glob("*.gz")} >= {"train.en.gz", "val.de.gz"}
    assert (folder / "plots" / "lengths.png").read_bytes().startswith(b"\x89PNG")
    lines = done.stdout.splitlines()
    assert lines[0] == "cli: en -> de"
    rows = {line.split("  ")[0]: line.split()[-4:] for line in lines if line}
    assert rows["read"] == ["29,000", "1,014", "1,000", "1,000"]
    assert rows["dropped: duplicate"] == ["3", "0", "0", "0"]
    assert rows["kept"] == ["28,997", "1,014", "1,000", "1,000"]
    assert f"{folder.relative_to(tmp_path)}: prepared in" in done.stdout
    assert "Traceback" not in done.stderr

    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    start = _seconds_of_children()
    again = tmt("--json", python=[sys.executable])
    used = _seconds_of_children() - start
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before, "nothing is prepared again"
    report = json.loads(again.stdout)
    assert report["vocabulary"]["source"] == 5_893
    assert abs(report["vocabulary"]["target"] - 7_853) <= 5
    assert report["is_new"] is False
    assert report["splits"]["train"]["source"]["mean"] == pytest.approx(13.1, abs=0.1)
    assert sum(report["splits"]["train"]["source"]["histogram"]) == 28_997
    assert used < max(2.0, preparing / 8)  # seconds of CPU time; more only where preparing takes more, too


@pytest.mark.corpora
def test_multi30k_with_shared_subwords(tmp_path: Path, corpora: Any, tmt: Run) -> None:
    tokenizer = {"kind": "sentencepiece", "vocab_size": 4_000, "shared": True}
    tests = ["test_2017_flickr", "test_2016_flickr"]
    _write(tmp_path, {"kind": "multi30k", "directory": str(corpora / "multi30k"), "test_sets": tests}, tokenizer)
    done = tmt("--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report["splits"]) == ["train", "validation", *tests]
    assert report["shared_vocabulary"]
    assert report["vocabulary"] == {"source": 4_000, "target": 4_000}
    assert all(
        split[side]["unknown_rate"] < 0.001 for split in report["splits"].values() for side in report["vocabulary"]
    )
    assert all(
        1.0 < split[side]["tokens_per_word"] < 2.0
        for split in report["splits"].values()
        for side in ("source", "target")
    )


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("files", "pairs", "tokenizer"),
    [
        ("data/aihub/1_구어체(2).xlsx", 10_000, {"source": {"kind": "soynlp"}, "target": WORDS}),
        ("data/aihub", 21_500, {"kind": "sentencepiece", "algorithm": "unigram", "vocab_size": 6_000}),
    ],
    ids=["words", "pieces"],
)
def test_aihub_workbooks(
    tmp_path: Path, corpora: Any, tmt: Run, files: str, pairs: int, tokenizer: dict[str, Any]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "aihub").symlink_to(corpora / "aihub")
    _write(tmp_path, {"kind": "aihub", "files": files}, tokenizer, source="ko", target="en")
    done = tmt("--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    row, splits = report["pairs"]["all"], report["splits"]
    assert row["read"] == pairs
    assert row["dropped"]["duplicate"] > 20  # each of the two files repeats some, and they share others
    assert row["dropped"]["leak"] > 0
    assert row["kept"] == sum(split["pairs"] for split in splits.values()) == row["read"] - sum(row["dropped"].values())
    assert splits["validation"]["pairs"] == splits["test"]["pairs"] == round((pairs - row["dropped"]["duplicate"]) / 10)
    assert any(re.search("also in (validation|test): dropped", remark["text"]) for remark in report["remarks"])
    assert len(report["files"]) == (2 if files == "data/aihub" else 1)


def test_the_phrasebook_needs_no_files_and_two_runs_print_the_same(tmp_path: Path, tmt: Run) -> None:
    corpus = {"kind": "phrasebook", "train": 5_000, "validation": 50, "test": 60}
    _write(tmp_path, corpus, {"kind": "whitespace", "min_frequency": 1}, source="ko")
    first, second = tmt(), tmt(python=[sys.executable])  # a new Python shows what imports print
    assert first.returncode == second.returncode == 0, first.stderr
    assert "up to date; --force prepares again" in second.stdout
    assert first.stdout.splitlines()[:-2] == second.stdout.splitlines()[:-2]
    next_command = "next: tmt train --config config.yaml\n"
    assert (
        first.stderr == second.stderr == next_command
    )  # no progress bar without a terminal, no messages of the workers


def test_an_error_in_the_data_is_one_message_with_file_and_line(tmp_path: Path, tmt: Run) -> None:
    (tmp_path / "pairs.tsv").write_text("one\teins\ntwo zwei\n")
    _write(tmp_path, {"kind": "tsv", "files": "pairs.tsv"}, {"kind": "whitespace"})
    done = tmt()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tmt: pairs.tsv:2: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "prepared" / "cli").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups on this system")
def test_an_interruption_keeps_what_is_finished_and_has_no_traceback(tmp_path: Path, tmt: Run) -> None:
    _write(tmp_path, {"kind": "phrasebook", "train": 30_000}, {"kind": "whitespace"}, source="ko")
    with subprocess.Popen(
        [sys.executable, *COMMAND],
        cwd=tmp_path,
        env=_environment(),
        stdout=-1,
        stderr=-1,
        text=True,
        start_new_session=True,
    ) as process:
        prepared = tmp_path / "data" / "prepared"
        while not any(prepared.glob(f".cli.{process.pid}-*.new/scratch/0-train-*.keys")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        output, messages = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    kept = "the finished part is kept; the same command goes on from there\n"
    assert messages in (f"{kept}tmt: interrupted\n", "tmt: interrupted\n")  # the second before the first result arrives
    done = tmt()
    assert done.returncode == 0, done.stderr
    assert ("going on from there" in done.stderr) == messages.startswith(kept)
    assert {path.name for path in prepared.iterdir()} == {".cli.lock", "cli"}
