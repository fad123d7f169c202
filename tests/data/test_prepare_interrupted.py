"""A run that is killed or interrupted, and goes on: always the same bytes as a run that nothing disturbs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import transformer_mt
from transformer_mt.config.schema import Config
from transformer_mt.corpora import parts
from transformer_mt.data import journal, partitions, reading
from transformer_mt.data.parallel import LostError
from transformer_mt.data.prepare import prepare

pytestmark = pytest.mark.slow

ROOT = Path(transformer_mt.__file__).parents[1]
WORDS = {"source": {"kind": "soynlp", "min_frequency": 1}, "target": {"kind": "whitespace"}}
PIECES = {"kind": "sentencepiece", "vocab_size": 100, "sampling": 0.1, "shared": True}


class Stopped(BaseException):
    """Like a kill: nothing may catch it."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many shards and partitions of a small corpus."""
    monkeypatch.setattr(reading, "SHARD", 7)
    monkeypatch.setattr(parts, "RANGE_BYTES", 200)
    monkeypatch.setattr(partitions, "BLOCK", 16)


def _config(workshop: Any, tokenizer: dict[str, Any], **data: Any) -> Config:
    """Parallel files and a table. The files are written once: a new time would be a change."""
    pairs = [*workshop.numbered(60), *workshop.numbered(20), ("", "nothing"), ("eins", "one " * 20), ("é\u200b", "e")]
    files = dict[str, dict[str, str]]()
    for name, some in (("train", pairs), ("held", workshop.numbered(12, 55))):
        files[name] = {side: str(workshop.folder / f"{name}.{side}") for side in ("source", "target")}
        for number, file in enumerate(files[name].values()):
            if not Path(file).exists():
                Path(file).write_text("".join(f"{pair[number]}\n" for pair in some))
    text = {"kind": "text", "train": files["train"], "validation": files["held"], "test": files["held"]}
    table, split = workshop.folder / "whole.jsonl", {"validation": 0.1, "test": 7}
    if not table.exists():
        workshop.table("whole", workshop.numbered(50, 200))
    whole = {"kind": "jsonl", "files": str(table), "split": split}
    return workshop.config(text, whole, tokenizer=tokenizer, **data)


