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


def test_without_a_terminal_a_long_preparation_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(bars, "is_watched", lambda: False)

    def lines(*steps: tuple[float, str, int, float | None]) -> list[str]:
        """steps: the second of each, and what is done then"""
        with prepare._progress() as progress:
            for second, doing, pairs, share in steps:
                now[0] = 1000 + second
                progress(doing, pairs, share)
        now[0] = 1000
        return capsys.readouterr().err.splitlines()

    reading = [(second, "reading train", second * 15_000, second / 330) for second in range(71)]
    assert lines(*reading[:30], (29, "learning tokenizers", 435_000, None)) == []
    later = [
        (80, "learning tokenizers", 1_050_000, None),
        (90, "reading train", 0, None),
        (95, "reading train", 9, None),
    ]
    assert lines(*reading, *later) == [
        "reading train: 450,000 pairs, 9%, 15,000 a second",
        "reading train: 900,000 pairs, 18%, 15,000 a second",
        "learning tokenizers: 1,050,000 pairs",
        "reading train",
    ]
    again = [(second, "reading train", (second - 20) * 1_000, None) for second in (20, 30, 40)]
    assert lines(*reading[:20], *again) == ["reading train: 10,000 pairs, 1,000 a second"]
