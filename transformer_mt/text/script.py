"""Does a sentence use the writing of its language at all? For the outliers in the report of `tmt prepare`."""

from __future__ import annotations

import re

_LETTERS = {
    "Latin": "A-Za-z\u00c0-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u052f",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f",
    "Hebrew": "\u0590-\u05ff",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Burmese": "\u1000-\u109f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Armenian": "\u0530-\u058f",
    "Ethiopic": "\u1200-\u139f",
    "Khmer": "\u1780-\u17ff",
    "Hangul": "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f",
    "Japanese": "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff",
    "Chinese": "\u3400-\u4dbf\u4e00-\u9fff",
}
_WRITTEN_IN = {  # languages that are written in two scripts are left out, and never judged
    "Latin": "en de fr es it pt nl af lb sv no nb nn da is fo fi et lv lt pl cs sk sl hr hu ro sq tr ca eu gl oc ga gd"
    " cy mt la eo vi id ms tl jv su mg sw zu xh st tn so ha yo ig rw sn ny ht",
    "Cyrillic": "ru uk be bg mk ky tg",
    "Greek": "el",
    "Arabic": "ar fa ur ps",
    "Hebrew": "he yi",
    "Devanagari": "hi mr ne sa",
    "Bengali": "bn as",
    "Gurmukhi": "pa",
    "Gujarati": "gu",
    "Tamil": "ta",
    "Telugu": "te",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Sinhala": "si",
    "Thai": "th",
    "Lao": "lo",
    "Burmese": "my",
    "Georgian": "ka",
    "Armenian": "hy",
    "Ethiopic": "am ti",
    "Khmer": "km",
    "Hangul": "ko",
    "Japanese": "ja",
    "Chinese": "zh",
}
_LETTER = re.compile(r"[^\W\d_]")
_OWN = {
    language: re.compile(f"[{_LETTERS[script]}]")
    for script, languages in _WRITTEN_IN.items()
    for language in languages.split()
}


def foreign_script(text: str, language: str) -> bool:
    """Letters there are, but none of the language's own script. False for a language whose script is not known here."""
    return language in _OWN and _LETTER.search(text) is not None and _OWN[language].search(text) is None
