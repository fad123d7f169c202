"""Files without sentences of their languages are refused or reported: swapped columns, ids, other languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transformer_mt.data.doctor import DataReport
from transformer_mt.data.languages import FIRST_LINES, LATER_LINES
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.phrasebook import generate
from transformer_mt.text.batches import Batch
from transformer_mt.workflows.data_remarks import remarks

FRENCH = "Les enfants jouent dans le jardin derrière la maison."
Pairs = list[tuple[str, str]]


@pytest.fixture(scope="module")
def sentences() -> Pairs:
    """German and English sentences of five words and more."""
    generated = generate("de", "en", "train", 4_000, seed=3)
    pairs = [pair for pair in generated if min(len(side.split()) for side in pair) >= 5]
    return list(dict.fromkeys(pairs))


def _table(file: Path, pairs: Pairs) -> str:
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(file)


def _swapped(pairs: Pairs) -> Pairs:
    return [(target, source) for source, target in pairs]


def _splits(folder: Path, **splits: Pairs) -> dict[str, Any]:
    return {"kind": "tsv", **{name: _table(folder / f"{name}.tsv", pairs) for name, pairs in splits.items()}}


def _report(workshop: Any, corpus: dict[str, Any], **data: Any) -> DataReport:
    return prepare(workshop.config(corpus, **data), force=True).report


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_one_file_with_swapped_columns_is_refused(workshop: Any, tmp_path: Path, sentences: Pairs, split: str) -> None:
    parts = {"train": sentences[:300], "validation": sentences[300:320], "test": sentences[320:340]}
    parts[split] = _swapped(parts[split])
    with pytest.raises(TmtError, match="source and target are swapped") as error:
        workshop.prepare(_splits(tmp_path, **parts))
    assert error.value.place == str(tmp_path / f"{split}.tsv")
    assert "source_column" in error.value.remedy
    assert len(_report(workshop, _splits(tmp_path, **parts), cleaning={"language": "off"}).foreign) == 0


def test_a_swapped_file_among_several_is_found(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    files = [_table(tmp_path / "a.tsv", sentences[:1_500]), _table(tmp_path / "b.tsv", _swapped(sentences[-20:]))]
    with pytest.raises(TmtError, match="20 of the 20 pairs checked") as error:
        workshop.prepare({"kind": "tsv", "files": files})
    assert error.value.place == files[1]


def test_short_sentences_in_two_scripts_are_swapped_too(workshop: Any, tmp_path: Path) -> None:
    pairs = [(f"Thank you{'!' * n}", f"고마워{'!' * n}") for n in range(20)]
    with pytest.raises(TmtError, match="source and target are swapped"):
        workshop.prepare({"kind": "tsv", "files": _table(tmp_path / "a.tsv", pairs)}, source="ko", target="en")


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_column_of_ids_is_refused(workshop: Any, tmp_path: Path, sentences: Pairs, side: str) -> None:
    ids = [f"S{n:05}" for n in range(100)]
    pairs = [(i, b) if side == "source" else (a, i) for i, (a, b) in zip(ids, sentences, strict=False)]
    with pytest.raises(TmtError, match=f"the {side} has numbers or ids instead of sentences.*'S00000'") as error:
        workshop.prepare({"kind": "tsv", "files": _table(tmp_path / "a.tsv", pairs)})
    assert f"{side}_column" in error.value.remedy


def test_wrong_pairs_are_reported_and_dropped_on_request(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    """A copied sentence, a third language and swapped sides, in the first lines and after them."""
    wrong = [(FRENCH, sentences[0][1]), (sentences[1][0], f"{sentences[2][0]}"), _swapped(sentences[3:4])[0]]
    pairs = [*wrong, *sentences[10:1_500]]
    corpus = _splits(tmp_path, train=pairs, validation=sentences[-40:-20], test=sentences[-20:])
    report = _report(workshop, corpus)
    (found,) = report.foreign
    assert found.wrong == 3
    assert found.checked == FIRST_LINES + len(pairs) // LATER_LINES - FIRST_LINES // LATER_LINES
    assert found.others == {"source": {"fr": 1, "en": 1}, "target": {"de": 2}}
    assert [place.rpartition(":")[2] for place in found.places] == ["1", "2", "3"]
    (remark,) = (one for one in remarks(report) if "another language" in one.text)
    assert "(source 1 fr, 1 en; target 2 de): kept" in remark.text
    assert "data.cleaning.language: drop" in remark.remedy

    dropped = _report(workshop, corpus, cleaning={"language": "drop"})
    assert dropped.pairs["train"].dropped["language"] == 3
    assert dropped.splits["train"].pairs == report.splits["train"].pairs - 3
    assert dropped.foreign[0].checked == len(pairs)


def test_a_test_set_with_its_sources_as_references_is_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    """Its score would say how well a model copies."""
    copied = [(source, source) for source, _ in sentences[-20:]]
    report = _report(workshop, _splits(tmp_path, train=sentences[:50], validation=sentences[-40:-20], test=copied))
    (found,) = (one for one in report.foreign if one.wrong)
    assert found.others["target"] == {"de": 20}
    intended = {"identical": False}
    report = _report(
        workshop, _splits(tmp_path, train=sentences[:50], validation=sentences[-40:-20], test=copied), cleaning=intended
    )
    assert not any(one.wrong for one in report.foreign)


def test_true_pairs_are_not_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    corpus = {"kind": "tsv", "files": _table(tmp_path / "a.tsv", sentences)}
    report = _report(workshop, corpus, cleaning={"language": "drop"})
    assert report.foreign == []
    assert "language" not in report.pairs["all"].dropped


def test_a_config_with_the_wrong_language_is_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", sentences[:200])}, source="nl")
    (remark,) = (one for one in remarks(report) if "another language" in one.text)
    assert "200 of 200 pairs" in remark.text
    assert "data.source" in remark.remedy


@pytest.mark.parametrize(("code", "text"), [("gsw", "cannot be recognised"), ("kr", "the code of Korean is ko")])
def test_a_language_that_is_not_known_is_named(
    workshop: Any, tmp_path: Path, sentences: Pairs, code: str, text: str
) -> None:
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", sentences[:100])}, source=code)
    assert len([one for one in remarks(report) if text in one.text]) == 1


def test_wrongly_decoded_letters_are_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    pairs = [("Das MÃ¤dchen lacht", "The girl laughs"), *sentences[:100]]
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", pairs)})
    (remark,) = (one for one in remarks(report) if "decoded wrongly" in one.text)
    assert remark.text.startswith("1 pair with")
    assert [place.rpartition("/")[2] for place in remark.places] == ["a.tsv:1"]


def test_cells_that_are_quoted_as_in_csv_are_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    quoted = ('"Sie sagt ""ja"", oder?"', '"She says ""yes"", or?"')
    quotations = [('"Ja!"', '"Yes!"'), ('"Ja" und "nein"', '"Yes" and "no"'), ('""', '"'), ('"A" ""B"', 'A ""B""')]
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", [*quotations, quoted, *sentences])})
    (remark,) = (one for one in remarks(report) if "as in CSV" in one.text)
    assert remark.text.startswith("1 pair in quotes")
    assert [place.rpartition("/")[2] for place in remark.places] == ["a.tsv:5"]


def test_html_in_cells_is_reported_with_its_remedy(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    html = [("Hund &amp; Katze", "dog &amp; cat"), ("Ein <b>Hund</b>", "a <b>dog</b>"), ("AT&T; 3 < 4 > 2", "AT&T; 3")]
    corpus = {"kind": "tsv", "files": _table(tmp_path / "a.tsv", [*html, *sentences])}
    with_both = {one.text: one for one in remarks(_report(workshop, corpus)) if "HTML" in one.text}
    assert [text.partition(":")[0] for text in with_both] == [
        "1 pair with tags of HTML, such as <b>",
        "1 pair with characters written as in HTML, such as &amp; for &",
    ]
    assert [[place.rpartition(":")[2] for place in one.places] for one in with_both.values()] == [["2"], ["1"]]
    report = _report(workshop, corpus, cleaning={"entities": True})
    assert [one.text.partition(" with")[2][:5] for one in remarks(report) if "HTML" in one.text] == [" tags"]
    assert sum(split.changed.get("entities", 0) for split in report.pairs.values()) == 1


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("Fuß@@ ball ist sch@@ ön.", "cut into pieces", "sed -E"),
        ("▁Fuß ball ▁ist ▁schön.", "cut into pieces", "sed -E"),
        ("Fuß￭ ball ist schön￭.", "cut into pieces", "sed -E"),
        ("ja , das ist schön", "spaces before commas", "sacremoses -l de detokenize"),
        ("das ist schön .", "spaces before commas", "sacremoses -l de detokenize"),
        ("这 很 好 。", "spaces before commas", "sacremoses -l de detokenize"),
    ],
)
def test_text_that_another_program_has_tokenized_is_reported(
    workshop: Any, tmp_path: Path, sentences: Pairs, text: str, problem: str, remedy: str
) -> None:
    pairs = [(f"{source} {text}", target) for source, target in sentences[:100]]
    for few in (sentences[100:102], sentences[100:900]):
        table = _table(tmp_path / f"{len(few)}.tsv", [*few, *pairs])
        found = _report(workshop, {"kind": "tsv", "files": table})
        (remark,) = (one for one in remarks(found) if problem in one.text)
        assert remark.text.startswith("100 pairs with")
        assert remedy in remark.remedy
        assert remark.places[0].endswith(f".tsv:{len(few) + 1}")
        assert len(found.outliers) == 1


def test_one_split_that_is_tokenized_is_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    """A test set in another form than the training makes the score wrong, however small it is."""
    pieces = [(f"▁{de} .", en) for de, en in sentences[620:640]]
    parts = {"train": sentences[:600], "validation": sentences[600:620], "test": pieces}
    found = [one.text for one in remarks(_report(workshop, _splits(tmp_path, **parts))) if "kept" in one.text]
    assert len(found) == 1, "not also that there are spaces before full stops"
    assert found[0].startswith("20 pairs with words that another program has cut into pieces")


def test_text_without_capital_letters_is_reported(workshop: Any, tmp_path: Path, sentences: Pairs) -> None:
    def texts(pairs: Pairs, **settings: Any) -> list[str]:
        report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", pairs)}, **settings)
        return [one.text for one in remarks(report) if "capital" in one.text or "lower case" in one.text]

    pairs = sentences[:200]
    lower = [(source.lower(), target) for source, target in pairs]
    few = [*lower[:100], *pairs[100:]]
    targets = [(source, target.lower()) for source, target in pairs]
    assert texts(pairs) == texts(few) == texts(targets) == []
    assert texts(lower) == ["200 pairs without capital letters in the source: kept"]
    assert texts(lower, tokenizer={"kind": "whitespace", "case": "lower"}) == ["translations are in lower case"]
    both = [(source.lower(), target.lower()) for source, target in pairs]
    assert texts(both, tokenizer={"kind": "whitespace", "case": "lower"}) == []
    assert texts(pairs, tokenizer={"kind": "whitespace", "case": "lower"}) == ["translations are in lower case"]
    assert Batch(["ქართული ენა", "한국어", "5", "", "a", "A a", "äö"]).in_lower_case() == {4, 6}, "Georgian has no case"


@pytest.mark.parametrize("text", ["... ,5 .5 and so on", "@@ -1,5 +1 @@ ▁▁", "me@@home", "a.b , c", "Was ? Ja ! : ;"])
def test_a_few_such_signs_are_no_tokenized_text(workshop: Any, tmp_path: Path, sentences: Pairs, text: str) -> None:
    pairs = [(f"{source} {text}", target) for source, target in sentences[:9]]
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", [*sentences[9:], *pairs])})
    assert not [one.text for one in remarks(report) if "pieces" in one.text or "spaces before" in one.text]


def test_the_report_shows_pairs_of_each_split_and_what_was_dropped(
    workshop: Any, tmp_path: Path, sentences: Pairs
) -> None:
    pairs = [*sentences[:200], *sentences[:60]]
    report = _report(workshop, {"kind": "tsv", "files": _table(tmp_path / "a.tsv", pairs)})
    assert {split: len(shown) for split, shown in report.examples.items()} == {"train": 3, "validation": 3, "test": 3}
    assert {tuple(pair) for shown in report.examples.values() for pair in shown} <= set(sentences)
    (remark,) = (one for one in remarks(report) if "drops 23%" in one.text)
    assert f"a.tsv:201 ({sentences[0][0][:30]}" in remark.places[0]
    assert "data.cleaning.duplicates" in remark.remedy
