"""What all searches share: the step function that they call, and the limits of translations.

A search knows a step function and a cache that it can reorder, not a model. The rows N of a batch are the hypotheses of
its sentences, sentence by sentence: row n belongs to sentence n // W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from transformer_mt.kernels.top_candidates import own_kernels
from transformer_mt.text.vocabulary import BOS, EOS, PAD


class Cache(Protocol):
    """What a step function keeps about its rows."""

    def select(self, sentences_B: Tensor) -> Self:
        """The cache of these sentences, each with all its rows."""

    def reorder(self, rows_N: Tensor) -> Self:
        """The cache in which row n continues row rows_N[n] of the same sentence.

        There may be more rows than before, if several hypotheses continue the same one.
        """


C = TypeVar("C", bound=Cache)
Step = Callable[[Tensor, C], tuple[Tensor, C]]  # (previous_N, cache) -> (logits_NV, longer cache)

LOOK_STEPS = {"cpu": 1}  # steps after which a search looks at numbers on a device of this type
GPU_LOOK_STEPS = 8


def look_steps(device: torch.device) -> int:
    """After how many steps a search looks whether sentences have ended: 1 on a CPU, where looking is free.

    A look makes the host wait for a GPU, which then waits for the host: it has no queue of kernels any more.
    """
    return LOOK_STEPS.get(device.type, GPU_LOOK_STEPS)


def pad(rows: Sequence[Sequence[int]], device: torch.device | str) -> Tensor:
    """Ids [B, T], filled up with PAD on the right."""
    lengths_B = np.fromiter(map(len, rows), np.int64, len(rows))
    ids_BT = np.full((len(rows), lengths_B.max(initial=0)), PAD, np.int64)
    ids_BT[np.arange(ids_BT.shape[1]) < lengths_B[:, None]] = np.fromiter(chain.from_iterable(rows), np.int64)
    return upload(torch.from_numpy(ids_BT), device)


def upload(values: Tensor, device: torch.device | str) -> Tensor:
    """A tensor of the host on the device. The host does not wait for a GPU."""
    if torch.device(device).type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type for scores, which are sums of many: at least float32."""
    return torch.promote_types(dtype, torch.float32)


def log_probabilities(logits: Tensor) -> Tensor:
    """log(softmax) over the last dimension, at least in float32."""
    return logits.log_softmax(dim=-1, dtype=wide(logits.dtype))


def summands(logits_NV: Tensor, scores_BW: Tensor) -> tuple[Tensor, Tensor]:
    """Two addends, of tokens [N, V] and of rows [B, W]: their sum is the log-probability of each longer hypothesis.

    On a GPU with many rows, the first are the logits themselves: nothing of their size is written.
    """
    own = own_kernels(logits_NV)
    if own is None:
        return log_probabilities(logits_NV), scores_BW
    return logits_NV, scores_BW - own.log_sums(logits_NV).view_as(scores_BW)


def coverage_penalty(coverage_S: Tensor, beta: float) -> Tensor:
    """cp(X; Y) = beta * sum_i log(min(attention that source position i received, 1)) (Wu et al. 2016, equation 14).

    coverage: [..., S] to a penalty [...]. Attention below 1e-6 counts as 1e-6, so that the penalty stays finite.
    """
    return beta * coverage_S.clamp(1e-6, 1.0).log().sum(dim=-1)


