"""With the same weights, our encoder, decoder and whole model equal torch.nn's: each output and each gradient.

torch.nn is the independent implementation. In its masks True means "may not attend", the opposite of ours.
"""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.kernels.attention import fused_attention
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.masks import causal_mask, padding_mask
from transformer_mt.model.multi_head_attention import MultiHeadAttention
from transformer_mt.model.parts import Parts
from transformer_mt.model.transformer import Transformer

D, H, F, LAYERS, VOCABULARY, PAD = 24, 4, 40, 2, 17, 0
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
RENAMED = (  # (our name, torch's)
    (r"\.self_attention\.query_key_value\.(weight|bias)", r".self_attn.in_proj_\1"),
    (r"\.cross_attention\.query_key_value\.(weight|bias)", r".multihead_attn.in_proj_\1"),
    (r"\.self_attention\.output\.", ".self_attn.out_proj."),
    (r"\.cross_attention\.output\.", ".multihead_attn.out_proj."),
    (r"\.feed_forward\.inner\.", ".linear1."),
    (r"\.feed_forward\.outer\.", ".linear2."),
    (r"\.around_self_attention\.norm\.", ".norm1."),
    (r"\.around_cross_attention\.norm\.", ".norm2."),
    (r"(encoder.*)\.around_feed_forward\.norm\.", r"\1.norm2."),
    (r"(decoder.*)\.around_feed_forward\.norm\.", r"\1.norm3."),
    (r"\.final_norm\.", ".norm."),
    (r"\.gamma$", ".weight"),
    (r"\.beta$", ".bias"),
)


class Reference(nn.Module):
    """torch.nn's stacks between embeddings and output layer, with our position table, which another test checks."""

    def __init__(self, config: ModelConfig, positions_TD: Tensor) -> None:
        super().__init__()
        same = {
            "d_model": D,
            "nhead": H,
            "dim_feedforward": F,
            "dropout": 0.0,
            "activation": config.activation,
            "layer_norm_eps": config.layer_norm_epsilon,
            "batch_first": True,
            "norm_first": config.norm == "pre",
        }
        norms = [nn.LayerNorm(D, config.layer_norm_epsilon) if config.has_final_norm else None for _ in range(2)]
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**same), LAYERS, norms[0], enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**same), LAYERS, norms[1])
        self.source_embedding = nn.ModuleDict({"tokens": nn.Embedding(VOCABULARY, D)})
        self.target_embedding = nn.ModuleDict({"tokens": nn.Embedding(VOCABULARY, D)})
        self.generator = nn.Linear(D, VOCABULARY)
        self.positions_TD = positions_TD

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        padding_BS = source_BS == PAD
        memory = self.encoder(self._embed(self.source_embedding, source_BS), src_key_padding_mask=padding_BS)
        length = target_BT.shape[1]
        later = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
        hidden = self.decoder(
            self._embed(self.target_embedding, target_BT),
            memory,
            tgt_mask=later,
            tgt_key_padding_mask=target_BT == PAD,
            memory_key_padding_mask=padding_BS,
        )
        return self.generator(hidden)

    def _embed(self, embedding: nn.ModuleDict, ids: Tensor) -> Tensor:
        return embedding["tokens"](ids) * D**0.5 + self.positions_TD[: ids.shape[1]]


def torch_name(name: str) -> str:
    for ours, theirs in RENAMED:
        name = re.sub(ours, theirs, name)
    return name


def twins(dtype: torch.dtype, **options: object) -> tuple[Transformer, Reference]:
    """Our model and torch's with the same weights, none at its initial value 0 or 1."""
    torch.manual_seed(7)
    config = ModelConfig(
        d_model=D, n_heads=H, d_ff=F, encoder_layers=LAYERS, decoder_layers=LAYERS, dropout=0.0, **options
    )
    ours = Transformer(config, VOCABULARY, VOCABULARY, PAD, parts=parts_for(config, "cpu")).to(dtype)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    theirs = Reference(config, ours.source_embedding.positions.table_PD).to(dtype)
    weights = {torch_name(name): parameter.detach() for name, parameter in ours.named_parameters()}
    theirs.load_state_dict(weights, strict=True)
    return ours, theirs


