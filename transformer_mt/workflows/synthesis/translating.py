"""Translates text in shards: a finished shard is a file, so that an interrupted synthesis goes on after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, islice
from pathlib import Path

from transformer_mt.config.section import SEEDS
from transformer_mt.data.texts import Lines
from transformer_mt.decoding.interpreter import Computing, Interpreter, Translation
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replace_text
from transformer_mt.runtime.device import set_up
from transformer_mt.runtime.distributed import World
from transformer_mt.text.cleaning import clean_text
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.synthesis.plan import Part, Plan
from transformer_mt.workflows.synthesis.records import KEPT, READ, Counts, Row, counts_in, read_rows, write_kept
from transformer_mt.workflows.synthesis.texts import HELD_OUT, HeldOut, dropped

SHARDS = "shards"
LONG = "longer than max_length"


def shard_count(plan: Plan, lines: int) -> int:
    """The number of shards for this number of lines."""
    return -(-lines // plan.settings.shard_lines)


def shard_file(plan: Plan, part: Part, number: int) -> Path:
    """The file of a shard, numbered from 0."""
    return plan.folder / SHARDS / part.name / f"{number:06}.jsonl"


def is_filtered(plan: Plan, part: Part) -> bool:
    """Whether the pairs of a part are written."""
    return all(file.exists() for file in (plan.counts_file(part.name), *plan.files_of(part)))


def translate_shards(plan: Plan, part: Part, world: World) -> None:
    """Translate what is left of the text of a part. Every process of the world must call it; each takes its shards.

    Raises TmtError if a model is missing or damaged.
    """

    def work() -> None:
        lines = Lines(plan.text_of(part), f"Delete the folder {plan.folder}.")
        numbers = range(world.rank, shard_count(plan, len(lines)), world.size)
        left = [number for number in numbers if not shard_file(plan, part, number).exists()]
        if not left:
            return
        # as at the start of a training, so that it does not matter whether this process has trained before
        machine = set_up(plan.config.runtime, world)
        folders, seed = [teacher.run for teacher in part.teachers], plan.config.seed
        translator = load_translator(folders, plan.search, Computing(str(machine.device), seed=seed))
        for number in left:
            first = number * plan.settings.shard_lines
            some = lines[first : min(len(lines), first + plan.settings.shard_lines)]
            translator.seed = (seed + number) % SEEDS  # samples of two shards are independent
            _write_shard(shard_file(plan, part, number), _translated(plan, translator, some))

    world.everywhere(work, "the translations of the others")


def _translated(plan: Plan, translator: Interpreter, lines: list[str]) -> Iterator[Row]:
    """What is kept of each translation until the pairs are filtered."""
    scored = plan.settings.min_score is not None
    answers = translator.translate(lines, chunk_size=len(lines), align=scored)
    for answer in answers:
        best = answer.n_best[0]
        score = 0.0
        if scored and best.token_scores:
            score = round(sum(best.token_scores) / len(best.token_scores), 4)
        yield Row(best.text, (len(answer.source_tokens), len(best.tokens)), score, _lost(answer))


def _lost(answer: Translation) -> str:
    """Why a translation is not that of the whole sentence."""
    if answer.is_cut:
        return LONG
    return "unfinished translation" if any("the translation was stopped" in note for note in answer.notes) else ""


def _write_shard(file: Path, rows: Iterator[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, "".join(f"{row.line}\n" for row in rows))


def write_pairs(plan: Plan, part: Part, held_out: HeldOut) -> Counts:
    """Write the pairs of a part that no rule drops, as parallel files, unless that is done.

    Returns how many each rule dropped. The shards are removed. Raises TmtError if nothing is left, or if a shard is
    damaged.
    """
    done = plan.counts_file(part.name)
    if not is_filtered(plan, part):
        write_kept(done, plan.files_of(part), _pairs(plan, part, held_out), partial(_nothing_left, plan, part))
    shutil.rmtree(plan.folder / SHARDS / part.name, ignore_errors=True)
    with suppress(OSError):  # shards of other parts are in it, or it is gone
        (plan.folder / SHARDS).rmdir()
    return counts_in(done)


def _nothing_left(plan: Plan, part: Part, counts: Counts) -> TmtError:
    rule, _ = max(((rule, count) for rule, count in counts.items() if rule not in (READ, KEPT)), key=lambda one: one[1])
    remedy = "Train the teachers longer, or give other text, with another name."
    if plan.own_pairs:
        remedy = "Train the teachers longer, with another name."
    if rule in ("min_score", "max_ratio"):
        remedy = f"Train the teachers longer, or loosen synthesis.{rule}, with another name."
    problem = f"no synthetic pair is left of {counts[READ]:,} ({dropped(counts)})"
    return TmtError(problem, place=plan.folder / part.name, remedy=remedy)


def _pairs(plan: Plan, part: Part, held_out: HeldOut) -> Iterator[tuple[Sequence[str], str | None]]:
    """The pairs of a part, source and target, each with the first rule that it breaks."""
    for line, row in _rows(plan, part):
        text = clean_text(row.text, plan.config.data.cleaning, part.teachers[0].direction.target)
        yield (text, line) if part.backward else (line, text), _fault(plan, line, text, row, held_out)


def _rows(plan: Plan, part: Part) -> Iterator[tuple[str, Row]]:
    """Each line with what was written for it."""
    with plan.text_of(part).open(encoding="utf-8", newline="\n") as lines:
        for number in count():
            some = [line.removesuffix("\n") for line in islice(lines, plan.settings.shard_lines)]
            if not some:
                return
            yield from zip(some, read_rows(shard_file(plan, part, number), len(some)), strict=True)


def _fault(plan: Plan, line: str, text: str, row: Row, held_out: HeldOut) -> str | None:
    """The first rule that a sentence with its translation breaks."""
    settings = plan.settings
    if not text.strip():
        return "empty translation"
    if row.lost:
        return row.lost
    if text == line:
        return "copy of the source"
    if settings.min_score is not None and row.score < settings.min_score:
        return "min_score"
    shorter, longer = sorted(row.tokens)
    if settings.max_ratio is not None and longer > settings.max_ratio * max(1, shorter):
        return "max_ratio"
    return HELD_OUT if text in held_out else None
