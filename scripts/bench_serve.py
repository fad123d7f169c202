"""Measures `tmt serve`: sentences per second and waiting times of 1 to 256 clients, beside `tmt translate --input`.

    python scripts/bench_serve.py --model runs/quickstart [--input sentences.txt] [--engine ctranslate2]
    python scripts/bench_serve.py --model runs/quickstart --plain EXPORTED    also FastAPI around CTranslate2
    python scripts/bench_serve.py --model runs/quickstart --soak 100000       memory over so many requests

A client sends a sentence, waits for its translation, and sends the next one. The server has one core, all clients have
another. Of `tmt translate`, the same work is measured in one process on the server's core: all sentences at once, and
one after the other. The parts take turns, and each figure is the median of --rounds. "CPU" counts only the time in
which the process computed, so that other programs on the machine disturb it less.

--plain names the folder that `tmt export` wrote: a FastAPI application as people write it, with one call of CTranslate2
for each request (pip install fastapi ctranslate2). Compare it with --engine ctranslate2.

--untrained FOLDER first writes a model of the base size of the paper there, with random weights, the
tokenizers of --model and translations about as long as their sources: FOLDER/model, and its export FOLDER/exported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER_CORE, CLIENT_CORE = 0, 1
CLIENTS = (1, 8, 64, 256)
LONE = 200  # sentences that are translated one after the other
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """sentences: per second, of the clock and of the CPU time of the process; p50, p99: seconds of a request."""

    clock: float
    cpu: float
    p50: float
    p99: float


def main() -> None:
    options = _arguments()
    if options.role:
        os.sched_setaffinity(0, {SERVER_CORE})
        ROLES[options.role](options)
        return
    if len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, {CLIENT_CORE})
    if options.untrained:
        write_untrained(options)
        return
    lines = sentences(options)
    if options.soak:
        soak(options, lines)
    else:
        compare(options, lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="run or model folder, or an export")
    parser.add_argument("--input", type=Path, help="sentences, one on each line; default: of the phrasebook")
    parser.add_argument("--sentences", type=int, default=2_000, help="how many of them")
    parser.add_argument("--engine", default="tmt")
    parser.add_argument("--plain", type=Path, metavar="EXPORTED", help="compare with FastAPI around CTranslate2")
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    parser.add_argument("--seconds", type=float, default=8, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--soak", type=int, metavar="REQUESTS", help="only send requests, and print the memory")
    parser.add_argument("--untrained", type=Path, metavar="FOLDER", help="only write a large random model")
    parser.add_argument("--role", help=argparse.SUPPRESS)  # of a process that this script starts
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def sentences(options: argparse.Namespace) -> list[str]:
    """The sentences to translate."""
    if options.input is not None:
        lines = options.input.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line.strip()][: options.sentences]
    from transformer_mt.decoding.finding import find_model
    from transformer_mt.phrasebook import generate
    from transformer_mt.workflows.models import config_of_model

    data = config_of_model(find_model(options.model)).data
    return [source for source, _ in generate(data.source, data.target, "test", options.sentences, 1)]


def write_untrained(options: argparse.Namespace) -> None:
    """A model of the paper's base size with random weights, and its export."""
    import torch

    from transformer_mt.config.model import ModelConfig
    from transformer_mt.decoding.finding import find_model
    from transformer_mt.decoding.model_directory import load_model_directory, save_model_directory
    from transformer_mt.exporting.ctranslate2 import write_export
    from transformer_mt.kernels.build import build_model
    from transformer_mt.runtime.weights import named_weights

    given = load_model_directory(find_model(options.model))
    decoding = given.config.decoding.model_copy(update={"max_length_ratio": 1.0, "max_length_offset": 1})
    config = given.config.model_copy(update={"model": ModelConfig(), "decoding": decoding})
    torch.manual_seed(1)
    model = build_model(config, len(given.source), len(given.target))
    codecs = given.source, given.target
    save_model_directory(options.untrained / "model", config, named_weights(model), codecs)
    write_export(load_model_directory(options.untrained / "model"), options.untrained / "exported")


