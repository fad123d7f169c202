"""Parallel files and tables: what is read, in which order, and the errors for bad files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.data import OneCorpus
from transformer_mt.corpora.base import Corpus, Pair
from transformer_mt.errors import TmtError

PAIRS = [("eins", "one"), ("zwei", "two"), ("drei", "three")]


def _corpus(source: str = "de", target: str = "en", **config: Any) -> Corpus:
    options = TypeAdapter(OneCorpus).validate_python(config)
    return options.corpus(options, source, target)


def _sides(corpus: Corpus, split: str = "all") -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in corpus.read(split)]


def _error(corpus: Corpus, split: str = "all") -> TmtError:
    with pytest.raises(TmtError) as caught:
        list(corpus.read(split))
    return caught.value


def _file(folder: Path, name: str, text: str) -> str:
    content = text.encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(folder / name)


def _text_pair(folder: Path, name: str, pairs: list[tuple[str, str]] = PAIRS) -> dict[str, str]:
    sides = {"source": [source for source, _ in pairs], "target": [target for _, target in pairs]}
    return {side: _file(folder, f"{name}.{side}.gz", "\n".join(lines) + "\n") for side, lines in sides.items()}


def _jsonl(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# Parallel files


def test_files_to_split_are_read_whole_with_their_places(tmp_path: Path) -> None:
    one, two = _text_pair(tmp_path, "one"), _text_pair(tmp_path, "two", [("vier", "four")])
    corpus = _corpus(kind="text", files=[one, two], split={"validation": 2, "test": 1, "seed": 5})
    assert corpus.splits() == ("all",)
    assert corpus.split_config is not None
    assert corpus.split_config.seed == 5
    assert _sides(corpus) == [*PAIRS, ("vier", "four")]
    assert [pair.place for pair in corpus.read("all")] == [
        *(f"{one['source']}:{line}" for line in (1, 2, 3)),
        f"{two['source']}:1",
    ]


def test_files_of_a_split_are_read_only_for_that_split(tmp_path: Path) -> None:
    names = ("train", "validation", "old", "new")
    parts = {name: _text_pair(tmp_path, name, [(name, name.upper())]) for name in names}
    corpus = _corpus(
        kind="text",
        train=parts["train"],
        validation=parts["validation"],
        test={name: parts[name] for name in ("old", "new")},
    )
    assert corpus.split_config is None
    assert corpus.splits() == names
    assert [_sides(corpus, name) for name in names] == [[(name, name.upper())] for name in names]
    assert corpus.files() == [Path(file) for part in parts.values() for file in part.values()]


def test_beside_test_sets_only_validation_is_taken_from_the_other_files(workshop: Any, tmp_path: Path) -> None:
    names = ("one", "two", "news")
    files = {name: _text_pair(tmp_path, name, workshop.numbered(30, 100 * place)) for place, name in enumerate(names)}
    corpus = {"kind": "text", "files": [files["one"], files["two"]], "test": {"news": files["news"]}}
    for split, validation in (({}, 6), ({"split": {"validation": 9}}, 9), ({"split": {"test": 0}}, 6)):
        prepared = workshop.prepare({**corpus, **split})
        assert prepared.manifest.splits == {"train": 60 - validation, "validation": validation, "news": 30}
        assert list(zip(*prepared.raw("news"), strict=True)) == workshop.numbered(30, 200)


@pytest.mark.parametrize(("n_source", "n_target"), [(3, 2), (2, 3), (1_000, 1)])
def test_files_of_different_lengths_are_reported_with_both_lengths(
    tmp_path: Path, n_source: int, n_target: int
) -> None:
    files = {"source": _file(tmp_path, "a", "x\n" * n_source), "target": _file(tmp_path, "b", "y\n" * n_target)}
    error = _error(_corpus(kind="text", files=files))
    assert f"{files['source']} has {n_source:,} lines" in error.message
    assert f"{files['target']} has {n_target:,}" in error.message
    shorter = files["source"] if n_source < n_target else files["target"]
    assert error.place == f"{shorter}:{min(n_source, n_target)}"


def test_empty_lines_keep_their_place_in_the_alignment(tmp_path: Path) -> None:
    files = {"source": _file(tmp_path, "a", "x\n\nz"), "target": _file(tmp_path, "b", "1\n2\n3\n")}
    assert _sides(_corpus(kind="text", files=files)) == [("x", "1"), ("", "2"), ("z", "3")]


def test_a_missing_file_is_reported_before_anything_is_read(tmp_path: Path) -> None:
    files = _text_pair(tmp_path, "one")
    corpus = _corpus(kind="text", files=[files, {**files, "target": str(tmp_path / "gone.en")}])
    with pytest.raises(TmtError, match="no such file") as caught:
        corpus.fetch()
    assert caught.value.place == str(tmp_path / "gone.en")


@pytest.mark.parametrize(
    "wrong",
    [
        {"files": "a.tsv", "test": "b.tsv", "split": {"test": 0.1}},
        {"files": "a.tsv", "validation": "b.tsv"},
        {"train": "a.tsv", "validation": "b.tsv", "test": {"train": "c.tsv"}},
        {"train": "a.tsv", "validation": "b.tsv", "test": {"../up": "c.tsv"}},
        {},
    ],
)
def test_splits_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _corpus(kind="tsv", **wrong)


# Tables


def _table(folder: Path, kind: str, rows: list[list[str]]) -> str:
    separator = {"tsv": "\t", "csv": ","}[kind]
    return _file(folder, f"table.{kind}", "".join(separator.join(row) + "\n" for row in rows))


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_columns_by_number_need_no_header(tmp_path: Path, kind: str) -> None:
    rows = [[target, "note", source] for source, target in PAIRS]
    corpus = _corpus(kind=kind, files=_table(tmp_path, kind, rows), source_column=2, target_column=0)
    assert _sides(corpus) == PAIRS
    assert [pair.place.rsplit(":")[-1] for pair in corpus.read("all")] == ["1", "2", "3"]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
@pytest.mark.parametrize("columns", [("German", "English"), ("German", 2)])
def test_a_column_by_name_means_a_header(tmp_path: Path, kind: str, columns: tuple[str | int, str | int]) -> None:
    rows = [["German", "note", " English "], *([source, "", target] for source, target in PAIRS)]
    file = _table(tmp_path, kind, rows)
    corpus = _corpus(kind=kind, files=file, source_column=columns[0], target_column=columns[1])
    assert _sides(corpus) == PAIRS
    assert next(corpus.read("all")).place == f"{file}:2"


def test_a_name_in_decomposed_letters_is_the_same_name(tmp_path: Path) -> None:
    file = _table(tmp_path, "csv", [["Satz", "U\u0308bersetzung"], ["eins", "one"]])
    assert _sides(_corpus(kind="csv", files=file, source_column="Satz", target_column="Übersetzung")) == PAIRS[:1]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path: Path, kind: str) -> None:
    file = _table(tmp_path, kind, [["German", "English"], ["a", "b"]])
    error = _error(_corpus(kind=kind, files=file, source_column="Germann", target_column="English"))
    assert error.place == f"{file}:1"
    assert "did you mean 'German'?" in error.message
    assert "German | English" in error.remedy


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_name_of_two_columns_is_not_the_first_of_them(tmp_path: Path, kind: str) -> None:
    file = _table(tmp_path, kind, [["id", "text", " text"], ["1", "eins", "one"]])
    error = _error(_corpus(kind=kind, files=file, source_column="id", target_column="text"))
    assert (error.place, error.message) == (f"{file}:1", "2 columns have the name 'text'")
    assert error.remedy.endswith("1, 2")
    assert _sides(_corpus(kind=kind, files=file, source_column=1, target_column=2)) == [("eins", "one")]


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl", "xlsx", "parquet"])
def test_one_column_for_both_sides_is_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="source_column and target_column are both 'text'"):
        _corpus(kind=kind, files="a", source_column="text", target_column="text")


def test_a_name_and_a_number_of_one_column_are_refused(tmp_path: Path) -> None:
    file = _table(tmp_path, "tsv", [["German", "English"], ["eins", "one"]])
    error = _error(_corpus(kind="tsv", files=file, source_column="English", target_column=1))
    assert "both column 1" in error.message


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_a_row_with_too_few_columns_is_reported_with_its_line(tmp_path: Path, kind: str) -> None:
    file = _table(tmp_path, kind, [["a", "b"], ["c", "d"], ["alone"]])
    error = _error(_corpus(kind=kind, files=file))
    assert error.place == f"{file}:3"
    assert "1 column" in error.message
    assert "alone" in error.remedy


def test_quotes_are_text_in_tsv_and_quotes_in_csv(tmp_path: Path) -> None:
    rows = [['"say', 'yes"'], ["a", 'b"c']]
    assert _sides(_corpus(kind="tsv", files=_table(tmp_path, "tsv", rows))) == [tuple(row) for row in rows]
    file = _file(tmp_path, "quoted.csv", '"one, two","say ""yes"""\n\n"two\nlines",b\nlast,c\n')
    corpus = _corpus(kind="csv", files=file)
    assert list(corpus.read("all")) == [
        Pair("one, two", 'say "yes"', f"{file}:1"),
        Pair("two\nlines", "b", f"{file}:3"),
        Pair("last", "c", f"{file}:5"),
    ]


