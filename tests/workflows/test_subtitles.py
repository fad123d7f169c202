"""Subtitles: times stay as they are, a sentence is translated as a whole, and every subtitle gets a part of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tests.growth import assert_grows
from tests.workflows.test_documents import ENGINES, WORDS, Fake, backwards, louder, same
from transformer_mt.cli import main
from transformer_mt.text.documents.base import columns
from transformer_mt.workflows.documents import translate_document

TIMES = re.compile(r"[\d:,.]+ --> .*")
TAG = re.compile(r"<(/?)([a-z]+)[^<>]*>")


def cues(*texts: str, pause: float = 0.1, newline: str = "\n") -> str:
    """A SubRip file whose subtitles stand on the screen for a second each."""
    found, start = [], 0.0
    for number, text in enumerate(texts, start=1):
        found.append(f"{number}\n{_time(start)} --> {_time(start + 1)}\n{text}\n")
        start += 1 + pause
    return "\n".join(found).replace("\n", newline)


def _time(seconds: float) -> str:
    whole = round(seconds * 1000)
    return f"{whole // 3_600_000:02}:{whole // 60_000 % 60:02}:{whole // 1000 % 60:02},{whole % 1000:03}"


def texts_of(document: str) -> list[str]:
    """The text of each subtitle of a SubRip file."""
    return [part.split("\n", 2)[2].strip("\n") for part in document.replace("\r\n", "\n").split("\n\n") if part.strip()]


def loud(document: str) -> str:
    done = translate_document(document, Fake(louder, True), "subtitles")
    assert done.notes == ()
    return done.text


class Reads:
    """An engine that changes nothing, and keeps what it was given."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.engine = Fake(self._same, True)

    def _same(self, words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        self.lines.append(" ".join(words))
        return same(words)


def read(document: str) -> list[str]:
    """What the model is given."""
    reader = Reads()
    assert translate_document(document, reader.engine, "subtitles").text == document
    return reader.lines


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        (cues("Ein Hund läuft\nüber die Straße."), ["Ein Hund läuft über die Straße."]),
        (cues("Ein Hund läuft", "über die Straße.", "Ende."), ["Ein Hund läuft über die Straße.", "Ende."]),
        (cues("Ein Hund.", "Eine Katze."), ["Ein Hund.", "Eine Katze."]),
        (cues("Ich sah den", "Hund im Park."), ["Ich sah den Hund im Park."]),  # a noun has a capital letter
        (cues("Kapitel 3", "Der Hund läuft.", pause=2), ["Kapitel 3", "Der Hund läuft."]),
        (cues("Ein Hund", "im Park.", "Ende.", pause=4), ["Ein Hund", "im Park.", "Ende."]),
        (cues("Ein Hund, der", "- Was?", "- Ja!"), ["Ein Hund, der", "Was?", "Ja!"]),
        (cues("- Ein Hund?\n- Eine Katze,\ndie schläft.\n– Ach!"), ["Ein Hund?", "Eine Katze, die schläft.", "Ach!"]),
        (cues("{\\an8}- Ein Hund.\n<i>- Ja.</i>", ">> Nein."), ["Ein Hund.", "Ja.", "Nein."]),
        (cues("[Hund bellt]", "♪ la la ♪", "Im Park.", "Ende."), ["[Hund bellt]", "la la", "Im Park.", "Ende."]),
        (cues("so ein hund", "im park und", "dann eine katze"), ["so ein hund", "im park und", "dann eine katze"]),
        (cues("그 개는", "커요.", "작아요."), ["그 개는 커요.", "작아요."]),
        (cues("犬は\n走る。", "猫が、", "寝る。"), ["犬は走る。", "猫が、寝る。"]),
        (cues("1984", "...", "Ein Hund."), ["Ein Hund."]),
        (cues("Es war", "1984", "ein gutes Jahr.", "Ende."), ["Es war", "ein gutes Jahr.", "Ende."]),
        (cues("고양이는 작아요", "개는 커요", "네?", "네!"), ["고양이는 작아요", "개는 커요", "네?", "네!"]),
        (cues("고양이는", "작아요.", "네.", pause=2), ["고양이는", "작아요.", "네."]),  # no small letter says more
        (
            cues("مرحبا.\u200f", "كيف الحال.\u200f", "\u202bنعم.\u202c"),
            ["مرحبا.\u200f", "كيف الحال.\u200f", "\u202bنعم.\u202c"],
        ),
        (cues("{\\an8}Zum Hund", "wo ist er,", "der Hund.", "Da."), ["Zum Hund", "wo ist er, der Hund.", "Da."]),
        (cues("Ende", "wir fangen an.", "Ja.", pause=-0.5), ["Ende", "wir fangen an.", "Ja."]),  # at the same time
        (cues("Hund --> Katze und", "Haus.", "Ende."), ["Hund --> Katze und Haus.", "Ende."]),
        (cues("<i>- Ein Hund und</i>", "<i>eine Katze.</i>", "Ende."), ["Ein Hund und eine Katze.", "Ende."]),
        (cues("dass <i>ein Hund", "kommt.</i>", "Ende."), ["dass ein Hund kommt.", "Ende."]),
        (cues("Ein Hund<br/>läuft.", "--und dann."), ["Ein Hund läuft.", "und dann."]),
    ],
)
def test_a_sentence_is_read_as_a_whole(document: str, lines: list[str]) -> None:
    assert read(document) == lines


