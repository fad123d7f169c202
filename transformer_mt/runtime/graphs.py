"""CUDA graphs one after the other in the same memory, which PyTorch keeps apart from all other memory."""

from __future__ import annotations

import atexit
import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

import torch


class GraphPool:
    """Makes CUDA graphs that use the same memory, so only the newest of them may run.

    PyTorch frees such memory late, so pools that nobody uses are kept for the next one who needs a pool.
    """

    _idle: ClassVar[list[GraphPool]] = []
    _one_at_a_time = threading.Lock()

    def __init__(self, device: torch.device) -> None:
        self.device, self._id = device, torch.cuda.graph_pool_handle()
        self._keeper = self.captured(lambda: torch.zeros(1, device=device))  # PyTorch forgets a pool without a graph

    @classmethod
    def take(cls, device: torch.device) -> GraphPool:
        """A pool that nobody else uses until `give_back`."""
        with cls._one_at_a_time:
            for pool in cls._idle:
                if pool.device == device:
                    cls._idle.remove(pool)
                    return pool
        return cls(device)

    def give_back(self) -> None:
        """The graphs of this pool are gone."""
        with self._one_at_a_time:
            self._idle.append(self)

    def captured(self, work: Callable[[], object]) -> torch.cuda.CUDAGraph:
        """A graph of some work, which is not done. Unlike `torch.cuda.graph`, it does not wait for the GPU."""
        graph = torch.cuda.CUDAGraph()
        with self._one_at_a_time, torch.cuda.stream(capture_stream(self.device)):
            graph.capture_begin(self._id, capture_error_mode="relaxed")
            try:
                work()
            except BaseException:
                with suppress(RuntimeError):  # it would hide the error
                    graph.capture_end()
                raise
            graph.capture_end()
        return graph


def give_back_memory() -> None:
    """Give back the memory of GPUs that this process keeps for reuse, and that nobody uses."""
    with GraphPool._one_at_a_time:  # PyTorch gives nothing back while a graph is being made
        GraphPool._idle.clear()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


atexit.register(GraphPool._idle.clear)  # before CUDA ends


@functools.cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all graphs of a device, because each stream keeps 32 MiB for products of matrices."""
    return torch.cuda.Stream(device)
