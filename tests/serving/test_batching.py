"""The queue of a model: who is translated with whom, who waits, and who is dropped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.serving.batching import WAIT, Batcher, Item, Settings
from transformer_mt.serving.limits import RequestError

USUAL = Settings()


class Work:
    """Translates into capital letters, once `go` is set; remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], Settings]] = []
        self.go = threading.Event()
        self.go.set()
        self.started = threading.Event()

    def __call__(self, items: Sequence[Item], settings: Settings) -> list[Translation]:
        self.batches.append(([item.text for item in items], settings))
        self.started.set()
        assert self.go.wait(30)
        if any(item.text == "poison" for item in items):
            raise ValueError("poison")
        return [Translation((), (Hypothesis(item.text.upper(), (), 0.0),)) for item in items]

    async def hold(self, batcher: Batcher) -> asyncio.Task[list[str]]:
        """A request that is being translated until `go` is set."""
        self.go.clear()
        self.started.clear()
        first = asyncio.ensure_future(ask(batcher, "first"))
        await asyncio.to_thread(self.started.wait, 30)
        return first


async def ask(batcher: Batcher, *texts: str, settings: Settings = USUAL) -> list[str]:
    return [one.text for one in await batcher.translate([Item(text) for text in texts], settings)]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_requests_that_wait_are_translated_together_and_each_gets_its_own() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        first = await work.hold(batcher)
        others = [asyncio.ensure_future(ask(batcher, f"a{n}", f"b{n}")) for n in range(10)]
        await asyncio.sleep(0)
        work.go.set()
        assert await asyncio.gather(*others) == [[f"A{n}", f"B{n}"] for n in range(10)]
        assert await first == ["FIRST"]
        await batcher.close()

    run(scenario())
    assert [len(texts) for texts, _ in work.batches] == [1, 20]


def test_who_has_waited_for_long_is_joined_by_those_who_were_just_answered() -> None:
    work = Work()

    async def twice(batcher: Batcher, text: str) -> None:
        assert await ask(batcher, text) == [text.upper()]
        assert await ask(batcher, f"{text} again") == [f"{text} again".upper()]

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        first = await work.hold(batcher)
        others = [asyncio.ensure_future(twice(batcher, f"a{n}")) for n in range(5)]
        await asyncio.sleep(0)
        work.go.set()
        await first
        work.started.clear()
        work.go.clear()
        await asyncio.to_thread(work.started.wait, 30)
        late = asyncio.ensure_future(ask(batcher, "late"))
        await asyncio.sleep(10 * WAIT)
        work.go.set()
        await asyncio.gather(late, *others)
        await batcher.close()

    run(scenario())
    assert [len(texts) for texts, _ in work.batches] == [1, 5, 6]


def test_a_short_request_does_not_wait_for_a_long_one() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 10_000)
        first = await work.hold(batcher)
        long = asyncio.ensure_future(ask(batcher, *(f"long{n}" for n in range(5_000))))
        short = asyncio.ensure_future(ask(batcher, "short"))
        await asyncio.sleep(0)
        work.go.set()
        assert await short == ["SHORT"]
        assert not long.done()
        assert await long == [f"LONG{n}" for n in range(5_000)]
        assert await first == ["FIRST"]
        await batcher.close()

    run(scenario())
    assert "short" in work.batches[1][0]


def test_requests_with_different_settings_take_turns() -> None:
    work, other = Work(), Settings(beam=2)

    async def scenario() -> None:
        batcher = Batcher(work, 10_000)
        first = await work.hold(batcher)
        long = asyncio.ensure_future(ask(batcher, *(f"long{n}" for n in range(2_000))))
        short = asyncio.ensure_future(ask(batcher, "short", settings=other))
        await asyncio.sleep(0)
        work.go.set()
        await asyncio.gather(first, long, short)
        await batcher.close()

    run(scenario())
    assert work.batches[2] == (["short"], other)


def test_the_work_of_a_client_that_has_gone_is_dropped_and_its_place_is_free() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 10)
        first = await work.hold(batcher)
        gone = asyncio.ensure_future(ask(batcher, *(f"gone{n}" for n in range(9))))
        await asyncio.sleep(0)
        with pytest.raises(RequestError):
            await ask(batcher, "no place")
        gone.cancel()
        await asyncio.sleep(0)
        after = asyncio.ensure_future(ask(batcher, "after"))
        await asyncio.sleep(0)
        work.go.set()
        assert await asyncio.gather(first, after) == [["FIRST"], ["AFTER"]]
        assert batcher.waiting == 0
        await batcher.close()

    run(scenario())
    assert [texts for texts, _ in work.batches] == [["first"], ["after"]]


