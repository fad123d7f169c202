#!/usr/bin/env python3
"""Write a table of sentence pairs to practise on: sentences of a grammar, with faults that real tables have.

    python scripts/make_phrasebook_table.py [--to FILE] [--pairs 4000] [--seed 1] [--source de] [--target en]

The first row names the columns. Of every hundred rows, five have a fault: see `FAULTS` and `REPEATED`. Another seed
gives other sentences. Languages: ko, en, de.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from transformer_mt.phrasebook import LANGUAGES, generate

Row = tuple[str, str]

NAMES = {"ko": "korean", "en": "english", "de": "german"}
FAULTS: dict[int, Callable[[str, str], Row]] = {  # by the last two digits of the row's number
    10: lambda source, target: (source, ""),  # not translated yet
    25: lambda source, target: (source, source),  # the source copied into both columns
    40: lambda source, target: (f"  {source} ", target),  # spaces around a sentence
    55: lambda source, target: (
        unicodedata.normalize("NFD", source),
        target,
    ),  # ü as u and two dots
}
REPEATED = 70  # this row is the row before it again


def rows(source: str, target: str, pairs: int, seed: int) -> Iterator[Row]:
    """The rows of the table, without its header."""
    before = ("", "")
    for number, pair in enumerate(generate(source, target, "train", pairs, seed), start=1):
        place = number % 100
        row = before if place == REPEATED else FAULTS.get(place, lambda *row: row)(*pair)
        yield row
        before = row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--to", type=Path, default=Path("data/sentences.tsv"), help="file to write")
    parser.add_argument("--pairs", type=int, default=4_000, help="number of rows (4000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other sentences (1)")
    parser.add_argument("--source", choices=LANGUAGES, default="de", help="language of the first column (de)")
    parser.add_argument("--target", choices=LANGUAGES, default="en", help="language of the second column (en)")
    given = parser.parse_args()
    if given.source == given.target:
        parser.error("--source and --target must be two languages")
    given.to.parent.mkdir(parents=True, exist_ok=True)
    table = [(NAMES[given.source], NAMES[given.target]), *rows(given.source, given.target, given.pairs, given.seed)]
    given.to.write_text("".join(f"{one}\t{other}\n" for one, other in table), encoding="utf-8", newline="\n")
    print(f"{given.to}: {given.pairs:,} rows below a header")


if __name__ == "__main__":
    main()
