"""`tmt init files --data`: what it sees in many kinds of tables, and that the config it writes works."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from openpyxl import Workbook

from tests.growth import LINEAR, assert_grows
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.corpora.looking import contents_of
from transformer_mt.corpora.splits import mixed_of, names_of, roles_of
from transformer_mt.data.batching import Batches
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import generate
from transformer_mt.runtime.device import Machine
from transformer_mt.workflows import propose
from transformer_mt.workflows.proposal import splits as proposal_splits
from transformer_mt.workflows.proposal import timing
from transformer_mt.workflows.proposal.config_text import config_text
from transformer_mt.workflows.proposal.sizes import epochs_for, held_out, sizes_for, warmup_for
from transformer_mt.workflows.proposal.timing import seconds_an_update
from transformer_mt.workflows.propose import Proposal, propose_config

PAIRS = {
    languages: list(generate(*languages, "train", 300, 1)) for languages in (("de", "en"), ("ko", "en"), ("ko", "de"))
}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transformer_mt.workflows.propose.seconds_an_update", lambda *_: 0.1)  # no update is timed


def _table(name: str, rows: Sequence[Sequence[str]], separator: str = "\t", encoding: str = "utf-8") -> str:
    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if separator in cell or '"' in cell else cell

    cells = (row if separator == "\t" else map(quoted, row) for row in rows)
    Path(name).write_bytes("".join(f"{separator.join(row)}\r\n" for row in cells).encode(encoding))
    return name


def _corpus(proposal: Proposal) -> dict[str, Any]:
    (corpus,) = proposal.config.data.corpus
    return {key: value for key, value in corpus.model_dump(exclude_unset=True).items() if key not in ("split", "files")}


def _direction(proposal: Proposal) -> str:
    return proposal.config.data.direction


def _pairs_read(proposal: Proposal) -> list[tuple[str, str]]:
    (options,) = proposal.config.data.corpus
    corpus = options.corpus(options, proposal.config.data.source, proposal.config.data.target)
    return [(pair.source, pair.target) for pair in corpus.read("all")]


def _error(*data: str, **languages: str) -> TmtError:
    with pytest.raises(TmtError) as caught:
        propose_config(data, **languages)
    return caught.value


def test_a_tsv_without_header() -> None:
    proposal = propose_config(_table("my pairs.tsv", PAIRS["de", "en"]))
    assert _corpus(proposal) == {"kind": "tsv", "source_column": 0, "target_column": 1}
    assert _direction(proposal) == "de-en"
    assert proposal.config.name == "my-pairs"
    assert proposal.pairs == 300
    assert not proposal.about
    assert proposal.config.tokenizer.model_dump()["shared"]


def test_the_proposal_is_a_config_with_reasons_that_prepare_accepts() -> None:
    proposal = propose_config(_table("a.tsv", PAIRS["ko", "en"]), file="my.yaml")
    Path("my.yaml").write_text(proposal.text, encoding="utf-8")
    config = load_config("my.yaml")
    assert config == proposal.config
    assert "tmt train --config my.yaml" in proposal.text
    assert "Korean and English have different letters" in " ".join(proposal.text.replace("#", "").split())
    assert max(map(len, proposal.text.splitlines())) <= 120
    splits = prepare(config).report.splits
    assert splits["validation"].pairs == splits["test"].pairs == held_out(300)


def test_what_few_pairs_teach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table("a.tsv", PAIRS["de", "en"])
    assert "expect" in dict(propose_config(table).summary)
    monkeypatch.setattr(propose, "FEW_PAIRS", 299)
    assert "expect" not in dict(propose_config(table).summary)


def test_characters_written_as_in_html_become_characters() -> None:
    pairs = [*PAIRS["de", "en"][:299], ("Hund &amp; Katze", "dog &amp; cat")]
    proposal = propose_config(_table("a.tsv", pairs))
    assert proposal.config.data.cleaning.entities
    assert "cleaning:\n    entities: true " in proposal.text
    assert not propose_config(_table("b.tsv", PAIRS["de", "en"])).config.data.cleaning.entities


@pytest.mark.parametrize("pairs", [1, 2, 3])
def test_prepare_accepts_a_few_pairs_beside_many(pairs: int) -> None:
    many, few = PAIRS["de", "en"][:280], PAIRS["de", "en"][280 : 280 + pairs]
    rows = [("German", "English"), *few]
    proposal = propose_config([_table("a.tsv", many), _table("b.csv", rows, ",")], file="my.yaml")
    report = prepare(proposal.config).report
    assert sum(figures.pairs for figures in report.splits.values()) == 280 + pairs


@pytest.mark.parametrize(("source", "target"), [("DE", "en-US"), ("German", "English"), ("deu", "en")])
def test_languages_by_their_names(source: str, target: str) -> None:
    direction = _direction(propose_config(_table("a.tsv", PAIRS["de", "en"]), source, target))
    assert direction == ("deu-en" if source == "deu" else "de-en")


def test_what_cannot_be_proposed_is_one_message() -> None:
    table = _table("a.tsv", PAIRS["de", "en"])
    with pytest.raises(TmtError, match="'Klingonisch' is no language"):
        propose_config(table, "Klingonisch", "en")
    for minutes in (math.inf, math.nan, 0.0, -1.0):
        with pytest.raises(TmtError, match=r"the training has .* minutes"):
            propose_config(table, minutes=minutes)


def test_names_of_files_become_names_of_runs() -> None:
    long = propose_config(_table(f"{'a' * 200}.tsv", PAIRS["de", "en"])).config
    assert set(long.name) == {"a"}
    odd = os.fsdecode(b"p\xe4irs.tsv")
    try:
        Path(_table("a.tsv", PAIRS["de", "en"])).rename(odd)
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    with pytest.raises(TmtError, match="the name of this file is not UTF-8"):
        propose_config(odd)


def test_half_a_surrogate_pair_is_replaced() -> None:
    rows = [{"de": f"\ud83d {source}", "en": target} for source, target in PAIRS["de", "en"]]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert propose_config("a.jsonl").pairs == 300


def test_files_with_names_of_other_letters_do_not_share_a_run() -> None:
    """The second one would replace the prepared data of the first."""
    for number, (name, place) in enumerate((("자료", "data/prepared"), ("문장", "runs"), ("말뭉치", "runs")), 1):
        found = propose_config(_table(f"{name}.tsv", PAIRS["de", "en"]))
        assert found.config.name == ("my-translator" if number == 1 else f"my-translator-{number}")
        Path(place, found.config.name).mkdir(parents=True)


def test_commands_in_a_config_quote_its_name() -> None:
    text = propose_config(_table("a.tsv", PAIRS["de", "en"]), file="my conf.yaml").text
    assert "tmt train --config 'my conf.yaml'" in text


def test_csv_with_a_header_ids_scores_and_commas_in_cells() -> None:
    rows = [(f"S{n:04}", f"Nun, {de}", str(n / 7), f'"{en}", he said.') for n, (de, en) in enumerate(PAIRS["de", "en"])]
    proposal = propose_config(_table("a.csv", [("id", "Deutsch", "score", "English"), *rows], ","))
    assert _corpus(proposal) == {"kind": "csv", "source_column": "Deutsch", "target_column": "English"}
    assert _pairs_read(proposal)[0] == (rows[0][1], rows[0][3])


def test_german_excel_semicolons_in_cp1252() -> None:
    rows = [("Satz", "Übersetzung"), *((f"Für {de}, schön", en) for de, en in PAIRS["de", "en"])]
    proposal = propose_config(_table("a.csv", rows, ";", "cp1252"))
    names = {"source_column": "Satz", "target_column": "Übersetzung"}
    assert _corpus(proposal) == {"kind": "csv", "delimiter": ";", "encoding": "cp1252", **names}
    assert _pairs_read(proposal)[0][0] == rows[1][0]
    assert "semicolons between the columns" in proposal.text


def test_korean_csv_in_cp949_in_the_other_direction() -> None:
    pairs = [(ko, en) for ko, en in PAIRS["ko", "en"] if en.isascii()]
    rows = [("SID", "원문", "번역문"), *((str(n), ko, en) for n, (ko, en) in enumerate(pairs))]
    file = _table("a.csv", rows, ",", "cp949")
    proposal = propose_config(file, "en", "ko")
    names = {"source_column": "번역문", "target_column": "원문"}
    assert _corpus(proposal) == {"kind": "csv", "encoding": "cp949", **names}
    assert _direction(proposal) == "en-ko"
    assert _direction(propose_config(file, target="ko")) == "en-ko"


def test_unicode_text_of_excel() -> None:
    rows = [(f'"{de[:-1]}""!"' if n % 9 == 0 else de, en) for n, (de, en) in enumerate(PAIRS["de", "en"])]
    proposal = propose_config(_table("a.txt", [("de", "en"), *rows], "\t", "utf-16"))
    names = {"source_column": "de", "target_column": "en"}
    assert _corpus(proposal) == {"kind": "csv", "delimiter": "\t", "encoding": "utf-16", **names}
    assert _pairs_read(proposal)[0][0].endswith('"!')


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@pytest.mark.parametrize("quotes_all", [True, False])
def test_quotes_of_programs_in_a_table_with_tabs(quotes_all: bool) -> None:
    """pandas can quote every cell; Excel quotes those with a comma."""
    rows = [("de", "en"), *((f"Nun, {de}" if n % 9 == 0 else de, en) for n, (de, en) in enumerate(PAIRS["de", "en"]))]
    cells = [[_quoted(cell) if quotes_all or "," in cell else cell for cell in row] for row in rows]
    proposal = propose_config(_table("a.tsv", cells))
    assert _corpus(proposal)["kind"] == "csv"
    assert _pairs_read(proposal) == rows[1:]


def test_sentences_that_are_quotations_are_no_quoted_cells() -> None:
    pairs = [(de.replace(",", ""), en.replace(",", "")) for de, en in PAIRS["de", "en"]]
    speech = [(f'"Ja, {de}"', f'"Yes, {en}"') for de, en in pairs[:100]]
    for rest in (
        pairs[100:],
        [(f"Nun, {de}", en) for de, en in pairs[100:]],
        [(f'"{de}', en) for de, en in pairs[100:]],
    ):
        calls = [(f'"{de}"', en) for de, en in pairs[:1]]
        assert _pairs_read(propose_config(_table("a.tsv", [*speech, *calls, *rest])))[0] == speech[0]


def test_a_line_for_excel_and_an_old_line_break_in_a_csv() -> None:
    rows = "".join(f"{de[:5]}\r{de[5:]};{en}\r\n" for de, en in PAIRS["de", "en"])
    Path("a.csv").write_bytes(f"sep=;\r\nSatz;Übersetzung\r\n{rows}".encode())
    proposal = propose_config("a.csv")
    names = {"source_column": "Satz", "target_column": "Übersetzung"}
    assert _corpus(proposal) == {"kind": "csv", "delimiter": ";", **names}
    assert (proposal.pairs, len(_pairs_read(proposal))) == (300, 300)


def test_a_header_with_an_empty_cell_and_rows_of_two_widths() -> None:
    pairs = PAIRS["de", "en"]
    proposal = propose_config(_table("a.tsv", [("de", "en", ""), *pairs]))
    assert (_corpus(proposal)["source_column"], _pairs_read(proposal)) == ("de", pairs)
    error = _error(_table("b.tsv", [(*pair, "note")[: 2 + n % 2] for n, pair in enumerate(pairs)]))
    assert "2 in 150, 3 in 150 rows" in error.message


def test_a_workbook_inside_an_archive_is_not_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    Workbook().save("a.xlsx")
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.write("a.xlsx")
        archive.write(_table("b.tsv", PAIRS["de", "en"]))
    proposal = propose_config("a.zip")
    assert proposal.config.data.corpus[0].files == ("a.zip/b.tsv",)
    assert "a.zip: only its tables of text are read; unpack it for the others" in capsys.readouterr().err
    assert "Unpack a.zip first" in _error("a.zip/a.xlsx").remedy
    with zipfile.ZipFile("b.zip", "w") as archive:
        archive.writestr("b.txt", "eine Zeile\n")
    assert "Give one of them:  --data b.zip/b.txt   Files in it: b.txt" in _error("b.zip").remedy


def test_tables_in_archives_of_a_folder_are_read_once() -> None:
    """As AI Hub hands them out, some of them unpacked already."""
    rows = [{"ko": ko, "en": en} for ko, en in PAIRS["ko", "en"]]
    for name, some in (
        ("1.Training/TL_a", rows[:100]),
        ("1.Training/TL_b", rows[100:200]),
        ("2.Validation/VL", rows[200:]),
    ):
        Path("hub", name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(f"hub/{name}.zip", "w") as archive:
            archive.writestr("data/pairs.json", json.dumps({"data": some}))
            archive.writestr("__MACOSX/data/._pairs.json", "no pairs")
            archive.writestr("info.json", json.dumps({"name": "our pairs", "licence": "ask"}))
    with zipfile.ZipFile("hub/1.Training/TL_a.zip") as archive:
        archive.extract("data/pairs.json", "hub/1.Training")
    proposal = propose_config("hub")
    corpus = _corpus(proposal)
    assert corpus["train"] == ("hub/1.Training/TL_b.zip/data/pairs.json", "hub/1.Training/data/pairs.json")
    assert corpus["validation"] == "hub/2.Validation/VL.zip/data/pairs.json"
    assert proposal.pairs == 200


def test_attributions_and_categories_are_not_sentences() -> None:
    rows = [
        (
            en,
            ko,
            f"CC-BY 2.0 (France) Attribution: tatoeba.org #{n} (CK) & #{n * 3} (me)",
            random.choice(["news", "talk"]),
        )
        for n, (ko, en) in enumerate(PAIRS["ko", "en"])
    ]
    proposal = propose_config(_table("a.tsv", rows))
    assert (_direction(proposal), _corpus(proposal)["target_column"]) == ("en-ko", 1)


def test_json_lines_and_parquet_as_in_hugging_face_data_sets() -> None:
    records = [{"id": str(n), "translation": {"de": de, "en": en}} for n, (de, en) in enumerate(PAIRS["de", "en"])]
    Path("a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    columns = {"source_column": "translation.de", "target_column": "translation.en"}
    assert _corpus(propose_config("a.jsonl")) == {"kind": "jsonl", **columns}
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(records), "a.parquet")
    assert _corpus(propose_config("a.parquet")) == {"kind": "parquet", **columns}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("key", [None, "data"])
def test_json_with_a_list_of_objects(key: str | None, indent: int | None) -> None:
    rows = [{"id": n, "ko": ko, "en": en} for n, (ko, en) in enumerate(PAIRS["ko", "en"])]
    content = {"version": 1, "by": ["A", "B"], key: rows} if key else rows
    Path("a.json").write_text(json.dumps(content, indent=indent, ensure_ascii=False), encoding="utf-8")
    proposal = propose_config("a.json")
    assert _corpus(proposal) == {"kind": "json", "source_column": "ko", "target_column": "en"}
    assert (proposal.pairs, proposal.about) == (300, False)


def test_columns_that_are_named_as_languages_and_nothing_else_are_chosen() -> None:
    """As in AI Hub's tables, where `mt` is no Maltese, but the translation of a machine."""
    pairs = PAIRS["ko", "en"]
    rows = [
        {"sn": f"X{n}", "domain": "news", "ko_original": f"{ko} ", "ko": ko, "mt": f"{en.lower()}", "en": en}
        for n, (ko, en) in enumerate(pairs)
    ]
    Path("a.json").write_text(json.dumps({"data": rows}, ensure_ascii=False), encoding="utf-8")
    for named in ((), ("ko", "en")):
        proposal = propose_config("a.json", *named)
        assert _corpus(proposal) == {"kind": "json", "source_column": "ko", "target_column": "en"}
        assert ("", "columns that are not read: ko_original | mt") in proposal.summary
    unclear = [{**row, "fr": f"Les enfants de la maison {n} jouent dans le jardin."} for n, row in enumerate(rows)]
    Path("b.json").write_text(json.dumps(unclear, ensure_ascii=False), encoding="utf-8")
    assert "columns are sentences" in _error("b.json").message


