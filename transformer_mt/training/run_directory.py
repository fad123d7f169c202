"""The run directory: what it contains, and whether a config may continue the run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.choices import chosen
from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.load import CONFIG, differences, dump_config
from transformer_mt.config.runs import FACTS, MODEL, STEPS, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.errors import TmtError, from_os_error
from transformer_mt.files.lines import path_of, require_utf8
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import first_free, recover_all, replace_text
from transformer_mt.files.system import IS_WINDOWS
from transformer_mt.training.checkpoint import Checkpoints
from transformer_mt.training.ending import Candidate
from transformer_mt.training.run_facts import (
    FROM_STEP,
    SETTINGS,
    batches_of_updates,
    changed_files,
    config_of_run,
    starts_of,
)

IN_PYTHON, FRESH = " (in Python: run_dir)", "--fresh (in Python: fresh=True)"
# Keys that may change when a run continues: when it ends, what it saves and shows, and where it runs.
CHANGEABLE = (
    "training.max_epochs",
    "training.max_steps",
    "training.max_minutes",
    "training.patience",
    "training.validate_every",
    "training.keep_last",
    "training.keep_best",
    "training.average",
    "training.average_checkpoints",
    "training.bleu_sentences",
    "training.checkpoint_every",
    "training.tracker",
    "decoding.",
    "synthesis.",
    "runtime.",
    "data.workers",
    "data.prepared",
)
START = "training.start_from:"
# These keys change the validation BLEU. If BLEU decides which checkpoint is best, they must not change.
BLEU_KEYS = (
    "training.bleu_sentences",
    "decoding.max_length_ratio",
    "decoding.max_length_offset",
    "decoding.min_length_ratio",
    "decoding.no_repeat_ngram",
)


class FinalModel(NamedTuple):
    """What model/ contains: the mean of the checkpoints of these steps.

    by:        who wrote it: train or average
    why:       why these steps; empty if there was nothing to choose from
    compared:  what it was chosen from, with the figures that decided
    criterion: settings that the figures depend on
    """

    steps: list[int]
    by: str
    why: str = ""
    compared: Sequence[Candidate] = ()
    criterion: Mapping[str, Any] = {}

    @property
    def made_of(self) -> str:
        """The checkpoints in words; that of step 0 is the model that training started from."""
        if self.steps == [0]:
            return "the parent: no checkpoint of this run is better"
        steps = ", ".join(f"{step:,}" for step in self.steps)
        return f"checkpoint of step {steps}" if len(self.steps) == 1 else f"mean of the checkpoints of steps {steps}"

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "compared": [asdict(one) for one in self.compared]}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FinalModel:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError if the values are damaged."""
        steps, compared = [int(step) for step in values["steps"]], values.get("compared", ())
        found = [Candidate(**one) for one in compared]
        return cls(steps, str(values["by"]), str(values.get("why", "")), found, dict(values.get("criterion", {})))


