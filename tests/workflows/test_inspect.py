"""Counting parameters and listing shapes: numbers, letters, no memory, and no changes to the model."""

from __future__ import annotations

import sys

import pytest
import torch

from transformer_mt.config.model import ModelConfig
from transformer_mt.model.transformer import Transformer
from transformer_mt.workflows.inspect import PARTS, count_parts, example_batch, parameter_table, walk_of_shapes

SMALL = {"d_model": 24, "n_heads": 3, "d_ff": 40, "encoder_layers": 2, "decoder_layers": 3}
VARIANTS = [
    {},
    {"norm": "post", "positions": "learned", "attention": "handmade"},
    {"positions": "rotary", "normalization": "rms", "activation": "swiglu", "bias": False},
    {"tie_embeddings": "decoder", "norm": "post", "final_norm": True},
]


def model(target_vocab: int = 13, **options: object) -> Transformer:
    return Transformer(ModelConfig(**{**SMALL, **options}), 11, target_vocab, max_positions=9)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_the_table_has_every_parameter_once(options):
    transformer = model(**options)
    rows = parameter_table(transformer)
    assert {row.name: row.shape for row in rows} == {n: tuple(p.shape) for n, p in transformer.named_parameters()}
    assert sum(row.count for row in rows) == sum(parameter.numel() for parameter in transformer.parameters())
    assert sum(count_parts(rows).values()) == sum(row.count for row in rows)
    assert tuple(count_parts(rows)) == PARTS


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_the_letters_of_parameters_match_their_sizes(options):
    transformer = model(**options)
    for row in parameter_table(transformer):
        vocabulary = 11 if row.name.startswith("source") else 13
        sizes = {"D": 24, "3D": 72, "F": 40, "P": 9, "V": vocabulary}
        assert row.shape == tuple(sizes[letter] for letter in row.letters), row.name


def test_tied_tensors_are_one_row_with_their_other_names():
    rows = parameter_table(model(target_vocab=11, tie_embeddings="all"))
    (tied,) = [row for row in rows if row.aliases]
    assert tied.name == "source_embedding.tokens.weight"
    assert tied.aliases == ("target_embedding.tokens.weight", "generator.weight")
    assert count_parts(rows)["generator"] == 11  # the bias alone


def test_frozen_parameters_are_marked():
    transformer = model()
    transformer.source_embedding.requires_grad_(False)
    frozen = [row.name for row in parameter_table(transformer) if not row.trainable]
    assert frozen == ["source_embedding.tokens.weight"]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_shapes_go_from_ids_to_logits_and_match_their_letters(options, device):
    with torch.device(device):
        transformer = model(**options)
    source_BS, target_BT = example_batch(transformer)
    steps = walk_of_shapes(transformer, source_BS, target_BT)
    sizes = {"B": 2, "S": 7, "T": 5, "D": 24, "F": 40, "V": 13, "H": 3, "K": 8, "1": 1}
    for step in steps:
        queries = 7 if step.path.startswith("encoder") else 5
        keys = 7 if step.path.startswith("encoder") or "cross" in step.path else 5
        expected = {**sizes, "Q": queries, "M": keys}
        assert step.shape == tuple(expected[letter] for letter in step.letters), step
    assert (steps[0].name, steps[0].shape) == ("source", (2, 7))
    assert (steps[-1].path, steps[-1].name, steps[-1].letters) == ("generator", "logits", ("B", "T", "V"))
    in_the_encoder = {step.letters for step in steps if step.path.startswith(("source", "encoder"))}
    assert not [letters for letters in in_the_encoder if "T" in letters]


def test_the_shapes_of_attention_and_feed_forward_are_listed():
    """Query, key, value, scores, weights and context of the three attentions; inner and output of feed-forward."""
    steps = walk_of_shapes(model(), *example_batch(model()))
    for attention in (
        "encoder.layers.1.self_attention",
        "decoder.layers.2.self_attention",
        "decoder.layers.2.cross_attention",
    ):
        names = [step.name for step in steps if step.path == attention]
        wanted = ["query", "key", "value", "scores", "weights", "context", "concatenated", "output"]
        assert [name for name in names if name != "causal_mask"] == wanted
    assert {step.name for step in steps if step.path == "encoder.layers.0.feed_forward"} == {"inner", "output"}
    by_path = {(step.path, step.name): step.letters for step in steps}
    assert by_path["decoder.layers.0.cross_attention", "scores"] == ("B", "H", "Q", "M")
    assert by_path["encoder", "memory"] == ("B", "S", "D")
    assert by_path["decoder", "hidden"] == ("B", "T", "D")


@pytest.mark.parametrize("training", [True, False])
def test_listing_shapes_does_not_change_the_model_or_the_random_numbers(training):
    transformer = model().train(training)
    state = torch.get_rng_state()
    walk_of_shapes(transformer, *example_batch(transformer))
    assert all(module.training == training for module in transformer.modules())
    assert torch.equal(state, torch.get_rng_state())
    assert all(parameter.grad is None for parameter in transformer.parameters())


def test_the_example_fits_into_a_short_table_of_positions():
    transformer = Transformer(ModelConfig(**SMALL, positions="learned"), 5, 5, max_positions=3)
    source_BS, target_BT = example_batch(transformer)
    assert (source_BS.shape, target_BT.shape) == ((2, 3), (2, 3))
    assert walk_of_shapes(transformer, source_BS, target_BT)[-1].shape == (2, 3, 5)


def test_a_failure_restores_the_trace_function_and_the_attention() -> None:
    transformer = model()
    before, kernels = sys.gettrace(), [vars(module).get("attention") for module in transformer.modules()]
    with pytest.raises(IndexError):
        walk_of_shapes(transformer, torch.tensor([[99]]), torch.tensor([[1]]))  # no such token
    assert sys.gettrace() is before
    assert [vars(module).get("attention") for module in transformer.modules()] == kernels
