"""Documents: what is not text comes back byte for byte, and the translated document has the structure of its source."""

from __future__ import annotations

import random
import re
import textwrap
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import cast

import pytest
from lxml import html
from markdown_it import MarkdownIt

import transformer_mt as tmt
from tests.growth import assert_grows
from transformer_mt.cli import main
from transformer_mt.decoding.terms import Span, Term
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.errors import TmtError
from transformer_mt.text.documents.html import Html
from transformer_mt.text.documents.markdown import Markdown
from transformer_mt.text.sentences import sentences
from transformer_mt.workflows.documents import _text_of, translate_document

WORDS = ["Hund", "Katze", "Haus", "läuft", "schläft", "groß", "klein", "und", "im", "Park", "über", "Straße", "Ärger"]
CODE = ["x", "a_b", "pip install x", "f(*a)", "1 < 2", "**no**"]
URLS = ["https://example.com/a_b?c=1", "http://x.org/(y)", "www.example.com", "me@example.com"]
TOUCHING = [  # code at the end of a word or sentence: every word is translated, and the code still touches its word
    ("{% if x %}zwei Hunde im Schnee.{% endif %}", "{% if x %}ZWEI HUNDE IM SCHNEE.{% endif %}"),
    ("ein Hund <code>x</code>läuft", "EIN HUND <code>x</code>LÄUFT"),
    ("ein <b>Hund</b><code>x</code><b>läuft</b>", "EIN <b>HUND</b><code>x</code><b>LÄUFT</b>"),
    ("zwei Hunde.{{ x }}Zwei Katzen", "ZWEI HUNDE.{{ x }}ZWEI KATZEN"),
    ("ein Hund {n}mal", "EIN HUND {n}MAL"),
    ("{name}님이 {name}.txt", "{name}님이 {name}.TXT"),
    ("{% if x %}개가 Hund{% endif %}", "{% if x %}개가 HUND{% endif %}"),
    ("die <b><code>x</code></b>s im Haus", "DIE <b><code>x</code></b>S IM HAUS"),
    ("ein Hund<b><code>x</code> Katze</b>", "EIN HUND<b><code>x</code> KATZE</b>"),
]
UNFINISHED = [  # a browser shows none of the comments and tags at the end
    ("<p>Hund</p><!-- Katze", "<p>HUND</p><!-- Katze"),
    ("<p>Hund <!-- Katze --!>Haus", "<p>HUND <!-- Katze --!>HAUS"),
    ("<p>Hund <!-- <b>x</b> </p><p>Katze</p>", "<p>HUND <!-- <b>x</b> </p><p>Katze</p>"),
    ("<p>Hund</p\n", "<p>HUND</p\n"),
    ('<p>Hund <b class="x', '<p>HUND <b class="x'),
    ("<script>let a = '--!>'; // <!--</script>Hund", "<script>let a = '--!>'; // <!--</script>HUND"),
    ("Hund &amp", "HUND &amp;"),
    ("<!--!> Hund --><p>Katze", "<!--!> Hund --><p>KATZE"),
    ("<p>Hund <?php Katze", "<p>HUND <?php Katze"),
    ("<p>Hund <![CDATA[ Katze", "<p>HUND <![CDATA[ Katze"),
]
IMAGES = [
    ("![Hund *und* Katze](a.png)", "![HUND UND KATZE](a.png)"),
    ("![Hund_und Katze](a.png)", "![HUND\\_UND KATZE](a.png)"),
    ("![Hund [und] Katze](a.png)", "![HUND \\[UND\\] KATZE](a.png)"),
    ("![Hund <b>und</b> Katze][a]\n\n[a]: a.png", "![HUND UND KATZE][a]\n\n[a]: a.png"),
    ("![Hund &amp; *Katze*](a.png)", "![HUND & KATZE](a.png)"),
    ("![Hund `und` Katze](a.png)", "![Hund `und` Katze](a.png)"),
    ("![Hund](a.png)", "![HUND](a.png)"),
]
LETTER = "Mit freundlichen Grüßen\nMax Mustermann\nHauptstr. 5\n"
COMPANY = "Firma\nVereinigte Unternehmen für Hunde und Katzen\nPostfach 3\n12345 Ort\n"
MAIL = "Max schrieb:\n> Ein Hund läuft über die Brücke und eine\n> Katze schläft.\n>\n> > Hallo Max,\n> > Deine Katze\n"
NOTE = "[^1]: Hund\n\n    Katze\n\n        code\n\nund\n"
KEPT = 'translate="no"'
TEMPLATE = "{{ a.b }} {% if x %}gut{% end %} <% x %> ${y}"


def loud(text: str, form: str) -> str:
    """The document in capital letters."""
    done = translate_document(text, Fake(louder, True), form)
    assert done.notes == ()
    return done.text


