"""Addresses and placeholders: where they end, in a sentence and in a document with markup."""

from __future__ import annotations

import pytest

from transformer_mt.text.copies import choices, copied, name_of_choice


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("(https://x.y/z), http://x.org/(y)!", ["https://x.y/z", "http://x.org/(y)"]),
        ("http://x.org/a(b)c. https://x.y/{id}/b", ["http://x.org/a(b)c", "https://x.y/{id}/b"]),
        ("`www.a.de` |http://x.y| www.html <me@x.org>", ["www.a.de", "http://x.y", "me@x.org"]),
        ("한국 http://x.y/z에서 www.ex-ample.co.kr로", ["http://x.y/z", "www.ex-ample.co.kr"]),
        ("https://ko.x.org/wiki/고양이는", ["https://ko.x.org/wiki/고양이는"]),  # the particle cannot be told apart
        ("http://x.y/w/위키/고양이_품종?이름=개&b 작다", ["http://x.y/w/위키/고양이_품종?이름=개&b"]),
        ("(http://x.y/w/배_(과일)), http://x.y(배)", ["http://x.y/w/배_(과일)", "http://x.y"]),
        (
            "http://x.y/에서, http://x.y/인데, http://x.y/a_고양이.",
            ["http://x.y/", "http://x.y/", "http://x.y/a_고양이"],
        ),
        ("%{a} ${b} ${{ c }} %%s %ld %(n)s {{{d}}}", ["%{a}", "${b}", "${{ c }}", "%%s", "%ld", "%(n)s", "{{{d}}}"]),
        ("50 % der, 100%ig, 10%-s, 20%-i, 10%d'or, 5%x, a %, {", []),
        ("%d개의 파일, %s님이 %1$s은 %@様 %d件", ["%d", "%s", "%1$s", "%@", "%d"]),
        ("%dabc, %sей, 50%der", []),
        ("$%d, $%.2f, file_0%d.png, v1%s", ["%d", "%.2f", "%d", "%s"]),
        ("{ name } { $n } {} { } { a, b } { % }", ["{ name }", "{ $n }", "{}"]),
        ("{m} {d, date, short} {n, number}", ["{m}", "{d, date, short}", "{n, number}"]),
        ("{a}/{b} v{c} {d}s %d/%d", ["{a}", "{b}", "{c}", "{d}", "%d", "%d"]),
        ("'https://x.y/O'Brien' {{ a.b }} %s {% if x %}", ["https://x.y/O'Brien", "{{ a.b }}", "%s", "{% if x %}"]),
    ],
)
def test_an_address_ends_where_the_sentence_goes_on(line: str, found: list[str]) -> None:
    assert [match[0] for match in copied().finditer(line)] == found
    assert [match[0] for match in copied(in_markup=True).finditer(line)] == found


def test_brackets_and_emphasis_belong_to_markup_only_in_a_document() -> None:
    assert [match[0] for match in copied().finditer("https://x.y/?a[0]=1_")] == ["https://x.y/?a[0]=1_"]
    assert [match[0] for match in copied(in_markup=True).finditer("*https://x.y/a[^1]*")] == ["https://x.y/a"]
    assert [match[0] for match in copied(in_markup=True).finditer("*https://x.y/a*")] == ["https://x.y/a"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{n, plural, one {# {m} file} other {# files}}", ["{n, plural}"]),
        ("a {N,selectordinal, offset:1 =0 {x}one{y} other {z}} b", ["{n, selectordinal, =0}"]),
        ("{a, select, x {{b, plural, =1 {c} other {d}}} other {e}}{f}", ["{a, select, x, other}"]),
        ("{n, plural, one {file other {files}}", []),
        ("{n} {n, number} { plural, }", []),
    ],
)
def test_a_choice_is_known_by_what_all_languages_have_of_it(text: str, names: list[str]) -> None:
    assert [name_of_choice(found) for found in choices(text)] == names


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{n, plural, one {file} other {{x} of # files}} {m}", ["{m}"]),
        ("{s, select, a {b} c {d", []),
        ("{ u.n , plural,one{x}other{y}}{z}", ["{z}"]),
    ],
)
def test_texts_of_a_choice_are_no_placeholders(line: str, found: list[str]) -> None:
    assert [match[0] for match in copied().finditer(line)] == found
