"""Scores of a whole test set: BLEU, chrF and TER on natural text, and BLEU of single n-gram orders on tokens.

Every figure is sacreBLEU's, with the signature that lets others repeat it; the table of n-gram orders comes
from the function that tutorials use, which the caller hands in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import METRICS, make_metric

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Tokens = Sequence[Sequence[str]]
BleuOfTokens = Callable[[Tokens, Tokens, int, Sequence[float]], float]  # hypotheses, references, order, weights
ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Score:
    """name: as sacreBLEU writes it (BLEU, chrF2, TER). line: the standard form, signature included."""

    name: str
    value: float
    signature: str
    line: str


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "",
    metrics: Sequence[str] = METRICS,
    *,
    lowercase: bool = False,
) -> dict[str, Score]:
    """Score natural text against one reference a sentence. Keys are those of `metrics`.

    language: the target language's ISO code; it chooses BLEU's tokenizer.
    Raises TmtError where the numbers of lines differ or there are none.
    """
    check_parallel(hypotheses, "the hypothesis", references, "the reference")
    return {name: _score(make_metric(name, language, lowercase=lowercase), hypotheses, references) for name in metrics}


def moses_tokenized(lines: Sequence[str], language: str) -> list[str]:
    """Lower-cased, punctuation normalised, tokenised and escaped as by the Moses scripts, without splitting hyphens.

    With these settings the official Multi30k test sets `*.lc.norm.tok.*` come out of the raw ones line by line.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(lang=language or "en"), MosesTokenizer(lang=language or "en")
    return [tokenizer.tokenize(normalizer.normalize(line.lower()), return_str=True) for line in lines]


def literature_bleu(hypotheses: Sequence[str], tokenized_references: Sequence[str], language: str) -> Score:
    """BLEU as most Multi30k papers report it: `moses_tokenized` hypotheses against references already in that form.

    Never to be set beside a cased 13a score without saying which is which.
    """
    from sacrebleu.metrics import BLEU

    check_parallel(hypotheses, "the hypothesis", tokenized_references, "the tokenised reference")
    metric = BLEU(tokenize="none", lowercase=True, force=True)
    return _score(metric, moses_tokenized(hypotheses, language), tokenized_references)


@dataclass(frozen=True)
class BleuTable:
    """BLEU-1 to BLEU-4 in percent. tokens: whose tokens were counted."""

    tokens: str
    individual: tuple[float, ...]
    cumulative: tuple[float, ...]


def bleu_table(hypotheses: Tokens, references: Tokens, bleu_of_tokens: BleuOfTokens, tokens: str) -> BleuTable:
    """The classic table: order n alone, and orders 1 to n with equal weights. No smoothing.

    bleu_of_tokens: corpus BLEU between 0 and 1, of hypotheses, references, highest order and weights.
    """

    def percent(order: int, weights: list[float]) -> float:
        return 100.0 * bleu_of_tokens(hypotheses, references, order, weights)

    return BleuTable(
        tokens,
        individual=tuple(percent(n, [0.0] * (n - 1) + [1.0]) for n in ORDERS),
        cumulative=tuple(percent(n, [1.0 / n] * n) for n in ORDERS),
    )


def check_parallel(lines: Sequence[str], name: str, others: Sequence[str], other_name: str) -> None:
    """Raises TmtError unless both hold as many lines, at least one."""
    if not lines or not others:
        raise TmtError("there is nothing to score", place=name if not lines else other_name)
    if len(lines) != len(others):
        raise TmtError(
            f"{name} has {len(lines):,} lines, {other_name} has {len(others):,}",
            remedy="Line n of one must belong to line n of the other. Look for a line break inside a sentence,"
            " or a program that left out empty lines.",
        )


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(references)])
    signature = str(metric.get_signature())
    return Score(result.name, float(result.score), signature, result.format(2, False, signature))
