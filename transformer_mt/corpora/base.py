"""The interface of all corpora: splits that are read pair by pair.

A corpus yields the pairs as they are in its files. The room `data` cleans, shuffles and divides them.
"""

from __future__ import annotations

import codecs
import fnmatch
import glob
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple
from unicodedata import normalize

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.corpus import CorpusConfig, SplitConfig
from transformer_mt.config.section import OneOrMany
from transformer_mt.corpora.parts import Part, Texts, size_of
from transformer_mt.errors import TmtError, without_credentials
from transformer_mt.files.address import Address, addresses_like, is_address, is_pattern
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.encodings import STRICT
from transformer_mt.files.lines import check_exists, path_of
from transformer_mt.files.opening import archive_of, is_named_pipe, members
from transformer_mt.files.remote import wrong_checksum

WHOLE = "all"  # the pairs of a corpus that prepare divides
# A test set cannot have these names, because the folder of prepared data uses them.
RESERVED_SPLITS = ("train", "validation", WHOLE, "source", "target", "scratch", "plots", "manifest.json")
Checksum = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Pair(NamedTuple):
    """A sentence and its translation. place: `file:line` (in tables `file:row`), for messages and reports."""

    source: str
    target: str
    place: str


class SkippedRows(NamedTuple):
    """Rows that are not pairs and were skipped, inline codes of their texts, or files of a folder.

    place:  the file, the sheet of a workbook, or the folder
    reason: why they were skipped
    remedy: what to do if they are pairs
    first:  the places of the first ones
    what:   `row`, `unit` (of a TMX), `inline code` (of its texts) or `file`
    """

    place: str
    rows: int
    reason: str = ""
    remedy: str = ""
    first: tuple[str, ...] = ()
    what: str = "row"


class Corpus(ABC):
    """One entry of `data.corpus`; `Options` are its keys in the config.

    languages:    the languages it has; None: any
    always:       a language that one side of each pair has, whose column is found by its name; None: no such language
    is_public:    whether `download` can fetch its files
    no_download:  why its files cannot be downloaded, and what to do
    split_config: how to divide the pairs of "all"; None if the corpus comes in splits
    errors:       what becomes of bytes that are not in the encoding of a file: STRICT or MARKED
    """

    Options: ClassVar[type[CorpusConfig]]
    languages: ClassVar[tuple[str, ...] | None] = None
    always: ClassVar[str | None] = None
    is_public: ClassVar[bool] = False
    no_download: ClassVar[tuple[str, str] | None] = None
    options: CorpusConfig
    split_config: SplitConfig | None = None
    errors: str = STRICT

    def __init__(self, options: CorpusConfig, source: str, target: str) -> None:
        """source, target: ISO codes of the languages to read."""
        self.options, self.source, self.target = options, source, target
        self._skipped: dict[tuple[str, str], SkippedRows] = {}

    @classmethod
    def download(cls, folder: Path, mirror: str | None = None) -> Iterator[tuple[str, str]]:
        """Download every file of a public corpus; yields the name of each file and what was done."""
        raise NotImplementedError

    def fetch(self) -> None:
        """Make sure that the files exist; raises TmtError if that fails."""
        for file in self.sources():
            check_exists(file)
            if is_named_pipe(file):  # waiting for its other end may last forever
                remedy = f"A corpus is read several times: write it to a file first:  cat {file} > NEW"
                raise TmtError("this is a named pipe, not a file", place=file, remedy=remedy)

    def verify(self) -> None:  # noqa: B027
        """Raises TmtError if files have another checksum than the config says; for addresses, reading them does."""

    def files(self) -> list[Path]:
        """The files on disk and at addresses that are read, after `fetch`; a fingerprint of the corpus covers them."""
        return list(dict.fromkeys(archive_of(file) or file for file in self.sources()))

    def sources(self) -> list[Path]:
        """The files that are read; one inside an archive is `corpus.zip/corpus.de`."""
        return []

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """First "all" if the corpus will be divided, else "train" and, if it has it, "validation"; then test sets."""

    @abstractmethod
    def read(self, split: str) -> Iterator[Pair]:
        """The pairs of a split, one by one, in the order of the files. Raises TmtError with file and line."""

    def entries(self, split: str) -> list[tuple[Path, ...]]:
        """The files of a split, those that belong together in one tuple; () stands for what `read` gives."""
        return [()]

    def parts(self, entry: tuple[Path, ...]) -> list[Part]:
        """An entry in parts that workers can read, in order: whole files, or ranges of them."""
        return [Part(entry)]

    def read_part(self, split: str, part: Part) -> Iterator[Pair]:
        """The pairs of a part without spans. Raises TmtError as `read` does."""
        return self.read(split)

    def read_range(self, part: Part) -> Texts:
        """The pairs of a part with spans. Raises TmtError or UnicodeDecodeError; `read_part` of the whole files then
        raises the error with its line."""
        raise NotImplementedError

    def finish(self, files: tuple[Path, ...]) -> None:  # noqa: B027
        """Check what was counted in all ranges of these files. Raises TmtError."""

    def counted(self) -> dict[str, Any]:
        """What was noted since the last call, as plain data for `add_counted` in another process."""
        skipped = [rows._asdict() for rows in self._skipped.values()]
        self._skipped.clear()
        return {"skipped": skipped}

    def add_counted(self, counted: dict[str, Any]) -> None:
        for rows in counted["skipped"]:
            self.skip(SkippedRows(**{**rows, "first": tuple(rows["first"])}))

    def skipped(self) -> list[SkippedRows]:
        """The rows that the last reading of each file has skipped, for the report."""
        return list(self._skipped.values())

    def skip(self, rows: SkippedRows) -> None:
        """Record skipped rows, for `skipped`."""
        self._skipped[rows.place, rows.reason] = rows


