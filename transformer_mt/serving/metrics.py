"""What Prometheus reads at `/metrics`: how many requests and sentences there were, how long they took, who waits."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The numbers of one server. Its labels have few values: a client cannot make new ones."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU time and open files of this process
        self._requests = Counter(
            "tmt_requests", "Requests answered.", ["path", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "tmt_request_seconds", "Seconds to answer a request.", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self._batches = Histogram(
            "tmt_batch_sentences",
            "Sentences translated together.",
            ["model"],
            buckets=_SENTENCES,
            registry=self.registry,
        )
        self._sentences = Counter("tmt_sentences", "Sentences translated.", ["model"], registry=self.registry)
        self._running = Gauge(
            "tmt_running_batch_seconds",
            "Seconds since the running batch began; 0: none runs.",
            ["model"],
            registry=self.registry,
        )
        self._models = Gauge(
            "tmt_model_info",
            "Served models, by the sha256 of their weights.",
            ["model", "fingerprint"],
            registry=self.registry,
        )
        self._waiting = Gauge(
            "tmt_waiting_sentences", "Sentences that wait or are being translated.", ["model"], registry=self.registry
        )

    def name_model(self, model: str, fingerprint: str | None) -> None:
        """fingerprint: of the weights; None: unknown"""
        self._models.labels(model, fingerprint or "").set(1)

    def watch_batch(self, model: str, running: Callable[[], float]) -> None:
        """running: seconds since the running batch began"""
        self._running.labels(model).set_function(running)

    def answered(self, path: str, method: str, status: int, seconds: float) -> None:
        """path: of a route, never as the client wrote it."""
        self._requests.labels(path, method, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch_observer(self, model: str) -> Callable[[int], None]:
        """What a batcher calls with the size of each batch."""
        batches, sentences = self._batches.labels(model), self._sentences.labels(model)

        def observe(items: int) -> None:
            batches.observe(items)
            sentences.inc(items)

        return observe

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """waiting: the number of sentences now."""
        self._waiting.labels(model).set_function(waiting)

    def text(self) -> bytes:
        """In the format of Prometheus."""
        return generate_latest(self.registry)
