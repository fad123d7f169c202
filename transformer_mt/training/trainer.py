"""The training loop: update, validate, save a checkpoint; continue exactly after an interruption."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batches
from transformer_mt.data.loader import Loader
from transformer_mt.errors import InterruptionError, TmtError, is_out_of_memory
from transformer_mt.model.transformer import Transformer
from transformer_mt.reporting.events import Events
from transformer_mt.runtime.device import (
    Machine,
    compiles,
    random_states,
    restore_random_states,
    seed_everything,
)
from transformer_mt.runtime.graphs import give_back_memory
from transformer_mt.runtime.weights import load_weights, named_weights
from transformer_mt.training.agreement import Agreement
from transformer_mt.training.average import averaged
from transformer_mt.training.checkpoint import Checkpoint
from transformer_mt.training.ending import progress, reason_to_stop
from transformer_mt.training.gradients import Gradients, out_of_memory
from transformer_mt.training.interruption import NOTICE, Interrupted, StopSignal
from transformer_mt.training.narrow_weights import NarrowCopy
from transformer_mt.training.optimizer import Optimizer
from transformer_mt.training.run_directory import FRESH, RunDirectory
from transformer_mt.training.running_loss import LossTable, Position, RunningLoss
from transformer_mt.training.schedules.base import make_schedule
from transformer_mt.training.state import TrainState
from transformer_mt.training.step import TrainingStep, failed_compilation
from transformer_mt.training.supervisor import Supervisor
from transformer_mt.training.validation import Validation

LOG_EVERY = 20  # updates between records in metrics.jsonl
PREFETCH = 16  # batches that are ready ahead for a GPU
SHOW_LOSS_SECONDS = 1.0  # between updates of the loss in the progress bar; reading the loss makes the GPU wait


def updates_ahead(config: Config, device: torch.device) -> int:
    """How many updates have their batches ready ahead, from `runtime.prefetch`."""
    batches = config.runtime.prefetch
    if batches == "auto":
        batches = PREFETCH if device.type == "cuda" else 0
    return -(-batches // config.training.accumulate)


class Trainer:
    """Trains a model, alone or as one process of a group. A checkpoint holds `state`, the model and `optimizer`."""

    def __init__(
        self,
        config: Config,
        model: Transformer,
        batches: Batches,
        validation: Validation,
        run: RunDirectory,
        machine: Machine,
        events: Events,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.supervisor = supervisor or Supervisor()
        self.config, self.settings = config, config.training
        self.model, self.batches, self.validation = model, batches, validation
        self.loader = Loader(batches, updates_ahead(config, machine.device), machine.device)
        self.run, self.machine, self.world, self.events = run, machine, machine.world, events
        self.state = TrainState(world=self.world.size)
        self.epoch_updates = batches.updates(1)  # stored, because `batches` remembers few epochs
        self.schedule = make_schedule(self.settings, config.model.d_model, self.epoch_updates)
        self.compiled = compiles(config.runtime, machine.device)
        self.narrow = NarrowCopy(model) if config.runtime.weights == "bfloat16" else None
        self.optimizer = Optimizer(model, self.settings, machine, self.narrow)
        computing = self.narrow.model if self.narrow else model
        step = TrainingStep(computing, self.settings.label_smoothing, self.settings.r_drop, self.compiled)
        parallel = self.world.parallel(step, machine.device)  # averages gradients over the processes
        exact = replace(machine, dtype=torch.float32) if self.narrow else machine  # without autocast
        graph = self.compiled and self.settings.accumulate == 1
        self.gradients = Gradients(parallel, exact, self.optimizer.scaler.scale, events.say, graph)
        self.losses = RunningLoss()
        self.damaged: set[int] = set()  # steps of damaged checkpoints, until they are written again
        self.learning_rate = 0.0
        self.agreement = Agreement(self.world, self.settings)
        self.loss_shown = -math.inf  # when the progress bar last got a loss
        self.first_seconds = 0.0  # of the first update of this process, if it compiles

    def train(self) -> TrainState:
        """Continue from the newest checkpoint, if there is one, and train until a limit of the config is reached.

        Raises InterruptionError after an interruption, when everything is saved; TmtError if the loss is not finite, if
        the memory is too small, or if a checkpoint cannot be written.
        """
        is_new = not self._resume()
        self.model.train()
        if self.narrow:
            self.narrow.round_weights()
        try:
            if is_new and self.settings.start_from is not None:
                self.state.start_from_parent()
                self._validate()
            self.state.stopped = reason_to_stop(self.state, self.settings)
            is_put_off = self.state.put_off == self.state.step > 0
            if (self.state.stopped or is_put_off) and self.state.validated != self.state.step:
                self.learning_rate = self.schedule.rate(self._scheduled_step() - 1, self.state.plateau)
                self.state.interrupted = [step for step in self.state.interrupted if step != self.state.step]
                self._validate()
            elif self.state.stopped:
                self.events.say("training is already complete")
            with StopSignal(NOTICE if self.world.is_main else "", alone=self.world.size == 1) as stop:
                while not self.state.stopped:
                    self._train_epoch(stop)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise out_of_memory() from None
            raise failed_compilation(error, self.compiled) or error from None
        finally:
            self.loader.close()
            self.batches.close()
            self.gradients.release()
            self.events.end_epoch()
        return self.state

    def _train_epoch(self, stop: StopSignal) -> None:
        """Train to the end of the epoch, or until training stops."""
        state, epoch = self.state, self.state.epoch
        validate_every, checkpoint_every = self.settings.validate_every, self.settings.checkpoint_every
        updates = self.batches.updates(epoch)
        self.events.start_epoch(epoch, updates, state.update)
        while state.epoch == epoch and not state.stopped:
            self._update(stop, updates)
            if state.step % LOG_EVERY == 0:
                self._log()
            is_due = state.update == 0 if validate_every is None else state.step % validate_every == 0
            if is_due or self.agreement.is_late or reason_to_stop(state, self.settings):
                self._validate(stop)
                stop.agree(self.world)  # a signal may have arrived during the validation
                if state.update and not (state.stopped or stop.is_agreed):  # the epoch continues
                    self.events.start_epoch(epoch, updates, state.update)
            elif checkpoint_every and state.step % checkpoint_every == 0:
                self._save()
            elif stop.is_agreed or self.agreement.is_save_due:
                self._save_interrupted()
            if stop.is_agreed and not state.stopped:
                self._exit_interrupted()

    def _update(self, stop: StopSignal, updates: int) -> None:
        """One optimizer step on the batches of all processes. updates: optimizer steps in this epoch."""
        started, state = time.monotonic(), self.state
        batches, size, following = self.loader.next(state.cursor)
        stop.requested = stop.requested or self.supervisor.is_over()
        self.agreement.ask(stop, state)
        tokens = size.tokens
        if tokens is None:
            tokens = int(self.world.sums([sum(batch.tokens for batch in batches)])[0])
        sums = self.gradients.add_up(batches, self.world.size / max(1, tokens), size)
        self.losses.add(Position(state.step + 1, state.epoch, state.update + 1), sums, tokens)
        if self.machine.device.type == "cpu" and self.world.size == 1:
            self._require_finite(self.losses.table())  # before the weights change; on a GPU this would wait
        self.learning_rate = self.schedule.rate(self._scheduled_step(), state.plateau)
        self.optimizer.update(state.step + 1, self.learning_rate)
        state.advance(following, seconds := time.monotonic() - started)
        if self.compiled:
            self.first_seconds = self.first_seconds or seconds
        self._show(updates)

    def _scheduled_step(self) -> int:
        """The step number of the next update for the schedule.

        If the schedule ends with the last epoch, the number follows from the position in the data, not from the steps
        so far: an epoch has more or fewer steps if the run continues with another number of processes.
        """
        state = self.state
        if self.schedule.ends_with(self.settings) == "max_epochs":
            return (state.epoch - 1) * self.epoch_updates + self.batches.updates_before(state.cursor) + 1
        return state.step + 1

    def _show(self, updates: int) -> None:
        """Advance the progress bar, with a new loss about once a second."""
        state, now = self.state, time.monotonic()
        status = ""
        if now - self.loss_shown > SHOW_LOSS_SECONDS and self.world.is_main:
            self.loss_shown = now
            size = self.world.size  # assumes that the other processes have similar sums
            recent = self.losses.recent_totals(self.losses.table(lambda sums: [value * size for value in sums]))
            status = progress(recent, state, self.settings, updates, self.first_seconds)
        self.events.advance(state.step, status)

    def _collect(self) -> None:
        """Add the losses since the last call to the state."""
        if not len(self.losses):
            return
        table = self.losses.table(self.world.sums)
        self._require_finite(table)
        totals, state = self.losses.totals(table), self.state
        state.add(len(self.losses), totals)
        self.losses.reset(totals)

    def _log(self) -> None:
        """Write the mean loss since the last record to metrics.jsonl.

        Each record covers LOG_EVERY updates, also if a checkpoint was saved in between; only the last may cover fewer.
        """
        self._collect()
        state = self.state
        if not state.window_updates:
            return
        self.events.record(
            "step",
            step=state.step,
            epoch=state.latest_epoch,
            updates=state.window_updates,
            loss=state.window_nll / state.window_tokens,
            smoothed_loss=state.window_smoothed / state.window_tokens,
            learning_rate=self.learning_rate,
            tokens_per_second=round(state.window_tokens / max(1e-9, state.window_seconds), 1),
        )
        state.clear_window()

    def _require_finite(self, table: LossTable) -> None:
        """End all processes if a loss is infinite or not a number."""
        bad = self.losses.first_non_finite(table)
        if bad is not None:
            where = f"step {bad.step:,}, update {bad.update:,} of epoch {bad.epoch}"
            self.world.exit_all(self._diverged(f"the loss is not a finite number at {where}"))

    def _diverged(self, message: str) -> TmtError:
        """The error for diverged training; it names the last good checkpoint."""
        saved = [step for step in self.run.checkpoints.steps() if step not in self.damaged]
        last = f"The last good checkpoint is {self.run.checkpoints.path(saved[-1])}. " if saved else ""
        lower = "a lower learning rate, more training.warmup_steps or training.clip_norm: 1.0"
        remedy = f"Start again with {FRESH} and {lower}."
        return TmtError(message, place=self.run.folder, remedy=last + remedy)

    def _validate(self, stop: StopSignal | None = None) -> None:
        """Validate the model, record whether it is the best so far, and save a checkpoint.

        stop: if it is already agreed, or a signal arrives, only the checkpoint is saved; a validation may take long
        """
        self._collect()
        self.events.end_epoch()
        self.gradients.release()
        state = self.state
        try:
            with averaged(self.model, self.optimizer.average), stop.at_once() if stop else nullcontext():
                result = self.validation.evaluate(self.model)
        except Interrupted:
            state.put_off = state.step
            self._save_interrupted()
            return
        give_back_memory()  # of the graphs of its search, which updates cannot use
        if not math.isfinite(result.loss):
            self.world.exit_all(self._diverged(f"the validation loss is not a finite number at step {state.step:,}"))
        values = result.record(state)
        values["best"] = state.record_validation(result.loss, result.bleu, self.settings)
        judge, settings, main = self.supervisor.judge, self.settings, self.world.from_main
        state.stopped = main(lambda: judge(values, reason_to_stop(state, settings)))  # clocks differ
        if state.stopped:
            self._log()
        self.events.validated(values, result.samples)  # before saving: a run that is killed here prints the line again
        self._save()

    def _save(self) -> None:
        """Save a checkpoint with the states of the random generators of all processes."""
        self._collect()
        self.state.record_checkpoint(self.settings)
        self.state.plan_windows, self.state.plan_update = self.batches.windows, self.batches.of_update
        self.state.plan_batches = self.batches.batches_in(self.state.cursor)
        states = self.world.gather(random_states(self.machine.device))
        self.world.from_main(lambda: self._write(states), "the checkpoint to be written")
        self.losses.restart_clock()
        self.agreement.record_save()

    def _write(self, states: list[dict[str, Tensor]]) -> None:
        """Write a checkpoint and remove old ones. states: of the random generators, one dictionary for each process."""
        weights = named_weights(self.model)
        if not all(bool(torch.isfinite(weight).all()) for weight in weights.values()):
            raise self._diverged(f"the weights are not finite numbers at step {self.state.step:,}")
        random = {f"random.{rank}/{kind}": state for rank, own in enumerate(states) for kind, state in own.items()}
        average = self.optimizer.average.weights if self.optimizer.average is not None else None
        checkpoints, state = self.run.checkpoints, self.state
        checkpoints.write(Checkpoint(state, weights, {**self.optimizer.tensors(), **random}, average))
        self.damaged.discard(state.step)
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove all checkpoints but the newest and the best ones."""
        checkpoints, state = self.run.checkpoints, self.state
        usable = [step for step in checkpoints.steps() if step <= state.step and step not in self.damaged]
        best = (step for _, step in state.ranking)
        kept = [state.step, *state.regular(usable)[-self.settings.kept_last :], *best]
        checkpoints.keep([*kept, 0] if state.has_parent else kept)

    def _save_interrupted(self) -> None:
        """Save a checkpoint that another run of this config does not have, or not yet."""
        if self.state.step not in self.state.interrupted:
            self.state.interrupted.append(self.state.step)
        self._save()

    def _exit_interrupted(self) -> None:
        """End all processes after an interruption."""
        self.events.end_epoch()
        place = self.run.checkpoints.path(self.state.step)
        self.world.exit_all(
            InterruptionError(
                f"interrupted at step {self.state.step:,}; everything is saved in {place}",
                remedy=f"Run the same command to continue from there, or add {FRESH} to start again.",
            )
        )

    def _resume(self) -> bool:
        """Continue from the newest undamaged checkpoint. False if there is none."""
        seed_everything(self.config.seed + self.world.rank)
        checkpoint, problems = self.run.checkpoints.newest_for_all(self.world)
        if checkpoint is None and problems:
            self.world.exit_all(
                TmtError(
                    "every checkpoint of this run is damaged:\n    " + "\n    ".join(problems),
                    place=self.run.folder,
                    remedy=f"Start again with {FRESH}; that moves the previous run to NAME.1.",
                )
            )
        for problem in problems:
            self.events.say(f"{problem}; using the checkpoint before it")
        if checkpoint is None:
            return False
        self._load(checkpoint)
        finished = self.world.from_main(lambda: self.run.finished_step)  # its model may be made of any checkpoint
        if not self.damaged and finished != self.state.step:  # a killed process may not have removed the old ones
            self.world.from_main(self._remove_old)
        state, former, size = self.state, self.state.world, self.world.size
        self._restore_place()
        before, now = state.plan_update or state.world * self.settings.accumulate, self.batches.of_update
        if former != size:
            other = f"now {size} instead of {former} processes: each update takes"
            accumulate, rest = divmod(before, size)
            keeps = "" if rest else f"; training.accumulate={accumulate} would keep it the same"
            data = "as much data as before" if now == before else f"{now / before:g} times the data{keeps}"
            self.events.say(f"{other} {data}")
        state.rescale_world(size, before, now)
        updates = self.batches.updates(state.epoch)
        self.events.record("resumed", step=state.step, epoch=state.epoch)
        self.events.say(
            f"resumed at step {state.step:,} (epoch {state.epoch}, {state.update:,} of {updates:,} updates done)"
        )
        return True

    def _restore_place(self) -> None:
        """Find the place of the checkpoint in the plan of its epoch."""
        state = self.state
        if not state.plan_windows:  # of an older version, which planned whole epochs
            state.plan_windows, state.plan_batch = 1, state.update * state.world * self.settings.accumulate
        found, is_exact = self.batches.planner.restored(state.cursor, state.plan_windows, state.plan_batches)
        if not is_exact:
            self.events.say(
                f"the checkpoint was written with other batches, or by another version of tmt: in the rest of epoch"
                f" {state.epoch}, some pairs come twice and others not at all"
            )
            state.epoch, state.plan_window, state.plan_batch = found
            state.update, state.world = self.batches.updates_before(found), self.world.size
            state.plan_update = self.batches.of_update

    def _load(self, checkpoint: Checkpoint) -> None:
        """Restore state, weights, optimizer and random generators."""
        self.state = checkpoint.state
        steps = self.world.from_main(self.run.checkpoints.steps)
        self.damaged = {step for step in steps if step > self.state.step}
        if not self.state.recent:  # checkpoints of older versions do not record them
            regular = [step for step in steps if step <= self.state.step and step not in self.state.interrupted]
            self.state.recent = regular[-self.settings.kept_last :]
        load_weights(self.model, checkpoint.weights, self.run.checkpoints.path(self.state.step))
        self.optimizer.load(checkpoint.moments)
        if self.optimizer.average is not None:
            self.optimizer.average.load(checkpoint.average or checkpoint.weights)
        prefix = f"random.{self.world.rank}/"
        states = {key.removeprefix(prefix): one for key, one in checkpoint.moments.items() if key.startswith(prefix)}
        if states:
            restore_random_states(states, self.machine.device)
