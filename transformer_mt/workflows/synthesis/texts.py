"""The text that a synthesis translates: cleaned, without sentences of validation and test sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

from transformer_mt.corpora.base import WHOLE
from transformer_mt.corpora.splits import TRAIN
from transformer_mt.data.passes import passes_of
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.store import SIDES
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import read_lines
from transformer_mt.text.batches import as_lines, keys_of_pairs, one_line, texts_of_words
from transformer_mt.text.cleaning import clean_text, fault_of_pair
from transformer_mt.workflows.synthesis.plan import Plan, Teacher
from transformer_mt.workflows.synthesis.records import KEPT, READ, Counts, counts_in, write_kept

HELD_OUT = "in validation or test"


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

    def count(self, file: Path) -> tuple[int, int]:
        """How many lines a file has, and how many of them are among these sentences. Raises UnicodeDecodeError."""
        with file.open(encoding="utf-8", newline="\n") as lines:
            found = Counter(line.removesuffix("\n") in self for line in lines)
        return found.total(), found[True]

    def seen_by(self, teacher: Teacher) -> int | None:
        """How many of them, of either side, a trained model has learned from; None if that is unknown."""
        known = TrainedOn.read(teacher.run)
        if known is None:
            return None
        return sum(known.seen(keys[side])[0] for keys in self._keys for side in SIDES)


def write_texts(plan: Plan, held_out: HeldOut) -> Counts:
    """Write the text to translate, unless that is done. Returns how many lines or pairs each rule dropped.

    Raises TmtError if nothing is left.
    """
    done = plan.counts_file(plan.text_stem)
    if not (done.exists() and all(file.exists() for file in plan.text_files)):
        rows = _pairs(plan, held_out) if plan.own_pairs else _sentences(plan, held_out)
        write_kept(done, plan.text_files, rows, partial(_nothing_left, plan))
    return counts_in(done)


def _nothing_left(plan: Plan, counts: Counts) -> TmtError:
    problem = f"nothing is left to translate of {counts[READ]:,} lines ({dropped(counts)})"
    place = "data.corpus" if plan.own_pairs else "synthesis.text"
    return TmtError(problem, place=place, remedy="Give other text, and run the same command again.")


def dropped(counts: Counts) -> str:
    """What each rule dropped, in words; `none` if nothing was."""
    rules = [f"{rule} {count:,}" for rule, count in counts.items() if rule not in (READ, KEPT)]
    return ", ".join(rules) or "none"


def _pairs(plan: Plan, held_out: HeldOut) -> Iterator[tuple[Sequence[str], str | None]]:
    """Both sides of the training pairs, with the first rule that a pair breaks."""
    data = plan.config.data
    for pair in _training_pairs(plan):
        sides = zip(map(one_line, pair), plan.languages, strict=True)
        source, target = (clean_text(text, data.cleaning, language) for text, language in sides)
        fault = fault_of_pair(source, target, data.cleaning, trains=True)
        if fault is None and (source in held_out or target in held_out):
            fault = HELD_OUT
        yield (source, target), fault


def _training_pairs(plan: Plan) -> Iterator[tuple[str, str]]:
    """All pairs of corpora that can become training pairs. Those that prepare held out are among them."""
    for one in passes_of(plan.config.data):
        for split in one.corpus.splits():
            if split in (TRAIN, WHOLE):
                yield from ((pair.source, pair.target) for pair in one.corpus.read(split))


def _sentences(plan: Plan, held_out: HeldOut) -> Iterator[tuple[Sequence[str], str | None]]:
    """The sentences of files in one language, with the first rule that a sentence breaks."""
    fault_of, language = _fault_of_line(plan, held_out), plan.teachers[0].direction.source
    for text in (text for one in plan.texts for _, text in read_lines(one, in_corpus=False)):
        cleaned = clean_text(text, plan.config.data.cleaning, language)
        yield [cleaned], fault_of(cleaned)


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
