"""Writes a config as YAML with a comment beside each key, as the shipped configs have them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from textwrap import TextWrapper
from typing import Any

from transformer_mt.config.yaml_source import parse_value

COLUMN, WIDTH = 34, 120  # where comments begin, and the longest line
_wrapper = partial(TextWrapper, break_long_words=False, break_on_hyphens=False)
_OF_CORPUS = ("split", "files", "train", "validation")
IN_ONE_LINE = (
    *(f"data.corpus.{key}" for key in _OF_CORPUS),
    *("tokenizer.source", "tokenizer.target", "runtime", "decoding"),
)


def config_text(values: Mapping[str, Any], comments: Mapping[str, str], head: str) -> str:
    """The YAML of a config. comments: by key, such as `model.dropout`; head: the lines at the top, without `#`."""
    top = "".join(f"# {part}".rstrip() + "\n" for line in head.splitlines() for part in _wrapped(line))
    text = f"{top}\n" + "\n".join(_lines(values, comments, "", 0)) + "\n"
    assert parse_value(text) == values, "the text has the same values"
    return text


def _wrapped(line: str) -> list[str]:
    """A line of the head in lines that are not too long; those after the first are indented as its last column."""
    margin = " " * (line.rfind("   ") + 3 if "   " in line.strip() else len(line) - len(line.lstrip()))
    return _wrapper(WIDTH - 2, "", margin).wrap(line) or [""]


def _lines(values: Mapping[str, Any], comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    for key, value in values.items():
        here, pad = f"{path}.{key}" if path else key, "  " * depth
        comment = comments.get(here, "")
        if depth == 0 and isinstance(value, Mapping):
            yield ""
        if isinstance(value, Mapping) and here not in IN_ONE_LINE:
            yield from _with_comment(f"{pad}{key}:", comment)
            yield from _lines(value, comments, here, depth + 1)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield from _with_comment(f"{pad}{key}:", comment)
            for number, item in enumerate(value):
                yield from _with_comment(f"{pad}  - {_flow(item)}", comments.get(f"{here}.{number}", ""))
        else:
            yield from _with_comment(f"{pad}{key}: {_flow(value)}", comment)


def _with_comment(line: str, comment: str) -> Iterator[str]:
    """A line and its comment; a long comment continues on lines of its own."""
    words = " ".join(comment.split())
    if not words:
        yield line
        return
    before = line.ljust(COLUMN)
    before = before if before.endswith(" ") else f"{before}  "
    if len(before) > WIDTH - 40:
        yield line
        before = " " * COLUMN
    yield from _wrapper(WIDTH, f"{before}# ", f"{' ' * COLUMN}# ").wrap(words)


def _flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inside)}" for key, inside in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        plain = re.fullmatch(r"[^\W\d][\w./-]*", value) and parse_value(value) == value
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
