"""AI Hub's file formats. Most tests write small files; one reads the real workbooks if they are available."""

from __future__ import annotations

import json
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from transformer_mt.corpora.aihub import AihubCorpus
from transformer_mt.corpora.base import Corpus
from transformer_mt.errors import TmtError
from transformer_mt.files.encodings import BROKEN, MARKED

HEADER = ["SID", "원문", "번역문"]
ROWS = [[1, "하나", "one"], [2, "둘", "two"]]
PAIRS = [("하나", "one"), ("둘", "two")]
NO_FILES = b"PK\5\6" + bytes(18)  # an archive


def _corpus(*files: Path, source: str = "ko", target: str = "en") -> Corpus:
    options = AihubCorpus.Options.model_validate({"kind": "aihub", "files": [str(file) for file in files]})
    return AihubCorpus(options, source, target)


def _sides(corpus: Corpus) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in corpus.read("all")]


def _error(*files: Path) -> TmtError:
    corpus = _corpus(*files)
    with pytest.raises(TmtError) as caught:
        list(corpus.read("all"))
    return caught.value


def _workbook(file: Path, *sheets: list[list[Any]]) -> Path:
    book = Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
    book.save(file)
    return file


def _json(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "header",
    [
        ["SID", "원문", "번역문"],
        ["id", "ko", "en"],
        ["No", "Korean", "ENGLISH"],
        ["번호", " 한국어", "영어 "],
        ["번호", unicodedata.normalize("NFD", "한국어"), "영어  검수"],
    ],
)
def test_columns_are_found_by_their_headers(tmp_path: Path, header: list[str]) -> None:
    file = _workbook(tmp_path / "a.xlsx", [header, *ROWS])
    assert _sides(_corpus(file)) == PAIRS
    assert _sides(_corpus(file, source="en", target="ko")) == [(english, korean) for korean, english in PAIRS]
    assert [pair.place for pair in _corpus(file).read("all")] == [f"{file}:2", f"{file}:3"]


def test_a_header_may_follow_a_title_and_be_on_several_sheets(tmp_path: Path) -> None:
    titled = [["Corpus of 2019"], [], HEADER, ROWS[0]]
    file = _workbook(tmp_path / "a.xlsx", [["About this file"]], titled, [HEADER, ROWS[1]])
    assert _sides(_corpus(file)) == PAIRS
    assert [pair.place for pair in _corpus(file).read("all")] == [f"{file}:4", f"{file}[Sheet3]:2"]


def test_cells_without_text_become_empty_sides_and_numbers_become_text(tmp_path: Path) -> None:
    rows = [[1, None, "one"], [2, "둘"], [3, 3, 2.5]]
    file = _workbook(tmp_path / "a.xlsx", [HEADER, *rows])
    assert _sides(_corpus(file)) == [("", "one"), ("둘", ""), ("3", "2.5")]