class Fake:
    """An engine that is a function of the words of a line: it returns its words, and links to words of the line.

    binds: whether its search can copy code
    """

    def __init__(self, function: Callable[[list[str]], tuple[list[str], list[tuple[int, int]]]], terms: bool) -> None:
        self.function, self.binds = function, terms

    def translate(
        self, lines: Iterable[str], align: bool, terms: Iterable[Sequence[Term]] | None
    ) -> Iterator[Translation]:
        assert align
        assert (terms is not None) == self.binds
        for line, spans in zip(lines, terms or repeat(()), strict=False):
            assert "\n" not in line
            copies = dict[str, str]()  # by the sign that stands for a copy in the function
            for number, span in reversed([*enumerate(cast("Sequence[Span]", spans))]):
                if len(span.term.source) > 1:
                    copies[chr(0xF8FF - number)] = span.term.source
                    line = line[: span.start] + chr(0xF8FF - number) + line[span.end :]
            words, links = self.function(line.split())
            text = "".join(copies.get(letter, letter) for letter in " ".join(words))
            yield Translation((), (Hypothesis(text, (), 0.0, (), (), tuple(links)),))


def same(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return words, [(place, place) for place in range(len(words))]


def louder(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return same([word.upper().replace("SS", "ß") for word in words])


def backwards(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return [word.upper() for word in reversed(words)], [(len(words) - 1 - n, n) for n in range(len(words))]


def unlinked(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return backwards(words)[0], []


def web(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Writes characters as a page of the web does."""
    return same([{"Hund": "R&amp;D", "Katze": "a&nbsp;b", "Park": "&lt;x&gt;"}.get(word, word) for word in words])


def shuffled(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Other words in another order, with few and partly wrong links, and marks that need escapes."""
    draw = random.Random(" ".join(words))
    places = draw.sample(range(len(words)), len(words))
    signs = [
        re.sub(r"[A-Za-zäöüß]+", lambda _: draw.choice(["*", "Ux", "_y_", "<b", "a|b", "# z", "1.", "&amp;"]), one)
        for one in words
    ]
    links = [(draw.randrange(len(words)) if draw.random() < 0.3 else place, n) for n, place in enumerate(places)]
    return [signs[place] for place in places], [link for link in links if draw.random() < 0.6]


def lossy(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """Loses code and words."""
    kept = [(n, word.upper()) for n, word in enumerate(words) if n % 3 == 0 and not re.search("[\ue000-\uf8ff]", word)]
    kept = kept or [(0, "NICHTS")]
    return [word for _, word in kept], [(n, place) for place, (n, _) in enumerate(kept)]


ENGINES = [louder, backwards, shuffled, lossy]


class Writer:
    """Writes random documents."""

    def __init__(self, seed: int, newline: str) -> None:
        self.draw, self.newline = random.Random(seed), newline

    def words(self, most: int = 6) -> str:
        return " ".join(self.draw.choices(WORDS, k=self.draw.randint(1, most)))

    def sentence(self, inline: Callable[[int], str]) -> str:
        parts = [inline(2) if self.draw.random() < 0.4 else self.words() for _ in range(self.draw.randint(1, 5))]
        return f"{self.words(2)} {' '.join(parts)}{self.draw.choice(['.', '!', '?', ''])}"

    # Markdown

    def md_inline(self, depth: int) -> str:
        draw, code = self.draw, self.draw.choice(CODE)
        inside = self.md_inline(depth - 1) if depth and draw.random() < 0.3 else self.words(3)
        if depth < 2:
            return draw.choice([f"`{code}`", f"*{self.words(2)}*", draw.choice(URLS), self.words(2)])
        return draw.choice(
            [
                f"**{inside}**",
                f"*{self.words(2)}*",
                f"`{code}`",
                f"[{self.words(3)}](http://a.de/b_c)",
                f'[{self.words(2)} `{code}`](x.html "{self.words(2)}")',
                f"![{self.words(2)}](bild.png)",
                f"<{URLS[0]}>",
                draw.choice(URLS),
                f"<b>{self.words(2)}</b>",
                f"<kbd>{code[:1]}</kbd> <!-- nichts --> <br/>",
                f"~~{self.words(1)}~~ [{self.words(1)}][ref]",
                "&auml;h 3 \\* 4 &amp; $x_1 + y$",
                "{{ a.b c }} {% if x %}",
            ]
        )

    def md_blocks(self, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.draw.randint(1, 4)):
            lines += ["", *self.md_block(depth)] if lines else self.md_block(depth)
        return lines

    def md_paragraph(self) -> list[str]:
        words = " ".join(self.sentence(self.md_inline) for _ in range(self.draw.randint(1, 3))).split(" ")
        half = self.draw.randint(0, len(words))
        lines = [" ".join(words[:half]), " ".join(words[half:])]
        return [line for line in lines if line.strip()] if "`" not in "".join(words) else [" ".join(words)]

    def md_block(self, depth: int) -> list[str]:
        draw = self.draw
        kind = draw.randrange(11 if depth else 6)
        if kind == 0:
            return [f"{'#' * draw.randint(1, 4)} {self.sentence(self.md_inline)}"]
        if kind == 1:
            return [f"```{draw.choice(['', 'python'])}", "print('Hund')", "", "    x = `y`", "```"]
        if kind == 2:
            row = [f"| {self.words(2)} | {self.md_inline(1).replace('|', '')} |" for _ in range(3)]
            return [row[0], "|:---|---:|", *row[1:]]
        if kind == 3:
            return [
                f'<div class="x" title="{self.words(2)}">',
                f"{self.words()} <em>{self.words(2)}</em> &uuml;",
                "</div>",
            ]
        if kind in (6, 7):
            mark = draw.choice(["- ", "* ", "1. ", "10) "])
            item = [
                mark + line if not n else " " * len(mark) + line for n, line in enumerate(self.md_blocks(depth - 1))
            ]
            return [*item, mark + self.sentence(self.md_inline)]
        if kind == 8:
            alert = ["> [!NOTE]"] * draw.randrange(2)
            return [*alert, *(f"> {line}" for line in self.md_blocks(depth - 1))]
        if kind == 9:
            notes = [f"[^{n}]: {self.words(1)} und im {self.words()}." for n in (1, 2)]
            return draw.choice([notes, [":::tip", self.words(), ":::"]])
        return self.md_paragraph()

    def markdown(self) -> str:
        lines = ["---", "title: Hund", "---", ""] if self.draw.random() < 0.3 else []
        lines += [*self.md_blocks(2), "", "[ref]: http://x.de/ref 'Titel'"]
        mark = "\ufeff" * (self.draw.random() < 0.1)
        return mark + self.newline.join(lines) + self.newline * self.draw.randrange(2)

    # HTML

    def html_inline(self, depth: int) -> str:
        draw = self.draw
        inside = self.html_inline(depth - 1) if depth and draw.random() < 0.4 else self.words(3)
        return draw.choice(
            [
                f"<b>{inside}</b>",
                f'<a href="x.html?a=1&amp;b=2" title="{self.words(2)}">{inside}</a>',
                f"<em class='k'>{inside}</em>",
                "<code>a &lt; b</code>",
                f'<img src="x.png" alt="{self.words(2)}">',
                "<br>",
                "<!-- <b>nichts</b> -->",
                f"{draw.choice(URLS[:1])} &auml; &#228; 3 &lt; 4",
            ]
        )

    def html_block(self, depth: int) -> str:
        draw = self.draw
        inner = self.newline.join(self.html_block(depth - 1) for _ in range(draw.randint(1, 3))) if depth else ""
        text = self.sentence(self.html_inline).replace(" ", draw.choice([" ", f"{self.newline}   "]), 1)
        choices = [
            f"<p>{text}</p>",
            f"<h2 id=h>{text}</h2>",
            f"<ul><li>{text}</li><li>{self.words()}{inner}</li></ul>",
            f"<table><tr><td>{text}</td><th>{self.words(2)}</th></tr></table>",
            f"<div>{text}{inner}{self.words()}</div>",
            "<pre>  Hund &lt; <b>Katze</b></pre>",
            "<script>var a = '<p>Hund</p>';</script>",
            f'<p translate="no">{text}</p>',
        ]
        return draw.choice(choices)

    def html(self) -> str:
        body = self.newline.join(self.html_block(2) for _ in range(self.draw.randint(1, 5)))
        head = f"<!DOCTYPE html><html lang='de'><head><title>{self.words()}</title><style>p > b {{}}</style></head>"
        return f"{head}{self.newline}<body>{body}</body></html>{self.newline * self.draw.randrange(2)}"

    def plain(self) -> str:
        blocks = []
        for _ in range(self.draw.randint(1, 6)):
            indent = " " * self.draw.choice([0, 0, 4])
            lines = [
                f"{indent}{self.words(8)} {self.draw.choice(['', *URLS])}".rstrip()
                for _ in range(self.draw.randint(1, 3))
            ]
            blocks.append(self.newline.join([*lines[:-1], lines[-1] + self.draw.choice([".", ""])]))
            if self.draw.random() < 0.2:
                blocks.append("=" * 20)
        return (self.newline * 2).join(blocks) + self.newline * self.draw.randrange(3)


def document(form: str, seed: int) -> str:
    writer = Writer(seed, "\r\n" if seed % 3 == 0 else "\n")
    return {"markdown": writer.markdown, "html": writer.html, "text": writer.plain}[form]()


CASES = [(form, seed) for form, count in (("markdown", 100), ("html", 70), ("text", 30)) for seed in range(count)]


def markdown_structure(text: str) -> tuple[list[str], Counter[object], list[str]]:
    """Kinds of blocks in order with their code; markup of each inline run; code and addresses."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    blocks: list[str] = []
    markup: Counter[object] = Counter()
    for number, token in enumerate(parser.parse(text.lstrip("\ufeff").replace("\r\n", "\n"))):
        blocks.append(token.type + (token.content if token.type in ("fence", "code_block") else ""))
        for child in token.children or ():
            if child.type not in ("text", "text_special", "softbreak"):
                keys = {key: value for key, value in child.attrs.items() if key in ("href", "src")}
                own = child.content if child.type in ("code_inline", "html_inline") else ""
                markup[number, child.type, own, str(keys)] += 1
    return blocks, markup, re.findall(r"`[^`\n]*`", text)


def html_structure(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Tags with the tag around them and their attributes, without order, and without what is translated."""
    root = html.document_fromstring(text)
    found = []
    for element in root.iter():
        attributes = {key: value for key, value in element.attrib.items() if key not in ("alt", "title")}
        around = element.getparent().tag if element.getparent() is not None else ""
        whole = (
            element.text
            if element.tag in ("script", "style", "code", "pre") or not isinstance(element.tag, str)
            else ""
        )
        found.append((str(element.tag), str(around), {**attributes, "text": whole or ""}))
    return sorted(found, key=str)


@pytest.mark.parametrize("terms", [True, False])
def test_an_engine_that_changes_nothing_gives_the_document_back(terms: bool) -> None:
    for form, seed in CASES:
        text = document(form, seed)
        assert translate_document(text, Fake(same, terms), form).text == text, (form, seed)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("terms", [True, False])
def test_the_structure_of_200_documents_is_kept(engine: Callable[..., object], terms: bool) -> None:
    unplaced = blocks = 0
    for form, seed in CASES:
        text = document(form, seed)
        result = translate_document(text, Fake(engine, terms), form)  # type: ignore[arg-type]
        blocks += result.blocks
        unplaced += sum("left as it is" in note for _, note in result.notes)
        place = f"{form} {seed}\n{text}\n=====\n{result.text}"
        for address in URLS:
            assert result.text.count(address) == text.count(address), place
        if form == "markdown":
            kinds, markup, code = markdown_structure(text)
            new_kinds, new_markup, new_code = markdown_structure(result.text)
            assert new_kinds == kinds, place
            assert new_markup == markup, place
            assert Counter(new_code) == Counter(code), place
        elif form == "html":
            assert html_structure(result.text) == html_structure(text), place
            tags = Counter(re.findall(r"<[^<>]*>", re.sub(r'(alt|title)="[^"]*"', "", text)))
            assert Counter(re.findall(r"<[^<>]*>", re.sub(r'(alt|title)="[^"]*"', "", result.text))) == tags, place
        else:
            assert [bool(line.strip()) for line in re.split(r"(?:\r?\n){2,}", result.text)] == [
                bool(line.strip()) for line in re.split(r"(?:\r?\n){2,}", text)
            ], place
            assert result.text.count("\r\n\r\n") == text.count("\r\n\r\n"), place
    assert unplaced <= 0.02 * blocks


def test_markup_moves_with_its_words() -> None:
    text = "Ein **roter Hut** und `a.b` ![Hund](h.png) auf [der Bank](x.md)"
    result = translate_document(text, Fake(backwards, terms=True), "markdown")
    assert result.text == "[BANK DER](x.md) AUF `a.b` ![HUND](h.png) UND **HUT ROTER** EIN"


def lines_of_the_model(document: str, form: str) -> list[str]:
    """What a model gets to translate."""
    seen: list[str] = []

    def look(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        seen.append(" ".join(words))
        return same(words)

    translate_document(document, Fake(look, terms=False), form)
    return seen


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_line_break_inside_a_chinese_word_is_no_space(form: str) -> None:
    lines = [
        "上周，老人在首尔忘记一辆红色自行车。今天，那个学生在首尔忘",
        "记新鲜的水。昨天，一位医生在花园里看见一个苹果，然后回家了",
        "。今天天气很好。",
    ]
    text = "\n".join(lines)
    assert "".join(lines_of_the_model(f"<p>{text}</p>" if form == "html" else text, form)) == "".join(lines)


def test_a_line_break_between_words_is_a_space() -> None:
    assert lines_of_the_model("Die Katze\nschläft", "markdown") == ["Die Katze schläft"]
    assert lines_of_the_model("고양이가\n잔다", "markdown") == ["고양이가 잔다"]


def test_a_paragraph_stays_wrapped_and_quoted() -> None:
    text = "> Ein Mann schläft auf\r\n> einer Bank und eine\r\n> Frau liest.\r\n"
    result = translate_document(text, Fake(louder, terms=True), "markdown")
    assert result.text == text.upper()


def test_text_is_escaped_only_where_it_must_be() -> None:
    def signs(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        return same([{"eins": "*a*", "zwei": "2 < 3", "drei": "- x"}.get(word, word) for word in words])

    text = "eins\n\nzwei\n\ndrei\n"
    assert translate_document(text, Fake(signs, terms=True), "markdown").text == "\\*a*\n\n2 < 3\n\n\\- x\n"
    assert translate_document("<p>zwei", Fake(signs, terms=True), "HTML").text == "<p>2 &lt; 3"


@pytest.mark.parametrize(
    ("form", "text", "result"),
    [
        ("markdown", "[^1]: Ein Hund\n[^2]: Wort\n*[CSS]: Stil\n", "[^1]: EIN HUND\n[^2]: WORT\n*[CSS]: STIL\n"),
        ("markdown", "> [!NOTE]\n> Hund\n\nTerm\n: Ein Wort\n", "> [!NOTE]\n> HUND\n\nTERM\n: EIN WORT\n"),
        ("markdown", "[TOC]\n\n:::tip\nHund\n:::\n::: a.b\n", "[TOC]\n\n:::tip\nHUND\n:::\n::: a.b\n"),
        ("markdown", '!!! note "a"\n    Hund\n    im\n\nund', '!!! note "a"\n    HUND\n    IM\n\nUND'),
        ("markdown", "import X from './x'\nHund\n", "import X from './x'\nHUND\n"),
        ("markdown", "---\ntitle: x\n...\nHund\n", "---\ntitle: x\n...\nHUND\n"),
        ("markdown", "---\n\nHund\n\n---\n", "---\n\nHUND\n\n---\n"),
        (
            "markdown",
            "[^1]: Hund\n\n    Katze\n\n        code\n\nund\n",
            "[^1]: HUND\n\n    KATZE\n\n        code\n\nUND\n",
        ),
        ("markdown", "Term\n: Hund\n\n    - Katze\n", "TERM\n: HUND\n\n    - KATZE\n"),
        ("markdown", '![Hund &amp; {{ x }}](y "im {{ z }}")', '![HUND & {{ x }}](y "IM {{ z }}")'),
        ("html", '<p title="{{ x }} Hund">im {{ "<b>" }}</p>', '<p title="{{ x }} HUND">IM {{ "<b>" }}</p>'),
        ("html", "<b>im " * 2000 + "</b>" * 2000, "<b>IM " * 2000 + "</b>" * 2000),
        ("text", MAIL, MAIL.upper()),
        ("text", "Hund\t5\nKatze   im\tPark\n| groß | 3 |\n", "HUND\t5\nKATZE   IM\tPARK\n| GROß | 3 |\n"),
        ("text", "Hund\f\fKatze im\u2028Park\v\n", "HUND\f\fKATZE IM\u2028PARK\v\n"),
        ("markdown", "\ufeff# Hund\n", "\ufeff# HUND\n"),
        ("html", "", ""),
        ("html", "<p>Hund</p><![foo[ x ]]>", "<p>HUND</p><![foo[ x ]]>"),
        ("html", '<p class="a notranslate">Hund</p>', '<p class="a notranslate">Hund</p>'),
        # Marks at the end of a word stay there.
        ("markdown", "der Hund[^1] und die Katze.[^2] Im\n", "DER HUND[^1] UND DIE KATZE.[^2] IM\n"),
        ("markdown", "der Hund[^1][^2] und\n", "DER HUND[^1][^2] UND\n"),
        ("markdown", "der **Hund**[^1] und\n", "DER **HUND**[^1] UND\n"),
        ("html", "<p>der <b>Hund<img src=x></b> und", "<p>DER <b>HUND<img src=x></b> UND"),
        ("html", "<p>Hund<img src=a><img src=b> und", "<p>HUND<img src=a><img src=b> UND"),
        ("html", "<p>der Hund<img src=x> und<!-- c --> im", "<p>DER HUND<img src=x> UND<!-- c --> IM"),
        ("html", "<p>der Hund <img src=x> und im", "<p>DER HUND <img src=x> UND IM"),
        # White space and punctuation in elements of their own, as programs write them, belong to the sentence.
        ("html", "<p>im<span>&nbsp;</span>Park<b>!</b>", "<p>IM<span></span> PARK!<b></b>"),
        (
            "html",
            "<p>Hund<i>. </i>Katze<a href=x>?</a> <u>„</u>im Park<u>“</u></p>",
            "<p>HUND.<i></i> KATZE<a href=x>?</a> <u></u>„IM PARK“<u></u></p>",
        ),
        ("html", "<p><i>&nbsp; </i>Hund<i> </i></p>", "<p><i>&nbsp; </i>HUND<i> </i></p>"),
        ("html", "<p><code>x</code><i> </i>Hund", "<p><code>x</code><i></i> HUND"),
        # References to notes stand for no word; powers and other numbers do.
        (
            "html",
            "<p>Hund<a href=x><sup>[1]</sup></a>. Park<sup>2</sup>.",
            "<p>HUND.<a href=x><sup>[1]</sup></a> PARK.<sup>2</sup>",
        ),
        ("html", "<p>im <a>[12]</a> Park m<sup>2</sup>", "<p>IM <a>[12]</a> PARK M<sup>2</sup>"),
        ("html", "<p>Haus<sup>®</sup>, Katze<sup>-1</sup>. (im)<sup>2</sup> Park<sup>2</sup>(im)", None),
        ("html", "<p>im <a href=x>[1]</a>, <a href=x>[2]</a> und (<a href=x>[3]</a>) Park<sup>1</sup>und", None),
        # Signs and letters of other scripts: a note after them, and a sign of theirs in a tag.
        ("html", "<p>Hund<b>؟ </b>Park<b>।</b>", "<p>HUND؟<b></b> PARK।<b></b>"),
        ("html", "<p>Hund؟<sup>1</sup> किताब<sup>2</sup>, Park", "<p>HUND؟<sup>1</sup> किताब,<sup>2</sup> PARK"),
        ("html", "<p>Park<i> </i><sup>1</sup></p>", "<p>PARK<i></i> <sup>1</sup></p>"),
        # Tags that say more than how a text looks keep their punctuation.
        ("html", "<p>Haus <a href=x>»</a> im <del>.</del><ins>!</ins> <q>.</q> und <s>,</s>", None),
        ("html", "<p><ruby>Haus<rp>(</rp><rt>im</rt><rp>)</rp></ruby> Park", None),
        # An element that begins with a space has nothing of the word before it.
        ("html", "<p>im<b> Park </b>und<i> klein</i>", "<p>IM <b>PARK</b> UND <i>KLEIN</i>"),
        ("markdown", "im<em> Park</em> und\n", "IM <em>PARK</em> UND\n"),
        # Numbers and signs of items stay.
        (
            "html",
            "<p><b>1.</b> Hund<p>&bull; Hund<p>※ Hund<p>가. Hund",
            "<p><b>1.</b> HUND<p>&bull; HUND<p>※ HUND<p>가. HUND",
        ),
        (
            "html",
            "<p><span>1.<span>&nbsp; </span></span><![endif]>Hund",
            "<p><span>1.<span>&nbsp; </span></span><![endif]>HUND",
        ),
        ("markdown", "## 1.2. Hund\n\n① im\n\n**(2)** Park\n", "## 1.2. HUND\n\n① IM\n\n**(2)** PARK\n"),
        ("text", "(가) Hund\n나) im\n1-1) Park\nIV. groß\n[3] x\n", "(가) HUND\n나) IM\n1-1) PARK\nIV. GROß\n[3] X\n"),
        ("html", "<p>3.5 im 2024. 5. 3. Park", "<p>3.5 IM 2024. 5. 3. PARK"),
        ("html", "<p>(a) <b>im</b> Park<p>(b)<p>(1) (2) im", "<p>(a) <b>IM</b> PARK<p>(B)<p>(1) (2) IM"),
        # Links of wikis.
        ("markdown", "im [[Park|Hund]] und\n\n![[a.png]]\n", "IM [[Park|Hund]] UND\n\n![[a.png]]\n"),
        ("markdown", "im [[Park]](x) und\n", "IM [[PARK]](x) UND\n"),
        # End tags may be left out.
        ("html", f"<p {KEPT}>Hund<p>Katze<p>im", f"<p {KEPT}>Hund<p>KATZE<p>IM"),
        (
            "html",
            f"<p {KEPT}>Hund</b> im <br> <span>im<div>Park</div>",
            f"<p {KEPT}>Hund</b> im <br> <span>im<div>PARK</div>",
        ),
        ("html", f"<div><p {KEPT}>Hund</div>Katze", f"<div><p {KEPT}>Hund</div>KATZE"),
        (
            "html",
            f"<ul><li {KEPT}>Hund<ul><li>im<li>im</ul><li>Park</ul>im",
            f"<ul><li {KEPT}>Hund<ul><li>im<li>im</ul><li>PARK</ul>IM",
        ),
        (
            "html",
            f"<table><tr><td {KEPT}>Hund<p>im<p>im<td>Park<tr><td>im",
            f"<table><tr><td {KEPT}>Hund<p>im<p>im<td>PARK<tr><td>IM",
        ),
        ("html", f"<table><tr {KEPT}><td>Hund<tr><td>im</table>", f"<table><tr {KEPT}><td>Hund<tr><td>IM</table>"),
        (
            "html",
            f"<ul><li {KEPT}><p>Hund<ul><li>im</ul></p> im<li>Park</ul>",
            f"<ul><li {KEPT}><p>Hund<ul><li>im</ul></p> im<li>PARK</ul>",
        ),
        ("html", f"<p><ruby>im<rt {KEPT}>kan</ruby> im Park", f"<p><ruby>IM<rt {KEPT}>kan</ruby> IM PARK"),
        ("html", f"<dl><dt {KEPT}>Hund<dd>Park</dl>im", f"<dl><dt {KEPT}>Hund<dd>PARK</dl>IM"),
        ("html", f"<div {KEPT}><div>im<p>im</div>im</div>Park", f"<div {KEPT}><div>im<p>im</div>im</div>PARK"),
        ("markdown", TEMPLATE, TEMPLATE.replace("gut", "GUT")),
        ("html", TEMPLATE, TEMPLATE.replace("gut", "GUT")),
    ],
)
def test_what_is_kept_and_what_is_translated(form: str, text: str, result: str | None) -> None:
    """result: None: the same, with the words in capital letters"""
    if result is None:
        result = re.sub("Haus|Katze|Park|im|und", lambda word: word[0].upper(), text)
    assert translate_document(text, Fake(louder, terms=True), form).text == result


def test_a_number_in_tags_after_several_spaces_is_read_as_a_word() -> None:
    """It is the number of an item only at the beginning of a block."""
    read = list[list[str]]()

    def engine(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        read.append(words)
        return louder(words)

    translate_document("<p>Haus    <!-- x --> <b>5.</b> Katze", Fake(engine, terms=True), "html")
    assert [len(words) for words in read] == [3]


def test_code_of_templates_stays_outside_of_links_and_in_order() -> None:
    """Without alignments, too. A template with the end of a condition before its beginning does not work."""
    page = '<p>{{ a.b }} <a href="x">Hund</a> läuft {% if x %} gut {% endif %} im <b>Park</b></p>'
    result = translate_document(page, Fake(unlinked, terms=True), "html").text
    assert result == '<p>PARK <a href="x">IM</a> {% if x %} GUT {% endif %} LÄUFT <b>HUND</b> {{ a.b }}</p>'


@pytest.mark.parametrize(
    ("form", "text", "result"),
    [
        ("html", '<p title="Hund Katze">ein Hund <b>Park</b>', '<p title="R&amp;D a b">ein R&amp;D <b>&lt;x&gt;</b>'),
        ("html", "<p>ein &amp;amp; Hund", "<p>ein &amp;amp; R&amp;amp;D"),  # this page is about entities
        ("markdown", 'ein Hund [Park](x "im Hund")', 'ein R&D [\\<x\\>](x "im R&D")'),
        ("text", "ein Hund Park", "ein R&D <x>"),
    ],
)
def test_a_model_may_write_entities(form: str, text: str, result: str) -> None:
    assert translate_document(text, Fake(web, terms=True), form).text == result


@pytest.mark.parametrize("text", [LETTER, COMPANY])
def test_lines_of_a_letter_stay_alone(text: str) -> None:
    lines = [" ".join(backwards(line.split())[0]) for line in text.splitlines()]
    assert translate_document(text, Fake(backwards, terms=True), "text").text.splitlines() == lines


@pytest.mark.parametrize("width", [50, 72, 100])
def test_lines_of_a_wrapped_paragraph_are_one_line_for_the_model(width: int) -> None:
    sentences = "Der Hund läuft im Park. Eine Katze schläft dort, und Herr Schmidt liest in München ein Buch. " * 5
    paragraph = textwrap.wrap(sentences, width, break_on_hyphens=False)
    text = "\n".join([*paragraph, "", *(f"> {line}" for line in paragraph), "", *(f"    {line}" for line in paragraph)])
    seen: list[str] = []
    translate_document(text, Fake(lambda words: (seen.append(" ".join(words)), same(words))[1], terms=True), "text")
    assert seen == [sentences.strip()] * 3


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ("markdown", "Ein **Mann** mit `x` läuft [x](y) schnell. "),
        ("html", "Ein <b>Mann</b> mit <code>x</code> <img src=x> läuft <a href=x>x</a> schnell. "),
        ("text", "Ein Mann läuft auf https://example.com/a schnell.\n"),
    ],
)
def test_a_long_paragraph_takes_linear_time(form: str, sentence: str) -> None:
    def work(sentences: int) -> None:
        assert translate_document(sentence * sentences, Fake(backwards, True), form).text.count("SCHNELL") == sentences

    assert_grows(work, 250)  # 1,000 took 23 s when every element looked at every word


@pytest.mark.parametrize(
    "page",
    [
        lambda size: '<li translate="no">' + "<b>x" * size,
        lambda size: "<p>im" + "<img src=x>" * size + " im",
        lambda size: "<p>im" + "<b></b>" * size + " im",
        lambda size: "<p>" + "im<i>.</i> " * size,
    ],
    ids=lambda page: page(1),
)
def test_broken_pages_take_linear_time(page: Callable[[int], str]) -> None:
    # 20,000 elements took 11 s when each looked at all others.
    assert_grows(lambda size: translate_document(page(size), Fake(louder, terms=True), "html"), 5_000)


def test_what_has_no_translation_is_left_and_named() -> None:
    result = translate_document("# Hund\n\nKatze\n", Fake(lambda words: ([], []), terms=True), "markdown")
    assert result.text == "# Hund\n\nKatze\n"
    assert result.notes == (
        (1, "no translation, so it is left as it is: Hund"),
        (3, "no translation, so it is left as it is: Katze"),
    )


def test_code_that_the_search_cannot_copy_is_placed_and_noted(tiny_model: Path) -> None:
    for method in ("beam", "sample"):
        translator = tmt.load(tiny_model, method=method)
        result = translate_document("run `a b` and https://x.org/a now", translator, "markdown")
        assert result.text.count("`a b`") == result.text.count("https://x.org/a") == 1


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.docx", b"a", "unknown suffix '.docx'"),
        ("a.md.gz", b"a", "the document is compressed"),
        ("b.md.gz", b"\x1f\x8b\x08\0\0", "the document is compressed"),
        ("a.md", b"a\n\xff", "a.md:2: the document is not UTF-8: byte 0xff"),
        ("a.txt", "안녕하세요 여러분 반갑습니다".encode("cp949"), "iconv -f CP949"),
        ("a.txt", "a".encode("utf-16"), "the document is UTF-16"),
        ("a.html", b"PK\0\0", "not a text file"),
        ("missing.md", None, "no such file"),
    ],
)
def test_files_that_are_no_documents(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(TmtError, match=re.escape(message)):
        translate_document(tmp_path / name, Fake(same, terms=True))


@pytest.mark.parametrize(
    ("name", "message"), [(None, "the format of the document is not known"), ("pdf", "unknown format 'pdf'")]
)
def test_text_needs_a_format(name: str | None, message: str) -> None:
    with pytest.raises(TmtError, match=message) as error:
        translate_document("# Hund", Fake(same, terms=True), name)
    assert "markdown" in error.value.remedy


def test_the_command_writes_the_document(tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.md", tmp_path / "out.md"
    source.write_bytes(b"# abc\r\n\r\n    code\r\n\r\nquite `x` long")
    main.main(["translate", "--model", str(tiny_model), "--document", str(source), "--output", str(target)])
    lines = target.read_bytes().split(b"\r\n")
    assert lines[0].startswith(b"# ")
    assert lines[1:4] == [b"", b"    code", b""]
    assert lines[4].count(b"`x`") == 1
    before = source.read_bytes()
    files = ["--document", str(source), "--output", str(tmp_path / "." / "in.md")]
    assert main.main(["translate", "--model", str(tiny_model), *files]) == 2
    assert "--output is the same file as --document" in capsys.readouterr().err
    assert source.read_bytes() == before
    for others in (["--json"], ["--scores"], ["--n-best", "2"], ["a text"], ["--input", str(source)], ["--no-split"]):
        assert main.main(["translate", "--model", str(tiny_model), "--document", str(source), *others]) == 2
        assert "and --document cannot be combined" in capsys.readouterr().err
    assert main.main(["translate", "--model", str(tiny_model), "--format", "html", "a text"]) == 2
    assert "--format needs --document" in capsys.readouterr().err


@pytest.mark.parametrize(
    "code",
    [
        '<pre>&lt;img alt="Die Katze schläft."&gt;</pre>',
        "<script>document.write('<img alt=\"Die Katze schläft.\">')</script>",
        '<style>/* title="Die Katze schläft" */</style>',
        '<code class = "x" >x title="Die Katze schläft" y</code>',
        '<p translate="no" title="Die Katze schläft">Foo</p>',
        "<p class='a notranslate' title='Die Katze schläft'>Foo</p>",
        "<p TRANSLATE=NO title='Die Katze schläft'>Die Katze</p>",
    ],
)
def test_attributes_inside_code_are_code(code: str) -> None:
    text = f"<p>Eins.</p>\n{code}\n<img src='a>b.png' alt='Zwei.'>\n<pre title=\"Drei\">x</pre>\n"
    for form in (Html(), Markdown()):
        found = [text[block.pieces[0].start : block.pieces[-1].end] for block in form.blocks(text)]
        assert found == ["Eins.", "Zwei.", "Drei"], form


@pytest.mark.parametrize(("text", "translated"), TOUCHING)
def test_words_that_touch_code_are_translated(text: str, translated: str) -> None:
    assert loud(f"<p>{text}</p>", "html") == f"<p>{translated}</p>"
    if "<" not in text:
        assert loud(f"{text}\n", "markdown") == f"{translated}\n"


def test_code_does_not_touch_another_word_than_in_the_source() -> None:
    done = translate_document("<p>zwei <code>x</code>Hunde laufen", Fake(backwards, True), "html")
    assert done.text == "<p>LAUFEN HUNDE <code>x</code> ZWEI"


@pytest.mark.parametrize(("text", "translated"), UNFINISHED)
def test_what_is_unfinished_at_the_end_of_a_page_is_no_text(text: str, translated: str) -> None:
    assert loud(text, "html") == translated


@pytest.mark.parametrize(("text", "translated"), IMAGES)
def test_the_text_of_an_image_is_translated_as_a_page_shows_it(text: str, translated: str) -> None:
    assert loud(f"{text}\n", "markdown") == f"{translated}\n"


def test_values_without_quotes_get_them() -> None:
    assert loud("<img alt=Hund><input placeholder=Katze title=https://a.de/b>", "html") == (
        '<img alt="HUND"><input placeholder="KATZE" title=https://a.de/b>'
    )


def test_only_line_breaks_count_for_the_width_of_a_paragraph() -> None:
    text = "Hund und Katze im Haus.\x0bHund\x0c und Katze.\nKatze im Haus.\n"
    assert loud(text, "markdown") == "HUND UND KATZE IM HAUS. HUND UND KATZE.\nKATZE IM HAUS.\n"


@pytest.mark.parametrize("more", ["\uf000", "\ue000"])
def test_signs_that_the_model_makes_up_are_left_out(more: str) -> None:
    done = translate_document(
        "<p>ein Hund<code>x</code> im Haus", Fake(lambda words: same([*words, more]), True), "html"
    )
    assert done.text.rstrip() == "<p>ein Hund<code>x</code> im Haus"


def test_a_document_in_a_damaged_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("page.md", "".join(f"{number**3} titles\n" for number in range(500)))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[200:240] = bytes(40)
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(TmtError, match="damaged") as error:
        _text_of(tmp_path / "a.zip" / "page.md")
    assert error.value.place == str(tmp_path / "a.zip" / "page.md")


def test_addresses_and_placeholders_are_read_as_they_are_written() -> None:
    """A model may know them from its training. Other code, also in templates with spaces, is a sign for it."""
    given = list[tuple[str, Sequence[Term]]]()

    class Listener(Fake):
        def translate(
            self, lines: Iterable[str], align: bool, terms: Iterable[Sequence[Term]] | None
        ) -> Iterator[Translation]:
            lines, terms = list(lines), list(terms or ())
            given.extend(zip(lines, terms, strict=True))
            return super().translate(lines, align, terms)

    text = "Hund {n}, `{n}` und https://a.example/b_c, {{ a }}.\n\nKatze {n} bei https://a.example und https://a.example/b.\n"
    done = translate_document(text, Listener(backwards, True), "markdown")
    assert [line for line, _ in given] == [
        "Hund {n}, \ue001 und https://a.example/b_c, \ue003.",
        "Katze {n} bei https://a.example und https://a.example/b.",
    ]
    for line, terms in given:
        for span in cast("Sequence[Span]", terms):
            assert line[span.start : span.end] == span.term.source == span.term.target
    assert [len(terms) for _, terms in given] == [4, 3]
    first, second = done.text.rstrip().split("\n\n")
    assert first == "{{ a }}. https://a.example/b_c, UND `{n}` {n}, HUND"
    assert second == "https://a.example/b. UND https://a.example BEI {n} KATZE"


@pytest.mark.parametrize("piece", [" ", "。」", '"?"', "<![", "a. ", "http://", "[["])
@pytest.mark.parametrize("form", [Html, Markdown, None])
def test_the_time_of_hostile_text_grows_with_its_length(form: type[Html | Markdown] | None, piece: str) -> None:
    """A server reads texts before it translates them."""

    def read(size: int) -> object:
        text = f"a {piece * size}b"
        return sentences(text, "en") if form is None else form().blocks(text)

    assert_grows(read, 20_000 // len(piece) if form is None else 6_000 // len(piece))
