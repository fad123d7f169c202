"""Whether a sentence is in the language that its column should have.

py3langid (Lui & Baldwin 2011: naive Bayes over byte n-grams) compares a sentence with all languages that it knows. So
a third language is found too, which a choice between the two languages of a pair would not find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from transformer_mt.config.languages import two_letters

ODDS = 10.0  # a language must be so many times more probable than the expected one
WORDS, WIDE_LETTERS = 5, 12  # shorter sentences are not judged; wide letters are those of three bytes, as in Korean
WIDE_WORDS = 4  # wide letters that an id does not have
_CHINESE = {"zh", "yue", "wuu"}
_NOT_JAPANESE = set(
    "，這那哪們你她嗎呢吧很沒還跟給國學會來對擴繼應當發點為說與區體團圖實寫將樣樂氣經聲變讀鐵關縣醫藝廣"
)
_RELATED = (  # languages whose sentences are often the same; one stands for all of them
    {"no", "nb", "nn"},
    {"hr", "bs", "sr", "sh"},
    {"id", "ms"},
    _CHINESE,
    {"tl", "fil"},
    {"uz", "uzs"},
    {"ar", "ary", "arz"},
    {"en", "pcm"},
)
_NO_LETTERS = re.compile(r"[\W\d_]+")


def is_known(language: str) -> bool:
    """Whether sentences of this language can be recognised."""
    return bool(_columns(language))


def other_language(text: str, language: str) -> str | None:
    """The code of the language that a sentence is in, if that is hardly `language`.

    None if it may be this language, if it is too short to say, or if `language` is not known.
    """
    columns = _columns(language)
    if not columns or not is_long(text):
        return None
    identifier, labels = _identifier()
    probabilities = identifier._decide(text)
    best = int(np.argmax(probabilities))
    if best in columns or probabilities[best] <= ODDS * probabilities[columns].sum():
        return None
    if two_letters(language) == "ja" and labels[best] in _CHINESE and _only_kanji(text):
        return None
    return labels[best]


def _only_kanji(text: str) -> bool:
    """Whether a Chinese sentence may be Japanese: it has only characters that are written in Japan."""
    if not _NOT_JAPANESE.isdisjoint(text):
        return False
    try:
        return bool(text.encode("shift_jis"))
    except UnicodeEncodeError:
        return False


def is_long(text: str) -> bool:
    """Whether a sentence is long enough to recognise its language."""
    return len(text.split()) >= WORDS or _wide(text) >= WIDE_LETTERS


def _wide(text: str) -> float:
    """About how many wide letters a text has."""
    return (len(text.encode("utf-8", "replace")) - len(text)) / 2


def is_number(text: str) -> bool:
    """Whether a text is a number, a code or an id, such as `4711`, `3.5 %` or `S0012`."""
    is_sentence = _wide(text) >= WIDE_WORDS  # in Chinese, it has no spaces
    text = text.strip()
    is_word = len(text.split(maxsplit=1)) == 1
    return not is_sentence and ((is_word and any(map(str.isdecimal, text))) or _NO_LETTERS.fullmatch(text) is not None)


def same_language(one: str, other: str) -> bool:
    return set(_columns(one)) == set(_columns(other)) != set()


@cache
def _columns(language: str) -> list[int]:
    """The columns of the identifier that count as a language."""
    code = two_letters(language)
    related = next((group for group in _RELATED if code in group), {code})
    return [column for column, label in enumerate(_identifier()[1]) if label in related]


@cache
def _identifier() -> tuple[Any, list[str]]:
    """The identifier, which takes half a second to load, and the languages of its columns."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return identifier, list(identifier.nb_classes)


def probabilities(text: str, languages: Iterable[str]) -> dict[str, float]:
    """The probability of each of these languages, among all that py3langid knows; the most probable comes first.

    All are 0 for a text without letters. Of languages that are hardly different, such as nb and nn, each has their sum.
    """
    found = dict.fromkeys(languages, 0.0)
    if any(map(str.isalpha, text)):
        all_of_them = _identifier()[0]._decide(text)
        found = {language: float(all_of_them[_columns(language)].sum()) for language in found}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def language_of(sentences: Iterable[str]) -> str | None:
    """The most probable language of several sentences together, or None if they have no letters."""
    text = re.sub(r"\d+", "", " ".join(sentences))  # many numbers are taken for a text in no language
    if not any(map(str.isalpha, text)):
        return None
    identifier, labels = _identifier()
    label = labels[int(np.argmax(identifier._decide(text)))]
    return next((min(group, key=len) for group in _RELATED[3:] if label in group), label)
