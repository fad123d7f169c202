"""The trials of a search, kept by Optuna in a journal: which values come next, and how good they were.

Optuna's tree-structured Parzen estimator (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization") proposes
values. Which trial is stopped, `halving` decides. Optuna is imported when it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transformer_mt.config.load import key_values
from transformer_mt.config.schema import Config
from transformer_mt.config.space import Choices, Range, Space
from transformer_mt.errors import TmtError

_NEAR = 1e-4  # of a step, or of a range without steps: by how much rounding may move a value
_DRAWS = 200  # of values that were tried before, until the search ends
DUPLICATE, MESSAGE, SECONDS, TIMES, ENDED = "duplicate", "message", "seconds", "times", "ended"

State = Literal["complete", "stopped", "failed", "unfinished"]
Measure = Literal["loss", "bleu"]


@dataclass(frozen=True)
class Trial:
    """One trial as it is recorded.

    number:  from 0; it names the folder
    values:  by key
    scores:  validation loss or BLEU, by the number of the validation
    times:   minutes since the start of the search, by the number of the validation
    seconds: that it took, over all starts
    message: why it failed
    ended:   why its training was ended, if that was decided
    """

    number: int
    state: State
    values: dict[str, Any]
    scores: dict[int, float] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    message: str = ""
    ended: str = ""

    @property
    def validations(self) -> int:
        return max(self.scores, default=0)

    def score(self, measure: Measure) -> float | None:
        """Its best validation; None without one, or if it failed."""
        best = max if measure == "bleu" else min
        return None if self.state == "failed" or not self.scores else best(self.scores.values())


def ranked(trials: Sequence[Trial], measure: Measure) -> list[Trial]:
    """The trials that have a score, the best first; of equal ones, the first."""
    sign = -1 if measure == "bleu" else 1
    scored = [(sign * score, one.number, one) for one in trials if (score := one.score(measure)) is not None]
    return [one for _, _, one in sorted(scored)]


def has_trials(journal: Path) -> bool:
    """Whether a trial was drawn, or the journal is damaged. Raises TmtError if Optuna is not installed."""
    optuna = _optuna()
    if not journal.exists():
        return False
    try:
        storage = _storage(optuna, journal)
        found = [one for study in storage.get_all_studies() for one in storage.get_all_trials(study._study_id)]
    except (ValueError, KeyError, TypeError):
        return True
    return any(one.state.name != "WAITING" for one in found)


def _storage(optuna: Any, journal: Path) -> Any:
    _remove_incomplete_line(journal)
    journals = optuna.storages.journal
    return optuna.storages.JournalStorage(journals.JournalFileBackend(str(journal), _NoLock()))


class Study:
    """All trials of a search. Only one process at a time may use a journal: the caller holds a lock."""

    def __init__(self, journal: Path, space: Space, config: Config, measure: Measure) -> None:
        """Open the journal, or start it. Raises TmtError if Optuna is not installed, or the journal is damaged."""
        self._optuna = _optuna()
        self.space, self.seed, self.measure = space, config.seed, measure
        self._distributions = {key: self._distribution(one) for key, one in space.ranges.items()}
        try:
            self._study = self._optuna.create_study(
                storage=_storage(self._optuna, journal),
                study_name="tune",
                load_if_exists=True,
                direction="maximize" if measure == "bleu" else "minimize",
                pruner=self._optuna.pruners.NopPruner(),
            )
            self._own = self._own_params(config)
            for one in self._study.trials:
                if one.state.name == "RUNNING" and self._is_half_drawn(one):
                    self._study.tell(self._live(one), state=self._optuna.trial.TrialState.FAIL)
        except (ValueError, KeyError, TypeError) as error:
            remedy = "Remove the folder of this search, or choose another one with --run-dir."
            raise TmtError(f"the journal of the search is damaged: {error}", place=journal, remedy=remedy) from None
        if self._own is not None and all(map(self._is_half_drawn, self._study.trials)):
            self._study.enqueue_trial(self._own)

    def _is_half_drawn(self, one: Any) -> bool:
        """Whether the process was killed before all values of the trial were in the journal. It was never trained."""
        return one.state.name != "WAITING" and not all(key in one.params for key in self._distributions)

    def _distribution(self, one: Range | Choices) -> Any:
        kinds = self._optuna.distributions
        if isinstance(one, Choices):
            return kinds.CategoricalDistribution([json.dumps(value) for value in one.values])
        if one.is_whole:
            return kinds.IntDistribution(int(one.low), int(one.high), one.log, int(one.step or 1))
        return kinds.FloatDistribution(one.low, one.high, one.log, one.step)

    def _own_params(self, config: Config) -> dict[str, Any] | None:
        """The values of the config as Optuna has them; None if the space does not have them all."""
        own = key_values(config, list(self.space.ranges))
        params = {
            key: json.dumps(one.same_as(value)) if isinstance(one := self.space.ranges[key], Choices) else value
            for key, value in own.items()
        }
        has_all = all(_contains(self._distributions[key], value) for key, value in params.items())
        return params if has_all else None

    @property
    def has_own(self) -> bool:
        """Whether the first trial has the values of the config."""
        return self._own is not None

    @property
    def seconds(self) -> float:
        """Time spent on the search, over all starts."""
        return float(self._study.user_attrs.get(SECONDS, 0.0))

    def spend(self, seconds: float) -> None:
        """Record the time spent over all starts."""
        self._study.set_user_attr(SECONDS, round(seconds, 2))

    def trials(self) -> list[Trial]:
        """All trials by number, without those that repeat another one."""
        return [self._trial(number, one) for number, one in enumerate(self._counted())]

    def _counted(self) -> list[Any]:
        """The trials as Optuna has them; the number of a trial is its place here."""
        return [one for one in self._drawn() if DUPLICATE not in one.user_attrs]

    def _drawn(self) -> list[Any]:
        return [one for one in self._study.trials if one.state.name != "WAITING" and not self._is_half_drawn(one)]

    def _trial(self, number: int, one: Any) -> Trial:
        states: dict[str, State] = {"COMPLETE": "complete", "PRUNED": "stopped", "FAIL": "failed"}
        attributes = one.user_attrs
        times = {int(number): minutes for number, minutes in attributes.get(TIMES, {}).items()}
        return Trial(
            number,
            states.get(one.state.name, "unfinished"),
            self._values(one.params),
            dict(one.intermediate_values),
            times,
            attributes.get(SECONDS, 0.0),
            attributes.get(MESSAGE, ""),
            attributes.get(ENDED, ""),
        )

    def _values(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The values for the config, in the order of the space; those of the config itself with all their digits."""
        own = self._own or {}
        return {
            key: params[key] if isinstance(one, Range) and params[key] == own.get(key) else _value(one, params[key])
            for key, one in self.space.ranges.items()
        }

    def next(self) -> Trial | None:
        """The trial that was interrupted, or a new one; None if all combinations of values were tried.

        A new one depends on the seed and on the trials before it, not on the number of starts.
        """
        for _ in range(_DRAWS):
            running = [one for one in self._study.trials if one.state.name == "RUNNING"]
            if running:
                asked = running[0]
            elif len(self._counted()) >= self.space.size:
                return None
            else:
                asked = self._draw()
            before = [one for one in self._counted() if one.number < asked.number]
            if all(self._values(one.params) != self._values(asked.params) for one in before):
                return self._trial(len(before), asked)
            live = self._live(asked)
            live.set_user_attr(DUPLICATE, True)
            self._study.tell(live, state=self._optuna.trial.TrialState.FAIL)
        return None

    def _draw(self) -> Any:
        seed = (self.seed * 1_000_003 + len(self._drawn())) % 2**32
        self._study.sampler = self._optuna.samplers.TPESampler(seed=seed)
        asked = self._study.ask(self._distributions)
        return self._study.trials[asked.number]

    def _live(self, one: Any) -> Any:
        """Optuna's object to report to, also for a trial that another process began."""
        return self._optuna.trial.Trial(self._study, one._trial_id)

    def report(self, number: int, validation: int, score: float, minutes: float, seconds: float) -> None:
        """Record a validation of a trial.

        minutes: since the start of the search; seconds: that the trial took so far
        """
        known = self._counted()[number]
        live, times = self._live(known), known.user_attrs.get(TIMES, {})
        if validation not in known.intermediate_values:  # else it was killed before its checkpoint was written
            live.report(score, validation)
            live.set_user_attr(SECONDS, round(seconds, 2))
        if str(validation) not in times:
            live.set_user_attr(TIMES, {**times, str(validation): round(minutes, 3)})

    def end(self, number: int, why: str) -> None:
        """Record that a trial is stopped, before its training ends."""
        self._live(self._counted()[number]).set_user_attr(ENDED, why)

    def pause(self, number: int, seconds: float) -> None:
        """Record how long a trial took that goes on at the next start."""
        self._live(self._counted()[number]).set_user_attr(SECONDS, round(seconds, 2))

    def finish(self, number: int, state: State, seconds: float, message: str = "") -> None:
        """Record how a trial ended. message: why it failed"""
        states, live = self._optuna.trial.TrialState, self._live(self._counted()[number])
        live.set_user_attr(SECONDS, round(seconds, 2))
        if state == "complete":
            best = self.trials()[number].score(self.measure)
            self._study.tell(live, best)
            return
        if message:
            live.set_user_attr(MESSAGE, message)
        self._study.tell(live, state=states.FAIL if state == "failed" else states.PRUNED)


