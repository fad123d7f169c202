"""Scores of given translations: token by token as the model says them, with the same words as the reference loss."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer_mt.decoding.forced import aligned_tokens, aligned_words
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError

SOURCES, TARGETS = ["hello", "ab", "q", "", "some words"], ["xyz", "a", "some words", "b", ""]


@pytest.fixture(scope="module")
def translator(tiny_model: Path) -> Translator:
    return Translator.load(tiny_model)


@pytest.fixture(scope="module")
def ensemble(tiny_model: Path) -> Translator:
    both = Translator.load([tiny_model, tiny_model])
    torch.manual_seed(7)
    with torch.no_grad():
        both.models[1].generator.weight.normal_(std=0.3)
    return both


def step_by_step(translator: Translator, source: str, target: str) -> list[float]:
    """The log-probabilities of the tokens, each from a forward pass of what comes before it."""
    ids, scores = translator.target.encode(target), []
    source_1S = torch.tensor([translator.source.encode(source)])
    for length, token in enumerate(ids):
        with torch.inference_mode():
            before_1T = torch.tensor([[2, *ids[:length]]])
            chances = [
                model.generate_logits(model(source_1S, before_1T))[0, -1].double().softmax(-1)[token]
                for model in translator.models
            ]
        scores.append(math.log(float(sum(chances)) / len(chances)))
    return scores


@pytest.mark.parametrize("of", ["translator", "ensemble"])
def test_token_scores_are_the_log_probabilities_of_the_model(of: str, request: pytest.FixtureRequest) -> None:
    translator: Translator = request.getfixturevalue(of)
    scored = list(translator.score(SOURCES, TARGETS))
    for one, source, target in zip(scored, SOURCES, TARGETS, strict=True):
        assert one.token_scores == pytest.approx(step_by_step(translator, source, target), abs=1e-5)
        assert one.tokens[-1] == "</s>"
        assert one.log_probability == pytest.approx(one.mean * len(one.tokens))
    loss = translator.reference_loss(SOURCES, TARGETS)
    assert loss.nats == pytest.approx(-sum(one.log_probability for one in scored), rel=1e-5)
    assert loss.tokens == sum(len(one.tokens) for one in scored)


def test_gain_is_what_the_source_adds(translator: Translator) -> None:
    one = translator.score("hello", "xyz", gain=True)
    alone = translator.score("", "xyz")
    assert one.prior == pytest.approx(alone.log_probability, rel=1e-5)
    assert one.gain == pytest.approx((one.log_probability - alone.log_probability) / 4, rel=1e-4)
    assert alone.gain is None
    nothing = translator.score("", "xyz", gain=True)
    assert nothing.gain == pytest.approx(0.0, abs=1e-6)


def test_token_scores_of_a_translation_add_up_to_its_log_probability(tiny_model: Path) -> None:
    decoding = Translator.load(tiny_model).decoding.model_copy(update={"length_penalty": 0.0, "n_best": 3})
    for answer in Translator.load(tiny_model, decoding).translate(["hello", "ab"], align=True):
        for one in answer.n_best:
            assert one.token_scores is not None
            assert sum(one.token_scores) == pytest.approx(one.score, rel=1e-5)
            assert len(one.token_scores) in (len(one.tokens), len(one.tokens) + 1)  # with the end token


def test_scores_are_there_on_request_only(translator: Translator) -> None:
    plain, empty = translator.translate("hello"), translator.translate(" ", align=True)
    assert (plain.n_best[0].token_scores, plain.n_best[0].word_alignment) == (None, None)
    assert (empty.n_best[0].token_scores, empty.n_best[0].word_alignment) == ((), ())


def test_what_is_lost_is_noted(translator: Translator) -> None:
    notes = [one.notes for one in translator.score(["", "a", "a" * 30, "a"], ["b", " ", "b", "é" + "b" * 30])]
    assert notes[:2] == [("the source is empty",), ("the target is empty",)]
    assert notes[2] == ("cut to 23 of 30 tokens (the model's longest sentence)",)
    assert notes[3][0] == "the target was cut to 23 of 31 tokens (the model's longest sentence)"
    assert notes[3][1] == "the target has 1 unknown token"


@pytest.mark.parametrize(("sources", "targets"), [(["a", "b"], ["x"]), (["a"], ["x", "y"]), (["a"], "x")])
def test_each_line_needs_a_partner(translator: Translator, sources: list[str], targets: list[str]) -> None:
    with pytest.raises(TmtError, match=r"ends after line 1|one side is a line"):
        list(translator.score(sources, targets))


def test_a_str_is_one_sentence(translator: Translator) -> None:
    one = translator.translate("hello")
    (same,) = translator.translate(["hello"])
    assert (one.text, one.tokens, one.notes) == (same.text, same.tokens, same.notes)
    assert one.score == pytest.approx(same.score, rel=1e-4)
    assert translator.translate("hello", "xyz").text.startswith("xyz")
    assert [other.text[:1] for other in translator.translate(["hello", "ab"], "x")] == ["x", "x"]
    assert str(one) == one.text
    assert repr(one).startswith(f"Translation({one.text!r}, score={one.score:.4f}")
    assert repr(one.n_best[0]).startswith(f"Hypothesis({one.text!r}, score=")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (None, "None is not text"),
        (b"hello", "bytes are not text"),
        (Path("a.txt"), "a.txt: a path is not text"),
        (5, "a value of type int is not text"),
        (["a", None], "line 2: None is not text"),
        ([["a", "b"]], "line 1: a value of type list is not text"),
    ],
)
def test_what_is_not_text_is_refused(translator: Translator, wrong: object, message: str) -> None:
    for call in (translator.translate, lambda lines: translator.score(lines, lines)):
        with pytest.raises(TmtError, match=message) as caught:
            list(call(wrong))
        assert caught.value.remedy


def test_words_are_linked_if_each_is_the_other_s_strongest() -> None:
    weights_TS = np.array(
        [
            [0.7, 0.1, 0.1, 0.0, 0.1],  # die
            [0.1, 0.1, 0.7, 0.0, 0.1],  # Katze: first piece
            [0.1, 0.6, 0.2, 0.0, 0.1],  # Katze: second piece; both together look at "cat", of two pieces
            [0.3, 0.1, 0.2, 0.3, 0.1],  # there: prefers "the", which prefers "die"
            [0.0, 0.0, 0.0, 0.9, 0.1],  # .
        ]
    )
    assert aligned_words(weights_TS, [0, 1, 1, None], [0, 1, 1, 2, None]) == ((0, 0), (1, 1))
    assert aligned_tokens(weights_TS) == [0, 2, 1, 0, 3], "the end token, last, is left out"
    assert aligned_words(weights_TS[:, :1], [], [0, 1, 1, 2, 2]) == ()
    assert aligned_words(weights_TS, [None] * 4, [0, 1, 1, 2, 2]) == ()