def test_a_full_queue_says_when_to_come_again() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 3)
        first = await work.hold(batcher)
        with pytest.raises(RequestError) as full:
            await ask(batcher, "a", "b", "c")
        assert full.value.status == 429
        assert 1 <= int(full.value.headers["Retry-After"]) <= 60
        with pytest.raises(RequestError):
            await asyncio.gather(ask(batcher, "a", "b"), batcher.run(lambda: None))
        work.go.set()
        await first
        await batcher.close()

    run(scenario())


def test_a_sentence_that_fails_takes_no_other_request_with_it() -> None:
    work = Work()

    async def scenario() -> None:
        batcher, translated = Batcher(work, 100), list[int]()
        batcher.observe = translated.append
        first = await work.hold(batcher)
        asked = [asyncio.ensure_future(ask(batcher, text, "b")) for text in ("a", "poison", "c")]
        await asyncio.sleep(0)
        work.go.set()
        one, poisoned, other = await asyncio.gather(*asked, return_exceptions=True)
        assert (one, other) == (["A", "B"], ["C", "B"])
        assert isinstance(poisoned, ValueError)
        assert await ask(batcher, "later") == ["LATER"]
        await first
        assert sum(translated) == 6, "each once, and not those that failed"
        await batcher.close()

    run(scenario())


def test_a_function_runs_between_two_batches() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        first = await work.hold(batcher)
        inside = asyncio.ensure_future(batcher.run(lambda: [len(work.batches), threading.current_thread().name]))
        await asyncio.sleep(0)
        assert not inside.done()
        work.go.set()
        count, thread = await inside
        assert count == 1
        assert str(thread).startswith("translating")
        await first
        await batcher.close()

    run(scenario())


def test_how_long_a_batch_has_been_running_is_known() -> None:
    work = Work()

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        assert batcher.running == 0
        first = await work.hold(batcher)
        before = batcher.running
        await asyncio.sleep(0.02)
        assert batcher.running >= before + 0.02
        work.go.set()
        await first
        assert batcher.running == 0
        failing = asyncio.ensure_future(ask(batcher, "poison"))
        with pytest.raises(ValueError, match="poison"):
            await failing
        assert batcher.running == 0
        await batcher.close()

    run(scenario())


def test_clients_that_keep_asking_come_together() -> None:
    """Whoever has just got an answer is waited for, so two groups that took turns become one."""
    work = Work()

    async def client(batcher: Batcher, name: str) -> None:
        for number in range(30):
            await ask(batcher, f"{name}{number}")

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        await asyncio.gather(*(client(batcher, f"client {n}: ") for n in range(8)))
        await batcher.close()

    run(scenario())
    assert len(work.batches) < 8 * 30 / 4


def test_a_batch_waits_for_one_function_not_for_all() -> None:
    """Looking inside takes long: ten clients who do it must not keep those who translate waiting."""
    order, go = list[str](), threading.Event()

    def work(items: Sequence[Item], settings: Settings) -> list[Translation]:
        order.append("batch")
        return Work()(items, settings)

    def look() -> None:
        assert go.wait(30)
        order.append("look")

    async def scenario() -> None:
        batcher = Batcher(work, 100)
        translate = batcher._translate_batch

        async def formed(*batch: Any) -> None:
            go.set()  # the batch is complete; the first function runs until then
            await translate(*batch)

        batcher._translate_batch = formed  # type: ignore[method-assign]
        looking = [asyncio.ensure_future(batcher.run(look)) for _ in range(10)]
        await asyncio.sleep(0)
        assert await ask(batcher, "a") == ["A"]
        await asyncio.gather(*looking)
        assert order == ["look", "batch", *["look"] * 9]
        await batcher.close()

    run(scenario())


def test_a_function_that_fails_or_is_dropped_lets_the_next_one_run() -> None:
    async def scenario() -> None:
        batcher = Batcher(Work(), 100)
        with pytest.raises(ZeroDivisionError):
            await batcher.run(lambda: 1 // 0)
        dropped = asyncio.ensure_future(batcher.run(lambda: 1))
        await asyncio.sleep(0)
        dropped.cancel()
        assert await batcher.run(lambda: 2) == 2
        assert batcher.waiting == 0
        await batcher.close()

    run(scenario())
