"""Copies a folder from the disk of one machine to the disks of others, which share no folder with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from transformer_mt.errors import from_os_error
from transformer_mt.files.replace import replaced_folder
from transformer_mt.runtime import distributed
from transformer_mt.runtime.distributed import World

BLOCK = 1 << 24  # bytes that are sent at once


class _GiverFailedError(Exception):
    """The giver could not read a file."""


def copy_folder(world: World, folder: Path, giver: int, takers: Sequence[int], doing: str) -> None:
    """Replace `folder` on the disks of `takers` (ranks) by the folder of that name on the disk of rank `giver`.

    folder: its path on this machine, which may have another path there. doing: what the others wait for
    Every process must call it. Raises TmtError in all of them if a file cannot be read or written; the folder then
    stays as it was there. Files whose names begin with a dot at the top (locks, temporary files) are not copied.
    """
    group = dist.new_group([giver, *takers], timeout=distributed.TIMEOUT, backend="gloo")

    def work() -> None:
        try:
            if world.rank == giver:
                _send(folder, giver, group)
            elif world.rank in takers:
                _receive(folder, giver, group)
        except _GiverFailedError:
            pass  # the giver says why
        except OSError as error:
            raise from_os_error(error, f"copying {folder.name} between machines", error.filename or folder) from None

    try:
        world.everywhere(work, doing)
    finally:
        if world.rank in (giver, *takers):
            dist.destroy_process_group(group)


def _send(folder: Path, giver: int, group: Any) -> None:
    files, listed, failed = list[Path](), list[tuple[str, int]](), None
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        files = [path for path in files if not path.relative_to(folder).parts[0].startswith(".")]
        listed = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    except OSError as error:  # the others are told at the end
        files, listed, failed = [], [], error
    dist.broadcast_object_list([listed], src=giver, group=group)
    for path, (_, size) in zip(files, listed, strict=True):
        blocks = _blocks(path)
        for length in _lengths(size):
            block = bytearray(length)  # after a failure the others still get blocks, so that nobody waits for them
            try:
                if failed is None:
                    block = bytearray(next(blocks, b""))
                    if len(block) != length:
                        raise OSError(None, "the file has changed", str(path))
            except OSError as error:
                failed, block = error, bytearray(length)
            dist.broadcast(torch.frombuffer(block, dtype=torch.uint8), src=giver, group=group)
    dist.broadcast_object_list([failed is None], src=giver, group=group)
    if failed is not None:
        raise failed


def _receive(folder: Path, giver: int, group: Any) -> None:
    listed: list[Any] = [None]
    dist.broadcast_object_list(listed, src=giver, group=group)
    blocks = _received(listed[0], giver, group)
    try:
        with replaced_folder(folder) as aside:
            for name, _ in listed[0]:
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                (aside / name).touch()
            for name, block in blocks:
                with (aside / name).open("ab") as file:
                    file.write(block)
    except OSError:
        with suppress(_GiverFailedError):
            for _ in blocks:  # the giver and the other takers go on
                pass
        raise


def _received(listed: list[tuple[str, int]], giver: int, group: Any) -> Iterator[tuple[str, bytes]]:
    """The blocks that the giver sends, each with the name of its file."""
    for name, size in listed:
        for length in _lengths(size):
            block = torch.empty(length, dtype=torch.uint8)
            dist.broadcast(block, src=giver, group=group)
            yield name, block.numpy().tobytes()
    is_complete: list[Any] = [None]
    dist.broadcast_object_list(is_complete, src=giver, group=group)
    if not is_complete[0]:
        raise _GiverFailedError


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _lengths(size: int) -> list[int]:
    """The sizes of the blocks of a file."""
    whole, rest = divmod(size, BLOCK)
    return [BLOCK] * whole + [rest] * bool(rest)
