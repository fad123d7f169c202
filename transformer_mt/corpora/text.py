"""Parallel files: line n of one is the translation of line n of the other.

They are given by name, as two patterns (`corpus/*.de` and `corpus/*.en`), or as a folder or a .zip with files NAME.de
and NAME.en, such as OPUS offers for download.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.section import Many, Section
from transformer_mt.corpora.base import EncodedOptions, FilesCorpus, Pair, files_like
from transformer_mt.corpora.parts import Part, Texts, cut_lines, lines_in
from transformer_mt.errors import TmtError, at
from transformer_mt.files.address import Address, is_address, is_pattern, names_in
from transformer_mt.files.lines import check_exists, path_of, read_lines
from transformer_mt.files.opening import COMPRESSED, members


def read_parallel(source: Path, target: Path, encoding: str = "utf-8") -> Iterator[Pair]:
    """The pairs of two files. Raises TmtError at the end of the shorter file if they have different lengths."""
    sources, targets = read_lines(source, encoding), read_lines(target, encoding)
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
    source: str = Field(description="file of source sentences, one per line (plain, .gz, .xz or .zst); or a pattern")
    target: str = Field(description="file of target sentences: line n is the translation of line n in `source`")


Entry = str | TextPair


class TextCorpus(FilesCorpus):
    class Options(EncodedOptions):
        kind: Literal["text"]
        files: Many[Entry] | None = Field(
            None, description="pairs of parallel files that are split; or a folder or .zip with files NAME.de, NAME.en"
        )
        train: Many[Entry] | None = Field(None, description="pairs of parallel files for training, or folders")
        validation: Entry | None = Field(None, description="pair of parallel files for validation")
        test: dict[str, Entry] | None = Field(None, description="test sets by name, each a pair of parallel files")

        @field_validator("files", "train", mode="before", json_schema_input_type=Entry | tuple[Entry, ...] | None)
        @classmethod
        def _several(cls, value: Any) -> Any:
            return [value] if isinstance(value, (dict, str)) else value

        @field_validator("test", mode="before", json_schema_input_type=Entry | dict[str, Entry] | None)
        @classmethod
        def _named(cls, value: Any) -> Any:
            alone = isinstance(value, str) or (isinstance(value, dict) and set(value) <= {"source", "target"})
            return {"test": value} if alone else value

    options: Options

    def entries_of(self, part: Entry) -> Iterator[tuple[Path, ...]]:
        if isinstance(part, TextPair):
            yield from _matched(part.source, part.target)
            return
        for place in files_like(part):
            inside = parallel_files(place)
            pairs = _paired(inside.get(self.source, {}), inside.get(self.target, {}), place)
            if not pairs:
                found = ", ".join(sorted(inside)) or "none"
                raise TmtError(
                    f"no files NAME.{self.source} and NAME.{self.target} in it",
                    place=place,
                    remedy=f"Endings found that can be languages: {found}. Or name two files:  files: {{source: FILE,"
                    " target: FILE}",
                )
            yield from pairs

    def read_files(self, *files: Path) -> Iterator[Pair]:
        source, target = files
        return read_parallel(source, target, self.options.encoding)

    def cut(self, *files: Path) -> list[Part] | None:
        return cut_lines(files, self.options.encoding)

    def read_range(self, part: Part) -> Texts:
        assert part.spans is not None
        sides = zip(part.files, part.spans, strict=True)
        sources, targets = (lines_in(file, span, self.options.encoding) for file, span in sides)
        if len(sources) != len(targets):
            raise TmtError("the files changed while they were read", place=part.files[0], remedy="Run it again.")
        return Texts(sources, targets, str(part.files[0]), range(part.first, part.first + len(sources)))


def parallel_files(place: Path) -> dict[str, dict[str, Path]]:
    """The files in a folder or .zip archive, by the language in which their names end, then by the rest of the name.

    A region counts for its language: `NAME.de_AT` is German. If there is a `NAME.de` too, its key is `NAME.*_AT`.
    Raises TmtError if `place` is neither.
    """
    if isinstance(place, Address):
        names = names_in(place)
    elif place.is_dir():
        hidden = (one for one in place.rglob("*") if not one.name.startswith("."))
        names = sorted(one.relative_to(place).as_posix() for one in hidden if one.is_file())
    elif zipfile.is_zipfile(place):
        names = [name for name in members(place) if not name.startswith("__MACOSX/")]
    else:
        check_exists(place)
        remedy = "Give a folder or a .zip, or two files:  files: {source: FILE, target: FILE}"
        raise TmtError("not a folder, and not a .zip archive", place=place, remedy=remedy)
    found: dict[str, dict[str, Path]] = {}
    regional: list[tuple[str, str, str, Path]] = []
    for name in names:
        plain = Path(name).with_suffix("") if Path(name).suffix.lower() in COMPRESSED else Path(name)
        if re.fullmatch(r"\.[a-z]{2,3}([-_]\w+)?", plain.suffix, re.IGNORECASE):
            language = re.split("[-_]", plain.suffix[1:].lower())[0]
            stem, region = plain.with_suffix("").as_posix(), plain.suffix[1 + len(language) :]
            if region:
                regional.append((language, stem, region, place / name))
            else:
                found.setdefault(language, {})[stem] = place / name
    for language, stem, region, path in regional:
        files = found.setdefault(language, {})
        files[f"{stem}.*{region}" if stem in files else stem] = path
    return found


def _paired(sources: dict[str, Path], targets: dict[str, Path], place: Path | str) -> list[tuple[Path, Path]]:
    """The files with equal keys, in order. Raises TmtError for a file without its partner."""
    alone = [
        *(sources[key] for key in sources if key not in targets),
        *(targets[k] for k in targets if k not in sources),
    ]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        raise TmtError(
            f"files without a partner in the other language: {', '.join(map(str, alone[:3]))}{more}",
            place=place,
            remedy="Add the missing files, or move these out of the folder.",
        )
    return [(sources[key], targets[key]) for key in sources]


def _matched(source: str, target: str) -> list[tuple[Path, Path]]:
    """Two files, or those of two patterns, paired by what `*` and `?` stand for in their names."""
    both = (source, target)
    if not any(map(is_pattern, both)) or all(not is_address(one) and path_of(one).exists() for one in both):
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
