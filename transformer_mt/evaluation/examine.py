"""From translations to a full report: every score, table and example that was requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformer_mt.evaluation.comparison import compare, intervals
from transformer_mt.evaluation.metrics import BY_DEFAULT, bleu_tokenizer, bleu_tokens
from transformer_mt.evaluation.report import Report
from transformer_mt.evaluation.scores import BleuOfTokens, Tokens, bleu_table, literature_bleu, score
from transformer_mt.evaluation.sentences import best_and_worst, by_length, length_ratio, nearest


@dataclass(frozen=True)
class Words:
    """The tokens that a word-based model wrote, and the references split in the same way.

    name:       of these tokens
    references: all first ones, all second ones ...
    """

    name: str
    hypotheses: Tokens
    references: Sequence[Tokens]


@dataclass(frozen=True)
class System:
    """One system's translations of one test set, line by line, and what else is known about them.

    name:     of the test set
    others:   further references, each line by line
    language: ISO code of the target; "" if unknown
    sources:  shown with examples; may be empty
    baseline: another system's translations; may be empty
    tokenized_references: one or more, lower-cased and tokenised by Moses; if given, BLEU in that form is reported too
    words:    tokens for the table of n-gram orders; None: BLEU's own tokens are counted
    loss:     of the model on the references, in nats per token
    search:   how the translations were searched; "" if unknown
    """

    name: str
    hypotheses: Sequence[str]
    references: Sequence[str]
    others: Sequence[Sequence[str]] = ()
    language: str = ""
    sources: Sequence[str] = ()
    baseline: Sequence[str] = ()
    tokenized_references: Sequence[Sequence[str]] = ()
    words: Words | None = None
    loss: float | None = None
    search: str = ""


def examine(system: System, metrics: Sequence[str] = BY_DEFAULT, bleu_of_tokens: BleuOfTokens | None = None) -> Report:
    """The report of a system. With `bleu_of_tokens` (see `bleu_table`) it includes the table of n-gram orders.

    Raises TmtError if the numbers of lines differ or there are no lines.
    """
    hypotheses, references, others, language = system.hypotheses, system.references, system.others, system.language
    scores = score(hypotheses, references, language, metrics, others=others)
    lowercased = literature = None
    if system.tokenized_references:
        lowercased = score(hypotheses, references, language, ("bleu",), lowercase=True, others=others)["bleu"]
        literature = literature_bleu(hypotheses, system.tokenized_references, language)
    best, worst = best_and_worst(hypotheses, references, system.sources, others=others)
    ours, theirs = bleu_tokens(hypotheses, language), [bleu_tokens(one, language) for one in (references, *others)]
    table = None
    if bleu_of_tokens:
        words = system.words or Words(f"tokens of {bleu_tokenizer(language).name}", ours, theirs)
        table = bleu_table(words.hypotheses, words.references, bleu_of_tokens, words.name)
    compared = {}
    if system.baseline:
        compared = compare(system.baseline, hypotheses, references, language, metrics, others=others)
    widths = {name: one.system_interval for name, one in compared.items()}
    return Report(
        name=system.name,
        sentences=len(references),
        length_ratio=length_ratio(ours, nearest(ours, theirs)),
        scores=scores,
        lowercased=lowercased,
        literature=literature,
        table=table,
        loss=system.loss,
        search=system.search,
        hypotheses=hypotheses,
        buckets=by_length(hypotheses, references, language, others),
        best=best,
        worst=worst,
        intervals=widths or intervals(hypotheses, references, language, metrics, others),
        comparison=compared,
    )
