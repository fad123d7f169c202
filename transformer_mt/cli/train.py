"""`tmt train`: from a config to a model; the same command goes on after an interruption, and under torchrun."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_mt.cli.options import ConfigOption, SetOption

if TYPE_CHECKING:
    from transformer_mt.config.schema import Config
    from transformer_mt.data.batching import Batches, Sampler
    from transformer_mt.data.prepared import Prepared
    from transformer_mt.model.transformer import Transformer
    from transformer_mt.reporting.events import Events
    from transformer_mt.runtime.device import Machine
    from transformer_mt.runtime.distributed import World
    from transformer_mt.training.run_directory import RunDirectory, Shipped
    from transformer_mt.training.state import TrainState
    from transformer_mt.training.validation import BleuOf

SAMPLES = 3  # translations shown after each validation
DeviceChoice = Annotated[
    str | None, typer.Option("--device", help="auto, cpu, cuda or mps. Default: runtime.device.", show_default=False)
]


def train(
    config: ConfigOption,
    set_: SetOption = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="Folder of the run; default: runs/NAME.", show_default=False)
    ] = None,
    device: DeviceChoice = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew; a former run is kept beside it.")] = False,
) -> None:
    """Train a model: prepare its data if needed, go on where it was interrupted, print the test score."""
    from transformer_mt.config.load import load_config
    from transformer_mt.errors import INTERRUPTED, TmtError
    from transformer_mt.runtime.distributed import join_world

    overrides = [*(set_ or ()), *([f"runtime.device={device}"] if device else [])]
    with join_world() as world:
        try:
            settings = world.from_main(lambda: load_config(config, overrides))
            _train(settings, run_dir or Path("runs") / settings.name, fresh, world)
        except KeyboardInterrupt:
            error = TmtError("interrupted", remedy="The same command goes on from here.", exit_code=INTERRUPTED)
            world.leave(error)


def _train(config: Config, folder: Path, fresh: bool, world: World) -> None:
    from contextlib import closing

    from transformer_mt.cli.prepare import prepare_with_progress
    from transformer_mt.reporting.events import Events
    from transformer_mt.runtime.device import set_up
    from transformer_mt.training.run_directory import RunDirectory

    machine = set_up(config.runtime, world.local_rank, world.local_size)
    prepared = world.from_main(lambda: prepare_with_progress(config))
    run = RunDirectory(folder)
    try:
        notes = world.from_main(lambda: _open(run, config, prepared, fresh, world.size))
        events = Events(folder, silent=not world.is_main, tensorboard=config.runtime.tensorboard)
        for note in notes:
            events.say(note)
        with closing(events):
            state = _run_training(config, prepared, run, machine, world, events)
            world.from_main(lambda: _finish(config, prepared, run, state, events))
    finally:
        run.close()


def _open(run: RunDirectory, config: Config, prepared: Prepared, fresh: bool, processes: int) -> list[str]:
    """Take the folder of the run; what the user should know of it."""
    from transformer_mt.training.run_directory import facts_of
    from transformer_mt.training.schedules.base import ends_with

    aside = run.set_aside() if fresh else None
    changed = run.open(config, facts_of(prepared.manifest["files"], processes))
    notes = [f"the former run is kept in {aside}"] if aside is not None else []
    notes += [f"changed since this run was started (there | here): {line}" for line in changed]
    end = ends_with(config.training)
    ends = (f"training.{end}:", "training.max_steps:")  # without max_steps, max_epochs may have become the end
    if end and any(line.startswith(ends) for line in changed):
        notes.append("the learning rate falls to its end at another step now, so it leaps from where it was")
    return notes


def _run_training(
    config: Config, prepared: Prepared, run: RunDirectory, machine: Machine, world: World, events: Events
) -> TrainState:
    from transformer_mt.training.trainer import Trainer
    from transformer_mt.training.validation import Validation

    model = _model(config, prepared, machine)
    batches = _batches(config, prepared, world)
    _introduce(config, prepared, model, batches, run, machine, world, events)
    bleu_of = _bleu_of(config, prepared, machine, world) if config.training.bleu_sentences else None
    validation = Validation(prepared.store("validation"), machine, world, bleu_of)
    return Trainer(config, model, batches, validation, run, machine, world, events).train()


def _model(config: Config, prepared: Prepared, machine: Machine) -> Transformer:
    """Freshly initialised by the seed. Raises TmtError where the memory does not hold it."""
    from transformer_mt.errors import TmtError
    from transformer_mt.kernels.build import build_model
    from transformer_mt.runtime.device import seed_everything
    from transformer_mt.training.gradients import is_out_of_memory

    seed_everything(config.seed)
    source, target = prepared.codecs()
    try:
        return build_model(config, len(source), len(target), machine.device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise TmtError(
            "the memory does not hold a model of this size",
            place="model",
            remedy="Lower model.d_model, model.d_ff or the layers; `tmt inspect --config C` counts the parameters.",
        ) from None


def _batches(config: Config, prepared: Prepared, world: World) -> Batches:
    from transformer_mt.data.batching import Batches, BatchSize
    from transformer_mt.data.prepare import samples_segmentations

    settings = config.training
    return Batches(
        prepared.store("train"),
        BatchSize(settings.token_budget, settings.batch_sentences),
        config.seed,
        parts=prepared.parts,
        bucket_by_length=settings.bucket_by_length,
        accumulate=settings.accumulate,
        rank=world.rank,
        world=world.size,
        sampler=_sampler(prepared) if samples_segmentations(config) else None,
        max_length=config.data.max_length,
    )


def _sampler(prepared: Prepared) -> Sampler:
    """Segments a training pair anew each time it is asked for it."""
    sources, targets = prepared.raw("train")
    source, target = prepared.codecs()

    def sample(pair: int, random: Any) -> tuple[list[int], list[int]]:
        return source.sample(sources[pair], random), target.sample(targets[pair], random)

    return sample


def _bleu_of(config: Config, prepared: Prepared, machine: Machine, world: World) -> BleuOf:
    """Greedy translations of the first validation sentences, each process a share of them, scored by sacreBLEU."""
    from itertools import islice

    from transformer_mt.decoding.batches import translate_ids
    from transformer_mt.evaluation.scores import score
    from transformer_mt.training.validation import BleuResult, Sample

    store, target = prepared.store("validation"), prepared.codecs()[1]
    sources, references = (list(islice(side, config.training.bleu_sentences)) for side in prepared.raw("validation"))
    ids = [store.source[number] for number in range(len(sources))]
    greedy = config.decoding.model_copy(update={"method": "beam", "beam": 1, "n_best": 1})

    def bleu_of(model: Transformer) -> BleuResult:
        found = world.shared(ids, lambda own: translate_ids(model, own, greedy, machine.device))
        translations = [target.decode(one) for one in found]
        bleu = world.from_main(lambda: score(translations, references, config.data.target, ["bleu"])["bleu"].value)
        shown = [len(ids) * place // SAMPLES for place in range(min(SAMPLES, len(ids)))]
        return BleuResult(bleu, [Sample(sources[i], references[i], translations[i]) for i in shown])

    return bleu_of


def _introduce(
    config: Config,
    prepared: Prepared,
    model: Transformer,
    batches: Batches,
    run: RunDirectory,
    machine: Machine,
    world: World,
    events: Events,
) -> None:
    """What is going to happen, before it does: data, model, machine, memory."""
    from transformer_mt.training.memory import step_bytes
    from transformer_mt.training.schedules.base import only_rises

    report, updates = prepared.manifest["report"], batches.updates(1)
    needed = max(step_bytes(model, config, machine, *shape) for shape in set(batches.shapes(1)))
    sizes = dict.fromkeys(report["vocabulary"].values())  # source, target; one where they are equal
    processes = f", {world.size} processes" if world.size > 1 else ""
    events.say(f"run        {run.folder}")
    events.say(
        f"data       {len(batches.store):,} training pairs {config.data.direction},"
        f" vocabulary {' and '.join(f'{size:,}' for size in sizes)}; {updates:,} updates an epoch"
    )
    events.say(f"model      {sum(p.numel() for p in model.parameters()):,} parameters")
    events.say(f"machine    {machine.describe()}{processes}; a step needs about {-(-needed // 2**20):,} MiB")
    if last := only_rises(config.training, updates):
        events.say(
            f"note       the learning rate only rises: training ends with update {last:,}, and"
            f" training.warmup_steps is {config.training.warmup_steps:,}"
        )
    if not run.checkpoints.steps():
        events.record("started", pairs=len(batches.store), updates=updates, device=machine.describe())


def _finish(config: Config, prepared: Prepared, run: RunDirectory, state: TrainState, events: Events) -> None:
    """Average, ship, draw, and score on the test set."""
    from transformer_mt.decoding.model_directory import save_model_directory
    from transformer_mt.training.ending import final_steps
    from transformer_mt.training.run_directory import Shipped

    events.say(f"done: {state.stopped}. {_how_to_go_on(state, config)}")
    whole, problems = run.checkpoints.whole()
    for problem in problems:
        events.say(f"{problem}: this checkpoint cannot become the model, nor a part of it")
    steps = final_steps(state, config.training, whole)
    shipped = run.shipped(steps)
    if shipped is None:
        save_model_directory(run.model, config, run.checkpoints.mean_weights(steps), prepared.codecs())
        shipped = Shipped(steps, "train")
        run.note_shipped(shipped)
    else:
        run.ship_config(config)
    events.say(f"model      {run.model} ({_named(shipped)})")
    events.say(f"plots      {events.draw()}")
    events.record(
        "finished", step=state.step, reason=state.stopped, seconds=round(state.seconds, 1), averaged=shipped.steps
    )
    if prepared.test_sets:
        _score(config, prepared, run, events)


def _how_to_go_on(state: TrainState, config: Config) -> str:
    from transformer_mt.training.schedules.base import ends_with

    limit = state.stopped.split(" ")[0]
    if limit == ends_with(config.training):
        return f"Its learning rate has come to its end; for a longer run start anew: --fresh --set training.{limit}=..."
    return f"To train on, raise it: --set training.{limit}=..."


def _named(shipped: Shipped) -> str:
    steps, by = shipped.steps, ", kept as `tmt average` made it" if shipped.by == "average" else ""
    if len(steps) == 1:
        return f"checkpoint of step {steps[0]:,}{by}"
    return f"mean of the checkpoints of steps {', '.join(f'{step:,}' for step in steps)}{by}"


def _score(config: Config, prepared: Prepared, run: RunDirectory, events: Events) -> None:
    """The test score, printed on stdout and kept with the model."""
    from contextlib import suppress

    from transformer_mt.cli.evaluate import evaluate_splits

    for name, scores in evaluate_splits(run.model, prepared.test_sets, config.runtime.device):
        events.record("test", split=name, scores=scores)
        with suppress(BrokenPipeError):  # whoever read it may have gone; it is kept
            print("\n".join(scores), flush=True)