def test_a_workbook_with_notes_and_two_sheets_of_pairs() -> None:
    book = Workbook()
    book.active.append(["These pairs are mine."])
    for half in (PAIRS["de", "en"][:150], PAIRS["de", "en"][150:]):
        sheet = book.create_sheet()
        sheet.append(["No", "German", "English"])
        for number, pair in enumerate(half):
            sheet.append([number, *pair])
    book.save("a.xlsx")
    proposal = propose_config("a.xlsx")
    assert _corpus(proposal) == {"kind": "xlsx", "source_column": "German", "target_column": "English"}
    assert proposal.pairs == 300


def test_tmx_needs_two_languages() -> None:
    def unit(**texts: str) -> str:
        return (
            "<tu>"
            + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in texts.items())
            + "</tu>"
        )

    three = [(de, en, ko) for (de, en), (ko, _) in zip(PAIRS["de", "en"], PAIRS["ko", "en"], strict=True)]
    units = "".join(unit(de=de, en=en, ko=ko) for de, en, ko in three)
    Path("a.tmx").write_text(f'<?xml version="1.0"?><tmx><body>{units}</body></tmx>', encoding="utf-8")
    assert "--source de --target en" in _error("a.tmx").remedy
    proposal = propose_config("a.tmx", "ko", "de")
    assert (_corpus(proposal), _direction(proposal)) == ({"kind": "tmx"}, "ko-de")


def test_parallel_files_in_a_folder_an_archive_or_alone() -> None:
    Path("news").mkdir()
    for language, side in (("de", 0), ("en", 1)):
        Path(f"news/a.{language}").write_text(
            "".join(f"{pair[side]}\n" for pair in PAIRS["de", "en"]), encoding="utf-8"
        )
    with zipfile.ZipFile("news.zip", "w") as archive:
        for file in Path("news").iterdir():
            archive.write(file, f"x.de-en{file.suffix}")
    moses = [f"news.zip/x.de-en.{language}" for language in ("de", "en")]
    for data in (["news"], ["news.zip"], ["news/a.de", "news/a.en"], moses):
        proposal = propose_config(data)
        assert (_corpus(proposal), _direction(proposal)) == ({"kind": "text"}, "de-en")
        assert _pairs_read(proposal) == PAIRS["de", "en"]
    assert "--data corpus.de --data corpus.en" in _error("news/a.de").remedy


