"""Measures training options on little data, a part of Multi30k en-de: R-Drop, BPE-dropout, Muon, averaging and others.

    python scripts/bench_options.py --data data/multi30k [--pairs 4000] [--epochs 24] [--seed 1] [--only NAME ...]

Each row is one `tmt train` on one thread with one change, and `tmt evaluate` of its model, the checkpoint with the
lowest validation loss, on the whole validation split: BLEU (sacreBLEU 13a, greedy), nats per token, and minutes of
training. Compare `ema_decay` with "plain, inverse_sqrt" and all others with "plain".
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

COSINE: dict[str, object] = {"training.schedule": "cosine"}
SQUARE_ROOT: dict[str, object] = {"training.schedule": "inverse_sqrt"}
VARIANTS: dict[str, dict[str, object]] = {
    "plain": COSINE,
    "r_drop 1": {**COSINE, "training.r_drop": 1.0},
    "r_drop 5": {**COSINE, "training.r_drop": 5.0},
    "BPE-dropout 0.1": {**COSINE, "tokenizer.sampling": 0.1},
    "rotary": {**COSINE, "model.positions": "rotary"},
    "muon": {**COSINE, "training.optimizer": "muon"},
    "muon, weight_decay 0.1": {**COSINE, "training.optimizer": "muon", "training.weight_decay": 0.1},
    "plain, inverse_sqrt": SQUARE_ROOT,
    "ema_decay 0.999": {**SQUARE_ROOT, "training.ema_decay": 0.999},
}


def main() -> None:
    options = parse()
    print(f"{'option':<20} {'BLEU':>6} {'loss':>6} {'minutes':>8}")
    with tempfile.TemporaryDirectory() as folder:
        files = subset(options.data, options.pairs, Path(folder))
        for name in options.only or VARIANTS:
            bleu, loss, minutes = train(name, files, options, Path(folder))
            print(f"{name:<20} {bleu:>6.2f} {loss:>6.3f} {minutes:>8.1f}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="folder of the Multi30k files")
    parser.add_argument("--pairs", type=int, default=4_000, help="training pairs")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of weights, dropout and order; gains differ by chance"
    )
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="NAME", help="; ".join(VARIANTS))
    options = parser.parse_args()
    if not (options.data / "train.en.gz").is_file():
        parser.error(f"no Multi30k in {options.data}; download it:  tmt download multi30k --to {options.data}")
    return options


def subset(data: Path, pairs: int, folder: Path) -> dict[str, dict[str, str]]:
    """The first training pairs, and all of validation, as plain files."""
    files: dict[str, dict[str, str]] = {"train": {}, "validation": {}}
    for split, name, count in (("train", "train", pairs), ("validation", "val", None)):
        for side, language in (("source", "en"), ("target", "de")):
            file = folder / f"{name}.{language}"
            with gzip.open(data / f"{name}.{language}.gz", "rt", encoding="utf-8") as lines:
                file.write_text("".join(itertools.islice(lines, count)), encoding="utf-8")
            files[split][side] = str(file)
    return files


def train(
    name: str, files: dict[str, dict[str, str]], options: argparse.Namespace, folder: Path
) -> tuple[float, float, float]:
    """Returns BLEU, loss and minutes of training."""
    run = folder / name.replace(" ", "-")
    config = {
        "name": "options",
        "seed": options.seed,
        "data": {
            "source": "en",
            "target": "de",
            "corpus": {"kind": "text", **files},
            "prepared": str(run / "prepared"),
        },
        "tokenizer": {"kind": "sentencepiece", "vocab_size": 2_000, "shared": True},
        "model": {"d_model": 128, "n_heads": 4, "d_ff": 256, "encoder_layers": 3, "decoder_layers": 3}
        | {"dropout": 0.3, "tie_embeddings": "all"},
        "training": {"batch_tokens": 1024, "learning_rate": 0.003, "warmup_steps": 300}
        | {"max_epochs": options.epochs, "bleu_sentences": 0},
        "runtime": {"device": "cpu", "threads": 1},
    }
    for key, value in VARIANTS[name].items():
        section, key = key.split(".")
        config[section][key] = value  # type: ignore[index]
    run.mkdir()
    file = run / "config.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    tmt("train", "--config", str(file), "--run-dir", str(run / "run"))
    model = ("--model", str(run / "run" / "model"))
    scores = json.loads(tmt("evaluate", "--bleu", *model, "--split", "validation", "--beam", "1", "--json"))
    lines = (run / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = next(record["seconds"] for record in map(json.loads, lines) if record["event"] == "finished")
    return scores["bleu"], scores["loss"], seconds / 60


def tmt(*arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "transformer_mt.cli.main", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


if __name__ == "__main__":
    main()
