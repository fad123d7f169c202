"""One trial: a training that ends at the limits of its config, or when the search says so. No model, no test scores."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transformer_mt.config.load import config_of
from transformer_mt.config.schema import Config
from transformer_mt.data.parent import Parent
from transformer_mt.data.prepared import Prepared, settings_of
from transformer_mt.errors import MachineError, TmtError
from transformer_mt.reporting.events import Events
from transformer_mt.runtime.device import Machine, set_up
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.run_facts import PARENT, facts_of
from transformer_mt.training.supervisor import Supervisor
from transformer_mt.workflows.batches import batches_of
from transformer_mt.workflows.parents import checksum_of_parent, parent_of
from transformer_mt.workflows.prepare import prepare_with
from transformer_mt.workflows.starting import require_trainable
from transformer_mt.workflows.train import TrainingJob
from transformer_mt.workflows.tuning.study import Trial

TRIALS, DATA = "trials", "data"  # in the folder of a search


@dataclass(frozen=True)
class Bench:
    """What all trials of a search share. config: with the values of all keys that are not searched"""

    config: Config
    folder: Path

    @cached_property
    def machine(self) -> Machine:
        return set_up(self.config.runtime)

    @cached_property
    def parent(self) -> Parent | None:
        return parent_of(self.config, self.folder)

    @cached_property
    def started_from(self) -> dict[str, str]:
        """What a run records of the weights that it starts from."""
        return {} if self.parent is None else {PARENT: checksum_of_parent(self.config)}

    def place(self, trial: Trial) -> Path:
        return self.folder / TRIALS / f"{trial.number:04}"

    def config_of(self, trial: Trial) -> Config:
        """The config of a trial. Its data is prepared once for all trials with the same tokenizers.

        Raises TmtError if its values contradict each other.
        """
        config = config_of(self.config, [f"{key}={json.dumps(value)}" for key, value in trial.values.items()])
        settings = settings_of(config)
        if settings == settings_of(self.config):
            return config
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
        return config_of(config, f"data.prepared={json.dumps(str(self.folder / DATA / digest))}")

    def prepared(self, config: Config) -> Prepared:
        return prepare_with(config, self.parent)

    def updates_per_epoch(self) -> int:
        """Updates in an epoch with the values of the config."""
        with closing(batches_of(self.config, self.prepared(self.config), self.machine)) as batches:
            return batches.updates(1)

    def train(self, trial: Trial, supervisor: Supervisor) -> None:
        """Train a trial, or continue it. Raises TmtError and InterruptionError as a training does."""
        config = self.config_of(trial)
        require_trainable(config)
        prepared = self.prepared(config)
        with closing(RunDirectory(self.place(trial))) as run:
            facts = facts_of(**prepared.identity(), device=self.machine.describe())
            run.open(config, {**facts, **self.started_from})
            with closing(Events.of(config, run.folder, prints=False)) as events:
                job = TrainingJob(config, prepared, run, self.machine, events, self.parent)
                state = job.trainer(supervisor).train()
                end = {"step": state.step, "reason": state.stopped, "seconds": round(state.seconds, 1)}
                events.record("finished", **end)

    def remove_checkpoints(self, trial: Trial) -> None:
        """Remove the weights of a trial; its metrics, log and config stay."""
        run = RunDirectory(self.place(trial))
        run.checkpoints.keep([])


def is_of_machine(error: TmtError) -> bool:
    """Whether a trial failed for a reason that the next one would have too, such as a full disk."""
    return isinstance(error, MachineError)