def _parallel(folder: str, **sizes: int) -> dict[str, Any]:
    """Files NAME.de and NAME.en with different pairs: so many in each."""
    first = 0
    for name, size in sizes.items():
        file = Path(folder, name.replace("__", "/").replace("_", "."))
        file.parent.mkdir(parents=True, exist_ok=True)
        for side, language in enumerate(("de", "en")):
            pairs = PAIRS["de", "en"][first : first + size]
            Path(f"{file}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        first += size
    return {name: {"source": f"{folder}/{name}.de", "target": f"{folder}/{name}.en"} for name in sizes}


def test_files_that_are_named_as_splits_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    files = _parallel("d", train=200, dev=30, dev2=20, newstest2014=40)
    proposal = propose_config("d")
    corpus = _corpus(proposal)
    assert corpus == {
        "kind": "text",
        "train": (files["train"],),
        "validation": files["dev"],
        "test": {name: files[name] for name in ("newstest2014", "dev2")},
    }
    assert proposal.pairs == 200
    tests = "test newstest2014 (40 pairs), dev2 (20 pairs)"  # a real test set first
    said = f"by the names of the files: training train; validation dev (30 pairs); {tests}"
    assert ("splits", said) in proposal.summary
    Path("c.yaml").write_text(proposal.text, encoding="utf-8")
    report = prepare(load_config(Path("c.yaml"))).report
    assert {name: split.pairs for name, split in report.splits.items()} == {
        "train": 200,
        "validation": 30,
        "newstest2014": 40,
        "dev2": 20,
    }
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("sizes", "train", "validation", "tests"),
    [
        (
            {"train__a": 90, "train__b": 90, "valid__a": 20, "test__a": 20},
            ["train/a", "train/b"],
            "valid/a",
            ["test-a"],
        ),
        (
            {"train__a": 90, "dev__newstest1": 20, "test__newstest2": 20},
            ["train/a"],
            "dev/newstest1",
            ["test-newstest2"],
        ),
        (
            {"train__a": 90, "test__newstest1": 20, "test__newstest2": 20, "dev": 9},
            ["train/a"],
            "dev",
            ["test-newstest1", "test-newstest2"],
        ),
        ({"train": 90, "dev__a": 20, "dev__b": 30}, ["train"], "dev/*", []),
        ({"train": 90, "newsdev2016": 30, "newsdiscusstest": 30}, ["train"], "newsdev2016", ["newsdiscusstest"]),
        ({"train": 90, "train-dev": 30, "train-test": 30, "dev": 9}, ["train"], "dev", ["train-test", "train-dev"]),
        ({"train": 90, "dev_test": 30, "DevData": 20}, ["train"], "DevData", ["dev.test"]),
        ({"train__train": 90, "train__dev": 20, "train__test": 20}, ["train/train"], "train/dev", ["test"]),
        (
            {"all__train__train": 90, "all__train__dev": 20, "all__back__bt": 9},
            ["all/back/bt", "all/train/train"],
            "all/train/dev",
            [],
        ),
        (
            {"all__dev__train__a": 90, "all__dev__test__a": 9, "all__dev__dev__a": 9},
            ["all/dev/train/a"],
            "all/dev/dev/a",
            ["test-a"],
        ),
        (
            {"europarl": 90, "generaltest2022": 20, "held-out": 9, "tune": 9},
            ["europarl"],
            "tune",
            ["generaltest2022", "held-out"],
        ),
        ({"europarl": 100, "val": 90}, ["europarl"], "val", []),
        ({"my_training": 20, "validation_set_1": 90, "heldout": 10}, ["my.training"], "validation.set.1", ["heldout"]),
        ({"train.tags": 90, "IWSLT14.TED.dev2010.de-en": 20}, ["train.tags"], "IWSLT14.TED.dev2010.de-en", []),
        ({"contest": 90, "devices": 60, "trains": 30}, None, None, None),
    ],
)
def test_which_names_are_those_of_splits(
    capsys: pytest.CaptureFixture[str],
    sizes: dict[str, int],
    train: list[str] | None,
    validation: str | None,
    tests: list[str] | None,
) -> None:
    _parallel("d", **sizes)
    corpus = propose_config("d").config.data.corpus[0]
    assert capsys.readouterr().err == ""
    if train is None:
        assert corpus.files == ("d",)
        return
    assert [one.source for one in corpus.train] == [f"d/{name}.de" for name in train]
    assert corpus.validation.target == f"d/{validation}.en"
    assert list(corpus.test or ()) == tests


@pytest.mark.parametrize(
    ("sizes", "file"),
    [
        ({"news": 90, "dev": 100}, "dev"),  # more than half of all: perhaps about developers
        ({"a_dev": 90, "a_test": 100}, "a.dev"),  # nothing would be left to learn from
    ],
)
def test_names_that_may_mean_something_else_are_told(
    capsys: pytest.CaptureFixture[str], sizes: dict[str, int], file: str
) -> None:
    _parallel("d", **sizes)
    assert propose_config("d").config.data.corpus[0].files == ("d",)
    assert f"d/{file}.de: a validation set by its name, but all pairs are divided by chance" in capsys.readouterr().err


def test_splits_are_told_by_the_names_of_all_that_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    _parallel("d", train__a=200, dev__a=30, test__b=40)
    (corpus,) = propose_config(["d/train", "d/dev", "d/test"]).config.data.corpus
    assert (corpus.validation.source, list(corpus.test)) == ("d/dev/a.de", ["test-b"])
    rows = PAIRS["de", "en"]
    for name, some in (("train", rows[:200]), ("dev", rows[200:250]), ("test", rows[250:])):
        Path("t", name).mkdir(parents=True)
        _table(f"t/{name}/data.tsv", some)
    (corpus,) = propose_config([f"t/{name}/data.tsv" for name in ("train", "dev", "test")]).config.data.corpus
    assert (corpus.train, corpus.validation, corpus.test) == (
        ("t/train/data.tsv",),
        "t/dev/data.tsv",
        {"test-data": "t/test/data.tsv"},
    )
    assert capsys.readouterr().err == ""
    other = _table("t/dev.csv", rows[200:250], ",")
    (corpus,) = propose_config(["t/train/data.tsv", other]).config.data.corpus
    assert (corpus.files, corpus.split.validation) == (("t/train/data.tsv",), held_out(200))
    assert "t/dev.csv: not read, because it is a validation set by its name" in capsys.readouterr().err


def test_tables_in_folders_below_are_found() -> None:
    Path("repo/data/x").mkdir(parents=True)
    Path("repo/README.md").write_text("# About")
    for name, first, last in (("train", 0, 200), ("test", 200, 240), ("valid", 240, 300)):
        _table(f"repo/data/x/{name}.tsv", PAIRS["de", "en"][first:last])
    corpus = _corpus(propose_config("repo"))
    assert (corpus["train"], corpus["validation"]) == (("repo/data/x/train.tsv",), "repo/data/x/valid.tsv")


def test_numbered_parts_are_one_set() -> None:
    for name, first in (("train", 0), ("validation", 180), ("test", 240)):
        for part in (0, 1):
            _table(f"{name}-0000{part}-of-00002.tsv", PAIRS["de", "en"][first + 30 * part : first + 30 * part + 30])
    corpus = _corpus(propose_config("."))
    assert corpus["train"] == ("train-00000-of-00002.tsv", "train-00001-of-00002.tsv")
    assert (corpus["validation"], corpus["test"]) == (
        "validation-0000*-of-00002.tsv",
        {"test": "test-0000*-of-00002.tsv"},
    )


def test_splits_in_an_archive_with_names_like_patterns() -> None:
    _parallel("d", **{"train[v2]": 200, "dev": 30, "test": 40})
    with zipfile.ZipFile("d.zip", "w") as archive:
        for file in sorted(Path("d").iterdir()):
            archive.write(file, f"x/{file.name}")
    proposal = propose_config("d.zip")
    (corpus,) = proposal.config.data.corpus
    assert (proposal.pairs, corpus.train[0].source) == (200, "d.zip/x/train[v2].de")
    report = prepare(proposal.config).report
    assert {name: split.pairs for name, split in report.splits.items()} == {"train": 200, "validation": 30, "test": 40}


def test_a_name_that_a_config_cannot_have_is_told() -> None:
    _parallel("d", train=200, dev=30)
    for language in ("de", "en"):
        Path(f"d/dev.{language}").rename(f"d/dev\udcff.{language}")
    assert "the name of this file is not UTF-8" in _error("d").message


def test_many_training_files_are_a_pattern() -> None:
    pairs = PAIRS["de", "en"]
    files = _parallel("d", **{f"train__talk{n}": 1 for n in range(40)}, dev=20, test=20)
    Path("d/train/talk0.de").write_text("".join(f"{de}\n" for de, _ in pairs[40:140]))
    Path("d/train/talk0.en").write_text("".join(f"{en}\n" for _, en in pairs[40:140]))
    (corpus,) = propose_config("d").config.data.corpus
    assert [one.model_dump() for one in corpus.train] == [{"source": "d/train/talk*.de", "target": "d/train/talk*.en"}]
    assert len(files) == 42


def test_test_sets_of_one_name_stay_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _parallel("a", train=100, dev=10, test=10)
    Path("b").mkdir()
    for name, first, last in (("train", 120, 200), ("dev", 200, 220), ("test", 220, 240)):
        _table(f"b/{name}.tsv", PAIRS["de", "en"][first:last])
    one, other = propose_config(["a", "b"]).config.data.corpus
    assert (list(one.test), list(other.test)) == (["test"], ["test-2"])


def test_a_folder_inside_another_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    _parallel("d", train__a=100, dev__b=20)
    assert propose_config(["d", "d/train", "d/dev/b.de"]).pairs == 100
    assert capsys.readouterr().err.count("given twice, and read once") == 2


def test_a_table_in_a_folder_of_parallel_files_is_read_too(capsys: pytest.CaptureFixture[str]) -> None:
    _parallel("d", a=100)
    table = _table("d/more.tsv", PAIRS["de", "en"][100:150])
    Path("d/more").mkdir()
    other = _table("d/more/b.tsv", PAIRS["de", "en"][150:180])
    assert propose_config(["d/a.de", "d/a.en"]).pairs == 100
    assert propose_config([table, other]).pairs == 80
    _parallel("e", a=100)
    inside = _table("e/sub.tsv", PAIRS["de", "en"][100:150])
    Path("e/sub").mkdir()
    Path(inside).rename("e/sub/sub.tsv")
    proposal = propose_config(["e", "e/sub"])
    assert (proposal.pairs, capsys.readouterr().err) == (150, "")


def test_paths_of_any_form_tell_splits(tmp_path: Path) -> None:
    _parallel("d", train__a=100, dev__a=20, test__a=20)
    (corpus,) = propose_config(["d/train", str(tmp_path / "d" / "dev"), "d/train/../test"]).config.data.corpus
    assert (corpus.train[0].source, list(corpus.test)) == ("d/train/a.de", ["test-a"])
    assert corpus.validation.source.endswith("/d/dev/a.de")


