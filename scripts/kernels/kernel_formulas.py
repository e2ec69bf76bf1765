"""The formulas of kernels that scripts/kernels/fit_kernels.py fits, by kind; sim/hardware/gpu/kernel_formulas.cpp holds the same ones."""
import os

import numpy as np

from kernel_sources import PACKED


def read_hardware(folder):
    """The figures of configs/hardware/*.yaml that formulas need."""
    import yaml
    gpus = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".yaml"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                y = yaml.safe_load(file)
            gpus[name[:-5]] = {
                "bandwidth": 1e9 * y["bandwidth_gb_per_s"], "bf16": 1e12 * y["bf16_tflops"],
                "fp8": 1e12 * y.get("fp8_tflops", y["bf16_tflops"]), "int8": 1e12 * y.get("int8_tops", y["bf16_tflops"]),
                "fp4": 1e12 * y.get("fp4_tflops", y.get("fp8_tflops", y["bf16_tflops"])),
                "multiprocessors": float(y["multiprocessors"]), "l2": 1e6 * y.get("l2_mb", 50), "link": 1e9 * y.get("link_gb_per_s", 32),
                "kernels": y.get("kernels", name[:-5]), "capability": float(y.get("compute_capability", 0))}
    return gpus


# Bytes of a weight and of an activation, and the arithmetic. Block scales count as weights.
DTYPES = {"bfloat16": (2, 2, "bf16"), "float16": (2, 2, "bf16"), "fp8": (1, 1, "fp8"), "fp8_block": (1, 1, "fp8"),
          "int8_wo": (1, 2, "bf16"), "int4_wo": (0.5, 2, "bf16"), "sq": (1, 1, "int8"), "nvfp4": (0.5625, 0.5625, "fp4"),
          "w4a16_mxfp4": (0.53125, 2, "bf16"), "w4a8_mxfp4_mxfp8": (0.53125, 1, "fp8"), "int8": (1, 1, "int8")}

TILES = [(64, 16), (64, 32), (64, 64), (64, 128), (128, 16), (128, 32), (128, 64), (128, 128), (128, 256), (256, 128)]
SPLITS = [1, 2, 3, 4, 6, 8, 16]
SHARES = [2.0 ** e for e in (0.25, 0.5, 0.75, 1)]  # knots of a share, which is looked at as it is


def norm(p, *parts):
    big = np.maximum.reduce(parts)
    return big * sum((part / big) ** p for part in parts) ** (1 / p)


def last_wave(waves):
    """How full waves are, of which the last one is not."""
    return waves / np.ceil(waves)


class Product:
    kind = "product"
    figures = {"memory_efficiency": (0.82, 0.2, 1.05), "feed_tb_per_s": (15, 1, 500), "overlap_power": (3, 1, 12),
               "kernel_us": (4, 0.05, 60), "split_us": (2, 0.05, 40), "arithmetic_efficiency": (0.9, 0.1, 1.1), "whole_waves": (0.6, 0.01, 0.99)}
    # Libraries change kernels after 16, 32, 64, ... rows: two knots make a step.
    # One row is a step too: vLLM's CUTLASS kernel for fp8 on a B200 takes 14 us more for it than for two.
    over = [1, 2, 8, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 192, 193, 256, 257, 512]
    by = [[512, 2048, 8192, 65536], [512, 2048, 8192, 65536], [2.0 ** e for e in (20, 22, 24, 26, 28)], SHARES, SHARES,
          [64, 80, 88, 96, 104, 112, 120, 128, 144]]

    def __init__(self, hardware, dtype, x):
        self.m, self.n, self.k = x["m"], x["n"], x["k"]
        self.b, self.a, arithmetic = DTYPES[dtype]
        self.h, self.peak = hardware, hardware[arithmetic]
        waves, work, feed, split = [], [], [], []
        for tile_m, tile_n in TILES:
            for s in SPLITS:
                waves.append(np.ceil(self.n / tile_m) * np.ceil(self.m / tile_n) * s / hardware["multiprocessors"])
                inner = 64 * np.ceil(self.k / s / 64)
                work.append(inner * 2 * tile_m * tile_n)
                feed.append(inner * (tile_m * self.b + np.minimum(tile_n, self.m) * self.a))
                split.append(np.full(len(self.m), float(s)))
        self.waves, self.work, self.feed, self.split = (np.array(v) for v in (waves, work, feed, split))

    def us(self, f):
        memory = (self.n * self.k * self.b + self.m * self.k * self.a + 2 * self.m * self.n) / (
            self.h["bandwidth"] * f["memory_efficiency"])
        waves = f["whole_waves"] * np.ceil(self.waves) + (1 - f["whole_waves"]) * np.maximum(self.waves, 1)
        feed = 1e12 * f["feed_tb_per_s"]
        units = self.h["multiprocessors"]
        core = waves * np.maximum(self.work / (self.peak * f["arithmetic_efficiency"] / units), self.feed / (feed / units))
        core += np.where(self.split > 1, 8 * self.split * self.m * self.n / feed + 1e-6 * f["split_us"], 0)
        return 1e6 * norm(f["overlap_power"], memory, core.min(0)) + f["kernel_us"]

    def coordinates(self):
        def fill(tile):
            return last_wave(np.ceil(self.n / tile) * np.ceil(self.m / tile) / self.h["multiprocessors"])
        # Columns of a tile of 256 rows if one wave is to do, which libraries prefer: DeepGEMM's tiles of 96 to 128 columns take twice the
        # time on a Hopper. Up to 192 rows nothing takes such tiles.
        wide = np.where(self.m > 192, np.ceil(self.m / 256) * self.n / self.h["multiprocessors"], 64)
        return np.log2(self.m), [np.log2(self.n), np.log2(self.k), np.log2(self.n * self.k), fill(128), fill(64), np.log2(np.clip(wide, 16, 512))]


