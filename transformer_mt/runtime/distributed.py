"""A group of processes that train one model, or a process alone: the only place that knows ranks.

`torchrun` starts the processes and tells each its rank through the environment; without it the group has
one member and every function here returns at once.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from transformer_mt.errors import INTERRUPTED, TmtError

Result = TypeVar("Result")
Item = TypeVar("Item")
PATIENCE = timedelta(hours=2)  # others wait while rank 0 prepares data or scores the test set


@dataclass(frozen=True)
class World:
    """rank: number of this process; size: how many there are; local_*: the same on this machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def is_main(self) -> bool:
        """Only this process writes files and talks."""
        return self.rank == 0

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value summed over all processes. Between CPUs, so that no GPU is waited for."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def from_main(self, make: Callable[[], Result]) -> Result:
        """What `make` returns on rank 0, for everybody; when it fails there, the others leave without a word."""
        if self.size == 1:
            return make()
        box: list[Any] = [None, None]  # the result, an exit code
        failure: BaseException | None = None
        if self.is_main:
            try:
                box[0] = make()
            except BaseException as error:
                failure, box[1] = error, _exit_code(error)
        dist.broadcast_object_list(box)
        if failure is not None:
            raise _known_to_all(failure)
        if box[1] is not None:
            raise _known_to_all(SystemExit(box[1]))
        return box[0]

    def leave(self, error: TmtError) -> NoReturn:
        """End all processes for a reason that all of them know; one tells it."""
        raise _known_to_all(error if self.is_main else SystemExit(error.exit_code))

    def gather(self, value: Result) -> list[Result]:
        """The values of all processes, in the order of their ranks."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def shared(self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
        """What `make` returns, one thing for each item, in the order of the items; each process takes a share of them.

        When it fails in one, the others leave without a word.
        """
        if self.size == 1:
            return list(make(items))
        made: Sequence[Result] = ()
        failure: BaseException | None = None
        try:
            made = make(items[self.rank :: self.size])
        except BaseException as error:
            failure = error
        shares = self.gather((made, None if failure is None else _exit_code(failure)))
        if failure is not None:
            raise _known_to_all(failure)
        for _, exit_code in shares:
            if exit_code is not None:
                raise _known_to_all(SystemExit(exit_code))
        return [shares[number % self.size][0][number // self.size] for number in range(len(items))]

    def parallel(self, module: nn.Module, device: torch.device) -> nn.Module:
        """The module with gradients averaged over the processes after each backward pass."""
        if self.size == 1:
            return module
        ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(module, device_ids=ids, gradient_as_bucket_view=True)


ALONE = World()


def is_main_process() -> bool:
    """Whether this is the one process of its group that prints results; true outside a group."""
    return os.environ.get("RANK", "0") == "0"


def _known_to_all(error: BaseException) -> BaseException:
    """Mark an error with which all processes leave, so that they end their group together."""
    error.__dict__["known_to_all"] = True
    return error


def _exit_code(error: BaseException) -> int:
    if isinstance(error, TmtError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


@contextmanager
def join_world() -> Iterator[World]:
    """Join the group that `torchrun` started, or be alone. GPUs talk through NCCL, CPUs through gloo."""
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    # Optimizers import the first, which keeps the frames it is imported from, and so the model in them.
    # DistributedDataParallel imports the second, whose functions keep the group that is there by then as a default
    # argument: it outlives destroy_process_group, and a thread of it that wants Python while that ends aborts the
    # process.
    import torch._dynamo
    import torch.distributed.nn

    names = {"RANK": "", "WORLD_SIZE": "", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": os.environ["WORLD_SIZE"]}
    world = World(*(int(os.environ.get(name, otherwise)) for name, otherwise in names.items()))
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    together = True
    try:
        yield world
    except BaseException as error:
        together = "known_to_all" in error.__dict__ or not torch.cuda.is_available()
        _forget_locals(error)
        if not isinstance(error, RuntimeError) or not ("Connection" in str(error) or isinstance(error, dist.DistError)):
            raise
        raise TmtError(
            f"process {world.rank} of {world.size} lost the others: one of them has ended",
            remedy="Its own message, if it had time for one, tells why."
            " The same command goes on from the last checkpoint.",
        ) from None
    else:
        gc.collect()  # as _forget_locals; a failure is not kept waiting, lest torchrun ends it before it is told
    finally:
        if together:  # NCCL waits until all end the group: a process that fails alone just leaves
            dist.destroy_process_group()


def _forget_locals(error: BaseException) -> None:
    """Let go of what the functions that failed worked on, above all the model of World.parallel.

    It must not outlive the process group: as its last owner it would wait, not letting others use Python, for the
    group's threads to end, and they for Python.
    """
    failed: BaseException | None = error
    while failed is not None:
        traceback.clear_frames(failed.__traceback__)
        failed = failed.__context__
