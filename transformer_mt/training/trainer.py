"""The training loop: batch, loss, gradient, step; validate, save; and go on exactly where it was interrupted."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batch, Batches
from transformer_mt.data.store import Store
from transformer_mt.errors import INTERRUPTED, TmtError
from transformer_mt.model.transformer import Transformer
from transformer_mt.model.weights import load_weights, named_weights
from transformer_mt.reporting.events import Events, duration, table_head, table_row
from transformer_mt.runtime.device import Machine, random_states, restore_random_states, seed_everything
from transformer_mt.runtime.distributed import World
from transformer_mt.training.average import MovingAverage, averaged
from transformer_mt.training.checkpoint import Checkpoint, load_moments, moments_of
from transformer_mt.training.interruption import Interruption
from transformer_mt.training.optimizer import make_optimizer
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.schedule import learning_rate, plateau_after
from transformer_mt.training.state import TrainState
from transformer_mt.training.step import TrainingStep
from transformer_mt.training.validation import BleuOf, BleuResult, mean_nll, perplexity

LOG_EVERY = 20  # updates between records in metrics.jsonl
VALIDATION_TOKENS = 4096


class Trainer:
    """Trains one model on one process of a group. State that outlives a step is in `state` and in tensors."""

    def __init__(
        self,
        config: Config,
        model: Transformer,
        batches: Batches,
        validation: Store,
        bleu_of: BleuOf | None,
        run: RunDirectory,
        machine: Machine,
        world: World,
        events: Events,
    ) -> None:
        self.config, self.settings = config, config.training
        self.model, self.batches, self.validation, self.bleu_of = model, batches, validation, bleu_of
        self.run, self.machine, self.world, self.events = run, machine, world, events
        self.state = TrainState()
        self.optimizer = make_optimizer(model, self.settings)
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.needs_scaling)
        decay = self.settings.ema_decay
        self.average = MovingAverage(model, decay) if decay else None
        self.pieces = 1  # parts a batch is split into, since memory ran out
        self.sums = torch.zeros(
            2, dtype=torch.float64, device=machine.device
        )  # nll and smoothed loss since the last log
        self.tokens = 0  # the same
        self.logged = time.monotonic()

    # ---------------------------------------------------------------- the loop

    def train(self) -> TrainState:
        """Train until the config says to stop. Raises TmtError with exit code 130 when interrupted, after saving."""
        self._resume()
        self.step = self._parallel_step()
        self.model.train()
        self.state.stopped = self._reason_to_stop()
        if not self.state.stopped:
            self.events.say(table_head())
        with Interruption() as interruption:
            while not self.state.stopped:
                self._train_epoch(interruption)
        self.events.end_epoch()
        return self.state

    def _train_epoch(self, interruption: Interruption) -> None:
        state, epoch = self.state, self.state.epoch
        updates = self.batches.updates(epoch)
        self.events.start_epoch(epoch, updates, state.update)
        while state.epoch == epoch and not state.stopped:
            batches = self.batches.update(epoch, state.update)
            interrupted = self._update(batches, interruption.requested)
            state.update += 1
            if state.update == updates:
                state.next_epoch()
            if state.step % LOG_EVERY == 0:
                self._log()
            if self._is_validation_due() or self._reason_to_stop():
                self._validate()
                state.stopped = self._reason_to_stop()
            elif interrupted or self._is_checkpoint_due():
                self._save()
            if interrupted and not state.stopped:
                self._leave()

    def _update(self, batches: list[Batch], interrupted: bool) -> bool:
        """One step of the optimizer on the batches of all processes; True where some process shall stop."""
        started = time.monotonic()
        mine = sum(batch.tokens for batch in batches)
        tokens, stop = self.world.sums([mine, interrupted], self.machine.device)
        self._accumulate(batches, self.world.size / max(1.0, tokens))
        self.state.step += 1
        self._set_learning_rate()
        if self.settings.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        if self.average is not None:
            self.average.update(self.model, self.state.step)
        self.tokens += int(tokens)
        self._show(time.monotonic() - started)
        return stop > 0

    def _accumulate(self, batches: list[Batch], scale: float) -> None:
        """Add up gradients of sum(loss) * scale; where memory runs out, again with smaller parts."""
        parts = self._split(batches)
        before = self.sums.clone()
        try:
            for number, batch in enumerate(parts, start=1):
                with self._synchronised(number == len(parts)):
                    self._backward(batch, scale)
        except torch.OutOfMemoryError:
            self._make_room(parts)
            self.sums = before
            self._accumulate(batches, scale)

    def _backward(self, batch: Batch, scale: float) -> None:
        with self.machine.autocast():
            loss = self.step(*batch.to(self.machine.device))
        self.sums += torch.stack([loss.nll.detach(), loss.smoothed.detach()]).double()
        if self.machine.device.type != "cuda":
            self._require_numbers()  # before the weights are touched; a GPU is asked when figures are shown
        self.scaler.scale(loss.smoothed * scale).backward()

    def _synchronised(self, last: bool) -> AbstractContextManager[object]:
        """Processes exchange gradients with the last part only."""
        if last or not isinstance(self.step, nn.parallel.DistributedDataParallel):
            return nullcontext()
        return self.step.no_sync()

    def _set_learning_rate(self) -> None:
        rate = learning_rate(self.state.step, self.settings, self.config.model.d_model, self.state.plateau)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.rate = rate

    # ------------------------------------------------------- memory and numbers

    def _split(self, batches: list[Batch]) -> list[Batch]:
        pieces = 1
        while pieces < self.pieces:
            batches = [half for batch in batches for half in (batch.halves() if len(batch.source_BS) > 1 else [batch])]
            pieces *= 2
        return batches

    def _make_room(self, parts: list[Batch]) -> None:
        """Halve the parts for good; the update stays the same. Raises TmtError where nothing is left to halve."""
        self.optimizer.zero_grad()
        if self.world.size > 1 or all(len(part.source_BS) == 1 for part in parts):
            raise TmtError(
                "out of memory on the device",
                remedy="Lower training.batch_tokens and raise training.accumulate by the same factor,"
                " or train a smaller model.",
            )
        torch.cuda.empty_cache()
        self.pieces *= 2
        self.events.say(
            f"out of memory: batches are computed in {self.pieces} parts from now on; updates stay the same"
        )

    def _require_numbers(self) -> None:
        """Raises TmtError where the loss is no number any more; the weights of the last checkpoint are good."""
        if bool(torch.isfinite(self.sums).all()):
            return
        state, kept = self.state, self.run.checkpoints.steps()
        place = f"step {state.step + 1}, batch {state.update + 1} of epoch {state.epoch}"
        last = f"The last good checkpoint is {self.run.checkpoints.path(kept[-1])}. " if kept else ""
        raise TmtError(
            f"the loss is not a number at {place}",
            place=self.run.folder,
            remedy=f"{last}Lower the learning rate, raise training.warmup_steps, or set training.clip_norm: 1.0.",
        )

    # ------------------------------------------------------------ figures shown

    def _show(self, seconds: float) -> None:
        self.state.seconds += seconds
        self.state.epoch_seconds += seconds
        if self.machine.device.type == "cuda" and self.state.step % LOG_EVERY:
            self.events.advance()  # asking for the loss would make the GPU wait
            return
        elapsed = max(1e-9, time.monotonic() - self.logged)
        self.events.advance(
            epoch=str(self.state.epoch),
            step=f"{self.state.step:,}",
            loss=f"{float(self.sums[0]) * self.world.size / max(1, self.tokens):.3f}",
            lr=f"{self.rate:.2e}",
            tokens_s=f"{self.tokens / elapsed:,.0f}",
            left=self._time_left(),
        )

    def _time_left(self) -> str:
        """Estimated from the steps so far; of several limits the nearest."""
        state, settings, left = self.state, self.settings, []
        pace = state.seconds / max(1, state.step)
        if settings.max_steps is not None:
            left.append((settings.max_steps - state.step) * pace)
        if settings.max_epochs is not None:
            updates = self.batches.updates(state.epoch)
            left.append(((settings.max_epochs - state.epoch + 1) * updates - state.update) * pace)
        if settings.max_minutes is not None:
            left.append(60 * settings.max_minutes - state.seconds)
        return duration(max(0.0, min(left)))

    def _log(self) -> None:
        """Move the sums since the last log into the state and into metrics.jsonl."""
        if not self.tokens:
            return
        self._require_numbers()
        nll, smoothed = self.world.sums(self.sums.tolist(), self.machine.device)
        state, elapsed = self.state, time.monotonic() - self.logged
        self.events.record(
            "step",
            step=state.step,
            epoch=state.epoch,
            loss=nll / self.tokens,
            smoothed_loss=smoothed / self.tokens,
            learning_rate=self.rate,
            tokens_per_second=round(self.tokens / max(1e-9, elapsed), 1),
        )
        state.tokens += self.tokens
        state.epoch_nll, state.epoch_smoothed = state.epoch_nll + nll, state.epoch_smoothed + smoothed
        state.epoch_tokens += self.tokens
        self.sums.zero_()
        self.tokens, self.logged = 0, time.monotonic()

    # --------------------------------------------------- validation, checkpoints

    def _is_validation_due(self) -> bool:
        every = self.settings.validate_every
        return self.state.update == 0 if every is None else self.state.step % every == 0

    def _is_checkpoint_due(self) -> bool:
        every = self.settings.checkpoint_every
        return every is not None and self.state.step % every == 0

    def _validate(self) -> None:
        """Judge the model, note whether it is the best so far, save it."""
        self._log()
        self.events.end_epoch()
        self.model.eval()
        with averaged(self.model, self.average):
            loss, result = self.world.from_main(self._judge)
        self.model.train()
        state = self.state
        badness = loss if self.settings.monitor == "loss" or result is None else -result.bleu
        is_best = badness < state.best
        state.best, state.stale = (badness, 0) if is_best else (state.best, state.stale + 1)
        state.plateau, state.plateau_stale = plateau_after(
            state.plateau, state.plateau_stale, loss, state.plateau_best, self.settings
        )
        state.plateau_best = min(state.plateau_best, loss)
        state.ranking = sorted([*state.ranking, (badness, state.step)])[: self.settings.kept_best]
        state.validated = state.step
        self._tell(loss, result, is_best)
        state.forget_epoch()
        self._save()
        self.logged = time.monotonic()

    def _judge(self) -> tuple[float, BleuResult | None]:
        loss = mean_nll(self.model, self.validation, VALIDATION_TOKENS, self.machine)
        return loss, self.bleu_of(self.model) if self.bleu_of is not None else None

    def _tell(self, loss: float, result: BleuResult | None, is_best: bool) -> None:
        state = self.state
        values = {
            "step": state.step,
            "epoch": state.epoch if state.update else state.epoch - 1,
            "train_loss": state.epoch_nll / state.epoch_tokens if state.epoch_tokens else None,
            "loss": loss,
            "perplexity": perplexity(loss),
            "bleu": None if result is None else result.bleu,
            "seconds": state.epoch_seconds,
            "best": is_best,
        }
        self.events.record("validation", **values)
        self.events.say(table_row(values))
        for sample in () if result is None else result.samples:
            self.events.say(f"         {sample.source}  ->  {sample.translation}   (reference: {sample.reference})")

    def _save(self) -> None:
        self._log()
        states = self.world.gather(random_states(self.machine.device))
        self.world.from_main(lambda: self._write(states))

    def _write(self, states: list[dict[str, Tensor]]) -> None:
        random = {f"random.{rank}/{kind}": state for rank, own in enumerate(states) for kind, state in own.items()}
        moments: dict[str, Tensor] = {**moments_of(self.model, self.optimizer), **random}
        if self.scaler.is_enabled():
            moments["scaler/scale"] = torch.tensor(self.scaler.get_scale())
        average = self.average.weights if self.average is not None else None
        self.run.checkpoints.write(Checkpoint(self.state, named_weights(self.model), moments, average))
        newest = self.run.checkpoints.steps()[-self.settings.kept_last :]
        self.run.checkpoints.keep([*newest, *(step for _, step in self.state.ranking)])

    def _leave(self) -> None:
        self.events.end_epoch()
        place = self.run.checkpoints.path(self.state.step)
        raise TmtError(
            f"interrupted at step {self.state.step:,}; all is saved in {place}",
            remedy="The same command goes on from there.",
            exit_code=INTERRUPTED,
        )

    def _resume(self) -> None:
        """Take up the newest whole checkpoint, if there is one."""
        seed_everything(self.config.seed + self.world.rank)
        checkpoint, problems = self.run.checkpoints.newest()
        for problem in problems:
            self.events.say(f"{problem}: the checkpoint before it is used")
        if checkpoint is None:
            return
        self.state = checkpoint.state
        load_weights(self.model, checkpoint.weights, self.run.checkpoints.path(self.state.step))
        load_moments(self.model, self.optimizer, checkpoint.moments)
        if self.average is not None:
            self.average.load(checkpoint.average or checkpoint.weights)
        if self.scaler.is_enabled() and "scaler/scale" in checkpoint.moments:
            self.scaler = torch.amp.GradScaler(
                self.machine.device.type, init_scale=float(checkpoint.moments["scaler/scale"])
            )
        prefix = f"random.{self.world.rank}/"
        states = {
            key.removeprefix(prefix): value for key, value in checkpoint.moments.items() if key.startswith(prefix)
        }
        if states:
            restore_random_states(states, self.machine.device)
        self.events.record("resumed", step=self.state.step, epoch=self.state.epoch)
        self.events.say(f"resumed at step {self.state.step:,} (epoch {self.state.epoch})")

    def _parallel_step(self) -> nn.Module:
        settings = self.settings
        step: nn.Module = TrainingStep(self.model, settings.label_smoothing, settings.r_drop, settings.word_dropout)
        if self.config.runtime.compile:
            step = torch.compile(step, dynamic=True)  # type: ignore[assignment]
        return self.world.parallel(step, self.machine.device)

    def _reason_to_stop(self) -> str:
        """Why training is over, or an empty string."""
        state, settings = self.state, self.settings
        if settings.max_steps is not None and state.step >= settings.max_steps:
            return f"max_steps {settings.max_steps:,} reached"
        if settings.max_epochs is not None and state.epoch > settings.max_epochs:
            return f"max_epochs {settings.max_epochs} reached"
        if state.validated != state.step or not state.step:
            return ""
        if settings.patience is not None and state.stale >= settings.patience:
            return f"no improvement in {state.stale} validations (patience {settings.patience})"
        if settings.max_minutes is not None and state.seconds >= 60 * settings.max_minutes:
            return f"max_minutes {settings.max_minutes:g} reached"
        return ""


def final_steps(state: TrainState, config: Config, kept: list[int]) -> list[int]:
    """The checkpoints whose mean is the final model: the best one, the last k, or the best k (training.average)."""
    settings = config.training
    there = [step for _, step in state.ranking if step in kept]
    if settings.average == "last":
        return kept[-settings.average_checkpoints :]
    if settings.average == "best" and there:
        return there[: settings.average_checkpoints]
    return there[:1] or kept[-1:]


def memory_estimate(model: nn.Module, batch_tokens: int, config: Config) -> int:
    """Bytes a step needs at the least: weights, gradients, Adam's two moments, and what backward remembers."""
    sizes = config.model
    weights = 4 * 4 * sum(parameter.numel() for parameter in model.parameters())
    per_layer = 4 * (14 * sizes.d_model + 3 * sizes.d_ff)  # bytes a token, measured on the tensors that autograd keeps
    layers = sizes.encoder_layers + 1.6 * sizes.decoder_layers
    return weights + math.ceil(batch_tokens * layers * per_layer)
