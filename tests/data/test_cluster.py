"""Work on a Ray cluster of two nodes on this machine: the same results in order, and a node may be lost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.data.parallel import AHEAD, Workers
from transformer_mt.data.prepare import prepare
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import check_exists

ray: Any = pytest.importorskip("ray", reason="needs the package ray: pip install 'transformer_mt[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="starts Ray's nodes on Linux")]

ROOT = Path(__file__).resolve().parents[2]


class Nodes:
    """Two nodes. address: of the cluster."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.address = process, process.stdout.readline().strip()

    def kill_second(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print("kill", file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "killed\n"


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """The test process connects to them, and finds `transformer_mt` and the functions below on them."""
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")  # Ray would set it for good
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("ray_nodes.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    ) as process:
        started = Nodes(process)
        assert started.address, "Ray did not start"
        try:
            yield started
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def _node(number: int) -> tuple[int, str]:
    import ray

    time.sleep(0.02)
    return number, ray.get_runtime_context().get_node_id()


def _fail(number: int) -> int:
    if number == 3:
        raise TmtError("three is too many", place="here", remedy="Count again.")
    return number


def _kill_own_process(folder: Path, number: int) -> int:
    """Like a machine that kills a process once, because its memory is full."""
    mark = folder / f"{number}"
    if number == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return number


def _slow_node(number: int) -> tuple[int, str]:
    time.sleep(0.2)
    return _node(number)


def _read(file: Path) -> str:
    check_exists(file)
    return file.read_text()


def test_two_nodes_give_the_results_of_one_process_and_one_may_be_lost(
    nodes: Nodes, workshop: Any, tmp_path: Path
) -> None:
    taken = 0

    def items(count: int) -> Iterator[int]:
        nonlocal taken
        for number in range(count):
            taken = number
            yield number

    with Workers(0, nodes.address) as workers:
        by_node = set()
        for done, (number, node) in enumerate(workers.map(_node, items(40))):
            assert number == done
            assert taken <= done + AHEAD * 2 + 1
            by_node.add(node)
        assert len(by_node) == 2
        with pytest.raises(TmtError, match="three is too many") as caught:
            list(workers.map(_fail, range(9)))
        assert (caught.value.place, caught.value.remedy) == ("here", "Count again.")
        assert list(workers.map(partial(_kill_own_process, tmp_path), range(12))) == list(range(12))

        both = {"directions": ["de-en", "en-de"], "source": None, "target": None}
        for case, data, languages in (("one", {}, {}), ("both", both, {"languages": ["de", "en"]})):
            corpus = workshop.whole(workshop.numbered(5_000), **languages)
            alone = prepare(workshop.config(corpus, **data, prepared=str(tmp_path / case / "alone")))
            config = workshop.config(corpus, **data, prepared=str(tmp_path / case / "together"), workers=2)
            together = prepare(config, cluster="auto")
            assert ray.is_initialized()  # a connection that was there before stays
            assert workshop.content(alone.folder) == workshop.content(together.folder)

        with (tmp_path / "corpus.tsv").open("w") as file:
            os.dup2(file.fileno(), 900)  # only this process sees it as /proc/self/fd/900
        try:
            unseen = Path("/proc/self/fd/900")
            workers.require([tmp_path, tmp_path / "corpus.tsv"])
            for check in (partial(workers.require, [unseen]), lambda: list(workers.map(_read, [unseen] * 4))):
                with pytest.raises(TmtError, match=r"the node \S+ \(\w{8}\) does not see this file") as caught:
                    check()
                assert caught.value.place == str(unseen)
        finally:
            os.close(900)

        results = workers.map(_slow_node, range(24))
        first = [next(results) for _ in range(2)]
        nodes.kill_second()
        assert [number for number, _ in [*first, *results]] == list(range(24))


def test_a_cluster_that_does_not_answer_is_one_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with Workers(0, address) as workers, pytest.raises(TmtError, match="no Ray cluster answers") as caught:
            list(workers.map(abs, [1, 2]))
        assert caught.value.place == address


def test_without_ray_the_message_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with Workers(0, "auto") as workers, pytest.raises(TmtError, match="needs the package ray") as caught:
        list(workers.map(abs, [1, 2]))
    assert "pip install 'ray[client]'" in caught.value.remedy
