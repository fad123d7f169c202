"""The settings for a number of sentence pairs: vocabulary, model, batches and epochs.

Up to 50,000 pairs they are those of the shipped configs, which were compared in trainings: docs/log.md.
For more pairs they follow from them and from published models, and were not measured here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MOST_HELD_OUT = 1_000  # pairs for validation, and for the test
_SHARE = 0.05
_FEW = 100
_LEAST_UPDATES, _MOST_EPOCHS = 3_000, 160  # with few pairs, an epoch has few updates
_SHORT_EPOCH, _EVERY = 25, 50  # updates: validating after each such epoch would take too long


@dataclass(frozen=True)
class Sizes:
    """vocabulary: pieces, of each side if it is not shared; heads, layers: of encoder and decoder each."""

    vocabulary: int
    width: int
    heads: int
    feed_forward: int
    layers: int
    dropout: float
    batch_tokens: int
    learning_rate: float
    warmup: int
    epochs: int


_ON_CPU = (  # up to this many pairs
    (4_000, Sizes(1_000, 128, 4, 256, 3, 0.3, 512, 0.01, 100, 40)),
    (14_000, Sizes(2_000, 128, 4, 256, 3, 0.3, 1024, 0.01, 100, 30)),
    (50_000, Sizes(4_000, 128, 4, 256, 4, 0.2, 2048, 0.01, 300, 30)),
    (200_000, Sizes(8_000, 128, 4, 512, 4, 0.1, 4096, 0.01, 400, 15)),
    (700_000, Sizes(8_000, 256, 4, 1024, 4, 0.1, 4096, 0.008, 1000, 8)),
    (10**12, Sizes(16_000, 256, 4, 1024, 6, 0.1, 8192, 0.008, 2000, 4)),
)
_ON_GPU = (
    *_ON_CPU[:3],
    (200_000, Sizes(8_000, 256, 4, 1024, 4, 0.2, 8192, 0.008, 400, 40)),
    (700_000, Sizes(8_000, 512, 8, 2048, 6, 0.2, 16384, 0.004, 1000, 25)),
    (10**12, Sizes(32_000, 512, 8, 2048, 6, 0.1, 25_000, 0.004, 2000, 15)),
)


def sizes_for(pairs: int, shared: bool = True, gpu: bool = False) -> Sizes:
    """The settings for a number of different pairs. shared: one vocabulary for both languages; gpu: an NVIDIA GPU."""
    sizes = next(sizes for most, sizes in (_ON_GPU if gpu else _ON_CPU) if pairs <= most)
    if not shared and 14_000 < pairs <= 50_000:  # compared with configs/aihub-ko-en.yaml in docs/results.md
        return replace(sizes, layers=3, batch_tokens=1024, warmup=200, epochs=20)
    return sizes


def held_out(pairs: int) -> int:
    """The number of pairs for validation, and the same for the test: 5 %, but 100 if they are at most a tenth."""
    return max(1, min(MOST_HELD_OUT, max(round(pairs * _SHARE), min(_FEW, pairs // 10))))


def epochs_for(sizes: Sizes, updates: int) -> int:
    """The epochs of these sizes, or with few updates in an epoch more, until they are enough to learn from."""
    return max(sizes.epochs, min(_MOST_EPOCHS, -(-_LEAST_UPDATES // updates)))


def validate_every(updates: int) -> int | None:
    """Updates between validations, for this number in an epoch; None: an epoch."""
    return _EVERY if updates < _SHORT_EPOCH else None


def warmup_for(sizes: Sizes, updates: int) -> int:
    """Updates of warm-up: at most a tenth of all."""
    return max(1, min(sizes.warmup, updates // 10))