@dataclass(frozen=True)
class Limits:
    """The limits of the translations of a batch.

    shortest_B:      the fewest tokens before the end token
    longest_B:       the most tokens, end token included; a translation that has not ended then is stopped
    prefix_BT:       ids that a translation must begin with; PAD where any id is allowed
    no_repeat_ngram: no sequence of this many tokens may occur twice; 0: no limit
    min_steps:       the largest of shortest_B, as a Python number: later steps need no look at shortest_B
    max_steps:       the largest of longest_B, as a Python number: after so many steps all translations are stopped
    first_tag:       ids from here on are tags, which a translation cannot have; None: there are none
    """

    shortest_B: Tensor
    longest_B: Tensor
    prefix_BT: Tensor
    no_repeat_ngram: int
    min_steps: int
    max_steps: int
    first_tag: int | None = None

    @classmethod
    def of(
        cls,
        shortest: Sequence[int],
        longest: Sequence[int],
        prefixes: Sequence[Sequence[int]] | None = None,
        no_repeat_ngram: int = 0,
        device: torch.device | str = "cpu",
        first_tag: int | None = None,
    ) -> Limits:
        return cls(
            upload(torch.tensor(list(shortest)), device),
            upload(torch.tensor(list(longest)), device),
            pad(prefixes or [()] * len(longest), device),
            no_repeat_ngram,
            max(shortest, default=0),
            max(longest, default=0),
            first_tag,
        )

    def select(self, sentences_B: Tensor) -> Limits:
        """The limits of these sentences."""
        return replace(
            self,
            shortest_B=self.shortest_B[sentences_B],
            longest_B=self.longest_B[sentences_B],
            prefix_BT=self.prefix_BT[sentences_B],
        )

    def forbid(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """Set the logits [N, V] of tokens that may not follow tokens_NT [N, T] to minus infinity, in place.

        Padding, the start token and tags are always forbidden. A row in which everything is forbidden may end.
        """
        n_steps, width = tokens_NT.shape[1], logits_NV.shape[0] // len(self.longest_B)
        free_NV = logits_NV.clone() if n_steps < self.prefix_BT.shape[1] else None  # a prefix overrules other limits
        end_logit_N = logits_NV[:, EOS].clone() if self.no_repeat_ngram else None
        logits_NV[:, PAD] = -math.inf
        logits_NV[:, BOS] = -math.inf
        if self.first_tag is not None:
            logits_NV[:, self.first_tag :] = -math.inf
        if n_steps < self.min_steps:
            logits_NV[:, EOS].masked_fill_((self.shortest_B > n_steps).repeat_interleave(width), -math.inf)
        if end_logit_N is not None:
            _forbid_repeats(logits_NV, tokens_NT, self.no_repeat_ngram)
            stuck_N = logits_NV.amax(dim=-1) == -math.inf
            logits_NV[:, EOS] = torch.where(stuck_N, end_logit_N, logits_NV[:, EOS])
        if free_NV is not None:
            forced_N1 = self.prefix_BT[:, n_steps].repeat_interleave(width)[:, None]
            forced_NV = torch.full_like(free_NV, -math.inf).scatter_(1, forced_N1, free_NV.gather(1, forced_N1))
            logits_NV.copy_(torch.where(forced_N1 == PAD, logits_NV, forced_NV))


def _forbid_repeats(logits_NV: Tensor, tokens_NT: Tensor, n: int) -> None:
    """Forbid each token that already followed the same n - 1 tokens as the newest ones."""
    if tokens_NT.shape[1] < n:
        return
    windows_NXn = tokens_NT.unfold(1, n, 1)  # X windows of n tokens
    newest_N1n = tokens_NT[:, None, tokens_NT.shape[1] - (n - 1) :]
    repeats_NX = (windows_NXn[:, :, :-1] == newest_N1n).all(dim=-1)
    forbidden_NX = torch.where(repeats_NX, windows_NXn[:, :, -1], PAD)  # padding is forbidden anyway
    logits_NV.scatter_(1, forbidden_NX, -math.inf)


def too_many_idle(n_idle: int, n_all: int) -> bool:
    """Whether enough sentences are finished to make removing them worth a copy of the others."""
    return n_idle * 8 >= n_all


def unfinished(finished_B: Tensor, n_finished: int) -> Tensor:
    """The places of sentences that are not finished, in order. Their number is known, so no device has to be asked."""
    return finished_B.to(torch.uint8).argsort(stable=True)[: len(finished_B) - n_finished]
