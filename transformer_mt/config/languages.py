"""Names of languages and their ISO 639 codes, for hints; a config may name any code."""

from __future__ import annotations

import unicodedata

CODES = {  # English name, own name and names in German, French, Spanish, Italian and Korean -> code
    "arabic": "ar", "bengali": "bn", "bulgarian": "bg", "catalan": "ca", "chinese": "zh", "mandarin": "zh",
    "croatian": "hr", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et",
    "finnish": "fi", "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi",
    "hungarian": "hu", "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja",
    "korean": "ko", "latin": "la", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "mongolian": "mn",
    "norwegian": "no", "persian": "fa", "farsi": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro",
    "russian": "ru", "serbian": "sr", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tamil": "ta", "telugu": "te", "thai": "th", "turkish": "tr", "ukrainian": "uk",
    "urdu": "ur", "uzbek": "uz", "vietnamese": "vi", "welsh": "cy",
    "deutsch": "de", "español": "es", "français": "fr", "italiano": "it", "nederlands": "nl", "polski": "pl",
    "português": "pt", "svenska": "sv", "русский": "ru", "українська": "uk", "中文": "zh", "日本語": "ja",
    "한국어": "ko", "국문": "ko", "영어": "en", "영문": "en", "일본어": "ja", "중국어": "zh", "독일어": "de",
    "프랑스어": "fr", "스페인어": "es", "러시아어": "ru", "베트남어": "vi", "英語": "en", "韓国語": "ko", "英文": "en",
    "englisch": "en", "französisch": "fr", "italienisch": "it", "japanisch": "ja", "koreanisch": "ko",
    "niederländisch": "nl", "polnisch": "pl", "portugiesisch": "pt", "russisch": "ru", "schwedisch": "sv",
    "spanisch": "es", "türkisch": "tr", "chinesisch": "zh", "allemand": "de", "anglais": "en", "chinois": "zh",
    "coréen": "ko", "espagnol": "es", "néerlandais": "nl", "portugais": "pt", "russe": "ru", "alemán": "de",
    "coreano": "ko", "francés": "fr", "inglés": "en", "inglês": "en", "inglese": "en", "tedesco": "de",
}  # fmt: skip
_RARER_NAMES = {  # their codes are no columns, endings or words of names: `my`, `am`, `so`, `ml`
    "afrikaans": "af", "albanian": "sq", "amharic": "am", "armenian": "hy", "azerbaijani": "az", "basque": "eu",
    "belarusian": "be", "bosnian": "bs", "burmese": "my", "cantonese": "yue", "esperanto": "eo", "filipino": "tl",
    "galician": "gl", "georgian": "ka", "gujarati": "gu", "hausa": "ha", "igbo": "ig", "javanese": "jv",
    "kannada": "kn", "kazakh": "kk", "khmer": "km", "kurdish": "ku", "lao": "lo", "luxembourgish": "lb",
    "macedonian": "mk", "malayalam": "ml", "maltese": "mt", "marathi": "mr", "nepali": "ne", "odia": "or",
    "pashto": "ps", "punjabi": "pa", "sinhala": "si", "somali": "so", "tagalog": "tl", "tibetan": "bo", "xhosa": "xh",
    "yiddish": "yi", "yoruba": "yo", "zulu": "zu", "العربية": "ar", "فارسی": "fa", "עברית": "he", "हिन्दी": "hi",
    "ไทย": "th", "türkçe": "tr", "ελληνικά": "el", "čeština": "cs",
}  # fmt: skip
MISTAKEN = {  # codes of countries, used by mistake, and an old code -> what was probably meant
    "cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "kp": "ko", "kr": "ko", "ua": "uk", "vn": "vi",
    "iw": "he",
}  # fmt: skip
_THREE_LETTERS = {
    "ara": "ar", "ces": "cs", "cmn": "zh", "deu": "de", "eng": "en", "fra": "fr", "fre": "fr", "ger": "de", "hin": "hi",
    "ind": "id", "ita": "it", "jpn": "ja", "kor": "ko", "nld": "nl", "pol": "pl", "por": "pt", "rus": "ru", "spa": "es",
    "swe": "sv", "tur": "tr", "ukr": "uk", "vie": "vi", "zho": "zh",
}  # fmt: skip
_RARER_THREE_LETTERS = {  # not names of columns: some are words
    "ben": "bn", "fas": "fa", "guj": "gu", "kan": "kn", "mal": "ml", "mar": "mr", "nep": "ne", "pan": "pa", "per": "fa",
    "pus": "ps", "sin": "si", "tam": "ta", "tel": "te", "urd": "ur",
    "tha": "th", "lao": "lo", "khm": "km", "mya": "my", "bod": "bo", "heb": "he", "fin": "fi", "ell": "el", "dan": "da",
    "nor": "no", "hun": "hu", "ron": "ro", "bul": "bg", "hrv": "hr", "slk": "sk", "slv": "sl", "lit": "lt", "lav": "lv",
    "est": "et", "srp": "sr", "cat": "ca", "isl": "is", "gle": "ga", "cym": "cy", "swa": "sw", "msa": "ms", "mon": "mn",
    "glg": "gl", "bel": "be", "mkd": "mk", "afr": "af", "eus": "eu", "nob": "nb", "nno": "nn", "kat": "ka", "hye": "hy",
    "sqi": "sq", "mlt": "mt", "bos": "bs", "epo": "eo", "fao": "fo", "aze": "az", "kaz": "kk", "uzb": "uz", "tat": "tt",
    "tgl": "tl", "jav": "jv", "hat": "ht", "lat": "la", "ltz": "lb", "oci": "oc", "bre": "br", "gla": "gd", "fry": "fy",
    "amh": "am", "hau": "ha", "ibo": "ig", "yor": "yo", "zul": "zu", "xho": "xh", "sna": "sn", "som": "so", "orm": "om",
    "kin": "rw", "mlg": "mg", "asm": "as", "ori": "or", "snd": "sd", "tuk": "tk", "kir": "ky", "tgk": "tg", "uig": "ug",
    "pes": "fa", "prs": "fa", "arb": "ar", "npi": "ne", "ory": "or", "swh": "sw", "zsm": "ms", "khk": "mn", "azj": "az",
    "uzn": "uz", "kmr": "ku", "pbt": "ps", "lvs": "lv", "ekk": "et", "als": "sq", "plt": "mg", "gaz": "om", "ydd": "yi",
    "kur": "ku", "yid": "yi", "san": "sa", "lin": "ln", "wol": "wo", "bak": "ba", "chv": "cv", "cor": "kw", "glv": "gv",
}  # fmt: skip
_WORDS = {"am", "as", "be", "he", "is", "it", "no", "or", "so"}  # codes that are also frequent words
_COLUMNS = (
    "source target src tgt trg reference ref hypothesis translation translated original sentence sentences text phrase"
    " phrases segment segments id sid no number index language lang col column 원문 번역문 원문장 번역 출발어 도착어"
    " 문장 번호 원본 원어 한글 satz sätze übersetzung ausgangstext zieltext quelltext quelle ziel ausgangssprache "
    "zielsprache texte traduction cible frase frases texto oración traducción origen destino testo traduzione tradução"
    " vertaling tłumaczenie текст перевод 原文 译文 翻译 訳文 翻訳"
)
COLUMN_NAMES = frozenset({*CODES, *CODES.values(), *_THREE_LETTERS, *_COLUMNS.split(), "cn", "jp", "kr"} - _WORDS)


def code_of(text: str) -> str | None:
    """The code of a language by its name, or by a longer or mistaken code or locale: `German`, `kor`, `jp`, `ko-KR`."""
    word = unicodedata.normalize("NFC", text).strip().casefold()
    base = word.replace("_", "-").partition("-")[0]
    known = {**_THREE_LETTERS, **_RARER_NAMES, **CODES, **MISTAKEN}
    return known.get(word) or known.get(base) or (base if base in CODES.values() else None)


def name_of(code: str) -> str:
    """The English name of a language, or its code if it is not known."""
    return next((name.capitalize() for name, known in {**CODES, **_RARER_NAMES}.items() if known == code), code)


WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my", "bo"})  # between words


def two_letters(code: str) -> str:
    """`de` for `deu`; a code without a shorter form that is known here, unchanged."""
    return _THREE_LETTERS.get(code) or _RARER_THREE_LETTERS.get(code, code)
