"""JSON with an object for each pair: one in each line (JSON lines), or all of them in the list of a file."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from transformer_mt.corpora.base import FilesCorpus, Pair, same_name
from transformer_mt.corpora.parts import Part, Texts, cut_lines, numbered_lines
from transformer_mt.corpora.tables import EncodedTableOptions, NamedColumnsOptions, cell_text, listed, missing_column
from transformer_mt.errors import TmtError, at
from transformer_mt.files.encodings import STRICT
from transformer_mt.files.lines import read_lines, read_text

TOO_DEEP, TOO_LONG_NUMBER = "nested too deeply", "a number with thousands of digits"
LONGEST = 16_000_000  # characters of an object in a list
_CUT = 16  # characters before the end of a text, where something may be wrong only because the rest is missing
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"[-+.eE\d]*")  # what a number may go on with


class JsonlCorpus(FilesCorpus):
    class Options(NamedColumnsOptions, EncodedTableOptions):
        kind: Literal["jsonl"]

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        return self._pairs(read_lines(file, self.options.encoding, errors=self.errors), file)

    def cut(self, *files: Path) -> list[Part] | None:
        return cut_lines(files, self.options.encoding, self.errors)

    def read_range(self, part: Part) -> Texts:
        return Texts.of(self._pairs(numbered_lines(part, self.options.encoding, self.errors), part.files[0]))

    def _pairs(self, lines: Iterable[tuple[int, str]], file: Path) -> Iterator[Pair]:
        columns = self.options.source_column, self.options.target_column
        for number, line in lines:
            if line.strip():
                place = at(file, number)
                yield pair_of_record(parse_json(line, file, number), columns, place)


class JsonCorpus(FilesCorpus):
    """Files with a list of objects, as at AI Hub: at the top level, or under a key of an object."""

    class Options(NamedColumnsOptions, EncodedTableOptions):
        kind: Literal["json"]
        list_key: str | None = Field(
            None, description="key of the list of objects; null: the whole file is a list, or an object with one list"
        )

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,), columns = files, (self.options.source_column, self.options.target_column)
        items = objects_in(file, self.options.encoding, self.options.list_key, errors=self.errors)
        for number, item in enumerate(items, start=1):
            yield pair_of_record(item, columns, at(file, number))


def objects_in(
    file: Path, encoding: str = "utf-8", key: str | None = None, in_corpus: bool = True, errors: str = STRICT
) -> Iterator[Any]:
    """What is in the list of a JSON file, one by one, in little memory.

    key: that of the list, if the file is an object; None: its only list that begins with an object
    Raises TmtError with the line of what is not JSON, and if there is no such list or, without a key, a second one.
    """
    found = list[str]()
    for name, items, has_objects in lists_in(file, encoding, in_corpus, errors):
        if name in ("", key) or (key is None and has_objects):
            found.append(name)
            if len(found) > 1:
                raise _several_lists(file, found)
            yield from items
    if not found:
        raise _no_list(file, key)


def lists_in(
    file: Path, encoding: str = "utf-8", in_corpus: bool = True, errors: str = STRICT
) -> Iterator[tuple[str, Iterator[Any], bool]]:
    """Each list in a JSON file: its key ("" if the file is a list), what is in it, and whether an object comes first.

    What the caller does not read is skipped. Lists inside other objects are not seen. Raises TmtError as `objects_in`.
    """
    text, has_lists = _Text(file, encoding, in_corpus, errors), False
    first = text.next()
    for name in text.names() if first == "{" else [""]:
        if text.next() == "[":
            has_objects, items, has_lists = text.begins_with_object(), text.items(), True
            yield name, items, has_objects
            deque(items, maxlen=0)
        else:
            text.value()
    if text.next():
        raise text.error("Extra data", text.at) if has_lists else _several_values(file)


def _no_list(file: Path, key: str | None) -> TmtError:
    where = "at the top level or under a key" if key is None else f"under the key {key}"
    remedy = f"It must be a list of objects {where}. JSON lines, an object in each line, are of  kind: jsonl."
    return TmtError("this JSON file has no list of pairs", place=file, remedy=remedy)


def _several_values(file: Path) -> TmtError:
    remedy = "JSON lines, an object in each line, are of  kind: jsonl. To write them:  jq -c . OLD > NEW.jsonl"
    return TmtError("this JSON file has several values, one after the other", place=file, remedy=remedy)


def _several_lists(file: Path, found: Sequence[str]) -> TmtError:
    if found[-1] in found[:-1]:
        remedy = "Write each list to a file of its own."
        return TmtError(f"this JSON file has the key '{found[-1]}' twice", place=file, remedy=remedy)
    best = "data" if "data" in found else found[0]
    remedy = f"Name the one to read, such as  list_key: {best}  with kind: json."
    return TmtError(f"this JSON file has several lists of objects: {listed(found)}", place=file, remedy=remedy)


class _Text:
    """The text of a JSON file, of which values are read one after the other. at: where the next one begins"""

    def __init__(self, file: Path, encoding: str, in_corpus: bool, errors: str) -> None:
        self.at = 0
        self._file, self._pieces = file, read_text(file, encoding, in_corpus, errors)
        self._text, self._line, self._column = "", 1, 0  # line and column of its first character

    def next(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            self.at = _after_space(self._text, self.at)
            if self.at < len(self._text) or not self._read(1):
                return self._text[self.at : self.at + 1]

    def value(self) -> Any:
        """The next value. Raises TmtError if it is not JSON, or too long."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self.at)
            except json.JSONDecodeError as error:
                problem, place, end = error.msg, error.pos, len(self._text)
            except RecursionError:
                raise self.error(TOO_DEEP, self.at) from None
            except ValueError:
                raise self.error(TOO_LONG_NUMBER, self.at) from None
            else:
                problem, place = "", end
                going_on = _NUMBER.match(self._text, end) if isinstance(value, int | float) else None
                if end < len(self._text) and not (going_on and going_on.end() == len(self._text)):
                    self.at = end
                    return value
            if problem and not problem.startswith("Unterminated") and place < len(self._text) - _CUT:
                raise self.error(problem, place)
            if len(self._text) - self.at > LONGEST:
                remedy = "A list of pairs must be at the top level or under one key:  jq '.KEY' OLD > NEW"
                place_of_value = at(self._file, self._line_of(self.at)[0])
                raise TmtError(f"a value has more than {LONGEST:,} characters", place=place_of_value, remedy=remedy)
            before = self.at
            if not self._read(len(self._text) - self.at):
                if problem:
                    raise self.error(problem, place - before)
                self.at = end - before
                return value

    def items(self) -> Iterator[Any]:
        """The values of the list that begins here."""
        return (self.value() for _ in self._parts("]"))

    def names(self) -> Iterator[str]:
        """The keys of the object that begins here; the caller reads the value of each."""
        for _ in self._parts("}"):
            if self.next() != '"':
                raise self.error("Expecting property name enclosed in double quotes", self.at)
            key = self.value()
            self._take(":")
            yield key

    def begins_with_object(self) -> bool:
        """Whether the first value of the list that begins here is an object."""
        while True:
            begin = _after_space(self._text, self.at + 1)
            if begin < len(self._text) or not self._read(len(self._text) - self.at):
                return self._text[begin : begin + 1] == "{"

    def error(self, problem: str, place: int) -> TmtError:
        """The error for a place in the text that was read last. problem: as the library says it"""
        line, column = self._line_of(place)
        remedy = "Correct it, or download it again if its end is missing."
        return _invalid(problem, column + 1, self._file, line, remedy)

    def _parts(self, end: str) -> Iterator[None]:
        """For each part of the list or object that begins here; it ends with this character."""
        self.at += 1
        if self.next() == end:
            self.at += 1
            return
        while True:
            yield
            if self.next() == end:
                self.at += 1
                return
            self._take(",")

    def _take(self, mark: str) -> None:
        if self.next() != mark:
            raise self.error(f"Expecting '{mark}' delimiter", self.at)
        self.at += 1

    def _read(self, least: int) -> bool:
        """Read more, at least so many characters if there are; what was used is forgotten. False at the end."""
        pieces, size = [self._text[self.at :]], 0
        while size < least and (piece := next(self._pieces, None)) is not None:
            pieces.append(piece)
            size += len(piece)
        self._line, self._column = self._line_of(self.at)
        self._text, self.at = "".join(pieces), 0
        return size > 0

    def _line_of(self, place: int) -> tuple[int, int]:
        """The line, from 1, and the column, from 0, of a place in the text."""
        if lines := self._text.count("\n", 0, place):
            return self._line + lines, place - self._text.rindex("\n", 0, place) - 1
        return self._line, self._column + place


