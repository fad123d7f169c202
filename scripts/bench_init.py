"""Compares the config that `tmt init files --data` proposes with the config written by hand, in equal minutes.

    python scripts/bench_init.py [--multi30k data/multi30k] [--aihub data/aihub] [--only multi30k-8000 ...] [--epochs N]

Three corpora: the first 8,000 and 20,000 training pairs of Multi30k, German to English, as a TSV, and AI Hub's
workbooks. By hand: the sizes of FEW, configs/multi30k-de-en.yaml and configs/aihub-ko-en.yaml, without averages of
checkpoints. Both read the same files and set the same pairs aside, and train on one thread. The config by hand trains
for --epochs (default: 30, 12 and 10); the proposal for as many epochs as take the same time, by the time of an update,
measured in turn. BLEU: sacreBLEU 13a, beam 5, of Multi30k's test of 2016 and of the pairs set aside from AI Hub. Needs
about an hour.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from bench_options import tmt

from transformer_mt.config.load import load_config
from transformer_mt.data.prepare import prepare
from transformer_mt.runtime.device import set_up
from transformer_mt.workflows.proposal.timing import seconds_an_update

FEW: dict[str, Any] = {  # what the comments in configs/files.yaml said for a few thousand pairs, until 2026-11-28
    "tokenizer": {"vocab_size": 2000},
    "model": {"encoder_layers": 3, "decoder_layers": 3, "dropout": 0.3},
    "training": {"batch_tokens": 1024, "warmup_steps": 100},
}
BY_HAND: dict[str, tuple[str, dict[str, Any], int]] = {  # config, changes, epochs
    "multi30k-8000": ("files", FEW, 30),
    "multi30k-20000": ("multi30k-de-en", {}, 12),
    "aihub": ("aihub-ko-en", {}, 10),
}
ROUNDS = 3  # of measuring the time of an update


def main() -> None:
    options = parse()
    print(f"{'corpus':<16} {'by hand':>8} {'epochs':>7} {'minutes':>8}   {'proposed':>8} {'epochs':>7} {'minutes':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or BY_HAND:
            print(f"{name:<16} {compare(name, options, Path(folder))}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi30k", type=Path, default=Path("data/multi30k"), help="folder of the Multi30k files")
    parser.add_argument("--aihub", type=Path, default=Path("data/aihub"), help="folder of AI Hub's workbooks")
    parser.add_argument("--only", nargs="+", choices=BY_HAND, metavar="NAME", help=", ".join(BY_HAND))
    parser.add_argument("--epochs", type=int, help="of the configs by hand")
    return parser.parse_args()


def compare(name: str, options: argparse.Namespace, folder: Path) -> str:
    """BLEU, epochs and minutes of both configs."""
    shipped, changes, epochs = BY_HAND[name]
    data, test = files_of(name, options, folder)
    proposal, by_hand = folder / f"{name}-proposed.yaml", folder / f"{name}-by-hand.yaml"
    tmt("init", "files", "--data", str(data), "-o", str(proposal))
    proposed = yaml.safe_load(proposal.read_text(encoding="utf-8"))
    hand = yaml.safe_load(Path(f"configs/{shipped}.yaml").read_text(encoding="utf-8"))
    hand = {**hand, **{section: {**hand[section], **values} for section, values in changes.items()}}
    hand["data"] = proposed["data"]
    hand["training"] = {key: value for key, value in hand["training"].items() if "average" not in key}
    hand["training"]["max_epochs"] = options.epochs or epochs
    for values, file in ((hand, by_hand), (proposed, proposal)):
        values["name"] = file.stem
        values["data"]["prepared"] = str(folder / "prepared")
        values["runtime"] = {"precision": "fast", "threads": 1, "device": "cpu"}
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
    of_hand, of_proposal = epoch_seconds([by_hand, proposal])
    proposed["training"]["max_epochs"] = max(1, round(hand["training"]["max_epochs"] * of_hand / of_proposal))
    proposal.write_text(yaml.safe_dump(proposed), encoding="utf-8")
    cells = []
    for file, values in ((by_hand, hand), (proposal, proposed)):
        bleu, minutes = train(file, folder, test)
        cells.append(f"{bleu:>8.2f} {values['training']['max_epochs']:>7} {minutes:>8.1f}")
    return "   ".join(cells)


def files_of(name: str, options: argparse.Namespace, folder: Path) -> tuple[Path, list[str]]:
    """The data for `tmt init files --data`, and the arguments of `tmt evaluate` for the test."""
    if name == "aihub":
        return options.aihub, []
    sides: dict[str, list[str]] = {}
    for language in ("de", "en"):
        with gzip.open(options.multi30k / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            count = int(name.partition("-")[2])
            sides[language] = [line.rstrip("\n").replace("\t", " ") for line in islice(lines, count)]
        with gzip.open(options.multi30k / f"test_2016_flickr.{language}.gz", "rt", encoding="utf-8") as lines:
            (folder / f"test.{language}").write_text(lines.read(), encoding="utf-8")
    table = folder / f"{name}.tsv"
    rows = zip(sides["de"], sides["en"], strict=True)
    table.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return table, ["--source", str(folder / "test.de"), "--reference", str(folder / "test.en")]


def epoch_seconds(files: list[Path]) -> list[float]:
    """The seconds of an epoch of each config, the shortest of ROUNDS measured in turn."""
    best = [float("inf")] * len(files)
    for _ in range(ROUNDS):
        for number, file in enumerate(files):
            config = load_config(file)
            prepared = prepare(config)
            train_split = prepared.report.splits["train"]
            lengths = [prepared.store("train").source.lengths.mean(), prepared.store("train").target.lengths.mean()]
            source, target = prepared.codecs()
            update = seconds_an_update(
                config, (len(source), len(target)), (lengths[0], lengths[1]), set_up(config.runtime)
            )
            tokens = train_split.pairs * max(lengths)
            best[number] = min(best[number], update * tokens / (config.training.token_budget or 1))
    return best


def train(config: Path, folder: Path, test: list[str]) -> tuple[float, float]:
    """BLEU on the test, and minutes of training."""
    run = folder / "runs" / config.stem
    tmt("train", "--config", str(config), "--run-dir", str(run))
    scores = json.loads(tmt("evaluate", "--bleu", "--model", str(run), *test, "--json"))
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = next(record["seconds"] for record in map(json.loads, lines) if record["event"] == "finished")
    return scores["bleu"], seconds / 60


if __name__ == "__main__":
    main()
