"""What a search is asked and what it finds, whichever engine searches: ids and lengths in plain Python, no tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_mt.text.vocabulary import EOS

if TYPE_CHECKING:  # a search imports this file while the config is being built
    from torch import Tensor

    from transformer_mt.config.decoding import DecodingConfig

MOST_SENTENCES = 512  # of a batch, however short they are


@dataclass(frozen=True)
class Request:
    """A sentence to translate: its ids with the end mark, and the ids its translation must begin with."""

    source: Sequence[int]
    prefix: Sequence[int] = ()


@dataclass(frozen=True)
class SearchResult:
    """A translation as ids, with its log-probability and its score.

    ids:             without the start mark; the end mark comes last unless the sentence was stopped
    log_probability: sum over all ids
    score:           what hypotheses are ranked by: log-probability under the penalties
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float

    @property
    def stopped(self) -> bool:
        """Was it cut at the longest length allowed, before its end mark?"""
        return not self.ids or self.ids[-1] != EOS

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids without the end mark."""
        return self.ids if self.stopped else self.ids[:-1]


def length_penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, arXiv:1609.08144, equation 14); |Y| counts the end mark."""
    return ((5 + length) / 6) ** alpha


def batched(
    lengths: Sequence[int], rows: int, batch_tokens: int, max_positions: int | None = None
) -> Iterator[list[int]]:
    """Indices of sentences of similar length, at most `batch_tokens` source tokens times rows in a batch."""
    assert max_positions is None or max(lengths, default=0) <= max_positions, "the caller cuts long sentences"
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[batch[0]] if batch else lengths[index]
        if batch and (len(batch) == MOST_SENTENCES or (len(batch) + 1) * longest * rows > batch_tokens):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def allowed_lengths(request: Request, decoding: DecodingConfig, max_positions: int | None) -> tuple[int, int]:
    """Fewest tokens before the end mark, and most tokens with it, relative to the source's tokens.

    A translation has room for its prefix and one more token, but never for more than the model has positions.
    """
    length = len(request.source) - (request.source[-1] == EOS)
    longest = max(int(decoding.max_length_ratio * length) + decoding.max_length_offset, 1, len(request.prefix) + 1)
    longest = longest if max_positions is None else min(longest, max_positions)
    return min(int(decoding.min_length_ratio * length), longest - 1), longest