def _after_space(text: str, begin: int) -> int:
    found = _SPACE.match(text, begin)
    return found.end() if found else begin


def parse_json(text: str, file: Path, line: int) -> Any:
    """The value of a line of JSON. Raises TmtError if it is none."""
    column = 1
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem, column = error.msg, error.colno
    except RecursionError:
        problem = TOO_DEEP
    except ValueError:
        problem = TOO_LONG_NUMBER
    remedy = "kind: jsonl needs one JSON object per line; kind: json reads a list."
    raise _invalid(problem, column, file, line, remedy)


def _invalid(problem: str, column: int, file: Path, line: int, remedy: str) -> TmtError:
    said = problem.removesuffix(" at").removesuffix(" starting")  # the library would say a place here
    return TmtError(f"invalid JSON: {said} at character {column}", place=at(file, line), remedy=remedy)


def pair_of_record(record: Any, columns: Sequence[str], place: str) -> Pair:
    """The texts at the keys of the source and of the target. Raises TmtError as `reach`."""
    source, target = (reach(record, column, place) for column in columns)
    return Pair(source, target, place)


def reach(record: Any, path: str, place: str) -> str:
    """The text at a key; a null is an empty side. `a.b`: the key b in the object at a, unless there is a key `a.b`."""
    value = record
    for key in [path] if isinstance(record, dict) and path in record else path.split("."):
        if value is None and value is not record:
            return ""
        if not isinstance(value, dict):
            names = ((list, "a list"), (str, "text"))
            kind = next((name for cls, name in names if isinstance(value, cls)), "a number, true, false or null")
            remedy = "Check source_column and target_column; each pair is in one JSON object."
            raise TmtError(f"expected an object with the key '{key}', but found {kind}", place=place, remedy=remedy)
        known = same_name(key, value)
        if known is None:
            raise missing_column(path, _paths(record), place)
        value = value[known]
    return cell_text(value, path, place)


def _paths(value: dict[str, Any]) -> list[str]:
    """The keys of an object; those of an object inside it as `a.b`."""
    found = []
    for key, item in value.items():
        found += [f"{key}.{path}" for path in _paths(item)] if isinstance(item, dict) else [str(key)]
    return found
