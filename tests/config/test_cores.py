"""The default number of threads: the cores that may be used, and no more than the CPU limit of a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer_mt.config import cores as module
from transformer_mt.config.cores import cores, cpu_quota

VERSION_1 = "4:memory:/pod/a\n3:cpuset:/\n2:cpu,cpuacct:/pod/a\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        (None, {"cpu.max": "300000 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "300000 100000\n", "c/cpu.max": "1 1\n"}, 3),
        ("0::/../x\n", {"cpu.max": "damaged"}, None),
        ("0::\n0::a\nx\n", {"cpu.max": "200000 100000\n", "a/cpu.max": "100000 100000\n"}, 1),
        (VERSION_1, {"cpu/pod/a/cpu.cfs_quota_us": "250000\n", "cpu/pod/a/cpu.cfs_period_us": "100000\n"}, 3),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ],
)
def test_the_limit_of_a_container_is_read(
    groups: str | None, files: dict[str, str], quota: int | None, tmp_path: Path
) -> None:
    """groups: /proc/self/cgroup. files: below /sys/fs/cgroup"""
    of_system = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in (of_system | ({} if groups is None else {"proc/self/cgroup": groups})).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpu_quota(tmp_path) == quota


def test_a_limit_counts_where_no_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cpu_quota", lambda: None)
    free = cores()
    for quota, expected in ((1, 1), (free + 5, free)):
        monkeypatch.setattr(module, "cpu_quota", lambda quota=quota: quota)
        assert (cores(), cores(7)) == (expected, 7)
