"""A stream of sentences is the same mathematics as a padded batch, and no sentence sees its neighbours."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import varlen
from torch.nn.attention.flex_attention import flex_attention
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.data.batching import Batch, batch_of
from transformer_mt.data.packing import StreamSize, halved, joined
from transformer_mt.kernels import packing
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.packing import FlashAttention, Spans, masked_attention, packed_hidden
from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import EOS, PAD
from transformer_mt.training.step import TrainingStep

VOCABULARY, LONGEST = 19, 12
SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
SIZE = StreamSize(source=64, target=72, pairs=9, longest=LONGEST)
MODELS: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "post": {"norm": "post"},
    "rms": {"normalization": "rms", "activation": "swiglu"},
    "tied": {"tie_embeddings": "all", "output_bias": False},
    "no bias": {"bias": False, "positions": "rotary"},
}


def pairs(seed: int = 1, number: int = 7) -> list[tuple[list[int], list[int]]]:
    """Pairs of lengths 1 to 12. They fill neither stream of `SIZE`."""
    generator = random.Random(seed)

    def sentence() -> list[int]:
        return [*generator.choices(range(4, VOCABULARY), k=generator.randint(0, LONGEST - 1)), EOS]

    return [(sentence(), sentence()) for _ in range(number)]


def packed(some: list[tuple[list[int], list[int]]], size: StreamSize = SIZE) -> Batch:
    return Batch.packed(*(joined(side) for side in zip(*some, strict=True)), size)


def padded(some: list[tuple[list[int], list[int]]]) -> Batch:
    return batch_of(*zip(*some, strict=True))


def model_of(kind: str, dtype: torch.dtype = torch.float64) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SMALL, **MODELS[kind]})
    model = Transformer(config, VOCABULARY, VOCABULARY, max_positions=LONGEST, parts=parts_for(config, "cpu"))
    for parameter in model.parameters():  # biases and norms, which are 0 and 1 at first, too
        nn.init.normal_(parameter, std=0.4)
    return model.to(dtype).train()


def spans_of(batch: Batch) -> tuple[Spans, Spans]:
    layout = batch.layout
    assert layout is not None
    return (
        Spans(layout.source_positions_S, layout.source_starts_X, layout.longest),
        Spans(layout.target_positions_T, layout.target_starts_X, layout.longest),
    )


def losses_and_gradients(model: Transformer, batch: Batch, r_drop: float = 0.0) -> list[Tensor]:
    model.zero_grad()
    sums = TrainingStep(model, 0.1, r_drop)(*batch)
    sums.smoothed.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    return [sums.smoothed.detach(), sums.nll, *(one.grad for one in model.parameters() if one.grad is not None)]


@pytest.mark.parametrize("r_drop", [0.0, 1.0])
@pytest.mark.parametrize("kind", MODELS)
def test_loss_and_gradients_equal_those_of_the_padded_batch(kind: str, r_drop: float) -> None:
    model = model_of(kind)
    expected = losses_and_gradients(model, padded(pairs()), r_drop)
    found = losses_and_gradients(model, packed(pairs()), r_drop)
    # the sums of the loss and the gradients of the generator are float32
    assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["sinusoidal", "tied"])
def test_so_they_do_with_the_shapes_that_streams_have_on_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind)
    expected = losses_and_gradients(model, padded(pairs()))
    monkeypatch.setattr(TrainingStep, "has_static_shapes", lambda *_: True)
    assert_close(losses_and_gradients(model, packed(pairs())), expected, rtol=1e-5, atol=1e-5)
    emptied = losses_and_gradients(model, packed(pairs()).emptied())
    assert all(not one.any() for one in emptied)


@pytest.mark.parametrize("kind", MODELS)
def test_hidden_states_equal_those_of_the_padded_batch(kind: str) -> None:
    model, rows, stream = model_of(kind), padded(pairs()), packed(pairs())
    expected = model(rows.source_BS, rows.target_in_BT).flatten(0, 1)[rows.real_N]
    found = packed_hidden(model, stream.source_BS, stream.target_in_BT, *spans_of(stream))[0, stream.real_N]
    assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["rotary", "no bias"])
def test_streams_in_bfloat16_equal_padded_rows(kind: str) -> None:
    """As with `precision: fast` on a CPU."""
    model, rows, stream = model_of(kind, torch.float32), padded(pairs()), packed(pairs())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(rows.source_BS, rows.target_in_BT).flatten(0, 1)[rows.real_N]
        found = packed_hidden(model, stream.source_BS, stream.target_in_BT, *spans_of(stream))[0, stream.real_N]
    assert_close(found, expected, rtol=0.02, atol=0.02)


def test_several_streams_of_the_same_layout_are_computed_together() -> None:
    model, stream = model_of("rotary"), packed(pairs())
    hidden = packed_hidden(model, stream.source_BS, stream.target_in_BT, *spans_of(stream))
    twice = (ids.repeat(2, 1) for ids in (stream.source_BS, stream.target_in_BT))
    assert_close(packed_hidden(model, *twice, *spans_of(stream)), hidden.repeat(2, 1, 1))


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_a_sentence_never_changes_its_neighbours(kind: str) -> None:
    """To the bit: the ids of one pair change, also its words of padding, and all other hidden states stay."""
    model, batch = model_of(kind, torch.float32).eval(), packed(pairs())
    assert batch.layout is not None
    source, target = spans_of(batch)
    before = packed_hidden(model, batch.source_BS, batch.target_in_BT, source, target)[0]
    for pair in range(batch.layout.pairs + 1):  # the last is the tail
        source_1S, target_1T = batch.source_BS.clone(), batch.target_in_BT.clone()
        for ids_1L, spans in ((source_1S, source), (target_1T, target)):
            part = ids_1L[:, spans.starts_X[pair] : spans.starts_X[pair + 1]]
            part.copy_((part + 5) % VOCABULARY)
        after = packed_hidden(model, source_1S, target_1T, source, target)[0]
        others = target.of_tokens() != pair
        assert torch.equal(before[others], after[others])
        assert not torch.equal(before[~others], after[~others])


def by_sentence(queries: Spans, keys: Spans, causal: bool) -> packing.Attend:
    """The paper's attention, one span after the other."""

    def attend(query_LHK: Tensor, key_LHK: Tensor, value_LHK: Tensor) -> Tensor:
        contexts = []
        for start, end, first, last in zip(
            queries.starts_X[:-1], queries.starts_X[1:], keys.starts_X[:-1], keys.starts_X[1:], strict=True
        ):
            query = query_LHK[start:end].transpose(0, 1)[None]
            key, value = (x_LHK[first:last].transpose(0, 1)[None] for x_LHK in (key_LHK, value_LHK))
            contexts.append(scaled_dot_product_attention(query, key, value, causal=causal)[0].transpose(0, 1))
        return torch.cat(contexts)

    return attend