def test_the_folders_of_ai_hub_are_splits_also_with_korean_names() -> None:
    """In the normal form of macOS too."""
    rows = [{"ko": ko, "en": en} for ko, en in PAIRS["ko", "en"]]
    for training, validation in (
        ("01.데이터/1.Training/라벨링데이터/가_train_set_200", "01.데이터/2.Validation/라벨링데이터/가_valid_set_100"),
        ("학습데이터/가", "검증용데이터/가"),
        (unicodedata.normalize("NFD", "가_학습용"), unicodedata.normalize("NFD", "가_검증용")),
    ):
        for name, some in ((training, rows[:200]), (validation, rows[200:])):
            file = Path(f"hub/{name}.json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"data": some}), encoding="utf-8")
        corpus = _corpus(propose_config("hub"))
        assert (corpus["train"], corpus["validation"]) == ((f"hub/{training}.json",), f"hub/{validation}.json")
        shutil.rmtree("hub")


def test_a_large_validation_set_without_a_test_set_is_the_test_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at AI Hub, whose validation sets have a hundred thousand pairs: each validation would take long."""
    files = _parallel("d", train=200, dev=40, test=30)
    monkeypatch.setattr(proposal_splits, "_LARGE", 39)
    assert _corpus(propose_config("d"))["validation"] == files["dev"], "there is a test set"
    for language in ("de", "en"):
        Path(f"d/test.{language}").unlink()
    proposal = propose_config("d")
    (corpus,) = proposal.config.data.corpus
    assert ([dict(one) for one in corpus.files], dict(corpus.test["dev"])) == ([files["train"]], files["dev"])
    assert corpus.split.validation == held_out(200)
    said = "training train, of which validation pairs are drawn: sets for validation with 40 pairs are test sets"
    assert ("splits", f"by the names of the files: {said}; test dev (40 pairs)") in proposal.summary
    monkeypatch.setattr(proposal_splits, "_LARGE", 40)
    assert _corpus(propose_config("d"))["validation"] == files["dev"]


def test_a_test_set_that_cannot_be_read_is_told_at_once() -> None:
    files = _parallel("d", train=200, dev=30, test=40)
    with Path(files["test"]["source"]).open("a", encoding="utf-8") as file:
        file.write("noch eine Zeile\n")
    assert "d/test" in _error("d").place


def test_a_column_that_tells_splits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("train" if n < 200 else "dev" if n < 250 else "test", *pair) for n, pair in enumerate(PAIRS["de", "en"])]
    propose_config(_table("a.tsv", [("split", "de", "en"), *rows]))
    assert "a.tsv: the column split tells splits, and is not read" in capsys.readouterr().err
    propose_config(_table("b.tsv", [("domain", "de", "en"), *(("talk", *row[1:]) for row in rows)]))
    assert "tells splits" not in capsys.readouterr().err


def test_a_name_with_a_control_character_is_an_error() -> None:
    Path("data").mkdir()
    for name in ("data/a\x1b.tsv", "data/a\n.tsv"):
        Path(_table("a.tsv", PAIRS["de", "en"])).rename(name)
        for given in (name, "data"):
            assert "control character" in _error(given).message
        Path(name).unlink()


def _objects(name: str, rows: Sequence[dict[str, Any]], key: str | None = "data") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(json.dumps({key: rows} if key else rows, ensure_ascii=False), encoding="utf-8")
    return name


KO_EN = [{"ko": ko, "en": en} for ko, en in PAIRS["ko", "en"]]


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ("1.Training/학습용데이터/a", "2.Validation/학습용데이터/b"),
        ("1.Training/시험/a", "2.Validation/라벨링데이터/학습/b"),
        ("TL1", "VL1"),
        ("학습데이터/a", "검증데이터/학습용/b"),
    ],
)
def test_korean_words_tell_a_split_only_if_no_other_word_does(training: str, validation: str) -> None:
    """Every corpus of AI Hub is `AI 학습용 데이터`, also its validation set, and 시험 may be a topic."""
    _objects(f"d/{training}.json", KO_EN[:200])
    _objects(f"d/{validation}.json", KO_EN[200:])
    corpus = _corpus(propose_config("d"))
    assert (corpus["train"], corpus["validation"]) == ((f"d/{training}.json",), f"d/{validation}.json")


@pytest.mark.parametrize("names", [["2.Validation/valid_set"], ["2.Validation/a", "2.Validation/b"]])
def test_a_validation_set_alone_is_told(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in names:
        _objects(f"d/{name}.json", KO_EN)
    propose_config("d")
    assert f"d/{names[0]}.json: a validation set by its name, but all pairs are divided" in capsys.readouterr().err


def test_large_validation_sets_of_several_corpora_are_test_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other pairs are drawn for a test then."""
    _objects("d/1.Training/a.json", KO_EN[:150])
    _objects("d/2.Validation/x/v.json", KO_EN[150:190])
    _objects("d/2.Validation/y/w.json", KO_EN[190:210])
    Path(_table("b.tsv", [("a", *pair) for pair in PAIRS["ko", "en"][210:]])).rename("d/1.Training/b.tsv")
    monkeypatch.setattr(proposal_splits, "_LARGE", 59)
    one, other = propose_config("d").config.data.corpus
    assert (one.test, one.split.validation > 0) == ({"2.Validation": "d/2.Validation/**/*.json"}, True)
    assert (other.test, other.split.test, other.split.validation > 0) == (None, 0, True)
    monkeypatch.setattr(proposal_splits, "_LARGE", 60)
    one, other = propose_config("d").config.data.corpus
    assert (one.validation, one.test) == ("d/2.Validation/**/*.json", None), "of all folders in it"


def test_tables_below_folders_are_read_beside_notes_and_samples(capsys: pytest.CaptureFixture[str]) -> None:
    _objects("d/1.Training/a.json", KO_EN[:200])
    _objects("d/2.Validation/b.json", KO_EN[200:])
    wanted = ("d/1.Training/a.json",), "d/2.Validation/b.json"
    for name, content in (
        ("README.txt", "Hello.\n"),
        ("다운로드.txt", "어디에서\n"),
        ("meta.json", '{"a": "b", "c": "d"}'),
    ):
        Path("d", name).write_text(content, encoding="utf-8")
        corpus = _corpus(propose_config("d"))
        assert (corpus["train"], corpus["validation"]) == wanted
        assert f"d/{name}: not read" in capsys.readouterr().err
    _objects("d/sample.json", KO_EN[:30])
    assert sorted(_corpus(propose_config("d"))["train"]) == ["d/1.Training/a.json", "d/sample.json"]


def test_splits_of_several_forms_are_one_corpus_of_ai_hub() -> None:
    _objects("d/1.Training/a.json", KO_EN[:200])
    Path("d/2.Validation").mkdir()
    Path("d/2.Validation/b.csv").write_text(
        "\n".join(
            ["번호,원문,번역문", *(f'{n},"{one["ko"]}","{one["en"]}"' for n, one in enumerate(KO_EN[200:]))]
        ).replace("é", "e"),
        encoding="cp949",
    )
    proposal = propose_config("d")
    assert _corpus(proposal) == {
        "kind": "aihub",
        "train": ("d/1.Training/a.json",),
        "validation": "d/2.Validation/b.csv",
    }
    assert ("", "files of several forms; their headers name the columns") in proposal.summary
    assert proposal.pairs == 200


def test_thousands_of_small_files_in_folders_are_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal_splits, "_MOST", 10)
    monkeypatch.setattr(proposal_splits, "_MANY", 10)
    for n in range(50):
        _objects(f"d/1.Training/{n % 7}/{n}.json", KO_EN[5 * n : 5 * n + 5])
    _objects("d/2.Validation/b.json", KO_EN[250:])
    proposal = propose_config("d")
    assert _corpus(proposal)["train"] == ("d/1.Training/**/*.json",)
    assert proposal.pairs == 250
    assert "... and 43 more" in proposal.text
    assert max(len(text) for _, text in proposal.summary) < 400


def test_of_several_lists_the_largest_with_pairs_is_read() -> None:
    people = [{"name": "A", "mail": "a@b.example"}]
    Path("a.json").write_text(json.dumps({"contributors": people, "data": KO_EN, "tags": ["x"]}), encoding="utf-8")
    proposal = propose_config("a.json")
    assert _corpus(proposal) == {"kind": "json", "list_key": "data", "source_column": "ko", "target_column": "en"}
    assert ("", "lists that are not read: contributors; to use one, write it to a file of its own") in proposal.summary
    assert proposal.pairs == 300


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ({"info": {"v": 1}, "data": {"list": KO_EN}}, "none"),
        ({"paragraph": [{"id": "1", "sentences": KO_EN}]}, "id"),
    ],
)
def test_lists_inside_objects_are_not_read_and_told(content: Any, seen: str) -> None:
    for indent in (None, 1):
        Path("a.json").write_text(json.dumps(content, indent=indent))
        error = _error("a.json")
        assert error.message == "this JSON file has no list of objects with two texts"
        assert f"Texts of an object: {seen}. Lists inside objects are not read" in error.remedy


def test_a_machines_translation_is_never_read_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**one, "mt": one["en"], "en": None if n < 200 else one["en"]} for n, one in enumerate(KO_EN)]
    error = _error(_objects("a.json", rows), source="ko", target="en")
    assert error.message == "the column en is empty in 200 of the first 300 rows, and mt would be read in its place"
    propose_config(_objects("b.json", [{"ko": one["ko"], "mt": one["en"]} for one in KO_EN]), "ko", "en")
    assert "b.json: the column mt is the translation of a machine, by its name" in capsys.readouterr().err
    rows = [{"english text": one["en"], **one, "en": None if n < 200 else one["en"]} for n, one in enumerate(KO_EN)]
    propose_config(_objects("c.json", rows), "ko", "en")
    assert "empty in 200 of the first 300 rows, and english text is read in its place" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (("ko_original", "mt", "en"), ("ko_original", "en")),
        (("ko_original", "kor", "eng"), ("kor", "eng")),
        (("t.ko_original", "t.ko", "t.mt", "t.en"), ("t.ko", "t.en")),
    ],
)
def test_of_the_columns_in_a_language_the_one_that_is_named_as_it(names: list[str], columns: tuple[str, str]) -> None:
    rows = []
    for one in KO_EN:
        row: dict[str, Any] = {}
        for name in names:
            inside = row.setdefault("t", {}) if "." in name else row
            inside[name.rpartition(".")[2]] = one["ko"] if "ko" in name else one["en"]
        rows.append(row)
    corpus = _corpus(propose_config(_objects("a.json", rows)))
    assert (corpus["source_column"], corpus["target_column"]) == columns


def test_a_split_column_is_told_only_if_rows_are_divided(capsys: pytest.CaptureFixture[str]) -> None:
    for split, some in (("train", KO_EN[:200]), ("validation", KO_EN[200:])):
        _objects(f"d/{split}.json", [{**one, "split": split} for one in some])
    propose_config("d")
    propose_config(_objects("a.json", [{**one, "domain": "test"} for one in KO_EN]))
    assert "tells splits" not in capsys.readouterr().err
    propose_config(_objects("b.json", [{**one, "split": "train"} for one in KO_EN]))
    assert "b.json: the column split tells splits" in capsys.readouterr().err


def test_what_is_skipped_in_a_validation_set_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _objects("d/train.json", KO_EN[:200])
    _objects("d/valid.json", [*KO_EN[200:], {"ko": "하나", "en": ""}])
    proposal = propose_config("d")
    assert "validation valid (100 pairs)" in dict(proposal.summary)["splits"]
    assert "d/valid.json: 1 pair with an empty side left out" in capsys.readouterr().err


