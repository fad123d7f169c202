"""Scores of a whole test set: by each metric on natural text, and BLEU of single n-gram orders on tokens.

sacreBLEU computes every score, with a signature that lets others repeat it. The table of n-gram orders is computed by a
function that the caller passes (`bleu_of_tokens` in text/vocabulary.py, which many tutorials use).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from transformer_mt.config.languages import two_letters
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.metrics import BY_DEFAULT, make_metric

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

Tokens = Sequence[Sequence[str]]
# hypotheses; first reference, second reference ... of each sentence; highest order; weights of the orders
BleuOfTokens = Callable[[Tokens, Sequence[Tokens], int, Sequence[float]], float]
ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Score:
    """One score in percent. name: as in sacreBLEU, such as BLEU. line: the standard form with the signature."""

    name: str
    value: float
    signature: str
    line: str = field(repr=False)

    def __str__(self) -> str:
        return self.line


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "",
    metrics: Sequence[str] = BY_DEFAULT,
    *,
    lowercase: bool = False,
    others: Sequence[Sequence[str]] = (),
) -> dict[str, Score]:
    """The scores of natural text; the keys of the result are `metrics`.

    language: ISO code of the target language; it decides BLEU's tokenizer.
    others:   further references of the same sentences
    Raises TmtError if the numbers of lines differ or there are no lines.
    """
    every = [references, *others]
    for one in every:
        check_parallel(hypotheses, "the hypothesis", one, "the reference")
    return {name: _score(make_metric(name, language, lowercase=lowercase), hypotheses, every) for name in metrics}


def moses_tokenized(lines: Sequence[str], language: str) -> list[str]:
    """The lines lower-cased, then normalised, tokenised and escaped like the Moses scripts; hyphens are not split.

    These settings turn the raw Multi30k test sets into the official `*.lc.norm.tok.*`, line by line.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    code = two_letters(language) or "en"
    normalizer, tokenizer = MosesPunctNormalizer(lang=code), MosesTokenizer(lang=code)
    return [tokenizer.tokenize(normalizer.normalize(line.lower()), return_str=True) for line in lines]


def literature_bleu(hypotheses: Sequence[str], tokenized_references: Sequence[Sequence[str]], language: str) -> Score:
    """BLEU as most Multi30k papers report it; it cannot be compared with a cased 13a score.

    hypotheses: natural text; they go through `moses_tokenized`.
    tokenized_references: the lines of one or more references, already in that form.
    Raises TmtError if the numbers of lines differ or there are no lines.
    """
    from sacrebleu.metrics.bleu import BLEU

    for one in tokenized_references:
        check_parallel(hypotheses, "the hypothesis", one, "the tokenised reference")
    metric = BLEU(tokenize="none", lowercase=True, force=True)
    return _score(metric, moses_tokenized(hypotheses, language), tokenized_references)


@dataclass(frozen=True)
class BleuTable:
    """BLEU-1 to BLEU-4 (0 to 100), of each order alone and of all orders up to it. tokens: name of what was counted."""

    tokens: str
    individual: tuple[float, ...]
    cumulative: tuple[float, ...]


def bleu_table(
    hypotheses: Tokens, references: Sequence[Tokens], bleu_of_tokens: BleuOfTokens, tokens: str
) -> BleuTable:
    """BLEU of each order n alone, and of the orders 1 to n with equal weights, without smoothing.

    references: one or more for each hypothesis: all first ones, all second ones ...
    bleu_of_tokens: (hypotheses, references, highest order, weights) -> corpus BLEU between 0 and 1.
    """
    return BleuTable(
        tokens,
        individual=tuple(100.0 * bleu_of_tokens(hypotheses, references, n, [0.0] * (n - 1) + [1.0]) for n in ORDERS),
        cumulative=tuple(100.0 * bleu_of_tokens(hypotheses, references, n, [1.0 / n] * n) for n in ORDERS),
    )


def check_parallel(lines: Sequence[str], name: str, others: Sequence[str], other_name: str) -> None:
    """Raises TmtError unless both have the same number of lines, at least one."""
    if not lines or not others:
        raise TmtError("no lines to score", place=name if not lines else other_name, remedy="Give at least one line.")
    if len(lines) != len(others):
        raise TmtError(
            f"{name} has {len(lines):,} lines, {other_name} has {len(others):,}",
            remedy="Line n of one must belong to line n of the other. Look for a line break inside a sentence,"
            " or for a program that removed empty lines.",
        )


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(one) for one in references])
    signature = str(metric.get_signature())
    return Score(result.name, float(result.score), signature, result.format(2, False, signature))
