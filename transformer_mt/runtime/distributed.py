"""The processes that train one model together.

`torchrun` starts the processes and sets the rank of each in the environment. Without it there is a single process, and
every function here returns at once.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from typing import Any, Generic, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from transformer_mt.errors import INTERRUPTED, TmtError

Result = TypeVar("Result")
Item = TypeVar("Item")
TIMEOUT = timedelta(minutes=15)  # how long a process waits for an answer of another one
BEAT = 20.0  # seconds between the answers of a process that works while others wait for it
TRAINING = "the training step of the others"  # what a process waits for, if nothing else is said


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

    @property
    def has_several_hosts(self) -> bool:
        """Whether the processes are on more than one machine."""
        return self.local_size < self.size

    @property
    def leader(self) -> int:
        """The process that works for this machine: the first one on it."""
        return self.rank - self.local_rank if self.has_several_hosts else 0

    @property
    def is_leader(self) -> bool:
        return self.rank == self.leader

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value summed over all processes. CPUs exchange the values, so that no process waits for its GPU."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def from_main(self, make: Callable[[], Result], doing: str = "") -> Result:
        """What `make` returns on rank 0, in all processes. If it fails there, all end: see `_raise_first`.

        doing: what the others wait for, such as `the data`
        """
        if self.size == 1:
            return make()
        main: _Outcome[Result] = self._outcomes(make if self.is_main else None, doing)[0]
        return main.result  # type: ignore[return-value]

    def on_each_host(self, make: Callable[[], Result], doing: str = "") -> dict[int, Result]:
        """What `make` returns in the leader of each machine, by rank; in all processes. If one fails, all end."""
        if self.size == 1:
            return {0: make()}
        outcomes = self._outcomes(make if self.is_leader else None, doing)
        return {rank: one.result for rank, one in enumerate(outcomes) if one.leads}  # type: ignore[misc]

    def everywhere(self, make: Callable[[], Result], doing: str = "") -> Result:
        """What `make` returns in this process. If it fails in one process, all end."""
        if self.size == 1:
            return make()
        box: list[Result] = []
        self._outcomes(lambda: box.append(make()), doing)
        return box[0]

    def exit_all(self, error: TmtError, on_each_host: bool = False) -> NoReturn:
        """End all processes. Every process must call it; rank 0 prints the error, or a process of each machine."""
        prints = self.is_leader if on_each_host else self.is_main
        raise _ends_all(error if prints else SystemExit(error.exit_code))

    def gather(self, value: Result) -> list[Result]:
        """The values of all processes, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def split_work(self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
        """The result of `make` for each item, in order; each process computes a share. If one fails, all end."""
        if self.size == 1:
            return list(make(items))
        shares = self._outcomes(lambda: make(items[self.rank :: self.size]), "the validation of the others")
        results: list[Sequence[Result]] = [share.result or () for share in shares]
        return [results[number % self.size][number // self.size] for number in range(len(items))]

    def tensors_from_main(self, make: Callable[[], Mapping[str, Tensor]], doing: str = "") -> dict[str, Tensor]:
        """The tensors that `make` returns on rank 0, by name, on the CPU of all processes."""
        if self.size == 1:
            return dict(make())
        made: dict[str, Tensor] = {}

        def shapes() -> dict[str, tuple[torch.Size, torch.dtype]]:
            made.update((name, one.detach().cpu().contiguous()) for name, one in make().items())
            return {name: (one.shape, one.dtype) for name, one in made.items()}

        for name, (shape, dtype) in self.from_main(shapes, doing).items():
            if not self.is_main:
                made[name] = torch.empty(shape, dtype=dtype)
            if shape.numel():
                with _waiting_for(doing):
                    dist.broadcast(made[name].reshape(-1).view(torch.uint8), src=0)
        return made

    def _outcomes(self, work: Callable[[], Result] | None, doing: str) -> list[_Outcome[Result]]:
        """The outcome of `work` in each process; None: this process has nothing to do.

        Meanwhile all exchange a sign of life every BEAT seconds, so `work` may take longer than TIMEOUT. It must not
        exchange anything in the group of all processes. Raises the first failure: see `_raise_first`.
        """
        own: _Outcome[Result] = _Outcome(leads=self.is_leader)
        outcomes: list[_Outcome[Result]] = []
        failure: BaseException | None = None
        ended = Event()

        def exchange() -> None:
            with _waiting_for(doing):
                while not outcomes or not all(one.has_ended for one in outcomes):
                    ended.wait(BEAT)
                    outcomes[:] = self.gather(own if ended.is_set() else _Outcome())

        lost: list[BaseException] = []
        thread = Thread(target=_caught(exchange, lost), daemon=True) if work else None
        if thread is not None:
            thread.start()
        try:
            own.result = work() if work is not None else None
        except BaseException as error:
            forget_locals(error)
            failure, own.exit_code = error, exit_code_of(error)
            own.error = self._of_host(error) if isinstance(error, TmtError) else None
        own.has_ended = True
        ended.set()
        if thread is None:
            exchange()
        while thread is not None and thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt as interruption:  # the group must not end while the thread uses it
                failure, own.exit_code = interruption, INTERRUPTED
        try:
            if lost and failure is not None:
                raise failure from lost[0]
            if lost:
                raise lost[0]
            self._raise_first(outcomes, failure)
            if failure is not None:  # a Ctrl-C after the work had ended
                raise failure
            return outcomes
        finally:
            failure = None  # its traceback holds this frame, and with it `work` and what that uses

    def _raise_first(self, outcomes: Sequence[_Outcome[Any]], failure: BaseException | None) -> None:
        """End all processes if one has failed. The process that failed first and a process of each other machine print.

        failure: that of this process
        """
        first = next((rank for rank, one in enumerate(outcomes) if one.exit_code is not None), None)
        if first is None:
            return
        if failure is not None and (first == self.rank or not isinstance(failure, TmtError)):
            raise _ends_all(outcomes[first].error or failure)
        leads_another = self.is_leader and first not in range(self.rank, self.rank + self.local_size)
        shown = outcomes[first].error if leads_another else None
        raise _ends_all(shown or SystemExit(outcomes[first].exit_code))

    def _of_host(self, error: TmtError) -> TmtError:
        """The error, with the name of this machine in its place if there are several."""
        if not self.has_several_hosts or error.place.startswith("host "):
            return error
        place = f"host {host_name()}" + (f": {error.place}" if error.place else "")
        return TmtError(error.message, place=place, remedy=error.remedy, exit_code=error.exit_code)

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


@dataclass
class _Outcome(Generic[Result]):
    """What became of the work of one process. leads: whether it is the leader of its machine."""

    has_ended: bool = False
    leads: bool = False
    result: Result | None = None
    exit_code: int | None = None
    error: TmtError | None = None


ALONE = World()


def host_name() -> str:
    """The name of this machine, as messages call it."""
    return socket.gethostname()


def _caught(work: Callable[[], None], caught: list[BaseException]) -> Callable[[], None]:
    """`work` for a thread, which appends what it raises to a list."""

    def run() -> None:
        try:
            work()
        except BaseException as error:
            caught.append(error)

    return run


@contextmanager
def _waiting_for(what: str) -> Iterator[None]:
    """Errors in the block say what this process waited for."""
    try:
        yield
    except RuntimeError as error:
        error.__dict__.setdefault("waited_for", what)
        raise


def is_main_process() -> bool:
    """Whether this process prints results; without `torchrun`, always True."""
    return os.environ.get("RANK", "0") == "0"


def _ends_all(error: BaseException) -> BaseException:
    """The same error, marked as one that ends all processes: they then leave the process group together."""
    error.__dict__["ends_all"] = True
    return error


def exit_code_of(error: BaseException) -> int:
    """The exit code of a process that ends with this error."""
    if isinstance(error, TmtError):
        return error.exit_code
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return error.code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def forget_locals(error: BaseException) -> None:
    """Release the local variables of the failed functions, most of all the model of World.parallel.

    The model must not outlive the process group. As its last owner, it would hold Python's lock while it waits for the
    threads of the group to end, and these threads wait for the lock.
    """
    failed: BaseException | None = error
    while failed is not None:
        traceback.clear_frames(failed.__traceback__)
        failed = failed.__context__
