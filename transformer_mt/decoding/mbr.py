"""Minimum Bayes risk: of several samples, the one that the others agree with most (Kumar & Byrne 2004).

Knows strings only; how much one supports another is sacreBLEU's sentence-level chrF or BLEU.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence

Utility = Callable[[str, str], float]  # (hypothesis, reference) -> 0 ... 100


def consensus(samples: Sequence[str], utility: str = "chrf") -> list[tuple[str, float]]:
    """The distinct samples with their expected utility against all samples, best first.

    A sample drawn often counts as often as a reference. Equals keep the order of their first appearance.
    utility: chrf or bleu.
    """
    judge, counts = sentence_utility(utility), Counter(samples)
    expected = [
        (text, sum(count * judge(text, other) for other, count in counts.items()) / len(samples)) for text in counts
    ]
    return sorted(expected, key=lambda pair: -pair[1])


def sentence_utility(name: str) -> Utility:
    """sacreBLEU's score of one sentence; BLEU with effective order, as short sentences need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sacrebleu.metrics import BLEU, CHRF

    metric = CHRF() if name == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(metric.sentence_score(hypothesis, [reference]).score)
