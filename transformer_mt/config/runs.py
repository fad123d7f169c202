"""Where the runs are, and names of files in a run. Importing this file takes no time."""

from __future__ import annotations

from pathlib import Path

RUNS = Path("runs")
FACTS, METRICS = "run.json", "metrics.jsonl"  # in the folder of a run
MODEL = "model"  # in it: the folder of the final model
STATE = "state.json"  # in the folder of a checkpoint: where the training stands
WEIGHTS = "model.safetensors"  # in the folder of a model, and of a checkpoint
