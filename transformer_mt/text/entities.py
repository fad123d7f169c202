"""HTML in text that is no page: characters that are written as entities (`&amp;`), and tags."""

from __future__ import annotations

import re
from html import unescape

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z\d]{0,19}(?:\s[^<>]*)?/?>")


def without_entities(text: str) -> str:
    """The text with the characters that its entities stand for; white space becomes a space."""
    if "&" not in text:
        return text
    return _ENTITY.sub(lambda match: unescape(match[0]) if unescape(match[0]).strip() else " ", text)


def has_entities(text: str) -> bool:
    """Whether there are entities in it. `AT&T;` has none: no character has this name."""
    return without_entities(text) != text


def has_tags(text: str) -> bool:
    """Whether it has tags of HTML or XML, such as `<b>` and `<br/>`."""
    return "<" in text and _TAG.search(text) is not None
