"""Products by oneDNN: of few different shapes, and in float32 where it is faster than MKL.

oneDNN compiles a product for each new number of rows. This takes as long as the product itself and fragments the
memory. So rows of zeros are added, and only a few numbers of rows occur.

PyTorch multiplies float32 matrices by MKL, which uses 512-bit instructions only on Intel's processors. AMD's compute
512 bits at once from Zen 5 on, and oneDNN uses that: it is 2.3 times as fast there. Small products stay with MKL, which
starts sooner.
"""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS = 64  # the rows of a product are a multiple of this
ZEN_5 = 26  # the family that AMD's processors name from Zen 5 on; Zen 4 has 512-bit instructions that take two turns
SMALL = 1 << 20  # multiplications; with fewer, starting oneDNN takes longer than it saves


@cache
def beats_mkl() -> bool:
    """Whether oneDNN multiplies float32 matrices faster than PyTorch's usual library on this CPU."""
    has_both = torch.backends.mkl.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return has_both and torch.backends.cpu.get_cpu_capability() == "AVX512" and _amd_family() >= ZEN_5


def _amd_family() -> int:
    """The family of a processor by AMD; 0 for others."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = platform.processor()
    found = re.search(r"family\s*:?\s*(\d+)", text, re.IGNORECASE)
    return int(found[1]) if found and "AuthenticAMD" in text else 0


def is_for(x: Tensor, outputs: int) -> bool:
    """Whether a product of x [..., D] with a matrix [outputs, D] is one for oneDNN instead of MKL."""
    is_float32_here = x.dtype is torch.float32 and x.device.type == "cpu" and not torch.compiler.is_compiling()
    return is_float32_here and x.numel() * outputs >= SMALL and beats_mkl()


def packed(weight_ED: Tensor) -> Tensor:
    """The weight in oneDNN's own arrangement, which only `linear` can read, where `is_for` holds."""
    return torch.ops.mkldnn._reorder_linear_weight(weight_ED.contiguous(), None)


def linear(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor | None = None) -> Tensor:
    """x W^T + b [N, E], without gradients, by the faster library."""
    if not is_for(x_ND, len(weight_ED)):
        return F.linear(x_ND, weight_ED, bias_E)
    return _product(with_rows_of_zeros(x_ND), weight_ED, bias_E)[: len(x_ND)]


def product_of_columns(g_NE: Tensor, x_ND: Tensor) -> Tensor:
    """g^T x [E, D], without gradients, by the faster library."""
    if not is_for(x_ND, g_NE.shape[1]):
        return g_NE.T @ x_ND
    return _product(with_rows_of_zeros(x_ND).T, with_rows_of_zeros(g_NE).T, None).T  # faster than the other way round


def _product(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(_dense(x_ND), _dense(weight_ED), bias_E, "none", [], "")


def _dense(matrix: Tensor) -> Tensor:
    """The matrix, row after row or column after column; oneDNN takes a thousand times as long for parts of one."""
    is_dense = matrix.is_mkldnn or matrix.is_contiguous() or matrix.T.is_contiguous()
    return matrix if is_dense else matrix.contiguous()


def round_up_rows(rows: int) -> int:
    """`rows`, or up to 63 or an eighth more: only eight numbers occur between a power of two and the next."""
    step = max(ROWS, (1 << rows.bit_length()) >> 4)
    return -(-rows // step) * step


def with_rows_of_zeros(x_ND: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """x [N, D] in `dtype` (default: its own), with rows of zeros up to `round_up_rows(N)`."""
    dtype, missing = dtype or x_ND.dtype, round_up_rows(len(x_ND)) - len(x_ND)
    if not missing:
        return x_ND.to(dtype)
    x_MD = x_ND.new_empty(len(x_ND) + missing, x_ND.shape[1], dtype=dtype)
    x_MD[: len(x_ND)] = x_ND
    x_MD[len(x_ND) :] = 0
    return x_MD
