"""What a synthesis does, before it does it: its teachers, its parts, and where their files are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Direction
from transformer_mt.config.load import config_of
from transformer_mt.config.problems import value_problem
from transformer_mt.config.reversal import reversed_config
from transformer_mt.config.runs import RUNS
from transformer_mt.config.schema import Config
from transformer_mt.config.synthesis import Method, SynthesisConfig
from transformer_mt.corpora.base import files_like
from transformer_mt.data.prepared import CorpusFile
from transformer_mt.decoding.finding import WEIGHTS, find_model
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import check_exists, path_of
from transformer_mt.files.opening import archive_of
from transformer_mt.files.replace import replace_text
from transformer_mt.workflows.models import config_of_model

PLAN, PAIRS, TEXT = "plan.json", "pairs", "text"
TEACHERS = {"back": 1, "forward": 1, "diversify": 3, "distill": 3}  # for each direction
METHODS: tuple[str, ...] = get_args(Method)
# Keys that change no sentence and no weight, so they may change between two calls.
FREE = ("runtime", "data.workers", "data.prepared")


class Teacher(NamedTuple):
    """A model that translates. config: to train it with; None: it is trained already. run: its folder"""

    run: Path
    source: str
    target: str
    config: Config | None = None


class Part(NamedTuple):
    """The translations by one teacher, or by several as an ensemble. name: of its files

    backward: whether the translations become sources of training pairs
    """

    name: str
    teachers: tuple[Teacher, ...]
    backward: bool


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
        return files

    @cached_property
    def teachers(self) -> list[Teacher]:
        """The models that translate, forward before backward. Raises TmtError if one has no use or is missing."""
        forward, backward = self.languages, self.languages.reversed
        needed = {"back": [backward], "diversify": [forward, backward]}.get(self.method, [forward])
        if self.settings.models is None:
            count = self.settings.teachers or TEACHERS[self.method]
            return [self._to_train(direction, number) for direction in needed for number in range(1, count + 1)]
        found = [_trained(given) for given in self.settings.models]
        for one in found:
            if (one.source, one.target) not in needed:
                wanted = " or ".join(map(str, needed))
                problem = f"this model translates {one.source}-{one.target}; `{self.method}` needs {wanted}"
                raise TmtError(problem, place=one.run, remedy="Remove it from synthesis.models.")
        return sorted(found, key=lambda one: (one.source, one.target) != forward)

    def _to_train(self, direction: Direction, number: int) -> Teacher:
        """A teacher with its own seed. Those of a direction share their prepared data: an ensemble needs that."""
        config = self.config if direction == self.languages else reversed_config(self.config)
        name, seed = f"{self.config.name}-teacher-{direction}", self.config.seed + number
        config = config_of(config, self.settings.teacher).model_copy(update={"name": name, "seed": seed})
        return Teacher(RUNS / f"{name}-{seed}", *direction, config)

    @cached_property
    def parts(self) -> list[Part]:
        """Diversification: one for each teacher. Otherwise all teachers together, as an ensemble."""
        if self.method != "diversify":
            first = self.teachers[0]
            return [Part(f"{first.source}-{first.target}", tuple(self.teachers), self.method == "back")]
        parts = list[Part]()
        for teacher in self.teachers:
            direction, same = f"{teacher.source}-{teacher.target}", (teacher.source, teacher.target)
            number = 1 + sum((one.source, one.target) == same for part in parts for one in part.teachers)
            parts.append(Part(f"{direction}-{number}", (teacher,), same != self.languages))
        return parts

    def file(self, stem: str, language: str) -> Path:
        """A text file of the synthesis, such as en-de-1.de."""
        return self.folder / f"{stem}.{language}"

    def text_of(self, part: Part) -> Path:
        """The sentences that a part translates."""
        return self.file(PAIRS if self.own_pairs else TEXT, part.teachers[0].source)

    @property
    def to_train(self) -> list[Teacher]:
        """The teachers that are not trained already."""
        return [one for one in self.teachers if one.config is not None]

    @property
    def synthetic_files(self) -> list[Path]:
        """All files of synthetic pairs, both sides."""
        return [self.file(part.name, language) for part in self.parts for language in self.languages]

    @cached_property
    def final_config(self) -> Config:
        """The config of the final model: the real corpora, and one more for each part, without validation or test."""
        settings, values = self.settings, self.config.model_dump(mode="json")
        corpora = values["data"]["corpus"]
        for corpus in corpora:
            corpus["weight"] *= settings.real_weight
        for part in self.parts:
            source, target = (str(self.file(part.name, one)) for one in self.languages)
            corpora.append(
                {
                    "kind": "text",
                    "files": [{"source": source, "target": target}],
                    "split": {"validation": 0, "test": 0},
                    "weight": settings.synthetic_weight,
                    **({"tag": settings.tag} if self.method == "back" and settings.tag else {}),
                }
            )
        if self.config.data.temperature is not None:
            for corpus in corpora:
                del corpus["weight"]
        try:
            return Config.model_validate({**values, "name": self.name})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))} {value_problem(one)}" for one in error.errors())
            remedy = "Shorten the name, or lower synthesis.real_weight."
            raise TmtError(f"the final config would not be valid: {problems}", place=self.name, remedy=remedy) from None

    def written(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain values by key."""
        corpora = [one.corpus(one, *self.languages) for one in self.config.data.corpus]
        texts = [archive_of(file) or file for file in self.texts]
        files = [*texts, *(file for corpus in corpora for file in corpus.files())]
        models = [one.run / WEIGHTS for one in self.teachers if one.config is None]
        values = {"method": self.method, "config": self.config.model_dump(mode="json")}
        values["synthesis"] = self.settings.model_dump(mode="json", exclude={"folder"})
        flat = _flat(without_credentials_in(values))
        kept = {key: value for key, value in flat.items() if not key.startswith(tuple(f"config.{one}" for one in FREE))}
        return kept | {f"file {one.path}": one.sha256 or one.version for one in map(CorpusFile.of, [*files, *models])}

    def open(self) -> None:
        """Create the folder, or check that it belongs to this plan. Raises TmtError with all that has changed."""
        file, now = self.folder / PLAN, self.written()
        if file.exists():
            try:
                before = json.loads(file.read_text(encoding="utf-8"))
            except ValueError:
                raise TmtError("the file is damaged", place=file, remedy=f"Delete the folder {self.folder}.") from None
            changed = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
            if changed:
                raise changed_error(self.folder, [f"{one}: {before.get(one)} | {now.get(one)}" for one in changed])
            return
        if self.folder.exists() and any(not one.name.startswith(".") for one in self.folder.iterdir()):
            remedy = "Choose another name or synthesis.folder."
            raise TmtError("this folder contains files but no synthesis", place=self.folder, remedy=remedy)
        replace_text(file, json.dumps(now, indent=1, ensure_ascii=False) + "\n")


