"""The progress of `prepare`: pairs, pairs per second and, where it can be known, the time left."""

from __future__ import annotations

import re
import time

import pytest

from transformer_mt.reporting import bars
from transformer_mt.workflows import prepare


def test_the_bar_shows_rate_and_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bars, "is_watched", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    with prepare._progress() as progress:
        for share in (0.1, 0.25):
            time.sleep(0.15)  # the bar is drawn every 0.1 s
            progress("reading train", round(400_000 * share), share)
        for pairs in (5_000, 10_000):
            time.sleep(0.15)
            progress("reading validation", pairs, None)
    drawn = capsys.readouterr().err.split("\r")
    reading = [text for text in drawn if "reading train" in text and "100000" in text][-1]
    assert re.search(r"25%.* 100000/400000 \[\d\d:\d\d<\d\d:\d\d, +[\d.]+ pairs/s\]", reading)
    unknown = [text for text in drawn if "reading validation" in text and "10000" in text][-1]
    assert re.search(r" 10000 pairs \[\d\d:\d\d, +[\d.]+ pairs/s\]", unknown)
    assert "%" not in unknown
