"""Modules without what PyTorch does around each call, which takes longer than the products of a few rows."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from torch import nn
from torch.nn.modules.module import _has_any_global_hook

M = TypeVar("M", bound=nn.Module)


def plain(module: M) -> M:
    """A twin for inference: its call is `forward` alone, and its parts are ordinary attributes. Tensors are shared.

    It follows neither what is exchanged in the original, nor `train`, `eval` and `compile`. Modules that someone has
    changed or watches stay as they are: other classes than this program's and PyTorch's, and what has a hook.
    """
    is_ours = type(module).__module__.startswith(("transformer_mt.", "torch.nn.modules."))
    is_watched = module._forward_hooks or module._forward_pre_hooks or _has_any_global_hook()
    if not is_ours or is_watched or "forward" in module.__dict__:
        return module
    parts = {name: None if part is None else plain(part) for name, part in module._modules.items()}
    kind: Any = type(module)
    twin: M = object.__new__(_called_directly(kind, kind.forward))
    twin.__dict__.update({**module.__dict__, **module._parameters, **module._buffers, **parts, "_modules": parts})
    return twin


@functools.cache
def _called_directly(kind: Any, forward: Any) -> Any:
    return type(f"Plain{kind.__name__}", (kind,), {"__call__": forward})
