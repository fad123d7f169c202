"""JSON files with a list of objects: read one by one, in little memory, with the place of what is wrong."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.growth import LINEAR, assert_grows
from transformer_mt.corpora import json_files
from transformer_mt.corpora.json_files import JsonCorpus, objects_in
from transformer_mt.errors import TmtError
from transformer_mt.files import lines


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ITEMS: list[Any] = [
    {"de": "ein Haus", "en": "a house", "n": 12},
    {"de": 'mit "Anführung" und \\', "en": "with {[,:]}"},
    {"de": "über\nzwei Zeilen", "en": "\u2028 and 😀"},
    {"de": "", "en": None, "more": {"list": [1, [2, {}]], "none": []}},
]


def _file(text: str, encoding: str = "utf-8") -> Path:
    file = Path("a.json")
    file.write_bytes(text.encode(encoding))
    return file


def _error(text: str, **options: Any) -> TmtError:
    with pytest.raises(TmtError) as caught:
        list(objects_in(_file(text), **options))
    return caught.value


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("place", ["alone", "under a key", "after others", "before others"])
def test_the_objects_are_those_that_json_reads(
    monkeypatch: pytest.MonkeyPatch, piece: int, indent: int | None, ascii_only: bool, place: str
) -> None:
    monkeypatch.setattr(lines, "_PIECE", piece)
    others = {"name": "a [corpus] {of} pairs", "sizes": [1, 2], "empty": [], "deep": {"data": [{"no": "pair"}]}}
    content = {
        "alone": ITEMS,
        "under a key": {"data": ITEMS},
        "after others": {**others, "data": ITEMS},
        "before others": {"data": ITEMS, **others, "last": 3.5e3},
    }[place]
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    for space in ("", " \r\n\t"):
        assert list(objects_in(_file(space + text + space))) == ITEMS
    assert list(objects_in(_file("\ufeff" + text))) == ITEMS
    if place != "alone":
        assert list(objects_in(_file(text), key="data")) == ITEMS


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp949", "utf-8-sig"])
def test_encodings(encoding: str) -> None:
    items = [{"ko": "하나", "en": "one"}] * 3
    file = _file(json.dumps(items, ensure_ascii=False), encoding)
    assert list(objects_in(file, encoding)) == items


def test_every_beginning_of_a_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A download that broke off loses no pair in silence."""
    text = json.dumps({"n": 1, "data": ITEMS}, indent=1)
    for piece in (1 << 16, 5):
        monkeypatch.setattr(lines, "_PIECE", piece)
        for end in range(1, len(text)):
            error = _error(text[:end])
            assert error.place.startswith("a.json:")
            assert "invalid JSON" in error.message


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[{"de": "a"},\n {"de" "b"}]', 2, "Expecting ':' delimiter at character 8"),
        ('[{"de": "a"}\n\n  {"de": "b"}]', 3, "Expecting ',' delimiter at character 3"),
        ('[{"de": "a"},\n]', 2, "Expecting value at character 1"),
        ('{"data": [{"de": "a"}],\n}', 2, "Expecting property name"),
        ('{"data": [{"de": "a"}]}\n{"data": [{"de": "a"}]}', 2, "Extra data at character 1"),
        ('[{"de": "a"}]]', 1, "Extra data at character 14"),
        ('[{"de": "a\tb"}]', 1, "Invalid control character at character 11"),
        ('[{"de": "a]', 1, "Unterminated string at character 9"),
        ("[" + "[" * 100_000, 1, "nested too deeply"),
        ('[{"de": ' + "1" * 5_000 + "}]", 1, "a number with thousands of digits"),
        ("{'data': []}", 1, "Expecting property name"),
        ('{"data" []}', 1, "Expecting ':' delimiter"),
    ],
)
def test_what_is_not_json_is_an_error_with_its_line(
    monkeypatch: pytest.MonkeyPatch, text: str, line: int, said: str
) -> None:
    for piece in (1 << 16, 3):
        monkeypatch.setattr(lines, "_PIECE", piece)
        error = _error(text)
        assert error.place == f"a.json:{line}"
        assert said in error.message


@pytest.mark.parametrize("text", ["3", '"text"', "{}", '{"a": {"b": [{"de": "x"}]}}', '{"a": [1, 2]}'])
def test_a_file_without_a_list_of_objects(text: str) -> None:
    error = _error(text)
    assert error.message == "this JSON file has no list of pairs"
    assert "kind: jsonl" in error.remedy


