"""All measurements of gpu_check.py: functions from a `Run` to rows of a table, each called in a new process.

To measure a change of the training step, add one line to `VARIANTS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from flops import matrix_peak, tokens_and_flops
from gpu_kernels import BACKENDS, attention, machine, matrices, profile, waiting
from gpu_parity import parity, resume
from gpu_run import Row, Run, between, datasheet, mark, now
from gpu_search import decode, profile_search
from synthetic import trainer_of, update

from transformer_mt.config.decoding import DEFAULT_BATCH_TOKENS
from transformer_mt.kernels import packing
from transformer_mt.runtime.device import peak_memory
from transformer_mt.training.cuda_graph import GraphedStep


class Part(NamedTuple):
    """weight: its share of the time, compared with the other parts."""

    title: str
    weight: float


class Case(NamedTuple):
    part: str
    name: str
    measure: Callable[[Run], list[Row]]


PARTS = {
    "machine": Part("what there is", 2),
    "parity": Part("losses of 20 updates on the CPU and on the GPU", 8),
    "train": Part("updates on random sentences; FLOPs of real tokens", 60),
    "attention": Part("forward and backward, and what the first call with a new shape costs", 12),
    "profile": Part("kernels of an update and of searches, slowest first", 14),
    "decode": Part("translations of random sentences, as long as their sources", 14),
    "matrices": Part("TFLOP/s of the products of an update, in bfloat16", 6),
    "resume": Part("a training that is killed and continued, beside one that is not", 8),
}


@dataclass(frozen=True)
class Variant:
    """A way to train. before: sets switches of PyTorch, after the project has set its own. environment: variables."""

    name: str
    setting: dict[str, Any]
    before: Callable[[], object] | None = None
    environment: dict[str, str] = field(default_factory=dict)


STREAMS = {"batching": {"packing": True}}
SMALL = {"size": "small", "vocabulary": 8000, "batch_tokens": 4096, "optimizer": "muon"}
CUDNN_ON, CUDNN_OFF = (partial(torch.backends.cuda.enable_cudnn_sdp, on) for on in (True, False))


def use_flash() -> None:
    """FlashAttention for streams, instead of our own."""
    packing.for_sentences = lambda *arguments: arguments[-1]


def use_flex() -> None:
    """FlexAttention for streams, instead of our own. On a CPU it has no backward pass."""
    use_flash()
    packing.find_flash = lambda: None


def use_no_graph() -> None:
    """Each kernel is started by the program."""
    GraphedStep.run = lambda *_: None


def use_flash_without_graph() -> None:
    use_flash()
    use_no_graph()


VARIANTS = [
    Variant("base", {}),
    Variant("base, compiled", {"compile": True}),
    Variant("base, cuDNN attention off", {}, CUDNN_OFF),
    Variant("base, cuDNN attention on", {}, CUDNN_ON),
    Variant("base, cuDNN attention on, one shape", {"shapes": "fixed"}, CUDNN_ON),
    Variant("base, cuDNN attention off, one shape", {"shapes": "fixed"}, CUDNN_OFF),
    Variant("base, streams", STREAMS),
    Variant("base, streams, compiled", {**STREAMS, "compile": True}),
    Variant("base, streams, compiled, no CUDA graph", {**STREAMS, "compile": True}, use_no_graph),
    Variant("base, streams, compiled, FlashAttention", {**STREAMS, "compile": True}, use_flash),
    Variant("base, streams, compiled, neither", {**STREAMS, "compile": True}, use_flash_without_graph),
    Variant("small, compiled", {**SMALL, "compile": True}),
    Variant("small, streams, compiled", {**SMALL, **STREAMS, "compile": True}),
    Variant("big", {"size": "big"}),
    Variant("big, compiled", {"size": "big", "compile": True}),
    Variant("big, streams, compiled", {**STREAMS, "size": "big", "compile": True}),
    Variant("base, memory in fixed segments", {}, environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:False"}),
    Variant("base, streams, FlexAttention", STREAMS, use_flex),
    Variant("base, sentences not sorted by length", {"batching": {"bucket_by_length": False}}),
    Variant("base, bfloat16 weights", {"runtime": {"weights": "bfloat16"}}),
    Variant(
        "base, bfloat16 weights, streams, compiled", {**STREAMS, "runtime": {"weights": "bfloat16"}, "compile": True}
    ),
    Variant("base, muon", {"optimizer": "muon"}),
    Variant("base, batches of 4,096", {"batch_tokens": 4096}),
    Variant("base, batches of 4,096, compiled", {"batch_tokens": 4096, "compile": True}),
    Variant("base, batches of 65,536", {"batch_tokens": 65_536}),
    Variant("base, batches of 65,536, compiled", {"batch_tokens": 65_536, "compile": True}),
    Variant("base, float32 (TF32)", {"precision": "float32"}),
]


def train(run: Run, variant: Variant) -> list[Row]:
    """Speed and memory. Updates to warm up, until 10 in a row compile nothing, are not in the speed."""
    warm_up, most_warm_up, most = (1, 1, 3) if run.toy else (10, 50, 95)
    os.environ.update(variant.environment)  # PyTorch reads it with the first tensor on the GPU
    setting = run.setting(**variant.setting)
    trainer = trainer_of(setting)
    if variant.before is not None:
        variant.before()
    device, marks = trainer.machine.device, []
    begun = now(device)
    update(trainer)
    first, graphs = now(device) - begun, number_of_graphs()
    updates, compiled = 1, 0  # so far, and up to the last that compiled
    while updates < min(most_warm_up, compiled + warm_up):
        update(trainer)
        updates += 1
        if number_of_graphs() > graphs:
            graphs, compiled = number_of_graphs(), updates
    started = now(device)
    for _ in range(updates, most):
        update(trainer)
        marks.append(mark(device))
        if len(marks) % 10 == 0 and now(device) - started > run.seconds:
            break
    seconds = now(device) - started
    gaps = [between(*pair) for pair in pairwise(marks)]
    measured = range(updates, updates + len(marks))
    tokens, flops = tokens_and_flops(trainer.batches, measured, setting.model, setting.vocabulary)
    peak = run.peak or matrix_peak(device)
    official = datasheet(device)
    return [
        {
            "variant": variant.name,
            "tokens/s": tokens / seconds,
            "ms": 1000 * seconds / len(marks),
            "slowest ms": 1000 * max(gaps),
            "first s": first,
            "warm-up s": started - begun,
            "TFLOP/s": flops / seconds / 1e12,
            "of measured peak %": 100 * flops / seconds / peak,
            "MFU %": 100 * flops / seconds / official / 1e12 if official else None,
            "GiB": peak_memory(device) / 2**30,
            "reserved GiB": torch.cuda.max_memory_reserved() / 2**30 if device.type == "cuda" else None,
            "graphs": number_of_graphs() if setting.compile else None,
        }
    ]


def number_of_graphs() -> int:
    """How many torch.compile has made in this process."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


