"""`tmt train` and `tmt average` as users run them: output, files and errors."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import transformer_mt
from transformer_mt.cli.average import average
from transformer_mt.cli.train import train
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.data.prepare import prepare
from transformer_mt.data.prepared import prepared_folder
from transformer_mt.errors import TmtError
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.state import TrainState
from transformer_mt.training.trainer import Trainer
from transformer_mt.workflows.interruption import interrupted_error

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def finished(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of two epochs and its config."""
    folder = tmp_path_factory.mktemp("finished")
    train(numbers.file(folder, bleu_sentences=6, keep_last=2), None, folder / "run")
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(finished / "run", tmp_path / "run"))


def test_a_run_writes_all_documented_files(finished: Path):
    folder = finished / "run"
    for name in (
        *("config.yaml", "run.json", "metrics.jsonl", "train.log", "plots/loss.png", "plots/learning_rate.png"),
        *("plots/bleu.png", f"model/{WEIGHTS}", "model/config.yaml", "checkpoints/step-0000022/SHA256SUMS"),
    ):
        assert (folder / name).stat().st_size > 0, name
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [records[place]["event"] for place in (0, -2, -1)] == ["started", "finished", "test"]
    assert 50 << 20 < records[-2]["peak_memory"] < 8 << 30  # bytes: PyTorch alone needs more than 50 MiB
    assert (
        load_file(folder / "model" / WEIGHTS).keys() == load_file(folder / "checkpoints/step-0000022" / WEIGHTS).keys()
    )


