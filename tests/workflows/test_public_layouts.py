"""`tmt init files --data` on files laid out as public corpora are; the sentences are the phrasebook's."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from transformer_mt.config.load import load_config
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import generate
from transformer_mt.workflows.propose import Proposal, propose_config

PAIRS = list(generate("de", "en", "train", 240, 1))
DE, EN = (list(side) for side in zip(*PAIRS, strict=True))


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("transformer_mt.workflows.propose.seconds_an_update", lambda *_: 0.1)  # no update is timed


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _write(name: str, lines: Iterable[str]) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _text(lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def _tsv(pairs: Iterable[tuple[str, ...]]) -> list[str]:
    return ["\t".join(pair) for pair in pairs]


def _error(*data: str) -> TmtError:
    with pytest.raises(TmtError) as caught:
        propose_config(data)
    return caught.value


def _languages(proposal: Proposal) -> str:
    return proposal.config.data.direction


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("news-commentary-v16.de-en.tsv.gz", _tsv(PAIRS)),
        ("en-de.txt.gz", _tsv(PAIRS)),  # ParaCrawl
        ("WikiMatrix.de-en.tsv.gz", _tsv((f"1.{number}", *pair) for number, pair in enumerate(PAIRS))),
    ],
)
def test_packed_tables_of_a_folder_are_found(name: str, lines: list[str]) -> None:
    _write(f"f/{name}", lines)
    proposal = propose_config("f")
    assert (proposal.pairs, _languages(proposal)) == (240, "de-en")


def test_a_packed_table_beside_parallel_files_is_not_lost_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    _write("f/europarl-v7.de-en.de", DE[:100])
    _write("f/europarl-v7.de-en.en", EN[:100])
    _write("f/news-commentary-v16.de-en.tsv.gz", _tsv(PAIRS[100:]))
    assert propose_config("f").pairs == 140
    assert "only the tables in it are read, not europarl-v7.de-en.de | europarl-v7.de-en.en" in capsys.readouterr().err


def test_archives_of_opus_in_a_folder_are_read() -> None:
    for name, rows in (("Books", slice(0, 120)), ("TED2020", slice(120, 240))):
        Path("opus").mkdir(exist_ok=True)
        with zipfile.ZipFile(f"opus/{name}.de-en.txt.zip", "w") as archive:
            archive.writestr("README", "about the corpus")
            archive.writestr(f"{name}.de-en.de", _text(DE[rows]))
            archive.writestr(f"{name}.de-en.en", _text(EN[rows]))
            archive.writestr(f"{name}.de-en.xml", "<cesAlign/>")
    proposal = propose_config("opus")
    assert (proposal.pairs, _languages(proposal)) == (240, "de-en")


@pytest.mark.parametrize("data", ["anki/deu-eng.zip", "anki"])
def test_an_archive_of_anki_has_a_table_of_text(data: str) -> None:
    rows = [(english, german, f"CC-BY 2.0 (France) #{number}") for number, (german, english) in enumerate(PAIRS)]
    Path("anki").mkdir()
    with zipfile.ZipFile("anki/deu-eng.zip", "w") as archive:
        archive.writestr("_about.txt", "These are from the Tatoeba Project.\nThe date is 2026-11-30.\n")
        archive.writestr("deu.txt", _text(_tsv(rows)))
    proposal = propose_config(data)
    (corpus,) = proposal.config.data.corpus
    assert corpus.files == ("anki/deu-eng.zip/deu.txt",)
    assert (proposal.pairs, _languages(proposal)) == (240, "en-de")


def test_sides_without_a_language_in_their_names_as_in_the_tatoeba_challenge() -> None:
    folder = "data/release/v2021-08-07/deu-eng"
    for split, rows in (("train", slice(0, 180)), ("dev", slice(180, 210)), ("test", slice(210, 240))):
        ending = ".gz" if split == "train" else ""
        _write(f"{folder}/{split}.src{ending}", DE[rows])
        _write(f"{folder}/{split}.trg{ending}", EN[rows])
        _write(f"{folder}/{split}.id{ending}", ["deu\teng"] * len(DE[rows]))
    _write(f"{folder}/README.txt", ["About this corpus"])
    proposal = propose_config("data")
    assert _languages(proposal) == "de-en"
    Path("my.yaml").write_text(proposal.text, encoding="utf-8")
    report = prepare(load_config("my.yaml")).report
    assert {name: split.pairs for name, split in report.splits.items()} == {"train": 180, "validation": 30, "test": 30}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("wmt14.de-en.src", "wmt14.de-en.ref"),
        ("deu-eng/one.src", "deu-eng/one.trg"),
        ("no/one.src", "no/one.trg"),
        ("it/a.src", "fr/a.trg"),
        ("one", "two"),
    ],
)
def test_two_files_have_the_languages_of_their_sentences_not_of_their_folders(first: str, second: str) -> None:
    proposal = propose_config([_write(first, DE), _write(second, EN)])
    assert (proposal.pairs, _languages(proposal)) == (240, "de-en")


def test_a_language_that_only_one_of_two_names_has_counts() -> None:
    proposal = propose_config([_write("de/corpus-en.txt", EN), _write("de/corpus-nl.txt", DE)])
    assert _languages(proposal) == "en-nl"


def test_what_a_folder_has_beside_its_pairs_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A test set may be among it."""
    _write("f/train.de", DE)
    _write("f/train.en", EN)
    for name in ("newstest2014-deen-src.de.sgm", "flores/dev/deu_Latn.dev", "README.md", "LICENSE"):
        _write(f"f/{name}", ["<seg>x</seg>"])
    assert propose_config("f").pairs == 240
    said = capsys.readouterr().err
    assert "f: not read: flores/dev/deu_Latn.dev | newstest2014-deen-src.de.sgm\n" in said


