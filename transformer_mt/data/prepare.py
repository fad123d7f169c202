"""`prepare`: from the original files of a corpus to stores of ids.

read and clean -> duplicates, splits, leaks -> learn tokenizers -> tokenise and count -> vocabularies -> ids

The result replaces the folder in one step at the end, so that a killed run changes nothing. Its finished shards stay in
a folder beside it, and the next run goes on from there. A second run does nothing if nothing has changed.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import WHOLE, Corpus, FilesCorpus, FilesOptions
from transformer_mt.corpora.splits import mixed_of
from transformer_mt.data.current import Basis, current, files_of_tokenizers, made_before
from transformer_mt.data.doctor import DataReport, report_of
from transformer_mt.data.encoding import build_codecs, write_ids
from transformer_mt.data.journal import Journal, has_results, is_journal_of
from transformer_mt.data.parallel import LostError, Workers, no_progress
from transformer_mt.data.parallel import Progress as Progress
from transformer_mt.data.parent import Parent
from transformer_mt.data.passes import Pass, passes_of
from transformer_mt.data.prepared import (
    FORMAT,
    MANIFEST,
    Prepared,
    Run,
    prepared_folder,
    remembered,
    settings_of,
)
from transformer_mt.data.reading import Cleaner, clean_stream
from transformer_mt.data.selection import Selection
from transformer_mt.data.shards import Stream
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.data.tokenising import SCRATCH, Tokenising, shown, tokenise, train_segmenters
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.data.weighing import weights_of
from transformer_mt.errors import DISK_FULL, MachineError, TmtError, from_os_error
from transformer_mt.files.address import Address, changed_error, identity_of
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import recover, replaced_folder, unfinished
from transformer_mt.text.codec import save_codecs, tokenizers_digest


def prepare(
    config: Config,
    force: bool = False,
    progress: Progress = no_progress,
    parent: Parent | None = None,
    cluster: str | None = None,
    say: Callable[[str], object] = lambda message: None,
    accept: Callable[[Sequence[Path]], object] = lambda files: None,
) -> Prepared:
    """Prepare the data of a config, unless that was done before, and open it.

    parent:  the model whose tokenizers and vocabularies are used; None: they are learned from the corpus
    cluster: the Ray cluster that does the work, as `Workers`; None: processes of this machine
    say:     called with messages about an interrupted run, settings without effect, and why data is prepared again
    accept:  called with the files of the corpus before anything is written; may raise TmtError
    Raises TmtError for bad data (with file and line), for a full disk, and if the folder contains something else. The
    folder then stays as it was.
    """
    named = prepared_folder(config)
    folder = named.resolve() if named.is_symlink() else named
    with _locked(folder, progress):
        recover(folder)
        passes = passes_of(config.data)
        corpora = [one.corpus for one in passes]
        try:
            basis = Basis.of(config, corpora, parent)
            ready, note = current(folder, basis, force, progress)
        except TmtError:
            ready, note = (None, "") if force else made_before(folder, config, parent)
            if ready is None:
                raise
            say(f"{named}: {note}")
        if ready is not None:
            return Prepared(named, ready.manifest)
        _require_outside(folder, corpora)
        require_prepared_or_empty(folder)
        _verify(config, corpora, parent)
        accept(_files_of(config, corpora))
        _report_splits(config, corpora, say)
        if note:
            say(f"{named}: {note}")

        def can_continue(aside: Path) -> bool:
            return is_journal_of(aside / SCRATCH, basis.fingerprint)

        left = [aside for aside in unfinished(folder) if has_results(aside / SCRATCH)]
        if left:
            say(_GOES_ON if any(map(can_continue, left)) else _STARTS_AGAIN)
        try:
            with replaced_folder(folder, can_continue, _INTERRUPTIONS) as aside:
                _Preparation(aside, config, passes, basis, progress, parent, cluster).run()
        except _INTERRUPTIONS:
            if any(map(can_continue, unfinished(folder))):
                say(_IS_KEPT)
            raise
        except OSError as error:
            raise _error_of_writing(error, folder) from None
    return Prepared.open(named, is_new=True)


_INTERRUPTIONS = (KeyboardInterrupt, LostError)
_GOES_ON = "an interrupted run has prepared a part of this data; going on from there"
_STARTS_AGAIN = "an interrupted run prepared a part of other data: settings or files have changed; starting again"
_ELSEWHERE = "Choose another data.prepared or another name."
_IS_KEPT = "the finished part is kept; the same command goes on from there"


def _verify(config: Config, corpora: Sequence[Corpus], parent: Parent | None) -> None:
    """Raises TmtError if a file is not what the config says, or cannot be used."""
    for corpus in corpora:
        corpus.verify()
    if parent is None:  # else the tokenizers are those of the parent
        for options in config.source_tokenizer, config.target_tokenizer:
            options.tokenizer.verify(options, config.data.cleaning)


def _error_of_writing(error: OSError, folder: Path) -> TmtError:
    file = error.filename or str(folder)
    if error.errno not in DISK_FULL:
        return from_os_error(error, "writing prepared data", file)
    return MachineError(
        "the disk is full while writing prepared data",
        place=file,
        remedy="Free some space and run the same command again. Nothing of this preparation was kept; data that was"
        " prepared before is unchanged.\n"
        "  Preparing needs about 330 bytes for a pair of seven words, and more for longer ones: see docs/large.md.",
    )


def _report_splits(config: Config, corpora: Sequence[Corpus], say: Callable[[str], object]) -> None:
    """Report `split` keys without effect, and files whose names say that they belong to another split."""
    if any(map(_has_two_ways_of_splitting, config.data.corpus)):
        say("`split` has no effect beside `train`: a corpus of several files is not divided")
    divided = [one for one in corpora if isinstance(one, FilesCorpus) and WHOLE in one.splits()]
    mixed = mixed_of(list(dict.fromkeys(files for one in divided for files in one.entries(WHOLE))))
    if mixed is not None:
        say(
            f"{mixed[0]}: a {mixed[1]} set by its name, but `files` are divided by chance; give `train`, `validation`"
            " and `test`, as `tmt init files --data` writes them"
        )


def _has_two_ways_of_splitting(options: CorpusConfig) -> bool:
    named = getattr(options, "train", None)
    return isinstance(options, FilesOptions) and named is not None and options.split != SplitConfig()


def samples_segmentations(config: Config) -> bool:
    """Whether training segments sentences at random (BPE-dropout, subword regularisation)."""
    return config.source_tokenizer.is_random or config.target_tokenizer.is_random


@dataclass(frozen=True)
class _Preparation:
    """A run of the pipeline into an empty folder."""

    folder: Path
    config: Config
    passes: list[Pass]
    basis: Basis
    progress: Progress
    parent: Parent | None
    cluster: str | None

    @property
    def corpora(self) -> list[Corpus]:
        return [one.corpus for one in self.passes]

    def run(self) -> None:
        started, config, folder, scratch = time.monotonic(), self.config, self.folder, self.folder / SCRATCH
        for old in folder.iterdir():  # what an interrupted run has written after its shards
            if old != scratch:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        scratch.mkdir(exist_ok=True)
        journal = Journal(scratch, self.basis.fingerprint)
        with Workers(config.data.workers, self.cluster) as workers:
            files = (file for corpus in self.corpora for file in corpus.files())
            workers.require([scratch, *(file for file in files if not isinstance(file, Address))])
            streams = list(self._read(scratch, workers, journal))
            self._require_unchanged()
            selection = Selection(streams, config.data.cleaning, self.progress)
            _require_pairs(selection)
            self.progress("learning tokenizers", selection.count("train"), None)
            learn = train_segmenters if self.parent is None else self.parent.segmenters
            segmenters = learn(config, selection, folder, workers)
            origins = [stream.origin for stream in streams]
            work = Tokenising(config, folder, selection.codes, origins)
            findings, written = tokenise(work, selection, workers, journal, self.progress)
            _require_pairs(selection)
            words = {side: findings.sides["train", side].words for side in SIDES}
            parent = self.parent
            known = parent.vocabularies if parent is not None else None
            tags = config.data.tags if parent is None else parent.with_tags(config)
            codecs = build_codecs(segmenters, words, config.has_shared_vocabulary, known, tags)
            save_codecs((codecs[SOURCE], codecs[TARGET]), folder)
            write_ids(folder, written, selection.splits, codecs, origins, self.progress)
            self.progress("writing the report", sum(one.pairs for one in written), None)
            self._write_texts(selection)
            examples = shown(selection, workers)
        skipped = list(dict.fromkeys(rows for corpus in self.corpora for rows in corpus.skipped()))
        seconds = round(time.monotonic() - started, 1)
        of_parent = None if parent is None else parent.figures(selection, codecs)
        report = report_of(config, selection, findings, codecs, skipped, seconds, examples, of_parent)
        (folder / TRAINED_ON).write_bytes(TrainedOn.of_blocks(selection.keys("train")).to_bytes())
        self._write_manifest(selection, report)
        self._require_unchanged()  # until their checksums were computed
        shutil.rmtree(scratch)  # at the end: the checksums of the manifest take minutes for a large corpus

    def _read(self, scratch: Path, workers: Workers, journal: Journal) -> Iterator[Stream]:
        data = self.config.data
        for one in self.passes:
            corpus, origin = one.corpus, one.origin
            for split in corpus.splits():
                name = f"{one.name}-{split}"
                stream = Stream(
                    split, one.options.weight, corpus.split_config, scratch, name, origin=origin, corpus=one.number
                )
                rule = data.cleaning.language if corpus.languages is None else "off"  # its languages are certain
                drops = rule == "drop" and stream.trains
                samples = rule != "off" and not drops
                cleaner = Cleaner(data.cleaning, *origin.direction, stream.trains, drops, samples)
                clean_stream(stream, one, cleaner, workers, journal, self.progress)
                yield stream

    def _require_unchanged(self) -> None:
        """Raises TmtError if files on disk were changed while they were read; for addresses, reading them does."""
        for file, before in self.basis.identities.items():
            if file.is_file() and identity_of(file) != before:  # a pipe has the time of its last byte
                raise changed_error(file)

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
                for line in selection.selected(split):
                    source.write((line.source if split == "train" else line.raw_source) + "\n")
                    target.write((line.target if split == "train" else line.raw_target) + "\n")

    def _write_manifest(self, selection: Selection, report: DataReport) -> None:
        weights = weights_of(self.config, selection)
        by_stream = zip(selection.streams, selection.counts("train"), weights, strict=True)
        parts = [(pairs, weight) for stream, pairs, weight in by_stream if stream.trains]  # in the store's order
        manifest = {
            "format": FORMAT,
            "settings": settings_of(self.config),
            "fingerprint": self.basis.fingerprint,
            "without_times": self.basis.without_times,
            "files": remembered(
                [*_files_of(self.config, self.corpora), *files_of_tokenizers(self.config, self.parent)]
            ),
            "tokenizers": tokenizers_digest(self.folder),
            "splits": {split: figures.pairs for split, figures in report.splits.items()},
            "parts": parts,
            **({"runs": self._runs(selection)} if self.config.data.tags else {}),
            "report": report.to_json(),
        }
        (self.folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")

    def _runs(self, selection: Selection) -> dict[str, list[dict[str, Any]]]:
        """Of each split, in the order of its store."""
        return {
            split: [
                Run(pairs=pairs, direction=str(origin.direction), tags=list(origin.tags_in(split))).model_dump()
                for pairs, origin in zip(
                    selection.counts(split), (stream.origin for stream in selection.streams), strict=True
                )
                if pairs
            ]
            for split in selection.splits
        }


def _files_of(config: Config, corpora: Sequence[Corpus]) -> list[Path]:
    files = [file for corpus in corpora for file in corpus.files()]
    return files if config.data.directions is None else list(dict.fromkeys(files))  # read for several of them


def _require_pairs(selection: Selection) -> None:
    for split in selection.splits:
        if not selection.count(split):
            raise selection.nothing_left(split)
    counts = selection.counts("train")
    for direction in selection.directions:
        if not sum(
            count
            for stream, count in zip(selection.streams, counts, strict=True)
            if stream.origin.direction == direction
        ):
            raise selection.nothing_left("train", direction)


def _require_outside(folder: Path, corpora: list[Corpus]) -> None:
    """Raises TmtError if prepared data would replace files of a corpus."""
    for file in (file for corpus in corpora for file in corpus.files()):
        if not isinstance(file, Address) and file.resolve().is_relative_to(folder.resolve()):
            raise TmtError("a file of the corpus is inside the folder of prepared data", place=file, remedy=_ELSEWHERE)


def require_prepared_or_empty(folder: Path) -> None:
    """Raises TmtError if prepared data would replace something that `prepare` did not write."""
    remedy = _ELSEWHERE
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
            lambda: progress("waiting for another process that prepares this data", 0, None),
        )
    except OSError:
        yield
        return
    with held:
        yield
