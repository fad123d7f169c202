"""What is wrong with a config, in sentences: every mistake at once, each with its place and the nearest right key.

A model that pydantic finds faulty in one key is not checked for contradictions. So what is faulty is taken out
and the rest is checked again, until nothing new is found.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from transformer_mt.config.reference import keys_at
from transformer_mt.config.schema import Config
from transformer_mt.config.yaml_source import KeyPath, YamlSource

_ROUNDS = 5  # sections, their contradictions, and those between sections
_WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")
_WANTED = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be text (in quotes, where it looks like a number)",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "model_attributes_type": "must be a mapping of keys",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}


def find_problems(source: YamlSource) -> list[str]:
    """One line for each mistake, in the order of the file; empty where there is none."""
    values = copy.deepcopy(source.values)
    faulty: set[KeyPath] = set()
    found: dict[str, int] = {}
    for _ in range(_ROUNDS):
        new = []
        for path, sentence, spoken_of in _problems(values, source):
            if path not in faulty and not spoken_of & {key[-1] for key in faulty}:  # else our own taking out spoke
                found.setdefault(f"{source.place(path)}: {sentence}", source.line(path))
                new.append(path)
        taken_out = {_take_out(values, path) for path in new} - {()}
        if not taken_out:
            break
        faulty |= {*new, *taken_out}
    return sorted(found, key=lambda sentence: found[sentence])


Problem = tuple[KeyPath, str, set[str | int]]  # where, what, and the names of the keys it speaks of


def _problems(values: Any, source: YamlSource) -> Iterator[Problem]:
    try:
        Config.model_validate(values)
        return
    except ValidationError as error:
        items: list[dict[str, Any]] = [dict(item) for item in error.errors(include_url=False)]
    for item in items:
        loc = item["loc"]
        if item["type"] == "too_short" and sum(other["loc"][: len(loc)] == loc for other in items) > 1:
            continue  # a list that is short only because its items are wrong
        path = _path_in_file(loc, values, ends_in_key=item["type"] == "missing")
        if item["type"] != "value_error":
            yield path, _sentence(item, path, values), set()
            continue
        # A section tells its contradictions in one error, a line each; each has the line of a key it names.
        name = ".".join(map(str, path))
        for problem in str(item["ctx"]["error"]).splitlines():
            keys = [path + tuple(word.split(".")) for word in _WORD.findall(problem)]
            spot = next((key for key in keys if key in source.lines), path)
            yield spot, f"{name}: {problem}" if name else problem, {key[-1] for key in keys}


def _path_in_file(loc: tuple[str | int, ...], values: Any, ends_in_key: bool) -> KeyPath:
    """Pydantic's location without the parts (union tags, added list levels) that the file does not have.

    ends_in_key: its last part is a key, even if the file does not have it.
    """
    path: list[str | int] = []
    for position, part in enumerate(loc):
        if isinstance(values, dict) and part in values:
            path.append(str(part))
            values = values[part]
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            path.append(part)
            values = values[part]
        elif ends_in_key and position == len(loc) - 1 and isinstance(part, str) and isinstance(values, dict):
            path.append(part)
    return tuple(path)


def _take_out(values: Any, path: KeyPath) -> KeyPath:
    """Remove a key, or the list that holds the item, so that its default stands in; the path of what was removed."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    for part in path[:-1]:
        inside = part in values if isinstance(values, dict) else isinstance(values, list) and int(part) < len(values)
        if not inside:
            return ()
        values = values[part]
    key = next((key for key in values if str(key) == path[-1]), None) if path and isinstance(values, dict) else None
    if key is None:
        return ()
    del values[key]
    return path


def _sentence(item: dict[str, Any], path: KeyPath, values: Any) -> str:
    name, kind, context = ".".join(map(str, path)), item["type"], item.get("ctx", {})
    if kind in ("extra_forbidden", "invalid_key"):
        return _unknown_key(path, values)
    if kind == "missing" and isinstance(item["loc"][-1], int):
        return f"'{name}' has too few values"
    if kind == "missing":
        return f"key '{name}' is missing"
    if kind == "union_tag_not_found":
        return f"'{name}' needs a 'kind'"
    if kind == "union_tag_invalid":
        tags = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
        near = difflib.get_close_matches(str(context["tag"]), tags, n=1, cutoff=0.4)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"'{name}.kind' is '{context['tag']}', but must be one of {', '.join(tags)}{hint}"
    return f"'{name}' {value_problem(item)}"


def value_problem(item: Mapping[str, Any]) -> str:
    """What an error of pydantic says of a value, to follow the name of its key: `is 0, but must be at least 1`."""
    kind, context = item["type"], item.get("ctx", {})
    try:
        value = json.dumps(item.get("input"), ensure_ascii=False, default=str)
    except TypeError:  # YAML knows keys that JSON does not, such as dates
        value = str(item.get("input"))
    value = value if len(value) < 60 else value[:57] + "..."
    if kind == "literal_error":
        wanted = f"must be one of {str(context['expected']).replace(' or ', ', ')}"
    else:
        wanted = _WANTED[kind].format(**context) if kind in _WANTED else item["msg"][:1].lower() + item["msg"][1:]
    return f"is {value}, but {wanted}"


def _unknown_key(path: KeyPath, values: Any) -> str:
    """Says what was probably meant: a key of this section, or the same key where it belongs."""
    name, known = ".".join(map(str, path)), keys_at(path[:-1], values)
    if path[-1] in known:  # a key of another form of this section
        for part in path[:-1]:
            values = values[part]
        return f"key '{name}' has no place beside {', '.join(f'{key!r}' for key in values if key != path[-1])}"
    near = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    sections = ("model", "training", "decoding", "runtime")
    if len(path) == 1 or (len(path) == 2 and path[0] in sections):  # a key in the wrong section, or in none
        near += [f"{section}.{path[-1]}" for section in sections if path[-1] in keys_at((section,))]
    if near:
        return f"unknown key '{name}'; did you mean {' or '.join(map(repr, near))}?"
    return f"unknown key '{name}'" + (f"; known here: {', '.join(known)}" if 0 < len(known) <= 12 else "")
