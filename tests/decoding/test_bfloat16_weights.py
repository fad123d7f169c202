"""Searches with weights rounded to bfloat16, for GPUs: what is rounded, what is not, and what is said of it."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import transformer_mt as tmt
from transformer_mt.config.load import dump_config, load_config
from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding import translator as translator_module
from transformer_mt.decoding.computing import Computing
from transformer_mt.decoding.incremental import IncrementalDecoder
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.step import log_probabilities
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import load_engine
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.narrow import round_to_bfloat16
from transformer_mt.model.transformer import Transformer

ROUNDED = Computing(device="cpu", weights="bfloat16")
LINES = ["hello", "the cat", "a dog and a bird"]


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"positions": "learned", "tie_embeddings": "all"},
        {"positions": "rotary", "normalization": "rms", "activation": "swiglu"},
    ],
)
def test_every_step_differs_from_float32_by_rounding_only(sizes: dict[str, Any]) -> None:
    """Also far from the start, where a rounded angle would be wrong by a whole turn."""
    torch.manual_seed(1)
    config = ModelConfig.model_validate(
        {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, **sizes}
    )
    model = Transformer(config, 40, 40, max_positions=320, parts=parts_for(config, "cpu")).eval()
    rounded = copy.deepcopy(model)
    round_to_bfloat16(rounded)
    source_BS, target_BT = torch.randint(4, 40, (2, 300)), torch.randint(4, 40, (2, 300))
    steps = []
    for one in (model, rounded):
        decoder, logits = IncrementalDecoder(one), []
        with torch.inference_mode():
            cache = decoder.start(source_BS)
            for position in range(target_BT.shape[1]):
                logits_NV, cache = decoder.step(target_BT[:, position], cache)
                logits.append(logits_NV)
        assert cache.cells is not None
        assert cache.cells.layers[0].key_BHMK.dtype is one.generator.weight.dtype, "half of the memory"
        steps.append(log_probabilities(torch.stack(logits)))
    exact, narrow = steps
    assert narrow.dtype is torch.float32, "scores are sums of many"
    assert float((narrow - exact).abs().amax()) < 0.15
    assert float((narrow - exact).abs().mean()) < 0.02


def test_a_translator_with_rounded_weights(tiny_model: Path) -> None:
    exact, rounded = tmt.load(tiny_model, device="cpu"), tmt.load(tiny_model, device="cpu", weights="bfloat16")
    assert (exact.weights, rounded.weights) == ("float32", "bfloat16")  # type: ignore[attr-defined]
    for one, other in zip(exact.translate(LINES, align=True), rounded.translate(LINES, align=True), strict=True):
        assert other.score == pytest.approx(one.score, rel=0.05)
    losses = [translator.reference_loss(LINES, LINES).nats for translator in (exact, rounded)]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    assert rounded.attention("ab").maps, "maps are numpy arrays, which have no bfloat16"  # type: ignore[attr-defined]
    both = tmt.Translator.load([tiny_model, tiny_model], computing=ROUNDED)
    assert [one.text for one in both.translate(LINES)] == [one.text for one in rounded.translate(LINES)]


def test_a_score_says_that_the_weights_were_rounded(tiny_model: Path, tmp_path: Path) -> None:
    folder, lines = tmp_path / "model", tmp_path / "lines"
    shutil.copytree(tiny_model, folder)
    lines.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    files = tmt.TestFiles(source=lines, reference=lines)
    for computing, expected in ((Computing(device="cpu"), "beam 3"), (ROUNDED, "beam 3, bfloat16 weights")):
        report = tmt.evaluate(folder, files=files, metrics="bleu", computing=computing)
        assert report.search == expected
    (stored,) = json.loads((folder / "scores.json").read_text(encoding="utf-8")).values()
    assert stored["weights"] == "bfloat16"


def test_a_gpu_is_prepared_before_the_models_are_loaded_and_keeps_to_their_setting(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else cuDNN's attention would make a new plan in every step, for products in bfloat16."""
    exact = tmp_path / "exact"
    shutil.copytree(tiny_model, exact)
    config = load_config(exact / "config.yaml")
    changed = config.model_copy(update={"runtime": config.runtime.model_copy(update={"tf32": False})})
    (exact / "config.yaml").write_text(dump_config(changed), encoding="utf-8")
    events = list[str]()

    def load_on_cpu(folder: Path, device: object) -> ModelDirectory:
        events.append("load")
        return load_model_directory(folder)

    monkeypatch.setattr(translator_module, "pick_device", lambda name: torch.device("cuda", 0))
    monkeypatch.setattr(translator_module, "load_model_directory", load_on_cpu)
    monkeypatch.setattr(translator_module, "set_up_cuda", lambda device, tf32=True: events.append(f"TF32 {tf32}"))
    monkeypatch.setattr(translator_module, "allow_tf32", lambda allowed: events.append(f"TF32 {allowed}"))
    monkeypatch.setattr(tmt.Translator, "_rounds_products", True)
    tmt.Translator.load(tiny_model)
    tmt.Translator.load([tiny_model, exact])
    assert events == ["TF32 True", "load", "TF32 True", "TF32 True", "load", "load", "TF32 False"]
    tmt.Translator.load(tiny_model)  # the products of a process have one format
    assert events[7:] == ["TF32 False", "load", "TF32 False"]


def test_what_does_not_support_rounded_weights_says_so(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(TmtError, match="unknown number format 'float8'"):
        Computing(weights="float8")
    with pytest.raises(TmtError, match="CTranslate2 takes the number format of the export"):
        load_engine(tiny_model, computing=ROUNDED)
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    config = load_config(folder / "config.yaml")
    handmade = config.model_copy(update={"model": config.model.model_copy(update={"norm_kernel": "handmade"})})
    (folder / "config.yaml").write_text(dump_config(handmade), encoding="utf-8")
    with pytest.raises(TmtError, match=r"need model\.norm_kernel: fused"):
        tmt.Translator.load(folder, computing=ROUNDED)
