"""Looking inside the model while it runs: every tensor it notes, with its name and its letters.

The model calls `note(scores_BHQM=scores_BHQM)` where a reader would want to look. Without a watcher this
costs one comparison; inside `with watching(model, ...)` each note reaches the watcher, named after the
module it came from. Shapes (`tmt inspect --shapes`), attention maps and alignments all come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Watcher = Callable[[str, str, Tensor], None]  # (module path, name with its letters, tensor)

_watcher: Watcher | None = None
_path: list[str] = [""]


def watched() -> bool:
    """Is anyone looking? Fused kernels hide their insides and step aside when so."""
    return _watcher is not None


def note(**tensors: Tensor) -> None:
    """Show tensors to the watcher; each keyword is the tensor's name with its letters."""
    if _watcher is not None:
        for name, tensor in tensors.items():
            _watcher(_path[-1], name, tensor)


@contextmanager
def watching(model: nn.Module, watcher: Watcher) -> Iterator[None]:
    """Let `watcher` see all notes of `model` until the block ends."""
    global _watcher
    handles, depth = [], len(_path)
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda module, inputs, name=name: _path.append(name)))
        handles.append(module.register_forward_hook(lambda module, inputs, output: _leave(), always_call=True))
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before
        for handle in handles:
            handle.remove()
        del _path[depth:]


def _leave() -> None:
    _path.pop()


@contextmanager
def attention_maps(model: nn.Module, only: str = "") -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights [B, H, Q, M] of each attention module, by its path in the model.

    only: the path of the one module that is wanted. Of a large batch all would fill the memory.
    """
    maps: dict[str, Tensor] = {}

    def keep(path: str, name: str, tensor: Tensor) -> None:
        if name == "weights_BHQM" and only in ("", path):
            maps[path] = tensor.detach().to(torch.float32)

    with watching(model, keep):
        yield maps
