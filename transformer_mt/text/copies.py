"""What a translation copies letter by letter: addresses, e-mail addresses, placeholders of programs, numbers."""

from __future__ import annotations

import regex

from transformer_mt.text.script import SPACELESS

# Endings that may follow a Korean noun, and that are no part of it. Several may follow each other: 들에게는.
PARTICLES = (
    "(?:들|은|는|이|가|을|를|의|에|에서|에게|에게서|한테|한테서|께|께서|으로|로|으로서|로서|으로써|로써|와|과|이랑|랑"
    "|하고|도|만|까지|부터|보다|처럼|같이|마다|조차|마저|밖에|뿐|대로|이나|나|이라|라|이라는|라는|이란|란|이고|고|이며|며"
    "|이다|다|입니다|입니까|이에요|예요|이야|야|이었다|였다|이었습니다|였습니다|인|일|이지만|지만|이라고|라고|요){1,3}"
    r"(?![\p{L}\p{N}])"
)
# Hangul after a letter or digit of an address is a particle. Brackets are part of an address in pairs only.
_SIGNS = r"\s<>\"“”„«»`|()\[\]{}（）「」『』【】。、，！？"
_ENDS = rf"{_SIGNS}\p{{sc=Hangul}}"
_HANGUL_NAME = rf"(?<=[_/=-])\([^{_SIGNS}]*\)|"  # as in wiki/배_(과일)
_HANGUL_NAME += rf"(?<=[/=_?&#+%-])(?<!://[^/\\s]*/)(?!{PARTICLES}(?:[\s.,;:!?'’…\"”)\]}}>]|$))\p{{sc=Hangul}}++"
_BRACKETS = [rf"\([^{_ENDS}]*\)", rf"\{{[^{_ENDS}]*\}}", rf"\[[^{_ENDS}]*\]"]
# Of template engines (with spaces inside). The limit keeps the search linear.
TEMPLATE = r"\{\{.{1,300}?\}\}|\{%.{1,300}?%\}|<%.{1,300}?%>"
# A choice between texts, in ICU's message format. Its branches are translated, so their braces hold no placeholders.
# One that is not closed goes on to the end of the line, and at most 99 branches are read, so the search stays linear.
_GAP = r"(?:\s|\\[nrt])*+"  # also with line breaks that are written as escapes
_CHOICE = (
    rf"\{{\s*(?P<name>[\w.]+)\s*,\s*(?P<kind>plural|selectordinal|select)\s*,{_GAP}(?:offset:\s*\d+{_GAP})?"
    rf"(?:(?P<key>=?-?[\w.]+)\s*(?P<branch>\{{(?:[^{{}}]++|(?&branch))*+\}}?){_GAP}){{0,99}}+(?P<end>\}})?"
)
# What follows the letter of a placeholder: in %d개 and %s様 the next word begins without a space.
AT_END = rf"(?![[\p{{L}}\p{{N}}]--[\p{{sc=Hangul}}{SPACELESS}]])"
_FORMATTED = r"\{\s*\w+\s*,\s*(?:number|date|time|spellout|ordinal|duration)\s*(?:,[^{}]{0,300})?\}"
_PLACEHOLDER = (
    # with signs that touch it: ${x}
    rf"[{{$%]{{0,3}}?(?:{TEMPLATE}|{_FORMATTED}|\{{(?:[^{{}}\s]*| \$?[\w.-]+ )\}})\}}{{0,3}}"
    rf"|(?<!\d)%{{1,3}}?(?:\([\w.]+\)[sdfr]|(?:\d+\$)?[-+0]?\d*(?:\.\d+)?(?:ll?|z)?[sdifuxcr@]{AT_END})"
    rf"|(?<=\d)%[sd]{AT_END}(?!['’])"  # not of a text such as: 10%-s, 5%d'or
)
_EMAIL = r"(?<![\w.+@-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}"


def copied(in_markup: bool = False) -> regex.Pattern[str]:
    """A pattern of addresses of the web or e-mail, and of placeholders of programs.

    in_markup: whether square brackets, and marks of emphasis at the end of an address, are markup. Then braces in
               choices between texts hold placeholders too, since markup may stand between them.
    """
    brackets = "|".join(_BRACKETS[:2] if in_markup else _BRACKETS)
    sentence = r".,;:!?'’…" + "*_~" * in_markup  # at its end, these belong to the sentence
    address = (
        r"(?:(?<![A-Za-z0-9_])(?:https?|ftp)://|(?<![\w.@-])www\.(?=[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}))"
        rf"(?:{brackets}|[^{_ENDS}]|{_HANGUL_NAME})*(?:{brackets}|[^{_ENDS}{sentence}]|{_HANGUL_NAME})"
    )
    left_out = "" if in_markup else f"{_CHOICE}(*SKIP)(*FAIL)|"
    return regex.compile(f"{left_out}{address}|{_EMAIL}|{_PLACEHOLDER}", regex.V1)


UNBROKEN = copied()
_CHOICES = regex.compile(_CHOICE, regex.V1)


def choices(text: str) -> list[regex.Match[str]]:
    """The choices between texts in it, such as `{n, plural, one {# file} other {# files}}`, if they are complete."""
    return [found for found in _CHOICES.finditer(text) if found["end"]] if "{" in text else []


def name_of_choice(choice: regex.Match[str]) -> str:
    """A choice without its texts. Which forms of a plural there are depends on the language, so they are left out."""
    keys = choice.captures("key")
    kept = keys if choice["kind"] == "select" else [key for key in keys if key.startswith("=")]
    return f"{{{', '.join([choice['name'], choice['kind'], *kept])}}}".lower()


def may_have_unbroken(text: str) -> bool:
    """Whether it is worth a search for `UNBROKEN`: false for almost every sentence, and a hundred times as fast."""
    return "%" in text or "{" in text or "@" in text or "://" in text or "www." in text


# Letters beside digits, as in MP3, make a word. 3만 is 30,000: such a number is translated with its unit. 5月 is May.
_UNIT = (
    r"[多余数几]?[십백천만억조十百千万萬亿億兆月割]|หมื่น|แสน|พัน|ล้าน"
    r"|\s[십백천만억조]+(?:원|명|개|달러)?(?![\p{L}\p{N}])"
)


NUMBER = regex.compile(  # other digits than 0 to 9 would be strange in most translations
    rf"(?<![[\p{{L}}\p{{N}}_.,]--[{SPACELESS}]])[-+]?[$€£¥₩]?[0-9]++(?:[.,:/'’-]?[0-9]++)*+"
    rf"(?![[\p{{L}}\p{{N}}_]--[\p{{sc=Hangul}}{SPACELESS}]]|{_UNIT})",
    regex.V1,
)