@pytest.mark.parametrize("row", ['"never closed,b', '"closed" too early,b'])
def test_wrong_quoting_is_reported_at_the_first_line_of_the_row(tmp_path: Path, row: str) -> None:
    file = _file(tmp_path, "broken.csv", f'a,b\n"two\nlines",b\n{row}\nc,d\n')
    error = _error(_corpus(kind="csv", files=file))
    assert error.place == f"{file}:4"
    assert "wrong quoting" in error.message


@pytest.mark.parametrize(
    ("row", "found"), [("Hallo 3, Welt,Hello 3, world", 4), ('"rot, x", "red, y"', 3)], ids=["no quotes", "a space"]
)
def test_a_sentence_with_unquoted_commas_is_reported(tmp_path: Path, row: str, found: int) -> None:
    file = _file(tmp_path, "cut.csv", f"de,en\neins,one\n\n{row}\n")
    error = _error(_corpus(kind="csv", files=file, source_column="de", target_column="en"))
    assert error.place == f"{file}:4"
    assert f"the row has {found} columns, but the first row has 2" in error.message


def test_csv_as_excel_and_others_write_it(tmp_path: Path) -> None:
    names = {"kind": "csv", "source_column": "de", "target_column": "en"}
    file = _file(tmp_path, "sep.csv", "sep=;\r\nde;en\r\neins\rund;one\r\nzwei;two\r\n")
    corpus = _corpus(files=file, delimiter=";", **names)
    assert list(corpus.read("all")) == [Pair("eins und", "one", f"{file}:3"), Pair("zwei", "two", f"{file}:4")]
    for head in ("de, en", '"de", "en"'):
        file = _file(tmp_path, "space.csv", f'{head}\n"eins, zwei", "one, two"\n')
        assert _sides(_corpus(files=file, **names)) == [("eins, zwei", "one, two")]
    file = _file(tmp_path, "plain.csv", 'de,en\neins, "one"\n')
    assert _sides(_corpus(files=file, **names)) == [("eins", ' "one"')]
    error = _error(_corpus(files=_file(tmp_path, "b.csv", 'sep=,\nde,en\n"eins,one\n'), **names))
    assert error.place.endswith("b.csv:3")


