"""Where and how an engine computes."""

from __future__ import annotations

from dataclasses import dataclass

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
        """Raises TmtError if `threads` is below 1."""
        if self.threads is not None and self.threads < 1:
            raise TmtError(f"threads must be 1 or more, not {self.threads}", remedy="For example:  --threads 2")
