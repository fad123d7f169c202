"""Lists every function that a sentence passes through: from the file to the loss, and from the command line to its
translation.

    python scripts/follow_sentence.py            both lists
    python scripts/follow_sentence.py --count    the number of functions in each

Trains for a few updates on a small corpus, in which a sentence repeats one word, and translates a sentence with the
model. A sentence passes through a function if one of its variables or its result contains that word, or one number, at
least twenty times in a row: as text, as tokens, as ids, or as a row of a tensor of ids. The functions between ids and
logits are not listed: they are the model.

PYTHONPATH=FOLDER uses another version of the package.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TIMES = 20  # words in the shortest sentence
WORDS = ("quokka", "wombat")
CONFIG = """
name: followed
data: {source: en, target: de, corpus: {kind: tsv, files: pairs.tsv}, max_length: 80, workers: 1}
tokenizer: {kind: whitespace, min_frequency: 1}
model: {d_model: 16, n_heads: 2, d_ff: 32, encoder_layers: 1, decoder_layers: 1, dropout: 0.0}
training: {max_epochs: 3, batch_tokens: 256, schedule: constant, learning_rate: 0.01, warmup_steps: 4}
decoding: {min_length_ratio: 1.5}
runtime: {device: cpu, threads: 1}
"""


def shows(value: Any, depth: int = 3) -> bool:
    """Whether a value contains a sentence."""
    if isinstance(value, str):
        return any(value.count(word) >= TIMES for word in WORDS)
    if isinstance(value, bytes):
        return any(value.count(word.encode()) >= TIMES for word in WORDS)
    kind = str(getattr(value, "dtype", ""))
    if kind:
        return "int" in kind and getattr(value, "ndim", 0) > 0 and has_run(value.reshape(-1).tolist())
    if depth == 0:
        return False
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(shows(getattr(value, field.name, None), depth - 1) for field in dataclasses.fields(value))
    if isinstance(value, dict):
        return any(shows(one, depth - 1) for one in list(value.values())[:100])
    if isinstance(value, (list, tuple)):
        return has_run(value) or any(shows(one, depth - 1) for one in value[:100])
    return False


def has_run(values: Any) -> bool:
    """Whether a word, or a number that is not a special token (0 to 3), is repeated at least twenty times."""
    if not all(isinstance(value, (int, str)) for value in values):
        return False
    for value, alike in groupby(values):
        counts = value in WORDS if isinstance(value, str) else value > 3
        if counts and sum(1 for _ in alike) >= TIMES:
            return True
    return False


class Follower:
    """A profile function that records the functions of the package in the order in which they first see a sentence."""

    def __init__(self, last: str) -> None:
        self.stops: list[str] = []
        self.last = last
        self._seen: set[CodeType] = set()  # also those outside the package

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_name == self.last:
            sys.setprofile(None)
        if event not in ("call", "return") or code in self._seen:
            return
        parts = Path(code.co_filename).parts
        if code.co_name.startswith("<") or "transformer_mt" not in parts or "scripts" in parts:
            self._seen.add(code)
            return
        names = code.co_varnames[: code.co_argcount] if event == "call" else tuple(frame.f_locals)
        seen = [frame.f_locals[name] for name in names if name in frame.f_locals and name != "self"]
        if shows(seen) or (event == "return" and shows(value)):
            self._seen.add(code)
            file = Path(code.co_filename).as_posix().rpartition("transformer_mt/")[2].removesuffix(".py")
            self.stops.append(f"{file}: {getattr(code, 'co_qualname', code.co_name)}")


def follow(arguments: list[str], last: str = "") -> list[str]:
    """The functions that a sentence of a command passes through, until the function `last` returns."""
    from transformer_mt.cli.main import run

    follower = Follower(last)
    sys.argv = ["tmt", *arguments]
    sys.setprofile(follower)
    try:
        run()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return follower.stops


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", action="store_true", help="print only the number of functions")
    only_counts = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        lengths = range(TIMES, 80)
        rows = ["\t".join(" ".join([word] * length) for word in WORDS) for length in lengths]
        Path("pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        Path("config.yaml").write_text(CONFIG, encoding="utf-8")
        ways = {
            "file to loss": follow(["train", "--config", "config.yaml", "--run-dir", "run"], "linear_cross_entropy"),
            "command line to translation": follow(["translate", "--model", "run", " ".join(WORDS[:1] * TIMES)]),
        }
        os.chdir("/")
    for way, stops in ways.items():
        print(f"{way}: {len(stops)} stops")
        for number, stop in enumerate(() if only_counts else stops, start=1):
            print(f"{number:4}  {stop}")


if __name__ == "__main__":
    main()