def compare(options: argparse.Namespace, lines: Sequence[str]) -> None:
    """All figures, one table for each way to serve."""
    inside: list[dict[str, float]] = []
    found: dict[tuple[str, int], list[Measured]] = {}
    with serving(options) as ours, plain(options) as other:
        servers = {"tmt serve": (ours, "/v1/translate", "text")}
        if other is not None:
            servers["plain FastAPI"] = (other, "/translate", "q")
        for _ in range(options.rounds):
            inside.append(_inside(options))
            for name, (server, path, key) in servers.items():
                for clients in options.clients:
                    requests = [_request(path, {key: line}) for line in lines]
                    measured = asyncio.run(load(server, requests, clients, options.seconds))
                    found.setdefault((name, clients), []).append(measured)
    base = {key: statistics.median(one[key] for one in inside) for key in inside[0]}
    load_average, rounds = os.getloadavg()[0], options.rounds
    print(f"{len(lines):,} sentences, engine {options.engine}, median of {rounds} rounds, load {load_average:.1f}")
    print(f"in one process, all at once   {base['clock']:8.0f} sentences/s   {base['cpu']:8.0f} per CPU second")
    print(f"in one process, one by one    {1000 * base['p50']:8.1f} ms each (p50)")
    titles = f"{'server':<14} {'clients':>7} {'sentences/s':>12} {'of one process':>15} {'CPU':>6}"
    print(f"{titles} {'p50 ms':>8} {'p99 ms':>8}")
    for (name, clients), some in found.items():
        clock, cpu, p50, p99 = (
            statistics.median(getattr(one, key) for one in some) for key in ("clock", "cpu", "p50", "p99")
        )
        share, work = clock / base["clock"], cpu / base["cpu"]
        row = f"{name:<14} {clients:>7} {clock:>12.0f} {share:>15.0%} {work:>6.0%}"
        print(f"{row} {1000 * p50:>8.1f} {1000 * p99:>8.1f}")
    if 1 in options.clients:
        lone = statistics.median(one.p50 for one in found["tmt serve", 1])
        print(f"one client, beside one process: {lone / base['p50']:.2f} times the time of a sentence")
    if options.plain and 64 in options.clients:
        ours, theirs = (statistics.median(one.clock for one in found[name, 64]) for name in servers)
        print(f"64 clients, beside plain FastAPI: {ours / theirs:.1f} times the sentences")


def soak(options: argparse.Namespace, lines: Sequence[str]) -> None:
    """Send requests, with several sizes of batches, and print the memory of the server."""
    with serving(options) as server:
        done, start = 0, time.perf_counter()
        requests = [_request("/v1/translate", {"text": line, "align": n % 5 == 0}) for n, line in enumerate(lines)]
        while done < options.soak:
            print(
                f"{done:>8} requests   {resident(server.pid) / 2**20:8.1f} MiB   {time.perf_counter() - start:6.0f} s",
                flush=True,
            )
            for clients in (64, 3, 17, 256):
                many = min(max(options.soak // 40, 1), options.soak - done)
                asyncio.run(load(server, requests, clients, float("inf"), many))
                done += many
        print(f"{done:>8} requests   {resident(server.pid) / 2**20:8.1f} MiB   {time.perf_counter() - start:6.0f} s")


@dataclass(frozen=True)
class Running:
    """A server that this script has started."""

    pid: int
    port: int


@contextmanager
def serving(options: argparse.Namespace) -> Iterator[Running]:
    """`tmt serve`, with one thread on its core."""
    port = free_port()
    command = ["-m", "transformer_mt", "serve", "--model", str(options.model), "--engine", options.engine]
    with started(
        [*command, "--threads", "1", "--port", str(port), "--device", "cpu", "--timeout", "600"], port, "/health"
    ) as running:
        yield running


@contextmanager
def plain(options: argparse.Namespace) -> Iterator[Running | None]:
    """The plain application, if it is wanted."""
    if options.plain is None:
        yield None
        return
    port = free_port()
    command = [__file__, "--role", "plain", "--model", str(options.plain), "--port", str(port)]
    with started(command, port, "/health") as running:
        yield running


@contextmanager
def started(arguments: Sequence[str], port: int, path: str) -> Iterator[Running]:
    """A Python process on the core of the server, from when it answers until the end of the block."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CT2_VERBOSE": "-1"}
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment)
    try:
        os.sched_setaffinity(process.pid, {SERVER_CORE})
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read()
                break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit(f"bench_serve: {' '.join(arguments)} ended with {process.returncode}") from None
                time.sleep(0.1)
        yield Running(process.pid, port)
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """That a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Client(asyncio.Protocol):
    """A connection that sends a request, and waits for its answer."""

    transport: asyncio.Transport
    _data = b""
    _answer: asyncio.Future[bytes]

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if found and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]):
            assert head.startswith(b"HTTP/1.1 200"), self._data
            self._data = b""
            self._answer.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the server closed a connection"))

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._answer