def test_several_values_are_told() -> None:
    for text in ('{"de": "x"}\n{"de": "y"}', '{"a": 1} [2]'):
        assert _error(text).message == "this JSON file has several values, one after the other"


def test_two_lists_are_an_error_and_a_key_chooses_one() -> None:
    text = json.dumps({"train": ITEMS, "names": ["A"], "test": ITEMS[:1]})
    error = _error(text)
    assert "several lists of objects: train | test" in error.message
    assert "list_key: train" in error.remedy
    assert list(objects_in(_file(text), key="train")) == ITEMS
    assert list(objects_in(_file(text), key="test")) == ITEMS[:1]
    assert "under the key dev" in _error(text, key="dev").remedy


def test_a_key_that_occurs_twice_and_the_hint_for_several_lists() -> None:
    items = json.dumps(ITEMS)
    error = _error(f'{{"data": {items}, "data": {items}}}', key="data")
    assert (error.message, "of its own" in error.remedy) == ("this JSON file has the key 'data' twice", True)
    assert "list_key: data" in _error(json.dumps({"people": [{"name": "A"}], "data": ITEMS})).remedy


def test_a_value_that_is_too_long_is_not_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "LONGEST", 1_000)
    monkeypatch.setattr(lines, "_PIECE", 500)
    error = _error(json.dumps({"n": 1, "data": {"list": ITEMS * 100}}))
    assert error.message == "a value has more than 1,000 characters"
    assert "jq" in error.remedy


def test_bytes_in_another_encoding_are_named_with_their_line() -> None:
    Path("a.json").write_bytes(b'[{"de": "ein"},\n {"de": "sch\xf6n"}]')
    with pytest.raises(TmtError) as caught:
        list(objects_in(Path("a.json")))
    assert caught.value.place == "a.json:2"
    assert "not UTF-8: byte 0xf6 at position 13" in caught.value.message
    assert "encoding: cp1252" in caught.value.remedy


def test_the_line_of_a_mistake_in_utf_16(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["ein Satz\ta sentence"] * 3_000
    content = "\n".join(rows).encode("utf-16")
    for piece in (1 << 16, 999):
        monkeypatch.setattr(lines, "_PIECE", piece)
        place = 2 + len("\n".join(rows[:2_000]).encode("utf-16-le"))
        Path("a.tsv").write_bytes(content[:place] + b"\x00\xdc" + content[place:])
        with pytest.raises(TmtError) as caught:
            list(lines.read_lines(Path("a.tsv"), "utf-16"))
        assert caught.value.place == "a.tsv:2000"


def test_white_space_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_PIECE", 1 << 10)

    def work(number: int) -> None:
        assert list(objects_in(_file('{"data": [' + " " * number + '{"de": "x"}]}'))) == [{"de": "x"}]

    assert_grows(work, 200_000, LINEAR)


def test_a_long_list_needs_little_memory_and_an_endless_value_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    item = json.dumps({"de": "ein Satz " * 20, "en": "a sentence " * 20})
    file = _file(f'{{"data": [{",".join([item] * 20_000)}]}}')  # 8 MiB in one line
    tracemalloc.start()
    assert sum(1 for _ in objects_in(file)) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    monkeypatch.setattr(json_files, "LONGEST", 1 << 17)
    assert "a value has more than" in _error('[{"de": "' + "a" * (1 << 20)).message


def test_pairs_have_the_number_of_their_object_as_place() -> None:
    items = [{"sides": {"de": "eins", "en": 1}}, {"sides": {"de": None, "en": "two"}}]
    _file(json.dumps({"pairs": items}))
    columns = {"source_column": "sides.de", "target_column": "sides.en"}
    options = JsonCorpus.Options.model_validate({"kind": "json", "files": "a.json", "list_key": "pairs", **columns})
    corpus = JsonCorpus(options, "de", "en")
    assert list(corpus.read("all")) == [("eins", "1", "a.json:1"), ("", "two", "a.json:2")]
    _file(json.dumps([*items, ["no object"]]))
    options = options.model_copy(update={"list_key": None})
    with pytest.raises(TmtError, match="expected an object with the key 'sides'") as caught:
        list(JsonCorpus(options, "de", "en").read("all"))
    assert caught.value.place == "a.json:3"
