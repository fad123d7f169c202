"""Whether a sentence uses the script of its language; the report of `tmt prepare` shows sentences that do not."""

from __future__ import annotations

import regex

from transformer_mt.config.languages import two_letters

# Letters of scripts without spaces between words, for sets in patterns of `regex`.
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
ENDS = "؟۔।॥።፧។៕։"  # signs that end a sentence, for sets in patterns: Arabic, Indic, Ethiopic, Khmer, Armenian
COMMAS = "،؛፣፤፡၊՝·"  # of these and other scripts
SPACELESS_LETTER = regex.compile(f"[{SPACELESS}]")
_WRITTEN_IN = {  # Unicode scripts. Languages with two scripts, such as Serbian, are left out
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
    "Myanmar": "my",
    "Georgian": "ka",
    "Armenian": "hy",
    "Ethiopic": "am ti",
    "Khmer": "km",
    "Hangul": "ko",
    "Hiragana Katakana Han": "ja",
    "Han": "zh",
}
_OWN_LETTER = {  # for each language, a pattern of one letter or vowel sign of its script
    language: regex.compile("[" + "".join(rf"\p{{sc={name}}}" for name in scripts.split()) + "]")
    for scripts, languages in _WRITTEN_IN.items()
    for language in languages.split()
}
_LETTER = regex.compile(r"\p{L}")


def foreign_script(text: str, language: str) -> bool:
    """Whether the text has letters, but none of the language's script. False if this script is unknown."""
    own = _OWN_LETTER.get(two_letters(language))
    return own is not None and own.search(text) is None and _LETTER.search(text) is not None


def same_script(one: str, other: str) -> bool:
    """Whether two languages are written with the same letters; False if one of them is unknown."""
    one, other = two_letters(one), two_letters(other)
    return any({one, other} <= set(languages.split()) for languages in _WRITTEN_IN.values())
