"""The batches of a training, from its config and prepared data."""

from __future__ import annotations

from transformer_mt.config.cores import cores
from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batches
from transformer_mt.data.parallel import Workers
from transformer_mt.data.planning import BatchSize
from transformer_mt.data.prepare import samples_segmentations
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.sampling import Segmentations
from transformer_mt.runtime.device import Machine

MOST_SEGMENTING = 16  # processes for a GPU


def batches_of(config: Config, prepared: Prepared, machine: Machine) -> Batches:
    """The batches of a training for one of its processes."""
    settings = config.training
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
        sampler=Segmentations(prepared) if samples_segmentations(config) else None,
        workers=Workers(_segmenting(config, machine)),
        max_length=config.data.max_length,
    )


def _segmenting(config: Config, machine: Machine) -> int:
    """Processes that draw segmentations: a GPU would wait for one, and on CPUs the training itself needs all cores."""
    if machine.device.type == "cpu":
        return 1
    return min(MOST_SEGMENTING, max(1, cores(config.data.workers) // machine.world.local_size))
