"""Parts of a corpus that a worker process reads by itself: whole files, or ranges of the lines of plain files.

A range is read exactly as the whole file would be. If something is wrong in it, the whole file is read once more, line
by line, so that its message has the right line and counts.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_mt.errors import TmtError
from transformer_mt.files.address import Address
from transformer_mt.files.encodings import STRICT
from transformer_mt.files.lines import LONGEST_LINE, read_lines
from transformer_mt.files.opening import COMPRESSED, archive_of

RANGE_BYTES = 1 << 21  # of the first file in a range
Span = tuple[int, int]


class Part(NamedTuple):
    """Files that belong together, or a range of them.

    files:  none if the corpus does not name them
    first:  number of the first line or row
    spans:  for each file its bytes, from and to; of a Parquet file its row groups; None: whole files
    weight: in bytes; progress is measured by it
    """

    files: tuple[Path, ...] = ()
    first: int = 1
    spans: tuple[Span, ...] | None = None
    weight: int = 0


class Texts(NamedTuple):
    """Some pairs, in columns. The place of pair n is `file:numbers[n]`; without a file, it is numbers[n]."""

    sources: list[str]
    targets: list[str]
    file: str
    numbers: Sequence[int | str]

    def place(self, row: int) -> str:
        return f"{self.file}:{self.numbers[row]}" if self.file else str(self.numbers[row])

    def pieces(self, size: int) -> Iterator[Texts]:
        """At most `size` pairs at a time."""
        for start in range(0, len(self.sources), size):
            rows = slice(start, start + size)
            yield Texts(self.sources[rows], self.targets[rows], self.file, self.numbers[rows])

    def swapped(self) -> Texts:
        """The pairs of the other direction."""
        return self._replace(sources=self.targets, targets=self.sources)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str, str]]) -> Texts:
        columns = [list(column) for column in zip(*pairs, strict=True)]
        sources, targets, places = columns or [[], [], []]
        split = [place.rpartition(":") for place in places]
        files = {file for file, *_ in split}
        if len(files) == 1 and "" not in files:
            return cls(sources, targets, files.pop(), [number for *_, number in split])
        return cls(sources, targets, "", places)


def size_of(file: Path) -> int:
    """In bytes as stored; 0 if it is not a file on a disk here."""
    return 0 if isinstance(file, Address) or not file.is_file() else file.stat().st_size


def cut_lines(files: Sequence[Path], encoding: str, errors: str = STRICT) -> list[Part] | None:
    """Parallel files, or one file, as ranges; None if they are small or must be read as a whole.

    They must if they are compressed, in an archive, have different numbers of lines, or a line of many MiB.
    """
    if "\n".encode(encoding) != b"\n" or not all(map(_is_plain, files)):
        return None
    first, *others = files
    if first.stat().st_size <= RANGE_BYTES:
        return None
    try:
        for file in files:
            next(read_lines(file, encoding, errors=errors), None)
    except TmtError:  # not a text file; reading it as a whole says so
        return None
    cuts = _cuts(first)
    if cuts is None:
        return None
    ends, lines = cuts
    firsts = [1, *(line + 1 for line in lines[:-1])]
    spans = [list(zip([0, *ends[:-1]], ends, strict=True))]
    for other in others:
        theirs = _ends_of(other, lines)
        if theirs is None:
            return None
        spans.append(list(zip([0, *theirs[:-1]], theirs, strict=True)))
    return [
        Part(tuple(files), number, some, some[0][1] - some[0][0])
        for number, some in zip(firsts, zip(*spans, strict=True), strict=True)
    ]


def lines_in(file: Path, span: Span, encoding: str, errors: str = STRICT) -> list[str]:
    """The lines in a range, as `read_lines` gives them.

    Raises UnicodeDecodeError, and TmtError if a line is too long or the file is shorter than it was.
    """
    start, end = span
    with file.open("rb") as opened:
        opened.seek(start)
        content = opened.read(end - start)
    if len(content) < end - start:
        raise TmtError("the file became shorter while it was read", place=file, remedy="Run the same command again.")
    if start == 0:
        content = content.removeprefix(codecs.BOM_UTF8)
    if codecs.lookup(encoding).name == "utf-8":
        lines = content.removesuffix(b"\n").decode("utf-8", errors).split("\n")
    else:
        lines = [line.decode(encoding, errors) for line in content.removesuffix(b"\n").split(b"\n")]
    if max(map(len, lines)) > LONGEST_LINE // 4 and any(len(line) > LONGEST_LINE for line in content.split(b"\n")):
        raise TmtError("a line is too long", place=file)
    return [line.removesuffix("\r") for line in lines] if b"\r" in content else lines


def numbered_lines(part: Part, encoding: str, errors: str = STRICT) -> Iterator[tuple[int, str]]:
    """Number and text of the lines in a range of one file, as `read_lines`."""
    assert part.spans is not None
    return enumerate(lines_in(part.files[0], part.spans[0], encoding, errors), start=part.first)


def _is_plain(file: Path) -> bool:
    """Whether a file is on a disk here as it is read, and not compressed."""
    if isinstance(file, Address) or file.suffix.lower() in COMPRESSED:
        return False
    return file.is_file() and archive_of(file) is None


def _blocks(file: Path) -> Iterator[bytes]:
    with file.open("rb", buffering=0) as opened:
        while block := opened.read(RANGE_BYTES):
            yield block


def _cuts(file: Path) -> tuple[list[int], list[int]] | None:
    """Where ranges of whole lines end, and the number of lines up to there; None if a line is as long as a range."""
    ends, lines, place, count, tail = list[int](), list[int](), 0, 0, b""
    for block in _blocks(file):
        last = block.rfind(b"\n")
        place += len(block)
        tail = tail + block if last < 0 else block[last + 1 :]
        if len(tail) > LONGEST_LINE:
            return None
        if last >= 0:
            count += block.count(b"\n")
            ends.append(place - len(tail))
            lines.append(count)
    if not ends:
        return None
    if tail:
        ends[-1], lines[-1] = place, count + 1
    return ends, lines


def _ends_of(file: Path, lines: Sequence[int]) -> list[int] | None:
    """Where these numbers of lines end; None if the file has another number of lines than the last of them."""
    ends, place, count, wanted, block = list[int](), 0, 0, list(lines[::-1]), b""
    for block in _blocks(file):
        more = block.count(b"\n")
        last, line = 0, count
        while wanted and wanted[-1] <= count + more:
            while line < wanted[-1]:
                last, line = block.index(b"\n", last) + 1, line + 1
            ends.append(place + last)
            wanted.pop()
        place += len(block)
        count += more
    if block and not block.endswith(b"\n"):
        count += 1
        if wanted == [count]:
            ends.append(place)
            wanted.pop()
    return ends if not wanted and count == lines[-1] else None