def stream_spans(seed: int, length: int, spans: int, empty: bool) -> Spans:
    """Spans of random lengths, a few of them empty."""
    generator = torch.Generator().manual_seed(seed)
    inner = torch.randint(int(not empty), length, (spans - 1,), generator=generator).sort().values
    starts = torch.cat([torch.tensor([0]), inner, torch.tensor([length])])
    positions = torch.arange(length) - starts[:-1].repeat_interleave(starts.diff())
    return Spans(positions, starts.int(), int(starts.diff().max()))


def cases(case: str) -> tuple[Spans, Spans]:
    """Spans of queries and of keys, over several blocks of FlexAttention, some of them empty."""
    queries = stream_spans(1, 600, 20, empty=True)
    return queries, stream_spans(2, 530, 20, empty=True) if case == "across" else queries


CASES = ["own", "causal", "across"]


@pytest.mark.parametrize("case", CASES)
def test_attention_with_a_mask_stays_inside_a_span(case: str) -> None:
    torch.manual_seed(0)
    queries, keys = cases(case)
    inputs = [torch.randn(len(one.positions_L), 2, 16, requires_grad=True) for one in (queries, keys, keys)]
    results = []
    for kind in (masked_attention, by_sentence):
        context = kind(queries, keys, case == "causal")(*inputs)
        results.append((context, *torch.autograd.grad(context.square().sum(), inputs)))
    assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("case", CASES)
