"""How well a score separates two groups."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """The probability that a random positive scores above a random negative; ties count half.

    This is the area under the ROC curve (Hanley and McNeil 1982): 1 separates perfectly, 0.5 is chance. Both groups
    must have members.
    """
    ordered = sorted(negatives)
    below = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in positives)
    return below / (2 * len(positives) * len(ordered))
