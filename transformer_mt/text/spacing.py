"""Which tokens stick together, learned from text: how word tokens become natural sentences again.

A tokenizer that splits "don't" into "do" and "n't" loses where the spaces were. This model remembers which
tokens stick to what stands before them, which to what follows, and the pairs of neighbours that break the
rule. Whatever it has never seen together gets a space. Knows nothing of any tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Pair = tuple[str, str]

_QUOTES = frozenset({'"', "'", "``", "''"})
# What is believed until the text speaks against it; a corpus of captions may hold no question mark.
_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'m", "'d")
_LEFT = frozenset([*".,;:!?%)]}…'”", "...", *_CLITICS, *(clitic.replace("'", "’") for clitic in _CLITICS)])
_RIGHT = frozenset("([{$#„")
_ENOUGH = 2  # neighbours more for sticking than against it; one may be a slip of the typist
_ROUNDS = 4  # left and right explain each other's evidence away; a few rounds settle it


class Spacing:
    """Space or no space before each token.

    left:    tokens that stick to what stands before them ("," and "n't")
    right:   tokens that what follows sticks to ("(" and "$")
    pairs:   exceptions by (previous token, token): is there a space between them?
    Quotation marks of one shape open and close in turn; white-space tokens count as a space.
    """

    def __init__(
        self, left: Iterable[str] = _LEFT, right: Iterable[str] = _RIGHT, pairs: Mapping[Pair, bool] | None = None
    ) -> None:
        self.left, self.right, self.pairs = frozenset(left), frozenset(right), dict(pairs or {})

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]]) -> Spacing:
        """From sentences as (tokens, for each token: stood a space before it?)."""
        excess: Counter[Pair] = Counter()  # how much more often a pair was joined than spaced
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces[1:], strict=False):
                if token not in _QUOTES and before not in _QUOTES:
                    excess[before, token] += -1 if space else 1
        left, right = _attribute({pair: count > 0 for pair, count in excess.items()})
        model = cls(left, right)
        model.pairs = {pair: excess[pair] <= 0 for pair in sorted(excess) if model._rule(*pair) != (excess[pair] <= 0)}
        return model

    def join(self, tokens: Sequence[str]) -> str:
        """The tokens as a sentence, single spaces between its words."""
        tokens = [token for token in tokens if not token.isspace()]
        spaces = [self._space(before, token) for before, token in pairwise(tokens)]
        spaces = [False, *spaces, False]  # before each token, and after the last
        for opening, closing in _quotations(tokens):
            spaces[opening + 1] = False
            spaces[closing] = False
            spaces[opening] = opening > 0 and tokens[opening - 1] not in self.right
            spaces[closing + 1] = closing + 1 < len(tokens) and tokens[closing + 1] not in self.left
        return "".join(f" {token}" if space else token for space, token in zip(spaces, tokens, strict=False))

    def _space(self, before: str, token: str) -> bool:
        return self.pairs.get((before, token), self._rule(before, token))

    def _rule(self, before: str, token: str) -> bool:
        return token not in self.left and before not in self.right

    def to_json(self) -> dict[str, Any]:
        pairs = [[before, token, space] for (before, token), space in sorted(self.pairs.items())]
        return {"left": sorted(self.left), "right": sorted(self.right), "pairs": pairs}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Spacing:
        """Raises KeyError, TypeError or ValueError where `values` are not what `to_json` made."""
        return cls(values["left"], values["right"], {(a, b): bool(space) for a, b, space in values["pairs"]})


def _attribute(joined: Mapping[Pair, bool]) -> tuple[set[str], set[str]]:
    """Which tokens are joined on their left, which on their right, by most of their distinct neighbours.

    A joined pair is the doing of one of the two: "." sticks to "room", "room" does not stick to what follows.
    So a pair speaks for a token only where its neighbour does not explain it already.
    """
    left: set[str] = set()
    right: set[str] = set()
    for _ in range(_ROUNDS):
        left = _mostly(_LEFT, ((token, stuck) for (before, token), stuck in joined.items() if before not in right))
        right = _mostly(_RIGHT, ((before, stuck) for (before, token), stuck in joined.items() if token not in left))
    return left, right


def _mostly(believed: frozenset[str], votes: Iterable[tuple[str, bool]]) -> set[str]:
    balance = Counter(dict.fromkeys(believed, _ENOUGH))
    for token, stuck in votes:
        balance[token] += 1 if stuck else -1
    return {token for token, excess in balance.items() if excess >= _ENOUGH}


def _quotations(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Places of opening and closing quotation marks; a mark without a partner is left to the rules."""
    waiting: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if token in _QUOTES:
            if token in waiting:
                yield waiting.pop(token), place
            else:
                waiting[token] = place
