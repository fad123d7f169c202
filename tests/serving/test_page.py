"""The page in a real browser: what a person types, sees and hears, also when things go wrong."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.serving.living import Living, living, random_translator
from transformer_mt.decoding.translator import Translator
from transformer_mt.serving.keys import Keys

api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright (extra test)")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python (extra test)")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian, Ubuntu: apt install chromium)"),
]
QUIET = ("no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync")
SENTENCE = "그 고양이는 작아요."
SAMPLES = [{"source": SENTENCE, "translation": "the cat", "reference": "the cat"}]
Page = Any


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write(
        folder,
        "ko-en",
        step(1),
        step(2),
        validation(2),
        {"event": "finished", "step": 2, "reason": "done", "seconds": 1},
    )
    return folder


def write(folder: Path, name: str, *records: dict[str, Any]) -> None:
    """Appends records to a run."""
    (folder / name).mkdir(exist_ok=True)
    with (folder / name / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"time": time.time(), **one}, ensure_ascii=False) + "\n" for one in records)


def step(number: int) -> dict[str, Any]:
    return {"event": "step", "step": number, "epoch": 1, "loss": 4.0 / number, "tokens_per_second": 900.0}


def validation(number: int) -> dict[str, Any]:
    figures = {"loss": 3.0 / number, "train_loss": 1.0, "perplexity": 2.0, "bleu": 10.0 * number, "best": True}
    return {"event": "validation", "step": number, "epoch": number, **figures, "samples": SAMPLES}


@pytest.fixture(scope="module")
def server(runs: Path) -> Iterator[Living]:
    with living([random_translator(), random_translator("en", "ko")], runs) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        api.expect.set_options(timeout=30_000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{one}" for one in QUIET])
        yield browser
        browser.close()


def opened(browser: Any, address: str, **options: Any) -> Page:
    """A new window. Errors of its scripts, and what the content security policy forbids, end in `page.errors`."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if "Content Security" in said.text else None)
    page.goto(address)
    api.expect(page.locator("#source-name")).not_to_have_text("…")
    return page


@pytest.fixture
def page(browser: Any, server: Living) -> Iterator[Page]:
    page = opened(browser, server.address)
    yield page
    page.context.close()
    assert page.errors == []


def translated(page: Page, text: str) -> dict[str, Any]:
    """Types a text; returns the answer of the server."""
    with page.expect_response("**/v1/translate") as answer:
        page.fill("#text", text)
    page.wait_for_selector("#output .word")
    found: dict[str, Any] = answer.value.json()["translations"][0]
    return found


def test_a_model_of_several_directions_is_chosen_by_direction(browser: Any, runs: Path, many_model: Path) -> None:
    with living([Translator.load([many_model])], runs) as server:
        page = opened(browser, server.address)
        options = page.locator("#model option").all_text_contents()
        pairs = ["Korean → English", "English → Korean", "English → German", "German → English"]
        assert [one.split(" · ")[0] for one in options] == pairs
        for number, target in ((2, "de"), (1, "ko")):
            page.select_option("#model", index=number)
            assert (page.text_content("#source-name"), page.get_attribute("#output", "lang")) == ("English", target)
            with page.expect_response("**/v1/translate") as answer:
                page.fill("#text", f"abc {target}")
            assert (answer.value.json()["source"], answer.value.json()["target"]) == ("en", target)
        page.context.close()
        assert page.errors == []


