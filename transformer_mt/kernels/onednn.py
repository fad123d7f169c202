"""Products by oneDNN: of few different shapes, and in float32 where it is faster than MKL.

oneDNN compiles a product for each new number of rows. This takes as long as a product of many rows and fragments the
memory. So rows of zeros are added, and only a few numbers of rows occur.

PyTorch multiplies float32 matrices by MKL, which uses 512-bit instructions only on Intel's processors. AMD's have them
since Zen 4. Zen 5 computes 512 bits at once, so oneDNN, which uses them, is 2.3 times as fast there; on Zen 4 it is 1.1
to 1.6 times as fast with large weights. Small products stay with MKL, which starts sooner, and products of a few rows,
for which the weight's way from the memory takes the time.
"""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

ZEN_4, ZEN_5 = 25, 26  # the families that these processors name; Zen 4 takes two turns for a 512-bit instruction
ZEN_4_WEIGHT = 1 << 18  # numbers of a weight; with fewer, MKL is as fast on Zen 4
SMALL = 1 << 20  # multiplications; with fewer, starting oneDNN takes longer than it saves
FEW_ROWS = 4  # with fewer, the memory is the limit


@cache
def smallest_weight() -> int | None:
    """The numbers of the smallest weight with which oneDNN is faster than MKL on this CPU, in float32; None: never."""
    has_both = torch.backends.mkl.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    family = _amd_family()
    if not has_both or torch.backends.cpu.get_cpu_capability() != "AVX512" or family < ZEN_4:
        return None
    return 0 if family >= ZEN_5 else ZEN_4_WEIGHT


def _amd_family() -> int:
    """The family of a processor by AMD; 0 for others."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        text = platform.processor()
    found = re.search(r"family\s*:?\s*(\d+)", text, re.IGNORECASE)
    return int(found[1]) if found and "AuthenticAMD" in text else 0


def is_for_weight(outputs: int, inputs: int) -> bool:
    """Whether oneDNN is faster than MKL on this CPU with a float32 weight [outputs, inputs] and enough rows."""
    smallest = smallest_weight()
    return smallest is not None and outputs * inputs >= smallest


def is_for(x: Tensor, outputs: int) -> bool:
    """Whether a product of x [..., D] with a matrix [outputs, D] is one for oneDNN instead of MKL.

    On Zen 4 only in inference mode, as in searches and validation: a training gains at most 13 % and needs up to 1 GiB
    more.
    """
    is_float32_here = x.dtype is torch.float32 and x.is_cpu and not torch.compiler.is_compiling()
    if not is_float32_here or x.numel() * outputs < SMALL or x.numel() < FEW_ROWS * x.shape[-1]:
        return False
    return is_for_weight(outputs, x.shape[-1]) and (smallest_weight() == 0 or torch.is_inference_mode_enabled())


def linear(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor | None = None) -> Tensor:
    """x W^T + b [N, E], without gradients, by the library that `is_for` chooses."""
    if not is_for(x_ND, len(weight_ED)):
        return F.linear(x_ND, weight_ED, bias_E)
    return _product(with_rows_of_zeros(x_ND), weight_ED, bias_E)[: len(x_ND)]


def product_of_columns(g_NE: Tensor, x_ND: Tensor) -> Tensor:
    """g^T x [E, D], without gradients, by the library that `is_for` chooses."""
    if not is_for(x_ND, g_NE.shape[1]):
        return g_NE.T @ x_ND
    g_EM, x_DM = with_rows_of_zeros(g_NE).T, with_rows_of_zeros(x_ND).T
    return _product(x_DM, g_EM).T if len(x_DM) <= len(g_EM) else _product(g_EM, x_DM)  # the faster way round


def _product(x_ND: Tensor, weight_ED: Tensor, bias_E: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(_dense(x_ND), _dense(weight_ED), bias_E, "none", [], "")


def _dense(matrix: Tensor) -> Tensor:
    """The matrix, row after row or column after column; oneDNN takes a thousand times as long for parts of one."""
    return matrix if matrix.is_contiguous() or matrix.T.is_contiguous() else matrix.contiguous()


def round_up_rows(rows: int, least: int) -> int:
    """`rows`, or a little more: a multiple of `least`, and only eight numbers between a power of two and the next."""
    step = max(least, (1 << rows.bit_length()) >> 4)
    return -(-rows // step) * step


def with_rows_of_zeros(x_ND: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """x [N, D] in `dtype`, with rows of zeros, so that few numbers of rows occur."""
    missing = round_up_rows(len(x_ND), 1 if dtype is torch.float32 else 64) - len(x_ND)
    if not missing:
        return x_ND.to(dtype)
    x_MD = x_ND.new_empty(len(x_ND) + missing, x_ND.shape[1], dtype=dtype)
    x_MD[: len(x_ND)] = x_ND
    x_MD[len(x_ND) :] = 0
    return x_MD
