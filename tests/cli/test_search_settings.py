"""How options of the command line change a model's own search settings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from transformer_mt.errors import TmtError
from transformer_mt.workflows.models import search_settings

BY_SAMPLES = {"method": "mbr"}
BY_BEAM = {"method": "mbr", "candidates": "beam", "beam": 4}
SAMPLING = {"method": "sample", "n_best": 10}


@pytest.fixture
def with_own(tiny_model: Path, tmp_path: Path):
    def make(own: dict[str, Any]) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(tiny_model, folder)
        config = yaml.safe_load((folder / "config.yaml").read_text())
        config["decoding"] |= own
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
        return folder

    return make


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        ({}, {}, {"method": "beam", "beam": 3}),
        ({}, {"beam": 1}, {"method": "beam", "beam": 1}),
        ({}, {"n_best": 7}, {"method": "beam", "beam": 7, "n_best": 7}),
        ({}, {"method": "mbr"}, {"method": "mbr", "candidates": "samples"}),
        ({}, {"method": "mbr", "beam": 4}, {"method": "mbr", "candidates": "beam", "beam": 4}),
        (SAMPLING, {}, {"method": "sample", "n_best": 10}),
        (SAMPLING, {"beam": 2}, {"method": "beam", "beam": 2, "n_best": 2}),
        (SAMPLING, {"method": "mbr", "beam": 4}, {"method": "mbr", "candidates": "beam", "n_best": 4}),
        (BY_SAMPLES, {"beam": 1}, {"method": "beam", "beam": 1}),
        (BY_SAMPLES, {"samples": 8}, {"method": "mbr", "candidates": "samples", "samples": 8}),
        (BY_BEAM, {}, {"method": "mbr", "candidates": "beam", "beam": 4}),
        (BY_BEAM, {"beam": 1}, {"method": "beam", "beam": 1}),
        (BY_BEAM, {"beam": 6}, {"method": "mbr", "candidates": "beam", "beam": 6}),
        (BY_BEAM, {"length_penalty": 2.0}, {"method": "mbr", "candidates": "beam", "length_penalty": 2.0}),
        (BY_BEAM, {"utility": "bleu"}, {"method": "mbr", "candidates": "beam", "utility": "bleu"}),
        (BY_BEAM, {"temperature": 0.5}, {"method": "mbr", "candidates": "samples", "temperature": 0.5}),
    ],
)
def test_options_change_their_settings(with_own, own: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]):
    settings = search_settings(with_own(own), {"n_best": None, **given}).model_dump()
    assert {key: settings[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("own", "given", "said"),
    [
        ({}, {"samples": 8}, "--samples is for --mbr"),
        ({}, {"top_k": 3}, "--top-k is for sampling"),
        ({}, {"method": "sample", "beam": 3}, "two ways of searching"),
        ({}, {"method": "mbr", "beam": 1}, "beam must be at least 2"),
        ({}, {"method": "mbr", "beam": 3, "samples": 8}, "--samples is for samples"),
        ({}, {"method": "mbr", "length_penalty": 1.0}, "--length-penalty is for beam search"),
        (BY_SAMPLES, {"beam": 3, "samples": 8}, "--samples is for --mbr"),
        (BY_BEAM, {"method": "mbr", "beam": 3, "top_p": 0.5}, "--top-p is for samples"),
        ({}, {"method": "mbr", "samples": 1}, "samples must be at least 2"),
        ({}, {"method": "sample", "length_penalty": 1.0}, "--length-penalty is for beam search"),
        ({}, {"utility": "bleu"}, "--utility is for --mbr"),
        ({}, {"method": "sample", "utility": "bleu"}, "--utility is for --mbr"),
        ({}, {"method": "mbr", "utility": "rouge"}, "--utility is \"rouge\", but must be one of 'chrf', 'bleu'"),
    ],
)
def test_an_option_without_effect_is_refused(with_own, own: dict[str, Any], given: dict[str, Any], said: str):
    with pytest.raises(TmtError, match=said):
        search_settings(with_own(own), given)
