"""The gradients of an update, added up over its micro-batches; in smaller parts if memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from transformer_mt.data.batching import Batch
from transformer_mt.errors import TmtError
from transformer_mt.kernels.loss import LossSums
from transformer_mt.runtime.device import Machine


class Gradients:
    """Runs `step` (a TrainingStep, possibly compiled or parallel) forward and backward.

    scale: scales the loss before backward, for float16. say: shows a line to the user.
    """

    def __init__(
        self, step: nn.Module, machine: Machine, scale: Callable[[Tensor], Tensor], say: Callable[[str], None]
    ) -> None:
        self.step, self.machine, self.scale, self.say = step, machine, scale, say
        self.parts = 1  # number of parts that each micro-batch is split into: a power of two

    def add_up(self, batches: list[Batch], factor: float) -> LossSums:
        """Add the gradients of factor * sum(loss) to the parameters; returns the loss sums, detached."""
        while True:
            parts = batches
            for _ in range(self.parts.bit_length() - 1):
                parts = [half for part in parts for half in (part.halves() if part.pairs > 1 else [part])]
            try:
                return self._add_up(parts, factor)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            self._halve_parts(parts)  # outside of `except`, where the error would keep the tensors of the failed step

    def _add_up(self, parts: list[Batch], factor: float) -> LossSums:
        sums = []
        for number, batch in enumerate(parts, start=1):
            parallel = isinstance(self.step, nn.parallel.DistributedDataParallel)
            is_local = parallel and number < len(parts)  # processes exchange gradients only with the last part
            with self.step.no_sync() if is_local else nullcontext():  # type: ignore[operator]
                with self.machine.autocast():
                    loss = self.step(*batch.to(self.machine.device))
                self.scale(loss.smoothed * factor).backward()
            sums.append(torch.stack([loss.smoothed.detach(), loss.nll.detach()]))
        return LossSums(*torch.stack(sums).sum(dim=0))

    def _halve_parts(self, parts: list[Batch]) -> None:
        """Split each micro-batch into twice as many parts from now on. Raises TmtError if no part can be split."""
        self.step.zero_grad()
        parallel = isinstance(self.step, nn.parallel.DistributedDataParallel)
        if parallel or all(part.pairs == 1 for part in parts):
            raise out_of_memory()
        if self.machine.device.type == "cuda":
            torch.cuda.empty_cache()
        self.parts *= 2
        self.say(f"out of memory: each batch is now computed in {self.parts} parts; the update still uses all of it")


_OUT_OF_MEMORY = ("allocate memory", "not enough memory", "out of memory")


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether memory ran out. CUDA has its own class for this error; CPUs and Apple GPUs raise a plain RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in _OUT_OF_MEMORY)


def out_of_memory() -> TmtError:
    """The error for the user."""
    return TmtError(
        "out of memory on the device",
        remedy="Divide training.batch_tokens and multiply training.accumulate by the same factor,"
        " or train a smaller model.",
    )
