"""Decoding one token at a time with the cache equals decoding all at once, also when rows and sentences move."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.kernels import attention as kernels
from transformer_mt.kernels.build import parts_for
from transformer_mt.model.transformer import Transformer

PAD = 0
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def model(**options: object) -> Transformer:
    torch.manual_seed(3)
    config = ModelConfig(
        **{"d_model": 16, "n_heads": 4, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 2, **options}
    )
    return Transformer(config, 13, 11, PAD, 24, parts_for(config, "cpu")).double().eval()


def sources(*lengths: int) -> Tensor:
    torch.manual_seed(4)
    source_BS = torch.randint(1, 13, (len(lengths), max(lengths)))
    for row, length in enumerate(lengths):
        source_BS[row, length:] = PAD
    return source_BS


def step_by_step(transformer: Transformer, source_BS: Tensor, target_BT: Tensor) -> Tensor:
    decoder, logits = IncrementalDecoder(transformer), []
    cache = decoder.start(source_BS)
    for position in range(target_BT.shape[1]):
        assert cache.length == position
        logits_NV, cache = decoder.step(target_BT[:, position], cache)
        logits.append(logits_NV)
    return torch.stack(logits, dim=1)


@pytest.mark.parametrize("attention", ["handmade", "fused"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize(
    "options",
    [{}, {"normalization": "rms", "activation": "swiglu", "bias": False}, {"tie_embeddings": "decoder"}],
    ids=["classic", "modern", "tied"],
)
@torch.no_grad()
def test_cached_decoding_equals_uncached_decoding(positions, norm, attention, options, monkeypatch):
    """handmade: also in decoding, where the written-out formula is for many sentences."""
    if attention == "handmade":
        monkeypatch.setattr(kernels, "FEW_HEADS", 0)
    transformer = model(positions=positions, norm=norm, attention=attention, **options)
    source_BS, target_BT = sources(6, 3, 1), torch.randint(1, 11, (3, 9))
    expected_BTV = transformer.generate_logits(transformer(source_BS, target_BT))
    assert_close(step_by_step(transformer, source_BS, target_BT), expected_BTV, **CLOSE)


@pytest.mark.parametrize(
    ("most", "fast", "chunks"),
    [
        (1, 1, [(1, 6), (1, 2), (1, 3), (1, 1), (1, 2), (1, 6), (1, 4)]),
        (7, 256, [(1, 6), (2, 3), (2, 2), (1, 6), (1, 4)]),
        (25, 256, [(4, 6), (3, 6)]),
        (1536, 6, [(1, 6), (2, 3), (3, 6), (1, 4)]),
        (1536, 256, [(7, 6)]),
    ],
)
@torch.no_grad()
def test_sources_encoded_in_chunks_equal_sources_encoded_at_once(
    most: int, fast: int, chunks: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """most: tokens of a chunk; fast: tokens after which a short sentence begins another. Sentences are not sorted."""
    transformer = model()
    source_BS, target_BT = sources(6, 2, 3, 1, 2, 6, 4), torch.randint(1, 11, (7, 5))
    expected_BTV = transformer.generate_logits(transformer(source_BS, target_BT))
    encoded, whole = [], transformer.encode
    monkeypatch.setattr(transformer, "encode", lambda chunk_BS: encoded.append(chunk_BS.shape) or whole(chunk_BS))
    monkeypatch.setattr("transformer_mt.decoding.incremental.ENCODE_CHUNK_TOKENS", most)
    monkeypatch.setattr("transformer_mt.decoding.incremental.FAST_CHUNK_TOKENS", fast)
    assert_close(step_by_step(transformer, source_BS, target_BT), expected_BTV, **CLOSE)
    assert encoded == chunks, "a chunk has no padding that none of its sentences needs"


@torch.no_grad()
def test_sinusoidal_decoding_goes_on_beyond_the_table():
    transformer = model(positions="sinusoidal")
    longer = Transformer(transformer.config, 13, 11, PAD, 40).double().eval()
    longer.load_state_dict(transformer.state_dict())
    source_BS, target_BT = sources(30, 12), torch.randint(1, 11, (2, 33))
    expected_BTV = longer.generate_logits(longer(source_BS, target_BT))
    assert_close(step_by_step(transformer, source_BS, target_BT), expected_BTV, **CLOSE)
    assert_close(transformer.generate_logits(transformer(source_BS, target_BT)), expected_BTV, **CLOSE)


@pytest.mark.parametrize("fused", [True, False])
@torch.no_grad()
def test_reordered_rows_go_on_as_the_prefixes_they_continue(fused: bool, monkeypatch):
    """Two sentences: one row each in the first step, then three rows each that continue one another's rows.

    fused: with the fused kernel; else with the written-out formula.
    """
    monkeypatch.setattr(kernels, "FEW_HEADS", 1 << 30 if fused else 0)
    transformer = model(positions="rotary")
    decoder = IncrementalDecoder(transformer)
    source_BS = sources(5, 3)
    first_B, second_N, third_N = (
        torch.tensor([2, 3]),
        torch.tensor([4, 5, 6, 7, 8, 9]),
        torch.tensor([1, 2, 3, 4, 5, 6]),
    )
    _, cache = decoder.step(first_B, decoder.start(source_BS))
    cache = cache.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    _, cache = decoder.step(second_N, cache)
    continued_N = torch.tensor([2, 2, 0, 4, 3, 5])
    logits_NV, _ = decoder.step(third_N, cache.reorder(continued_N))

    prefixes_NT = torch.stack([first_B.repeat_interleave(3), second_N[continued_N], third_N], dim=1)
    expected_NTV = transformer.generate_logits(transformer(source_BS.repeat_interleave(3, dim=0), prefixes_NT))
    assert_close(logits_NV, expected_NTV[:, -1], **CLOSE)


@torch.no_grad()
def test_selected_sentences_go_on_without_the_finished_ones():
    transformer = model()
    decoder = IncrementalDecoder(transformer)
    source_BS = sources(5, 3, 4)
    _, cache = decoder.step(torch.tensor([2, 2, 2]), decoder.start(source_BS))
    _, cache = decoder.step(torch.tensor([3, 4, 5, 6, 7, 8]), cache.reorder(torch.tensor([0, 0, 1, 1, 2, 2])))
    kept = torch.tensor([2, 0])
    logits_NV, cache = decoder.step(torch.tensor([9, 10, 1, 2]), cache.select(kept))

    prefixes_NT = torch.tensor([[2, 7, 9], [2, 8, 10], [2, 3, 1], [2, 4, 2]])
    expected_NTV = transformer.generate_logits(transformer(source_BS[kept].repeat_interleave(2, dim=0), prefixes_NT))
    assert_close(logits_NV, expected_NTV[:, -1], **CLOSE)
    assert cache.length == 3


@torch.no_grad()
def test_rows_may_move_several_times_before_they_go_on():
    transformer = model(positions="rotary")
    decoder = IncrementalDecoder(transformer)
    _, cache = decoder.step(torch.tensor([2, 3]), decoder.start(sources(5, 3)).reorder(torch.tensor([0, 1])))
    _, cache = decoder.step(torch.tensor([4, 5, 6, 7]), cache.reorder(torch.tensor([0, 0, 1, 1])))
    first, second = torch.tensor([1, 0, 3, 2]), torch.tensor([0, 0, 3, 2])
    token_N, kept_B = torch.tensor([8, 9, 10, 1]), torch.tensor([1])
    twice, _ = decoder.step(token_N, cache.reorder(first).reorder(second))
    once, _ = decoder.step(token_N, cache.reorder(first[second]))
    selected, _ = decoder.step(token_N[2:], cache.reorder(first).reorder(second).select(kept_B))
    assert torch.equal(twice, once)
    assert not torch.equal(twice[0], decoder.step(token_N, cache)[0][0])
    assert_close(selected, once[2:], **CLOSE)


@pytest.mark.parametrize("rows", [None, [0, 0]])
@torch.no_grad()
def test_a_step_leaves_the_cache_it_was_given_as_it_was(rows: list[int] | None):
    """Two steps continue the same cache. Neither sees what the other wrote, and a later step sees only its own past."""
    transformer = model()
    decoder = IncrementalDecoder(transformer)
    _, cache = decoder.step(torch.tensor([2]), decoder.start(sources(4)))
    cache = cache if rows is None else cache.reorder(torch.tensor(rows))
    n_rows = len(rows or [0])
    three_N, four_N, five_N = (torch.tensor([token] * n_rows) for token in (3, 4, 5))
    one, longer = decoder.step(three_N, cache)
    after, _ = decoder.step(five_N, longer)
    other, _ = decoder.step(four_N, cache)
    again, _ = decoder.step(three_N, cache)
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert torch.equal(after, decoder.step(five_N, longer)[0])


@torch.no_grad()
def test_rows_that_all_continue_one_row_go_on_alike():
    """Three rows of a sentence that continue the first one again and again."""
    transformer = model()
    decoder = IncrementalDecoder(transformer)
    _, cache = decoder.step(torch.tensor([2, 2]), decoder.start(sources(4, 3)))
    cache = cache.reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
    for position in range(1, 20):
        assert cache.length == position
        _, cache = decoder.step(torch.tensor([3, 4, 5, 6, 7, 8]), cache)
        cache = cache.reorder(torch.tensor([0, 0, 0, 3, 3, 3]))
    prefix_BT = torch.tensor([[2, *[3] * 19, 9], [2, *[6] * 19, 9]])
    expected_BTV = transformer.generate_logits(transformer(sources(4, 3), prefix_BT))
    logits_NV, _ = decoder.step(torch.full((6,), 9), cache)
    assert_close(logits_NV, expected_BTV[:, -1].repeat_interleave(3, dim=0), **CLOSE)


@torch.no_grad()
def test_rows_that_began_apart_stay_apart_and_may_leave():
    """As in sampling: two rows for each sentence from the first step on, so without a common past, move and leave."""
    transformer = model(positions="rotary")
    decoder = IncrementalDecoder(transformer)
    source_BS = sources(5, 3)
    cache, prefix_NT = decoder.start(source_BS), torch.tensor([[2, 3, 4], [5, 6, 7], [8, 9, 10], [1, 2, 3]])
    for token_N in prefix_NT.T:
        _, cache = decoder.step(token_N, cache)
    moved_N = torch.tensor([1, 0, 3, 3])
    logits_NV, _ = decoder.step(torch.tensor([4, 5]), cache.reorder(moved_N).select(torch.tensor([1])))
    prefix_NT = torch.cat([prefix_NT[[3, 3]], torch.tensor([[4], [5]])], dim=1)
    expected_NTV = transformer.generate_logits(transformer(source_BS[[1, 1]], prefix_NT))
    assert_close(logits_NV, expected_NTV[:, -1], **CLOSE)


@torch.no_grad()
def test_who_watches_a_part_of_the_model_sees_every_step():
    """Steps call the parts without what PyTorch does around a call, but not those with a hook."""
    transformer, seen = model(), []
    watched = transformer.decoder.layers[1].feed_forward
    watched.register_forward_hook(lambda module, given, result: seen.append(result.shape))
    watched.outer.register_forward_pre_hook(lambda module, given: seen.append(given[0].shape))
    step_by_step(transformer, sources(5, 3), torch.tensor([[2, 3], [4, 5]]))
    assert seen == [(2, 1, 24), (2, 1, 16)] * 2


@pytest.mark.parametrize("change", ["function", "class", "method", "compiled", "everywhere"])
@torch.no_grad()
def test_a_part_that_someone_has_changed_is_called_as_pytorch_calls_it(change, monkeypatch):
    transformer, calls = model(), []
    source_BS, target_BT = sources(5, 3), torch.tensor([[2, 3], [4, 5]])
    before, layer = step_by_step(transformer, source_BS, target_BT), transformer.decoder.layers[0]
    original = layer.feed_forward

    def note(self, x):
        if self.inner.weight is original.inner.weight:
            calls.append(x.shape)

    if change == "function":
        forward = original.forward
        original.forward = lambda x: calls.append(x.shape) or forward(x)
    elif change == "class":

        class Counted(torch.nn.Module):
            def __call__(self, x):
                calls.append(x.shape)
                return original(x)

        layer.feed_forward = Counted()
    elif change == "compiled":

        def counted(graph, inputs):
            return lambda *given: calls.append((2, 1, 16)) or graph(*given)

        layer.feed_forward = torch.compile(original, backend=counted)
    elif change == "method":
        forward = type(original).forward
        monkeypatch.setattr(type(original), "forward", lambda self, x: note(self, x) or forward(self, x))
    elif change == "everywhere":
        record = lambda module, given, result: calls.append(result.shape) if module is original else None  # noqa: E731
        hook = torch.nn.modules.module.register_module_forward_hook(record)
    after = step_by_step(transformer, source_BS, target_BT)
    if change == "everywhere":
        hook.remove()
    assert calls == [(2, 1, 16)] * 2
    assert_close(after, before, **CLOSE)


@torch.no_grad()
def test_steps_share_the_weights_of_the_model():
    transformer = model()
    source_BS, target_BT = sources(5, 3), torch.tensor([[2, 3], [4, 5]])
    before = step_by_step(transformer, source_BS, target_BT)
    decoder = IncrementalDecoder(transformer)
    _, cache = decoder.step(target_BT[:, 0], decoder.start(source_BS))
    transformer.generator.weight.zero_()
    assert not decoder.step(target_BT[:, 1], cache)[0].any()
    assert before.any()