def test_a_sentence_is_shared_out_among_its_subtitles() -> None:
    document = cues("Ein Hund <i>läuft</i>,", "eine kleine Katze\nschläft im Park.", newline="\r\n")
    assert loud(document) == cues("EIN HUND <i>LÄUFT</i>,", "EINE KLEINE KATZE SCHLÄFT IM PARK.", newline="\r\n")
    turned = translate_document(document, Fake(backwards, True), "subtitles").text
    assert texts_of(turned) == ["PARK. IM SCHLÄFT", "KATZE KLEINE EINE <i>LÄUFT</i>, HUND EIN"]


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (["Der Hund, den viele", "sah, schlief."], ["the dog that we noticed yesterday,", "was small"]),
        (["Die Mutter hat hier", "ein Buch gelesen, oder."], ["the mother read", "the book at the library"]),
    ],
)
def test_a_subtitle_ends_after_a_comma_that_is_near_and_not_after_a_short_word(
    source: list[str], texts: list[str]
) -> None:
    engine = Fake(lambda words: (" ".join(texts).split(), []), True)
    done = translate_document(cues(*source), engine, "subtitles")
    assert texts_of(done.text) == texts


def test_no_markup_goes_on_in_another_subtitle() -> None:
    document = cues('<font color="red">Ein Hund und', "<b>eine Katze</b> im Park</font>.")
    assert texts_of(loud(document)) == [
        '<font color="red">EIN HUND UND</font>',
        '<font color="red"><b>EINE KATZE</b> IM PARK</font>.',
    ]


def test_a_long_line_is_divided() -> None:
    document = cues("Hund und Katze und Haus und Park und Ärger.", "Ende.")
    doubled = Fake(lambda words: (words * 2, []), True)
    lines = texts_of(translate_document(document, doubled, "subtitles").text)[0].split("\n")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 46


@pytest.mark.parametrize("answer", ["一匹の犬と一匹の猫が公園を走っています。" * 3, "สุนัขและแมววิ่งในสวนสาธารณะ" * 4])
def test_languages_without_spaces(answer: str) -> None:
    for source in (cues("Ein Hund und", "eine Katze laufen."), cues("Ein Hund und eine Katze laufen.")):
        done = translate_document(source, Fake(lambda words: ([answer], []), True), "subtitles")
        assert done.notes == ()
        texts = texts_of(done.text)
        assert len(texts) == len(texts_of(source))
        assert "".join(texts).replace("\n", "") == answer
        assert max(columns(line) for text in texts for line in text.split("\n")) <= 46


def test_fewer_words_than_subtitles_stand_in_all_of_them() -> None:
    done = translate_document(cues("Ja, ja,", "ja.", "Ende."), Fake(lambda words: (["YES."], []), True), "subtitles")
    assert texts_of(done.text) == ["YES.", "YES.", "YES."]


