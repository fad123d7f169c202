"""Reading attention weights from outside: inside a `with` block, modules use an attention that records them.

Threads may share a model: one at a time has such a block, and the others compute meanwhile as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import Any

import torch
from torch import Tensor, nn

from transformer_mt.model import attention as attention_module
from transformer_mt.model.multi_head_attention import MultiHeadAttention

_LOCK = RLock()


@contextmanager
def attention_maps(model: nn.Module, only: str = "") -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of each attention module: float32 [B, H, Q, M], by the module's path in the model.

    only: the path of a single module to record; "" records all, which for a large batch can fill the memory.
    """
    maps: dict[str, Tensor] = {}

    def record(path: str, query_BHQK: Tensor, key_BHMK: Tensor, value_BHMK: Tensor, *options: Any) -> Tensor:
        weights_BHQM = attention_weights(attention_module.scaled_dot_product_attention, query_BHQK, key_BHMK, *options)
        maps[path] = weights_BHQM.detach().to(torch.float32)
        return weights_BHQM @ value_BHMK

    with attention_replaced(model, lambda path: partial(record, path), only):
        yield maps


def attention_weights(attention: Callable[..., Tensor], query_BHQK: Tensor, key_BHMK: Tensor, *options: Any) -> Tensor:
    """The weights [B, H, Q, M] that an attention function gives to the keys. options: its arguments after the values.

    If the value of position m is the m-th unit vector, the contexts are the weights.
    """
    identity_MM = torch.eye(key_BHMK.shape[2], dtype=key_BHMK.dtype, device=key_BHMK.device)
    return attention(query_BHQK, key_BHMK, identity_MM, *options)


@contextmanager
def attention_replaced(
    model: nn.Module, attention: Callable[[str], Callable[..., Tensor]], only: str = ""
) -> Iterator[None]:
    """Inside the `with` block, attention modules compute with `attention(path)`. only: see `attention_maps`."""
    own = get_ident()

    def for_this_thread(new: Callable[..., Tensor], old: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *inputs: (new if get_ident() == own else old)(*inputs)

    modules = {
        path: module
        for path, module in model.named_modules()
        if isinstance(module, MultiHeadAttention) and only in ("", path)
    }
    with _LOCK:
        before = {path: module.attention for path, module in modules.items()}
        try:
            for path, module in modules.items():
                module.attention = for_this_thread(attention(path), before[path])
            yield
        finally:
            for path, module in modules.items():
                module.attention = before[path]