def test_a_wrong_size_in_the_sheet_does_not_hide_rows(tmp_path: Path) -> None:
    right, wrong = _workbook(tmp_path / "right.xlsx", [HEADER, *ROWS]), tmp_path / "wrong.xlsx"
    with zipfile.ZipFile(right) as old, zipfile.ZipFile(wrong, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<dimension ref="A1:C3"', b'<dimension ref="A1"'))
    assert wrong.read_bytes() != right.read_bytes()
    assert _sides(_corpus(wrong)) == PAIRS


def test_a_sheet_without_a_header_is_skipped_and_reported(tmp_path: Path) -> None:
    file = _workbook(tmp_path / "a.xlsx", [HEADER, *ROWS], [[3, "셋", "three"], [None], [4, "넷", "four"]], [])
    corpus = _corpus(file)
    for _ in range(2):  # each reading reports it again
        assert _sides(corpus) == PAIRS
        assert [rows[:2] for rows in corpus.skipped()] == [(f"{file}[Sheet2]", 2)]


def test_excel_codes_for_control_characters_and_errors_are_decoded(tmp_path: Path) -> None:
    rows = [[1, "하_x000D_나", "one"], [2, "둘", "#N/A"], [3, "file_x", "_x005F_x000D_"]]
    sides = _sides(_corpus(_workbook(tmp_path / "a.xlsx", [HEADER, *rows])))
    assert sides == [("하\r나", "one"), ("둘", ""), ("file_x", "_x000D_")]


@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"version": 1, "data": items}])
@pytest.mark.parametrize("keys", [("ko", "en"), ("원문", "번역문")])
def test_json_lists(tmp_path: Path, wrap: Any, keys: tuple[str, str]) -> None:
    items = [{"sn": number, keys[0]: korean, keys[1]: english} for number, (korean, english) in enumerate(PAIRS)]
    file = _json(tmp_path / "a.json", wrap(items))
    assert _sides(_corpus(file)) == PAIRS
    assert [pair.place for pair in _corpus(file).read("all")] == [f"{file}:1", f"{file}:2"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949"])
def test_csv_in_the_encodings_of_korean_excel(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text('SID,원문,번역문\r\n1,하나,one\r\n2,"둘","two"\r\n', encoding=encoding, newline="")
    assert _sides(_corpus(file)) == PAIRS


def test_json_in_cp949_is_read_and_another_encoding_gets_a_remedy_that_this_kind_has(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    text = json.dumps([{"ko": korean, "en": english} for korean, english in PAIRS], ensure_ascii=False)
    file.write_text(text, encoding="cp949")
    assert _sides(_corpus(file)) == PAIRS
    file.write_bytes(text.encode("cp949") + b"\xff")
    assert "iconv" in _error(file).remedy
    assert "encoding:" not in _error(file).remedy


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_broken_bytes_are_marked_on_request(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"a.{kind}"
    rows = [{"ko": korean, "en": english} for korean, english in PAIRS * 40]
    rows.insert(1, {"ko": "셋", "en": "thrXee"})
    table = "SID,원문,번역문\n" + "".join(f"{n},{row['ko']},{row['en']}\n" for n, row in enumerate(rows))
    text = table if kind == "csv" else json.dumps(rows, ensure_ascii=False)
    file.write_bytes(text.encode().replace(b"X", b"\xff"))
    corpus = _corpus(file)
    corpus.errors = MARKED
    assert _sides(corpus) == [PAIRS[0], ("셋", f"thr{BROKEN}ee"), *(PAIRS * 40)[1:]]
    assert _error(file).message


def test_a_sentence_with_unquoted_commas_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("title\nSID,원문,번역문\n1,하나,one\n2,둘, 셋,two\n", encoding="utf-8")
    assert _error(file).place == f"{file}:4"


def test_folders_for_training_and_validation(tmp_path: Path) -> None:
    for folder, rows in (("1.Training", ROWS), ("2.Validation", [[3, "셋", "three"]]), ("test", [[4, "넷", "four"]])):
        (tmp_path / folder).mkdir()
        _workbook(tmp_path / folder / "a.xlsx", [HEADER, *rows])
    (tmp_path / "2.Validation" / "b.zip").write_bytes(NO_FILES)
    folders = {split: str(tmp_path / name) for split, name in (("train", "1.Training"), ("validation", "2.Validation"))}
    values = {"kind": "aihub", **folders, "test": {"four": str(tmp_path / "t*" / "*.xlsx")}}
    corpus = AihubCorpus(AihubCorpus.Options.model_validate(values), "ko", "en")
    assert corpus.splits() == ("train", "validation", "four")
    read = {split: [(pair.source, pair.target) for pair in corpus.read(split)] for split in corpus.splits()}
    assert read == {"train": PAIRS, "validation": [("셋", "three")], "four": [("넷", "four")]}
    assert [rows.place for rows in corpus.skipped()] == [str(tmp_path / "2.Validation")]


def test_a_config_is_written_as_before_it_could_have_splits() -> None:
    """So that data which an older version prepared is still that of its config."""
    options = AihubCorpus.Options.model_validate({"kind": "aihub", "files": "data/aihub"})
    assert options.model_dump(mode="json") == {
        "kind": "aihub",
        "weight": 1.0,
        "files": ["data/aihub"],
        "split": {"validation": 0.1, "test": 0.1, "seed": 1},
    }


def test_a_folder_is_read_in_name_order_without_temporary_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    _workbook(tmp_path / "1(2).xlsx", [HEADER, ROWS[1]])
    _workbook(tmp_path / "1(1).xlsx", [HEADER, ROWS[0]])
    _json(tmp_path / "sub" / "3.json", [{"ko": "셋", "en": "three"}])
    (tmp_path / "~$1(1).xlsx").write_bytes(b"lock")
    (tmp_path / "._1(1).xlsx").write_bytes(b"resource fork")
    (tmp_path / "readme.txt").write_text("terms", encoding="utf-8")
    corpus = _corpus(tmp_path)
    assert _sides(corpus) == [*PAIRS, ("셋", "three")]
    assert [file.name for file in corpus.files()] == ["1(1).xlsx", "1(2).xlsx", "3.json"]


def test_links_to_folders_are_followed_and_hidden_folders_are_not_read(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "corpus", tmp_path / "elsewhere"
    for place in (folder / ".hidden", elsewhere):
        place.mkdir(parents=True)
        _workbook(place / "1.xlsx", [HEADER, *ROWS])
    (folder / "Training").symlink_to(elsewhere)
    assert _sides(_corpus(folder)) == PAIRS


def test_json_and_csv_in_archives_are_read_in_place(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b/c.json", json.dumps({"data": [{"ko": "하나", "en": "one"}]}))
        archive.writestr("d.csv", "SID,원문,번역문\n1,둘,two\n".encode("cp949"))
        archive.writestr("readme.txt", "terms")
    corpus = _corpus(tmp_path)
    assert [pair.place for pair in corpus.read("all")] == [f"{tmp_path}/a.zip/b/c.json:1", f"{tmp_path}/a.zip/d.csv:2"]
    assert _sides(corpus) == PAIRS
    assert corpus.files() == [tmp_path / "a.zip"]
    assert corpus.skipped() == []
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as archive:
        archive.write(_workbook(tmp_path / "e.xlsx", [HEADER, [3, "셋", "three"]]), "e.xlsx")
    (tmp_path / "e.xlsx").rename(tmp_path.parent / "e.xlsx")
    corpus = _corpus(tmp_path)
    assert _sides(corpus) == PAIRS
    assert [rows.reason for rows in corpus.skipped()] == ["kind: aihub does not read a.zip"], "its workbook"
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path)
    corpus = _corpus(tmp_path)
    assert sorted(_sides(corpus)) == sorted([*PAIRS, ("셋", "three")]), "each once"
    assert corpus.skipped() == []


def test_objects_may_have_their_keys_in_another_order(tmp_path: Path) -> None:
    items = [{"ko": "하나", "en": "one"}, {"en": "two", "ko": "둘"}]
    assert _sides(_corpus(_json(tmp_path / "a.json", items))) == PAIRS


def test_an_encoding_is_found_behind_a_long_beginning_in_ascii(tmp_path: Path) -> None:
    items = [{"id": "x" * (1 << 17), "ko": "one", "en": "one"}, {"ko": "하나", "en": "one"}]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(items, ensure_ascii=False), encoding="cp949")
    assert _sides(_corpus(file))[1] == ("하나", "one")


def test_folders_inside_an_archive_are_named_as_others(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, (ko, en) in zip(("1.Training/a", "2.Validation/b"), PAIRS, strict=True):
            archive.writestr(f"{name}.json", json.dumps([{"ko": ko, "en": en}]))
    folders = {"train": f"{tmp_path}/a.zip/1.Training", "validation": f"{tmp_path}/a.zip/2.Validation"}
    corpus = AihubCorpus(AihubCorpus.Options.model_validate({"kind": "aihub", **folders}), "ko", "en")
    assert [[(one.source, one.target) for one in corpus.read(split)] for split in corpus.splits()] == [
        PAIRS[:1],
        PAIRS[1:],
    ]
    assert _sides(_corpus(tmp_path / "a.zip")) == PAIRS
    assert "contains no file 'none'" in _error(tmp_path / "a.zip" / "none").message


@pytest.mark.parametrize(
    ("keys", "read"),
    [(("번역문", "최종번역문"), "최종번역문"), (("영어 번역문", "영어 검수"), "영어 검수"), (("mt", "en"), "en")],
)
def test_the_translation_after_its_review_is_read(tmp_path: Path, keys: tuple[str, str], read: str) -> None:
    file = _json(tmp_path / "a.json", [{"한국어": "하나", **{key: key for key in keys}}])
    assert _sides(_corpus(file)) == [("하나", read)]


def test_an_item_that_is_no_object_and_a_value_that_is_no_text_are_named(tmp_path: Path) -> None:
    error = _error(_json(tmp_path / "a.json", [{"ko": "하나", "en": "one"}, ["둘", "two"]]))
    assert (error.message, error.place) == ("this item of the list is no object", f"{tmp_path}/a.json:2")
    for value, kind in (([1], "a list"), ({}, "an object")):
        error = _error(_json(tmp_path / "a.json", [{"ko": "하나", "en": value}]))
        assert error.message == f"'en' contains {kind}, not a sentence"


def test_files_of_a_folder_that_are_not_read_are_reported(tmp_path: Path) -> None:
    _workbook(tmp_path / "1.xlsx", [HEADER, *ROWS])
    for name in ("2.zip", "3.tsv", "terms.pdf"):
        (tmp_path / name).write_bytes(NO_FILES)
    corpus = _corpus(tmp_path)
    assert _sides(corpus) == PAIRS
    (skipped,) = corpus.skipped()
    assert (skipped.place, skipped.rows, skipped.what) == (str(tmp_path), 2, "file")
    assert skipped.reason == "kind: aihub does not read 2.zip | 3.tsv"
    assert "Unpack" in skipped.remedy


@pytest.mark.parametrize("suffix", ["xlsx", "csv", "json"])
def test_missing_columns_are_reported_with_the_columns_found(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a.{suffix}"
    if suffix == "xlsx":
        _workbook(file, [["SID", "원문", "비고"], *ROWS])
    elif suffix == "csv":
        file.write_text("SID,원문,비고\n1,하나,one\n", encoding="utf-8")
    else:
        _json(file, [{"SID": 1, "원문": "하나", "비고": "one"}])
    error = _error(file)
    assert error.place.startswith(str(file))
    assert "번역문" in error.message
    assert "SID | 원문 | 비고" in error.remedy


@pytest.mark.parametrize("suffix", ["xlsx", "csv", "json"])
def test_a_web_page_is_recognised(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a.{suffix}"
    file.write_text("<!DOCTYPE html><html>log in</html>", encoding="utf-8")
    assert "web page" in _error(file).message


def test_files_that_are_not_workbooks_or_are_damaged_are_reported(tmp_path: Path) -> None:
    good = _workbook(tmp_path / "good.xlsx", [HEADER, *ROWS * 200]).read_bytes()
    damaged = bytearray(good)
    with zipfile.ZipFile(tmp_path / "good.xlsx") as archive:
        start = archive.getinfo("xl/worksheets/sheet1.xml").header_offset
    damaged[start + 200 : start + 260] = bytes(60)
    empty = tmp_path / "zip.xlsx"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("hello.txt", "no sheet")
    contents = [b"\xd0\xcf\x11\xe0old Excel", b"just text", good[: len(good) // 2], empty.read_bytes(), bytes(damaged)]
    for number, content in enumerate(contents):
        file = tmp_path / f"bad{number}.xlsx"
        file.write_bytes(content)
        error = _error(file)
        assert error.place == str(file), number
        assert "not an .xlsx workbook" in error.message, number


def test_invalid_json_and_json_without_pairs_are_reported(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"data": [\n{"ko": "하나",\n "en": }]}', encoding="utf-8")
    assert _error(broken).place == f"{broken}:3"
    assert "no list of pairs" in _error(_json(tmp_path / "b.json", {"items": 3})).message
    assert _error(_json(tmp_path / "c.json", [{"ko": "하나", "en": "one"}, 5])).place.endswith("c.json:2")
    assert "not a sentence" in _error(_json(tmp_path / "d.json", [{"ko": ["하나"], "en": "one"}])).message


def test_csv_in_an_unknown_encoding_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("SID,원문,번역문\n1,하나,".encode() + b"\xff\xff\n")
    assert _error(file).place == f"{file}:2"


def test_folders_without_files_say_what_to_do(tmp_path: Path) -> None:
    assert "README" in _error(tmp_path).remedy
    (tmp_path / "1.zip").write_bytes(NO_FILES)
    assert "Unpack" in _error(tmp_path).remedy
    (tmp_path / "1.zip").unlink()
    assert "no such file" in _error(tmp_path / "none.xlsx").message
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    assert ".xlsx" in _error(tmp_path / "old.xls").remedy


def test_languages_without_korean_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TmtError, match="Korean"):
        _corpus(tmp_path, source="de", target="en")


@pytest.mark.corpora
def test_the_real_workbooks_have_the_known_sizes(corpora: Path) -> None:
    folder = corpora / "aihub"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    corpus = _corpus(folder)
    corpus.fetch()
    pairs = list(corpus.read("all"))
    assert len(pairs) == 21_500
    assert all(any("가" <= letter <= "힣" for letter in pair.source) for pair in pairs[:1_000])
    assert 24 < sum(len(pair.source) for pair in pairs) / len(pairs) < 28
    assert 9 < sum(len(pair.target.split()) for pair in pairs) / len(pairs) < 11
    assert len({pair.place for pair in pairs}) == len(pairs)
