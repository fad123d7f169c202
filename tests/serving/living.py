"""A server in a thread that can go away and come back, and models with random weights to serve."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import uvicorn
from jsonschema import Draft202012Validator

from transformer_mt.config.schema import Config
from transformer_mt.decoding.model_directory import ModelDirectory
from transformer_mt.decoding.translator import Translator
from transformer_mt.kernels.build import build_model
from transformer_mt.serving.app import make_app
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.limits import Limits
from transformer_mt.serving.models import Models, serve_directions
from transformer_mt.serving.reference import description
from transformer_mt.serving.run import PatientProtocol, Server, open_socket
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.vocabulary import Vocabulary

LETTERS = "abcdefghijklmnopqrstuvwxyz가나다라마바사아자차카타파하고양이는작아요그시장에서?.▁"


def random_translator(source: str = "ko", target: str = "en", **shape: Any) -> Translator:
    """Random weights, and characters as tokens: translations without sense. shape: keys of `model`."""
    values = {
        "name": "random",
        "data": {"source": source, "target": target, "corpus": {"kind": "phrasebook"}, "max_length": 60},
        "tokenizer": {"kind": "character", "min_frequency": 1},
        "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2, **shape},
        "training": {"max_epochs": 1},
        "decoding": {"max_length_ratio": 0.8, "max_length_offset": 3, "beam": 3},
    }
    config = Config.model_validate(values)
    codec = Codec(Segmenter(config.source_tokenizer, source), Vocabulary.count(Counter(LETTERS)))
    torch.manual_seed(11)
    return Translator(
        [
            ModelDirectory(
                Path(f"{source}-{target}"), config, build_model(config, *[len(codec)] * 2).eval(), codec, codec
            )
        ]
    )


def served(*translators: Translator, limits: Limits | None = None) -> Models:
    """The models with their queues, named by their directions."""
    limits = limits or Limits()
    return Models([direction for one in translators for direction in serve_directions(one, limits)])


def check(path: str, method: str, answer: object) -> None:
    """Raises ValidationError if an answer is not as /openapi.json describes it."""
    operation = description()["paths"][path][method]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    Draft202012Validator({**schema, "components": description()["components"]}).validate(answer)


class Living:
    """An application behind a port. It can be stopped, and started again at the same address."""

    def __init__(self, translators: list[Translator], runs: Path, keys: Keys | None = None) -> None:
        self._translators, self._runs, self._keys = translators, runs, keys
        self.port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        listening = open_socket("127.0.0.1", self.port)
        self.port = listening.getsockname()[1]
        app = make_app(served(*self._translators), keys=self._keys, runs_folder=self._runs)
        config = uvicorn.Config(app, http=PatientProtocol, ws="none", lifespan="on", log_config=None, access_log=False)
        self._server = Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        end = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends as at SIGTERM. Returns when all answers have ended."""
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive(), "an answer does not end"


@contextmanager
def living(translators: list[Translator], runs: Path, keys: Keys | None = None) -> Iterator[Living]:
    server = Living(translators, runs, keys)
    try:
        yield server
    finally:
        server.stop()
