"""Parallel files: line n of one is the translation of line n of the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from transformer_mt.config.section import Many, Section
from transformer_mt.corpora.base import FilesCorpus, FilesOptions, Pair
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import path_of, read_lines


def read_parallel(source: Path, target: Path) -> Iterator[Pair]:
    """The pairs of two files. Raises TmtError at the end of the shorter file if they have different lengths."""
    sources, targets = read_lines(source), read_lines(target)
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
    source: str = Field(description="file of source sentences, one per line (plain, .gz, .xz or .zst)")
    target: str = Field(description="file of target sentences: line n is the translation of line n in `source`")


class TextCorpus(FilesCorpus):
    class Options(FilesOptions):
        kind: Literal["text"]
        files: Many[TextPair] | None = Field(None, description="pairs of parallel files that are split")
        train: Many[TextPair] | None = Field(None, description="pairs of parallel files for training")
        validation: TextPair | None = Field(None, description="pair of parallel files for validation")
        test: dict[str, TextPair] | None = Field(None, description="test sets by name, each a pair of parallel files")

        @field_validator("files", "train", mode="before", json_schema_input_type=TextPair | tuple[TextPair, ...] | None)
        @classmethod
        def _several(cls, value: Any) -> Any:
            return [value] if isinstance(value, dict) else value

        @field_validator("test", mode="before", json_schema_input_type=TextPair | dict[str, TextPair] | None)
        @classmethod
        def _named(cls, value: Any) -> Any:
            return {"test": value} if isinstance(value, dict) and set(value) <= {"source", "target"} else value

    def paths_of(self, part: TextPair) -> tuple[Path, ...]:
        return path_of(part.source), path_of(part.target)

    def read_files(self, *files: Path) -> Iterator[Pair]:
        return read_parallel(*files)
