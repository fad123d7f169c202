"""The search space of `tmt tune`: keys of the config with the values to try, read from YAML and checked at once.

training.learning_rate: {low: 0.001, high: 0.03, log: true}
model.d_model: [128, 192, 256]
"""

from __future__ import annotations

import copy
import difflib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from transformer_mt.config.inheritance import FREE_OF_MODELS
from transformer_mt.config.load import key_path, put_value, value_at
from transformer_mt.config.problems import plain, problems_of_values, value_problem
from transformer_mt.config.schema import Config
from transformer_mt.config.section import Section
from transformer_mt.config.yaml_source import KeyPath, NoKeysError, YamlSource, read_yaml, shown_problems
from transformer_mt.errors import TmtError, checked_path

Spec = Mapping[str, Any]
_LIMIT = "it decides how long a trial is; change it for all trials with --set"
_LATER = "it has no effect on the validation of a training"
# Keys that cannot be searched, and why.
FIXED = {
    "name": "it is the name of the run",
    "seed": "it only changes the random numbers: the best of several seeds is the luckiest, not a better config",
    "data.": "it changes the validation sentences or the languages, so that trials would not compare",
    "decoding.": _LATER,
    "synthesis.": "it has no effect on a training; only tmt synthesize reads it",
    "runtime.": "it says where and how to compute",
    **dict.fromkeys(("training.max_epochs", "training.max_steps", "training.max_minutes"), _LIMIT),
    **dict.fromkeys(("training.validate_every", "training.patience"), _LIMIT),
    **dict.fromkeys(("training.monitor", "training.bleu_sentences"), "it is what trials are compared by"),
    **dict.fromkeys(("training.keep_last", "training.keep_best", "training.checkpoint_every"), _LATER),
    **dict.fromkeys(("training.average", "training.average_checkpoints"), _LATER),
    "training.tracker": "it says where figures are sent",
    "training.start_from": "its tokenizers would differ between trials",
}
_MOST_STEPS = 1_000_000  # of a range
TOKENIZERS = "tokenizer"  # keys of this section change the prepared data


