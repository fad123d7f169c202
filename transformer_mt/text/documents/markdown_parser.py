"""The parser of Markdown: its tokens also say which characters they were read from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import text as read_text

from transformer_mt.text.documents.base import ADDRESS, Kind
from transformer_mt.text.documents.markdown_blocks import SIGN_OF_BLOCK, add_block_rules

_FORMULA = re.compile(  # limited, because many may have no end
    r"\$\$.+?\$\$|\$(?=\S)(?:\\.|[^$\\])*?(?<=\S)\$(?!\d)|\\\(.{1,1000}?\\\)|\\\[.{1,1000}?\\\]", re.S
)
_WIKI = r"\[\[[^\[\]\n]{1,300}\]\](?![(\[:])"  # a link of a wiki
_SIGN = re.compile(  # footnotes; attributes of site generators; what a wiki embeds
    rf"\[\^[^\]\s]+\]:?|\{{[#:.].*?\}}|!{_WIKI}"
)
_START = re.compile(rf"\[[ xX]\](?=\s)|{SIGN_OF_BLOCK}")


def _recording(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """The rule, which also writes into `meta` of each new token which characters it has read."""

    def read(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        for token in state.tokens[known:] if not silent else ():
            token.meta.setdefault("span", (start, state.pos))
        return True

    return read


def _delimiters(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """As `_recording`, for the marks of emphasis: one token for each, after the text before them."""

    def read(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rule(state, silent):
            return False
        end = state.pos
        for token in reversed(state.tokens if not silent else ()):
            if end <= start:
                break
            token.meta["span"] = end - len(token.content), end
            token.meta["mark"] = True
            end -= len(token.content)
        return True

    return read


def _taken(pattern: Any, kind: Kind, first: bool = False) -> Callable[[StateInline, bool], bool]:
    """A rule that reads what the pattern matches as one token. first: only at the beginning of a block."""

    def read(state: StateInline, silent: bool) -> bool:
        match = None if first and state.pos else pattern.match(state.src, state.pos, state.posMax)
        if match is None or match.end() == match.start():
            return False
        if not silent:
            state.push(f"tmt_{kind}", "", 0)
        state.pos = match.end()
        return True

    return read


def _up_to_address(state: StateInline, silent: bool) -> bool:
    """The rule `text`, which ends before an address."""
    start, pending = state.pos, len(state.pending)
    if not read_text(state, silent):
        return False
    addresses = _addresses(state.src)
    index = bisect_right(addresses, start)
    if index < len(addresses) and addresses[index] < state.pos:
        if not silent:
            state.pending = state.pending[: pending + addresses[index] - start]
        state.pos = addresses[index]
    return True


@lru_cache(maxsize=8)
def _addresses(source: str) -> list[int]:
    """Where the addresses of a paragraph begin: found once, as the parser asks at each piece of text."""
    return [match.start() for match in ADDRESS.finditer(source)]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler2.disable("fragments_join")
    parser.core.ruler.disable("text_join")
    for name, pattern, kind, first in (
        ("tmt_start", _START, "mark", True),
        ("tmt_formula", _FORMULA, "code", False),
        ("tmt_sign", _SIGN, "mark", False),
        ("tmt_wiki", re.compile(_WIKI), "code", False),
    ):
        parser.inline.ruler.before("escape", name, _taken(pattern, kind, first))  # type: ignore[arg-type]
    parser.inline.ruler.before("text", "tmt_address", _taken(ADDRESS, "code"))
    parser.inline.ruler.at("text", _up_to_address)
    for rule in parser.inline.ruler.__rules__:
        wrap = _delimiters if rule.name in ("emphasis", "strikethrough") else _recording
        parser.inline.ruler.at(rule.name, wrap(rule.fn))
    add_block_rules(parser)
    return parser


PARSER = _parser()
