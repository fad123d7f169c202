"""Is one system really better than another? Paired bootstrap resampling (Koehn 2004) with sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformer_mt.evaluation.metrics import METRICS, make_metric
from transformer_mt.evaluation.scores import check_parallel

SAMPLES = 1000
SIGNIFICANT = 0.05
FEWEST = 30  # sentences: samples of fewer are too much alike to show chance


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
        return "better" if (self.system > self.baseline) != (self.metric == "TER") else "worse"


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    language: str = "",
    metrics: Sequence[str] = METRICS,
    samples: int = SAMPLES,
) -> dict[str, Comparison]:
    """Compare two systems on the same references; the keys of the result are `metrics`.

    language: ISO code of the target; it decides BLEU's tokenizer. samples: of the bootstrap.
    sacreBLEU's seed is fixed, so the same lines give the same p-values.
    Raises TmtError if the numbers of lines differ or there are no lines.
    """
    from sacrebleu.significance import PairedTest

    check_parallel(baseline, "the baseline", references, "the reference")
    check_parallel(system, "the hypothesis", references, "the reference")
    test = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        {name: make_metric(name, language) for name in metrics},
        [list(references)],
        test_type="bs",
        n_samples=samples,
    )
    signatures, results = test()
    names = [name for name in results if name != "System"]  # sacreBLEU's names, in the order of `metrics`
    return {
        metric: _comparison(name, results[name], str(signatures[name]), len(references))
        for metric, name in zip(metrics, names, strict=True)
    }


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
