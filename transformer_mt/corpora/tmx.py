"""Translation memories in TMX, as translation programs and OPUS export them.

lxml reads one unit at a time, so memory stays small. Files from strangers are safe to read: entities that a file
defines are not replaced, and nothing else is opened or downloaded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from transformer_mt.corpora.base import FilesCorpus, Pair, SkippedRows
from transformer_mt.corpora.tables import TableOptions
from transformer_mt.errors import TmtError, at, from_os_error
from transformer_mt.files.lines import check_head
from transformer_mt.files.opening import DAMAGED, damaged, open_bytes

_LANGUAGE = ("{http://www.w3.org/XML/1998/namespace}lang", "lang")  # the second one in TMX 1.1
MOST_WITHOUT_UNIT = 1 << 23  # bytes; the parser needs up to 32 times as many
MOST_LANGUAGES = 1_000  # of which units are counted, for the message
MOST_PAIRS = 1_000  # of one unit; 8 MiB of variants would make ten billion
_LONGEST_CODE = 40  # characters of a language
_PAIRED_CODES = {"bpt", "ept"}  # formatting that begins and ends, often inside a word
_CODES = {"ph", "it", "ut"}  # a line break, a picture or a field: a space between two words
_CODE = "\0"  # in their place; XML cannot have it
_MARKUP = "formatting and fields of the text"
_BETWEEN_WORDS = re.compile(rf"(?<=[^\W_]){_CODE}+(?=[^\W_])")


class TmxCorpus(FilesCorpus):
    """A unit (`tu`) has a variant (`tuv`) for each language; several variants of a language give several pairs."""

    class Options(TableOptions):
        kind: Literal["tmx"]

    options: Options

    def read_files(self, *files: Path) -> Iterator[Pair]:
        (file,) = files
        check_head(file)
        seen: Counter[str] = Counter()
        incomplete, n_pairs, reason = 0, 0, f"no sentence in {self.source} or {self.target}"
        oversized, too_many = 0, f"more than {MOST_PAIRS:,} pairs in one"
        n_codes = 0
        for line, variants, left_out in read_units(file):
            if of_unit := left_out[self.source] + left_out[self.target]:
                n_codes += of_unit
                self.skip(SkippedRows(str(file), n_codes, _MARKUP, what="inline code"))
            seen.update(one for one in variants if one in seen or len(seen) < MOST_LANGUAGES)
            sources, targets = variants.get(self.source), variants.get(self.target)
            if not sources or not targets:
                incomplete += 1
                self.skip(SkippedRows(str(file), incomplete, reason, what="unit"))
                continue
            if len(sources) * len(targets) > MOST_PAIRS:
                oversized += 1
                self.skip(SkippedRows(str(file), oversized, too_many, what="unit"))
                continue
            for source, target in product(sources, targets):
                n_pairs += 1
                yield Pair(source, target, at(file, line))
        if not n_pairs and not oversized:
            found = ", ".join(f"{language} ({units:,} units)" for language, units in seen.most_common(12)) or "none"
            remedy = f"Set data.source and data.target to languages of the file: {found}."
            raise TmtError(f"no unit has the languages {self.source} and {self.target}", place=file, remedy=remedy)


class Unit(NamedTuple):
    """A unit. Its languages are without the region: `de` for de-DE and DE_at.

    line:     its number in the file
    texts:    by language
    left_out: by language, the number of inline codes that are no part of the texts
    """

    line: int
    texts: dict[str, list[str]]
    left_out: Counter[str]


def read_units(file: Path) -> Iterator[Unit]:
    """The units of a file.

    Raises TmtError if the file is not well-formed XML, or if a sentence uses an entity that the file defines.
    """
    from lxml import etree

    try:
        with open_bytes(file) as stream:
            safe = {"resolve_entities": False, "load_dtd": False, "no_network": True, "huge_tree": False}
            bounded = _BetweenUnits(stream, file)
            for _, unit in etree.iterparse(bounded, events=("end",), tag="{*}tu", **safe):
                bounded.n_read = 0
                yield _unit(unit, file)
                unit.clear()
                for element in (unit, *unit.iterancestors()):  # units can be anywhere, each in an element of its own
                    while element.getprevious() is not None and (parent := element.getparent()) is not None:
                        del parent[0]  # the units before it, and the header
    except etree.XMLSyntaxError as error:
        remedy = "Export or download it again. A program that checks XML, such as `xmllint`, shows the place."
        raise TmtError(f"not well-formed TMX: {error.msg}", place=at(file, error.lineno or 1), remedy=remedy) from None
    except DAMAGED as error:
        raise damaged(error, file, file) from None
    except OSError as error:
        raise from_os_error(error, "reading a TMX file", file) from None


class _BetweenUnits:
    """A stream for the parser, which keeps in memory what stands between two units."""

    def __init__(self, stream: BinaryIO, file: Path) -> None:
        self.stream, self.file, self.n_read = stream, file, 0

    def read(self, size: int = -1) -> bytes:
        """Raises TmtError after MOST_WITHOUT_UNIT bytes since `n_read` was set to 0."""
        self.n_read += size
        if self.n_read > MOST_WITHOUT_UNIT:
            remedy = "Check that the file is TMX."
            raise TmtError(f"no unit in {MOST_WITHOUT_UNIT >> 20} MiB", place=self.file, remedy=remedy)
        return self.stream.read(size)


def _unit(unit: Any, file: Path) -> Unit:
    found = Unit(unit.sourceline, {}, Counter())
    for variant in unit.iterfind("{*}tuv"):
        language = next((variant.get(name) for name in _LANGUAGE if variant.get(name)), "")
        segment = variant.find("{*}seg")
        if segment is not None:
            language = language[:_LONGEST_CODE].lower().replace("_", "-").split("-")[0]
            codes: list[Any] = []
            text = "".join(_texts(segment, at(file, found.line), codes))
            found.texts.setdefault(language, []).append(_BETWEEN_WORDS.sub(" ", text).replace(_CODE, ""))
            found.left_out[language] += len(codes)
    return found


def _texts(element: Any, place: str, left_out: list[Any]) -> Iterator[str]:
    """The text of a segment, with the placeholders in inline codes.

    Other inline codes go to `left_out`; of these, `ph`, `it` and `ut` become _CODE.
    """
    from lxml import etree

    yield element.text or ""
    for child in element:
        if isinstance(child, etree._Entity):
            remedy = "Replace it by its text in the file. Entities are not expanded, because they can be unlimited."
            raise TmtError(f"the sentence uses the entity {child.text}", place=place, remedy=remedy)
        if isinstance(child.tag, str):
            name = etree.QName(child).localname
            if name not in _CODES | _PAIRED_CODES:  # `hi`: highlighted text
                yield from _texts(child, place, left_out)
            elif name in _CODES and not len(child) and _is_placeholder(code := (child.text or "").strip()):
                yield code
            else:
                left_out.append(child)
                yield _CODE * (name in _CODES)
        yield child.tail or ""


def _is_placeholder(code: str) -> bool:
    """Whether an inline code is one placeholder of a program; `{}` may also be a format."""
    from transformer_mt.text.copies import UNBROKEN  # here, because a config can be read without `regex`

    found = UNBROKEN.match(code) if code[:1] in ("{", "%", "$") else None
    return found is not None and found.end() == len(code) and code != "{}"
