"""Trains a model: prepares the data, trains, writes the final model and scores it. The same call continues a run."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy  # noqa: F401 (PyTorch would import it too, but lose a Ctrl-C while it does)
from torch import Tensor

from transformer_mt.config.load import ConfigLike, Overrides
from transformer_mt.config.runs import RUNS, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.data.batching import Batches
from transformer_mt.data.parent import Parent, hashes_for_model
from transformer_mt.data.prepared import Prepared
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.decoding.searches.base import search_name
from transformer_mt.errors import TmtError, is_out_of_memory
from transformer_mt.evaluation.report import Report, chance, size
from transformer_mt.files.lines import path_of
from transformer_mt.kernels.build import build_model
from transformer_mt.kernels.changed import require_same_loss
from transformer_mt.kernels.packing import require_same_streams
from transformer_mt.model.transformer import Transformer
from transformer_mt.reporting.events import Events, Printer
from transformer_mt.reporting.program import program_name, quoted
from transformer_mt.reporting.table import duration
from transformer_mt.runtime.device import Machine, peak_memory, process_unchanged, seed_everything, set_up
from transformer_mt.runtime.distributed import ALONE, World, host_name
from transformer_mt.runtime.joining import join_world
from transformer_mt.runtime.weights import load_weights, named_weights
from transformer_mt.training.ending import Candidate, best_of, candidates, how_to_continue, reason, worse_than_guessing
from transformer_mt.training.memory import step_bytes
from transformer_mt.training.run_directory import FinalModel, RunDirectory
from transformer_mt.training.run_facts import PARENT, facts_of
from transformer_mt.training.schedules.base import length_notes, schedule_notes
from transformer_mt.training.starting import freeze
from transformer_mt.training.state import TrainState
from transformer_mt.training.supervisor import Supervisor
from transformer_mt.training.trainer import Trainer
from transformer_mt.workflows.batches import batches_of, sampling_processes
from transformer_mt.workflows.candidates import Scorer
from transformer_mt.workflows.data_report import short_report
from transformer_mt.workflows.evaluate import evaluate_splits
from transformer_mt.workflows.gpu_notes import gpu_notes
from transformer_mt.workflows.hosts import (
    Program,
    config_on_hosts,
    find_run,
    launchers,
    meet,
    prepare_on_hosts,
    require_torchrun,
    restart_notes,
    was_restarted,
)
from transformer_mt.workflows.interruption import interrupted_error
from transformer_mt.workflows.opening import open_run
from transformer_mt.workflows.parents import checksum_of_parent, parent_of
from transformer_mt.workflows.starting import load_parent, new_tokens, own_bleu, require_trainable


@dataclass(frozen=True)
class TrainReport:
    """The result of a training.

    steps:   number of updates
    seconds: training time, over all starts of the run
    stopped: why training ended
    shipped: steps of the checkpoints that were averaged into `model`
    scores:  of each test set
    compared: what `model` was chosen from, on the validation split; empty if there was no choice
    """

    run: Path
    model: Path
    steps: int
    seconds: float
    stopped: str
    shipped: list[int]
    scores: dict[str, Report] = field(default_factory=dict)
    compared: Sequence[Candidate] = ()


def train(
    config: ConfigLike, run_dir: str | Path | None = None, *, overrides: Overrides = (), fresh: bool = False
) -> TrainReport:
    """Train a model, or continue an interrupted run, and score the result on the test sets.

    config:    a Config, a YAML file, or its sections as a dict
    run_dir:   folder of the run; default: runs/NAME
    overrides: `key.path=value` or a dict of such keys, which replace values of the config
    fresh:     start again, after moving a previous run to a folder beside it
    Under `torchrun`, every process calls this function.
    Raises TmtError for all that the user can fix, and InterruptionError after an interruption, when all is saved.
    """
    return run_training(config, run_dir, overrides, fresh)


def run_training(
    config: ConfigLike, run_dir: str | Path | None, overrides: Overrides, fresh: bool, show: Printer | None = None
) -> TrainReport:
    """`train`. show: prints a score of a test set; None: with all else, on stderr"""
    with join_world() as world:
        return train_in(world, config, run_dir, overrides, fresh, show)


@process_unchanged()
def train_in(
    world: World,
    config: ConfigLike,
    run_dir: str | Path | None = None,
    overrides: Overrides = (),
    fresh: bool = False,
    show: Printer | None = None,
) -> TrainReport:
    """`run_training`, for processes that have joined a world."""
    folder = None
    try:
        require_torchrun()
        programs = meet(world, fresh)
        given = None if run_dir is None else path_of(run_dir)
        settings, notes = config_on_hosts(world, config, overrides, given, fresh)
        folder = RUNS / settings.name if given is None else given
        if fresh and was_restarted(world, folder):
            fresh = False
            settings, notes = config_on_hosts(world, config, overrides, given, fresh)
            notes += ["--fresh does not count again: torchrun has restarted its processes"]
        return _train(world, settings, folder, fresh, programs, notes, show)
    except KeyboardInterrupt:
        world.exit_all(interrupted_error(folder))


def _train(
    world: World,
    config: Config,
    folder: Path,
    fresh: bool,
    programs: Mapping[int, Program],
    notes: Sequence[str],
    show: Printer | None,
) -> TrainReport:
    """programs: of the machines, by rank of their leaders; notes: for the user"""
    machine = world.everywhere(lambda: set_up(config.runtime, world), "the devices of the others")
    run = RunDirectory(folder)
    of_hosts = [*notes, *(restart_notes() if programs else ())]
    if not fresh:  # before the data is prepared, which may take long
        of_hosts += find_run(world, folder, config, programs)
        world.from_main(lambda: run.require_same(config, world.size))
    world.from_main(lambda: require_trainable(config))
    parent = world.from_main(lambda: parent_of(config, folder, fresh))
    prepared, of_data = prepare_on_hosts(world, config, parent, folder, programs, fresh)
    with closing(run):
        names = launchers(world)

        def opened() -> list[str]:
            if parent is not None and config.training.freeze:
                require_trainable(config, new_tokens(parent, prepared.codecs()))
            facts = facts_of(**prepared.identity(), processes=world.size, launchers=names, device=machine.describe())
            if parent is not None and (fresh or not run.checkpoints.steps()):
                facts[PARENT] = checksum_of_parent(config)
            return open_run(run, config, facts, fresh, parent)

        of_run = world.from_main(opened, "the folder of the run")
        events = Events.of(config, folder, not world.is_main)
        of_hosts = [f"note       {note}" for note in (*of_hosts, *of_data)]
        for note in [*of_run, *of_hosts, *(short_report(prepared.report) if prepared.is_new else ())]:
            events.say(note)
        if world.is_leader and not world.is_main:
            print(f"{host_name()} trains with {programs[0].host}, which prints and writes all", file=sys.stderr)
        with closing(events):
            job = TrainingJob(config, prepared, run, machine, events, parent, show)
            trainer = job.trainer()
            state = trainer.train()
            final = job.ship(trainer.model, state)
            return world.from_main(lambda: job.finish(state, final), "the final model and its scores")


@dataclass(frozen=True)
class TrainingJob:
    """One training: connects prepared data to a trainer, and its checkpoints to the final model."""

    config: Config
    prepared: Prepared
    run: RunDirectory
    machine: Machine
    events: Events
    parent: Parent | None = None
    show: Printer | None = None  # a score of a test set; None: as all else

    def trainer(self, supervisor: Supervisor | None = None) -> Trainer:
        """A trainer for this job. Prints what it is going to train."""
        model, batches, scorer = self.model(), self.batches(), self._scorer.greedy()
        self._introduce(model, batches)
        return Trainer(self.config, model, batches, scorer, self.run, self.machine, self.events, supervisor)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.config, self.prepared, self.machine)

    def model(self) -> Transformer:
        """A new model, initialised with the seed or from its parent. Raises TmtError if memory is too small for it."""
        seed_everything(self.config.seed)
        require_same_loss()
        source, target = self.prepared.codecs()
        try:
            model = build_model(self.config, len(source), len(target), self.machine.device)
            if self.config.training.packing:
                require_same_streams(model)
            if self.parent is not None and self.machine.world.from_main(lambda: not self.run.checkpoints.steps()):
                load_weights(model, self._weights_of_parent(model, self.parent), self.parent.name)
            freeze(model, self.config.training.freeze)
            return model
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise TmtError(
                "out of memory: the model is too large",
                place="model",
                remedy="Lower model.d_model, model.d_ff or the layers; `tmt inspect` counts the parameters.",
            ) from None

    def _weights_of_parent(self, model: Transformer, parent: Parent) -> dict[str, Tensor]:
        """The weights to start with. Only the first machine may have the parent. model: as it was initialised"""

        def load() -> Mapping[str, Tensor]:
            load_parent(model, self.config, parent, self.prepared.codecs())
            return named_weights(model)

        return self.machine.world.tensors_from_main(load, "the weights of the parent")

    def batches(self) -> Batches:
        def note(text: str) -> None:
            self.events.say(f"note       {text}")

        return batches_of(self.config, self.prepared, self.machine, note)

    def _introduce(self, model: Transformer, batches: Batches) -> None:
        """Print the run, data, model, machine and memory before training starts."""
        config, machine, events, updates = self.config, self.machine, self.events, batches.updates(1)
        needed = max(step_bytes(model, config, machine, *shape) for shape in set(batches.shapes(1)))
        sizes = list(self.prepared.report.vocabulary.values())[: 1 if config.has_shared_vocabulary else 2]
        events.say(f"run        {self.run.folder}")
        about = "about " if batches.windows > 1 else ""
        size = f"{len(batches.store):,} training pairs {config.data.direction}"
        events.say(f"data       {size}; {about}{updates:,} updates per epoch")
        vocabulary = " and ".join(f"{size:,}" for size in sizes)
        frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
        fixed = f", {frozen:,} of them frozen" if frozen else ""
        parameters = sum(p.numel() for p in model.parameters())
        events.say(f"model      {parameters:,} parameters{fixed}; vocabulary {vocabulary}")
        if (parent := self.parent) is not None and not self.run.checkpoints.steps():
            is_same = parent.directions == config.data.all_directions
            other = "" if is_same else f", which translates {', '.join(map(str, parent.directions))}"
            new = ", with the new tokens" if config.extends_vocabulary else ""
            events.say(f"parent     weights and tokenizers of {parent.name}{other}; step 0 is this model{new}")
        events.say(f"machine    {machine.describe()}; a step needs about {-(-needed // 2**20):,} MiB")
        processes = sampling_processes(config, machine)
        if batches.sampler is not None and processes > 1:
            events.say(f"sampling   {processes} processes draw segmentations")
        if batches.streams is not None:
            source, target = batches.streams.source, batches.streams.target
            padding = f"{batches.padding(1):.1%} of them padding"
            events.say(f"packing    streams of {source:,} source tokens and {target:,} target tokens, {padding}")
            if machine.device.type != "cuda":
                events.say("note       packing is made for CUDA GPUs; on this device it is slower than padded batches")
        for note in [
            *length_notes(config.training, updates),
            *schedule_notes(config.training, updates),
            *gpu_notes(config, machine.device, updates, machine.world.size),
        ]:
            events.say(f"note       {note}")
        if not self.run.checkpoints.steps():
            started = {"pairs": len(batches.store), "updates": updates, "device": machine.describe()}
            events.record("started", **started, **({"parent": self.parent.name} if self.parent else {}))

    def ship(self, model: Transformer, state: TrainState) -> FinalModel:
        """Write the final model: the best of the last checkpoint, the best one and the configured mean.

        They are compared on the validation split with the search that users get. Every process must call this.
        model: gets their weights, one after the other
        """
        world, checkpoints, say = self.machine.world, self.run.checkpoints, self.events.say
        final, among = world.from_main(lambda: self._final_or_candidates(state))
        if final is not None:
            return final
        why, compared = "", list[Candidate]()
        if len(among) > 1:
            say(f"compared   {self._scorer.describe()}")
            line = "           {}".format

            def weights_of(one: Candidate) -> Mapping[str, Tensor]:
                return world.tensors_from_main(lambda: checkpoints.mean_weights(one.steps), "the mean of checkpoints")

            compared = self._scorer.compare(among, weights_of, model, lambda text: say(line(text)))
            why = reason(compared)
            self._compare_with_own_tokens(compared)
        shipped = best_of(compared or among)
        final = FinalModel(shipped.steps, "train", why, compared, self._scorer.criterion if compared else {})
        world.from_main(lambda: self._write_model(final))
        return final

    def _compare_with_own_tokens(self, compared: Sequence[Candidate]) -> None:
        """Say how good the parent is without the new tokens of this run: it is no candidate then."""
        if self.parent is None or not self.config.extends_vocabulary or [0] not in [one.steps for one in compared]:
            return
        world, parent, checkpoints = self.machine.world, self.parent, self.run.checkpoints
        # Other machines may not have the parent: only the main process translates.
        scorer = Scorer(self.config, self.prepared, replace(self.machine, world=ALONE))
        bleu = world.from_main(
            lambda: own_bleu(scorer, parent, checkpoints.mean_weights([0])), "the score of the parent"
        )
        if bleu is None:
            return
        self.events.say(f"           {'parent without new tokens':<26} BLEU {bleu:6.2f}")
        if bleu > (best_of(compared).bleu or 0.0):
            self.events.say(
                f"note       {self.parent.name} scores higher with its own tokens than the model of this run"
            )

    def _final_or_candidates(self, state: TrainState) -> tuple[FinalModel | None, list[Candidate]]:
        """The final model if it is up to date, or what it can be chosen from."""
        self.events.say(f"done       {self._reached(state)}", "green")
        undamaged, problems = self.run.checkpoints.undamaged()
        for problem in problems:
            self.events.say(f"{problem}: not used for the final model")
        if not self._parent_translates and undamaged != [0]:
            undamaged = [step for step in undamaged if step]  # its BLEU is that of copied names and numbers
        among = candidates(state, self.config.training, undamaged)
        if not (self.run.model / WEIGHTS).exists():  # lost: it is written again
            return None, among
        so_far = self.run.recorded_model() if self.run.finished_step == state.step else None
        steps = so_far.steps if so_far is not None else []
        if steps and set(steps) <= set(undamaged) and steps not in [one.steps for one in among]:
            among.append(Candidate(["model so far"], steps))  # chosen with other settings
        return self.run.final_model(among, self._scorer.criterion), among

    @property
    def _parent_translates(self) -> bool:
        """Whether the parent translates what this model learns to translate, at least in part."""
        return self.parent is None or not {*self.config.data.all_directions}.isdisjoint(self.parent.directions)

    def _write_model(self, final: FinalModel) -> None:
        weights = self.run.checkpoints.mean_weights(final.steps)
        seen = hashes_for_model(self.prepared.folder, self.parent)
        save_model_directory(self.run.model, self.config, weights, self.prepared.codecs(), seen)
        self.run.record_final_model(final)

    def finish(self, state: TrainState, final: FinalModel) -> TrainReport:
        """Record and draw what was reached, and score the model on the test sets."""
        run, events = self.run, self.events
        run.update_model_config(self.config)
        run.record_finish(state.step, final)
        kept = ", made by `tmt average` and kept" if final.by == "average" else ""
        why = f", {final.why}" if final.why else ""
        events.say(f"model      {run.model} ({final.made_of}{kept}{why})")
        if (plots := events.draw()) is not None:
            events.say(f"plots      {plots}")
        events.say(f"next       {program_name()} translate --model {quoted(run.folder)}")
        settings, tokens = self.config.training, len(self.prepared.codecs()[1])
        further = worse_than_guessing(state, settings, tokens) or how_to_continue(state, settings, final.steps)
        events.say(f"           {further}")
        reached = {"step": state.step, "reason": state.stopped, "seconds": round(state.seconds, 1)}
        reached["peak_memory"] = peak_memory(self.machine.device)
        events.record("finished", **reached, averaged=final.steps, shipped=final.to_json())
        search = search_name(self.config.decoding)
        if self.prepared.test_sets:
            events.say(f"scores     of {', '.join(self.prepared.test_sets)}, translated with {search}")
        scores: dict[str, Report] = {}
        for name, report in evaluate_splits(run.model, self.prepared.test_sets, self.config.runtime.device):
            lines = [f"{name}  {one.line}" for one in report.scores.values()]
            figures = {key: one.value for key, one in report.scores.items()}
            events.record("test", split=name, search=search, scores=lines, figures=figures)
            for line in lines:
                events.say(line, write=self.show)
            if by_chance := chance(report):
                events.say(f"           {name}: {by_chance}")
            if report.left_out:
                events.say(f"           {size(report)}")
            scores[name] = report
        reached_by = state.step, state.seconds, state.stopped
        return TrainReport(run.folder, run.model, *reached_by, final.steps, scores, final.compared)

    def _reached(self, state: TrainState) -> str:
        """Why training ended, and how good the best checkpoint is."""
        spent = f"{state.stopped}: {state.step:,} updates in {duration(state.seconds)}"
        if not math.isfinite(state.best):
            return spent
        settings = self.config.training
        by_bleu = settings.monitor == "bleu" and settings.bleu_sentences > 0
        return (
            f"{spent}, best valid {f'BLEU {-state.best:.2f} (greedy search)' if by_bleu else f'loss {state.best:.3f}'}"
        )
