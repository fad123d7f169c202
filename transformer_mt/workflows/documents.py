"""Translates a document: the text of each block, with everything else of the file as it is."""

from __future__ import annotations

import codecs
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.decoding.copying import NOT_IN_LINE
from transformer_mt.decoding.given import checked_text
from transformer_mt.decoding.glossary import Glossary, GlossaryCount
from transformer_mt.decoding.interpreter import WITHOUT, Interpreter
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Translation
from transformer_mt.errors import TmtError, named
from transformer_mt.files.encodings import guessed_encoding
from transformer_mt.files.lines import check_exists
from transformer_mt.files.opening import open_stored, readable
from transformer_mt.reporting.notes import note
from transformer_mt.text.documents.base import Format
from transformer_mt.text.documents.formats import FORMATS
from transformer_mt.text.documents.markup import PlainBlock, place, rendered
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.models import find_models

_NO_DOCUMENT = "Give the text as str, or its file as Path."
_BOM = "\ufeff"  # some editors write it at the start of a file; there it is no part of the text


@dataclass(frozen=True)
class DocumentTranslation:
    """A translated document.

    text:   the whole document
    blocks: number of blocks that were translated
    notes:  what a user must know, each with the number of the line where its block begins
    glossary: the number of its terms that were found; None without a glossary
    """

    text: str
    blocks: int
    notes: tuple[tuple[int, str], ...] = ()
    glossary: GlossaryCount | None = None


def translate_document(
    document: str | Path,
    translator: Interpreter | str | Path,
    format: str | None = None,  # noqa: A002 (the name of the option)
    glossary: Glossary | Mapping[str, str] | str | Path | None = None,
) -> DocumentTranslation:
    """Translate the text of a document. Code, addresses, tags and all other markup stay as they are, byte for byte.

    document:   the text as str, or its file as Path
    translator: from `load`, or the folder of a run or model
    format:     text, markdown, html, subtitles or strings; None: as the suffix of the file says
    glossary:   terms that the translation must contain: a `Glossary`, a dict, or the path of a file
    Raises TmtError if the file is missing or not UTF-8, if the format is unknown, or if the search of the translator
    does not support a glossary.
    """
    if isinstance(document, str) and "\n" not in document and is_file(document):
        note(f'the text "{document}" is translated; for the file of this name give Path("{document}")')
    if not isinstance(document, Path):
        document = checked_text(document, "document", _NO_DOCUMENT)
        _require_no_zero("\0" in document, "text", "document")
    form = format_of(document, format)
    whole = _text_of(document) if isinstance(document, Path) else document
    if isinstance(translator, (str, Path)):
        translator = load_model(find_models(translator))
    elif not callable(getattr(translator, "translate", None)):
        raise TmtError(
            f"{named(translator)} is no translator", place="translator", remedy='Give  tmt.load("runs/NAME").'
        )
    opened = OpenDocument(whole, form, translator, glossary)
    return opened.translated(translator.translate(opened.texts, align=True, terms=opened.terms))


def is_file(name: str) -> bool:
    """Whether a text is the name of a file."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long, or with a zero
        return False


class OpenDocument:
    """A document between reading and writing: what of it is translated, for callers that translate it themselves.

    texts: of the blocks; their translations must have word alignments
    terms: of each text; None if there are none
    """

    def __init__(
        self,
        whole: str,
        form: Format,
        translator: Interpreter,
        glossary: Glossary | Mapping[str, str] | str | Path | None = None,
    ) -> None:
        """translator: for which it is opened. Raises TmtError if its search does not support a glossary."""
        self._glossary = None if glossary is None else translator.glossary(glossary)
        self._count = GlossaryCount()
        self._text = whole.removeprefix(_BOM)
        self._mark = whole[: len(whole) - len(self._text)]
        signs = translator.binds  # code is copied by the search; otherwise it is placed by word alignment
        found = form.blocks(self._text)
        self._blocks = [PlainBlock(block, signs, self._text) for block in found if not block.left]
        self._left = [(one.line, f"left as it is, because {one.left}") for one in found if one.left]
        self.texts = [one.read for one in self._blocks]
        self.terms = [_terms(one, self._glossary, self._count) for one in self._blocks] if signs else None

    def translated(self, answers: Iterable[Translation]) -> DocumentTranslation:
        """The document with the translations in place. answers: of the texts, in their order."""
        changes, text = _Changes(self._text), self._text
        notes: list[tuple[int, str]] = [*self._left]
        lost: list[tuple[int, str]] = []
        for one, answer in sorted(
            zip(self._blocks, answers, strict=True), key=lambda pair: pair[0].block.end - pair[0].block.start
        ):
            notes += [(one.block.line, note) for note in _notes(one, answer, text)]
            if answer.text == one.read:
                continue  # for example a name: its source stays as it is
            written = _written(one, answer, changes)
            if written is None:
                lost.append((one.block.line, _with_code(one, _note_of_loss(one, answer), text)))
            else:
                changes.add(one.block.start, one.block.end, written)
        whole, count = self._mark + changes.spliced(0, len(text)), self._count if self._glossary is not None else None
        return DocumentTranslation(whole, len(self._blocks), tuple(sorted([*notes, *lost])), count)


def format_of(document: str | Path, name: str | None) -> Format:
    """The format of a document. Raises TmtError if it is unknown.

    document: its text, or its file
    name:     None: by the suffix of the file
    """
    if name is not None and not isinstance(name, str):
        raise TmtError(f"{named(name)} is no format", place="format", remedy=f"Use {', '.join(FORMATS)}.")
    if name is None and isinstance(document, str):
        raise TmtError("the format of the document is not known", remedy='Name it, for example:  format="markdown"')
    name = name.lower() if name is not None else None
    if name is not None and name not in FORMATS:
        raise TmtError(f"unknown format '{name}'", remedy=f"Use {', '.join(FORMATS)}.")
    suffix = document.suffix.lower() if isinstance(document, Path) else ""
    for own, form in FORMATS.items():
        if own == name or (name is None and suffix in form.suffixes):
            return form()
    if suffix == ".gz":
        raise TmtError("the document is compressed", place=str(document), remedy="Unpack it first:  gunzip FILE")
    raise TmtError(
        f"unknown suffix '{suffix}', so the format is not known" if suffix else "a file without a suffix",
        place=str(document),
        remedy=f"Name it:  --format NAME (in Python: format=NAME)   The formats are {', '.join(FORMATS)}.",
    )


def _text_of(file: Path) -> str:
    """Raises TmtError if the file is missing, unreadable, or not text in UTF-8."""
    check_exists(file)
    with readable(file, "reading a document"), open_stored(file) as stream:
        return decoded(stream.read(), file)


def decoded(data: bytes, place: str | Path) -> str:
    """The text of a document. Raises TmtError if it is not text in UTF-8."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TmtError("the document is UTF-16", place=place, remedy="Convert it:  iconv -f UTF-16 -t UTF-8 OLD > NEW")
    _require_no_zero(b"\0" in data, "a text file", place)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        guess = guessed_encoding(data[error.start :]) or "cp1252"
        raise TmtError(
            f"the document is not UTF-8: byte 0x{data[error.start]:02x}",
            place=f"{place}:{line}",
            remedy=f"Convert it from its encoding:  iconv -f {guess.upper()} -t UTF-8 OLD > NEW",
        ) from None


