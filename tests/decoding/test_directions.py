"""One model for several directions: the tag before the source, the choice of a direction, and output without tags."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Direction
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.decoding.choosing import Wanted, direction_for
from transformer_mt.decoding.interpreter import Interpreter
from transformer_mt.decoding.model_directory import load_model_directory, save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import write_export
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import EOS, Vocabulary
from transformer_mt.workflows.documents import translate_document
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.translate import turned

LINES = ["abc", "hello you", "zz z", "one two three"]
SEARCHES = [
    DecodingConfig(beam=1, max_length_ratio=1.0, max_length_offset=5),
    DecodingConfig(beam=3, n_best=3, max_length_ratio=1.0, max_length_offset=5),
    DecodingConfig(method="sample", n_best=1, max_length_ratio=1.0, max_length_offset=5),
    DecodingConfig(method="mbr", samples=4, n_best=1, max_length_ratio=1.0, max_length_offset=5),
]


@pytest.fixture(scope="module")
def folder(many_model: Path) -> Path:
    return many_model


@pytest.fixture(scope="module")
def config(folder: Path) -> Config:
    return load_config(folder / "config.yaml")


@pytest.fixture(scope="module")
def model(folder: Path) -> Interpreter:
    return load_model([folder])


@pytest.mark.parametrize("decoding", SEARCHES, ids=["greedy", "beam", "sample", "mbr"])
@pytest.mark.parametrize("engine", ["tmt", "ctranslate2"])
def test_no_search_writes_a_tag(folder: Path, decoding: DecodingConfig, engine: str) -> None:
    model = load_model([folder], decoding, None, engine)
    for one in model.translate(LINES, to="de", source="en", split=False):
        for hypothesis in one.n_best:
            assert not {*model.target.tags} & {*hypothesis.tokens}
            assert "<2" not in hypothesis.text


def test_neither_a_beam_tree_nor_a_forced_prefix_has_tags(model: Interpreter) -> None:
    tree = model.towards("ko").beam_tree("abc", 4)  # type: ignore[attr-defined]
    assert not any(node.token >= model.target.first_tag for node in tree.nodes)
    found = model.translate("abc", "xy", to="ko")
    assert found.text.startswith("xy")
    assert not {*model.target.tags} & {*found.tokens}


@pytest.mark.parametrize("engine", ["tmt", "ctranslate2"])
def test_the_tag_stands_before_the_source_and_nothing_else_counts_it(folder: Path, engine: str) -> None:
    model = load_model([folder], None, None, engine).towards("de")
    source = model._read("abc", "")
    assert source.ids == (*model.source.vocabulary.tag_ids(["<2de>"]), *model.source.encode("abc"))
    assert source.tokens == ("a", "b", "c")
    long = model._read("a" * 100, "")
    assert (len(long.ids), long.is_cut, long.ids[-1]) == (24, True, EOS)
    answer = model.translate("abc def", align=True)
    alignment = answer.n_best[0].alignment
    assert alignment is not None
    assert {*alignment} <= {*range(len(answer.source_tokens))}
    tagged_text = model._read("<2de>", "")
    assert model.source.vocabulary.tag_ids(["<2de>"])[0] not in tagged_text.ids[1:]


def test_the_tag_decides_what_is_read(model: Interpreter) -> None:
    scores = {to: model.score("abc", "xyz", to=to, gain=True) for to in ("de", "en", "ko")}
    assert len({one.log_probability for one in scores.values()}) == 3
    assert len({one.prior for one in scores.values()}) == 3, "an empty source has the tag too"


def test_which_direction_a_request_means(config: Config) -> None:
    data = config.data
    assert direction_for(data, "de", None) == Direction("en", "de")
    assert direction_for(data, "en", "ko") == Direction("ko", "en")
    assert direction_for(data, None, "ko") == Direction("ko", "en")
    assert direction_for(data, "en", None) == Direction("mul", "en"), "the model reads any of its sources"
    with pytest.raises(TmtError, match="several directions: ko-en, en-ko, en-de, de-en") as caught:
        direction_for(data, None, None)
    assert "--to en" in caught.value.remedy
    with pytest.raises(TmtError, match="not trained for ko-de") as caught:
        direction_for(data, "de", "ko")
    assert "--zero-shot" in caught.value.remedy
    assert direction_for(data, "de", "ko", zero_shot=True) == Direction("ko", "de")
    for to, source in (("fr", None), ("de", "fr"), ("en", "en"), (None, "fr")):
        with pytest.raises(TmtError, match="this model does not translate"):
            direction_for(data, to, source, zero_shot=True)
    tagged = data.model_copy(update={"corpus": (data.corpus[0].model_copy(update={"tag": "<2fr>"}),)})
    with pytest.raises(TmtError, match="does not translate ko-fr"):  # the tag of a corpus makes no direction
        direction_for(tagged, "fr", "ko", zero_shot=True)


def test_a_wrong_language_is_named_with_its_option_and_a_hint(config: Config) -> None:
    for to, source, place, remedy in (
        ("", None, "--to", "Name a code"),
        ("en", "", "--from", "Name a code"),
        ("Korean", None, "--to", "Did you mean ko?"),
        ("DE", "en", "--to", "Did you mean de?"),
        ("en", "kr", "--from", "Did you mean ko?"),
        ("en", "fr", "--from", "It reads de, en, ko and writes de, en, ko."),
        ("ko-en", None, "--to", "Did you mean --from ko --to en?"),
    ):
        with pytest.raises(TmtError) as caught:
            direction_for(config.data, to, source, zero_shot=True)
        assert caught.value.place == place
        assert remedy in caught.value.remedy


@pytest.mark.parametrize("given", [{"to": ["de"]}, {"to": "de", "source": 1}])
def test_a_language_is_one_code(model: Interpreter, given: dict[str, Any]) -> None:
    with pytest.raises(TmtError, match=r"(to|source): a language is one code, not (\['de'\]|1)"):
        model.translate("x", **given)


def test_a_chosen_target_stays(model: Interpreter) -> None:
    german = model.towards("en").towards(source="de")
    assert german.config.data.direction == "de-en"
    with pytest.raises(TmtError, match="does not translate de-de"):
        model.towards("de").translate("abc", source="de")
    zero_shot = model.towards("de", "ko", zero_shot=True)
    assert zero_shot.translate("abc", source="ko").text == zero_shot.translate("abc").text


def test_zero_shot_is_an_argument_of_the_work_itself(model: Interpreter) -> None:
    chosen = model.towards("de", "ko", zero_shot=True)
    assert model.translate("abc", to="de", source="ko", zero_shot=True).text == chosen.translate("abc").text
    found = model.score("abc", "x", to="de", source="ko", zero_shot=True)
    assert found.log_probability == pytest.approx(chosen.score("abc", "x").log_probability)


def test_what_needs_a_direction_says_how_to_choose_one(model: Interpreter) -> None:
    for work in ("read", "sentences", "attention"):
        with pytest.raises(TmtError, match="several directions") as caught:
            getattr(model, work)("abc")
        assert 'towards("en")' in caught.value.remedy
    with pytest.raises(TmtError, match="several directions"):
        model.beam_tree("abc", 2)  # type: ignore[attr-defined]


def test_several_sources_have_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = load_model([folder])
    for to, source, expected in (("en", None, True), ("en", "ko", False), ("de", None, False)):
        turned(model, Wanted(to, source))
        assert ("several source languages fit: add --from ko or de" in capsys.readouterr().err) is expected


def test_a_model_of_one_direction_takes_its_own_and_no_other(tiny_model: Path) -> None:
    model = load_model([tiny_model])
    whole = model.translate("abc").text
    assert [model.translate("abc", to="de").text, model.translate("abc", source="en").text] == [whole, whole]
    with pytest.raises(TmtError, match="does not translate into en, but en-de"):
        model.translate("abc", to="en")
    with pytest.raises(TmtError, match="does not translate de-en, but en-de"):
        model.towards("en", "de", zero_shot=True)


def test_an_ensemble_needs_the_same_directions_and_tags(folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(TmtError, match="translates en-de, but"):
        load_model([folder, tiny_model])
    known = load_model([folder])
    both = load_model([folder, folder]).translate(LINES, to="de")
    assert [one.text for one in both] == [one.text for one in known.translate(LINES, to="de")]
    config = load_config(folder / "config.yaml")
    values = config.model_dump(mode="json")
    values["data"]["corpus"][0]["tag"] = "<other>"
    other = Config.model_validate(values)
    codec = Codec(known.source.segmenter, Vocabulary(known.source.vocabulary.untagged, other.data.tags))
    weights = named_weights(build_model(other, len(codec), len(codec)))
    save_model_directory(tmp_path / "model", other, weights, (codec, codec))
    with pytest.raises(TmtError, match="source vocabulary differs"):
        load_model([folder, tmp_path / "model"])


def test_an_export_without_its_tags_is_refused(folder: Path, tmp_path: Path) -> None:
    write_export(load_model_directory(folder), tmp_path / "exported", "float32", lambda _: None)
    assert load_model([tmp_path / "exported"]).translate("abc", to="de").n_best
    (tmp_path / "exported" / "source" / "tags.txt").unlink()
    (tmp_path / "exported" / "export.json").unlink()  # an older version wrote none; with it, the missing file is named
    with pytest.raises(TmtError, match="lacks the tag <2en>"):
        load_model([tmp_path / "exported"])


def test_damaged_tags_are_refused(folder: Path, tmp_path: Path) -> None:
    reversed_tags = "".join(f"{tag}\n" for tag in reversed(load_model_directory(folder).source.tags))
    no_tags, other_end = "tags.txt has lines that are no tags", "vocabulary.txt does not end with the tags of tags.txt"
    for text, problem in (("", no_tags), ("no tag\n", no_tags), ("<2fr>\n", other_end), (reversed_tags, other_end)):
        copy = tmp_path / str(len(text))
        shutil.copytree(folder, copy)
        (copy / "source" / "tags.txt").write_text(text)
        with pytest.raises(TmtError, match=problem) as caught:
            load_model([copy])
        assert str(copy / "source") in str(caught.value)


def test_documents_and_glossaries_keep_to_the_direction(model: Interpreter, folder: Path) -> None:
    german, terms = model.towards("de", "en"), {"cat": "xyz"}
    source = german._read("a cat sat", "", german.glossary(terms).terms("a cat sat"))
    assert source.bound is not None
    read = [source.ids[place] for place in source.bound.constraints[0].sources]
    assert "cat" in german.source.decode(read)
    document = translate_document("# a cat sat\n", german, "markdown", terms)
    assert document.text.startswith("# ")
    assert "xyz" in document.text.lower()
    with pytest.raises(TmtError, match="several directions"):
        translate_document("# a cat sat\n", load_model([folder]), "markdown")
