"""The check of a plan before anything is prepared, trained or written, and the file that says what has begun."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_mt.config.credentials import without_credentials_in
from transformer_mt.config.load import CONFIG, differences, flat, load_config
from transformer_mt.config.runs import FACTS, WEIGHTS
from transformer_mt.config.schema import Config
from transformer_mt.data.passes import passes_of
from transformer_mt.data.prepare import require_prepared_or_empty
from transformer_mt.data.prepared import CorpusFile, prepared_folder, remembered
from transformer_mt.decoding.finding import finished_at
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.errors import TmtError
from transformer_mt.files.opening import archive_of
from transformer_mt.files.replace import replace_text
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.parents import KEPT, checksum_of_parent, parent_of
from transformer_mt.workflows.synthesis.plan import Plan, Teacher
from transformer_mt.workflows.synthesis.records import read_object
from transformer_mt.workflows.synthesis.translating import is_filtered

PLAN = "plan.json"
# Keys that change no sentence and no weight, so they may change between two calls.
FREE = ("runtime", "data.workers", "data.prepared")
EPOCHS = "training.max_epochs"  # with synthetic pairs, they depend on what is kept
FILE, PARENT = "file ", "model "  # before the names of what is compared by its checksum
NEW_NAME = "choose another name:  --set name=NEW"


def require_possible(plan: Plan) -> None:
    """Raises TmtError if the plan does not fit what is on the disk.

    Its folder has begun with other settings or files, teachers were trained with other settings, a folder contains
    something else, a given model is damaged or differs in vocabularies from those that it translates with, or a model
    to start from is missing.
    """
    require_same(plan)
    for part in plan.parts:
        if all(one.config is None for one in part.teachers) and not is_filtered(plan, part):
            load_translator([one.run for one in part.teachers], plan.search, Computing("cpu"))
    for one in plan.to_train:
        require_own_teacher(one)
    require_own_run(plan.run, plan.final_config, EPOCHS)
    for config, folder in _runs(plan):
        parent_of(config, folder)
        require_prepared_or_empty(prepared_folder(config))


def require_own_teacher(teacher: Teacher) -> None:
    """Raises TmtError if the folder of a teacher that has to be trained contains something else."""
    assert teacher.config is not None
    require_own_run(teacher.run, teacher.config, *([EPOCHS] if teacher.is_augmented else []))


def require_same_text(teacher: Teacher) -> None:
    """Raises TmtError if a teacher has learned from synthetic text that is not there any more. Its text must exist."""
    assert teacher.config is not None
    files = [file for one in passes_of(teacher.config.data) for file in one.corpus.files()]
    changed = RunDirectory(teacher.run).changed_files({"corpus": remembered(files)})
    if changed:
        problem = f"this teacher was trained on other text than there is now: {', '.join(changed)}"
        raise TmtError(problem, place=teacher.run, remedy=f"Move it away, or {NEW_NAME}")


def require_own_run(folder: Path, config: Config, *free: str) -> None:
    """Raises TmtError if the folder contains something else than a run of this config.

    free: more keys that may differ
    """
    if folder.exists() and not (folder / FACTS).exists() and (not folder.is_dir() or _others(folder)):
        remedy = f"Move it away, or {NEW_NAME}"
        raise TmtError("a run of this synthesis needs this folder, which contains no run", place=folder, remedy=remedy)
    if not (folder / CONFIG).exists():
        return
    changed = differences(load_config(folder / CONFIG), config)
    changed = [one for one in changed if not one.startswith((*FREE, *(f"{key}:" for key in free)))]
    if changed:
        listed = "\n    ".join(changed)
        raise TmtError(
            f"this run was trained with other settings (then | now)\n    {listed}",
            place=folder,
            remedy=f"Restore them, or {NEW_NAME}",
        )


def require_same(plan: Plan) -> None:
    """Raises TmtError with all that has changed since the synthesis began, or if its folder contains something else."""
    file = plan.folder / PLAN
    if not file.exists():
        if plan.folder.exists() and (not plan.folder.is_dir() or _others(plan.folder)):
            remedy = "Choose another name or synthesis.folder."
            raise TmtError("this folder contains files but no synthesis", place=plan.folder, remedy=remedy)
        return
    before = read_object(file, plan.folder)
    if not has_begun(plan):
        return
    # In this order, so that corpora of other settings are not fetched.
    for written, kind in ((_settings, ""), (_files, FILE), (_parents, PARENT)):
        now = written(plan)
        then = {key: value for key, value in before.items() if _kind_of(key) == kind}
        changed = [key for key in dict.fromkeys([*then, *now]) if then.get(key) != now.get(key)]
        if kind == PARENT:  # older versions wrote none, and a run that has begun does not read its parent again
            changed = [key for key in changed if key in then and key in now]
        if changed:
            raise _changed_error(plan, [f"{key}: {then.get(key)} | {now.get(key)}" for key in changed])


def has_begun(plan: Plan) -> bool:
    """Whether the text to translate is complete, or more. Before, nothing is lost if settings or text change."""
    text = f"{plan.text_stem}."
    done = plan.counts_file(plan.text_stem).name
    return any(one == done or not one.startswith((text, PLAN)) for one in _others(plan.folder))


def begin(plan: Plan) -> None:
    """Write what the result depends on, unless the synthesis has begun."""
    if not has_begun(plan):
        values = _settings(plan) | _files(plan) | _parents(plan)
        replace_text(plan.folder / PLAN, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _others(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if not one.name.startswith(".")]


def _settings(plan: Plan) -> dict[str, Any]:
    """Settings that the result depends on, as plain values by key."""
    values = {"method": plan.method, "config": plan.config.model_dump(mode="json")}
    added = {"rounds"} if plan.settings.rounds == 1 else set()  # later than the first versions
    values["synthesis"] = plan.settings.model_dump(mode="json", exclude={"folder", *added})
    by_key = flat(without_credentials_in(values), lists=True)
    return {key: value for key, value in by_key.items() if not key.startswith(tuple(f"config.{one}" for one in FREE))}


def _files(plan: Plan) -> dict[str, Any]:
    """The checksums of the files that the result depends on. Fetches corpora that are not on the disk."""
    corpora = [one.corpus for one in passes_of(plan.config.data)]
    for corpus in corpora:
        corpus.fetch()
    texts = [archive_of(file) or file for file in plan.texts]
    files = [*texts, *(file for corpus in corpora for file in corpus.files())]
    models = [one.run / WEIGHTS for one in plan.teachers if one.config is None]
    return {f"{FILE}{one.path}": one.sha256 or one.version for one in map(CorpusFile.of, [*files, *models])}


def _parents(plan: Plan) -> dict[str, str]:
    """The checksums of the models that runs of this synthesis start from, without those of runs that have begun."""
    found = {}
    for config, run in _runs(plan):
        start = config.training.start_from
        if start is not None and not (run / KEPT / CONFIG).exists():
            found[f"{PARENT}{start}"] = checksum_of_parent(config)
    return found


def _runs(plan: Plan) -> list[tuple[Config, Path]]:
    """What is trained, and where."""
    teachers = [(one.config, one.run) for one in plan.to_train if one.config is not None]
    return [*teachers, (plan.final_config, plan.run)]


def _kind_of(key: str) -> str:
    return next((kind for kind in (FILE, PARENT) if key.startswith(kind)), "")


def _changed_error(plan: Plan, changed: Sequence[str]) -> TmtError:
    listed = "\n    ".join(changed)
    remedy = "Restore them, or give the new synthesis another name:  --set name=NEW"
    first = [one for one in plan.rounds[0].teachers if one.config is not None]
    trained = [str(one.run) for one in first if finished_at(one.run) is not None]
    if trained and len(trained) == len(first):
        remedy += "   and, to use its teachers instead of training them again, "
        if plan.settings.rounds == 1:
            remedy += "remove synthesis.teachers and synthesis.teacher and "
        remedy += f"add:  --set 'synthesis.models=[{', '.join(trained)}]'"
    return TmtError(
        f"this synthesis began with other settings or files (then | now)\n    {listed}",
        place=plan.folder,
        remedy=remedy,
    )
