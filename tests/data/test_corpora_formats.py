"""TMX, workbooks, Parquet, folders, patterns, archives and encodings: what is read, and the errors for bad files."""

from __future__ import annotations

import errno
import json
import os
import unicodedata
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.data import OneCorpus
from transformer_mt.corpora.base import Corpus
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import lines_of

PAIRS = [("eins", "one"), ("zwei", "two"), ("drei", "three")]


def _corpus(source: str = "de", target: str = "en", **config: Any) -> Corpus:
    options = TypeAdapter(OneCorpus).validate_python(config)
    return options.corpus(options, source, target)


def _sides(corpus: Corpus, split: str = "all") -> list[tuple[str, str]]:
    corpus.fetch()
    return [(pair.source, pair.target) for pair in corpus.read(split)]


def _error(corpus: Corpus) -> TmtError:
    with pytest.raises(TmtError) as caught:
        _sides(corpus)
    assert caught.value.remedy
    return caught.value


def _write(file: Path, text: str, encoding: str = "utf-8") -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode(encoding))
    return str(file)


def _lines(file: Path, *lines: str) -> str:
    return _write(file, "".join(f"{line}\n" for line in lines))


# TMX


def _tmx(folder: Path, units: str, before: str = "", name: str = "a.tmx") -> str:
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n{before}<tmx version="1.4">\n<header srclang="en"/>\n<body>\n'
    return _write(folder / name, f"{head}{units}\n</body>\n</tmx>\n")


def _unit(**variants: str) -> str:
    inside = "".join(
        f'<tuv xml:lang="{language.replace("__", "-")}"><seg>{text}</seg></tuv>' for language, text in variants.items()
    )
    return f"<tu>{inside}</tu>\n"


def test_tmx_units_with_any_region_of_a_language(tmp_path: Path) -> None:
    units = _unit(de="eins", en="one") + _unit(EN__us="two", de__DE="zwei") + _unit(DE_at="drei", en_GB="three")
    doctype = '<!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">\n'
    corpus = _corpus(kind="tmx", files=_tmx(tmp_path, units, doctype))
    assert _sides(corpus) == PAIRS
    assert [pair.place.rpartition(":")[2] for pair in corpus.read("all")] == ["6", "7", "8"]


def test_tmx_inline_codes_are_left_out(tmp_path: Path) -> None:
    source = (
        'Ein <bpt i="1">&lt;b&gt;</bpt>gro<hi>ß</hi>er<ept i="1">&lt;/b&gt;</ept> Hund &amp; <it pos="begin">x</it>Co'
    )
    target = 'line<ph type="lb"/>break, a<ph>,</ph> b'
    corpus = _corpus(kind="tmx", files=_tmx(tmp_path, _unit(de=source, en=target)))
    assert _sides(corpus) == [("Ein großer Hund & Co", "line break, a b")]
    assert [(rows.rows, rows.what) for rows in corpus.skipped()] == [(5, "inline code")]


def test_tmx_placeholders_in_inline_codes_are_text(tmp_path: Path) -> None:
    source, target = "Hallo <ph>{name}</ph>, <it> %s </it>!", "Hello <ph>{{ x }}</ph>"
    corpus = _corpus(kind="tmx", files=_tmx(tmp_path, _unit(de=source, en=target)))
    assert _sides(corpus) == [("Hallo {name}, %s!", "Hello {{ x }}")]
    assert not corpus.skipped()
    codes = "<bpt i='1'>{b}</bpt><ph>{}</ph><ph>{{a}} and {{b}}</ph><ph>https://x.y/</ph>"
    corpus = _corpus(kind="tmx", files=_tmx(tmp_path, _unit(de=f"a {codes} b", en="c")))
    assert _sides(corpus) == [("a  b", "c")]
    assert [rows.rows for rows in corpus.skipped()] == [4]


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("Hello<ph/><ph/>world", "Hello world"),
        ("a<ept i='1'/><ph/>b", "a b"),
        ("a<ph/><bpt i='1'/>b", "a b"),
        ("one<ph/><hi>two</hi><it pos='end'/>three", "one two three"),
        ("eins<ph/>, zwei<ph/>", "eins, zwei"),
    ],
)
def test_tmx_codes_beside_each_other_do_not_glue_words(tmp_path: Path, inside: str, text: str) -> None:
    assert _sides(_corpus(kind="tmx", files=_tmx(tmp_path, _unit(de=inside, en="x")))) == [(text, "x")]


