"""MLflow. Its environment variables decide the rest, such as MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer_mt.errors import TmtError
from transformer_mt.reporting.trackers.base import Tracker

EXPERIMENT = "transformer_mt"  # without MLFLOW_EXPERIMENT_NAME
_LONGEST, _MOST = 500, 100  # characters of a parameter, and parameters of a request


class Mlflow(Tracker):
    name = "mlflow"

    @classmethod
    def require(cls) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read by the import
        try:
            import mlflow  # noqa: F401
        except ImportError:
            raise TmtError(
                "MLflow is not installed",
                place="training.tracker",
                remedy="pip install mlflow-skinny   (or set training.tracker: null)",
            ) from None

    def start(self, folder: Path, title: str, known: str, config: Mapping[str, Any]) -> str:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client = MlflowClient()
        if known:
            self._client.update_run(known, status="RUNNING")
            self._run = known
            return known
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        found = self._client.get_experiment_by_name(name)
        experiment = found.experiment_id if found is not None else self._client.create_experiment(name)
        self._run = str(self._client.create_run(experiment, run_name=title).info.run_id)
        params = [Param(key, str(value)[:_LONGEST]) for key, value in config.items()]
        for start in range(0, len(params), _MOST):
            self._client.log_batch(self._run, params=params[start : start + _MOST])
        return self._run

    def log(self, figures: Mapping[str, float], step: int | None) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(key, value, now, step or 0) for key, value in figures.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def finish(self) -> None:
        self._client.set_terminated(self._run)
