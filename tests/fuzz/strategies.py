"""Hypothesis strategies for hostile files: a valid file with some bytes changed, or a structure with odd values in it.

A case is the name of a file in a folder, and its new content.
"""

from __future__ import annotations

import copy
import io
import json
import math
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import strategies as st

Case = tuple[str, bytes]

HUGE = 10**18
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 255, 1 << 31, 1 << 63, HUGE, 10**30, -HUGE, 0.5, -0.0, 1e308, 1e-308),
    *(float("nan"), float("inf"), "", " ", "x", "x" * 3000, "\ud800", "\x00", "\u2028", "../..", "/dev/zero", "~"),
    *("%s", "{0}", "<unk>", "</s>", "nan", "null", "일이삼", "a.b", [], {}, [[]], [None], {"": 0}, {"kind": "spacy"}),
    ["x"] * 50,
]
SHAPES = [[], [0], [1], [1] * 70, [1] * 9, [0, HUGE], [HUGE, 0], [1 << 40, 1 << 40], [3, 3], [HUGE]]
WIDTHS = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "BOOL": 1, "U8": 1, "F8_E4M3": 1, "C64": 8}
SNIPPETS = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\r", b"\r\n", b"\t", b",", b'"', b"'", b"\\", b"{"),
    *(b"[", b"]", b"}", b":", b": ", b"- ", b"&a ", b"*a", b"<<: ", b"!!int ", b"!!python/object:os.system ", b"---\n"),
    *(b"? ", b"|", b">", b"<", b"</", b"&amp;", b"&#0;", b"&#x110000;", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"<!--"),
    *(b"]]>", b"\xed\xa0\x80", b"\\ud800", b"1e999", b"-1", b"99999999999999999999", b"NaN", b"null", b"true", b"0x"),
    *(b"[" * 60, b"{'a':" * 60, "\u2028".encode(), "\u202e".encode(), "가".encode(), "ﬁ".encode(), b"\x1b[31m", b"%"),
    *(b"$", b"`", b"#", b"|", b"~~~"),
]

CELLS = [b' r="999999999"', b' r="XFD1"', b' r="ZZZZ9"', b' t="s"', b' t="d"', b"<c/>", b"<row/>", b"<v>1e999</v>"]


def numbers_up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, max(0, most))