def _value(one: Range | Choices, param: Any) -> Any:
    """What Optuna drew, for the config: numbers with six digits, so that 0.15 is not 0.15000000000000002.

    With more digits in a range so narrow that six would move them far in it.
    """
    if isinstance(one, Choices):
        return json.loads(param)
    if one.is_whole:
        return int(param)
    near = _NEAR * (one.step or one.high - one.low)
    rounded = (float(f"{param:.{digits}g}") for digits in range(6, 18))  # 17 digits are exact
    return min(one.high, max(one.low, next(number for number in rounded if abs(number - param) <= near)))


def _contains(distribution: Any, value: Any) -> bool:
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (ValueError, TypeError):
        return False


def _optuna() -> Any:
    """The module. Raises TmtError if it is not installed."""
    try:
        import optuna
    except ImportError:
        remedy = "pip install optuna   or in a clone of the repository:"
        remedy += "  pip install -c scripts/constraints.txt -e '.[tune]'"
        raise TmtError("Optuna is not installed", place="tmt tune", remedy=remedy) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class _NoLock:
    """The folder is locked already. A lock of Optuna would be left behind by a killed process."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _remove_incomplete_line(journal: Path) -> None:
    """Remove what a killed process wrote of its last line."""
    if not journal.exists():
        return
    with journal.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
