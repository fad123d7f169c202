"""Scores the translations of a model, or those in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer_mt.config.data import DataConfig
from transformer_mt.config.direction import SEVERAL, Direction
from transformer_mt.config.languages import two_letters
from transformer_mt.config.load import SCORES
from transformer_mt.config.schema import Config
from transformer_mt.config.section import LANGUAGE
from transformer_mt.decoding.choosing import WHOLE, direction_for, directions_of
from transformer_mt.decoding.choosing import Wanted as Wanted
from transformer_mt.decoding.computing import Computing
from transformer_mt.decoding.finding import find_model
from transformer_mt.decoding.searches.base import option_of
from transformer_mt.errors import TmtError, check_type, number_of
from transformer_mt.evaluation.comparison import FEWEST
from transformer_mt.evaluation.examine import System, examine
from transformer_mt.evaluation.metrics import BY_DEFAULT, METRICS, notice_of
from transformer_mt.evaluation.record import store_scores
from transformer_mt.evaluation.report import Report, as_json
from transformer_mt.evaluation.scores import moses_tokenized
from transformer_mt.files.lines import path_of, printable
from transformer_mt.reporting.notes import note
from transformer_mt.text.vocabulary import bleu_of_tokens
from transformer_mt.workflows.doubts import have_equal_training, note_empty, note_other_language, note_seen
from transformer_mt.workflows.engines import note_searches, note_sources
from transformer_mt.workflows.models import (
    config_of_model,
    find_models,
    search_settings,
)
from transformer_mt.workflows.test_sets import File, TestSet, beside, check_files, test_set_of, with_pairs
from transformer_mt.workflows.test_sets import TestFiles as TestFiles
from transformer_mt.workflows.translated_sets import Output, Translators, translated

UNSCORED = Computing(scored=False)  # evaluation does not use the scores of a search


def evaluate(
    models: str | Path | Sequence[str | Path] = (),
    *,
    split: str | None = None,
    files: TestFiles | None = None,
    baseline: str | File = None,
    metrics: str | Sequence[str] = BY_DEFAULT,
    tokenized: bool = False,
    language: str | None = None,
    search: Mapping[str, Any] | None = None,
    computing: Computing = UNSCORED,
    wanted: str | Wanted = WHOLE,
) -> Report:
    """Translate a test set and score it, or score the translations in `files.hypothesis`.

    models:    a folder, or several for an ensemble; default: the run that finished last
    split:     of the first model's data, such as validation; default: the first test set
    baseline:  translations of another system, or its model folder; the report then has paired bootstrap resampling. A
               model is searched with its own settings and those of `search`; a note says where the two differ
    tokenized: also lower-cased BLEU, and BLEU on lower-cased Moses tokens as in papers
    language:  ISO code of the target; default: that of the model
    search:    settings of `decoding` that replace those of the model
    wanted:    the direction, for a model of several; `evaluate_directions` scores all of them
    The scores of a single model are stored in its folder, in scores.json. The translations are `hypotheses` of the
    report.
    Raises TmtError if files or settings do not fit together.
    """
    wanted = Wanted.of(wanted)
    work = Evaluation.of(models, split, files, baseline, metrics, tokenized, language, search, computing)
    directions = work.directions(wanted, several=False)
    work.require_baseline(directions, wanted.zero_shot)
    return work.report(directions[0])


def evaluate_directions(
    models: str | Path | Sequence[str | Path] = (),
    *,
    split: str | None = None,
    files: TestFiles | None = None,
    baseline: str | File = None,
    metrics: str | Sequence[str] = BY_DEFAULT,
    tokenized: bool = False,
    language: str | None = None,
    search: Mapping[str, Any] | None = None,
    computing: Computing = UNSCORED,
    wanted: str | Wanted = WHOLE,
    several: bool = True,
) -> dict[str, Report]:
    """As `evaluate`, for each direction of the model that `wanted` fits. The keys are directions, such as `ko-en`.

    The key is empty if the languages are unknown. Files have one direction, so `wanted` must say it; `language` has
    only one, too.
    several: whether more than one direction may fit
    """
    wanted = Wanted.of(wanted)
    work = Evaluation.of(models, split, files, baseline, metrics, tokenized, language, search, computing)
    directions = work.directions(wanted, several)
    work.require_baseline(directions, wanted.zero_shot)
    return {str(one or ""): work.report(one) for one in directions}


def evaluate_splits(folder: Path, names: Sequence[str], device: str) -> Iterator[tuple[str, Report]]:
    """Score a model on splits of its data, one after the other, and store the scores in its folder.

    With several directions, each of them; its name is then that of the split and of the direction.
    """
    config = config_of_model(folder) if names else None
    translators = Translators([folder], config.decoding if config else None, Computing(device=device, scored=False))
    for name in names:
        work = Evaluation([folder], config, name, TestFiles(), translators, metrics=("bleu", "chrf"), with_loss=False)
        for direction in work.directions(WHOLE):
            report = work.report(direction)
            yield report.name, report


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated, and how.

    config:   of the first model; None if only files are scored
    baseline: a file of translations, or the folder of a model
    """

    folders: Sequence[Path]
    config: Config | None
    split: str | None
    files: TestFiles
    translators: Translators
    baseline: File = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[str] = BY_DEFAULT
    tokenized: bool = False
    language: str | None = None
    with_loss: bool = True

    @classmethod
    def of(
        cls,
        models: str | Path | Sequence[str | Path],
        split: str | None,
        files: TestFiles | None,
        baseline: str | File,
        metrics: str | Sequence[str],
        tokenized: bool,
        language: str | None,
        search: Mapping[str, Any] | None,
        computing: Computing,
    ) -> Evaluation:
        """Raises TmtError if files or settings do not fit together."""
        files, changes = TestFiles() if files is None else files, {} if search is None else search
        check_type(files, TestFiles, "files", 'TestFiles(reference="test.en", hypothesis="translated.en")')
        check_type(changes, Mapping, "search", '{"beam": 5}')
        check_type(metrics, Iterable, "metrics", '["bleu"]')
        baseline = path_of(baseline) if baseline is not None else None
        metrics = [metrics] if isinstance(metrics, str) else list(metrics)
        if not metrics:
            raise TmtError("no metric is named", remedy=f"Name some of {', '.join(METRICS)}.")
        if unknown := [name for name in metrics if name not in [*METRICS]]:
            raise TmtError(f"unknown metric '{unknown[0]}'", remedy=f"Use one of {', '.join(METRICS)}.")
        metrics = list(dict.fromkeys(metrics))
        check_files(split, files)
        _check_settings(changes, computing, files.hypothesis, baseline, language)
        needed = models != () or files.hypothesis is None or files.reference is None
        folders = find_models(models) if needed else []
        config = config_of_model(folders[0]) if folders else None
        translators = Translators(folders, search_settings(folders[0], changes) if folders else None, computing)
        return cls(folders, config, split, files, translators, baseline, changes, metrics, tokenized, language)

    def direction(self, wanted: Wanted) -> Direction | None:
        """The only direction that is meant; None if the languages are unknown.

        Raises TmtError if several are meant, or if the model does not have it.
        """
        if self.config is not None:
            return direction_for(self.config.data, *wanted)
        for code, option in ((wanted.to, "--to"), (wanted.source, "--from")):
            if code is not None:
                _check_code(code, option)
        if wanted.to is None and wanted.source is not None:
            raise TmtError("without a model, a source language says nothing", place="--from", remedy="Add --to CODE.")
        return None if wanted.to is None else Direction(wanted.source or SEVERAL, wanted.to)

    def directions(self, wanted: Wanted, several: bool = True) -> list[Direction | None]:
        """All directions that are meant. several: whether it may be more than one. Raises TmtError as `direction`."""
        found = directions_of(self.config.data, wanted) if self.config and self.files.reference is None else []
        if self.config and len(found) > 1 and several and not self._of_one_direction:
            return list(with_pairs(self.folders[0], self.config, self.split, found))
        if len(found) > 1:
            one, to, source = (
                self._of_one_direction or "one report, picture or file of translations",
                found[0].target,
                found[0].source,
            )
            raise TmtError(
                f"{one} needs one direction, and several fit: {', '.join(map(str, found))}",
                place="--to",
                remedy=f'Add --to {to} --from {source} (in Python: wanted=Wanted("{to}", "{source}")).',
            )
        direction = self.direction(wanted)
        of_several = self.config is None or self.config.data.directions is not None
        language, target = self.language, direction.target if direction and of_several else None
        if language is not None and target is not None and two_letters(language) != two_letters(target):
            problem = f"the target language is {target}, not {language}"
            raise TmtError(problem, place="--language", remedy="Remove --language, or choose another --to.")
        if self.config is not None:
            note_sources(self.config.data, direction)
        return [direction]

    @property
    def _of_one_direction(self) -> str:
        """The option whose value belongs to one direction; empty if there is none."""
        others = self.baseline if self.baseline is not None and not self.baseline.is_dir() else None
        options = {
            "--hypothesis": self.files.hypothesis,
            "--baseline with a file": others,
            "--tokenized-reference": self.files.tokenized,
            "--language": self.language,
        }
        return next((option for option, value in options.items() if value is not None), "")

    def report(self, direction: Direction | None) -> Report:
        """The report of one direction; stored if it is that of a single model."""
        model, files = self.folders[0] if self.folders else None, self.files
        test_set = test_set_of(model, self.config, self.split, files, direction)
        target = self.language or (direction.target if direction else "")
        self._note_doubts(test_set, direction, target)
        # The baseline comes first, so that an error in it is found before the long translation.
        others = self._of_baseline(test_set, direction)
        tokenized = self._tokenized(test_set, target)
        if files.hypothesis:
            output = Output(beside(test_set, files.hypothesis))
            note_empty(files.hypothesis, output.lines)
        else:
            assert direction is not None
            translator = self.translators.translator.turned(direction)
            output = translated(translator, test_set, with_loss=self.with_loss)
        if notice := notice_of(target, test_set.references):
            note(notice)
        system = System(
            name=test_set.name,
            hypotheses=output.lines,
            references=test_set.references,
            others=test_set.others,
            language=target,
            sources=test_set.sources,
            baseline=others,
            tokenized_references=tokenized,
            words=output.words,
            loss=output.loss,
            search=output.search,
        )
        models = () if files.hypothesis else tuple(map(str, self.folders))
        report = examine(system, self.metrics, bleu_of_tokens if "bleu" in self.metrics else None)
        baseline, decoding = str(self.baseline) if others else "", output.settings.get("decoding", {})
        report = replace(report, models=models, baseline=baseline, decoding=decoding, left_out=test_set.left_out)
        if report.comparison and len(output.lines) < FEWEST:
            found = number_of(len(output.lines), "sentence")
            note(f"too few to tell a better system from chance: {found}, and {FEWEST} are needed")
        if len(self.folders) == 1 and files.hypothesis is None:
            _store(self.folders[0], test_set.key, report, output.settings)
        return report

    def _tokenized(self, test_set: TestSet, target: str) -> list[list[str]]:
        """The references lower-cased and tokenised by Moses, or published in this form; empty if that is not wanted."""
        file = self.files.tokenized
        if file is None:
            return [moses_tokenized(lines, target) for lines in test_set.all_references if self.tokenized]
        published = beside(test_set, file)
        if any(line != line.lower() for line in published):
            note(f"{file}: has capital letters, but what papers compare with is in lower case: BLEU falls")
        return [published]

    def _note_doubts(self, test_set: TestSet, direction: Direction | None, target: str) -> None:
        """Notes on what makes the scores doubtful. Of its own split, `prepare` has told what the model has seen."""
        files = self.files
        folders = [*(self.folders if files.hypothesis is None else ())]
        folders += self._other.folders if self.baseline is not None and self.baseline.is_dir() else []
        own = self.folders[0] if files.reference is None and self.folders else None
        names = list(map(printable, files.references)) or [test_set.name]
        for folder in dict.fromkeys(folders):
            if own is None or not have_equal_training(folder, own):
                for name, lines in zip(names, test_set.all_references, strict=True):
                    note_seen(folder, name, test_set.sources, lines)
        sides = [("reference", target, test_set.all_references, files.references)]
        if files.source is not None:
            sides.insert(0, ("source", direction.source if direction else "", [test_set.sources], [files.source]))
        for name, language, texts, places in sides:
            for lines, file in zip(texts, places, strict=False):  # a split has no files
                note_empty(file, lines, f"{name} line")
                note_other_language(printable(file), lines, language)

    def require_baseline(self, directions: Sequence[Direction | None], zero_shot: bool) -> None:
        """Raises TmtError if the baseline is a folder without a model, or with one that lacks a direction.

        zero_shot: whether it may be a model that was not trained for them
        """
        if self.baseline is None or not self.baseline.is_dir():
            return
        data = config_of_model(self._other.folders[0]).data
        own = self.config.data if self.config else data
        both = [one for one in data.all_directions if one in own.all_directions]
        options = " or ".join(f"--to {one.target} --from {one.source}" for one in both)
        for direction in directions:
            if direction is not None and not _has(data, direction, own, zero_shot):
                is_named = direction.source != SEVERAL
                raise TmtError(
                    f"this baseline translates {data.direction}, not {direction if is_named else own.direction}",
                    place=self._other.folders[0],
                    remedy="Name a model for the same languages, or a file of translations"
                    + (f", or choose {options}." if both else "."),
                )

    def _of_baseline(self, test_set: TestSet, direction: Direction | None) -> list[str]:
        """The translations of the baseline."""
        file = self.baseline
        if file is None:
            return []
        if not file.is_dir():
            return beside(test_set, file)
        if not test_set.sources:
            raise TmtError("a baseline model needs sentences to translate", place=file, remedy="Add --source FILE.")
        translator = self._other.translator
        if direction is not None and translator.config.data.directions is not None:
            translator = translator.turned(direction)
        return list(map(test_set.written, translated(translator, test_set, model="the baseline").lines))

    @cached_property
    def _other(self) -> Translators:
        """The model that is the baseline."""
        assert self.baseline is not None
        folder = find_model(self.baseline)
        decoding = search_settings(folder, self.changes)
        if self.translators.decoding is not None and self.files.hypothesis is None:
            note_searches(self.translators.decoding, decoding)
        return Translators([folder], decoding, self.translators.computing)