class Decode:
    kind = "attention_decode"
    figures = {"memory_efficiency": (0.8, 0.1, 1.05), "overlap_power": (3, 1, 12), "kernel_us": (10, 0.5, 60),
               "sequence_us": (0.2, 0.001, 20), "head_us": (0.01, 1e-5, 5)}
    over = [2.0 ** e for e in (14, 18, 20, 22, 24, 25, 26, 27, 28, 30, 32)]
    by = [[2.0 ** e for e in (1, 7, 9, 11, 13, 17)], [1, 4, 16, 64, 256, 4096], [1, 2, 4, 8, 16, 64], [1, 4, 16, 64, 256, 1024], SHARES,
          [64, 128]]

    def __init__(self, hardware, dtype, x):
        self.h = hardware
        self.b = DTYPES[dtype][0]
        self.batch, self.context, self.heads, self.kv, self.dim = (x[c] for c in ("batch", "context", "heads", "kv_heads", "head_dim"))
        self.bytes = 2 * self.batch * self.context * self.kv * self.dim * self.b

    def us(self, f):
        memory = 1e6 * self.bytes / (self.h["bandwidth"] * f["memory_efficiency"])
        rows = self.batch * f["sequence_us"] + self.batch * self.heads * f["head_us"]
        return f["kernel_us"] + norm(f["overlap_power"], memory, rows)

    def coordinates(self):
        return np.log2(self.bytes), [np.log2(self.context), np.log2(self.batch * self.kv), np.log2(self.heads / self.kv), np.log2(self.batch),
                                     last_wave(self.batch * self.kv / self.h["multiprocessors"]), np.log2(self.dim)]


class Latent:
    """Attention over cached vectors that all heads share: the queries of all heads and new tokens are the rows of one product."""
    kind = "attention_latent"
    figures = {"memory_efficiency": (0.8, 0.02, 1.05), "arithmetic_efficiency": (0.6, 0.02, 1.1), "overlap_power": (2, 1, 12),
               "kernel_us": (10, 0.5, 60), "sequence_us": (0.05, 0.001, 20), "row_us": (0.001, 1e-5, 1)}
    over = [2.0 ** e for e in (10, 14, 18, 20, 22, 24, 25, 26, 27, 28, 30, 32)]
    by = [[1, 32, 512, 2048, 8192, 32768, 131072], [1, 4, 16, 64, 256, 1024], [1, 8, 16, 32, 64, 128]]

    def __init__(self, hardware, dtype, x):
        self.h = hardware
        self.b, _, arithmetic = DTYPES[dtype]
        self.peak = hardware[arithmetic]
        self.batch = x["batch"]
        self.rows = x["heads"] * x["tokens"]
        self.keys = x["context"] + 0.5 * (x["tokens"] + 1)
        self.bytes = self.batch * self.keys * (x["latent"] + x["rope_dim"]) * self.b
        self.tiled = 64 * np.ceil(self.rows / 64)
        self.operations = 2 * (2 * x["latent"] + x["rope_dim"]) * self.batch * self.keys * self.tiled

    def us(self, f):
        memory = 1e6 * self.bytes / (self.h["bandwidth"] * f["memory_efficiency"])
        arithmetic = 1e6 * self.operations / (self.peak * f["arithmetic_efficiency"])
        return f["kernel_us"] + norm(f["overlap_power"], memory, arithmetic, self.batch * (f["sequence_us"] + self.rows * f["row_us"]))

    def coordinates(self):
        return np.log2(self.bytes), [np.log2(self.keys), np.log2(self.batch), np.log2(np.where(self.rows <= 64, self.rows, self.tiled))]


