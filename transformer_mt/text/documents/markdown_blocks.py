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


def _formula(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: `$$` on a line of its own, up to the next one."""
    if _line(state, first).strip() != "$$":
        return False
    end = next((number for number in range(first + 1, last) if _line(state, number).strip() == "$$"), None)
    if end is None:
        return False
    if not silent:
        state.push("tmt_formula", "", 0).map = [first, end + 1]
        state.line = end + 1
    return True


def _kept_line(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: a line without text for readers, between lines of text."""
    if not _KEPT.match(_line(state, first)):
        return False
    if not silent:
        state.push("tmt_kept", "", 0).map = [first, first + 1]
        state.line = first + 1
    return True


def _admonition(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: `!!! note`, which stays as it is, and the blocks below it, which are indented by four spaces."""
    if not _ADMONITION.match(_line(state, first)):
        return False
    if silent:
        return True
    indent = state.sCount[first] + 4
    rest = range(first + 1, last)
    end = next((number for number in rest if not state.isEmpty(number) and state.sCount[number] < indent), last)
    state.push("tmt_kept", "", 0).map = [first, first + 1]
    state.line = first + 1
    before, state.blkIndent = state.blkIndent, indent
    lines, state.lineMax = state.lineMax, end
    state.md.block.tokenize(state, first + 1, end)
    state.blkIndent, state.lineMax = before, lines
    return True


def _signed_paragraph(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """A block rule: a footnote or a definition begins a paragraph, and is no definition of a link."""
    if not _SIGN_OF_BLOCK.match(_line(state, first)):
        return False
    return silent or read_paragraph(state, first, last, False)
