"""Minimum Bayes risk: of several candidates, the one most similar to the others (Kumar & Byrne 2004).

Similarity is sacreBLEU's chrF or BLEU of single sentences.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from transformer_mt.decoding.searches.base import Search, Sentences, option_of
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.decoding.searches.sampling import Sampling

if TYPE_CHECKING:
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.request import SearchResult

DRAWS = ("samples", *Sampling.settings)  # settings of samples, which a beam does not have
Utility = Callable[[str, str], float]  # (hypothesis, reference) -> 0 ... 100


class MinimumBayesRisk(Search):
    """Chooses among samples, or among the results of a beam search."""

    settings = ("candidates", "samples", "utility")
    misuse = ("{option} is for --mbr", "Add --mbr, which picks the candidate most similar to the others.")
    engines = ("tmt", "ctranslate2")

    def __init__(self, decoding: DecodingConfig, options: Any = None) -> None:
        super().__init__(decoding, options)
        self.proposer = Sampling(decoding, count=decoding.samples)
        if decoding.candidates == "beam":
            self.proposer = Beam(decoding, n_best=decoding.beam)
        self.rows, self.needs_attention = self.proposer.rows, self.proposer.needs_attention
        self.constrained_rows = self.proposer.constrained_rows

    @classmethod
    def problems(cls, decoding: DecodingConfig) -> list[str]:
        message = "minimum Bayes risk chooses among candidates, so"
        if decoding.candidates == "beam":
            return Beam.problems(decoding) + ([f"{message} beam must be at least 2"] if decoding.beam == 1 else [])
        return [f"{message} samples must be at least 2"] if decoding.samples == 1 else []

    @classmethod
    def adapt(cls, given: Collection[str]) -> dict[str, Any]:
        """With a given beam, its results are the candidates; with a setting of samples, samples are."""
        if "beam" in given:
            return {"candidates": "beam"}
        return {"candidates": "samples"} if any(name in given for name in DRAWS) else {}

    def refusal(self, given: Collection[str]) -> tuple[str, str] | None:
        drawn = [option_of(name) for name in DRAWS if name in given]
        if "beam" in given and drawn:
            message = f"with --beam, --mbr chooses among what the beam finds, but {drawn[0]} is for samples"
            return message, f"Remove --beam or {drawn[0]}."
        return super().refusal(given)

    def describe(self) -> str:
        candidates = self.proposer.describe() if isinstance(self.proposer, Beam) else f"{self.rows} samples"
        return f"minimum Bayes risk of {candidates}"

    def find(self, sentences: Sentences) -> list[list[SearchResult]]:
        return self.proposer.find(sentences)

    def choose(self, found: Sequence[SearchResult], decode: Callable[[Sequence[int]], str]) -> list[SearchResult]:
        """The results with different texts, the most similar to the others first; the similarity is their score."""
        logits = None  # the frequency of samples already reflects their probability
        if isinstance(self.proposer, Beam):
            found = found[: self.rows]  # a beam search may return more
            logits = [one.score for one in found]
        texts = [decode(one.ids) for one in found]
        first = dict(zip(reversed(texts), reversed(found), strict=True))  # the first result of each text
        ranked = consensus(texts, self.decoding.utility, logits)
        return [replace(first[text], score=score) for text, score in ranked][: self.decoding.n_best]

    def total(self, scores: Sequence[float]) -> float:
        """The mean, because a similarity is at most 100."""
        return fmean(scores)


def consensus(
    candidates: Sequence[str], utility: str = "chrf", logits: Sequence[float] | None = None
) -> list[tuple[str, float]]:
    """The distinct candidates with their expected utility (0 to 100) against all candidates, best first.

    utility: chrf or bleu
    logits:  as a reference, a candidate has the weight e^logit; None: equal weights. A candidate that occurs twice
             counts twice
    Candidates of equal utility keep their order.
    """
    score, weights = sentence_utility(utility), defaultdict[str, float](float)
    highest = max(logits or [0.0])
    for place, text in enumerate(candidates):
        weights[text] += math.exp(logits[place] - highest) if logits is not None else 1.0
    total = sum(weights.values())
    expected = {text: sum(weight * score(text, other) for other, weight in weights.items()) / total for text in weights}
    return sorted(expected.items(), key=lambda pair: -pair[1])


def sentence_utility(name: str) -> Utility:
    """sacreBLEU's score of a single sentence, chrf or bleu. BLEU has effective order, which short sentences need.

    Equal texts have 100, also if they are empty, for which sacreBLEU has 0.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

    metric = CHRF() if name == "chrf" else BLEU(effective_order=True)

    def utility(hypothesis: str, reference: str) -> float:
        return 100.0 if hypothesis == reference else float(metric.sentence_score(hypothesis, [reference]).score)

    return utility
