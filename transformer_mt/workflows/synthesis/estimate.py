"""The steps of a synthesis, with rough estimates of the time and the disk space that they need."""

from __future__ import annotations

from dataclasses import dataclass

from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared
from transformer_mt.decoding.finding import finished_at
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.files.lines import read_lines
from transformer_mt.kernels.build import build_model
from transformer_mt.reporting.table import duration
from transformer_mt.runtime.device import set_up
from transformer_mt.runtime.distributed import World
from transformer_mt.workflows.proposal.timing import MOST_TOKENS, seconds_an_update
from transformer_mt.workflows.synthesis.plan import Part, Plan
from transformer_mt.workflows.synthesis.translating import is_filtered, shard_count

STATES = 3  # numbers of a checkpoint for each weight: the weight and the two moments of Adam
BYTES = 4  # of a number
DECODING = 0.5  # time of a token in a row of a search, in times of a token in training


@dataclass(frozen=True)
class Estimate:
    """seconds: None for a training without a limit in updates or minutes. megabytes: that stay on the disk"""

    step: str
    seconds: float | None
    megabytes: float

    @property
    def cells(self) -> list[str]:
        return [self.step, "unknown" if self.seconds is None else duration(self.seconds), f"{self.megabytes:,.1f} MB"]


@dataclass(frozen=True)
class _Speed:
    """token_seconds: of a token of the longer side in training; weights: of a model"""

    token_seconds: float
    tokens: float
    weights: int


def estimate(plan: Plan, prepared: Prepared, world: World) -> list[Estimate]:
    """What is left to do. prepared: the real pairs. Takes a few seconds for a model of each kind."""
    figures = prepared.report.splits["train"]
    pairs, tokens = figures.pairs, max(figures.source.mean, figures.target.mean) + 1
    real = prepared.pairs_an_epoch
    own = _speed(plan.config, prepared, tokens)
    lines = pairs if plan.own_pairs else sum(1 for file in plan.texts for _ in read_lines(file, in_corpus=False))
    text_megabytes = lines * tokens * 5 / 1e6
    steps = [Estimate("text to translate", 0.0, text_megabytes * (1 + plan.own_pairs))]
    of_teachers: _Speed | None = None  # they differ by seed, direction and data; all see about as many pairs
    for teachers, parts in plan.rounds:
        for teacher, config in ((one, one.config) for one in teachers if one.config is not None):
            if of_teachers is None:
                of_teachers = own if config.model == plan.config.model else _speed(config, prepared, tokens)
            seconds = 0.0 if finished_at(teacher.run) else _training(config, real, of_teachers, world)
            steps.append(Estimate(f"train {teacher.run.name}", seconds, _run_megabytes(config, of_teachers)))
        for part in parts:
            seconds = 0.0 if is_filtered(plan, part) else _translating(plan, part, lines, own, world)
            name = f"translate {part.name} ({shard_count(plan, lines):,} shards)"
            steps.append(Estimate(name, seconds, 2 * text_megabytes))
    synthetic, settings = lines * len(plan.parts), plan.settings
    steps.append(Estimate("prepare", 0.0, (pairs + synthetic) * tokens * 4 / 1e6))
    seen = settings.real_weight * real + settings.synthetic_weight * synthetic
    training = plan.config.training.model_copy(update={"max_epochs": plan.epochs(plan.final_config, real, seen)})
    final = plan.config.model_copy(update={"training": training})
    steps.append(Estimate(f"train {plan.name}", _training(final, seen, own, world), _run_megabytes(final, own)))
    known = [one.seconds for one in steps if one.seconds is not None]
    all_known = sum(known) if len(known) == len(steps) else None
    return [*steps, Estimate("all", all_known, sum(one.megabytes for one in steps))]


def _speed(config: Config, prepared: Prepared, tokens: float) -> _Speed:
    """Times some updates of a model of this config."""
    sizes = prepared.report.vocabulary
    vocabulary, figures = (sizes["source"], sizes["target"]), prepared.report.splits["train"]
    machine = set_up(config.runtime)
    seconds = seconds_an_update(config, vocabulary, (figures.source.mean + 1, figures.target.mean + 1), machine)
    weights = sum(one.numel() for one in build_model(config, *vocabulary, machine.device).parameters())
    return _Speed(seconds / (config.training.token_budget or MOST_TOKENS), tokens, weights)


def _training(config: Config, pairs: float, speed: _Speed, world: World) -> float | None:
    """The seconds of a training until the first of its limits. pairs: of an epoch"""
    training, limits = config.training, list[float]()
    budget = training.token_budget or (training.batch_sentences or 1) * speed.tokens
    update = speed.token_seconds * budget * training.accumulate
    updates = pairs * speed.tokens / (budget * training.accumulate * world.size)
    if training.max_epochs is not None:
        limits.append(training.max_epochs * updates * update)
    if training.max_steps is not None:
        limits.append(training.max_steps * update)
    if training.max_minutes is not None:
        limits.append(60 * training.max_minutes)
    return min(limits) if limits else None


def _translating(plan: Plan, part: Part, lines: int, speed: _Speed, world: World) -> float:
    rows = make_search(plan.search).rows
    return lines * speed.tokens * rows * len(part.teachers) * speed.token_seconds * DECODING / world.size


def _run_megabytes(config: Config, speed: _Speed) -> float:
    """Its checkpoints and its model."""
    training = config.training
    kept = training.keep_last + training.keep_best + training.average_checkpoints * (training.average != "none")
    return speed.weights * BYTES * (STATES * kept + 1) / 1e6
