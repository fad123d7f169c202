"""Weights on disk: named tensors in a safetensors file. A tied tensor is stored once, under its first name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from transformer_mt.errors import TmtError, from_os_error, reason
from transformer_mt.files.opening import require_fetched

_MOST_DIMENSIONS = 8  # of a tensor; torch allows 64
_LONGEST_HEADER = 4 << 20  # bytes: some 40,000 tensors; reading their shapes takes quadratic time
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_REMEDY = "Use the config.yaml that was saved with the weights, or copy the model folder again."


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Each parameter once, by its first name; detached, not copied."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def save_weights(weights: Mapping[str, Tensor], file: Path, facts: dict[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, and facts about them. Raises OSError if that fails."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, file, facts)
    except SafetensorError as error:  # it wraps the error of the operating system
        code = re.search(r"os error (\d+)", str(error))
        raise OSError(int(code.group(1)) if code else None, str(error), str(file)) from None
    os.umask(mask := os.umask(0))  # reading the mask requires setting it
    file.chmod(0o666 & ~mask)  # safetensors gives read permission only to the owner


def read_weights(file: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, on the CPU. Raises TmtError if it is missing or damaged."""
    read_shapes(file)  # torch raises other errors for odd shapes
    try:
        return load_file(file)
    except (SafetensorError, RuntimeError, ValueError, TypeError, IndexError) as error:
        raise _unreadable(reason(error), file) from None
    except OSError as error:
        raise from_os_error(error, "reading weights") from None


def read_shapes(file: Path) -> dict[str, list[int]]:
    """The shapes of the tensors of a safetensors file, of which only the header is read. Raises as `read_weights`."""
    try:
        with file.open("rb") as stream:  # safetensors says of every file that it cannot open that there is none
            header = int.from_bytes(stream.read(8), "little")
        if header > _LONGEST_HEADER:
            raise _unreadable(f"a header of {header:,} bytes", file)
        with safe_open(file, "pt") as opened:
            shapes = {name: list(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise TmtError("the file with the weights is missing", place=file, remedy=_REMEDY) from None
    except SafetensorError as error:
        raise _unreadable(reason(error), file) from None
    except OSError as error:
        raise from_os_error(error, "reading weights") from None
    wrong = next((name for name, shape in shapes.items() if len(shape) > _MOST_DIMENSIONS), None)
    if wrong is not None:
        raise _unreadable(f"tensor {wrong[:80]} has {len(shapes[wrong])} dimensions", file)
    return shapes


def _unreadable(problem: str, file: Path) -> TmtError:
    require_fetched(file, "weights")
    remedy = "The file is damaged or incomplete. Copy it again."
    return TmtError(f"not a readable safetensors file ({problem})", place=file, remedy=remedy)


def require_fit(model: nn.Module, shapes: Mapping[str, Sequence[int]], place: str | Path) -> None:
    """Raises a TmtError that lists all tensors that are missing, unknown, or of another shape than in the model.

    model: may be on the device `meta`, which needs no memory
    """
    _raise_misfits(_misfits(dict(model.named_parameters()), shapes), place)


def _misfits(parameters: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]]) -> list[str]:
    problems = [f"missing: {name}" for name in parameters if name not in shapes]
    problems += [f"unknown: {name[:80]}" for name in shapes if name not in parameters]
    return problems + [
        f"shape of {name}: {list(shapes[name])} in the file, {list(parameters[name].shape)} in the model"
        for name in parameters
        if name in shapes and list(shapes[name]) != list(parameters[name].shape)
    ]


def require_finite(weights: Mapping[str, Tensor], place: str | Path) -> None:
    """Raises a TmtError that lists all tensors that are not finite floats."""
    _raise_misfits(_not_finite(weights), place)


def _not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    return [
        f"not finite floats: {name}"
        for name, tensor in weights.items()
        if not (tensor.dtype in _FLOATS and tensor.isfinite().all())
    ]


def _raise_misfits(problems: list[str], place: str | Path) -> None:
    if problems:
        shown = problems[:10] + ([f"... and {len(problems) - 10} more"] if len(problems) > 10 else [])
        raise TmtError("the weights do not fit the model: " + "; ".join(shown), place=place, remedy=_REMEDY)


def digest_of_weights(weights: Mapping[str, Tensor]) -> str:
    """The sha256 of named tensors: of their names, types, shapes and bytes. It is the same for all orders."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def facts_of_weights(file: Path) -> dict[str, str]:
    """What `save_weights` wrote about the tensors. Raises as `read_weights`."""
    read_shapes(file)
    with safe_open(file, framework="pt") as opened:
        return dict(opened.metadata() or {})


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], place: str | Path) -> None:
    """Copy tensors into the model.

    Raises a TmtError that lists all tensors that are missing, unknown, of another shape, or not finite.
    """
    parameters = dict(model.named_parameters())
    problems = _misfits(parameters, {name: tensor.shape for name, tensor in weights.items()})
    _raise_misfits(problems + _not_finite(weights), place)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
