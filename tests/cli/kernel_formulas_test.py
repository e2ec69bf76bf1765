#!/usr/bin/env python3
"""The formulas of kernels as scripts/kernels/fit_kernels.py gets them: one shape of each kind by hand, on a GPU with round numbers, and the
coordinates of its correction. tests/unit/cost_kernels_test.cpp has the same times of KernelFit.
"""
import math
import os
import subprocess
import sys

os.environ["SPECSIM_PROGRAM"] = SPECSIM = os.environ["SPECSIM"]
try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is missing (Debian: python3-numpy)")
    sys.exit(0)
sys.path.insert(0, "scripts/kernels")
import kernel_formulas  # noqa: E402

# 1 TB/s, 100 multiprocessors, arithmetic that takes no time.
GPU = {"bandwidth": 1e12, "flops": 1e20, "fp8_flops": 1e20, "int8_flops": 1e20, "fp4_flops": 1e20, "multiprocessors": 100.0,
       "compute_capability": 9.0, "link_bandwidth": 1e11}
SLOW = {**GPU, "flops": 1e12, "bandwidth": 1e20}
CACHE = {"batch": 4, "context": 1000, "heads": 32, "kv_heads": 8, "head_dim": 128}
FREE = {"memory_efficiency": 1e6, "arithmetic_efficiency": 1e6, "overlap_power": 12}
LAYER = {"hidden": 100, "inter": 100, "tp": 2, "matrices": 3, "experts": 8, "topk": 2, "tokens": 3, "skew": 0}
LAYER_US = {"memory_efficiency": 1, "arithmetic_efficiency": 1, "overlap_power": 12, "kernel_us": 5, "expert_us": 0.5, "row_us": 0.25}
ACTIVE = 8 * (1 - 0.75 ** 3)  # expected number of experts for three tokens if each takes two of eight at random


def asked(form, shape, figures, dtype="bfloat16", gpu=GPU):
    """Microseconds and coordinates of a shape. It is the second of three shapes, so that columns cannot be taken for rows."""
    columns = {name: np.array([2.0 * value + 1, value, 3.0 * value + 2]) for name, value in shape.items()}
    model = form(gpu, dtype, columns)
    first, others = model.coordinates()
    return model.us({**figures, **form.constants})[1], [first[1], *(other[1] for other in others)]


def same(found, expected):
    assert len(found) == len(expected), (found, expected)
    assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in zip(found, expected)), (found, expected)


def kind(name):
    return kernel_formulas.KINDS[name]


log2 = math.log2

# Mutants: m, n and k mixed up; activations of two bytes.
streamed = {"memory_efficiency": 0.5, "feed_tb_per_s": 1e9, "overlap_power": 12, "kernel_us": 3, "split_us": 1e6, "arithmetic_efficiency": 1,
            "whole_waves": 0.5}
us, at = asked(kind("product"), {"m": 4, "n": 2000, "k": 1000, "over_l2": 9}, streamed, "fp8")
same([us], [3 + 1e6 * (2000 * 1000 + 4 * 1000 + 2 * 4 * 2000) / 0.5e12])
# 16 tiles of 128 columns and 32 of 64 on 100 multiprocessors; few rows use no tile of 256.
same(at, [log2(4), log2(2000), log2(1000), log2(2e6), 0.16, 0.32, log2(64)])
# 101 tiles of 64 x 16 are 1.01 waves, which take as long as two if waves are whole. Mutant: whole_waves is not the seventh parameter.
us, _ = asked(kind("product"), {"m": 16, "n": 64 * 101, "k": 640}, {**streamed, "memory_efficiency": 1, "kernel_us": 0, "whole_waves": 1}, gpu=SLOW)
same([us], [1e6 * 2 * 16 * 640 * 64 * 101 / 1e12 * 2 / 1.01])

kept = 2 * 4 * 1000 * 8 * 128 * 2
us, at = asked(kind("attention_decode"), {**CACHE, "over_l2": 9},
               {"memory_efficiency": 0.8, "overlap_power": 12, "kernel_us": 7, "sequence_us": 0, "head_us": 0})
