"""The one pipeline from a corpus as its owner hands it out to batches of ids: `prepare`.

read and clean -> duplicates, splits, leaks -> learn tokenizers -> tokenise -> vocabularies -> stores

The result replaces the folder at the end, so that a killed run leaves nothing half done; a second run with nothing
changed does nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from transformer_mt.config.cores import cores
from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import Corpus
from transformer_mt.data.doctor import DataReport, report_of
from transformer_mt.data.encoding import Written, build_codecs, write_stores
from transformer_mt.data.parallel import Workers
from transformer_mt.data.prepared import FORMAT, MANIFEST, Prepared, prepared_folder, settings_of
from transformer_mt.data.reading import Cleaner, Stream, clean_stream
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES
from transformer_mt.data.tokenising import Findings, Tokenising, tokenise, train_segmenters
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import recover, replaced_folder
from transformer_mt.text.codec import Codec, save_codecs

Progress = Callable[[str, int], None]  # (what is being done, pairs so far)


def prepare(config: Config, force: bool = False, progress: Progress = lambda doing, pairs: None) -> Prepared:
    """Prepare what a config describes, unless it lies there already, and open it.

    Raises TmtError for bad data (with file and line), for a full disk, and where something else lies in the folder;
    what lies there is then as it was.
    """
    named = prepared_folder(config)
    folder = named.resolve() if named.is_symlink() else named  # the data goes where a link leads
    with _alone(folder, progress):
        recover(folder)
        corpora = [_fetched(corpus, config) for corpus in config.data.corpus]
        fingerprint = _fingerprint(config, corpora)
        if not force and _up_to_date(folder, fingerprint):
            return Prepared.open(named)
        _require_ours(folder, corpora)
        try:
            with replaced_folder(folder) as aside:
                _Preparation(aside, config, corpora, fingerprint, progress).run()
        except OSError as error:
            error.filename = error.filename or str(folder)
            raise from_os_error(error, "writing prepared data") from None
    return Prepared.open(named, is_new=True)


def samples_segmentations(config: Config) -> bool:
    """Are segmentations drawn at random while training (BPE-dropout, subword regularisation)?"""
    return config.source_tokenizer.is_random or config.target_tokenizer.is_random


def _fetched(corpus: CorpusConfig, config: Config) -> Corpus:
    opened: Corpus = corpus.corpus(corpus, config.data.source, config.data.target)
    opened.fetch()
    return opened


@dataclass(frozen=True)
class _Preparation:
    """One run of the pipeline into an empty folder."""

    folder: Path
    config: Config
    corpora: list[Corpus]
    fingerprint: str
    progress: Progress

    def run(self) -> None:
        started = time.monotonic()
        self._scratch.mkdir(parents=True)
        with Workers(cores(self.config.data.workers)) as workers:
            selection = Selection(list(self._read(workers)), self.config.data.cleaning)
            _require_pairs(selection)
            self.progress("learning tokenizers", selection.count("train"))
            segmenters = train_segmenters(self.config, selection, self.folder)
            found = self._tokenise(selection, workers)
        _require_pairs(selection)
        codecs = build_codecs(segmenters, found.words, self.config.has_shared_vocabulary)
        source, target = (codecs[side] for side in SIDES)
        save_codecs((source, target), self.folder)
        written = self._write_ids(selection.splits, codecs)
        self._write_texts(selection)
        shutil.rmtree(self._scratch)
        skipped = [rows for corpus in self.corpora for rows in corpus.passed()]
        seconds = round(time.monotonic() - started, 1)
        self._write_manifest(selection, report_of(self.config, selection, found, written, codecs, skipped, seconds))

    @property
    def _scratch(self) -> Path:
        return self.folder / "scratch"

    def _read(self, workers: Workers) -> Iterator[Stream]:
        data = self.config.data
        for number, (corpus, settings) in enumerate(zip(self.corpora, data.corpus, strict=True)):
            for split in corpus.splits():
                stream = Stream(split, settings.weight, corpus.split_config, self._scratch / f"{number}-{split}.tsv")
                cleaner = Cleaner(data.cleaning, data.source, data.target, stream.trains)
                for read in clean_stream(stream, corpus.read(split), cleaner, workers):
                    self.progress(f"reading {split}", read)
                yield stream

    def _tokenise(self, selection: Selection, workers: Workers) -> Findings:
        found, work = Findings(), Tokenising(self.config, self.folder)
        with self._tokens("w") as scratch:
            for done in tokenise(work, selection.selected(), scratch, workers, found):
                self.progress("tokenising", done)
        selection.discard(found.dropped)
        return found

    def _write_ids(self, splits: list[str], codecs: dict[str, Codec]) -> dict[str, Written]:
        written = {split: Written() for split in splits}
        with self._tokens("r") as scratch:
            for done in write_stores(scratch, self.folder, written, codecs, self.config.data.max_length):
                self.progress("writing ids", done)
        return written

    def _tokens(self, mode: Literal["r", "w"]) -> TextIO:
        return (self._scratch / "tokens").open(mode, encoding="utf-8", newline="\n")

    def _write_texts(self, selection: Selection) -> None:
        """Raw text of the splits that are scored; cleaned text of training where it is segmented anew each epoch."""
        for split in selection.splits:
            if split == "train" and not samples_segmentations(self.config):
                continue
            source_file, target_file = (self.folder / split / f"{side}.txt" for side in SIDES)
            with (
                source_file.open("w", encoding="utf-8", newline="\n") as source,
                target_file.open("w", encoding="utf-8", newline="\n") as target,
            ):
                for line in (pair.line for pair in selection.selected(split)):
                    source.write((line.source if split == "train" else line.raw_source) + "\n")
                    target.write((line.target if split == "train" else line.raw_target) + "\n")

    def _write_manifest(self, selection: Selection, report: DataReport) -> None:
        manifest = {
            "format": FORMAT,
            "settings": settings_of(self.config),
            "fingerprint": self.fingerprint,
            "files": [_checksum(file) for corpus in self.corpora for file in corpus.files()],
            "splits": {split: figures.pairs for split, figures in report.splits.items()},
            "parts": _parts(selection),
            "report": report.to_json(),
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _require_pairs(selection: Selection) -> None:
    for split in selection.splits:
        if not selection.count(split):
            raise TmtError(
                f"no pair is left in the {split} split",
                place="data.corpus",
                remedy="Everything was dropped, or nothing was there. Check the files, the columns, data.cleaning,"
                " and the shares of data.corpus.split.",
            )


def _parts(selection: Selection) -> list[tuple[int, float]]:
    """Training pairs of each corpus with their weight, in the order of the store."""
    counts = zip(selection.streams, selection.counts("train"), strict=True)
    return [(count, stream.weight) for stream, count in counts if stream.trains]


def _fingerprint(config: Config, corpora: list[Corpus]) -> str:
    """Changes with anything that the result depends on; files count by size and time of change."""
    settings = {
        "format": FORMAT,
        **settings_of(config),
        "files": [
            (str(file), file.stat().st_size, file.stat().st_mtime_ns) for corpus in corpora for file in corpus.files()
        ],
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _checksum(file: Path) -> dict[str, Any]:
    name = os.fsencode(file).decode("utf-8", "replace")  # a manifest is UTF-8, a file name may be anything
    return {"path": name, "size": file.stat().st_size, "sha256": sha256_of(file)}


def _up_to_date(folder: Path, fingerprint: str) -> bool:
    try:
        return bool(Prepared.open(folder).manifest.get("fingerprint") == fingerprint)
    except TmtError:
        return False


def _require_ours(folder: Path, corpora: list[Corpus]) -> None:
    """Raises TmtError where new data would take the place of a folder, or a corpus, that `prepare` did not write."""
    remedy = "Choose another data.prepared or another name."
    for file in (file for corpus in corpora for file in corpus.files()):
        if file.resolve().is_relative_to(folder.resolve()):
            raise TmtError("a file of the corpus lies in the folder of prepared data", place=file, remedy=remedy)
    if folder.exists() and not folder.is_dir():
        raise TmtError("a file stands where the folder of prepared data is to be", place=folder, remedy=remedy)
    is_ours = (folder / MANIFEST).is_file() and all((folder / part).is_dir() for part in ("source", "train"))
    if folder.is_dir() and any(folder.iterdir()) and not is_ours:
        beyond = f"{remedy} Where it is of no use to you, delete it:  rm -r '{folder}'"
        raise TmtError("this folder holds files, but no prepared data", place=folder, remedy=beyond)


@contextmanager
def _alone(folder: Path, progress: Progress) -> Iterator[None]:
    """One process prepares a folder at a time; a second one waits.

    Where nothing may be written there is no lock: data that lies there ready can still be used.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise from_os_error(error, "making the folder data.prepared") from None
    try:
        held = lock(
            folder.with_name(f".{folder.name}.lock"),
            lambda: progress("waiting for another process that prepares the same", 0),
        )
    except OSError:
        yield
        return
    with held:
        yield
