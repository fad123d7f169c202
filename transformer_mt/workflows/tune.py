"""Searches for better hyper-parameters within some minutes. The same call continues an interrupted search."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

from transformer_mt.config.load import CONFIG, ConfigLike, Overrides, config_of, differences, dump_config, load_config
from transformer_mt.config.runs import RUNS
from transformer_mt.config.schema import Config
from transformer_mt.config.space import Space, read_space, shown
from transformer_mt.data.prepared import Prepared
from transformer_mt.errors import InterruptionError, TmtError, check_type, checked_number, from_os_error, number_of
from transformer_mt.files.lines import path_of
from transformer_mt.files.lock import lock
from transformer_mt.files.replace import replace_text
from transformer_mt.reporting.program import require_one_process
from transformer_mt.reporting.table import duration
from transformer_mt.runtime.device import process_unchanged
from transformer_mt.training.run_facts import changed_files
from transformer_mt.training.schedules.base import keys_without_effect
from transformer_mt.training.supervisor import Supervisor
from transformer_mt.workflows.data_report import short_report
from transformer_mt.workflows.interruption import interrupted_error
from transformer_mt.workflows.parents import checksum_of_parent
from transformer_mt.workflows.starting import require_trainable
from transformer_mt.workflows.tuning.halving import REDUCTION, first_rung, why_stopped
from transformer_mt.workflows.tuning.results import BEST, HEADINGS, PICTURE, as_json, draw, table, write_best
from transformer_mt.workflows.tuning.study import Measure, State, Study, Trial, has_trials, ranked
from transformer_mt.workflows.tuning.trial import TRIALS, Bench, is_of_machine

# in the folder of a search
SPACE, JOURNAL, PARENT, CORPUS = "space.json", "journal.log", "parent.sha256", "corpus.json"
_MOST_FAILURES = 10  # trials in a row
_FIT = "Choose values that fit together, or a smaller range; another space needs another --run-dir."
_AGAIN = "Run the same command to continue."
_CHANGEABLE = ("runtime.", "data.workers", "data.prepared", "training.tracker")


@dataclass(frozen=True)
class TuneReport:
    """The result of a search.

    measure: what trials are compared by: loss (validation loss per token) or bleu (greedy BLEU of the validation set)
    best:    the config of the best trial, as a file; None if no trial was validated
    seconds: time spent, over all starts
    trials:  all of them, by number
    """

    folder: Path
    measure: Measure
    best: Path | None
    picture: Path | None
    seconds: float
    trials: list[Trial] = field(default_factory=list)
    space: Space = field(default_factory=lambda: Space({}))

    @property
    def ranked(self) -> list[Trial]:
        """The trials that were validated, the best first."""
        return ranked(self.trials, self.measure)

    @property
    def lines(self) -> list[str]:
        """The table of all trials."""
        return table(self.trials, self.space, self.measure)

    def to_json(self) -> dict[str, Any]:
        named = ("folder", self.folder), ("best", self.best), ("picture", self.picture)
        files = {name: str(file) if file is not None else None for name, file in named}
        seconds = round(self.seconds, 1)
        return {"measure": self.measure, "seconds": seconds, **files, "trials": as_json(self.trials, self.measure)}


@process_unchanged()
def tune(
    config: ConfigLike,
    space: str | Path | Mapping[str, Any],
    minutes: float,
    *,
    trials: int | None = None,
    overrides: Overrides = (),
    run_dir: str | Path | None = None,
) -> TuneReport:
    """Train with different values of some keys, and write the config with the best validation.

    config:    a Config or a YAML file: the values of all other keys, and the length of a trial
    space:     the values to try, from a YAML file or by key: a list, or `{"low": ..., "high": ...}`
    minutes:   time for the whole search, over all starts
    trials:    end after this number of trials
    overrides: `key.path=value`, which replace values of the config
    run_dir:   folder of the search; default: runs/NAME-tune
    The same call continues an interrupted search; with more minutes or trials, a finished one.
    Raises TmtError for all that the user can fix, and InterruptionError after an interruption, when all is saved.
    """
    require_one_process("tune")
    settings = config_of(config, overrides)
    check_type(minutes, Real, "minutes", "60")
    if not minutes > 0:
        raise TmtError(f"the search has {minutes:g} minutes", place="--minutes", remedy="Give more than 0 minutes.")
    trials = None if trials is None else checked_number(trials, "trials")
    values = read_space(space, settings)
    measure = _measure_of(settings, values)
    folder = RUNS / f"{settings.name}-tune" if run_dir is None else path_of(run_dir)
    remedy = "Wait until it ends, or choose another --run-dir."
    held = TmtError("another process searches here", place=folder, remedy=remedy)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock", held):
            _open(folder, settings, values)
            study = Study(folder / JOURNAL, values, settings, measure)
            return _Search(settings, values, folder, study, minutes, trials).run()
    except KeyboardInterrupt:
        raise InterruptionError("interrupted; all trials so far are saved", remedy=_AGAIN) from None
    except OSError as error:
        raise from_os_error(error, "writing the search") from None


def _measure_of(config: Config, space: Space) -> Measure:
    """What trials are compared by. Losses of different vocabularies do not compare: BLEU does."""
    if config.training.monitor == "bleu":
        return "bleu"
    if not space.changes_tokens:
        return "loss"
    if not config.training.bleu_sentences:
        raise TmtError(
            "trials with different tokenizers are compared by BLEU, but training.bleu_sentences is 0",
            place="training.bleu_sentences",
            remedy="Set it to the number of validation sentences to translate, such as 500.",
        )
    return "bleu"


def _open(folder: Path, config: Config, space: Space) -> None:
    """Write what is searched to the folder, or check that it is the same. Raises TmtError if it is not."""
    new = json.dumps(space.to_json(), indent=1, ensure_ascii=False)
    elsewhere = "Choose another --run-dir, or remove this folder."
    others = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    if others and not (folder / SPACE).exists():
        names = ", ".join(sorted(others)[:3])
        raise TmtError(
            f"this folder contains files ({names}) but no search", place=folder, remedy="Choose another --run-dir."
        )
    if not (folder / JOURNAL).exists() and any((folder / TRIALS).glob("*")):
        remedy = f"Bring it back. {elsewhere}"
        raise TmtError(
            "this folder contains trials, but not the file that says how they ended",
            place=folder / JOURNAL,
            remedy=remedy,
        )
    if not has_trials(folder / JOURNAL):  # a mistake in the config or the space may have ended it before the first
        (folder / JOURNAL).unlink(missing_ok=True)
        replace_text(folder / SPACE, new)
        replace_text(folder / CONFIG, dump_config(config))
        return
    if (folder / SPACE).read_bytes() != new.encode():
        raise TmtError("this folder contains a search in another space", place=folder / SPACE, remedy=elsewhere)
    if not (folder / CONFIG).exists():
        replace_text(folder / CONFIG, dump_config(config))
    changed = differences(load_config(folder / CONFIG), config)
    if refused := [line for line in changed if not line.startswith(_CHANGEABLE)]:
        what = "this folder contains a search with another config; these keys differ (value there | new value)"
        raise TmtError("\n    ".join([what, *refused]), place=folder, remedy=elsewhere)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Search:
    """One start of a search."""

    def __init__(
        self, config: Config, space: Space, folder: Path, study: Study, minutes: float, most: int | None
    ) -> None:
        self.config, self.space, self.folder, self.study = config, space, folder, study
        self.measure, self.most = study.measure, most
        self.bench = Bench(config, folder)
        self.before, self.started = study.seconds, time.monotonic()
        self.limit = 60 * minutes
        self.estimated = bool(study.trials())

    @cached_property
    def first_rung(self) -> int:
        return first_rung(self.config, self.bench.updates_per_epoch)

    @property
    def spent(self) -> float:
        """Seconds of all starts."""
        return self.before + time.monotonic() - self.started

    def is_over(self) -> bool:
        return self.spent >= self.limit

    def run(self) -> TuneReport:
        self._introduce()
        if not self.is_over():
            self._require_same_parent()
            require_trainable(self.config)
            prepared = self.bench.prepared(self.config)  # these mistakes are not those of a trial
            if prepared.is_new:
                _say("\n".join(short_report(prepared.report)))
            self._require_same_corpus(prepared)
            rungs = ", ".join(str(self.first_rung * REDUCTION**number) for number in range(3))
            _say(f"halving    after validation {rungs}, ...: the best third goes on")
        failures = 0
        try:
            while not self.is_over() and (trial := self._next()) is not None:
                state = self._train(trial)
                failures = failures + 1 if state == "failed" else 0
                if failures == _MOST_FAILURES:
                    self._give_up(trial)
                    break
        finally:
            self.study.spend(self.spent)
        return self._report()

    def _require_same_parent(self) -> None:
        """Raises TmtError if the model to start from is not that of the trials so far."""
        start, file = self.config.training.start_from, self.folder / PARENT
        if start is None:
            return
        now = checksum_of_parent(self.config)
        if not self.study.trials() or not file.exists():
            replace_text(file, now + "\n")
        elif file.read_text(encoding="utf-8").strip() != now:
            raise TmtError(
                f"the model in {start} is not that with which this search began",
                place="training.start_from",
                remedy="Bring that model back, or choose another --run-dir.",
            )

    def _require_same_corpus(self, prepared: Prepared) -> None:
        """Raises TmtError if the corpus has other content than that of the trials so far, which cannot be compared."""
        file, now = self.folder / CORPUS, prepared.identity()
        if not self.study.trials() or not file.exists():
            replace_text(file, json.dumps(now, indent=1, ensure_ascii=False) + "\n")
            return
        try:
            changed = changed_files(json.loads(file.read_text(encoding="utf-8")), now)
        except ValueError:
            remedy = "Delete it, if the corpus is still that of the trials so far."
            raise TmtError("the file is damaged", place=file, remedy=remedy) from None
        if changed:
            raise TmtError(
                f"the corpus has changed since this search began: {', '.join(changed)}",
                place="data.corpus",
                remedy="Restore the old files, or choose another --run-dir.",
            )

    def _next(self) -> Trial | None:
        begun = self.study.trials()
        is_full = self.most is not None and len(begun) >= self.most
        if is_full and all(one.state != "unfinished" for one in begun):
            return None
        trial = self.study.next()
        if trial is None:
            is_all = len(begun) >= self.space.size
            _say(f"note       {'all values were tried' if is_all else 'no other values were drawn'}: the search ends")
        return trial

    def _introduce(self) -> None:
        by = "validation loss per token"
        if self.measure == "bleu":
            why = "losses of different vocabularies do not compare" if self.space.changes_tokens else "training.monitor"
            by = f"greedy BLEU of the validation set: {why}"
        _say(f"search     {self.folder}")
        for key, one in self.space.ranges.items():
            _say(f"           {key}: {one}")
        _say(f"measure    {by}")
        own = "trial 0 has the config's own values"
        if not self.study.has_own:
            own = "the space does not have the config's own values, so no trial has them"
        _say(f"note       {own}")
        searched = self.space.ranges
        for key in [] if "training.schedule" in searched else keys_without_effect(self.config.training):
            if f"training.{key}" in searched:
                _say(f"note       training.{key} has no effect with this training.schedule")
        if begun := self.study.trials():
            _say(f"resumed    {number_of(len(begun), 'trial')} in {duration(self.before)}")

    def _train(self, trial: Trial) -> State:
        """Train one trial; returns its state."""
        begun = time.monotonic() - trial.seconds

        def judge(values: Mapping[str, Any], own: str) -> str:
            ended = self._judge(trial, values, time.monotonic() - begun, bool(own))
            return own or ended

        try:
            if not trial.ended:
                self.bench.train(trial, Supervisor(judge, self.is_over))
        except TmtError as error:
            if isinstance(error, InterruptionError):
                return self._interrupted(trial, time.monotonic() - begun, error)
            if is_of_machine(error):
                raise
            message = error.message.replace("--set: ", "")
            self.study.finish(trial.number, "failed", time.monotonic() - begun, message)
            _say(f"trial {trial.number:<4} failed: {message}")
            self._remove_checkpoints()
            return "failed"
        except KeyboardInterrupt:  # not during an update, where the training waits for a checkpoint
            return self._interrupted(trial, time.monotonic() - begun, interrupted_error(self.bench.place(trial)))
        ended = self._recorded(trial).ended
        state: State = "stopped" if ended else "complete"
        self.study.finish(trial.number, state, time.monotonic() - begun)
        self.study.spend(self.spent)
        self._show(self._recorded(trial))
        self._remove_checkpoints()
        return state

    def _judge(self, trial: Trial, values: Mapping[str, Any], seconds: float, is_last: bool) -> str:
        """Record a validation; returns why the trial is stopped, or an empty text."""
        step, every = int(values["step"]), self.config.training.validate_every
        if not step:  # of the model that training starts from
            return ""
        number = -(-step // every) if every is not None else int(values["epoch"])
        score = float(values[self.measure])
        self.study.spend(self.spent)
        if not self.estimated:
            self.estimated = True
            self._estimate(seconds / number)
        self.study.report(trial.number, number, score, self.spent / 60, seconds)
        if is_last:
            return ""
        ended = why_stopped(self.study.trials()[: trial.number + 1], number, self.first_rung, self.measure)
        if ended:
            self.study.end(trial.number, ended)
        return ended

    def _estimate(self, seconds: float) -> None:
        """Warn if there is little time. seconds: for one validation and the training before it"""
        epochs = self.config.training.max_epochs
        if epochs is not None and self.config.training.validate_every is None and 4 * epochs * seconds > self.limit:
            whole = duration(epochs * seconds)
            _say(f"note       a whole trial of {epochs} epochs takes about {whole}, the search {duration(self.limit)}")
            _say("           for more trials: more --minutes, or shorter ones with --set training.max_epochs=N")

    def _recorded(self, trial: Trial) -> Trial:
        return self.study.trials()[trial.number]

    def _show(self, trial: Trial) -> None:
        score = trial.score(self.measure)
        figure = "-" if score is None else f"{score:.3f}" if self.measure == "loss" else f"{score:.2f}"
        is_best = ranked(self.study.trials(), self.measure)[:1] == [trial]
        state = f"{trial.state} after {trial.validations}"
        values = "  ".join(f"{key.rpartition('.')[2]} {shown(value)}" for key, value in trial.values.items())
        line = f"trial {trial.number:<4} {HEADINGS[self.measure]} {figure}  {state:<18} {duration(trial.seconds)}"
        _say(f"{line}  {values}{'  *' if is_best else ''}")

    def _interrupted(self, trial: Trial, seconds: float, error: TmtError) -> State:
        self.study.pause(trial.number, seconds)
        if self.is_over():
            _say(f"time       is over; trial {trial.number} goes on if the same command gets more --minutes")
            return "unfinished"
        self.study.spend(self.spent)
        raise InterruptionError(f"trial {trial.number}: {error.message}", remedy=_AGAIN) from None

    def _give_up(self, trial: Trial) -> None:
        """Say that so many trials in a row have failed. Raises TmtError if there is no other trial."""
        what = f"the last {_MOST_FAILURES} trials failed"
        if not ranked(self.study.trials(), self.measure):
            message = self._recorded(trial).message
            raise TmtError(f"{what}; the last one: {message}", place=self.bench.place(trial), remedy=_FIT)
        _say(f"note       {what}, so the search ends here; the same command tries others, if there are any")

    def _remove_checkpoints(self) -> None:
        """Keep only the weights of the best trial, and of the one that goes on."""
        trials = self.study.trials()
        best = ranked(trials, self.measure)[:1]
        for one in trials:
            if one not in best and one.state != "unfinished" and (self.bench.place(one) / "checkpoints").exists():
                self.bench.remove_checkpoints(one)

    def _report(self) -> TuneReport:
        trials = self.study.trials()
        best = ranked(trials, self.measure)[:1]
        failed = [one for one in trials if one.state == "failed"]
        if failed and not best:
            what = f"no trial was validated, and {len(failed)} failed; the last one: {failed[-1].message}"
            raise TmtError(what, place=self.bench.place(failed[-1]), remedy=_FIT)
        file = picture = None
        if best:
            file = self.folder / BEST
            write_best(self.config, self.bench.config_of(best[0]), trials, self.space, self.measure, file)
            picture = draw(trials, self.measure, self.folder / PICTURE)
        else:
            _say(f"note       no trial was validated in {duration(self.spent)}: give the same command more --minutes")
        return TuneReport(self.folder, self.measure, file, picture, self.spent, trials, self.space)
