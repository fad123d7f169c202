"""Checkpoints: written under a temporary name, then renamed, so that a kill at any moment leaves the old ones intact.

step-0000500/   model.safetensors      weights
                optimizer.safetensors  moments of each weight, states of the random generators
                average.safetensors    moving average of the weights, if there is one
                state.json             TrainState
                SHA256SUMS             of the files above
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from transformer_mt.config.runs import STATE, SUMS, WEIGHTS
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.checksum import sha256_of
from transformer_mt.files.replace import remove_leftovers, replaced_folder
from transformer_mt.runtime.distributed import World
from transformer_mt.runtime.weights import read_weights, save_weights
from transformer_mt.training.state import TrainState

OPTIMIZER, AVERAGE = "optimizer.safetensors", "average.safetensors"


@dataclass
class Checkpoint:
    """Everything that training needs to continue as if it had never stopped.

    moments: the tensors of the optimizer, and the states of the random generators of each process.
    """

    state: TrainState
    weights: Mapping[str, Tensor]
    moments: Mapping[str, Tensor]
    average: Mapping[str, Tensor] | None = None

    def tensors(self) -> dict[str, Tensor]:
        """All tensors, with the part in their names: `weights/NAME`, `moments/NAME`, `average/NAME`."""
        parts = {"weights": self.weights, "moments": self.moments, "average": self.average or {}}
        return {f"{part}/{name}": one for part, tensors in parts.items() for name, one in tensors.items()}

    @classmethod
    def of(cls, state: TrainState, tensors: Mapping[str, Tensor]) -> Checkpoint:
        """The checkpoint whose `tensors` these are."""
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "moments": {}, "average": {}}
        for name, tensor in tensors.items():
            part, _, own = name.partition("/")
            parts[part][own] = tensor
        return cls(state, parts["weights"], parts["moments"], parts["average"] or None)


class DamagedError(ValueError):
    """A checkpoint whose files are missing or differ from their checksums."""


@dataclass(frozen=True)
class Checkpoints:
    """The `checkpoints` folder of a run."""

    folder: Path

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:07d}"

    def steps(self) -> list[int]:
        """The steps of all complete checkpoints, oldest first."""
        named = (re.fullmatch(r"step-(\d+)", path.name) for path in self.folder.glob("step-*") if path.is_dir())
        return sorted(int(name[1]) for name in named if name)

    def write(self, checkpoint: Checkpoint) -> Path:
        """Write the files and return their folder. Raises TmtError if that fails; older ones stay as they are."""
        place = self.path(checkpoint.state.step)
        try:
            with replaced_folder(place) as aside:
                save_weights(checkpoint.weights, aside / WEIGHTS)
                save_weights(checkpoint.moments, aside / OPTIMIZER)
                if checkpoint.average is not None:
                    save_weights(checkpoint.average, aside / AVERAGE)
                (aside / STATE).write_text(json.dumps(checkpoint.state.to_json(), indent=1), encoding="utf-8")
                sums = [f"{sha256_of(file)}  {file.name}\n" for file in sorted(aside.iterdir())]
                (aside / SUMS).write_text("".join(sums), encoding="utf-8")
        except OSError as error:
            saved, _ = self.undamaged()
            failed = from_os_error(error, f"writing the checkpoint of step {checkpoint.state.step}")
            if saved:
                failed.remedy += f" The last good checkpoint is {self.path(saved[-1])}."
            raise failed from None
        return place

    def read(self, step: int) -> Checkpoint:
        """The checkpoint of a step. Raises DamagedError if a file is missing or its checksum differs."""
        folder = self.path(step)
        verify(folder)
        try:
            state = TrainState.from_json(json.loads((folder / STATE).read_text(encoding="utf-8")))
        except ValueError as error:
            raise DamagedError(f"{folder / STATE}: {error}") from None
        average = read_weights(folder / AVERAGE) if (folder / AVERAGE).exists() else None
        return Checkpoint(state, read_weights(folder / WEIGHTS), read_weights(folder / OPTIMIZER), average)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest undamaged checkpoint, and what is wrong with newer ones."""
        problems: list[str] = []
        for step in reversed(self.steps()):
            try:
                return self.read(step), problems
            except DamagedError as damage:
                problems.append(str(damage))
        return None, problems

    def newest_for_all(self, world: World) -> tuple[Checkpoint | None, list[str]]:
        """`newest` of the main process, in all processes: the others may be on machines without these files."""
        found: list[Checkpoint] = []  # of the main process

        def read() -> tuple[TrainState | None, list[str]]:
            newest, problems = self.newest()
            found.extend([newest] if newest is not None else [])
            return (None if newest is None else newest.state), problems

        doing = "the checkpoint"
        state, problems = world.from_main(read, doing)
        if state is None:
            return None, problems
        tensors = world.tensors_from_main(lambda: found[0].tensors(), doing)
        return Checkpoint.of(state, tensors), problems

    def keep(self, steps: Iterable[int]) -> None:
        """Remove all other checkpoints, and the leftovers of killed processes."""
        for step in set(self.steps()) - set(steps):
            shutil.rmtree(self.path(step), ignore_errors=True)
        remove_leftovers(self.folder)

    def undamaged(self) -> tuple[list[int], list[str]]:
        """The steps of all undamaged checkpoints, oldest first, and what is wrong with the others."""
        undamaged: list[int] = []
        problems: list[str] = []
        for step in self.steps():
            try:
                verify(self.path(step))
                undamaged.append(step)
            except DamagedError as damage:
                problems.append(str(damage))
        return undamaged, problems

    def mean_weights(self, steps: Iterable[int]) -> dict[str, Tensor]:
        """The mean of the weights of several checkpoints, or of their moving averages if they have them.

        Raises TmtError if one of them is damaged.
        """
        total: dict[str, Tensor] = {}
        steps = list(steps)
        for step in steps:
            folder = self.path(step)
            try:
                verify(folder)
            except DamagedError as damage:
                raise TmtError(str(damage), remedy="Name other checkpoints, or continue training.") from None
            file = folder / AVERAGE if (folder / AVERAGE).exists() else folder / WEIGHTS
            for name, tensor in read_weights(file).items():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        return {name: (tensor / len(steps)).float() for name, tensor in total.items()}


def verify(folder: Path) -> None:
    """Compare the files with their checksums. Raises DamagedError."""
    try:
        sums = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        entries = [line.split("  ", 1) for line in sums]
        for digest, name in entries:
            if sha256_of(folder / name) != digest:
                raise DamagedError(f"{folder / name} is damaged (its checksum differs)")
        missing = {WEIGHTS, OPTIMIZER, STATE} - {name for _, name in entries}
    except OSError as error:
        raise DamagedError(f"{error.filename} is missing or cannot be read") from None
    except DamagedError:
        raise
    except ValueError:
        raise DamagedError(f"{folder / SUMS} is damaged") from None
    if missing:
        raise DamagedError(f"{folder / SUMS} is damaged")
