"""Trains a model: prepares the data, trains, writes the final model and scores it. The same call continues a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from transformer_mt.config.load import ConfigLike, config_of
from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batches, BatchSize, Sampler
from transformer_mt.data.prepare import samples_segmentations
from transformer_mt.data.prepared import Prepared
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.finding import RUNS
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import INTERRUPTED, TmtError
from transformer_mt.evaluation.report import Report
from transformer_mt.evaluation.scores import score
from transformer_mt.kernels.build import build_model
from transformer_mt.model.transformer import Transformer
from transformer_mt.reporting.curves import PLOTS
from transformer_mt.reporting.events import Events
from transformer_mt.reporting.program import program_name, quoted
from transformer_mt.reporting.table import duration
from transformer_mt.runtime.device import Machine, seed_everything, set_up
from transformer_mt.runtime.distributed import World, join_world
from transformer_mt.training.ending import final_steps
from transformer_mt.training.gradients import is_out_of_memory
from transformer_mt.training.memory import step_bytes
from transformer_mt.training.run_directory import FinalModel, RunDirectory, facts_of
from transformer_mt.training.schedules.base import ends_in_warmup, ends_with
from transformer_mt.training.state import TrainState
from transformer_mt.training.trainer import Trainer
from transformer_mt.training.validation import BleuOf, BleuResult, Sample, Validation
from transformer_mt.workflows.data_report import short_report
from transformer_mt.workflows.evaluate import evaluate_splits
from transformer_mt.workflows.prepare import prepare

SAMPLES = 3  # translations shown after each validation


@dataclass(frozen=True)
class TrainReport:
    """The result of a training.

    steps:   number of updates
    seconds: training time, over all starts of the run
    stopped: why training ended
    shipped: steps of the checkpoints that were averaged into `model`
    scores:  of each test set
    """

    run: Path
    model: Path
    steps: int
    seconds: float
    stopped: str
    shipped: list[int]
    scores: dict[str, Report] = field(default_factory=dict)


def train(
    config: ConfigLike, run_dir: str | Path | None = None, *, overrides: str | Sequence[str] = (), fresh: bool = False
) -> TrainReport:
    """Train a model, or continue an interrupted run, and score the result on the test sets.

    config:    a Config or a YAML file
    run_dir:   folder of the run; default: runs/NAME
    overrides: `key.path=value`, which replace values of the config
    fresh:     start again, after moving a previous run to a folder beside it
    Under `torchrun`, every process calls this function.
    Raises TmtError for all that the user can fix; with exit code 130 after an interruption, when all is saved.
    """
    with join_world() as world:
        try:
            settings = world.from_main(lambda: config_of(config, overrides))
            return _train(settings, Path(run_dir or RUNS / settings.name), fresh, world)
        except KeyboardInterrupt:
            error = TmtError("interrupted", remedy="Run the same command again to continue.", exit_code=INTERRUPTED)
            world.exit_all(error)


def _train(config: Config, folder: Path, fresh: bool, world: World) -> TrainReport:
    machine = set_up(config.runtime, world)
    prepared = world.from_main(lambda: prepare(config))
    run = RunDirectory(folder)
    try:
        notes = world.from_main(lambda: _open(run, config, prepared, fresh, world.size))
        events = Events(folder, not world.is_main, config.runtime.tensorboard, config.training.max_epochs)
        for note in [*notes, *(short_report(prepared.report) if prepared.is_new else ())]:
            events.say(note)
        with closing(events):
            job = TrainingJob(config, prepared, run, machine, events)
            state = job.trainer().train()
            return world.from_main(lambda: job.finish(state))
    finally:
        run.close()


def _open(run: RunDirectory, config: Config, prepared: Prepared, fresh: bool, processes: int) -> list[str]:
    """Open the folder of the run. Returns notes for the user."""
    aside = run.move_aside() if fresh else None
    changed = run.open(config, facts_of([file.model_dump() for file in prepared.manifest.files], processes))
    notes = [f"previous run moved to {aside}"] if aside is not None else []
    notes += [f"changed since the run started (old | new): {line}" for line in changed]
    end = ends_with(config.training)
    ends = (f"training.{end}:", "training.max_steps:")  # if max_steps was removed, max_epochs may now be the end
    if end and any(line.startswith(ends) for line in changed):
        notes.append("the learning rate jumps here, because its schedule now ends at another step")
    return notes


@dataclass(frozen=True)
class TrainingJob:
    """One training: connects prepared data to a trainer, and its checkpoints to the final model."""

    config: Config
    prepared: Prepared
    run: RunDirectory
    machine: Machine
    events: Events

    def trainer(self) -> Trainer:
        """A trainer for this job. Prints what it is going to train."""
        model, batches = self.model(), self.batches()
        self._introduce(model, batches)
        bleu_of = self._bleu_of() if self.config.training.bleu_sentences else None
        validation = Validation(self.prepared.store("validation"), self.machine, bleu_of)
        return Trainer(self.config, model, batches, validation, self.run, self.machine, self.events)

    def model(self) -> Transformer:
        """A new model, initialised with the seed. Raises TmtError if memory is too small for it."""
        seed_everything(self.config.seed)
        source, target = self.prepared.codecs()
        try:
            return build_model(self.config, len(source), len(target), self.machine.device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise TmtError(
                "out of memory: the model is too large",
                place="model",
                remedy="Lower model.d_model, model.d_ff or the layers; `tmt inspect` counts the parameters.",
            ) from None

    def batches(self) -> Batches:
        settings, world = self.config.training, self.machine.world
        return Batches(
            self.prepared.store("train"),
            BatchSize(settings.token_budget, settings.batch_sentences),
            self.config.seed,
            parts=self.prepared.parts,
            bucket_by_length=settings.bucket_by_length,
            accumulate=settings.accumulate,
            rank=world.rank,
            world=world.size,
            sampler=self._sampler() if samples_segmentations(self.config) else None,
            max_length=self.config.data.max_length,
        )

    def _sampler(self) -> Sampler:
        """Draws a new segmentation of a training pair for each batch it is in."""
        sources, targets = self.prepared.raw("train")
        source, target = self.prepared.codecs()

        def sample(pair: int, random: Random) -> tuple[list[int], list[int]]:
            return source.sample(sources[pair], random), target.sample(targets[pair], random)

        return sample

    def _bleu_of(self) -> BleuOf:
        """The BLEU of greedy translations of the first validation sentences, divided among the processes."""
        config, world = self.config, self.machine.world
        store, target = self.prepared.store("validation"), self.prepared.codecs()[1]
        most = config.training.bleu_sentences
        sources, references = (list(islice(side, most)) for side in self.prepared.raw("validation"))
        ids = [store.source[number] for number in range(len(sources))]
        greedy = config.decoding.model_copy(update={"method": "beam", "beam": 1, "n_best": 1})

        def bleu_of(model: Transformer) -> BleuResult:
            found = world.split_work(ids, lambda own: translate_ids(model, own, greedy, self.machine.device))
            translations = [target.decode(one) for one in found]
            bleu = world.from_main(lambda: score(translations, references, config.data.target, ["bleu"])["bleu"].value)
            shown = [len(ids) * place // SAMPLES for place in range(min(SAMPLES, len(ids)))]
            return BleuResult(bleu, [Sample(sources[i], references[i], translations[i]) for i in shown])

        return bleu_of

    def _introduce(self, model: Transformer, batches: Batches) -> None:
        """Print the run, data, model, machine and memory before training starts."""
        config, machine, events, updates = self.config, self.machine, self.events, batches.updates(1)
        needed = max(step_bytes(model, config, machine, *shape) for shape in set(batches.shapes(1)))
        sizes = list(self.prepared.report.vocabulary.values())[: 1 if config.has_shared_vocabulary else 2]
        events.say(f"run        {self.run.folder}")
        events.say(
            f"data       {len(batches.store):,} training pairs {config.data.direction}; {updates:,} updates per epoch"
        )
        vocabulary = " and ".join(f"{size:,}" for size in sizes)
        events.say(f"model      {sum(p.numel() for p in model.parameters()):,} parameters; vocabulary {vocabulary}")
        events.say(f"machine    {machine.describe()}; a step needs about {-(-needed // 2**20):,} MiB")
        if last := ends_in_warmup(config.training, updates):
            events.say(
                f"note       the learning rate only rises: training ends with update {last:,}, and"
                f" training.warmup_steps is {config.training.warmup_steps:,}; lower it"
            )
        if not self.run.checkpoints.steps():
            events.record("started", pairs=len(batches.store), updates=updates, device=machine.describe())

    def finish(self, state: TrainState) -> TrainReport:
        """Write the final model and the plots, and score the model on the test sets."""
        run, events = self.run, self.events
        events.say(f"done       {self._reached(state)}", "green")
        final = self._write_model(state)
        steps = ", ".join(f"{step:,}" for step in final.steps)
        made = f"checkpoint of step {steps}" if len(final.steps) == 1 else f"mean of the checkpoints of steps {steps}"
        kept = ", made by `tmt average` and kept" if final.by == "average" else ""
        events.say(f"model      {run.model} ({made}{kept})")
        events.say(f"plots      {run.folder / PLOTS}")
        events.say(f"next       {program_name()} translate --model {quoted(run.folder)}")
        events.say(f"           {self._how_to_train_on(state)}")
        events.draw()
        events.record(
            "finished", step=state.step, reason=state.stopped, seconds=round(state.seconds, 1), averaged=final.steps
        )
        scores: dict[str, Report] = {}
        for name, report in evaluate_splits(run.model, self.prepared.test_sets, self.config.runtime.device):
            events.record("test", split=name, scores=[f"{name}  {one.line}" for one in report.scores.values()])
            scores[name] = report
        return TrainReport(run.folder, run.model, state.step, state.seconds, state.stopped, final.steps, scores)

    def _reached(self, state: TrainState) -> str:
        """Why training ended, and how good the best checkpoint is."""
        spent = f"{state.stopped}: {state.step:,} updates in {duration(state.seconds)}"
        if not math.isfinite(state.best):
            return spent
        settings = self.config.training
        by_bleu = settings.monitor == "bleu" and settings.bleu_sentences > 0
        return f"{spent}, best valid {f'BLEU {-state.best:.2f}' if by_bleu else f'loss {state.best:.3f}'}"

    def _how_to_train_on(self, state: TrainState) -> str:
        limit = state.stopped.split(" ")[0]
        more = f"--set training.{limit}={2 * getattr(self.config.training, limit)}"
        if limit == ends_with(self.config.training):  # its learning rate has come to its end
            return f"for a longer run, start again with --fresh {more}"
        return f"to train on, repeat the command with {more}"

    def _write_model(self, state: TrainState) -> FinalModel:
        """Write the final model, unless it is up to date."""
        run = self.run
        undamaged, problems = run.checkpoints.undamaged()
        for problem in problems:
            self.events.say(f"{problem}: not used for the final model")
        steps = final_steps(state, self.config.training, undamaged)
        final = run.final_model(steps)
        if final is not None:
            run.update_model_config(self.config)
            return final
        weights = run.checkpoints.mean_weights(steps)
        save_model_directory(run.model, self.config, weights, self.prepared.codecs())
        final = FinalModel(steps, "train")
        run.record_final_model(final)
        return final
