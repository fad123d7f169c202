"""The formats of documents, by name."""

from __future__ import annotations

from transformer_mt.text.documents.base import Format
from transformer_mt.text.documents.html import Html
from transformer_mt.text.documents.markdown import Markdown
from transformer_mt.text.documents.plain import PlainText
from transformer_mt.text.documents.strings import Strings
from transformer_mt.text.documents.subtitles import Subtitles

FORMATS: dict[str, type[Format]] = {
    "text": PlainText,
    "markdown": Markdown,
    "html": Html,
    "subtitles": Subtitles,
    "strings": Strings,
}
