"""Trains teachers, lets them translate text, and trains the final model on real and synthetic pairs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transformer_mt.config.load import ConfigLike, Overrides, config_of
from transformer_mt.config.runs import MODEL, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.corpora.base import WHOLE
from transformer_mt.data.prepared import Prepared
from transformer_mt.decoding.finding import finished_at
from transformer_mt.errors import InterruptionError, TmtError, number_of
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import recover, replace_text
from transformer_mt.reporting.notes import note
from transformer_mt.reporting.table import aligned
from transformer_mt.runtime.device import process_unchanged
from transformer_mt.runtime.distributed import World
from transformer_mt.runtime.joining import join_world
from transformer_mt.training.run_directory import FRESH
from transformer_mt.workflows.data_report import short_report
from transformer_mt.workflows.parents import parent_of
from transformer_mt.workflows.prepare import prepare_with
from transformer_mt.workflows.synthesis.checking import (
    begin,
    require_own_teacher,
    require_possible,
    require_same,
    require_same_text,
)
from transformer_mt.workflows.synthesis.estimate import Estimate, estimate
from transformer_mt.workflows.synthesis.plan import Part, Plan, Teacher, plan_of
from transformer_mt.workflows.synthesis.records import KEPT, READ, Counts, counts_in, damaged
from transformer_mt.workflows.synthesis.texts import HeldOut, dropped, write_texts
from transformer_mt.workflows.synthesis.translating import is_filtered, translate_shards, write_pairs
from transformer_mt.workflows.train import TrainReport, train_in

REPORT = "report.json"
TEXT_ROW, PREPARED_ROW = "text to translate", "all pairs, prepared"


@dataclass(frozen=True)
class SynthesisReport:
    """The result of a synthesis, or its plan with `dry_run`.

    folder: with the synthetic text
    counts: by step: how many sentences or pairs were read and kept, and how many each rule dropped
    held_out: synthetic sentences that are also in validation or test sets, counted in the files at the end: always 0
    epochs: of the final model, if the config counts in epochs
    train:  the final training
    steps:  of a plan
    """

    method: str
    folder: Path
    counts: dict[str, Counts] = field(default_factory=dict)
    held_out: int = 0
    epochs: int | None = None
    train: TrainReport | None = None
    steps: Sequence[Estimate] = ()

    def to_json(self) -> dict[str, Any]:
        values = asdict(self) | {"folder": str(self.folder), "train": None}
        if self.train is not None:
            lines = {name: [one.line for one in report.scores.values()] for name, report in self.train.scores.items()}
            values["train"] = {"run": str(self.train.run), "model": str(self.train.model), "scores": lines}
        return values

    @property
    def table(self) -> str:
        """The plan, or the counts, as aligned lines."""
        if self.steps:
            rows = [["step", "about", "disk"], *(one.cells for one in self.steps)]
            return "\n".join(aligned(rows, "<>>"))
        rows = [["text", READ, KEPT, "dropped"]]
        for name, counts in self.counts.items():
            rows.append([name, f"{counts[READ]:,}", f"{counts[KEPT]:,}", dropped(counts)])
        return "\n".join(
            [*aligned(rows, "<>><"), f"synthetic text that is in validation or test: {self.held_out} lines"]
        )


@process_unchanged()
def synthesize(config: ConfigLike, method: str, *, overrides: Overrides = (), dry_run: bool = False) -> SynthesisReport:
    """Train a model on its corpora and on text that models write; the same call goes on after an interruption.

    method:    back, forward, diversify or distill, with the settings of the config's section `synthesis`
    overrides: `key.path=value`, which replace values of the config
    dry_run:   prepare the data, and return the steps with the time and the disk space that they need
    The synthetic text is written to data/synthetic/NAME-METHOD; the final run is runs/NAME-METHOD.
    Under `torchrun`, every process calls this function.
    Raises TmtError for all that the user can fix, and if settings or files have changed since the synthesis began; with
    InterruptionError after an interruption.
    """
    with join_world() as world, ExitStack() as held:
        if world.has_several_hosts:
            one = "Start torchrun on one machine, with all its processors or GPUs."
            world.exit_all(TmtError("a synthesis works on one machine", remedy=one))
        try:
            plan = world.from_main(lambda: plan_of(config_of(config, overrides), method), "the plan")
            world.from_main(lambda: require_possible(plan), "the check of the plan")
            if not dry_run:
                world.from_main(lambda: _lock(plan, held), "the folder of the synthesis")
            prepared = world.from_main(
                lambda: _told(prepare_with(plan.config, parent_of(plan.config, plan.run))), "the data to be prepared"
            )
            if dry_run:
                steps = world.from_main(lambda: estimate(plan, prepared, world), "the estimate")
                return SynthesisReport(method, plan.folder, steps=steps)
            world.from_main(lambda: begin(plan), "the folder of the synthesis")
            return _Synthesis(plan, prepared, world).run()
        except KeyboardInterrupt:
            remedy = "Run the same command again to continue there; what is finished is kept."
            world.exit_all(InterruptionError("interrupted", remedy=remedy))


def _told(prepared: Prepared) -> Prepared:
    """The same data, after its report if it is new: the trainings that follow find it prepared and say nothing."""
    if prepared.is_new:
        print("\n".join(short_report(prepared.report)), file=sys.stderr, flush=True)
    return prepared


def _lock(plan: Plan, held: ExitStack) -> None:
    """Lock the folder. held: releases the lock"""
    plan.folder.mkdir(parents=True, exist_ok=True)
    remedy = "Wait until it ends, or choose another name:  --set name=NEW"
    error = TmtError("another process works on this synthesis", place=plan.folder, remedy=remedy)
    held.enter_context(lock(plan.folder / ".lock", error))
    require_same(plan)  # another process may have begun it since the check


@dataclass
class _Synthesis:
    """One synthesis. prepared: the real pairs. Every process of the world calls its methods, in the same order."""

    plan: Plan
    prepared: Prepared
    world: World
    _step: int = 0

    def run(self) -> SynthesisReport:
        plan, main = self.plan, self.world.from_main
        held_out = HeldOut(self.prepared)
        if self.world.is_main:
            self._warn_of_given(held_out)
        self._begin(TEXT_ROW)
        counts = {TEXT_ROW: main(lambda: write_texts(plan, held_out), TEXT_ROW)}
        done = list[Part]()
        for teachers, parts in plan.rounds:
            main(lambda: self._require_no_leak(done, held_out), "the search for leaks")
            for teacher in (one for one in teachers if one.config is not None):
                self._begin(f"train {teacher.run.name}")
                self._train(teacher)
            for part in parts:
                self._begin(f"translate {part.name}")
                counts[part.name] = self._translate(part, held_out)
                done.append(part)
        self._begin(PREPARED_ROW)
        main(lambda: self._require_no_leak(done, held_out), "the search for leaks")
        final, counts[PREPARED_ROW] = main(self._final, "the data to be prepared")
        self._begin(f"train {plan.name}")
        trained = self._train_in(final, plan.run)
        report = SynthesisReport(plan.method, plan.folder, counts, 0, final.training.max_epochs, trained)
        main(lambda: replace_text(plan.folder / REPORT, json.dumps(report.to_json(), indent=1) + "\n"))
        return report

    def _begin(self, name: str) -> None:
        self._step += 1
        if self.world.is_main:
            steps = len(self.plan.to_train) + len(self.plan.parts) + 3
            print(f"step       {self._step} of {steps}: {name}", file=sys.stderr, flush=True)

    def _warn_of_given(self, held_out: HeldOut) -> None:
        """A note for each given model that was trained on sentences of validation or test sets."""
        for one in self.plan.teachers:
            seen = held_out.seen_by(one) if one.config is None else 0
            if seen is None:
                note(f"{one.run}: unknown whether this model was trained on sentences of validation or test sets")
            elif seen:
                note(f"{one.run}: this model was trained on {number_of(seen, 'sentence')} of validation or test sets")

    def _require_no_leak(self, parts: Sequence[Part], held_out: HeldOut) -> None:
        """Raises TmtError if a synthetic file has a sentence of validation or test sets, or lines too many or few."""
        for file in (file for part in parts for file in self.plan.files_of(part)):
            counts = file.with_suffix(".json")
            try:
                lines, found = held_out.count(file)
            except UnicodeDecodeError:
                raise damaged(file, counts) from None
            if not found and lines != counts_in(counts)[KEPT]:
                raise damaged(file, counts)
            if found:
                problem = f"this file was changed: {number_of(found, 'line')} of it also in validation or test sets"
                remedy = f"Delete {self.plan.folder}, and run the same command again."
                raise TmtError(problem, place=file, remedy=remedy)

    def _train(self, teacher: Teacher) -> None:
        """Train a teacher, or go on with its training; a finished one stays as it is."""

        def is_finished() -> bool:
            recover(teacher.run / MODEL)
            require_own_teacher(teacher)  # another process may have trained it since the check
            if teacher.is_augmented:
                require_same_text(teacher)
            return finished_at(teacher.run) is not None and (teacher.run / MODEL / WEIGHTS).exists()

        def config() -> Config:
            assert teacher.config is not None
            return self._prepared(teacher.config, teacher.run)[0] if teacher.is_augmented else teacher.config

        if not self.world.from_main(is_finished):
            self._train_in(self.world.from_main(config, "the data to be prepared"), teacher.run)

    def _train_in(self, config: Config, run: Path) -> TrainReport:
        try:
            return train_in(self.world, config, run)
        except TmtError as error:
            if FRESH in error.remedy:
                error.remedy += f"\n  `tmt synthesize` has no --fresh: move {run} away, and run the same command again."
            raise

    def _translate(self, part: Part, held_out: HeldOut) -> Counts:
        if not self.world.from_main(lambda: is_filtered(self.plan, part)):
            translate_shards(self.plan, part, self.world)
        return self.world.from_main(lambda: write_pairs(self.plan, part, held_out), "the pairs to be filtered")

    def _final(self) -> tuple[Config, Counts]:
        """The config of the final model, and what became of all pairs, real and synthetic."""
        config, prepared = self._prepared(self.plan.final_config, self.plan.run)
        counts = Counter[str]({READ: 0, KEPT: prepared.report.splits["train"].pairs})
        for split in {"train", WHOLE} & prepared.report.pairs.keys():
            counts[READ] += prepared.report.pairs[split].read
            counts.update(prepared.report.pairs[split].dropped)
        held_out = counts[READ] - sum(count for rule, count in counts.items() if rule != READ)
        if held_out:
            counts["used as validation or test"] = held_out
        return config, dict(counts)

    def _prepared(self, config: Config, run: Path) -> tuple[Config, Prepared]:
        """The config of a model that learns from synthetic pairs, with its epochs, and its data."""
        prepared = _told(prepare_with(config, parent_of(config, run)))
        before, now = self.prepared.pairs_an_epoch, prepared.pairs_an_epoch
        epochs, given = self.plan.epochs(config, before, now), config.training.max_epochs
        is_final = config is self.plan.final_config
        if epochs is not None and given is not None and not (is_final and self.plan.settings.epochs is not None):
            seen = f"{epochs * now:,.0f} pairs, and {given * before:,.0f} with the real pairs alone"
            note(f"{'the final model' if is_final else run.name} is trained for max_epochs {epochs}: it sees {seen}")
        training = config.training.model_copy(update={"max_epochs": epochs})
        return config.model_copy(update={"training": training}), prepared
