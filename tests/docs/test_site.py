"""The documentation site builds without a warning, holds every page, and asks no other host for anything."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
LOADED = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src",),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loads(HTMLParser):
    """The addresses that a browser fetches by itself to show a page; links that a reader follows are not among them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        names = LOADED.get(tag, ())
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "alternate"):
            names = ("href",)
        self.addresses += [value for name in names if (value := given.get(name))]


def test_every_page_is_built(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert [str(page) for page in sorted(pages) if not (site / page).is_file()] == []


def test_nothing_comes_from_another_host(site: Path) -> None:
    foreign = re.compile(r"(?:[a-z]+:)?//")
    offences = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        addresses = Loads(text).addresses
        offences += [f"{page.name}: {address}" for address in addresses if foreign.match(address)]
        assert 'data-md-component="source"' not in text, f"{page.name}: would ask GitHub for its stars"
        assert 'class="mermaid"' not in text, f"{page.name}: mermaid would be fetched from elsewhere"
    for style in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", style.read_text(encoding="utf-8"))
        offences += [f"{style.name}: {address}" for address in addresses if foreign.match(address)]
    assert offences == []


def test_everything_that_a_page_loads_is_there(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue  # its addresses start at the root of a server
        for address in Loads(page.read_text(encoding="utf-8")).addresses:
            assert address.startswith("data:") or (page.parent / re.split("[?#]", address)[0]).is_file(), address


def documents(site: Path) -> list[dict[str, str]]:
    """What the search searches."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    found: list[dict[str, str]] = json.loads(index.removeprefix("var __index = "))["docs"]
    return found


def test_search_works_from_a_folder_without_a_server(site: Path) -> None:
    assert any("learning_rate" in one["text"] for one in documents(site))
    page = (site / "index.html").read_text(encoding="utf-8")
    assert page.index("iframe-worker.js") < page.index("assets/javascripts/bundle")


def test_nothing_is_left_unresolved(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "{{ code" not in text, page.name
        assert "arithmatex" not in text, page.name


def test_korean_is_marked_as_korean(site: Path) -> None:
    """All of it in texts, and nothing else: a voice that reads English must not spell it."""
    marked = 0
    for page in site.rglob("*.html"):
        article = re.search(r"<article.*?</article>", page.read_text(encoding="utf-8"), re.S)
        rest, count = re.subn('<span lang="ko">[^<>]*</span>', "", article[0] if article else "")
        assert re.findall("[가-힣]+", re.sub("<[^>]*>|<script.*?</script>", "", rest)) == [], page.name
        marked += count
    assert marked > 90
    assert any("그 고양이는 작아요." in one["text"] for one in documents(site))


def test_texts_and_links_can_be_seen(site: Path) -> None:
    """In both colours: contrast, and links that differ from the text around them by more than their colour."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright (extra test)")
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (extra test)"
    )
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("needs Chromium (Debian, Ubuntu: apt install chromium)")
    rules = {"runOnly": ["color-contrast", "link-in-text-block"], "resultTypes": ["violations"]}
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for colours in ("light", "dark"):
            page = browser.new_page(color_scheme=colours, reduced_motion="reduce")
            page.goto((site / "start.html").as_uri())
            found = axe.Axe().run(page, options=rules).response["violations"]
            assert [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found] == [], colours
        browser.close()
