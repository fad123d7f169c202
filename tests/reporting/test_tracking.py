"""What a tracker gets from a run, and that its faults and its slowness are not those of the training.

Weights & Biases and MLflow are large: a stand-in with the calls that are used takes their place, and the real ones are
used where they are installed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError
from transformer_mt.reporting import tracking
from transformer_mt.reporting.events import Events
from transformer_mt.workflows.train import train

TEST = {"split": "test", "search": "beam 5", "scores": ["test BLEU = 30.00"], "figures": {"bleu": 30.0}}


class StandIn:
    """What was sent to a tracker, by run."""

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []
        self.sent: list[tuple[int | None, dict[str, float]]] = []
        self.finished = 0
        self.fault: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def log(self, figures: dict[str, float], step: int | None = None) -> None:
        self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.sent.append((step, dict(figures)))

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in, module = StandIn(), ModuleType("wandb")

    def log(figures: dict[str, float]) -> None:
        stand_in.log({key: value for key, value in figures.items() if key != "step"}, int(figures["step"]))

    def init(**given: Any) -> Any:
        stand_in.starts.append(given)
        summary = SimpleNamespace(update=lambda figures: stand_in.log(figures))
        return SimpleNamespace(
            log=log, summary=summary, finish=stand_in.finish, define_metric=lambda *_, **__: None, **given
        )

    module.Settings, module.init = SimpleNamespace, init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return stand_in


def _config(numbers: Any, tracker: str | None, corpus: dict[str, Any] | None = None) -> Config:
    values = numbers.values(tracker=tracker)
    values["data"]["corpus"].update(corpus or {})
    return Config.model_validate(values)


def _notes(folder: Path) -> list[str]:
    log = folder / "train.log"
    return [line for line in log.read_text(encoding="utf-8").splitlines() if "tracker" in line] if log.exists() else []


def test_a_tracker_gets_config_figures_and_scores(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    folder = tmp_path / "numbers"
    folder.mkdir()
    events = Events.of(_config(numbers, "wandb"), folder)
    events.record("started", pairs=10)
    events.record("step", step=20, epoch=1, loss=2.5, learning_rate=0.1)
    events.record("validation", step=20, epoch=1, loss=float("inf"), bleu=None, best=True, samples=[])
    events.record("test", **TEST)
    events.close()
    (start,) = wandb.starts
    assert start["name"] == "numbers"
    assert start["config"]["training.learning_rate"] == 0.003
    assert start["dir"] == str(folder)
    assert wandb.sent == [(20, {"step/loss": 2.5, "step/learning_rate": 0.1}), (None, {"test/bleu": 30.0})]
    assert wandb.finished == 1
    assert not _notes(folder)


@pytest.mark.slow
def test_a_training_sends_its_scores_and_trains_as_without(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    reports = {name: train(_config(numbers, name), tmp_path / str(name)) for name in ("wandb", None)}
    scores = reports["wandb"].scores["test"].scores
    assert wandb.sent[-1] == (None, {f"test/{name}": score.value for name, score in scores.items()})
    losses = [figures["validation/loss"] for _, figures in wandb.sent if "validation/loss" in figures]
    assert len(losses) == 2
    weights = [(report.model / "model.safetensors").read_bytes() for report in reports.values()]
    assert weights[0] == weights[1]


def test_a_resumed_run_continues_its_run_there(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    for step in (1, 2):
        events = Events.of(_config(numbers, "wandb"), tmp_path)
        events.record("step", step=step, loss=1.0)
        events.close()
    first, second = (start["id"] for start in wandb.starts)
    assert first == second == json.loads((tmp_path / "tracker.json").read_text(encoding="utf-8"))["wandb"]
    assert wandb.starts[1]["resume"] == "allow"


def test_a_tracker_that_fails_is_named_once_and_the_run_goes_on(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    wandb.fault = RuntimeError("\nNo space left on device")
    events = Events.of(_config(numbers, "wandb"), tmp_path)
    for step in range(1, 50):
        events.record("step", step=step, loss=1.0)
        time.sleep(0.002)
    events.close()
    (note,) = _notes(tmp_path)
    assert "the tracker wandb has failed" in note
    assert "No space left on device" in note
    assert len((tmp_path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 49


def test_a_tracker_that_hangs_does_not_hold_the_run(
    numbers: Any, tmp_path: Path, wandb: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a record waited for the tracker, this test would not end."""
    monkeypatch.setattr(tracking, "CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(tracking, "_MOST", 10)
    wandb.gate.clear()
    events = Events.of(_config(numbers, "wandb"), tmp_path)
    for step in range(1, 40):
        events.record("step", step=step, loss=1.0)
    events.close()
    wandb.gate.set()
    (note,) = _notes(tmp_path)
    assert "did not take everything within 0.05 s" in note


def test_other_ranks_and_runs_without_a_tracker_send_nothing(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    for config, silent in ((_config(numbers, "wandb"), True), (_config(numbers, None), False)):
        events = Events.of(config, tmp_path, silent)
        events.record("step", step=1, loss=1.0)
        events.close()
    assert not wandb.starts


def test_passwords_in_addresses_are_not_sent(numbers: Any, tmp_path: Path, wandb: StandIn) -> None:
    config = _config(numbers, "wandb", {"files": "https://me:secret@example.org/pairs.tsv?token=hidden"})
    Events.of(config, tmp_path).close()
    sent = json.dumps(wandb.starts[0]["config"], default=str)
    assert "example.org" in sent
    assert "secret" not in sent
    assert "hidden" not in sent


@pytest.mark.parametrize(("name", "package"), [("wandb", "wandb"), ("mlflow", "mlflow-skinny")])
def test_without_the_package_the_message_says_what_to_install(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TmtError, match="is not installed") as caught:
        Events.of(_config(numbers, name), tmp_path)
    assert caught.value.place == "training.tracker"
    assert f"pip install {package} " in caught.value.remedy


def test_mlflow_gets_parameters_figures_and_scores(
    numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, runs = StandIn(), dict[str, Any]()

    class Client:
        def get_experiment_by_name(self, name: str) -> None:
            return None

        def create_experiment(self, name: str) -> str:
            return "7"

        def create_run(self, experiment: str, run_name: str) -> Any:
            runs["r1"] = {"experiment": experiment, "name": run_name, "params": {}}
            return SimpleNamespace(info=SimpleNamespace(run_id="r1"))

        def update_run(self, run: str, status: str) -> None:
            runs[run]["status"] = status

        def log_batch(self, run: str, metrics: Any = (), params: Any = ()) -> None:
            assert len(params) <= 100, "the server refuses more"
            runs[run]["params"].update(params)
            for key, value, _, step in metrics:
                stand_in.log({key: value}, step)

        def set_terminated(self, run: str) -> None:
            stand_in.finish()

    module, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    module.MlflowClient = Client  # type: ignore[attr-defined]
    entities.Param = lambda key, value: (key, value)  # type: ignore[attr-defined]
    entities.Metric = lambda *given: given  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    for step in (1, 2):
        events = Events.of(_config(numbers, "mlflow"), tmp_path)
        events.record("step", step=step, loss=1.0)
        events.record("test", **TEST)
        events.close()
    assert not _notes(tmp_path)
    assert list(runs) == ["r1"], "the second start continues the run"
    assert runs["r1"]["params"]["training.optimizer"] == "adam"
    assert [figures for _, figures in stand_in.sent] == [{"step/loss": 1.0}, {"test/bleu": 30.0}] * 2
    assert stand_in.finished == 2


@pytest.mark.filterwarnings("default")
def test_mlflow_itself_in_a_file(numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    for step in (1, 2):
        events = Events.of(_config(numbers, "mlflow"), tmp_path)
        events.record("validation", step=step, loss=3.0 - step)
        events.record("test", **TEST)
        events.close()
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("transformer_mt").experiment_id])
    history = client.get_metric_history(run.info.run_id, "validation/loss")
    assert [(point.step, point.value) for point in history] == [(1, 2.0), (2, 1.0)]
    assert run.data.metrics["test/bleu"] == 30.0
    assert run.data.params["model.d_model"] == "16"


@pytest.mark.filterwarnings("default")
def test_wandb_itself_offline(numbers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    events = Events.of(_config(numbers, "wandb"), tmp_path)
    events.record("validation", step=1, loss=2.0)
    events.close()
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"validation/loss" in file.read_bytes()
    assert not _notes(tmp_path)