def _require_no_zero(has_zero: bool, what: str, place: str | Path) -> None:
    if has_zero:
        remedy = "Documents are plain text, Markdown, HTML or subtitles, in UTF-8."
        raise TmtError(f"this is not {what}", place=place, remedy=remedy)


def _note_of_loss(plain: PlainBlock, answer: Translation) -> str:
    if not answer.text:
        return f"no translation, so it is left as it is: {plain.read[:40]}"
    return f"its markup has no place in the translation, so it is left as it is: {plain.read[:40]}"


def _with_code(plain: PlainBlock, message: str, text: str) -> str:
    """A message with code in place of its signs."""
    for sign, index in plain.signs.items():
        piece = plain.block.pieces[index]
        message = message.replace(sign, text[piece.start : piece.end])
    return message


def _terms(plain: PlainBlock, glossary: Glossary | None, count: GlossaryCount) -> list[Span]:
    """The signs for code and the terms of the glossary, from left to right; the latter are counted."""
    copies = [Span(start, Term(code, code)) for start, code in plain.copies]
    spans = glossary.spans(plain.read) if glossary is not None else []
    spans = [span for span in spans if all(span.end <= copy.start or copy.end <= span.start for copy in copies)]
    count.add(spans)
    return sorted([*copies, *spans])


def _notes(plain: PlainBlock, answer: Translation, text: str) -> list[str]:
    """The notes of the engine, with code in place of its signs."""
    notes, left_out = [], not plain.signs and any(piece.kind == "code" for piece in plain.block.pieces)
    for message in answer.notes:
        if left_out and message.endswith(NOT_IN_LINE):  # the model has read the block without its code
            continue
        message = _with_code(plain, message, text)
        head, lacks, code = message.partition(WITHOUT)
        notes.append(f"{head}placed by word alignment: {code.removeprefix('s').strip()}" if lacks else message)
    return notes


def _written(plain: PlainBlock, answer: Translation, changes: _Changes) -> str | None:
    """The source of a translated block; None if it has no translation, or if its markup cannot stand there."""
    if not answer.text:
        return None
    sources = {
        index: piece.written or changes.spliced(piece.start, piece.end)
        for index, piece in enumerate(plain.block.pieces)
        if piece.kind != "text"
    }
    links, text = answer.n_best[0].word_alignment or (), plain.signed(answer.text)
    for whole_words in (False, True):
        source = rendered(plain, place(plain, text, links, whole_words), sources)
        if source is not None:
            return source
    return None


class _Changes:
    """The changes of a document. A change may contain smaller ones, which were added before it: it has them already."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._changes: list[tuple[int, int, str]] = []  # first character, negative end, new text; sorted

    def add(self, start: int, end: int, written: str) -> None:
        insort(self._changes, (start, -end, written))

    def spliced(self, start: int, end: int) -> str:
        """A part of the document, with the changes inside it."""
        parts, place = list[str](), start
        for index in range(bisect_left(self._changes, (start,)), len(self._changes)):
            first, negative, written = self._changes[index]
            if first >= end:
                break
            if first >= place and -negative <= end:
                parts += [self._text[place:first], written]
                place = -negative
        return "".join([*parts, self._text[place:end]])
