"""Directions of translation, such as `ko-en`, and the tags of a model for several of them."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

DIRECTION = r"^[a-z]{2,3}-[a-z]{2,3}$"
TAG = r"^<[^<>\s]+>$"
TARGET_TAG = re.compile(r"<2[a-z]{2,3}>")  # as `Direction.tag`
SEVERAL = "mul"  # ISO 639-2: "multiple languages", of a tokenizer for them
DirectionName = Annotated[str, Field(pattern=DIRECTION)]


def _free(tag: str) -> str:
    if tag in ("<pad>", "<unk>", "<s>", "</s>"):
        raise ValueError(f"{tag} is a mark of every vocabulary; use another name")
    if TARGET_TAG.fullmatch(tag):
        raise ValueError(f"{tag} is the form of tags that name a target language; use another name")
    return tag


Tag = Annotated[str, Field(pattern=TAG, max_length=50), AfterValidator(_free)]


class Direction(NamedTuple):
    """source, target: ISO 639 codes"""

    source: str
    target: str

    @classmethod
    def of(cls, name: str) -> Direction:
        """Of a name such as `ko-en`."""
        source, _, target = name.partition("-")
        return cls(source, target)

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def reversed(self) -> Direction:
        return Direction(self.target, self.source)

    @property
    def tag(self) -> str:
        """The token before a source that says into which language: `<2en>` (Johnson et al. 2017, arXiv:1611.04558)."""
        return f"<2{self.target}>"
