"""Small corpora as tables, and configs that use them, for tests of `prepare`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from transformer_mt.config.schema import Config
from transformer_mt.data.prepare import prepare
from transformer_mt.data.prepared import MANIFEST, Prepared
from transformer_mt.data.sampling import SampledPair
from transformer_mt.data.store import Store, StoreWriter

Pairs = Iterable[tuple[str, str]]


def stored(folder: Path, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Store:
    """A store of these pairs of ids."""
    with ExitStack() as files:
        writer = StoreWriter(folder, files)
        for pair in pairs:
            writer.extend(*((np.array([len(ids)]), np.array(ids, np.int32)) for ids in pair))
    return Store(folder)


class Each:
    """A stand-in for `SegmentationSampler` that calls a function for each pair."""

    def __init__(self, draw: Callable[[int, Random], SampledPair], together: int = 1) -> None:
        self.draw, self.together = draw, together

    def __call__(self, pairs: Sequence[tuple[int, str]]) -> list[SampledPair]:
        return [self.draw(pair, Random(seed)) for pair, seed in pairs]

    def close(self) -> None:
        pass


class Workshop:
    """A temporary folder with corpora and prepared data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def numbered(count: int, start: int = 0) -> list[tuple[str, str]]:
        """Pairs that all differ, even without case and punctuation."""
        return [(f"der Satz {number} hier", f"the sentence {number} here") for number in range(start, start + count)]

    def table(self, name: str, pairs: Pairs) -> str:
        """A JSON lines file, which can contain any text."""
        file = self.folder / f"{name}.jsonl"
        rows = (json.dumps({"source": source, "target": target}) + "\n" for source, target in pairs)
        file.write_text("".join(rows), encoding="utf-8")
        return str(file)

    def whole(self, pairs: Pairs, name: str = "corpus", **settings: Any) -> dict[str, Any]:
        """A corpus that `prepare` divides."""
        return {"kind": "jsonl", "files": self.table(name, pairs), **settings}

    def splits(
        self,
        train: Pairs,
        validation: Pairs | None = None,
        test: Pairs | None = None,
        name: str = "splits",
        **more: Any,
    ) -> dict[str, Any]:
        """A corpus in splits; validation and test have three other pairs if they are not given."""
        return {
            "kind": "jsonl",
            "train": self.table(f"{name}-train", train),
            "validation": self.table(
                f"{name}-validation", self.numbered(3, 10_000) if validation is None else validation
            ),
            "test": self.table(f"{name}-test", self.numbered(3, 20_000) if test is None else test),
            **more,
        }

    def config(self, *corpora: dict[str, Any], tokenizer: dict[str, Any] | None = None, **data: Any) -> Config:
        return Config.model_validate(
            {
                "name": "work",
                "data": {
                    "source": "de",
                    "target": "en",
                    "corpus": corpora,
                    "prepared": str(self.folder / "prepared"),
                    "workers": 1,
                    **data,
                },
                "tokenizer": tokenizer or {"kind": "whitespace", "min_frequency": 1},
                "training": {"max_epochs": 1},
            }
        )

    def prepare(self, *corpora: dict[str, Any], tokenizer: dict[str, Any] | None = None, **data: Any) -> Prepared:
        return prepare(self.config(*corpora, tokenizer=tokenizer, **data))

    @staticmethod
    def content(folder: Path) -> dict[str, Any]:
        """The bytes of all files of prepared data; the manifest as JSON, without the seconds that it took."""
        files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        manifest = json.loads(files.pop(MANIFEST))
        manifest["report"].pop("seconds")
        return {**files, MANIFEST: manifest}

    @staticmethod
    def sentences(prepared: Prepared, split: str) -> list[tuple[str, str]]:
        """The pairs of a split, decoded from their ids."""
        (source, target), store = prepared.codecs(), prepared.store(split)
        return [(source.decode(store.source[row]), target.decode(store.target[row])) for row in range(len(store))]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)