CASES = [
    Case("machine", "machine", machine),
    Case("parity", "float32", partial(parity, precision="float32", allowed=1e-4)),
    Case("parity", "bfloat16", partial(parity, precision="bfloat16", allowed=5e-3)),
    Case("parity", "float32, compiled", partial(parity, precision="float32", allowed=1e-4, compiled=True)),
    Case("parity", "float32, muon", partial(parity, precision="float32", allowed=1e-3, optimizer="muon")),
    Case("parity", "float32, streams", partial(parity, precision="float32", allowed=1e-4, packing=True)),
    Case(
        "parity",
        "float32, streams, compiled",
        partial(parity, precision="float32", allowed=1e-4, packing=True, compiled=True),
    ),
    Case("parity", "bfloat16, streams", partial(parity, precision="bfloat16", allowed=5e-3, packing=True)),
    *(Case("train", one.name, partial(train, variant=one)) for one in VARIANTS),
    *(Case("attention", name, partial(attention, backend=name)) for name in BACKENDS),
    *(
        Case("profile", one.name, partial(profile, name=one.name, **one.setting))
        for one in VARIANTS
        if one.name in ("base", "base, compiled", "base, streams, compiled", "small, streams, compiled")
    ),
    Case("profile", "waits", waiting),
    Case("profile", "greedy, bfloat16", partial(profile_search, beam=1, narrow=True)),
    Case("profile", "beam 5, bfloat16", partial(profile_search, beam=5, narrow=True)),
    Case("decode", "greedy, float32", partial(decode, beam=1, narrow=False)),
    Case("decode", "beam 5, float32", partial(decode, beam=5, narrow=False)),
    Case("decode", "greedy, bfloat16", partial(decode, beam=1, narrow=True)),
    Case("decode", "beam 5, bfloat16", partial(decode, beam=5, narrow=True)),
    Case("decode", "greedy, bfloat16, PyTorch's attention", partial(decode, beam=1, narrow=True, own=False)),
    Case("decode", "beam 5, bfloat16, PyTorch's attention", partial(decode, beam=5, narrow=True, own=False)),
    Case("decode", "greedy, bfloat16, no graphs", partial(decode, beam=1, narrow=True, graphs=False)),
    Case("decode", "beam 5, bfloat16, no graphs", partial(decode, beam=5, narrow=True, graphs=False)),
    Case("decode", "greedy, small batches", partial(decode, beam=1, narrow=False, batch_tokens=DEFAULT_BATCH_TOKENS)),
    Case("decode", "beam 5, small batches", partial(decode, beam=5, narrow=False, batch_tokens=DEFAULT_BATCH_TOKENS)),
    *(Case("matrices", size, partial(matrices, size=size)) for size in ("base", "big")),
    *(Case("resume", kind, partial(resume, optimizer=kind)) for kind in ("adam", "muon")),
]
