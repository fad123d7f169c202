"""Lines as sentences: plain cases of German, English and Korean, and what must never be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_mt.text.sentences import sentences

# Each case is written with | between its sentences.
CASES = {
    "de": (
        "Ein Mann schläft. |Eine Frau liest ein Buch. |Zwei Kinder spielen im Park.",
        "Das ist z. B. ein Hund. |Er heißt Rex.",
        "Das ist z.B. ein Hund, u. a. mit Dr. Müller und Prof. Dr. Weber.",
        "Dr. Müller kommt am 3. Mai. |Er bringt Kuchen mit.",
        "Am Montag, 3. Januar, und am 24. Dezember feiern wir. |Ja!",
        "Der 1. FC Köln gewinnt. |Die Fans jubeln.",
        "Im 19. Jahrhundert und im 2. Weltkrieg lebte er. |Der 3. Mann steht.",
        "Er ist 30. |Sie ist 20.",
        "Er wohnt in der Hauptstr. 5. |Das Haus ist rot.",
        "Er sagte: „Komm her!“ |Dann ging er.",
        "„Komm her!“, sagte er. |„Komm her!“ sagte er.",
        "Warte... |Ich komme… |Bald.",
        "Warte … ich komme.",
        "Die Zahl ist 3.14 oder 1.000,5. |Das stimmt.",
        "Siehe https://example.com/a.b?x=1.5. |Dort steht alles.",
        "Was?! |Nein.",
        "ein mann schläft. |eine frau liest z. b. ein buch. |zwei kinder spielen.",
        "Der Dipl.-Ing. Karl Meier hat max. Fünf.",
        "(Ein Satz.) |Noch einer.",
        "1. Ein Hund. |2. Eine Katze. |3. Ein Haus.",
        "Die Fa. Meier liefert. |Das ist gut.",
        "Heute ist 3. Mai. |Gut.",
    ),
    "en": (
        "Mr. Smith went to Washington. |He was tired.",
        "Mrs. Jones and Dr. Lee met at 3 p.m. |They talked.",
        "The U.S. is big. |It costs $3.50. |That is cheap.",
        'He said, "Go away!" |Then he left. |"Go away!" he said.',
        "Wait... |What? |Hello!!! |Who is there???",
        "See www.example.com. |Email a.b@example.com. |Thanks!",
        "1. First item. |2. Second item.",
        "a dog runs. |a cat sits.",
        "Approx. Ten came. |Apt. Five is empty. |Good.",
        "A man sleeps.  |A woman reads.\t|Two kids play.",
    ),
    "ko": (
        "저는 학생이다. |그는 선생님이에요. |이것은 책입니까? |정말 좋습니까! |네.",
        "집에 갔어요... |그리고 잤어요.",
        "그는 “가자.”라고 말했다. |우리는 갔다.",
        "“가자.” |그가 말했다.",
        "오늘은 2024. 5. 3. 금요일이다. |값은 3.14이다.",
        "1. 사과 |2. 배",
        "그는 '좋아.' 하고 말했다. |우리는 갔다.",
        "네… |그래요.",
        "비가 온다.|그래서 집에 있다.",
        "www.example.com을 보세요. |좋아요.",
    ),
    "ja": (
        "私は学生です。|彼は先生です。",
        "「行こう。」と彼は言った。|行った。",
        "雨だ。|3時に行く。|「行こう！」|５人が来た。",
        "価格は３．５円です。|１．はじめに　２．方法",
        "精度は９５．|次に速度を示す。",
    ),
    "zh": (
        "医生看见一个苹果。|2024年，老师买书（两本。）|5月5日是节日！|版本3。5好。",
        "“走吧！”他说。|“走吧！”|老师走了。|“走吧！”她们大声喊道。",
        "“走吧！”|有问题吗？|“走吧！”|知道了。|“走吧！”|访问结束。|“你好！”|小说家来了。",
        "“走吧！”|他知道。|“真的吗？”|大家说好。|“今天很冷。”|但没有问题。|“走吧！”|他说话很快。",
    ),
    "hi": ("डॉ. शर्मा आए। |श्री. राव गए।|3 दिन बीते।",),
    "ne": ("डॉ. शर्मा आए। |राव गए।",),
    "mr": ("मा. राव आले. |ते गेले.",),
    "bn": ("ডা. রহমান এলেন। |মো. আলী গেলেন।",),
    "ta": ("திரு. ராமன் வந்தார். |அவர் சென்றார்.",),
    "am": ("እሱ ወደ ገበያ ሄደ፡፡ |እሷ መጣች፡፡", "እሱ ሄደ። |እሷ መጣች።"),
    "vi": ("TS. Nam ở TP. Huế. |Ông ấy khỏe.", "Tôi sống ở TP. |Anh ấy đến."),
    "sw": ("Dkt. Juma alikuja. |Bw. Ali alikwenda. |Nilimwona Bi. |Nilifurahi.",),
    "hr": ("Živi na 5. katu. |Dobro.",),
    "tr": ("Elma, armut vb. meyveler aldı. |Sonra gitti.",),
    "ar": ("جاء د. أحمد. |ثم ذهب.", "جاء أ.د. أحمد. |ثم ذهب.", "انظر ص. 5 هنا. |ثم ذهب.", "الفئة أ.|ثم جاء."),
    "fa": ("د. احمدی آمد. |سپس رفت.", "ویتامین د. |این مفید است."),
    "ur": ("ع. م. خان آئے۔ |وہ گئے۔", "گروپ ب. |یہ دوسرا ہے۔"),
    "th": ("ดร. สมชาย มา", "ด.ช. สมชาย มา"),
    "km": ("សួស្តី។ |ខ្ញុំសុខសប្បាយ។", "ត្រី ។ល។ ហើយទៅ។ |ខ្ញុំទៅ។", 'គាត់ថា "ខ្ញុំទៅ។" ហើយដើរ។'),
    "hy": ("Բարեւ։ |Ես ուսանող եմ։", "Ժամը 10։30-ին։ |Այո։"),
    "fr": ("M. Dupont dort. |Il rêve ?",),
}


@pytest.mark.parametrize(("language", "case"), [(language, case) for language, some in CASES.items() for case in some])
def test_sentences(language: str, case: str) -> None:
    assert sentences(case.replace("|", ""), language) == case.split("|")


@given(
    line=st.text()
    | st.text(st.sampled_from('aA1.!?…„“"() \t\n\x0b\u2028ÄßŉK가。「」\ud800😀-'), max_size=40)
    | st.text(),
    language=st.sampled_from(["de", "en", "ko", "ja", "zz"]),
)
def test_joined_they_are_the_line(line: str, language: str) -> None:
    pieces = sentences(line, language)
    assert "".join(pieces) == line
    assert pieces == [line] or all(map(str.strip, pieces))


@pytest.mark.parametrize(("short", "long"), [("de", "deu"), ("ko", "kor"), ("ja", "jpn"), ("en", "eng")])
def test_a_language_has_the_rules_of_its_shorter_code(short: str, long: str) -> None:
    for case in CASES.get(short, ()):
        assert sentences(case.replace("|", ""), long) == case.split("|")


@pytest.mark.parametrize("item", ["5. a ", "5. ", "a b. ", "）", "。」", "。 ", "។ "])
def test_a_line_of_very_many_numbers_or_letters(item: str) -> None:
    line = item * 30_000  # with a time that grows with the square, rules would take minutes
    assert "".join(sentences(line, "ko")) == line


def test_a_span_is_not_cut() -> None:
    line = "Run `a. B! C` now. Then stop."
    start, end = line.index("`"), line.rindex("`") + 1
    assert sentences(line, "en", [(start, end)]) == ["Run `a. B! C` now. ", "Then stop."]
