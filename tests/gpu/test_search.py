"""How often a search waits for a GPU, counted on a CPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from transformer_mt.decoding import beam_search, greedy_search
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.greedy_search import read_rows
from transformer_mt.decoding.hypotheses import read
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.request import Constraint, Request
from transformer_mt.decoding.step import GPU_LOOK_STEPS, LOOK_STEPS
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import EOS

SMALL = {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
VOCABULARY = 60
MOST = 0.2  # waits in a step


def requests(number: int) -> list[Request]:
    generator = random.Random(3)
    return [
        Request([*(generator.randint(4, VOCABULARY - 1) for _ in range(generator.randint(3, 25))), EOS])
        for _ in range(number)
    ]


@pytest.mark.parametrize(("beam", "is_constrained"), [(1, False), (5, False), (5, True)])
def test_a_step_of_a_search_waits_at_most_so_often(
    beam: int,
    is_constrained: bool,
    make_config: Callable[..., Any],
    synchronisations: Any,
    monkeypatch: pytest.MonkeyPatch,
):
    config, steps = make_config(SMALL), 0
    torch.manual_seed(2)
    parts = parts_for(config.model, "cuda")
    model = Transformer(config.model, VOCABULARY, VOCABULARY, parts=parts).eval()
    with torch.no_grad():
        model.generator.bias[EOS] = 1.0  # hypotheses end at any length, as those of a trained model
    step = IncrementalDecoder.step

    def counted(self: IncrementalDecoder, *arguments: Any) -> Any:
        nonlocal steps
        steps += 1
        return step(self, *arguments)

    def read_on_host(*arguments: Any) -> Any:
        before = synchronisations.count.copy()
        found = (read if beam > 1 else read_rows)(*arguments)
        before["cpu"] = synchronisations.count["cpu"]  # only these wait; the rest works on the copies
        synchronisations.count = before
        return found

    monkeypatch.setattr(IncrementalDecoder, "step", counted)
    monkeypatch.setattr(beam_search, "read", read_on_host)
    monkeypatch.setattr(greedy_search, "read_rows", read_on_host)
    decoding = config.decoding.model_copy(update={"beam": beam})
    sentences = requests(24)
    if is_constrained:
        needed, joining = [Constraint(((7, 9),)), Constraint(((11,),))], range(20, 40)
        sentences = [replace(one, constraints=needed, joining=joining) for one in sentences]
        sentences[0] = replace(sentences[0], prefix=(5, 6, 7))
    at_once = search([model], sentences, decoding)
    monkeypatch.setitem(LOOK_STEPS, "cpu", GPU_LOOK_STEPS)
    steps = 0
    with synchronisations:
        found = search([model], sentences, decoding)
    assert [one[0].ids for one in found] == [one[0].ids for one in at_once]
    assert steps > 20
    waits = synchronisations.count.total() - 1  # only a CPU looks at the lengths of the sources
    assert waits / steps <= MOST, synchronisations.count
