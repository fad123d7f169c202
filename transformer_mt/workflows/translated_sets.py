"""Translates a test set with a model that is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.computing import FLOAT32, Computing
from transformer_mt.decoding.copying import LACKS
from transformer_mt.decoding.searches.base import search_name
from transformer_mt.errors import number_of
from transformer_mt.evaluation.examine import Words
from transformer_mt.reporting.bars import bar
from transformer_mt.reporting.notes import note
from transformer_mt.workflows.engines import load_translator
from transformer_mt.workflows.test_sets import TestSet

if TYPE_CHECKING:
    from transformer_mt.decoding.translator import Translator


@dataclass(frozen=True)
class Output:
    """Translations of a test set.

    words:    the hypotheses and references in tokens of the model, if these are words
    loss:     nats per token of the references
    settings: the search settings and a digest of the test set, for scores.json
    search:   the search in a few words; empty if others translated
    """

    lines: list[str]
    words: Words | None = None
    loss: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    search: str = ""


@dataclass(frozen=True)
class Translators:
    """A model that is loaded when it is first used."""

    folders: Sequence[Path]
    decoding: DecodingConfig | None
    computing: Computing

    @cached_property
    def translator(self) -> Translator:
        return load_translator(self.folders, self.decoding, self.computing)


def translated(translator: Translator, test_set: TestSet, with_loss: bool = False, model: str = "the model") -> Output:
    """The translations of a test set. model: what notes call it"""
    lines = translator.translate(test_set.sources, split=False)
    translations = list(bar(iterable=lines, desc="translating", total=len(test_set.sources)))
    loss, limit = None, f"cut to {translator.max_length} tokens, the limit of {model}"
    if count := sum(translation.is_cut for translation in translations):
        note(f"{test_set.name}: {number_of(count, 'source')} {limit}")
    if count := sum(any(LACKS in one for one in translation.notes) for translation in translations):
        note(f"{test_set.name}: {number_of(count, 'translation')} without an address, placeholder or tag of the source")
    if with_loss:
        every = [line for one in test_set.all_references for line in one]
        of_references = translator.reference_loss(test_set.sources * len(test_set.all_references), every)
        loss = of_references.nats / of_references.tokens
        if count := of_references.n_cut:
            note(f"{test_set.name}: {number_of(count, 'reference')} {limit}, for the loss only")
    segmenter, words = translator.target.segmenter, None
    if segmenter.tokenizer.finds_words:  # then the table of BLEU-1 to BLEU-4 counts these, not BLEU's own tokens
        name, hypotheses = f"the model's {segmenter.config.kind} words", [one.tokens for one in translations]
        references = [[segmenter.tokenize(line) for line in one] for one in test_set.all_references]
        words = Words(name, hypotheses, references)
    text = "\n".join(chain(test_set.sources, *test_set.all_references)).encode("utf-8", "replace")
    rounded = translator.weights if translator.weights != FLOAT32 else None
    return Output(
        [translation.text for translation in translations],
        words,
        loss,
        # The digest shows whether stored scores are of the same sentences.
        {
            "decoding": translator.decoding.model_dump(mode="json"),
            "weights": rounded,
            "text": sha256(text).hexdigest(),
        },
        search_name(translator.decoding) + (f", {rounded} weights" if rounded else ""),
    )
