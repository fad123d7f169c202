"""From translations to a full report: every score, table and example that was asked for, in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.comparison import compare
from transformer_mt.evaluation.metrics import METRICS, bleu_tokenizer, bleu_tokens
from transformer_mt.evaluation.report import Report
from transformer_mt.evaluation.scores import BleuOfTokens, BleuTable, Tokens, bleu_table, literature_bleu, score
from transformer_mt.evaluation.sentences import best_and_worst, by_length, length_ratio


@dataclass(frozen=True)
class Words:
    """The tokens a model of words wrote, and the references split the same way. name: whose tokens they are."""

    name: str
    hypotheses: Tokens
    references: Tokens


@dataclass(frozen=True)
class System:
    """One system's translations of one test set, line by line, and what else is known about them.

    name:     of the test set. language: ISO code of the target; "" when unknown.
    sources:  to show beside examples; may be empty. baseline: another system's translations.
    tokenized_references: the references lower-cased and tokenised as by Moses; asks for that form of BLEU too.
    words:    tokens for the table of n-gram orders; without them BLEU's own are counted.
    loss:     nats a token of the references under the model.
    """

    name: str
    hypotheses: Sequence[str]
    references: Sequence[str]
    language: str = ""
    sources: Sequence[str] = ()
    baseline: Sequence[str] = ()
    tokenized_references: Sequence[str] = ()
    words: Words | None = None
    loss: float | None = None


def examine(system: System, metrics: Sequence[str] = METRICS, bleu_of_tokens: BleuOfTokens | None = None) -> Report:
    """Score a system. With `bleu_of_tokens` (see `bleu_table`) the report has the table of n-gram orders.

    Raises TmtError where the numbers of lines differ or there are none.
    """
    hypotheses, references, language = system.hypotheses, system.references, system.language
    scores = score(hypotheses, references, language, metrics)
    lowercased = literature = None
    if system.tokenized_references:
        lowercased = score(hypotheses, references, language, ("bleu",), lowercase=True)["bleu"]
        literature = literature_bleu(hypotheses, system.tokenized_references, language)
    best, worst = best_and_worst(hypotheses, references, system.sources)
    return Report(
        name=system.name,
        sentences=len(references),
        length_ratio=length_ratio(bleu_tokens(hypotheses, language), bleu_tokens(references, language)),
        scores=scores,
        lowercased=lowercased,
        literature=literature,
        table=_table(system, bleu_of_tokens) if bleu_of_tokens else None,
        loss=system.loss,
        buckets=by_length(hypotheses, references, language),
        best=best,
        worst=worst,
        comparison=compare(system.baseline, hypotheses, references, language, metrics) if system.baseline else {},
    )


def _table(system: System, bleu_of_tokens: BleuOfTokens) -> BleuTable:
    words = system.words
    if words is None:
        hypotheses, references = (
            bleu_tokens(lines, system.language) for lines in (system.hypotheses, system.references)
        )
        words = Words(f"tokens of {bleu_tokenizer(system.language).name}", hypotheses, references)
    return bleu_table(words.hypotheses, words.references, bleu_of_tokens, words.name)
