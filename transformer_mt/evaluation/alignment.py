"""Word alignments: the Pharaoh format, and the alignment error rate."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

Link = tuple[int, int]  # positions of a source word and of a target word, from 0


def pharaoh(links: Iterable[Link]) -> str:
    """One line: `0-0 1-2`, sorted by the target word."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links, key=lambda link: link[::-1]))


@dataclass
class AlignmentError:
    """Counts over a test set, from which the alignment error rate follows (Och and Ney 2003, section 6)."""

    found: int = 0
    sure: int = 0
    found_and_sure: int = 0
    found_and_possible: int = 0

    def add(self, found: Set[Link], sure: Set[Link], possible: Set[Link]) -> None:
        """Count one sentence pair. possible: includes the sure links."""
        self.found += len(found)
        self.sure += len(sure)
        self.found_and_sure += len(found & sure)
        self.found_and_possible += len(found & (sure | possible))

    @property
    def precision(self) -> float:
        """Share of the found links that are possible."""
        return self.found_and_possible / max(self.found, 1)

    @property
    def recall(self) -> float:
        """Share of the sure links that were found."""
        return self.found_and_sure / max(self.sure, 1)

    @property
    def rate(self) -> float:
        """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), between 0 and 1; 0 is perfect."""
        total = self.found + self.sure
        return 1.0 - (self.found_and_sure + self.found_and_possible) / total if total else 0.0


def touching(links: Set[Link], words: Set[Link]) -> set[Link]:
    """The links with a source or target word that has a link in `words`: those that a truth about `words` can judge."""
    sources, targets = {source for source, _ in words}, {target for _, target in words}
    return {(source, target) for source, target in links if source in sources or target in targets}
