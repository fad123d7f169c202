"""Fixtures for tests of several rooms, and settings that make every run of the suite the same."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import forks

# The matrices of the tests are small, and more threads would be slower. torch reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("everywhere", deadline=None)  # a busy machine is not an error
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "everywhere")

ROOT = Path(__file__).resolve().parents[1]


class Corpora:
    """The folder of the real corpora. `corpora / "multi30k"` is the path of one; a test without it is skipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            pytest.skip(f"no {name} in {self.folder}; name the folder of the real corpora in TMT_CORPORA")
        return path

    __call__ = __truediv__


def pytest_configure() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and the programs in the tests would inherit this."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    forks.set_up()


def pytest_unconfigure() -> None:
    forks.tear_down()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips tests that need a GPU where there is none. Puts files with slow tests first: quick ones fill the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        import torch

        if not torch.cuda.is_available():
            for item in on_gpu:
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


def pytest_collection_finish() -> None:
    """Python looks for garbage less often, and not among PyTorch and the tests: a tenth of the time of many tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(autouse=True)
def no_flushing_of_floats() -> Iterator[None]:
    """Training flushes tiny numbers to zero in the whole process; reset this after each test."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data are prepared and models trained without plots, a quarter of the time of the smallest trainings."""
    from transformer_mt.reporting import events
    from transformer_mt.workflows import prepare

    monkeypatch.setattr(events, "draw_curves", lambda *_, **__: None)
    monkeypatch.setattr(prepare, "plot_data", lambda *_, **__: None)


@pytest.fixture(scope="session")
def corpora() -> Corpora:
    return Corpora(Path(os.environ.get("TMT_CORPORA") or ROOT / "data").resolve())


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with random weights: characters a-z, English to German, at most 24 tokens per sentence."""
    from collections import Counter

    import torch

    from transformer_mt.config.schema import Config
    from transformer_mt.decoding.model_directory import save_model_directory
    from transformer_mt.kernels.build import build_model
    from transformer_mt.runtime.weights import named_weights
    from transformer_mt.text.codec import Codec, Segmenter
    from transformer_mt.text.vocabulary import Vocabulary

    config = Config.model_validate(
        {
            "name": "tiny",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}, "max_length": 24},
            "tokenizer": {"kind": "character", "shared": True, "min_frequency": 1},
            "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2},
            "training": {"max_epochs": 1},
            "decoding": {"max_length_ratio": 1.0, "max_length_offset": 5, "beam": 3},
        }
    )
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = Vocabulary.count(Counter("abcdefghijklmnopqrstuvwxyz\u2581"))
    codec = Codec(Segmenter(config.source_tokenizer, "en"), vocabulary)
    torch.manual_seed(3)
    save_model_directory(
        folder / "model",
        config,
        named_weights(build_model(config, len(codec), len(codec))),
        (codec, codec),
    )
    return folder / "model"


@pytest.fixture(scope="session")
def many_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `tiny_model`, for the directions ko-en, en-ko, en-de and de-en. Its output layer likes tags most of all."""
    import torch

    from transformer_mt.config.load import load_config
    from transformer_mt.config.schema import Config
    from transformer_mt.decoding.model_directory import save_model_directory
    from transformer_mt.kernels.build import build_model
    from transformer_mt.runtime.weights import named_weights
    from transformer_mt.text.codec import Codec, load_codecs
    from transformer_mt.text.vocabulary import Vocabulary

    values = load_config(tiny_model / "config.yaml").model_dump(mode="json")
    del values["data"]["source"], values["data"]["target"]
    values["data"]["directions"] = ["ko-en", "en-ko", "en-de", "de-en"]
    values["data"]["corpus"][0]["tag"] = "<synthetic>"
    config, (known, _) = Config.model_validate(values), load_codecs(tiny_model)
    codec = Codec(known.segmenter, Vocabulary(known.vocabulary.tokens, config.data.tags))
    torch.manual_seed(3)
    network = build_model(config, len(codec), len(codec))
    assert network.generator.bias is not None
    with torch.no_grad():
        network.generator.bias[-len(codec.tags) :] += 6.0
    folder = tmp_path_factory.mktemp("many") / "model"
    save_model_directory(folder, config, named_weights(network), (codec, codec))
    return folder


class Numbers:
    """A corpus of number words, English to German, that a model learns in seconds; configs and trainers for it."""

    WORDS = (
        *(("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")),
        *(("five", "fünf"), ("six", "sechs"), ("seven", "sieben")),
    )

    def __init__(self, folder: Path) -> None:
        generator, rows = random.Random(5), set()
        while len(rows) < 460:
            words = generator.choices(self.WORDS, k=generator.randint(1, 8))
            rows.add("\t".join(" ".join(side) for side in zip(*words, strict=True)))
        self.folder, self.table = folder, folder / "numbers.tsv"
        self.table.write_text("\n".join(sorted(rows)) + "\n", encoding="utf-8")

    def values(self, **training: Any) -> dict[str, Any]:
        """The values of a config. training: keys for this section."""
        corpus = {"kind": "tsv", "files": str(self.table), "split": {"validation": 40, "test": 20}}
        return {
            "name": "numbers",
            "data": {"source": "en", "target": "de", "corpus": corpus, "workers": 1, "prepared": str(self.folder)},
            "tokenizer": {"kind": "whitespace", "min_frequency": 1},
            "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1},
            "training": {
                "batch_tokens": 256,
                "schedule": "constant",
                "learning_rate": 0.003,
                "warmup_steps": 0,
                "max_epochs": 2,
                "bleu_sentences": 0,
                **training,
            },
            "decoding": {"beam": 1, "max_length_offset": 5},
            "runtime": {"device": "cpu", "threads": 1},
        }

    def file(self, place: Path, **training: Any) -> Path:
        """Writes the config to a YAML file in a folder."""
        import json

        file = place / "numbers.yaml"
        file.write_text(json.dumps(self.values(**training)), encoding="utf-8")  # JSON is YAML
        return file

    def trainer(
        self, run: Path, model: dict[str, Any] | None = None, runtime: dict[str, Any] | None = None, **training: Any
    ) -> Any:
        """A trainer in a new run directory. model, runtime, training: keys for these sections."""
        from transformer_mt.config.schema import Config
        from transformer_mt.data.prepare import prepare
        from transformer_mt.reporting.events import Events
        from transformer_mt.runtime.device import set_up
        from transformer_mt.training.run_directory import RunDirectory
        from transformer_mt.training.run_facts import facts_of
        from transformer_mt.workflows.train import TrainingJob

        values = self.values(**training)
        values["model"].update(model or {})
        values["runtime"].update(runtime or {})
        config = Config.model_validate(values)
        prepared, machine, directory = prepare(config), set_up(config.runtime), RunDirectory(run)
        directory.open(config, facts_of([file.model_dump() for file in prepared.manifest.files]))
        directory.close()
        return TrainingJob(config, prepared, directory, machine, Events(run)).trainer()


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    return Numbers(tmp_path_factory.mktemp("numbers"))