class RunDirectory:
    """runs/NAME: config.yaml, run.json, checkpoints/, metrics.jsonl, train.log, plots/, model/, parent/."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model = folder, folder / MODEL
        self.checkpoints = Checkpoints(folder / "checkpoints")
        recover_all(folder)
        recover_all(self.checkpoints.folder)
        self._held = ExitStack()  # closing it releases the lock

    def contains(self, path: Path) -> bool:
        """Whether a file or folder is in the folder of the run, or is this folder itself."""
        return path.resolve().is_relative_to(self.folder.resolve())

    def final_model(self, among: Sequence[Candidate], criterion: Mapping[str, Any]) -> FinalModel | None:
        """What model/ contains, if it is up to date; None if the model must be written.

        It is up to date if it is the only candidate, if it was chosen from these candidates by this criterion, or if
        `tmt average` wrote it with the newest checkpoint in it.
        """
        final = self.recorded_model()
        if final is None:
            return None
        if final.by == "average":
            return final if final.steps[-1:] == self.checkpoints.steps()[-1:] else None
        if len(among) == 1:
            return final if final.steps == among[0].steps else None
        same = [one.steps for one in final.compared] == [one.steps for one in among]
        return final if same and final.criterion == criterion else None

    def recorded_model(self) -> FinalModel | None:
        """What was recorded about model/; None if there is no record, or if it is damaged."""
        try:
            return FinalModel.from_json(json.loads((self.model / STEPS).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def record_final_model(self, final: FinalModel) -> None:
        """Write what the model is made of, for `final_model`."""
        replace_text(self.model / STEPS, json.dumps(final.to_json()))

    @property
    def finished_step(self) -> int | None:
        """With which update the run ended the last time; None if it never has."""
        return next((one.get("step") for one in reversed(self._ends(starts_of(self.folder)))), None)

    @staticmethod
    def _ends(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [one["finished"] for one in history if isinstance(one.get("finished"), dict)]

    def record_finish(self, step: int, final: FinalModel) -> None:
        """Write to run.json when the training ended at this step, and which model it made.

        The time stays if it ended at the same step before. `tmt average` does not come here: the default model is that
        of the run that finished last (`decoding.finding`).
        """
        history = starts_of(self.folder)
        known = [one["time"] for one in self._ends(history) if one.get("step") == step]
        when = known[-1] if known else round(time.time(), 2)
        finished = {"time": when, "step": step, "run": self.folder.resolve().name, "model": final.to_json()}
        history = history or [{}]
        history[-1] = {**history[-1], "finished": finished}
        replace_text(self.folder / FACTS, json.dumps(history, indent=1))

    def update_model_config(self, config: Config) -> None:
        """Write this config to the final model: the decoding section may have changed."""
        try:
            replace_text(self.model / CONFIG, dump_config(config))
        except OSError as error:
            raise from_os_error(error, "writing the model's config") from None

    def move_aside(self) -> Path | None:
        """Rename the folder of a previous run and return the new path; None if there is no previous run.

        Raises TmtError if the folder does not contain a run, or if the current folder is in it.
        """
        if not self.folder.exists():
            return None
        self._require_run()
        if not (self.folder / FACTS).exists():
            return None
        if self.contains(Path.cwd()):
            raise TmtError(
                "--fresh would rename the current folder",
                place=self.folder.resolve(),
                remedy=f"Change to another folder, and give this one as --run-dir{IN_PYTHON}.",
            )
        self.lock()
        folder = self.folder.resolve()
        is_link = self.folder.is_symlink() and os.access(folder.parent, os.W_OK) and not os.path.ismount(folder)
        folder = folder if is_link else self.folder  # else the link itself gets another name
        place = first_free(lambda number: folder.with_name(f"{folder.name}.{number}"))
        if IS_WINDOWS:
            self.close()  # a folder with an open file cannot be renamed there
        try:
            folder.rename(place)
            if is_link:
                folder.mkdir()  # the link goes on leading to the current run, on the disk that was chosen for it
            return place
        except OSError as error:
            raise from_os_error(error, "renaming the folder of the previous run") from None

    def bring_back(self, place: Path) -> None:
        """Undo `move_aside`, if the new run has neither a checkpoint nor a model. place: what `move_aside` returned"""
        folder = self.folder.resolve() if self.folder.is_symlink() else self.folder
        with suppress(OSError, TmtError):
            if folder.exists():
                self.lock()  # another process may have begun here
            if not self.checkpoints.steps() and not self.model.exists():
                self.close()
                shutil.rmtree(folder, ignore_errors=True)
                place.rename(folder)

    def open(self, config: Config, facts: dict[str, Any]) -> list[str]:
        """Create the folder, or check that this config may continue the run in it with this data.

        Returns the config keys that have changed, as `key: value of the run | new value`; all of them may change.
        Raises TmtError: with the changed keys that may not change; if the corpus has changed; if another process trains
        here; if the folder cannot be written.
        """
        try:
            require_utf8(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._require_run()
            self.lock()
            history = starts_of(self.folder)
            if not history and self.checkpoints.steps():  # it says what the checkpoints were trained on
                remedy = f"Bring the old file back, or start again with {FRESH}; that moves the previous run to NAME.1."
                raise TmtError("the file is damaged", place=self.folder / FACTS, remedy=remedy)
            self._require_checkpoints(history)
            changed = self.require_same(config, facts.get("processes", 1))
            if history:
                self.require_same_corpus(facts)
            settings = without_credentials_in(config.model_dump(mode="json"))
            facts = {**facts, FROM_STEP: max(self.checkpoints.steps(), default=0), SETTINGS: settings}
            # run.json first: it marks the folder as a run directory
            replace_text(self.folder / FACTS, json.dumps([*history, facts], indent=1))
            replace_text(self.folder / CONFIG, dump_config(config))
            return changed
        except OSError as error:
            raise from_os_error(error, "opening the run directory") from None

    def _require_checkpoints(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Raises TmtError if the checkpoints of a trained run are gone: it would begin again, and replace its model.

        history: its starts
        """
        has_trained = self._ends(history) or (history and history[-1].get(FROM_STEP)) or (self.model / WEIGHTS).exists()
        if has_trained and not self.checkpoints.steps():
            raise TmtError(
                "this run has been trained, but its checkpoints are gone, so it cannot continue",
                place=self.checkpoints.folder,
                remedy="Bring them back. To train its model further, start a run of another name from it:"
                f" training.start_from={self.folder}. Or start again with {FRESH}; that moves this run to NAME.1.",
            )

    def found(self, config: Config, processes: int = 1) -> Found:
        """What is here of the run of this config."""
        history = starts_of(self.folder)
        if not history:
            return Found()
        try:
            self.require_same(config, processes)
        except TmtError:
            return Found(is_another=True)
        first = {key: value for key, value in history[0].items() if key != "finished"}
        identity = hashlib.sha256(json.dumps(first, sort_keys=True).encode()).hexdigest()
        return Found(identity, max(self.checkpoints.steps(), default=-1))

    def changed_files(self, facts: Mapping[str, Any]) -> list[str]:
        """The files of a corpus that have other content than at the last start of the run; they may have moved."""
        return changed_files(self._last_start(), facts)

    def was_started_by(self, launchers: Sequence[str]) -> bool:
        """Whether one of these started this run already: `torchrun` starts its command again after a failure."""
        return bool(set(self._last_start().get("launchers", ())) & set(launchers))

    def _last_start(self) -> dict[str, Any]:
        """Facts about the last start of this run; empty if there was none."""
        return (self.starts or [{}])[-1]

    @property
    def starts(self) -> list[dict[str, Any]]:
        """Facts about each start of this run, oldest first."""
        return starts_of(self.folder)

    def close(self) -> None:
        """Release the lock, so that other processes may train here."""
        self._held.close()

    def _require_run(self) -> None:
        """Raises TmtError if the folder contains files but no run."""
        if (self.folder / FACTS).exists():
            return
        others = [path.name for path in self.folder.iterdir() if not path.name.startswith(".")]
        if others:
            raise TmtError(
                f"this folder contains files ({', '.join(sorted(others)[:3])}) but no run",
                place=self.folder,
                remedy=f"Give a new or empty folder as --run-dir{IN_PYTHON}.",
            )

    def lock(self) -> None:
        """Take the lock of the folder. Raises TmtError if another process has it."""
        self.close()
        remedy = f"Wait until it ends. A training may also have another --run-dir{IN_PYTHON}."
        held = TmtError("another process is training here", place=self.folder, remedy=remedy)
        try:
            self._held = lock(self.folder / ".lock", held)
        except OSError as error:
            raise from_os_error(error, "locking the folder of a run") from None

    def require_same_corpus(self, facts: Mapping[str, Any]) -> None:
        """Raises TmtError if the corpus or the tokenizers have other content than at the last start of the run.

        facts: with those of `Prepared.identity`; without `tokenizers`, only the corpus. Its files may have moved.
        """
        last = self._last_start()
        if changed := changed_files(last, facts):
            raise TmtError(
                "the corpus has changed since this run started: " + ", ".join(changed),
                place=self.folder,
                remedy=f"Restore the old files, or start again with {FRESH}; that moves the previous run to NAME.1.",
            )
        own = last.get("tokenizers") or ""  # older versions wrote none
        if own and own != facts.get("tokenizers", own):
            raise TmtError(
                "the data was prepared again since this run started, and its tokenizers differ now",
                place=self.folder,
                remedy=f"Prepare it with the packages of the run (run.json names them), or start again with {FRESH}.",
            )

    def require_same(self, config: Config, processes: int = 1) -> list[str]:
        """The keys that differ from the run's config. Raises TmtError if one of them may not change.

        training.accumulate may, if an update of these processes has as many batches as in an earlier start.
        """
        known = config_of_run(self.folder)
        if known is None:
            return []
        changed = differences(known, config)
        fixed: tuple[str, ...] = BLEU_KEYS if config.training.monitor == "bleu" else ()
        schedule, _ = chosen("schedule", config.training.schedule)
        fixed += ("training.validate_every",) if schedule.reads_validation else ()
        free: tuple[str, ...] = CHANGEABLE
        if processes * config.training.accumulate in batches_of_updates(starts_of(self.folder)):
            free = (*CHANGEABLE, "training.accumulate:")
        refused = [line for line in changed if line.startswith(fixed) or not line.startswith(free)]
        if refused:
            start, only_at_start = config.training.start_from, any(line.startswith(START) for line in refused)
            note = "A run reads training.start_from only at its start. " if only_at_start else ""
            again = f"Choose another --run-dir or name, restore the old values, or start again with {FRESH};"
            again += " that moves the previous run to NAME.1."
            has_model = (self.model / WEIGHTS).exists()
            if not only_at_start and (has_model or self.checkpoints.steps()):
                make = "" if has_model else f"make one with tmt average --run {self.folder} --last 1, and "
                again += f" To train its model further with other settings, {make}start a run of another name with"
                again += f" training.start_from={self.folder}."
            if start is not None and self.contains(path_of(start)):
                again = "Choose another --run-dir or name: a run cannot start from its own model."
            raise TmtError(
                "this folder contains a run with another config; these keys differ (value of the run | new value)\n    "
                + "\n    ".join(refused),
                place=self.folder,
                remedy=note + again,
            )
        return changed


class Found(NamedTuple):
    """What a machine has on its disk of a run: the identity of the run and the step of its newest checkpoint.

    run:  empty if there is no run, or none that this config may continue
    step: -1 without a checkpoint
    is_another: whether there is a run that this config may not continue
    """

    run: str = ""
    step: int = -1
    is_another: bool = False