@contextmanager
def prefixed(server: Living) -> Iterator[str]:
    """The address of a proxy that serves it under the path /mt/, which it removes."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith("/mt/"):
                self.send_error(404)
                return
            inner = HTTPConnection("127.0.0.1", server.port, timeout=30)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent = {name: value for name, value in self.headers.items() if name.lower() in ("content-type", "accept")}
            inner.request(self.command, self.path.removeprefix("/mt"), body or None, sent)
            answer = inner.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date"):
                    self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # the browser may have left
                while piece := answer.read1():
                    self.wfile.write(piece)
            inner.close()

        do_POST = do_GET

        def log_message(self, *_: object) -> None: ...

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}/mt/"
    finally:
        proxy.shutdown()
        proxy.server_close()


def test_it_works_behind_a_proxy_that_removes_a_prefix(browser: Any, server: Living) -> None:
    with prefixed(server) as address:
        page = opened(browser, address)
        refused = list[str]()
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        page.reload()
        assert translated(page, SENTENCE)["lines"]
        look(page)
        page.click("#tab-runs")
        page.locator(".run", has_text="ko-en").click()
        page.locator("#run", has_text="done").wait_for()
        page.goto(f"{address}docs")
        page.click("text=The page")
        page.wait_for_url(address)
        assert refused == page.errors == []
        page.context.close()


def words(page: Page, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def test_composing_korean_is_not_disturbed(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.post_data) if "/v1/translate" in one.url else None)
    keyboard = page.context.new_cdp_session(page)
    page.focus("#text")
    for text in ("ㄱ", "그"):
        keyboard.send("Input.imeSetComposition", {"text": text, "selectionStart": 1, "selectionEnd": 1})
        page.wait_for_timeout(500)  # longer than the pause after which a text is translated
        assert page.input_value("#text") == text
    assert asked == []
    with page.expect_response("**/v1/translate"):
        keyboard.send("Input.insertText", {"text": "그"})
    assert [json.loads(one)["text"] for one in asked] == ["그"]
    assert page.input_value("#text") == "그"


def test_an_answer_to_an_older_text_is_dropped(page: Page) -> None:
    first: list[Any] = []

    def hold(route: Any) -> None:
        if not first:
            first.append(route)  # it is answered when nobody wants it any more
        else:
            route.continue_()

    page.route("**/v1/translate", hold)
    with page.expect_request("**/v1/translate"):
        page.fill("#text", "가나")
    answer = translated(page, SENTENCE)
    assert len(first) == 1
    first[0].abort()
    assert page.inner_text("#output") == answer["text"]
    assert page.is_hidden("#problem")


def test_lines_and_blank_lines_stay_and_copy_takes_the_whole(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = translated(page, f"{SENTENCE}\n\n  고양이 가나다\n")
    assert page.text_content("#output") == answer["text"]
    assert answer["text"].count("\n") == 3
    page.click("#copy")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == answer["text"]
    assert page.inner_text("#count").startswith(str(len(f"{SENTENCE}\n\n  고양이 가나다\n")))


def test_words_of_both_sides_light_up_together(page: Page) -> None:
    line = translated(page, f"가나\n{SENTENCE}")["lines"][1]
    assert (page.get_attribute("#of-line", "lang"), page.get_attribute("#of-line span", "lang")) == (None, "ko")
    assert page.inner_text("#of-line") == "Of line 1: 가나"
    source, target = line["hypotheses"][0]["words"][0]
    page.hover(f"#output .word[data-line='1'][data-word='{target}']")
    linked = [one for one, other in line["hypotheses"][0]["words"] if other == target]
    assert words(page, "#mirror .lit") == [line["source"].split()[one] for one in linked]
    page.hover("h1", force=True)
    assert words(page, ".lit") == []
    box = page.locator("#mirror .word").nth(1 + source).bounding_box()  # one word is in the first line
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    linked = [other for one, other in line["hypotheses"][0]["words"] if one == source]
    assert words(page, "#output .lit") == [line["text"].split()[one] for one in linked]
    page.focus("#text")
    page.evaluate("said = []; new MutationObserver(() => said.push(link.textContent)).observe(link, {childList: true})")
    for key in ("End", "ArrowLeft", "ArrowLeft"):  # within the last word
        page.keyboard.press(key)
    last, first = line["source"].split()[-1], line["source"].split()[0]
    api.expect(page.locator("#link")).to_contain_text(f"{last} →  becomes ")
    page.keyboard.press("Home")
    api.expect(page.locator("#link")).to_contain_text(f"{first} →  becomes ")
    assert len([text for text in page.evaluate("said") if text]) == 2, "once for each word, when the cursor rests"
    assert page.locator("#link [aria-hidden]").inner_text().strip() == "→"
    page.keyboard.press("Tab")  # Clear
    page.keyboard.press("Tab")
    assert words(page, "#output .at") == words(page, "#output .word")[:1]
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#link").startswith(words(page, "#output .at")[0])


def test_alternatives_have_scores_and_can_be_chosen_by_keyboard(page: Page) -> None:
    some = translated(page, SENTENCE)["lines"][0]["hypotheses"]
    assert len(some) > 1
    rows = page.locator("#hypotheses [role=radio]")
    assert words(page, "#hypotheses .said") == [one["text"] for one in some]
    assert words(page, "#hypotheses .score")[0] == f"{some[0]['score']:.2f}".replace("-", "−")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    assert page.text_content("#output") == page.text_content("#done") == some[1]["text"]
    assert page.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"
    translated(page, f"{SENTENCE}\n{SENTENCE} 가")  # the choice of a line stays while other lines are written
    assert page.text_content("#output").partition("\n")[0] == some[1]["text"]


def test_the_direction_is_switched_with_the_translation_as_text(page: Page) -> None:
    text = translated(page, SENTENCE)["text"]
    with page.expect_response("**/v1/translate") as answer:
        page.click("#swap")
    assert answer.value.request.post_data_json["source"] == "en"
    assert page.input_value("#text") == text
    assert (page.get_attribute("#text", "lang"), page.get_attribute("#output", "lang")) == ("en", "ko")


def test_notes_and_limits_are_shown(page: Page) -> None:
    page.evaluate("new MutationObserver(() => (window.said = (window.said ?? 0) + 1)).observe(done, {childList: true})")
    answer = translated(page, f"{SENTENCE} ☃")
    assert "unknown" in page.inner_text("#notes")
    page.hover("#output .word")
    assert page.locator("#done[role=status] p").all_text_contents() == [answer["text"], *words(page, "#notes li")]
    assert (page.get_attribute("#done p", "lang"), page.evaluate("window.said")) == ("en", 1)
    box = "(one) => [getComputedStyle(one).display, one.getBoundingClientRect().height]"
    assert page.locator("#problem").evaluate(box) == ["block", 0], "it is known before it says something"
    page.fill("#text", "가" * 20_001)
    page.locator("#problem").filter(has_text="20,001").wait_for()
    assert not page.text_content("#output").strip(), "the translation of another text"
    assert page.is_hidden("#copy")
    assert "over" in (page.get_attribute("#count", "class") or "")


def test_a_busy_server_is_asked_again_when_it_says(page: Page) -> None:
    answers = iter([429])

    def busy(route: Any) -> None:
        if next(answers, None):
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "the server is busy"})
        else:
            route.continue_()

    page.route("**/v1/translate", busy)
    page.fill("#text", SENTENCE)
    page.locator("#problem").filter(has_text="busy").wait_for()
    page.wait_for_selector("#output .word")
    assert page.is_hidden("#problem")


def test_a_request_that_fails_leaves_no_other_translation(page: Page) -> None:
    translated(page, "가나다")
    page.route("**/v1/translate", lambda route: route.fulfill(status=422, json={"error": "too many sentences"}))
    page.fill("#text", SENTENCE)
    page.locator("#problem").filter(has_text="Too many sentences.").wait_for()
    assert not page.text_content("#output").strip()
    assert page.is_hidden("#copy")


def test_a_server_that_goes_away_and_comes_back(browser: Any, runs: Path) -> None:
    with living([random_translator()], runs) as server:
        page = opened(browser, server.address)
        translated(page, "가나다")
        server.stop()
        page.fill("#text", SENTENCE)
        page.locator("#away").filter(has_text="does not answer").wait_for()
        assert page.input_value("#text") == SENTENCE
        page.focus("#away button")
        seconds = page.locator("#away [aria-hidden]")
        shown = seconds.inner_text()
        api.expect(seconds).not_to_have_text(shown)
        assert page.inner_text(":focus") == "Try now"
        server.start()
        with page.expect_response("**/v1/translate") as answer:
            api.expect(page.locator("#away")).to_be_hidden()
        assert page.evaluate("document.activeElement.id") == "text"
        api.expect(page.locator("#output")).to_have_text(answer.value.json()["translations"][0]["text"])
        assert page.errors == []
        page.context.close()


def test_a_server_with_a_key_asks_for_it_once(browser: Any, runs: Path) -> None:
    with living([random_translator()], runs, Keys(["open sesame"[:4]])) as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(server.address)
        assert page.is_hidden("#key-problem")
        page.fill("#key-value", "wrong")
        page.keyboard.press("Enter")
        api.expect(page.locator("#key-value")).to_have_value("")
        api.expect(page.locator("#key-problem")).to_have_text("This API key is not valid here.")
        page.fill("#key-value", "open")
        page.keyboard.press("Enter")
        page.locator("#source-name").filter(has_text="Korean").wait_for()
        translated(page, SENTENCE)
        page.click("#tab-runs")
        page.locator("#run .chart").first.wait_for()  # streams have the key, too
        context.close()


def look(page: Page, text: str = SENTENCE) -> dict[str, Any]:
    """Opens the view Inside with a sentence; returns the answer of the server."""
    translated(page, text)
    with page.expect_response("**/v1/inside") as answer:
        page.click("#look")
    page.wait_for_selector("#positions canvas")
    found: dict[str, Any] = answer.value.json()
    return found


def test_the_search_is_a_tree_that_grows_step_by_step(page: Page) -> None:
    seen = look(page)
    nodes, last = seen["tree"]["nodes"], seen["tree"]["nodes"][-1]["step"]
    assert seen["text"] in page.text_content("#done")
    page.locator(".tree").focus()
    page.keyboard.press("Home")
    assert page.locator(".tree .node:not(.later)").count() == 1
    page.keyboard.press("ArrowRight")
    assert page.locator(".tree .node:not(.later)").count() == 1 + sum(one["step"] == 1 for one in nodes)
    kept = sum(one["step"] == 1 and one["fate"] in ("extended", "done") for one in nodes)
    assert page.locator(".in-beam tbody tr").count() == kept
    page.click("#play")
    api.expect(page.locator(".controls input")).to_have_value(re.compile("^([2-9]|1[0-9])$"))
    page.locator(".tree").focus()
    page.keyboard.press("End")
    assert page.locator(".tree .node.later").count() == 0
    assert page.locator(".told").inner_text().startswith(f"Step {last} of {last}")
    rows = page.locator(".results tbody tr")
    assert rows.count() == len(seen["tree"]["done"])
    assert seen["text"] in rows.first.inner_text()
    assert seen["greedy"]["text"] in page.locator(".greedy").inner_text()
    probability = page.locator(".edges .probability").first.text_content()
    assert probability in (
        f"{100 * 2.718281828 ** nodes[1]['log_p']:.0f}",
        f"{100 * 2.718281828 ** nodes[1]['log_p']:.1f}",
    )


def test_one_head_is_followed_from_a_token(page: Page) -> None:
    seen = look(page, "가나다라마바사아자차카타파하고양이는작아요그시장에서")
    page.get_by_role("radio", name=re.compile("^Encoder, layer 2, head 1")).click()
    block = next(one for one in seen["attention"] if (one["kind"], one["layer"]) == ("encoder", 2))
    assert page.locator(".matrix .cell").count() == len(block["rows"]) * len(block["columns"])
    page.hover(".matrix .cell >> nth=1")
    assert f"{block['heads'][0][0][1]:.3f}" in page.locator(".large .read").inner_text()
    page.locator("summary", has_text="as a table").press("Enter")
    rows = [row.split("\t") for row in page.locator(".large table").inner_text().splitlines() if "\t" in row]
    for shown, weights in zip(rows[1:], block["heads"][0], strict=True):
        assert [float(weight) for weight in shown[1:]] == pytest.approx(weights, abs=0.0006)
    assert page.get_by_role("rowheader").count() == len(block["rows"])
    page.mouse.move(0, 0)
    heights = page.evaluate("[...document.querySelectorAll('.lines .row')].map((row) => Number(row.getAttribute('y')))")
    assert {after - before for before, after in itertools.pairwise(heights)} == {24}, "also in long sentences"
    page.locator(".lines .row").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator(".lines .row[aria-pressed=true]").count() == 1
    korean = [".matrix .token", ".lines .token", ".large table th", ".large .read span span"]
    unmarked = f"{':not([lang=ko]), '.join(korean)}:not([lang=ko])"
    assert page.locator(unmarked).count() == 0
    assert page.get_attribute(".large .read span span >> nth=0", "dir") == "auto"
    assert page.get_attribute(".lines .row >> nth=1", "aria-label") == block["rows"][1].replace("▁", "␣")
    assert page.locator(".lines path").count() == sum(weight >= 0.03 for weight in block["heads"][0][1])
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.get_by_role("radio", name=re.compile("^Encoder, layer 2, head 1")).focus()
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".map[aria-checked=true]", "data-name") == "encoder 2 1"
    assert page.locator(".large table").is_visible(), "what was opened stays open for the next head"


def test_figure_1_shows_the_tensors_of_this_sentence(page: Page) -> None:
    seen = look(page)
    page.get_by_role("radio", name="Decoder: Cross-attention").click()
    row = next(one for one in seen["shapes"] if one["path"].endswith("0.cross_attention") and one["name"] == "weights")
    table = page.locator(".tensors table")
    assert " × ".join(map(str, row["shape"])) in table.inner_text()
    names = [box.get_attribute("aria-label") for box in page.locator(".figure .box").all()]
    assert len(set(names)) == len(names)
    assert "Decoder: Norm of cross-attention" in names
    for side, stack, output in (("Encoder", "encoder", "memory"), ("Decoder", "decoder", "hidden")):
        page.get_by_role("radio", name=f"{side}: Final norm").click()  # the model is pre-norm
        row = next(one for one in seen["shapes"] if one["path"] == stack and one["name"] == output)
        assert " × ".join(map(str, row["shape"])) in table.inner_text()
    page.check("#ids")
    assert str(seen["source_pieces"][0]["id"]) in page.locator("#pieces").inner_text()


def test_figure_1_of_another_model_has_the_boxes_of_that_model(page: Page) -> None:
    """A post-norm model without a last normalisation has fewer; what was chosen stays chosen."""
    look(page)
    page.get_by_role("radio", name="Decoder: Softmax").click()

    def post_norm(route: Any) -> None:
        seen = route.fetch().json()
        shapes = [one for one in seen["shapes"] if one["name"] != "normalized"]
        route.fulfill(json={**seen, "shapes": shapes, "final_norm": False})

    page.route("**/v1/inside", post_norm)
    with page.expect_response("**/v1/inside"):
        page.fill("#sentence", "가나다.")
    api.expect(page.get_by_role("radio", name="Encoder: Final norm")).to_have_count(0)
    api.expect(page.locator(".tensors h3")).to_contain_text("Softmax")
    api.expect(page.get_by_role("radio", name="Decoder: Add & norm")).to_have_count(3)


def test_another_beam_and_another_sentence_are_looked_at(page: Page) -> None:
    look(page)
    with page.expect_response("**/v1/inside") as answer:
        page.select_option("#beam", "1")
    assert answer.value.json()["tree"]["beam"] == 1
    with page.expect_response("**/v1/inside") as answer:
        page.fill("#sentence", "가나다. 고양이.")
    assert len(answer.value.json()["sentences"]) == 2
    with page.expect_response("**/v1/inside") as answer:
        page.locator("#which button").click()
    assert answer.value.json()["sentence"] == "고양이."


def test_a_model_without_an_inside_and_a_folder_without_runs(browser: Any, tmp_path: Path) -> None:
    with living([random_translator()], tmp_path) as server:
        context = browser.new_context()
        page = context.new_page()

        def without(route: Any) -> None:
            models = route.fetch().json()["models"]
            route.fulfill(json={"models": [{**one, "inside": False} for one in models]})

        page.route("**/v1/models", without)
        page.goto(f"{server.address}/#inside")
        page.locator("#inside-problem", has_text="CTranslate2").wait_for()
        assert page.is_disabled("#sentence")
        page.click("#tab-runs")
        page.locator("#runs-problem", has_text="tmt train").wait_for()
        context.close()


def test_a_run_is_followed_live_in_two_tabs(browser: Any, server: Living, runs: Path) -> None:
    write(runs, "live", step(1))
    first = opened(browser, f"{server.address}/#runs")
    second = first.context.new_page()
    second.goto(f"{server.address}/#runs")
    for page in (first, second):
        page.locator(".run", has_text="live").click()
        page.locator("#run h2", has_text="live").wait_for()
    write(runs, "live", step(2), validation(2))
    for page in (first, second):
        page.locator(".sample", has_text="as the reference").wait_for()
        assert page.locator(".chart", has_text="Greedy BLEU").locator("circle").count() == 1
        assert "table of all validations" in page.get_attribute(".chart svg >> nth=0", "aria-label")
    first.click("#table summary")
    first.focus("#table .scroll")
    places = "[...document.querySelectorAll('.run, #other, #table, #table .scroll, #epoch')]"
    first.evaluate(f"kept = {places}; document.addEventListener('focusin', () => kept.pop())")
    write(runs, "live", step(3), validation(3))
    first.locator("#epoch").wait_for()
    assert first.evaluate(f"{places}.every((one, place) => one === kept[place])")
    box = first.locator("#epoch").bounding_box()
    for place, move in ((0.99, "down"), (0.01, "move"), (0.99, "move"), (0.99, "up")):
        first.mouse.move(box["x"] + place * box["width"], box["y"] + box["height"] / 2, steps=3)
        if move != "move":
            getattr(first.mouse, move)()
    assert "After epoch 3" in first.locator(".epoch").inner_text()
    assert first.locator(".run", has_text="live").locator(".training").count() == 1
    first.locator("#epoch").focus()
    first.keyboard.press("ArrowLeft")
    assert "After epoch 2" in first.locator(".epoch").inner_text()
    write(runs, "live", {"event": "finished", "step": 3, "reason": "max_epochs 3 reached", "seconds": 61})
    for page in (first, second):
        page.locator("#run", has_text="max_epochs 3 reached").wait_for()
    assert first.locator("#table tbody tr").count() == 2
    first.select_option("#other", "ko-en")
    first.locator(".chart circle.third").first.wait_for()
    assert first.errors == []
    first.context.close()


def test_a_hidden_page_holds_no_connection(page: Page, runs: Path) -> None:
    write(runs, "another", step(1))
    page.click("#tab-runs")
    page.locator(".run", has_text="another").click()
    page.locator("#run h2", has_text="another").wait_for()
    with page.expect_event("requestfailed", lambda one: one.url.endswith("/v1/runs/another/events")):
        page.click("#tab-translate")


def test_the_views_are_tabs_for_the_keyboard(page: Page) -> None:
    page.focus("#tab-translate")
    for name in ("inside", "runs"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
        assert page.is_visible(f"#{name}")
    assert page.locator("[role=tabpanel]:visible").count() == 1
    page.reload()
    assert page.is_visible("#runs")
    page.go_back()
    page.wait_for_selector("#inside", state="visible")


def test_the_colours_are_those_of_the_system_until_one_chooses(browser: Any, server: Living) -> None:
    page = opened(browser, server.address, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")
    light = page.evaluate(paper)
    page.reload()
    assert page.evaluate(paper) == light != dark
    page.context.close()


def test_colours_that_the_system_forces_keep_what_is_chosen_and_focused(browser: Any, server: Living) -> None:
    page = opened(browser, server.address, color_scheme="dark", forced_colors="active", reduced_motion="reduce")
    page.click("#theme")  # light, which the system overrules
    style = "([place, name]) => getComputedStyle(document.querySelector(place))[name]"
    colour = "(name) => { theme.style.color = name; return getComputedStyle(theme).color; }"
    page.evaluate("theme.style.forcedColorAdjust = 'none'")
    ink, chosen, paper = (page.evaluate(colour, name) for name in ("CanvasText", "Highlight", "Canvas"))
    assert ink != paper != chosen
    line = translated(page, SENTENCE)["lines"][0]["hypotheses"][0]
    page.hover(f"#output .word[data-word='{line['words'][0][1]}']")
    assert page.evaluate(style, ["#tab-translate", "backgroundColor"]) == chosen
    assert page.evaluate(style, ["#output .lit", "backgroundColor"]) == chosen
    assert page.evaluate(style, ["#mirror .lit", "outlineColor"]) == chosen
    assert page.evaluate(style, ["#text", "backgroundColor"]) == "rgba(0, 0, 0, 0)", "it lies above the lit words"
    assert page.evaluate(style, [".pane:first-child", "outlineStyle"]) == "solid"
    page.click("#tab-runs")
    page.locator("#run svg").first.wait_for()
    assert page.evaluate(style, ["#run svg text", "fill"]) == ink
    assert page.evaluate(style, [".run[aria-checked=true]", "outlineStyle"]) == "solid"
    page.context.close()


def contrast(page: Page, place: str, name: str) -> float:
    """Contrast of a colour to the page, 1 to 21, as WCAG 2 defines it; 0 if opacity changes it."""
    script = "([place, name]) => [place, 'body'].map((one) => getComputedStyle(document.querySelector(one)))"
    found = page.evaluate(
        f"{script}.map((own, index) => [own.opacity, index ? own.backgroundColor : own[name]])", [place, name]
    )
    parts = [[int(part) / 255 for part in re.findall(r"\d+", colour)[:3]] for _, colour in found]
    linear = [[part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb] for rgb in parts]
    light = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05 for red, green, blue in linear)
    return light[1] / light[0] if found[0][0] == "1" else 0


@pytest.mark.parametrize(("colours", "width"), [("light", 380), ("dark", 1280)])
def test_nothing_is_too_wide_and_axe_finds_no_violation(browser: Any, server: Living, colours: str, width: int) -> None:
    page = opened(browser, server.address, viewport={"width": width, "height": 800}, color_scheme=colours)
    page.emulate_media(reduced_motion="reduce")
    look(page, f"{SENTENCE} ☃")
    page.locator(".lines .row").nth(1).click()
    for view in ("inside", "translate", "runs"):
        page.click(f"#tab-{view}")
        if view == "runs":
            page.locator(".run", has_text="ko-en").click()
            page.locator(".sample").first.wait_for()
            page.click("#table summary")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = axe.Axe().run(page).response["violations"]
        places = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found]
        assert places == [], view
        assert page.locator(f"#tab-{view}").evaluate("(one) => getComputedStyle(one).boxShadow") != "none"
        edges = {"inside": ["#sentence", "#beam"], "translate": [".panes"], "runs": ["#other"]}[view]
        assert min(contrast(page, place, "borderTopColor") for place in edges) >= 3
        if view == "inside":
            assert min(contrast(page, place, "fill") for place in (".token.dim", ".node.dropped text")) >= 4.5
            assert contrast(page, ".edges path.dropped", "stroke") >= 3
    assert page.errors == []
    page.goto(f"{server.address}/docs")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [one["id"] for one in axe.Axe().run(page).response["violations"]] == []
    page.context.close()


def hold_first(page: Page, pattern: str) -> list[Any]:
    """Holds the first request to an address, and lets the others through."""
    held: list[Any] = []
    page.route(pattern, lambda route: route.continue_() if held else held.append(route))
    return held


def test_nothing_waits_after_the_text_was_cleared(page: Page) -> None:
    held = hold_first(page, "**/v1/translate")
    page.fill("#text", SENTENCE)
    page.locator("#output.waiting").wait_for()
    page.fill("#text", "")
    api.expect(page.locator("#output")).not_to_have_class(re.compile("waiting"))
    assert len(held) == 1


def test_the_view_inside_shows_the_sentence_of_its_field(page: Page) -> None:
    look(page)
    held = hold_first(page, "**/v1/inside")
    with page.expect_request("**/v1/inside"):
        page.fill("#sentence", "가나다")
    with page.expect_event("requestfailed", lambda one: one.url.endswith("/v1/inside")):
        page.fill("#sentence", SENTENCE)  # what is shown already: the other answer must not replace it
    assert len(held) == 1
    assert SENTENCE in page.inner_text("#says")


def test_a_server_that_comes_back_with_other_models(browser: Any, runs: Path) -> None:
    with living([random_translator()], runs) as server:
        page = opened(browser, server.address)
        translated(page, "가나다")
        server.stop()
        page.fill("#text", SENTENCE)
        page.locator("#away").filter(has_text="does not answer").wait_for()
        server._translators = [random_translator("en", "ko")]
        server.start()
        page.locator("#source-name").filter(has_text="English").wait_for()
        api.expect(page.locator("#problem")).to_be_hidden()
        page.context.close()


def test_a_stream_that_was_cut_is_asked_for_again(page: Page, runs: Path) -> None:
    write(runs, "cut", step(1))
    cuts = iter([True])

    def cut(route: Any) -> None:
        if next(cuts, False):  # as a proxy or a server that restarts does: what is known, and then the end
            state = page.evaluate("fetch('/v1/runs').then((answer) => answer.json())")["runs"]
            own = next(one for one in state if one["name"] == "cut")
            route.fulfill(content_type="text/event-stream", body=f"event: state\ndata: {json.dumps(own)}\n\n")
        else:
            route.continue_()

    page.route("**/v1/runs/cut/events", cut)
    page.click("#tab-runs")
    page.locator(".run", has_text="cut").click()
    page.locator("#run h2", has_text="cut").wait_for()
    page.locator("#run", has_text="900 target tokens per second").wait_for(timeout=20_000)


def test_a_dialog_for_the_key_that_was_closed_stays_closed(browser: Any, runs: Path) -> None:
    with living([random_translator()], runs, Keys(["open"])) as server:
        context = browser.new_context()
        page = context.new_page()
        page.clock.install()
        page.goto(f"{server.address}/#runs")
        page.locator("#key[open]").wait_for()
        page.keyboard.press("Escape")
        page.locator("#runs-problem", has_text="key").wait_for()
        with page.expect_response("**/v1/runs"):
            page.clock.fast_forward(6_000)  # the list looks again
        page.wait_for_timeout(200)
        assert page.is_hidden("#key")
        page.click("#tab-translate")
        page.fill("#text", SENTENCE)  # a person wants something
        page.clock.fast_forward(1_000)
        page.locator("#key[open]").wait_for()
        context.close()
