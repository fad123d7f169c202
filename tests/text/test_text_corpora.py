"""Vocabulary sizes that others report for Multi30k; how much of real text `detokenize` restores exactly."""

from __future__ import annotations

import gzip
from collections import Counter
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.corpora.workbook import open_sheets
from transformer_mt.text.batches import keys_of_pairs
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Segmenter
from transformer_mt.text.tokenizers.soynlp import SoynlpTokenizer
from transformer_mt.text.tokenizers.spacy import SpacyTokenizer
from transformer_mt.text.vocabulary import Vocabulary

pytestmark = [pytest.mark.corpora, pytest.mark.slow]


def _multi30k(corpora: Path, split: str, language: str) -> list[str]:
    file = corpora / "multi30k" / f"{split}.{language}.gz"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    with gzip.open(file, "rt", encoding="utf-8", newline="\n") as stream:
        return [clean_text(line, CleaningConfig(), language) for line in stream]


@pytest.mark.parametrize(("language", "size", "slack"), [("en", 5893, 0), ("de", 7853, 5)])
def test_sizes_of_the_multi30k_vocabularies(corpora: Path, language: str, size: int, slack: int) -> None:
    sides = [_multi30k(corpora, "train", language) for language in ("de", "en")]
    kept = dict(
        zip(keys_of_pairs(*sides)["pair"].tolist(), zip(*sides, strict=True), strict=True)
    ).values()  # cleaning drops equal pairs by default
    segmenter = Segmenter(SpacyTokenizer.Options(kind="spacy", case="lower"), language)
    counts = Counter(token for pair in kept for token in segmenter.tokenize(pair[language == "en"]))
    assert abs(len(Vocabulary.count(counts, min_frequency=2)) - size) <= slack


@pytest.mark.parametrize("language", ["en", "de"])
def test_spacy_tokens_of_real_sentences_become_the_sentences(corpora: Path, language: str) -> None:
    train = _multi30k(corpora, "train", language)
    segmenter = Segmenter(SpacyTokenizer.Options(kind="spacy"), language)
    segmenter.train(train)
    for sentences in (train[:6000], _multi30k(corpora, "val", language)):
        whole = [" ".join(sentence.split()) for sentence in sentences]
        back = [segmenter.detokenize(segmenter.tokenize(sentence)) for sentence in sentences]
        share = sum(one == other for one, other in zip(whole, back, strict=True)) / len(whole)
        assert share >= 0.99


def test_soynlp_tokens_of_real_sentences_become_the_sentences(corpora: Path) -> None:
    files = sorted((corpora / "aihub").glob("*.xlsx"))
    if not files:
        pytest.skip(f"no workbook in {corpora / 'aihub'}")
    with closing(open_sheets(files[0])) as sheets:
        rows = list(islice(next(sheets)[1], 4000))[1:]
    sentences = [clean_text(str(row[1]), CleaningConfig(whitespace="collapse"), "ko") for row in rows]
    segmenter = Segmenter(SoynlpTokenizer.Options(kind="soynlp"), "ko")
    segmenter.train(sentences[:3000])
    tokens = [segmenter.tokenize(sentence) for sentence in sentences]
    assert [segmenter.detokenize(one) for one in tokens] == sentences
    assert sum(map(len, tokens)) > 1.2 * sum(len(sentence.split()) for sentence in sentences)  # words are split
