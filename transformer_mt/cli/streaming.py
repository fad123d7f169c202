"""Lines in, translations out: from arguments, a file, a pipe that may never end, or a person at a prompt.

Only \\n or \\r\\n ends a line; a last line without one counts. Lines are translated in batches: many at once from
a file, and from a pipe whatever has arrived, so that the first answer does not wait for the last line.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from transformer_mt.cli.answers import LineNotes, Writer, form_of, opened
from transformer_mt.config.direction import SEVERAL
from transformer_mt.errors import TmtError, at
from transformer_mt.files.lines import LONGEST_LINE, count_lines, line_batches, too_long
from transformer_mt.files.system import BINARY, IS_WINDOWS, redraws

if TYPE_CHECKING:
    from transformer_mt.workflows.translate import Glossary, Interpreter

_PIECE = 1 << 16  # bytes read from a pipe at once
_AHEAD = 64  # pieces
_LEAVE = "Ctrl-Z and Enter" if IS_WINDOWS else "Ctrl-D"


def translate_all(
    translator: Interpreter,
    text: list[str],
    input_: Path | None,
    output: Path | None,
    prefix: str,
    scores: bool,
    head: dict[str, Any] | None,
    split: bool,
    glossary: Glossary | None = None,
) -> None:
    """Read, translate and write batch by batch; notes and progress go to stderr.

    prefix: the start of every translation. scores: write them too. head: None for plain lines; otherwise the first
    keys of the JSON object that is written. split: lines of several sentences.
    """
    from transformer_mt.workflows.translate import GlossaryCount, lacks_markup, loaded_stays, note_form

    count, has_lost = GlossaryCount(), False
    form = form_of(scores, translator.decoding.n_best) if head is None else None
    known = count_lines(input_) if input_ is not None and input_.is_file() else None
    if input_ is not None:
        note_form(input_)
    watched = known is not None and redraws(sys.stderr)
    progress = tqdm(total=known, unit=" lines", file=sys.stderr, dynamic_ncols=True) if watched else nullcontext()
    with progress as bar, opened(output) as stream, loaded_stays():
        notes = LineNotes(partial(print if bar is None else bar.write, file=sys.stderr))
        writer = Writer(stream, form, head or {})
        for batch in [text] if text else _batches(input_, known is not None, notes, translator):
            prefixes = [prefix] * len(batch) if prefix else None
            terms = [count.add(glossary.spans(line)) for line in batch] if glossary is not None else None
            answers = translator.translate(batch, prefixes, align=form is None, split=split, terms=terms)
            for line, translation in zip(batch, answers, strict=True):
                writer.write(line, translation)
                notes.add(writer.written, translation.notes)
                has_lost = has_lost or lacks_markup(translation.notes)
                if bar is not None:
                    bar.update()
            stream.flush()
        writer.close()
        notes.close()
        if has_lost:  # the model has not learned them
            print(
                "tmt: to keep such tags and choices:  tmt translate --document FILE --format strings", file=sys.stderr
            )
        if glossary is not None:
            print(f"tmt: {count}", file=sys.stderr)


def write_document(
    translator: Interpreter, document: Path, form: str | None, output: Path | None, glossary: Glossary | None
) -> None:
    """Translate a document. document: `-` for stdin."""
    from transformer_mt.workflows.documents import decoded, translate_document

    source: str | Path = document
    if str(document) == "-":
        source = decoded(b"" if sys.stdin is None else sys.stdin.buffer.read(), "stdin")
    result = translate_document(source, translator, form, glossary)
    with opened(output) as stream:
        stream.write(result.text.encode("utf-8"))
    for number, note in result.notes:
        print(f"tmt: line {number}: {note}", file=sys.stderr)
    if result.glossary is not None:
        print(f"tmt: {result.glossary}", file=sys.stderr)


def _batches(input_: Path | None, checked: bool, notes: LineNotes, translator: Interpreter) -> Iterator[list[str]]:
    """Sentences from a file, a pipe or a prompt."""
    warn = partial(notes.add, notes=("not UTF-8; invalid bytes were replaced by U+FFFD",))
    if input_ is not None and checked:
        return line_batches(input_, translator.chunk)
    if input_ is not None:
        return pipe_batches(os.open(input_, os.O_RDONLY | BINARY), translator.chunk, warn)
    if sys.stdin is None:
        return iter(())
    if sys.stdin.isatty():
        source, target = translator.direction
        print(f"tmt: one sentence per line; {_LEAVE} ends", file=sys.stderr)
        return prompt_batches(f"{'any' if source == SEVERAL else source} > {target}: ")
    return pipe_batches(sys.stdin.fileno(), translator.chunk, warn)


def pipe_batches(descriptor: int, most: int, warn: Callable[[int], None]) -> Iterator[list[str]]:
    """Batches of the lines that have arrived, `most` or a little more; waits until there is at least one.

    Bytes that are not UTF-8 become U+FFFD, and `warn` is called with the line number. A thread reads a little ahead.
    """
    pieces: queue.Queue[list[bytes] | OSError | TmtError | None] = queue.Queue(maxsize=_AHEAD)
    threading.Thread(target=_read_ahead, args=(descriptor, pieces), daemon=True).start()
    number = 0
    for lines in _waiting(pieces, most):
        batch = []
        for line in lines:
            number += 1
            line = line.removeprefix(BOM_UTF8 if number == 1 else b"").removesuffix(b"\r")
            try:
                batch.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                batch.append(line.decode("utf-8", "replace"))
                warn(number)
        yield batch


def prompt_batches(prompt: str) -> Iterator[list[str]]:
    """The lines that a person types, with history; empty lines are skipped. Ctrl-D ends, Ctrl-C clears the line.

    A line that is not UTF-8 is skipped with a message. Ctrl-C on an empty line raises KeyboardInterrupt.
    """
    ask = _editing_prompt(prompt) if sys.stdout.isatty() else _plain_prompt(prompt)
    while True:
        try:
            line = ask()
        except EOFError:
            print(file=sys.stderr)
            return
        except UnicodeDecodeError:
            print("tmt: this line is not UTF-8 and was skipped; set the terminal's encoding to UTF-8", file=sys.stderr)
            continue
        if line.strip():
            yield [line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")]


def _editing_prompt(prompt: str) -> Callable[[], str]:
    try:
        import readline
    except ImportError:  # Windows
        return lambda: input(prompt)

    def ask() -> str:
        while True:
            try:
                return input(prompt)
            except KeyboardInterrupt:
                if not readline.get_line_buffer():
                    raise
                print()

    return ask


def _plain_prompt(prompt: str) -> Callable[[], str]:
    """A prompt on stderr, because stdout goes to a file."""

    def ask() -> str:
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    return ask


def _read_ahead(descriptor: int, pieces: queue.Queue[list[bytes] | OSError | TmtError | None]) -> None:
    rest: list[bytes] = []  # the start of a line that is not complete yet
    size = 0  # of the rest, in bytes
    number = 1  # of its line
    try:
        while piece := os.read(descriptor, _PIECE):
            *ended, last = piece.split(b"\n")
            if ended:
                ended[0] = b"".join([*rest, ended[0]])
                rest = []
                number += len(ended)
                pieces.put(ended)
            rest.append(last)
            size = len(last) if ended else size + len(last)
            if size > LONGEST_LINE:
                raise too_long(at("the input", number))
        if any(rest):
            pieces.put([b"".join(rest)])
        pieces.put(None)
    except (OSError, TmtError) as error:
        pieces.put(error)


def _waiting(pieces: queue.Queue[list[bytes] | OSError | TmtError | None], most: int) -> Iterator[list[bytes]]:
    """Wait for lines, then also take those that have arrived in the meantime, until there are `most`."""
    piece: list[bytes] | OSError | TmtError | None = []
    while isinstance(piece, list):
        lines: list[bytes] = []
        while isinstance(piece, list) and len(lines) < most and (not lines or not pieces.empty()):
            piece = pieces.get()
            lines += piece if isinstance(piece, list) else []
        if lines:
            yield lines
    if piece is not None:
        raise piece