@pytest.mark.parametrize(("kind", "mark"), [("tsv", "\t"), ("csv", ",")])
def test_empty_names_at_the_end_of_a_header_do_not_count(tmp_path: Path, kind: str, mark: str) -> None:
    text = f"de{mark}en{mark}{mark}\neins{mark}one\nzwei{mark}two{mark}note\n"
    named = _corpus(kind=kind, files=_file(tmp_path, "a", text), source_column="de", target_column="en")
    assert _sides(named) == PAIRS[:2]
    text = f"note{mark}de{mark}en\n{mark}eins{mark}one\nzwei{mark}two\n"
    error = _error(_corpus(kind=kind, files=_file(tmp_path, "b", text), source_column="de", target_column="en"))
    assert (error.place, "write their separators" in error.remedy) == (str(tmp_path / "b:3"), True)


@pytest.mark.parametrize(("kind", "mark"), [("tsv", "\t"), ("csv", ",")])
def test_rows_with_another_number_of_columns_are_skipped_and_reported(tmp_path: Path, kind: str, mark: str) -> None:
    """A separator inside a sentence would cut the pair in its middle; a line break inside it leaves too few columns."""
    rows = [f"Satz {number}{mark}line {number}" for number in range(100)]
    rows[40], rows[60], rows[61] = f"ein Satz,{mark}zerteilt{mark}a sentence", "ein Satz", f"zwei{mark}two{mark}{mark}"
    file = _file(tmp_path, f"a.{kind}", "\n".join([f"de{mark}en", *rows]))
    corpus = _corpus(kind=kind, files=file, source_column="de", target_column="en")
    for _ in range(2):  # each reading reports them again
        pairs = _sides(corpus)
        assert len(pairs) == 98
        assert pairs[59:61] == [("zwei", "two"), ("Satz 62", "line 62")], "empty cells at the end are harmless"
        (skipped,) = corpus.skipped()
        assert (skipped.place, skipped.rows, skipped.first) == (file, 2, (f"{file}:42", f"{file}:62"))


