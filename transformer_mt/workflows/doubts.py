"""Notes on what makes the score of a test set doubtful: sentences of the training, other languages, empty lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.data.languages import MOST, is_sampled
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError, number_of
from transformer_mt.files.lines import printable
from transformer_mt.reporting.notes import note
from transformer_mt.text.batches import as_lines, keys_of_pairs
from transformer_mt.text.language import is_long, other_language
from transformer_mt.text.script import foreign_script

_FEWEST = 3  # sentences in another language
_BLOCK = 50_000  # pairs that are hashed together


def note_seen(folder: Path, name: str, sources: Sequence[str], references: Sequence[str]) -> None:
    """How many pairs of a test set are probably among the training pairs of a model, which knows only their sides."""
    try:
        known = TrainedOn.read(folder)
    except TmtError as error:
        note(f"{error.place}: {error.message}: whether this model was trained on the test set is not known")
        return
    if known is None:
        return
    found = checked = 0
    for start in range(0, len(sources), _BLOCK):
        sides = (as_lines(list(side[start : start + _BLOCK])) for side in (sources, references))
        seen = known.seen_pairs(keys_of_pairs(*sides))
        found, checked = found + seen[0], checked + seen[1]
    if found:
        among = f"{found:,} of the {checked:,} pairs of {name}"
        among += " that can be checked" if checked < len(sources) else ""
        note(f"{folder}: trained on both sentences of {among}, perhaps apart: it may score lower on new ones")


def have_equal_training(one: Path, other: Path) -> bool:
    """Whether two models were trained on the same sentences."""
    try:
        return one == other or (one / TRAINED_ON).read_bytes() == (other / TRAINED_ON).read_bytes()
    except OSError:
        return False


def note_other_language(name: str, lines: Sequence[str], language: str) -> None:
    """If most sentences are not in the language that they should be in."""
    sample = [one for number, one in enumerate(lines, 1) if is_sampled(number)]
    codes = [other_language(one, language) or ("" if foreign_script(one, language) else None) for one in sample]
    judged = sum(is_long(one) or code is not None for one, code in zip(sample, codes, strict=True))
    wrong = Counter(code for code in codes if code is not None)
    if wrong.total() < _FEWEST or wrong.total() <= MOST * judged:
        return
    likely = next((code for code, _ in wrong.most_common() if code), "")
    seems = f"{likely}, not {language}" if likely else f"in another script than {language} has"
    note(f"{name}: {number_of(wrong.total(), 'sentence')} of {judged:,} seem to be {seems}: is this the right file?")


def note_empty(file: Path, lines: Sequence[str], what: str = "translation") -> None:
    """If some lines are empty. what: a line is"""
    if empty := [number for number, line in enumerate(lines, start=1) if not line.strip()]:
        verb = "is" if len(empty) == 1 else "are"
        place = printable(file)
        note(f"{place}: {len(empty):,} of {len(lines):,} {what}s {verb} empty, the first on line {empty[0]:,}")