same([us], [7 + 1e6 * kept / 0.8e12])
same(at, [log2(kept), log2(1000), log2(32), log2(4), log2(4), 0.32, 7])

# Three tokens of 32 heads are 96 rows, padded to 128.
latent = {"batch": 4, "context": 1000, "heads": 32, "tokens": 3, "latent": 512, "rope_dim": 64}
us, at = asked(kind("attention_latent"), latent, {**FREE, "kernel_us": 7, "sequence_us": 2, "row_us": 0.5})
same([us], [7 + 4 * (2 + 96 * 0.5)])
same(at, [log2(4 * 1002 * 576 * 2), log2(1002), log2(4), log2(128)])

# 4 x 32 blocks are 1.28 of a wave, and a wave of two blocks takes .77 of two waves: no longer than one. Each block reads 1005 keys.
serial = {**FREE, "kernel_us": 7, "key_us": 0.5, "query_rows": 128}
several = {**CACHE, "tokens": 9}
us, at = asked(kind("attention_verify"), several, serial)
same([us], [7 + 1005 * 0.5])
same(at, [log2(9), log2(1000), log2(128), 0])
# A multiprocessor with little shared memory holds one block, and so does one whose tensor memory a prompt's kernel occupies: two waves.
for form, capability in ((kind("attention_verify"), 8.6), (kernel_formulas.form_of("attention_verify", "trtllm-gen prefill"), 10.0)):
    us, _ = asked(form, several, serial, gpu={**GPU, "compute_capability": capability})
    same([us], [7 + 2 * 1005 * 0.5])
# Four heads share keys: 9 tokens are 36 queries in a tile of 64, and 4 x 8 tiles less than a wave.
packed = kernel_formulas.form_of("attention_verify", "FlashAttention 3 decode")
us, at = asked(packed, several, serial)
same([us], [7 + 1005 * 0.5])
same(at, [log2(64), log2(1000), log2(32), log2(36)])
# Prompts: whole waves, however wide heads are.
us, at = asked(kind("attention_prefill"), {**several, "context": 0}, serial)
same([us], [7 + 2 * 5 * 0.5])
same(at, [log2(9), log2(128), log2(4), 7])

us, at = asked(kind("experts"), LAYER, LAYER_US)
same([us], [5 + 1e6 * 6 * 3 * 100 * 50 * 2 / 1e12 + 0.5 * 6 + 0.25 * 6])
same(at, [log2(3), log2(8), log2(50), log2(2), 0])
us, _ = asked(kind("experts"), {**LAYER, "skew": 1}, LAYER_US)
same([us], [5 + 1e6 * ACTIVE * 3 * 100 * 50 * 2 / 1e12 + 0.5 * ACTIVE + 0.25 * 6])

us, at = asked(kind("allreduce"), {"gpus": 4, "bytes": 1e6}, {"link_efficiency": 0.5, "kernel_us": 0, "overlap_power": 2})
same([us], [1e6 * 1.5 * 1e6 / 0.5e11])
same(at, [log2(1e6), log2(4)])

# Every kind is listed, with the start values of fits; dtypes are those of specsim kernels.
described = kernel_formulas.described()
assert set(described["kinds"]) == set(kernel_formulas.KINDS), described
for form in (*kernel_formulas.KINDS.values(), packed):
    figures = {*form.figures, *form.constants, *(("query_rows",) if form.blocks else ())}
    names = described["kinds"][form.kind]["figures"]
    assert figures <= set(names) and all(names[name] is not None for name in set(names) - figures), (form, names)
assert described["weight_bytes"]["int4_wo"] == 0.5 and described["weight_bytes"]["nvfp4"] == 0.5625, described

# A request that the program does not know ends it as bad input does.
for request, message in (('{"kind": "sum"}', 'kind is "sum"'), ("{}", "kind"), ('{"kind": "product", "rows": 0}', "rows is 0")):
    done = subprocess.run([SPECSIM, "kernel-formulas"], input=request + "\n", capture_output=True, text=True)
    assert done.returncode == 2 and message in done.stderr, done
print("formulas of kernels are those of the program")
