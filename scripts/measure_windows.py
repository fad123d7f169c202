"""Measures whether training with epochs in small windows learns as well as with windows as large as the corpus.

    python scripts/measure_windows.py --data data/multi30k [--pairs 29000] [--window 5800] [--epochs 10] [--seeds 1 2 3]

Trains a small model on Multi30k en-de, on one thread, once for each seed and each window, and prints the mean training
loss of the last epoch and the validation loss, in nats per token, and the number of updates. A window of 5,800 pairs
has only 362 blocks of 16 pairs; one of a large corpus has 16,384.

--sorted sorts the corpus by its English sentences first, so that neighbours are alike: a mixing that leaves them
together would be seen. --block 1000 leaves them together, to show what a bad mixing costs.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from transformer_mt.config.schema import Config
from transformer_mt.data import windows
from transformer_mt.data.batching import Batches
from transformer_mt.workflows import train as training


def main() -> None:
    options = parse()
    found: dict[int, list[tuple[float, float, int]]] = {}
    with tempfile.TemporaryDirectory() as name:
        files = corpus(options.data, options.pairs, options.sorted, Path(name))
        print(f"{'window':>9}  {'seed':>4}  {'train loss':>10}  {'valid loss':>10}  {'updates':>7}", flush=True)
        for seed in options.seeds:
            for window in (options.pairs, options.window):
                losses = train(files, window, seed, options, Path(name))
                found.setdefault(window, []).append(losses)
                print(f"{window:9,}  {seed:4}  {losses[0]:10.4f}  {losses[1]:10.4f}  {losses[2]:7,}", flush=True)
    for window, rows in found.items():
        of_train, of_validation, _ = zip(*rows, strict=True)
        print(f"{window:9,}  mean  {mean(of_train)}  {mean(of_validation)}")


def mean(values: tuple[float, ...]) -> str:
    deviation = f" (deviation {statistics.stdev(values):.4f})" if len(values) > 1 else ""
    return f"{statistics.mean(values):10.4f}{deviation}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="folder of the Multi30k files")
    parser.add_argument("--pairs", type=int, default=29_000)
    parser.add_argument("--window", type=int, default=5_800)
    parser.add_argument("--block", type=int, default=windows.BLOCK_PAIRS)
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parser.parse_args()


def corpus(data: Path, pairs: int, is_sorted: bool, folder: Path) -> dict[str, dict[str, str]]:
    """The first training pairs, and all of validation, as plain files."""
    files: dict[str, dict[str, str]] = {"train": {}, "validation": {}}
    for split, name, count in (("train", "train", pairs), ("validation", "val", None)):
        sides = []
        for language in ("en", "de"):
            with gzip.open(data / f"{name}.{language}.gz", "rt", encoding="utf-8") as lines:
                sides.append(lines.read().splitlines()[:count])
        both = list(zip(*sides, strict=True))
        if is_sorted:
            both.sort()
        for number, side in enumerate(("source", "target")):
            file = folder / f"{name}.{side}"
            file.write_text("".join(f"{pair[number]}\n" for pair in both), encoding="utf-8")
            files[split][side] = str(file)
    return files


def train(
    files: dict[str, dict[str, str]], window: int, seed: int, options: argparse.Namespace, folder: Path
) -> tuple[float, float, int]:
    """The training loss of the last epoch, the validation loss after it, and the number of updates."""
    config: dict[str, Any] = {
        "name": "windows",
        "seed": seed,
        "data": {"source": "en", "target": "de", "prepared": str(folder), "workers": 1}
        | {"corpus": {"kind": "text", **files}},
        "tokenizer": {"kind": "sentencepiece", "vocab_size": 1_000, "shared": True},
        "model": {"d_model": 64, "n_heads": 4, "d_ff": 128, "encoder_layers": 1, "decoder_layers": 1}
        | {"dropout": 0.1, "tie_embeddings": "all"},
        "training": {"batch_tokens": 1024, "schedule": "cosine", "learning_rate": 0.003, "warmup_steps": 200}
        | {"max_epochs": options.epochs, "bleu_sentences": 0},
        "runtime": {"device": "cpu", "threads": 1, "precision": "fast"},
    }
    run = folder / f"run-{window}-{seed}"
    batches = functools.partial(Batches, window=window)
    with mock.patch.object(training, "Batches", batches), mock.patch.object(windows, "BLOCK_PAIRS", options.block):
        training.train(Config.model_validate(config), run)
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    last = [record for record in lines if record["event"] == "validation"][-1]
    return last["train_loss"], last["loss"], last["step"]


if __name__ == "__main__":
    main()
