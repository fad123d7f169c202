"""Where and how an engine computes."""

from __future__ import annotations

from dataclasses import dataclass

from transformer_mt.errors import TmtError, checked_number, named

MOST_THREADS = 1024
FLOAT32, BFLOAT16 = FORMATS = ("float32", "bfloat16")


@dataclass(frozen=True)
class Computing:
    """Where and how an engine computes.

    device:  auto, cpu, cuda or mps
    threads: CPU threads; None: as many as the process has, at first one for each core
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
        """Raises TmtError if `threads` or `seed` is out of range, or if the format is unknown."""
        if not isinstance(self.device, str):
            raise TmtError(f"{named(self.device)} is no device", remedy='Give its name, such as device="cpu".')
        if self.threads is not None and checked_number(self.threads, "threads") > MOST_THREADS:
            raise TmtError(f"{self.threads} are too many threads", remedy=f"Use at most {MOST_THREADS}.")
        checked_number(self.seed, "seed", least=0)
        if self.weights not in FORMATS:
            raise TmtError(
                f"unknown number format '{self.weights}'", place="--weights", remedy="Use float32 or bfloat16."
            )
