"""A line of text as sentences. The library sentencex finds them; a few rules correct its common mistakes.

A rule looks at two neighbours that sentencex has separated, and decides whether they are one sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

import regex
import sentencex

from transformer_mt.config.languages import two_letters

_SHORTEST = 3  # characters of two sentences: "A?B"
_TAIL = 200  # characters at the end of a sentence that the rules look at: a line may have a million
_WINDOW = 4_000  # characters that are cut at once; nearly all lines are shorter
_LETTER, _DIGIT = regex.compile(r"\p{L}"), regex.compile(r"\d")
_SPACE_OR_SURROGATE = re.compile("[^\\S ]|[\ud800-\udfff]")
_FIRST_LETTER = regex.compile(r"(?<=[.!?…]\s+)\p{Ll}")
_MORE_CUTS = regex.compile(  # after an ellipsis, and after a sentence in parentheses
    r"(?<=\w…\s+)(?=[\p{Lu}\p{Hangul}])|(?<=^\([^()]*[.!?]\)\s+)(?=\p{Lu})"
    r"|(?=\d)(?<=[。！？｡।۔][」』”’）)]{0,3})(?<!\d[。｡।۔])"  # before a number; these languages write no space there
    r"|(?<=[។៕։]\s{0,3})(?<!។ល។\s{0,3})(?!ល។|(?<=\d[។៕։])\d)(?=[^\s។៕։\"'»”’)\]』」])"  # Khmer and Armenian full stops
    r"|(?<=፡፡\s{0,3})(?=\p{L})"  # as some write the Amharic full stop
)
_BEFORE_ORDINAL = (
    "der|die|das|den|dem|des|am|im|zum|zur|vom|beim|(?:[ms]?ein|ihr|unser|jed|dies)e?[mnrs]?"
    "|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag,|Mittwoch,|Sonnabend,"
)
_AFTER_ORDINAL = (  # a noun or a name, and not the first word of a new sentence
    "(?!(?:Der|Die|Das|Eine?|Er|Sie|Es|Ich|Du|Wir|Ihr|Man|Dann|Danach|Und|Aber|Dort|Hier|In|Im|Am|Auf|Wer|Was|Wie|Wo)"
    r"\b)\p{Lu}"
)
_ITEM = regex.compile(  # the numbers at the start and at the end of a piece
    r"^\s*(\d{1,3})\.\s.*?(?<=\p{L}[.!?]?)\s+(\d{1,3})\.\s+$"
)
_CLOSING_TAGS = regex.compile(r"(?:</[\w:.-]+>\s*)+")
_MONTHS = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
_NO_START_IN_VIETNAMESE = r"(?!(?:Anh|Cô|Ông|Bà|Tôi|Em|Chị|Họ|Nó|Chúng|Sau|Và|Nhưng)\b)"
_SAYS = "(?<![知小没沒有访訪疑学學难難街])(?:[说說喊问問]道?|道)"  # these characters are in other words, too
_ONE_SENTENCE = [  # languages ("": all), the end of a piece, the start of the next
    (languages.split(), regex.compile(f"(?:{end})$"), regex.compile(start))
    for languages, end, start in (
        ("", r"(?<!\d)\d{1,4}\.\s+", r"\d{1,2}\."),  # 2024. 5. 3.
        ("", r"\d\.\s+", r"\p{Ll}"),  # the 5. floor, as many languages write ordinal numbers
        ("", r"\.", r"-\w"),  # Dipl.-Ing.
        ("ko", r"\d{4}\.\s*\d{1,2}\.\s*\d{1,2}\.\s+", r"\p{L}"),  # the day of a date
        ("ko", r"[”’\"'」』]", r"\p{Hangul}"),  # “가자.”라고
        ("ko", r"[”’\"'」』]\s+", r"(?:하고|하며|하면서|이?라고|이?라며|이?라는)(?!\p{L})"),  # '가자.' 하고
        ("ja", r"[」』]", r"と|って"),
        ("", r"\d．", r"\d"),
        ("", r"(?:^|\s)\d{1,2}．\s*", ""),  # the number of an item
        ("zh yue", r"[”’」』]", rf"[他她它我你您][们們]?\p{{Han}}{{0,4}}?{_SAYS}(?=[。，：！？]|$)"),  # “走吧！”他说。
        ("hi mr ne", r"(?<!\p{L})(?:डॉ|श्री|प्रो)\.\s+", ""),
        ("mr", r"(?<!\p{L})मा\.\s+", ""),
        ("bn", r"(?<!\p{L})(?:ডা|ড|মো)\.\s+", ""),
        ("ta", r"(?<!\p{L})(?:திரு|திருமதி|டாக்டர்)\.\s+", ""),
        ("ar", r"(?<!\p{L}|فيتامين\s)[دأ]\.\s+", ""),
        ("ar", r"(?<!\p{L})أ\.", r"د\."),
        ("ar", r"(?<!\p{L})ص\.\s+", r"\d"),  # a page
        ("fa", r"(?<!\p{L}|ویتامین\s|گروه\s)د\.\s+", ""),
        ("ur", r"(?<![\p{L}\p{M}])\p{L}\.\s*", r"\p{L}\."),  # the initials of a name
        ("ur", r"(?<![\p{L}\p{M}])\p{L}\.\s*\p{L}\.\s+", ""),
        ("th", r"(?<!\p{L})[ดน]\.", r"[ชญส]\."),  # ด.ช.
        ("th", r"(?<!\p{L})(?:ดร|นพ|[ดน]\.[ชญส])\.\s+", ""),
        ("vi", r"\b(?:TP|TS|Th[sS]|GS|PGS|BS)\.\s+", rf"{_NO_START_IN_VIETNAMESE}\p{{Lu}}"),
        ("sw", r"\b(?:Dkt|Bw)\.\s+", ""),
        ("tr az", r"\bvb\.\s+", r"\p{Ll}"),
        ("de", rf"(?i:\b(?:{_BEFORE_ORDINAL}))\s+\d{{1,2}}\.\s+", _AFTER_ORDINAL),  # der 1. FC
        ("de", r"\d{1,2}\.\s+", rf"(?:{_MONTHS}|Jh\.|Jahrhundert)"),
        ("de", r"\b(?:Fa|inkl|exkl|zzgl|max|mind|Bsp|Dipl|Ing)\.\s+", ""),
        ("en", r"\b(?:[Aa]pprox|Apt|Bldg)\.\s+", ""),
        ("fr", r"\bMM?\.\s+", ""),
    )
]


def sentences(line: str, language: str, uncut: Iterable[tuple[int, int]] = ()) -> list[str]:
    """The sentences of a line, each with the white space that follows it. Joined, they are the line.

    language: ISO code
    uncut:    spans (first character, end) that must stay in one sentence, such as a piece of code
    """
    if len(line.strip()) < _SHORTEST:
        return [line]
    language, pieces = two_letters(language), list[str]()
    start = end = 0
    has_letter = False  # from start to end, which is one sentence so far
    for piece in _found(line, language):
        if end and not (not has_letter or _is_one(line[max(start, end - _TAIL) : end], piece, language)):
            pieces.append(line[start:end])
            start, has_letter = end, False
        end += len(piece)
        has_letter = has_letter or _LETTER.search(piece) is not None  # the number of a list has none
    pieces.append(line[start:end])
    for number in range(len(pieces) - 1):  # the number of an item of a list belongs to the text after it
        piece = pieces[number]
        item = _ITEM.search(piece)
        if item is not None and int(item[1]) + 1 == int(item[2]):
            pieces[number], pieces[number + 1] = piece[: item.start(2)], piece[item.start(2) :] + pieces[number + 1]
        if closing := _CLOSING_TAGS.match(pieces[number + 1]):
            pieces[number], pieces[number + 1] = pieces[number] + closing[0], pieces[number + 1][closing.end() :]
    if len(pieces) > 1 and not _LETTER.search(pieces[-1]):
        pieces[-2:] = ["".join(pieces[-2:])]
    pieces = list(filter(None, pieces))
    spans = sorted(uncut)
    starts, stops = [start for start, _ in spans], [0, *accumulate((stop for _, stop in spans), max)]
    ends = [end for end in accumulate(map(len, pieces[:-1])) if stops[bisect_left(starts, end)] <= end]
    return [line[start:end] for start, end in zip([0, *ends], [*ends, len(line)], strict=True)]


def _found(line: str, language: str) -> list[str]:
    """The pieces that sentencex finds, without a rule of ours. Joined, they are the line."""
    plain = _SPACE_OR_SURROGATE.sub(" ", line)  # sentencex reads only UTF-8, and another space as a letter
    if language == "de" and plain == plain.lower():  # it expects a capital letter at the start of a German sentence
        plain = _FIRST_LETTER.sub(lambda letter: letter[0].upper() if len(letter[0].upper()) == 1 else letter[0], plain)
    pieces = []
    for piece in _segments(plain, language):
        pieces += _MORE_CUTS.split(piece)
    ends = list(accumulate(map(len, pieces)))
    assert "".join(pieces) == plain, "sentencex loses no character"
    return [line[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _segments(text: str, language: str) -> Iterator[str]:
    """What sentencex cuts, in windows: the time it takes grows with the square of the length.

    The last piece of a window may go on after it, so the next window begins with it.
    """
    start, width = 0, _WINDOW
    while start < len(text):
        pieces = sentencex.segment(language, text[start : start + width])
        if start + width < len(text):
            pieces = pieces[:-1]
        yield from pieces
        done = sum(map(len, pieces))
        start, width = start + done, _WINDOW if done else 2 * width


def _is_one(piece: str, following: str, language: str) -> bool:
    """Whether two neighbours are one sentence: by a rule, or because the second one has no words.

    piece: the first one, or its end
    """
    if not _LETTER.search(following) and not _DIGIT.search(following):  # closing marks, a smiley
        return True
    return any(
        (not languages or language in languages) and end.search(piece) and start.match(following)
        for languages, end, start in _ONE_SENTENCE
    )