@st.composite
def mutated(draw: Callable[..., Any], original: bytes, snippets: list[bytes] = SNIPPETS) -> bytes:
    """The bytes with a few changes: cut, repeated, replaced, inserted or flipped."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(numbers_up_to(len(data)))
        length = draw(st.sampled_from([0, 1, 2, 4, 8, 40, 400, 1 << 20]))
        kind = draw(st.sampled_from(["insert", "replace", "cut", "repeat", "flip", "truncate", "random"]))
        if kind == "insert":
            data[start:start] = draw(st.sampled_from(snippets)) * draw(st.sampled_from([1, 1, 2, 100]))
        elif kind == "replace":
            data[start : start + length] = draw(st.sampled_from(snippets))
        elif kind == "cut":
            del data[start : start + length]
        elif kind == "repeat":
            part = bytes(data[start : start + min(length, 400)])
            data[start:start] = part * draw(st.sampled_from([1, 3, 30]))
        elif kind == "flip" and start < len(data):
            data[start] ^= 1 << draw(st.integers(0, 7))
        elif kind == "truncate":
            del data[start:]
        elif kind == "random":
            data[start : start + length] = draw(st.binary(max_size=16))
    return bytes(data)


def odd_values() -> st.SearchStrategy[Any]:
    """Odd scalars, and structures of them."""
    leaves = st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=8)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=6,
    )


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = (
        list(value) if isinstance(value, dict) else list(range(min(len(value), 8))) if isinstance(value, list) else []
    )
    return [path, *(one for key in keys for one in _paths(value[key], (*path, key)))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def changed_structure(draw: Callable[..., Any], original: Any) -> Any:
    """The value with a few places replaced by odd values, removed, renamed, or nested."""
    value = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_paths(value)))
        if not path:
            continue
        parent, key = _at(value, path[:-1]), path[-1]
        kind = draw(st.sampled_from(["odd", "odd", "odd", "remove", "add", "swap", "nest"]))
        if kind == "odd":
            parent[key] = copy.deepcopy(draw(odd_values()))
        elif kind == "remove":
            del parent[key]
        elif kind == "add" and isinstance(parent, dict):
            name = draw(
                st.sampled_from([f"{key}s", "", "kind", "\ud800", "a.b", str(key).upper()]) | st.text(max_size=8)
            )
            parent[name] = copy.deepcopy(draw(odd_values()))
        elif kind == "swap":
            parent[key] = copy.deepcopy(_at(value, draw(st.sampled_from(_paths(value)))))
        elif kind == "nest":
            for _ in range(draw(st.sampled_from([1, 40, 150]))):
                parent[key] = draw(st.sampled_from([[parent[key]], {"a": parent[key]}]))
    return value


def json_bytes(original: bytes) -> st.SearchStrategy[bytes]:
    """JSON with changed values, or with changed bytes."""
    return mutated(original) | changed_structure(json.loads(original)).map(lambda value: json.dumps(value).encode())


def yaml_bytes(original: bytes) -> st.SearchStrategy[bytes]:
    """YAML with changed values (written as JSON, which is YAML), or with changed bytes."""
    return mutated(original) | changed_structure(yaml.safe_load(original)).map(lambda value: json.dumps(value).encode())


@st.composite
def zip_bytes(draw: Callable[..., Any], original: bytes) -> bytes:
    """A .zip file with one member changed, or with changed bytes outside of any member."""
    if draw(st.integers(0, 3)) == 0:
        return draw(mutated(original))
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(original)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = draw(st.sampled_from(names))
        for name in names:
            new.writestr(name, draw(mutated(old.read(name), SNIPPETS + CELLS)) if name == chosen else old.read(name))
    return made.getvalue()


@st.composite
def safetensors_bytes(draw: Callable[..., Any], original: bytes) -> bytes:
    """A safetensors file with a changed header, whose length is right; or with changed bytes."""
    if draw(st.integers(0, 2)) == 0:
        return draw(mutated(original))
    (length,) = struct.unpack("<Q", original[:8])
    header, data = json.loads(original[8 : 8 + length]), original[8 + length :]
    if draw(st.booleans()):
        header = draw(changed_structure(header))
    else:  # consistent in itself: only the shape of a tensor and the end of the data change
        name = draw(st.sampled_from(sorted(one for one in header if one != "__metadata__")))
        shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(list(WIDTHS)))
        end, size = len(data), math.prod(shape) * WIDTHS[dtype]
        header["x" if draw(st.booleans()) else name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [end, end + size],
        }
        data += bytes(max(0, min(size, 1 << 12)))
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


_FIELD_PATHS = st.lists(st.integers(1, 60), min_size=1, max_size=3)  # the inner field first


@st.composite
def sentencepiece_bytes(draw: Callable[..., Any], original: bytes) -> bytes:
    """A SentencePiece model with more fields at its end, which protocol buffers merge; or with changed bytes."""
    if draw(st.integers(0, 2)) == 0:
        return draw(mutated(original))
    for _ in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from([b"", b"\xff\xfe", b"x" * 100, b"x" * 100_000, b"\x00" * 1028]) | st.binary())
        for field in draw(st.sampled_from([[1, 1], [44, 2], [2, 3], [2, 5], [3], [35, 2]]) | _FIELD_PATHS):
            content = _number(field << 3 | 2) + _number(len(content)) + content
        original += content
    return original


def _number(value: int) -> bytes:
    """A number as protocol buffers write it: 7 bits in each byte, the lowest first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _number(value >> 7)


def sentences() -> st.SearchStrategy[bytes]:
    """Lines of text: odd characters, long words, marks, markup."""
    pieces = [
        *("a", "the cat", "고양이", "<unk>", "</s>", "<pad>", "▁", "\u200b", "\u202e", "\ufeff", "\U0001f600", "é"),
        *("e\u0301", "...", "!?", "http://a.b/c?d=e", "{name}", "%d", "1,234.5", "**b**", "`c`", "<b>", "</b>"),
        *("&amp;", "|", "a" * 300, "x " * 100, "\x00", "\x1b[0m", "\u2028", "\x85", "ﬁ", "İ", "ß", "ა", "\U000e0041"),
        *("(", '"', "'", "“", "¿"),
    ]
    text = st.lists(st.sampled_from(pieces) | st.text(max_size=6), max_size=12).map(" ".join)
    return st.lists(text | st.text(max_size=40), min_size=1, max_size=3).map(
        lambda lines: "\n".join(lines).encode("utf-8", "replace")
    )
