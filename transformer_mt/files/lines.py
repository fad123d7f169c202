"""The lines of a text file, plain, compressed (.gz, .xz, .zst) or inside a .zip. Errors name file and line.

A file inside an archive is named as in a folder: `corpus.zip/corpus.de`. It is read from there; nothing is unpacked.
Lines end only at `\\n` or `\\r\\n`. The other line breaks of Unicode are part of a sentence.
"""

from __future__ import annotations

import codecs
import difflib
import os
import shlex
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from transformer_mt.errors import TmtError, at, checked_path, from_os_error
from transformer_mt.files.address import Address, is_address
from transformer_mt.files.encodings import STRICT, guessed_from, is_in, is_name_of_utf_8
from transformer_mt.files.opening import (
    DAMAGED,
    LFS_POINTER,
    archive_of,
    damaged,
    is_endless,
    members,
    open_bytes,
    open_stored,
    readable,
)
from transformer_mt.files.web_page import empty_file, is_web_page, web_page

GUESS_BYTES = 1 << 15  # of wrong lines, from which their encoding is guessed
MOST_RIGHT = 0.95  # of the lines with other letters than ASCII; then another encoding is not suggested
_DROP = "set  data.cleaning.invalid: drop  to leave out their pairs."
_PIECE = 1 << 16  # bytes
_BYTE_ORDER = {  # the marks at the start of a file, of encodings that need one
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
LONGEST_LINE = 1 << 20  # bytes; a longer line is not a sentence, and a small archive can contain one of many GiB
_UTF_16 = "Convert it:  iconv -f UTF-16 -t UTF-8 OLD > NEW"
_NOT_TEXT = (  # the first bytes of files that are not plain text, what they are, and what to do
    (b"\x1f\x8b", "is compressed with gzip", "Name it .gz, or unpack it with `gunzip`."),
    (b"\xfd7zXZ\x00", "is compressed with xz", "Name it .xz, or unpack it with `unxz`."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Name it .zst, or unpack it with `unzstd`."),
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet, not text", "Unpack it, or save the spreadsheet as text."),
    (b"PAR1", "is a Parquet file, not text", "Convert it to text."),
    (b"\xff\xfe", "is UTF-16, not UTF-8", _UTF_16),
    (b"\xfe\xff", "is UTF-16, not UTF-8", _UTF_16),
    (LFS_POINTER, "is a Git LFS pointer, not the data", "Fetch the data with `git lfs pull`."),
)
_IN_CONFIG = {  # what a config can do with such a file
    b"PK\x03\x04": "In a config, name the file inside it (corpus.zip/NAME), or read it with  kind: xlsx. Or:",
    b"PAR1": "In a config, read it with  kind: parquet. Or:",
    b"\xff\xfe": "In a config, set  encoding: utf-16  in data.corpus. Or:",
    b"\xfe\xff": "In a config, set  encoding: utf-16  in data.corpus. Or:",
}


def path_of(given: str | Path) -> Path:
    """A path in a config or command: `~` and `~name` at its beginning are home folders if they exist.

    `file://` addresses are paths too. Raises TmtError if it is neither text nor a path, or another address.
    """
    if isinstance(given, str) and given.startswith("file://"):
        from urllib.request import url2pathname  # imports HTTP and TLS

        given = url2pathname(urlsplit(given).path)
    if is_address(given):
        remedy = "Only the files of data.corpus can be at an address."
        raise TmtError("a path on this machine is needed here, not an address", place=given, remedy=remedy)
    path = checked_path(given)
    try:
        return path.expanduser()
    except RuntimeError:  # no such user: it may be the name of a file
        return path


def paths_of(given: str | Path | Iterable[str | Path]) -> list[Path]:
    """One path or several, as `path_of`."""
    is_one = isinstance(given, (str, bytes, os.PathLike)) or not isinstance(given, Iterable) or hasattr(given, "to_csv")
    several: Any = [given] if is_one else given
    return [path_of(one) for one in several]


def printable(argument: str | Path) -> str:
    """A file name or argument as text; bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(argument).decode("utf-8", "replace")


def require_utf8(folder: Path) -> None:
    """Raises TmtError if the name of a folder for models is not UTF-8: safetensors could not open files in it."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        problem = "the name is not UTF-8, so models in it could not be read again"
        raise TmtError(problem, place=printable(folder), remedy="Rename the folder, or choose another one.") from None


def read_lines(
    file: str | Path,
    encoding: str = "utf-8",
    any_text: bool = False,
    in_corpus: bool = True,
    errors: str = STRICT,
) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line, without its line break, in constant memory.

    A file that grows is read up to the size that it had when it was opened.
    any_text:  the file may be empty or a web page, because it is not part of a corpus
    in_corpus: whether the file is one of `data.corpus`, where a config can name its encoding; never with `any_text`
    errors:    STRICT, or MARKED: bytes in another encoding become BROKEN
    Raises TmtError if the file is missing, empty, incomplete, damaged, a device, a web page or not in this encoding,
    and if a line is too long.
    """
    path, number, n_letters = file if isinstance(file, Address) else Path(file), 0, 0
    in_corpus = in_corpus and not any_text
    check_exists(path)
    if not any_text and (path.is_file() or archive_of(path)):  # a pipe can be read only once
        check_head(path)
    if "\n".encode(encoding) != b"\n":
        for number, text in enumerate(_decoded(path, encoding, errors), start=1):
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).removesuffix("\n").removesuffix("\r")
        return
    with closing(_raw_lines(path)) as raw_lines:
        lines = enumerate(raw_lines, start=1)
        for number, raw in lines:
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
                if not any_text:
                    _check_first(raw, path, in_corpus)
            try:
                text = raw.decode(encoding, errors)
            except UnicodeDecodeError as error:
                if number == 1:
                    _check_first(raw, path, in_corpus)  # its message is more specific
                rest = chain([(number, raw)], lines)
                raise _wrong_encoding(error, encoding, path, rest, in_corpus, n_letters) from None
            n_letters += not text.isascii()
            yield number, text.removesuffix("\n").removesuffix("\r")
    if not number and not any_text:
        raise empty_file(path)


def read_text(file: Path, encoding: str = "utf-8", in_corpus: bool = True, errors: str = STRICT) -> Iterator[str]:
    """The text of a file in pieces, for a format whose lines may be as long as the file.

    Raises TmtError as `read_lines`.
    """
    check_exists(file)
    pieces = filter(None, _pieces(file, encoding, in_corpus, errors))
    first = next(pieces, None)
    if first is None:
        raise empty_file(file)
    yield first.removeprefix("\ufeff")
    yield from pieces


def _wrong_encoding(
    error: UnicodeDecodeError,
    encoding: str,
    path: Path,
    lines: Iterable[tuple[int, bytes]],
    in_corpus: bool = True,
    n_right: int = 0,
) -> TmtError:
    """The error for a file in another encoding. lines: the first wrong one and all after it, with their numbers

    n_right: the lines before them with other letters than ASCII
    """
    numbers, sample, last = [], b"", 0
    for last, raw in lines:
        try:
            n_right += not raw.decode(encoding).isascii()
        except UnicodeDecodeError:
            numbers.append(last)
            sample += raw if len(sample) < GUESS_BYTES else b""
    first = numbers[0] if numbers else last
    bad = error.object[error.start : error.start + 1].hex()
    others = f"; {len(numbers):,} of {last:,} lines are not" if len(numbers) > 1 else ""
    others += f" (also {', '.join(map(str, numbers[1:3]))}{', ...' if len(numbers) > 3 else ''})" if others else ""
    problem = f"the line is not {encoding.upper()}: byte 0x{bad} at position {error.start + 1}{others}"
    if n_right > MOST_RIGHT * (n_right + len(numbers)):  # in the encoding of these few, the others would be wrong
        correct = f"Nearly all other lines are {encoding.upper()}: correct {'these' if others else 'this one'}"
        return TmtError(problem, place=at(path, first), remedy=f"{correct}{f', or {_DROP}' if in_corpus else '.'}")
    guess = guessed_from(sample, encoding)
    seems = f"These lines seem to be {guess}. " if guess else ""
    name = guess or ("cp1252" if is_name_of_utf_8(encoding) else "utf-8")
    key = f", or {_DROP} Otherwise name the encoding of the file in data.corpus, such as  encoding: {name}"
    convert = f"convert it:  iconv -f {name.upper()} -t UTF-8 OLD > NEW"
    otherwise = f". Otherwise {convert}"
    if in_corpus:
        otherwise = key if name == "utf-8" else f"{key}  or {convert}"
    return TmtError(
        problem, place=at(path, first), remedy=f"{seems}If only a few lines are wrong, correct them{otherwise}"
    )


def lines_of(file: str | Path) -> list[str]:
    """All lines at once of a file that is no corpus. Raises TmtError as `read_lines` does."""
    return [text for _, text in read_lines(file, in_corpus=False)]


def count_lines(file: Path) -> int:
    """Number of lines of any text. Raises TmtError if it is damaged, not UTF-8 or unreadable."""
    return sum(1 for _ in read_lines(file, any_text=True))


def line_batches(file: Path, most: int) -> Iterator[list[str]]:
    """The lines of any text, `most` at once."""
    lines = (text for _, text in read_lines(file, any_text=True))
    while batch := list(islice(lines, most)):
        yield batch


def check_exists(file: Path) -> None:
    """Raises TmtError if `file` does not exist or is a folder; for an address, if it cannot be read."""
    if isinstance(file, Address):
        file.check()
        return
    if archive := archive_of(file):
        inside, name = members(archive), file.relative_to(archive).as_posix()
        if name not in inside:
            near = difflib.get_close_matches(name, inside, n=5, cutoff=0)
            remedy = f"Files in it: {', '.join(near)}" + (", ..." if len(inside) > len(near) else "")
            raise TmtError(f"the archive contains no file '{name}'", place=archive, remedy=remedy)
        return
    if file.is_dir():
        raise TmtError("this is a folder, not a file", place=file, remedy="Give the file inside it.")
    if is_endless(file):
        raise TmtError("this is a device, not a file", place=file, remedy="Give a file with sentences.")
    if not file.exists():
        folder = shlex.quote(str(file.parent))
        remedy = f"Check the name:  ls {folder}"
        remedy += "" if file.is_absolute() else "   Paths start at the folder where you run tmt."
        if str(file) == "-":
            remedy = "For standard input, name /dev/stdin."
        elif not file.parent.is_dir():
            remedy = f"The folder {file.parent} does not exist either. Paths start at the folder where you run tmt."
        raise TmtError("no such file", place=file, remedy=remedy)


def check_head(file: Path) -> None:
    """Raises TmtError if a file is missing, empty, or a web page, which some servers send instead of the data."""
    check_exists(file)
    if isinstance(file, Address):
        return  # its stream checks this: each opening of an address takes time
    with readable(file, "reading a text file"), open_stored(file) as stream:
        head = stream.read(512)
    if not head:
        raise empty_file(file)
    if is_web_page(head):
        raise web_page(file)


def _check_first(line: bytes, path: Path, in_corpus: bool) -> None:
    if is_web_page(line[:512]):
        raise web_page(path)
    if line[257:262] == b"ustar":
        raise TmtError(
            "the file is a tar archive", place=path, remedy="Unpack it with `tar -xf`, and give the file inside it."
        )
    for magic, what, remedy in _NOT_TEXT:
        if line.startswith(magic):
            in_config = f"{_IN_CONFIG[magic]} " if in_corpus and magic in _IN_CONFIG else ""
            raise TmtError(f"the file {what}", place=path, remedy=in_config + remedy)
    if b"\r" in line.strip() and not line.endswith(b"\n"):
        remedy = "Save it with LF line ends, or convert it:  tr '\\r' '\\n' < OLD > NEW"
        raise TmtError("the lines end with CR only, as on old Macs", place=path, remedy=remedy)


def too_long(place: str | Path) -> TmtError:
    """The error for a line of more than LONGEST_LINE bytes."""
    remedy = "Check that this is the file with one sentence per line."
    return TmtError(f"the line is longer than {LONGEST_LINE >> 20} MiB", place=place, remedy=remedy)


def _raw_lines(path: Path) -> Generator[bytes, None, None]:
    """Lines with their line breaks. Errors of the decompressors become a TmtError with the number of the line."""
    number = 0
    try:
        with open_bytes(path) as stream:
            for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), start=1):
                if len(line) > LONGEST_LINE:
                    raise too_long(at(path, number))
                yield line
    except DAMAGED as error:
        raise damaged(error, path, at(path, number + 1)) from None
    except OSError as error:
        raise from_os_error(error, "reading a text file") from None


def _decoded(path: Path, encoding: str, errors: str) -> Iterator[str]:
    """Lines with their line breaks, in an encoding that may write a line break in another way than UTF-8 (UTF-16)."""
    pending, number = "", 1
    for piece in _pieces(path, encoding, errors=errors):
        *lines, pending = (pending + piece).split("\n")
        if len(pending) > LONGEST_LINE:
            raise too_long(at(path, number + len(lines)))
        yield from (f"{line}\n" for line in lines)
        number += len(lines)
    if pending:
        yield pending


def _lines_right(piece: bytes, encoding: str) -> int:
    """The lines of a piece with other letters than ASCII, if nearly all are in this encoding; else 0."""
    wide = [line for line in piece.split(b"\n") if not line.isascii()]
    right = sum(is_in(line, encoding) for line in wide)
    return right if right > MOST_RIGHT * len(wide) else 0


def _pieces(path: Path, encoding: str, in_corpus: bool = True, errors: str = STRICT) -> Iterator[str]:
    """The text of a file. Raises TmtError with the line of bytes that are not in this encoding."""
    is_ascii, number = "\n".encode(encoding) == b"\n", 1  # is_ascii: a line break is this byte
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    with readable(path, "reading a text file"), open_bytes(path) as stream:
        for count, raw in enumerate(chain(iter(lambda: stream.read(_PIECE), b""), [None])):
            if count == 0 and raw and is_ascii:
                _check_first(raw.removeprefix(codecs.BOM_UTF8).split(b"\n")[0] + b"\n", path, in_corpus)
            if count == 0 and raw and not raw.startswith(_BYTE_ORDER.get(codecs.lookup(encoding).name, b"")):
                remedy = "Name the encoding in which it is written, such as utf-8 or utf-16-le."
                raise TmtError(f"no byte order mark, so this is not {encoding}", place=path, remedy=remedy)
            state = decoder.getstate()
            try:
                text = decoder.decode(raw or b"", final=raw is None)
            except UnicodeDecodeError as error:
                n_right = _lines_right(error.object, encoding) if is_ascii else 0
                begin = error.object.rfind(b"\n", 0, error.start) + 1 if is_ascii else 0
                lenient = codecs.getincrementaldecoder(encoding)("ignore")
                lenient.setstate(state)
                before = len(error.object) - len(raw or b"")  # bytes that were left of the piece before
                number += lenient.decode((raw or b"")[: max(0, error.start - before)]).count("\n")
                error.object, error.start, error.end = error.object[begin:], error.start - begin, error.end - begin
                raise _wrong_encoding(error, encoding, path, [(number, error.object)], in_corpus, n_right) from None
            number += text.count("\n")
            yield text
