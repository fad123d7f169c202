"""Text in, text out: one translation for each line, whatever it contains, and notes on what was lost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.model_directory import load_model_directory, save_model_directory
from transformer_mt.decoding.request import SearchResult
from transformer_mt.decoding.searches.mbr import consensus
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights, read_weights, save_weights
from transformer_mt.text.codec import Codec, Segmenter, load_codecs

EOS, BOS = 3, 2


@pytest.fixture(scope="module")
def translator(tiny_model: Path) -> Translator:
    return Translator.load([tiny_model])


def with_search(tiny_model: Path, **options: object) -> Translator:
    return Translator.load([tiny_model], DecodingConfig(max_length_ratio=1.0, max_length_offset=5, **options))


@pytest.fixture(scope="module")
def greedy(tiny_model: Path) -> Translator:
    return Translator.load([tiny_model], DecodingConfig(beam=1, max_length_ratio=0.5, max_length_offset=2))


@settings(max_examples=50)
@given(lines=st.lists(st.text(max_size=20), max_size=8), chunk_size=st.sampled_from([1, 3, 100]))
def test_one_answer_without_line_breaks_for_each_line(greedy: Translator, lines: list[str], chunk_size: int) -> None:
    answers = list(greedy.translate(lines, chunk_size=chunk_size))
    assert len(answers) == len(lines)
    for line, answer in zip(lines, answers, strict=True):
        assert answer.text.splitlines() in ([], [answer.text])
        if not line.strip():
            assert answer.text == ""


def test_chunks_and_neighbours_change_nothing(translator: Translator) -> None:
    lines = ["hello", "", "a b c d", "zzzz", "   ", "quite a long sentence"]
    together = list(translator.translate(lines))
    assert [one.text for one in together] == [one.text for line in lines for one in translator.translate([line])]
    assert [one.text for one in translator.translate(lines, chunk_size=2)] == [one.text for one in together]


@pytest.mark.parametrize(
    ("device", "beam", "align", "given", "expected"),
    [
        ("cpu", 5, False, 4, 4),
        ("cpu", 5, False, None, 2048),
        ("cuda", 5, False, None, 32_768),
        ("cuda", 5, True, None, 8192),
        ("cuda", 30, False, None, 5461),
        ("cuda", 5, False, 4, 4),
    ],
)
def test_only_a_chunk_of_lines_is_read_before_the_first_answer(
    device: str,
    beam: int,
    align: bool,
    given: int | None,
    expected: int,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    translator, read = with_search(tiny_model, beam=beam), list[int]()
    monkeypatch.setattr(translator, "device", torch.device(device))  # empty lines are not searched

    def lines() -> object:
        for index in range(40_000):
            read.append(index)
            yield ""

    next(iter(translator.translate(lines(), chunk_size=given, align=align)))
    assert len(read) == expected


def test_what_is_lost_is_noted(translator: Translator) -> None:
    (long,) = translator.translate(["word " * 5000])
    assert "cut to 23 of 24999 tokens" in long.notes[0]
    assert len(long.source_tokens) == 23
    (unknown,) = translator.translate(["aÜbÜé"])
    assert unknown.notes[0] == "3 unknown words: Ü, é"
    (private,) = translator.translate(["\ue000"])
    assert private.notes[0] == "1 unknown word: \ufffd", "only characters that a terminal can show"
    (one,) = translator.translate(["ab"])
    assert not any("unknown" in note or "cut" in note for note in one.notes)


def test_greedy_search_without_scores_writes_the_same(tiny_model: Path) -> None:
    decoding, lines = DecodingConfig(beam=1, max_length_ratio=0.5, max_length_offset=2), ["우리는", "집에서 책을", ""]
    scored, plain = (
        list(Translator.load([tiny_model], decoding, Computing(scored=wanted)).translate(lines))
        for wanted in (True, False)
    )
    assert [one.text for one in plain] == [one.text for one in scored]
    assert all(one.score < 0 for one in scored if one.text)
    assert all(one.score == 0 for one in plain)


def test_n_best_differ_in_text_and_come_best_first(tiny_model: Path) -> None:
    (answer,) = with_search(tiny_model, beam=8, n_best=8).translate(["hello"])
    texts = [one.text for one in answer.n_best]
    assert len(set(texts)) == len(texts) > 1
    assert [one.score for one in answer.n_best] == sorted((one.score for one in answer.n_best), reverse=True)
    assert (answer.text, answer.score, answer.tokens) == (texts[0], answer.n_best[0].score, answer.n_best[0].tokens)


def test_different_texts_come_from_all_results_of_a_beam_search(tiny_model: Path, monkeypatch) -> None:
    translator = with_search(tiny_model, beam=2, n_best=2)
    a, b = translator.target.vocabulary.encode(["a", "b"])
    found = [SearchResult((a, EOS), -1.0, -1.0), SearchResult((a,), -2.0, -2.0), SearchResult((b, EOS), -3.0, -3.0)]
    monkeypatch.setattr(translator, "_search", lambda requests: [found])
    (answer,) = translator.translate(["hello"])
    assert [(one.text, one.score) for one in answer.n_best] == [("a", -1.0), ("b", -3.0)]


@pytest.mark.parametrize("options", [{"method": "sample", "n_best": 4}, {"method": "mbr", "samples": 6}])
def test_samples_repeat_with_their_seed(tiny_model: Path, options: dict[str, object]) -> None:
    first, again = (list(with_search(tiny_model, **options).translate(["hello", "ab"])) for _ in range(2))
    assert first == again
    other = Translator.load([tiny_model], with_search(tiny_model, **options).decoding, Computing(seed=99))
    assert list(other.translate(["hello", "ab"])) != first


def test_minimum_bayes_risk_chooses_among_the_results_of_a_beam_search(tiny_model: Path) -> None:
    lines = ["hello", "ab", "some words", "q"]
    listed = list(with_search(tiny_model, beam=6, n_best=6).translate(lines))
    chosen = list(with_search(tiny_model, method="mbr", candidates="beam", beam=6, n_best=6).translate(lines))
    for one, other in zip(chosen, listed, strict=True):
        texts = [hypothesis.text for hypothesis in other.n_best]
        ranked = consensus(texts, "chrf", [hypothesis.score for hypothesis in other.n_best])
        assert [best.text for best in one.n_best] == [text for text, _ in ranked]
        assert [best.score for best in one.n_best] == pytest.approx([score for _, score in ranked])


def test_prefixes_are_kept(translator: Translator) -> None:
    answers = list(translator.translate(["hello", "abc"], ["ein ", ""]))
    assert answers[0].text.startswith("ein")
    with pytest.raises(TmtError, match="prefix has 60 tokens"):
        list(translator.translate(["hello"], ["x" * 60]))


def test_reference_loss_is_the_sum_over_references(translator: Translator) -> None:
    sources, references = ["hello", "ab", "q"], ["xyz", "a", "some words"]
    total, count, _ = translator.reference_loss(sources, references)
    assert count == 4 + 2 + 11
    model, expected = translator.models[0], 0.0
    for source, reference in zip(sources, references, strict=True):
        target = translator.target.encode(reference)
        with torch.inference_mode():
            hidden = model(torch.tensor([translator.source.encode(source)]), torch.tensor([[BOS, *target[:-1]]]))
            log_p = model.generate_logits(hidden)[0].log_softmax(-1)
        expected -= float(log_p[range(len(target)), target].sum())
    assert total == pytest.approx(expected, rel=1e-5)


def test_attention_maps_have_their_tokens_at_their_axes(translator: Translator) -> None:
    shown = translator.attention("abc", ["x", "y"])
    shapes = {path: (len(shown.rows[path]), len(shown.columns[path])) for path in shown.maps}
    assert {path.split(".")[0] + path.split(".")[-1]: shape for path, shape in shapes.items()} == {
        "encoderself_attention": (4, 4),
        "decoderself_attention": (3, 3),
        "decodercross_attention": (3, 4),
    }
    for path, weights_HQM in shown.maps.items():
        assert weights_HQM.shape == (2, *shapes[path])
        np.testing.assert_allclose(weights_HQM.sum(-1), 1.0, rtol=1e-5)
    assert shown.rows["decoder.layers.1.cross_attention"] == ("x", "y", "</s>")
    assert shown.columns["decoder.layers.1.cross_attention"] == ("a", "b", "c", "</s>")
    assert shown.columns["decoder.layers.0.self_attention"] == ("<s>", "x", "y")


def test_alignments_point_where_the_last_layer_looks(translator: Translator) -> None:
    (answer,) = translator.translate(["abc def"], align=True)
    shown = translator.attention("abc def", answer.tokens).maps["decoder.layers.1.cross_attention"]
    words = shown.mean(0)[: len(answer.tokens), :-1]  # without both end tokens
    assert answer.n_best[0].alignment == tuple(words.argmax(-1).tolist())


def test_an_unknown_word_is_replaced_by_its_source_word(tiny_model: Path) -> None:
    translator = with_search(tiny_model, beam=1, replace_unknown=True)
    with torch.no_grad():
        translator.models[0].generator.bias[1] = 50.0  # now it writes nothing but <unk>
    (answer,) = translator.translate(["Ü"])
    assert set(answer.text) == {"Ü"}
    assert set(answer.tokens) == {"<unk>"}


def test_an_ensemble_with_different_vocabularies_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "model"
    shutil.copytree(tiny_model, other)
    file = other / "source" / "vocabulary.txt"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:4], *reversed(lines[4:])]) + "\n")
    save_weights(read_weights(other / "model.safetensors"), other / "model.safetensors")  # of this vocabulary
    with pytest.raises(TmtError, match="vocabulary differs"):
        Translator.load([tiny_model, other])


def test_an_ensemble_of_two_directions_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    data = load_config(tiny_model / "config.yaml").data
    other = remade(tiny_model, tmp_path / "back", data={"source": data.target, "target": data.source})
    with pytest.raises(TmtError, match=f"translates {data.target}-{data.source}"):
        Translator.load([tiny_model, other])


def remade(tiny_model: Path, place: Path, codec: Codec | None = None, **changes: dict[str, object]) -> Path:
    """A copy of the tiny model with other settings (by section), new weights and the same vocabulary or this codec."""
    config = load_config(tiny_model / "config.yaml")
    config = Config.model_validate({**config.model_dump(), **{
        name: {**getattr(config, name).model_dump(), **values} for name, values in changes.items()
    }})  # fmt: skip
    torch.manual_seed(3)
    codecs = (codec, codec) if codec else load_codecs(tiny_model)
    save_model_directory(place, config, named_weights(build_model(config, *map(len, codecs))), codecs)
    return place


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
def test_tied_weights_may_be_given_under_each_of_their_names(tiny_model: Path, tmp_path: Path, tie: str) -> None:
    place = remade(tiny_model, tmp_path / "tied", model={"tie_embeddings": tie})
    model = load_model_directory(place)
    weights = model.model.state_dict()
    save_model_directory(tmp_path / "again", model.config, weights, (model.source, model.target))
    again = load_model_directory(tmp_path / "again").model.state_dict()
    assert weights.keys() == again.keys()
    assert all(torch.equal(one, again[name]) for name, one in weights.items())
    assert (tmp_path / "again" / "model.safetensors").stat().st_size == (place / "model.safetensors").stat().st_size


LEARNED = {"model": {"positions": "learned"}, "data": {"max_length": 6}}


def test_attention_of_a_stopped_translation_shows_what_was_written(tiny_model: Path, tmp_path: Path) -> None:
    translator = Translator.load([remade(tiny_model, tmp_path / "learned", **LEARNED)])
    with torch.no_grad():
        translator.models[0].generator.bias[EOS] = -50.0  # it never ends by itself
    shown = translator.attention("abc")
    written = shown.rows["decoder.layers.1.cross_attention"]
    assert len(written) == 6
    assert "</s>" not in written
    assert shown.columns["decoder.layers.0.self_attention"] == ("<s>", *written[:-1])


def test_attention_is_that_of_the_translation_with_its_prefix(translator: Translator) -> None:
    shown = translator.attention("hello", prefix="xyz")
    (answer,) = translator.translate(["hello"], ["xyz"])
    assert shown.rows["decoder.layers.0.self_attention"][: len(answer.tokens)] == answer.tokens
    assert answer.tokens[:3] == ("x", "y", "z")


def test_an_ensemble_keeps_to_the_shortest_table_of_positions(tiny_model: Path, tmp_path: Path) -> None:
    short = remade(tiny_model, tmp_path / "learned", **LEARNED)
    translator = Translator.load([tiny_model, short])
    (answer,) = translator.translate(["a long sentence"])
    assert len(answer.source_tokens) == 5
    assert len(answer.tokens) <= 6
    assert translator.reference_loss(["a long sentence", "a"], ["another one", "b"])[1:] == (6 + 2, 1)  # one is cut


def test_a_prefix_that_the_model_cannot_write_is_noted(translator: Translator) -> None:
    (answer,) = translator.translate(["hello"], ["xÜ"])
    assert "the prefix has tokens that the model does not know" in answer.notes[0]


def test_truecase_leaves_words_inside_a_sentence_as_they_are(tiny_model: Path, tmp_path: Path) -> None:
    config = load_config(tiny_model / "config.yaml").source_tokenizer.model_copy(update={"case": "true"})
    segmenter = Segmenter(config, "en")
    segmenter.train(["the dog"])
    codec = Codec(segmenter, load_codecs(tiny_model)[0].vocabulary)
    place = remade(tiny_model, tmp_path / "model", codec=codec)
    translator = Translator.load([place], DecodingConfig(beam=1, replace_unknown=True))
    with torch.no_grad():
        translator.models[0].generator.bias[1] = 50.0  # now it writes nothing but <unk>
    (answer,) = translator.translate(["ü"])
    assert answer.notes[0] == "1 unknown word: ü"
    assert set(answer.text[1:]) == {"ü"}, "only the first letter is in upper case, as at a sentence start"


def test_notes_are_exact_at_their_limits(translator: Translator) -> None:
    longest = translator.max_length - 1  # beside the end token
    fits, cut = translator.translate(["a" * longest, "a" * (longest + 1)])
    assert (fits.is_cut, cut.is_cut) == (False, True)
    assert not any("cut" in note for note in fits.notes)
    assert cut.notes[0] == f"cut to {longest} of {longest + 1} tokens (the model's longest sentence)"
    five, six, long = translator.translate(["ÀÁÂÃÄ", "ÀÁÂÃÄÅ", "Ü"])
    assert five.notes[0] == "5 unknown words: À, Á, Â, Ã, Ä"
    assert six.notes[0] == "6 unknown words: À, Á, Â, Ã, Ä, ..."
    assert long.notes[0] == "1 unknown word: Ü"


def test_the_longest_prefix_leaves_room_for_one_token_and_the_end_mark(translator: Translator) -> None:
    most = translator.max_length - 2
    (answer,) = translator.translate(["hello"], ["a" * most])
    assert answer.text.startswith("a" * most)
    with pytest.raises(TmtError, match=f"the prefix has {most + 1} tokens; the model writes at most {most + 2}"):
        list(translator.translate(["hello"], ["a" * (most + 1)]))


def test_alignments_are_returned_on_request(translator: Translator) -> None:
    for align in (True, False):
        (answer,) = translator.translate(["hello"], align=align)
        assert (answer.n_best[0].alignment is not None) == align
    assert [answer.n_best[0].alignment is None for answer in translator.translate(["hello"])] == [True]


def test_an_unknown_word_is_short_in_a_note() -> None:
    from transformer_mt.decoding.translation import note_of_unknown

    assert note_of_unknown(["x" * 40]) == f"1 unknown word: {'x' * 40}"
    assert note_of_unknown(["x" * 41]) == f"1 unknown word: {'x' * 39}…"
    assert note_of_unknown(["a\x1b", "a\x1b"]) == "2 unknown words: a\ufffd"


def test_each_side_is_cleaned_by_the_rules_of_its_language(tiny_model: Path, tmp_path: Path) -> None:
    """Runs of letters are cut in Korean only."""
    cleaning = {"max_repeats": 2}
    korean = remade(tiny_model, tmp_path / "to", data={"source": "ko", "target": "de", "cleaning": cleaning})
    backwards = remade(tiny_model, tmp_path / "back", data={"source": "de", "target": "ko", "cleaning": cleaning})
    (one,), (other,) = (Translator.load(place).translate(["aaaaaaa"]) for place in (korean, backwards))
    assert len(one.source_tokens) < 7 == len(other.source_tokens)
    (prefixed,) = Translator.load(backwards).translate(["b"], ["aaaaaaa"])
    assert not prefixed.text.startswith("aaaaaaa")