def test_an_archive_of_both_splits_is_read_as_one_is_unpacked() -> None:
    with zipfile.ZipFile("a.zip", "w") as archive:
        for name, some in (("1.Training/x/a.json", KO_EN[:200]), ("2.Validation/x/b.json", KO_EN[200:])):
            archive.writestr(name, json.dumps({"data": some}))
    corpus = _corpus(propose_config("a.zip"))
    assert (corpus["train"], corpus["validation"]) == (("a.zip/1.Training/x/a.json",), "a.zip/2.Validation/x/b.json")


@pytest.mark.parametrize("name", ["dev/pairs.tsv", "test/scores.csv"])
def test_tables_in_folders_below_do_not_hide_parallel_files(name: str) -> None:
    _parallel("d", train=200)
    Path("d", name).parent.mkdir()
    Path("d", name).write_text("one\t1\ntwo\t2\n", encoding="utf-8")
    proposal = propose_config("d")
    assert proposal.pairs == 200
    assert proposal.config.data.corpus[0].kind == "text"


def test_beside_a_table_only_folders_of_splits_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """And what is no table there is told."""
    pairs = PAIRS["de", "en"]
    Path("d/raw").mkdir(parents=True)
    Path("d/tests").mkdir()
    Path(_table("a.tsv", pairs[:200])).rename("d/corpus.tsv")
    Path(_table("a.tsv", pairs[200:250])).rename("d/raw/old.tsv")
    Path("d/tests/fixture.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert propose_config("d").pairs == 200
    said = capsys.readouterr().err
    assert "d/tests/fixture.csv: not read" in said
    Path(_table("a.tsv", pairs[250:])).rename("d/tests/test.tsv")
    proposal = propose_config("d")
    assert (proposal.config.data.corpus[0].test, proposal.pairs) == ({"tests-test": "d/tests/test.tsv"}, 200)


@pytest.mark.parametrize("key", ["creators", "resources", None])
def test_json_about_a_corpus_is_no_corpus(key: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    Path("d").mkdir()
    Path(_table("a.tsv", PAIRS["de", "en"])).rename("d/a.tsv")
    people = [{"name": f"Anna Schmidt {n}", "affiliation": "University of Edinburgh"} for n in "abc"]
    Path("d/metadata.json").write_text(json.dumps({key: people} if key else people), encoding="utf-8")
    assert propose_config("d").pairs == 300
    assert "d/metadata.json: not read" in capsys.readouterr().err
    _objects("d/more.json", [{"de": de, "en": en} for de, en in PAIRS["ko", "de"][:5]])
    assert propose_config("d").pairs == 305, "but few pairs are pairs"


def test_files_of_several_forms_whose_names_are_exchanged_are_not_read_by_their_headers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _objects("d/train/a.json", [{"ko": one["en"], "en": one["ko"]} for one in KO_EN[:200]])
    Path("d/valid").mkdir()
    rows = "".join(f'"{one["en"]}","{one["ko"]}"\n' for one in KO_EN[200:])
    Path("d/valid/b.csv").write_text(f"ko,en\n{rows}", encoding="utf-8")
    corpus = _corpus(propose_config("d", "ko", "en"))
    assert (corpus["kind"], corpus["source_column"]) == ("json", "en")
    assert "d/valid/b.csv: not read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "target"),
    [
        (("de", "en_mt", "en_reference"), "en_reference"),
        (("de", "en_raw", "en"), "en"),
        (("de", "NMT", "en_US"), "en_US"),
    ],
)
def test_a_suffix_is_no_region_and_a_machine_is_named_in_many_ways(names: Sequence[str], target: str) -> None:
    rows = [(de, f"{en} now", en) for de, en in PAIRS["de", "en"]]
    assert _corpus(propose_config(_table("a.tsv", [names, *rows])))["target_column"] == target


def test_maltese_is_no_machine(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["Il-kelb", "Marija", "Ommi", "Dan ir-raġel", "Qattus iswed", "Ħija ż-żgħir"]
    maltese = [f"{names[n % 6]} kien qed jiekol l-ikel fil-ġnien tad-dar il-kbira numru {n}." for n in range(300)]
    rows = [(en, mt) for (_, en), mt in zip(PAIRS["de", "en"], maltese, strict=True)]
    propose_config(_table("a.tsv", [("en", "mt"), *rows]), "en", "mt")
    assert "machine" not in capsys.readouterr().err


def test_a_pattern_never_searches_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal_splits, "_MANY", 4)
    asked = list[str]()
    monkeypatch.setattr(proposal_splits, "files_like", lambda pattern: asked.append(pattern) or [])
    for folder in ("a", "b"):
        for n in range(4):
            _objects(f"{folder}/{n}.json", KO_EN[8 * n : 8 * n + 8])
    _objects("dev/x.json", KO_EN[200:205])
    propose_config(["a", "b", "dev"])
    assert not [one for one in asked if one.startswith(("/*", "*"))]
    proposal_splits._pattern_of([(Path("/usr/a.json"),), (Path("/usr/lib/b.json"),)])
    assert not [one for one in asked if "**" in one], "a folder with far more files"


def test_contents_and_not_names_tell_whether_an_archive_is_unpacked() -> None:
    """Also in two archives."""
    rows = [{"ko": f"{one['ko']} {n:03}", "en": f"{one['en']} {n:03}"} for n, one in enumerate(KO_EN)]
    texts = [json.dumps(rows[n : n + 50]) for n in (0, 50, 100)]
    longest = max(map(len, texts))
    texts = [text.ljust(longest) for text in texts]
    _objects("d/y/part.json", [])
    Path("d/y/part.json").write_text(texts[0], encoding="utf-8")
    for name, content in (("one", texts[1]), ("two", texts[2]), ("again", texts[2]), ("unpacked", texts[0])):
        with zipfile.ZipFile(f"d/{name}.zip", "w") as archive:
            archive.writestr("x/part.json", content)
    assert propose_config("d").pairs == 150


def test_parallel_files_in_an_archive_beside_tables_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    _objects("d/s/b.json", KO_EN)
    with zipfile.ZipFile("d/s/one.zip", "w") as archive:
        for name, text in (("a.de", "eins"), ("a.en", "one"), ("info.json", '{"a": "b"}'), ("stats.csv", "a,b\n1,2\n")):
            archive.writestr(name, text)
    Path("d/s/broken.zip").write_bytes(b"PK and no more")
    assert propose_config("d").pairs == 300
    said = capsys.readouterr().err
    assert "s/one.zip" in said
    assert "s/broken.zip" in said


def test_json_lines_with_a_first_line_beyond_the_head() -> None:
    rows = [{**one, "embedding": [0.123] * 30_000} for one in KO_EN[:30]]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert _corpus(propose_config("a.jsonl"))["kind"] == "jsonl"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"de": "a", "en": "b"},\n{"de": "c", "en": "d"},\n', "a.json:1: invalid JSON: Extra data at character 23"),
        ('{\n"de": "a",\n"en": "b"\n}\n{\n"de": "c",\n"en": "d"\n}\n', "several values, one after the other"),
        ('[["a", "b"], ["c", "d"]]', "{source: .[0], target: .[1]}"),
        ('["a", "b"]', "A pair is an object"),
    ],
)
def test_other_json_gets_the_remedy_that_it_needs(text: str, said: str) -> None:
    Path("a.json").write_text(text, encoding="utf-8")
    assert said in str(_error("a.json"))


def test_names_of_products_are_no_splits() -> None:
    pairs = PAIRS["de", "en"]
    for n, name in enumerate(("Office", "Windows", "VS Code", "VLAN", "TSV a")):
        Path("d").mkdir(exist_ok=True)
        Path(_table("a.tsv", pairs[60 * n : 60 * n + 60])).rename(f"d/{name}.tsv")
    assert "validation" not in _corpus(propose_config("d"))
    assert roles_of([(Path("d/TL1.tsv"),), (Path("d/VL_x.tsv"),)]) != {}


def test_files_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Path]()
    monkeypatch.setattr(
        "transformer_mt.workflows.proposal.tables.contents_of", lambda file: asked.append(file) or contents_of(file)
    )
    _objects("d/train.json", KO_EN[:200])
    _objects("d/dev.json", KO_EN[200:])
    propose_config("d")
    assert sorted(map(str, asked)) == ["d", "d/dev.json", "d/train.json"]


def test_folders_far_apart_say_nothing() -> None:
    far = [(Path("/data/me/dev/a.tsv"),), (Path("/more/b.tsv"),)]
    assert names_of(far) == ["a", "b"]
    assert names_of([(Path("/data/me/dev/a.tsv"),), (Path("/data/me/train/b.tsv.gz"),)]) == ["dev/a", "train/b"]
    assert roles_of(far) == {}
    assert mixed_of(far) == (Path("/data/me/dev/a.tsv"), "validation"), "but it is told"
    assert mixed_of([(Path("/data/me/dev/a.tsv"),), (Path("/data/me/dev/b.tsv"),)]) is None, "all are in this folder"
    assert names_of([(Path("europarl.train"),), (Path("europarl.dev.gz"),)]) == ["europarl.train", "europarl.dev"]


def test_many_names_are_read_in_linear_time() -> None:
    def work(number: int) -> None:
        assert roles_of([(Path(f"corpus/part-{n}.tsv"),) for n in range(number)]) == {}

    assert_grows(work, 1_000, LINEAR)


def test_tables_that_are_named_as_splits_are_not_mixed() -> None:
    rows = PAIRS["de", "en"]
    Path("tables").mkdir()
    for name, first, last in (
        ("train-0-of-2", 0, 90),
        ("train-1-of-2", 90, 180),
        ("val", 180, 240),
        ("test", 240, 300),
    ):
        _table(f"tables/{name}.tsv", rows[first:last])
    corpus = _corpus(propose_config("tables"))
    assert corpus["train"] == ("tables/train-0-of-2.tsv", "tables/train-1-of-2.tsv")
    assert (corpus["validation"], corpus["test"]) == ("tables/val.tsv", {"test": "tables/test.tsv"})


