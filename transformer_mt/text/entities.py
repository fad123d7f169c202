"""HTML in text that is no page: characters that are written as entities (`&amp;`), and tags."""

from __future__ import annotations

import re
from html import unescape

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});")
_NAMES = (
    "a|abbr|b|big|blockquote|body|br|button|center|cite|code|dd|del|div|dl|dt|em|figcaption|figure|font|form|h[1-6]|hr|html"
    "|i|img|input|ins|kbd|label|li|link|mark|nobr|ol|option|p|pre|q|s|samp|script|section|select|small|span|strike|strong"
    "|style|sub|sup|svg|table|tbody|td|th|thead|title|tr|tt|u|ul|var|video|wbr"
    "|bpt|bx|ept|ex|g|it|mrk|ph|seg|ut|x"  # of translation memories
)
_TAG = re.compile(rf"</?(?:{_NAMES})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE)
_KNOWN = re.compile(rf"{_NAMES}|\d+", re.IGNORECASE)
_ANY = re.compile(r"<(?P<ends>/?)(?P<name>[A-Za-z][\w:.-]*|\d+)(?P<rest>[\s/][^<>]*)?>")
_ATTRIBUTE = re.compile(r"\s*[\w:.-]+\s*=|\s*/$")
TIMES = 3  # a program that was given `&amp;` may write `&amp;amp;`


def without_entities(text: str, times: int = 1) -> str:
    """The text with the characters that its entities stand for; white space becomes a space. times: see `TIMES`"""
    for _ in range(times):
        if "&" not in text or (shown := _once(text)) == text:
            break
        text = shown
    return text


def _once(text: str) -> str:
    return _ENTITY.sub(lambda match: unescape(match[0]) if unescape(match[0]).strip() else " ", text)


def has_entities(text: str) -> bool:
    """Whether there are entities in it. `AT&T;` has none: no character has this name."""
    return without_entities(text) != text


def has_tags(text: str) -> bool:
    """Whether it has tags of HTML or of translation memories, such as `<b>` and `<br/>`; not `<unk>`, `<name>`."""
    return "<" in text and _TAG.search(text) is not None


def tags(text: str) -> list[re.Match[str]]:
    """The tags in it: known ones, such as `<br>` and `<1>`, and others that are closed, such as `<name>x</name>`.

    A name of one letter, such as `<P>` of a keyboard, is only a tag if it is closed, empty, or has attributes.
    """
    if "<" not in text:
        return []
    found = [*_ANY.finditer(text)]
    closed = {tag["name"].lower() for tag in found if tag["ends"]}
    return [tag for tag in found if tag["name"].lower() in closed or _stands_alone(tag["name"], tag["rest"] or "")]


def _stands_alone(name: str, rest: str) -> bool:
    """Whether a name between angle brackets is a tag though it is not closed. rest: what follows the name"""
    if rest.endswith("/"):
        return True
    is_clear = len(name) > 1 or name.isdigit() or _ATTRIBUTE.match(rest) is not None
    return is_clear and _KNOWN.fullmatch(name) is not None


def name_of_tag(tag: re.Match[str]) -> str:
    """A tag without attributes, in lower case: `<br />` is `<br>`."""
    return f"<{tag['ends']}{tag['name'].lower()}>"
