"""Blocks of Markdown beyond CommonMark: formulas, footnotes, definitions, alerts, admonitions and directives."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import paragraph as read_paragraph

# The signs of a footnote, an abbreviation and a definition: the text after them is a block of its own.
SIGN_OF_BLOCK = r"\[\^[^\]\s]+\]:|\*\[[^\]\n]+\]:|:[ \t]+(?=\S)"
_SIGN_OF_BLOCK = re.compile(SIGN_OF_BLOCK)
_ADMONITION = re.compile(r"""(?:!!!|\?\?\?\+?)[ \t]+["\w{]|===[!+]?[ \t]+["']""")
_KEPT = re.compile(
    r"\[!\w+\]"  # an alert of GitHub
    r"|(?i:\[TOC\]|\[\[_?TOC_?\]\])\s*$"
    r"|:{3,}"  # a directive
    r"""|import\s[^'"]*['"][^'"]+['"];?\s*$"""  # MDX
)


def add_block_rules(parser: MarkdownIt) -> None:
    """Let the parser read these blocks."""
    ends: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "tmt_formula", _formula, ends)
    parser.block.ruler.before("fence", "tmt_kept", _kept_line, ends)
    parser.block.ruler.before("fence", "tmt_admonition", _admonition, ends)
    parser.block.ruler.before("fence", "tmt_signed", _signed_paragraph, ends)


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _keep(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Read lines as a block that stays as it is."""
    if not silent:
        state.push("tmt_kept", "", 0).map = [first, end]
        state.line = end
    return True


def _read_indented(state: StateBlock, first: int, last: int, indent: int) -> None:
    """Read the blocks from a line on that are indented by at least `indent` columns."""
    rest = range(first, last)
    end = next((number for number in rest if not state.isEmpty(number) and state.sCount[number] < indent), last)
    before = state.blkIndent, state.lineMax
    state.blkIndent, state.lineMax = indent, end
    state.md.block.tokenize(state, first, end)
    state.blkIndent, state.lineMax = before


def _formula(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: `$$` on a line of its own, up to the next one."""
    if _line(state, first).strip() != "$$":
        return False
    end = next((number for number in range(first + 1, last) if _line(state, number).strip() == "$$"), None)
    return end is not None and _keep(state, first, end + 1, silent)


def _kept_line(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: a line without text for readers, between lines of text."""
    return _KEPT.match(_line(state, first)) is not None and _keep(state, first, first + 1, silent)


def _admonition(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: `!!! note`, which stays as it is, and the blocks below it, which are indented by four spaces."""
    if not _ADMONITION.match(_line(state, first)):
        return False
    _keep(state, first, first + 1, silent)
    if not silent:
        _read_indented(state, first + 1, last, state.sCount[first] + 4)
    return True


def _signed_paragraph(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: a footnote or a definition begins a paragraph, and is no definition of a link.

    The blocks below it that are indented by four spaces belong to it.
    """
    sign = _SIGN_OF_BLOCK.match(_line(state, first))
    if sign is None:
        return False
    if not silent:
        read_paragraph(state, first, last, False)
        if not sign[0].startswith("*"):
            _read_indented(state, state.line, last, state.sCount[first] + 4)
    return True
