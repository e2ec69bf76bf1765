"""The formulas of kernels over whole arrays, computed by the program (sim/hardware/gpu/kernel_formulas.cpp), and the settings of their fits
by kind: start values and bounds of parameters, and knots of corrections.

The program is SPECSIM_PROGRAM, by default build/specsim. One process of it evaluates one formula on one set of shapes, over pipes
(sim/doors/cli/command.h, kernel_formulas_command).
"""
import contextlib
import functools
import json
import os
import subprocess
import sys

import numpy as np

from kernel_sources import PACKED

PROGRAM = os.environ.get("SPECSIM_PROGRAM", "build/specsim")
GPU_FIGURES = ("bandwidth", "flops", "fp8_flops", "int8_flops", "fp4_flops", "multiprocessors", "compute_capability", "link_bandwidth")
MOST_FIGURES = 7  # the number of values sent for each shape, whatever the kind
SHARES = [2.0 ** e for e in (0.25, 0.5, 0.75, 1)]  # knots of a share, which has no logarithm


def read_hardware(folder):
    """The figures of configs/hardware/*.yaml that formulas need, in bytes and operations per second."""
    import yaml
    gpus = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".yaml"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                y = yaml.safe_load(file)
            gpus[name[:-5]] = {
                "bandwidth": 1e9 * y["bandwidth_gb_per_s"], "flops": 1e12 * y["bf16_tflops"],
                "fp8_flops": 1e12 * y.get("fp8_tflops", y["bf16_tflops"]), "int8_flops": 1e12 * y.get("int8_tops", y["bf16_tflops"]),
                "fp4_flops": 1e12 * y.get("fp4_tflops", y.get("fp8_tflops", y["bf16_tflops"])),
                "multiprocessors": float(y["multiprocessors"]), "compute_capability": float(y.get("compute_capability", 0)),
                "link_bandwidth": 1e9 * y.get("link_gb_per_s", 32), "l2": 1e6 * y.get("l2_mb", 50), "kernels": y.get("kernels", name[:-5])}
    return gpus


