"""The values of a YAML file, and the line of each key.

PyYAML parses the syntax. This module makes it read plain scalars as YAML 1.2 does (`no` is text and `1e-9` a number),
and finds duplicate keys. It does not know the schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from transformer_mt.config.runs import FACTS, WEIGHTS
from transformer_mt.errors import TmtError, at, checked_path, number_of

KeyPath = tuple[str | int, ...]
FROM_COMMAND_LINE = 1 << 30  # the line of a value that came from --set
COMMAND_LINE = "--set"  # its file
_MOST_KEYS = 10_000  # a few nested aliases can make billions
_LARGEST = 1 << 20  # bytes of a config; the longest that the program writes has 10,000
DEEPEST = 50  # sections inside each other; a config needs six
_START_FROM = "Start from a commented config:  tmt init files"
_MOST_DIGITS = 1_000  # of a number
_MOST_PROBLEMS = 20
_LONGEST_SHOWN = 80  # characters of a name or a value in a message


class _Loader(yaml.SafeLoader):
    """SafeLoader with the booleans, nulls and numbers of YAML 1.2 (core schema)."""


class _Dumper(yaml.SafeDumper):
    """SafeDumper that puts text in quotes if YAML 1.1 or 1.2 would read it as something else."""


_Loader.yaml_implicit_resolvers = {}
_Dumper.yaml_implicit_resolvers = {first: list(pairs) for first, pairs in _Dumper.yaml_implicit_resolvers.items()}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false|True|False|TRUE|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9][0-9_]*$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
    ("float", r"^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$", "-+."),
    ("merge", r"^(?:<<)$", "<"),
):
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _construct_number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = loader.construct_scalar(node).replace("_", "")
    try:
        if len(text) > _MOST_DIGITS:
            raise ValueError(f"a number with {len(text):,} digits")
        if node.tag.endswith("int"):
            return int(text)
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as error:  # !!int abc, or 5,000 digits
        raise yaml.constructor.ConstructorError(problem=str(error), problem_mark=node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


class NoKeysError(TmtError):
    """A file that is empty, a list or a single value."""


@dataclass(frozen=True)
class YamlSource:
    """A parsed file: its values, and the line of each key path, counted from 1."""

    file: str
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest section around it that is in the file, or 0."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)

    def place(self, path: KeyPath) -> str:
        """The place of a key for a message: `file:line`, the file alone, or `--set`."""
        line = self.line(path)
        return COMMAND_LINE if line == FROM_COMMAND_LINE else at(self.file, line) if line else self.file


def parse_value(text: str) -> Any:
    """The value in `--set key=value`. Raises yaml.YAMLError, and TmtError for a duplicate key."""
    try:
        value, _, problems = _parse(text, COMMAND_LINE)
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        raise yaml.YAMLError(str(error)) from None
    if problems:
        raise TmtError(f"duplicate key in {text}", place=COMMAND_LINE, remedy="Remove one of the two.")
    return value


def write_yaml(values: dict[str, Any]) -> str:
    """The values as YAML; `read_yaml` reads it as the same values."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def read_yaml(file: str | Path) -> YamlSource:
    """Read a config file. Raises TmtError with file and line if it is not a mapping in valid YAML."""
    text = _read_text(checked_path(file))
    try:
        values, lines, problems = _parse(text, str(file))
    except yaml.YAMLError as error:
        raise _syntax_error(error, str(file), text) from None
    except RecursionError:
        remedy = "Check the brackets and the aliases (*name)."
        raise TmtError("nested too deeply for a config", place=file, remedy=remedy) from None
    except (ValueError, LookupError, AttributeError) as error:  # a wrong value for a tag: !!float abc
        raise TmtError(f"wrong value for a YAML tag: {error}", place=file, remedy=_NO_TAGS) from None
    if problems:
        repeated = "\n".join(shown_problems(problems))
        raise TmtError(repeated, remedy="Remove one of each two; otherwise only the second would count.")
    if not isinstance(values, dict):
        belongs = next((name for name in (FACTS, WEIGHTS) if Path(file).with_name(name).exists()), None)
        remedy = f"It belongs to {belongs} beside it: copy it again." if belongs else _START_FROM
        raise NoKeysError("not a config: the file has no keys", place=file, remedy=remedy)
    return YamlSource(str(file), values, lines)


