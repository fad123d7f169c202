"""How much of a score is chance? Bootstrap resampling (Koehn 2004) with sacreBLEU, of one system and of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformer_mt.evaluation.metrics import BY_DEFAULT, METRICS, make_metric
from transformer_mt.evaluation.scores import check_parallel

SAMPLES = 1000
SIGNIFICANT = 0.05
FEWEST = 30  # sentences: samples of fewer are too much alike to show chance
MOST = 2_000  # sentences for the interval of a single score, for its memory; it is narrow then


@dataclass(frozen=True)
class Comparison:
    """The scores of two systems by one metric, each with half the width of its 95 % confidence interval.

    p_value:   probability of a difference at least this large between systems of equal quality
    signature: sacreBLEU's signature, with the number of samples and the seed
    sentences: their number
    """

    metric: str
    baseline: float
    baseline_interval: float
    system: float
    system_interval: float
    p_value: float
    signature: str
    sentences: int

    @property
    def significant(self) -> bool:
        """Whether p < 0.05, of enough sentences."""
        return self.p_value < SIGNIFICANT and self.sentences >= FEWEST

    @property
    def verdict(self) -> str:
        """better or worse than the baseline; empty if the difference is not significant."""
        if not self.significant:
            return ""
        lower_is_better = any(one.lower_is_better for one in METRICS.values() if one.title == self.metric)
        return "better" if (self.system > self.baseline) != lower_is_better else "worse"


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    language: str = "",
    metrics: Sequence[str] = BY_DEFAULT,
    samples: int = SAMPLES,
    others: Sequence[Sequence[str]] = (),
) -> dict[str, Comparison]:
    """Compare two systems on the same references; the keys of the result are `metrics`.

    language: ISO code of the target; it decides BLEU's tokenizer. samples: of the bootstrap.
    others:   further references of the same sentences
    sacreBLEU's seed is fixed, so the same lines give the same p-values.
    Raises TmtError if the numbers of lines differ or there are no lines.
    """
    every = [references, *others]
    for one in every:
        check_parallel(baseline, "the baseline", one, "the reference")
        check_parallel(system, "the hypothesis", one, "the reference")
    signatures, results = _resampled({"baseline": baseline, "system": system}, every, language, metrics, samples)
    return {
        metric: _comparison(name, results[name], str(signatures[name]), len(references))
        for metric, name in zip(metrics, results, strict=True)
    }


def intervals(
    system: Sequence[str],
    references: Sequence[str],
    language: str = "",
    metrics: Sequence[str] = BY_DEFAULT,
    others: Sequence[Sequence[str]] = (),
) -> dict[str, float]:
    """Half the width of the 95 % confidence interval of each score: very many sentences of this kind would score in it.

    others: further references of the same sentences. Empty with fewer than FEWEST or more than MOST sentences.
    """
    if not FEWEST <= len(references) <= MOST:
        return {}
    _, results = _resampled({"system": system}, [references, *others], language, metrics, SAMPLES)
    return {metric: float(one.ci) for metric, (one,) in zip(metrics, results.values(), strict=True)}


def _resampled(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    language: str,
    metrics: Sequence[str],
    samples: int,
) -> tuple[Mapping[str, Any], dict[str, Sequence[Any]]]:
    """Signatures and results of each system, by sacreBLEU's name of the metric, in the order of `metrics`."""
    from sacrebleu.significance import PairedTest

    test = PairedTest(
        [(name, list(lines)) for name, lines in systems.items()],
        {name: make_metric(name, language) for name in metrics},
        [list(one) for one in references],
        test_type="bs",
        n_samples=samples,
    )
    signatures, results = test()
    return signatures, {name: some for name, some in results.items() if name != "System"}


def _comparison(name: str, results: Sequence[Any], signature: str, sentences: int) -> Comparison:
    """sacreBLEU's results of the baseline and of the system, as plain floats (chrF's intervals are numpy's float32)."""
    baseline, system = results
    return Comparison(
        name,
        baseline=float(baseline.score),
        baseline_interval=float(baseline.ci),
        system=float(system.score),
        system_interval=float(system.ci),
        p_value=1.0 if system.score == baseline.score else float(system.p_value),  # sacreBLEU gives the smallest
        signature=signature,
        sentences=sentences,
    )