def test_settings_stay_where_they_are() -> None:
    document = cues("{\\i1}Ein Hund,{\\i0}\n{\\i1}der bellt,{\\i0}", "{\\an1}{\\i1}und Katzen.{\\i0}", "{\\an1}Ende.")
    assert loud(document).count("{\\") == document.count("{\\")
    assert loud(document) == document.upper().replace("AN1", "an1").replace("I1", "i1").replace("I0", "i0").replace(
        "\n{\\i1}DER", " {\\i1}DER"
    )


def test_times_of_words_keep_their_order() -> None:
    document = "WEBVTT\n\n00:01.000 --> 00:03.000\nEin <00:01.500>Hund <00:02.000>läuft\n<00:02.500>schnell.\n"
    turned = translate_document(document, Fake(backwards, True), "subtitles").text
    assert re.findall(r"<(.*?)>", turned) == ["00:01.500", "00:02.000", "00:02.500"]
    assert set(re.findall("[A-Z]+", turned)) == {"WEBVTT", "EIN", "HUND", "L", "UFT", "SCHNELL"}


def test_voices_keep_their_words() -> None:
    head, times = "WEBVTT\n\n", "00:01.000 --> 00:03.000\n{}\n\n00:03.100 --> 00:04.000\n{}\n"
    two = head + times.format("<v Max>Ein Hund</v>", "<v Eva Maria>und eine Katze.</v>")
    assert read(two) == ["Ein Hund", "und eine Katze."]
    assert loud(two) == two.replace("Ein Hund", "EIN HUND").replace("und eine Katze", "UND EINE KATZE")
    one = head + times.format("<v Max>Ein Hund</v>", "<v Max>und <i>Katzen</i>.</v>")
    turned = translate_document(one, Fake(backwards, True), "subtitles").text
    assert turned == head + times.format("<v Max><i>KATZEN</i>.</v>", "<v Max>UND HUND EIN</v>")


def test_a_line_with_a_space_does_not_end_a_webvtt_subtitle() -> None:
    document = "WEBVTT\n\n00:00.120 --> 00:02.000\n \nein hund\n\n00:03.000 --> 00:04.000\nkatze\n"
    assert loud(document) == document.replace("ein hund", "EIN HUND").replace("katze", "KATZE")


def test_one_long_line_does_not_widen_all_others() -> None:
    document = cues("Hund " * 20 + ".", *["Ein Hund läuft über die\nStraße und eine Katze schläft."] * 30)
    assert max(len(line) for text in texts_of(loud(document))[1:] for line in text.split("\n")) <= 42


def test_webvtt() -> None:
    document = (
        "WEBVTT Hund\nKind: Hund\n\nNOTE\nEin Hund.\n\nSTYLE\n::cue { color: red }\n\nHund\n"
        "00:01.000 --> 00:04.000 align:start\n<v Bob>Ein Hund &amp; eine <c.red.big>Katze</c>: 3 &lt; 4\n\n"
        "00:05.000 --> 00:06.000\n<00:05.500>Ein <b>Haus</b>.\n"
    )
    changed = document.replace("Ein Hund &amp; eine", "EIN HUND &amp; EINE").replace("Katze", "KATZE")
    assert loud(document) == changed.replace("Ein <b>Haus", "EIN <b>HAUS")


@pytest.mark.parametrize("before", ["Ein Hund.\n\n", "00:00:1,5 --> bald\nEin Hund.\n\n"])
@pytest.mark.parametrize("head", ["", "WEBVTT\n\n"])
def test_a_text_without_times_is_left_with_a_note(before: str, head: str) -> None:
    done = translate_document(head + before + cues("Eine Katze."), Fake(louder, True), "subtitles")
    assert done.text == head + before + cues("EINE KATZE.")
    line = (head + before).count("\n") - 1
    is_comment = head and "-->" not in before
    assert done.notes == (
        () if is_comment else ((line, "left as it is, because its times are missing or not understood"),)
    )


