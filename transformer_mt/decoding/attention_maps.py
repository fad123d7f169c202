"""Looking at attention from outside: for a while, modules get an attention that remembers its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from transformer_mt.model.attention import scaled_dot_product_attention
from transformer_mt.model.multi_head_attention import MultiHeadAttention


@contextmanager
def attention_maps(model: nn.Module, only: str = "") -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights [B, H, Q, M] of each attention module, by its path in the model.

    only: the path of the one module that is wanted. Of a large batch, the weights of all would fill the memory.
    """
    maps: dict[str, Tensor] = {}

    def remember(
        path: str,
        query_BHQK: Tensor,
        key_BHMK: Tensor,
        value_BHMK: Tensor,
        mask_BHQM: Tensor | None = None,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> Tensor:
        identity_MM = torch.eye(key_BHMK.shape[2], dtype=value_BHMK.dtype, device=value_BHMK.device)
        # If the value of position m is the m-th unit vector, the contexts are the weights.
        weights_BHQM = scaled_dot_product_attention(query_BHQK, key_BHMK, identity_MM, mask_BHQM, causal, dropout)
        maps[path] = weights_BHQM.detach().to(torch.float32)
        return weights_BHQM @ value_BHMK

    with attention_replaced(model, lambda path: partial(remember, path), only):
        yield maps


@contextmanager
def attention_replaced(
    model: nn.Module, attention: Callable[[str], Callable[..., Tensor]], only: str = ""
) -> Iterator[None]:
    """Let attention modules compute with `attention(path)` for a while. only: the path of one module; else all."""
    modules = {path: one for path, one in model.named_modules() if isinstance(one, MultiHeadAttention)}
    before = {path: module.attention for path, module in modules.items()}
    try:
        for path, module in modules.items():
            if only in ("", path):
                module.attention = attention(path)
        yield
    finally:
        for path, module in modules.items():
            module.attention = before[path]
