#!/usr/bin/env python3
"""Take the screenshots of `tmt serve` for the documentation, with Chromium, from the run that the quickstart trains.

    python scripts/draw_screens.py [--run runs/quickstart] [--to docs/pictures]

Needs the extras `serve` and `test`, and Chromium (Debian, Ubuntu: apt install chromium).
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from transformer_mt.serving.app import make_app
from transformer_mt.serving.limits import Limits
from transformer_mt.serving.models import load_models
from transformer_mt.serving.run import Server, open_socket

# Made by the grammar of the phrasebook. At the first one, greedy search and the beam differ.
SENTENCE = "누가 열 시에 이 코트를 입었습니까?"
GOOD = "우리는 내일 제 친구와 함께 이 재미있는 신문을 읽을 거예요."
OTHER = "그들은 시장에서 그 복숭아를 살 수 없어요."
COLOURS = 256  # of a picture: small files, and nothing that one sees is lost


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """The address of a server with this run."""
    listening, limits = open_socket("127.0.0.1", 0), Limits()
    app = make_app(load_models([run], limits), limits, runs_folder=run.parent)
    server = Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def pictures(page: Page) -> Iterator[tuple[str, str | int]]:
    """Brings the page to each view; the name of a picture, and the part of the page or the height to take."""
    page.fill("#text", f"{GOOD}\n{OTHER}")
    page.hover("#output .word >> nth=3")
    yield "translate", 780
    page.fill("#text", SENTENCE)
    page.locator("#of-line").wait_for(state="hidden")
    page.click("#look")
    page.wait_for_selector("#positions canvas")
    page.locator(".lines .row").nth(7).click()
    yield "attention", "#attention"
    page.locator(".tree").evaluate("tree => tree.scrollTo({ left: 0, behavior: 'instant' })")
    yield "search", "#search"
    page.get_by_role("radio", name="Decoder: Cross-attention").click()
    yield "shapes", "#shapes"
    yield "positions", "#positions"
    page.click("#tab-runs")
    page.wait_for_selector(".sample")
    page.locator("#epoch").fill("1")
    yield "runs", 860


def take(page: Page, what: str | int, file: Path) -> None:
    """A part of the page with a margin, or its beginning."""
    page.mouse.move(640, 2) if what != 780 else None
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")  # the bar of the views stays at the top of the window
    page.wait_for_timeout(400)
    area = {"x": 0, "y": 0, "width": 1280, "height": what}
    if isinstance(what, str):
        box = page.locator(what).bounding_box()
        assert box is not None
        top = box["y"] + page.evaluate("scrollY") - 16
        area = {"x": 0, "y": top, "width": 1280, "height": box["height"] + 40}
    page.screenshot(path=file, full_page=True, clip=area)
    Image.open(file).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", type=Path, default=Path("runs/quickstart"), help="a trained run (runs/quickstart)")
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"), help="folder (docs/pictures)")
    arguments = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with serving(arguments.run) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for theme in ("light", "dark"):
            size = {"width": 1280, "height": 900}
            page = browser.new_page(viewport=size, color_scheme=theme, reduced_motion="reduce")
            page.goto(address)
            for name, what in pictures(page):
                file = arguments.to / f"serve-{name}{'' if theme == 'light' else '-dark'}.png"
                take(page, what, file)
                print(f"{file}  {file.stat().st_size / 1024:.0f} KiB")
        browser.close()


if __name__ == "__main__":
    main()
