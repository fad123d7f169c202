"""The FLOPs of benchmarks: equal to those that PyTorch counts, for real tokens only."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer_mt.config.model import ModelConfig
from transformer_mt.model.transformer import Transformer

step_flops = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "flops.py"))["step_flops"]
VOCABULARY = 50


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize(("source", "target"), [(7, 9), (12, 3)])
def test_a_sentence_has_the_flops_that_pytorch_counts(activation: str, source: int, target: int) -> None:
    config = ModelConfig(d_model=16, n_heads=2, d_ff=24, encoder_layers=2, decoder_layers=3, activation=activation)
    model = Transformer(config, VOCABULARY, VOCABULARY)
    source_BS, target_BT = (torch.randint(4, VOCABULARY, (1, length)) for length in (source, target))
    with FlopCounterMode(display=False) as counted:
        logits_BTV = model.generate_logits(model(source_BS, target_BT))
        F.cross_entropy(logits_BTV.flatten(0, 1), target_BT.flatten()).backward()
    assert step_flops(config, VOCABULARY, np.array([source]), np.array([target])) == counted.get_total_flops()


def test_a_batch_has_the_flops_of_its_sentences() -> None:
    config, lengths = ModelConfig(d_model=16, n_heads=2), np.array([3, 30, 8])
    each = [step_flops(config, VOCABULARY, lengths[[row]], lengths[[row]]) for row in range(3)]
    assert step_flops(config, VOCABULARY, lengths, lengths) == sum(each), "and none for padding to 30"
