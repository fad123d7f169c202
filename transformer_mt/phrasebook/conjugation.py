"""Korean conjugation: from a dictionary form and its class to every ending the phrasebook uses.

Classes of stems: "" for regular stems and for ㄹ-, ㅡ- and 하다-stems, which the spelling shows. The spelling does
not show the others: "ㅂ" (춥다, 추워요), "ㄷ" (듣다, 들어요), "ㅅ" (짓다, 지어요), "르" (부르다, 불러요) and
"ㅎ" (빨갛다, 빨개요). This module knows stems and endings, not sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from transformer_mt.phrasebook.hangul import final, is_syllable, join, particle, split, with_final

_BRIGHT = "ㅏㅑㅗ"
# stem vowel -> stem vowel + 아/어; some vowels absorb the ending
_CONTRACTIONS = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ", **dict(zip("ㅏㅓㅐㅔㅕ", "ㅏㅓㅐㅔㅕ", strict=True))}
# stem class -> (final consonant of the stem, syllable after it) before endings that begin with (으)
# the 으 of ㅅ stays after an open syllable (지으세요), so it is written here
_BEFORE_EU = {"ㅂ": ("", "우"), "ㄷ": ("ㄹ", ""), "ㅎ": ("", ""), "ㅅ": ("", "으")}


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of one verb or adjective. For 가다:

    stem: 가       infinitive: 가       past: 갔       formal: 갑니다     formal_question: 갑니까
    prospective: 갈 (before 거예요 and 수)              honorific: 가세요  formal_request: 가십시오
    adnominal: 간 (an adjective before its noun: 큰, 추운)
    """

    stem: str
    infinitive: str
    past: str
    formal: str
    formal_question: str
    prospective: str
    honorific: str
    formal_request: str
    adnominal: str


@cache
def conjugate(citation: str, kind: str = "") -> Forms:
    """All forms of a verb or adjective. citation: the dictionary form, with 다; kind: the class of its stem."""
    stem = soft = citation[:-1]
    if kind in _BEFORE_EU:
        consonant, syllable = _BEFORE_EU[kind]
        soft = with_final(stem, consonant) + syllable
    infinitive = _infinitive(stem, kind)
    formal = with_final(stem, "ㅂ") + "니" if final(stem) in ("", "ㄹ") else stem + "습니"
    # ㄹ disappears before ㄴ, ㅂ and ㅅ; a soft stem that ends in a vowel takes the ending without 으
    open_stem = with_final(soft, "") if final(soft) == "ㄹ" and kind != "ㄷ" else soft
    linked = open_stem if not final(open_stem) else open_stem + "으"
    return Forms(
        stem=stem,
        infinitive=infinitive,
        past=with_final(infinitive, "ㅆ"),
        formal=formal + "다",
        formal_question=formal + "까",
        prospective=with_final(linked, "ㄹ"),
        honorific=linked + "세요",
        formal_request=linked + "십시오",
        adnominal=stem + "는" if stem.endswith(("있", "없")) else with_final(linked, "ㄴ"),
    )


def _infinitive(stem: str, kind: str) -> str:
    """The stem with 아/어: 가, 마셔, 추워, 들어, 해."""
    if stem.endswith("하"):
        return stem[:-1] + "해"
    if kind == "ㅂ":
        # only 돕다 and 곱다 keep the bright vowel
        return with_final(stem, "") + ("와" if stem.endswith(("돕", "곱")) else "워")
    if kind == "르":
        return with_final(stem[:-1], "ㄹ") + ("라" if _bright(stem[:-1]) else "러")
    bright = _bright(stem)
    ending = "아" if bright else "어"
    if kind == "ㄷ":
        return with_final(stem, "ㄹ") + ending
    if kind == "ㅅ":
        return with_final(stem, "") + ending
    initial, vowel, closing = split(stem[-1])
    if kind == "ㅎ":
        return stem[:-1] + join(initial, "ㅐ" if vowel in "ㅏㅓ" else "ㅒ")
    contracted = ("ㅏ" if bright else "ㅓ") if vowel == "ㅡ" else _CONTRACTIONS.get(vowel)
    if closing or not contracted:
        return stem + ending
    return stem[:-1] + join(initial, contracted)


def _bright(stem: str) -> bool:
    """Whether the stem takes 아 (vowel harmony). For a final ㅡ the syllable before it decides (바쁘다, 바빠요)."""
    vowel = split(stem[-1])[1]
    if vowel == "ㅡ" and not final(stem):
        return is_syllable(stem[-2:-1]) and split(stem[-2])[1] in _BRIGHT
    return vowel in _BRIGHT


@dataclass(frozen=True, slots=True)
class Ending:
    """The properties of a sentence that its last word shows. tense: present, past or future."""

    tense: str
    formal: bool
    question: bool


@lru_cache(maxsize=1 << 15)
def finish(citation: str, kind: str, ending: Ending) -> str:
    """The last word (or two) of a sentence: 가요, 갔습니다, 갈 겁니까."""
    forms = conjugate(citation, kind)
    if ending.tense == "future":
        last = ("겁니까" if ending.question else "겁니다") if ending.formal else "거예요"
        return f"{forms.prospective} {last}"
    if not ending.formal:
        return forms.past + "어요" if ending.tense == "past" else forms.infinitive + "요"
    if ending.tense == "past":
        return forms.past + ("습니까" if ending.question else "습니다")
    return forms.formal_question if ending.question else forms.formal


# 이다 after a consonant, after a vowel, and 아니다: polite form and formal stem
_COPULA = {
    "closed": {"present": ("이에요", "입니"), "past": ("이었어요", "이었습니")},
    "open": {"present": ("예요", "입니"), "past": ("였어요", "였습니")},
    "negative": {"present": ("아니에요", "아닙니"), "past": ("아니었어요", "아니었습니")},
}


@lru_cache(maxsize=1 << 14)
def be(noun: str, ending: Ending, negative: bool) -> str:
    """A noun with 이다 or 아니다: 의사예요, 학생이에요, 의사가 아니었습니다. Present and past only."""
    shape = "negative" if negative else "closed" if final(noun) else "open"
    polite, formal = _COPULA[shape][ending.tense]
    base = particle(noun, "가") + " " if negative else noun
    return base + (formal + ("까" if ending.question else "다") if ending.formal else polite)
