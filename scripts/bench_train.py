"""Measures training: our Transformer-Tiny and JoeyNMT's, on the same data, vocabulary and sizes.

    python scripts/bench_train.py --data data/multi30k [--joey PYTHON] [--threads 1] [--steps 30] [--rounds 2]

--joey names a Python with JoeyNMT 2.3.0, in a separate environment: `python -m venv .venv-joey && .venv-joey/bin/pip
install joeynmt==2.3.0 importlib_metadata "setuptools<80"`. Without it, only ours is measured. Both train in turn,
--rounds times, on Multi30k en-de with one shared BPE vocabulary. Prints the median target tokens/s, the ratio and the
peak memory, of ours in each --precision. JoeyNMT's dropout also applies to the attention weights and the feed-forward
activations; ours does with --all-dropouts. Both count the tokens of a batch with padding, and JoeyNMT does not sort by
length. The matrix peak is that of a product of large float32 matrices.

    python scripts/bench_train.py --synthetic [--shapes fixed] [--size base]

measures ours on random sentences: no corpus, no tokenizer. With `--shapes fixed`, all sentences have the same length.

    python scripts/bench_train.py --synthetic --device cuda --size base --batch-tokens 25600 --precision auto

measures ours on a GPU, where the peak is that of large bfloat16 matrices; `gpu_check.py` measures more. FLOPs are those
of real tokens, with attention (`flops.py`): their share of the peak is the model FLOP utilisation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flops import SIZES, matrix_peak, model_sizes, tokens_and_flops, wait_for

if TYPE_CHECKING:
    from transformer_mt.training.trainer import Trainer

WARM_UP = 20  # updates until memory is allocated and kernels are compiled


def main() -> None:
    options = parse()
    if options.worker:
        from transformer_mt.errors import TmtError

        try:
            print(json.dumps(measure_ours(options)))
        except TmtError as error:
            raise SystemExit(f"bench_train: {error}") from None
        return
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONPATH": str(Path.cwd())}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        ours: dict[str, list[dict[str, float]]] = {precision: [] for precision in options.precision}
        theirs = []
        for _ in range(options.rounds):
            for precision, rows in ours.items():
                rows.append(run_ours(precision, environment))
            if options.joey:
                theirs.append(run_joey(options, scratch, environment))
    print_speeds(options, ours, theirs)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/multi30k"), help="folder of the Multi30k files")
    parser.add_argument("--joey", type=Path, help="a Python with JoeyNMT installed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30, help=f"measured updates, after {WARM_UP} to warm up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--vocabulary", type=int, help="tokens; default: 10,000, or 32,000 with --synthetic")
    parser.add_argument("--synthetic", action="store_true", help="train on random sentences; needs no corpus")
    parser.add_argument("--shapes", choices=["varied", "fixed"], help="lengths of random sentences; default: varied")
    parser.add_argument("--precision", nargs="+", default=["float32", "fast"], help="runtime.precision of ours")
    parser.add_argument("--size", choices=SIZES, default="tiny", help="of our model; JoeyNMT's is tiny")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of ours; JoeyNMT trains on a CPU")
    parser.add_argument("--all-dropouts", action="store_true", help="ours with all dropouts that JoeyNMT has")
    parser.add_argument("--compile", action="store_true", help="runtime.compile of ours")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shapes and not options.synthetic:
        parser.error("--shapes is for --synthetic: the sentences of a corpus have their own lengths")
    if options.joey and options.synthetic:
        parser.error("JoeyNMT trains on a corpus, not on random sentences; leave out --synthetic or --joey")
    options.shapes = options.shapes or "varied"
    options.vocabulary = options.vocabulary or (32_000 if options.synthetic else 10_000)
    if options.joey and (options.size, options.device) != ("tiny", "cpu"):
        parser.error("JoeyNMT is compared at --size tiny on --device cpu")
    if options.joey and not shutil.which(options.joey):
        parser.error(f"no such Python: {options.joey}")
    return options


def run_ours(precision: str, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", "--precision", precision]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # it has printed why, unless a signal killed it
        raise SystemExit(
            done.returncode if done.returncode > 0 else f"bench_train: killed by signal {-done.returncode}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure_ours(options: argparse.Namespace) -> dict[str, float]:
    """The speed of updates as in `tmt train`, without validation and checkpoints."""
    from transformer_mt.runtime.device import peak_memory

    with tempfile.TemporaryDirectory() as folder:
        trainer = random_trainer(options) if options.synthetic else corpus_trainer(options, Path(folder))
        device, batches, assembly, started = trainer.machine.device, trainer.batches, 0.0, 0.0
        for number in range(WARM_UP + options.steps):
            if number == WARM_UP:
                wait_for(device)
                started, assembly = time.perf_counter(), 0.0
            before = time.perf_counter()
            (batch,) = batches.update(1, number % batches.updates(1))
            assembly += time.perf_counter() - before
            trainer.gradients.add_up([batch], 1 / batch.tokens)
            trainer.optimizer.update(number + 1, 1e-4)
        wait_for(device)
        seconds = time.perf_counter() - started
        model, measured = trainer.model, range(WARM_UP, WARM_UP + options.steps)
        tokens, flops = tokens_and_flops(batches, measured, model.config, model.generator.out_features)
        epoch = int(batches.store.target.lengths.sum())
    return {
        "tokens_per_second": tokens / seconds,
        "assembly_share": assembly / seconds,
        "seconds_an_epoch": 0 if options.synthetic else epoch * seconds / tokens,
        "peak_mib": peak_memory(device) / 2**20,
        "gflops": flops / seconds / 1e9,
        "peak_gflops": matrix_peak(device) / 1e9,
    }


def corpus_trainer(options: argparse.Namespace, folder: Path) -> Trainer:
    from transformer_mt.config.load import load_config
    from transformer_mt.data.prepare import prepare
    from transformer_mt.reporting.events import Events
    from transformer_mt.runtime.device import set_up
    from transformer_mt.training.run_directory import RunDirectory
    from transformer_mt.workflows.train import TrainingJob

    config = load_config(write_config(folder, options))
    machine, prepared, run = set_up(config.runtime), prepare(config), folder / "run"
    trainer = TrainingJob(config, prepared, RunDirectory(run), machine, Events(run, silent=True)).trainer()
    trainer.model.train()
    return trainer


def random_trainer(options: argparse.Namespace) -> Trainer:
    from synthetic import Setting, trainer_of

    return trainer_of(
        Setting(
            size=options.size,
            vocabulary=options.vocabulary,
            batch_tokens=options.batch_tokens,
            shapes=options.shapes,
            device=options.device,
            precision=options.precision[0],
            compile=options.compile,
            threads=options.threads,
            all_dropouts=options.all_dropouts,
            updates=WARM_UP + options.steps,
        )
    )


def write_config(folder: Path, options: argparse.Namespace) -> Path:
    values = {
        "name": "bench-train",
        "data": {
            "source": "en",
            "target": "de",
            "corpus": {"kind": "multi30k", "directory": str(options.data)},
            "prepared": str(folder / "prepared"),
        },
        "tokenizer": {"kind": "sentencepiece", "vocab_size": options.vocabulary, "shared": True},
        "model": {**model_sizes(options.size, options.all_dropouts), "tie_embeddings": "all"},
        "training": {"batch_tokens": options.batch_tokens, "max_epochs": 1},
        "runtime": {
            "device": options.device,
            "threads": options.threads,
            "precision": options.precision[0],
            "compile": options.compile,
        },
    }
    file = folder / "config.yaml"
    file.write_text(json.dumps(values), encoding="utf-8")  # JSON is YAML
    return file


def run_joey(options: argparse.Namespace, scratch: Path, environment: dict[str, str]) -> dict[str, float]:
    """JoeyNMT as installed, stopped after some updates; it logs its tokens per second."""
    folder = scratch / "joey"
    if not folder.exists():
        prepare_joey(options, folder)
    log = folder / "model" / "train.log"
    command = [str(options.joey), "-m", "joeynmt", "train", str(folder / "joey.yaml")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, speeds = 0.0, []
    deadline = time.monotonic() + 900
    while process.poll() is None and time.monotonic() < deadline and len(speeds) < 3:
        time.sleep(2)
        peak = max(peak, resident_mib(process.pid))
        text = log.read_text(encoding="utf-8") if log.exists() else ""
        speeds = [float(number) for number in re.findall(r"Tokens per Sec:\s+([\d.]+)", text)]
    process.kill()
    process.wait()
    if not speeds:
        raise SystemExit(f"JoeyNMT logged no speed; run it yourself to see why:  {' '.join(command)}")
    return {"tokens_per_second": statistics.median(speeds), "peak_mib": peak}


def resident_mib(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found.group(1)) / 1024 if found else 0.0


def prepare_joey(options: argparse.Namespace, folder: Path) -> None:
    """Write the same sentences and the same vocabulary in files for JoeyNMT."""
    from transformer_mt.config.load import load_config
    from transformer_mt.data.prepare import prepare

    folder.mkdir()
    prepared = prepare(load_config(write_config(folder, options)))
    codec, _ = prepared.codecs()
    (folder / "vocab.txt").write_text("\n".join(["<unk>", "<pad>", "<s>", "</s>", *codec.vocabulary.tokens[4:]]) + "\n")
    for split, name in (("train", "train"), ("validation", "dev")):
        store = prepared.store(split)
        for language, side in (("en", store.source), ("de", store.target)):
            rows = (" ".join(codec.vocabulary.decode(side[row][:-1])) for row in range(len(side)))
            (folder / f"{name}.{language}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "joey.yaml").write_text(joey_config(options, folder), encoding="utf-8")


def joey_config(options: argparse.Namespace, folder: Path) -> str:
    side = (
        '{{lang: "{}", max_length: 128, lowercase: False, level: "word", voc_limit: 100000, voc_min_freq: 1,'
        ' voc_file: "{}"}}'
    )
    stack = (
        "{type: transformer, num_layers: 4, num_heads: 4, embeddings: {embedding_dim: 128, scale: True},"
        " hidden_size: 128, ff_size: 256, dropout: 0.3}"
    )
    return f"""
