#!/usr/bin/env python3
"""Write the copy task of The Annotated Transformer as parallel text: the target is a copy of ten random symbols.

    python scripts/make_copy_task.py [--to data/copy] [--pairs 32000] [--seed 1]

A line is "1" and nine of the symbols 1 to 10, and its translation is the same line. Needs only Python.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

SYMBOLS, LENGTH = 10, 10
HELD_OUT = {"validation": 400, "test": 400}


def sequences(count: int, generator: random.Random) -> list[str]:
    """Random sequences; each begins with the symbol 1, the start symbol of the original."""
    drawn = ([1, *(generator.randint(1, SYMBOLS) for _ in range(LENGTH - 1))] for _ in range(count))
    return [" ".join(map(str, sequence)) for sequence in drawn]


def write_task(folder: Path, pairs: int, seed: int) -> None:
    """Write train, validation and test, each as .source and .target with the same lines."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    for split, count in {"train": pairs, **HELD_OUT}.items():
        text = "".join(f"{line}\n" for line in sequences(count, generator))
        for side in ("source", "target"):
            (folder / f"{split}.{side}").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("data/copy"), help="folder to write into (data/copy)")
    parser.add_argument(
        "--pairs", type=int, default=32_000, help="training pairs (32000: 20 epochs of 20 batches of 80)"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_task(arguments.to, arguments.pairs, arguments.seed)
    print(f"wrote the copy task to {arguments.to}")


if __name__ == "__main__":
    main()
