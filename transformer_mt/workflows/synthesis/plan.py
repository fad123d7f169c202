"""What a synthesis does, before it does it: its teachers, its parts, and where their files are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Direction
from transformer_mt.config.load import config_of
from transformer_mt.config.problems import value_problem
from transformer_mt.config.reversal import reversed_config
from transformer_mt.config.runs import RUNS
from transformer_mt.config.schema import Config
from transformer_mt.config.section import SEEDS
from transformer_mt.config.synthesis import Method, SynthesisConfig
from transformer_mt.config.yaml_source import COMMAND_LINE
from transformer_mt.corpora.base import files_like
from transformer_mt.decoding.finding import find_model
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import check_exists, path_of
from transformer_mt.workflows.models import config_of_model

PAIRS, TEXT = "pairs", "text"
TEACHERS = {"back": 1, "forward": 1, "diversify": 3, "distill": 3}  # for each direction
METHODS: tuple[str, ...] = get_args(Method)


class Teacher(NamedTuple):
    """A model that translates.

    run:          its folder
    config:       to train it with; None: it is trained already
    is_augmented: whether it is trained on synthetic pairs too; its `max_epochs` then depends on their number
    """

    run: Path
    direction: Direction
    config: Config | None = None
    is_augmented: bool = False


class Part(NamedTuple):
    """The translations by one teacher, or by several as an ensemble. name: of its files

    backward: whether the translations become sources of training pairs
    """

    name: str
    teachers: tuple[Teacher, ...]
    backward: bool


class Round(NamedTuple):
    """Teachers, forward before backward, and their translations."""

    teachers: list[Teacher]
    parts: list[Part]


@dataclass(frozen=True)
class Plan:
    """The whole of a synthesis. config: without its section `synthesis`; settings: this section"""

    method: Method
    config: Config
    settings: SynthesisConfig

    @property
    def name(self) -> str:
        """Of the final run."""
        return f"{self.config.name}-{self.method}"

    @property
    def folder(self) -> Path:
        return path_of(self.settings.folder) / self.name

    @property
    def run(self) -> Path:
        """The folder of the final run."""
        return RUNS / self.name

    @property
    def languages(self) -> Direction:
        return self.config.data.one_direction

    @property
    def search(self) -> DecodingConfig:
        return self.settings.search or self.config.decoding

    @property
    def own_pairs(self) -> bool:
        """Whether the training pairs themselves are translated, and not other text."""
        return self.method in ("diversify", "distill")

    @cached_property
    def texts(self) -> list[Path]:
        """The files with text to translate. Raises TmtError if they are missing, or not of use."""
        given = self.settings.text
        if self.own_pairs:
            if given is not None:
                own = f"Remove the key; `{self.method}` translates the training pairs themselves."
                raise TmtError(f"`{self.method}` reads no other text", place="synthesis.text", remedy=own)
            return []
        if not given:
            language = self.languages[self.method == "back"]
            remedy = f"Name files with {language} sentences, one per line:  --set 'synthesis.text=[FILE]'"
            raise TmtError(f"`{self.method}` needs text to translate", place="synthesis.text", remedy=remedy)
        files = [file for one in given for file in files_like(one)]
        for file in files:
            check_exists(file)
            if file.is_fifo():
                again = "Write it to a file first: a synthesis that goes on after an interruption reads it again."
                raise TmtError("a pipe can be read only once", place=file, remedy=again)
        return files

    @cached_property
    def rounds(self) -> list[Round]:
        """Each round learns from all before it. Raises TmtError if a model has no use or is missing."""
        rounds = list[Round]()
        for number in range(1, self.settings.rounds + 1):
            teachers = self._teachers(number, [part for one in rounds for part in one.parts])
            rounds.append(Round(teachers, self._parts(number, teachers)))
        return rounds

    @property
    def teachers(self) -> list[Teacher]:
        """Those of all rounds."""
        return [teacher for one in self.rounds for teacher in one.teachers]

    @property
    def parts(self) -> list[Part]:
        """Those of all rounds."""
        return [part for one in self.rounds for part in one.parts]

    def _teachers(self, number: int, before: Sequence[Part]) -> list[Teacher]:
        """Those of a round. number: of the round, from 1; before: what they learn from, beside the real pairs"""
        forward, backward = self.languages, self.languages.reversed
        needed = {"back": [backward], "diversify": [forward, backward]}.get(self.method, [forward])
        if self.settings.models is not None and number == 1:
            return sorted(self._given(needed), key=lambda one: one.direction != forward)
        count = self.settings.teachers or TEACHERS[self.method]
        seeds = range(self.config.seed + (number - 1) * count + 1, self.config.seed + number * count + 1)
        if seeds[-1] >= SEEDS:
            problem = f"the teachers need the seeds up to {seeds[-1]}; the largest is {SEEDS - 1}"
            raise TmtError(problem, place="seed", remedy="Choose a smaller one.")
        suffix = "" if number == 1 else f"-round{number}"
        return [self._to_train(direction, seed, before, suffix) for direction in needed for seed in seeds]

    def _given(self, needed: Sequence[Direction]) -> list[Teacher]:
        """The models of the config, at least one of each needed direction."""
        found = [_trained(given) for given in self.settings.models or ()]
        used = Counter(one.run.resolve() for one in found)
        for one in found:
            if one.direction not in needed:
                wanted = " or ".join(map(str, needed))
                problem = f"this model translates {one.direction}; `{self.method}` needs {wanted}"
                raise TmtError(problem, place=one.run, remedy="Remove it from synthesis.models.")
            if used[one.run.resolve()] > 1:
                raise TmtError("synthesis.models names this model twice", place=one.run, remedy="Name it once.")
        for direction in needed:
            if direction not in [one.direction for one in found]:
                raise TmtError(
                    f"`{self.method}` needs models of both directions; none translates {direction}",
                    place="synthesis.models",
                    remedy="Add one, or use `distill` or `forward`.",
                )
        return found

    def _to_train(self, direction: Direction, seed: int, before: Sequence[Part], suffix: str) -> Teacher:
        """A teacher. Those of a direction and round share their prepared data: an ensemble needs that."""
        config = self._with_teacher_keys()
        if before:
            config = _valid(self._with_parts(config, before), "Lower synthesis.real_weight.")
        if direction != self.languages:
            config = reversed_config(config)
        values = config.model_dump(mode="json")
        values |= {"name": f"{self.config.name}-teacher-{direction}{suffix}", "seed": seed}
        config = _valid(values, "Shorten the name.")
        return Teacher(RUNS / f"{config.name}-{config.seed}", direction, config, bool(before))

    def _with_teacher_keys(self) -> Config:
        """The config with the keys of `synthesis.teacher`; an error about them names that key, not --set."""
        try:
            return config_of(self.config, self.settings.teacher)
        except TmtError as error:
            place = "synthesis.teacher"
            message = re.sub(f"^{COMMAND_LINE}: ", "", error.message, flags=re.MULTILINE)
            remedy = error.remedy.replace(f" {COMMAND_LINE} ", " ").replace("on the command line", f"in {place}")
            raise TmtError(message, place=place, remedy=remedy) from None

    def _parts(self, number: int, teachers: Sequence[Teacher]) -> list[Part]:
        """Of a round: for each direction, one by all its teachers together, or one for each teacher."""
        together, parts = self.settings.ensemble, list[Part]()
        if together is None:
            together = self.method != "diversify"
        for direction, group in groupby(teachers, key=lambda one: one.direction):
            own, backward = tuple(group), direction != self.languages
            stem = str(direction) if number == 1 else f"round{number}-{direction}"
            if together:
                parts.append(Part(stem, own, backward))
            else:
                parts += [Part(f"{stem}-{n}", (one,), backward) for n, one in enumerate(own, 1)]
        return parts

    def file(self, stem: str, language: str) -> Path:
        """A text file of the synthesis, such as en-de-1.de."""
        return self.folder / f"{stem}.{language}"

    def text_of(self, part: Part) -> Path:
        """The sentences that a part translates."""
        return self.file(self.text_stem, part.teachers[0].direction.source)

    @property
    def text_files(self) -> list[Path]:
        """The sentences to translate, in each language that is translated."""
        languages = self.languages if self.own_pairs else [self.teachers[0].direction.source]
        return [self.file(self.text_stem, language) for language in languages]

    @property
    def text_stem(self) -> str:
        return PAIRS if self.own_pairs else TEXT

    def counts_file(self, stem: str) -> Path:
        """What was kept and dropped; it is written when the text files of this stem are complete."""
        return self.folder / f"{stem}.json"

    @property
    def to_train(self) -> list[Teacher]:
        """The teachers that are not trained already."""
        return [one for one in self.teachers if one.config is not None]

    def files_of(self, part: Part) -> list[Path]:
        """The pairs of a part, source and target."""
        return [self.file(part.name, language) for language in self.languages]

    @cached_property
    def final_config(self) -> Config:
        """The config of the final model, which learns from all parts; its `max_epochs` may change (`epochs`)."""
        values = self._with_parts(self.config, self.parts)
        return _valid({**values, "name": self.name}, "Shorten the name, or lower synthesis.real_weight.")

    def _with_parts(self, config: Config, parts: Sequence[Part]) -> dict[str, Any]:
        """A config with the real corpora, and one more for each part, without validation or test."""
        settings, values = self.settings, config.model_dump(mode="json")
        corpora = values["data"]["corpus"]
        for corpus in corpora:
            corpus["weight"] *= settings.real_weight
        for part in parts:
            source, target = map(str, self.files_of(part))
            corpora.append(
                {
                    "kind": "text",
                    "files": [{"source": source, "target": target}],
                    "split": {"validation": 0, "test": 0},
                    "weight": settings.synthetic_weight,
                    **({"tag": settings.tag} if self.method == "back" and settings.tag else {}),
                }
            )
        return values

    def epochs(self, config: Config, before: float, now: float) -> int | None:
        """The epochs with which a model sees about as many pairs as with the real ones alone; None: without a limit.

        config: of the final model, for which `synthesis.epochs` counts first, or of an augmented teacher
        before, now: pairs of an epoch without and with synthetic text
        """
        if config is self.final_config and self.settings.epochs is not None:
            return self.settings.epochs
        epochs = config.training.max_epochs
        return None if epochs is None else max(1, round(epochs * before / now))


def plan_of(config: Config, method: str) -> Plan:
    """The plan of a method. Raises TmtError if it is unknown, or if models or text are missing."""
    if method not in METHODS:
        raise TmtError(f"unknown method '{method}'", remedy=f"Use one of: {', '.join(METHODS)}.")
    data, settings = config.data, config.synthesis
    if settings.rounds > 1 and method != "diversify":
        several = "Remove the key, or use `diversify`."
        raise TmtError(f"`{method}` has one round", place="synthesis.rounds", remedy=several)
    if data.directions is not None:
        one = "Write data.source and data.target instead."
        raise TmtError("a synthesis works on one direction", place="data.directions", remedy=one)
    if data.temperature is not None and (settings.real_weight, settings.synthetic_weight) != (1.0, 1.0):
        remedy = "Remove real_weight and synthetic_weight, or data.temperature."
        raise TmtError("data.temperature gives the weights", place="synthesis", remedy=remedy)
    method_: Any = method
    plan = Plan(method_, config.model_copy(update={"synthesis": SynthesisConfig()}), settings)
    _ = plan.texts, plan.teachers, plan.final_config  # each raises what is wrong with it
    return plan


def _valid(values: dict[str, Any], remedy: str) -> Config:
    """The config with these values. Raises TmtError if it is not valid."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))} {value_problem(one)}" for one in error.errors())
        name = values["name"]
        raise TmtError(f"the config of this run would not be valid: {problems}", place=name, remedy=remedy) from None


def _trained(given: str) -> Teacher:
    folder = find_model(path_of(given))
    data = config_of_model(folder).data
    if data.directions is not None:
        problem = f"this model translates several directions ({data.direction}); a synthesis needs a model of one"
        raise TmtError(problem, place=folder, remedy="Remove it from synthesis.models.")
    return Teacher(folder, data.one_direction)
