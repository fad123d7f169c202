"""Strings of a program: a line for each line, with its tags, placeholders and choices, and all its text translated."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.growth import assert_grows
from tests.workflows.test_documents import ENGINES, Fake, backwards, louder, same
from transformer_mt.cli import main
from transformer_mt.text.copies import choices
from transformer_mt.workflows.documents import translate_document

WORDS = ["Datei", "öffnen", "neue", "Nachricht", "von", "R&D", "löschen", "jetzt", "Straße"]
LINES = [
    ("Drücke <b>OK</b> und warte.", "DRÜCKE <b>OK</b> UND WARTE."),
    ("Hallo {name} und %d neue", "HALLO {name} UND %d NEUE"),
    (r"Gesichert.\nNeu öffnen?", r"GESICHERT.\nNEU ÖFFNEN?"),
    (r"<b>Gesichert.\nNeu</b> öffnen?", r"<b>GESICHERT.\nNEU</b> ÖFFNEN?"),
    (r"Name:\tAlter\r\n", r"NAME:\tALTER\r\n"),
    (r"Datei C:\new ist neu", r"DATEI C:\new IST NEU"),
    (r"Ordner C:\Users\Neu\test.txt und \\server\neu ist", r"ORDNER C:\Users\Neu\test.txt UND \\server\neu IST"),
    (r"<b>C:\Users\x</b> im Haus", r"<b>C:\Users\x</b> IM HAUS"),
    (r"Neu:\nhttps://a.example/Ab\nHaus", r"NEU:\nhttps://a.example/Ab\nHAUS"),
    (r"Neu:\nC:\Users\x", r"NEU:\nC:\Users\x"),
    (r'<a title=\"im &quot;Haus&quot;\">neu</a>', r'<a title=\"IM &quot;HAUS&quot;\">NEU</a>'),
    ("Neu <Icon/> im <Foo /> Haus", "NEU <Icon/> IM <Foo /> HAUS"),
    ('{n, plural, other {<a title="# im">neu</a>}}', '{n, plural, other {<a title="# IM">NEU</a>}}'),
    (r"Plan B:\nDatei öffnen", r"PLAN B:\nDATEI ÖFFNEN"),
    (r"kein \\n Umbruch", r"KEIN \\N UMBRUCH"),
    ("R&D und a < b", "R&D UND A < B"),
    ("R&amp;D im <i>Haus</i> & Hof", "R&amp;D IM <i>HAUS</i> &amp; HOF"),
    ("{n, plural, one {# Datei} other {# neue <b>Mail</b>}}", "{n, plural, one {# DATEI} other {# NEUE <b>MAIL</b>}}"),
    ("R&D im <i>Haus</i>", "R&D IM <i>HAUS</i>"),
    ('<a title="r&d im">im</a> <i>Haus</i>', '<a title="R&D IM">IM</a> <i>HAUS</i>'),
    ("<a title=\"neu l'im\">im</a> <b>l'im</b>", "<a title=\"NEU L'IM\">IM</a> <b>L'IM</b>"),
    ('<a title="neu &quot;im">im</a>', '<a title="NEU &quot;IM">IM</a>'),
    ("<a title=neu>im</a> <i>Haus</i>", '<a title="NEU">IM</a> <i>HAUS</i>'),
    # tags of translation memories and programs, escapes in attributes
    ("Der <0>Hund</0> im <1>Haus</1>", "DER <0>HUND</0> IM <1>HAUS</1>"),
    ('Neu <x id="1"/> von <g id="2">mir</g>', 'NEU <x id="1"/> VON <g id="2">MIR</g>'),
    ("Hallo <Link>mein</Link> Haus", "HALLO <Link>MEIN</Link> HAUS"),
    ('Hallo <ph name="U">Hans</ph> im', 'HALLO <ph name="U">Hans</ph> IM'),
    ("im </code> neu <code>a b</code> im", "IM </code> NEU <code>a b</code> IM"),
    ("Hallo <code>a b</code> und <code>im", "HALLO <code>a b</code> UND <code>IM"),
    ('Hallo <b translate="no">Hans</b> im', 'HALLO <b translate="no">Hans</b> IM'),
    (r'<a href="C:\temp\new" title="Ein Hund.\nNeu">im</a>', r'<a href="C:\temp\new" title="EIN HUND.\nNEU">IM</a>'),
    (r'<img alt=\"Der Hund\"/> im', r'<img alt=\"DER HUND\"/> IM'),
    ("<![CDATA[Der <b>Hund</b>]]>", "<![CDATA[DER <b>HUND</b>]]>"),
    ("im <!-- Hund --> Haus", "IM <!-- Hund --> HAUS"),
    ("x <y und z> w", "X <Y UND Z> W"),
    # placeholders and escapes that lines do not know
    ("Hallo %1$,d von %n und %#@cats@", "HALLO %1$,d VON %n UND %#@cats@"),
    ("%,.2f Euro am %1$tY und %hd", "%,.2f EURO AM %1$tY UND %hd"),
    ("Hallo $t(common.cat) im $NAME$ mit %1", "HALLO $t(common.cat) IM $NAME$ MIT %1"),
    ("%n개의 Hund %1$,d개 %1은 %s님이", "%n개의 HUND %1$,d개 %1은 %s님이"),
    (r"neu\\\nHund", r"NEU\\\nHUND"),
    (r"Hallo \u00a0 im Haus", r"HALLO \u00a0 IM HAUS"),
    ("{{ x | join('\\n') }} im Haus", "{{ x | join('\\n') }} IM HAUS"),
    (r"Sag \"hallo\" im", r"SAG \"HALLO\" IM"),
    ("5 % der 100% neu", "5 % DER 100% NEU"),
    # entities and white space
    ("Das &quot;Haus&quot; von &#39;mir&#39;", "DAS &quot;HAUS&quot; VON &#39;MIR&#39;"),
    ("&nbsp;Der Hund&nbsp;", "&nbsp;DER HUND&nbsp;"),
    ("neu\tHund\t\tim", "NEU\tHUND\t\tIM"),
    ("{n, plural, offset: 1 =-1 {im} =1.5 {am} other {#}}", "{n, plural, offset: 1 =-1 {IM} =1.5 {AM} other {#}}"),
    (r"{n, plural,\n one {im}\n other {am}\n}", r"{n, plural,\n one {IM}\n other {AM}\n}"),
    ("{n, plural, one {# &#35; Mail &amp; #} other {# x}}", "{n, plural, one {# &#35; MAIL &amp; #} other {# X}}"),
    ("In {n, plural, =0 {nichts} other {# Dateien}} suchen", "IN {n, plural, =0 {NICHTS} other {# DATEIEN}} SUCHEN"),
    (
        "{g, select, male {Er hat {n, plural, one {# Mail} other {# Mails}}} other {Sie {who}}}.",
        "{g, select, male {ER HAT {n, plural, one {# MAIL} other {# MAILS}}} other {SIE {who}}}.",
    ),
    ("{g, select, a {Nummer #} other {neu}}", "{g, select, a {NUMMER #} other {NEU}}"),
    ('<a href="x" title="neue Datei">öffnen</a>', '<a href="x" title="NEUE DATEI">ÖFFNEN</a>'),
    ("{n}", "{n}"),
    ("", ""),
    ("   ", "   "),
]  # fmt: skip


def _string(draw: random.Random, depth: int = 2) -> str:
    def words() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 4)))

    parts = []
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(8)
        inner = _string(draw, depth - 1) if depth else words()
        parts.append(
            [
                words(),
                f"<b>{words()}</b>",
                f'<a href="x?a=1">{words()} {{name}}</a>',
                "{count}",
                "%1$s",
                f"{{n, plural, one {{# {words()}}} other {{{inner} #}}}}",
                f"{{g, select, male {{{inner}}} other {{{words()}}}}}",
                rf"{words()}.\n{words()}",
            ][kind]
        )
    return " ".join(parts)


def _frame(line: str) -> tuple[Counter[str], list[list[str]], int]:
    """What must be the same in a translation: tags and placeholders, choices with their keys, line breaks."""
    found = [[choice["name"], choice["kind"], *choice.captures("key")] for choice in choices(line)]
    return Counter(re.findall(r"</?\w[^<>]*>|\{name\}|\{count\}|%1\$s|#|R&D", line)), sorted(found), line.count(r"\n")


STRINGS = [_string(random.Random(seed)) for seed in range(300)]


@pytest.mark.parametrize(
    "line", [r"im {} C:\Users\x\neu를", r"im (C:\Temp\y)를 neu", r"im C:\Users\x.", r"im C:\사용자\문서 neu"]
)
def test_a_path_ends_where_the_next_word_begins(line: str) -> None:
    result = translate_document(line, Fake(louder, True), "strings").text  # type: ignore[arg-type]
    assert result == line.replace("im", "IM").replace("neu", "NEU").replace(r"\NEU", r"\neu")


@pytest.mark.parametrize(("line", "result"), LINES)
@pytest.mark.parametrize("terms", [True, False])
def test_all_text_is_translated_and_all_else_stays(line: str, result: str, terms: bool) -> None:
    assert translate_document(line, Fake(louder, terms), "strings").text == result  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{n, plural, one {neu} other {alt}", "its choice is not complete"),
        ("{n, plural, one {neu}, other {alt}} Haus", "its choice is not complete"),
        ("Haus {0, choice, 0#kein|1#ein}", "its choice is not complete"),
        ("{n, selectOrdinal, one {neu} other {alt}}", "its choice is not complete"),
        ("{n, plural, one {neu '{'} other {alt}}", "it has quoted braces beside a choice"),
    ],
)
def test_a_choice_that_is_not_understood_is_left_and_named(line: str, why: str) -> None:
    result = translate_document(f"Hund\n{line}\nHund", Fake(louder, True), "strings")  # type: ignore[arg-type]
    assert result.text == f"HUND\n{line}\nHUND"
    assert result.notes == ((2, f"left as it is, because {why}"),)


def test_choices_that_are_too_deep_are_left_and_named() -> None:
    line = "{n, plural, other {im " * 12 + "}}" * 12
    result = translate_document(line, Fake(louder, True), "strings")  # type: ignore[arg-type]
    assert result.text.count("IM") == 10
    assert result.notes == ((1, "left as it is, because it is in too many other choices"),)


def test_a_branch_that_is_not_understood_leaves_the_others() -> None:
    result = translate_document("{g, select, a {im {n, plural, a b}} b {im}}", Fake(louder, True), "strings")  # type: ignore[arg-type]
    assert result.text == "{g, select, a {im {n, plural, a b}} b {IM}}"
    assert result.notes == ((1, "left as it is, because its choice is not complete"),)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_engine_that_changes_nothing_gives_the_lines_back(newline: str) -> None:
    text = newline.join(STRINGS)
    assert translate_document(text, Fake(same, True), "strings").text == text  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("terms", [True, False])
def test_tags_placeholders_and_choices_stay(engine: Callable[..., object], terms: bool) -> None:
    result = translate_document("\n".join(STRINGS), Fake(engine, terms), "strings")  # type: ignore[arg-type]
    lines = result.text.split("\n")
    assert len(lines) == len(STRINGS)
    named = {line for line, note in result.notes if "left as it is" in note}
    for number, (line, source) in enumerate(zip(lines, STRINGS, strict=True), start=1):
        assert number in named or _frame(line)[1:] == _frame(source)[1:], f"{source}\n{line}"
        if engine in (louder, backwards):  # the others write tags and braces of their own
            assert _frame(line)[0] == _frame(source)[0], f"{source}\n{line}"


def test_tags_move_with_their_words() -> None:
    text = "Drücke <b>die Taste</b> mit {n}"
    assert translate_document(text, Fake(backwards, True), "strings").text == "{n} MIT <b>TASTE DIE</b> DRÜCKE"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        lambda size: "{n, plural, one {" * size,
        lambda size: "{n, plural, one {" * size + "Datei" + "}}" * size,
        lambda size: "{n, plural, other {neue Datei}} " * 3 * size,
        lambda size: "{" * 13 * size,
        lambda size: "neu" + " " * 13 * size + "im",
        lambda size: "neu" + "&nbsp;" * 5 * size + "im",
        lambda size: "neu" + "&nbsp;" * 5 * size,
        lambda size: "<b>neu " * 3 * size,
        lambda size: r"neu\n" * 5 * size,
        lambda size: "{n, plural, other {" + "# neu " * 5 * size + "}}",
    ],
    ids=lambda line: line(1),
)
def test_hostile_lines_take_linear_time(line: Callable[[int], str]) -> None:
    assert_grows(lambda size: translate_document(line(size), Fake(louder, True), "strings"), 1_000)  # type: ignore[arg-type]


def test_the_command(tiny_model, tmp_path, capsys) -> None:
    source, target = tmp_path / "strings.txt", tmp_path / "out.txt"
    source.write_text("a <b>b</b> {x}\n\n{n, plural, one {c} other {d}}\n", encoding="utf-8")
    files = ["--document", str(source), "--format", "strings", "--output", str(target)]
    assert main.main(["translate", "--model", str(tiny_model), *files]) == 0
    first, second, third = target.read_text(encoding="utf-8").splitlines()
    assert Counter(re.findall(r"</?b>|\{x\}", first)) == {"<b>": 1, "</b>": 1, "{x}": 1}
    assert second == ""
    assert re.fullmatch(r"\{n, plural, one \{.*\} other \{.*\}\}", third)
