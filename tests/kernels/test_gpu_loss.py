"""The loss for GPUs equals the textbook's, compiles as one graph, and passes over the logits a few times only."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from transformer_mt.kernels import gpu_loss as gpu_module
from transformer_mt.kernels import loss as loss_module
from transformer_mt.kernels.gpu_loss import MOST_ROWS, chunk_loss, chunks
from transformer_mt.kernels.loss import LossSums, cpu_loss, linear_cross_entropy, logits_bytes
from transformer_mt.kernels.r_drop import consistent_cross_entropy, twin_logits_bytes, twin_rows

D, V = 12, 50
SMOOTHING = 0.1


def tensors(tokens: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Hidden states, weight, bias and targets, with numbers that `dtype` has."""
    torch.manual_seed(4)
    made = [torch.randn(*shape).to(dtype).float().requires_grad_() for shape in ((tokens, D), (V, D), (V,))]
    return [*made, torch.randint(V, (tokens,))]


def by_torch(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, target_N: Tensor) -> LossSums:
    logits_NV = F.linear(hidden_ND, weight_VD, bias_V)
    smoothed = F.cross_entropy(logits_NV, target_N, label_smoothing=SMOOTHING, reduction="sum")
    return LossSums(smoothed, F.cross_entropy(logits_NV, target_N, reduction="sum"))


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_module, "cpu_loss", lambda *arguments: gpu_module.gpu_loss(*arguments, compiled=False))


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("tokens", [0, 1, 1025, MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1])
def test_it_equals_torchs_cross_entropy_in_value_and_gradient(as_on_a_gpu, tokens: int, with_bias: bool) -> None:
    hidden_ND, weight_VD, bias_V, target_N = tensors(tokens)
    of = (hidden_ND, weight_VD, bias_V) if with_bias else (hidden_ND, weight_VD)
    arguments = hidden_ND, weight_VD, bias_V if with_bias else None, target_N
    ours, theirs = linear_cross_entropy(*arguments, SMOOTHING), by_torch(*arguments)
    assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    own, others = (torch.autograd.grad(3 * sums.smoothed, of) for sums in (ours, theirs))
    assert_close(own, others, rtol=1e-4, atol=1e-4 * max(1, tokens / 1000))


@pytest.mark.parametrize("tokens", [1, MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1])
def test_in_bfloat16_it_differs_by_rounding_only(as_on_a_gpu, tokens: int) -> None:
    hidden_ND, weight_VD, bias_V, target_N = tensors(tokens, torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, SMOOTHING)
    theirs, of = by_torch(hidden_ND, weight_VD, bias_V, target_N), (hidden_ND, weight_VD, bias_V)
    assert_close(ours, theirs, rtol=1e-4, atol=0.02)
    gradients = zip(torch.autograd.grad(ours.smoothed, of), torch.autograd.grad(theirs.smoothed, of), strict=True)
    for own, other in gradients:
        assert own.dtype is torch.float32
        assert float((own - other).norm()) < 0.01 * float(other.norm())


@given(st.integers(0, 40_000))
def test_the_chunks_cover_all_tokens_and_have_two_sizes(tokens: int) -> None:
    parts = list(chunks(tokens))
    assert [row for part, _ in parts for row in range(tokens)[part]] == list(range(tokens))
    assert all(rows in (2048, 8192) and len(range(tokens)[part]) <= rows for part, rows in parts)
    assert sum(rows for _, rows in parts) < tokens + 2048


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("tokens", [7, MOST_ROWS + 5])
def test_tokens_that_do_not_count_are_as_if_left_out(tokens: int, with_bias: bool) -> None:
    hidden_ND, weight_VD, bias_V, target_N = tensors(tokens)
    bias_V = bias_V if with_bias else None
    counts_N = torch.rand(tokens) < 0.7
    masked_ND = hidden_ND.masked_fill(~counts_N[:, None], 0.0)
    ours = linear_cross_entropy(masked_ND, weight_VD, bias_V, target_N, SMOOTHING, counts_N=counts_N)
    theirs = by_torch(hidden_ND[counts_N], weight_VD, bias_V, target_N[counts_N])
    assert_close(ours, theirs, rtol=1e-5, atol=1e-4)
    of = (hidden_ND, weight_VD, bias_V) if bias_V is not None else (hidden_ND, weight_VD)
    own, others = (torch.autograd.grad(3 * sums.smoothed, of) for sums in (ours, theirs))
    assert_close(own, others, rtol=1e-4, atol=1e-4 * max(1, tokens / 1000))


def test_rows_that_do_not_count_change_nothing() -> None:
    hidden_ND, weight_VD, bias_V, target_N = (tensor.detach() for tensor in tensors(20))
    real_N = torch.arange(20) < 13
    hidden_ND[13:] = 0
    masked = chunk_loss(hidden_ND, weight_VD, bias_V, target_N, real_N, SMOOTHING)
    alone = chunk_loss(hidden_ND[:13], weight_VD, bias_V, target_N[:13], real_N[:13], SMOOTHING)
    assert masked[2] is not None
    assert_close((*masked[:2], masked[2]._replace(hidden_ND=masked[2].hidden_ND[:13])), alone)


def test_without_gradients_the_sums_are_the_same() -> None:
    arguments = *tensors(20), torch.ones(20, dtype=torch.bool), SMOOTHING
    with torch.no_grad():
        smoothed, nll, gradients = chunk_loss(*arguments, wants_gradients=False)
        assert gradients is None
        assert_close((smoothed, nll), chunk_loss(*arguments)[:2])