class RangeKeys(Section):
    """A range as it is written."""

    low: float = Field(description="smallest value")
    high: float = Field(description="largest value")
    step: float | None = Field(None, gt=0, description="distance between values; null: any number")
    log: bool = Field(False, description="draw evenly on a logarithmic scale")


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included. is_whole: only whole numbers"""

    low: float
    high: float
    step: float | None = None
    log: bool = False
    is_whole: bool = False

    def __str__(self) -> str:
        step = f" in steps of {_exact(self.step)}" if self.step is not None else ""
        return f"{_exact(self.low)} to {_exact(self.high)}{step}{', logarithmic' if self.log else ''}"


@dataclass(frozen=True)
class Choices:
    """The values of a list."""

    values: tuple[Any, ...]

    def same_as(self, value: Any) -> Any:
        """The value as the list has it, for example 1 instead of 1.0; if it is not there, the value itself."""
        equal = (one for one in self.values if one == value and isinstance(one, bool) == isinstance(value, bool))
        return next(equal, value)

    def __str__(self) -> str:
        return "one of " + ", ".join(_exact(one) if isinstance(one, float) else shown(one) for one in self.values)


@dataclass(frozen=True)
class Space:
    """The values to try, by key such as `training.learning_rate`."""

    ranges: dict[str, Range | Choices]

    @property
    def changes_tokens(self) -> bool:
        """Whether trials have different vocabularies, so that their losses do not compare."""
        return any(key.split(".")[0] == TOKENIZERS for key in self.ranges)

    @property
    def size(self) -> float:
        """The number of combinations; infinite with a range without steps."""
        return math.prod(map(_number_of_values, self.ranges.values()))

    def to_json(self) -> dict[str, Any]:
        return {key: list(one.values) if isinstance(one, Choices) else asdict(one) for key, one in self.ranges.items()}


def short_names(keys: Sequence[str]) -> list[str]:
    """The last part of each key; the whole key if two have the same."""
    lasts = [key.rpartition(".")[2] for key in keys]
    return [last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)]


def shown(value: Any) -> str:
    """A value in a table or a message: as in YAML, on one line.

    A number with four digits, or with all if four would move it much nearer to 0 or 1, as with a decay of 0.99996.
    """
    if isinstance(value, float):
        short = f"{value:.4g}"
        return short if abs(float(short) - value) <= 1e-3 * min(abs(value), abs(1 - value)) else _exact(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _exact(number: float) -> str:
    """In few digits, if these are all."""
    text = f"{number:g}"
    return text if float(text) == number else repr(number)


def _number_of_values(one: Range | Choices) -> float:
    if isinstance(one, Choices):
        return len(one.values)
    step = one.step or (1 if one.is_whole else 0)
    return round((one.high - one.low) / step) + 1 if step else math.inf


def read_space(space: str | Path | Mapping[str, Any], config: Config) -> Space:
    """Read a search space, from a file or as its values, and check each key and value against the schema.

    config: the values of all other keys. Raises TmtError with all problems, each with its line.
    """
    if isinstance(space, Mapping):
        source = YamlSource("the search space", plain(space), {})
    else:
        source = _read(checked_path(space))
    if not source.values:
        raise TmtError("the search space is empty", place=source.file, remedy=_EXAMPLE)
    base = config.model_dump(mode="json")
    ranges: dict[str, Range | Choices] = {}
    problems: dict[str, int] = {}
    for key, spec in source.values.items():
        found = _Key(str(key), spec, source, base)
        try:
            ranges[str(key)] = found.read()
        except _ProblemError as error:
            for sentence, path in error.args[0]:
                problems[f"{source.place(path)}: {sentence}"] = source.line(path)
    for key, other in itertools.permutations(ranges, 2):
        if other.startswith(f"{key}."):
            place = source.place((other,))
            problems[f"{place}: '{other}' is part of '{key}', which is searched too"] = source.line((other,))
    if problems:
        keys = "this key" if len(problems) == 1 else f"these {len(problems)} problems"
        lines = sorted(problems, key=lambda sentence: problems[sentence])
        raise TmtError("\n".join(shown_problems(lines)), remedy=f"Fix {keys} in {source.file}. {_EXAMPLE}")
    if config.training.start_from is not None and (fixed := [key for key in ranges if _is_of_parent(key)]):
        raise TmtError(
            f"with training.start_from, these keys cannot be searched: {', '.join(fixed)}",
            place=source.file,
            remedy="They must be those of the model that training starts from, or would give trials different tokens."
            " Remove these keys.",
        )
    return Space(ranges)


def _is_of_parent(key: str) -> bool:
    """Whether a key decides the tokens, or what the weights of the model to start from mean."""
    section, _, name = key.partition(".")
    return section == TOKENIZERS or (section == "model" and name not in FREE_OF_MODELS)


def _read(file: Path) -> YamlSource:
    if not Path(file).exists():
        raise TmtError(
            "no such file with a search space", place=file, remedy=f"Check the path, or write it. {_EXAMPLE}"
        )
    try:
        return read_yaml(file)
    except NoKeysError as error:
        raise TmtError("not a search space: the file has no keys", place=error.place, remedy=_EXAMPLE) from None


_EXAMPLE = "A line is  training.learning_rate: {low: 0.001, high: 0.03, log: true}  or  model.d_model: [128, 256]"


class _ProblemError(Exception):
    """Problems of a key: pairs of a sentence and the place in the file."""


@dataclass(frozen=True)
class _Key:
    """One line of the space. base: the values of the config"""

    key: str
    spec: Any
    source: YamlSource
    base: dict[str, Any]

    def read(self) -> Range | Choices:
        if any(key.startswith(f"{self.key}.") and key != f"{self.key}." for key in FIXED):
            raise self._problem(f"'{self.key}' is a section; name its keys, such as {self.key}.KEY")
        reason = next((why for key, why in FIXED.items() if self._is(key)), None)
        if reason is not None:
            raise self._problem(f"'{self.key}' cannot be searched: {reason}")
        whole = self.key.rpartition(".")[0]
        if isinstance(value_at(self.base, key_path(whole)), list):
            raise self._problem(f"'{self.key}' is one value of a list; give whole lists:  {whole}: [[...], [...]]")
        if isinstance(self.spec, list):
            return self._choices(self.spec)
        if isinstance(self.spec, Mapping):
            return self._range(self.spec)
        raise self._problem(f"'{self.key}' needs a list of values, or a range {{low: ..., high: ...}}")

    def _is(self, fixed: str) -> bool:
        return f"{self.key}.".startswith(fixed if fixed.endswith(".") else f"{fixed}.")

    def _problem(self, sentence: str, *inside: str | int) -> _ProblemError:
        return _ProblemError([(sentence, (self.key, *inside))])

    def _choices(self, values: list[Any]) -> Choices:
        if not values:
            raise self._problem(f"'{self.key}' has no values")
        texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
        if len(set(texts)) < len(texts):
            raise self._problem(f"'{self.key}' has the same value twice")
        problems = [(text, (self.key, n)) for n, value in enumerate(values) for text in self._wrong(value)]
        if problems:
            raise _ProblemError(list(dict.fromkeys(problems)))
        return Choices(tuple(values))

    def _range(self, spec: Spec) -> Range:
        if "low" not in spec and "high" not in spec:
            inner = next(iter(spec), "key")
            near = difflib.get_close_matches(str(inner), RangeKeys.model_fields, n=1, cutoff=0.6)
            raise self._problem(
                f"unknown key '{self.key}.{inner}'; did you mean '{near[0]}'?"
                if near
                else f"'{self.key}' needs `low` and `high`; write keys inside of a section with dots, such as"
                f" {self.key}.{inner}"
            )
        try:
            found = RangeKeys.model_validate(spec)
        except ValidationError as error:
            raise _ProblemError([self._of_pydantic(dict(item)) for item in error.errors()]) from None
        for problem in self._contradictions(found):
            raise self._problem(problem)
        ends = [("low", spec["low"]), ("high", spec["high"])]
        problems = [(text, (self.key, name)) for name, value in ends for text in self._wrong(value)]
        if problems:
            raise _ProblemError(list(dict.fromkeys(problems)))
        is_whole = all(isinstance(spec[name], int) for name, _ in ends) and bool(
            self._wrong(found.low + 0.37 * max(1.0, found.high - found.low))
        )
        if is_whole and found.step is not None and found.step != int(found.step):
            raise self._problem(f"the step of '{self.key}' is {found.step:g}, but must be a whole number")
        return Range(**found.model_dump(), is_whole=is_whole)

    def _of_pydantic(self, item: dict[str, Any]) -> tuple[str, KeyPath]:
        name = str(item["loc"][0])
        if item["type"] == "missing":
            return f"'{self.key}' needs '{name}'", (self.key,)
        if item["type"] == "extra_forbidden":
            return f"unknown key '{self.key}.{name}'; known here: low, high, step, log", (self.key, name)
        return f"'{self.key}.{name}' {value_problem(item)}", (self.key, name)

    def _contradictions(self, found: RangeKeys) -> Iterator[str]:
        if found.high < found.low:
            yield f"'{self.key}' has a `low` of {found.low:g} above its `high` of {found.high:g}"
        if found.log and found.low <= 0:
            yield f"'{self.key}' needs a `low` above 0 with log: true"
        if found.log and found.step is not None:
            yield f"'{self.key}' cannot have both `log` and `step`"
        if found.step is not None:
            steps = (found.high - found.low) / found.step
            if steps > _MOST_STEPS:
                yield f"'{self.key}' has more than {_MOST_STEPS:,} steps of {found.step:g}; leave `step` out"
            elif abs(steps - round(steps)) > 1e-6:
                last = found.low + math.floor(steps + 1e-9) * found.step
                yield f"'{self.key}': steps of {found.step:g} do not reach `high`; the last value is {last:g}"

    def _wrong(self, value: Any) -> list[str]:
        """What is wrong with a value of this key by itself; not its contradictions with other keys."""
        values, path = copy.deepcopy(self.base), key_path(self.key)
        try:
            put_value(values, path, value, self.key)
        except TmtError as error:
            return [error.message]
        section, unknown = self.key.rpartition(".")[0], f"unknown key '{self.key}'; did you mean '"
        problems = problems_of_values(values)
        return [  # a key of the space is written with its section
            text.replace(unknown, f"{unknown}{section}.") if section and "." not in text.removeprefix(unknown) else text
            for text in problems
        ]
