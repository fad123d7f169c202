"""From a YAML file (and `--set key=value`) to a checked Config; and back to YAML.

All mistakes are told at once, each with file and line and, for an unknown key, the nearest right one.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from transformer_mt.config.reference import keys_at
from transformer_mt.config.schema import Config
from transformer_mt.config.yaml_source import KeyPath, YamlSource, parse_scalar, read_yaml
from transformer_mt.errors import TmtError, at

FROM_COMMAND_LINE = 1 << 30  # in place of a line: the value came from --set


def load_config(file: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a config. `overrides` are `key.path=value` strings, the values in YAML.

    Raises TmtError that lists every mistake with its place.
    """
    source = read_yaml(file)
    source = _apply(source, overrides)
    try:
        return Config.model_validate(source.values)
    except ValidationError as error:
        problems = _problems(error, source)
    raise TmtError("\n".join(problems), remedy=_remedy(len(problems), source.file))


def dump_config(config: Config) -> str:
    """The resolved config as YAML, every key with its value."""
    values = config.model_dump(mode="json")
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)


def differences(one: BaseModel, other: BaseModel) -> list[str]:
    """Keys whose values differ, as `key: value | value` lines."""
    left, right = _flat(one.model_dump(mode="json")), _flat(other.model_dump(mode="json"))
    return [
        f"{key}: {left.get(key, 'absent')} | {right.get(key, 'absent')}"
        for key in dict.fromkeys([*left, *right])
        if left.get(key, "absent") != right.get(key, "absent")
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        items = [_flat(item, f"{path}.{key}" if path else str(key)) for key, item in value.items()]
        return {key: leaf for item in items for key, leaf in item.items()}
    return {path: value}


def _apply(source: YamlSource, overrides: Iterable[str]) -> YamlSource:
    """Lay `key.path=value` overrides over a file's values; the lines of overridden keys become unknown."""
    values, lines = copy.deepcopy(source.values), dict(source.lines)
    for override in overrides:
        name, separator, text = override.partition("=")
        path = tuple(int(part) if part.isdigit() else part for part in name.strip().split("."))
        if not separator or not name.strip():
            raise TmtError(
                f"'{override}' is no override",
                place="--set",
                remedy="Write --set key=value, such as training.max_epochs=3.",
            )
        try:
            value = parse_scalar(text)
        except yaml.YAMLError:
            raise TmtError(f"the value of '{override}' is not valid YAML", place="--set") from None
        _put(values, path, value, override)
        lines = {key: line for key, line in lines.items() if key[: len(path)] != path}
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], FROM_COMMAND_LINE)
    return YamlSource(source.file, values, lines)


def _put(values: dict[str, Any], path: KeyPath, value: Any, override: str) -> None:
    spot: Any = values  # a mapping or a list, whatever the file holds there
    for part in path[:-1]:
        if isinstance(spot, list) and isinstance(part, int) and part < len(spot):
            spot = spot[part]
        elif isinstance(spot, dict):
            spot = spot.setdefault(str(part), {}) if spot.get(str(part)) is None else spot[str(part)]
        else:
            raise TmtError(f"'{override}': there is nothing at '{part}' to set a key in", place="--set")
    last: Any = path[-1]
    if isinstance(spot, list) and isinstance(last, int) and last < len(spot):
        spot[last] = value
    elif isinstance(spot, dict):
        spot[str(last)] = value
    else:
        raise TmtError(f"'{override}': there is nothing at '{last}' to set", place="--set")


def _problems(error: ValidationError, source: YamlSource) -> list[str]:
    """One line for each mistake, in the order of the file."""
    found = []
    items = error.errors(include_url=False)
    for item in items:
        if item["type"] == "too_short" and sum(other["loc"][: len(item["loc"])] == item["loc"] for other in items) > 1:
            continue  # a list that is short only because its items are wrong
        path = _path_in_file(item["loc"], source.values)
        line = next((source.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in source.lines), 0)
        place = "--set" if line == FROM_COMMAND_LINE else at(source.file, line) if line else source.file
        found.append((line, f"{place}: {_sentence(dict(item), path)}"))
    return list(dict.fromkeys(text for _, text in sorted(found, key=lambda pair: pair[0])))


def _path_in_file(loc: tuple[str | int, ...], values: Any) -> KeyPath:
    """Pydantic's location without the parts (union tags, added list levels) that the file does not have."""
    path: list[str | int] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        if (isinstance(values, dict) and part in values) or (
            isinstance(values, list) and isinstance(part, int) and part < len(values)
        ):
            path.append(part)
            values = values[part]
        elif last and isinstance(part, str) and isinstance(values, dict):
            path.append(part)
    return tuple(path)


def _sentence(item: dict[str, Any], path: KeyPath) -> str:
    name, kind, context = ".".join(map(str, path)), item["type"], item.get("ctx", {})
    value = json.dumps(item.get("input"), ensure_ascii=False, default=str)
    value = value if len(value) < 60 else value[:57] + "..."
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(path[-1]), keys_at(path[:-1]), n=1, cutoff=0.5)
        return f"unknown key '{name}'" + (f"; did you mean '{near[0]}'?" if near else _known(path[:-1]))
    if kind == "missing":
        return f"key '{name}' is missing"
    if kind == "union_tag_not_found":
        return f"'{name}' needs a 'kind'"
    if kind == "union_tag_invalid":
        near = difflib.get_close_matches(str(context.get("tag")), _tags(context), n=1, cutoff=0.4)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"'{name}.kind' is '{context.get('tag')}', but must be one of {', '.join(_tags(context))}{hint}"
    if kind == "value_error":
        return f"{name}: {context['error']}" if name else str(context["error"])
    wanted = _wanted(kind, context, item["msg"])
    return f"'{name}' is {value}, but {wanted}" if name else f"{wanted}"


def _known(path: KeyPath) -> str:
    keys = keys_at(path)
    return f"; known here: {', '.join(keys)}" if 0 < len(keys) <= 12 else ""


def _tags(context: dict[str, Any]) -> list[str]:
    return [tag.strip(" '") for tag in str(context.get("expected_tags", "")).split(",")]


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
}


def _wanted(kind: str, context: dict[str, Any], message: str) -> str:
    if kind in _WANTED:
        return _WANTED[kind]
    if kind == "literal_error":
        return f"must be one of {str(context['expected']).replace(' or ', ', ')}"
    for word, name in (
        ("greater_than_equal", "ge"),
        ("less_than_equal", "le"),
        ("greater_than", "gt"),
        ("less_than", "lt"),
    ):
        if kind == word:
            return f"must be {word.replace('_', ' ').replace('than equal', 'than or equal to')} {context[name]}"
    if kind == "string_pattern_mismatch":
        return f"must match the pattern {context['pattern']}"
    return message[:1].lower() + message[1:]


def _remedy(count: int, file: str) -> str:
    return (
        f"Mend {'this' if count == 1 else f'these {count} keys'} in {file}; README.md lists all keys with their ranges."
    )