name: bench
joeynmt_version: "2.3.0"
model_dir: {folder / "model"}
use_cuda: False
fp16: False
random_seed: 1
data:
  train: {folder / "train"}
  dev: {folder / "dev"}
  dataset_type: plain
  src: {side.format("en", folder / "vocab.txt")}
  trg: {side.format("de", folder / "vocab.txt")}
testing: {{beam_size: 1, batch_size: 1024, batch_type: token}}
training:
  optimizer: adam
  adam_betas: [0.9, 0.98]
  scheduling: warmupinversesquareroot
  learning_rate_warmup: 2000
  learning_rate: 0.0005
  loss: crossentropy
  label_smoothing: 0.1
  batch_size: {options.batch_tokens}
  batch_type: token
  normalization: tokens
  epochs: 1
  updates: 1000
  validation_freq: 100000
  logging_freq: 5
  overwrite: True
  shuffle: True
model:
  initializer: xavier_uniform
  embed_initializer: xavier_uniform
  tied_embeddings: True
  tied_softmax: True
  encoder: {stack}
  decoder: {stack}
"""


def print_speeds(
    options: argparse.Namespace, ours: dict[str, list[dict[str, float]]], theirs: list[dict[str, float]]
) -> None:
    print(
        f"{options.size}, {options.device}{', compiled' if options.compile else ''}, threads {options.threads},"
        f" batch {options.batch_tokens} tokens, vocabulary {options.vocabulary:,}"
        f"{f', random sentences, {options.shapes} lengths' if options.synthetic else ''}"
    )
    joey = median(theirs, "tokens_per_second") if theirs else None
    for precision, rows in ours.items():
        speed, gflops = median(rows, "tokens_per_second"), median(rows, "gflops")
        ratio = f"  {speed / joey:.1f} times JoeyNMT" if joey else ""
        epoch = "" if options.synthetic else f"  {median(rows, 'seconds_an_epoch'):6,.0f} s per epoch"
        print(
            f"transformer_mt  {precision:<8}  {speed:8,.0f} target tokens/s{ratio}{epoch}"
            f"  peak {median(rows, 'peak_mib'):6,.0f} MiB"
            f"  {gflops:.0f} GFLOP/s, {gflops / median(rows, 'peak_gflops'):.0%} of the measured matrix peak"
            f"  batch assembly {median(rows, 'assembly_share'):.1%}"
        )
    if joey:
        first = next(iter(ours.values()))
        epoch = median(first, "seconds_an_epoch") * median(first, "tokens_per_second") / joey  # the same tokens
        print(
            f"JoeyNMT 2.3.0             {joey:8,.0f} target tokens/s  {epoch:6,.0f} s per epoch"
            f"  peak {median(theirs, 'peak_mib'):6,.0f} MiB"
        )


def median(rows: list[dict[str, float]], key: str) -> float:
    return statistics.median(row[key] for row in rows)


if __name__ == "__main__":
    main()
