"""The gradients of an update, added up over its micro-batches; in smaller parts if memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from transformer_mt.data.batching import Batch, UpdateSize
from transformer_mt.errors import TmtError, is_out_of_memory
from transformer_mt.kernels.loss import LossSums
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.graphs import give_back_memory
from transformer_mt.training.cuda_graph import GraphedStep
from transformer_mt.training.step import TrainingStep


class Gradients:
    """Runs `step` (a TrainingStep, possibly parallel) forward and backward.

    Several processes exchange their gradients during the backward pass. A process that runs out of memory would leave
    the others waiting for its share. So an update that is larger than all before it is computed without an exchange:
    the processes first tell each other whether it fitted, and then average the gradients, or all of them split their
    batches.

    scale: scales the loss before backward, for float16. say: shows a line to the user.
    graph: whether an update of a single batch may become a CUDA graph
    """

    def __init__(
        self,
        step: nn.Module,
        machine: Machine,
        scale: Callable[[Tensor], Tensor],
        say: Callable[[str], None],
        graph: bool = False,
    ) -> None:
        self.step, self.machine, self.world, self.scale, self.say = step, machine, machine.world, scale, say
        self.graphed = GraphedStep(step, machine, say) if graph and isinstance(step, TrainingStep) else None
        self.parts = 1  # number of parts that each micro-batch is split into: a power of two
        self._fitted = UpdateSize(0, 0, 0)  # positions of the largest batches so far that fitted into memory

    def add_up(self, batches: list[Batch], factor: float, size: UpdateSize | None = None) -> LossSums:
        """Add the gradients of factor * sum(loss) to the parameters; returns the loss sums, detached.

        size: of the update over all processes; only a single process may omit it
        Raises TmtError if memory runs out in a batch that cannot be split.
        """
        together = self.world.size > 1 and size is not None and self._has_fitted(size)
        sums = None
        while sums is None:
            pieces = batches
            for _ in range(self.parts.bit_length() - 1):
                pieces = [half for one in pieces for half in (one.halves() if one.pairs > 1 else [one])]
            try:
                sums = self._add_up(pieces, factor, together)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                if together:  # the others already wait for these gradients
                    raise out_of_memory() from None
            if not together and not self._all_fitted(sums is not None, pieces):
                sums = None  # outside of `except`, where the error would keep the tensors of the failed step
        if not together:
            self.world.average([one.grad for one in self.step.parameters() if one.grad is not None])
            if size is not None:
                self._fitted = UpdateSize(None, *map(max, self._fitted[1:], size[1:]))
        return sums

    def release(self) -> None:
        """Give back memory that only the next update needs."""
        if self.graphed is not None:
            self.graphed.release()

    def _has_fitted(self, size: UpdateSize) -> bool:
        """Whether an update with batches of at least this size fitted into the memory of all processes."""
        return size.source <= self._fitted.source and size.target <= self._fitted.target

    def _add_up(self, pieces: list[Batch], factor: float, together: bool) -> LossSums:
        """together: the processes exchange gradients during the backward pass of the last piece."""
        if self.graphed is not None and len(pieces) == 1:
            graphed = self.graphed.run(pieces[0], factor)
            if graphed is not None:
                return LossSums(*graphed)
        sums = []
        for number, batch in enumerate(pieces, start=1):
            parallel = isinstance(self.step, nn.parallel.DistributedDataParallel)
            is_local = parallel and not (together and number == len(pieces))
            with self.step.no_sync() if is_local else nullcontext():  # type: ignore[operator]
                with self.machine.autocast():
                    loss = self.step(*batch.to(self.machine.device))
                self.scale(loss.smoothed * factor).backward()
            sums.append(torch.stack([loss.smoothed.detach(), loss.nll.detach()]))
        return LossSums(*torch.stack(sums).sum(dim=0))

    def _all_fitted(self, fitted: bool, pieces: list[Batch]) -> bool:
        """Whether the update fitted into the memory of all processes; if not, batches have twice as many parts now."""
        is_single = all(one.pairs == 1 for one in pieces)
        failed, cannot_split = self.world.sums([not fitted, not fitted and is_single])
        if not failed:
            return True
        self.step.zero_grad()
        if cannot_split:
            self.world.exit_all(out_of_memory())
        give_back_memory()
        self.parts *= 2
        self.say(f"out of memory: each batch is now computed in {self.parts} parts; the update still uses all of it")
        return False


def out_of_memory() -> TmtError:
    """The error for the user."""
    return TmtError(
        "out of memory on the device",
        remedy="Divide training.batch_tokens and multiply training.accumulate by the same factor,"
        " or train a smaller model.",
    )
