"""Notes on what makes the score of a test set doubtful: sentences of the training, other languages, empty lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from transformer_mt.data.languages import FIRST_LINES, LATER_LINES, MOST
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import number_of
from transformer_mt.files.lines import printable
from transformer_mt.reporting.notes import note
from transformer_mt.text.batches import as_lines, keys_of_pairs
from transformer_mt.text.language import is_long, other_language
from transformer_mt.text.script import foreign_script
from transformer_mt.workflows.test_sets import TestSet

_FEWEST = 3  # sentences in another language


def note_seen(folder: Path, test_set: TestSet) -> None:
    """How many pairs of a test set are probably among the training pairs of a model, which knows only their sides."""
    known = TrainedOn.read(folder) if test_set.sources else None
    if known is None:
        return
    found, checked = known.seen_pairs(keys_of_pairs(as_lines(test_set.sources), as_lines(test_set.references)))
    if found:
        among = f"{found:,} of the {checked:,} pairs of {test_set.name}"
        among += " that can be checked" if checked < len(test_set.sources) else ""
        note(f"{folder}: trained on {among}, or on both their sentences apart: it would score lower on new ones")


def note_other_language(name: str, lines: Sequence[str], language: str) -> None:
    """If most sentences are not in the language that they should be in."""
    sample = [one for number, one in enumerate(lines, 1) if number <= FIRST_LINES or number % LATER_LINES == 0]
    codes = [other_language(one, language) or ("" if foreign_script(one, language) else None) for one in sample]
    judged = sum(is_long(one) or code is not None for one, code in zip(sample, codes, strict=True))
    wrong = Counter(code for code in codes if code is not None)
    if wrong.total() < _FEWEST or wrong.total() <= MOST * judged:
        return
    likely = next((code for code, _ in wrong.most_common() if code), "")
    seems = f"{likely}, not {language}" if likely else f"in another script than {language} has"
    note(f"{name}: {number_of(wrong.total(), 'sentence')} of {judged:,} seem to be {seems}: are the files exchanged?")


def note_empty(file: Path, lines: Sequence[str], what: str = "translation") -> None:
    """If some lines are empty. what: a line is"""
    if empty := [number for number, line in enumerate(lines, start=1) if not line.strip()]:
        verb = "is" if len(empty) == 1 else "are"
        place = printable(file)
        note(f"{place}: {len(empty):,} of {len(lines):,} {what}s {verb} empty, the first on line {empty[0]:,}")
