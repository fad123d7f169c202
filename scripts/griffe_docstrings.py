"""How our docstrings become pages: `name: what it is` turns into a list of parameters or fields."""

from __future__ import annotations

import re
from typing import Any

import griffe


def as_markdown(text: str, names: set[str]) -> str:
    """The docstring with a list where it explains `names`, and with `Raises ...` in a paragraph apart."""
    return "\n\n".join(_paragraph(part, names) for part in re.split(r"\n\s*\n", text))


def _paragraph(text: str, names: set[str]) -> str:
    if text.startswith("    "):
        return text  # code
    text = re.sub(r"\n\s*(?=Raises )", "\n\n", text)
    text, _, raises = text.partition("\n\n")
    end = f"\n\n{raises}" if raises else ""
    labels = re.finditer(r"(?:^|\n\s*|(?<=[.;] ))((?:\w+, )*\w+)(?: \(\w+\))?: +", text)
    starts = [match for match in labels if names.issuperset(match[1].split(", "))]
    if not starts:
        return text + end
    lead = text[: starts[0].start()].strip()
    stops = [match.start() for match in starts[1:]] + [len(text)]
    items = [
        f"- {', '.join(f'`{name}`' for name in match[1].split(', '))}: {' '.join(text[match.end() : stop].split())}"
        for match, stop in zip(starts, stops, strict=True)
    ]
    return "\n\n".join(filter(None, [lead, "\n".join(items)])) + end


class Docstrings(griffe.Extension):
    """Rewrites the docstrings of functions and classes; mkdocstrings shows them as Markdown."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring:
            func.docstring.value = as_markdown(func.docstring.value, {one.name for one in func.parameters})

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring:
            init = cls.members.get("__init__")
            parameters = {one.name for one in init.parameters} if isinstance(init, griffe.Function) else set()
            cls.docstring.value = as_markdown(cls.docstring.value, {*cls.members, *parameters})
