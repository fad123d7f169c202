"""The base class of trackers. Imports nothing heavy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar


class Tracker(ABC):
    """Sends the figures of one run to another program. Methods run in a thread of their own, and may fail or take long.

    Addresses and keys come from the environment variables of that program, never from the config.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def require(cls) -> None:
        """Raises TmtError if the package is not installed."""

    @abstractmethod
    def start(self, folder: Path, title: str, known: str, config: Mapping[str, Any]) -> str:
        """Begin a run there, or continue it. Returns its identity.

        folder: for files, if it writes any; title: name of the run
        known: identity from an earlier start, or empty; config: values by key
        """

    @abstractmethod
    def log(self, figures: Mapping[str, float], step: int | None) -> None:
        """Send figures of a step; None: scores of the finished run."""

    @abstractmethod
    def finish(self) -> None:
        """Send what is left."""
