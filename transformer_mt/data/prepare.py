"""`prepare`: from the original files of a corpus to stores of ids.

read and clean -> duplicates, splits, leaks -> learn tokenizers -> tokenise and count -> vocabularies -> ids

The result replaces the folder in one step at the end, so that a killed run changes nothing. A second run does nothing
if nothing has changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import Corpus
from transformer_mt.data.doctor import DataReport, report_of
from transformer_mt.data.encoding import build_codecs, write_ids
from transformer_mt.data.languages import LanguageCheck
from transformer_mt.data.parallel import Progress as Progress
from transformer_mt.data.parallel import Workers
from transformer_mt.data.parent import Parent
from transformer_mt.data.prepared import (
    FORMAT,
    MANIFEST,
    PARENT,
    CorpusFile,
    Prepared,
    prepared_folder,
    settings_of,
    weighted,
)
from transformer_mt.data.reading import Cleaner, Stream, clean_stream
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.data.tokenising import Tokenising, tokenise, train_segmenters
from transformer_mt.data.trained_on import FILE as TRAINED_ON
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.address import Address, identity_of
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import recover, replaced_folder
from transformer_mt.text.codec import save_codecs, tokenizers_digest


def prepare(
    config: Config,
    force: bool = False,
    progress: Progress = lambda doing, pairs: None,
    parent: Parent | None = None,
    cluster: str | None = None,
) -> Prepared:
    """Prepare the data of a config, unless that was done before, and open it.

    parent:  the model whose tokenizers and vocabularies are used; None: they are learned from the corpus
    cluster: the Ray cluster that does the work, as `Workers`; None: processes of this machine
    Raises TmtError for bad data (with file and line), for a full disk, and if the folder contains something else. The
    folder then stays as it was.
    """
    named = prepared_folder(config)
    folder = named.resolve() if named.is_symlink() else named
    with _locked(folder, progress):
        recover(folder)
        corpora: list[Corpus] = []
        for options in config.data.corpus:
            corpora.append(options.corpus(options, config.data.source, config.data.target))
            corpora[-1].fetch()
        fingerprint = _fingerprint(config, corpora, parent)
        if not force:
            with suppress(TmtError):
                ready = Prepared.open(folder)
                if ready.manifest.fingerprint == fingerprint and ready.report:  # raises if the report is damaged
                    return Prepared(named, ready.manifest)
        _require_replaceable(folder, corpora)
        for corpus in corpora:
            corpus.verify()
        try:
            with replaced_folder(folder) as aside:
                _Preparation(aside, config, corpora, fingerprint, progress, parent, cluster).run()
        except OSError as error:
            error.filename = error.filename or str(folder)
            raise from_os_error(error, "writing prepared data") from None
    return Prepared.open(named, is_new=True)


def samples_segmentations(config: Config) -> bool:
    """Whether training segments sentences at random (BPE-dropout, subword regularisation)."""
    return config.source_tokenizer.is_random or config.target_tokenizer.is_random


@dataclass(frozen=True)
class _Preparation:
    """A run of the pipeline into an empty folder."""

    folder: Path
    config: Config
    corpora: list[Corpus]
    fingerprint: str
    progress: Progress
    parent: Parent | None
    cluster: str | None

    def run(self) -> None:
        started, config, folder, scratch = time.monotonic(), self.config, self.folder, self.folder / "scratch"
        scratch.mkdir(parents=True)
        with Workers(config.data.workers, self.cluster) as workers:
            files = (file for corpus in self.corpora for file in corpus.files())
            workers.require([scratch, *(file for file in files if not isinstance(file, Address))])
            selection = Selection(list(self._read(scratch, workers)), config.data.cleaning)
            _require_pairs(selection)
            self.progress("learning tokenizers", selection.count("train"))
            learn = train_segmenters if self.parent is None else self.parent.segmenters
            segmenters = learn(config, selection, folder)
            findings, numbers = tokenise(Tokenising(config, folder), selection, workers, self.progress)
        _require_pairs(selection)
        words = {side: findings.words["train", side] for side in SIDES}
        parent = self.parent
        known = parent.vocabularies if parent is not None else None
        codecs = build_codecs(segmenters, words, config.has_shared_vocabulary, known)
        save_codecs((codecs[SOURCE], codecs[TARGET]), folder)
        write_ids(folder, selection, numbers, codecs, self.progress)
        self._write_texts(selection)
        skipped = [rows for corpus in self.corpora for rows in corpus.skipped()]
        seconds = round(time.monotonic() - started, 1)
        of_parent = None if parent is None else parent.figures(selection, codecs)
        report = report_of(config, selection, findings, codecs, skipped, seconds, of_parent)
        (folder / TRAINED_ON).write_bytes(TrainedOn.of(selection.hashes("train")).to_bytes())
        shutil.rmtree(scratch)
        self._write_manifest(selection, report)

    def _read(self, scratch: Path, workers: Workers) -> Iterator[Stream]:
        data = self.config.data
        for number, (corpus, options) in enumerate(zip(self.corpora, data.corpus, strict=True)):
            for split in corpus.splits():
                stream = Stream(split, options.weight, corpus.split_config, scratch / f"{number}-{split}.tsv")
                rule = data.cleaning.language if corpus.languages is None else "off"  # its languages are certain
                drops = rule == "drop" and stream.trains
                cleaner = Cleaner(data.cleaning, data.source, data.target, stream.trains, drops)
                check = None if rule == "off" or drops else LanguageCheck(data.source, data.target, all_pairs=False)
                clean_stream(stream, corpus.read(split), cleaner, workers, self.progress, check)
                yield stream

    def _write_texts(self, selection: Selection) -> None:
        """Write the raw text of evaluation splits; for train the cleaned text, if training segments it at random."""
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
        files = [file for corpus in self.corpora for file in corpus.files()]
        by_stream = zip(selection.streams, selection.counts("train"), strict=True)
        parts = [(pairs, stream.weight) for stream, pairs in by_stream if stream.trains]  # in the store's order
        manifest = {
            "format": FORMAT,
            "settings": settings_of(self.config),
            "fingerprint": self.fingerprint,
            "files": [CorpusFile.of(file).model_dump() for file in files],
            "tokenizers": tokenizers_digest(self.folder),
            "splits": {split: figures.pairs for split, figures in report.splits.items()},
            "parts": weighted(parts, self.config.data.temperature),
            "report": report.to_json(),
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _require_pairs(selection: Selection) -> None:
    for split in selection.splits:
        if not selection.count(split):
            raise selection.nothing_left(split)


def _fingerprint(config: Config, corpora: list[Corpus], parent: Parent | None) -> str:
    """A hash of everything that the result depends on: settings, and size and modification time of the files."""
    settings = {
        "format": FORMAT,
        **settings_of(config),
        "files": [identity_of(file) for corpus in corpora for file in corpus.files()],
        **({PARENT: parent.identity()} if parent is not None else {}),
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _require_replaceable(folder: Path, corpora: list[Corpus]) -> None:
    """Raises TmtError if prepared data would replace files of a corpus, or a folder that `prepare` did not write."""
    remedy = "Choose another data.prepared or another name."
    for file in (file for corpus in corpora for file in corpus.files()):
        if not isinstance(file, Address) and file.resolve().is_relative_to(folder.resolve()):
            raise TmtError("a file of the corpus is inside the folder of prepared data", place=file, remedy=remedy)
    if folder.exists() and not folder.is_dir():
        raise TmtError("there is a file with the name of the folder for prepared data", place=folder, remedy=remedy)
    is_prepared = (folder / MANIFEST).is_file() and all((folder / part).is_dir() for part in ("source", "train"))
    if folder.is_dir() and any(folder.iterdir()) and not is_prepared:
        remedy = f"{remedy} If you do not need this folder, delete it:  rm -r '{folder}'"
        raise TmtError("this folder contains files but no prepared data", place=folder, remedy=remedy)


@contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Lock a folder, so that only one process prepares it at a time; a second one waits.

    A folder without write permission is not locked, so that data in it can still be used.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise from_os_error(error, "creating the folder data.prepared") from None
    try:
        held = lock(
            folder.with_name(f".{folder.name}.lock"),
            lambda: progress("waiting for another process that prepares this data", 0),
        )
    except OSError:
        yield
        return
    with held:
        yield