@pytest.mark.parametrize("tokenizer", [WORDS, PIECES], ids=["words", "pieces"])
def test_killed_anywhere_and_gone_on_gives_the_same_bytes(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, tokenizer: dict[str, Any]
) -> None:
    """The moments to die at are the openings of files for writing, one later than the other."""
    undisturbed = workshop.content(
        prepare(_config(workshop, tokenizer, prepared=str(workshop.folder / "other"))).folder
    )
    config, plain, said = _config(workshop, tokenizer), Path.open, list[str]()
    (workshop.folder / "prepared").mkdir()
    opened, limit, deaths, rmtree = 0, 3, 0, shutil.rmtree

    def dying(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        nonlocal opened
        opened += mode != "r" and mode != "rb"
        if opened == limit:
            if "w" in mode:  # a part of the file is written
                with plain(path, "wb") as file:
                    file.write(b"half")
            raise Stopped
        return plain(path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", dying)
    monkeypatch.setattr(shutil, "rmtree", lambda *given, **more: None if opened == limit else rmtree(*given, **more))
    while True:
        opened = 0
        try:
            prepared = prepare(config, say=said.append)
            break
        except Stopped:
            deaths += 1
            limit += 4 + 2 * deaths
    monkeypatch.undo()
    assert deaths > 6
    assert any("going on from there" in message for message in said)
    assert workshop.content(prepared.folder) == undisturbed
    assert {path.name for path in prepared.folder.parent.iterdir()} == {"work", ".work.lock"}


def _interrupted(workshop: Any, monkeypatch: pytest.MonkeyPatch, stage: str, after: int, **data: Any) -> Config:
    """A config whose preparation was interrupted by Ctrl-C in a stage."""
    config, calls = _config(workshop, WORDS, **data), 0

    def progress(doing: str, *_: object) -> None:
        nonlocal calls
        calls += doing == stage
        if calls > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(config, progress=progress)
    return config


def _scratch(workshop: Any) -> Path:
    (folder,) = (workshop.folder / "prepared").glob(".work.*.new")
    return folder / "scratch"


def test_an_interrupted_run_is_not_done_again(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config, said = _interrupted(workshop, monkeypatch, "tokenising", 9), list[str]()
    before = len((_scratch(workshop) / journal.FILE).read_text().splitlines())
    done: list[str] = []
    plain = journal.write
    monkeypatch.setattr(journal, "write", lambda *given: pytest.fail("writes a known shard"))
    for room in ("shards", "tokenising"):
        monkeypatch.setattr(f"transformer_mt.data.{room}.write", lambda *given: done.append(given[1]) or plain(*given))
    prepare(config, say=said.append)
    assert said == ["an interrupted run has prepared a part of this data; going on from there"]
    assert before > 20
    assert done
    assert not [name for name in done if name.endswith((".text", ".keys"))]


def test_a_damaged_shard_is_written_again(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = workshop.content(prepare(_config(workshop, WORDS, prepared=str(workshop.folder / "other"))).folder)
    config = _interrupted(workshop, monkeypatch, "writing ids", 2)
    for number, file in enumerate(sorted(_scratch(workshop).iterdir())):
        content = bytearray(file.read_bytes())
        if number % 3 == 0 and content and file.name != journal.FILE:
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        elif number % 7 == 0:
            file.unlink() if file.name != journal.FILE else file.write_bytes(content[:-9])
    assert workshop.content(prepare(config).folder) == undisturbed


@pytest.mark.parametrize(
    "damage", [(b'\\"pairs\\":', b'\\"pears\\":'), (b"\n", b"\n5\n"), (b'\\"pairs\\":', b'\\"pairs\\":1')]
)
def test_lines_of_a_damaged_journal_do_not_count(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, damage: tuple[bytes, bytes]
) -> None:
    undisturbed = workshop.content(prepare(_config(workshop, WORDS, prepared=str(workshop.folder / "other"))).folder)
    config = _interrupted(workshop, monkeypatch, "writing ids", 2)
    file = _scratch(workshop) / journal.FILE
    damaged = file.read_bytes().replace(*damage)
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert workshop.content(prepare(config).folder) == undisturbed


def test_a_run_that_was_killed_before_its_first_result_is_not_mentioned(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is there something to go on from, nor has anything changed."""
    config, said = _interrupted(workshop, monkeypatch, "tokenising", 3), list[str]()
    file = _scratch(workshop) / journal.FILE
    file.write_bytes(file.read_bytes().split(b"\n")[0] + b"\n")
    prepare(config, say=said.append)
    assert said == []


def test_with_other_settings_or_files_it_starts_again_and_says_so(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupted(workshop, monkeypatch, "tokenising", 3)
    said: list[str] = []
    config = _config(workshop, WORDS, max_length=50)
    prepared = prepare(config, say=said.append)
    assert said == ["an interrupted run prepared a part of other data: settings or files have changed; starting again"]
    other = _config(workshop, WORDS, max_length=50, prepared=str(workshop.folder / "other"))
    assert (
        workshop.content(prepared.folder)["train/source.ids"]
        == workshop.content(prepare(other).folder)["train/source.ids"]
    )


SCRIPT = """
import json, sys
from transformer_mt.config.schema import Config
from transformer_mt.corpora import parts
from transformer_mt.data import reading
from transformer_mt.data.prepare import prepare

if __name__ == "__main__":
    parts.RANGE_BYTES, reading.SHARD = 200, 7
    config = Config.model_validate(json.load(open(sys.argv[1])))
    prepare(config, False, lambda doing, pairs, share: print(doing, flush=True))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal on this system")
def test_killed_with_two_workers_and_gone_on_with_one(workshop: Any) -> None:
    undisturbed = workshop.content(prepare(_config(workshop, WORDS, prepared=str(workshop.folder / "other"))).folder)
    config, file, script = _config(workshop, WORDS, workers=2), workshop.folder / "c.json", workshop.folder / "s.py"
    file.write_text(config.model_dump_json())
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script, file], stdout=-1, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("tokenising"):
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL
    assert (_scratch(workshop) / journal.FILE).read_text().count("\n") > 15
    assert workshop.content(prepare(_config(workshop, WORDS)).folder) == undisturbed


def test_a_lost_worker_does_not_let_the_whole_file_be_read_again(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes hours for a large file; other errors in a range need it for their line."""
    corpus = (
        workshop.config({"kind": "jsonl", "files": workshop.table("t", workshop.numbered(50))}).data.corpus[0].corpus
    )

    def lost(*_: object) -> None:
        raise LostError("a worker process was killed")

    monkeypatch.setattr(corpus, "read_range", lost)
    monkeypatch.setattr(corpus, "read_part", lambda *_: pytest.fail("reads the whole file"))
    with pytest.raises(LostError):
        prepare(workshop.config({"kind": "jsonl", "files": str(workshop.folder / "t.jsonl")}))


def test_what_is_finished_is_kept_if_a_worker_is_lost(workshop: Any) -> None:
    config, said = _config(workshop, WORDS), list[str]()

    def progress(doing: str, *_: object) -> None:
        if doing == "tokenising":
            raise LostError("a worker process was killed")

    with pytest.raises(LostError):
        prepare(config, progress=progress, say=said.append)
    assert said == ["the finished part is kept; the same command goes on from there"]
    assert _scratch(workshop).is_dir()