def _has(data: DataConfig, direction: Direction, own: DataConfig, zero_shot: bool) -> bool:
    """Whether a baseline has a direction; if it has several sources, the same ones as the model. own: of the model."""
    if direction.source == SEVERAL:
        into = Wanted(direction.target)
        return {*directions_of(data, into)} == {*directions_of(own, into)} != set()
    try:
        return direction_for(data, direction.target, direction.source, zero_shot) == direction
    except TmtError:
        return False


def _check_settings(
    changes: Mapping[str, Any], computing: Computing, hypothesis: File, baseline: File, language: str | None
) -> None:
    wanted = [key for key, value in changes.items() if value is not None]
    wanted += [key for key in ("device", "threads", "weights") if getattr(computing, key) != getattr(UNSCORED, key)]
    if wanted and hypothesis is not None and (baseline is None or not baseline.is_dir()):
        option = "--mbr" if wanted[0] == "method" else option_of(wanted[0])
        raise TmtError(
            f"{option} has no effect, because --hypothesis has the translations already", remedy="Remove one of them."
        )
    if language is not None:
        _check_code(language, "--language")


def _check_code(code: str, option: str) -> None:
    if not re.fullmatch(LANGUAGE, code):
        remedy = "Use a code of two or three small letters, such as de, en or ko."
        raise TmtError(f"'{code}' is not an ISO 639 code", place=option, remedy=remedy)


def _store(folder: Path, key: str, report: Report, settings: dict[str, Any]) -> None:
    """Store the scores in the folder of the model, or print a note if that fails. key: empty to store nothing."""
    not_stored = ("test_set", "model", "buckets", "best", "worst", "baseline", "comparison", "signature")
    figures = {name: value for name, value in as_json(report).items() if name not in not_stored}
    figures["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    try:
        if key and (damaged := store_scores(folder / SCORES, key, settings, figures)) is not None:
            note(
                f"{folder / SCORES} was damaged: it is now {damaged.name}, and the scores of other test sets are in it"
            )
    except OSError as error:
        note(f"{folder}: the scores could not be stored there: {error.strerror or error}")