def test_beside_test_sets_validation_pairs_are_taken_from_training(capsys: pytest.CaptureFixture[str]) -> None:
    files = _parallel("d", train=200, newstest2013=30, newstest2014=40)
    proposal = propose_config("d")
    (corpus,) = proposal.config.data.corpus
    assert [one.model_dump() for one in corpus.files] == [files["train"]]
    assert (proposal.pairs, corpus.split.validation) == (200, held_out(200))
    Path("c.yaml").write_text(proposal.text, encoding="utf-8")
    report = prepare(load_config(Path("c.yaml"))).report
    assert {name: split.pairs for name, split in report.splits.items()} == {
        "train": 200 - held_out(200),
        "validation": held_out(200),
        "newstest2013": 30,
        "newstest2014": 40,
    }
    assert capsys.readouterr().err == ""


def test_beside_a_corpus_with_splits_all_others_are_for_training() -> None:
    _parallel("d", train=200, dev=30, test=40)
    more = _table("more.tsv", PAIRS["de", "en"][270:])
    one, other = propose_config(["d", more]).config.data.corpus
    assert (one.validation.source, other.split.validation, other.split.test) == ("d/dev.de", 0, 0)


def test_a_config_that_mixes_files_named_as_splits_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    _parallel("d", train=200, dev=30, test=40)
    config = {
        "name": "mixed",
        "data": {"source": "de", "target": "en", "corpus": {"kind": "text", "files": "d"}},
        "tokenizer": {"kind": "whitespace"},
        "training": {"max_epochs": 1},
    }
    said = list[str]()
    prepare(Config.model_validate(config), say=said.append)
    (text,) = said
    assert text.startswith("d/dev.de: a validation set by its name, but `files` are divided by chance")


def test_text_that_is_tokenized_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    propose_config(_table("a.tsv", [(de.replace(".", " ."), en) for de, en in PAIRS["de", "en"]]))
    assert "a.tsv:2: the first of 196 pairs with spaces before commas" in capsys.readouterr().err


def test_text_without_capital_letters_gets_a_tokenizer_without_them() -> None:
    lower = [(de.lower(), en.lower()) for de, en in PAIRS["de", "en"]]
    assert propose_config(_table("a.tsv", lower)).config.tokenizer.case == "lower"
    one = [(de.lower(), en) for de, en in PAIRS["de", "en"]]
    assert propose_config(_table("d.tsv", one)).config.tokenizer.case == "keep", (
        "it is shared, and English has capitals"
    )
    assert propose_config(_table("b.tsv", PAIRS["de", "en"])).config.tokenizer.case == "keep"
    korean = propose_config(_table("c.tsv", [(ko, en.lower()) for ko, en in PAIRS["ko", "en"]]))
    sides = korean.config.tokenizer.source, korean.config.tokenizer.target
    assert [one.case for one in sides] == ["keep", "lower"]


def test_several_files_are_one_corpus_if_they_have_the_same_form() -> None:
    one, two = _table("1.tsv", PAIRS["de", "en"][:200]), _table("2.tsv", PAIRS["de", "en"][200:])
    other = _table("3.csv", [("English", "German"), *((en, de) for de, en in PAIRS["de", "en"][:100])], ",")
    assert list(propose_config([one, two]).config.data.corpus[0].files) == [one, two]
    mixed = propose_config([one, two, other]).config.data
    assert [corpus.kind for corpus in mixed.corpus] == ["tsv", "csv"]
    assert mixed.corpus[1].source_column == "German"
    assert [corpus.split.test for corpus in mixed.corpus] == [held_out(300), 0], "the pairs in the CSV are known"
    Path("folder").mkdir()
    Path(one).rename(Path("folder") / one)
    assert propose_config("folder").pairs == 200


OTHERS = {
    ("fr", "en"): [
        ("Le chien dort près de la fenêtre.", "The dog is sleeping near the window."),
        ("Nous avons acheté du pain à midi.", "We bought bread at noon."),
        ("Où est la gare, s'il vous plaît ?", "Where is the station, please?"),
        ("Elle écrit une lettre à sa mère.", "She is writing a letter to her mother."),
    ],
    ("ru", "en"): [
        ("Собака спит у окна.", "The dog is sleeping near the window."),
        ("Мы купили хлеб в полдень.", "We bought bread at noon."),
        ("Где находится вокзал?", "Where is the station?"),
        ("Она пишет письмо своей матери.", "She is writing a letter to her mother."),
    ],
    ("ja", "en"): [
        ("犬は窓のそばで寝ています。", "The dog is sleeping near the window."),
        ("私たちは昼にパンを買いました。", "We bought bread at noon."),
        ("駅はどこですか。", "Where is the station?"),
        ("彼女は母に手紙を書いています。", "She is writing a letter to her mother."),
    ],
    ("pl", "de"): [
        ("Pies śpi koło okna, a kot nie śpi.", "Der Hund schläft am Fenster, und die Katze nicht."),
        ("Kupiliśmy chleb w południe.", "Wir haben mittags Brot gekauft."),
        ("Gdzie jest dworzec?", "Wo ist der Bahnhof?"),
        ("Ona pisze list do swojej matki.", "Sie schreibt ihrer Mutter einen Brief."),
    ],
}


@pytest.mark.parametrize(
    ("languages", "encoding"),
    [
        (("fr", "en"), "utf-8"),
        (("fr", "en"), "cp1252"),
        (("ru", "en"), "cp1251"),
        (("ja", "en"), "shift_jis"),
        (("pl", "de"), "cp1250"),
        (("ja", "en"), "utf-8"),
    ],
)
def test_other_languages_and_their_old_encodings(languages: tuple[str, str], encoding: str) -> None:
    rows = [(f"{number}. {one}", f"{number}. {other}") for number in range(20) for one, other in OTHERS[languages]]
    proposal = propose_config(_table("a.tsv", rows, encoding=encoding))
    assert _direction(proposal) == "-".join(languages)
    assert _pairs_read(proposal) == rows
    Path("a.yaml").write_text(proposal.text, encoding="utf-8")
    assert prepare(load_config("a.yaml")).report.splits["train"].pairs > 50


@pytest.mark.parametrize("kind", ["table", "parallel files"])
def test_a_compressed_file_whose_end_is_missing_is_named(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.workflows.proposal.counting.MOST_READ", 100)  # more lines than are read
    rows = [f"{number} {one}\t{other}" for number in range(20) for one, other in PAIRS["de", "en"]]
    sides = zip(*(row.split("\t") for row in rows), strict=True)
    texts = {"a.tsv": rows} if kind == "table" else dict(zip(("c.de", "c.en"), sides, strict=True))
    Path("data").mkdir()
    for name, lines in texts.items():
        packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
        Path("data", f"{name}.gz").write_bytes(packed[: -20 if kind == "table" else 40])
    error = _error("data/a.tsv.gz" if kind == "table" else "data", source="de", target="en")
    assert "the file is incomplete: its end is missing" in error.message
    assert error.place.endswith(".gz")


def test_what_is_not_clear_is_an_error_that_says_what_was_seen() -> None:
    pairs = PAIRS["de", "en"]
    assert "0 (de), 1 (de)" in _error(_table("a.tsv", [(de, f"Ja, {de}") for de, _ in pairs])).remedy
    assert _direction(propose_config("a.tsv", "de", "nds")) == "de-nds"
    assert "no column of sentences is in fr" in _error(_table("b.tsv", pairs), source="fr").message
    three = [(de, en, f"Perhaps {en}") for de, en in pairs]
    assert "3 columns are sentences" in _error(_table("c.tsv", three)).message
    for named in ({}, {"source": "de", "target": "en"}):  # naming them does not say which of the two
        assert "source_column, target_column" in _error("c.tsv", **named).remedy
    same = _table("s.tsv", [(de, f"Ja, {de}", f"Nein, {de}") for de, _ in pairs])
    assert "source_column, target_column" in _error(same).remedy
    korean = [one for one, _ in PAIRS["ko", "en"]]
    several = [(*pair, ko) for pair, ko in zip(pairs, korean * len(pairs), strict=False)]
    assert "Name two languages" in _error(_table("k.tsv", several)).remedy
    assert _direction(propose_config("k.tsv", "ko", "en")) == "ko-en"
    numbers = [(de, str(n)) for n, (de, _) in enumerate(pairs)]
    assert "1 (numbers, ids or links)" in _error(_table("d.tsv", numbers)).remedy
    assert "no column of sentences is in en" in _error("d.tsv", source="de", target="en").message
    words = [(f"Haus{n}" * 2, f"house{n}") for n in "abcdefghijklmnopqrstuvwxyz"]
    assert "If these are sentences or words" in _error(_table("w.tsv", words)).remedy
    for languages in (("de", "en"), ("en", "de")):
        proposal = propose_config("w.tsv", *languages)
        assert _direction(proposal) == "-".join(languages)
    assert "different pairs" in _error(_table("e.tsv", pairs[:10] * 3)).message
    assert "no such file" in _error("g.tsv").message
    Path("h.bin").write_bytes(random.Random(1).randbytes(5_000))
    assert _error("h.bin").remedy


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"\n \n\n", "only empty lines"),
        ("a.tsv", "Schön\tnice one\n".encode() * 30 + "Übel\tbad one\n".encode("cp1252") * 20, "20 of 50 lines"),
        ("a.bin", random.Random(1).randbytes(5_000), "not a text file"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "save it as .xlsx"),
        (
            "a.tsv",
            b"de\ten\n" + b"".join(b"Satz %d hier\t%s\n" % (n, b"" if n % 3 else b"one") for n in range(30)),
            "20",
        ),
    ],
)
def test_what_cannot_be_a_corpus(name: str, content: bytes, said: str) -> None:
    Path(name).write_bytes(content)
    error = _error(name)
    assert said in error.message + error.remedy


def test_files_without_two_columns_of_text_are_refused() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    book = Workbook()
    book.active.append(["only one column"])
    book.save("a.xlsx")
    parquet.write_table(pyarrow.table({"text": ["eins"], "number": [1]}), "a.parquet")
    Path("a.xml").write_text("<book><page/></book>", encoding="utf-8")
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("README", "nothing else")
    for name, message, remedy in (
        (
            "a.xlsx",
            "no sheet of this workbook is a table of sentence pairs",
            "Sheets in it: Sheet. A sheet needs a column for each language.",
        ),
        ("a.parquet", "there are no two columns of text", "Columns seen: text (string), number (int64)"),
        ("a.xml", "this XML file is not TMX: it has no units (tu)", "Export it as TMX."),
        ("a.zip", "this archive contains no corpus", "Unpack it, and give a file inside it."),
    ):
        error = _error(name)
        assert (error.message, error.remedy) == (message, remedy)