class Verify:
    """Attention of several query tokens over a cache, blocks that walk the keys one after the other."""
    kind = "attention_verify"
    figures = {"memory_efficiency": (0.7, 0.05, 1.05), "arithmetic_efficiency": (0.5, 0.02, 1.0), "overlap_power": (3, 1, 12),
               "kernel_us": (8, 0.5, 60), "key_us": (0.02, 1e-5, 1)}
    blocks = (128, 64)  # query_rows: queries of a block, whichever follows the times better
    over = [1, 16, 64, 128, 256, 512, 1024, 4096]
    by = [[64, 512, 2048, 8192, 32768], [1, 32, 256, 2048]]

    def __init__(self, hardware, dtype, x):
        self.h = hardware
        self.b = DTYPES[dtype][0]
        self.batch, self.tokens, self.context, self.heads, self.kv, self.dim = (
            x[c] for c in ("batch", "tokens", "context", "heads", "kv_heads", "head_dim"))

    def us(self, f):
        keys = self.context + 0.5 * (self.tokens + 1)
        memory = 1e6 * 2 * self.batch * (self.context + self.tokens) * self.kv * self.dim * self.b / (
            self.h["bandwidth"] * f["memory_efficiency"])
        arithmetic = 1e6 * 4 * self.batch * self.heads * self.dim * self.tokens * keys / (self.h["bf16"] * f["arithmetic_efficiency"])
        blocks = self.batch * self.heads * np.ceil(self.tokens / f.get("query_rows", 128)) / self.h["multiprocessors"]
        serial = self.waves(blocks) * keys * f["key_us"] * self.walked_width()
        return f["kernel_us"] + norm(f["overlap_power"], memory, arithmetic, serial)

    def small_memory(self):
        """Whether a multiprocessor has the shared memory of consumers' chips: one block of FlashAttention 2, where others hold two."""
        return 8.0 < self.h["capability"] < 9.0 or self.h["capability"] >= 12.0

    def waves(self, blocks):
        """How often as long as one block all take, `blocks` for each multiprocessor; results/gpu/h200-sxm: two go at 1.3 times the pace
        of one."""
        return np.ceil(blocks) if self.small_memory() else np.maximum(1, 0.77 * blocks)

    def walked_width(self):
        """Times as long a key as with heads of 128. A block loads keys and values as wide as a head; results/gpu/h200-sxm has .0114 us
        with 64, .0192 with 128, .0364 with 256."""
        return self.dim / 128 if self.small_memory() else 0.19 + 0.81 * self.dim / 128

    def coordinates(self):
        return np.log2(self.tokens), [np.log2(np.maximum(self.context, 1)), np.log2(self.batch * self.heads)]


class Alone(Verify):
    """A kernel for prompts whose blocks take a multiprocessor each, for its tensor memory."""

    def waves(self, blocks):
        return np.ceil(blocks)


class Packed(Verify):
    """Queries of heads that share keys, laid below each other as the rows of tiles: one of `packed_rows` where they fit, else several of
    `query_rows`. Each tile reads the keys. FlashAttention 3: hopper/tile_size.h, one warp group's 64 rows or two's 128."""
    blocks = (128,)
    packed_rows = 64
    over = [64, 128, 256]
    by = [[512, 2048, 8192, 32768], [1, 8, 64, 256, 1024], [1, 2, 64]]

    def rows(self):
        queries = self.tokens * self.heads / self.kv
        tiles = np.ceil(queries / self.blocks[0])
        return queries, tiles, np.where(queries <= self.packed_rows, self.packed_rows, self.blocks[0] * tiles)

    def us(self, f):
        _, tiles, padded = self.rows()
        keys = self.context + 0.5 * (self.tokens + 1)
        memory = 1e6 * 2 * self.batch * (self.context + self.tokens) * self.kv * self.dim * self.b / (
            self.h["bandwidth"] * f["memory_efficiency"])
        arithmetic = 1e6 * 4 * self.batch * self.kv * self.dim * padded * keys / (self.h["bf16"] * f["arithmetic_efficiency"])
        blocks = self.batch * self.kv * tiles / self.h["multiprocessors"]
        return f["kernel_us"] + norm(f["overlap_power"], memory, arithmetic, np.maximum(1, blocks) * keys * f["key_us"])

    def coordinates(self):
        queries, _, padded = self.rows()
        return np.log2(padded), [np.log2(np.maximum(self.context, 1)), np.log2(self.batch * self.kv),
                                 np.log2(np.minimum(queries, self.packed_rows))]


