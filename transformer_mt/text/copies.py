"""What a translation copies letter by letter: addresses, e-mail addresses, placeholders of programs, numbers."""

from __future__ import annotations

from collections.abc import Iterator

import regex

# Of template engines (with spaces inside) and of programs. The limit keeps the search linear.
TEMPLATE = r"\{\{.{1,300}?\}\}|\{%.{1,300}?%\}|<%.{1,300}?%>|\$?\{[^{}\s]*\}"
_PLACEHOLDER = (
    rf"{TEMPLATE}"
    r"|%\([\w.]+\)[sdfr]|%(?:\d+\$)?[-+0]?\d*(?:\.\d+)?[sdifxr@](?![\p{L}\p{N}])"
)
_EMAIL = r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"
# Hangul right after an address is a particle. Punctuation at the end of an address belongs to the sentence. Brackets
# belong to the address in pairs, as in https://a.example/{id}.
_END = r"\s<>\"'“”„«»\p{sc=Hangul}"
_IN_BRACKETS = rf"\([^{_END}()]*\)|\[[^{_END}\[\]]*\]|\{{[^{_END}{{}}]*\}}"
_URL = (
    rf"(?:https?|ftp)://(?:{_IN_BRACKETS}|[.,;:!?]*+[^{_END}(){{}}\[\].,;:!?]|[.,;:!?]++(?={_IN_BRACKETS}))++"
    r"|(?<![\w.@-])www\.[\w.-]+\.[A-Za-z]{2,}(?:/[\w./?&=#%~+-]*[\w/])?"
)
_WHOLE = regex.compile(f"{_URL}|{_EMAIL}|{_PLACEHOLDER}", regex.V1)
# Letters beside digits, as in MP3, make a word. 3만 is 30,000: such a number is translated with its unit.
_UNIT = r"[십백천만억조]|\s[십백천만억조]+(?:원|명|개|달러)?(?![\p{L}\p{N}])"
_NUMBER = regex.compile(
    r"(?<![\p{L}\p{N}_.,])[-+]?[$€£¥₩]?\d++(?:[.,:/'’-]?\d++)*+"
    rf"(?![[\p{{L}}\p{{N}}_]--[\p{{sc=Hangul}}]]|{_UNIT})",
    regex.V1,
)


def unbroken_spans(line: str) -> Iterator[tuple[int, int]]:
    """Start and end of the addresses and placeholders in a line."""
    return (found.span() for found in _WHOLE.finditer(line))


def number_spans(line: str) -> Iterator[tuple[int, int]]:
    """Start and end of the numbers in a line, those within addresses too."""
    return (found.span() for found in _NUMBER.finditer(line))
