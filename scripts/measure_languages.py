"""How well wrong sentences are recognised: true pairs that are reported, and wrong rows that are found.

TMT_CORPORA=FOLDER python scripts/measure_languages.py

Wrong rows are made of true pairs of five words and more: the source copied into the target, the two sides swapped,
and the source in a third language (the example sentences that come with spaCy).
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path

import spacy.lang
from tabulate import tabulate

from transformer_mt.config.choices import choice
from transformer_mt.corpora.base import Pair
from transformer_mt.data.languages import LanguageCheck
from transformer_mt.text.language import WORDS, is_long

CORPORA = Path(os.environ.get("TMT_CORPORA", "data"))
WRONG = 2_000  # rows made of each kind


def corpora() -> Iterator[tuple[str, str, str, list[Pair]]]:
    """Name, source, target and all pairs of each corpus."""
    folder = CORPORA / "ko-en"
    names = ("jhe.dev", "jhe.eval", "korean-english-park.dev", "korean-english-park.test")
    files = [{"source": str(folder / f"{name}.ko"), "target": str(folder / f"{name}.en")} for name in names]
    tatoeba = {"files": [str(folder / "tatoeba_en-ko.tsv")], "source_column": 1, "target_column": 0}
    for name, kind, source, target, options in (
        ("Multi30k", "multi30k", "de", "en", {"directory": str(CORPORA / "multi30k")}),
        ("AI Hub", "aihub", "ko", "en", {"files": [str(CORPORA / "aihub")]}),
        ("Tatoeba", "tsv", "ko", "en", tatoeba),
        ("JHE and Park", "text", "ko", "en", {"files": files}),
        ("phrasebook", "phrasebook", "de", "en", {}),
    ):
        cls = choice("corpus", kind)
        corpus = cls(cls.Options.model_validate({"kind": kind, **options}), source, target)
        yield name, source, target, [pair for split in corpus.splits() for pair in corpus.read(split)]


def third_languages(*known: str) -> list[str]:
    """Example sentences of other languages."""
    found = []
    for module in pkgutil.iter_modules(spacy.lang.__path__):
        if module.ispkg and module.name not in (*known, "xx"):
            with suppress(ImportError):
                found += importlib.import_module(f"spacy.lang.{module.name}.examples").sentences
    return [sentence for sentence in found if is_long(sentence)]


def share(pairs: Iterable[Pair], source: str, target: str) -> str:
    check = LanguageCheck(source, target, all_pairs=True)
    found = [check(pair) for pair in pairs]
    return f"{sum(found):,} of {len(found):,} ({sum(found) / len(found):.2%})"


def main() -> None:
    rows = []
    for name, source, target, pairs in corpora():
        started = time.process_time()
        reported = share(pairs, source, target)
        microseconds = (time.process_time() - started) / len(pairs) * 1e6
        long = [one for one in pairs if min(len(one.source.split()), len(one.target.split())) >= WORDS][:WRONG]
        others = islice(cycle(third_languages(source, target)), len(long))
        copied = share((one._replace(target=one.source) for one in long), source, target)
        swapped = share((Pair(one.target, one.source, one.place) for one in long), source, target)
        third = share((one._replace(source=text) for one, text in zip(long, others, strict=True)), source, target)
        rows.append([name, reported, copied, swapped, third, f"{microseconds:.0f}"])
    heads = ["corpus", "true pairs reported", "copied: found", "swapped: found", "third language: found", "µs a pair"]
    print(tabulate(rows, heads, tablefmt="github"))


if __name__ == "__main__":
    main()
