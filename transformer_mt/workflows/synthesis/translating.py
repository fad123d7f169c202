"""Translates text in shards: a finished shard is a file, so that an interrupted synthesis goes on after it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from transformer_mt.data.texts import Lines
from transformer_mt.decoding.interpreter import Computing, Interpreter, Translation
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replace_text, replaced_file
from transformer_mt.runtime.device import set_up
from transformer_mt.runtime.distributed import World
from transformer_mt.text.cleaning import clean_text
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.synthesis.plan import Part, Plan
from transformer_mt.workflows.synthesis.texts import HELD_OUT, KEPT, READ, Counts, HeldOut, counts_in

SHARDS = "shards"


def shard_count(plan: Plan, lines: int) -> int:
    """The number of shards for this number of lines."""
    return -(-lines // plan.settings.shard_lines)


def shard_file(plan: Plan, part: Part, number: int) -> Path:
    """The file of a shard, numbered from 0."""
    return plan.folder / SHARDS / part.name / f"{number:06}.jsonl"


def is_filtered(plan: Plan, part: Part) -> bool:
    """Whether the pairs of a part are written."""
    return (plan.folder / f"{part.name}.json").exists()


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
            translator.seed = seed + number  # samples of two shards are independent
            _write_shard(shard_file(plan, part, number), _translated(plan, translator, some))

    world.everywhere(work, "the translations of the others")


def _translated(plan: Plan, translator: Interpreter, lines: list[str]) -> Iterator[dict[str, Any]]:
    """What is kept of each translation until the pairs are filtered."""
    scored = plan.settings.min_score is not None
    answers = translator.translate(lines, chunk_size=len(lines), align=scored)
    for answer in answers:
        best = answer.n_best[0]
        row: dict[str, Any] = {"text": best.text, "tokens": [len(answer.source_tokens), len(best.tokens)]}
        if scored and best.token_scores:
            row["score"] = round(sum(best.token_scores) / len(best.token_scores), 4)
        yield row | ({"lost": _lost(answer)} if _lost(answer) else {})


def _lost(answer: Translation) -> str:
    """Why a translation is not that of the whole sentence."""
    if answer.is_cut:
        return "longer than max_length"
    return "unfinished translation" if any("stopped" in note for note in answer.notes) else ""


def _write_shard(file: Path, rows: Iterator[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_pairs(plan: Plan, part: Part, held_out: HeldOut) -> Counts:
    """Write the pairs of a part that no rule drops, as parallel files, unless that is done.

    Returns how many each rule dropped. The shards are removed. Raises TmtError if nothing is left.
    """
    done = plan.folder / f"{part.name}.json"
    if not is_filtered(plan, part):
        counts, files = Counter[str]({READ: 0, KEPT: 0}), [plan.file(part.name, one) for one in plan.languages]
        with ExitStack() as stack:
            sides = [
                stack.enter_context(stack.enter_context(replaced_file(one)).open("w", encoding="utf-8"))
                for one in files
            ]
            for line, row in _rows(plan, part):
                text = clean_text(row["text"], plan.config.data.cleaning, part.teachers[0].target)
                fault = _fault(plan, line, text, row, held_out)
                counts[READ] += 1
                counts[fault or KEPT] += 1
                if fault is None:
                    for file, one in zip(sides, (text, line) if part.backward else (line, text), strict=True):
                        file.write(f"{one}\n")
            for file in sides:
                file.close()
        if not counts[KEPT]:
            rules = ", ".join(f"{rule}: {count:,}" for rule, count in counts.items() if rule not in (READ, KEPT))
            raise TmtError(
                f"no synthetic pair is left of {counts[READ]:,} ({rules})",
                place=plan.folder / part.name,
                remedy="Train the teachers longer, or loosen synthesis.min_score and synthesis.max_ratio,"
                " with another name.",
            )
        replace_text(done, json.dumps(counts, indent=1) + "\n")
    shutil.rmtree(plan.folder / SHARDS / part.name, ignore_errors=True)
    return counts_in(done)


def _rows(plan: Plan, part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line with what was written for it."""
    with plan.text_of(part).open(encoding="utf-8", newline="\n") as lines:
        for number in range(10**9):
            some = [line.removesuffix("\n") for line in islice(lines, plan.settings.shard_lines)]
            if not some:
                return
            file = shard_file(plan, part, number)
            rows = [json.loads(row) for row in file.read_text(encoding="utf-8").split("\n")[:-1]]
            yield from zip(some, rows, strict=True)


def _fault(plan: Plan, line: str, text: str, row: dict[str, Any], held_out: HeldOut) -> str | None:
    """The first rule that a sentence with its translation breaks."""
    settings = plan.settings
    if not text.strip():
        return "empty translation"
    if "lost" in row:
        return str(row["lost"])
    if text == line:
        return "copy of the source"
    if settings.min_score is not None and row.get("score", 0.0) < settings.min_score:
        return "min_score"
    shorter, longer = sorted(row["tokens"])
    if settings.max_ratio is not None and longer > settings.max_ratio * max(1, shorter):
        return "max_ratio"
    return HELD_OUT if text in held_out else None
