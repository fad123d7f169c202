"""The processes that train one model together. Ranks are known only here.

`torchrun` starts the processes and sets the rank of each in the environment. Without it there is a single process, and
every function here returns at once.
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
from torch import Tensor, nn

from transformer_mt.errors import INTERRUPTED, TmtError

Result = TypeVar("Result")
Item = TypeVar("Item")
TIMEOUT = timedelta(hours=2)  # other processes wait while rank 0 prepares data or scores the test set


@dataclass(frozen=True)
class World:
    """rank: number of this process, from 0; size: number of processes; local_*: the same on this machine."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value summed over all processes. CPUs exchange the values, so that no process waits for its GPU."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def from_main(self, make: Callable[[], Result]) -> Result:
        """What `make` returns on rank 0, in all processes. If it fails there, the others exit without a message."""
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
            raise _ends_all(failure)
        if box[1] is not None:
            raise _ends_all(SystemExit(box[1]))
        result: Result = box[0]
        return result

    def exit_all(self, error: TmtError) -> NoReturn:
        """End all processes. Every process must call it; only rank 0 prints the error."""
        raise _ends_all(error if self.is_main else SystemExit(error.exit_code))

    def gather(self, value: Result) -> list[Result]:
        """The values of all processes, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def split_work(self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
        """The result of `make` for each item, in order; each process computes a share.

        If `make` fails in one process, the others exit without a message.
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
            raise _ends_all(failure)
        for _, exit_code in shares:
            if exit_code is not None:
                raise _ends_all(SystemExit(exit_code))
        return [shares[number % self.size][0][number // self.size] for number in range(len(items))]

    def parallel(self, module: nn.Module, device: torch.device) -> nn.Module:
        """The module, which averages gradients over the processes after each backward pass."""
        if self.size == 1:
            return module
        ids = [device.index] if device.type == "cuda" else None
        parallel = nn.parallel.DistributedDataParallel(module, device_ids=ids, gradient_as_bucket_view=True)
        # The only buffers are tables of positions, which are the same everywhere. The argument of this name is
        # deprecated since PyTorch 2.13, and the new name does not exist before.
        parallel.broadcast_buffers = False
        return parallel

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over all processes. All must have the same type and device."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors]).div_(self.size)
        dist.all_reduce(flat)
        parts = flat.split([tensor.numel() for tensor in tensors])
        torch._foreach_copy_(list(tensors), [part.view_as(one) for part, one in zip(parts, tensors, strict=True)])


ALONE = World()


def is_main_process() -> bool:
    """Whether this process prints results; without `torchrun`, always True."""
    return os.environ.get("RANK", "0") == "0"


def _ends_all(error: BaseException) -> BaseException:
    """The same error, marked as one that ends all processes: they then leave the process group together."""
    error.__dict__["ends_all"] = True
    return error


def _exit_code(error: BaseException) -> int:
    """The exit code of a process that ends with this error."""
    if isinstance(error, TmtError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


@contextmanager
def join_world() -> Iterator[World]:
    """Join the processes that `torchrun` started, if any. GPUs exchange data through NCCL, CPUs through gloo.

    Raises TmtError if another process has ended.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ALONE
        return
    # Import these two before the process group exists. Optimizers import the first one later: it keeps the frames that
    # import it, and with them the model. DistributedDataParallel imports the second one later: the default arguments of
    # its functions keep the group that exists at that time. The group then outlives destroy_process_group, and if one
    # of its threads needs Python while Python ends, the process aborts.
    import torch._dynamo
    import torch.distributed.nn

    names = {"RANK": "", "WORLD_SIZE": "", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": os.environ["WORLD_SIZE"]}
    world = World(*(int(os.environ.get(name, otherwise)) for name, otherwise in names.items()))
    dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=TIMEOUT)
    together = True
    try:
        yield world
    except BaseException as error:
        together = "ends_all" in error.__dict__ or not torch.cuda.is_available()
        _forget_locals(error)
        if not isinstance(error, RuntimeError) or not ("Connection" in str(error) or isinstance(error, dist.DistError)):
            raise
        raise TmtError(
            f"process {world.rank} of {world.size} has lost the others: one of them has ended",
            remedy="See the message of that process, if it printed one."
            " Run the same command to continue from the last checkpoint.",
        ) from None
    else:
        gc.collect()  # see _forget_locals. Not after a failure: torchrun could end the process before it prints
    finally:
        if together:  # NCCL waits until all processes leave the group, so a process that fails alone just exits
            dist.destroy_process_group()


def _forget_locals(error: BaseException) -> None:
    """Release the local variables of the failed functions, most of all the model of World.parallel.

    The model must not outlive the process group. As its last owner, it would hold Python's lock while it waits for the
    threads of the group to end, and these threads wait for the lock.
    """
    failed: BaseException | None = error
    while failed is not None:
        traceback.clear_frames(failed.__traceback__)
        failed = failed.__context__
