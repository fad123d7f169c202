"""How translations are written: plain lines, scores, n-best lists, or one JSON object; to stdout or to a file.

The number of output lines depends only on the number of input lines. A file gets its name once it is complete.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from transformer_mt.cli.options import STDOUT, as_unicode
from transformer_mt.config.runs import belongs_to_run, owner_of_corpus
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replaced_file
from transformer_mt.reporting.notes import LineNotes as LineNotes
from transformer_mt.reporting.program import quoted

if TYPE_CHECKING:
    from transformer_mt.workflows.translate import Translation

Form = Callable[[int, str, "Translation"], str]  # (line number, line, its translation) -> what to write

_ANOTHER = "Choose another file to write."


def form_of(scores: bool, n_best: int) -> Form:
    """Plain: the text. scores: score, tab, text. n_best above 1: line number, score and text, tab-separated,
    one output line for each different translation of an input line, at most n_best."""
    if n_best > 1:
        return lambda number, line, translation: "".join(
            f"{number}\t{one.score:.4f}\t{one.text}\n" for one in translation.n_best
        )
    if scores:
        return lambda number, line, translation: f"{translation.score:.4f}\t{translation.text}\n"
    return lambda number, line, translation: f"{translation.text}\n"


def as_json(number: int, line: str, translation: Translation) -> str:
    """One line: a member of the list `translations`."""
    value: dict[str, Any] = {"line": number, "source": line, "source_tokens": translation.source_tokens}
    hypotheses = [
        {
            "text": one.text,
            "score": round(one.score, 4),
            "tokens": one.tokens,
            "token_scores": [round(value, 6) for value in one.token_scores or ()],
            "alignment": one.alignment,
            "word_alignment": one.word_alignment,
        }
        for one in translation.n_best
    ]
    value |= hypotheses[0]
    if len(hypotheses) > 1:
        value["n_best"] = hypotheses
    value["notes"] = translation.notes
    return as_unicode(value)


class Writer:
    """Writes translations to a stream of bytes as they come; `close` completes a JSON object."""

    def __init__(self, stream: BinaryIO, form: Form | None, head: dict[str, Any]) -> None:
        """form: None for JSON, whose object then begins with the keys of `head`."""
        self._stream = stream
        self._form = form
        self.written = 0
        if form is None:
            opening = json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "translations": ['
            self._stream.write(opening.encode("utf-8", "replace"))

    def write(self, line: str, translation: Translation) -> None:
        """Write the translation of a line."""
        self.written += 1
        if self._form is None:
            text = f"{',' if self.written > 1 else ''}\n  {as_json(self.written, line, translation)}"
        else:
            text = self._form(self.written, line, translation)
        self._stream.write(text.encode("utf-8", "replace"))

    def close(self) -> None:
        if self._form is None:
            self._stream.write(b"\n ]\n}\n")
        self._stream.flush()


def check_outputs(inputs: Sequence[Path], outputs: Sequence[Path | None], models: Sequence[Path] | None = None) -> None:
    """Raises TmtError, before the work, if an output is a folder, an input or another output, or has no folder; and if
    it is a file of the corpus of a run in runs/, or of one of these models."""
    given: list[Path] = [file for file in inputs if file.exists()]
    for file in filter(None, outputs):
        output = STDOUT if _descriptor(file) == 1 else file
        if output == STDOUT:
            if STDOUT in given:
                raise TmtError("two results would both go to stdout", place="-", remedy="Write one of them to a file.")
            given.append(output)
            continue
        if output.is_dir():
            raise TmtError("this is a folder, not a file", place=output, remedy="Give the name of a file to write.")
        if not output.absolute().parent.is_dir():
            raise TmtError("no such folder", place=output.parent, remedy=f"First:  mkdir -p {quoted(output.parent)}")
        is_own = belongs_to_run(output)
        if is_own or (output.is_file() and output.suffix in (".yaml", ".yml")):
            kind = "belongs to a model, a run or prepared data" if is_own else "may be a config"
            raise TmtError(f"this file {kind}: it is not replaced", place=output, remedy=_ANOTHER)
        if (owner := owner_of_corpus(output, models or ())) is not None:
            problem = f"this file belongs to the corpus of {owner}: it is not replaced"
            raise TmtError(problem, place=output, remedy=_ANOTHER)
        if output.suffix in (".gz", ".xz", ".bz2", ".zst"):
            remedy = "Name a file without this ending, and compress it afterwards."
            raise TmtError("output is not written compressed", place=output, remedy=remedy)
        if any(output.absolute() == file.absolute() or _same(output, file) for file in given):
            raise TmtError("this file is given twice", place=output, remedy=_ANOTHER)
        given.append(output)


def _same(output: Path, other: Path) -> bool:
    return output.is_file() and other.exists() and output.samefile(other)


def _descriptor(file: Path) -> int | None:
    """The number of a file that is already open, such as /dev/stdout: it is written to, never replaced."""
    numbered = re.fullmatch(r"(?:/dev|/proc/self)/fd/(\d+)", str(file))
    return int(numbered[1]) if numbered else {"/dev/stdout": 1, "/dev/stderr": 2}.get(str(file))


@contextmanager
def opened(output: Path | None) -> Iterator[BinaryIO]:
    """stdout (None or `-`), or a file that is written under a temporary name and renamed when the block succeeds."""
    if output in (None, STDOUT):
        yield sys.stdout.buffer
        return
    if (descriptor := _descriptor(output)) is not None:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            yield stream
        return
    if output.exists() and not output.is_file():  # a device or a pipe
        with output.open("wb") as stream:
            yield stream
        return
    with replaced_file(output) as aside, aside.open("wb") as stream:
        yield stream
