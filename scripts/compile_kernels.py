#!/usr/bin/env python3
"""Compile our Triton kernels for a GPU that need not be there, and print the registers and the shared memory they need.

    pip install triton==3.6.0
    python scripts/compile_kernels.py [--capability 90]

A spill of more than a few bytes, or more than about 200 registers, slows a kernel down.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    import triton
    import triton.backends.nvidia
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from transformer_mt.kernels import logits, past_attention, span_attention
except ImportError as error:
    print(f"compile_kernels.py: {error}; it needs Triton:  pip install triton==3.6.0", file=sys.stderr)
    raise SystemExit(2) from None

PTXAS = Path(triton.backends.nvidia.__file__).parent / "bin" / "ptxas"
TYPES = {"bfloat16": "bf16", "float32": "fp32"}
NUMBERS = {"scale": "fp32"}  # all other arguments that are no tensors are whole numbers
FLOAT32 = {"log_sum", "log_sums"}
INT32 = {"starts_q", "starts_k"}
UNEVEN = re.compile(r"n_keys|n_blocks|heads|bias_.|scale")  # arguments that may not be multiples of 16


def registers(
    kernel: Any, tensors: set[str], constants: dict[str, Any], dtype: str, capability: int, warps: int = 1
) -> str:
    """How many registers, bytes of spilled registers, and bytes of shared memory a kernel needs. tensors: by name"""
    types = dict.fromkeys(tensors, f"*{TYPES[dtype]}")
    types |= dict.fromkeys(FLOAT32, "*fp32") | dict.fromkeys(INT32, "*i32") | NUMBERS
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in names}
    even = {(names.index(name),): [["tt.divisibility", 16]] for name in names if not UNEVEN.fullmatch(name)}
    source = ASTSource(
        kernel,
        signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={place: value for place, value in even.items() if names[place[0]] not in constants},
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx")
        file.write_text(compiled.asm["ptx"], encoding="utf-8")
        architecture = re.search(r"\.target (\w+)", compiled.asm["ptx"])[1]  # type: ignore[index]
        command = [PTXAS, "-v", f"-arch={architecture}", file, "-o", Path(folder, "kernel.cubin")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    used, spilled = (int(re.search(text, said)[1]) for text in (r"Used (\d+) registers", r"(\d+) bytes spill stores"))  # type: ignore[index]
    return f"{used:>9} {spilled:>7} {compiled.metadata.shared:>7,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--capability", type=int, default=90, help="compute capability of the GPU (90: H100)")
    capability = parser.parse_args().capability
    print(f"{'kernel':<34} {'numbers':<9} {'head':>4} registers spilled  shared")
    past = {"query", "key", "value", "bias", "context"}
    span = past - {"bias"} | {"of_context", "of_query", "of_key", "of_value"}
    for dtype in TYPES:
        for width in (32, 64, 128):
            for queries in (1, 5):
                constants = {"HAS_BIAS": True, "WIDTH": width, **past_attention.sizes(queries, width)}
                row = registers(past_attention._attend, past, constants, dtype, capability)
                print(f"{f'past, queries: {queries}':<34} {dtype:<9} {width:>4} {row}")
            constants = {"CAUSAL": True, "WIDTH": width, "SIZE": span_attention.BLOCK}
            for name in ("_forward", "_backward"):
                row = registers(getattr(span_attention, name), span, constants, dtype, capability)
                print(f"{f'spans, causal, {name[1:]}':<34} {dtype:<9} {width:>4} {row}")
        for kernel, warps, blocks in ((logits._log_sum, 8, {}), (logits._highest, 4, {"BLOCK": 64})):
            tensors, constants = {"logits", "log_sums", "highest"}, {"SIZE": logits.SIZE, **blocks}
            row = registers(kernel, tensors, constants, dtype, capability, warps)
            print(f"{f'logits, {kernel.fn.__name__[1:]}':<34} {dtype:<9} {'':>4} {row}")


if __name__ == "__main__":
    main()
