"""Which two columns of a table are the sentences, and in which languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from transformer_mt.config.languages import code_of
from transformer_mt.corpora.looking import Contents
from transformer_mt.errors import TmtError
from transformer_mt.text.language import is_number, language_of

_ENOUGH = 20  # cells, to judge how often something occurs
_LINK = re.compile(r"https?://|www\.")
_NO_CASES = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\u1000-\u109f\u1780-\u17ff]")  # scripts without spaces
CELLS = 300  # whose language is looked at


class Side(NamedTuple):
    """A column of sentences. column: its name or number in a config."""

    column: str | int
    language: str


def sides_of(contents: Contents, file: Path, source: str | None, target: str | None) -> tuple[Side, Side]:
    """The source and the target. Raises TmtError if it is not clear which columns they are.

    source, target: languages that the user named; None: the first and the second column of sentences
    """
    texts = [name for name, cells in contents.columns.items() if is_text(cells)]
    sides = [Side(name, _language(contents, name)) for name in texts]
    languages = {side.language for side in sides}
    if len(sides) == 2 and source and target and (len(languages) == 1 or not {source, target} & languages):
        return Side(sides[0].column, source), Side(sides[1].column, target)  # languages that are not recognised
    if len(sides) == 2 and (source or target):
        sides = _renamed(sides, source, target)
    wanted = [code for code in (source, target) if code]
    missing = [code for code in wanted if code not in (side.language for side in sides)]
    chosen = [side for side in sides if side.language in wanted] if len(wanted) == 2 else sides
    seen = _seen(contents, sides)
    if len(sides) < 2 or missing:
        problem = f"no column of sentences is in {missing[0]}" if missing else "there are no two columns of sentences"
        remedy = f"Columns seen: {seen}. If a language is wrong, give both:  --source de --target en"
        raise TmtError(problem, place=file, remedy=remedy)
    if len(chosen) > 2:
        remedy = f"Columns seen: {seen}. Name two languages:  --source de --target en, or remove the other columns."
        raise TmtError(f"{len(chosen)} columns are sentences", place=file, remedy=remedy)
    first, second = chosen
    if first.language == second.language:
        remedy = f"Columns seen: {seen}. If that is wrong, give both languages:  --source de --target en"
        raise TmtError(f"both columns of sentences look like {first.language}", place=file, remedy=remedy)
    swapped = second.language == source or first.language == target
    return (second, first) if swapped else (first, second)


def _renamed(sides: list[Side], source: str | None, target: str | None) -> list[Side]:
    """Two columns, one of which has a language that the user named: the other has the other one."""
    wanted = [source, target]
    for code, other in (wanted, wanted[::-1]):
        known = [side.language == code for side in sides]
        if code and other and sum(known) == 1:
            return [side if is_known else Side(side.column, other) for side, is_known in zip(sides, known, strict=True)]
    return sides


def is_text(cells: Sequence[str]) -> bool:
    """Whether a column has sentences, and not ids, scores, names of files, categories or attributions."""
    filled = [cell for cell in cells if cell.strip()]
    if not filled or len(filled) < len(cells) / 2:
        return False
    if sum(is_number(cell) or bool(_LINK.search(cell)) for cell in filled) > 0.2 * len(filled):
        return False
    spaced = sum(" " in cell.strip() or bool(_NO_CASES.search(cell)) for cell in filled)
    if len(filled) < _ENOUGH:
        return spaced * 3 >= len(filled)
    repeated = Counter(cell[:12] for cell in filled).most_common(1)[0][1]
    different = len(set(filled)) / len(filled)
    return spaced >= 0.2 * len(filled) and different > 0.2 and repeated < 0.8 * len(filled)


def _language(contents: Contents, name: str | int) -> str:
    """The language that the file gives, or that the name of the column is, or that its cells look like."""
    known = contents.languages.get(name)
    if known is None and isinstance(name, str):
        parts = [code_of(part) for part in re.findall(r"[^\W\d_]+", name)]
        known = next(filter(None, parts), None)
    return known or language_of(cell for cell in contents.columns[name][:CELLS] if not is_number(cell)) or "und"


def _seen(contents: Contents, sides: Sequence[Side]) -> str:
    by_column = {side.column: side.language for side in sides}
    return ", ".join(f"{name} ({by_column.get(name, 'no sentences')})" for name in contents.columns) or "none"