@pytest.mark.parametrize(
    "document",
    [
        "1\n00:01,000 --> 00:02,000\nHund\n\nKatze\n\n2\n00:00:03 --> 00:00:04\nHaus",  # an empty line, no fractions
        "1\n00:00:01,000 --> 00:00:02,000\nHund\n2\n00:00:03,000 --> 00:00:04,000 X1:100 Y1:50\nKatze\n\n\nHaus\n",
        "00:00:01.000-->00:00:02.000\nHund\n\n00:00:03.000 -->00:00:04.000\nKatze\n3\n00:5:0 --> 00:6:0\nHaus",
    ],
)
def test_files_of_careless_programs(document: str) -> None:
    assert loud(document) == document.replace("Hund", "HUND").replace("Katze", "KATZE").replace("Haus", "HAUS")


def a_document(seed: int) -> str:
    draw = random.Random(seed)

    def line() -> str:
        words = " ".join(draw.choices(WORDS, k=draw.randint(1, 6)))
        tag = draw.choice(["", "", "", "i", "b", "font"])
        return f"<{tag}>{words}</{tag}>" if tag else words

    texts = []
    for _ in range(draw.randint(1, 12)):
        dash = draw.choice(["", "", "", "- "])
        lines = [dash + line() + draw.choice([".", "!", "", ","]) for _ in range(draw.randint(1, 2))]
        texts.append(draw.choice(["", "{\\an8}"]) + "\n".join(lines))
    return cues(*texts, pause=draw.choice([0.0, 0.1, 1.0]), newline=draw.choice(["\n", "\r\n"]))


@pytest.mark.parametrize("seed", range(40))
def test_every_subtitle_keeps_its_times_and_has_text(seed: int) -> None:
    document = a_document(seed)
    assert translate_document(document, Fake(same, True), "subtitles").text == document
    for engine in ENGINES:
        done = translate_document(document, Fake(engine, True), "subtitles").text
        assert TIMES.findall(done) == TIMES.findall(document)
        assert done.count("\n") == done.count("\r\n") or "\r\n" not in document
        for text, source in zip(texts_of(done), texts_of(document), strict=True):
            assert TAG.sub("", text).replace("{\\an8}", "").strip("- \n"), "an empty subtitle"
            assert len(re.findall("(?m)^(?:{.*})?- ", text)) >= len(re.findall("(?m)^(?:{.*})?- ", source))
            opened = list[str]()
            for end, name in TAG.findall(text):
                if end:
                    assert opened.pop() == name
                else:
                    opened.append(name)
            assert not opened


@pytest.mark.parametrize(
    "document",
    [
        lambda size: cues(*["Hund und"] * (size // 20), "Ende."),
        lambda size: cues("Hund und Katze " * size),
        lambda size: cues("<i>" * size + "Hund"),
        lambda size: cues("<i>Hund</i> " * (size // 4)),
        lambda size: cues("Hund" + "." * size + "x"),
        lambda size: cues("- " * size + "Hund"),
        lambda size: cues("{\\" * size + "Hund"),
        lambda size: "WEBVTT\n\n" + "00:" * size,
        lambda size: "1\n" * size + "Hund",
        lambda size: cues("犬" * size),
        lambda size: cues(" " * size + "x"),
        lambda size: cues("x" + "</v>" * size + "x"),
        lambda size: cues("<i>- x" + "</i>" * size + "x"),
        lambda size: cues("x" + "?" * size + "x"),
    ],
    ids=lambda document: document(2)[-20:],
)
def test_hostile_files_take_linear_time(document: Callable[[int], str]) -> None:
    assert_grows(lambda size: translate_document(document(size), Fake(louder, True), "subtitles"), 1_000)  # type: ignore[arg-type]


def test_the_command_knows_the_suffix(tiny_model, tmp_path) -> None:
    source, target = tmp_path / "film.srt", tmp_path / "film.en.srt"
    source.write_text(cues("a b", "c d."), encoding="utf-8-sig")
    assert main.main(["translate", "--model", str(tiny_model), "--document", str(source), "--output", str(target)]) == 0
    assert TIMES.findall(target.read_text(encoding="utf-8")) == TIMES.findall(cues("a b", "c d."))
