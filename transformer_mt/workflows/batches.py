"""The batches of a training, from its config and prepared data."""

from __future__ import annotations

from collections.abc import Callable

from transformer_mt.config.cores import cores
from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batches
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.prepare import samples_segmentations
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.sampling import SegmentationSampler
from transformer_mt.runtime.device import Machine

MAX_SAMPLING_PROCESSES = 16  # for one GPU, unless `data.workers` says it


def batches_of(config: Config, prepared: Prepared, machine: Machine, say: Callable[[str], None] = print) -> Batches:
    """The batches of a training for one of its processes. say: for a note while it runs"""
    settings, sampler = config.training, None
    if samples_segmentations(config):
        sampler = SegmentationSampler(prepared, sampling_processes(config, machine), say)
    return Batches(
        prepared.store("train"),
        BatchSize(settings.token_budget, settings.batch_sentences),
        config.seed,
        parts=prepared.parts,
        bucket_by_length=settings.bucket_by_length,
        packing=settings.packing,
        accumulate=settings.accumulate,
        rank=machine.world.rank,
        world=machine.world.size,
        sampler=sampler,
        max_length=config.data.max_length,
    )


def sampling_processes(config: Config, machine: Machine) -> int:
    """How many processes draw segmentations for a process of a training; 1: it draws them itself.

    A GPU would wait for one. On CPUs, the training needs all cores.
    """
    if machine.device.type == "cpu":
        return 1
    share = cores(config.data.workers) // machine.world.local_size
    return max(1, share if config.data.workers else min(share, MAX_SAMPLING_PROCESSES))