def test_tmx_variants_and_units_without_a_language(tmp_path: Path) -> None:
    both = '<tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="en-GB"><seg>b</seg></tuv>' + (
        '<tuv lang="en-US"><seg>c</seg></tuv></tu>\n'
    )
    file = _tmx(tmp_path, both + _unit(de="nur") + _unit(de="x", en="y"))
    corpus = _corpus(kind="tmx", files=file)
    assert _sides(corpus) == [("a", "b"), ("a", "c"), ("x", "y")]
    assert [rows[:3] for rows in corpus.skipped()] == [(file, 1, "no sentence in de or en")]
    assert "de (3 units)" in _error(_corpus("fr", kind="tmx", files=file)).remedy


def test_tmx_cannot_grow_or_read_other_files(tmp_path: Path) -> None:
    """An entity that would be billions of letters, one that is a file, and both inside a language."""
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    laughs = f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{levels}]>\n'
    secret = _write(tmp_path / "secret", "secret")
    outside = f'<!DOCTYPE tmx [<!ENTITY l11 SYSTEM "file://{secret}">]>\n'
    for before in (laughs, outside):
        error = _error(_corpus(kind="tmx", files=_tmx(tmp_path, _unit(de="a &l11; b", en="c"), before)))
        assert "entity" in error.message
        assert error.place.endswith((":1", ":6"))  # the parser stops at the first, and the reader at the second
    inside = '<tu><tuv xml:lang="&l11;"><seg>a</seg></tuv></tu>'
    assert "not well-formed" in _error(_corpus(kind="tmx", files=_tmx(tmp_path, inside, laughs))).message


def test_tmx_damaged_files(tmp_path: Path) -> None:
    file = Path(_tmx(tmp_path, _unit(de="eins", en="one") * 100))
    file.write_bytes(file.read_bytes()[:-60])
    error = _error(_corpus(kind="tmx", files=str(file)))
    assert "not well-formed" in error.message
    assert error.place.startswith(f"{file}:")
    assert "web page" in _error(_corpus(kind="tmx", files=_write(tmp_path / "b.tmx", "<!DOCTYPE html><p>"))).message


# Workbooks


def _workbook(file: Path, **sheets: list[list[Any]]) -> str:
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(file)
    return str(file)


def test_xlsx_columns_by_name_in_every_sheet_that_has_them(tmp_path: Path) -> None:
    head = ["Nr", "English", " Deutsch"]
    one = [["Sätze 2026"], head, [1, "one", "eins"], [2, "two", "zwei"]]
    file = _workbook(tmp_path / "a.xlsx", A=one, Notes=[["by"], ["me"]], B=[head, [3, "three", "drei"]])
    names = {"source_column": "Deutsch", "target_column": "English"}
    corpus = _corpus(kind="xlsx", files=file, **names)
    assert _sides(corpus) == PAIRS
    assert [pair.place for pair in corpus.read("all")] == [f"{file}:3", f"{file}:4", f"{file}[B]:2"]
    assert [rows[:2] for rows in corpus.skipped()] == [(f"{file}[Notes]", 2)]
    assert _sides(_corpus(kind="xlsx", files=file, sheet="B", **names)) == PAIRS[2:]


def test_xlsx_columns_by_number_have_no_header(tmp_path: Path) -> None:
    file = _workbook(tmp_path / "a.xlsx", A=[list(pair) for pair in PAIRS], B=[])
    assert _sides(_corpus(kind="xlsx", files=file)) == PAIRS
    two = _workbook(tmp_path / "b.xlsx", A=[["eins", "one"]], B=[["about", "this"]])
    assert "sheet: A" in _error(_corpus(kind="xlsx", files=two)).remedy
    assert _sides(_corpus(kind="xlsx", files=two, sheet="A")) == PAIRS[:1]


