"""An update's forward and backward pass as one CUDA graph, which the GPU runs without the program.

The program starts each of some thousand kernels, in 10 microseconds or more; the kernels of a small model take less. A
graph has all of them, with the addresses of all tensors, and starts at once. It needs batches of one shape: streams.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_mt.data.batching import Batch
from transformer_mt.errors import TmtError, first_line, is_out_of_memory
from transformer_mt.runtime.device import Machine, free_memory, restart_peak
from transformer_mt.runtime.graphs import capture_stream, give_back_memory
from transformer_mt.training.step import TrainingStep

WARM_UP = 3  # batches before: they compile, choose kernels, and reserve what libraries need


class GraphedStep:
    """Runs a TrainingStep forward and backward, after some batches as a graph.

    Before a call, every `parameter.grad` must be None. Afterwards they have tensors that the next call writes again.
    say: shows a line to the user
    """

    def __init__(self, step: TrainingStep, machine: Machine, say: Callable[[str], None]) -> None:
        self.step, self.machine, self.say = step, machine, say
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: list[Tensor] = []
        self.factor = self.sums = torch.empty(0)
        self.gradients: list[tuple[Tensor, Tensor | None]] = []
        self.seen = self.needed = 0  # batches; bytes of an update besides what stays
        self.works = machine.device.type == "cuda" and machine.world.size == 1 and not machine.needs_scaling

    def run(self, batch: Batch, factor: float) -> Tensor | None:
        """Gradients of factor * sum(loss); returns the loss sums [2], detached. None: this batch needs another way.

        Raises TmtError if PyTorch cannot make the graph.
        """
        layout = batch.layout
        if not self.works or layout is None or not self.step.has_static_shapes(layout, self.machine.device):
            return None
        tensors = [batch.source_BS, batch.target_in_BT, batch.target_out_BT, *layout[:4]]
        if self.graph is not None and [one.shape for one in tensors] != [one.shape for one in self.inputs]:
            return None
        self.seen += 1
        if self.seen == 1:
            restart_peak(self.machine.device)  # other work of this process may have had a higher one
        if self.seen <= WARM_UP:
            return None
        if self.graph is None and not self._capture(batch):
            self.works = False
            self.say("an update does not fit the GPU's memory as a CUDA graph, so training is slower")
            return None
        for place, tensor in zip(self.inputs, tensors, strict=True):
            place.copy_(tensor.pin_memory(), non_blocking=True)
        self.factor.fill_(factor)
        assert self.graph is not None
        self.graph.replay()
        for parameter, gradient in self.gradients:
            parameter.grad = gradient
        return self.sums.clone()

    def release(self) -> None:
        """Give back the memory of the graph, which nothing else can use; the next batch makes it again."""
        self.graph, self.inputs, self.gradients = None, [], []
        self.factor = self.sums = torch.empty(0)

    def _capture(self, batch: Batch) -> bool:
        """Make the graph. False if memory is, or would become, too small for it."""
        device = self.machine.device
        if self.seen == WARM_UP + 1:
            self.needed = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
        if free_memory(device) < 2 * self.needed:  # the graph keeps as much, and the optimizer and others use it again
            return False
        moved, graph = batch.to(device), torch.cuda.CUDAGraph()
        assert moved.layout is not None
        self.inputs = [moved.source_BS, moved.target_in_BT, moved.target_out_BT, *moved.layout[:4]]
        self.factor = torch.ones((), device=device)
        fits = True
        try:
            # PyTorch's own stream is on the device of the first graph of this process. The loader's thread pins memory
            # meanwhile, which other modes forbid.
            stream = capture_stream(device)
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                with self.machine.autocast():
                    loss = self.step(*moved)
                (loss.smoothed * self.factor).backward()
                self.sums = torch.stack([loss.smoothed.detach(), loss.nll.detach()])
        except RuntimeError as error:
            cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error
            if not is_out_of_memory(cause):  # a capture that failed leaves PyTorch's random generator unusable
                raise TmtError(
                    f"an update cannot become a CUDA graph: {first_line(cause)}",
                    place="training.packing",
                    remedy="Set runtime.compile: false, which trains without graphs, or training.packing: false.",
                ) from None
            fits = False
        if fits:
            self.graph = graph
            self.gradients = [(one, one.grad) for one in self.step.parameters()]
            return True
        del graph, moved
        self.release()
        self.step.zero_grad()
        give_back_memory()
        return False
