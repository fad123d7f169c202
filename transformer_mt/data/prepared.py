"""Prepared data on disk. `tmt prepare` writes it; training and evaluation read it.

source/, target/     tokenizer and vocabulary of each side; only source/ if they are shared
SPLIT/               a store of ids (`store`), and the text: raw in validation and test sets; cleaned in train, if
                     training segments it at random
trained_on.safetensors   hashes of the training sentences; they travel with the model (`trained_on`)
manifest.json        fingerprint of config and files, splits, parts with weights, and the report
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.direction import DirectionName
from transformer_mt.config.runs import MANIFEST as MANIFEST
from transformer_mt.config.schema import Config
from transformer_mt.data.doctor import DataReport
from transformer_mt.data.store import REDO, SIDES, Store
from transformer_mt.data.texts import Lines
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.address import Address
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lines import path_of, printable
from transformer_mt.files.replace import recover
from transformer_mt.text.codec import Codec, load_codecs, tokenizers_digest

PARENT = "parent"  # of the settings: whether the tokenizers are those of another model
FORMAT = 1  # version of all files in the folder


class CorpusFile(BaseModel):
    """size: in bytes; sha256: hexadecimal.

    Of a file at an address, sha256 is empty unless the config has it, size may be unknown, and version is what the
    server says about it.
    """

    path: str
    size: int | None
    sha256: str
    version: str = ""

    @classmethod
    def of(cls, file: Path) -> CorpusFile:
        if isinstance(file, Address):
            return cls(path=str(file), sha256=file.sha256 or "", **file.status._asdict())
        return cls(path=printable(file), size=file.stat().st_size, sha256=sha256_of(file))


def remembered(files: Iterable[Path]) -> list[dict[str, Any]]:
    """The files of a corpus as a manifest and a run remember them: a `CorpusFile` of each."""
    return [CorpusFile.of(file).model_dump() for file in files]


class Run(BaseModel):
    """Pairs of a split that follow each other in its store. direction: as `ko-en`; tags: before their sources"""

    pairs: int
    direction: DirectionName
    tags: list[str] = []


class Manifest(BaseModel):
    """splits: number of pairs; parts: training pairs and weight of each corpus; report: DataReport as JSON.

    runs:      of each split, in the order of its store; empty if there is one direction and no tag
    tokenizers: their checksum; empty if an older version wrote it
    without_times: as `fingerprint`, without the times of files; empty if an older version wrote it
    """

    format: int
    settings: dict[str, Any]
    fingerprint: str
    without_times: str = ""
    files: list[CorpusFile]
    tokenizers: str = ""
    splits: dict[str, int]
    parts: list[tuple[int, float]]
    runs: dict[str, list[Run]] = {}
    report: dict[str, Any]


class Prepared:
    """Prepared data. Opening it reads only the manifest.

    is_new: whether this call of `prepare` wrote it
    """

    def __init__(self, folder: Path, manifest: Manifest, is_new: bool = False) -> None:
        self.folder, self.manifest, self.is_new = folder, manifest, is_new

    def __repr__(self) -> str:
        pairs = ", ".join(f"{split} {count:,}" for split, count in self.manifest.splits.items())
        return f"Prepared('{self.folder}', pairs: {pairs})"

    @classmethod
    def open(cls, folder: Path, is_new: bool = False) -> Prepared:
        """Raises TmtError if nothing is prepared there, another version wrote it, or the manifest is damaged."""
        file = folder / MANIFEST
        recover(folder)
        try:
            manifest = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
                raise TmtError("another version of tmt prepared this data", place=file, remedy=_PREPARE)
            return cls(folder, Manifest.model_validate(manifest), is_new)
        except (FileNotFoundError, NotADirectoryError):
            raise TmtError("no prepared data in this folder", place=folder, remedy=_ELSEWHERE) from None
        except OSError as error:
            raise from_os_error(error, "opening prepared data") from None
        except ValueError:  # no JSON, or other keys
            raise TmtError("the manifest is damaged", place=file, remedy=_PREPARE) from None

    @cached_property
    def report(self) -> DataReport:
        """The report of `prepare`. Raises TmtError if it is damaged."""
        try:
            report = DataReport.from_json(self.manifest.report)
            for names, found in ((SIDES, report.vocabulary), (SIDES, report.languages), (self.splits, report.splits)):
                _ = [found[name] for name in names]  # a flipped bit in a name
            return report
        except (KeyError, ValueError, TypeError, AttributeError):
            raise TmtError("the manifest is damaged", place=self.folder / MANIFEST, remedy=_PREPARE) from None

    def identity(self) -> dict[str, Any]:
        """What a run remembers of its data: the files of the corpus, and the checksum of the tokenizers."""
        return {
            "corpus": [file.model_dump() for file in self.manifest.files],
            "tokenizers": self.manifest.tokenizers,
        }

    @property
    def picture(self) -> Path:
        """The file with the plot of sentence lengths."""
        return self.folder / "plots" / "lengths.png"

    @property
    def splits(self) -> tuple[str, ...]:
        """train, validation, then the names of the test sets."""
        return tuple(self.manifest.splits)

    @property
    def test_sets(self) -> tuple[str, ...]:
        return self.splits[2:]

    @property
    def parts(self) -> list[tuple[int, float]]:
        """Number of training pairs and weight of each corpus."""
        return self.manifest.parts

    @property
    def pairs_an_epoch(self) -> float:
        """The training pairs that an epoch sees: each corpus counts with its weight."""
        return sum(pairs * weight for pairs, weight in self.parts)

    def runs(self, split: str) -> list[Run]:
        """The directions and tags of the pairs of a split, in its order. Raises TmtError if the manifest is damaged."""
        name, data = self.named(split), self.manifest.settings["data"]
        if not self.manifest.runs and not data.get("directions"):
            return [Run(pairs=self.manifest.splits[name], direction=f"{data['source']}-{data['target']}")]
        runs = self.manifest.runs.get(name, [])
        tags = {tag for run in runs for tag in run.tags}
        if sum(run.pairs for run in runs) != self.manifest.splits[name] or not tags <= {*self.codecs()[0].tags}:
            raise TmtError("the manifest is damaged", place=self.folder / MANIFEST, remedy=_PREPARE)
        return runs

    def places(self, split: str, most: int | None = None) -> dict[str, list[int]]:
        """The places of the pairs of each direction in a split, at most the first `most` of each."""
        found: dict[str, list[int]] = {}
        start = 0
        for run in self.runs(split):
            found.setdefault(run.direction, []).extend(range(start, start + run.pairs))
            start += run.pairs
        return {name: places[:most] for name, places in found.items()}

    def lengths(self) -> dict[str, list[int]]:
        """By side, such as `source (ko)`: element n counts the training sentences of n tokens."""
        train, languages = self.report.splits["train"], self.report.languages
        return {f"{side} ({languages[side]})": train.side(side).histogram for side in SIDES}

    def is_of(self, config: Config) -> bool:
        """Whether it was prepared with the settings of this config."""
        return self.manifest.settings == settings_of(config)

    def named(self, split: str) -> str:
        """The name of a split; `test` means the first test set. Raises TmtError if it is unknown."""
        if split == "test" and "test" not in self.splits and self.test_sets:
            return self.test_sets[0]
        if split not in self.splits:
            raise TmtError(
                f"unknown split '{split}'", place=self.folder, remedy=f"Use one of: {', '.join(self.splits)}."
            )
        return split

    def left_out(self, split: str) -> int:
        """How many pairs of the files of a split were dropped; 0 if it has no files, or if the report is damaged."""
        with suppress(TmtError):
            if (counts := self.report.pairs.get(self.named(split))) is not None:
                return counts.read - counts.kept
        return 0

    def store(self, split: str) -> Store:
        """The pairs of a split. Raises TmtError if files are missing or damaged; a model would fail on unknown ids."""
        store = Store(self.folder / self.named(split))
        for name, side in zip(SIDES, (store.source, store.target), strict=True):
            side.require_below(self.report.vocabulary[name])
        return store

    def raw(self, split: str) -> tuple[list[str], list[str]]:
        """Sources and references of a split as text. Raises TmtError if the files are missing or damaged."""
        texts = []
        for side in SIDES:
            file = self.folder / self.named(split) / f"{side}.txt"
            try:
                with file.open(encoding="utf-8", newline="\n") as lines:
                    texts.append([line.removesuffix("\n") for line in lines])
            except FileNotFoundError:
                remedy = "Use the validation split or a test set: only these are stored with their text."
                raise TmtError("the text of this split is not stored", place=file, remedy=remedy) from None
            except UnicodeDecodeError:
                raise TmtError("the file is damaged: its text is not UTF-8", place=file, remedy=REDO) from None
        if len(texts[0]) != len(texts[1]):
            counts = f"{len(texts[0]):,} sources and {len(texts[1]):,} references"
            raise TmtError(f"the text files are damaged: {counts}", place=file.parent, remedy=REDO)
        return texts[0], texts[1]

    def training_text(self) -> tuple[Lines, Lines]:
        """Cleaned sources and targets of the training pairs, which stay on disk.

        Raises TmtError if the files are missing or damaged; they exist only if training samples segmentations.
        """
        source, target = (Lines(self.folder / "train" / f"{side}.txt", REDO) for side in SIDES)
        if not len(source) == len(target) == self.manifest.splits["train"]:
            counts = f"{len(source):,} sources, {len(target):,} targets and {self.manifest.splits['train']:,} pairs"
            raise TmtError(f"the text files are damaged: {counts}", place=self.folder / "train", remedy=REDO)
        return source, target

    def codecs(self) -> tuple[Codec, Codec]:
        """Source and target codec, loaded at the first call; one object if they are shared."""
        return self._codecs

    @cached_property
    def _codecs(self) -> tuple[Codec, Codec]:
        codecs = load_codecs(self.folder)
        if self.manifest.tokenizers not in ("", tokenizers_digest(self.folder)):
            raise TmtError("the tokenizers are damaged: their checksum differs", place=self.folder, remedy=REDO)
        return codecs


def settings_of(config: Config) -> dict[str, Any]:
    """The settings that prepared data depends on, as plain values."""
    data = config.data.model_dump(mode="json", exclude={"workers", "prepared"})
    for key in ("language", "entities", "invalid"):  # data prepared before these keys existed is up to date
        if data["cleaning"][key] == getattr(CleaningConfig(), key):
            del data["cleaning"][key]
    if data["temperature"] is None:  # the same
        del data["temperature"]
    tokenizer = config.tokenizer.model_dump(mode="json")
    for section in (tokenizer, tokenizer.get("source", {}), tokenizer.get("target", {})):
        for key in ("extend", "split_digits"):  # data prepared before these keys existed is up to date
            if not section.get(key, True):
                del section[key]
    return {
        "data": without_credentials_in(data),
        "tokenizer": tokenizer,
        **({PARENT: True} if config.training.start_from else {}),
    }


def open_prepared(config: Config) -> Prepared:
    """The prepared data of a config.

    Raises TmtError if it is missing, or was prepared again with another config of the same name.
    """
    prepared = Prepared.open(prepared_folder(config))
    if not prepared.is_of(config):
        raise TmtError(
            "this data was prepared with another config of the same name", place=prepared.folder, remedy=_PREPARE
        )
    return prepared


def prepared_folder(config: Config) -> Path:
    """The folder for the prepared data of a config."""
    return path_of(config.data.prepared) / config.name


_ELSEWHERE = "Start tmt in the folder of the training, or prepare it:  tmt prepare --config CONFIG"
_PREPARE = "Prepare it:  tmt prepare --config CONFIG"