def test_many_rows_with_another_number_of_columns_are_refused_at_the_first(tmp_path: Path) -> None:
    rows = ["eins\tone", "zwei\ttwo\tchecked", *["drei\tthree"] * 18, "vier\tfour\tchecked"]
    error = _error(_corpus(kind="tsv", files=_file(tmp_path, "a.tsv", "\n".join(rows))))
    assert error.place.endswith("a.tsv:2")
    assert error.message == (
        "the row has 3 columns, but the first row has 2; 2 of 21 rows have another number of columns"
    )


@pytest.mark.parametrize("header", ["German\tEnglish", "de\ten", "원문\t번역문", "source_sentence\ttarget_sentence"])
def test_a_header_that_would_be_read_as_a_pair_is_skipped_and_reported(tmp_path: Path, header: str) -> None:
    file = _file(tmp_path, "a.tsv", f"{header}\nDeutsch\tGerman\neins\tone\n")
    corpus = _corpus(kind="tsv", files=file)
    assert _sides(corpus) == [("Deutsch", "German"), ("eins", "one")]
    (skipped,) = corpus.skipped()
    assert (skipped.place, skipped.rows) == (f"{file}:1", 1)
    assert "source_column" in skipped.remedy


def test_a_first_row_of_words_is_a_pair(tmp_path: Path) -> None:
    file = _file(tmp_path, "a.tsv", "Nein\tNo\nes\tit\nDeutsch lernen\tlearn German\n")
    assert len(_sides(_corpus(kind="tsv", files=file))) == 3


@pytest.mark.parametrize(
    ("kind", "delimiter", "line", "keys"),
    [
        ("csv", ",", "de;en", 'kind: csv and delimiter: ";"'),
        ("csv", ";", "de,en", "kind: csv "),
        ("csv", ",", "de\ten", "kind: tsv "),
        ("tsv", None, "de,en", "kind: csv "),
    ],
)
@pytest.mark.parametrize("columns", [(0, 1), ("de", "en")], ids=["numbers", "names"])
def test_a_wrong_separator_gets_the_keys_for_the_right_one(
    tmp_path: Path, kind: str, delimiter: str | None, line: str, keys: str, columns: tuple[int | str, int | str]
) -> None:
    more = {"delimiter": delimiter} if delimiter else {}
    file = _file(tmp_path, f"a.{kind}", f"{line}\n" * 3)
    error = _error(_corpus(kind=kind, files=file, source_column=columns[0], target_column=columns[1], **more))
    assert keys in error.remedy


