"""Damaged files of every kind: a message, never a traceback, a hang or a growing process. `scripts/fuzz` tries more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.targets import TARGETS, Target, made, survive

pytestmark = pytest.mark.slow
EXAMPLES = {"config": 100, "documents": 20, "sentences": 20}  # of the others DEFAULT
DEFAULT = 60
FOUND = Path(__file__).parent / "found"


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_no_damage_shows_a_traceback(target: Target, tmp_path: Path) -> None:
    folder = made(target, tmp_path / "files")
    target.use(folder)  # the valid files are fine, so that each message is about the damage

    @settings(
        max_examples=EXAMPLES.get(target.name, DEFAULT),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=target.cases(folder))
    def attack(case: tuple[str, bytes]) -> None:
        survive(target, folder, case)

    attack()


def test_what_scripts_fuzz_has_found(tmp_path: Path) -> None:
    """Files in found/TARGET/NUMBER/: each showed a traceback once."""
    by_name = {target.name: target for target in TARGETS}
    for name in sorted({file.relative_to(FOUND).parts[0] for file in FOUND.rglob("*") if file.is_file()}):
        folder = made(by_name[name], tmp_path / name)
        for file in sorted(one for one in (FOUND / name).rglob("*") if one.is_file()):
            survive(by_name[name], folder, (Path(*file.relative_to(FOUND).parts[2:]).as_posix(), file.read_bytes()))
