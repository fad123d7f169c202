"""Checks of gpu_check.py: a GPU has the losses of a CPU, and a killed training continues as if it had never stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from gpu_run import Row, Run
from synthetic import Setting, trainer_of, update
from torch import Tensor

from transformer_mt.runtime.device import random_states, restore_random_states


def parity(
    run: Run, precision: str, allowed: float, optimizer: str = "adam", packing: bool = False, compiled: bool = False
) -> list[Row]:
    """The same updates from the same weights, on the CPU in float32 and on the device, without dropout."""
    updates, setting = 20, run.setting(size="small", vocabulary=8000, batch_tokens=2048, updates=20)
    setting = replace(setting, optimizer=optimizer, dropout=0.0, tf32=False, batching={"packing": packing})
    expected = losses(replace(setting, device="cpu", precision="float32"), updates)
    found = losses(replace(setting, precision=precision, compile=compiled), updates)
    difference = largest_difference(found, expected)
    return [
        {
            "optimizer": optimizer,
            "on the GPU": f"{precision}{', streams' if packing else ''}{', compiled' if compiled else ''}",
            "first loss": expected[0],
            "last": expected[-1],
            "last on the GPU": found[-1],
            "largest difference": difference,
            "allowed": allowed,
            "ok": difference <= allowed,
        }
    ]


def losses(setting: Setting, updates: int) -> list[float]:
    """The mean loss of a token in each update."""
    trainer = trainer_of(setting)
    for _ in range(updates):
        update(trainer)
    plan, lengths = trainer.batches.plan(1).batches, trainer.batches.store.target.lengths
    tokens = [int(lengths[plan[number]].sum()) for number in range(updates)]
    return [nll / count for nll, count in zip(trainer.losses.table().nll, tokens, strict=True)]


def largest_difference(found: list[float], expected: list[float]) -> float:
    """Relative; infinite if one is not a number."""
    gaps = [abs(one - other) / abs(other) for one, other in zip(found, expected, strict=True)]
    return max(gaps) if all(np.isfinite(gaps)) else float("inf")


KEPT, KILLED, LAST = 6, 9, 12  # updates: of the checkpoint, of the kill at the earliest, and in all


def resume(run: Run, optimizer: str) -> list[Row]:
    """Train without interruption; then kill a training with SIGKILL, and continue it in a new process."""
    context = multiprocessing.get_context(run.processes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in ("whole", "killed", "continued"):
            process = context.Process(target=write_losses, args=(run, optimizer, folder, kind))
            process.start()
            while kind == "killed" and process.is_alive() and len(read_losses(folder, kind)) < KILLED:
                time.sleep(0.01)
            if kind == "killed":
                process.kill()
            process.join()
            if process.exitcode != (-signal.SIGKILL if kind == "killed" else 0):
                raise RuntimeError(f"the {kind} training ended with exit code {process.exitcode}")
        whole, killed, continued = (read_losses(folder, kind) for kind in ("whole", "killed", "continued"))
    rows = []
    for check, found, expected in (
        (f"updates 1 to {KEPT} in two processes", killed[:KEPT], whole[:KEPT]),
        (f"updates {KEPT + 1} to {LAST}, continued and not interrupted", continued, whole[KEPT:]),
    ):
        difference = largest_difference(found, expected)
        row: Row = {"optimizer": optimizer, "check": check, "largest difference": difference}
        rows.append(row | {"equal to the bit": str(found == expected), "ok": difference < 1e-4})
    return rows


def write_losses(run: Run, optimizer: str, folder: Path, kind: str) -> None:
    """Train and write each loss to a file. The training to kill keeps a checkpoint and does not end."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True, warn_only=True)
    trainer = trainer_of(run.setting(size="small", vocabulary=8000, batch_tokens=2048, optimizer=optimizer))
    device, file, checkpoint, first = trainer.machine.device, folder / kind, folder / "checkpoint.npz", 0
    if kind == "continued":
        kept = read_tensors(checkpoint)
        trainer.model.load_state_dict(kept["weights"])
        trainer.optimizer.load(kept["moments"])
        restore_random_states(kept["random"], device)
        trainer.state.step = trainer.state.update = trainer.state.plan_batch = first = KEPT
    with file.open("w") as written:
        for number in range(first, 100_000 if kind == "killed" else LAST):
            update(trainer)
            print(trainer.losses.table().nll[-1].hex(), file=written, flush=True)
            if kind == "killed" and number + 1 == KEPT:
                weights, moments = trainer.model.state_dict(), trainer.optimizer.tensors()
                write_tensors({"weights": weights, "moments": moments, "random": random_states(device)}, checkpoint)


def read_losses(folder: Path, kind: str) -> list[float]:
    file = folder / kind
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [float.fromhex(line) for line in lines if line.endswith("\n")]


def write_tensors(groups: dict[str, dict[str, Tensor]], file: Path) -> None:
    """Named tensors as a file that needs numpy only: the bytes of each number, and its type in the name."""
    arrays = {}
    for group, tensors in groups.items():
        for name, tensor in tensors.items():
            kind = str(tensor.dtype).removeprefix("torch.")
            plain = tensor.detach().cpu().flatten().view(torch.uint8)
            arrays[f"{group}:{kind}:{name}"] = plain.view(*tensor.shape, tensor.element_size()).numpy()
    np.savez(file, **arrays)


def read_tensors(file: Path) -> dict[str, dict[str, Tensor]]:
    """What `write_tensors` wrote, on the CPU."""
    groups: dict[str, dict[str, Tensor]] = {}
    with np.load(file) as arrays:
        for key, array in arrays.items():
            group, kind, name = key.split(":", 2)
            tensor = torch.from_numpy(array).flatten().view(getattr(torch, kind)).view(array.shape[:-1])
            groups.setdefault(group, {})[name] = tensor
    return groups