def test_the_columns_of_nested_objects_are_listed_with_dots(tmp_path: Path) -> None:
    file = _file(tmp_path, "a.jsonl", '{"id": 1, "translation": {"de": "eins", "en": "one"}}\n')
    error = _error(_corpus(kind="jsonl", files=file))
    assert error.remedy == "Columns found: id | translation.de | translation.en"


def test_a_file_can_have_a_name_that_looks_like_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _file(tmp_path, "~nobody-here.tsv", "eins\tone\n")
    assert _sides(_corpus(kind="tsv", files="~nobody-here.tsv")) == [("eins", "one")]


def test_csv_with_another_delimiter_and_windows_line_ends(tmp_path: Path) -> None:
    file = _file(tmp_path, "a.csv", "\ufeffde;en\r\neins;one\r\n")
    corpus = _corpus(kind="csv", files=file, delimiter=";", source_column="de", target_column="en")
    assert _sides(corpus) == [("eins", "one")]


# JSON lines


def test_jsonl_reaches_into_objects(tmp_path: Path) -> None:
    rows = [{"translation": {"de": source, "en": target}} for source, target in PAIRS]
    file = _file(tmp_path, "a.jsonl.gz", _jsonl(rows) + "\n")
    corpus = _corpus(kind="jsonl", files=file, source_column="translation.de", target_column="translation.en")
    assert _sides(corpus) == PAIRS


def test_jsonl_prefers_a_key_with_a_dot_in_its_name(tmp_path: Path) -> None:
    file = _file(tmp_path, "a.jsonl", _jsonl([{"a.b": "dotted", "a": {"b": "nested"}, "target": 7}]))
    assert _sides(_corpus(kind="jsonl", files=file, source_column="a.b")) == [("dotted", "7")]


def test_jsonl_null_is_an_empty_side(tmp_path: Path) -> None:
    file = _file(tmp_path, "a.jsonl", _jsonl([{"source": None, "target": "x"}, {"source": float("nan"), "target": 1}]))
    assert _sides(_corpus(kind="jsonl", files=file)) == [("", "x"), ("", "1")]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"source": "a", "target": ', "invalid JSON"),
        ('{"source": "a", "target": "b"} {}', "invalid JSON"),
        ('["a", "b"]', "a list"),
        ('{"source": "a", "targt": "b"}', "did you mean 'targt'?"),
        ('{"source": "a", "target": ["b"]}', "a list"),
        ("[" * 100_000, "invalid JSON"),
        ('{"source": ' + "1" * 5_000 + "}", "invalid JSON: a number with thousands of digits"),
    ],
)
def test_jsonl_lines_without_a_pair_are_reported_with_their_line(tmp_path: Path, line: str, what: str) -> None:
    file = _file(tmp_path, "a.jsonl", _jsonl([{"source": "a", "target": "b"}]) + line + "\n")
    error = _error(_corpus(kind="jsonl", files=file))
    assert error.place == f"{file}:2"
    assert what in error.message


# The phrasebook


def test_the_phrasebook_gives_the_configured_numbers_of_pairs_without_files() -> None:
    corpus = _corpus(source="ko", kind="phrasebook", train=30, validation=5, test=7)
    corpus.fetch()
    assert corpus.files() == []
    assert corpus.split_config is None
    counts = {split: len(list(corpus.read(split))) for split in corpus.splits()}
    assert counts == {"train": 30, "validation": 5, "test": 7}
    assert list(corpus.read("train")) == list(corpus.read("train"))


# Real corpora


@pytest.mark.corpora
def test_openly_licensed_korean_corpora_are_read(corpora: Path) -> None:
    folder = corpora / "ko-en"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    tatoeba = _corpus("ko", kind="tsv", files=str(folder / "tatoeba_en-ko.tsv"), source_column=1, target_column=0)
    assert len(_sides(tatoeba)) == 3_798
    parts = {
        split: {side: str(folder / f"jhe.{name}.{language}") for side, language in (("source", "ko"), ("target", "en"))}
        for split, name in (("train", "dev"), ("validation", "eval"))
    }
    jhe = _corpus("ko", kind="text", **parts)
    assert {split: len(_sides(jhe, split)) for split in jhe.splits()} == {"train": 720, "validation": 720}
