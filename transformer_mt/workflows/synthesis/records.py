"""The files of a synthesis that say what is done: read with one message if they are damaged, and parallel files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replace_text, replaced_file

READ, KEPT = "read", "kept"
Counts = dict[str, int]


class Row(NamedTuple):
    """What is kept of a translation until the pairs are filtered.

    text:   the translation
    tokens: of the source and of the translation
    score:  mean log-probability of its tokens, if `min_score` needs it
    lost:   why it is not the translation of the whole sentence; empty if it is
    """

    text: str
    tokens: tuple[int, int]
    score: float = 0.0
    lost: str = ""

    @property
    def line(self) -> str:
        values = {"text": self.text, "tokens": self.tokens, "score": self.score, "lost": self.lost}
        return json.dumps({key: value for key, value in values.items() if value or key == "text"}, ensure_ascii=False)

    @classmethod
    def of(cls, line: str) -> Row:
        """The inverse of `line`. Raises ValueError, TypeError or KeyError if it is damaged."""
        values = json.loads(line)
        source, target = map(int, values["tokens"])
        return cls(str(values["text"]), (source, target), float(values.get("score", 0.0)), str(values.get("lost", "")))


def damaged(file: Path, delete: Path | None = None) -> TmtError:
    """The error for a damaged or changed file. delete: what to delete, so that it is made again; None: the file"""
    path = delete or file
    remedy = f"Delete {path}, and run the same command again."
    return TmtError("the file is damaged, or somebody has changed it", place=file, remedy=remedy)


def read_object(file: Path, delete: Path | None = None) -> dict[str, Any]:
    """A JSON object. Raises TmtError if the file is damaged; delete: see `damaged`."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise damaged(file, delete) from None
    if not isinstance(values, dict):
        raise damaged(file, delete)
    return values


def counts_in(file: Path) -> Counts:
    """The counts that a finished step has written. Raises TmtError if the file is damaged."""
    counts = read_object(file)
    if not ({READ, KEPT} <= counts.keys() and all(isinstance(one, int) for one in counts.values())):
        raise damaged(file)
    return counts


def read_rows(file: Path, lines: int) -> list[Row]:
    """The translations of a shard. Raises TmtError if they are not as many as the lines, or damaged."""
    try:
        rows = [Row.of(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
    except (OSError, ValueError, TypeError, KeyError):
        raise damaged(file) from None
    if len(rows) != lines:
        raise damaged(file)
    return rows


def write_kept(
    done: Path,
    files: Sequence[Path],
    rows: Iterable[tuple[Sequence[str], str | None]],
    nothing_left: Callable[[Counts], TmtError],
) -> None:
    """Write parallel files; and when they are complete `done`, with how many rows were read, kept, and dropped by rule.

    rows:         a line for each file, and the rule that the row breaks; None: it is kept
    nothing_left: the error if none is kept; the files then stay as they were
    """
    counts = Counter[str]({READ: 0, KEPT: 0})
    with ExitStack() as asides:
        paths = [asides.enter_context(replaced_file(file)) for file in files]
        with ExitStack() as opened:  # closed before they are renamed
            sides = [opened.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
            for texts, fault in rows:
                counts[READ] += 1
                counts[fault or KEPT] += 1
                for side, text in zip(sides, texts, strict=True) if fault is None else ():
                    side.write(f"{text}\n")
        if not counts[KEPT]:
            raise nothing_left(counts)
    replace_text(done, json.dumps(counts, indent=1) + "\n")
