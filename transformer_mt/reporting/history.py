"""What happened in a run: the records of metrics.jsonl, as if it had never been interrupted."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_mt.errors import TmtError

Record = dict[str, Any]


def read_history(file: Path) -> list[Record]:
    """The records of a run in order, without those that a resumed run made again.

    A line that is not a record is skipped: the last line of a killed run may be incomplete.
    Raises TmtError if there is no such file.
    """
    if not file.is_file():
        raise TmtError("no metrics here", place=file, remedy="Give the folder of a run, such as runs/NAME.")
    kept: list[Record] = []
    for line in file.read_bytes().decode("utf-8", errors="replace").split("\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            continue
        while kept and kept[-1]["step"] > record["step"]:  # the run went back, and made the later records again
            kept.pop()
        kept.append(record)
    latest = {(record.get("event"), record["step"]): record for record in kept}
    return list(latest.values())


def points(records: Sequence[Record], event: str, key: str) -> tuple[list[int], list[float]]:
    """Steps and values of one kind of record, only those with a finite number as value."""
    found = [(record["step"], record.get(key)) for record in records if record.get("event") == event]
    kept = [(step, float(value)) for step, value in found if isinstance(value, (int, float)) and math.isfinite(value)]
    return [step for step, _ in kept], [value for _, value in kept]