def test_parallel_files_in_two_encodings_are_refused() -> None:
    Path("x.de").write_bytes("".join(f"Schön: {de}\n" for de, _ in PAIRS["de", "en"]).encode("cp1252"))
    Path("x.ko").write_text("".join(f"{ko}\n" for ko, _ in PAIRS["ko", "de"]), encoding="utf-8")
    assert "x.de is CP1252, x.ko is UTF-8" in _error("x.de", "x.ko").message


def test_files_of_a_folder_or_an_archive_in_two_encodings_are_refused() -> None:
    """Also if only the second pair of files has another encoding."""
    Path("folder").mkdir()
    for stem, encoding in (("1", "utf-8"), ("2", "cp1252")):
        for side, language in enumerate(("de", "en")):
            lines = (f"Schön: {pair[side]}\n" for pair in PAIRS["de", "en"])
            Path(f"folder/{stem}.{language}").write_bytes("".join(lines).encode(encoding))
    with zipfile.ZipFile("folder.zip", "w") as archive:
        for file in Path("folder").iterdir():
            archive.write(file, file.name)
    for place in ("folder", "folder.zip"):
        error = _error(place)
        assert f"{place}/1.de is UTF-8, {place}/2.de is CP1252" in error.message
        assert f"iconv -f CP1252 -t UTF-8 {place}/2.de" in error.remedy


def test_encodings_that_read_the_same_text_are_one() -> None:
    """German in cp1252 is German in cp1250, which Polish needs; a file in ASCII is in every encoding."""
    polish, german = zip(*OTHERS["pl", "de"] * 10, strict=True)
    for file, lines, encoding in (("x.pl", polish, "cp1250"), ("x.de", german, "cp1252")):
        Path(file).write_bytes("".join(f"{n}. {line}\n" for n, line in enumerate(lines)).encode(encoding))
    assert _corpus(propose_config(["x.pl", "x.de"])) == {"kind": "text", "encoding": "cp1250"}
    Path("x.en").write_text("".join(f"{n}. This is a plain sentence.\n" for n in range(40)), encoding="ascii")
    assert _corpus(propose_config(["x.pl", "x.en"])) == {"kind": "text", "encoding": "cp1250"}
    Path("x.de").write_text(Path("x.de").read_text(encoding="cp1252"), encoding="utf-16")
    assert "x.de is UTF-16" in _error("x.en", "x.de").message


def test_columns_in_two_encodings_are_refused() -> None:
    """As `paste` writes them from two files."""
    rows = [f"Schön: {de}".encode("cp1252") + f"\tTrès beau: {en}\n".encode() for de, en in PAIRS["de", "en"]]
    Path("a.tsv").write_bytes(b"".join(rows))
    assert "cells in two encodings" in _error("a.tsv").message
    assert "iconv" in _error("a.tsv").remedy
    lines = [f"schön {number}\tnice {number}\n".encode("utf-8" if number % 40 else "cp1252") for number in range(120)]
    Path("b.tsv").write_bytes(b"".join(lines))
    assert "Correct these lines, or write a config by hand with  invalid: drop" in _error("b.tsv").remedy


def test_a_line_break_in_a_cell_is_a_space_in_the_first_pair() -> None:
    rows = [f'"{de}\nJa.",{en}\n' for de, en in PAIRS["de", "en"] if "," not in de + en]
    Path("a.csv").write_text("de,en\n" + "".join(rows), encoding="utf-8")
    proposal = propose_config("a.csv")
    assert not any("\n" in text for _, text in proposal.summary)
    assert "\n" in _pairs_read(proposal)[0][0]


def test_exchanged_names_are_not_believed() -> None:
    proposal = propose_config(_table("a.tsv", [("en", "de"), *PAIRS["de", "en"]]))
    assert (_direction(proposal), _corpus(proposal)["source_column"]) == ("de-en", "en")
    assert "the names are exchanged: en looks like German, and de like English" in " ".join(
        text for _, text in proposal.summary
    )
    assert "names are exchanged" in " ".join(proposal.text.replace("#", "").split())
    assert _direction(propose_config("a.tsv", "en", "de")) == "en-de"
    for language, side in (("en", 0), ("de", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS["de", "en"])
        for file in (Path(f"x.{language}"), Path("folder", f"x.{language}")):
            file.parent.mkdir(exist_ok=True)
            file.write_text(lines, encoding="utf-8")
    proposal = propose_config(["x.en", "x.de"])
    assert (_direction(proposal), _pairs_read(proposal)[0]) == ("de-en", PAIRS["de", "en"][0])
    assert "Rename the files" in _error("folder").remedy, "the reader goes by their names"


def test_a_column_in_another_language_than_it_is_said_to_be_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    table = _table("a.tsv", [("de", "en"), *PAIRS["de", "en"]])
    propose_config(table)
    assert "looks like" not in capsys.readouterr().err
    assert _direction(propose_config(table, "en", "fr")) == "en-fr"
    assert "a.tsv: column de looks like German, not French" in capsys.readouterr().err
    for name, side in (("x.de", 0), ("x.en", 1)):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS["de", "en"]), encoding="utf-8")
    assert _direction(propose_config(["x.de", "x.en"], "fr", "en")) == "fr-en"
    assert "tmt: x.de looks like German, not French" in capsys.readouterr().err


def test_each_entry_has_its_line_and_its_reasons() -> None:
    first = _table("1.tsv", PAIRS["de", "en"][:100])
    second = _table("2.tsv", [(en, de) for de, en in PAIRS["de", "en"][100:200]])
    third = _table("3.csv", [("Zieltext", "Ausgangstext"), *PAIRS["de", "en"][200:]], ";")
    proposal = propose_config([first, second, third])
    assert [text for title, text in proposal.summary if title == "data"] == [
        "1.tsv: tsv, columns 0 and 1",
        "2.tsv: tsv, columns 1 and 0",
        "3.csv: csv, columns Zieltext and Ausgangstext",
    ]
    assert sum("no header seen; first row: " in text for _, text in proposal.summary) == 2
    assert "semicolons between the columns" in " ".join(proposal.text.replace("#", "").split())


@pytest.mark.parametrize(
    "names",
    [
        *(("Satz", "Übersetzung"), ("Ausgangstext", "Zieltext"), ("phrase", "traduction"), ("source text", "Deutsch")),
        *(("원문", "번역"), ("Englisch", "Koreanisch"), ("anglais", "coréen")),
    ],
)
def test_headers_in_other_languages(names: tuple[str, str]) -> None:
    """The sentences have no full stops, so only the words say that this is a header. pandas does not name the index."""
    rows = [(en.rstrip(".?!"), ko.rstrip(".?!")) for ko, en in PAIRS["ko", "en"]]
    file = _table("a.tsv", [("", *names), *((str(n), *row) for n, row in enumerate(rows, 10))])
    found = contents_of(Path(file))
    assert list(found.columns) == [0, *names]
    assert list(zip(*(found.columns[name] for name in names), strict=True)) == rows


@pytest.mark.parametrize("kind", ["tsv", "xlsx"])
def test_columns_with_one_name_are_given_by_number(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("text", "text"), *PAIRS["de", "en"]]
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save("a.xlsx")
    proposal = propose_config("a.xlsx" if kind == "xlsx" else _table("a.tsv", rows))
    assert (_corpus(proposal)["source_column"], _corpus(proposal)["target_column"]) == (0, 1)
    assert _pairs_read(proposal) == PAIRS["de", "en"], "the reader skips the header, and reports it"
    assert "1 row skipped: it looks like a header: text | text" in capsys.readouterr().err


def test_the_other_sheets_of_a_workbook_without_headers_are_named() -> None:
    book = Workbook()
    for sheet in (book.active, book.create_sheet("Talks")):
        for row in PAIRS["de", "en"]:
            sheet.append(row)
    book.save("a.xlsx")
    assert ("", "sheets that are not read: Talks") in propose_config("a.xlsx").summary


def test_a_file_that_is_given_twice_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    file = _table("a.tsv", PAIRS["de", "en"])
    proposal = propose_config([file, "./a.tsv", "."])
    assert list(proposal.config.data.corpus[0].files) == [file]
    assert proposal.pairs == 300
    assert capsys.readouterr().err.count("given twice, and read once") == 2


