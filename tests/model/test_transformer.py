"""The whole model: its initial weights, what its options change, and what it refuses."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.errors import TmtError
from transformer_mt.model.normalization import LayerNorm, RMSNorm
from transformer_mt.model.parts import Dropout, Linear, Parts
from transformer_mt.model.transformer import Transformer

SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 1}
IDS = torch.tensor([[2, 5, 6, 3], [2, 7, 3, 0]])


def model(seed: int = 0, source: int = 9, target: int = 9, **options: object) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(ModelConfig(**{**SMALL, **options}), source, target)


def test_initial_weights_depend_on_the_seed_alone():
    one, same, other = (model(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["generator.weight"], other["generator.weight"])


def test_matrices_start_xavier_uniform_and_stacked_ones_one_by_one():
    transformer = model(d_model=64, d_ff=256, n_heads=4)
    attention = transformer.encoder.layers[0].self_attention
    square, wide = math.sqrt(6 / (64 + 64)), math.sqrt(6 / (64 + 256))
    for matrix in (*attention.query_key_value.weight.chunk(3), attention.output.weight):
        assert 0.99 * square < matrix.abs().max() <= square
        assert matrix.std().item() == pytest.approx(square / math.sqrt(3), rel=0.05)
    assert 0.99 * wide < transformer.encoder.layers[0].feed_forward.inner.weight.abs().max() <= wide


def test_biases_start_at_zero_gains_at_one():
    for name, parameter in model().named_parameters():
        if name.endswith(("bias", "beta")):
            assert (parameter == 0).all(), name
        if name.endswith("gamma"):
            assert (parameter == 1).all(), name


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_scaled_embeddings_start_with_variance_one(positions):
    transformer = model(source=500, d_model=64, n_heads=4, positions=positions)
    embedding = transformer.source_embedding
    assert (embedding.tokens.weight * embedding.scale).std().item() == pytest.approx(1.0, rel=0.02)
    if positions == "learned":
        assert embedding.positions.table.weight.std().item() == pytest.approx(1 / 8, rel=0.05)


def test_embeddings_are_scaled_and_positions_added():
    transformer = model().eval()
    embedding = transformer.source_embedding
    expected = embedding.tokens.weight[IDS] * 4 + embedding.positions.table_PD[:4]  # sqrt(16)
    assert_close(embedding(IDS), expected)
    plain = model(scale_embeddings=False, positions="rotary").eval().source_embedding
    assert torch.equal(plain(IDS), plain.tokens.weight[IDS])


@pytest.mark.parametrize(("ties", "tables"), [("none", 3), ("decoder", 2), ("all", 1)])
def test_tied_embeddings_share_storage(ties, tables):
    transformer = model(tie_embeddings=ties)
    weights = (
        transformer.source_embedding.tokens.weight,
        transformer.target_embedding.tokens.weight,
        transformer.generator.weight,
    )
    assert len({weight.data_ptr() for weight in weights}) == tables
    assert weights[1].std().item() == pytest.approx(1 / 4, rel=0.2), "a tied table starts as an embedding"


def test_ties_hold_after_a_step_of_the_optimizer():
    transformer = model(tie_embeddings="all")
    optimizer = torch.optim.Adam(transformer.parameters())
    transformer.generate_logits(transformer(IDS, IDS)).logsumexp(dim=-1).sum().backward()
    optimizer.step()
    assert transformer.generator.weight is transformer.source_embedding.tokens.weight


def test_tying_two_vocabularies_is_refused():
    with pytest.raises(TmtError, match="9 and 8") as caught:
        model(target=8, tie_embeddings="all")
    assert caught.value.place == "model.tie_embeddings"
    model(target=8, tie_embeddings="decoder")


@pytest.mark.parametrize(
    ("options", "present"),
    [({"norm": "pre"}, True), ({"norm": "post"}, False), ({"norm": "post", "final_norm": True}, True)],
)
def test_final_norm_follows_norm_unless_set(options, present):
    transformer = model(**options)
    assert isinstance(transformer.encoder.final_norm, LayerNorm) == present
    assert isinstance(transformer.decoder.final_norm, LayerNorm) == present


def test_depths_biases_and_dropouts_are_as_configured():
    transformer = model(
        encoder_layers=3, decoder_layers=2, bias=False, output_bias=False, dropout=0.1, attention_dropout=0.2,
        feed_forward_dropout=0.3,
    )  # fmt: skip
    assert (len(transformer.encoder.layers), len(transformer.decoder.layers)) == (3, 2)
    assert not [name for name, _ in transformer.named_parameters() if name.endswith("bias")]
    layer = transformer.decoder.layers[0]
    assert layer.around_cross_attention.dropout.p == transformer.source_embedding.dropout.p == 0.1
    assert layer.self_attention.dropout == layer.cross_attention.dropout == 0.2
    assert layer.feed_forward.dropout.p == 0.3


def test_activations_by_their_formulas():
    x_BTD = torch.randn(1, 2, 16)
    for activation in get_args(ModelConfig.model_fields["activation"].annotation):
        layer = model(activation=activation).encoder.layers[0].feed_forward
        inner = layer.inner(x_BTD)
        if activation == "relu":
            inner = inner.clamp(min=0)
        elif activation == "gelu":
            inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        elif activation == "silu":
            inner = inner * torch.sigmoid(inner)
        else:
            assert activation == "swiglu", "its formula belongs here"
            gate = layer.gate(x_BTD)
            inner = gate * torch.sigmoid(gate) * inner
        assert_close(layer(x_BTD), layer.outer(inner))


def test_norm_pre_and_post_by_their_formulas():
    x_BTD = torch.randn(1, 2, 16)
    for norm in ("pre", "post"):
        around = model(norm=norm, dropout=0.0).encoder.layers[0].around_feed_forward
        with torch.no_grad():
            around.norm.gamma.fill_(2.0)
        expected = x_BTD + torch.tanh(around.norm(x_BTD)) if norm == "pre" else around.norm(x_BTD + torch.tanh(x_BTD))
        assert_close(around(x_BTD, torch.tanh), expected)


def test_training_drops_and_evaluation_does_not():
    transformer = model(dropout=0.5)
    assert not torch.equal(transformer(IDS, IDS), transformer(IDS, IDS))
    transformer.eval()
    assert torch.equal(transformer(IDS, IDS), transformer(IDS, IDS))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_rotary_positions_act_in_self_attention_only(positions):
    built = model(positions=positions, d_model=24, n_heads=3)
    rotary = [layer.self_attention.rotary for layer in (*built.encoder.layers, *built.decoder.layers)]
    assert [one is not None for one in rotary] == [positions == "rotary"] * 3
    assert all(one is None or 2 * one.angle_PI.shape[1] == 8 for one in rotary)
    assert all(layer.cross_attention.rotary is None for layer in built.decoder.layers)


def test_rotary_positions_distinguish_orders():
    """Without positions, the mean over a sentence would not depend on the order of its words."""
    one, other = torch.tensor([[5, 6, 7]]), torch.tensor([[7, 6, 5]])
    built = model(positions="rotary").eval()
    means = [built.encode(ids)[0].mean(dim=1) for ids in (one, other)]
    assert (means[0] - means[1]).abs().max() > 1e-4


@pytest.mark.parametrize("normalization", ["layer", "rms"])
def test_every_normalisation_has_the_configured_kind_and_epsilon(normalization):
    options = {"epsilon_on": "deviation"} if normalization == "layer" else {}
    built = model(normalization=normalization, layer_norm_epsilon=1e-3, **options)
    norms = [module for module in built.modules() if isinstance(module, LayerNorm | RMSNorm)]
    assert len(norms) == 2 * 2 + 3 + 2  # of two encoder layers and a decoder layer, and the final ones
    assert {type(norm) for norm in norms} == {LayerNorm if normalization == "layer" else RMSNorm}
    assert {norm.epsilon for norm in norms} == {1e-3}
    assert normalization == "rms" or {norm.epsilon_on for norm in norms} == {"deviation"}


def test_every_piece_is_one_of_the_given_parts():
    class OtherLinear(Linear):
        pass

    class OtherDropout(Dropout):
        pass

    class OtherNorm(LayerNorm):
        pass

    parts = Parts(linear=OtherLinear, dropout=OtherDropout, layer_norm=OtherNorm)
    built = Transformer(ModelConfig(**SMALL, activation="swiglu"), 9, 9, parts=parts)
    for part, ours in ((Linear, OtherLinear), (Dropout, OtherDropout), (LayerNorm, OtherNorm)):
        assert {type(module) for module in built.modules() if isinstance(module, part)} == {ours}


def test_bias_false_leaves_no_bias_in_the_layers():
    built = model(bias=False, activation="swiglu")
    layers = [name for name, _ in built.named_parameters() if ".layers." in name and name.endswith("bias")]
    assert [name for name in layers if "norm" not in name] == []


def test_only_learned_positions_limit_the_length():
    assert model().max_positions is None
    assert model(positions="rotary").max_positions is None
    assert Transformer(ModelConfig(**SMALL, positions="learned"), 9, 9, max_positions=17).max_positions == 17
