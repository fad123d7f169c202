"""Counts the kernels that a training step, or a step of a search, launches on a GPU, without a GPU.

    python scripts/count_kernels.py [--size base] [--optimizer adam muon] [--batch-tokens 25600] [--positions rotary]
        [--weights bfloat16] [--packing] [--top 20] [--json]
    python scripts/count_kernels.py --search 1 5 [--weights bfloat16]       with beams of 1 and 5

The step is the one of `tmt train`: model, loss, backward and optimizer, eager, bfloat16, on fake tensors of the device
"cuda", which have shapes and no numbers. A PyTorch without CUDA cannot run backward on them, so a C++ compiler builds a
stand-in for its device functions. A PyTorch with CUDA has its own, which need a GPU for backward, so without a GPU it
counts steps of a search only. Each operator that is not a view counts as one kernel; the fused and _foreach_
operators count as what PyTorch splits them into. Some operators launch more than one kernel, such as the backward of
an embedding, so the numbers are a lower bound. GB are the sizes of all operands and results: a tensor counts for each
operator that reads or writes it, also if a cache holds it. Neither number says how fast a step is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from flops import SIZES
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

VOCABULARY = 32_000
GUARDED = "TMT_COUNT_KERNELS"  # set in the process that has the stand-in
NO_KERNEL = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "_unsafe_view", "lift_fresh"}
NO_KERNEL |= {"squeeze_", "_record_function_enter_new", "_record_function_exit"}
AT_THE_END = DataDependentOutputException, DynamicOutputShapeException  # of a search, when the host reads its results
CHUNK, CHUNKS = 65_536, 320  # elements, and chunks in a launch of a multi-tensor kernel
TENSORS = {1: 110, 2: 64, 3: 48, 4: 36, 5: 30}  # tensors in a launch, for lists of so many tensors
GUARD = """
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <optional>
namespace at::accelerator {
std::optional<c10::DeviceType> getAccelerator(bool) { return c10::DeviceType::CUDA; }
}
namespace {
using c10::Device;
using c10::DeviceType;
using c10::Stream;
struct Guard final : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device getDevice() const override { return Device(DeviceType::CUDA, 0); }
  Device exchangeDevice(Device) const override { return getDevice(); }
  Stream getStream(Device device) const noexcept override { return Stream(Stream::DEFAULT, device); }
  Stream exchangeStream(Stream stream) const noexcept override { return stream; }
  void record(void**, const Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);
struct CUDAHooks final : at::CUDAHooksInterface {
  CUDAHooks(at::CUDAHooksArgs) {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks);
}
"""


def bytes_of(tensor: Tensor) -> int:
    """Its size; an expanded tensor, or one of windows, has no more bytes than there are behind it."""
    return min(tensor.numel() * tensor.itemsize, tensor.untyped_storage().nbytes())


class KernelCount(TorchDispatchMode):
    """Counts the kernels of the operators that run inside the block, and the bytes of their operands and results."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        number = launches(func, args)
        self.kernels[func.overloadpacket.__name__] += number
        result = func(*args, **(kwargs or {}))
        if number:
            leaves = tree_leaves((args, kwargs, result))
            self.bytes += sum(bytes_of(one) for one in leaves if isinstance(one, Tensor))
        return result


def launches(func: Any, args: tuple[Any, ...]) -> int:
    """The kernels of an operator: 0 for views and allocations, 1 for others, several for long lists of tensors."""
    name = func.overloadpacket.__name__
    is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
    if is_view or name in NO_KERNEL or func.namespace == "prim":
        return 0
    if not name.startswith(("_foreach_", "_fused_adam")):
        return 1
    lists = [argument for argument in args if isinstance(argument, list | tuple) and argument]
    tensors: list[Tensor] = lists[0]
    converts = name == "_foreach_copy_"  # the only one whose lists may differ in type
    layouts = (
        [(one.stride(), None if converts else one.dtype) for one in many]
        for many in lists
        if isinstance(many[0], Tensor)
    )
    if name.startswith("_foreach_") and len({tuple(layout) for layout in layouts}) > 1:
        return len(tensors)  # PyTorch then takes one after the other
    depth = len([one for one in lists if isinstance(one[0], Tensor)])
    if name.startswith("_foreach_") and not name.endswith("_"):
        depth += 1  # the results
    if name.startswith("_fused_adam"):
        depth = 4  # the step numbers are no operands
    return multi_tensor_launches([one.numel() for one in tensors], TENSORS[min(5, depth)])


def multi_tensor_launches(sizes: list[int], most: int) -> int:
    """Launches of a kernel over tensors of these sizes, `most` tensors and CHUNKS chunks in each."""
    done, tensors, chunks = 0, 0, 0
    for size in sizes:
        tensors += 1
        for _ in range(-(-size // CHUNK)):
            chunks += 1
            if chunks == CHUNKS:
                done, tensors, chunks = done + 1, 1, 0
        if tensors == most:
            done, tensors, chunks = done + 1, 0, 0
    return done + (chunks > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--optimizer", nargs="+", default=["adam"])
    parser.add_argument("--batch-tokens", type=int, default=25_600)
    parser.add_argument("--length", type=int, default=32, help="tokens of a sentence")
    parser.add_argument("--positions", choices=["sinusoidal", "learned", "rotary"], default="sinusoidal")
    parser.add_argument("--weights", choices=["float32", "bfloat16"], default="float32", help="runtime.weights")
    parser.add_argument("--search", type=int, nargs="+", metavar="BEAM", help="count a step of searches instead")
    parser.add_argument("--packing", action="store_true", help="the same sentences as streams, with FlashAttention")
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.search and torch.backends.cuda.is_built() and not torch.cuda.is_available():
        parser.error(
            f"PyTorch {torch.__version__} needs a GPU to count a training step. Without one, install PyTorch for CPUs:"
            "  pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )
    if not torch.backends.cuda.is_built() and GUARDED not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            guard = build_guard(Path(folder))
            environment = {**os.environ, "LD_PRELOAD": str(guard), GUARDED: "1"}
            raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)
    pretend_cuda()
    if options.search:
        counted = {f"beam {beam}" if beam > 1 else "greedy": count_search(options, beam) for beam in options.search}
    else:
        counted = {name: count(options, name) for name in options.optimizer}
    if options.json:
        print(json.dumps(counted))
        return
    for name, kernels in counted.items():
        parts = ", ".join(
            f"{part} {kernels[part]:,}" for part in ("forward", "backward", "optimizer") if part in kernels
        )
        what = f"kernels: {parts}" if parts else f"kernels in a step of {kernels['rows']:,} rows"
        print(f"{name}: {kernels['total']:,} {what}; {kernels['gigabytes']:.1f} GB")
        for operator, number in list(kernels["operators"].items())[: options.top]:
            print(f"{number:6}  {operator}")


def build_guard(folder: Path) -> Path:
    """A library that makes a PyTorch without CUDA accept CUDA tensors, as long as nothing reads their numbers."""
    source, library = folder / "guard.cpp", folder / "guard.so"
    source.write_text(GUARD, encoding="utf-8")
    root = Path(torch.__file__).parent
    link = [f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{root / 'lib'}"]
    flags = ["-O0", "-w", "-shared", "-fPIC", "-std=c++20", f"-I{root / 'include'}"]
    subprocess.run(["g++", *flags, str(source), "-o", str(library), *link], check=True)
    return library


def attention_on_cuda(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """What scaled_dot_product_attention runs on a GPU with cuDNN's kernel off: a PyTorch without CUDA runs neither."""
    if mask is None:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal)[0]
    hidden = torch.scalar_tensor(float("-inf"), dtype=query.dtype, device=query.device)
    bias = torch.where(mask, 0.0, hidden)
    missing = -bias.shape[-1] % 8
    bias = F.pad(bias, (0, missing))[..., : bias.shape[-1]] if missing else bias
    bias = bias.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, bias, True, dropout, causal)[0]


def attention_with_bias(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """The same for the few queries of a search: `kernels.attention.attention_to_past` calls it."""
    if bias is not None:
        bias = bias.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, bias, False)[0]


def pretend_cuda() -> None:
    """Let the project's code run as on a GPU."""
    from transformer_mt.kernels import build

    build.fused_attention = attention_on_cuda
    F.scaled_dot_product_attention = lambda query, key, value, attn_mask=None: attention_with_bias(
        query, key, value, attn_mask
    )
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True
    Tensor.pin_memory = lambda self: self


def config_of(options: argparse.Namespace, optimizer_name: str = "adam") -> Any:
    from transformer_mt.config.schema import Config

    return Config.model_validate(
        {
            "name": "count",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character", "shared": True},
            "model": {**SIZES[options.size], "tie_embeddings": "all", "positions": options.positions},
            "training": {"max_epochs": 1, "optimizer": optimizer_name},
        }
    )


def count_search(options: argparse.Namespace, beam: int) -> dict[str, Any]:
    """The kernels of the seventh step of a search, by operator, and its rows: as many as a GPU decodes at once."""
    from transformer_mt.decoding import beam_search as beams
    from transformer_mt.decoding.budget import GPU_ROWS
    from transformer_mt.decoding.greedy_search import greedy_search
    from transformer_mt.decoding.incremental import IncrementalDecoder
    from transformer_mt.decoding.step import GPU_LOOK_STEPS, Limits
    from transformer_mt.kernels.build import parts_for
    from transformer_mt.kernels.narrow import round_to_bfloat16
    from transformer_mt.model.transformer import Transformer

    config, device, sentences, counted = config_of(options).model, torch.device("cuda:0"), GPU_ROWS // beam, []
    steps = (GPU_LOOK_STEPS - 2, GPU_LOOK_STEPS - 1)  # the next one looks at numbers, which fake tensors do not have
    for most in steps:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad(), device:
            model = Transformer(config, VOCABULARY, VOCABULARY, parts=parts_for(config, device)).eval()
            if options.weights == "bfloat16":
                round_to_bfloat16(model)
            decoder, lengths = IncrementalDecoder(model), torch.full((sentences,), most)
            cache = decoder.start(torch.randint(4, VOCABULARY, (sentences, options.length)))
            limits = Limits(torch.zeros_like(lengths), lengths, lengths.new_zeros(sentences, 0), 0, 0, most)
            with KernelCount() as kernels, suppress(*AT_THE_END):
                if beam == 1:
                    greedy_search(decoder.step, cache, limits, scored=False)
                else:
                    beams.beam_search(decoder.step, cache, limits, beams.BeamOptions(beam, alpha=0.6))
        counted.append(kernels)
    before, after = counted
    step = after.kernels - before.kernels
    sizes = {"total": step.total(), "rows": sentences * beam, "gigabytes": (after.bytes - before.bytes) / 1e9}
    return {**sizes, "operators": dict(step.most_common())}


def count(options: argparse.Namespace, optimizer_name: str) -> dict[str, Any]:
    """The kernels of forward, backward and optimizer, by operator, and the devices and types of the gradients."""
    from transformer_mt.data.batching import Batch
    from transformer_mt.data.packing import StreamSize, joined
    from transformer_mt.kernels import packing
    from transformer_mt.kernels.build import parts_for
    from transformer_mt.model.transformer import Transformer
    from transformer_mt.runtime.device import Machine
    from transformer_mt.training.gradients import Gradients
    from transformer_mt.training.narrow_weights import NarrowCopy
    from transformer_mt.training.optimizer import Optimizer
    from transformer_mt.training.step import TrainingStep

    config = config_of(options, optimizer_name)
    sentences = options.batch_tokens // options.length
    ids = torch.randint(4, VOCABULARY, (sentences, options.length))
    ids[1::2, -1] = 0
    batch = Batch.of(ids, ids)
    if options.packing:
        rows = joined([row[row != 0].tolist() for row in ids])
        batch = Batch.packed(rows, rows, StreamSize(ids.numel(), ids.numel(), len(ids), options.length))
        packing.attention_for = lambda *_: packing.find_flash()  # no GPU is there to ask
    with FakeTensorMode(allow_non_fake_inputs=True):
        machine = Machine(torch.device("cuda:0"), torch.bfloat16)
        with machine.device:  # fake tensors cannot move
            parts = parts_for(config.model, machine.device)
            model = Transformer(config.model, VOCABULARY, VOCABULARY, parts=parts).train()
        optimizer = Optimizer(model, config.training, machine)
        narrow = NarrowCopy(model) if options.weights == "bfloat16" else None
        step = TrainingStep(narrow.model if narrow else model, config.training.label_smoothing)
        computing = replace(machine, dtype=torch.float32) if narrow else machine
        gradients = Gradients(step, computing, optimizer.scaler.scale, print)
        gradients.add_up([batch], 1 / batch.tokens)
        if narrow:
            narrow.move_gradients()
        optimizer.update(1, 1e-3)
        counted = {}
        with KernelCount() as kernels:
            with computing.autocast():
                loss = step(*batch.to(machine.device))
            counted["forward"] = kernels.kernels.total()
            (loss.smoothed * (1 / batch.tokens)).backward()
            counted["backward"] = kernels.kernels.total() - counted["forward"]
            before = kernels.kernels.total()
            if narrow:
                narrow.move_gradients()
            kinds = {f"{one.grad.device} {one.grad.dtype}" for one in model.parameters()}
            optimizer.update(2, 1e-3)
            if narrow:
                narrow.round_weights()
            counted["optimizer"] = kernels.kernels.total() - before
    counted |= {"total": kernels.kernels.total(), "gigabytes": kernels.bytes / 1e9}
    counted |= {"operators": dict((+kernels.kernels).most_common())}
    return {**counted, "gradients": sorted(kinds)}


if __name__ == "__main__":
    main()