def plan_of(config: Config, method: str) -> Plan:
    """The plan of a method. Raises TmtError if it is unknown, or if models or text are missing."""
    if method not in METHODS:
        raise TmtError(f"unknown method '{method}'", remedy=f"Use one of: {', '.join(METHODS)}.")
    data, settings = config.data, config.synthesis
    if data.directions is not None:
        one = "Write data.source and data.target instead."
        raise TmtError("a synthesis works on one direction", place="data.directions", remedy=one)
    if data.temperature is not None and (settings.real_weight, settings.synthetic_weight) != (1.0, 1.0):
        remedy = "Remove real_weight and synthetic_weight, or data.temperature."
        raise TmtError("data.temperature gives the weights", place="synthesis", remedy=remedy)
    method_: Any = method
    plan = Plan(method_, config.model_copy(update={"synthesis": SynthesisConfig()}), settings)
    _ = plan.texts, plan.teachers, plan.final_config
    return plan


def changed_error(folder: Path, changed: Sequence[str]) -> TmtError:
    """The error for a config or for files that differ from those that a synthesis began with."""
    listed = "\n    ".join(changed)
    return TmtError(
        f"this synthesis began with other settings or files (then | now)\n    {listed}",
        place=folder,
        remedy="Restore them, or give the new synthesis another name:  --set name=NEW",
    )


def _trained(given: str) -> Teacher:
    folder = find_model(path_of(given))
    data = config_of_model(folder).data
    if data.directions is not None:
        problem = f"this model translates several directions ({data.direction}); a synthesis needs a model of one"
        raise TmtError(problem, place=folder, remedy="Remove it from synthesis.models.")
    return Teacher(folder, *data.one_direction)


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """The values of nested mappings and lists by their path, such as config.data.corpus.0.kind."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not inside:
        return {path: value}
    return {k: v for key, one in inside for k, v in _flat(one, f"{path}.{key}" if path else str(key)).items()}
