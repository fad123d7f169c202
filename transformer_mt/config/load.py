"""Reads a YAML file and `--set key=value` into a checked Config, and writes a Config as YAML."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path, PurePath
from typing import Any

import yaml
from pydantic import BaseModel

from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.inheritance import with_inherited
from transformer_mt.config.problems import find_problems
from transformer_mt.config.runs import CONFIG as CONFIG
from transformer_mt.config.runs import SCORES as SCORES
from transformer_mt.config.schema import Config
from transformer_mt.config.yaml_source import (
    COMMAND_LINE,
    DEEPEST,
    FROM_COMMAND_LINE,
    KeyPath,
    YamlSource,
    parse_value,
    read_yaml,
    shortened,
    shown_problems,
    write_yaml,
)
from transformer_mt.errors import TmtError, check_type, named

ConfigLike = Config | str | Path | Mapping[str, Any]
Overrides = str | Sequence[str] | Mapping[str, Any]
_KEYS = "docs/configuration.md describes all keys."
_LONGEST_NUMBER = 64  # bits
_DIGITS = 9  # of the number of an item in a list


def load_config(
    file: str | Path | Mapping[str, Any], overrides: Overrides = (), run: Path | None = None, fresh: bool = False
) -> Config:
    """Read and check a config.

    file:      YAML, or its sections as a dict
    overrides: `key.path=value`, the value in YAML; or a dict of such keys and their values
    With training.start_from, keys that the config leaves out may come from that model. run, fresh: see `with_inherited`
    Raises TmtError with all problems and their places.
    """
    source = YamlSource("the config", plain_values(file), {}) if isinstance(file, Mapping) else read_yaml(file)
    return _checked(source, overrides, run, fresh)


def config_of(config: ConfigLike, overrides: Overrides = (), run: Path | None = None, fresh: bool = False) -> Config:
    """A Config, or the config in a file or dict, with overrides. Raises TmtError as `load_config` does."""
    if not isinstance(config, Config):
        return load_config(config, overrides, run, fresh)
    source = YamlSource(f"the config '{config.name}'", config.model_dump(mode="json"), {})
    return _checked(source, overrides) if overrides else config


def _checked(source: YamlSource, overrides: Overrides, run: Path | None = None, fresh: bool = False) -> Config:
    try:
        return _with_overrides(source, overrides, run, fresh)
    except TmtError as error:
        if isinstance(overrides, Mapping):  # of a Python program
            error.place = "overrides" if error.place == COMMAND_LINE else error.place
            error.message = re.sub(f"^{COMMAND_LINE}: ", "overrides: ", error.message, flags=re.MULTILINE)
            error.remedy = error.remedy.replace("on the command line", "in overrides").replace(f"{COMMAND_LINE} ", "")
        raise


def _with_overrides(source: YamlSource, overrides: Overrides, run: Path | None, fresh: bool) -> Config:
    if isinstance(overrides, bytes) or not isinstance(overrides, Iterable):
        raise TmtError(
            f"{named(overrides)} is no list of key=value",
            place="overrides",
            remedy='Give a list, such as ["training.max_epochs=3"], or a dict, such as {"training.max_epochs": 3}.',
        )
    file, source = source, _apply(source, overrides)
    source = with_inherited(source, run, fresh)
    problems = find_problems(source)
    if problems and overrides:
        own = set(find_problems(file))
        problems = [problem if problem in own else _of_command_line(problem, source.file) for problem in problems]
    if problems:
        keys = "this key" if len(problems) == 1 else f"these {len(problems)} keys"
        from_command_line = [problem.startswith(f"{COMMAND_LINE}: ") for problem in problems]
        place = "on the command line" if all(from_command_line) else f"in {source.file}"
        place += " and on the command line" if any(from_command_line) and not all(from_command_line) else ""
        help_ = "docs/configuration.md lists all keys, and with `tmt init --schema` your editor checks them"
        remedy = f"Fix {keys} {place}; {help_}."
        raise TmtError("\n".join(shown_problems(problems)), remedy=remedy)
    return Config.model_validate(source.values)


def _of_command_line(problem: str, file: str) -> str:
    """The problem with COMMAND_LINE as its place: the file alone does not have it."""
    start = re.match(rf"{re.escape(file)}(:\d+)?: ", problem)
    return f"{COMMAND_LINE}: {problem[start.end() :]}" if start else problem


def dump_config(config: Config) -> str:
    """The config as YAML, with the values of all keys; `load_config` reads it as the same config.

    Addresses are written without passwords and signatures: the file travels with the model.
    """
    return write_yaml(without_credentials_in(config.model_dump(mode="json")))


def differences(one: BaseModel, other: BaseModel) -> list[str]:
    """The keys that differ, as lines `key: value of one | value of other`. Of a list of corpora, only what differs."""
    return _differences(flat_values(one), flat_values(other))


def _differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    found = []
    for key in dict.fromkeys([*left, *right]):
        values = left.get(key, "absent"), right.get(key, "absent")
        if values[0] == values[1]:
            continue
        if key != "data.corpus" or not all(isinstance(value, list) for value in values):
            found.append(f"{key}: {values[0]} | {values[1]}")
        elif [entry["kind"] for entry in values[0]] == [entry["kind"] for entry in values[1]]:
            pairs = enumerate(zip(*values, strict=True))
            found += [line for n, pair in pairs for line in _differences(*(flat(one, f"{key}.{n}") for one in pair))]
        else:
            only = [[entry for entry in own if entry not in other] for own, other in (values, values[::-1])]
            shown = only if any(only) else values  # else they have another order
            found.append(f"{key}: {' | '.join(', '.join(map(_short, one)) or 'nothing else' for one in shown)}")
    return found


def _short(corpus: Mapping[str, Any]) -> str:
    """The kind of a corpus and its first file, if it names one."""
    files = next((one for name in ("files", "train") if isinstance(one := corpus.get(name), list) and one), [])
    return " ".join([str(corpus["kind"]), *map(str, files[:1]), *(["..."] if files[1:] else [])])


def flat_values(config: BaseModel, exclude_defaults: bool = False) -> dict[str, Any]:
    """The values by key such as `training.learning_rate`; addresses without passwords and signatures."""
    return flat(without_credentials_in(config.model_dump(mode="json", exclude_defaults=exclude_defaults)))


def key_values(config: Config, keys: Sequence[str]) -> dict[str, Any]:
    """The values of keys such as `training.learning_rate`; None for one that this config does not have."""
    whole = config.model_dump(mode="json")
    return {key: value_at(whole, key.split(".")) for key in keys}


def value_at(values: Any, path: Sequence[str | int]) -> Any:
    """The value at a path of keys; None if there is none."""
    for part in path:
        values = values.get(part) if isinstance(values, dict) else None
    return values


def flat(value: Any, path: str = "", lists: bool = False) -> dict[str, Any]:
    """The values of nested mappings by their path, such as data.corpus.kind. lists: of lists too"""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if lists and isinstance(value, list) else ()
    if not inside:
        return {path: value}
    return {k: v for key, one in inside for k, v in flat(one, f"{path}.{key}" if path else str(key), lists).items()}


def plain_values(value: Any, depth: int = 0) -> Any:
    """Values of a Python program as a YAML file has them: paths as text, numbers of NumPy as numbers, tuples as lists.

    Raises TmtError for what no YAML file has: sets, which have no order, and very large or deeply nested values.
    """
    if depth > DEEPEST:
        raise TmtError("nested too deeply for a config", remedy=_KEYS)
    if isinstance(value, Mapping):
        return {key: plain_values(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(one, depth + 1) for one in value]
    if isinstance(value, (set, frozenset)):
        raise TmtError("a set has no order", place=shortened(repr(value)), remedy="Give a list.")
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        raise TmtError(f"a number of {value.bit_length():,} bits is too large for a config", remedy=_KEYS)
    item = getattr(value, "item", None)
    if isinstance(value, Real) and callable(item):  # of NumPy
        return item()
    return str(value) if isinstance(value, PurePath) else value


def _apply(source: YamlSource, overrides: Overrides) -> YamlSource:
    """Apply overrides to the values of a file; these keys get the line FROM_COMMAND_LINE."""
    values, lines = dict(source.values), dict(source.lines)
    if isinstance(overrides, Mapping):
        replaced = plain_values(overrides)
        parsed = [(f"{key}={value!r}", _path(str(key)), value) for key, value in replaced.items()]
    else:
        given = [overrides] if isinstance(overrides, str) else overrides
        parsed = [(override, *_parse(override)) for override in given]
    for override, wanted, value in parsed:
        _require_none_lost(values, wanted, value, override)
        path = put_value(values, wanted, value, override)
        lines = {key: line for key, line in lines.items() if key[: len(path)] != path}
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], FROM_COMMAND_LINE)
    return YamlSource(source.file, values, lines)


def _parse(override: str) -> tuple[KeyPath, Any]:
    check_type(override, str, "overrides", '["training.max_epochs=3"]')
    name, separator, text = override.partition("=")
    if not separator or not all(part.strip() for part in name.split(".")):
        raise TmtError(
            f"'{shortened(override)}' is not of the form key=value",
            place="--set",
            remedy="Write the key and its value, for example:  --set training.max_epochs=3",
        )
    try:
        value = parse_value(text)
    except yaml.YAMLError:
        remedy = "Put text with special characters in quotes, for example:  --set 'name=\"my-run\"'"
        raise TmtError(
            f"the value of '{shortened(override)}' is not valid YAML", place="--set", remedy=remedy
        ) from None
    return _path(name), value


def _path(name: str) -> KeyPath:
    path = key_path(name.strip())
    if len(path) > DEEPEST:
        raise TmtError(f"'{shortened(name)}' is nested too deeply for a config", place="--set", remedy=_KEYS)
    return path


def key_path(key: str) -> KeyPath:
    """`training.learning_rate` as a path; a number is the place in a list."""
    return tuple(int(part) if part.isdecimal() and len(part) <= _DIGITS else part for part in key.split("."))


def _require_none_lost(values: Mapping[str, Any], path: KeyPath, value: Any, override: str) -> None:
    """Raises TmtError if a part of a section would replace the whole section, and its other keys would be lost."""
    old = values.get(str(path[0])) if len(path) == 1 else None
    if not isinstance(old, Mapping) or not isinstance(value, Mapping) or not value or "kind" in value:
        return
    lost = [key for key in old if key not in value]
    if lost:
        raise TmtError(
            f"'{shortened(override)}' would remove {shortened(', '.join(map(str, lost)))} of '{path[0]}'",
            place="--set",
            remedy=f"Set single keys of it, for example:  --set {path[0]}.{next(iter(value))}=...",
        )


def put_value(values: dict[str, Any], path: KeyPath, value: Any, override: str) -> KeyPath:
    """Set one value and return its path. Copies each section on the path, because YAML aliases can share sections.

    override: what the user wrote, for a message. Raises TmtError if the path leads through a single value.
    """
    spot: Any = values  # a mapping or a list, or something else if the file is wrong there
    taken: list[str | int] = []
    for number, part in enumerate(path, start=1):
        is_last = number == len(path)
        if isinstance(spot, list) and isinstance(part, int) and part < len(spot):
            taken.append(part)
        elif isinstance(spot, dict):
            taken.append(str(part))
        else:
            parent = ".".join(map(str, taken))
            raise TmtError(
                f"'{shortened(override)}': '{shortened(parent)}' is a single value and has no '{part}'",
                place="--set",
                remedy=_KEYS,
            )
        key: Any = taken[-1]
        if is_last:
            spot[key] = value
        else:
            inside = spot.get(key) if isinstance(spot, dict) else spot[key]
            spot[key] = {} if inside is None and isinstance(spot, dict) else copy.copy(inside)
            spot = spot[key]
    return tuple(taken)
