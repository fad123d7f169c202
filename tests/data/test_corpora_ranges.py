"""Files that are read in ranges by several workers give the pairs, places and messages of files read as a whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.corpora import parquet, parts
from transformer_mt.corpora.base import Corpus, Pair
from transformer_mt.data import reading
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError

ROWS = [(f"der Satz {n} hier", f"the sentence {n} here") for n in range(60)]
TSV = "".join(f"{de}\t{en}\n" for de, en in ROWS)
JSONL = "".join(json.dumps({"source": de, "target": en}) + "\n" for de, en in ROWS)


def _text(folder: Path, source: bytes, target: bytes, name: str = "a") -> dict[str, str]:
    files = {"source": folder / f"{name}.de", "target": folder / f"{name}.en"}
    for file, content in zip(files.values(), (source, target), strict=True):
        file.write_bytes(content)
    return {side: str(file) for side, file in files.items()}


def _parquet(folder: Path, rows: Iterable[tuple[str | None, str]]) -> str:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    source, target = zip(*rows, strict=True)
    write_table(pyarrow.table({"source": source, "target": target}), folder / "a.parquet", row_group_size=7)
    return str(folder / "a.parquet")


def _corpus(workshop: Any, options: dict[str, Any]) -> Corpus:
    (chosen,) = workshop.config({"split": {"validation": 2, "test": 2}, **options}).data.corpus
    corpus: Corpus = chosen.corpus(chosen, "de", "en")
    return corpus


def _parts(corpus: Corpus) -> list[parts.Part]:
    return [part for entry in corpus.entries("all") for part in corpus.parts(entry)]


def _in_parts(corpus: Corpus) -> tuple[list[Pair], int]:
    """All pairs, read part by part, and the number of ranges."""
    found, ranges = list[Pair](), 0
    for part in _parts(corpus):
        if part.spans is None:
            found += corpus.read_part("all", part)
            continue
        texts, ranges = corpus.read_range(part), ranges + 1
        found += map(Pair, texts.sources, texts.targets, map(texts.place, range(len(texts.sources))))
    return found, ranges


GOOD: dict[str, Any] = {
    "text": ("text", TSV.replace("\t", "!\n").encode(), "".join(f"{n}\r\n" for n in range(120)).encode()),
    "byte order marks, empty lines, no line break at the end": (
        "text",
        b"\xef\xbb\xbfeins\n" + b"zwei\n\n" * 40 + b"ende",
        b"\xef\xbb\xbfone\n" + b"two, which is longer\n\n" * 40 + "é".encode(),
    ),
    "another encoding": ("text", "가나다\n".encode("cp949") * 90, "one more\n".encode("cp949") * 90),
    "tsv": ("tsv", TSV),
    "tsv with a header": ("tsv", "source\ttarget\n" + TSV),
    "tsv with wrong rows": ("tsv", TSV[:300] + "one cell\n\n\n" + TSV[300:] + "three\tcells\there\n"),
    "jsonl with blank lines": ("jsonl", JSONL.replace("}\n", "}\n\n")),
    "one line is longer than a range": ("tsv", TSV[:300] + "lang " * 100 + "\tlong\n" + TSV[300:]),
}


@pytest.mark.parametrize("name", GOOD)
def test_ranges_give_the_pairs_and_places_of_the_whole_file(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, *content = GOOD[name]
    files: Any = str(workshop.folder / "a.txt")
    if kind == "text":
        files = _text(workshop.folder, *content)
    else:
        Path(files).write_bytes(content[0].encode())
    options = {"kind": kind, "files": files, **({"encoding": "cp949"} if name == "another encoding" else {})}
    expected = list(_corpus(workshop, options).read("all"))
    monkeypatch.setattr(parts, "RANGE_BYTES", 128)
    found, ranges = _in_parts(_corpus(workshop, options))
    assert found == expected
    assert ranges > 1


def test_row_groups_of_parquet_give_the_rows_of_the_whole_file(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"kind": "parquet", "files": _parquet(workshop.folder, [*ROWS, (None, "nothing"), *ROWS])}
    expected = list(_corpus(workshop, options).read("all"))
    assert expected[60] == ("", "nothing", f"{options['files']}:61")
    monkeypatch.setattr(parquet, "RANGE_ROWS", 10)
    found, ranges = _in_parts(_corpus(workshop, options))
    assert (found, ranges) == (expected, 9)


def _outcome(workshop: Any, options: dict[str, Any], folder: str) -> Any:
    """What `prepare` gives: its report, or its message."""
    corpus = {"split": {"validation": 2, "test": 2}, **options}
    try:
        prepared = prepare(workshop.config(corpus, prepared=str(workshop.folder / folder)))
    except TmtError as error:
        return str(error)
    report = prepared.manifest.report
    return {key: report[key] for key in ("pairs", "passed", "outliers", "drops", "foreign", "splits")}


BAD: dict[str, Any] = {
    "not UTF-8": ("tsv", (TSV + TSV).encode() + b"\xe4rger\tone\n" + TSV.encode() + b"\xfc\tx\n"),
    "no JSON": ("jsonl", JSONL.encode() + b"{\n" + JSONL.encode()),
    "no such key": ("jsonl", JSONL.encode() + b'{"source": "eins"}\n' + JSONL.encode()),
    "many wrong rows": ("tsv", (TSV + "one cell\n" * 9 + TSV).encode()),
    "few wrong rows": ("tsv", (TSV + "one cell\n" * 2 + TSV + "a\tb\tc\n").encode()),
    "a header": ("tsv", ("de\ten\n" + TSV + "de\ten\n" + TSV).encode()),
    "no column": ("tsv", TSV.encode() * 2, {"source_column": 5}),
    "a line of many MiB": ("tsv", TSV.encode() + b"a" * (1 << 20) + b"\tb\n" + TSV.encode()),
    "a web page": ("tsv", b"<html>\n" + TSV.encode() * 3),
    "fewer targets": ("text", b"eins\n" * 90, b"one, and more words\n" * 70),
    "fewer sources": ("text", b"eins und viel mehr\n" * 70, b"one\n" * 90),
    "not UTF-8 in the target": ("text", b"eins\n" * 90, b"one, and more words\n" * 70 + b"\xe4\n" + b"two\n" * 19),
    "odd sentences": ("tsv", (TSV + "a\ta\n\tb\n\u200bx\u00a0\ty \nÃ¤rger\tz\n" + TSV).encode()),
}


@pytest.mark.parametrize("name", BAD)
def test_messages_and_reports_do_not_depend_on_the_ranges(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, *content = BAD[name]
    more = content.pop() if isinstance(content[-1], dict) else {}
    files: Any = str(workshop.folder / "a.txt")
    if kind == "text":
        files = _text(workshop.folder, *content)
    else:
        Path(files).write_bytes(content[0])
    options = {"kind": kind, "files": files, **more}
    expected = _outcome(workshop, options, "whole")
    monkeypatch.setattr(parts, "RANGE_BYTES", 128)
    assert len(_parts(_corpus(workshop, options))) > 1 or name in ("fewer targets", "fewer sources", "a web page")
    assert _outcome(workshop, options, "ranges") == expected


@pytest.mark.parametrize("kind", ["text", "tsv", "csv", "jsonl", "json"])
def test_pairs_with_broken_bytes_are_dropped_on_request(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """On either side, in every split, whether the file is read as a whole or in ranges."""
    pairs = [(f"zwölf schöne Bäume {number}", f"twelve fine trees {number}") for number in range(60)]
    broken = {3: 0, 30: 1, 59: 0}

    def sides(some: list[tuple[str, str]], wrong: dict[int, int]) -> list[tuple[bytes, bytes]]:
        encoded = ((row, source, target.encode()) for row, (source, target) in enumerate(some))
        return [
            (source.encode("cp1252" if wrong.get(row) == 0 else "utf-8"), target + b"\xff" * (wrong.get(row) == 1))
            for row, source, target in encoded
        ]

    def written(name: str, rows: list[tuple[bytes, bytes]]) -> Any:
        if kind == "text":
            source, target = (b"".join(map(b"%b\n".__mod__, side)) for side in zip(*rows, strict=True))
            return _text(workshop.folder, source, target, name)
        form = {"tsv": b"%b\t%b", "csv": b'%b,"%b"'}.get(kind, b'{"source": "%b", "target": "%b"}')
        lines = [form % row for row in rows]
        content = b"[" + b",\n".join(lines) + b"]" if kind == "json" else b"".join(line + b"\n" for line in lines)
        (workshop.folder / name).write_bytes(content)
        return str(workshop.folder / name)

    evaluated = [(f"elf Häuser {number}", f"eleven houses {number}") for number in range(6)]
    options = {
        "kind": kind,
        "train": written("train", sides(pairs, broken)),
        "validation": written("valid", sides(evaluated[:3], {})),
        "test": written("test", sides(evaluated[3:], {1: 0})),
    }
    outcomes = []
    for size in (parts.RANGE_BYTES, 128):
        monkeypatch.setattr(parts, "RANGE_BYTES", size)
        folder = str(workshop.folder / f"prepared-{size}")
        prepared = workshop.prepare(options, prepared=folder, cleaning={"invalid": "drop"})
        outcomes.append(workshop.sentences(prepared, "train"))
        counts = prepared.report.pairs
        assert {split: row.dropped for split, row in counts.items()} == {
            "train": {"invalid bytes": 3},
            "validation": {},
            "test": {"invalid bytes": 1},
        }
        assert prepared.left_out("test") == 1
    assert outcomes[0] == outcomes[1] == [pair for row, pair in enumerate(pairs) if row not in broken]
    with pytest.raises(TmtError, match="is not UTF-8"):
        workshop.prepare(options)


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_broken_bytes_of_a_header_and_of_other_encodings_are_marked_in_ranges(
    workshop: Any, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    rows = [f"나무 {number}\ttree {number}\t-\n" for number in range(60)]
    rows[20] = "나무 20\tXtree\t-\n"
    content = ("ko\ten\tXnote\n" + "".join(rows)).encode(encoding).replace(b"X", b"\xff")
    (workshop.folder / "a.tsv").write_bytes(content)
    file = str(workshop.folder / "a.tsv")
    options = {"kind": "tsv", "files": file, "source_column": "ko", "target_column": "en", "encoding": encoding}
    outcomes = []
    for size in (parts.RANGE_BYTES, 128):
        monkeypatch.setattr(parts, "RANGE_BYTES", size)
        folder = str(workshop.folder / f"prepared-{size}")
        prepared = workshop.prepare(options, prepared=folder, cleaning={"invalid": "drop"})
        assert prepared.report.pairs["all"].dropped == {"invalid bytes": 1}
        outcomes.append([workshop.sentences(prepared, split) for split in ("train", "validation", "test")])
    assert outcomes[0] == outcomes[1]
    assert sum(map(len, outcomes[0])) == 59


def test_several_compressed_files_are_read_by_the_workers(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        with gzip.open(workshop.folder / f"part-{number}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("".join(f"{de} {number}\t{en} {number}\n" for de, en in ROWS) + "one cell\n" * (number == 2))
    options = {"kind": "tsv", "files": str(workshop.folder / "part-*.tsv.gz")}
    expected = _outcome(workshop, options, "here")
    monkeypatch.setattr(reading, "SEVERAL", 99)
    assert _outcome(workshop, options, "there") == expected
    assert expected["pairs"]["all"]["read"] == 300
    assert [rows["place"] for rows in expected["passed"]] == [str(workshop.folder / "part-2.tsv.gz")]


def test_a_large_file_of_empty_lines_has_no_pairs(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "RANGE_BYTES", 128)
    file = workshop.folder / "a.tsv"
    file.write_text("\n" * 1000)
    assert _in_parts(_corpus(workshop, {"kind": "tsv", "files": str(file)}))[0] == []


def test_a_file_that_changes_while_it_is_read_is_an_error(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "RANGE_BYTES", 128)
    file = workshop.folder / "a.tsv"
    file.write_text(TSV)
    corpus = _corpus(workshop, {"kind": "tsv", "files": str(file)})
    *_, last = _parts(corpus)
    file.write_text(TSV[:1000])
    with pytest.raises(TmtError, match="became shorter") as caught:
        corpus.read_range(last)
    assert caught.value.place == str(file)
