"""Where the runs are. Importing this file takes no time."""

from __future__ import annotations

from pathlib import Path

RUNS = Path("runs")
