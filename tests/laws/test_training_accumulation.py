"""An update stays the same when it is divided: by accumulation, or because memory runs out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transformer_mt.data.batching import Batch
from transformer_mt.errors import TmtError, is_out_of_memory

STEADY = {"dropout": 0.0}


def weights(trainer: Any) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}


def joined(batches: list[Batch]) -> Batch:
    """The rows of all batches in one, padded to the longest."""
    source = torch.nn.utils.rnn.pad_sequence([row for b in batches for row in b.source_BS], batch_first=True)
    target = torch.nn.utils.rnn.pad_sequence([row for b in batches for row in b.target_out_BT], batch_first=True)
    return Batch.of(source, target)


@pytest.mark.parametrize("parts", [2, 5])
def test_k_micro_batches_equal_one_big_batch(numbers: Any, tmp_path: Path, parts: int):
    trainer = numbers.trainer(tmp_path, STEADY, accumulate=parts)
    batches = trainer.batches.update(1, 0)
    assert len(batches) == parts
    tokens = sum(batch.tokens for batch in batches)
    sums = trainer.gradients.add_up(batches, 1 / tokens)
    small = [parameter.grad.clone() for parameter in trainer.model.parameters()]
    trainer.model.zero_grad()
    torch.testing.assert_close(trainer.gradients.add_up([joined(batches)], 1 / tokens), sums)
    for one, other in zip(small, trainer.model.parameters(), strict=True):
        torch.testing.assert_close(one, other.grad, rtol=1e-4, atol=1e-6)


def test_the_loss_is_divided_by_tokens_not_by_micro_batches(numbers: Any, tmp_path: Path):
    """A micro-batch of few tokens has little weight: the gradient is that of the mean over all tokens."""
    trainer = numbers.trainer(tmp_path, STEADY)
    long, short = trainer.batches.update(1, 0)[0], trainer.batches.update(1, 3)[0].halves()[0].halves()[0]
    assert long.tokens > 3 * short.tokens
    trainer.gradients.add_up([long, short], 1 / (long.tokens + short.tokens))
    gradient = trainer.model.generator.bias.grad.clone()
    trainer.model.zero_grad()
    trainer.gradients.add_up([long], 1 / long.tokens)
    of_long = trainer.model.generator.bias.grad.clone()
    trainer.model.zero_grad()
    trainer.gradients.add_up([short], 1 / short.tokens)
    of_short = trainer.model.generator.bias.grad
    mean = (long.tokens * of_long + short.tokens * of_short) / (long.tokens + short.tokens)
    torch.testing.assert_close(gradient, mean, rtol=1e-4, atol=1e-6)


def limit_memory(trainer: Any, monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Make the step fail for more than `most` sentences, as a GPU would; returns the sizes that were computed."""
    sizes: list[int] = []
    forward = trainer.gradients.step.forward

    def limited(source_BS: Tensor, *others: Tensor) -> Any:
        if len(source_BS) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        sizes.append(len(source_BS))
        return forward(source_BS, *others)

    monkeypatch.setattr(trainer.gradients.step, "forward", limited)
    return sizes


def test_out_of_memory_splits_batches_and_changes_nothing_else(numbers: Any, tmp_path: Path, monkeypatch, capsys):
    settings = {"max_steps": 12, "epsilon": 1e-3}  # a usual epsilon would magnify rounding of gradients near 0
    whole = numbers.trainer(tmp_path / "whole", STEADY, **settings)
    whole.train()
    split = numbers.trainer(tmp_path / "split", STEADY, **settings)
    largest = max(sentences for sentences, _, _ in split.batches.shapes(1))
    sizes = limit_memory(split, monkeypatch, largest // 3)
    capsys.readouterr()
    split.train()
    assert max(sizes) <= largest // 3
    for name, weight in weights(whole).items():
        torch.testing.assert_close(weights(split)[name], weight, rtol=1e-3, atol=1e-5)
    error = capsys.readouterr().err
    assert "out of memory: each batch is now computed in 2 parts" in error
    assert "in 4 parts; the update still uses all of it" in error
    assert "in 4 parts" in (tmp_path / "split" / "train.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("CUDA error: out of memory", True),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes", True),
        ("could not create a primitive", True),
        ("could not create a primitive descriptor for the inner product forward propagation primitive", False),
        ("CUDA error: an illegal memory access was encountered", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_libraries_that_allocate_themselves_run_out_of_memory_too(message: str, expected: bool):
    assert is_out_of_memory(RuntimeError(message)) == expected


def test_a_sentence_that_does_not_fit_ends_training_with_advice(numbers: Any, tmp_path: Path, monkeypatch):
    trainer = numbers.trainer(tmp_path)
    limit_memory(trainer, monkeypatch, 0)
    with pytest.raises(TmtError, match="out of memory") as failure:
        trainer.train()
    assert failure.value.exit_code == 2
    assert "training.batch_tokens" in failure.value.remedy


def test_out_of_memory_during_validation_is_reported_too(numbers: Any, tmp_path: Path, monkeypatch):
    trainer = numbers.trainer(tmp_path)

    def fail(model: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(trainer.validation, "evaluate", fail)
    with pytest.raises(TmtError, match="out of memory"):
        trainer.train()
