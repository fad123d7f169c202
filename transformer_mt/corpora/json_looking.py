"""What a JSON file contains: JSON lines, or the list of objects in which the pairs are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_mt.corpora.json_files import lists_in, parse_json
from transformer_mt.corpora.tables import cell_text, listed
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import read_lines

Fields = dict[str | int, list[str]]  # the texts of each
_INSIDE = "Lists inside objects are not read:  jq -c '.KEY[].LIST[]' OLD > NEW.jsonl"
_ARRAYS = "Pairs must be objects:  jq -c '.[] | {source: .[0], target: .[1]}' OLD > NEW.jsonl"
_PAIRS = 'A pair is an object, such as  {"de": "...", "en": "..."}'


def json_table(file: Path, head: str, encoding: str, most: int) -> tuple[str, Fields, dict[str, Any], dict[str, str]]:
    """The kind that reads a file, the fields of its first `most` objects, and keys of a config with the reasons.

    head: the beginning of the file. Of several lists, the largest whose objects have two texts counts.
    Raises TmtError if the file is not JSON, or if it has no such list.
    """
    if _is_json_lines(_first_lines(file, head, encoding), file):
        lines = islice((one for one in read_lines(file, encoding) if one[1].strip()), most)
        return "jsonl", fields_of(parse_json(line, file, number) for number, line in lines), {}, {}
    found: dict[str, tuple[int, Fields]] = {}  # by its key, how many objects a list has
    how = _INSIDE
    for name, items, has_objects in lists_in(file, encoding):
        some = list(islice(items, most))
        if any(isinstance(one, list) for one in some):
            how = _ARRAYS
        elif some and not any(isinstance(inside, list) for one in some if has_objects for inside in _values(one)):
            how = _PAIRS
        if name and has_objects:
            found[name] = len(some) + sum(1 for _ in items), fields_of(some)
        elif not name:
            found[name] = len(some), fields_of(some)
            break
    tables = {name: one for name, one in found.items() if len(one[1]) > 1}
    if not tables:
        seen = listed([str(field) for _, fields in found.values() for field in fields])
        remedy = f"Texts of an object: {seen}. {how}"
        raise TmtError("this JSON file has no list of objects with two texts", place=file, remedy=remedy)
    best = max(tables, key=lambda name: tables[name][0])
    if not (others := [name for name in found if name != best]):
        return "json", tables[best][1], {}, {}
    said = f"lists that are not read: {listed(others)}; to use one, write it to a file of its own"
    return "json", tables[best][1], {"list_key": best}, {"list_key": said}


def _values(item: Any) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else ()


def _first_lines(file: Path, head: str, encoding: str) -> list[str]:
    """The first two lines that are not empty; the first may be longer than the head."""
    lines = [line for line in head.split("\n") if line.strip()]
    if len(lines) < 2:
        with suppress(TmtError):  # too long for a line
            lines = list(islice((line for _, line in read_lines(file, encoding) if line.strip()), 2))
    return lines[:2]


def _is_json_lines(lines: Sequence[str], file: Path) -> bool:
    """Whether a file with these first lines has JSON lines, and not a list of objects.

    The first is an object. Without another object in the next line, it must have two texts and no list of objects.
    Raises TmtError if something stands behind the first object.
    """
    try:
        first, end = json.JSONDecoder().raw_decode(lines[0].lstrip())
    except (ValueError, RecursionError):
        return False
    if not isinstance(first, dict):
        return False
    lists = [one for one in first.values() if isinstance(one, list) and one and isinstance(one[0], dict)]
    if len(lines) == 1 or not lines[1].lstrip().startswith("{"):
        return len(fields_of([first])) > 1 and not lists and not lines[0].lstrip()[end:].strip()
    if not lists:
        parse_json(lines[0], file, 1)
    return not lists or len(fields_of([first])) > 1


def fields_of(records: Iterable[Any]) -> Fields:
    """The texts of each field; those of an object inside a record are `object.field`."""
    found: Fields = {}

    def add(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inside in value.items():
                add(inside, f"{path}.{key}" if path else str(key))
        elif path and not isinstance(value, list):
            found.setdefault(path, []).append(cell_text(value, path, ""))

    for record in records:
        add(record, "")
    return found
