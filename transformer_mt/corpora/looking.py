"""What a file of sentence pairs contains: format, encoding, columns, and the first rows, found by its content."""

from __future__ import annotations

import codecs
import csv
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_mt.corpora.json_looking import fields_of, json_table
from transformer_mt.corpora.parquet import batches, open_parquet, text_columns
from transformer_mt.corpora.quoting import csv_rows, is_separator_line, parse_csv
from transformer_mt.corpora.tables import is_header, listed
from transformer_mt.corpora.text import parallel_files
from transformer_mt.corpora.tmx import read_units
from transformer_mt.corpora.workbook import HEADER_ROWS, open_sheets
from transformer_mt.errors import TmtError, at
from transformer_mt.files.encodings import guessed_encoding, is_in
from transformer_mt.files.folder import files_below
from transformer_mt.files.lines import MOST_RIGHT, check_exists, check_head, read_lines
from transformer_mt.files.opening import members, read_head, require_unpacked
from transformer_mt.text.language import is_known, is_number, language_of

SAMPLE_ROWS = 1_000
SAMPLE_BYTES = 1 << 17
TELLING_ROWS = 100  # of each file in a folder, to find a common encoding
MIXED_LINES, MIXED_CELLS = 0.02, 0.2  # of those of a file in another encoding may look like UTF-8 by chance
_ENOUGH_QUOTED = 10  # cells of a table with tabs: fewer may be sentences that are quotations
_CP1250 = {"pl", "cs", "sk", "hu", "sl", "hr", "ro"}  # languages that Windows writes in cp1250 and not in cp1252
_NEVER_IN_PLACE = (".md", ".xml", ".xlsx", ".parquet", ".zip")  # in an archive: no text, or no corpus
_PACKED = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tbz2")
_CONTROL = bytes({*range(32)} - {*b"\t\n\r\f\x1a\x1b"})  # bytes that no text has
_LINE_IN_TAGS = re.compile(r"<(\w+)>[^<\n]*</\1>[^\S\n]*\r?\n")  # text, such as that of IWSLT's talks
_MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
HEADER = "the first row is a header"
_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}