class FilesOptions(CorpusConfig):
    """Options of all kinds that read files: either `files` to be split, with or without test sets, or files for each
    split."""

    NEWER = (*CorpusConfig.NEWER, ("encoding", "utf-8"), ("sha256", None))

    split: SplitConfig = Field(SplitConfig(), description="how `files` are divided")
    sha256: OneOrMany[Checksum] | None = Field(
        None, description="checksum of the file, or a list in the order of the files; another one is an error"
    )

    @property
    def title(self) -> str:
        values: Any = self
        first = next(iter(values.files or values.train or ()), self.kind)
        return without_credentials(first if isinstance(first, str) else first.source)

    @property
    def validates(self) -> bool:
        values: Any = self
        return values.validation is not None or (values.files is not None and self.split.validation > 0)

    @model_validator(mode="after")
    def _one_way_of_splitting(self) -> FilesOptions:
        whole = getattr(self, "files", None)
        parts = getattr(self, "train", None)
        if (whole is None) == (parts is None):
            raise ValueError("give either `files`, which are split, or `train`, `validation` and `test`")
        if parts is None and getattr(self, "validation", None) is not None:
            raise ValueError("`files` are split; remove `validation`, or rename `files` to `train`")
        if parts is None and getattr(self, "test", None) and "test" in self.split.model_fields_set and self.split.test:
            raise ValueError("give either `test`, with files, or split.test, a part of `files`")
        for name in getattr(self, "test", None) or {}:
            if name in RESERVED_SPLITS or not re.fullmatch(r"\w[\w.-]*", name):
                raise ValueError(
                    f"'{name}' cannot be the name of a test set; use another name of letters, digits, '.', '-' and '_'"
                )
        return self


class EncodedOptions(FilesOptions):
    """Options of the kinds that read plain text."""

    encoding: str = Field("utf-8", description="encoding of the files, such as cp1252, cp949 or utf-16")

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, name: str) -> str:
        try:
            if not "".encode(name):  # LookupError for codecs of bytes, such as base64
                codecs.getincrementaldecoder(name)
            return name
        except LookupError:
            known = "utf-8, utf-16, cp1252, cp949, shift_jis, gb18030"
            raise ValueError(f"unknown encoding '{name}'; use one that Python knows, such as {known}") from None


