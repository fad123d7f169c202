"""Which two columns of a table are the sentences, and in which languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from transformer_mt.config.languages import code_of, name_of
from transformer_mt.config.yaml_source import shortened
from transformer_mt.corpora.looking import Contents
from transformer_mt.corpora.tables import listed
from transformer_mt.errors import TmtError
from transformer_mt.reporting.notes import note
from transformer_mt.text.language import is_known, is_number, language_of, same_language
from transformer_mt.text.script import SPACELESS_LETTER

_NAMED = ("text", "tmx")  # kinds whose columns are languages
_EMPTY = "empty in"
_BY_HAND = "Or name two in a config:  tmt init files -o C   (source_column, target_column)"
_BY_MACHINES = {"mt", "nmt", "smt", "machine", "기계번역", "기계번역문"}  # words in names of columns
_SHORT = "no sentences"  # but perhaps words
_ENOUGH = 20  # cells, to judge how often something occurs
_LINK = re.compile(r"https?://|www\.")
_ONE_NAME = re.compile(r"[^\W\d_]+(?:[-_](?!MT)(?:[A-Z]{2}|Hans|Hant))?")  # `ko`, `German` or `de_AT`
SHOWN = 12  # columns, in a message
CELLS = 300  # whose language is looked at


class Side(NamedTuple):
    """A column of sentences. column: its name or number in a config."""

    column: str | int
    language: str


def sides_of(contents: Contents, file: Path, source: str | None, target: str | None) -> tuple[Side, Side]:
    """The source and the target. Raises TmtError if it is not clear which columns they are.

    source, target: languages that the user named; None: the first and the second column of sentences
    """
    faults = {name: _not_text(contents, name) for name in contents.columns}
    words = source and target and len(faults) == 2  # a list of words, if the user says so
    text = [name for name, fault in faults.items() if not fault or (words and fault == _SHORT)]
    sides = [Side(name, _language(contents, name)) for name in text]
    languages = {side.language for side in sides}
    if len(sides) == 2 and source and target and (len(languages) == 1 or not {source, target} & languages):
        return Side(sides[0].column, source), Side(sides[1].column, target)  # languages that are not recognised
    if len(sides) == 2 and (source or target):
        sides = _renamed(sides, source, target)
    wanted = [code for code in (source, target) if code]
    missing = [code for code in wanted if code not in (side.language for side in sides)]
    chosen = [side for side in sides if side.language in wanted] if len(wanted) == 2 else sides
    known = {side.column: side.language for side in sides}
    names = [f"{shortened(str(name))} ({shortened(known.get(name) or fault)})" for name, fault in faults.items()]
    seen = ", ".join([*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])]) or "none"
    if len(sides) < 2 or missing:
        problem = f"no column of sentences is in {missing[0]}" if missing else "there are no two columns of sentences"
        words = len(faults) == 2 and _SHORT in faults.values()
        hint = "If these are sentences or words" if words else "If a language is wrong"
        remedy = f"Columns seen: {seen}. {hint}, give both languages:  --source de --target en"
        raise TmtError(problem, place=file, remedy=remedy)
    if len(chosen) > 2:
        chosen = _named_alone(contents, chosen) or chosen
    if len(chosen) > 2:
        if contents.kind == "tmx":
            which = f"Languages seen: {seen}. Name two:  --source de --target en"
            raise TmtError(f"the units have {len(chosen)} languages", place=file, remedy=which)
        how = "Name two languages:  --source de --target en, or remove the other columns."
        if len(wanted) == 2 or len(languages) < 3:  # several columns are in one language
            how = f"Remove the others. {_BY_HAND}"
        remedy = f"Columns seen: {seen}. {how}"
        raise TmtError(f"{len(chosen)} columns are sentences", place=file, remedy=remedy)
    for side in chosen:
        _note_doubtful(file, side, faults)
    first, second = chosen
    if first.language == second.language:
        remedy = f"Columns seen: {seen}. If that is wrong, give both languages:  --source de --target en"
        raise TmtError(f"both columns of sentences look like {first.language}", place=file, remedy=remedy)
    swapped = second.language == source or first.language == target
    return (second, first) if swapped else (first, second)


def _named_alone(contents: Contents, sides: Sequence[Side]) -> list[Side]:
    """One side of each of two languages: of several, the column that is named as the language and nothing else.

    In AI Hub's tables `ko_original` is Korean before its correction, and `mt` is the translation of a machine.
    [] if there are other languages, or if it is not clear which column is meant.
    """
    found: dict[str, list[Side]] = {}
    for side in sides:
        is_sure = _is_named(side) and not _is_machines(side)
        looks = side.language if is_sure else _looks_like(contents, side.column) or side.language
        own = next((one for one in found if same_language(one, looks)), looks)
        found.setdefault(own, []).append(Side(side.column, own))
    chosen = []
    for some in found.values():
        people = [one for one in some if not _is_machines(one)] or some
        chosen.append(people if len(people) == 1 else [one for one in people if _is_named(one)])
    return [one for (one,) in chosen] if [len(some) for some in chosen] == [1, 1] else []


def _is_named(side: Side) -> bool:
    """Whether a column is named as its language and nothing else: `ko`, `German`, `pt_BR`, `translation.de`."""
    name = str(side.column).rpartition(".")[2]
    return bool(_ONE_NAME.fullmatch(name)) and same_language(code_of(name) or "und", side.language)


def _is_machines(side: Side) -> bool:
    """Whether a column has a machine's translations, by its name: `mt`, `en_mt`, `NMT output`; but Maltese is `mt`."""
    words = set(re.findall(r"[^\W\d_]+", str(side.column).rpartition(".")[2].casefold()))
    return not words.isdisjoint(_BY_MACHINES) and side.language != "mt"


