"""What a server accepts, and what it answers when it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from transformer_mt.errors import TmtError

BEAM = 16  # widest beam, and longest n-best list, that a request may ask for


@dataclass(frozen=True)
class Limits:
    """What one request may ask for, and all together.

    body:       bytes of a request
    characters: of all texts of a request
    sentences:  of all texts of a request
    queue:      sentences of all clients that wait or are being translated, for each model
    seconds:    that a request may take
    """

    body: int = 1_000_000
    characters: int = 20_000
    sentences: int = 1_000
    queue: int = 4_000
    seconds: float = 60.0

    @property
    def stuck(self) -> float:
        """Seconds after which a batch counts as stuck: all of its requests were answered with 503 long before.

        A wide beam of a large model on a busy core can take minutes for the sentences of one request.
        """
        return max(30 * self.seconds, 1_800.0)

    def __post_init__(self) -> None:
        """Raises TmtError if a request that is within the limits could never be accepted."""
        if self.queue < self.sentences:
            raise TmtError(
                f"a queue of {self.queue:,} sentences has no room for a request of {self.sentences:,}",
                place="--max-queue",
                remedy="Raise --max-queue, or lower --max-sentences.",
            )


class RequestError(Exception):
    """A request that is not answered as wished. message: a plain sentence for its sender."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})
