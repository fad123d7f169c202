"""Where and how an engine computes."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from transformer_mt.errors import TmtError


@dataclass(frozen=True)
class Computing:
    """Where and how an engine computes.

    device:  auto, cpu, cuda or mps
    threads: CPU threads; None: one for each core
    seed:    of random samples
    scored:  False lets greedy search skip the scores, which are then 0; this saves a tenth of its time
    """

    device: str = "auto"
    threads: int | None = None
    seed: int = 1
    scored: bool = True

    def __post_init__(self) -> None:
        """Raises TmtError if `threads` or `seed` is no whole number, or too small."""
        for name, value, least in (("threads", self.threads, 1), ("seed", self.seed, 0)):
            if value is not None and not (isinstance(value, Integral) and value >= least):
                raise TmtError(f"{name} must be {least} or more, not {value!r}", remedy=f"For example:  --{name} 2")