def _note_doubtful(file: Path, side: Side, faults: Mapping[str | int, str]) -> None:
    """Notes on a side that may be the wrong column. Raises TmtError if it is a machine's, in place of one with gaps."""
    gaps = (name for name, fault in faults.items() if fault.startswith(_EMPTY))
    name = next((name for name in gaps if _is_named(Side(name, side.language))), None)
    if name is not None and not _is_named(side):
        if _is_machines(side):
            problem = f"the column {name} is {faults[name]}, and {side.column} would be read in its place"
            raise TmtError(problem, place=file, remedy=f"Remove the rows without it. {_BY_HAND}")
        note(f"{file}: the column {name} is {faults[name]}, and {side.column} is read in its place")
    if _is_machines(side):
        note(f"{file}: the column {side.column} is the translation of a machine, by its name")


def not_read(contents: Contents, sides: tuple[Side, Side]) -> dict[str, str]:
    """The reason that names other columns of sentences in the languages of both sides, if there are some."""
    names = [one for one in contents.columns if not _not_text(contents, one)] if contents.kind not in _NAMED else []
    known = [side.language for side in sides]
    languages = {name: _looks_like(contents, name) or _language(contents, name) for name in names}
    chosen = [side.column for side in sides]
    others = [
        name for name in names if name not in chosen and any(same_language(languages[name], one) for one in known)
    ]
    return {"columns": f"columns that are not read: {listed(list(map(str, others)))}"} if others else {}


def is_table(contents: Contents) -> bool:
    """Whether two columns have sentences or words in several rows, as no description of a corpus has."""
    cells = contents.columns
    return sum(len(cells[name]) > 1 and _not_text(contents, name) in ("", _SHORT) for name in cells) > 1


