"""The number of lines out equals the number of lines in, for any bytes from a pipe or a file."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from transformer_mt.cli.answers import Writer, form_of
from transformer_mt.cli.streaming import pipe_batches, translate_all
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.interpreter import Hypothesis, Translation
from transformer_mt.decoding.translator import Translator
from transformer_mt.files.lines import count_lines, line_batches

pytestmark = pytest.mark.slow

SEPARATORS = st.text(alphabet="\n\r\t \x0b\x0c\x1c\x85\u2028\u2029\ufeffab", max_size=30)
ANYTHING = st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | SEPARATORS.map(str.encode)


@pytest.fixture(scope="module")
def greedy(tiny_model: Path) -> Translator:
    return Translator.load([tiny_model], DecodingConfig(beam=1, max_length_ratio=0.5, max_length_offset=2))


def write_answers(stream: BinaryIO, translator: Translator | Echo, batches: Iterable[list[str]]) -> None:
    writer = Writer(stream, form_of(scores=False, n_best=1), {})
    for batch in batches:
        for line, translation in zip(batch, translator.translate(batch), strict=True):
            writer.write(line, translation)
    writer.close()


def answers(translator: Translator, batches: Iterable[list[str]]) -> bytes:
    stream = io.BytesIO()
    write_answers(stream, translator, batches)
    return stream.getvalue()


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_no_bar_is_drawn_again_and_again_on_a_dumb_terminal(
    greedy: Translator,
    tmp_path: Path,
    terminal: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "in.txt").write_text("a\n" * 5)
    monkeypatch.setenv("TERM", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    translate_all(greedy, [], tmp_path / "in.txt", tmp_path / "out.txt", "", False, None, False)
    assert (tmp_path / "out.txt").read_text().count("\n") == 5
    assert ("5/5" in capsys.readouterr().err) == (terminal == "xterm")


class Echo:
    """Answers each line with itself."""

    def translate(self, lines: Iterable[str]) -> Iterator[Translation]:
        return (Translation((), (Hypothesis(line, (), 0.0),)) for line in lines)


def piped(data: bytes) -> Iterable[list[str]]:
    reading, writing = os.pipe()
    os.write(writing, data)  # so few bytes fit into a pipe
    os.close(writing)
    try:
        yield from pipe_batches(reading, 2048, warn=lambda number: None)
    finally:
        os.close(reading)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=ANYTHING)
@example(data=b"a word " * 40 + b"\r\n\xff\n\n\xe2\x80\xa8")  # longer than the model reads, and not UTF-8
def test_as_many_lines_out_as_in(greedy: Translator, tmp_path: Path, data: bytes) -> None:
    lines = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    out = answers(greedy, piped(data))
    assert out.count(b"\n") == len(out.decode().splitlines()) == lines  # and no other line separator
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # refused in a file, with the line number
    file = tmp_path / "in.txt"
    file.write_bytes(data)
    assert count_lines(file) == lines
    assert answers(greedy, line_batches(file, 2048)) == out


def test_a_long_file_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    """Nine megabytes in less than three: only a few thousand lines are in memory."""
    file = tmp_path / "in.txt"
    with file.open("w") as stream:
        stream.writelines(f"{number:0299}\n" for number in range(30_000))
    tracemalloc.start()
    try:
        with (tmp_path / "out.txt").open("wb") as stream_out:
            write_answers(stream_out, Echo(), line_batches(file, 2048))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out.txt").read_bytes() == file.read_bytes()
    assert peak < 3 * 2**20


def test_a_compressed_file_of_another_system_is_read_as_its_text(tmp_path: Path) -> None:
    file = tmp_path / "in.txt.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbfeins\r\nzwei\r\n\r\ndrei"))
    assert count_lines(file) == 4
    assert [line for batch in line_batches(file, 2048) for line in batch] == ["eins", "zwei", "", "drei"]
