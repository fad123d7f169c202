"""The recorder of the terminal: what it shows is what a terminal would show, and the picture is small and complete."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recorder() -> Any:
    specification = importlib.util.spec_from_file_location("record_terminal", ROOT / "scripts" / "record_terminal.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


def rows(screen: Any) -> list[str]:
    return ["".join(character for character, _ in line) for line in screen.picture()]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("12345\rab", ["ab345"]),
        ("12345\r\x1b[Kab", ["ab"]),
        ("ab\b\bc", ["cb"]),
        ("한국\r\x1b[2Cx", ["한x"]),
        ("0123456789ab", ["0123456789", "ab"]),
        ("1\r\n2\r\n3\r\n4", ["2", "3", "4"]),
        ("1\r\n2\x1b[A!", ["1!", "2"]),
        ("\x1b[?2004h\x1b]0;title\x07a\x1b[1;32mb\x1b[0mc", ["abc"]),
    ],
)
def test_a_screen_shows_what_a_terminal_shows(recorder: Any, text: str, shown: list[str]) -> None:
    screen = recorder.Screen(columns=10, rows=3)
    screen.feed(text)
    assert rows(screen) == shown


def test_a_recording_becomes_a_film_that_begins_with_its_last_screen(recorder: Any) -> None:
    events = [(0.0, "$ "), (1.0, "run <a> & 한국어\r\n"), (2.0, "\x1b[32m███▌ \x1b[0m 50%"), (3.0, "\r\x1b[Kdone\r\n")]
    frames = recorder.frames_of(events)
    assert [at for at, _ in frames] == [0.0, 1.0, 2.0, 3.0]
    picture = recorder.svg_of(frames, "a < b")
    root = ElementTree.fromstring(picture)
    lines = {group.get("id"): "".join(group.itertext()) for group in root.find(f"{SVG}defs")}  # type: ignore[union-attr]
    film = next(group for group in root.iter(f"{SVG}g") if group.get("class") == "film")
    first = [lines[use.get("href", "")[1:]] for use in film[-1]]
    assert film[-1].get("transform") == "translate(0 0)", "a viewer without animation shows the last screen"
    assert first == ["$ run <a> &한국어", "done"]
    assert len(lines) == 4, "a line that several screens show is written once"
    assert "prefers-reduced-motion" in picture


def test_real_commands_are_recorded(recorder: Any, tmp_path: Path) -> None:
    pytest.importorskip("pexpect")
    recording = recorder.record(("printf '한국어\\n'", "tmt --version"), tmp_path, seconds=60)
    events, factor = recorder.speed_up(recording)
    screen = recorder.Screen()
    screen.feed("".join(text for _, text in events))
    assert rows(screen)[:3] == ["$ printf '한국어\\n'", "한국어", "$ tmt --version"]
    assert rows(screen)[3].startswith("tmt ")
    assert factor == 1.0
    assert len(recording.starts) == 2


def test_a_command_that_fails_ends_the_recording(recorder: Any, tmp_path: Path) -> None:
    pytest.importorskip("pexpect")
    with pytest.raises(SystemExit, match="ended with 0, 2"):
        recorder.record(("true", "tmt train --config none.yaml"), tmp_path, seconds=60)


def test_long_waits_are_cut(recorder: Any) -> None:
    recording = recorder.Recording([(0.0, "$ "), *((1.0 + 10 * n, f"{n}\r\n") for n in range(1, 30))], [1.0])
    events, factor = recorder.speed_up(recording)
    assert factor == pytest.approx(290 / recorder.MOST_SECONDS)
    assert events[-1][0] < recorder.MOST_SECONDS + 2
    assert [text for _, text in events] == [text for _, text in recording.events]


def test_the_picture_of_the_readme_is_whole_and_small() -> None:
    file = ROOT / "docs" / "pictures" / "terminal.svg"
    root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    assert file.stat().st_size < 150_000
    assert not list(root.iter(f"{SVG}script"))
    assert not list(root.iter(f"{SVG}image"))
    assert "tmt train --config configs/quickstart.yaml" in " ".join(root.itertext())