def test_the_first_test_set_is_no_further_validation_set() -> None:
    """As in IWSLT and KFTT. It is the one that `tmt evaluate` scores by default."""
    for number, name in enumerate(("train", "dev2010", "dev2012", "tst2010", "tune")):
        pairs = slice(40 * number, 40 * (number + 1)) if number else slice(None)
        for side, lines in (("de", DE), ("en", EN)):
            _write(f"corpus/{name}.{side}", lines[pairs])
    (corpus,) = propose_config("corpus").config.data.corpus
    assert corpus.validation.source == "corpus/dev2010.de"
    assert list(corpus.test) == ["tst2010", "dev2012", "tune"]


@pytest.mark.parametrize("by_path", [False, True])
def test_lines_about_talks_are_named_as_no_sentences(by_path: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """As in the files `train.tags` of IWSLT."""
    about = (
        ["<url>http://a.example/1</url>", "<title>Das Eis</title>"],
        ["<url>http://a.example/1</url>", "<title>Ice</title>"],
    )
    files = [_write("f/train.tags.de-en.de", [*about[0], *DE]), _write("f/train.tags.de-en.en", [*about[1], *EN])]
    proposal = propose_config(files if by_path else "f")
    assert proposal.pairs == 242
    said = capsys.readouterr().err
    assert "the first of 2 pairs that are no sentences" in said
    assert "grep -v '^ *<' OLD > NEW" in said
    for file in files:
        done = subprocess.run(["grep", "-v", "^ *<", file], capture_output=True, text=True, check=True)
        file.write_text(done.stdout, encoding="utf-8")
    assert propose_config(files if by_path else "f").pairs == 240
    assert capsys.readouterr().err == ""


def test_test_sets_of_wmt_are_told_with_a_command_that_takes_their_sentences() -> None:
    lines = ["<refset setid='newstest2014' srclang='any' trglang='de'>", "<doc sysid='ref' docid='1'>", "<hl>"]
    lines += [f'<seg id="{number}">{text}</seg>' for number, text in enumerate(DE[:20], 1)]
    _write("newstest2014-deen-ref.de.sgm", [*lines, "</hl>", "</doc>", "</refset>"])
    remedy = _error("newstest2014-deen-ref.de.sgm").remedy
    command = remedy.partition(":  ")[2].replace("FILE", "newstest2014-deen-ref.de.sgm").replace("NAME", "taken")
    subprocess.run(["bash", "-c", command], check=True)
    assert Path("taken.de").read_text(encoding="utf-8") == _text(DE[:20])


def test_what_must_be_unpacked_is_told() -> None:
    Path("packed").mkdir()
    _write("corpus.de", DE)
    with tarfile.open("packed/de-en.tgz", "w:gz") as archive:
        archive.add("corpus.de")
    assert "tar -xf de-en.tgz" in _error("packed/de-en.tgz").remedy
    assert "tar -xf de-en.tgz" in _error("packed").remedy
    Path("packed/de-en.tgz").unlink()
    Path("packed/corpus.de.bz2").write_bytes(bz2.compress(_text(DE).encode()))
    assert "Files here: corpus.de.bz2" in _error("packed").remedy
    for place in ("packed", "packed/corpus.de.bz2"):
        assert "bunzip2 corpus.de.bz2" in _error(place).remedy
