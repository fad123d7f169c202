"""The text that a synthesis translates: cleaned, without sentences of validation and test sets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

from transformer_mt.corpora.base import WHOLE
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.store import SIDES
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.files.lines import read_lines
from transformer_mt.files.replace import replace_text, replaced_file
from transformer_mt.text.batches import as_lines, keys_of_pairs, texts_of_words
from transformer_mt.text.cleaning import clean_text, fault_of_pair
from transformer_mt.workflows.synthesis.plan import PAIRS, TEXT, Plan, Teacher

HELD_OUT = "in validation or test"
READ, KEPT = "read", "kept"
Counts = dict[str, int]


class HeldOut:
    """The sentences of the validation split and of all test sets, in both languages.

    They are compared as leaks are: without case, spaces and punctuation.
    """

    def __init__(self, prepared: Prepared) -> None:
        pairs = [prepared.raw(split) for split in prepared.splits[1:]]
        self._known = {one for sides in pairs for side in sides for one in texts_of_words(side)}
        self._keys = [keys_of_pairs(*(as_lines(side) for side in sides)) for sides in pairs]

    def __contains__(self, sentence: str) -> bool:
        return texts_of_words([sentence])[0] in self._known

    def count(self, file: Path) -> int:
        """How many lines of a file are among them."""
        with file.open(encoding="utf-8", newline="\n") as lines:
            return sum(line.removesuffix("\n") in self for line in lines)

    def seen_by(self, teacher: Teacher) -> int | None:
        """How many of them, of either side, a trained model has learned from; None if that is unknown."""
        known = TrainedOn.read(teacher.run)
        if known is None:
            return None
        return sum(known.seen(keys[side])[0] for keys in self._keys for side in SIDES)


def write_texts(plan: Plan, held_out: HeldOut) -> Counts:
    """Write the text to translate, unless that is done. Returns how many lines or pairs each rule dropped."""
    done = plan.folder / f"{PAIRS if plan.own_pairs else TEXT}.json"
    if not done.exists():
        counts = _write_pairs(plan, held_out) if plan.own_pairs else _write_lines(plan, held_out)
        replace_text(done, json.dumps(counts, indent=1) + "\n")
    return counts_in(done)


def counts_in(file: Path) -> Counts:
    """The counts that a finished step has written."""
    counts: Counts = json.loads(file.read_text(encoding="utf-8"))
    return counts


def _write_pairs(plan: Plan, held_out: HeldOut) -> Counts:
    """Both sides of the training pairs."""
    data, counts = plan.config.data, Counter[str]({READ: 0, KEPT: 0})
    with ExitStack() as stack:
        sides = [
            stack.enter_context(stack.enter_context(replaced_file(plan.file(PAIRS, one))).open("w", encoding="utf-8"))
            for one in plan.languages
        ]
        for pair in _training_pairs(plan):
            source, target = (
                clean_text(text, data.cleaning, language) for text, language in zip(pair, plan.languages, strict=True)
            )
            counts[READ] += 1
            fault = fault_of_pair(source, target, data.cleaning, trains=True)
            if fault is None and (source in held_out or target in held_out):
                fault = HELD_OUT
            counts[fault or KEPT] += 1
            if fault is None:
                for file, text in zip(sides, (source, target), strict=True):
                    file.write(f"{text}\n")
        for file in sides:
            file.close()
    return dict(counts)


def _training_pairs(plan: Plan) -> Iterator[tuple[str, str]]:
    """All pairs of corpora that can become training pairs. Those that prepare held out are among them."""
    for options in plan.config.data.corpus:
        corpus = options.corpus(options, *plan.languages)
        for split in corpus.splits():
            if split in ("train", WHOLE):
                yield from ((pair.source, pair.target) for pair in corpus.read(split))


def _write_lines(plan: Plan, held_out: HeldOut) -> Counts:
    """The sentences of files in one language, each once."""
    language, counts = plan.teachers[0].source, Counter[str]({READ: 0, KEPT: 0})
    fault_of = _fault_of_line(plan, held_out)
    with replaced_file(plan.file(TEXT, language)) as aside, aside.open("w", encoding="utf-8") as file:
        for text in (text for one in plan.texts for _, text in read_lines(one)):
            cleaned = clean_text(text, plan.config.data.cleaning, language)
            counts[READ] += 1
            fault = fault_of(cleaned)
            counts[fault or KEPT] += 1
            if fault is None:
                file.write(f"{cleaned}\n")
    return dict(counts)


def _fault_of_line(plan: Plan, held_out: HeldOut) -> Callable[[str], str | None]:
    """A function that names the first rule which a sentence breaks. It remembers 8 bytes of each sentence."""
    seen, longest = set[bytes](), plan.config.data.cleaning.max_characters

    def fault(sentence: str) -> str | None:
        if not sentence.strip():
            return "empty line"
        if len(sentence) > longest:
            return "too many characters"
        if sentence in held_out:
            return HELD_OUT
        key = blake2b(sentence.encode(), digest_size=8).digest()
        if key in seen:
            return "duplicate"
        seen.add(key)
        return None

    return fault
