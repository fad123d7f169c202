"""Where and how an engine computes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from transformer_mt.errors import TmtError

FLOAT32, BFLOAT16 = FORMATS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Computing:
    """Where and how an engine computes.

    device:  auto, cpu, cuda or mps
    threads: CPU threads; None: one for each core
    seed:    of random samples
    scored:  False lets greedy search skip the scores, which are then 0; this saves a tenth of its time
    weights: number format of the engine tmt: float32, or for GPUs bfloat16; ctranslate2 takes that of the export
    """

    device: str = "auto"
    threads: int | None = None
    seed: int = 1
    scored: bool = True
    weights: str = FLOAT32

    def __post_init__(self) -> None:
        """Raises TmtError if `threads` or `seed` is no whole number or too small, or if the format is unknown."""
        for name, value, least in (("threads", self.threads, 1), ("seed", self.seed, 0)):
            if value is not None and not (isinstance(value, Integral) and value >= least):
                raise TmtError(f"{name} must be {least} or more, not {value!r}", remedy=f"For example:  --{name} 2")
        if self.weights not in FORMATS:
            raise TmtError(
                f"unknown number format '{self.weights}'", place="--weights", remedy="Use float32 or bfloat16."
            )
