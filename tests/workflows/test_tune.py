"""The search for hyper-parameters: equal trials for equal seeds, nothing lost if it is killed, a config that trains."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import transformer_mt as tmt
from transformer_mt.config.load import load_config
from transformer_mt.config.space import read_space
from transformer_mt.workflows.tune import TuneReport
from transformer_mt.workflows.tuning.halving import first_rung, why_stopped
from transformer_mt.workflows.tuning.results import write_best
from transformer_mt.workflows.tuning.study import Measure, Study, Trial
from transformer_mt.workflows.tuning.trial import Bench

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_plots")]
pytest.importorskip("optuna")

SPACE = {
    "training.learning_rate": {"low": 0.0005, "high": 0.03, "log": True},
    "model.dropout": {"low": 0.0, "high": 0.3, "step": 0.1},
}
LONG = 600.0  # minutes: the number of trials ends these searches
TRIALS = 4


def _config(numbers: Any, **training: Any) -> tmt.Config:
    return tmt.Config.model_validate(numbers.values(**{"max_epochs": 3, "batch_tokens": 512, **training}))


def _figures(report: TuneReport) -> list[Any]:
    return [(one.number, one.state, one.values, one.scores) for one in report.trials]


@pytest.fixture(scope="module")
def searched(numbers: Any, tmp_path_factory: pytest.TempPathFactory) -> TuneReport:
    return tmt.tune(_config(numbers), SPACE, LONG, trials=TRIALS, run_dir=tmp_path_factory.mktemp("search"))


def test_halving_stops_trials_that_are_behind(searched: TuneReport) -> None:
    assert [one.number for one in searched.trials] == list(range(TRIALS))
    own = {"training.learning_rate": 0.003, "model.dropout": 0.1}
    assert searched.trials[0].values == own, "the config's own"
    firsts = [one.scores[1] for one in searched.trials]
    goes_on = [score == min(firsts[: number + 1]) for number, score in enumerate(firsts)]
    assert set(goes_on) == {True, False}
    ends = [("complete", 3) if is_best else ("stopped", 1) for is_best in goes_on]
    assert [(one.state, one.validations) for one in searched.trials] == ends
    scores = [one.score("loss") for one in searched.ranked]
    assert scores == sorted(scores)
    assert len(searched.ranked) == TRIALS


def test_the_best_config_trains_to_the_loss_of_its_trial(searched: TuneReport, tmp_path: Path) -> None:
    assert searched.best is not None
    best = load_config(searched.best)
    assert best.name == "numbers-best"
    (winner, *_) = searched.ranked
    assert best.training.learning_rate == winner.values["training.learning_rate"]
    text = searched.best.read_text(encoding="utf-8")
    assert "  # searched: 0.0005 to 0.03, logarithmic\n" in text
    trained = tmt.train(searched.best, tmp_path / "best")
    records = [json.loads(line) for line in (trained.run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [record["loss"] for record in records if record["event"] == "validation"]
    assert losses[: winner.validations] == pytest.approx(list(winner.scores.values()))


def test_only_the_best_trial_keeps_its_weights(searched: TuneReport) -> None:
    places = sorted((searched.folder / "trials").iterdir())
    with_weights = [int(place.name) for place in places if list(place.glob("checkpoints/step-*"))]
    assert with_weights == [searched.ranked[0].number]
    assert all((place / "metrics.jsonl").stat().st_size for place in places)
    assert searched.picture is not None
    assert searched.picture.read_bytes().startswith(b"\x89PNG")


def test_the_same_search_has_the_same_trials(searched: TuneReport, numbers: Any, tmp_path: Path) -> None:
    """Also if it is begun with fewer trials and continued."""
    config = _config(numbers)
    tmt.tune(config, SPACE, LONG, trials=2, run_dir=tmp_path)
    again = tmt.tune(config, SPACE, LONG, trials=TRIALS, run_dir=tmp_path)
    assert _figures(again) == _figures(searched)
    other = tmt.tune(config, SPACE, LONG, trials=2, run_dir=tmp_path / "other", overrides="seed=2")
    assert other.trials[1].values != again.trials[1].values


def test_a_killed_search_goes_on_as_if_it_had_not_been(searched: TuneReport, numbers: Any, tmp_path: Path) -> None:
    config, space, folder = numbers.file(tmp_path, max_epochs=3, batch_tokens=512), tmp_path / "s.yaml", tmp_path / "f"
    space.write_text(json.dumps(SPACE), encoding="utf-8")
    command = [sys.executable, "-m", "transformer_mt", "tune", "--config", str(config), "--space", str(space)]
    command += ["--minutes", str(LONG), "--trials", str(TRIALS), "--run-dir", str(folder), "--json"]
    for trial, killer in (("0000", signal.SIGKILL), ("0001", signal.SIGINT)):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        metrics = folder / "trials" / trial / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and "validation" in metrics.read_text(encoding="utf-8")):
            time.sleep(0.01)
        process.send_signal(killer)
        _, said = process.communicate(timeout=60)
        assert process.returncode == (130 if killer == signal.SIGINT else -killer), said
        assert "Traceback" not in said
    with (folder / "journal.log").open("ab") as journal:
        journal.write(b'{"op_code": 4, "worker')  # what a killed process wrote of a line
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [one["loss"] for one in answer["trials"]] == [one.score("loss") for one in searched.trials]
    assert [one["values"] for one in answer["trials"]] == [one.values for one in searched.trials]


def _newest_step(folder: Path) -> int:
    return max(int(step.name.removeprefix("step-")) for step in folder.glob("trials/0000/checkpoints/step-*"))


def test_the_time_is_kept_and_the_trial_goes_on(numbers: Any, tmp_path: Path) -> None:
    config = _config(numbers, max_epochs=100_000)
    short = tmt.tune(config, SPACE, 0.03, run_dir=tmp_path)
    assert [one.state for one in short.trials] == ["unfinished"]
    reached = _newest_step(tmp_path)
    longer = tmt.tune(config, SPACE, 0.08, run_dir=tmp_path)
    assert [one.number for one in longer.trials] == [0]
    assert _newest_step(tmp_path) > reached
    assert longer.trials[0].seconds > short.trials[0].seconds


def test_trials_of_another_corpus_are_not_compared(numbers: Any, tmp_path: Path) -> None:
    table, folder = tmp_path / "numbers.tsv", tmp_path / "search"
    rows = numbers.table.read_text("utf-8").splitlines(keepends=True)
    table.write_text("".join(rows), encoding="utf-8")
    values = numbers.values(max_epochs=1)
    values["data"]["prepared"], values["data"]["corpus"]["files"] = str(tmp_path / "prepared"), str(table)
    config = tmt.Config.model_validate(values)
    tmt.tune(config, SPACE, LONG, trials=1, run_dir=folder)
    table.write_text("".join(rows[:-60]), encoding="utf-8")
    with pytest.raises(tmt.TmtError, match=rf"the corpus has changed since this search began: {table}"):
        tmt.tune(config, SPACE, LONG, trials=2, run_dir=folder)
    table.write_text("".join(rows), encoding="utf-8")
    assert len(tmt.tune(config, SPACE, LONG, trials=2, run_dir=folder).trials) == 2
    (folder / "corpus.json").write_text("{", encoding="utf-8")
    with pytest.raises(tmt.TmtError, match="the file is damaged"):
        tmt.tune(config, SPACE, LONG, trials=3, run_dir=folder)


def test_a_search_that_never_began_takes_a_corrected_config(numbers: Any, tmp_path: Path) -> None:
    space, wrong = {"model.dropout": [0.1]}, numbers.values(max_epochs=1)
    wrong["data"]["corpus"]["files"] = "nowhere.tsv"
    with pytest.raises(tmt.TmtError, match="nowhere"):
        tmt.tune(tmt.Config.model_validate(wrong), {"model.dropout": [0.2]}, LONG, trials=1, run_dir=tmp_path)
    report = tmt.tune(_config(numbers, max_epochs=1), space, LONG, trials=1, run_dir=tmp_path)
    assert [one.values for one in report.trials] == [{"model.dropout": 0.1}]


def test_a_narrow_range_has_values_inside_and_the_configs_own_keep_their_digits(numbers: Any, tmp_path: Path) -> None:
    own, low, high = 0.99999912345678, 0.9999991, 0.9999999
    space = {"training.ema_decay": {"low": low, "high": high}}
    config = _config(numbers, max_epochs=1, ema_decay=own, warmup_steps=1)
    first, *others = tmt.tune(config, space, LONG, trials=3, run_dir=tmp_path).trials
    assert first.values == {"training.ema_decay": own}
    values = [one.values["training.ema_decay"] for one in others]
    assert len({*values}) == 2
    assert all(low < value < high for value in values)


def test_values_that_do_not_fit_together_are_failed_trials(numbers: Any, tmp_path: Path) -> None:
    space = {"model.d_model": [16, 17], "model.n_heads": [2, 4]}
    report = tmt.tune(_config(numbers, max_epochs=1), space, LONG, run_dir=tmp_path)
    assert sorted(one.values["model.d_model"] for one in report.trials) == [16, 16, 17, 17], "every combination once"
    failed = [one for one in report.trials if one.state == "failed"]
    others = [one.state for one in report.trials if one not in failed]
    assert others == ["complete", "complete"], "one is behind, but it has come to its end"
    assert all(one.values["model.d_model"] == 17 and "not divisible" in one.message for one in failed)
    assert len(failed) == 2
    assert any("failed" in line and "not divisible" in line for line in report.lines)


def test_a_search_without_a_score_is_an_error(numbers: Any, tmp_path: Path) -> None:
    with pytest.raises(
        tmt.TmtError, match=r"no trial was validated, and 2 failed; the last one: .*not divisible"
    ) as caught:
        tmt.tune(_config(numbers, max_epochs=1), {"model.d_model": [15, 17]}, LONG, run_dir=tmp_path)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "best.yaml").exists()


def test_ten_failures_in_a_row_end_a_search_and_its_best_trial_is_kept(
    numbers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = _config(numbers, max_epochs=1).model_copy(update={"name": "unprepared"})
    space = {"model.n_heads": [2, *range(17, 29)]}  # d_model is 16
    report = tmt.tune(config, space, LONG, run_dir=tmp_path)
    assert [one.state for one in report.trials] == ["complete", *["failed"] * 10]
    assert report.best is not None
    assert report.best.is_file()
    said = capsys.readouterr().err
    assert "the last 10 trials failed, so the search ends here" in said
    assert "pairs      400 train" in said
    assert len(tmt.tune(config, space, LONG, run_dir=tmp_path).trials) == 13, "the same call goes on"


def test_time_that_is_too_short_is_said(numbers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tmt.tune(_config(numbers), SPACE, 1e-6, run_dir=tmp_path).best is None
    assert "no trial was validated" in capsys.readouterr().err


def test_a_model_to_start_from_decides_what_can_be_searched_and_stays_the_same(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = numbers.values(max_epochs=1, batch_tokens=512)
    tmt.train(tmt.Config.model_validate(values), "runs/parent")
    config = tmt.Config.model_validate({**values, "training": {**values["training"], "start_from": "runs/parent"}})
    for key, choices in (("model.activation", ["relu", "gelu"]), ("model.n_heads", [2, 4])):
        with pytest.raises(tmt.TmtError, match=rf"with training.start_from, .* searched: {key}"):
            tmt.tune(config, {key: choices}, LONG, run_dir="search")
    space = {"model.dropout": [0.0, 0.1], "training.learning_rate": [0.001, 0.003]}
    with pytest.raises(tmt.TmtError, match="no part 'encodr'"):
        tmt.tune(config, space, LONG, trials=1, run_dir="wrong", overrides=["training.freeze=[encodr]"])
    assert not list(Path("wrong").glob("trials/*")), "a name that no trial can have is found before the first"
    assert len(tmt.tune(config, space, LONG, trials=1, run_dir="search").trials) == 1
    tmt.train(tmt.Config.model_validate(values), "runs/parent", overrides=["training.max_epochs=2"])
    with pytest.raises(tmt.TmtError, match="runs/parent is not that with which this search began"):
        tmt.tune(config, space, LONG, trials=2, run_dir="search")


@pytest.mark.parametrize("step", ["prepared", "train"])
def test_ctrl_c_outside_of_an_update_says_how_to_continue(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, step, interrupted)
    with pytest.raises(tmt.TmtError, match="interrupted") as caught:
        tmt.tune(_config(numbers), SPACE, LONG, trials=1, run_dir=tmp_path)
    assert caught.value.exit_code == 130
    assert caught.value.remedy == "Run the same command to continue."


def test_different_tokenizers_are_compared_by_bleu(numbers: Any, tmp_path: Path) -> None:
    space = {"tokenizer": [{"kind": "whitespace", "min_frequency": 1}, {"kind": "character", "min_frequency": 1}]}
    with pytest.raises(tmt.TmtError, match="bleu_sentences is 0"):
        tmt.tune(_config(numbers), space, LONG, run_dir=tmp_path / "without")
    report = tmt.tune(_config(numbers, max_epochs=1, bleu_sentences=10), space, LONG, run_dir=tmp_path / "with")
    assert report.measure == "bleu"
    assert len(report.trials) == 2
    assert len(list((report.folder / "data").iterdir())) == 1, "the data of the config is used again"


def test_a_damaged_record_of_the_space_is_an_error(numbers: Any, copied: Path) -> None:
    (copied / "space.json").write_bytes(b"\xff\xfe")
    with pytest.raises(tmt.TmtError, match="another space"):
        tmt.tune(_config(numbers), SPACE, LONG, trials=TRIALS, run_dir=copied)


def test_another_space_or_config_is_refused(searched: TuneReport, numbers: Any) -> None:
    for config, space in ((_config(numbers), {"model.dropout": [0.1]}), (_config(numbers, max_epochs=4), SPACE)):
        with pytest.raises(tmt.TmtError, match="this folder contains a search"):
            tmt.tune(config, space, LONG, trials=1, run_dir=searched.folder)
    assert len(tmt.tune(_config(numbers), SPACE, LONG, trials=1, run_dir=searched.folder).trials) == TRIALS


@pytest.fixture
def copied(searched: TuneReport, tmp_path: Path) -> Path:
    """A copy of the search."""
    return Path(shutil.copytree(searched.folder, tmp_path / "search"))


def test_a_search_that_has_lost_its_record_is_not_begun_again(numbers: Any, copied: Path) -> None:
    (copied / "journal.log").unlink()
    before = (copied / "best.yaml").read_bytes()
    with pytest.raises(tmt.TmtError, match="trials, but not the file that says how they ended"):
        tmt.tune(_config(numbers), SPACE, LONG, trials=TRIALS, run_dir=copied)
    assert (copied / "best.yaml").read_bytes() == before


def test_the_best_config_of_a_long_name_can_be_read(searched: TuneReport, numbers: Any, tmp_path: Path) -> None:
    base, file = _config(numbers).model_copy(update={"name": "n" * 100}), tmp_path / "best.yaml"
    write_best(base, base, searched.trials, read_space(SPACE, base), "loss", file)
    assert load_config(file).name == "n" * 95 + "-best"


def test_a_best_config_that_was_edited_is_kept(
    searched: TuneReport, numbers: Any, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmt.tune(_config(numbers), SPACE, LONG, trials=TRIALS, run_dir=copied)
    assert "by hand" not in capsys.readouterr().err
    (copied / "best.yaml").write_text("name: mine\n", encoding="utf-8")
    tmt.tune(_config(numbers), SPACE, LONG, trials=TRIALS, run_dir=copied)
    assert "best.yaml was changed by hand: it is now best.old1.yaml" in capsys.readouterr().err
    assert (copied / "best.old1.yaml").read_text(encoding="utf-8") == "name: mine\n"
    assert load_config(copied / "best.yaml").training == load_config(searched.folder / "best.yaml").training


@pytest.mark.parametrize("name", ["mine.txt", "config.yaml"])
def test_a_folder_with_other_files_is_refused(numbers: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(tmt.TmtError, match="contains files"):
        tmt.tune(_config(numbers), SPACE, LONG, trials=1, run_dir=tmp_path)
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_without_optuna_the_message_says_what_to_install(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(tmt.TmtError) as caught:
        tmt.tune(_config(numbers), SPACE, LONG, run_dir=tmp_path)
    assert caught.value.message == "Optuna is not installed"
    assert caught.value.remedy.startswith("pip install optuna")


def _simulated(
    journal: Path, config: tmt.Config, trials: int, space: dict[str, Any] = SPACE, restarts: bool = False
) -> list[Trial]:
    """A search without trainings: the loss depends on the learning rate. restarts: opened again for each trial"""
    values = read_space(space, config)
    study = Study(journal, values, config, "loss")
    while [one.state for one in study.trials()].count("unfinished") or len(study.trials()) < trials:
        if restarts:
            study = Study(journal, values, config, "loss")
        trial = study.next()
        assert trial is not None
        ended, number = trial.ended, trial.number
        for validation in () if ended else (1, 2, 3):
            loss = (1 + abs(math.log(trial.values["training.learning_rate"] / 0.01))) / validation
            study.report(number, validation, loss, 0.0, 0.0)
            ended = why_stopped(study.trials()[: number + 1], validation, 1, "loss") if validation < 3 else ""
            if ended:
                study.end(number, ended)
                break
        study.finish(number, "stopped" if ended else "complete", 0.0)
    return study.trials()


def test_proposals_after_the_random_trials_do_not_depend_on_restarts(numbers: Any, tmp_path: Path) -> None:
    config = _config(numbers)
    whole = _simulated(tmp_path / "whole", config, 20)
    assert _simulated(tmp_path / "restarted", config, 20, restarts=True) == whole
    rates = [abs(math.log(one.values["training.learning_rate"] / 0.01)) for one in whole]
    assert sum(rates[11:]) / 9 < sum(rates[1:11]) / 10, "they are nearer to the best value than the random ones"
    assert {one.state for one in whole} == {"complete", "stopped"}


def test_a_search_that_was_killed_at_any_line_of_its_journal_has_the_same_trials(numbers: Any, tmp_path: Path) -> None:
    config = _config(numbers)
    space = {"training.learning_rate": [0.001, 0.003], "model.dropout": [0.1, 0.2]}
    whole = _simulated(tmp_path / "whole", config, 4, space)
    assert [one.number for one in whole] == [0, 1, 2, 3]
    assert {one.state for one in whole} == {"complete", "stopped"}
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    assert any(b'"duplicate"' in line for line in lines), "values that were drawn before do not count"
    for number in range(len(lines)):
        cut = tmp_path / f"cut-{number}"
        cut.write_bytes(b"".join(lines[:number]))
        assert _simulated(cut, config, 4, space) == whole, lines[number]


def _trials_with(scores: list[float], validation: int = 1) -> list[Trial]:
    return [Trial(number, "complete", {}, {validation: score}) for number, score in enumerate(scores)]


@pytest.mark.parametrize(
    ("scores", "measure", "said"),
    [
        ([3.0], "loss", ""),
        ([3.0, 2.0], "loss", ""),
        ([3.0, 3.0], "loss", ""),
        ([2.0, 4.0, 5.0, 6.0, 3.0], "loss", "not among the best 1 of 5 after validation 1"),
        ([2.0, 4.0, 5.0, 6.0, 7.0, 3.0], "loss", ""),
        ([20.0, 10.0], "bleu", "not among the best 1 of 2 after validation 1"),
        ([20.0, 30.0], "bleu", ""),
    ],
)
def test_the_best_third_goes_on_or_the_best_of_a_few(scores: list[float], measure: Measure, said: str) -> None:
    ended = why_stopped(_trials_with(scores), 1, 1, measure)
    assert ended.removeprefix("stopped: ") == said
    assert bool(why_stopped(_trials_with(scores, 6), 6, 2, measure)) == bool(said)
    assert not why_stopped(_trials_with(scores, 4), 4, 2, measure), "4 is between the rungs 2 and 6"


@pytest.mark.parametrize(
    ("limits", "rung"),
    [
        ({"max_epochs": 27}, 3),
        ({"max_epochs": 3}, 1),
        ({"max_epochs": 9, "validate_every": 50}, 20),
        ({"max_epochs": 9, "max_steps": 450, "validate_every": 50}, 1),
        ({"max_epochs": None, "max_steps": 1800, "validate_every": 50}, 4),
        ({"max_epochs": None, "max_steps": 1800}, 2),
        ({"max_epochs": None, "max_minutes": 5}, 1),
    ],
)
def test_the_first_rung_is_at_a_ninth_of_a_trial(numbers: Any, limits: dict[str, Any], rung: int) -> None:
    assert first_rung(_config(numbers, **limits), lambda: 1000 if "validate_every" in limits else 100) == rung


def test_keys_without_effect_are_named_and_whole_numbers_are_the_config_s_own(
    numbers: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = _config(numbers, max_epochs=1, schedule="constant")
    tmt.tune(config, {"training.noam_factor": [1, 2]}, LONG, trials=1, run_dir=tmp_path)
    said = capsys.readouterr()
    assert "training.noam_factor has no effect with this training.schedule" in said.err + said.out
    assert "trial 0 has the config's own values" in said.err + said.out
