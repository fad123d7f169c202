"""Two invented systems with their references, and sacreBLEU's own command line."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

TEXT = "ein der alte kleine rote Hund Mann Ball Straßencafé U-Bahn läuft springt über am neben grünen Fluss schnell"
WORDS = [*TEXT.split(), "heute", "3,5", "Uhr", "“morgen”", "&", "<b>", "müde"]


class Systems(NamedTuple):
    """Translations by a good system and by a bad one, and the references, line by line."""

    good: list[str]
    bad: list[str]
    references: list[str]


def _damaged(sentence: str, share: float, chance: random.Random) -> str:
    words = sentence.split()
    for place in range(len(words)):
        if chance.random() < share:
            words[place] = chance.choice(WORDS)
        elif chance.random() < share / 4:
            other = chance.randrange(len(words))
            words[place], words[other] = words[other], words[place]
    return " ".join(words[: max(1, len(words) - (chance.random() < share))])


@pytest.fixture(scope="session")
def systems() -> Systems:
    chance = random.Random(5)
    references = [" ".join(chance.choices(WORDS, k=chance.randint(2, 28))).capitalize() + "." for _ in range(80)]
    good = [_damaged(line, 0.15, chance) for line in references]
    bad = [_damaged(line, 0.4, chance) for line in references]
    good[7], bad[8] = "", "  "  # a system can write nothing
    return Systems(good, bad, references)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes lines into a file and returns its path."""

    def write(name: str, lines: list[str]) -> Path:
        file = tmp_path / name
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return file

    return write


@pytest.fixture(scope="session")
def sacrebleu() -> Callable[..., Any]:
    """A function that runs sacreBLEU's command line and returns its JSON, or its text if it prints no JSON."""

    def run(*arguments: object) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-w", "8"],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout) if done.stdout.lstrip().startswith(("[", "{")) else done.stdout

    return run
