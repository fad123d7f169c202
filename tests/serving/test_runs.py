"""The runs: names only, records as they are written, and streams that end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.living import check, living, random_translator
from transformer_mt.reporting.history import Follower, read_history
from transformer_mt.serving import runs as runs_file
from transformer_mt.serving.limits import RequestError
from transformer_mt.serving.runs import Runs, state_of, thinned

NOW = 1_795_000_000.0


def record(event: str, step: int, **values: Any) -> dict[str, Any]:
    return {"event": event, "time": NOW + step, "step": step, **values}


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)


def steps(first: int, last: int) -> list[dict[str, Any]]:
    return [record("step", step, loss=5.0 / step) for step in range(first, last + 1)]


SAMPLES = [{"source": "가", "translation": "a", "reference": "a"}]
VALIDATION = record("validation", 3, loss=1.5, bleu=30.0, epoch=1, best=True, samples=SAMPLES, secret="/home")
END = record("finished", 9, reason="max_epochs 1 reached", seconds=4.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("한글 run", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "metrics.jsonl").write_text(lines(*steps(1, 3), VALIDATION), encoding="utf-8")
    (tmp_path / "runs" / "empty").mkdir()
    (tmp_path / "metrics.jsonl").write_text(lines(END))  # outside of the folder
    return tmp_path / "runs"


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with living([random_translator()], folder) as server, httpx.Client(base_url=server.address) as client:
        yield client


def test_the_list_has_names_and_no_paths(client: httpx.Client, folder: Path) -> None:
    answer = client.get("/v1/runs")
    found = answer.json()["runs"]
    assert {one["name"] for one in found} == {"한글 run", "b"}
    assert {one["best_bleu"] for one in found} == {30.0}
    assert str(folder.parent) not in answer.text
    assert "secret" not in client.get("/v1/runs/b").text


def test_the_answers_are_as_described(client: httpx.Client) -> None:
    for path, name in (("/v1/runs", ""), ("/v1/runs/{name}", "b")):
        check(path, "get", client.get(path.format(name=name)).json())


@pytest.mark.parametrize("name", ["..", "../", "%2e%2e", "..%2f", "b%2f..", "empty", ".", "%00", "x" * 5000])
@pytest.mark.parametrize("end", ["", "/events"])
def test_no_name_leads_out_of_the_folder(client: httpx.Client, name: str, end: str) -> None:
    answer = client.get(f"/v1/runs/{name}{end}")
    assert answer.status_code in (404, 405, 307) or "runs" in answer.json(), answer.text
    assert "max_epochs 1 reached" not in answer.text


def test_a_finished_run_is_sent_and_the_stream_ends(client: httpx.Client, folder: Path) -> None:
    with (folder / "b" / "metrics.jsonl").open("a") as file:
        file.write(lines(END))
    names = [event for event, _ in events_of(client.get("/v1/runs/b/events").text)]
    assert names == ["all", "state", "end"]


def events_of(text: str) -> list[tuple[str, Any]]:
    found = []
    for part in filter(None, text.split("\n\n")):
        if not part.startswith(":"):
            name, data = part.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


class Listening:
    """A client of a stream, without a server."""

    def __init__(self, folder: Path, name: str = "b") -> None:
        self.runs = Runs(folder, look=0.01)
        self.stopping = asyncio.Event()
        self.stream: AsyncIterator[str] = self.runs.events(name, self.stopping)

    async def next(self, wanted: str) -> Any:
        """The data of the next event of this name."""
        while True:
            text = await asyncio.wait_for(anext(self.stream), 10)
            for name, data in events_of(text):
                if name == wanted:
                    return data


def test_a_file_that_grows_sends_only_what_is_new(folder: Path) -> None:
    async def story() -> None:
        one, file = Listening(folder), folder / "b" / "metrics.jsonl"
        first = await one.next("all")
        assert [each["step"] for each in first] == [1, 2, 3, 3]
        assert first[-1]["samples"] == SAMPLES
        with file.open("a") as out:
            out.write(lines(*steps(4, 5)) + '{"event": "st')  # a line that is being written
        assert [each["step"] for each in await one.next("more")] == [4, 5]
        with file.open("a") as out:
            out.write('ep", "step": 6, "loss": 1.0}\n' + "not a record\n" + lines(END))
        assert [each["step"] for each in await one.next("more")] == [6, 9]
        assert (await one.next("state"))["state"] == "finished"
        await one.next("end")
        with pytest.raises(StopAsyncIteration):
            await anext(one.stream)
        assert one.runs.streams == 0

    asyncio.run(story())


def test_a_run_that_went_back_or_began_again_is_sent_whole(folder: Path) -> None:
    async def story() -> None:
        one, file = Listening(folder), folder / "b" / "metrics.jsonl"
        await one.next("all")
        with file.open("a") as out:
            out.write(lines(record("resumed", 1), *steps(2, 2)))
        assert [each["step"] for each in await one.next("all")] == [1, 1, 2]
        file.write_text(lines(*steps(1, 1)))  # cut
        assert [each["step"] for each in await one.next("all")] == [1]
        file.unlink()
        assert await one.next("all") == []
        file.write_text(lines(*steps(1, 2)))  # a new run of this name
        assert [each["step"] for each in await one.next("more")] == [1, 2]
        await one.stream.aclose()  # type: ignore[attr-defined]
        assert one.runs.streams == 0

    asyncio.run(story())


def test_a_file_that_was_replaced_by_a_longer_one_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text(lines(*steps(1, 3)))
    follower = Follower(file)
    assert [one["step"] for one in follower.records()] == [1, 2, 3]
    assert follower.records() is follower.records()
    file.write_text(lines(*[record("step", step, loss=0.5) for step in range(5, 40)]))  # the same file, other bytes
    assert [one["step"] for one in follower.records()] == list(range(5, 40))
    assert follower.records() == read_history(file)


def test_a_stream_ends_when_the_server_stops(folder: Path) -> None:
    """Both without a server, and with many tabs on a real one."""

    async def story() -> None:
        one = Listening(folder)
        await one.next("state")
        one.stopping.set()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(one.stream), 10)

    asyncio.run(story())
    with living([random_translator()], folder) as server, httpx.Client() as web:
        start = time.monotonic()
        with web.stream("GET", f"{server.address}/v1/runs/b/events") as one, httpx.Client() as other:
            assert next(one.iter_lines()) == "event: all"
            with other.stream("GET", f"{server.address}/v1/runs/b/events") as two:
                assert next(two.iter_lines()) == "event: all"
                server.stop()
                assert time.monotonic() - start < 15


def test_too_many_streams_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_file, "STREAMS", 1)
    runs = Runs(folder)
    runs.check_streams()
    runs.streams = 1
    with pytest.raises(RequestError) as refused:
        runs.check_streams()
    assert refused.value.status == 503


def test_a_quiet_stream_shows_that_it_is_alive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_file, "HEARTBEAT", 0.02)

    async def story() -> None:
        one = Listening(folder)
        await one.next("state")
        assert (await asyncio.wait_for(anext(one.stream), 10)).startswith(":")
        await one.stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(story())


def test_the_state_of_a_run() -> None:
    some = steps(1, 5)
    assert state_of([], NOW, NOW - 5) == "training"
    assert state_of([], NOW, NOW - 500) == "quiet"
    assert state_of(some, NOW + 10) == "training"
    assert state_of(some, NOW + 1000) == "quiet"
    slow = [record("step", step) for step in (0, 500, 1000)]
    assert state_of(slow, NOW + 2000) == "training"  # its pauses are long
    assert state_of([*some, END], NOW + 10_000) == "finished"
    assert state_of([*some, END, record("resumed", 9)], NOW + 10) == "training"


def test_a_long_curve_is_thinned_to_means_and_loses_no_validation() -> None:
    some = [record("step", step, loss=float(step)) for step in range(1, 1001)]
    some.insert(500, VALIDATION)
    few = thinned(some, most=100)
    assert VALIDATION in few
    kept = [one for one in few if one["event"] == "step"]
    assert len(kept) == 100
    assert kept[0]["loss"] == pytest.approx(5.5)  # of the first ten
    assert kept[-1]["step"] == 1000
    assert thinned(some[:50], most=100) == some[:50]


def test_numbers_that_json_does_not_have_are_left_out(folder: Path, client: httpx.Client) -> None:
    (folder / "b" / "metrics.jsonl").write_text('{"event": "step", "step": 1, "loss": NaN, "learning_rate": 1e999}\n')
    assert client.get("/v1/runs/b").json()["records"][0] == {
        "event": "step", "step": 1, "epoch": None, "time": None, "loss": None, "learning_rate": None,
    }  # fmt: skip


NOT_RECORDS = (
    b"[" * 100_000,
    b'{"event": ["a"], "step": 4, "time": 1}',
    b'{"event": "validation", "step": 4, "time": "soon"}',
    b'{"event": "validation", "step": 4, "time": NaN}',
    b'{"event": "validation", "step": 4, "time": 1e400}',
)


@pytest.mark.parametrize("line", NOT_RECORDS, ids=range(len(NOT_RECORDS)))
def test_a_damaged_run_does_not_hide_the_others(folder: Path, line: bytes) -> None:
    with (folder / "b" / "metrics.jsonl").open("ab") as file:
        file.write(line + b"\n")
    runs = Runs(folder)
    assert {one["name"]: one["step"] for one in runs.listed()} == {"한글 run": 3, "b": 3}
    assert [one["step"] for one in runs.whole("b")["records"]] == [1, 2, 3, 3]


def test_what_is_not_a_number_is_sent_as_json(client: httpx.Client, folder: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    bad = record("validation", 2, loss=float("nan"), bleu=30.0, samples=[{"source": float("inf")}])
    (folder / "b" / "metrics.jsonl").write_text(lines(bad, VALIDATION, END))
    found = json.loads(client.get("/v1/runs/b").text, parse_constant=refuse)
    assert found["best_loss"] == 1.5
    events = client.get("/v1/runs/b/events").text
    data = [json.loads(line[6:], parse_constant=refuse) for line in events.splitlines() if line.startswith("data: ")]
    assert data[0][0]["loss"] is None
