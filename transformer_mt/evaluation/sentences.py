"""Strengths and weaknesses of a system: scores by sentence length, and its best and worst sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.metrics import bleu_tokens, make_metric
from transformer_mt.evaluation.scores import score

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
    """One sentence with its chrF. line: counted from 1. source: empty if unknown."""

    line: int
    chrf: float
    source: str
    reference: str
    hypothesis: str


def length_ratio(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Tokens of all hypotheses / tokens of all references; 0 if the references have no tokens."""
    total = sum(map(len, references))
    return sum(map(len, hypotheses)) / total if total else 0.0


def by_length(hypotheses: Sequence[str], references: Sequence[str], language: str = "") -> list[Bucket]:
    """The scores of each group of BUCKETS that has sentences; lengths are counted in BLEU's tokens."""
    hypothesis_tokens, reference_tokens = bleu_tokens(hypotheses, language), bleu_tokens(references, language)
    found = []
    for shortest, longest in BUCKETS:
        upto = float("inf") if longest is None else longest
        rows = [n for n, tokens in enumerate(reference_tokens) if shortest <= len(tokens) <= upto]
        if rows:
            scores = score([hypotheses[n] for n in rows], [references[n] for n in rows], language, ("bleu", "chrf"))
            ratio = length_ratio([hypothesis_tokens[n] for n in rows], [reference_tokens[n] for n in rows])
            found.append(Bucket(shortest, longest, len(rows), scores["bleu"].value, scores["chrf"].value, ratio))
    return found


def best_and_worst(
    hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] = (), count: int = 10
) -> tuple[list[Example], list[Example]]:
    """The `count` best sentences by chrF, best first, and the `count` worst, worst first.

    Of equal ones, the sentence with the longer reference is better, then the earlier one. No sentence is in both lists;
    with fewer than 2 * `count` sentences, each list has half of them. An empty translation of nothing has 100.
    """
    metric = make_metric("chrf")

    def chrf(hypothesis: str, reference: str) -> float:
        return 100.0 if hypothesis == reference else float(metric.sentence_score(hypothesis, [reference]).score)

    rows = zip(sources or [""] * len(references), references, hypotheses, strict=True)
    examples = [
        Example(line, chrf(hypothesis, reference), source, reference, hypothesis)
        for line, (source, reference, hypothesis) in enumerate(rows, start=1)
    ]
    ranked = sorted(examples, key=lambda example: (-example.chrf, -len(example.reference), example.line))
    half = (len(ranked) + 1) // 2
    return ranked[: min(count, half)], ranked[half:][::-1][:count]
