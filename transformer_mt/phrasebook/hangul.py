"""Arithmetic of Hangul syllables, and the particles that depend on how a word ends.

The code point of a syllable is 0xAC00 + (initial * 21 + vowel) * 28 + final. This module knows letters; the
grammar of stems is in `conjugation`.
"""

from __future__ import annotations

from functools import lru_cache

_BASE, _VOWELS, _FINALS = 0xAC00, 21, 28
INITIALS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")

# particle after a vowel -> particle after a consonant
_AFTER_CONSONANT = {"는": "은", "가": "이", "를": "을", "와": "과", "로": "으로"}


def split(syllable: str) -> tuple[str, str, str]:
    """Initial, vowel and final of one syllable: 한 -> ㅎ, ㅏ, ㄴ. The final of an open syllable is ""."""
    index = ord(syllable) - _BASE
    assert 0 <= index < len(INITIALS) * _VOWELS * _FINALS, f"{syllable!r} is not a Hangul syllable"
    rest, final = divmod(index, _FINALS)
    initial, vowel = divmod(rest, _VOWELS)
    return INITIALS[initial], VOWELS[vowel], FINALS[final]


def is_syllable(letter: str) -> bool:
    return "가" <= letter <= "힣"


def join(initial: str, vowel: str, final: str = "") -> str:
    """The syllable made of these letters: ㅎ, ㅏ, ㄴ -> 한."""
    index = INITIALS.index(initial) * _VOWELS + VOWELS.index(vowel)
    return chr(_BASE + index * _FINALS + FINALS.index(final))


def final(word: str) -> str:
    """The final consonant of the last syllable; "" if the word ends in a vowel."""
    return split(word[-1])[2]


def with_final(word: str, consonant: str) -> str:
    """The word with another final consonant in its last syllable; "" removes the final."""
    initial, vowel, _ = split(word[-1])
    return word[:-1] + join(initial, vowel, consonant)


@lru_cache(maxsize=1 << 14)
def particle(word: str, after_vowel: str) -> str:
    """The word with a particle. after_vowel: the form after a vowel (는, 가, 를, 와, 로), or a particle with one form.

    로 also follows ㄹ: 지하철로, but 젓가락으로.
    """
    ending = final(word)
    if not ending or (after_vowel == "로" and ending == "ㄹ"):
        return word + after_vowel
    return word + _AFTER_CONSONANT.get(after_vowel, after_vowel)