@pytest.mark.slow
def test_it_compiles_to_one_graph_for_each_size(as_on_a_gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(chunk_loss, backend=graphs, dynamic=False, fullgraph=True)
    monkeypatch.setattr(gpu_module, "compiled_chunk_loss", lambda: compiled)
    monkeypatch.setattr(loss_module, "cpu_loss", lambda *arguments: gpu_module.gpu_loss(*arguments, compiled=True))
    for tokens, sizes in ((900, 1), (2048, 1), (1, 1), (9000, 2), (4000, 2), (16_384, 2), (15_000, 2)):
        hidden_ND, weight_VD, bias_V, target_N = tensors(tokens)
        ours = linear_cross_entropy(hidden_ND, weight_VD, bias_V, target_N, SMOOTHING)
        assert_close(ours, by_torch(hidden_ND, weight_VD, bias_V, target_N), rtol=1e-5, atol=1e-4)
        assert graphs.frame_count == sizes, tokens


class _Passes(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the bytes that operations read from and write to tensors of all logits of a chunk."""

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.elements, self.bytes = elements, 0

    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        made = func(*args, **(kwargs or {}))
        returned = func._schema.returns[0].alias_info
        if returned is None or returned.is_write:  # not a view
            for tensor in (*args, made):
                if isinstance(tensor, Tensor) and tensor.numel() == self.elements and "gather" not in func.name():
                    self.bytes += tensor.nbytes * ("scatter" not in func.name())
        return made


def bytes_of_a_logit(loss: Callable[..., object]) -> float:
    """Bytes moved for each logit of a chunk of 8,192 rows with bfloat16 products, without a compiler."""
    arguments = [tensor.detach() for tensor in tensors(MOST_ROWS)]
    with _Passes(MOST_ROWS * V) as passes:
        loss(*arguments, SMOOTHING, torch.bfloat16, True)
    return passes.bytes / passes.elements


def test_a_chunk_moves_half_of_the_bytes_of_the_loss_for_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product writes 2, a copy in float32 needs 6, log-softmax 8, softmax 4, and three products read 2.

    The loss for CPUs has its passes in the cache; on a GPU, each goes to memory.
    """
    monkeypatch.setattr(loss_module, "CPU_ROWS", MOST_ROWS)
    assert bytes_of_a_logit(cpu_loss) == 46
    assert bytes_of_a_logit(lambda *arguments: gpu_module.gpu_loss(*arguments, compiled=False)) == 26


class _Peak(torch.utils._python_dispatch.TorchDispatchMode):
    """The largest number of bytes that tensors of all logits have had at the same time. elements: their sizes."""

    def __init__(self, *elements: int) -> None:
        super().__init__()
        self.elements, self.now, self.most = elements, 0, 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func: Callable, types: object, args: tuple = (), kwargs: dict | None = None) -> object:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.numel() in self.elements:
            storage = made.untyped_storage()
            if storage._cdata not in self.known:
                self.known.add(storage._cdata)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return made

    def _free(self, number: int, size: int) -> None:
        self.known.discard(number)
        self.now -= size


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_memory_of_a_chunk_is_estimated_exactly(dtype: torch.dtype) -> None:
    hidden_ND, weight_VD, bias_V, target_N = tensors(2048)
    narrow = [tensor.detach().to(dtype) for tensor in (hidden_ND, weight_VD, bias_V)]
    with _Peak(2048 * V) as peak:
        chunk_loss(*narrow, target_N, torch.ones(2048, dtype=torch.bool), SMOOTHING)
    assert peak.most == logits_bytes(torch.device("cuda"), dtype, V, 900, compiled=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("chunks", [1, 3])
def test_the_memory_of_two_passes_is_estimated_exactly(chunks: int, dtype: torch.dtype) -> None:
    rows = twin_rows(torch.device("cpu"))
    hidden_ND, weight_VD, bias_V, target_N = tensors(chunks * rows)
    with torch.autocast("cpu", dtype, enabled=dtype is not torch.float32), _Peak(rows * V, 2 * rows * V) as peak:
        consistent_cross_entropy(hidden_ND, hidden_ND + 1, weight_VD, bias_V, target_N, SMOOTHING, 1.0)
    assert peak.most == twin_logits_bytes(torch.device("cpu"), V, len(target_N))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, when it compiles
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_compiled_no_logits_are_stored_in_float32() -> None:
    """Then a chunk moves 14 bytes for each logit: two passes and four products, each of 2 bytes."""
    from torch._inductor.utils import run_and_get_code

    rows, vocabulary = 1024, 3000
    hidden_ND, weight_VD = torch.randn(rows, D, dtype=torch.bfloat16), torch.randn(vocabulary, D, dtype=torch.bfloat16)
    bias_V, target_N = torch.randn(vocabulary, dtype=torch.bfloat16), torch.randint(vocabulary, (rows,))
    arguments = hidden_ND, weight_VD, bias_V, target_N, torch.ones(rows, dtype=torch.bool), SMOOTHING
    compiled = torch.compile(chunk_loss, dynamic=False, fullgraph=True)
    result, code = run_and_get_code(compiled, *arguments)
    assert_close(result, chunk_loss(*arguments), rtol=1e-2, atol=1e-2)
    logits = f"({rows}, {vocabulary}), ({vocabulary}, 1), torch."
    stored = sum(text.count(f"{logits}bfloat16") for text in code)
    assert 2 * stored * rows * vocabulary <= logits_bytes(
        torch.device("cuda"), torch.bfloat16, vocabulary, rows, compiled=True
    )
    assert not any(f"{logits}float32" in text for text in code)
