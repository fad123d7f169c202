"""A position does not see the future, padding or other sentences; and a position that sees nothing breaks nothing."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer

PAD, VOCABULARY = 0, 12
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
OPTIONS = {
    "pre": {"norm": "pre"},
    "post, learned": {"norm": "post", "positions": "learned"},
    "rotary, rms, swiglu": {"positions": "rotary", "normalization": "rms", "activation": "swiglu"},
    "deviation": {"epsilon_on": "deviation"},
}
KINDS = [(options, kernels) for options in OPTIONS for kernels in ("handmade", "fused")]


@cache
def build(config: ModelConfig) -> Transformer:
    return Transformer(config, VOCABULARY, VOCABULARY, PAD, 16, parts_for(config, "cpu"))


def model(options: str, kernels: str) -> Transformer:
    torch.manual_seed(5)
    config = ModelConfig(
        d_model=8,
        n_heads=2,
        d_ff=12,
        encoder_layers=2,
        decoder_layers=2,
        attention=kernels,
        norm_kernel=kernels,
        **OPTIONS[options],
    )
    return build(config).double().eval()


def logits_of(transformer: Transformer, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    with torch.no_grad():
        return transformer.generate_logits(transformer(source_BS, target_BT))


def padded(lengths: list[int], width: int, generator: torch.Generator) -> Tensor:
    ids = torch.randint(1, VOCABULARY, (len(lengths), width), generator=generator)
    for row, length in enumerate(lengths):
        ids[row, length:] = PAD
    return ids


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Sentences of any length, also empty ones, in a batch that may be wider than its longest sentence."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    count = draw(st.integers(1, 4))
    width_S, width_T = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    lengths_S = draw(st.lists(st.integers(0, width_S), min_size=count, max_size=count))
    lengths_T = draw(st.lists(st.integers(1, width_T), min_size=count, max_size=count))
    return padded(lengths_S, width_S, generator), padded(lengths_T, width_T, generator)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), batches(), st.data())
def test_a_changed_later_target_token_never_changes_an_earlier_logit(kind, batch, data):
    source_BS, target_BT = batch
    position = data.draw(st.integers(0, target_BT.shape[1] - 1), label="position")
    changed_BT = target_BT.clone()
    changed_BT[:, position:] = data.draw(st.integers(0, VOCABULARY - 1), label="new id")
    before, after = (logits_of(model(*kind), source_BS, ids) for ids in (target_BT, changed_BT))
    assert_close(after[:, :position], before[:, :position], **CLOSE)


@pytest.mark.parametrize("kind", KINDS, ids=": ".join)
def test_every_logit_depends_on_its_own_token_earlier_ones_and_the_source(kind):
    """The law above would also hold for a model that sees nothing."""
    source_BS, target_BT = torch.tensor([[3, 4, 5]]), torch.tensor([[2, 6, 7, 8]])
    before = logits_of(model(*kind), source_BS, target_BT)
    for position in range(4):
        changed_BT = target_BT.clone()
        changed_BT[0, position] = 9
        differ_T = (logits_of(model(*kind), source_BS, changed_BT) != before).any(dim=-1)[0]
        assert differ_T.tolist() == [later >= position for later in range(4)]
    for position in range(3):
        changed_BS = source_BS.clone()
        changed_BS[0, position] = 9
        assert (logits_of(model(*kind), changed_BS, target_BT) != before).any(dim=-1).all()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), batches(), st.integers(0, 3), st.integers(0, 3))
def test_padding_never_changes_a_real_position(kind, batch, more_S, more_T):
    source_BS, target_BT = batch
    before = logits_of(model(*kind), source_BS, target_BT)
    wider_BS = torch.nn.functional.pad(source_BS, (0, more_S), value=PAD)
    wider_BT = torch.nn.functional.pad(target_BT, (0, more_T), value=PAD)
    after = logits_of(model(*kind), wider_BS, wider_BT)[:, : target_BT.shape[1]]
    assert_close(after[target_BT != PAD], before[target_BT != PAD], **CLOSE)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(KINDS), batches())
def test_a_sentence_alone_is_the_sentence_in_a_batch(kind, batch):
    source_BS, target_BT = batch
    together = logits_of(model(*kind), source_BS, target_BT)
    for row, (source_S, target_T) in enumerate(zip(source_BS, target_BT, strict=True)):
        real = target_T != PAD
        shortest_S = source_S[: max(1, int((source_S != PAD).sum()))]  # an empty sentence keeps one PAD
        alone = logits_of(model(*kind), shortest_S[None], target_T[real][None])
        assert_close(together[row][real], alone[0], **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=": ".join)
def test_a_fully_padded_row_gives_finite_numbers_and_gradients(kind, dtype):
    torch.manual_seed(6)
    transformer = build(model(*kind).config).to(dtype).train()
    source_BS = torch.tensor([[3, 4, 5], [PAD, PAD, PAD]])
    target_BT = torch.tensor([[2, 6, 7], [PAD, PAD, PAD]])
    logits_BTV = transformer.generate_logits(transformer(source_BS, target_BT))
    logits_BTV.logsumexp(dim=-1).sum().backward()
    assert logits_BTV.isfinite().all()
    for name, parameter in transformer.named_parameters():
        assert parameter.grad.isfinite().all(), name
