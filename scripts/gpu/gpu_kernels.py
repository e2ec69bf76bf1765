#!/usr/bin/env python3
"""Measures the parts of a decoding step on this machine's GPU with PyTorch's kernels (cuBLAS, FlashAttention, Triton) in captured graphs:
whole steps of transformers with random weights, products, attention of one and of several query tokens, and a launch.

    scripts/gpu/gpu_kernels.py --out DIRECTORY [--gpu h200-sxm] [--seconds 150]

The measurements do not use specsim. `specsim kernels DIRECTORY/products.csv --out ...` (attention.csv, steps.csv) shows how far specsim's
estimates are from them. --gpu is the name in configs/hardware; by default it follows from the device's name. A table is written when its
part is finished; after --seconds no part continues. Exit status: 0; 1 if a part failed; 2 without a GPU.
"""

import argparse
import csv
import os
import statistics
import sys
import time
import traceback
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
STEPS = {  # (batch, context) by model; each with so many tokens per sequence
    "llama-3.1-8b": [(1, 128), (1, 2048), (1, 8192), (1, 32768), (4, 2048), (16, 2048), (16, 8192), (64, 2048), (128, 512)],
    "llama-3.2-1b": [(1, 128), (1, 2048), (1, 16384), (16, 2048), (64, 2048)],
    "qwen3-32b": [(1, 128), (1, 2048), (1, 16384), (8, 4096), (32, 2048), (128, 512)],
    "qwen3-8b": [(1, 2048), (16, 2048)],
}
TOKENS = [1, 2, 4, 8]
ROWS = [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
PRODUCTS = {  # n, k: one GPU's share of the layers of 8B, 32B and (of four GPUs) 70B models
    "qkv, 8B": (6144, 4096), "o, 8B": (4096, 4096), "gate and up, 8B": (28672, 4096), "down, 8B": (4096, 14336),
    "head, 8B": (128256, 4096), "qkv, 32B": (10240, 5120), "o, 32B": (5120, 8192), "gate and up, 32B": (51200, 5120),
    "down, 32B": (5120, 25600), "qkv, 70B on 4": (2560, 8192), "o, 70B on 4": (8192, 2048), "gate and up, 70B on 4": (14336, 8192),
    "down, 70B on 4": (8192, 7168), "qkv, 1B": (3072, 2048), "gate and up, 1B": (16384, 2048), "down, 1B": (2048, 8192),
}
ATTENTION_TOKENS = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32]
HEADS = [(32, 8, 128), (64, 8, 128), (32, 32, 128), (32, 8, 64), (16, 8, 256)]


def hardware_name(device):
    """The preset whose words (except `sxm`) all occur in the device's name; the longest one if several match."""
    said = device.lower()
    known = [file.stem for file in (ROOT / "configs/hardware").glob("*.yaml")
             if all(word in said for word in file.stem.split("-") if word != "sxm")]
    if not known:
        raise SystemExit(f"gpu_kernels: no hardware is called {device}: name it with --gpu")
    return max(known, key=lambda name: (len(name.replace("-sxm", "")), name))


class Stopwatch:
    """Microseconds of captured graphs: the median of as many replays as fit about half a second."""

    def __init__(self, torch):
        self.torch = torch
        self.stream = torch.cuda.Stream()

    def graph(self, work):
        torch = self.torch
        torch.cuda.synchronize()  # the inputs of the work were made on another stream
        with torch.cuda.stream(self.stream):
            for _ in range(2):  # compiles kernels that are compiled at their first call
                work()
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                work()
        return graph

    def __call__(self, work, most=25, seconds=0.3):
        """(median, first quartile, third quartile, samples) of one call of `work`."""
        torch = self.torch
        graph = self.graph(work)
        times = []
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                graph.replay()
            self.stream.synchronize()
            begin = time.perf_counter()
            while len(times) < 5 or (len(times) < most and time.perf_counter() - begin < seconds):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record(self.stream)
                graph.replay()
                end.record(self.stream)
                end.synchronize()
                times.append(1e3 * start.elapsed_time(end))
        del graph
        quarters = statistics.quantiles(times, n=4)
        return statistics.median(times), quarters[0], quarters[2], len(times)


