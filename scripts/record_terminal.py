#!/usr/bin/env python3
"""Record real commands in a terminal as one animated SVG: no JavaScript, no fonts, no other files.

    python scripts/record_terminal.py docs/pictures/terminal.svg

trains configs/quickstart.yaml in an empty folder and translates with it. The commands run in a bash of their own at a
terminal of 80 columns; what they print is recorded with its time. Long waits are cut: a command that runs for more
than MOST_SECONDS is played faster, and the picture's title says how much. A viewer without animation shows the last
screen. `--keep FILE` writes the recording as JSON, and `--from FILE` draws that again. Needs pexpect (Linux, macOS).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
import unicodedata
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    "tmt train --config configs/quickstart.yaml",
    'tmt translate "우리는 내일 제 친구와 함께 이 재미있는 신문을 읽을 거예요."',
)
COLUMNS, ROWS = 80, 22
PROMPT = "$ "
MOST_SECONDS = 14.0  # that a command may take in the animation
FRAME_SECONDS, LAST_SECONDS = 0.22, 5.0  # between two pictures at least; how long the last one stays
TYPING_SECONDS = 0.07  # for each letter of a command
BYTES = 150_000  # the largest picture that is written
CELL, LINE, PAD, BAR = 8.4, 19, 14, 30  # pixels: a column, a row, the margin, the title bar
PAPER, EDGE, INK, QUIET = "#0D1117", "#30363D", "#E6EDF3", "#8B949E"
COLORS = ("#6E7681", "#FF7B72", "#3FB950", "#E3B341", "#79C0FF", "#D2A8FF", "#56D4DD", "#E6EDF3")
EIGHTHS = " ▏▎▍▌▋▊▉█"
Style = tuple[int, bool, bool]  # number of the colour (-1: none), bold, dim
PLAIN: Style = (-1, False, False)
Line = tuple[tuple[str, Style], ...]  # one character a column; "" is the second column of a wide character


@dataclass
class Recording:
    """What a terminal received: seconds since the start, and text. starts: when each command was entered."""

    events: list[tuple[float, str]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)


class Screen:
    """The part of a terminal that these programs use: lines, \\r, \\b, colours, erasing and moving."""

    CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[=>]")

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.columns, self.rows = columns, rows
        self.cells: list[list[tuple[str, Style]]] = [[]]
        self.row, self.column, self.style = 0, 0, PLAIN

    def feed(self, text: str) -> None:
        """Show text; a code that ends in the next text must not be cut."""
        place = 0
        while place < len(text):
            code = self.CODE.match(text, place)
            if code:
                if code[2]:
                    self._obey(code[1], code[2])
                place = code.end()
                continue
            self._put(text[place])
            place += 1

    def picture(self) -> tuple[Line, ...]:
        """The lines that are seen."""
        lines = [list(line) for line in self.cells]
        for line in lines:
            while line and line[-1][0] in ("", " ") and (len(line) < 2 or line[-1][0] == " "):
                line.pop()
        return tuple(tuple(line) for line in lines)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._line_feed()
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character >= " ":
            wide = unicodedata.east_asian_width(character) in "WF"
            if self.column + 1 + wide > self.columns:
                self.column = 0
                self._line_feed()
            line = self.cells[self.row]
            line.extend([(" ", PLAIN)] * (self.column + 1 + wide - len(line)))
            line[self.column] = (character, self.style)
            if wide:
                line[self.column + 1] = ("", self.style)
            self.column += 1 + wide

    def _line_feed(self) -> None:
        self.row += 1
        if self.row == len(self.cells):
            self.cells.append([])
        if self.row == self.rows:
            self.cells.pop(0)
            self.row -= 1

    def _obey(self, arguments: str, letter: str) -> None:
        number = int(arguments) if arguments.isdigit() else 0
        line = self.cells[self.row]
        if letter == "K" and number == 0:
            del line[self.column :]
        elif letter == "K":
            line[:] = [] if number == 2 else [(" ", PLAIN)] * self.column + line[self.column :]
        elif letter == "A":
            self.row = max(0, self.row - max(1, number))
        elif letter == "C":
            self.column = min(self.columns - 1, self.column + max(1, number))
        elif letter == "D":
            self.column = max(0, self.column - max(1, number))
        elif letter == "m":
            for code in map(int, arguments.split(";") if arguments else ["0"]):
                self._colour(code)

    def _colour(self, code: int) -> None:
        color, bold, dim = self.style
        if code in (1, 2, 22):
            self.style = (color, code == 1, code == 2)
        elif code == 0:
            self.style = PLAIN
        elif code == 39 or 30 <= code <= 37 or 90 <= code <= 97:
            self.style = (-1 if code == 39 else code % 10, bold, dim)


def record(commands: tuple[str, ...], folder: Path, seconds: float = 3600) -> Recording:
    """Run commands at a terminal in `folder`, and record what it shows. Exits if one of them fails."""
    import pexpect

    program = folder / ".bin" / "tmt"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m transformer_mt.cli.main "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ, "PS1": PROMPT, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null",
        "PROMPT_COMMAND": f"echo $? >> '{folder}/.status'",
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    shell = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], cwd=folder, env=environment, dimensions=(ROWS, COLUMNS), encoding="utf-8"
    )
    recording, started, text = Recording(), time.monotonic(), ""

    def wait(for_prompt: bool) -> None:
        nonlocal text
        until = time.monotonic() + (seconds if for_prompt else 0.3)
        while time.monotonic() < until:
            with suppress(pexpect.TIMEOUT):
                text += shell.read_nonblocking(4096, timeout=0.2)
            whole, text = _whole_codes(text)
            if whole:
                recording.events.append((time.monotonic() - started, whole))
            if for_prompt and "".join(part for _, part in recording.events[-3:]).endswith(PROMPT):
                return

    wait(for_prompt=True)
    for command in commands:
        for letter in command:
            shell.send(letter)
            time.sleep(TYPING_SECONDS)
        wait(for_prompt=False)
        recording.starts.append(time.monotonic() - started)
        shell.send("\r")
        time.sleep(0.5)
        wait(for_prompt=True)
    status = (folder / ".status").read_text(encoding="utf-8").split()[1:]
    if status != ["0"] * len(commands):
        sys.exit(f"the commands ended with {', '.join(status)}, and the terminal with:\n{recording.events[-1][1]}")
    shell.sendline("exit")
    shell.close()
    return recording


def _whole_codes(text: str) -> tuple[str, str]:
    """The text up to a code whose end has not come yet, and that rest."""
    cut = re.search(r"\x1b(\[[?\d;]*|\][^\x07]*)?$", text)
    return (text[: cut.start()], text[cut.start() :]) if cut else (text, "")


def speed_up(recording: Recording) -> tuple[list[tuple[float, str]], float]:
    """The events at the times they are played at, and how much faster the slowest command is played than it ran."""
    ends = [*recording.starts[1:], recording.events[-1][0]]
    factors = [max(1.0, (end - start) / MOST_SECONDS) for start, end in zip(recording.starts, ends, strict=True)]
    played, before, now = [], 0.0, 0.0
    for at, text in recording.events:
        command = sum(start <= at for start in recording.starts) - 1
        # the next command is typed at its own speed, after this one's output has ended
        is_typed = command < 0 or (command + 1 < len(ends) and at > ends[command] - 6 and len(text) < 40)
        now += min(0.8, (at - before) / (1.0 if is_typed else factors[command]))
        played.append((now, text))
        before = at
    return played, max(factors)


def frames_of(events: list[tuple[float, str]]) -> list[tuple[float, tuple[Line, ...]]]:
    """Screens and when they appear, no two alike in a row."""
    screen, frames = Screen(), []
    for number, (at, text) in enumerate(events):
        screen.feed(text)
        is_last = number + 1 == len(events)
        if frames and at - frames[-1][0] < FRAME_SECONDS and not is_last:
            continue
        picture = screen.picture()
        if not frames or picture != frames[-1][1]:
            frames.append((at, picture))
    return frames


def svg_of(frames: list[tuple[float, tuple[Line, ...]]], title: str) -> str:
    """The film: all screens side by side, the last one first, and a window that shows one of them at a time."""
    width, height = COLUMNS * CELL + 2 * PAD, ROWS * LINE + 2 * PAD + BAR
    names: dict[Line, str] = {}
    strips = []
    for number, (_, picture) in enumerate(frames):
        uses = []
        for row, line in enumerate(picture):
            if line:
                name = names.setdefault(line, f"l{len(names)}")
                uses.append(f'<use href="#{name}" y="{row * LINE}"/>')
        x = (number + 1) % len(frames) * width
        strips.append(f'<g transform="translate({x:g} 0)">{"".join(uses)}</g>')
    total = frames[-1][0] + LAST_SECONDS
    steps = [
        f"{100 * at / total:.2f}%{{transform:translateX({-((number + 1) % len(frames)) * width:g}px)}}"
        for number, (at, _) in enumerate(frames)
    ]
    steps[0] = "0%" + steps[0][steps[0].index("{") :]
    lines = "".join(f'<g id="{name}">{_line(line)}</g>' for line, name in names.items())
    dots = "".join(f'<circle cx="{18 + 18 * n}" cy="15" r="5.5" fill="{EDGE}"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" role="img"><title>{escape(title)}</title>\n'
        f"<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',"
        f"'Noto Sans Mono CJK KR','Malgun Gothic',monospace;fill:{INK};white-space:pre}}\n"
        + "".join(f".c{n}{{fill:{color}}}" for n, color in enumerate(COLORS))
        + f".b{{font-weight:bold}}.d,.title{{fill:{QUIET}}}.title{{font-family:ui-sans-serif,system-ui,sans-serif;"
        f"font-size:13px}}\n.film{{animation:film {total:.2f}s step-end infinite}}"
        f"@media(prefers-reduced-motion:reduce){{.film{{animation:none}}}}\n"
        f"@keyframes film{{{''.join(steps)}}}</style>\n"
        f"<defs>{lines}</defs>\n"
        f'<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="9" fill="{PAPER}" stroke="{EDGE}"/>'
        f'{dots}<text class="title" x="{width / 2:g}" y="20" text-anchor="middle">{escape(title)}</text>\n'
        f'<svg x="0" y="{BAR}" width="{width:g}" height="{height - BAR:g}" overflow="hidden">'
        f'<g transform="translate({PAD} {PAD})"><g class="film">{"".join(strips)}</g></g></svg>\n</svg>\n'
    )


def _line(line: Line) -> str:
    """A line as texts of one style and one width, which keep their columns in every font, and bars as boxes."""
    parts, column = [], 0
    while column < len(line):
        character, style = line[column]
        if character in EIGHTHS:
            end = column + 1
            while character != " " and line[end - 1][0] == "█" and end < len(line) and line[end][0] in EIGHTHS[1:]:
                end += 1
            if character != " ":
                wide = (end - column - 1 + EIGHTHS.index(line[end - 1][0]) / 8) * CELL
                parts.append(
                    f'<rect x="{column * CELL:.4g}" y="2" width="{wide:.4g}" height="14"'
                    f' fill="{COLORS[style[0]] if style[0] >= 0 else QUIET}"/>'
                )
            column = end
            continue
        text, end = _run(line, column)
        classes = [f"c{style[0]}"] * (style[0] >= 0) + ["b"] * style[1] + ["d"] * style[2]
        named = f' class="{" ".join(classes)}"' if classes else ""
        long = (end - column) * CELL
        parts.append(
            f'<text x="{column * CELL:.4g}" y="14" textLength="{long:.4g}" lengthAdjust="spacingAndGlyphs"{named}>'
            f"{escape(text)}</text>"
        )
        column = end
    return "".join(parts)


def _run(line: Line, start: int) -> tuple[str, int]:
    """The text from a column on that has one style and one width, up to two spaces; and the column after it."""
    style, is_wide = line[start][1], start + 1 < len(line) and line[start + 1][0] == ""
    text, column = "", start
    while column < len(line) and line[column][1] == style and line[column][0] not in EIGHTHS[1:]:
        wide = column + 1 < len(line) and line[column + 1][0] == ""
        if line[column][0] == " ":
            if column + 1 == len(line) or line[column + 1][0] == " " or is_wide:
                break
        elif wide != is_wide:
            break
        text += line[column][0]
        column += 1 + wide
    trimmed = text.rstrip(" ")
    return trimmed, column - (len(text) - len(trimmed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--from", dest="kept", type=Path, help="draw this recording again")
    parser.add_argument("--keep", type=Path, help="write the recording here, as JSON")
    options = parser.parse_args()
    if options.kept:
        recording = Recording(**json.loads(options.kept.read_text(encoding="utf-8")))
    else:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "configs", Path(folder) / "configs")
            recording = record(COMMANDS, Path(folder))
    if options.keep:
        options.keep.write_text(json.dumps(vars(recording), ensure_ascii=False), encoding="utf-8")
    events, factor = speed_up(recording)
    faster = f" (training {factor:.0f} times as fast)" if factor >= 1.5 else ""
    picture = svg_of(frames_of(events), f"the quickstart: train, then translate{faster}")
    if len(picture.encode()) > BYTES:
        sys.exit(f"{len(picture.encode()):,} bytes are more than {BYTES:,}: raise FRAME_SECONDS")
    options.output.write_text(picture, encoding="utf-8", newline="\n")
    print(f"{options.output}: {len(picture.encode()):,} bytes, {events[-1][0] + LAST_SECONDS:.0f} seconds")


if __name__ == "__main__":
    main()
