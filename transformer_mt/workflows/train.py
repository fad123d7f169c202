"""From a config to a model: prepare, train, ship, score. The same call goes on after an interruption."""

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
from transformer_mt.workflows.evaluate import evaluate_splits
from transformer_mt.workflows.prepare import prepare

SAMPLES = 3  # translations shown after each validation


@dataclass(frozen=True)
class TrainReport:
    """How a training ended.

    steps:   updates done; seconds: spent in training, over all resumptions
    stopped: why it ended
    shipped: steps of the checkpoints that `model` is made of
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
    """Train a model; go on if the run was interrupted; score the result on the test sets.

    config: a Config or a YAML file, with `overrides` as `key.path=value`. run_dir: default runs/NAME. fresh: start
    again, and keep a previous run beside the new one. Under `torchrun`, every process calls this.
    Raises TmtError: with exit code 130 if interrupted, after saving; for all else that the user can fix.
    """
    with join_world() as world:
        try:
            settings = world.from_main(lambda: config_of(config, overrides))
            return _train(settings, Path(run_dir or RUNS / settings.name), fresh, world)
        except KeyboardInterrupt:
            error = TmtError("interrupted", remedy="The same command goes on from here.", exit_code=INTERRUPTED)
            world.exit_all(error)


def _train(config: Config, folder: Path, fresh: bool, world: World) -> TrainReport:
    machine = set_up(config.runtime, world)
    prepared = world.from_main(lambda: prepare(config))
    run = RunDirectory(folder)
    try:
        notes = world.from_main(lambda: _open(run, config, prepared, fresh, world.size))
        events = Events(folder, not world.is_main, config.runtime.tensorboard, config.training.max_epochs)
        for note in notes:
            events.say(note)
        with closing(events):
            job = TrainingJob(config, prepared, run, machine, events)
            state = job.trainer().train()
            return world.from_main(lambda: job.finish(state))
    finally:
        run.close()


def _open(run: RunDirectory, config: Config, prepared: Prepared, fresh: bool, processes: int) -> list[str]:
    """Take the folder of the run; what the user should know of it."""
    aside = run.move_aside() if fresh else None
    changed = run.open(config, facts_of([file.model_dump() for file in prepared.manifest.files], processes))
    notes = [f"the former run is kept in {aside}"] if aside is not None else []
    notes += [f"changed since this run was started (there | here): {line}" for line in changed]
    end = ends_with(config.training)
    ends = (f"training.{end}:", "training.max_steps:")  # without max_steps, max_epochs may have become the end
    if end and any(line.startswith(ends) for line in changed):
        notes.append("the learning rate falls to its end at another step now, so it leaps from where it was")
    return notes


@dataclass(frozen=True)
class TrainingJob:
    """What one training works with: the wiring from prepared data to a trainer, and from its checkpoints to a model."""

    config: Config
    prepared: Prepared
    run: RunDirectory
    machine: Machine
    events: Events

    def trainer(self) -> Trainer:
        """Ready to train; introduces what is going to happen."""
        model, batches = self.model(), self.batches()
        self._introduce(model, batches)
        bleu_of = self._bleu_of() if self.config.training.bleu_sentences else None
        validation = Validation(self.prepared.store("validation"), self.machine, bleu_of)
        return Trainer(self.config, model, batches, validation, self.run, self.machine, self.events)

    def model(self) -> Transformer:
        """Freshly initialised by the seed. Raises TmtError if the memory does not hold it."""
        seed_everything(self.config.seed)
        source, target = self.prepared.codecs()
        try:
            return build_model(self.config, len(source), len(target), self.machine.device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise TmtError(
                "the memory does not hold a model of this size",
                place="model",
                remedy="Lower model.d_model, model.d_ff or the layers; `tmt inspect --config C` counts the parameters.",
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
        """Segments a training pair again each time it is asked for it."""
        sources, targets = self.prepared.raw("train")
        source, target = self.prepared.codecs()

        def sample(pair: int, random: Random) -> tuple[list[int], list[int]]:
            return source.sample(sources[pair], random), target.sample(targets[pair], random)

        return sample

    def _bleu_of(self) -> BleuOf:
        """Greedy translations of the first validation sentences, each process a share of them, scored by sacreBLEU."""
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
        """What is going to happen, before it does: data, model, machine, memory."""
        config, machine, events, updates = self.config, self.machine, self.events, batches.updates(1)
        needed = max(step_bytes(model, config, machine, *shape) for shape in set(batches.shapes(1)))
        sizes = dict.fromkeys(self.prepared.report.vocabulary.values())  # source, target; one if they are equal
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
                f" training.warmup_steps is {config.training.warmup_steps:,}"
            )
        if not self.run.checkpoints.steps():
            events.record("started", pairs=len(batches.store), updates=updates, device=machine.describe())

    def finish(self, state: TrainState) -> TrainReport:
        """Average, ship, draw, and score on the test sets."""
        run, events = self.run, self.events
        events.say(f"done       {self._reached(state)}", "green")
        shipped = self._ship(state)
        steps = ", ".join(f"{step:,}" for step in shipped.steps)
        made = f"checkpoint of step {steps}" if len(shipped.steps) == 1 else f"mean of the checkpoints of steps {steps}"
        kept = ", made by `tmt average` and kept" if shipped.by == "average" else ""
        events.say(f"model      {run.model} ({made}{kept}); see {events.draw().name}/")
        events.say(f"next       {program_name()} translate --model {quoted(run.folder)}")
        events.say(f"           {self._how_to_train_on(state)}")
        events.record(
            "finished", step=state.step, reason=state.stopped, seconds=round(state.seconds, 1), averaged=shipped.steps
        )
        scores: dict[str, Report] = {}
        for name, report in evaluate_splits(run.model, self.prepared.test_sets, self.config.runtime.device):
            events.record("test", split=name, scores=[f"{name}  {one.line}" for one in report.scores.values()])
            scores[name] = report
        return TrainReport(run.folder, run.model, state.step, state.seconds, state.stopped, shipped.steps, scores)

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

    def _ship(self, state: TrainState) -> FinalModel:
        """Write the final model, unless it is there."""
        run = self.run
        whole, problems = run.checkpoints.undamaged()
        for problem in problems:
            self.events.say(f"{problem}: this checkpoint cannot become the model, nor a part of it")
        steps = final_steps(state, self.config.training, whole)
        shipped = run.final_model(steps)
        if shipped is not None:
            run.update_model_config(self.config)
            return shipped
        weights = run.checkpoints.mean_weights(steps)
        save_model_directory(run.model, self.config, weights, self.prepared.codecs())
        shipped = FinalModel(steps, "train")
        run.record_final_model(shipped)
        return shipped