def _request(path: str, value: dict[str, object]) -> bytes:
    body = json.dumps(value).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def load(
    server: Running, requests: Sequence[bytes], clients: int, seconds: float, most: float = float("inf")
) -> Measured:
    """What the clients see in so many seconds, or until so many requests have been sent."""
    loop, taken, times = asyncio.get_running_loop(), 0, list[float]()
    open_ = [(await loop.create_connection(Client, "127.0.0.1", server.port))[1] for _ in range(clients)]

    async def ask(client: Client, until: float) -> None:
        nonlocal taken
        while (start := time.perf_counter()) < until and taken < most:
            taken += 1
            await client.ask(requests[taken % len(requests)])
            times.append(time.perf_counter() - start)

    if most == float("inf"):  # the first requests are not counted
        await asyncio.gather(*(ask(client, time.perf_counter() + min(1.0, seconds / 4)) for client in open_))
        times.clear()
    start, before = time.perf_counter(), cpu_seconds(server.pid)
    await asyncio.gather(*(ask(client, start + seconds) for client in open_))
    elapsed, computed = time.perf_counter() - start, cpu_seconds(server.pid) - before
    for client in open_:
        client.transport.close()
    times.sort()
    p50, p99 = (times[min(int(len(times) * share), len(times) - 1)] for share in (0.5, 0.99))
    return Measured(len(times) / elapsed, len(times) / max(computed, 1 / _TICKS), p50, p99)


def _inside(options: argparse.Namespace) -> dict[str, float]:
    """The same work in one process: sentences per second at once, and seconds of one sentence."""
    command = [sys.executable, __file__, "--role", "inside", "--model", str(options.model), "--engine", options.engine]
    command += ["--sentences", str(options.sentences)]
    command += ["--input", str(options.input)] if options.input else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CT2_VERBOSE": "-1"}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def inside(options: argparse.Namespace) -> None:
    """Of `tmt translate --input` what is measured beside the server: it does not load, write or start."""
    from transformer_mt.workflows.translate import Computing, open_translator

    lines = sentences(options)
    computing = Computing("cpu", 1, scored=False)
    translator, _ = open_translator([options.model], {"n_best": 1}, computing, options.engine)
    list(translator.translate(lines[:64]))
    start, before = time.perf_counter(), time.process_time()
    list(translator.translate(lines))
    elapsed, computed = time.perf_counter() - start, time.process_time() - before
    times = []
    for line in lines[:LONE]:
        start = time.perf_counter()
        translator.translate(line)
        times.append(time.perf_counter() - start)
    print(json.dumps({"clock": len(lines) / elapsed, "cpu": len(lines) / computed, "p50": statistics.median(times)}))


def plain_application(options: argparse.Namespace) -> None:
    """FastAPI around CTranslate2, as in many tutorials: one call for each request, in FastAPI's threads."""
    import ctranslate2
    import uvicorn
    from fastapi import Body, FastAPI

    from transformer_mt.text.codec import load_codecs
    from transformer_mt.workflows.models import config_of_model

    source, target = load_codecs(options.model)
    decoding = config_of_model(options.model).decoding
    engine = ctranslate2.Translator(str(options.model), "cpu", inter_threads=1, intra_threads=1)
    ids = {word: index for index, word in enumerate(target.vocabulary.tokens)}
    app = FastAPI()

    @app.post("/translate")
    def translate(q: str = Body(embed=True)) -> dict[str, str]:
        tokens = [*source.segmenter.tokenize(q), "</s>"]
        longest = int(decoding.max_length_ratio * (len(tokens) - 1)) + decoding.max_length_offset
        result = engine.translate_batch([tokens], beam_size=decoding.beam, max_decoding_length=longest)[0]
        return {"translatedText": target.decode([ids[word] for word in result.hypotheses[0]])}

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    uvicorn.run(app, port=options.port, access_log=False, log_level="error")


ROLES: dict[str, Callable[[argparse.Namespace], None]] = {"inside": inside, "plain": plain_application}

if __name__ == "__main__":
    main()
