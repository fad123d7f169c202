"""Minimum Bayes risk: of several translations, the one that the others agree with most (Kumar & Byrne 2004).

How much one translation supports another is sacreBLEU's sentence-level chrF or BLEU.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transformer_mt.decoding.searches.base import Search, Sentences, option_of
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.decoding.searches.sampling import Sampling

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult

DRAWS = ("samples", *Sampling.settings)  # settings that only samples have
Utility = Callable[[str, str], float]  # (hypothesis, reference) -> 0 ... 100


class MinimumBayesRisk(Search):
    """Chooses among samples, or among what a beam finds."""

    settings = ("candidates", "samples", "utility")
    elsewhere = ("{option} is for --mbr", "Add --mbr: of many, the one most like the others.")
    engines = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None) -> None:
        super().__init__(decoding, options)
        self.proposer = Sampling(decoding, count=decoding.samples)
        if decoding.candidates == "beam":
            self.proposer = Beam(decoding, n_best=decoding.beam)
        self.rows, self.needs_attention = self.proposer.rows, self.proposer.needs_attention

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        nothing = "minimum Bayes risk has nothing to choose from in"
        if decoding.candidates == "beam":
            return Beam.problems(decoding) + ([f"{nothing} a beam of 1"] if decoding.beam == 1 else [])
        return [f"{nothing} one sample"] if decoding.samples == 1 else []

    @classmethod
    def adapt(cls, given: Collection[str]) -> dict[str, Any]:
        """A beam that is given finds the candidates; a setting that only samples have means samples."""
        if "beam" in given:
            return {"candidates": "beam"}
        return {"candidates": "samples"} if any(name in given for name in DRAWS) else {}

    def refusal(self, given: Collection[str]) -> tuple[str, str] | None:
        drawn = [option_of(name) for name in DRAWS if name in given]
        if "beam" in given and drawn:
            return f"--mbr chooses among what --beam finds, and {drawn[0]} is for samples", "Leave one of the two out."
        return super().refusal(given)

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        return self.proposer.find(sentences)

    def choose(self, found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
        """The different texts, first what the others agree with most; their score is by how much."""
        logits = None  # the frequency of samples already reflects their probability
        if isinstance(self.proposer, Beam):
            found = found[: self.rows]  # a search may end with some more
            logits = [one.score for one in found]
        texts = [decode(one.ids) for one in found]
        first = dict(zip(reversed(texts), reversed(found), strict=True))  # of each text
        ranked = consensus(texts, self.decoding.utility, logits)
        return [replace(first[text], score=score) for text, score in ranked][: self.decoding.n_best]


def consensus(
    candidates: Sequence[str], utility: str = "chrf", logits: Sequence[float] | None = None
) -> list[tuple[str, float]]:
    """The distinct candidates with their expected utility against all candidates, best first.

    logits: as a reference, a candidate weighs e to the power of its logit; None: all weigh the same. One that comes
    twice counts twice. Equals keep the order of their first appearance. utility: chrf or bleu.
    """
    judge, weights = sentence_utility(utility), defaultdict[str, float](float)
    highest = max(logits or [0.0])
    for place, text in enumerate(candidates):
        weights[text] += math.exp(logits[place] - highest) if logits is not None else 1.0
    total = sum(weights.values())
    expected = {text: sum(weight * judge(text, other) for other, weight in weights.items()) / total for text in weights}
    return sorted(expected.items(), key=lambda pair: -pair[1])


def sentence_utility(name: str) -> Utility:
    """sacreBLEU's score of one sentence; BLEU with effective order, as short sentences need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

    metric = CHRF() if name == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(metric.sentence_score(hypothesis, [reference]).score)