class FilesCorpus(Corpus):
    """A corpus of the user's own files: either `files` to be divided, or files for each split."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "read_files" in vars(cls) and "cut" not in vars(cls):  # ranges would be read as the parent class reads them
            cls.cut = FilesCorpus.cut  # type: ignore[method-assign]

    def __init__(self, options: Any, source: str, target: str) -> None:
        """options: `FilesOptions` with the keys files, train, validation and test."""
        super().__init__(options, source, target)
        self._checksums: tuple[str, ...] | None = options.sha256
        tests = {name: (part,) for name, part in (options.test or {}).items()}
        if options.files is not None:  # with test sets, only validation pairs are taken from them
            self.split_config = options.split.model_copy(update={"test": 0}) if tests else options.split
            self._parts = {WHOLE: options.files, **tests}
        else:
            validation = {} if options.validation is None else {"validation": (options.validation,)}
            self._parts = {"train": options.train or (), **validation, **tests}

    def splits(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def sources(self) -> list[Path]:
        return [file for split in self._parts for entry in self.entries(split) for file in entry]

    def verify(self) -> None:
        expected = self._checksums
        if expected is None:
            return
        files = self.files()
        if len(expected) != len(files):
            such = f"sha256 has {len(expected)} checksums for {len(files)} files"
            names = ", ".join(map(str, files[:5])) + (", ..." if len(files) > 5 else "")
            raise TmtError(such, place="data.corpus", remedy=f"Give one for each file, in this order: {names}")
        for file, checksum in zip(files, expected, strict=True):
            if isinstance(file, Address):
                file.sha256 = checksum
            elif (found := sha256_of(file)) != checksum:
                raise wrong_checksum(file, found)

    def read(self, split: str) -> Iterator[Pair]:
        for entry in self.entries(split):
            yield from self.read_files(*entry)

    @cached_property
    def _listed(self) -> dict[str, list[tuple[Path, ...]]]:
        """The entries of each split. They are listed once: what is read is what the fingerprint covers."""
        listed = {
            split: [one for part in parts for one in self.entries_of(part)] for split, parts in self._parts.items()
        }
        known: dict[Path, Path] = {}  # the same address is the same object in each split
        return {split: [tuple(known.setdefault(f, f) for f in one) for one in some] for split, some in listed.items()}

    def entries_of(self, part: Any) -> Iterator[tuple[Path, ...]]:
        """The files of one entry in the config, those that belong together in one tuple.

        Here, an entry is a file name or a pattern for file names. Raises TmtError if no name matches it.
        """
        yield from ((file,) for file in files_like(part))

    def entries(self, split: str) -> list[tuple[Path, ...]]:
        return self._listed[split]

    def parts(self, entry: tuple[Path, ...]) -> list[Part]:
        return self.cut(*entry) or [Part(entry, weight=size_of(entry[0]))]

    def read_part(self, split: str, part: Part) -> Iterator[Pair]:
        return self.read_files(*part.files)

    def cut(self, *files: Path) -> list[Part] | None:
        """One entry in ranges that `read_range` reads; None if it is read as a whole."""
        return None

    @abstractmethod
    def read_files(self, *files: Path) -> Iterator[Pair]:
        """The pairs of one entry: of a file, or of several that belong together.

        With `cut`, a large entry is read by `read_range` instead.
        """


def files_like(pattern: str) -> list[Path]:
    """The file with this name; otherwise those that match its `*`, `?`, `[...]` and `**`, sorted.

    A name may be an address. Raises TmtError if it is a pattern and no file matches it.
    """
    if is_address(pattern):
        return [*addresses_like(pattern)]
    path = path_of(pattern)
    if not is_pattern(pattern) or is_there(path):
        return [path]
    if archive := archive_of(path):
        inside = path.relative_to(archive).as_posix()
        found = [archive / name for name in members(archive) if fnmatch.fnmatchcase(name, inside)]
    else:
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207 (Path.glob refuses an absolute pattern)
        found = sorted(Path(one) for one in names if not Path(one).is_dir())
    if not found:
        raise TmtError("no file has a name like this", place=pattern, remedy=f"Check the pattern:  ls {pattern}")
    return found


def is_there(path: Path) -> bool:
    """Whether there is a file or folder with exactly this name, also inside an archive."""
    archive = archive_of(path)
    return path.exists() or (archive is not None and path.relative_to(archive).as_posix() in members(archive))


def same_name(name: str, names: Iterable[str]) -> str | None:
    """The name as it is among the names, perhaps in another Unicode form; None if it is not there."""
    if name in names:
        return name
    form = normalize("NFC", name)
    return next((one for one in names if normalize("NFC", one) == form), None)
