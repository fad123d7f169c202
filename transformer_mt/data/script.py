"""Does a sentence use the writing of its language at all? For the outliers in the report of `tmt prepare`."""

from __future__ import annotations

import re

_SCRIPTS = {
    "ko": "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f",
    "ja": "\u3040-\u30ff\u4e00-\u9fff",
    "zh": "\u4e00-\u9fff",
    "ru": "\u0400-\u04ff",
    "uk": "\u0400-\u04ff",
    "bg": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
    "ar": "\u0600-\u06ff",
    "fa": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "th": "\u0e00-\u0e7f",
}
_LATIN = "A-Za-z\u00c0-\u024f"
_LETTER = re.compile(r"[^\W\d_]")
_OWN = {language: re.compile(f"[{letters}]") for language, letters in _SCRIPTS.items()}
_OTHERWISE = re.compile(f"[{_LATIN}]")


def foreign_script(text: str, language: str) -> bool:
    """Letters there are, but none of the language's own script (Latin for languages not listed here)."""
    return _LETTER.search(text) is not None and _OWN.get(language, _OTHERWISE).search(text) is None
