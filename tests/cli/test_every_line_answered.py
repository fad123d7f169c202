"""Whatever bytes come in, by pipe or from a file: as many lines go out."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from transformer_mt.cli.answers import Writer, form_of
from transformer_mt.cli.lines import check_file, file_batches, pipe_batches
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.translator import Translator

SEPARATORS = st.text(alphabet="\n\r\t \x0b\x0c\x1c\x85\u2028\u2029\ufeffab", max_size=30)
ANYTHING = st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | SEPARATORS.map(str.encode)


@pytest.fixture(scope="module")
def greedy(tiny_model: Path) -> Translator:
    return Translator.load([tiny_model], DecodingConfig(beam=1, max_length_ratio=0.5, max_length_offset=2))


def answers(translator: Translator, batches: Iterable[list[str]]) -> bytes:
    stream = io.BytesIO()
    writer = Writer(stream, form_of(scores=False, n_best=1), {})
    for batch in batches:
        for line, translation in zip(batch, translator.translate(batch), strict=True):
            writer.write(line, translation)
    writer.close()
    return stream.getvalue()


def piped(data: bytes) -> Iterable[list[str]]:
    reading, writing = os.pipe()
    os.write(writing, data)  # a pipe takes so little at once
    os.close(writing)
    try:
        yield from pipe_batches(reading, warn=lambda number: None)
    finally:
        os.close(reading)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=ANYTHING)
@example(data=b"a word " * 40 + b"\r\n\xff\n\n\xe2\x80\xa8")  # longer than the model reads, and no UTF-8
def test_as_many_lines_out_as_in(greedy: Translator, tmp_path: Path, data: bytes) -> None:
    lines = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    out = answers(greedy, piped(data))
    assert out.count(b"\n") == len(out.decode().splitlines()) == lines  # no other separator either
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # of a file it is refused, by line
    file = tmp_path / "in.txt"
    file.write_bytes(data)
    assert check_file(file) == lines
    assert answers(greedy, file_batches(file)) == out
