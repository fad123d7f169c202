"""Which tokens stick together, learned from text: how word tokens become natural sentences again.

A tokenizer that splits "don't" into "do" and "n't" loses where the spaces were. This model remembers, for
each token and for each pair of neighbours, whether a space stood before it more often than not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

_QUOTES = {'"', "'", "``", "''"}


class Spacing:
    """Space or no space before each token.

    pairs:   exceptions by (previous token, token)
    left:    tokens that stick to what stands before them ("," and "n't")
    right:   tokens that what follows sticks to ("(" and "$")
    Quotation marks of one shape open and close in turn.
    """

    def __init__(
        self, left: Iterable[str] = (), right: Iterable[str] = (), pairs: dict[tuple[str, str], bool] | None = None
    ) -> None:
        self.left, self.right, self.pairs = set(left), set(right), dict(pairs or {})

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]], min_count: int = 2) -> Spacing:
        """From sentences as (tokens, for each token: stood a space before it?)."""
        joined: Counter[tuple[str, str]] = Counter()
        spaced: Counter[tuple[str, str]] = Counter()
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces[1:], strict=False):
                if token not in _QUOTES and before not in _QUOTES:
                    (spaced if space else joined)[before, token] += 1
        model = cls(_mostly(joined, spaced, side=1), _mostly(joined, spaced, side=0))
        for pair in sorted({*joined, *spaced}):
            space = spaced[pair] >= joined[pair]
            if max(spaced[pair], joined[pair]) >= min_count and model._rule(*pair) != space:
                model.pairs[pair] = space
        return model

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens as a sentence."""
        pieces: list[str] = []
        quote_open: dict[str, bool] = {}
        stick = True
        for index, token in enumerate(tokens):
            if token in _QUOTES:
                closing = quote_open.get(token, False)
                quote_open[token] = not closing
                space, stick_next = not closing and not stick, not closing
            else:
                space = not stick and (index == 0 or self._space(tokens[index - 1], token))
                stick_next = False
            pieces.append(f" {token}" if space else token)
            stick = stick_next
        return "".join(pieces)

    def _space(self, before: str, token: str) -> bool:
        return self.pairs.get((before, token), self._rule(before, token))

    def _rule(self, before: str, token: str) -> bool:
        return token not in self.left and before not in self.right

    def to_json(self) -> dict[str, Any]:
        pairs = [[before, token, space] for (before, token), space in sorted(self.pairs.items())]
        return {"left": sorted(self.left), "right": sorted(self.right), "pairs": pairs}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Spacing:
        return cls(values["left"], values["right"], {(a, b): bool(space) for a, b, space in values["pairs"]})


def _mostly(joined: Counter[tuple[str, str]], spaced: Counter[tuple[str, str]], side: int) -> set[str]:
    """Tokens that on this side of a pair are joined more often than spaced."""
    balance: Counter[str] = Counter()
    for counts, sign in ((joined, 1), (spaced, -1)):
        for pair, count in counts.items():
            balance[pair[side]] += sign * count
    return {token for token, excess in balance.items() if excess > 0}