def test_xlsx_without_the_columns_or_the_sheet(tmp_path: Path) -> None:
    file = _workbook(tmp_path / "a.xlsx", A=[["German", "English"], ["eins", "one"]])
    named = {"source_column": "Germn", "target_column": "English"}
    assert "did you mean 'German'?" in _error(_corpus(kind="xlsx", files=file, **named)).message
    spaced = _workbook(tmp_path / "s.xlsx", A=[[" German ", "English"], ["eins", "one"]])
    named = {"source_column": "German", "target_column": "Englsh"}
    assert "did you mean 'English'?" in _error(_corpus(kind="xlsx", files=spaced, **named)).message
    twice = _workbook(tmp_path / "c.xlsx", A=[["German", "text", "text"], ["eins", "one", "uno"]])
    named = {"source_column": "German", "target_column": "text"}
    assert "2 columns have the name 'text'" in _error(_corpus(kind="xlsx", files=twice, **named)).message
    assert "Sheets in it: A" in _error(_corpus(kind="xlsx", files=file, sheet="B")).remedy
    assert "not an .xlsx workbook" in _error(_corpus(kind="xlsx", files=_write(tmp_path / "b.xlsx", "a,b"))).message


# Parquet


def _parquet(file: Path, **columns: Any) -> str:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), file, row_group_size=2)
    return str(file)


def test_parquet_columns_and_fields_of_a_struct(tmp_path: Path) -> None:
    rows = [{"de": source, "en": target} for source, target in PAIRS]
    file = _parquet(tmp_path / "a.parquet", id=[1, 2, 3], translation=rows)
    nested = {"source_column": "translation.de", "target_column": "translation.en"}
    corpus = _corpus(kind="parquet", files=file, **nested)
    assert _sides(corpus) == PAIRS
    assert [pair.place for pair in corpus.read("all")] == [f"{file}:{row}" for row in (1, 2, 3)]
    flat = _parquet(tmp_path / "b.parquet", source=["eins", None], target=["one", "two"])
    assert _sides(_corpus(kind="parquet", files=flat)) == [("eins", "one"), ("", "two")]
    nulls = _parquet(tmp_path / "c.parquet", translation=[None, {"de": None, "en": "x"}])
    assert _sides(_corpus(kind="parquet", files=nulls, **nested)) == [("", ""), ("", "x")]


def test_parquet_columns_that_are_missing_or_not_text(tmp_path: Path) -> None:
    file = _parquet(tmp_path / "a.parquet", source=[["a", "b"]], target=["x"], n=[1])
    assert "list<" in _error(_corpus(kind="parquet", files=file)).message
    assert "int64" in _error(_corpus(kind="parquet", files=file, source_column="n")).message
    assert "did you mean 'target'?" in _error(_corpus(kind="parquet", files=file, source_column="targets")).message
    broken = tmp_path / "b.parquet"
    broken.write_bytes(Path(file).read_bytes()[:-20])
    assert "not a Parquet file, or damaged" in _error(_corpus(kind="parquet", files=str(broken))).message


