"""Input and output of a search, for any engine: ids and lengths in plain Python, no tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from transformer_mt.text.vocabulary import EOS

if TYPE_CHECKING:  # searches import this file while the config is being built
    from torch import Tensor

    from transformer_mt.config.decoding import DecodingConfig

MOST_SENTENCES = 512  # in a batch on a CPU, even if they are short


class Constraint(NamedTuple):
    """Ids that a translation must contain side by side.

    patterns: the ways to write them; each counts
    times:    how often they must occur, and not more often
    lead:     the first ids of a pattern that are only a space, so that a translation may begin after them
    sources:  the places in the source that these ids translate
    avoided:  ids that would write the same once more, in other ways
    guarded:  whether its only id after the lead may follow nothing but the lead
    """

    patterns: tuple[tuple[int, ...], ...]
    times: int = 1
    lead: int = 0
    sources: tuple[int, ...] = ()
    avoided: tuple[int, ...] = ()
    guarded: bool = False


@dataclass(frozen=True)
class Request:
    """A sentence to translate.

    source:      its ids, with the end token
    prefix:      ids that its translation must begin with
    constraints: ids that its translation must contain
    joining:     ids that may not directly follow a constraint, because they would continue its last word
    every:       whether all results of a search are needed, because some may be wrong
    """

    source: Sequence[int]
    prefix: Sequence[int] = ()
    constraints: Sequence[Constraint] = ()
    joining: Sequence[int] = ()
    every: bool = False

    @property
    def constraint_tokens(self) -> int:
        """The most tokens that the constraints can take."""
        return sum(max(map(len, one.patterns)) * one.times for one in self.constraints)


@dataclass(frozen=True)
class SearchResult:
    """A translation as ids.

    ids:             without the start token; the end token comes last, unless the translation was stopped
    log_probability: sum over all ids, in nats
    score:           log-probability with length and coverage penalties; the higher, the better
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float

    @property
    def stopped(self) -> bool:
        """Whether it was cut at the longest allowed length, before an end token."""
        return not self.ids or self.ids[-1] != EOS

    @property
    def tokens(self) -> tuple[int, ...]:
        """The ids without the end token."""
        return self.ids if self.stopped else self.ids[:-1]


def length_penalty(length: int | Tensor, alpha: float) -> float | Tensor:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, arXiv:1609.08144, equation 14); |Y| counts the end token."""
    return ((5 + length) / 6) ** alpha


def batched(
    lengths: Sequence[int],
    rows: int,
    batch_tokens: int,
    max_positions: int | None = None,
    most: int = MOST_SENTENCES,
) -> Iterator[list[int]]:
    """Batches of sentence indices, longest first; sentences x longest source x rows <= `batch_tokens`, or one sentence.

    lengths:       source tokens of each sentence
    rows:          hypotheses of each sentence that are decoded at once
    max_positions: assert that no sentence is longer
    most:          sentences in a batch, even if they are short
    """
    assert max_positions is None or max(lengths, default=0) <= max_positions, "the caller cuts long sentences"
    order, start = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True), 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        end = start + max(1, min(most, batch_tokens // (longest * rows)))
        yield order[start:end]
        start = end


def allowed_lengths(request: Request, decoding: DecodingConfig, max_positions: int | None) -> tuple[int, int]:
    """The fewest tokens of a translation without its end token, and the most tokens with it; from the source's length.

    The most is at least one more than the prefix and the constraints, but never more than `max_positions`.
    """
    length = len(request.source) - (request.source[-1] == EOS)
    required = len(request.prefix) + request.constraint_tokens
    longest = max(int(decoding.max_length_ratio * length) + decoding.max_length_offset, 1, required + 1)
    longest = longest if max_positions is None else min(longest, max_positions)
    return min(int(decoding.min_length_ratio * length), longest - 1), longest
