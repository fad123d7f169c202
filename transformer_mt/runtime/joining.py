"""How a process joins the others that `torchrun` started, and what it says if it cannot, or if it loses them."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from itertools import count
from threading import Timer
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from transformer_mt.config.cores import launched
from transformer_mt.errors import INTERRUPTED, InterruptionError, TmtError, first_line, is_gpu_failure, reason
from transformer_mt.runtime import distributed
from transformer_mt.runtime.distributed import ALONE, TRAINING, World, exit_code_of, forget_locals, host_name

QUIET_SECONDS = 0.5  # torchrun ends all processes as soon as one has ended: one that prints nothing ends later
PATIENCE = 20.0  # seconds before a process that waits for the others says so
NCCL_LATER = timedelta(minutes=5)  # it ends the process when its time is over; so gloo, which says why, gives up first
_MEETINGS = count()  # of this process; a script may train several times


@contextmanager
def join_world() -> Iterator[World]:
    """Join the processes that `torchrun` started, if any. GPUs exchange data through NCCL, CPUs through gloo.

    Raises TmtError if another process has ended.
    """
    if "RANK" not in os.environ or launched("WORLD_SIZE", "1") == 1:
        yield ALONE
        return
    # Import these two before the process group exists. Optimizers import the first one later: it keeps the frames that
    # import it, and with them the model. DistributedDataParallel imports the second one later: the default arguments of
    # its functions keep the group that exists at that time. The group then outlives destroy_process_group, and if one
    # of its threads needs Python while Python ends, the process aborts.
    import torch._dynamo
    import torch.distributed.nn

    numbers = (launched(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    world = World(*numbers)
    _join(world)
    together = True
    try:
        yield world
    except BaseException as error:
        together = "ends_all" in error.__dict__ or not torch.cuda.is_available()
        broken = _broken_connection(error)
        if broken is not None:
            with suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun sends it at once; the message must come first
        if isinstance(error, SystemExit) and together:
            time.sleep(QUIET_SECONDS)
        forget_locals(error)
        if broken is None:
            raise
        lost = _lost(world, broken)
        if broken is error:
            raise lost from None
        raise InterruptionError(f"interrupted; {lost.message}", remedy=lost.remedy) from None
    else:
        gc.collect()  # see forget_locals. Not after a failure: torchrun could end the process before it prints
    finally:
        if together:  # NCCL waits until all processes leave the group, so a process that fails alone just exits
            dist.destroy_process_group()


def _join(world: World) -> None:
    """Make the process group. Raises TmtError if the others are not found."""
    if dist.is_initialized():
        remedy = "Train before torch.distributed.init_process_group or after destroy_process_group."
        raise TmtError("this script has a process group already, and training makes its own", remedy=remedy)
    host = os.environ.get("MASTER_ADDR", "")
    try:
        if host:
            socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:  # PyTorch would try it for hours
        raise TmtError(
            f"{host_name()} does not find the machine {host!r} of the first process: {reason(error)}",
            remedy="Give each torchrun the address of its machine (--local-addr 10.0.0.5), or name it in /etc/hosts.",
        ) from None
    port = os.environ.get("MASTER_PORT", "")
    waiting = f"process {world.rank} of {world.size} waits for the others, at {host}:{port}"
    slow = Timer(PATIENCE, print, [waiting], {"file": sys.stderr})
    slow.daemon = True
    if world.is_leader:
        slow.start()
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        # Neither a second training nor a process that torchrun has restarted may find the addresses of an earlier one.
        # torchrun's own store outlives a restart. In a store of rank 0, a machine that comes back counts from 0.
        keeps = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if keeps else "0"
        store = PrefixStore(f"tmt-{attempt}-{next(_MEETINGS)}", _store(host, port))
        dist.init_process_group(
            backend, timeout=distributed.TIMEOUT, store=store, rank=world.rank, world_size=world.size
        )
        if torch.cuda.is_available():
            group: Any = dist.group.WORLD
            group._get_backend(torch.device("cuda"))._set_default_timeout(distributed.TIMEOUT + NCCL_LATER)
    except RuntimeError as error:
        raise _cannot_join(world, error) from None
    except ValueError as error:
        raise TmtError(
            f"an environment variable that torchrun sets is missing or wrong: {reason(error)}",
            remedy="Start the command with torchrun, as docs/distributed.md shows.",
        ) from None
    finally:
        slow.cancel()


@cache
def _store(host: str, port: str) -> Any:
    """Where the processes find each other's addresses. It stays: others may still read what is in it."""
    store, _, _ = next(rendezvous("env://", timeout=distributed.TIMEOUT))
    return store


_LOST = re.compile(r"Connection|gloo/transport|[Tt]imed out|[Tt]imeout|Broken pipe")


def _broken_connection(error: BaseException) -> RuntimeError | None:
    """The failed exchange of data that ends this process, if one does.

    torchrun's SIGTERM may interrupt the handling of that failure. It then stands behind the interruption.
    """
    failed: BaseException | None = error
    while failed is not None and exit_code_of(failed) == INTERRUPTED:
        failed = failed.__cause__ or failed.__context__
    if not isinstance(failed, RuntimeError) or is_gpu_failure(failed):  # such as a launch that timed out
        return None
    return failed if isinstance(failed, dist.DistError) or _LOST.search(str(failed)) else None


def _cannot_join(world: World, error: RuntimeError) -> TmtError:
    """The error for a process that did not find the others at the start."""
    said = reason(error).splitlines()[0]
    return TmtError(
        f"process {world.rank} of {world.size} on {host_name()} cannot connect with the others: {said}",
        remedy="All ports must be open between the machines. If a machine has several networks, name the one to use:"
        " export GLOO_SOCKET_IFNAME=eth0 NCCL_SOCKET_IFNAME=eth0",
    )


def _lost(world: World, error: RuntimeError) -> TmtError:
    """The error for a process that cannot exchange data: another one ended, is silent, or NCCL says why."""
    said, waited_for = str(error), error.__dict__.get("waited_for") or TRAINING
    here = f"process {world.rank} of {world.size}" + (f" on {host_name()}" if world.has_several_hosts else "")
    if "NCCL error" in said and not re.search("remote process exited|Connection (?:closed|reset)", said):
        last = re.search(r"Last error:\s*(.+)", said)
        return TmtError(
            f"{here} cannot exchange data through NCCL: {last[1] if last else first_line(error)}",
            remedy="If /dev/shm is full, give the container more shared memory: docker run --shm-size=1g."
            " For more messages: export NCCL_DEBUG=INFO",
        )
    if re.search(r"[Tt]imed out|[Tt]imeout", said):
        seconds = distributed.TIMEOUT.total_seconds()
        waited = f"{seconds:g} seconds" if seconds < 120 else f"{seconds / 60:g} minutes"
        problem = f"{here} got no answer for {waited}; it waited for {waited_for}"
    else:
        problem = f"{here} has lost the others: one of them has ended"
        if world.has_several_hosts:
            peer = re.search(r"peer \[?(?:::ffff:)?([\w.:]*?)\]?:\d+", said)
            problem += f" ({f'that at {peer[1]}; ' if peer else ''}it waited for {waited_for})"
    return TmtError(
        problem,
        remedy="See the message of that process, if it printed one."
        " Run the same command to continue from the last checkpoint.",
    )
