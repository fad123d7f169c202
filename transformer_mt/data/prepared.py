"""Prepared data on disk, ready to be trained on: what `tmt prepare` writes and everyone else reads.

source/, target/     tokenizer and vocabulary of each side (only source/ where they are shared)
SPLIT/               a store of ids (`store`), and the text: raw in validation and test, cleaned in training
                     where segmentations are sampled
manifest.json        fingerprint of config and files, splits, parts with weights, and the report
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from transformer_mt.config.schema import Config
from transformer_mt.data.doctor import DataReport
from transformer_mt.data.store import SIDES, Store
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.lines import path_of
from transformer_mt.files.replace import recover
from transformer_mt.text.codec import Codec, load_codecs

MANIFEST = "manifest.json"
FORMAT = 1  # of all that lies in the folder


class CorpusFile(BaseModel):
    """size: in bytes; sha256: in hexadecimal digits."""

    path: str
    size: int
    sha256: str


class Manifest(BaseModel):
    """splits: pairs of each; parts: training pairs of each corpus, with its weight; report: DataReport as JSON."""

    format: int
    settings: dict[str, Any]
    fingerprint: str
    files: list[CorpusFile]
    splits: dict[str, int]
    parts: list[tuple[int, float]]
    report: dict[str, Any]


class Prepared:
    """One prepared corpus. Opening it reads the manifest only.

    is_new: was it made just now, and not found?
    """

    def __init__(self, folder: Path, manifest: Manifest, is_new: bool = False) -> None:
        self.folder, self.manifest, self.is_new = folder, manifest, is_new

    @classmethod
    def open(cls, folder: Path, is_new: bool = False) -> Prepared:
        """Raises TmtError where nothing was prepared, or not by this version, or the manifest is damaged."""
        file = folder / MANIFEST
        recover(folder)
        try:
            manifest = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise TmtError("no prepared data here", place=folder, remedy=_PREPARE) from None
        except OSError as error:
            raise from_os_error(error, "opening prepared data") from None
        except ValueError:
            raise TmtError("the manifest is damaged", place=file, remedy=_PREPARE) from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise TmtError("this data was prepared by another version of tmt", place=file, remedy=_PREPARE)
        try:
            return cls(folder, Manifest.model_validate(manifest), is_new)
        except ValidationError:
            raise TmtError("the manifest is damaged", place=file, remedy=_PREPARE) from None

    @cached_property
    def report(self) -> DataReport:
        """What preparing found. Raises TmtError if the manifest does not hold it."""
        try:
            return DataReport.from_json(self.manifest.report)
        except (KeyError, ValueError, TypeError, AttributeError):
            raise TmtError("the manifest is damaged", place=self.folder / MANIFEST, remedy=_PREPARE) from None

    @property
    def picture(self) -> Path:
        """Where the lengths of the training sentences are drawn."""
        return self.folder / "plots" / "lengths.png"

    @property
    def splits(self) -> tuple[str, ...]:
        """train, validation, and the test sets by name."""
        return tuple(self.manifest.splits)

    @property
    def test_sets(self) -> tuple[str, ...]:
        return self.splits[2:]

    @property
    def parts(self) -> list[tuple[int, float]]:
        """Training pairs of each corpus, with its weight."""
        return self.manifest.parts

    def named(self, split: str) -> str:
        """A split by its name; `test` is the first test set. Raises TmtError for an unknown one."""
        if split == "test" and "test" not in self.splits and self.test_sets:
            return self.test_sets[0]
        if split not in self.splits:
            raise TmtError(f"no split '{split}'", place=self.folder, remedy=f"There are: {', '.join(self.splits)}.")
        return split

    def store(self, split: str) -> Store:
        return Store(self.folder / self.named(split))

    def raw(self, split: str) -> tuple[list[str], list[str]]:
        """Sources and references of a split as natural text. Raises TmtError if they were not kept, or are damaged."""
        texts = []
        for side in SIDES:
            file = self.folder / self.named(split) / f"{side}.txt"
            try:
                with file.open(encoding="utf-8", newline="\n") as lines:
                    texts.append([line.removesuffix("\n") for line in lines])
            except FileNotFoundError:
                remedy = "Only validation and test splits keep theirs."
                raise TmtError("the text of this split was not kept", place=file, remedy=remedy) from None
            except UnicodeDecodeError:
                raise TmtError("this text is damaged: it is not UTF-8", place=file, remedy=_FORCE) from None
        if len(texts[0]) != len(texts[1]):
            counts = f"{len(texts[0]):,} sources and {len(texts[1]):,} references"
            raise TmtError(f"this text is damaged: {counts}", place=file.parent, remedy=_FORCE)
        return texts[0], texts[1]

    def codecs(self) -> tuple[Codec, Codec]:
        """Source and target codec, loaded when first asked for; one object where they are shared."""
        return self._codecs

    @cached_property
    def _codecs(self) -> tuple[Codec, Codec]:
        return load_codecs(self.folder)


def settings_of(config: Config) -> dict[str, Any]:
    """The part of a config that prepared data depends on, as plain values."""
    return {
        "data": config.data.model_dump(mode="json", exclude={"workers", "prepared"}),
        "tokenizer": config.tokenizer.model_dump(mode="json"),
    }


def open_prepared(config: Config) -> Prepared:
    """The data a config describes, as it was prepared.

    Raises TmtError where it is not there, or where data of another config was prepared under the same name since.
    """
    prepared = Prepared.open(prepared_folder(config))
    if prepared.manifest.settings != settings_of(config):
        raise TmtError(
            "this data was prepared from another config of the same name, so its splits are not those of this model",
            place=prepared.folder,
            remedy="Prepare with the config of the run (runs/NAME/config.yaml), or name files:"
            "  --source FILE --reference FILE",
        )
    return prepared


def prepared_folder(config: Config) -> Path:
    """Where the prepared data of a config lies."""
    return path_of(config.data.prepared) / config.name


_PREPARE = "Prepare it:  tmt prepare --config C"
_FORCE = "Prepare it again:  tmt prepare --config C --force"