def test_two_columns_of_a_parquet_file_with_one_name_are_not_guessed(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [pyarrow.array([text]) for text in ("eins", "one", "version 1")]
    parquet.write_table(pyarrow.Table.from_arrays(columns, ["source", "target", "source"]), tmp_path / "a.parquet")
    assert "2 columns have the name 'source'" in _error(_corpus(kind="parquet", files=f"{tmp_path}/a.parquet")).message


def test_parquet_text_may_be_stored_as_views(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    source, target = (pyarrow.array([text], pyarrow.string_view()) for text in PAIRS[0])
    file = _parquet(tmp_path / "a.parquet", source=source, target=target)
    assert _sides(_corpus(kind="parquet", files=file)) == PAIRS[:1]


@pytest.mark.parametrize("kind", ["tsv", "xlsx", "jsonl", "parquet"])
@pytest.mark.parametrize(("there", "wanted"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_column_is_found_in_another_unicode_form(kind: str, there: str, wanted: str, tmp_path: Path) -> None:
    """A Mac decomposes letters; both forms look the same."""
    names, file = [unicodedata.normalize(there, name) for name in ("Übersetzung", "원문")], tmp_path / f"a.{kind}"
    source, target = (unicodedata.normalize(wanted, name) for name in names)
    rows = [[*PAIRS[0]], [*PAIRS[1]]]
    if kind == "tsv":
        files = _lines(file, *("\t".join(row) for row in (names, *rows)))
    elif kind == "xlsx":
        files = _workbook(file, A=[names, *rows])
    elif kind == "jsonl":
        files = _lines(file, *(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    else:
        files = _parquet(file, **{name: [row[number] for row in rows] for number, name in enumerate(names)})
    assert _sides(_corpus(kind=kind, files=files, source_column=source, target_column=target)) == PAIRS[:2]


def test_a_null_around_a_pair_is_an_empty_pair(tmp_path: Path) -> None:
    file = _lines(tmp_path / "a.jsonl", '{"translation": null}', '{"translation": {"de": "eins", "en": "one"}}')
    columns = {"source_column": "translation.de", "target_column": "translation.en"}
    assert _sides(_corpus(kind="jsonl", files=file, **columns)) == [("", ""), ("eins", "one")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_utf_16_without_a_byte_order_mark_is_not_called_utf_16(encoding: str, tmp_path: Path) -> None:
    file = _write(tmp_path / "a.tsv", "eins\tone\n", encoding)
    error = _error(_corpus(kind="tsv", files=file, encoding="utf-16"))
    assert "no byte order mark" in error.message
    assert "utf-16-le" in error.remedy


def test_a_quote_that_is_not_closed_loses_no_rows_in_silence(tmp_path: Path) -> None:
    rows = [f"Satz {number}; sentence {number}" for number in range(40)]
    rows[3], rows[30] = '"Das ist; a quote', 'Ende"; the end'
    columns: dict[str, Any] = {"kind": "csv", "delimiter": ";", "source_column": 0, "target_column": 1}
    error = _error(_corpus(files=_lines(tmp_path / "a.csv", *rows), **columns))
    assert error.message == "a cell contains whole rows, such as 'Satz 4; sentence 4'"
    assert error.place.endswith("a.csv:4")
    poem = "\n".join(f"Zeile {number}" for number in range(40))
    assert _sides(_corpus(files=_lines(tmp_path / "b.csv", f'"{poem}";poem', "eins;one"), **columns))[1] == PAIRS[0]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert "pip install pyarrow" in _error(_corpus(kind="parquet", files=_write(tmp_path / "a.parquet", "PAR1"))).remedy


# Folders, patterns and archives of parallel files


def _parallel(folder: Path) -> None:
    _lines(folder / "a.de", "eins", "zwei")
    _lines(folder / "a.en", "one", "two")
    _lines(folder / "more" / "b.de-en.de_DE", "drei")
    _lines(folder / "more" / "b.de-en.en", "three")
    _lines(folder / "README.md", "not a corpus")


def test_a_folder_and_patterns_of_parallel_files(tmp_path: Path) -> None:
    _parallel(tmp_path)
    assert _sides(_corpus(kind="text", files=str(tmp_path))) == PAIRS
    patterns = {"source": str(tmp_path / "*.de"), "target": str(tmp_path / "*.en")}
    assert _sides(_corpus(kind="text", files=patterns)) == PAIRS[:2]
    deep = {"source": str(tmp_path / "**" / "*.de*"), "target": str(tmp_path / "**" / "*.en*")}
    (tmp_path / "more" / "b.de-en.de_DE").rename(tmp_path / "more" / "b.de")
    (tmp_path / "more" / "b.de-en.en").rename(tmp_path / "more" / "b.en")
    assert _sides(_corpus(kind="text", files=deep)) == PAIRS
    parts = {"train": str(tmp_path / "more"), "validation": str(tmp_path), "test": str(tmp_path)}
    assert _sides(_corpus(kind="text", **parts), "test") == PAIRS


def test_a_file_without_partner_is_named(tmp_path: Path) -> None:
    _parallel(tmp_path)
    _lines(tmp_path / "c.de", "vier")
    (tmp_path / "a.en").rename(tmp_path / "z.en")
    error = _error(_corpus(kind="text", files={"source": f"{tmp_path}/*.de", "target": f"{tmp_path}/*.en"}))
    assert all(str(tmp_path / name) in error.message for name in ("a.de", "c.de", "z.en"))
    assert "c.de" in _error(_corpus(kind="text", files=str(tmp_path))).message
    assert "de, en, md" in _error(_corpus("fr", "nl", kind="text", files=str(tmp_path))).remedy
    assert "no file" in _error(_corpus(kind="text", files={"source": f"{tmp_path}/*.x", "target": "*.y"})).message


def test_files_of_two_regions_of_a_language_are_both_read(tmp_path: Path) -> None:
    for number, (source, target) in enumerate(PAIRS[:2]):
        _lines(tmp_path / f"news.de{'_AT' * number}", source)
        _lines(tmp_path / f"news.en{'_AT' * number}", target)
    assert _sides(_corpus(kind="text", files=str(tmp_path))) == PAIRS[:2]
    (tmp_path / "news.en_AT").rename(tmp_path / "news.en_GB")
    error = _error(_corpus(kind="text", files=str(tmp_path)))
    assert all(name in error.message for name in ("news.de_AT", "news.en_GB")), "nothing is left out in silence"


@pytest.mark.parametrize(("first", "second"), [("a.de", "a.de.gz"), ("a.DE", "a.de"), ("a.de_AT", "a.de_AT.xz")])
def test_two_files_of_one_name_are_refused(tmp_path: Path, first: str, second: str) -> None:
    """One of them would replace the other, and its lines may be others."""
    _lines(tmp_path / "a.en", "one")
    for name in (first, second, "note.md", "note.md.gz"):
        _lines(tmp_path / name, "eins")
    if len(list(tmp_path.iterdir())) < 5:
        pytest.skip("this file system takes both names for one")
    error = _error(_corpus(kind="text", files=str(tmp_path)))
    assert "two files for a.de" in error.message
    assert f"{tmp_path / first}, {tmp_path / second}" in error.message


def test_files_in_hidden_folders_are_not_read(tmp_path: Path) -> None:
    visible = tmp_path / ".cache" / "corpus"
    _parallel(visible)
    for language in ("de", "en"):
        _lines(visible / ".ipynb_checkpoints" / f"a-checkpoint.{language}", "alt")
    assert _sides(_corpus(kind="text", files=str(visible))) == PAIRS
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        for file in visible.rglob("*.*"):
            opened.write(file, file.relative_to(visible))
    assert _sides(_corpus(kind="text", files=str(tmp_path / "a.zip"))) == PAIRS


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    _parallel(tmp_path / "elsewhere")
    folder = tmp_path / "corpus"
    _lines(folder / "c.de", "vier")
    _lines(folder / "c.en", "four")
    (folder / "here").symlink_to(tmp_path / "elsewhere")
    (folder / "again").symlink_to(tmp_path / "elsewhere" / "more")
    (tmp_path / "elsewhere" / "loop").symlink_to(folder)
    assert sorted(_sides(_corpus(kind="text", files=str(folder)))) == sorted([*PAIRS, ("vier", "four")])


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _parallel(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir()
    scandir = os.scandir

    def refuse(folder: str) -> Any:  # the administrator could read it
        if str(folder) == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    error = _error(_corpus(kind="text", files=str(tmp_path)))
    assert (error.message, error.place) == ("no permission while reading a folder", str(closed))


def test_files_in_another_compression_are_reported(tmp_path: Path) -> None:
    _parallel(tmp_path)
    for name in ("c.de.bz2", "c.en.bz2", "a.de.zip", "c.fr.bz2"):
        _lines(tmp_path / name, "packed")
    corpus = _corpus(kind="text", files=str(tmp_path))
    assert _sides(corpus) == PAIRS
    (skipped,) = corpus.skipped()
    assert (skipped.place, skipped.rows, skipped.what) == (str(tmp_path), 2, "file")
    assert "c.de.bz2 | c.en.bz2" in skipped.reason
    for name in ("a.de", "a.en", "more/b.de-en.de_DE", "more/b.de-en.en"):
        (tmp_path / name).unlink()
    assert "Unpack files such as a.de.zip" in _error(_corpus(kind="text", files=str(tmp_path))).remedy


def test_names_with_brackets_and_sets_of_characters(tmp_path: Path) -> None:
    for number, (source, target) in enumerate(PAIRS):
        _lines(tmp_path / f"news[{number}].de", source)
        _lines(tmp_path / f"news[{number}].en", target)
    named = {"source": str(tmp_path / "news[1].de"), "target": str(tmp_path / "news[1].en")}
    assert _sides(_corpus(kind="text", files=named)) == PAIRS[1:2]
    others = {"source": str(tmp_path / "news?[!0]?.de"), "target": str(tmp_path / "news?[!0]?.en")}
    assert _sides(_corpus(kind="text", files=others)) == PAIRS[1:]


def test_tables_by_a_pattern(tmp_path: Path) -> None:
    for number, (source, target) in enumerate(PAIRS):
        _lines(tmp_path / f"{number}.tsv", f"{source}\t{target}")
    assert _sides(_corpus(kind="tsv", files=str(tmp_path / "[0-2].tsv"))) == PAIRS


def _zip(file: Path, **members: str) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in members.items():
            opened.writestr(name.replace("__", "."), text)
    return file


def test_parallel_files_inside_a_zip_are_read_in_place(tmp_path: Path) -> None:
    file = _zip(tmp_path / "de-en.zip", README="x", o__de="eins\nzwei\ndrei\n", o__en="one\ntwo\nthree\n")
    corpus = _corpus(kind="text", files=str(file))
    assert _sides(corpus) == PAIRS
    assert next(corpus.read("all")).place == f"{file}/o.de:1"
    assert corpus.files() == [file]
    assert [path.name for path in tmp_path.iterdir()] == ["de-en.zip"]
    named = {"source": f"{file}/o.de", "target": f"{file}/*.en"}
    assert _sides(_corpus(kind="text", files={**named, "target": f"{file}/o.en"})) == PAIRS
    assert "o.de" in _error(_corpus(kind="tsv", files=f"{file}/o.tsv")).remedy


def test_a_zip_with_one_side_or_strange_names(tmp_path: Path) -> None:
    assert "o.de" in _error(_corpus(kind="text", files=str(_zip(tmp_path / "a.zip", o__de="eins\n")))).message
    outside = tmp_path / "b.zip"
    with zipfile.ZipFile(outside, "w") as opened:
        for language, text in (("de", "eins\n"), ("en", "one\n")):
            opened.writestr(f"../../up.{language}", text)
    before = sorted(tmp_path.parent.iterdir())
    assert _sides(_corpus(kind="text", files=str(outside))) == PAIRS[:1]
    assert sorted(tmp_path.parent.iterdir()) == before


def test_a_workbook_or_parquet_file_inside_a_zip_must_be_unpacked(tmp_path: Path) -> None:
    book = Path(_workbook(tmp_path / "a.xlsx", A=[["eins", "one"]]))
    parquet_file = Path(_parquet(tmp_path / "a.parquet", source=["eins"], target=["one"]))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
        for file in (book, parquet_file):
            opened.write(file, file.name)
    for kind in ("xlsx", "parquet"):
        error = _error(_corpus(kind=kind, files=f"{tmp_path}/a.zip/a.{kind}"))
        assert "inside an archive" in error.message
        assert f"Unpack {tmp_path}/a.zip" in error.remedy


def test_a_damaged_zip(tmp_path: Path) -> None:
    text = "\n".join(str(number) for number in range(20_000))
    whole = _zip(tmp_path / "a.zip", o__de=text, o__en=text).read_bytes()
    cut, changed = tmp_path / "cut.zip", tmp_path / "changed.zip"
    cut.write_bytes(whole[: len(whole) // 2])
    changed.write_bytes(whole[:20_000] + bytes(100) + whole[20_100:])
    assert "damaged" in _error(_corpus(kind="tsv", files=f"{cut}/o.de")).message
    error = _error(_corpus(kind="text", files=str(changed)))
    assert "damaged" in error.message
    assert error.place.startswith(f"{changed}/o.de")


def test_a_zip_bomb_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, part in (("a.de", b"x\n"), ("a.en", b"y\n"), ("long.tsv", b"x" * 2)):
            with opened.open(name, "w") as member:
                for _ in range(100):
                    member.write(part * (1 << 19))
    assert file.stat().st_size < 1 << 20
    corpus = _corpus(kind="text", files=str(file))
    assert [pair.source for pair in islice(corpus.read("all"), 3)] == ["x"] * 3
    assert "longer than 1 MiB" in _error(_corpus(kind="tsv", files=f"{file}/long.tsv")).message


# Encodings


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-8-sig", "cp1250"])
def test_files_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Öl für süße Bären\toil\r\nzwölf\ttwelve\nletzte\tlast"
    file = _write(tmp_path / "a.tsv", text, encoding)
    sides = [("Öl für süße Bären", "oil"), ("zwölf", "twelve"), ("letzte", "last")]
    assert _sides(_corpus(kind="tsv", files=file, encoding=encoding)) == sides


def test_korean_csv_and_text_in_cp949(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.csv", '하나,"one, 1"\r\n둘,two\r\n', "cp949")
    assert _sides(_corpus("ko", kind="csv", files=file, encoding="cp949")) == [("하나", "one, 1"), ("둘", "two")]
    text = {"source": _write(tmp_path / "a.ko", "하나\n", "cp949"), "target": _write(tmp_path / "a.en", "one\n")}
    assert _sides(_corpus("ko", kind="text", files=text, encoding="cp949")) == [("하나", "one")]


def test_a_wrong_encoding_is_reported_with_its_line(tmp_path: Path) -> None:
    file = _write(tmp_path / "a.tsv", "eins\tone\nzwölf\ttwelve\n", "cp1252")
    error = _error(_corpus(kind="tsv", files=file))
    assert error.place == f"{file}:2"
    assert "encoding: cp1252" in error.remedy
    utf_16 = _write(tmp_path / "b.tsv", "eins\tone\nzwei\ttwo\n", "utf-16")
    assert "encoding: utf-16" in _error(_corpus(kind="tsv", files=utf_16)).remedy
    Path(utf_16).write_bytes(Path(utf_16).read_bytes()[:-1])
    assert _error(_corpus(kind="tsv", files=utf_16, encoding="utf-16")).place == f"{utf_16}:2"


@pytest.mark.parametrize("kind", ["tsv", "json"])
def test_few_broken_lines_do_not_suggest_an_encoding_that_spoils_the_others(tmp_path: Path, kind: str) -> None:
    rows = [("schöner Satz", f"nice sentence {number}") for number in range(60)]
    lines = ["\t".join(row) if kind == "tsv" else f'{{"source": "{row[0]}", "target": "{row[1]}"}},' for row in rows]
    content = [line.encode("cp1252" if number in (29, 49) else "utf-8") for number, line in enumerate(lines)]
    file = tmp_path / f"a.{kind}"
    file.write_bytes(b"\n".join([b"[", *content[:-1], content[-1].rstrip(b",") + b"]"][kind == "tsv" :]))
    error = _error(_corpus(kind=kind, files=str(file)))
    assert error.place == f"{file}:{30 if kind == 'tsv' else 31}"
    assert error.message.endswith("; 2 of 60 lines are not (also 50)") == (kind == "tsv")
    assert "data.cleaning.invalid: drop" in error.remedy
    assert "Nearly all other lines are UTF-8: correct th" in error.remedy
    assert "iconv" not in error.remedy
    assert "encoding:" not in error.remedy
    with pytest.raises(TmtError) as caught:
        lines_of(file)
    assert ("data." in caught.value.remedy) is False


@pytest.mark.parametrize("name", ["klingon", "base64", ""])
def test_an_unknown_encoding_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="unknown encoding"):
        _corpus(kind="tsv", files="a.tsv", encoding=name)


def test_the_default_encoding_is_not_written(tmp_path: Path) -> None:
    """Data that was prepared before the key existed still belongs to its config."""
    for name, written in (("utf-8", False), ("cp949", True)):
        options = TypeAdapter(OneCorpus).validate_python({"kind": "tsv", "files": "a.tsv", "encoding": name})
        assert ("encoding" in options.model_dump(mode="json")) == written
