"""Times, frequencies, manners and tools: expressions that never change their form."""

from __future__ import annotations

from transformer_mt.phrasebook.lexicon.entries import Adverbial

_PRESENT, _PAST, _FUTURE, _EITHER = ("present",), ("past",), ("future",), ("past", "future")


def _time(ko: str, en: str, de: str, tenses: tuple[str, ...], tag: str = "day") -> Adverbial:
    return Adverbial(ko, en, de, tenses, tag)


# no time goes with both present and past, because only the time shows the tense of "I read"
TIMES = (
    _time("매일", "every day", "jeden Tag", _PRESENT),
    _time("매주", "every week", "jede Woche", _PRESENT, "week"),
    _time("아침마다", "every morning", "jeden Morgen", _PRESENT),
    _time("저녁마다", "every evening", "jeden Abend", _PRESENT),
    _time("주말마다", "every weekend", "jedes Wochenende", _PRESENT, "week"),
    _time("토요일마다", "every Saturday", "jeden Samstag", _PRESENT),
    _time("일요일마다", "every Sunday", "jeden Sonntag", _PRESENT),
    _time("여름마다", "every summer", "jeden Sommer", _PRESENT, "week"),
    _time("겨울마다", "every winter", "jeden Winter", _PRESENT, "week"),
    _time("어제", "yesterday", "gestern", _PAST),
    _time("그저께", "the day before yesterday", "vorgestern", _PAST),
    _time("지난주에", "last week", "letzte Woche", _PAST, "week"),
    _time("지난달에", "last month", "letzten Monat", _PAST, "long"),
    _time("지난주말에", "last weekend", "letztes Wochenende", _PAST, "week"),
    _time("작년에", "last year", "letztes Jahr", _PAST, "long"),
    _time("오늘 아침에", "this morning", "heute Morgen", _PAST),
    _time("내일", "tomorrow", "morgen", _FUTURE),
    _time("모레", "the day after tomorrow", "übermorgen", _FUTURE),
    _time("다음 주에", "next week", "nächste Woche", _FUTURE, "week"),
    _time("다음 달에", "next month", "nächsten Monat", _FUTURE, "long"),
    _time("내년에", "next year", "nächstes Jahr", _FUTURE, "long"),
    _time("오늘 저녁에", "this evening", "heute Abend", _FUTURE),
    _time("오늘 밤에", "tonight", "heute Nacht", _FUTURE),
    _time("오늘", "today", "heute", _EITHER),
    _time("월요일에", "on Monday", "am Montag", _EITHER),
    _time("수요일에", "on Wednesday", "am Mittwoch", _EITHER),
    _time("금요일에", "on Friday", "am Freitag", _EITHER),
    _time("세 시에", "at three o'clock", "um drei Uhr", _EITHER),
    _time("일곱 시에", "at seven o'clock", "um sieben Uhr", _EITHER),
    _time("열 시에", "at ten o'clock", "um zehn Uhr", _EITHER),
)

NOW = Adverbial("지금", "right now", "gerade")

FREQUENCIES = (
    Adverbial("자주", "often", "oft"),
    Adverbial("가끔", "sometimes", "manchmal"),
    Adverbial("항상", "always", "immer"),
    Adverbial("보통", "usually", "normalerweise"),
)

MANNERS = (
    Adverbial("빨리", "quickly", "schnell", tag="quick"),
    Adverbial("천천히", "slowly", "langsam", tag="slow"),
    Adverbial("조용히", "quietly", "leise", tag="quiet"),
    Adverbial("큰 소리로", "loudly", "laut", tag="loud"),
    Adverbial("열심히", "hard", "fleißig", tag="hard"),
    Adverbial("잘", "well", "gut", tag="well"),
    Adverbial("조심스럽게", "carefully", "vorsichtig", tag="careful"),
)

TOOLS = (
    Adverbial("버스로", "by bus", "mit dem Bus", tag="vehicle"),
    Adverbial("기차로", "by train", "mit dem Zug", tag="rail"),
    Adverbial("지하철로", "by subway", "mit der U-Bahn", tag="local"),
    Adverbial("택시로", "by taxi", "mit dem Taxi", tag="vehicle"),
    Adverbial("자동차로", "by car", "mit dem Auto", tag="vehicle"),
    Adverbial("자전거로", "by bicycle", "mit dem Fahrrad", tag="local"),
    Adverbial("비행기로", "by plane", "mit dem Flugzeug", tag="plane"),
    Adverbial("젓가락으로", "with chopsticks", "mit Stäbchen", tag="eating"),
    Adverbial("포크로", "with a fork", "mit einer Gabel", tag="eating"),
    Adverbial("숟가락으로", "with a spoon", "mit einem Löffel", tag="spoon"),
    Adverbial("칼로", "with a knife", "mit einem Messer", tag="cutting"),
    Adverbial("연필로", "with a pencil", "mit einem Bleistift", tag="writing"),
    Adverbial("펜으로", "with a pen", "mit einem Stift", tag="writing"),
    Adverbial("수건으로", "with a towel", "mit einem Handtuch", tag="wiping"),
)
