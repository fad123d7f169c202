"""Strengths and weaknesses of a system: scores by sentence length, and its best and worst sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.metrics import bleu_tokens, make_metric
from transformer_mt.evaluation.scores import Tokens, score

BUCKETS = ((0, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 50), (51, None))  # tokens of the reference


@dataclass(frozen=True)
class Bucket:
    """The sentences with references of `shortest` to `longest` tokens (None: no limit), and their scores."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    chrf: float
    length_ratio: float


@dataclass(frozen=True)
class Example:
    """One sentence with its chrF. line: counted from 1. source: empty if unknown. others: further references."""

    line: int
    chrf: float
    source: str
    reference: str
    hypothesis: str
    others: tuple[str, ...] = ()


def length_ratio(hypotheses: Tokens, references: Tokens) -> float:
    """Tokens of all hypotheses / tokens of all references; 0 if the references have no tokens."""
    total = sum(map(len, references))
    return sum(map(len, hypotheses)) / total if total else 0.0


def nearest(hypotheses: Tokens, references: Sequence[Tokens]) -> list[Sequence[str]]:
    """Of the references of each sentence, the one nearest in length, as in BLEU; of two equally near, the shorter."""
    return [
        min(some, key=lambda one: (abs(len(one) - len(hypothesis)), len(one)))
        for hypothesis, *some in zip(hypotheses, *references, strict=True)
    ]


def by_length(
    hypotheses: Sequence[str], references: Sequence[str], language: str = "", others: Sequence[Sequence[str]] = ()
) -> list[Bucket]:
    """The scores of each group of BUCKETS that has sentences; lengths are counted in BLEU's tokens.

    others: further references; the groups are by the length of the first
    """
    hypothesis_tokens = bleu_tokens(hypotheses, language)
    every = [references, *others]
    tokens_of_all = [bleu_tokens(one, language) for one in every]
    compared = nearest(hypothesis_tokens, tokens_of_all)
    found = []
    for shortest, longest in BUCKETS:
        upto = float("inf") if longest is None else longest
        rows = [n for n, tokens in enumerate(tokens_of_all[0]) if shortest <= len(tokens) <= upto]
        if rows:
            ours, first, *more = ([lines[n] for n in rows] for lines in (hypotheses, *every))
            scores = score(ours, first, language, ("bleu", "chrf"), others=more)
            ratio = length_ratio([hypothesis_tokens[n] for n in rows], [compared[n] for n in rows])
            found.append(Bucket(shortest, longest, len(rows), scores["bleu"].value, scores["chrf"].value, ratio))
    return found


def best_and_worst(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] = (),
    count: int = 10,
    others: Sequence[Sequence[str]] = (),
) -> tuple[list[Example], list[Example]]:
    """The `count` best sentences by chrF, best first, and the `count` worst, worst first.

    Of equal ones, the sentence with the longer reference is better, then the earlier one. No sentence is in both lists;
    with fewer than 2 * `count` sentences, each list has half of them. An empty translation of nothing has 100.
    others: further references of the same sentences
    """
    metric = make_metric("chrf")

    def chrf(hypothesis: str, every: Sequence[str]) -> float:
        return 100.0 if hypothesis in every else float(metric.sentence_score(hypothesis, every).score)

    rows = zip(sources or [""] * len(references), hypotheses, references, *others, strict=True)
    examples = [
        Example(line, chrf(hypothesis, [reference, *more]), source, reference, hypothesis, tuple(more))
        for line, (source, hypothesis, reference, *more) in enumerate(rows, start=1)
    ]
    ranked = sorted(examples, key=lambda example: (-example.chrf, -len(example.reference), example.line))
    half = (len(ranked) + 1) // 2
    return ranked[: min(count, half)], ranked[half:][::-1][:count]
