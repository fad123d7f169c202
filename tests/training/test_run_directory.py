"""The run directory: which configs may continue the run, and what it records about each start."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.training import run_directory
from transformer_mt.training.ending import Candidate
from transformer_mt.training.run_directory import CHANGEABLE, FinalModel, RunDirectory
from transformer_mt.training.run_facts import _git_state, facts_of
from transformer_mt.training.schedules.constant import Constant

FILES = [{"path": "pairs.tsv", "size": 3, "sha256": "abc"}]


@pytest.fixture
def run(tmp_path: Path):
    directory = RunDirectory(tmp_path / "runs" / "one")
    yield directory
    directory.close()


def config_of(**training: object) -> Config:
    return Config.model_validate(
        {
            "name": "one",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character"},
            "training": {"max_epochs": 3, **training},
        }
    )


def test_the_saved_config_equals_the_config_of_the_run(run: RunDirectory):
    config = config_of(warmup_steps=7)
    run.open(config, facts_of(FILES))
    assert load_config(run.folder / "config.yaml") == config


def test_another_config_is_refused_with_the_changed_keys(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    other = config_of(warmup_steps=9, label_smoothing=0.2, max_epochs=5)
    with pytest.raises(TmtError, match="a run with another config") as failure:
        run.open(other, facts_of(FILES))
    message = str(failure.value)
    assert "training.warmup_steps: 4000 | 9" in message
    assert "training.label_smoothing: 0.1 | 0.2" in message
    assert "max_epochs" not in message
    assert "--fresh" in message
    assert failure.value.exit_code == 2
    assert load_config(run.folder / "config.yaml") == config_of()


def test_the_file_of_the_run_may_be_edited_only_where_a_config_may_change(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    file = run.folder / "config.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("warmup_steps: 4000", "warmup_steps: 9"), encoding="utf-8")
    with pytest.raises(TmtError, match=r"training.warmup_steps: 4000 \| 9"):
        run.open(load_config(file), facts_of(FILES))
    run.open(config_of(), facts_of(FILES))
    assert load_config(file) == config_of()
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("max_epochs: 3", "max_epochs: 4"), encoding="utf-8")
    assert run.open(load_config(file), facts_of(FILES)) == ["training.max_epochs: 3 | 4"]


def test_a_run_without_its_config_file_still_knows_its_config_and_corpus(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    (run.folder / "config.yaml").unlink()
    with pytest.raises(TmtError, match=r"training.warmup_steps: 4000 \| 9"):
        run.open(config_of(warmup_steps=9), facts_of(FILES))
    with pytest.raises(TmtError, match="the corpus has changed"):
        run.open(config_of(), facts_of([{**FILES[0], "sha256": "other"}]))
    assert run.open(config_of(), facts_of(FILES)) == []


def test_limits_and_numbers_of_checkpoints_may_change(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    later = config_of(max_epochs=9, max_steps=5, patience=2, keep_last=7, average="last")
    changed = run.open(later, facts_of(FILES))
    assert {line.partition(":")[0] for line in changed} == {
        f"training.{key}" for key in ("max_epochs", "max_steps", "patience", "keep_last", "average")
    }
    assert load_config(run.folder / "config.yaml") == later


def test_validations_may_come_at_other_steps_if_the_learning_rate_does_not_depend_on_them(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    assert run.open(config_of(validate_every=500), facts_of(FILES)) == ["training.validate_every: None | 500"]
    other = RunDirectory(run.folder.with_name("plateau"))
    other.open(config_of(schedule="plateau"), facts_of(FILES))
    with pytest.raises(TmtError, match=r"training\.validate_every: None \| 500"):
        other.open(config_of(schedule="plateau", validate_every=500), facts_of(FILES))
    other.close()


def test_so_it_is_with_each_schedule_that_reads_validations(run: RunDirectory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Constant, "reads_validation", True)
    run.open(config_of(schedule="constant"), facts_of(FILES))
    with pytest.raises(TmtError, match=r"training\.validate_every: None \| 500"):
        run.open(config_of(schedule="constant", validate_every=500), facts_of(FILES))


def test_accumulation_may_change_if_an_update_stays_as_large_as_in_an_earlier_start(run: RunDirectory):
    run.open(config_of(), facts_of(FILES, processes=4))
    assert run.open(config_of(accumulate=4), facts_of(FILES)) == ["training.accumulate: 1 | 4"]
    run.open(config_of(accumulate=2), facts_of(FILES, processes=2))
    for accumulate in (1, 3):
        with pytest.raises(TmtError, match=rf"training.accumulate: 2 \| {accumulate}"):
            run.open(config_of(accumulate=accumulate), facts_of(FILES, processes=2))


def test_a_refused_config_names_the_way_to_train_the_model_further(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))

    def remedy() -> str:
        with pytest.raises(TmtError, match="a run with another config") as failure:
            run.open(config_of(warmup_steps=9), facts_of(FILES))
        return failure.value.remedy

    assert "start_from" not in remedy(), "there is no model"
    run.checkpoints.path(5).mkdir(parents=True)
    assert "make one with tmt average --run " in remedy()
    run.model.mkdir()
    (run.model / "model.safetensors").touch()
    assert f"start a run of another name with training.start_from={run.folder}." in remedy()
    assert "tmt average" not in remedy()


def test_keys_that_affect_the_monitored_bleu_may_not_change(run: RunDirectory):
    run.open(config_of(bleu_sentences=20), facts_of(FILES))
    run.open(config_of(bleu_sentences=30), facts_of(FILES))  # BLEU is only shown: the loss decides
    other = RunDirectory(run.folder.with_name("bleu"))
    other.open(config_of(bleu_sentences=20, monitor="bleu"), facts_of(FILES))
    with pytest.raises(TmtError, match=r"training\.bleu_sentences: 20 \| 30"):
        other.open(config_of(bleu_sentences=30, monitor="bleu"), facts_of(FILES))
    longer, wider = ({"decoding": {key: 3}} for key in ("no_repeat_ngram", "beam"))
    same = config_of(bleu_sentences=20, monitor="bleu").model_dump()
    with pytest.raises(TmtError, match=r"decoding\.no_repeat_ngram: 0 \| 3"):
        other.open(Config.model_validate({**same, **longer}), facts_of(FILES))
    other.open(Config.model_validate({**same, **wider}), facts_of(FILES))  # validation always uses greedy search
    other.close()


def test_a_file_system_without_locks_works(run: RunDirectory, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    run.open(config_of(), facts_of(FILES))
    assert load_config(run.folder / "config.yaml") == config_of()


def test_changeable_keys_exist():
    keys = Config.model_fields
    for key in CHANGEABLE:
        section, _, name = key.partition(".")
        assert section in keys
        assert not name or name in keys[section].annotation.model_fields


def test_a_corpus_that_has_changed_is_refused(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    moved = [{**FILES[0], "path": "elsewhere/pairs.tsv"}]
    run.open(config_of(), facts_of(moved))
    changed = [{**moved[0], "sha256": "abd"}]
    with pytest.raises(TmtError, match=r"the corpus has changed since this run started: elsewhere/pairs\.tsv"):
        run.open(config_of(), facts_of(changed))


def file_of(path: str, sha256: str = "", version: str = "") -> dict[str, object]:
    return {"path": path, "size": 9, "sha256": sha256, "version": version}


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ([file_of("a", "1")], "b"),
        ([file_of("b", "2")], "a"),
        ([file_of("a", "2"), file_of("b", "1")], "the same files, in another order or number"),
        ([file_of("a", "1"), file_of("b", "2"), file_of("c", "1")], "c"),
        ([file_of("a", "1"), file_of("b", "1")], "b"),
    ],
    ids=["one removed", "the first removed", "exchanged", "one added", "one a copy of the other"],
)
def test_other_files_are_another_corpus(run: RunDirectory, now: list[dict[str, object]], named: str):
    run.open(config_of(), facts_of([file_of("a", "1"), file_of("b", "2")]))
    with pytest.raises(TmtError) as error:
        run.open(config_of(), facts_of(now))
    assert error.value.message.startswith("the corpus has changed since this run started: ")
    assert named in error.value.message.rpartition(": ")[2]


def test_a_file_at_an_address_is_known_by_its_version(run: RunDirectory):
    run.open(config_of(), facts_of([file_of("https://a", version="1")]))
    run.open(config_of(), facts_of([file_of("https://a", version="1")]))
    with pytest.raises(TmtError, match="the corpus has changed since this run started: https://a"):
        run.open(config_of(), facts_of([file_of("https://a", version="2")]))


def test_other_tokenizers_of_the_same_corpus_are_refused(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))  # as an older version, which wrote no checksum
    run.open(config_of(), facts_of(FILES, tokenizers="1"))
    run.open(config_of(), facts_of(FILES, tokenizers="1"))
    with pytest.raises(TmtError, match="its tokenizers differ now"):
        run.open(config_of(), facts_of(FILES, tokenizers="2"))


@pytest.mark.parametrize("corpus", ["text", 3, None, [1], [{"path": "pairs.tsv"}]])
def test_damaged_facts_of_an_earlier_start_do_not_stop_a_run(run: RunDirectory, corpus: object):
    run.open(config_of(), facts_of(FILES))
    (run.folder / "run.json").write_text(json.dumps([{"corpus": corpus}]), encoding="utf-8")
    run.open(config_of(), facts_of(FILES))


@pytest.mark.parametrize("record", ["5", '{"steps": 5, "by": "average"}', '{"steps": [5]}', "[]", "{"])
def test_a_damaged_record_of_the_model_means_that_it_is_written_again(run: RunDirectory, record: str):
    run.model.mkdir(parents=True)
    (run.model / ".steps").write_text(record, encoding="utf-8")
    assert run.final_model([Candidate(["last"], [5])], {}) is None


def test_every_start_is_recorded(run: RunDirectory, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tmt", "train", "--config", "c.yaml"])
    run.open(config_of(), facts_of(FILES))
    run.open(config_of(), facts_of(FILES))
    first, second = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert first["command"] == second["command"] == ["tmt", "train", "--config", "c.yaml"]
    assert first["corpus"] == FILES
    assert first["python"] == ".".join(map(str, sys.version_info[:3]))
    import torch

    assert first["packages"]["torch"].startswith(torch.__version__.partition("+")[0])
    assert {"numpy", "sentencepiece", "sacrebleu", "safetensors", "transformer_mt"} <= set(first["packages"])
    assert first["git"]
    assert first["processor"]


def test_two_processes_cannot_train_in_one_folder(run: RunDirectory):
    pytest.importorskip("fcntl")
    run.open(config_of(), facts_of(FILES))
    other = RunDirectory(run.folder)
    for attempt in (lambda: other.open(config_of(), facts_of(FILES)), other.move_aside):
        with pytest.raises(TmtError, match="another process is training here"):
            attempt()
    run.close()
    other.open(config_of(), facts_of(FILES))
    other.close()


def test_fresh_keeps_all_previous_runs(run: RunDirectory):
    assert run.move_aside() is None
    for number in (1, 2, 3):
        run.open(config_of(warmup_steps=number), facts_of(FILES))
        assert run.move_aside() == run.folder.with_name(f"one.{number}")
        assert not run.folder.exists()
    assert "warmup_steps: 2" in (run.folder.with_name("one.2") / "config.yaml").read_text(encoding="utf-8")


def test_fresh_stays_on_the_disk_that_a_link_leads_to(tmp_path: Path):
    large, link = tmp_path / "large" / "one", tmp_path / "one"
    large.mkdir(parents=True)
    link.symlink_to(large)
    for number in (1, 2):
        run = RunDirectory(link)
        run.open(config_of(warmup_steps=number), facts_of(FILES))
        assert run.move_aside() == large.with_name(f"one.{number}")
        assert link.is_symlink()
        assert not list(large.iterdir())
        run.close()
    assert "warmup_steps: 2" in (large.with_name("one.2") / "config.yaml").read_text(encoding="utf-8")


def test_fresh_does_not_move_the_current_folder(run: RunDirectory, monkeypatch):
    """Files with relative names would then be written to the moved folder."""
    run.open(config_of(), facts_of(FILES))
    (run.folder / "plots").mkdir()
    for place, name in ((run.folder, "."), (run.folder / "plots", "..")):
        monkeypatch.chdir(place)
        with pytest.raises(TmtError, match="--fresh would rename the current folder"):
            RunDirectory(Path(name)).move_aside()
    assert run.folder.is_dir()


def test_a_command_line_that_is_not_text_is_recorded(run: RunDirectory, monkeypatch):
    monkeypatch.setattr("sys.argv", ["tmt", "train", "--config", "\udcbf.yaml"])  # a name in a legacy encoding
    run.open(config_of(), facts_of(FILES))
    (facts,) = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert facts["command"] == sys.argv


def test_a_run_that_was_killed_while_opening_can_be_opened(run: RunDirectory, monkeypatch):
    replace = run_directory.replace_text

    def killed(file: Path, text: str) -> None:
        if file.name == "config.yaml":
            raise KeyboardInterrupt
        replace(file, text)

    monkeypatch.setattr(run_directory, "replace_text", killed)
    with pytest.raises(KeyboardInterrupt):
        run.open(config_of(), facts_of(FILES))
    monkeypatch.undo()
    run.open(config_of(), facts_of(FILES))
    assert (run.folder / "config.yaml").is_file()


def test_a_file_instead_of_the_run_directory_is_reported(tmp_path: Path):
    (tmp_path / "runs").write_text("", encoding="utf-8")
    with pytest.raises(TmtError, match="while opening the run directory"):
        RunDirectory(tmp_path / "runs" / "one").open(config_of(), facts_of(FILES))


def test_a_folder_with_other_files_is_neither_used_nor_moved(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("important")
    directory = RunDirectory(tmp_path / "mine")
    with pytest.raises(TmtError, match="no run"):
        directory.open(config_of(), facts_of(FILES))
    with pytest.raises(TmtError, match="no run"):
        directory.move_aside()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_model_from_average_is_kept_until_there_is_a_newer_checkpoint(run: RunDirectory):
    one, two, three = ([Candidate(["last"], [step])] for step in (10, 110, 1110))
    for step in (10, 110):
        run.checkpoints.path(step).mkdir(parents=True)
    run.model.mkdir()
    assert run.final_model(two, {}) is None
    run.record_final_model(FinalModel([10, 110], "average"))
    found = run.final_model(two, {})
    assert found is not None
    assert (found.steps, found.by) == ([10, 110], "average")
    run.checkpoints.path(1110).mkdir()
    assert run.final_model(three, {}) is None
    run.record_final_model(FinalModel([1110], "train"))
    assert run.final_model(three, {}) is not None
    assert run.final_model(one, {}) is None


def test_a_model_that_was_chosen_stays_while_candidates_and_criterion_are_the_same(run: RunDirectory):
    last, mean = Candidate(["last"], [20], 2.0, 30.5), Candidate(["mean"], [10, 20], 2.1, 29.0)
    run.model.mkdir(parents=True)
    run.record_final_model(FinalModel([20], "train", "highest BLEU", [last, mean], {"decides": "bleu"}))
    again = [Candidate(one.names, one.steps) for one in (last, mean)]  # not measured again
    found = run.final_model(again, {"decides": "bleu"})
    assert found is not None
    assert found.compared == [last, mean]
    assert run.final_model(again, {"decides": "loss"}) is None
    assert run.final_model([*again, Candidate(["best"], [10])], {"decides": "bleu"}) is None


def test_a_damaged_record_of_a_run_with_checkpoints_is_not_written_over(run: RunDirectory):
    """It says what the checkpoints were trained on."""
    run.open(config_of(), facts_of(FILES))
    file = run.folder / "run.json"
    for damaged in ("[", "{}", "[]"):
        file.write_text(damaged, encoding="utf-8")
        run.open(config_of(), facts_of(FILES))  # nothing was trained yet
    run.checkpoints.path(7).mkdir(parents=True)
    file.write_text("[", encoding="utf-8")
    with pytest.raises(TmtError, match="the file is damaged") as error:
        run.open(config_of(), facts_of(FILES))
    assert error.value.place == str(file)
    assert "--fresh" in error.value.remedy
    assert file.read_text(encoding="utf-8") == "["


def test_a_trained_run_without_its_checkpoints_is_not_begun_again(run: RunDirectory):
    """Its model would be replaced by one that has learned nothing."""
    run.open(config_of(), facts_of(FILES))
    run.open(config_of(), facts_of(FILES))  # it was killed before its first checkpoint
    run.model.mkdir()
    (run.model / "model.safetensors").touch()
    for trained in (True, False):
        with pytest.raises(TmtError, match="its checkpoints are gone") as error:
            run.open(config_of(max_epochs=9), facts_of(FILES))
        assert "--fresh" in error.value.remedy
        if trained:
            run.record_finish(22, FinalModel([22], "train"))
            shutil.rmtree(run.model)
    run.checkpoints.path(22).mkdir(parents=True)
    assert run.open(config_of(max_epochs=9), facts_of(FILES))
    shutil.rmtree(run.checkpoints.folder)
    assert run.move_aside()
    assert run.open(config_of(), facts_of(FILES)) == []


def test_a_fresh_run_that_cannot_begin_leaves_the_previous_one_in_its_place(run: RunDirectory):
    run.open(config_of(), facts_of(FILES))
    place = run.move_aside()
    assert place is not None
    run.folder.mkdir()
    (run.folder / ".lock").touch()
    run.bring_back(place)
    assert not place.exists()
    assert (run.folder / "run.json").exists()
    assert RunDirectory(run.folder.with_name("new")).move_aside() is None
    place = run.move_aside()
    assert place is not None
    run.open(config_of(warmup_steps=9), facts_of(FILES))  # and then, say, its parent cannot be copied
    run.bring_back(place)
    assert "warmup_steps: 4000" in (run.folder / "config.yaml").read_text(encoding="utf-8")
    place = run.move_aside()
    assert place is not None
    run.open(config_of(), facts_of(FILES))
    run.checkpoints.path(7).mkdir(parents=True)
    run.bring_back(place)  # what was trained stays
    assert place.exists()
    assert run.checkpoints.steps() == [7]


def test_a_folder_whose_name_is_not_utf8_is_refused_before_anything_is_trained(tmp_path: Path):
    with pytest.raises(TmtError, match="the name is not UTF-8"):
        RunDirectory(tmp_path / os.fsdecode(b"n\xff")).open(config_of(), facts_of(FILES))


def test_the_finish_is_recorded_once_for_each_step(run: RunDirectory, monkeypatch):
    final = FinalModel([22], "train", "highest BLEU", [Candidate(["last"], [22], 2.0, 30.5)], {"decides": "bleu"})
    times = iter((100.0, 200.0, 300.0))
    monkeypatch.setattr(run_directory.time, "time", lambda: next(times))
    found = []
    for step in (22, 22, 33):
        run.open(config_of(), facts_of(FILES))
        run.checkpoints.path(22).mkdir(parents=True, exist_ok=True)
        run.record_finish(step, final)
        *_, last = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
        found.append(last["finished"]["time"])
    assert found == [100.0, 100.0, 200.0]
    assert last["finished"]["run"] == "one"
    assert last["finished"]["model"]["why"] == "highest BLEU"
    assert last["finished"]["model"]["compared"] == [{"names": ["last"], "steps": [22], "loss": 2.0, "bleu": 30.5}]


def test_folders_that_a_killed_process_had_moved_are_restored(tmp_path: Path):
    """On systems that cannot exchange two folders, while a model or a checkpoint was replaced."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    for folder in ("", "checkpoints"):
        (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / f".model.{int(ended.stdout)}.old").mkdir()
    (tmp_path / "checkpoints" / f".step-0000007.{int(ended.stdout)}.old").mkdir()
    directory = RunDirectory(tmp_path)
    assert directory.model.is_dir()
    assert directory.checkpoints.steps() == [7]


def test_the_commit_is_that_of_the_program_and_new_files_of_it_count(tmp_path: Path) -> None:
    """An installed program lies in a folder of the user's own repository."""

    def git(*arguments: str) -> None:
        own = ["-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *own, *arguments], cwd=tmp_path, check=True, capture_output=True)

    package = tmp_path / "venv" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    assert _git_state(package) == "none"
    git("init")
    (tmp_path / "paper.tex").write_text("a")
    git("add", "paper.tex")
    git("commit", "-m", "paper")
    assert _git_state(package) == "none"
    git("add", "venv")
    git("commit", "-m", "program")
    (tmp_path / "paper.tex").write_text("b")
    assert re.fullmatch("[0-9a-f]{7,}", _git_state(package))
    (package / "new.py").write_text("")
    assert re.fullmatch(r"[0-9a-f]{7,}\+changes", _git_state(package))