def test_results_go_to_stdout_and_the_rest_to_stderr(numbers: Any, tmp_path: Path, capfd):
    train(numbers.file(tmp_path, bleu_sentences=6), None, tmp_path / "run")
    out, told = capfd.readouterr()
    assert "BLEU" in out
    assert "chrF" in out
    assert len(out.splitlines()) <= 4
    kept = (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    assert all(line in kept for line in out.splitlines())
    for line in ("run        ", "400 training pairs en-de", "parameters", "a step needs about", "epoch       step"):
        assert line in told
    assert told.count("  ->  ") == 6  # three samples after each of two validations
    *_, done, model, plots, translate, longer, scores = told.splitlines()
    assert re.fullmatch(r"done       max_epochs 2 reached: 22 updates in 0:\d\d, best valid loss \d\.\d\d\d", done)
    assert model == f"model      {tmp_path / 'run' / 'model'} (checkpoint of step 22)"
    assert plots == f"plots      {tmp_path / 'run' / 'plots'}"
    assert translate == f"next       tmt translate --model {tmp_path / 'run'}"
    assert longer == "           to train on, repeat the command with --set training.max_epochs=4"
    assert scores == "scores     of test, translated with greedy search"
    assert not {"\r", "\x1b", "\x08"} & set(out + told)
    lines = [line for line in told.splitlines() if "  ->  " not in line]  # samples are whole
    assert max(map(len, lines)) <= max(120, len(str(tmp_path)) + 60)


def test_lost_metrics_cost_no_scores(numbers: Any, tmp_path: Path, capfd):
    config = numbers.file(tmp_path, max_epochs=1)
    train(config, None, tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    capfd.readouterr()
    train(config, None, tmp_path / "run")
    out, told = capfd.readouterr()
    assert "note       the curves are not drawn: " in told
    assert "metrics.jsonl: nothing is measured yet" in told
    assert "plots  " not in told
    assert "BLEU" in out


def test_a_cosine_that_has_ended_suggests_fresh(numbers: Any, tmp_path: Path, capfd):
    train(numbers.file(tmp_path, schedule="cosine", max_epochs=1, warmup_steps=11), None, tmp_path / "run")
    told = capfd.readouterr().err
    assert "the learning rate only rises: training ends with update 11, and training.warmup_steps is 11" in told
    assert "for a longer run, start again with --fresh --set training.max_epochs=2\n" in told
    assert "to train on" not in told
    train(tmp_path / "numbers.yaml", ["training.max_epochs=2"], tmp_path / "run")
    told = capfd.readouterr().err
    assert "changed since the run started (old | new): training.max_epochs: 1 | 2" in told
    assert "the learning rate of further updates jumps, because its schedule now ends at another step" in told


def test_a_cosine_with_another_end_is_reported(numbers: Any, tmp_path: Path, capfd):
    file = numbers.file(tmp_path, schedule="cosine", max_epochs=2, max_steps=11)
    train(file, None, tmp_path / "run")
    capfd.readouterr()
    train(file, ["training.max_steps=null"], tmp_path / "run")
    told = capfd.readouterr().err
    assert "training.max_steps: 11 | None" in told
    assert "the learning rate of further updates jumps" in told


def test_a_finished_run_says_so_and_can_continue(finished: Path, run: Path, capfd):
    config, before = finished / "numbers.yaml", (run / "metrics.jsonl").read_text(encoding="utf-8")
    train(config, None, run)
    out, told = capfd.readouterr()
    assert "training is already complete" in told
    assert "changed since" not in told
    assert "done       max_epochs 2 reached: 22 updates in 0:" in told
    assert "to train on, repeat the command with --set training.max_epochs=4" in told
    assert "BLEU" in out
    train(config, ["training.max_epochs=3"], run)
    told = capfd.readouterr().err
    assert "resumed at step 22 (epoch 3, 0 of 11 updates done)" in told
    assert "changed since the run started (old | new): training.max_epochs: 2 | 3" in told
    assert "leaps" not in told
    assert "max_epochs 3 reached" in told
    after = (run / "metrics.jsonl").read_text(encoding="utf-8")
    assert after.startswith(before)
    assert '"step": 33' in after
    assert "resumed" in (run / "train.log").read_text(encoding="utf-8")


def test_a_finished_run_accepts_another_decoding_config(finished: Path, run: Path, capfd):
    weights = (run / "model" / WEIGHTS).read_bytes()
    train(finished / "numbers.yaml", ["decoding.beam=3"], run)
    assert "changed since the run started (old | new): decoding.beam: 1 | 3" in capfd.readouterr().err
    assert load_config(run / "model" / "config.yaml").decoding.beam == 3
    assert (run / "model" / WEIGHTS).read_bytes() == weights


def test_another_config_is_refused_and_fresh_keeps_the_old_run(finished: Path, run: Path, capfd):
    config = finished / "numbers.yaml"
    old = (run / "model" / WEIGHTS).read_bytes()
    with pytest.raises(TmtError, match=r"(?s)another config.*model\.d_ff: 32 \| 64.*--fresh"):
        train(config, ["model.d_ff=64"], run)
    assert (run / "model" / WEIGHTS).read_bytes() == old
    train(config, ["model.d_ff=64", "training.max_epochs=1"], run, fresh=True)
    assert "previous run moved to" in capfd.readouterr().err
    assert (run.with_name("run.1") / "model" / WEIGHTS).read_bytes() == old
    assert (run / "model" / WEIGHTS).read_bytes() != old


def test_a_damaged_best_checkpoint_does_not_become_the_model(finished: Path, run: Path, capfd):
    shutil.rmtree(run / "model")
    newest = run / "checkpoints" / "step-0000022" / WEIGHTS
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    train(finished / "numbers.yaml", None, run)  # repeats the second epoch, from the checkpoint before
    told = capfd.readouterr().err
    assert "is damaged (its checksum differs); using the checkpoint before it" in told
    assert "resumed at step 11" in told
    assert load_file(run / "model" / WEIGHTS).keys() == load_file(finished / "run" / "model" / WEIGHTS).keys()
    assert (run / "model" / WEIGHTS).read_bytes() == (finished / "run" / "model" / WEIGHTS).read_bytes()


def test_a_damaged_checkpoint_of_an_average_is_reported(finished: Path, run: Path, capfd):
    older = run / "checkpoints" / "step-0000011" / WEIGHTS
    older.write_bytes(older.read_bytes()[:-1] + b"?")
    train(finished / "numbers.yaml", ["training.average=last", "training.average_checkpoints=2"], run)
    told = capfd.readouterr().err
    assert f"{older} is damaged (its checksum differs): not used for the final model" in told
    assert "(checkpoint of step 22)" in told


def test_the_best_candidate_is_shipped_and_all_are_recorded(numbers: Any, tmp_path: Path, capfd):
    """A mean of checkpoints from the steep start of a training is worse than the last one."""
    options = {"max_epochs": 8, "average": "last", "learning_rate": 0.01, "bleu_sentences": 10}
    file = numbers.file(tmp_path, **options)
    report = transformer_mt.train(file, tmp_path / "run")
    told = capfd.readouterr().err
    assert "compared   40 validation sentences with greedy search" in told
    figures = {"/".join(one.names): one for one in report.compared}
    mean = next(one for one in report.compared if one.names == ["mean"])
    assert len(mean.steps) == 5
    best = max(report.compared, key=lambda one: (one.bleu, -one.loss))
    assert report.shipped == best.steps
    assert mean.bleu < best.bleu
    for one in figures.values():
        assert f"BLEU {one.bleu:6.2f}   loss {one.loss:.3f}" in told
    scored = transformer_mt.evaluate(report.model, split="validation", metrics="bleu")
    assert scored.scores["bleu"].value == pytest.approx(best.bleu), "what users get is what was compared"
    *_, start = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert start["finished"]["model"]["why"] == "highest validation BLEU"
    assert [one["bleu"] for one in start["finished"]["model"]["compared"]] == [one.bleu for one in report.compared]

    weights = (report.model / WEIGHTS).read_bytes()
    again = transformer_mt.train(file, tmp_path / "run")
    assert "compared   " not in capfd.readouterr().err, "an up-to-date model is not chosen again"
    assert (again.shipped, again.compared) == (report.shipped, report.compared)
    assert (report.model / WEIGHTS).read_bytes() == weights

    averaged = transformer_mt.average(tmp_path / "run", last=5)
    assert (averaged.steps, averaged.replaced) == (mean.steps, False)
    now, before = averaged.compared
    assert (before.bleu, now.bleu) == pytest.approx((best.bleu, mean.bleu))
    assert "tmt: compared on 40 validation sentences" in capfd.readouterr().err
    assert (report.model / WEIGHTS).read_bytes() == weights, "the better model stays"
    average(tmp_path / "run", last=5)
    assert "unchanged, because the mean of steps" in capfd.readouterr().out
    (tmp_path / "prepared").mkdir()
    moved = shutil.move(prepared_folder(load_config(file)), tmp_path / "prepared")
    with pytest.raises(TmtError, match="cannot be compared with the model of this run") as caught:
        average(tmp_path / "run", last=5)
    assert "--force" in caught.value.remedy
    assert (report.model / WEIGHTS).read_bytes() == weights
    assert transformer_mt.average(tmp_path / "run", last=5, force=True).replaced
    assert (report.model / WEIGHTS).read_bytes() != weights, "the user decides"
    shutil.move(moved, prepared_folder(load_config(file)))
    of_run = (tmp_path / "run" / "run.json").read_text()
    (tmp_path / "run" / "run.json").write_text(of_run.replace('"tokenizers": "', '"tokenizers": "0'))
    with pytest.raises(TmtError, match="its tokenizers differ now, so the mean cannot be compared") as caught:
        average(tmp_path / "run", last=1)
    assert "--fresh" not in caught.value.remedy, "tmt average has no such option"
    (tmp_path / "run" / "run.json").write_text(of_run)
    assert transformer_mt.average(tmp_path / "run", last=1).replaced, "the last checkpoint scores higher than the mean"
    record = (tmp_path / "run" / "run.json").read_text()
    average(tmp_path / "run", last=1)
    assert "unchanged, it is the checkpoint of step" in capfd.readouterr().out
    assert (tmp_path / "run" / "run.json").read_text() == record, "how the model was chosen stays on record"


def test_a_finished_run_keeps_its_model_if_a_setting_is_forgotten(numbers: Any, tmp_path: Path, capfd):
    """Repeating its command without `--set training.average=last` compares both, and removes no checkpoint."""
    file = numbers.file(tmp_path, max_epochs=3, keep_last=3, bleu_sentences=0)
    first = transformer_mt.train(file, tmp_path / "run", overrides=["training.average=last"])
    saved = sorted(one.name for one in (tmp_path / "run" / "checkpoints").iterdir())
    (mean,) = [one for one in first.compared if len(one.steps) > 1]
    capfd.readouterr()
    again = transformer_mt.train(file, tmp_path / "run", overrides=["training.keep_last=1"])
    assert sorted(one.name for one in (tmp_path / "run" / "checkpoints").iterdir()) == saved
    assert again.shipped == first.shipped, "the better one stays"
    if first.shipped == mean.steps:
        assert "model so far of 3" in capfd.readouterr().err


def test_a_model_whose_weights_are_lost_is_written_again(numbers: Any, tmp_path: Path):
    file = numbers.file(tmp_path, max_epochs=1)
    weights = transformer_mt.train(file, tmp_path / "run").model / WEIGHTS
    before = weights.read_bytes()
    weights.unlink()
    train(file, None, tmp_path / "run")
    assert weights.read_bytes() == before


def test_a_changed_data_key_is_refused_before_anything_is_prepared(finished: Path, run: Path, tmp_path: Path):
    changed = ["data.max_length=50", f"data.prepared={tmp_path / 'elsewhere'}"]
    with pytest.raises(TmtError, match=r"data\.max_length"):
        train(finished / "numbers.yaml", changed, run)
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_ctrl_c_says_whether_there_is_a_checkpoint(tmp_path: Path):
    assert "there is no checkpoint yet" in str(interrupted_error(tmp_path))
    (tmp_path / "checkpoints" / "step-0000012").mkdir(parents=True)
    assert "interrupted; the last checkpoint is of step 12" in str(interrupted_error(tmp_path))


def test_an_unknown_device_is_refused_before_anything_is_written(numbers: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(TmtError, match="no cuda device"):
        train(numbers.file(tmp_path), None, tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()


def test_tasks_of_srun_are_refused_before_anything_is_written(numbers: Any, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(TmtError, match="SLURM_STEP_NUM_TASKS is 2, but only torchrun lets processes train together"):
        train(numbers.file(tmp_path), None, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_average_writes_the_mean_of_the_last_checkpoints(run: Path, capfd):
    average(run, last=2, force=True)
    assert "mean of steps 11, 22" in capfd.readouterr().out
    parts = [load_file(run / "checkpoints" / f"step-00000{step}" / WEIGHTS) for step in (11, 22)]
    for name, tensor in load_file(run / "model" / WEIGHTS).items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)
    average(run, last=9, force=True)
    assert "averaged only the newest 2 checkpoints" in capfd.readouterr().err


def test_a_checkpoint_becomes_a_model_of_its_own(run: Path, tmp_path: Path, capfd):
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    own, both = tmp_path / "models" / "own", tmp_path / "models" / "both"
    average(run, step=[11], output=own)
    average(run, step=[22, 11, 11], output=both)
    assert capfd.readouterr().out == f"{own}: checkpoint of step 11\n{both}: mean of steps 11, 22\n"
    parts = [load_file(run / "checkpoints" / f"step-00000{step}" / WEIGHTS) for step in (11, 22)]
    for name, tensor in load_file(own / WEIGHTS).items():
        assert torch.equal(tensor, parts[0][name])
    for name, tensor in load_file(both / WEIGHTS).items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)
    assert transformer_mt.load(own).translate("eins").text is not None
    names = {file.name for file in (run / "model").glob("[!.]*")}
    assert {file.name for file in own.iterdir()} == names - {"scores.json"}
    assert {file: file.read_bytes() for file in before} == before, "the run stays as it is"


def test_a_checkpoint_that_is_not_there_or_a_folder_that_is(run: Path, tmp_path: Path):
    for arguments, message in (
        ({"step": [11, 12], "output": tmp_path / "new"}, "no checkpoint of step 12"),
        ({"step": [11], "output": tmp_path}, "this exists already"),
        ({"step": [11], "last": 2}, "--last and --step both choose checkpoints"),
        ({"output": tmp_path / "new", "force": True}, "--force has no effect"),
    ):
        with pytest.raises(TmtError, match=message):
            average(run, **arguments)
    damaged = run / "checkpoints" / "step-0000011" / WEIGHTS
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(TmtError, match="step-0000011"):
        average(run, step=[11], output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_checkpoint_is_no_model(run: Path):
    with pytest.raises(TmtError, match="this is a checkpoint, not a model") as error:
        transformer_mt.load(run / "checkpoints" / "step-0000011")
    assert f"tmt average --run {run} --step 11 --output DIR" in str(error.value)


@pytest.mark.parametrize("name", [WEIGHTS, "target/vocabulary.txt"])
def test_average_does_not_give_damaged_files_new_checksums(run: Path, name: str):
    before = load_file(run / "model" / WEIGHTS)
    file = run / "model" / name
    content = file.read_bytes()
    file.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    damaged = file.read_bytes()
    with pytest.raises(TmtError, match="checksum differs") as error:
        average(run, last=2)
    assert "move it away" in str(error.value)
    assert file.read_bytes() == damaged
    (run / "model").rename(run / "away")
    average(run, last=2)
    assert transformer_mt.load(run / "model").translate("eins").text is not None
    assert set(load_file(run / "model" / WEIGHTS)) == set(before)


def test_average_keeps_other_files_in_the_model_folder(run: Path):
    (run / "model" / "NOTES.txt").write_text("mine")
    (run / "model" / ".gitattributes").write_text("mine")
    (run / "model" / "served").mkdir()
    (run / "model" / "served" / "model.bin").write_bytes(b"exported")
    before = load_file(run / "model" / WEIGHTS)
    average(run, last=2, force=True)
    after = load_file(run / "model" / WEIGHTS)
    assert not all(torch.equal(before[name], after[name]) for name in before)
    assert (run / "model" / "NOTES.txt").read_text() == (run / "model" / ".gitattributes").read_text() == "mine"
    assert (run / "model" / "served" / "model.bin").read_bytes() == b"exported"
    assert not (run / "model" / "scores.json").exists(), "they belong to the previous weights"


def test_average_leaves_out_an_old_best_checkpoint(run: Path, capfd):
    shutil.copytree(run / "checkpoints" / "step-0000011", run / "checkpoints" / "step-0000003")
    average(run, last=9, force=True)
    assert "mean of steps 11, 22" in capfd.readouterr().out


def test_average_reports_a_damaged_checkpoint(run: Path, capfd):
    newest = run / "checkpoints" / "step-0000022" / WEIGHTS
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    average(run, last=1, force=True)
    out, told = capfd.readouterr()
    assert "model: checkpoint of step 11\n" in out
    assert f"tmt: {newest} is damaged (its checksum differs): not averaged" in told


def test_average_leaves_out_a_checkpoint_with_an_unknown_state(run: Path, capfd):
    newest = run / "checkpoints" / "step-0000022"
    (newest / "state.json").write_text("{}")
    sums = [line.split("  ") for line in (newest / "SHA256SUMS").read_text().splitlines()]
    correct = [f"{hashlib.sha256((newest / name).read_bytes()).hexdigest()}  {name}\n" for _, name in sums]
    (newest / "SHA256SUMS").write_text("".join(correct))
    average(run, last=2, force=True)
    out, told = capfd.readouterr()
    assert "model: checkpoint of step 11\n" in out
    assert "keys are missing" in told


def test_average_leaves_out_a_damaged_checkpoint_in_the_middle(run: Path, capfd):
    checkpoints = run / "checkpoints"
    shutil.copytree(checkpoints / "step-0000011", checkpoints / "step-0000005")
    older = checkpoints / "step-0000011" / WEIGHTS
    older.write_bytes(older.read_bytes()[:-1] + b"?")
    average(run, last=2, force=True)
    out, told = capfd.readouterr()
    assert "model: checkpoint of step 22\n" in out
    assert f"{older} is damaged (its checksum differs): not averaged" in told


def test_a_model_keeps_its_vocabulary_if_other_data_is_prepared(numbers: Any, tmp_path: Path, monkeypatch):
    config, train_model = numbers.file(tmp_path), Trainer.train
    place = [f"data.prepared={tmp_path / 'prepared'}"]

    def train_then_prepare(trainer: Trainer) -> TrainState:
        state = train_model(trainer)
        prepare(load_config(config, [*place, "tokenizer.max_size=4"]))
        return state

    train(config, place, tmp_path / "before")
    monkeypatch.setattr(Trainer, "train", train_then_prepare)
    with pytest.raises(TmtError, match="prepared with another config of the same name"):
        train(config, place, tmp_path / "run")
    for file in ("source/vocabulary.txt", "model.safetensors"):
        assert (tmp_path / "run" / "model" / file).read_bytes() == (tmp_path / "before" / "model" / file).read_bytes()


def test_a_run_does_not_go_on_with_another_corpus_of_the_same_config(numbers: Any, tmp_path: Path):
    """A pattern in `files` takes what is there."""
    rows, corpus = numbers.table.read_text("utf-8").splitlines(keepends=True), tmp_path / "corpus"
    corpus.mkdir()
    for name, part in (("a.tsv", rows[::2]), ("b.tsv", rows[1::2])):
        (corpus / name).write_text("".join(part), encoding="utf-8")
    values = numbers.values(bleu_sentences=6)
    values["data"].update(prepared=str(tmp_path / "prepared"))
    values["data"]["corpus"]["files"] = str(corpus / "*.tsv")
    config = Config.model_validate(values)
    run = transformer_mt.train(config, tmp_path / "run").run
    weights, longer = (run / "model" / WEIGHTS).read_bytes(), "training.max_epochs=3"
    manifest = tmp_path / "prepared" / "numbers" / "manifest.json"
    data, removed = manifest.read_bytes(), (corpus / "b.tsv").rename(tmp_path / "b.tsv")
    with pytest.raises(TmtError, match=rf"the corpus has changed since this run started: {corpus / 'b.tsv'}"):
        transformer_mt.train(config, run, overrides=longer)
    assert manifest.read_bytes() == data, "its test set is still that of the model"
    transformer_mt.evaluate([run], metrics=["chrf"])
    transformer_mt.prepare(config)
    with pytest.raises(TmtError, match=r"prepared again from a changed corpus \(.*b\.tsv\), so the model may have"):
        transformer_mt.evaluate([run], metrics=["chrf"])
    with pytest.raises(TmtError, match=r"b\.tsv, so the mean cannot be compared") as error:
        average(run, last=2)
    assert "--force" in str(error.value)
    assert (run / "model" / WEIGHTS).read_bytes() == weights
    removed.rename(corpus / "b.tsv")
    assert transformer_mt.train(config, run, overrides=longer).steps == 33


def test_average_waits_for_no_other_process(run: Path):
    holder, weights = RunDirectory(run), (run / "model" / WEIGHTS).read_bytes()
    holder.lock()
    with pytest.raises(TmtError, match="another process is training here"):
        average(run, last=2, force=True)
    holder.close()
    assert (run / "model" / WEIGHTS).read_bytes() == weights


def test_average_reports_a_folder_without_checkpoints(tmp_path: Path):
    with pytest.raises(TmtError, match="no checkpoints in this folder"):
        average(tmp_path, last=3)


# ---------------------------------------------------------------- in another process

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from transformer_mt.cli.main import run
run()
"""


def tmt(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, **options)


def test_training_continues_if_stderr_is_closed(numbers: Any, tmp_path: Path):
    rows = numbers.table.read_text(encoding="utf-8").splitlines(keepends=True)
    corpus: dict[str, Any] = {"kind": "tsv", "test": {}}
    parts = {"first": rows[:10], "second": rows[10:20], "validation": rows[20:60], "train": rows[60:]}
    for name, part in parts.items():
        file = tmp_path / f"{name}.tsv"
        file.write_text("".join(part), encoding="utf-8")
        (corpus if name in ("train", "validation") else corpus["test"])[name] = str(file)
    values = numbers.values(max_epochs=1)
    values["data"] |= {"corpus": corpus, "prepared": str(tmp_path)}
    (tmp_path / "unread.yaml").write_text(json.dumps(values), encoding="utf-8")
    command = [sys.executable, "-m", "transformer_mt.cli.main", "train", "--config", str(tmp_path / "unread.yaml")]
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        [*command, "--run-dir", str(tmp_path / "run")], stdout=writing, stderr=writing, env=environment, timeout=120
    )
    os.close(writing)
    assert done.returncode == 0
    assert "max_epochs 1 reached" in (tmp_path / "run" / "train.log").read_text(encoding="utf-8")
    records = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    assert [record["split"] for record in records if record["event"] == "test"] == ["first", "second"]


def test_a_file_size_limit_leaves_the_last_checkpoint_intact(finished: Path, run: Path):
    """The limit is large enough for the weights, but not for the moments of the optimizer."""
    weights = run / "checkpoints" / "step-0000022" / WEIGHTS
    config, more = finished / "numbers.yaml", ["--set", "training.max_epochs=3", "--run-dir", str(run)]
    limit = weights.stat().st_size + 500
    failed = tmt([sys.executable, "-c", LIMITED, str(limit), "train", "--config", str(config), *more])
    assert failed.returncode == 2, failed.stderr
    assert "while writing the checkpoint of step 33" in failed.stderr
    assert f"The last good checkpoint is {weights.parent}" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert {path.name for path in (run / "checkpoints").iterdir()} == {"step-0000011", "step-0000022"}
    train(config, more[1:2], run)
    assert (run / "checkpoints" / "step-0000033").is_dir()


def test_a_full_disk_leaves_the_last_checkpoint_intact(finished: Path, run: Path, tmp_path: Path):
    mounted = tmp_path / "small"
    mounted.mkdir()
    size = sum(path.stat().st_size + 4096 for path in run.rglob("*") if path.is_file()) + 30_000
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or tmt([*command, 'mount -t tmpfs tmpfs "$0"', str(mounted)]).returncode:
        pytest.skip("users cannot mount a file system here")
    program = (
        "import sys; from pathlib import Path; from transformer_mt.training.checkpoint import Checkpoints;"
        "from transformer_mt.cli import main; code = main.main(sys.argv[2:]);"
        "saved = Checkpoints(Path(sys.argv[1], 'checkpoints')); print('STEPS', saved.undamaged()[0]); sys.exit(code)"
    )
    script = 'mount -t tmpfs -o size="$0" tmpfs "$1" && cp -r "$2"/. "$1" && shift 2 && exec "$@"'
    arguments = ["train", "--config", str(finished / "numbers.yaml"), "--run-dir", str(mounted)]
    arguments += ["--set", "training.max_epochs=9", "--set", "training.keep_last=9"]
    failed = tmt(
        [*command, script, str(size), str(mounted), str(run), sys.executable, "-c", program, str(mounted), *arguments]
    )
    assert failed.returncode == 2, failed.stderr
    assert "the disk is full while writing" in failed.stderr
    assert "Traceback" not in failed.stderr
    steps = json.loads(failed.stdout.split("STEPS ")[1])
    assert {11, 22} <= set(steps)


def test_tensorboard_events_are_written_if_configured(numbers: Any, tmp_path: Path):
    pytest.importorskip("tensorboard")
    train(numbers.file(tmp_path, max_epochs=1), ["runtime.tensorboard=true"], tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))