_NO_COLON, _NO_END = "could not find expected ':'", "found unexpected end of stream"
_NOTICED_LATER = (_NO_COLON, _NO_END)  # the parser notices these after the line with the mistake
_IN_WORDS = {
    _NO_COLON: "this line has no ':' after its key",
    _NO_END: "a quote is opened here and not closed",
    "mapping values are not allowed here": "a ':' too many, or this line is indented too far",
    "expected <block end>, but found '<block mapping start>'": "this line is not indented as the lines of its section",
    "expected <block end>, but found '-'": "this item is not indented as the items of its list",
}
_NO_TAGS = "Write the value without its tag (!!...)."


def _parse(text: str, file: str) -> tuple[Any, dict[KeyPath, int], list[str]]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        problems: list[str] = []
        lines: dict[KeyPath, int] = {}
        if node is None:
            return None, lines, problems
        _walk(node, (), lines, problems, file)
        return loader.construct_document(node), lines, problems
    finally:
        loader.dispose()


def shown_problems(problems: Sequence[str]) -> list[str]:
    """The first problems, and the number of the others."""
    more = len(problems) - _MOST_PROBLEMS
    return [*problems[:_MOST_PROBLEMS], *([f"... and {number_of(more, 'more problem')}"] if more > 0 else [])]


def shortened(text: str) -> str:
    """A name or value as it is written in a message: its start, if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def _read_text(file: Path) -> str:
    try:
        with file.open("rb") as stream:  # also a pipe, which can be read only once
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            remedy = "Check that this is the config, and not the data."
            raise TmtError(f"larger than {_LARGEST >> 20} MiB, so not a config", place=file, remedy=remedy)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise TmtError(
            "no such config file",
            place=file,
            remedy="Check the path, or write a new config:  tmt init files -o FILE",
        ) from None
    except IsADirectoryError:
        raise TmtError("this is a folder, not a config file", place=file, remedy="Name the .yaml file in it.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TmtError("not UTF-8 text", place=at(file, line), remedy="Save the file as UTF-8.") from None


def _walk(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], problems: list[str], file: str) -> None:
    """Record the line of every key and item below `node`, and duplicate keys."""
    if len(path) > DEEPEST:
        raise RecursionError
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    problem="a list or a section where a key must be", problem_mark=key_node.start_mark
                )
            key, line = (*path, str(key_node.value)), key_node.start_mark.line + 1
            if key in lines:  # what is below it is not looked at: aliases there would be followed without an end
                name = shortened(".".join(map(str, key)))
                problems.append(f"{at(file, line)}: duplicate key '{name}', first on line {lines[key]}")
            else:
                lines[key] = line
                _walk(value_node, key, lines, problems, file)
            _require_few(lines, problems, key_node)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            key = (*path, index)
            lines[key] = item.start_mark.line + 1
            _walk(item, key, lines, problems, file)
            _require_few(lines, problems, item)


def _require_few(lines: Sized, problems: Sized, node: yaml.Node) -> None:
    if len(lines) + len(problems) > _MOST_KEYS:
        raise yaml.constructor.ConstructorError(
            problem=f"more than {_MOST_KEYS} keys after expanding aliases", problem_mark=node.start_mark
        )


def _syntax_error(error: yaml.YAMLError, file: str, text: str) -> TmtError:
    if isinstance(error, yaml.reader.ReaderError):
        line = text[: error.position].count("\n") + 1
        character = f"U+{ord(text[error.position]):04X}"
        return TmtError(f"invisible character {character}", place=at(file, line), remedy="Delete it.")
    problem = getattr(error, "problem", None) or str(error)
    begin, end = getattr(error, "context_mark", None), getattr(error, "problem_mark", None)
    mark = begin if begin and problem in _NOTICED_LATER else end or begin
    place = at(file, mark.line + 1) if mark else file
    if "'\\t'" in problem:
        return TmtError("a tab; YAML allows only spaces here", place=place, remedy="Indent with spaces.")
    if begin and problem.startswith("expected ',' or"):
        problem += f"; the bracket of line {begin.line + 1} is not closed"
    problem = _IN_WORDS.get(problem, problem)
    shown = _lines_around(text, mark.line) if mark else []
    remedy = "\n  ".join([*shown, "Check the indentation, quotes and colons near this line."])
    return TmtError(f"not valid YAML: {shortened(problem)}", place=place, remedy=remedy)


def _lines_around(text: str, number: int) -> list[str]:
    """The lines before and after a line (counted from 0), which is marked with >."""
    lines = list(enumerate(text.rstrip("\n").split("\n")))[max(0, number - 2) : number + 2]
    return [f"{'>' if n == number else ' '} {n + 1:4} | {shortened(line.rstrip())}" for n, line in lines]
