"""scores.json: what was measured of a model, test set by test set, kept beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformer_mt.files.replace import replace_text


def store_scores(file: Path, test_set: str, settings: dict[str, Any], measured: dict[str, Any]) -> None:
    """Write what was measured on a test set over what stood there; other test sets stay.

    settings: what was translated, and how. Where they are the same as before, an earlier figure that was
    not measured this time (None) stays too. A damaged file is begun anew.
    """
    scores = read_scores(file)
    before = scores.get(test_set)
    new = {**{key: value for key, value in measured.items() if value is not None}, **settings}
    if isinstance(before, dict) and all(before.get(key) == value for key, value in settings.items()):
        new = {**before, **new}
        if "signatures" in new:
            new["signatures"] = {**(before.get("signatures") or {}), **new["signatures"]}
    scores[test_set] = new
    replace_text(file, json.dumps(scores, ensure_ascii=False, indent=1) + "\n")


def read_scores(file: Path) -> dict[str, Any]:
    """Figures by test set; empty where there are none, or none that can be read."""
    try:
        scores = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return scores if isinstance(scores, dict) else {}
