"""The translation of a line from the translations of its sentences."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from transformer_mt.config.languages import two_letters
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.text.words import WordCount

_WITHOUT_SPACES = frozenset({"ja", "zh", "yue"})  # languages without a space between sentences
_TRIED = 8  # combinations for each one of an n-best list, because different ones may have the same text

Total = Callable[[Sequence[float]], float]


class _Part(NamedTuple):
    """A sentence: its source, its translation, and what stands between this translation and the next."""

    source: str
    translation: Translation
    after: str


def join(parts: Sequence[Translation], sources: Sequence[str], language: str, n_best: int, total: Total) -> Translation:
    """One translation of the whole line. A sentence without a translation leaves no white space.

    parts:    translations of the sentences, at least one
    sources:  the sentences, with the white space that follows them
    language: of the translations
    total:    the score of a line from the scores of its sentences; it grows with each of them
    """
    if len(parts) == 1:
        return parts[0]
    whole = [_Part(*one, _separator(one[0], language)) for one in zip(sources, parts, strict=True)]
    some = [part for part in whole if part.translation.text]
    hypotheses: dict[str, Hypothesis] = {}  # by text
    choices = _best([[one.score for one in part.translation.n_best] for part in some], total)
    for choice in islice(choices, _TRIED * n_best):
        one = _joined(whole, choice, total)
        hypotheses.setdefault(one.text, one)
        if len(hypotheses) == n_best:
            break
    return Translation(
        tuple(chain.from_iterable(part.source_tokens for part in parts)),
        tuple(hypotheses.values()),
        tuple(f"sentence {n} of {len(parts)}: {note}" for n, part in enumerate(parts, start=1) for note in part.notes),
        any(part.is_cut for part in parts),
    )


def _separator(source: str, language: str) -> str:
    """What stands after a translated sentence: the white space of the source, without tabs and line breaks.

    A space as wide as a Chinese character stands only between sentences of such characters.
    """
    spaces = source[len(source.rstrip()) :]
    is_wide = two_letters(language) in _WITHOUT_SPACES
    if is_wide and len(spaces) <= 1:
        return ""
    kept = (one if unicodedata.category(one) == "Zs" and (is_wide or one != "\u3000") else " " for one in spaces)
    return "".join(kept) or " "


def _joined(parts: Sequence[_Part], choice: Sequence[int], total: Total) -> Hypothesis:
    """One hypothesis of the line. choice: for each sentence that has a translation, the index of its hypothesis."""
    indices, chosen = iter(choice), list[Hypothesis]()
    texts, alignment, words, token = list[str](), list[int](), list[tuple[int, int]](), 0
    read, written = WordCount(), WordCount()
    for part in parts:
        if part.translation.text:
            one = part.translation.n_best[next(indices)]
            chosen.append(one)
            alignment += [token + place for place in one.alignment or ()]
            words += [(read.before + source, written.before + target) for source, target in one.word_alignment or ()]
            if one.text:
                texts += [one.text, part.after]
                written.add(one.text + part.after)
        token += len(part.translation.source_tokens)
        read.add(part.source)
    scores = chain.from_iterable(one.token_scores or () for one in chosen)
    aligned = bool(chosen) and all(one.alignment is not None for one in chosen)
    return Hypothesis(
        "".join(texts[:-1]),
        tuple(chain.from_iterable(one.tokens for one in chosen)),
        total([one.score for one in chosen]) if chosen else 0.0,
        tuple(alignment) if aligned else None,
        tuple(scores) if aligned else None,
        tuple(words) if aligned else None,
    )


def _best(scores: Sequence[Sequence[float]], total: Total) -> Iterator[tuple[int, ...]]:
    """An index into each list, best total first. The lists are sorted, best first. Computed only as far as needed."""

    def entry(choice: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        return -total([some[index] for some, index in zip(scores, choice, strict=True)]) if choice else 0.0, choice

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
