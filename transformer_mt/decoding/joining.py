"""The translation of a line from the translations of its sentences."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer_mt.decoding.interpreter import Hypothesis, Translation

_WITHOUT_SPACES = frozenset({"ja", "zh", "yue"})  # languages without a space between sentences

Total = Callable[[Sequence[float]], float]


def separator(spaces: str, language: str) -> str:
    """What stands between two translated sentences. spaces: between those of the source. language: of the target."""
    if language in _WITHOUT_SPACES and len(spaces) <= 1:
        return ""
    return "".join(one if unicodedata.category(one) == "Zs" else " " for one in spaces) or " "


def join(parts: Sequence[Translation], separators: Sequence[str], n_best: int, total: Total) -> Translation:
    """One translation of the whole line. A sentence without a translation leaves no separator.

    parts:      translations of the sentences, at least one
    separators: what stands after each sentence; the last one is not used
    total:      the score of a line from the scores of its sentences; it grows with each of them
    """
    if len(parts) == 1:
        return parts[0]
    written = [(part, after) for part, after in zip(parts, separators, strict=True) if part.text or part.source_tokens]
    some = [part for part, _ in written]
    hypotheses: dict[str, Hypothesis] = {}  # by text
    starts = [0]
    for part in some:
        starts.append(starts[-1] + len(part.source_tokens))
    for choice in islice(_best([[one.score for one in part.n_best] for part in some], total), n_best * n_best):
        chosen = [part.n_best[index] for part, index in zip(some, choice, strict=True)]
        text = "".join(f"{one.text}{after}" if one.text else "" for one, (_, after) in zip(chosen, written, strict=True))
        text = text.removesuffix(written[-1][1]) if written else ""
        hypotheses.setdefault(text, _joined(text, chosen, starts, total))
        if len(hypotheses) == n_best:
            break
    return type(parts[0])(
        tuple(chain.from_iterable(part.source_tokens for part in some)),
        tuple(hypotheses.values()),
        tuple(
            f"sentence {number} of {len(parts)}: {note}" for number, part in enumerate(parts, 1) for note in part.notes
        ),
        any(part.is_cut for part in parts),
    )


def _joined(text: str, chosen: Sequence[Hypothesis], starts: Sequence[int], total: Total) -> Hypothesis:
    """One hypothesis of the line. starts: the index of the first source token of each sentence."""
    alignment: tuple[int, ...] | None = None
    if all(one.alignment is not None for one in chosen):
        alignment = tuple(start + place for start, one in zip(starts, chosen, strict=False) for place in one.alignment or ())
    tokens = tuple(chain.from_iterable(one.tokens for one in chosen))
    return type(chosen[0])(text, tokens, total([one.score for one in chosen]), alignment)


def _best(scores: Sequence[Sequence[float]], total: Total) -> Iterator[tuple[int, ...]]:
    """An index into each list, best total first. The lists are sorted, best first; a choice is computed when needed."""

    def entry(choice: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return -total([some[index] for some, index in zip(scores, choice, strict=True)]), choice

    first = (0,) * len(scores)
    waiting, known = [entry(first)], {first}
    while waiting:
        _, choice = heapq.heappop(waiting)
        yield choice
        for place, index in enumerate(choice):
            following = (*choice[:place], index + 1, *choice[place + 1 :])
            if index + 1 < len(scores[place]) and following not in known:
                known.add(following)
                heapq.heappush(waiting, entry(following))