def test_flex_attention_equals_attention_with_a_mask(case: str) -> None:
    """Forward only: FlexAttention has no backward pass on a CPU. It also reads no blocks here; see the next test."""
    torch.manual_seed(0)
    queries, keys = cases(case)
    inputs = [torch.randn(len(one.positions_L), 2, 16) for one in (queries, keys, keys)]
    found = packing.flex_attention(flex_attention, queries, keys, case == "causal")(*inputs)
    assert_close(found, masked_attention(queries, keys, case == "causal")(*inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_the_blocks_of_flex_attention_are_those_with_a_query_and_its_key(case: str) -> None:
    queries, keys = cases(case)
    mask_QM = queries.of_tokens()[:, None] == keys.of_tokens()
    if case == "causal":
        mask_QM = mask_QM.tril()
    padding = (0, -mask_QM.shape[1] % packing.BLOCK, 0, -mask_QM.shape[0] % packing.BLOCK)
    tiles = (
        torch.nn.functional.pad(mask_QM, padding).unflatten(1, (-1, packing.BLOCK)).unflatten(0, (-1, packing.BLOCK))
    )
    expected = tiles.any(dim=3).any(dim=1)
    blocks = packing.block_mask(queries, keys, case == "causal")
    forward = blocks.to_dense()[0, 0].bool()
    assert (forward | ~expected).all(), "a block is missing"
    assert forward.sum() <= expected.sum() + 1, "of spans without queries, a block may be read in vain"
    assert blocks.q_num_blocks is not None
    assert torch.equal(blocks.q_num_blocks[0, 0], forward.sum(dim=0))


@pytest.mark.parametrize("version", ["window", "flag"])
def test_flash_attention_gets_the_spans(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's function runs on GPUs only. A stand-in with the arguments of its versions looks at the calls."""
    queries, keys = stream_spans(1, 40, 5, empty=False), stream_spans(2, 50, 5, empty=False)

    def attend(query: Tensor, key: Tensor, value: Tensor, starts: Any, others: Any, longest: int, causal: bool) -> Any:
        assert longest >= starts.diff().max()
        assert starts.dtype == others.dtype == torch.int32
        spans = Spans(torch.arange(len(query)), starts, longest), Spans(torch.arange(len(key)), others, longest)
        return by_sentence(*spans, causal)(query, key, value)

    def with_window(q: Any, k: Any, v: Any, a: Any, b: Any, c: int, d: int, *, window_size: Any = (-1, -1)) -> Any:
        return attend(q, k, v, a, b, c, window_size == (-1, 0))

    def with_flag(q: Any, k: Any, v: Any, a: Any, b: Any, c: int, d: int, is_causal: bool = False) -> Any:
        return attend(q, k, v, a, b, c, is_causal)

    monkeypatch.setattr(varlen, "varlen_attn", with_window if version == "window" else with_flag)
    flash_attention = packing.find_flash.__wrapped__()
    assert isinstance(flash_attention, FlashAttention)
    for first, second, causal in ((queries, queries, True), (queries, queries, False), (queries, keys, False)):
        inputs = [torch.randn(len(one.positions_L), 2, 8) for one in (first, second, second)]
        found = flash_attention(first, second, causal)(*inputs)
        assert_close(found, masked_attention(first, second, causal)(*inputs))


def test_the_tail_is_cut_into_spans_that_attention_can_take() -> None:
    layout = packed(pairs(number=1)).layout
    assert layout is not None
    for starts_X, length in ((layout.source_starts_X, 64), (layout.target_starts_X, 72)):
        lengths = starts_X.diff()
        assert len(lengths) == SIZE.spans
        assert (lengths >= 0).all()
        assert lengths.max() <= LONGEST
        assert lengths.sum() == length


def test_halves_of_a_stream_have_the_same_loss_together() -> None:
    model, whole = model_of("sinusoidal"), packed(pairs())
    parts = [quarter for half in whole.halves() for quarter in half.halves()]
    assert [part.pairs for part in parts] == [1, 2, 2, 2]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert all(part.source_BS.shape[1] <= 64 and (part.target_out_BT == PAD).any() for part in parts)
    expected = losses_and_gradients(model, whole)
    sums = [losses_and_gradients(model, part) for part in parts]
    assert_close([torch.stack(one).sum(dim=0) for one in zip(*sums, strict=True)], expected, rtol=1e-5, atol=1e-5)


def test_halves_of_many_streams_have_few_shapes() -> None:
    """Each is compiled anew on a GPU."""
    draw, shapes = np.random.default_rng(1), set()
    for _ in range(300):
        lengths = [np.append(0, draw.integers(3, 60, 300).cumsum()) for _ in range(2)]
        shapes.add(halved(*lengths, 60)[1])
    assert len(shapes) <= 6


def test_an_emptied_stream_has_no_loss_and_a_gradient_of_zero() -> None:
    loss, nll, *gradients = losses_and_gradients(model_of("rotary"), packed(pairs()).emptied())
    assert loss == nll == 0
    assert all(not gradient.any() for gradient in gradients)
    assert [half.tokens for half in packed(pairs()).emptied().halves()] == [0, 0]
