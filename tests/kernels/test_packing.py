"""What a stream costs: kernels of a step, graphs of torch.compile."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_mt.config.data import DataConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.data.batching import Batch
from transformer_mt.data.packing import StreamSize, joined
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.dropout import FusedDropout
from transformer_mt.kernels.packing import AS_WRITTEN, Attends, Spans, StreamLayers, find_flash, stream_hidden
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import EOS
from transformer_mt.training.step import TrainingStep

SENTENCES, LENGTH = 1024, 25  # a batch of 25,600 tokens on each side
# These make no kernel: they only look at a tensor in another way, or reserve memory.
VIEWS = {
    "view",
    "t",
    "transpose",
    "expand",
    "slice",
    "select",
    "unsqueeze",
    "squeeze",
    "permute",
    "detach",
    "alias",
} | {*("unbind", "split", "split_with_sizes", "as_strided", "_unsafe_view", "empty", "empty_like", "empty_strided")}


class Kernels(TorchDispatchMode):
    """Counts the operations that run while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        self.count[name] += name not in VIEWS
        return function(*args, **(kwargs or {}))


class NativeDropout(FusedDropout):
    """One kernel, as F.dropout has on a GPU; on the meta device it would be three."""

    def drop(self, x: Tensor) -> Tensor:
        return torch.native_dropout(x, self.p, True)[0]


def one_kernel(query: Tensor, key: Tensor, value: Tensor, mask: Any = None, causal: bool = False, p: float = 0) -> Any:
    """Attention as one kernel, as FlashAttention would be; its mask would cost a GPU a few more."""
    return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, p, causal)[0]


def kernels(positions: str, packed: bool) -> int:
    """Kernels of forward and backward through the layers of a model of base size, without generator and loss."""
    config = ModelConfig.model_validate({"positions": positions, "tie_embeddings": "all"})
    parts = replace(parts_for(config, "meta"), dropout=NativeDropout, attention=one_kernel)
    with torch.device("meta"):
        model = Transformer(config, 32_000, 32_000, max_positions=256, parts=parts).train()
        rows = torch.empty(SENTENCES, LENGTH, dtype=torch.long)
        starts = torch.empty(SENTENCES + 1, dtype=torch.int32)
    with Kernels() as counted:
        if packed:
            flash, spans = find_flash(), Spans(rows.flatten(), starts, 128)
            assert flash is not None
            attends = Attends(flash(spans, spans, False), flash(spans, spans, True), flash(spans, spans, False))
            hidden = stream_hidden(model, rows.flatten(), rows.flatten(), spans, spans, attends)
        else:
            hidden = model(rows, rows)
        hidden.backward(torch.empty_like(hidden))
    return counted.count.total()


@pytest.mark.skipif(find_flash() is None, reason="this PyTorch has no FlashAttention for sentences of several lengths")
@pytest.mark.parametrize(("positions", "most"), [("sinusoidal", 570), ("learned", 576), ("rotary", 688)])
def test_a_stream_needs_fewer_kernels_than_rows(positions: str, most: int) -> None:
    """Of these, 36 are zeros that PyTorch's variable-length attention passes to its backward."""
    assert kernels(positions, packed=True) <= most < kernels(positions, packed=False)


class OnDevice(TorchDispatchMode):
    """Inside, every result must be on the meta device."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        assert not isinstance(result, Tensor) or result.device.type == "meta", function
        return result


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_longest_sentence_of_a_training_needs_nothing_from_the_cpu(positions: str) -> None:
    """A copy cannot be part of a CUDA graph, and the program waits for it."""
    most = DataConfig.model_json_schema()["properties"]["max_length"]["maximum"]
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 1, "decoder_layers": 1}
    config = ModelConfig.model_validate({**sizes, "positions": positions})
    with torch.device("meta"):
        model = Transformer(config, 19, 19, max_positions=most, parts=parts_for(config, "meta"))
        rows, starts = torch.empty(1, most, dtype=torch.long), torch.empty(2, dtype=torch.int32)
    spans, attend = Spans(rows[0], starts, most), lambda query, key, value: query
    with OnDevice():
        assert model(rows, rows).shape == (1, most, 16)
        assert stream_hidden(model, rows[0], rows[0], spans, spans, Attends(attend, attend, attend)).shape == (most, 16)


def compile_streams(parallel: bool) -> None:
    """Other sentences, of other lengths and another number, give the same graphs; they compute the same.

    parallel: as one of several processes. With small buckets, PyTorch would cut each layer
    """
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    config = ModelConfig.model_validate({**sizes, "positions": "rotary"})
    model = Transformer(config, 19, 19, parts=parts_for(config, "cpu")).train()
    twin = copy.deepcopy(model)
    step, compiled = TrainingStep(model, 0.1), TrainingStep(twin, 0.1, compiled=True)
    graphs = CompileCounterWithBackend("aot_eager")
    compiled.stream_layers = StreamLayers(
        *(torch.compile(one, backend=graphs, dynamic=False, fullgraph=True) for one in AS_WRITTEN)
    )
    if parallel:
        compiled = DistributedDataParallel(compiled, bucket_cap_mb=0.01, gradient_as_bucket_view=True)
    size, generator, counted = StreamSize(source=64, target=72, pairs=9, longest=12), random.Random(1), []
    for number in (7, 5, 6, 1, 7):
        sides = [[[*[7] * generator.randint(0, 8), EOS] for _ in range(number)] for _ in range(2)]
        batch = Batch.packed(*map(joined, sides), size)
        results = []
        for one in (step, compiled):
            one.zero_grad()
            sums = one(*batch)
            sums.smoothed.backward()
            results.append((sums, [parameter.grad.clone() for parameter in one.parameters()]))
        assert_close(*results, rtol=1e-4, atol=1e-5)
        counted.append(graphs.frame_count)
    assert len(set(counted)) == 1, "later streams need no other graphs"
    assert counted[0] == 2, "one for each stack"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["alone", "in parallel"])
def test_streams_are_compiled_once(how: str, tmp_path: Path) -> None:
    """In a process of its own: what other tests leave in this one, torch.compile would trace too."""
    command = [sys.executable, __file__, how, str(tmp_path / "store")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stderr


if __name__ == "__main__":
    in_parallel = sys.argv[1] == "in parallel"
    if in_parallel:
        torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=0, world_size=1)
        torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = 4096
    compile_streams(in_parallel)
    if in_parallel:
        torch.distributed.destroy_process_group()