def triton_kernels():
    """The operations between products and attention in one launch each, as engines have it."""
    import triton
    import triton.language as tl

    @triton.jit
    def add_norm(x, residual, weight, out, width: tl.constexpr, block: tl.constexpr):
        row = tl.program_id(0)
        at = tl.arange(0, block)
        inside = at < width
        sum_of = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
        sum_of += tl.load(residual + row * width + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual + row * width + at, sum_of, mask=inside)
        scale = tl.rsqrt(tl.sum(sum_of * sum_of) / width + 1e-5)
        tl.store(out + row * width + at, sum_of * scale * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32), mask=inside)

    @triton.jit
    def rotate_and_store(qkv, angles, keys, values, context, tokens, slots, heads: tl.constexpr, kv_heads: tl.constexpr,
                         half: tl.constexpr):
        # qkv [row][heads + 2 kv_heads][2 half], rotated in place; keys and values [sequence][slots][kv_heads][2 half]
        row, head = tl.program_id(0), tl.program_id(1)
        at = tl.arange(0, half)
        place = qkv + (row * (heads + 2 * kv_heads) + head) * 2 * half
        first, second = tl.load(place + at).to(tl.float32), tl.load(place + half + at).to(tl.float32)
        slot = context + row % tokens
        if head < heads + kv_heads:
            cos, sin = tl.load(angles + slot * 2 * half + at), tl.load(angles + slot * 2 * half + half + at)
            first, second = first * cos - second * sin, second * cos + first * sin
            tl.store(place + at, first)
            tl.store(place + half + at, second)
        if head >= heads:
            to = keys if head < heads + kv_heads else values
            kv = (head - heads) % kv_heads
            cached = to + (((row // tokens) * slots + slot).to(tl.int64) * kv_heads + kv) * 2 * half
            tl.store(cached + at, first)
            tl.store(cached + half + at, second)

    @triton.jit
    def gate(x, out, width: tl.constexpr, block: tl.constexpr):
        row, at = tl.program_id(0), tl.program_id(1) * block + tl.arange(0, block)
        inside = at < width
        g = tl.load(x + row * 2 * width + at, mask=inside, other=0.0).to(tl.float32)
        u = tl.load(x + row * 2 * width + width + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * width + at, g * tl.sigmoid(g) * u, mask=inside)

    return add_norm, rotate_and_store, gate, triton.next_power_of_2


def flash(torch, q, k, v, starts=None):
    """q [batch][tokens][heads][dim] over k, v [batch][keys][kv_heads][dim]. With `starts` (of q, of k) the sequences may have any lengths; that
    variant never cuts keys into parts. Every query sees every key, so the time is that of all tokens' keys, as in decoding."""
    if starts is None:
        return torch.ops.aten._flash_attention_forward(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, False, False)[0]
    flat = [x.reshape(-1, x.shape[-2], x.shape[-1]) for x in (q, k, v)]
    return torch.ops.aten._flash_attention_forward(*flat, starts[0], starts[1], q.shape[1], k.shape[1], 0.0, False, False)[0]


def flash_packed(torch, q, k, v):
    """Attention in which heads that share keys become further tokens of one head, so that the keys are read once; correct as long as every query sees
    every key."""
    batch, tokens, heads, dim = q.shape
    group = heads // k.shape[2]
    packed = q.reshape(batch, tokens, k.shape[2], group, dim).transpose(2, 3).reshape(batch, tokens * group, k.shape[2], dim)
    return flash(torch, packed, k, v).view(batch, tokens, group, k.shape[2], dim).transpose(2, 3).reshape(q.shape)


def cudnn(torch, q, k, v):
    transposed = [x.transpose(1, 2) for x in (q, k, v)]
    return torch.ops.aten._scaled_dot_product_cudnn_attention(*transposed, None, False, 0.0, False, False)[0].transpose(1, 2)


class Transformer:
    """A llama or qwen with random weights: decoding steps of `batch` sequences with `tokens` new tokens each over `context` keys."""

    def __init__(self, torch, name):
        shape = yaml.safe_load((ROOT / f"configs/models/{name}.yaml").read_text())
        self.torch, self.shape = torch, shape
        self.layers, self.hidden, self.heads, self.kv_heads = (shape[key] for key in ("layers", "hidden", "heads", "kv_heads"))
        self.dim, self.ffn, self.vocab = shape["head_dim"], shape["ffn"], shape["vocab"]
        self.kernels = triton_kernels()
        random_weights = lambda *size: torch.empty(*size, dtype=torch.bfloat16, device="cuda").normal_(0, 0.02)
        self.weights = [(random_weights((self.heads + 2 * self.kv_heads) * self.dim, self.hidden),
                         random_weights(self.hidden, self.heads * self.dim), random_weights(2 * self.ffn, self.hidden),
                         random_weights(self.hidden, self.ffn)) for _ in range(self.layers)]
        self.norm = torch.ones(self.hidden, dtype=torch.bfloat16, device="cuda")
        self.embedding = random_weights(self.vocab, self.hidden)
        self.head = self.embedding if shape["tied_embeddings"] else random_weights(self.vocab, self.hidden)

    def cache_bytes(self, batch, context):
        return 4 * batch * (context + 32) * self.kv_heads * self.dim * self.layers

    def fill(self, batch, context):
        self.slots = context + 32
        make = lambda: self.torch.empty(batch, self.slots, self.kv_heads, self.dim, dtype=self.torch.bfloat16, device="cuda").normal_()
        self.cache = [(make(), make()) for _ in range(self.layers)]
        self.angles = self.torch.rand(self.slots, self.dim, device="cuda")

    def step(self, batch, tokens, context, of=("products", "attention", "between"), attention=flash):
        """A function that executes the step with its own buffers. `of`: which kernels of a layer are launched; the head always is."""
        torch = self.torch
        add_norm, rotate_and_store, gate, power_of_2 = self.kernels
        rows = batch * tokens
        ids = torch.randint(0, self.vocab, (rows,), device="cuda")
        normed = torch.empty(rows, self.hidden, dtype=torch.bfloat16, device="cuda")
        gated = torch.empty(rows, self.ffn, dtype=torch.bfloat16, device="cuda")
        wide = power_of_2(self.hidden)
        heads = self.heads + 2 * self.kv_heads
        stand_in = {width: torch.zeros(rows, width, dtype=torch.bfloat16, device="cuda")
                    for width in (self.hidden, heads * self.dim, 2 * self.ffn, self.heads * self.dim)}

        def linear(x, weight):
            return torch.nn.functional.linear(x, weight) if "products" in of else stand_in[weight.shape[0]]

        def norm(x, residual):
            if "between" in of:
                add_norm[(rows,)](x, residual, self.norm, normed, self.hidden, wide, num_warps=8)

        def rotate(both, keys, values):
            if "between" in of:
                rotate_and_store[(rows, heads)](both, self.angles, keys, values, context, tokens, self.slots, self.heads, self.kv_heads,
                                                self.dim // 2, num_warps=1)

        def gated_of(both):
            if "between" in of:
                gate[(rows, (self.ffn + 1023) // 1024)](both, gated, self.ffn, 1024, num_warps=4)
            return gated

        def attend(both, keys, values):
            if "attention" not in of:
                return stand_in[self.heads * self.dim]
            queries = both.view(batch, tokens, -1, self.dim)[:, :, :self.heads]
            return attention(torch, queries, keys[:, :context + tokens], values[:, :context + tokens]).reshape(rows, -1)

        def work():
            residual = self.embedding[ids]
            x = torch.zeros_like(residual)
            for (qkv, o, up, down), (keys, values) in zip(self.weights, self.cache):
                norm(x, residual)
                both = linear(normed, qkv)
                rotate(both, keys, values)
                x = linear(attend(both, keys, values), o)
                norm(x, residual)
                x = linear(gated_of(linear(normed, up)), down)
            norm(x, residual)
            return torch.nn.functional.linear(normed, self.head).argmax(-1)

        return work


def check_step(torch):
    """Compares the step with the same sums in float64 on a small shape, to prove that the timed code is a transformer."""
    model = Transformer.__new__(Transformer)
    model.torch, model.layers, model.hidden, model.heads, model.kv_heads, model.dim, model.ffn, model.vocab = torch, 2, 256, 4, 2, 64, 512, 999
    model.kernels = triton_kernels()
    make = lambda *size: torch.empty(*size, dtype=torch.bfloat16, device="cuda").normal_(0, 0.05)
    model.weights = [(make(8 * 64, 256), make(256, 256), make(1024, 256), make(256, 512)) for _ in range(2)]
    model.norm, model.embedding = torch.ones(256, dtype=torch.bfloat16, device="cuda"), make(999, 256)
    model.head = model.embedding
    batch, tokens, context = 3, 2, 100
    model.fill(batch, context)
    kept = [(k.clone().double(), v.clone().double()) for k, v in model.cache]
    seed = 7
    torch.manual_seed(seed)
    found = model.step(batch, tokens, context)()
    torch.manual_seed(seed)
    ids = torch.randint(0, model.vocab, (batch * tokens,), device="cuda")
    residual = model.embedding[ids].double()
    normed = lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    for (qkv, o, up, down), (keys, values) in zip(model.weights, kept):
        both = (normed(residual) @ qkv.double().T).view(batch, tokens, 8, 64)
        angles = model.angles[context:context + tokens].double()[None, :, None]
        cos, sin = angles[..., :32], angles[..., 32:]
        turned = torch.cat([both[..., :32] * cos - both[..., 32:] * sin, both[..., 32:] * cos + both[..., :32] * sin], -1)
        k = torch.cat([keys[:, :context], turned[:, :, 4:6]], 1).repeat_interleave(2, 2)
        v = torch.cat([values[:, :context], both[:, :, 6:]], 1).repeat_interleave(2, 2)
        scores = torch.einsum("bthd,bshd->bhts", turned[:, :, :4], k) / 8
        seen = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(batch * tokens, -1)
        residual = residual + seen @ o.double().T
        g, u = (normed(residual) @ up.double().T).chunk(2, -1)
        residual = residual + (g * g.sigmoid() * u) @ down.double().T
    logits = normed(residual) @ model.head.double().T
    best = logits.max(-1).values
    lead = (best - logits.gather(-1, found[:, None])[:, 0]) / best.abs()
    if not bool((lead < 0.03).all()):
        raise ValueError(f"the step's likeliest tokens are not: {lead.tolist()}")


def write(path, header, rows):
    part = path.with_suffix(".part")
    with open(part, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    os.replace(part, path)
    print(f"{path.name}: {len(rows)} rows", flush=True)


def steps(torch, watch, gpu, version, out, late):
    check_step(torch)
    rows = []
    for name, cases in STEPS.items():
        model = Transformer(torch, name)
        for batch, context in cases:
            if late():
                break
            if model.cache_bytes(batch, context) > 0.9 * torch.cuda.mem_get_info()[0]:
                continue
            model.fill(batch, context)
            for tokens in TOKENS:
                for how, attention in (("packed", flash_packed), ("dense", flash))[tokens == 1:]:
                    us, low, high, samples = watch(model.step(batch, tokens, context, attention=attention))
                    rows.append([gpu, f"graphs {version}", name, 1, "verify", batch, tokens, context, f"{us / 1e3:.5g}", f"{low / 1e3:.5g}",
                                 f"{high / 1e3:.5g}", samples, how])
                    print(*rows[-1], flush=True)
            model.cache = None
            torch.cuda.empty_cache()
        del model
        torch.cuda.empty_cache()
    write(out / "steps.csv", "gpu engine model tp phase batch new_tokens context ms ms_quartile_1 ms_quartile_3 samples attention".split(),
          rows)


def parts(torch, watch, gpu, version, out, late):
    """Measures a step without some of its kernels: whether a step takes as long as the sum of its kernels."""
    rows = []
    for name in ("llama-3.1-8b", "qwen3-32b"):
        model = Transformer(torch, name)
        for batch, tokens, context in ((1, 1, 2048), (1, 8, 2048), (16, 1, 2048), (64, 1, 2048), (64, 4, 512)):
            if late():
                break
            model.fill(batch, context)
            for of in (("products",), ("attention",), ("between",), ("products", "between"), ("products", "attention"),
                       ("products", "attention", "between")):
                us = watch(model.step(batch, tokens, context, of))[0]
                rows.append([gpu, version, name, batch, tokens, context, " and ".join(of), f"{us / 1e3:.5g}"])
            model.cache = None
            torch.cuda.empty_cache()
        del model
        torch.cuda.empty_cache()
    write(out / "parts.csv", "gpu version model batch new_tokens context of ms".split(), rows)


def products(torch, watch, gpu, version, out, late):
    """Times products over so many weights in turn that none remains in the second-level cache, with so many calls per graph that its launch is
    negligible. fp8 has a scale per row, and its activations are rounded before."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    rows = []
    for dtype in ("bfloat16", "fp8"):
        for n, k in PRODUCTS.values():
            if late():
                break
            bytes_of = n * k * (2 if dtype == "bfloat16" else 1)
            sets = min(24, max(2, -(-4 * cache // bytes_of)))
            weights = [torch.empty(n, k, dtype=torch.bfloat16, device="cuda").normal_(0, 0.02) for _ in range(sets)]
            if dtype == "fp8":
                weights = [w.to(torch.float8_e4m3fn) for w in weights]
                column = torch.ones(1, n, device="cuda")
            for m in ROWS:
                x = torch.empty(m, k, dtype=torch.bfloat16, device="cuda").normal_()
                if dtype == "fp8":
                    x, scale = x.to(torch.float8_e4m3fn), torch.ones(m, 1, device="cuda")
                    multiply = lambda w: torch._scaled_mm(x, w.t(), scale_a=scale, scale_b=column, out_dtype=torch.bfloat16)
                else:
                    multiply = lambda w: torch.nn.functional.linear(x, w)
                turns = -(-24 // sets)
                us = watch(lambda: [multiply(w) for _ in range(turns) for w in weights], most=9, seconds=0.02)[0] / (turns * sets)
                rows.append([gpu, "cublas", version, dtype, "cublas", n, k, m, f"{us:.5g}", f"{sets * bytes_of / cache:.3g}"])
            weights = None
    write(out / "products.csv", "gpu engine version dtype kernel n k m us set_over_l2".split(), rows)


def attention(torch, watch, gpu, version, out, late):
    """Times PyTorch's FlashAttention 2 over alternating caches (`dense` may cut keys into parts, `varlen` never does), and cuDNN's attention."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    rows, refused = [], set()
    for heads, kv_heads, dim in HEADS:
        for batch, context in ((1, 512), (1, 2048), (1, 8192), (1, 32768), (8, 2048), (8, 8192), (64, 2048)):
            if late():
                break
            bytes_of = 4 * batch * context * kv_heads * dim
            sets = min(64, max(2, -(-4 * cache // bytes_of)))
            caches = [[torch.empty(batch, context, kv_heads, dim, dtype=torch.bfloat16, device="cuda").normal_() for _ in range(2)]
                      for _ in range(sets)]
            for tokens in ATTENTION_TOKENS:
                q = torch.empty(batch, tokens, heads, dim, dtype=torch.bfloat16, device="cuda").normal_()
                starts = [torch.arange(0, (batch + 1) * each, each, dtype=torch.int32, device="cuda") for each in (tokens, context)]
                kernels = {"FlashAttention 2 dense": lambda k, v: flash(torch, q, k, v),
                           "FlashAttention 2 varlen": lambda k, v: flash(torch, q, k, v, starts),
                           "FlashAttention 2 dense, heads packed": lambda k, v: flash_packed(torch, q, k, v),
                           "cuDNN": lambda k, v: cudnn(torch, q, k, v)}
                for kernel, work in kernels.items():
                    if (kernel, heads, kv_heads, dim) in refused:
                        continue
                    try:
                        if (error := farthest(torch, work, q, *caches[0])) > 2e-2:
                            raise ValueError(f"{error:.3f} off")
                        us = watch(lambda: [work(k, v) for k, v in caches], most=7, seconds=0.02)[0] / sets
                    except Exception as reason:
                        refused.add((kernel, heads, kv_heads, dim))
                        print(f"{kernel} with {heads} heads of {dim} on {kv_heads}: {reason}", flush=True)
                        continue
                    rows.append(["PyTorch " + version, gpu, kernel, heads, kv_heads, dim, "bfloat16", batch, tokens, context, f"{us:.5g}"])
            caches = None
    write(out / "attention.csv", "source gpu kernel heads kv_heads head_dim kv_dtype batch tokens context us".split(), rows)


def farthest(torch, work, q, k, v):
    """The relative difference to float64 of one sequence's first KV head."""
    group = q.shape[2] // k.shape[2]
    scores = q[0, :, :group].double().transpose(0, 1) @ k[0, :, 0].double().T / q.shape[3] ** 0.5
    right = (scores.softmax(-1) @ v[0, :, 0].double()).transpose(0, 1)
    found = work(k, v).reshape(q.shape)
    return float(((found[0, :, :group].double() - right).norm() / right.norm()).cpu())


def sampling(torch, watch, gpu, version, out, late):
    """Sampling in a server: the likeliest token; a drawn one, by softmax and an exponential race; the same cut to top-p."""
    def draw(logits):
        return (logits.softmax(-1) / torch.empty_like(logits).exponential_()).argmax(-1)

    def cut(logits):
        ascending, at = logits.sort(dim=-1, descending=False)
        ascending = ascending.masked_fill(ascending.softmax(-1).cumsum(-1) <= 0.1, float("-inf"))
        return draw(torch.empty_like(logits).scatter_(-1, at, ascending))

    rows = []
    for vocab in (32000, 128256, 151936):
        for count in (1, 4, 16, 64, 256, 512):
            if late():
                break
            logits = torch.empty(count, vocab, device="cuda").normal_()
            for what, work in (("argmax", lambda x: x.argmax(-1)), ("draw", draw), ("top-p 0.9", cut)):
                rows.append([gpu, version, what, vocab, count, f"{watch(lambda: work(logits), seconds=0.05)[0]:.5g}"])
    write(out / "sampling.csv", "gpu version what vocab rows us".split(), rows)


def launches(torch, watch, gpu, version, out, late):
    x = torch.zeros(1, device="cuda")
    rows = []
    for count in (1, 10, 100, 1000):
        us = watch(lambda: [x.add_(1.0) for _ in range(count)])[0]
        rows.append([gpu, "one element added to", count, f"{us:.5g}"])
    write(out / "launches.csv", "gpu what launches us".split(), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpu")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--parts", default="launches,sampling,steps,parts,attention,products")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("gpu_kernels: PyTorch sees no GPU", file=sys.stderr)
        return 2
    begin = time.monotonic()
    gpu = arguments.gpu or hardware_name(torch.cuda.get_device_name())
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    watch = Stopwatch(torch)
    status = 0
    with torch.no_grad():
        for name in arguments.parts.split(","):
            try:
                globals()[name](torch, watch, gpu, torch.__version__.split("+")[0], arguments.out,
                                lambda: time.monotonic() - begin > arguments.seconds)
            except Exception:
                traceback.print_exc()
                status = 1
            print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
