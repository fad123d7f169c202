"""Preparing again, beside another process, on a full disk, or killed: either the old or the new data is there."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transformer_mt
from transformer_mt.data import prepare as pipeline
from transformer_mt.data import prepared, selection
from transformer_mt.data.prepare import prepare
from transformer_mt.data.prepared import MANIFEST, Prepared, settings_of
from transformer_mt.errors import TmtError
from transformer_mt.files import replace

pytestmark = pytest.mark.slow

ROOT = Path(transformer_mt.__file__).parents[1]
FULL = Path("/dev/full")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _neighbours(folder: Path) -> set[str]:
    return {path.name for path in folder.parent.iterdir()} - {folder.name}


LOCK = {".work.lock"}


# Again


def test_unchanged_data_is_not_prepared_again(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    first = prepare(config)
    monkeypatch.setattr(pipeline, "Selection", None)  # preparing again would fail
    second = prepare(config)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.manifest == second.manifest
    assert _neighbours(first.folder) == LOCK


@pytest.mark.parametrize(
    "data",
    [{"max_length": 50}, {"cleaning": {"leaks": "off"}}, {"source": "fr"}, {"tokenizer": {"kind": "character"}}],
    ids=str,
)
def test_a_changed_key_prepares_again(workshop: Any, data: dict[str, Any]) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    workshop.prepare(corpus)
    assert workshop.prepare(corpus, **data).is_new
    assert not workshop.prepare(corpus, **data).is_new


def test_the_number_of_workers_changes_nothing(workshop: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    workshop.prepare(corpus)
    assert not workshop.prepare(corpus, workers=3).is_new


def test_a_changed_file_prepares_again(workshop: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    workshop.prepare(corpus)
    workshop.table("splits-train", workshop.numbered(7))
    assert workshop.prepare(corpus).manifest.splits["train"] == 7
    file = Path(corpus["test"])
    file.write_text(file.read_text().replace("20001", "20003"))  # of the same size
    assert workshop.prepare(corpus).is_new


def test_files_with_other_times_and_the_same_bytes_are_unchanged(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cp -r` and `rsync` without `-t` make them."""
    corpus = workshop.splits(workshop.numbered(5))
    config, stages = workshop.config(corpus), list[str]()
    folder, said = prepare(config).folder, list[str]()
    manifest = json.loads((folder / MANIFEST).read_bytes())
    for file in (Path(corpus[split]) for split in ("train", "validation", "test")):
        os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))
    monkeypatch.setattr(pipeline, "Selection", None)  # preparing again would fail
    for _ in range(2):  # the new times are remembered: files are compared once
        assert not prepare(config, progress=lambda doing, *_: stages.append(doing), say=said.append).is_new
    assert (stages, said) == (["comparing checksums of the corpus"], [])
    assert {**json.loads((folder / MANIFEST).read_bytes()), "fingerprint": manifest["fingerprint"]} == manifest
    assert _neighbours(folder) == LOCK


def test_it_says_why_data_is_prepared_again(workshop: Any) -> None:
    corpus, said = workshop.splits(workshop.numbered(5)), list[str]()

    def why(force: bool = False, **data: Any) -> str:
        prepared = prepare(workshop.config(corpus, **data), force, say=said.append)
        assert prepared.is_new
        folder, _, reason = said.pop().partition(": ")
        assert (folder, said) == (str(prepared.folder), [])
        return reason

    prepare(workshop.config(corpus), say=said.append)
    assert said == []  # there was nothing before
    settings = "this replaces data that was prepared with other settings (%s); another `name` would keep both"
    assert why(max_length=50) == settings % "data.max_length"
    changed = {"max_length": 50, "cleaning": {"max_ratio": 5}, "tokenizer": {"kind": "character"}}
    assert why(force=True, **changed) == settings % "data.cleaning.max_ratio, tokenizer.kind, tokenizer.min_frequency"
    file = Path(corpus["test"])
    file.write_text(file.read_text().replace("20001", "20003"))
    assert why(**changed) == f"changed since the data was prepared: {file}; preparing it again"
    workshop.table("splits-train", workshop.numbered(7))
    assert why(**changed) == f"changed since the data was prepared: {corpus['train']}; preparing it again"
    manifest = workshop.folder / "prepared" / "work" / MANIFEST
    manifest.write_text("{")
    assert why(**changed) == "the data is prepared again: the manifest is damaged"
    prepare(workshop.config(corpus, **changed), force=True, say=said.append)
    assert said == []  # nothing has changed


