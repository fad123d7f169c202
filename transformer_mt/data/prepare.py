"""The one pipeline from a corpus as its owner hands it out to batches of ids: `prepare`.

read and clean -> duplicates, splits, leaks -> learn tokenizers -> tokenise -> vocabularies -> stores

Everything is written to a folder aside and renamed at the end, so that a killed run leaves nothing half
done; a second run with nothing changed does nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from transformer_mt.config.data import Corpus as CorpusConfig
from transformer_mt.config.schema import Config
from transformer_mt.data.corpora import open_corpus
from transformer_mt.data.corpora.base import Corpus
from transformer_mt.data.doctor import report_of
from transformer_mt.data.encoding import (
    SOURCE,
    TARGET,
    Findings,
    Tokenising,
    build_codecs,
    selected,
    tokenise,
    train_segmenters,
    write_stores,
)
from transformer_mt.data.parallel import cores
from transformer_mt.data.prepared import MANIFEST, Prepared
from transformer_mt.data.reading import Cleaner, Stream, clean_stream
from transformer_mt.data.selection import Selection
from transformer_mt.errors import TmtError, from_os_error

FORMAT = 1
Progress = Callable[[str, int], None]  # (what is being done, pairs so far)


def prepared_folder(config: Config) -> Path:
    return Path(config.data.prepared) / config.name


def prepare(config: Config, force: bool = False, progress: Progress = lambda doing, pairs: None) -> Prepared:
    """Prepare what a config describes, unless it lies there already, and open it.

    Raises TmtError for bad data (with file and line), and for a full disk; the folder is then as it was.
    """
    folder = prepared_folder(config)
    with _alone(folder):
        corpora = [_fetched(corpus, config) for corpus in config.data.corpus]
        fingerprint = _fingerprint(config, corpora)
        if not force and _up_to_date(folder, fingerprint):
            return Prepared.open(folder)
        aside = folder.with_name(f".{folder.name}.new")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            (aside / "scratch").mkdir(parents=True)
            _fill(aside, config, corpora, fingerprint, progress)
            _put_in_place(aside, folder)
        except OSError as error:
            raise from_os_error(error, "writing prepared data") from None
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return Prepared.open(folder)


def _fetched(corpus: CorpusConfig, config: Config) -> Corpus:
    opened = open_corpus(corpus, config.data.source, config.data.target)
    opened.fetch()
    return opened


def _fill(aside: Path, config: Config, corpora: list[Corpus], fingerprint: str, progress: Progress) -> None:
    started, workers, scratch = time.monotonic(), cores(config.data.workers), aside / "scratch"
    streams = _read(config, corpora, scratch, workers, progress)
    selection = Selection(streams, config.data.cleaning)
    _require_pairs(selection)
    progress("learning tokenizers", selection.count("train"))
    segmenters = train_segmenters(config, selection, aside)
    found, tokens = Findings(), scratch / "tokens"
    with tokens.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        for done in tokenise(Tokenising(config, aside), selected(selection), file, workers, found):
            progress("tokenising", done)
    selection.discard(np.frombuffer(found.faulty, dtype=bool))
    _require_pairs(selection)
    codecs = build_codecs(config, segmenters, found)
    for side in (SOURCE, TARGET)[: 1 if config.has_shared_vocabulary else 2]:
        codecs[side].save(aside / side)
    progress("writing ids", selection.count("train"))
    with tokens.open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        written = write_stores(file, aside, selection.splits, codecs, config.data.max_length)
    _write_texts(aside, config, selection)
    report = report_of(aside, config, streams, selection, found, written, codecs)
    report["seconds"] = round(time.monotonic() - started, 1)
    manifest = {
        "format": FORMAT,
        "fingerprint": fingerprint,
        "files": [_checksum(file) for corpus in corpora for file in corpus.files()],
        "splits": {split: written[split].pairs for split in selection.splits},
        "parts": _parts(selection),
        "report": report,
    }
    (aside / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False), encoding="utf-8")


def _read(config: Config, corpora: list[Corpus], scratch: Path, workers: int, progress: Progress) -> list[Stream]:
    streams = []
    for number, (corpus, settings) in enumerate(zip(corpora, config.data.corpus, strict=True)):
        for split in corpus.splits():
            file = scratch / f"{number}-{split}.tsv"
            stream = Stream(number, split, settings.weight, corpus.split_config, file)
            cleaner = Cleaner(config.data.cleaning, config.data.source, config.data.target, stream.trains)
            for read in clean_stream(stream, corpus.read(split), cleaner, workers):
                progress(f"reading {split}", read)
            streams.append(stream)
    return streams


def _require_pairs(selection: Selection) -> None:
    for split in ("train", "validation"):
        if not selection.count(split):
            raise TmtError(
                f"no pair is left in the {split} split",
                place="data.corpus",
                remedy="Check the files and the cleaning rules: everything was dropped, or nothing was there.",
            )


def _parts(selection: Selection) -> list[tuple[int, float]]:
    """Training pairs of each corpus with their weight, in the order of the store."""
    return [
        (int((fates == selection.names.index("train")).sum()), stream.weight)
        for stream, fates in zip(selection.streams, selection.fates, strict=True)
        if stream.trains
    ]


def _write_texts(aside: Path, config: Config, selection: Selection) -> None:
    """Raw text of the splits that are scored; cleaned text of training where it is segmented anew each epoch."""
    for split in selection.splits:
        if split == "train" and not samples_segmentations(config):
            continue
        with (
            (aside / split / "source.txt").open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as source,
            (aside / split / "target.txt").open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as target,
        ):
            for _, line in selected(selection, split):
                source.write((line.source if split == "train" else line.raw_source) + "\n")
                target.write((line.target if split == "train" else line.raw_target) + "\n")


def samples_segmentations(config: Config) -> bool:
    """Are segmentations drawn at random while training (BPE-dropout, subword regularisation)?"""
    return any(getattr(side, "sampling", 0) for side in (config.source_tokenizer, config.target_tokenizer))


def _fingerprint(config: Config, corpora: list[Corpus]) -> str:
    """Changes with anything that the result depends on; files count by size and time of change."""
    settings = {
        "format": FORMAT,
        "data": config.data.model_dump(mode="json", exclude={"workers", "prepared"}),
        "tokenizer": config.tokenizer.model_dump(mode="json"),
        "files": [
            (str(file), file.stat().st_size, file.stat().st_mtime_ns) for corpus in corpora for file in corpus.files()
        ],
    }
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _checksum(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        digest = hashlib.sha256()
        while block := opened.read(1 << 20):
            digest.update(block)
    return {"path": str(file), "size": file.stat().st_size, "sha256": digest.hexdigest()}


def _up_to_date(folder: Path, fingerprint: str) -> bool:
    try:
        return bool(Prepared.open(folder).manifest.get("fingerprint") == fingerprint)
    except TmtError:
        return False


def _put_in_place(aside: Path, folder: Path) -> None:
    shutil.rmtree(aside / "scratch")
    before = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    aside.rename(folder)
    shutil.rmtree(before, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process prepares a folder at a time; a second one waits."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f".{folder.name}.lock").open("w") as lock:
            try:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            except ImportError:  # no such locks on this system: a convenience less
                pass
            yield
    except PermissionError as error:
        raise from_os_error(error, "writing prepared data") from None