def test_files_of_a_folder_that_are_not_read_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir()
    _table("folder/a.tsv", PAIRS["de", "en"])
    for language, side in (("de", 0), ("en", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS["de", "en"])
        Path(f"folder/b.{language}").write_text(lines, encoding="utf-8")
    assert propose_config("folder").pairs == 300
    assert "folder: only the tables in it are read, not b.de | b.en" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.txt", "These pairs were made by hand.\nLicence: CC0\n"),
        ("meta.json", '{"name": "our pairs", "licence": "ask the author"}\n'),
        ("dataset_info.json", '{\n "features": {\n  "de": "string"\n }\n}\n'),
    ],
)
def test_a_folder_may_have_notes_about_its_tables(name: str, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("tables", "parallel", "empty"):
        Path(folder).mkdir()
        Path(folder, name).write_text(content, encoding="utf-8")
    _table("tables/a.tsv", PAIRS["de", "en"])
    assert propose_config("tables").pairs == 300
    assert f"tables/{name}: not read, because" in capsys.readouterr().err
    for language, side in (("de", 0), ("en", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in PAIRS["de", "en"])
        Path(f"parallel/b.{language}").write_text(lines, encoding="utf-8")
    proposal = propose_config("parallel")
    assert (_corpus(proposal), proposal.pairs) == ({"kind": "text"}, 300)
    assert f"parallel: only the parallel files in it are read, not {name}" in capsys.readouterr().err
    assert _error("empty").place.startswith(f"empty/{name}")


def test_a_broken_table_in_a_folder_is_not_left_out() -> None:
    Path("folder").mkdir()
    _table("folder/a.tsv", PAIRS["de", "en"])
    Path("folder/b.tsv").write_text("just one column\n" * 9, encoding="utf-8")
    assert _error("folder").place == "folder/b.tsv"


def test_lines_that_end_with_cr_only() -> None:
    for name, separator in (("a.tsv", "\t"), ("a.csv", ",")):
        Path(name).write_text("".join(f'"{de}"{separator}"{en}"\r' for de, en in PAIRS["de", "en"]), encoding="utf-8")
        assert "the lines end with CR only" in _error(name).message


def test_the_updates_of_an_epoch_are_those_of_the_training() -> None:
    proposal = propose_config(_table("a.tsv", PAIRS["ko", "en"]))
    (said,) = re.findall(r"about (\d+) updates in an epoch", proposal.text)
    prepared, training = prepare(proposal.config), proposal.config.training
    updates = Batches(prepared.store("train"), BatchSize(tokens=training.batch_tokens), seed=1).updates(1)
    assert int(said) == pytest.approx(updates, abs=1)


def test_empty_sides_are_not_pairs_and_repeated_sentences_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("de", "en"), *PAIRS["de", "en"][:40] * 10, *[("", "nothing here")] * 9]
    proposal = propose_config(_table("a.tsv", rows))
    assert (proposal.pairs, _direction(proposal)) == (400, "de-en")
    assert "9 pairs with an empty side" in capsys.readouterr().err


def test_a_tmx_in_one_line_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.workflows.proposal.counting.MOST_READ", 100)
    variant = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'.format
    units = "".join(f"<tu>{variant('de', de)}{variant('en', en)}</tu>" for de, en in PAIRS["de", "en"])
    Path("a.tmx").write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
    assert propose_config("a.tmx").pairs == 300


def test_what_was_skipped_in_a_large_file_is_noted_and_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though only its beginning is read."""
    monkeypatch.setattr("transformer_mt.workflows.proposal.counting.MOST_READ", 100)
    rows = [(*pair, "") if n % 30 else (*pair, "one", "too many") for n, pair in enumerate(PAIRS["de", "en"], 1)]
    propose_config(_table("a.tsv", rows))
    noted = "a.tsv:30: 3 rows skipped, this is the first, looking at the first 100 pairs; `tmt prepare` reads all"
    assert noted in capsys.readouterr().err
    unit = '<tu><tuv xml:lang="de"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'.format
    units = "".join(unit(de, "en" if n % 2 else "en-US", en) for n, (de, en) in enumerate(PAIRS["de", "en"]))
    mixed = "".join(unit(de, "fr" if n % 3 else "en", en) for n, (de, en) in enumerate(PAIRS["de", "en"] * 3))
    for name, body, pairs in (("a", units, 300), ("b", mixed, 300)):
        Path(f"{name}.tmx").write_text(f"<tmx><body>{body}</body></tmx>", encoding="utf-8")
        assert propose_config(f"{name}.tmx", "de", "en").pairs == pytest.approx(pairs, abs=3)
    assert "198 units skipped" in capsys.readouterr().err
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    records = [{"de": de, "en": en if n % 4 else None} for n, (de, en) in enumerate(PAIRS["de", "en"])]
    parquet.write_table(pyarrow.Table.from_pylist(records), "a.parquet")
    proposal = propose_config("a.parquet")
    assert (proposal.pairs, proposal.about) == (pytest.approx(225, abs=3), True)


def test_a_large_file_is_estimated_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer_mt.workflows.proposal.counting.MOST_READ", 100)
    proposal = propose_config(_table("a.tsv", [(f"{n} {de}", en) for n in range(9) for de, en in PAIRS["de", "en"]]))
    assert proposal.about
    assert proposal.pairs == pytest.approx(2_700, rel=0.01)
    assert "about 2,700" in " ".join(text for _, text in proposal.summary)


def test_a_name_that_a_run_has_is_not_proposed_again() -> None:
    """Both directions of one file, for example: the data of the trained model would be replaced."""
    file = _table("a.tsv", PAIRS["de", "en"][:30])
    assert propose_config(file).config.name == "a"
    Path("runs/a").mkdir(parents=True)
    assert propose_config(file, "en", "de").config.name == "a-2"


def test_minutes_decide_the_epochs() -> None:
    file = _table("a.tsv", PAIRS["de", "en"])
    short, long = (propose_config(file, minutes=minutes) for minutes in (1, 20))
    assert short.config.training.max_epochs is not None
    assert long.config.training.max_epochs is not None
    assert long.config.training.max_epochs > 5 * short.config.training.max_epochs
    assert short.minutes <= 1


@pytest.mark.parametrize("number", [34, 60])
def test_the_vocabulary_that_is_proposed_fits_what_is_left_for_training(number: int) -> None:
    """Pairs are set aside, and cleaning drops some."""
    rows = [(" ".join(de.split()[:3]), " ".join(en.split()[:3])) for de, en in PAIRS["de", "en"][:number]]
    proposal = propose_config(_table("a.tsv", rows), "de", "en")
    prepare(proposal.config.model_copy(update={"data": proposal.config.data.model_copy(update={"workers": 1})}))


def test_two_vocabularies_have_the_sizes_of_their_own_texts() -> None:
    """Chinese has many characters; three different words of English have few pieces."""
    characters = [chr(0x4E00 + 7 * number) for number in range(700)]
    rows = [
        ("".join(characters[n % 700 : n % 700 + 4]), f"{('old', 'new', 'red')[n % 3]} house {n}") for n in range(900)
    ]
    proposal = propose_config(_table("a.tsv", rows), "zh", "en")
    source, target = proposal.config.source_tokenizer.size, proposal.config.target_tokenizer.size
    assert source > 1.4 * 700 > 200 > target
    assert f"{source:,} pieces of the source and {target} of the target" in dict(proposal.summary)["model"]
    prepare(proposal.config.model_copy(update={"data": proposal.config.data.model_copy(update={"workers": 1})}))


@pytest.mark.parametrize(("updates", "epochs"), [(5, 160), (25, 120), (75, 40), (90, 40)])
def test_few_pairs_get_enough_updates(updates: int, epochs: int) -> None:
    """40 epochs of 500 pairs are too few: docs/log.md."""
    assert epochs_for(sizes_for(500), updates) == epochs


def test_the_epochs_that_are_proposed_are_those_of_the_updates() -> None:
    proposal = propose_config(_table("a.tsv", PAIRS["de", "en"]))
    (updates,) = re.findall(r"batch_tokens: \d+ +# about (\d+) updates in an epoch", proposal.text)
    assert proposal.config.training.max_epochs == epochs_for(sizes_for(300), int(updates)) > 40
    assert proposal.config.training.validate_every == 50, "an epoch has few updates"


def test_on_a_gpu_sentences_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(torch.device("cuda"), torch.float32)
    monkeypatch.setattr("transformer_mt.workflows.propose.set_up", lambda *_: machine)
    monkeypatch.setattr(Machine, "describe", lambda _: "a GPU")
    proposal = propose_config(_table("a.tsv", PAIRS["de", "en"]))
    assert proposal.config.training.packing
    assert re.search(r"packing: true +# no padding", proposal.text)


@pytest.mark.parametrize("packing", [False, True])
def test_the_time_of_an_update_is_that_of_a_batch(packing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SECONDS", 0.0)
    config = propose_config(_table("a.tsv", PAIRS["de", "en"])).config
    training = config.training.model_copy(update={"packing": packing})
    config, machine = config.model_copy(update={"training": training}), Machine(torch.device("cpu"), torch.float32)
    assert 0.001 < seconds_an_update(config, (500, 500), (9.0, 12.0), machine) < 60


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_more_pairs_never_get_smaller_models(shared: bool, gpu: bool) -> None:
    counts = [100, 5_000, 8_000, 20_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000]
    sizes = [sizes_for(count, shared, gpu) for count in counts]
    for smaller, larger in pairwise(sizes):
        assert smaller.vocabulary <= larger.vocabulary
        assert smaller.width <= larger.width
        assert smaller.epochs >= larger.epochs or gpu
    for count, one in zip(counts, sizes, strict=True):
        assert 1 <= held_out(count) <= min(1_000, count // 10)
        assert warmup_for(one, 50) == 5


def test_the_sizes_are_those_of_the_shipped_config() -> None:
    """What docs/results.md compares: at this number of pairs, a proposal trains as the config written by hand."""
    config: Config = load_config(Path(__file__).parents[2] / "configs" / "multi30k-de-en.yaml")
    sizes, model, training = sizes_for(20_000), config.model, config.training
    assert config.source_tokenizer.size == sizes.vocabulary
    assert (model.d_model, model.n_heads, model.d_ff) == (sizes.width, sizes.heads, sizes.feed_forward)
    assert (model.encoder_layers, model.decoder_layers, model.dropout) == (sizes.layers, sizes.layers, sizes.dropout)
    assert (training.batch_tokens, training.learning_rate) == (sizes.batch_tokens, sizes.learning_rate)
    assert training.warmup_steps == sizes.warmup


def test_quotations_in_a_table_with_tabs_are_text() -> None:
    """Not cells that a program has put in quotes: they are quotations on both sides."""
    spoken = [(f'"Ja, sagte er {number}."', f'"Yes, he said {number}."') for number in range(20)]
    short = [(f"Gut {number}.", f"Good {number}.") for number in range(180)]
    proposal = propose_config(_table("a.tsv", [*spoken, *short]), source="de", target="en")
    assert _corpus(proposal)["kind"] == "tsv"
    assert ('"Ja, sagte er 3."', '"Yes, he said 3."') in _pairs_read(proposal)


def test_a_file_of_pairs_that_cannot_be_read_is_not_left_out_of_a_folder() -> None:
    Path("data").mkdir()
    Path(_table("a.tsv", PAIRS["de", "en"])).rename("data/a.tsv")
    Path("data/b.json").write_text(json.dumps([{"de": "eins", "en": "one"}])[:-1], encoding="utf-8")
    assert _error("data").place == "data/b.json:1"
    Path("data/b.json").unlink()
    Path("data/c.txt").write_text("eins\tone\nzwei\ttwo\tII\n" * 20, encoding="utf-8")
    assert "different numbers of columns" in _error("data").message
    Path("data/c.txt").rename("data/README.txt")
    assert propose_config("data").pairs == len(PAIRS["de", "en"])


@pytest.mark.parametrize("value", ["x", "x" * 100])
def test_a_key_with_an_empty_comment_is_written_once(value: str) -> None:
    assert config_text({"a": value}, {"a": " "}, "").splitlines().count(f"a: {value}") == 1
