"""Where the runs are, and names of files in a run. Importing this file takes no time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

RUNS = Path("runs")
CONFIG = "config.yaml"  # in the folder of a run, a model or an export: its config with all defaults
FACTS, METRICS, LOG = "run.json", "metrics.jsonl", "train.log"  # in the folder of a run
MODEL = "model"  # in it: the folder of the final model
SCORES, STEPS = "scores.json", ".steps"  # in the folder of a model; of which checkpoints it is made
STATE, SUMS = "state.json", "SHA256SUMS"  # in the folder of a checkpoint: where the training stands; checksums
WEIGHTS = "model.safetensors"  # in the folder of a model, and of a checkpoint
_OWN = {CONFIG, FACTS, METRICS, LOG, SCORES, STEPS, STATE, SUMS}


def belongs_to_run(file: Path) -> bool:
    """Whether this is a file of a run, a model or a checkpoint; not one that somebody else has put there."""
    folder = file.absolute().parent
    is_tokenizer = folder.name in ("source", "target") and (folder.parent / WEIGHTS).exists()
    is_run = any((folder / name).exists() for name in (FACTS, METRICS, STATE, WEIGHTS))
    is_named = file.name in _OWN or file.suffix == Path(WEIGHTS).suffix
    return file.is_file() and (is_tokenizer or (is_run and is_named))


def run_of_corpus(file: Path, models: Iterable[Path] = ()) -> Path | None:
    """A run in runs/, or one that a model is of, whose corpus has this file; None if there is none."""
    known = [*sorted(RUNS.glob(f"*/{FACTS}")), *(run / FACTS for one in models for run in (one, one.parent))]
    for facts in known if file.is_file() else ():
        corpus: list[object] = []
        with suppress(OSError, ValueError, RecursionError, TypeError, LookupError):
            corpus = list(json.loads(facts.read_text(encoding="utf-8"))[-1]["corpus"])
        for one in corpus:
            with suppress(OSError, ValueError, TypeError, LookupError):  # as of a file that is gone
                # A relative path begins where the training was called: mostly beside its runs/.
                if (facts.absolute().parents[2] / one["path"]).samefile(file):  # type: ignore[index]
                    return facts.parent
    return None