def test_force_prepares_again_with_the_same_result(workshop: Any) -> None:
    config = workshop.config(workshop.whole(workshop.numbered(50)))
    before = _contents(prepare(config).folder)
    again = prepare(config, force=True)
    assert again.is_new
    after = _contents(again.folder)
    del before[MANIFEST], after[MANIFEST]  # it contains the duration
    assert before == after


@pytest.mark.parametrize(
    "damage",
    [
        lambda manifest: manifest.write_text("{"),
        lambda manifest: manifest.write_text("[]"),
        lambda manifest: manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 0})),
        lambda manifest: shutil.rmtree(manifest.parent),
    ],
)
def test_unreadable_data_is_reported_and_prepared_again(workshop: Any, damage: Callable[[Path], None]) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    folder = prepare(config).folder
    damage(folder / MANIFEST)
    with pytest.raises(TmtError) as caught:
        Prepared.open(folder)
    assert "tmt prepare" in caught.value.remedy
    assert prepare(config).is_new
    assert len(Prepared.open(folder).store("train")) == 5


def test_the_manifest_lists_the_files_with_checksums(workshop: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    files = workshop.prepare(corpus).manifest.files
    assert [file.path for file in files] == [corpus[split] for split in ("train", "validation", "test")]
    for file in files:
        output = subprocess.run(["sha256sum", file.path], capture_output=True, text=True, check=True).stdout
        assert output.split()[0] == file.sha256


def test_without_its_corpus_prepared_data_is_used(workshop: Any) -> None:
    corpus, said = workshop.splits(workshop.numbered(5)), list[str]()
    whole = workshop.folder / "whole"
    whole.mkdir()
    folder = workshop.prepare(corpus).folder
    files = [Path(corpus[split]) for split in ("train", "validation", "test")]

    def not_found(**data: Any) -> None:
        with pytest.raises(TmtError, match="no such file"):
            prepare(workshop.config({**corpus, **data.pop("corpus", {})}, **data))

    for number, file in enumerate(files):  # one of them, then all
        file.rename(whole / file.name)
        prepared = prepare(workshop.config(corpus), say=said.append)
        assert not prepared.is_new
        assert len(prepared.store("train")) == 5
        names = ", ".join(map(str, files[: number + 1]))
        note = "using this data, which was prepared before with the same settings; not found now: "
        assert said.pop() == f"{folder}: {note}{names}"
    not_found(max_length=50)
    not_found(corpus={"test": str(workshop.folder / "misspelt.jsonl")})
    with pytest.raises(TmtError, match="no such file"):
        prepare(workshop.config(corpus), force=True)
    files[2].write_text((whole / files[2].name).read_text().replace("20001", "20003"))
    not_found()  # what is here has changed
    files[2].unlink()
    shutil.rmtree(folder)
    not_found()


# Errors


def _old_data(workshop: Any) -> tuple[Any, dict[str, bytes]]:
    """A config with new data, and the content of the existing prepared data."""
    folder = workshop.prepare(workshop.splits(workshop.numbered(5))).folder
    return workshop.config(workshop.splits(workshop.numbered(40), name="new")), _contents(folder)


def test_bad_input_leaves_old_data_unchanged(workshop: Any) -> None:
    config, before = _old_data(workshop)
    with Path(config.data.corpus[0].train[0]).open("a") as file:
        file.write("no JSON\n")
    with pytest.raises(TmtError, match="invalid JSON") as caught:
        prepare(config)
    assert caught.value.place.endswith(":41")
    folder = workshop.folder / "prepared" / "work"
    assert _contents(folder) == before
    assert _neighbours(folder) == LOCK


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "name", ["0-train-000000-0000.text", "0-test-000000-0000.keys", "target.ids", "source.offsets", "source.txt"]
)
def test_a_full_disk_leaves_old_data_unchanged(workshop: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    config, before = _old_data(workshop)
    plain = Path.open

    def full(path: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        return plain(FULL if path.name == name and "w" in mode else path, mode, *rest, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(TmtError, match="the disk is full while writing prepared data") as caught:
        prepare(config)
    assert "Free some space" in caught.value.remedy
    assert "Nothing of this preparation was kept" in caught.value.remedy
    monkeypatch.undo()
    folder = workshop.folder / "prepared" / "work"
    assert _contents(folder) == before
    assert _neighbours(folder) == LOCK


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_an_error_between_the_two_renames_restores_old_data(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    config, before = _old_data(workshop)
    plain = Path.replace

    def rename(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise error
        return plain(path, target)

    monkeypatch.setattr(replace, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "replace", rename)
    with pytest.raises((TmtError, KeyboardInterrupt)):
        prepare(config)
    folder = workshop.folder / "prepared" / "work"
    assert _contents(folder) == before
    assert _neighbours(folder) == LOCK


def test_old_data_that_a_killed_run_had_moved_is_restored(workshop: Any) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    folder = prepare(config).folder
    folder.rename(folder.with_name(".work.999999999.old"))
    assert not prepare(config).is_new
    assert _neighbours(folder) == LOCK


def test_a_folder_that_cannot_be_created_is_reported(workshop: Any) -> None:
    (workshop.folder / "prepared").write_text("a file")
    with pytest.raises(TmtError, match="creating the folder") as caught:
        workshop.prepare(workshop.splits(workshop.numbered(5)))
    assert caught.value.place


# Other processes

SCRIPT = """
import json, sys, time
from transformer_mt.config.schema import Config
from transformer_mt.data.prepare import prepare

def progress(doing, pairs, share):
    if doing.startswith(sys.argv[2]):
        print("now", flush=True)
        time.sleep(float(sys.argv[3]))

if __name__ == "__main__":
    config = Config.model_validate(json.load(open(sys.argv[1])))
    print(prepare(config, False, progress).is_new, flush=True)
"""


@pytest.fixture
def elsewhere(workshop: Any) -> Callable[..., subprocess.Popen[str]]:
    """Prepares in another process, which prints `now` at a stage and then sleeps for some seconds."""
    script = workshop.folder / "script.py"
    script.write_text(SCRIPT)

    def start(config: Any, stage: str, seconds: float) -> subprocess.Popen[str]:
        file = workshop.folder / "config.json"
        file.write_text(config.model_dump_json())
        command = [sys.executable, script, file, stage, str(seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})

    return start


@pytest.mark.parametrize("stage", ["reading test", "tokenising", "writing ids"])
def test_killed_in_the_middle_leaves_old_data_unchanged(
    workshop: Any, elsewhere: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    folder = workshop.prepare(workshop.splits(workshop.numbered(5))).folder
    before = _contents(folder)
    config = workshop.config(workshop.splits(workshop.numbered(10_000), name="new", test=workshop.numbered(9, 20_000)))
    with elsewhere(config, stage, 60) as process:
        assert process.stdout.readline() == "now\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert _contents(folder) == before
    (leftover,) = _neighbours(folder) - LOCK
    assert leftover.startswith(f".work.{process.pid}-")
    new = prepare(workshop.config(workshop.splits(workshop.numbered(40), name="new")))
    assert len(new.store("train")) == 40
    assert _neighbours(folder) == LOCK


def test_a_second_process_waits_until_the_first_has_prepared(
    workshop: Any, elsewhere: Callable[..., subprocess.Popen[str]]
) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    messages = []
    with elsewhere(config, "tokenising", 0.5) as other:
        assert other.stdout.readline() == "now\n"
        started = time.monotonic()
        ours = prepare(config, False, lambda doing, *_: messages.append(doing))
        waited = time.monotonic() - started
        assert other.stdout.read().endswith("True\n")
    assert not ours.is_new
    assert messages == ["waiting for another process that prepares this data"]
    assert waited > 0.3


def test_prepare_works_on_a_file_system_without_locks(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert len(prepare(workshop.config(workshop.splits(workshop.numbered(5)))).store("train")) == 5


def test_data_in_a_read_only_folder_is_used(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config, changed = (workshop.config(workshop.splits(workshop.numbered(5)), max_length=size) for size in (20, 30))
    folder = prepare(config).folder
    before = _contents(folder)

    def refused(plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Path, *rest: Any, **more: Any) -> Any:
            if Path(path).parent == folder.parent and Path(path).name.startswith(".work."):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return plain(path, *rest, **more)

        return call

    monkeypatch.setattr(os, "open", refused(os.open))
    monkeypatch.setattr(Path, "mkdir", refused(Path.mkdir))
    assert not prepare(config).is_new
    with pytest.raises(TmtError, match="no permission while writing prepared data"):
        prepare(changed)
    assert _contents(folder) == before


@pytest.mark.skipif(sys.platform == "win32", reason="file names are Unicode on this system")
def test_a_file_name_that_is_not_utf8_works(workshop: Any) -> None:
    corpus = workshop.splits([*workshop.numbered(5), ("eins", "one " * 30)])
    odd = Path(os.fsdecode(os.fsencode(workshop.folder) + b"/na\xefve.jsonl"))
    Path(corpus["train"]).rename(odd)
    prepared = workshop.prepare({**corpus, "train": str(odd)})
    assert prepared.manifest.files[0].path.endswith("na\ufffdve.jsonl")
    assert prepared.manifest.report["outliers"]["length ratio"]["places"][0].endswith("na\ufffdve.jsonl:6")


# Other files


@pytest.mark.parametrize("kind", ["a folder", "a file"])
def test_other_files_are_never_replaced(workshop: Any, kind: str) -> None:
    place = workshop.folder / "prepared" / "work"
    other = place / "checkpoints" / "model.safetensors" if kind == "a folder" else place
    other.parent.mkdir(parents=True)
    other.write_text("important")
    for force in (False, True):
        with pytest.raises(TmtError, match="there is a file" if kind == "a file" else "contains files") as caught:
            prepare(workshop.config(workshop.splits(workshop.numbered(5))), force)
        assert "data.prepared" in caught.value.remedy
    assert other.read_text() == "important"
    assert _neighbours(place) == LOCK


def test_prepared_data_without_a_manifest_is_not_replaced(workshop: Any) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    folder = prepare(config).folder
    (folder / MANIFEST).unlink()
    with pytest.raises(TmtError, match="no prepared data") as caught:
        prepare(config)
    assert f"rm -r '{folder}'" in caught.value.remedy


def test_a_corpus_inside_the_folder_of_prepared_data_is_never_replaced(workshop: Any) -> None:
    config = workshop.config(workshop.splits(workshop.numbered(5)))
    folder = prepare(config).folder
    inside = folder / "mine.jsonl"
    Path(config.data.corpus[0].train[0]).rename(inside)
    with pytest.raises(TmtError, match="a file of the corpus is inside the folder of prepared data") as caught:
        workshop.prepare({**workshop.splits([]), "train": str(inside)})
    assert caught.value.place == str(inside)
    assert inside.exists()


def test_a_message_about_a_corpus_folder_does_not_suggest_deleting_it(workshop: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    inside = workshop.folder / "prepared" / "work" / "mine.jsonl"
    inside.parent.mkdir(parents=True)
    Path(corpus["train"]).rename(inside)
    with pytest.raises(TmtError, match="a file of the corpus is inside") as caught:
        workshop.prepare({**corpus, "train": str(inside)})
    assert "rm -r" not in caught.value.remedy


def test_a_manifest_of_another_program_is_not_replaced(workshop: Any) -> None:
    place = workshop.folder / "prepared" / "work"
    place.mkdir(parents=True)
    (place / MANIFEST).write_text('{"manifest_version": 3}')
    (place / "code.js").write_text("mine")
    with pytest.raises(TmtError, match="no prepared data"):
        workshop.prepare(workshop.splits(workshop.numbered(5)))
    assert (place / "code.js").read_text() == "mine"


def test_a_symbolic_link_to_the_data_folder_is_kept(workshop: Any) -> None:
    big, link = workshop.folder / "big", workshop.folder / "prepared" / "work"
    big.mkdir()
    link.parent.mkdir()
    link.symlink_to(big)
    for count in (5, 6, 7):
        assert len(workshop.prepare(workshop.splits(workshop.numbered(count))).store("train")) == count
        assert link.is_symlink()
        assert (big / MANIFEST).is_file()


def test_a_tilde_means_the_home_folder(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(workshop.folder))
    folder = workshop.prepare(workshop.splits(workshop.numbered(5)), prepared="~/there").folder
    assert folder == workshop.folder / "there" / "work"


@pytest.mark.parametrize(
    ("key", "value"), [("splits", [1]), ("files", None), ("parts", [["a", 1.0]]), ("fingerprint", 3), ("report", [])]
)
def test_a_damaged_manifest_is_reported_and_prepared_again(workshop: Any, key: str, value: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    prepared = workshop.prepare(corpus)
    file = prepared.folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises(TmtError, match="the manifest is damaged"):
        Prepared.open(prepared.folder)
    assert workshop.prepare(corpus).is_new


def test_a_report_of_another_version_is_written_again(workshop: Any) -> None:
    corpus = workshop.splits(workshop.numbered(5))
    file = workshop.prepare(corpus).folder / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "report": {"other": 1}}))
    assert workshop.prepare(corpus).is_new


@pytest.mark.parametrize(("content", "message"), [(b"\xff\n", "not UTF-8"), (b"one\n", "1 sources and 3 references")])
def test_a_damaged_text_file_is_reported(workshop: Any, content: bytes, message: str) -> None:
    prepared = workshop.prepare(workshop.splits(workshop.numbered(5)))
    (prepared.folder / "test" / "source.txt").write_bytes(content)
    with pytest.raises(TmtError, match=message) as caught:
        prepared.raw("test")
    assert "--force" in caught.value.remedy


def test_read_only_data_of_a_corpus_with_other_times_is_used(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = workshop.whole(workshop.numbered(40))
    config = workshop.config(corpus)
    folder = prepare(config).folder
    before = _contents(folder)
    os.utime(corpus["files"], ns=(1, 1))

    def refused(*_: object) -> None:
        raise PermissionError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("transformer_mt.data.current.replace_text", refused)
    assert not prepare(config).is_new
    assert _contents(folder) == before


def test_a_file_that_is_changed_while_it_is_read_is_an_error(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of the old content would cut lines of the new one in two."""
    corpus = workshop.whole(workshop.numbered(40))
    config, file = workshop.config(corpus), Path(corpus["files"])
    monkeypatch.setattr(selection.Selection, "__init__", lambda *_: pytest.fail("goes on"))

    def progress(doing: str, *_: object) -> None:
        if doing.startswith("reading"):
            file.write_text(file.read_text().replace("Satz", "Wort"))
            os.utime(file, ns=(1, 1))

    with pytest.raises(TmtError, match=r"corpus\.jsonl: the file was changed while it was read"):
        prepare(config, progress=progress)


def test_a_file_that_is_changed_before_its_checksum_is_computed_is_an_error(
    workshop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checksum must be that of the text that was prepared."""
    corpus = workshop.whole(workshop.numbered(40))
    config, file = workshop.config(corpus), Path(corpus["files"])
    of_file = prepared.CorpusFile.of

    def changed(path: Path) -> Any:
        file.write_text(file.read_text().replace("Satz", "Wort"))
        os.utime(file, ns=(1, 1))
        return of_file(path)

    monkeypatch.setattr(prepared.CorpusFile, "of", changed)
    with pytest.raises(TmtError, match=r"corpus\.jsonl: the file was changed while it was read"):
        prepare(config)
    assert not prepared.prepared_folder(config).exists()


def test_a_run_that_is_interrupted_at_its_end_is_kept(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksums of a large corpus take minutes."""
    config, said = workshop.config(workshop.whole(workshop.numbered(40))), list[str]()
    with monkeypatch.context() as patched:
        patched.setattr(prepared.CorpusFile, "of", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare(config, say=said.append)
    prepare(config, say=said.append)
    assert [message.split(";")[0] for message in said] == [
        "the finished part is kept",
        "an interrupted run has prepared a part of this data",
    ]


def test_a_split_beside_named_files_is_said_to_have_no_effect(workshop: Any) -> None:
    said = list[str]()
    prepare(workshop.config(workshop.splits(workshop.numbered(9))), say=said.append)
    assert said == []
    prepared = prepare(
        workshop.config({**workshop.splits(workshop.numbered(9)), "split": {"test": 2}}), say=said.append
    )
    assert "`split` has no effect beside `train`" in said[0]
    assert prepared.splits == ("train", "validation", "test")


@pytest.mark.parametrize(("key", "default"), [("entities", False), ("language", "report"), ("invalid", "error")])
def test_data_prepared_before_a_key_existed_are_up_to_date(workshop: Any, key: str, default: object) -> None:
    other = not default if isinstance(default, bool) else "drop"
    settings = (
        settings_of(workshop.config({"kind": "phrasebook"}, cleaning={key: value})) for value in (default, other)
    )
    assert [key in one["data"]["cleaning"] for one in settings] == [False, True]
