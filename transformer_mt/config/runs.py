"""Where the runs are, and names of files in a run. Importing this file takes no time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

RUNS, PREPARED = Path("runs"), Path("data/prepared")
MANIFEST = "manifest.json"  # in a folder of prepared data
CONFIG = "config.yaml"  # in the folder of a run, a model or an export: its config with all defaults
FACTS, METRICS, LOG = "run.json", "metrics.jsonl", "train.log"  # in the folder of a run
MODEL = "model"  # in it: the folder of the final model
SCORES, STEPS = "scores.json", ".steps"  # in the folder of a model; of which checkpoints it is made
STATE, SUMS = "state.json", "SHA256SUMS"  # in the folder of a checkpoint: where the training stands; checksums
WEIGHTS = "model.safetensors"  # in the folder of a model, and of a checkpoint
EXPORT, EXPORT_WEIGHTS = "export.json", "model.bin"  # in the folder of an export: what it was made of; its weights
TRAINED_ON = "trained_on.safetensors"  # in prepared data, and in the folder of a model: see data/trained_on.py
_PREPARED = {MANIFEST, "source.txt", "target.txt", "tokenizer.json", "vocabulary.txt", "tags.txt"}
_OWN = {CONFIG, FACTS, METRICS, LOG, SCORES, STEPS, STATE, SUMS}


def belongs_to_run(file: Path) -> bool:
    """Whether this is a file of a run, a model, a checkpoint or prepared data; not one that somebody else put there."""
    folder = file.absolute().parent
    is_tokenizer = folder.name in ("source", "target") and (folder.parent / WEIGHTS).exists()
    is_run = any((folder / name).exists() for name in (FACTS, METRICS, STATE, WEIGHTS))
    is_named = file.name in _OWN or file.suffix == Path(WEIGHTS).suffix
    is_part = file.name in _PREPARED or file.suffix in (".ids", ".offsets", ".model", ".safetensors")
    is_prepared = is_part and any(_is_manifest(one / MANIFEST) for one in (folder, folder.parent))
    return file.is_file() and (is_tokenizer or is_prepared or (is_run and is_named))


def _is_manifest(file: Path) -> bool:
    """Whether this is what `prepare` writes; many programs have a file of this name."""
    with suppress(OSError, ValueError, RecursionError):
        return {"settings", "files", "splits"} <= set(json.loads(file.read_text(encoding="utf-8")))
    return False


def owner_of_corpus(file: Path, models: Iterable[Path] = ()) -> Path | None:
    """A run in runs/ or prepared data, or a run that a model is of, whose corpus has this file; None: there is none."""
    runs = [*sorted(RUNS.glob(f"*/{FACTS}")), *(run / FACTS for one in models for run in (one, one.parent))]
    known = [(facts, 2) for facts in runs] + [(one, 3) for one in sorted(PREPARED.glob(f"*/{MANIFEST}"))]
    for facts, depth in known if file.is_file() else ():
        corpus: list[Any] = []
        with suppress(OSError, ValueError, RecursionError, TypeError, LookupError):
            read = json.loads(facts.read_text(encoding="utf-8"))
            corpus = list(read["files"] if facts.name == MANIFEST else read[-1]["corpus"])
        for one in corpus:
            with suppress(OSError, ValueError, TypeError, LookupError):  # as of a file that is gone
                # A relative path begins where the program was called: mostly beside its runs/ and data/.
                if (facts.absolute().parents[depth] / one["path"]).samefile(file):
                    return facts.parent
    return None
