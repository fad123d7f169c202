"""What a model says of a given translation: the log-probability of each token, and word alignments from its attention.

`Translator._force` computes them, by teacher forcing.

Alignments come from the cross-attention of the last layer, averaged over its heads and over the models of an ensemble,
at the step that writes the token. `scripts/measure_alignment.py` compares this with the other layers (Garg et al. 2019,
arXiv:1909.02074, align best with the last but one of six) and with the step that reads the token (Chen et al. 2020,
arXiv:2004.14837): on the phrasebook, both have more errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from transformer_mt.text.words import words_across

Weights = np.ndarray[Any, Any]
Texts = Sequence[tuple[str, str]]
Link = tuple[int, int]  # positions of a source word and of a target word, from 0


class Forced(NamedTuple):
    """What a model says of a given translation. None for what was not requested.

    log_probabilities: of each id, in nats, end token included
    attention_TS:      weights of the source tokens (end token included) for each id
    """

    log_probabilities: Sequence[float] | None
    attention_TS: Weights | None


@dataclass(frozen=True, repr=False)
class PairScore:
    """How probable a target sentence is as the translation of its source.

    tokens:         of the target; the last is the end token
    token_scores:   log-probability of each token, in nats
    word_alignment: (source word, target word), counted from 0 in the lines split at white space; None unless requested
    prior:          log-probability of the target after an empty source; None unless requested
    notes:          what a user must know: an empty side, unknown words, a side that was cut
    is_cut:         whether the target was too long, so that its end was not read
    """

    source_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    token_scores: tuple[float, ...]
    word_alignment: tuple[Link, ...] | None = None
    prior: float | None = None
    notes: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def log_probability(self) -> float:
        """Of the whole target, in nats."""
        return sum(self.token_scores)

    @property
    def mean(self) -> float:
        """Log-probability per token, in nats."""
        return self.log_probability / len(self.token_scores)

    @property
    def gain(self) -> float | None:
        """What the source adds, in nats per token: near 0 or below for a target that does not belong to it."""
        return None if self.prior is None else (self.log_probability - self.prior) / len(self.token_scores)

    def __repr__(self) -> str:
        return f"PairScore({self.log_probability:.4f}, {len(self.tokens)} tokens, {self.mean:.4f} per token)"


class ReferenceLoss(NamedTuple):
    """The loss of references under a model.

    nats:   sum of -log p over the tokens of all references, end tokens included
    tokens: number of these tokens
    n_cut:  number of references that were too long, so that their end was not read
    """

    nats: float
    tokens: int
    n_cut: int

    @classmethod
    def of(cls, scores: Iterable[PairScore]) -> ReferenceLoss:
        total = cls(0.0, 0, 0)
        for one in scores:
            total = cls(total.nats - one.log_probability, total.tokens + len(one.tokens), total.n_cut + one.is_cut)
        return total


def aligned_tokens(weights_TS: Weights) -> list[int]:
    """For each target token, the source token with the most attention.

    The source's end token attracts attention that means nothing, so it is left out, except for an empty source.
    """
    best: list[int] = weights_TS[:, : max(weights_TS.shape[1] - 1, 1)].argmax(axis=1).tolist()
    return best


def aligned_words(
    weights_TS: Weights, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> tuple[Link, ...]:
    """Links between a source word and a target word that each have the largest weight for the other.

    source_words, target_words: for each token the position of its word, None for tokens to ignore
    """
    weights_YX = word_weights(weights_TS, source_words, target_words)
    if not weights_YX.size:
        return ()
    best_Y, best_X = weights_YX.argmax(axis=1), weights_YX.argmax(axis=0)
    return tuple((int(x), y) for y, x in enumerate(best_Y) if best_X[x] == y and weights_YX[y, x] > 0)


def links_across(links: Sequence[Link], sources: Texts, targets: Texts) -> tuple[Link, ...]:
    """Links between the words of two texts as links between those of two others.

    sources, targets: the two texts of each side, part by part
    """
    found: dict[Link, None] = {}
    of_sources, of_targets = words_across(sources), words_across(targets)
    for source, target in links:
        if source < len(of_sources) and target < len(of_targets):
            one, other = of_sources[source], of_targets[target]
            found |= dict.fromkeys(zip(one, other, strict=True) if len(one) == len(other) else product(one, other))
    return tuple(found)


def word_weights(
    weights_TS: Weights, source_words: Sequence[int | None], target_words: Sequence[int | None]
) -> Weights:
    """[Y target words, X source words]: the sum over the tokens of two words, as a share of all of the target word."""
    sources = {n: word for n, word in enumerate(source_words) if word is not None}
    targets = {n: word for n, word in enumerate(target_words) if word is not None}
    weights_YX = np.zeros((max(targets.values(), default=-1) + 1, max(sources.values(), default=-1) + 1))
    places, weights = np.ix_([*targets.values()], [*sources.values()]), weights_TS[np.ix_([*targets], [*sources])]
    np.add.at(weights_YX, places, weights)
    weights_YX /= np.maximum(weights_YX.sum(axis=1, keepdims=True), 1e-12)
    return weights_YX
