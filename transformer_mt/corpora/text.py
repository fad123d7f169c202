"""Parallel files: line n of one is the translation of line n of the other.

They are given by name, as two patterns (`corpus/*.de` and `corpus/*.en`), or as a folder or a .zip with files NAME.de
and NAME.en, such as OPUS offers for download.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.section import FileName, Many, Section
from transformer_mt.corpora.base import EncodedOptions, FilesCorpus, Pair, SkippedRows, files_like, is_there
from transformer_mt.corpora.parts import Part, Texts, cut_lines, lines_in
from transformer_mt.corpora.tables import listed
from transformer_mt.errors import TmtError, at, first_of
from transformer_mt.files.address import Address, is_address, is_pattern, names_in
from transformer_mt.files.encodings import STRICT
from transformer_mt.files.folder import files_below, is_hidden
from transformer_mt.files.lines import check_exists, path_of, read_lines
from transformer_mt.files.opening import members, plain_path

_UNREAD = (".bz2", ".lzma", ".lz", ".lz4", ".z", ".7z", ".rar", ".zip")  # compressions that nothing here reads


def read_parallel(source: Path, target: Path, encoding: str = "utf-8", errors: str = STRICT) -> Iterator[Pair]:
    """The pairs of two files. Raises TmtError at the end of the shorter file if they have different lengths."""
    sources, targets = (read_lines(file, encoding, errors=errors) for file in (source, target))
    for one, other in zip_longest(sources, targets):
        if one is None or other is None:
            longer, last = (targets, other) if one is None else (sources, one)
            fewer, more = last[0] - 1, last[0] + sum(1 for _ in longer)
            n_source, n_target = (fewer, more) if one is None else (more, fewer)
            raise TmtError(
                f"the files are not parallel: {source} has {n_source:,} lines, and {target} has {n_target:,}",
                place=at(source if one is None else target, fewer),
                remedy="Line n of one file must be the translation of line n of the other. Count lines with `wc -l`.",
            )
        yield Pair(one[1], other[1], at(source, one[0]))


class TextPair(Section):
    source: FileName = Field(
        description="file of source sentences, one per line (plain, .gz, .xz or .zst); or a pattern"
    )
    target: FileName = Field(description="file of target sentences: line n is the translation of line n in `source`")


Entry = FileName | TextPair


class TextCorpus(FilesCorpus):
    class Options(EncodedOptions):
        kind: Literal["text"]
        files: Many[Entry] | None = Field(
            None, description="pairs of parallel files that are split; or a folder or .zip with files NAME.de, NAME.en"
        )
        train: Many[Entry] | None = Field(None, description="pairs of parallel files for training, or folders")
        validation: Entry | None = Field(None, description="pair of parallel files for validation")
        test: dict[str, Entry] | None = Field(
            None,
            description="test sets by name, each a pair of parallel files; with `train`, or beside `files`",
        )

        @field_validator("files", "train", mode="before", json_schema_input_type=Entry | tuple[Entry, ...] | None)
        @classmethod
        def _several(cls, value: Any) -> Any:
            return [value] if isinstance(value, (dict, str)) else value

        @field_validator("test", mode="before", json_schema_input_type=Entry | dict[str, Entry] | None)
        @classmethod
        def _named(cls, value: Any) -> Any:
            alone = isinstance(value, str) or (
                isinstance(value, dict) and bool(value) and set(value) <= {"source", "target"}
            )
            return {"test": value} if alone else value

    options: Options

    def entries_of(self, part: Entry) -> Iterator[tuple[Path, ...]]:
        if isinstance(part, TextPair):
            yield from _matched(part.source, part.target)
            return
        for place in files_like(part):
            names = _names_inside(place)
            inside = _by_language(names, place, (self.source, self.target))
            pairs = _paired(inside.get(self.source, {}), inside.get(self.target, {}), place)
            if not pairs:
                packed = _packed(names, (self.source, self.target), {})
                found = ", ".join(sorted(inside)) or "none"
                raise TmtError(
                    f"no files NAME.{self.source} and NAME.{self.target} in it",
                    place=place,
                    remedy=(f"Unpack files such as {packed[0]}. " if packed else "")
                    + f"Endings found that can be languages: {found}. Or name two files:  files: {{source: FILE,"
                    " target: FILE}",
                )
            self._skip_packed(_packed(names, (self.source, self.target), inside), place)
            yield from pairs

    def _skip_packed(self, names: Sequence[str], place: Path) -> None:
        if names:
            reason = f"this compression is not supported: {listed(names)}"
            remedy = "Unpack them, or pack them with gzip, xz or zstd."
            self.skip(SkippedRows(str(place), len(names), reason, remedy, what="file"))

    def read_files(self, *files: Path) -> Iterator[Pair]:
        source, target = files
        return read_parallel(source, target, self.options.encoding, self.errors)

    def cut(self, *files: Path) -> list[Part] | None:
        return cut_lines(files, self.options.encoding, self.errors)

    def read_range(self, part: Part) -> Texts:
        assert part.spans is not None
        sides = zip(part.files, part.spans, strict=True)
        sources, targets = (lines_in(file, span, self.options.encoding, self.errors) for file, span in sides)
        if len(sources) != len(targets):
            raise TmtError("the files changed while they were read", place=part.files[0], remedy="Run it again.")
        return Texts(sources, targets, str(part.files[0]), range(part.first, part.first + len(sources)))


def parallel_files(place: Path) -> dict[str, dict[str, Path]]:
    """The files in a folder or .zip archive, by the language in which their names end, then by the rest of the name.

    A region counts for its language: `NAME.de_AT` is German. If there is a `NAME.de` too, its key is `NAME.*_AT`.
    Raises TmtError if `place` is neither.
    """
    return _by_language(_names_inside(place), place)


def _names_inside(place: Path) -> list[str]:
    """The files in a folder or .zip archive, relative to it, without hidden ones."""
    if isinstance(place, Address):
        return names_in(place)
    if place.is_dir():
        return [file.relative_to(place).as_posix() for file in files_below(place)]
    if zipfile.is_zipfile(place):
        names = dict.fromkeys(name for name in members(place) if not name.startswith("__MACOSX/"))
        return [name for name in names if not is_hidden(PurePath(name))]
    check_exists(place)
    remedy = "Give a folder or a .zip, or two files:  files: {source: FILE, target: FILE}"
    raise TmtError("not a folder, and not a .zip archive", place=place, remedy=remedy)


def _by_language(names: Sequence[str], place: Path, wanted: Sequence[str] = ()) -> dict[str, dict[str, Path]]:
    """As `parallel_files`. Raises TmtError if two files have the same name in one of the `wanted` languages."""
    same: dict[tuple[str, str, str], list[Path]] = {}
    for name in names:
        plain = plain_path(Path(name))
        if parts := _language_of(plain):
            same.setdefault((parts[0], plain.with_suffix("").as_posix(), parts[1]), []).append(place / name)
    found: dict[str, dict[str, Path]] = {}
    for (language, stem, region), paths in sorted(same.items(), key=lambda one: one[0][2] != ""):
        if len(paths) > 1 and language in wanted:
            remedy = "Only one of them can be the partner of the other language: move the others out of the folder."
            name, two = f"{stem}.{language}{region}", ", ".join(map(str, paths[:2]))
            raise TmtError(f"two files for {name}: {two}", place=place, remedy=remedy)
        files = found.setdefault(language, {})
        files[f"{stem}.*{region}" if region and stem in files else stem] = paths[-1]
    return found


def _language_of(name: PurePath) -> tuple[str, str] | None:
    """The language in which a name ends, and its region with the character before it: `de` and `_AT`; else None."""
    if not re.fullmatch(r"\.[a-z]{2,3}([-_]\w+)?", name.suffix, re.IGNORECASE):
        return None
    language = re.split("[-_]", name.suffix[1:].lower())[0]
    return language, name.suffix[1 + len(language) :]


def _packed(names: Sequence[str], wanted: Sequence[str], read: dict[str, dict[str, Path]]) -> list[str]:
    """Files `NAME.de.bz2` whose compression is not supported, unless `NAME.de` is read."""
    found = []
    for name in names:
        plain = PurePath(name).with_suffix("")
        language = _language_of(plain) if PurePath(name).suffix.lower() in _UNREAD else None
        if language and language[0] in wanted and plain.with_suffix("").as_posix() not in read.get(language[0], {}):
            found.append(name)
    return found


def _paired(sources: dict[str, Path], targets: dict[str, Path], place: Path | str) -> list[tuple[Path, Path]]:
    """The files with equal keys, in order. Raises TmtError for a file without its partner."""
    alone = [
        *(sources[key] for key in sources if key not in targets),
        *(targets[k] for k in targets if k not in sources),
    ]
    if alone:
        raise TmtError(
            f"files without a partner in the other language: {first_of(alone, 3)}",
            place=place,
            remedy="Add the missing files, or move these out of the folder.",
        )
    return [(sources[key], targets[key]) for key in sources]


def _matched(source: str, target: str) -> list[tuple[Path, Path]]:
    """Two files, or those of two patterns, paired by what `*` and `?` stand for in their names."""
    both = (source, target)
    if not any(map(is_pattern, both)) or all(not is_address(one) and is_there(path_of(one)) for one in both):
        return [(files_like(source)[0], files_like(target)[0])]
    by_parts: list[dict[str, Path]] = []
    for pattern in (source, target):
        stands = re.compile(_capturing(_name(Address(pattern) if is_address(pattern) else path_of(pattern))))
        matches = ((stands.fullmatch(_name(file)), file) for file in files_like(pattern))
        by_parts.append({" ".join(match.groups()) if match else str(file): file for match, file in matches})
    return _paired(by_parts[0], by_parts[1], f"{source}, {target}")


def _name(file: Path) -> str:
    return file.plain if isinstance(file, Address) else str(file)


def _capturing(pattern: str) -> str:
    """A regular expression with a group for each `*`, `?` and `[...]` of a file pattern."""
    parts = re.split(r"(\*\*/|\*|\?|\[[^]]+\])", pattern)
    groups = {"**/": "((?:.*/)?)", "*": "([^/]*)", "?": "([^/])"}
    groups |= {one: f"({one.replace('[!', '[^', 1)})" for one in parts[1::2] if one not in groups}
    return "".join(groups[one] if n % 2 else re.escape(one) for n, one in enumerate(parts))