def batch(padded: bool) -> tuple[Tensor, Tensor]:
    torch.manual_seed(8)
    source_BS, target_BT = torch.randint(1, VOCABULARY, (3, 7)), torch.randint(1, VOCABULARY, (3, 6))
    if padded:
        source_BS[0, 4:], source_BS[2, 1:] = PAD, PAD
        target_BT[0, 2:], target_BT[1, 5:] = PAD, PAD
    return source_BS, target_BT


@pytest.mark.parametrize("kernels", ["handmade", "fused"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize(
    ("norm", "final_norm", "activation"),
    [("post", False, "relu"), ("post", True, "gelu"), ("pre", True, "relu"), ("pre", False, "gelu")],
)
def test_the_whole_model_equals_torchs_in_logits_and_gradients(norm, final_norm, activation, padded, dtype, kernels):
    ours, theirs = twins(
        dtype, norm=norm, final_norm=final_norm, activation=activation, attention=kernels, norm_kernel=kernels
    )
    source_BS, target_BT = batch(padded)
    real_BT = target_BT != PAD
    weights_BTV = torch.randn(*target_BT.shape, VOCABULARY, dtype=dtype) / real_BT.sum()

    logits_BTV = ours.generate_logits(ours(source_BS, target_BT))
    expected_BTV = theirs(source_BS, target_BT)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    assert_close(logits_BTV[real_BT], expected_BTV[real_BT], **close)

    (logits_BTV * weights_BTV)[real_BT].sum().backward()
    (expected_BTV * weights_BTV)[real_BT].sum().backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert parameter.grad.abs().max() > 1e-6, f"{name} has no gradient"
        assert_close(
            parameter.grad, gradients[torch_name(name)], msg=lambda text, name=name: f"{name}: {text}", **close
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_each_stack_alone_equals_torchs(norm, dtype):
    ours, theirs = twins(dtype, norm=norm)
    source_BS, _ = batch(padded=True)
    real_BS = source_BS != PAD
    x_BSD, y_BTD = torch.randn(3, 7, D, dtype=dtype), torch.randn(3, 6, D, dtype=dtype)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}

    memory_BSD = ours.encoder(x_BSD, padding_mask(source_BS, PAD))
    assert_close(memory_BSD[real_BS], theirs.encoder(x_BSD, src_key_padding_mask=~real_BS)[real_BS], **close)

    expected_BTD = theirs.decoder(
        y_BTD, x_BSD, tgt_mask=~causal_mask(y_BTD)[0, 0], memory_key_padding_mask=~real_BS, tgt_is_causal=True
    )
    assert_close(ours.decoder(y_BTD, x_BSD, padding_mask(source_BS, PAD)), expected_BTD, **close)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kernel", [scaled_dot_product_attention, fused_attention])
def test_attention_alone_equals_torchs_in_output_and_gradients(bias, kernel):
    torch.manual_seed(1)
    ours = MultiHeadAttention(D, H, bias=bias, parts=Parts(attention=kernel)).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(
        {torch_name(f".self_attention.{name}")[len(".self_attn.") :]: p for name, p in ours.named_parameters()}
    )
    x_BQD = torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    memory_BMD = torch.randn(2, 4, D, dtype=torch.float64, requires_grad=True)
    mask_BHQM = torch.rand(2, 1, 5, 4) < 0.7
    mask_BHQM[..., 0] = True
    hidden = (~mask_BHQM).expand(2, H, 5, 4).flatten(0, 1)

    output = ours(x_BQD, memory_BMD, mask_BHQM)
    expected, _ = theirs(x_BQD, memory_BMD, memory_BMD, attn_mask=hidden)
    assert_close(output, expected, rtol=1e-12, atol=1e-12)
    leaves = [x_BQD, memory_BMD]
    for one, other in zip(
        torch.autograd.grad(output.square().sum(), leaves + list(ours.parameters())),
        torch.autograd.grad(expected.square().sum(), leaves + list(theirs.parameters())),
        strict=True,
    ):
        assert_close(one.reshape(other.shape), other, rtol=1e-10, atol=1e-10)