class Prefill(Verify):
    kind = "attention_prefill"
    blocks = (128,)
    over = [1, 16, 64, 256, 1024, 4096, 16384]
    by = [[1, 4, 16, 64, 256, 1024], [1, 2, 4, 8, 16, 64], [64, 128]]

    def waves(self, blocks):
        return np.ceil(blocks)

    def walked_width(self):
        return 1.0  # heads of several widths were measured: the correction tells

    def coordinates(self):
        return np.log2(self.tokens), [np.log2(self.batch * self.heads), np.log2(self.heads / self.kv), np.log2(self.dim)]


class Experts:
    kind = "experts"
    tells_constants = True  # where a table has one layer the fit says which: others are priced otherwise
    figures = {"memory_efficiency": (0.7, 0.05, 1.05), "arithmetic_efficiency": (0.6, 0.02, 1.1), "overlap_power": (3, 1, 12),
               "kernel_us": (25, 1, 300), "expert_us": (0.05, 1e-4, 5), "row_us": (0.005, 1e-5, 2)}
    over = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]
    by = [[8, 64, 256, 512], [64, 256, 1024, 4096, 16384], [1, 2, 8], [1, 2 ** 1.01, 2 ** 1.2]]

    def __init__(self, hardware, dtype, x):
        self.b, _, arithmetic = DTYPES[dtype]
        self.h, self.peak = hardware, hardware[arithmetic]
        self.tokens, self.hidden, self.topk, self.experts, self.skew = (x[c] for c in ("tokens", "hidden", "topk", "experts", "skew"))
        self.inner = x["inter"] / x["tp"]
        chosen = np.minimum(self.experts, self.tokens * self.topk)
        independent = self.experts * (1 - (1 - np.minimum(self.topk / self.experts, 1 - 1e-12)) ** self.tokens)
        self.active = np.where(self.skew > 0, np.maximum(independent, 1), chosen)

    def us(self, f):
        rows = self.tokens * self.topk
        matrix = 3 * self.hidden * self.inner
        memory = 1e6 * self.active * matrix * self.b / (self.h["bandwidth"] * f["memory_efficiency"])
        each = rows / self.active
        # Rows that chance deals out fill the last tile of an expert by half; where all have as many, tiles are what they are.
        padded = self.active * np.where(self.skew > 0, np.maximum(16, each + 7.5), 16 * np.ceil(each / 16))
        arithmetic = 1e6 * 2 * matrix * padded / (self.peak * f["arithmetic_efficiency"])
        return f["kernel_us"] + norm(f["overlap_power"], memory, arithmetic) + f["expert_us"] * self.active + f["row_us"] * rows

    def coordinates(self):
        return np.log2(self.tokens), [np.log2(self.experts), np.log2(self.inner), np.log2(self.topk), self.skew]


class AllReduce:
    kind = "allreduce"
    figures = {"link_efficiency": (0.6, 0.01, 1.2), "kernel_us": (8, 0.5, 100), "overlap_power": (2, 1, 12)}
    over = [2.0 ** e for e in (8, 12, 14, 16, 18, 20, 22, 26)]
    by = [[2, 8]]

    def __init__(self, hardware, dtype, x):
        self.h, self.gpus, self.bytes = hardware, x["gpus"], x["bytes"]

    def us(self, f):
        link = 1e6 * 2 * (self.gpus - 1) / self.gpus * self.bytes / (self.h["link"] * f["link_efficiency"])
        return norm(f["overlap_power"], link, np.full(len(link), f["kernel_us"]))

    def coordinates(self):
        return np.log2(self.bytes), [np.log2(self.gpus)]


# Words in the names of measured kernels, the first that is found, and how they read the keys (sim/hardware/gpu/kernels.h).
READINGS = (("decode", "grown"), ("split restored", "shared"), ("varlen", "walked"), ("no split", "walked"), ("trtllm-gen prefill", "prompt"))


def reads_keys(kernel):
    return next((reading for word, reading in READINGS if word in kernel), "unused")


def form_of(kind, kernel):
    """The formula that prices a measured kernel."""
    if kernel == PACKED:
        return Packed
    return Alone if kind == "attention_verify" and reads_keys(kernel) == "prompt" else KINDS[kind]


KINDS = {c.kind: c for c in (Product, Decode, Latent, Prefill, Verify, Experts, AllReduce)}