@dataclass(frozen=True)
class Contents:
    """What a file contains.

    kind:      the kind of corpus that reads it
    options:   the keys of this kind, without files and columns
    columns:   the cells of each column that a config can name, by number or name, in the first SAMPLE_ROWS rows
    languages: of a column, if the file says it
    reasons:     what was found, in words, by the key that it decides
    """

    kind: str
    options: dict[str, Any]
    columns: dict[str | int, list[str]]
    languages: dict[str | int, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def contents_of(file: Path) -> Contents:
    """Look at a file, or at a folder of parallel files. Raises TmtError if nothing here can be read as pairs."""
    if file.is_dir():
        return _parallel(file)
    check_exists(file)
    check_head(file)
    head = read_head(file, SAMPLE_BYTES)
    if head.startswith(b"PK\x03\x04"):
        require_unpacked(file)
        if any(name.startswith("xl/") for name in members(file)):
            return _workbook(file)
        return _archive(file)
    if head.startswith((b"BZh", b"7z\xbc\xaf", b"Rar!")):
        remedy = f"Unpack it, for example:  bunzip2 {file.name}   .gz, .xz and .zst are read as they are."
        raise TmtError("this compression is not supported", place=file, remedy=remedy)
    if head.startswith(b"\x1f\x8b"):
        remedy = f"Unpack it:  tar -xf {file.name}   Or name it .gz, if it is one text."
        raise TmtError("this is a packed archive", place=file, remedy=remedy)
    if head.startswith(b"PAR1"):
        return _parquet(file)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        remedy = "Open it in Excel or LibreOffice, and save it as .xlsx."
        raise TmtError("this is an old or protected file of an office program", place=file, remedy=remedy)
    encoding, note = encoding_of(head, file)
    text = head.decode(encoding, "ignore").removeprefix("\ufeff")
    begin = text.lstrip()[:1]
    if begin == "<" and not _LINE_IN_TAGS.match(text.lstrip()):
        return _tmx(file)
    options, reasons = ({"encoding": encoding}, {"encoding": note}) if encoding != "utf-8" else ({}, {})
    if begin in ("{", "["):
        kind, fields, own, why = json_table(file, text, encoding, SAMPLE_ROWS)
        return Contents(kind, {**options, **own}, fields, {}, {**reasons, **why})
    return _table(file, text, encoding, options, reasons)


def encoding_of(head: bytes, file: Path) -> tuple[str, str]:
    """The encoding of a text and how it was found. Raises TmtError if it cannot be guessed."""
    mark = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if mark:
        return mark, "the file begins with its byte order mark"
    zeros = (head[0::2].count(0), head[1::2].count(0))
    if max(zeros) > len(head) / 8 and min(zeros) < max(zeros) / 8:
        return ("utf-16-be", "utf-16-le")[zeros[1] > zeros[0]], "every second byte of ASCII letters is 0"
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8", ""
    if len(head) - len(head.translate(None, _CONTROL)) > len(head) / 50:
        remedy = "Give a table or two parallel files: TSV, CSV, JSON lines, TMX, XLSX or Parquet."
        raise TmtError("this is not a text file", place=file, remedy=remedy)
    lines = head.split(b"\n")[:-1] or [head]
    _check_mixture(lines, file)
    telling = b"\n".join(line for line in lines if not line.isascii())
    name = guessed_encoding(telling)
    if name is None:
        remedy = "Save it as UTF-8, or write a config by hand with  encoding: NAME  in data.corpus (tmt init files)."
        raise TmtError("the encoding of this file cannot be guessed", place=file, remedy=remedy)
    if name in ("cp1252", "cp1250", "cp1254"):  # they differ in a few letters
        cells = re.split(r"[\t;,|\n]", telling.decode(name, "replace"))
        language = language_of(cell for cell in cells if not cell.isascii())
        name = "cp1250" if language in _CP1250 else "cp1254" if language == "tr" else "cp1252"
    return name, "guessed from its letters; change it if they look wrong"


def _check_mixture(lines: Sequence[bytes], file: Path) -> None:
    """Raises TmtError if some lines or columns are UTF-8 and others are not: no encoding reads all of them."""
    for parts, separators, most in (("lines", rb"\n", MIXED_LINES), ("cells", rb"[\t;,]", MIXED_CELLS)):
        found = [
            (number, is_in(part, "utf-8"))
            for number, line in enumerate(lines, start=1)
            for part in re.split(separators, line)
            if not part.isascii()
        ]
        wrong = [number for number, is_right in found if not is_right]
        if wrong and len(found) - len(wrong) > most * len(found):
            many = f"{len(wrong):,} of {len(found):,} {parts} with other letters than ASCII are not UTF-8"
            remedy = "Convert the files that it was made from to UTF-8 first:  iconv -f CP1252 -t UTF-8 OLD > NEW"
            if len(found) - len(wrong) > MOST_RIGHT * len(found):
                remedy = "Correct these lines, or write a config by hand with  invalid: drop  in data.cleaning."
            raise TmtError(f"the file has {parts} in two encodings: {many}", place=at(file, wrong[0]), remedy=remedy)


def common_encoding(files: Mapping[str | Path, tuple[str, Sequence[str]]]) -> str:
    """An encoding that reads all files of a corpus, given the encoding and lines of each.

    Raises TmtError if there is none.
    """
    first = {one: file for file, (one, _) in reversed(list(files.items()))}
    for common in sorted(first):
        if all(_is_read_alike(line, one, common) for one, lines in files.values() for line in lines):
            return common
    seen = ", ".join(f"{file} is {one.upper()}" for one, file in reversed(first.items()))
    other = next(one for one in reversed(first) if one != "utf-8")
    remedy = f"Convert them to UTF-8:  iconv -f {other.upper()} -t UTF-8 {first[other]} > NEW"
    raise TmtError(f"the files have different encodings: {seen}", place=first[other], remedy=remedy)


def _is_read_alike(line: str, encoding: str, other: str) -> bool:
    """Whether a line in one encoding is the same text in another, such as `schön` in cp1252 and cp1250."""
    return encoding == other or line.encode(encoding, "replace").decode(other, "replace") == line


def _table(file: Path, text: str, encoding: str, options: dict[str, Any], reasons: dict[str, str]) -> Contents:
    """A table with a separator between its columns, or a text with one sentence in each line."""
    next(read_lines(file, encoding), None)  # raises if this is a tar archive, or if the lines end with CR only
    lines = [line.removesuffix("\r") for line in text.split("\n", SAMPLE_ROWS + 1)[: SAMPLE_ROWS + 1] if line.strip()]
    lines = lines[:-1] if len(text) >= SAMPLE_BYTES // 2 and len(lines) > 1 else lines
    if not lines:
        raise TmtError("the file has only empty lines", place=file, remedy="Download or copy it again.")
    named = is_separator_line(lines[0])
    delimiter = _delimiter(lines[named:])
    if delimiter is None:
        _require_one_column(lines, file)
        rows: list[Sequence[str]] = [[line] for line in lines]
        return Contents("text", options, _columns(rows, False), {}, reasons)
    if delimiter == "\t" and not named and not _is_quoted(lines):
        rows, kind = [line.split("\t") for line in lines], "tsv"
    else:
        rows, kind = [row for _, row in islice(csv_rows(file, delimiter, encoding), SAMPLE_ROWS)], "csv"
        options = {**options, "delimiter": delimiter} if delimiter != "," else options
        reasons = {**reasons, "delimiter": f"{_NAMES[delimiter]} between the columns"}
    width = Counter(map(len, rows)).most_common(1)[0][0]
    if not any(rows[0][width:]):
        rows[0] = rows[0][:width]
    rows = [row for row in rows if len(row) == width]
    header = _has_header(rows)
    return Contents(kind, options, _columns(rows, header), {}, {**reasons, "header": _header_note(rows, header)})


def _delimiter(lines: list[str]) -> str | None:
    """The separator that gives nearly all lines the same number of columns, or None."""
    shares = {}
    for delimiter in _NAMES:
        widths: Counter[int]
        if delimiter == "\t":
            widths = Counter(line.count("\t") + 1 for line in lines)
        else:
            try:
                widths = Counter(len(row) for _, row in parse_csv(lines, delimiter) if row)
            except csv.Error:
                continue
        if not widths:
            continue
        width, rows = widths.most_common(1)[0]
        if width > 1:
            shares[delimiter] = rows / widths.total()
    best = max(shares, key=lambda one: shares[one], default=None)
    return best if best is not None and shares[best] >= 0.8 else None


def _is_quoted(lines: Sequence[str]) -> bool:
    """Whether a table with tabs has quoted cells, as programs write it, and not sentences that are quotations.

    Quotes inside such cells are doubled. Excel quotes the cells with a comma or a quote and no others; pandas can quote
    all cells, or all that are not numbers.
    """
    rows = [line.split("\t") for line in lines]
    cells = [cell for row in rows for cell in row if cell]
    quoted = [cell for cell in cells if len(cell) > 1 and cell[0] == cell[-1] == '"']
    if any('"' in cell[1:-1].replace('""', "") for cell in quoted):
        return False
    if any('""' in cell[1:-1] for cell in quoted):
        return True
    others = [cell for cell in cells if not (len(cell) > 1 and cell[0] == cell[-1] == '"')]
    by_commas = all("," in cell for cell in quoted) and not any("," in cell or '"' in cell for cell in others)
    one_side = any(len({"," in cell for cell in row}) > 1 for row in rows)  # a quotation would be one on both sides
    return len(quoted) >= _ENOUGH_QUOTED and ((by_commas and one_side) or all(map(is_number, others)))


def _require_one_column(lines: Sequence[str], file: Path) -> None:
    """Raises TmtError if nearly all lines have several columns, but not the same number of them."""
    widths = Counter(line.count("\t") + 1 for line in lines)
    if widths[1] <= 0.2 * len(lines):
        counts = ", ".join(f"{width} in {rows:,}" for width, rows in widths.most_common(3))
        remedy = "Give every row the same number of columns: write the tabs of empty cells at the end of a row too."
        raise TmtError(f"the rows have different numbers of columns: {counts} rows", place=file, remedy=remedy)


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: by known words, or because only it has no numbers or full stops."""
    first = [cell.strip() for cell in rows[0]]
    words = [cell for cell in first if re.search(r"\w", cell)]
    if len(rows) < 2 or any(len(cell) > 40 for cell in first):
        return False
    if (words and is_header(words)) or sum(is_header([cell]) for cell in words) > 1:
        return True
    if not all(first) or len(set(first)) < len(first):
        return False
    below = list(zip(*rows[1:], strict=True))
    ends = sum(cell.strip()[-1:] in tuple(".?!。？！") for cells in below for cell in cells) / (
        len(below) * (len(rows) - 1)
    )
    sentences = any(cell[-1] in ".?!。？！" or len(cell.split()) > 3 for cell in first)
    numbers = any(
        not re.search(r"\d", cell)
        and sum(bool(re.fullmatch(r"[\d.,:%-]+", one.strip())) for one in cells) > 0.9 * len(cells)
        for cell, cells in zip(first, below, strict=True)
    )
    return not sentences and (numbers or ends > 0.4)


def _header_note(rows: Sequence[Sequence[str]], header: bool) -> str:
    first = listed([cell.strip() for cell in rows[0]])
    return f"{HEADER}: {first}" if header else f"no header seen; first row: {first}"


def _columns(rows: Sequence[Sequence[str]], header: bool) -> dict[str | int, list[str]]:
    """By name; by number without a header, without a name, or if several columns have the same name."""
    cells = [cell.strip() for cell in rows[0]] if header else []
    names = [cells[n] if header and cells[n] and cells.count(cells[n]) == 1 else n for n in range(len(rows[0]))]
    columns = [list(column) for column in zip(*rows[header:], strict=True)] or [[] for _ in names]
    return dict(zip(names, columns, strict=True))


def _workbook(file: Path) -> Contents:
    """The first sheet with a table of text; the reader takes every sheet that has the same header."""
    seen = []
    for title, sheet_rows in open_sheets(file):
        first = [["" if cell is None else str(cell) for cell in row] for row in islice(sheet_rows, SAMPLE_ROWS)]
        rows = [row for row in first if any(row)]
        seen.append(title)
        if len(rows) < 2:
            continue
        width = Counter(sum(1 for cell in row if cell) for row in rows).most_common(1)[0][0]
        start = next((n for n, row in enumerate(rows[:HEADER_ROWS]) if sum(map(bool, row)) >= width), 0)
        widest = max(map(len, rows[start:]))
        table = [[*row, *[""] * (widest - len(row))] for row in rows[start:]]
        if width < 2 or sum(bool(cell.strip()) for cell in table[0]) < 2:
            continue
        header = _has_header(table)
        columns = {name: cells for name, cells in _columns(table, header).items() if any(cells)}
        reasons = {"header": _header_note([[cell for cell in table[0] if cell.strip()]], header)}
        if sum(isinstance(name, str) for name in columns) >= 2:
            return Contents("xlsx", {}, columns, {}, reasons)
        others = [other for other, _ in open_sheets(file) if other != title]
        return Contents("xlsx", {"sheet": title}, columns, {}, reasons | _not_read(others))
    remedy = f"Sheets in it: {listed(seen)}. A sheet needs a column for each language."
    raise TmtError("no sheet of this workbook is a table of sentence pairs", place=file, remedy=remedy)


def _not_read(sheets: Sequence[str]) -> dict[str, str]:
    return {"sheet": f"sheets that are not read: {listed(sheets)}"} if sheets else {}


def _parquet(file: Path) -> Contents:
    with open_parquet(file) as opened:
        names = [name for name, is_text in text_columns(opened).items() if is_text]
        if len(names) < 2:
            remedy = f"Columns seen: {', '.join(f'{one.name} ({one.type})' for one in opened.schema_arrow) or 'none'}"
            raise TmtError("there are no two columns of text", place=file, remedy=remedy)
        fields = fields_of(next(batches(opened, names, file), [])[:SAMPLE_ROWS])
    return Contents("parquet", {}, {name: fields.get(name, []) for name in names})


def _tmx(file: Path) -> Contents:
    columns: dict[str | int, list[str]] = {}
    for unit in islice(read_units(file), SAMPLE_ROWS):
        for language, texts in unit.texts.items():
            columns.setdefault(language, []).append(texts[0])
    if not columns:
        remedy = "Export it as TMX."
        if b"<seg" in read_head(file, SAMPLE_BYTES):  # a test set of WMT or IWSLT
            take = r"sed -n 's/.*<seg[^>]*> *\(.*\) *<\/seg>.*/\1/p' FILE > NAME.de"
            remedy = f"Take the sentences of each language from it:  {take}"
        raise TmtError("this XML file is not TMX: it has no units (tu)", place=file, remedy=remedy)
    return Contents("tmx", {}, columns, {name: str(name) for name in columns})


def _archive(file: Path) -> Contents:
    """An archive with parallel files."""
    names = [name for name in members(file) if not name.startswith("__MACOSX/")]
    if zipfile.is_zipfile(file) and len(_files_by_language(file)) > 1:
        return _parallel(file)
    plain = [name for name in names if not name.lower().endswith((*_NEVER_IN_PLACE, "license", "readme"))]
    if not zipfile.is_zipfile(file) or not plain:
        raise TmtError("this archive contains no corpus", place=file, remedy="Unpack it, and give a file inside it.")
    remedy = f"Give one of them:  --data {file}/{plain[0]}   Files in it: {listed(plain)}"
    raise TmtError("this archive has no two files NAME.de and NAME.en of two languages", place=file, remedy=remedy)


def _parallel(place: Path) -> Contents:
    """A folder or an archive with files NAME.de and NAME.en."""
    by_language = _files_by_language(place)
    if len(by_language) < 2:
        names = [file.relative_to(place).as_posix() for file in files_below(place)] if place.is_dir() else []
        remedy = "Name the files NAME.de and NAME.en (with the codes of your languages), or give tables."
        remedy += f"\nFiles here: {listed(names)}" if names else ""
        archives = [name for name in names if name.lower().endswith(_PACKED)]
        packed = [name for name in names if name.lower().endswith(".bz2") and name not in archives]
        remedy += f"\nUnpack archives first:  tar -xf {archives[0]}" if archives else ""
        remedy += f"\nUnpack what is packed with bzip2:  bunzip2 {packed[0]}" if packed else ""
        raise TmtError("no files of two languages with the same name", place=place, remedy=remedy)
    columns: dict[str | int, list[str]] = {}
    looked: dict[str | Path, tuple[str, Sequence[str]]] = {}
    for code, files in by_language.items():
        for file in files:
            encoding, _ = encoding_of(read_head(file, SAMPLE_BYTES), file)
            lines = [line for _, line in islice(read_lines(file, encoding), SAMPLE_ROWS)]
            looked[file] = encoding, sorted(lines, key=str.isascii)[:TELLING_ROWS]
            columns.setdefault(code, lines)
    encoding = common_encoding(looked)
    options = {"encoding": encoding} if encoding != "utf-8" else {}
    return Contents("text", options, columns, {code: str(code) for code in columns})


def _files_by_language(place: Path) -> dict[str, list[Path]]:
    """The files in a folder or an archive that have a partner of the same name in another language."""
    by_language = {code: files for code, files in parallel_files(place).items() if is_known(code)}
    shared = Counter(stem for files in by_language.values() for stem in files)
    pairs = {code: [files[stem] for stem in files if shared[stem] > 1] for code, files in by_language.items()}
    return {code: files for code, files in pairs.items() if files}
