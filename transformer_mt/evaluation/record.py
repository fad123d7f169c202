"""scores.json in a model directory: the scores of the model on each test set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformer_mt.files.lock import lock
from transformer_mt.files.replace import first_free, replace_text


def store_scores(file: Path, test_set: str, settings: dict[str, Any], measured: dict[str, Any]) -> Path | None:
    """Write the entry of one test set in the file; the other entries stay.

    An entry made with other settings stays, too: in the list `others` of the new one, the newest first.
    settings: what was translated, and how
    measured: figures by name; None: not measured. An earlier figure stays then, if the settings are the same
    Returns the new name of the old file if it was damaged, or else None. Raises OSError if a file cannot be written.
    """
    new = {**{key: value for key, value in measured.items() if value is not None}, **settings}
    with lock(file.with_name(f".{file.name}.lock"), lambda: None):  # another test set may be evaluated at the same time
        scores = read_scores(file)
        damaged = None
        if is_damaged(file, scores):
            damaged = file.replace(first_free(lambda number: file.with_name(f"{file.name}.damaged{number}")))
        entries = entries_of(scores.get(test_set))
        before = next((one for one in entries if all(one.get(key) == settings[key] for key in settings)), {})
        for key in {"signatures", "intervals"} & new.keys():  # of the metrics measured earlier, too
            new[key] = {**(before.get(key) or {}), **new[key]}
        others = [one for one in entries if one is not before]
        scores[test_set] = {**before, **new, **({"others": others} if others else {})}
        replace_text(file, json.dumps(scores, ensure_ascii=False, indent=1) + "\n")
    return damaged


def entries_of(entry: Any) -> list[dict[str, Any]]:
    """The entry of a test set, without those in its list `others`, which follow it."""
    if not isinstance(entry, dict):
        return []
    others = entry.get("others")
    own = {key: value for key, value in entry.items() if key != "others"}
    return [own, *(one for one in (others if isinstance(others, list) else ()) if isinstance(one, dict))]


def read_scores(file: Path) -> dict[str, Any]:
    """The figures by test set; empty if the file is missing or damaged."""
    try:
        scores = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return scores if isinstance(scores, dict) else {}


def is_damaged(file: Path, scores: dict[str, Any]) -> bool:
    """Whether nothing was read from a file that is not empty. scores: what `read_scores` has read"""
    return not scores and file.is_file() and bool(file.read_bytes().strip(b" \r\n{}[]"))
