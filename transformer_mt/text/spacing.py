"""Spaces between tokens, learned from text: they turn word tokens back into natural sentences.

A tokenizer that splits "don't" into "do" and "n't" loses the places of the spaces. This model learns which tokens
stick to the token before them, which stick to the token after them, and which pairs of neighbours are exceptions. All
other neighbours get a space. It works with any tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from typing_extensions import TypedDict

Pair = tuple[str, str]

_QUOTES = frozenset({'"', "'", "``", "''"})
# Defaults, which text can overrule. A corpus of captions, for example, may have no question mark.
_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'m", "'d")
_LEFT = frozenset([*".,;:!?%)]}…'”", "...", *_CLITICS, *(clitic.replace("'", "’") for clitic in _CLITICS)])
_RIGHT = frozenset("([{$#„")
_MAJORITY = 2  # votes for sticking, minus votes against; a single vote may be a typing mistake
_ROUNDS = 4  # `left` and `right` depend on each other; a few rounds are enough


class SavedSpacing(TypedDict):
    """The fields of `Spacing` as plain lists."""

    left: list[str]
    right: list[str]
    pairs: list[tuple[str, str, bool]]


class Spacing:
    """Decides for each token whether there is a space before it.

    left:    tokens that stick to the token before them ("," and "n't")
    right:   tokens that stick to the token after them ("(" and "$")
    pairs:   exceptions by (previous token, token): whether there is a space between them
    Quotation marks that look the same at both ends open and close alternately. A white-space token is a space.
    """

    def __init__(
        self, left: Iterable[str] = _LEFT, right: Iterable[str] = _RIGHT, pairs: Mapping[Pair, bool] | None = None
    ) -> None:
        self.left, self.right, self.pairs = frozenset(left), frozenset(right), dict(pairs or {})

    @classmethod
    def learn(cls, sentences: Iterable[tuple[Sequence[str], Sequence[bool]]]) -> Spacing:
        """Learn from sentences, each given as its tokens and, for each token, whether there is a space before it."""
        excess: Counter[Pair] = Counter()  # how much more often a pair is joined than spaced
        for tokens, spaces in sentences:
            for before, token, space in zip(tokens, tokens[1:], spaces[1:], strict=False):
                if token not in _QUOTES and before not in _QUOTES:
                    excess[before, token] += -1 if space else 1
        left, right = _attribute({pair: count > 0 for pair, count in excess.items()})
        by_rule = {(before, token): token not in left and before not in right for before, token in sorted(excess)}
        pairs = {pair: excess[pair] <= 0 for pair, space in by_rule.items() if space != (excess[pair] <= 0)}
        return cls(left, right, pairs)

    def join(self, tokens: Sequence[str]) -> str:
        """The sentence that the tokens make, with single spaces between its words."""
        tokens = [token for token in tokens if not token.isspace()]
        spaces = [False]  # before each token, and after the last
        for before, token in pairwise(tokens):
            by_rule = token not in self.left and before not in self.right
            spaces.append(self.pairs.get((before, token), by_rule))
        spaces.append(False)
        for opening, closing in _quotations(tokens):
            spaces[opening + 1] = False
            spaces[closing] = False
            spaces[opening] = opening > 0 and tokens[opening - 1] not in self.right
            spaces[closing + 1] = closing + 1 < len(tokens) and tokens[closing + 1] not in self.left
        return "".join(f" {token}" if space else token for space, token in zip(spaces, tokens, strict=False))

    def to_json(self) -> SavedSpacing:
        """The three fields as plain lists."""
        pairs = [(before, token, space) for (before, token), space in sorted(self.pairs.items())]
        return {"left": sorted(self.left), "right": sorted(self.right), "pairs": pairs}

    @classmethod
    def from_json(cls, values: SavedSpacing) -> Spacing:
        return cls(values["left"], values["right"], {(a, b): space for a, b, space in values["pairs"]})


def _attribute(joined: Mapping[Pair, bool]) -> tuple[set[str], set[str]]:
    """Tokens that stick to the token before them, and tokens that stick to the token after them.

    Each distinct neighbour of a token has one vote. A joined pair is caused by one of its two tokens: in "room." it is
    the ".", and "room" does not stick to other tokens. So a pair votes for a token only if the other token does not
    explain it already.
    """
    left: set[str] = set()
    right: set[str] = set()
    for _ in range(_ROUNDS):
        left = _mostly(_LEFT, ((token, stuck) for (before, token), stuck in joined.items() if before not in right))
        right = _mostly(_RIGHT, ((before, stuck) for (before, token), stuck in joined.items() if token not in left))
    return left, right


def _mostly(defaults: frozenset[str], votes: Iterable[tuple[str, bool]]) -> set[str]:
    """Tokens with a clear majority of votes for sticking. Those in `defaults` start with that majority."""
    balance = Counter(dict.fromkeys(defaults, _MAJORITY))
    for token, stuck in votes:
        balance[token] += 1 if stuck else -1
    return {token for token, excess in balance.items() if excess >= _MAJORITY}


def _quotations(tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Indices of opening and closing quotation marks, as pairs. A mark without a partner is left out."""
    opened: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if token in _QUOTES:
            if token in opened:
                yield opened.pop(token), place
            else:
                opened[token] = place
