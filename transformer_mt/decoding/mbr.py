"""Minimum Bayes risk: of several translations, the one that the others agree with most (Kumar & Byrne 2004).

Knows strings only; how much one supports another is sacreBLEU's sentence-level chrF or BLEU.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence

Utility = Callable[[str, str], float]  # (hypothesis, reference) -> 0 ... 100


def consensus(
    candidates: Sequence[str], utility: str = "chrf", logits: Sequence[float] | None = None
) -> list[tuple[str, float]]:
    """The distinct candidates with their expected utility against all candidates, best first.

    As a reference each counts in proportion to e to its logit, or all alike; one that comes twice counts twice.
    Equals keep the order of their first appearance. utility: chrf or bleu.
    """
    judge, weights = sentence_utility(utility), defaultdict[str, float](float)
    highest = max(logits or [0.0])
    for place, text in enumerate(candidates):
        weights[text] += math.exp(logits[place] - highest) if logits is not None else 1.0
    total = sum(weights.values())
    expected = [
        (text, sum(weight * judge(text, other) for other, weight in weights.items()) / total) for text in weights
    ]
    return sorted(expected, key=lambda pair: -pair[1])


def sentence_utility(name: str) -> Utility:
    """sacreBLEU's score of one sentence; BLEU with effective order, as short sentences need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sacrebleu.metrics import BLEU, CHRF

    metric = CHRF() if name == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(metric.sentence_score(hypothesis, [reference]).score)
