"""What tests of several rooms share: the real corpora, and settings that make every run of the suite the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# The tests' matrices are small: more threads would only wait for each other. Read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

settings.register_profile("everywhere", deadline=None)  # a busy machine is not a defect
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "everywhere")

ROOT = Path(__file__).resolve().parents[1]


class Corpora:
    """The folder of the real corpora: `corpora / "multi30k"` is the path of one, or skips the test without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            pytest.skip(f"no {name} in {self.folder}; name the folder of the real corpora in TMT_CORPORA")
        return path

    __call__ = __truediv__


@pytest.fixture(scope="session")
def corpora() -> Corpora:
    return Corpora(Path(os.environ.get("TMT_CORPORA") or ROOT / "data").resolve())


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with random weights: characters a-z, English to German, at most 24 tokens a sentence."""
    from collections import Counter

    import torch

    from transformer_mt.config.schema import Config
    from transformer_mt.decoding.model_directory import build_model, save_model_directory
    from transformer_mt.model.weights import named_weights
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
    codec.save(folder / "codecs" / "source")
    torch.manual_seed(3)
    save_model_directory(
        folder / "model",
        config,
        named_weights(build_model(config, len(codec), len(codec))),
        folder / "codecs",
    )
    return folder / "model"
