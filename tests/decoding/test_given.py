"""What is given in Python: every mistake is a TmtError that says where it is; glossaries fit the model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import transformer_mt as tmt
from tests.decoding.test_terms import random_model
from transformer_mt.cli import main
from transformer_mt.decoding.terms import Term
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.text.words import words_across

X = Term("a", "b")


@pytest.fixture(scope="module")
def translator() -> Translator:
    return random_model("words")


class Table(list[str]):
    """As pandas and datasets have tables: to iterate over one gives the names of its columns."""

    def to_csv(self, file: str) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda t: t.translate("\ud800 a"), "surrogate"),
        (lambda t: list(t.translate(["a", "b\udc80"])), "line 2: .*U\\+DC80"),
        (lambda t: t.translate("a", "\ud800"), "prefixes: .*surrogate"),
        (lambda t: t.translate("a", terms=[Term("a", "\ud800")]), "terms: .*surrogate"),
        (lambda t: t.score("a", "\ud800"), "surrogate"),
        (lambda t: tmt.translate_document("a \ud800", t, "text"), "document: .*surrogate"),
        (lambda t: t.translate(["a", "b"], ["x"]), "prefixes: 1 for 2 lines"),
        (lambda t: t.translate(["a"], ["x", "y"]), "prefixes: 2 for 1 line\n"),
        (lambda t: t.translate(["a", "b"], terms=[[]]), "terms: 1 for 2 lines"),
        (lambda t: t.translate("a", terms=[[], []]), "terms: 2 for 1 line\n"),
        (lambda t: list(t.translate(iter("abc"), iter("xy"))), "prefixes: 2 for more lines"),
        (lambda t: list(t.translate(iter("abc"), terms=iter([[], []]))), "terms: 2 for more lines"),
        (lambda t: t.translate(["a"], 3), "prefixes: .*int is not a list"),
        (lambda t: list(t.translate(["a"], [3])), "prefixes: .*int is not text"),
        (lambda t: t.translate(["a"], terms=3), "terms: .*int is not a list"),
        (lambda t: list(t.translate(["a"], terms=[X])), "'a' is not a Term"),
        (lambda t: t.translate("a", terms=[[("a", "b")]]), "is not a Term"),
        (lambda t: t.translate("a", terms=[Term("a", 3)]), "terms: .*int is not text"),
        (lambda t: t.translate("a", terms={"a": ""}), "glossary: the translation is empty"),
        (lambda t: t.glossary("nowhere.tsv"), "nowhere.tsv: no such file"),
        (lambda t: list(t.score(["a", "b"], ["b"])), "the target ends after line 1, the source does not"),
        (lambda t: tmt.translate_document(None, t, "text"), "document: None is not text"),
        (lambda t: tmt.load(None), "None is not a path"),
        (lambda t: tmt.load([3]), "int is not a path"),
        (lambda t: tmt.load([]), "the list of models is empty"),
        (lambda t: tmt.evaluate([]), "the list of models is empty"),
        (lambda t: tmt.load(""), "a path is empty"),
        (lambda t: tmt.train(t.config, ""), "a path is empty"),
        (lambda t: tmt.tune(t.config, {"model.dropout": [0.1]}, 1, run_dir=""), "a path is empty"),
        (lambda t: tmt.load("runs/a\0b"), "a path has no zero character"),
        (lambda t: tmt.train("my\0.yaml"), "a path has no zero character"),
        (lambda t: tmt.export("x\0", "runs/a"), "a path has no zero character"),
        (lambda t: tmt.Translator.load(None), "None is not a path"),
        (lambda t: tmt.score("a", None), "None is not a path"),
        (lambda t: tmt.load_config(None), "None is not a path"),
        (lambda t: tmt.train(None), "None is not a path"),
        (lambda t: tmt.prepare(3), "int is not a path"),
        (lambda t: tmt.evaluate(3), "int is not a path"),
        (lambda t: tmt.average(3), "int is not a path"),
        (lambda t: tmt.export(None), "None is not a path"),
        (lambda t: tmt.propose_config(None), "None is not a path"),
        (lambda t: tmt.propose_config([]), "no file is given"),
        (lambda t: tmt.Computing(seed="a"), "seed must be a whole number of 0 or more, not 'a'"),
        (lambda t: t.translate(["a"], chunk_size=0), "chunk_size must be a whole number of 1 or more, not 0"),
        (lambda t: t.translate("a", chunk_size=2.5), "chunk_size must be"),
        (lambda t: t.beam_tree("a", beam=0), "beam must be a whole number of 1 or more, not 0"),
        (lambda t: t.beam_tree("a", beam=10**9), "a beam of 1000000000 is too wide"),
        (lambda t: t.attention("a", target="a b"), "the target is one str"),
        (lambda t: t.attention("a", target=3), "target: a value of type int is no list of tokens"),
        (lambda t: t.attention("a", target=[3]), "target: a value of type int is not text"),
        (lambda t: t.translate("a", prefixes=b"x"), "prefixes: a value of type bytes is not text"),
        (lambda t: t.translate("a", terms=[None]), "terms: None is no list of terms"),
        (lambda t: list(t.translate(["a"], terms=[3])), "terms: a value of type int is no list of terms"),
        (lambda t: tmt.train(t.config, overrides={"sed": 2}), "overrides: unknown key 'sed'"),
        (lambda t: tmt.train(t.config, overrides=b"seed=2"), "a value of type bytes is no list of key=value"),
        (lambda t: tmt.propose_config(Table()), 'Table is not a path\n.*table.to_csv\\("pairs.csv", index=False\\)'),
        (lambda t: tmt.Computing(threads=5000), "5000 are too many threads"),
        (lambda t: tmt.evaluate("a", metrics=[]), "no metric is named"),
        (lambda t: tmt.evaluate("a", wanted=5), "wanted: 5 is not a direction"),
        (lambda t: tmt.evaluate("a", metrics=None), "metrics: None was given, but a list is needed"),
        (lambda t: tmt.evaluate("a", files="a.en"), "files: a value of type str was given, but TestFiles is needed"),
        (lambda t: tmt.evaluate("a", search="beam"), "search: a value of type str was given, but a dict"),
        (lambda t: tmt.tune(t.config, {}, minutes="1"), "minutes: a value of type str was given, but a number"),
        (lambda t: tmt.propose_config("a", minutes="1"), "minutes: a value of type str was given, but a number"),
        (lambda t: tmt.propose_config("a", source=3), "source: a value of type int was given, but text"),
        (lambda t: tmt.train(t.config, overrides=[3]), "overrides: a value of type int was given, but text"),
        (lambda t: tmt.translate_document("a", t, 3), "format: a value of type int is no format"),
        (lambda t: tmt.translate_document("a", 3, "text"), "translator: a value of type int is no translator"),
        (lambda t: tmt.translate_document("a\0b", t, "text"), "document: this is not text"),
        (lambda t: t.read(None), "None is not text"),
        (lambda t: t.beam_tree(None), "None is not text"),
        (lambda t: t.attention(3), "int is not text"),
        (lambda t: t.sentences(None), "None is not text"),
    ],
)
def test_mistakes_are_errors_that_say_where(translator: Translator, call: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(TmtError, match=problem):
        call(translator)


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        ({"beam": 0}, "beam is 0, but must be at least 1", "help(transformer_mt.load)"),
        ({"length_penalty": "x"}, 'length_penalty is "x", but must be', "help(transformer_mt.load)"),
        ({"method": "sample", "beam": 5}, 'method="sample" and beam are two ways of searching', "Give only one"),
        ({"top_k": 3}, "top_k is for sampling", 'method="sample" (draws one) or method="mbr"'),
        ({"method": "mbr", "beam": 3, "top_k": 3}, 'with beam, method="mbr" chooses', "Remove beam or top_k."),
        ({"device": "tpu"}, "unknown device 'tpu'", 'device="auto"'),
        ({"threads": 0}, "threads must be a whole number of 1 or more, not 0", "threads=2"),
        ({"engine": "marian"}, "unknown engine 'marian'", "Use tmt or ctranslate2."),
    ],
)
def test_errors_of_load_name_its_arguments(
    tiny_model: Path, arguments: dict[str, Any], problem: str, remedy: str
) -> None:
    with pytest.raises(TmtError) as caught:
        tmt.load(tiny_model, **arguments)
    assert caught.value.message.startswith(problem)
    assert remedy in caught.value.remedy
    assert "--" not in str(caught.value)


def test_errors_of_load_keep_the_commands_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TmtError, match="no finished run") as caught:
        tmt.load()
    assert "tmt train --config configs/quickstart.yaml" in caught.value.remedy


def test_ways_to_give_prefixes_and_terms(translator: Translator) -> None:
    line = "the cat sees"
    expected = translator.translate(line, "near", terms=[[Term("cat", "house")]]).text
    assert expected.startswith("near")
    assert expected.count("house") == 1
    for terms in ([Term("cat", "house")], tmt.Glossary({"cat": "house"}), {"cat": "house"}):
        assert translator.translate(line, "near", terms=terms).text == expected
        many = terms if not isinstance(terms, list) else cycle([terms])
        assert [one.text for one in translator.translate(iter([line] * 3), cycle(["near"]), terms=many)] == [
            expected
        ] * 3


def test_a_glossary_ignores_case_if_the_model_does(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("Cat\thouse\n", encoding="utf-8")
    lower, cased = random_model("words lower"), random_model("words")
    for given in (tmt.Glossary.load(file), tmt.Glossary({"Cat": "house"}), {"Cat": "house"}, file, str(file)):
        assert lower.glossary(given).terms("the CAT sees") == [Term("CAT", "house")]
        assert cased.glossary(given).terms("the CAT sees") == []
    assert "house" in lower.translate("the CAT sees", terms=tmt.Glossary.load(file)).text.lower()
    for given in (tmt.Glossary.load(file), {"Cat": "house"}, file):
        answer = tmt.translate_document("the CAT sees", lower, "text", given)
        assert str(answer.glossary) == "glossary: 1 term and 0 copies in 1 line"
    assert tmt.translate_document("the CAT sees", lower, "text").glossary is None


def test_a_document_with_the_folder_of_a_model(tiny_model: Path) -> None:
    answer = tmt.translate_document("a b\n\n7 c {x}\n", str(tiny_model), "text", {"b": "c"})
    assert answer.text == tmt.translate_document("a b\n\n7 c {x}\n", tmt.load(tiny_model), "text", {"b": "c"}).text
    assert str(answer.glossary) == "glossary: 1 term and 1 copy in 2 lines"


def test_the_command_counts_the_terms_of_a_document(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("a b\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("b\tc\n", encoding="utf-8")
    files = ["--document", str(tmp_path / "a.txt"), "--glossary", str(tmp_path / "terms.tsv")]
    assert main.main(["translate", "--model", str(tiny_model), *files]) == 0
    assert "tmt: glossary: 1 term and 0 copies in 1 line\n" in capsys.readouterr().err


def test_words_across_a_replacement() -> None:
    parts = [("see ", "see "), ("7", "{a}, {b} {c}"), (", ", ", "), ("9", "x"), ("s now", "s now")]
    assert words_across(parts) == [range(1), range(1, 4), range(4, 5), range(5, 6)]
    assert words_across([(one, other) for other, one in parts]) == [
        range(1),
        *[range(1, 2)] * 3,
        range(2, 3),
        range(3, 4),
    ]
    assert words_across([('"', '"'), (" ", ""), ("7", "{x}")]) == [range(1), range(1)]
    assert words_across([]) == []
