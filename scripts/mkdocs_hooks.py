"""What mkdocs does to our pages in addition: source code by name, whole files as pages, and equations as MathML.

In a page, a line `{{ code transformer_mt/model/attention.py scaled_dot_product_attention }}` becomes that function,
class or method (`MultiHeadAttention.forward`) as it stands in the source, so a page never shows old code; `nodoc` after
the name leaves its docstring out. `{{ code FILE }}` is the whole file. A page that begins with `<!-- page FILE -->`
shows FILE of the repository's root instead. `$...$` and `$$...$$` become MathML, which browsers draw without a script.
Korean is marked as Korean, so that a voice that reads the page pronounces it.
"""

from __future__ import annotations

import ast
import html as entities
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"^\{\{ code (?P<file>\S+)(?: (?P<name>[\w.]+))?(?P<nodoc> nodoc)? \}\}$", re.M)
_PAGE = re.compile(r"\A<!-- page (\S+) -->")
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
REPOSITORY = "https://github.com/transformer-mt/transformer_mt/blob/main/"
_TAG = re.compile(r"""(<!--.*?-->|<(?:[^>"']|"[^"]*"|'[^']*')*>)""", re.S)
_HANGUL = re.compile(r"[ᄀ-ᇿ㄰-㆏가-힣](?:[ \d.,?!]*[ᄀ-ᇿ㄰-㆏가-힣])*[.?!]?")
_MATH = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.S)


def source_of(file: str, name: str = "", nodoc: bool = False) -> str:
    """The lines of a function, class or method. Raises KeyError where the file has none of that name."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if not name:
        return text
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        found = {
            child.name: child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.ClassDef | ast.FunctionDef)
        }
        node = found[part]
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    lines = text.splitlines()
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    skipped: set[int] = set()
    for inner in ast.walk(node) if nodoc else ():
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inner) is not None:
            end = inner.body[0].end_lineno or 0
            blank = lines[end : end + 1] == [""]  # the line after it
            skipped |= set(range(inner.body[0].lineno, end + 1 + blank))
    shown = [lines[number - 1] for number in range(first, (node.end_lineno or 0) + 1) if number not in skipped]
    return re.sub(r"  # (?:noqa|type: ignore).*$", "", textwrap.dedent("\n".join(shown)), flags=re.M) + "\n"


def with_code(markdown: str) -> str:
    def block(match: re.Match[str]) -> str:
        code = source_of(match["file"], match["name"] or "", bool(match["nodoc"]))
        return f'```python title="{match["file"]}"\n{code}```'

    return _CODE.sub(block, markdown)


def with_file(markdown: str) -> str:
    """The page, or the file of the root that it stands for, with links that work from docs/."""
    match = _PAGE.match(markdown)
    if match is None:
        return markdown

    def link(found: re.Match[str]) -> str:
        inside = found[2].startswith("docs/") and found[2].endswith(".md")
        target = found[2].removeprefix("docs/") if inside else REPOSITORY + found[2]
        return f"{found[1]}{target}{found[3] or ''})"

    return LINK.sub(link, (ROOT / match[1]).read_text(encoding="utf-8"))


def with_equations(html: str) -> str:
    import latex2mathml.converter  # only the site needs it

    def mathml(match: re.Match[str]) -> str:
        display = "inline" if match[2] == "(" else "block"
        return latex2mathml.converter.convert(entities.unescape(match[3].strip()), display=display)

    return _MATH.sub(mathml, html)


def with_languages(html: str) -> str:
    """The page with its Korean texts in `<span lang="ko">`; tags stay as they are."""
    parts = _TAG.split(html)
    parts[::2] = [_HANGUL.sub(r'<span lang="ko">\g<0></span>', text) for text in parts[::2]]
    return "".join(parts)


def on_page_markdown(markdown: str, **_: object) -> str:
    return with_code(with_file(markdown))


def on_page_content(html: str, **_: object) -> str:
    return with_languages(with_equations(html))
