"""What translations must contain, for a beam search: dynamic beam allocation (Post and Vilar 2018, arXiv:1804.06609).

A hypothesis belongs to a bank: the number of constraint tokens it has. The places of a beam are given to the banks in
turn, so that a hypothesis with many constraint tokens, which costs probability, need not compete with one that has
none. All is computed for a batch at once, as in Hu et al. 2019 (N19-1090). Each pattern is followed by the shift-and
algorithm (Baeza-Yates and Gonnet 1992): a bit for each of its beginnings says whether the hypothesis ends with it. So a
token may belong to several patterns, and what the model writes by itself counts.

Letters: B sentences, W live hypotheses, N = B * W rows, V tokens of the vocabulary; P patterns of a sentence, L tokens
of the longest, C constraints of a sentence; X extensions of a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_mt.decoding.request import Constraint
from transformer_mt.decoding.step import Limits, look_steps, pad
from transformer_mt.kernels.top_candidates import top_candidates
from transformer_mt.text.vocabulary import EOS, PAD

_POINTING = 0.3  # times the squared attention to a term is the probability of its first token
_POINTING_MANY, _MANY = 0.9, 4  # the same in a sentence that needs as many terms as this: otherwise they pile up
_GOING_ON = 0.9  # the probability of the next token of a term that has begun; also the most that terms get together
_LIKELY = math.log(0.5)  # an end that is at least as likely
PATIENCE = 5  # steps that a search goes on after the best hypothesis would have ended
_LAST = 1 << 20  # rank of an extension that is not possible


Attention = Callable[[Any], Tensor]  # takes the cache after a step; returns the attention of each row [N, S]


class Extensions(NamedTuple):
    """Extensions of the live hypotheses of each sentence, those that a beam should keep first; -inf: not possible."""

    scores_BX: Tensor
    tokens_BX: Tensor
    parent_BX: Tensor  # which of the W live hypotheses it extends


@dataclass(frozen=True)
class Constraints:
    """The constraints of a batch, and how far each live hypothesis has met them."""

    patterns_BPL: Tensor  # ids; PAD after the end of a pattern
    lengths_BP: Tensor  # tokens of each pattern; 0 if a sentence has fewer patterns than another
    owner_BP: Tensor  # the constraint that a pattern belongs to
    needed_BC: Tensor  # how often each constraint must be met
    sizes_BC: Tensor  # tokens of the longest pattern of each constraint
    lead_BP: Tensor  # the first tokens of each pattern that are only a space
    ways_BC: Tensor  # number of patterns of each constraint
    avoided_BA: Tensor  # ids that must not be written; PAD if a sentence has fewer
    guarded_BP: Tensor  # the id after the lead of each pattern, if it may follow nothing else; else PAD
    spans_BCS: Tensor  # 1.0 at the places in the source that each constraint translates
    joining_J: Tensor  # ids that may not directly follow a pattern, because they would continue its last word
    met_BWC: Tensor  # how often each hypothesis has met each constraint
    ends_BWPL: Tensor  # bool: the hypothesis ends with the first l + 1 tokens of pattern p
    late_B: Tensor  # steps since the best hypothesis would have ended, if its constraints allowed it
    attention: Attention | None = None  # to the source; None: terms are not pointed at

    @classmethod
    def of(
        cls,
        constraints: Sequence[Sequence[Constraint]],
        joining: Sequence[int] = (),
        n_source: int = 0,
        attention: Attention | None = None,
        device: torch.device | str = "cpu",
    ) -> Constraints:
        """The constraints of each sentence, before the first step.

        joining: ids that may not directly follow a pattern. n_source: places in the source. attention: to them
        """
        flat = [[(place, ids) for place, one in enumerate(some) for ids in one.patterns] for some in constraints]
        longest = max((len(ids) for some in flat for _, ids in some), default=1)
        n_sentences, n_patterns, n_constraints = len(flat), max(map(len, flat)), max(map(len, constraints))
        patterns_BPL = torch.full((n_sentences, n_patterns, longest), PAD)
        lengths_BP, owner_BP, lead_BP, guarded_BP = torch.zeros(4, n_sentences, n_patterns, dtype=torch.long)
        needed_BC, sizes_BC, ways_BC = torch.zeros(3, n_sentences, n_constraints, dtype=torch.long)
        spans_BCS = torch.zeros(n_sentences, n_constraints, n_source)
        for sentence, some in enumerate(constraints):
            for place, one in enumerate(some):
                needed_BC[sentence, place], ways_BC[sentence, place] = one.times, len(one.patterns)
                sizes_BC[sentence, place] = max(map(len, one.patterns))
                spans_BCS[sentence, place, list(one.sources)] = 1.0
            for place, (owner, ids) in enumerate(flat[sentence]):
                patterns_BPL[sentence, place, : len(ids)] = torch.tensor(ids)
                lengths_BP[sentence, place], owner_BP[sentence, place] = len(ids), owner
                lead_BP[sentence, place] = lead = some[owner].lead
                guarded_BP[sentence, place] = ids[-1] if some[owner].guarded and len(ids) == lead + 1 > 1 else PAD
        avoided_BA = pad([[index for one in some for index in one.avoided] for some in constraints], "cpu")
        ends_BPL = torch.arange(longest) == (lead_BP[:, :, None] - 1)
        tensors = {
            "patterns_BPL": patterns_BPL,
            "lengths_BP": lengths_BP,
            "owner_BP": owner_BP,
            "needed_BC": needed_BC,
            "sizes_BC": sizes_BC,
            "lead_BP": lead_BP,
            "ways_BC": ways_BC.clamp(min=1),
            "avoided_BA": avoided_BA,
            "guarded_BP": guarded_BP,
            "spans_BCS": spans_BCS,
            "joining_J": torch.tensor(joining, dtype=torch.long),
            "met_BWC": torch.zeros_like(needed_BC)[:, None],
            "ends_BWPL": ends_BPL[:, None],
            "late_B": torch.zeros(n_sentences, dtype=torch.long),
        }
        return cls(attention=attention, **{name: tensor.to(device) for name, tensor in tensors.items()})

    def select(self, sentences_B: Tensor) -> Constraints:
        """The constraints of these sentences."""
        names = [one.name for one in fields(self) if one.name not in ("joining_J", "attention")]
        return replace(self, **{name: getattr(self, name)[sentences_B] for name in names})

    def pointed(self, log_p_NV: Tensor, cache: Any) -> Tensor:
        """Log-probabilities [N, V] of a model that may also point at a term.

        A part of the attention to the span of a constraint becomes the probability of its next token; the rest is left
        to the model's own words, as in a pointer-generator network (See et al. 2017, arXiv:1704.04368). So a term that
        the model finds unlikely costs little in its right place. The attention is squared: where it is spread over
        several words, it says little about the place. cache: after the step; has the attention
        """
        if self.attention is None:
            return log_p_NV
        attention_BWS = self.attention(cache).view(*self.met_BWC.shape[:2], -1)
        strength_B = torch.where(self.needed_BC.sum(dim=1) >= _MANY, _POINTING_MANY, _POINTING)
        share_BWC = torch.einsum("bws,bcs->bwc", attention_BWS, self.spans_BCS).square() * strength_B[:, None, None]
        open_BWP = self._open()
        share_BWP = (share_BWC / self.ways_BC[:, None]).gather(2, self.owner_BP[:, None].expand_as(open_BWP)) * open_BWP
        begun_BWP = (self._progress() > self.lead_BP[:, None]) & ~self._completed().any(dim=2, keepdim=True) & open_BWP
        share_BWP = torch.where(begun_BWP.any(dim=2, keepdim=True), _GOING_ON * begun_BWP, share_BWP)
        share_BWP = share_BWP * (_GOING_ON / share_BWP.sum(dim=2, keepdim=True).clamp(min=_GOING_ON))
        share_NP, next_NP = share_BWP.flatten(0, 1), self._next().flatten(0, 1)
        own_NV = log_p_NV + (1 - share_NP.sum(dim=1, keepdim=True)).log()
        same_NPP = next_NP[:, :, None] == next_NP[:, None]  # patterns with the same next token add up
        pointed_NP = (same_NPP * share_NP[:, None]).sum(dim=2).log()
        return own_NV.scatter_(1, next_NP, torch.logaddexp(own_NV.gather(1, next_NP), pointed_NP))

    def later(self, log_p_NV: Tensor, scores_BW: Tensor) -> Constraints:
        """The same one step later, before anything is forbidden."""
        ending_BW = log_p_NV[:, EOS].view_as(scores_BW) > _LIKELY
        ending_B = ending_BW.gather(1, scores_BW.argmax(dim=1, keepdim=True))[:, 0]
        return replace(self, late_B=self.late_B + ((self.late_B > 0) | ending_B))

    def forbid(self, log_p_NV: Tensor, limits: Limits, n_steps: int) -> None:
        """Set log-probabilities [N, V] to minus infinity, in place, except where a prefix decides.

        Forbidden are the end before all constraints are met, a pattern of a constraint that is met already, a guarded
        token without its lead, and tokens that would change the last word of a pattern.
        """
        width = self.met_BWC.shape[1]
        open_BWP, length_BWP = self._open(), self._progress()
        last_BP = self.patterns_BPL.gather(2, (self.lengths_BP - 1).clamp(min=0)[:, :, None])[:, :, 0]
        again_BWP = ~open_BWP & (length_BWP == self.lengths_BP[:, None] - 1)
        forbidden_BWP = torch.where(again_BWP, last_BP[:, None], PAD)  # padding is forbidden anyway
        before_NV = log_p_NV.clone() if n_steps < limits.prefix_BT.shape[1] else None
        # A longer pattern may continue the word of a shorter one.
        next_NP = torch.where(length_BWP > 0, self._next(), PAD).flatten(0, 1)
        next_log_p_NP = log_p_NV.gather(1, next_NP)
        complete_N = self._completed().any(dim=2).flatten()
        if look_steps(log_p_NV.device) == 1:  # few rows are complete
            log_p_NV[complete_N.nonzero(), self.joining_J] = -math.inf
        else:
            log_p_NV[:, self.joining_J] = log_p_NV[:, self.joining_J].masked_fill(complete_N[:, None], -math.inf)
        log_p_NV.scatter_(1, next_NP, next_log_p_NP)
        log_p_NV.scatter_(1, self.avoided_BA.repeat_interleave(width, dim=0), -math.inf)
        log_p_NV.scatter_(1, forbidden_BWP.flatten(0, 1), -math.inf)
        led_BWP = self.ends_BWPL.gather(3, (self.lead_BP - 1).clamp(min=0)[:, None, :, None].expand(-1, width, -1, -1))
        log_p_NV.scatter_(1, torch.where(led_BWP[..., 0], PAD, self.guarded_BP[:, None]).flatten(0, 1), -math.inf)
        log_p_NV[:, EOS].masked_fill_(~self._all_met(self.met_BWC).flatten(), -math.inf)
        if before_NV is not None:
            free_N = (limits.prefix_BT[:, n_steps] == PAD).repeat_interleave(width)
            log_p_NV.copy_(torch.where(free_N[:, None], log_p_NV, before_NV))

    def extensions(self, log_p_NV: Tensor, scores_BW: Tensor, beam: int) -> tuple[Extensions, Tensor]:
        """The extensions of all live hypotheses, best first, and [B, X] whether each meets all constraints.

        Each hypothesis is extended by its 2 * beam likeliest tokens and by the next tokens of its patterns. The banks
        get places in turn: first the best extension of each bank, then the second best of each, and so on. Within a
        turn the fullest bank comes first, which ensures that constraints are met in the end; the others are sorted
        by score.
        """
        n_sentences, width = scores_BW.shape
        likely_NK, tokens_NK, _ = top_candidates(log_p_NV, log_p_NV.new_zeros(len(log_p_NV), 1), 2 * beam)
        next_NP = self._next().flatten(0, 1)
        likely_NP = log_p_NV.gather(1, next_NP)
        earlier_NP = (next_NP[:, :, None] == next_NP[:, None]).tril(-1).any(dim=2)
        twice_NP = earlier_NP | (next_NP[:, :, None] == tokens_NK[:, None]).any(dim=2)
        likely_NP = likely_NP.masked_fill(twice_NP | (next_NP == PAD), -math.inf)
        likely_BWE = torch.cat([likely_NK, likely_NP], dim=1).view(n_sentences, width, -1)
        tokens_BX = torch.cat([tokens_NK, next_NP], dim=1).view(n_sentences, -1)
        scores_BX = (likely_BWE + scores_BW[:, :, None]).flatten(1)
        scores_BX, by_score_BX = scores_BX.sort(dim=1, descending=True, stable=True)
        possible_BX = scores_BX > -math.inf
        if look_steps(scores_BX.device) == 1:  # the others need no bank
            most = max(int(possible_BX.sum(dim=1).max()), beam)
            scores_BX, by_score_BX, possible_BX = scores_BX[:, :most], by_score_BX[:, :most], possible_BX[:, :most]
        tokens_BX, parent_BX = tokens_BX.gather(1, by_score_BX), by_score_BX // likely_BWE.shape[2]
        missing = (0, beam - tokens_BX.shape[1])  # if the vocabulary is smaller than the beam
        if missing[1] > 0:
            tokens_BX, parent_BX = F.pad(tokens_BX, missing, value=EOS), F.pad(parent_BX, missing)
            scores_BX, possible_BX = F.pad(scores_BX, missing, value=-math.inf), F.pad(possible_BX, missing)
        after = self.advanced(parent_BX, tokens_BX)
        bank_BX = after._banks().masked_fill(~possible_BX, -1)
        rank_BX = _rank_within(bank_BX).masked_fill(~possible_BX, _LAST)
        order_BX = (2 * rank_BX + (bank_BX < bank_BX.amax(dim=1, keepdim=True))).argsort(dim=1, stable=True)
        found = Extensions(*(x_BX.gather(1, order_BX) for x_BX in (scores_BX, tokens_BX, parent_BX)))
        return found, self._all_met(after.met_BWC).gather(1, order_BX)

    def advanced(self, parent_BX: Tensor, tokens_BX: Tensor) -> Constraints:
        """The state of X hypotheses: each is a live one, `parent`, with one more token."""
        sentence_B1 = torch.arange(len(parent_BX), device=parent_BX.device)[:, None]
        before_BXPL = self.ends_BWPL[sentence_B1, parent_BX]
        started_BXPL = torch.cat([torch.ones_like(before_BXPL[..., :1]), before_BXPL[..., :-1]], dim=3)
        ends_BXPL = started_BXPL & (tokens_BX[:, :, None, None] == self.patterns_BPL[:, None])
        after = replace(self, met_BWC=self.met_BWC[sentence_B1, parent_BX], ends_BWPL=ends_BXPL)
        completed_BXP = after._completed().long()
        met_BXC = torch.zeros_like(after.met_BWC)
        met_BXC.scatter_reduce_(2, self.owner_BP[:, None].expand_as(completed_BXP), completed_BXP, "amax")
        return replace(after, met_BWC=after.met_BWC + met_BXC)

    def _all_met(self, met_BWC: Tensor) -> Tensor:
        return (met_BWC >= self.needed_BC[:, None]).all(dim=2)

    def _open(self) -> Tensor:
        """[B, W, P] whether the constraint of each pattern must still be met."""
        open_BWC = self.met_BWC < self.needed_BC[:, None]
        return open_BWC.gather(2, self.owner_BP[:, None].expand(-1, open_BWC.shape[1], -1)) & (
            self.lengths_BP[:, None] > 0
        )

    def _completed(self) -> Tensor:
        """[B, W, P] whether the hypothesis ends with the whole pattern."""
        last_BP1 = (self.lengths_BP - 1).clamp(min=0)[:, None, :, None].expand(-1, self.ends_BWPL.shape[1], -1, -1)
        return self.ends_BWPL.gather(3, last_BP1)[..., 0] & (self.lengths_BP[:, None] > 0)

    def _progress(self) -> Tensor:
        """[B, W, P] tokens of the longest proper beginning of each pattern with which the hypothesis ends."""
        number_L = torch.arange(1, self.patterns_BPL.shape[2] + 1, device=self.lengths_BP.device)
        proper_BPL = number_L < self.lengths_BP[:, :, None]
        return ((self.ends_BWPL & proper_BPL[:, None]) * number_L).amax(dim=3)

    def _next(self) -> Tensor:
        """[B, W, P] the next token of each pattern that must still be met; else PAD."""
        patterns_BWPL = self.patterns_BPL[:, None].expand(-1, self.ends_BWPL.shape[1], -1, -1)
        return patterns_BWPL.gather(3, self._progress()[..., None])[..., 0].masked_fill(~self._open(), PAD)

    def _banks(self) -> Tensor:
        """[B, W] number of constraint tokens that each hypothesis has: those that are met, and one that has begun."""
        sizes_BP = self.sizes_BC.gather(1, self.owner_BP)
        met_BW = (self.met_BWC.minimum(self.needed_BC[:, None]) * self.sizes_BC[:, None]).sum(dim=2)
        progress_BWP = self._progress()
        begun_BWP = (progress_BWP + (sizes_BP - self.lengths_BP)[:, None]) * (progress_BWP > 0) * self._open()
        return met_BW + begun_BWP.amax(dim=2)


def _rank_within(bank_BX: Tensor) -> Tensor:
    """For each place, the number of earlier places with the same bank."""
    sorted_BX, by_bank_BX = bank_BX.sort(dim=1, stable=True)
    places_X = torch.arange(bank_BX.shape[1], device=bank_BX.device)
    rank_BX = places_X - torch.searchsorted(sorted_BX, sorted_BX)
    return torch.zeros_like(rank_BX).scatter_(1, by_bank_BX, rank_BX)