def started(program):
    try:
        return subprocess.Popen([program, "kernel-formulas"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        sys.exit(f"{program} computes the formulas of kernels and cannot be started ({error.strerror}): build it, or name it in SPECSIM_PROGRAM")


@functools.lru_cache(maxsize=None)
def described(program=PROGRAM):
    """The formulas by kind: {"figures": {name: default value, or None if a fit must state it}, "coordinates": their number}; "weight_bytes" of an
    element by dtype, including block scales; "ungated_layers" and "always_gated" (matrices_of_expert)."""
    answer, _ = started(program).communicate(b"")
    return json.loads(answer) if answer else sys.exit(f"{program} computes no formulas of kernels: rebuild it")


def weight_bytes(program=PROGRAM):
    return described(program)["weight_bytes"]


def matrices_of_expert(row):
    """Matrices of an expert: 3 with a gate, 2 without, from the column `gated` of a table of experts, or else from the layer, as `specsim kernels`
    reads it."""
    if row.get("gated"):
        return 3.0 if row["gated"] == "yes" else 2.0
    always = [row["engine"], row.get("version", "")] == described()["always_gated"]
    layer = [float(row["hidden"]), float(row["inter"])]
    return 2.0 if layer in described()["ungated_layers"] and not always else 3.0


class Form:
    """A formula on the shapes `x`, a dict of arrays of equal length. Each kind has its parameters (start, least, most), and the knots of its
    correction over the first coordinate and the others."""
    tells_constants = False  # whether a fit gives the value of a coordinate that is the same in all rows
    reads_keys = "unused"    # sim/hardware/gpu/kernels.h, KeyReading
    blocks = ()              # values of query_rows, the queries of a block, of which the best is used
    constants = {}           # parameters that are not fitted

    def __init__(self, hardware, dtype, x):
        columns = self.shapes(x)
        self.rows = len(next(iter(columns.values())))
        self.figure_names = described()["kinds"][self.kind]["figures"]
        self.program = started(PROGRAM)
        self.program.stdout.readline()  # described() has read it
        request = {"kind": self.kind, "dtype": dtype, "reads_keys": self.reads_keys, "gpu": {name: hardware[name] for name in GPU_FIGURES},
                   "columns": list(columns), "rows": self.rows}
        self.send(json.dumps(request).encode() + b"\n", *(np.asarray(column, dtype=float) for column in columns.values()))

    def __del__(self):
        if hasattr(self, "program"):
            with contextlib.suppress(BrokenPipeError):
                self.program.stdin.close()
            self.program.stdout.close()
            self.program.wait()

    def shapes(self, x):
        """The columns by the names that KernelShape has for them."""
        return {name: column for name, column in x.items() if name != "over_l2"}

    def send(self, head, *arrays):
        try:
            self.program.stdin.write(head + b"".join(array.tobytes() for array in arrays))
            self.program.stdin.flush()
        except BrokenPipeError:
            sys.exit(f"{PROGRAM} computes no formula {self.kind}: status {self.program.wait()}")

    def ask(self, what, figures, count):
        values = np.zeros(MOST_FIGURES)
        for i, (name, usual) in enumerate(self.figure_names.items()):
            values[i] = figures.get(name, usual or 0.0)
        self.send(what, values)
        answer = self.program.stdout.read(8 * count * self.rows)
        if len(answer) != 8 * count * self.rows:
            sys.exit(f"{PROGRAM} computes no formula {self.kind}: status {self.program.wait()}")
        return np.frombuffer(answer).reshape(self.rows, count)

    def us(self, figures):
        """Microseconds of each shape, without a correction."""
        return self.ask(b"t", figures, 1)[:, 0]

    def coordinates(self):
        """The first coordinate of the correction, and a list of the others; most are logarithms to base 2."""
        first, *others = self.ask(b"c", self.constants, described()["kinds"][self.kind]["coordinates"]).T
        return first, others


class Product(Form):
    kind = "product"
    figures = {"memory_efficiency": (0.82, 0.2, 1.05), "feed_tb_per_s": (15, 1, 500), "overlap_power": (3, 1, 12),
               "kernel_us": (4, 0.05, 60), "split_us": (2, 0.05, 40), "arithmetic_efficiency": (0.9, 0.1, 1.1), "whole_waves": (0.6, 0.01, 0.99)}
    # Libraries change kernels after 16, 32, 64, ... rows: two knots make a step. One row is a step too: vLLM's CUTLASS kernel for fp8 on a B200 takes
    # 14 us more for one row than for two.
    over = [1, 2, 8, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 192, 193, 256, 257, 512]
    # Columns of a tile of 256 rows if one wave is enough, which libraries prefer: DeepGEMM's tiles of 96 to 128 columns take twice the time on a
    # Hopper.
    by = [[512, 2048, 8192, 65536], [512, 2048, 8192, 65536], [2.0 ** e for e in (20, 22, 24, 26, 28)], SHARES, SHARES,
          [64, 80, 88, 96, 104, 112, 120, 128, 144]]

    def shapes(self, x):
        return {"rows": x["m"], "outer": x["n"], "inner": x["k"]}


class Decode(Form):
    kind = "attention_decode"
    figures = {"memory_efficiency": (0.8, 0.1, 1.05), "overlap_power": (3, 1, 12), "kernel_us": (10, 0.5, 60),
               "sequence_us": (0.2, 0.001, 20), "head_us": (0.01, 1e-5, 5)}
    over = [2.0 ** e for e in (14, 18, 20, 22, 24, 25, 26, 27, 28, 30, 32)]
    by = [[2.0 ** e for e in (1, 7, 9, 11, 13, 17)], [1, 4, 16, 64, 256, 4096], [1, 2, 4, 8, 16, 64], [1, 4, 16, 64, 256, 1024], SHARES,
          [64, 128]]


class Latent(Form):
    kind = "attention_latent"
    figures = {"memory_efficiency": (0.8, 0.02, 1.05), "arithmetic_efficiency": (0.6, 0.02, 1.1), "overlap_power": (2, 1, 12),
               "kernel_us": (10, 0.5, 60), "sequence_us": (0.05, 0.001, 20), "row_us": (0.001, 1e-5, 1)}
    over = [2.0 ** e for e in (10, 14, 18, 20, 22, 24, 25, 26, 27, 28, 30, 32)]
    by = [[1, 32, 512, 2048, 8192, 32768, 131072], [1, 4, 16, 64, 256, 1024], [1, 8, 16, 32, 64, 128]]


class Verify(Form):
    """Attention of several query tokens over a cache, with blocks that read the keys one after the other."""
    kind = "attention_verify"
    figures = {"memory_efficiency": (0.7, 0.05, 1.05), "arithmetic_efficiency": (0.5, 0.02, 1.0), "overlap_power": (3, 1, 12),
               "kernel_us": (8, 0.5, 60), "key_us": (0.02, 1e-5, 1)}
    blocks = (128, 64)
    over = [1, 16, 64, 128, 256, 512, 1024, 4096]
    by = [[64, 512, 2048, 8192, 32768], [1, 32, 256, 2048]]


class Alone(Verify):
    """A kernel for prompts whose blocks occupy a multiprocessor each, because of its tensor memory."""
    reads_keys = "prompt"


class Packed(Verify):
    """Queries of heads that share keys, in tiles of 64 rows if they fit and otherwise 128, as in FlashAttention 3's one or two warp groups
    (hopper/tile_size.h)."""
    blocks = (128,)
    constants = {"packed_rows": 64}
    over = [64, 128, 256]
    by = [[512, 2048, 8192, 32768], [1, 8, 64, 256, 1024], [1, 2, 64]]


class Prefill(Verify):
    kind = "attention_prefill"
    blocks = (128,)
    over = [1, 16, 64, 256, 1024, 4096, 16384]
    by = [[1, 4, 16, 64, 256, 1024], [1, 2, 4, 8, 16, 64], [64, 128]]


class Experts(Form):
    kind = "experts"
    tells_constants = True  # if a table has one layer, the fit gives its value: other layers have other estimates
    figures = {"memory_efficiency": (0.7, 0.05, 1.05), "arithmetic_efficiency": (0.6, 0.02, 1.1), "overlap_power": (3, 1, 12),
               "kernel_us": (25, 1, 300), "expert_us": (0.05, 1e-4, 5), "row_us": (0.005, 1e-5, 2)}
    over = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]
    by = [[8, 64, 256, 512], [64, 256, 1024, 4096, 16384], [1, 2, 8], [1, 2 ** 1.01, 2 ** 1.2]]

    def shapes(self, x):
        return {"tokens": x["tokens"], "hidden": x["hidden"], "expert_width": x["inter"] / x["tp"], "matrices": x["matrices"],
                "experts": x["experts"], "experts_per_token": x["topk"], "skew": x["skew"]}


class AllReduce(Form):
    kind = "allreduce"
    figures = {"link_efficiency": (0.6, 0.01, 1.2), "kernel_us": (8, 0.5, 100), "overlap_power": (2, 1, 12)}
    over = [2.0 ** e for e in (8, 12, 14, 16, 18, 20, 22, 26)]
    by = [[2, 8]]


# Words in the names of measured kernels (the first match counts), and the way that the kernel reads the keys (sim/hardware/gpu/kernels.h).
READINGS = (("decode", "grown"), ("split restored", "shared"), ("varlen", "walked"), ("no split", "walked"), ("trtllm-gen prefill", "prompt"))


def reads_keys(kernel):
    return next((reading for word, reading in READINGS if word in kernel), "unused")


def form_of(kind, kernel):
    """The formula that estimates a measured kernel."""
    if kernel == PACKED:
        return Packed
    return Alone if kind == "attention_verify" and reads_keys(kernel) == "prompt" else KINDS[kind]


KINDS = {c.kind: c for c in (Product, Decode, Latent, Prefill, Verify, Experts, AllReduce)}