def with_true_languages(contents: Contents, file: Path) -> Contents:
    """The contents with the languages of their cells if the names of two columns are exchanged, and a reason.

    Raises TmtError if the reader would follow the names: those in a TMX, and of the files in a folder or an archive.
    """
    named = {name: code for name in contents.columns if (code := _named_language(contents, name))}
    looks = {name: _looks_like(contents, name) or "und" for name in named if not _not_text(contents, name)}
    for one, other in combinations(looks, 2):
        if same_language(named[one], named[other]):
            continue
        if same_language(looks[one], named[other]) and same_language(looks[other], named[one]):
            is_one, is_other = name_of(looks[one]), name_of(looks[other])
            said = f"the names are exchanged: {one} looks like {is_one}, and {other} like {is_other}"
            if contents.kind in _NAMED and str(file) not in contents.columns:
                remedy = "Rename the files." if contents.kind == "text" else "Correct the languages in the file."
                raise TmtError(said, place=file, remedy=remedy)
            languages = contents.languages | {one: named[other], other: named[one]}
            return replace(contents, languages=languages, reasons=contents.reasons | {"exchanged": said})
    return contents


def _renamed(sides: list[Side], source: str | None, target: str | None) -> list[Side]:
    """Two columns, one of which has a language that the user named: the other has the other one."""
    wanted = [source, target]
    for code, other in (wanted, wanted[::-1]):
        known = [side.language == code for side in sides]
        if code and other and sum(known) == 1:
            return [side if is_known else Side(side.column, other) for side, is_known in zip(sides, known, strict=True)]
    return sides


def _not_text(contents: Contents, name: str | int) -> str:
    """Why a column has no sentences, but ids, scores, names of files, categories or attributions; "" if it has some.

    All columns of a TMX and of parallel files have sentences. Those of a column that is named as a language may repeat.
    """
    cells = contents.columns[name]
    if contents.kind in _NAMED:
        return ""
    filled = [cell for cell in cells if cell.strip()]
    if not filled or len(filled) < len(cells) / 2:
        return f"{_EMPTY} {len(cells) - len(filled):,} of the first {len(cells):,} rows"
    if sum(is_number(cell) or bool(_LINK.search(cell)) for cell in filled) > 0.2 * len(filled):
        return "numbers, ids or links"
    spaced = sum(" " in cell.strip() or bool(SPACELESS_LETTER.search(cell)) for cell in filled)
    if len(filled) < _ENOUGH:
        return "" if spaced * 3 >= len(filled) else _SHORT
    if spaced < 0.2 * len(filled):
        return _SHORT
    if _named_language(contents, name):
        return ""
    different = len(set(filled))
    if different <= 0.2 * len(filled):
        return f"only {different:,} different cells in the first {len(cells):,} rows"
    repeated = Counter(cell[:12] for cell in filled).most_common(1)[0][1]
    return "no sentences: nearly all begin alike" if repeated >= 0.8 * len(filled) else ""


def _named_language(contents: Contents, name: str | int) -> str | None:
    """The language that the file gives, or that the name of the column is."""
    known = contents.languages.get(name)
    if known is None and isinstance(name, str) and contents.kind != "text":
        parts = [code_of(part) for part in re.findall(r"[^\W\d_]+", name)]
        known = next(filter(None, parts), None)
    return known


def _language(contents: Contents, name: str | int) -> str:
    """The language that the file or the name of the column gives, or that its cells look like."""
    return _named_language(contents, name) or _looks_like(contents, name) or "und"


def note_other_languages(contents: Contents, file: Path, sides: tuple[Side, Side]) -> None:
    """A note for each column whose sentences look like another language than the one that it was given."""
    for column, language in sides:
        found = _looks_like(contents, column)
        if found and is_known(language) and not same_language(found, language):
            where = str(column) if str(file) in contents.columns else f"{file}: column {column}"
            note(f"{where} looks like {name_of(found)}, not {name_of(language)}; check --source and --target")


def _looks_like(contents: Contents, name: str | int) -> str | None:
    return language_of(cell for cell in contents.columns[name][:CELLS] if not is_number(cell))
