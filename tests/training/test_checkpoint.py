"""Checkpoints: writing and reading, damaged files, removing old ones, averaging."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
import torch
from torch import Tensor

from transformer_mt.errors import TmtError
from transformer_mt.files import replace
from transformer_mt.training.checkpoint import Checkpoint, Checkpoints, DamagedError
from transformer_mt.training.state import TrainState


def a_checkpoint(step: int, average: bool = False) -> Checkpoint:
    torch.manual_seed(step)
    weights = {"a.weight": torch.randn(3, 4), "b": torch.randn(5)}
    moments = {
        "exp_avg/a.weight": torch.randn(3, 4),
        "step/b": torch.tensor(float(step)),
        "random.0/cpu": torch.arange(9),
    }
    state = TrainState(step=step, epoch=3, best=1.5, ranking=[(1.5, 10)], stopped="")
    return Checkpoint(state, weights, moments, {"a.weight": torch.ones(3, 4), "b": torch.ones(5)} if average else None)


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("average", [False, True])
def test_a_checkpoint_reads_what_was_written(tmp_path: Path, average: bool):
    checkpoints, written = Checkpoints(tmp_path / "checkpoints"), a_checkpoint(20, average)
    place = checkpoints.write(written)
    read = checkpoints.read(20)
    assert read.state == written.state
    assert same(read.weights, written.weights)
    assert same(read.moments, written.moments)
    assert (read.average is None) == (not average)
    assert place.name == "step-0000020"
    assert not [path for path in place.parent.iterdir() if path.name.startswith(".")]


def test_checksums_are_those_of_sha256sum(tmp_path: Path):
    import hashlib

    place = Checkpoints(tmp_path).write(a_checkpoint(20))
    lines = (place / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert {line.split("  ")[1] for line in lines} == {"model.safetensors", "optimizer.safetensors", "state.json"}
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((place / name).read_bytes()).hexdigest() == digest


def test_all_files_have_the_same_permissions(tmp_path: Path):
    place = Checkpoints(tmp_path).write(a_checkpoint(20))
    assert len({file.stat().st_mode for file in place.iterdir()}) == 1


def test_infinity_survives_json(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    place = checkpoints.write(Checkpoint(TrainState(step=1), {"a": torch.ones(1)}, {"m": torch.ones(1)}))
    text = (place / "state.json").read_text(encoding="utf-8")
    assert "Infinity" not in text
    assert json.loads(text)["best"] is None
    assert checkpoints.read(1).state == TrainState(step=1)


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def shorten(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


@pytest.mark.parametrize("damage", [flip_a_bit, shorten, Path.unlink])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS"])
def test_a_damaged_checkpoint_is_reported_and_the_one_before_it_used(tmp_path: Path, damage, name: str):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        checkpoints.write(a_checkpoint(step))
    damage(tmp_path / "step-0000020" / name)
    newest, problems = checkpoints.newest()
    assert newest is not None
    assert newest.state.step == 10
    assert len(problems) == 1
    assert "step-0000020" in problems[0]
    assert checkpoints.undamaged() == ([10], problems)
    with pytest.raises(DamagedError):
        checkpoints.read(20)


def test_checksums_must_cover_every_file(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    sums = checkpoints.write(a_checkpoint(10)) / "SHA256SUMS"
    sums.write_text("".join(sums.read_text(encoding="utf-8").splitlines(keepends=True)[:1]), encoding="utf-8")
    assert checkpoints.newest()[0] is None


def test_other_folders_are_not_checkpoints(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(a_checkpoint(10))
    for name in (".step-0000020.999999999.new", "step-best", "step-0000030.backup"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-0000040").write_text("", encoding="utf-8")
    assert checkpoints.steps() == [10]
    checkpoints.keep([10])
    assert {path.name for path in tmp_path.iterdir()} == {
        "step-0000010", "step-best", "step-0000030.backup", "step-0000040",
    }  # fmt: skip


def test_only_the_given_steps_are_kept(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20, 30, 40):
        checkpoints.write(a_checkpoint(step))
    checkpoints.keep([40, 20, 999])
    assert checkpoints.steps() == [20, 40]


def test_mean_weights_are_the_mean(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    written = [a_checkpoint(step) for step in (10, 20, 30)]
    for one in written:
        checkpoints.write(one)
    mean = checkpoints.mean_weights([10, 20, 30])
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, torch.stack([one.weights[name] for one in written]).mean(dim=0))
    assert same(checkpoints.mean_weights([20]), dict(written[1].weights))


def test_mean_weights_use_moving_averages_if_they_exist(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(a_checkpoint(10, average=True))
    assert torch.equal(checkpoints.mean_weights([10])["b"], torch.ones(5))


def test_a_damaged_checkpoint_cannot_be_averaged(tmp_path: Path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(a_checkpoint(10))
    flip_a_bit(tmp_path / "step-0000010" / "model.safetensors")
    with pytest.raises(TmtError, match="damaged"):
        checkpoints.mean_weights([10])


@pytest.mark.parametrize("call", range(6))
def test_a_full_disk_leaves_the_last_checkpoint_unchanged(tmp_path: Path, monkeypatch, call: int):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(a_checkpoint(10))
    calls = iter(range(100))

    def full(path: Path) -> None:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(replace, "_sync", full)
    with pytest.raises(TmtError, match="the disk is full while writing the checkpoint of step 20") as failure:
        checkpoints.write(a_checkpoint(20))
    assert failure.value.exit_code == 2
    if call < 5:  # the last call is after the rename: the new checkpoint exists too
        assert checkpoints.steps() == [10]
        assert f"The last good checkpoint is {tmp_path / 'step-0000010'}" in failure.value.remedy
    assert checkpoints.read(10).state.step == 10
    assert not list(tmp_path.glob(".*"))


def test_checkpoints_work_without_fsync_of_folders(tmp_path: Path, monkeypatch):
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    Checkpoints(tmp_path).write(a_checkpoint(10))
    assert Checkpoints(tmp_path).read(10).state.step == 10


def test_states_of_older_versions_are_not_misread():
    values = TrainState().to_json()
    del values["ranking"]
    with pytest.raises(ValueError, match="ranking"):
        TrainState.from_json(values)
