#!/usr/bin/env python3
"""Fits the kernel times of configs/kernels to tables of measured kernels.

    scripts/kernels/fit_kernels.py TABLES --out configs/kernels [--report FILE.csv] [--only KIND] [--gpu NAME]
    scripts/kernels/fit_kernels.py TABLE.csv --only KIND --source TEXT --existing configs/kernels --out FOLDER

`specsim kernels TABLE.csv --fit --out FOLDER` runs the second form. It writes the fits of one table to FOLDER/GPU.kernels.yaml, together with
the built-in fits of all other kinds (those that the GPU's file names), and FOLDER/GPU.yaml, a GPU of that name with those fits.

TABLES is a folder with gemm_aic.csv.xz, attention_decode_aic.csv.xz, attention_prefill_aic.csv.xz, attention_verify.csv.xz,
moe_aic.csv.xz, moe_more.csv.xz, allreduce_aic.csv.xz, gemm_mi300x_aiter.csv.xz and moe_mi300x_aiter.csv.xz (.csv works as well). The table of
latent attention is in configs/kernels/tables.

A fit has two parts. The first is a formula with a few parameters of physical meaning. The program computes it
(sim/hardware/gpu/kernel_formulas.cpp; SPECSIM_PROGRAM, by default build/specsim). The second is a correction of its logarithm, piecewise
linear in the logarithm of one coordinate (rows, bytes, tokens), with weights that are piecewise linear in the logarithms of a few others.

A third of the shapes, chosen by a hash of the shape, is held out while the parameters are fitted; --corrections keeps the parameters of
the files in --out. The errors in the files are cross-validated: the shapes are cut into five folds, and each fold is estimated with a
correction fitted to the other four. The correction in the files is fitted to all rows.

Needs NumPy and SciPy (scripts/setup --fit).
"""
import argparse
import array
import csv
import functools
import glob
import itertools
import json
import lzma
import os
import pickle
import re
import stat
import sys
import tempfile
import textwrap
import zlib

try:
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize
    from scipy.sparse import csr_matrix, diags
except ImportError as error:
    sys.exit(f"fit_kernels.py needs NumPy and SciPy ({error}): scripts/setup --fit installs them")

from kernel_formulas import KINDS, form_of, matrices_of_expert, read_hardware, reads_keys, weight_bytes  # noqa: E402
from kernel_sources import (AITER_EXPERTS, AITER_SKEW, AITER_TYPES, LATENT_TABLES, MORE_EXPERTS, OWN_KERNELS, OWN_PRODUCTS, OWN_TABLES, SHIPPED, TABLE_OF, WALK, WHOSE)  # noqa: E402
from unseen_report import in_spreads, spread_of, write_report  # noqa: E402

MOST_ROWS = 512      # most rows of a product: larger ones were not measured
LEAST_SETS = 3.0     # weights of a product above the second-level cache's size: smaller ones are read from the cache
LEAST_CACHES = 2.0   # keys and values of decode attention above that cache's size: smaller ones are read from the cache
FOLDS = 5            # parts of the shapes, each of which is estimated by a correction that was fitted without it
# Products with small weights were measured from the cache only. They get their own fit: rows whose weights came from the cache and for which reading
# from memory would take at most this share of the measured time. Half of that reading time is added; the true time differs by at most the other half.
SMALL, SMALL_SHARE, LEAST_SMALL = "small", 0.25, 200  # fewest rows of such a fit
# Fits of fewer shapes state no error. A fit to 1 to 5 of vLLM's 134 products in bf16 on an H100 errs by .07 to .10 on all the others.
LEAST_SHAPES, FEW_SPREAD = 8, 0.1
# Limits of a custom table: a fit takes 3.5 kB per row. A shape has only a few numbers.
MOST_ROWS_OF_A_TABLE, LONGEST_SHAPE = 200_000, 64
SAMPLE = 700         # most rows that the parameters of a formula are fitted to
MOST_SPREAD = 10.0   # that specsim reads (sim/hardware/gpu/kernels.cpp)


class BadTable(Exception):
    """A table that cannot be fitted: its place, what was found, and what is allowed."""

    def __init__(self, place, found, allowed):
        super().__init__(f"{''.join(c if c.isprintable() else ascii(c)[1:-1] for c in str(place))}: {found}, allowed: {allowed}")


def hats(x, knots):
    x = np.clip(x, knots[0], knots[-1])
    out = np.zeros((len(x), len(knots)))
    j = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    t = (x - knots[j]) / (knots[j + 1] - knots[j])
    out[np.arange(len(x)), j] = 1 - t
    out[np.arange(len(x)), j + 1] = t
    return out


def knots_of(model):
    """The knots within the measured range, in the coordinates of the correction."""
    first, others = model.coordinates()

    def cut(knots, x):
        knots = np.log2(np.array(knots, float))
        inside = [k for k in knots if x.min() - 1e-9 <= k <= x.max() + 1e-9]
        ends = np.unique(np.round(np.array([x.min(), *inside, x.max()]), 4))
        return ends if len(ends) > 1 or model.tells_constants else None
    over = cut(model.over, first)
    if over is None or len(over) == 1:
        over = np.array([round(first.min(), 4), round(first.min() + 1, 4)])
    return over, [cut(knots, x) for knots, x in zip(model.by, others)]


def features(model, over, by):
    first, others = model.coordinates()
    weights = [np.ones((len(first), 1))] + [hats(x, k) for x, k in zip(others, by) if k is not None and len(k) > 1]
    return (hats(first, over)[:, :, None] * np.column_stack(weights)[:, None, :]).reshape(len(first), -1)


def least_absolute(x, y, ridge, weights):
    """Minimises mostly the absolute deviation, by iteratively reweighted least squares."""
    x = csr_matrix(x)  # each row lies between two knots of each coordinate, so that most of it is 0
    across = x.T.tocsr()
    w = np.ones(len(y))
    for _ in range(8):
        counts = w * weights
        matrix = (across @ diags(counts) @ x).toarray()
        matrix[np.diag_indices_from(matrix)] += ridge
        solution = cho_solve(cho_factor(matrix), across @ (counts * y))
        w = 0.05 / np.maximum(np.abs(y - x @ solution), 0.02)
    return solution


def fit_figures(kind, hardware, dtype, x, us, weights, evaluations):
    low, high, start = [], [], []
    for at, least, most in kind.figures.values():
        low.append(least), high.append(most), start.append(at)
    low, high, start = map(np.array, (low, high, start))
    log = high / low > 20

    def unpack(z):
        share = 1 / (1 + np.exp(-z))
        return np.where(log, low * (high / low) ** share, low + (high - low) * share)
    share = np.where(log, np.log(start / low) / np.log(high / low), (start - low) / (high - low))
    chosen = np.random.RandomState(0).permutation(len(us))[:SAMPLE]
    model = kind(hardware, dtype, {c: v[chosen] for c, v in x.items()})
    target, weights = us[chosen], weights[chosen]

    def figures_of(values, rows):
        figures = dict(zip(kind.figures, values))
        return {**figures, "query_rows": rows, **kind.constants} if rows else figures

    def loss(z, rows):
        return np.sum(weights * np.abs(np.log(model.us(figures_of(unpack(z), rows)) / target)))

    begin = np.log(share / (1 - share))
    found = []
    for rows in kind.blocks or (0,):
        best = minimize(loss, begin, (rows,), method="Nelder-Mead", options={"maxfev": evaluations, "adaptive": True})
        found.append((best.fun, len(found), figures_of([float("%.4g" % v) for v in unpack(best.x)], rows)))
    return min(found)[2]


def held_out(shapes):
    return np.array([zlib.crc32(("held out " + s).encode()) % 3 == 0 for s in shapes])


def folds(shapes, w):
    """The fold in which a row is estimated from the other folds; all rows of a shape are in one. -1: nowhere."""
    counted = sorted(set(shapes[w == 1]), key=lambda s: (zlib.crc32(("fold " + s).encode()), s))
    if len(counted) < FOLDS:  # too few shapes to hold any out: rows are held out
        return np.arange(len(shapes)) % FOLDS if len(shapes) > 10 else np.full(len(shapes), -1)
    fold = {s: i % FOLDS for i, s in enumerate(counted)}
    return np.array([fold.get(s, -1) for s in shapes])


def errors_unseen(f, y, shapes, w, ridge):
    """Errors of the logarithm of counted rows, each with the correction that was fitted without its shape's fold."""
    error = np.full(len(y), np.nan)
    of = folds(shapes, w)
    for k in range(FOLDS):
        out = of == k
        if out.any():
            error[out] = f[out] @ least_absolute(f[~out], y[~out], ridge, w[~out]) - y[out]
    if (of == -1).all():
        error = f @ least_absolute(f, y, ridge, w) - y
    return error


def errors_of_neighbours(x, us, shapes, out):
    """The error of a prediction by the median of a row's neighbours: three rows of the same shape and kernel on either side by their number. It
    measures how repeatable the rows of a product are; an estimate that has not seen the shape cannot be better."""
    errors = []
    for shape in sorted(set(shapes[out])):
        at = np.flatnonzero(out & (shapes == shape))
        at = at[np.argsort(x["m"][at], kind="stable")]
        band = np.searchsorted([1, 16, 32, 64, 96, 128, 192, 256], x["m"][at])
        for i in range(len(at)):
            near = [j for j in range(max(0, i - 3), min(len(at), i + 4)) if j != i and band[j] == band[i]]
            if len(near) > 1:
                errors.append(abs(np.median(us[at[near]]) / us[at[i]] - 1))
    return np.array(errors)


def fit(kind, hardware, dtype, x, us, shapes, w, ridge, figures=None, evaluations=260):
    out = held_out(shapes)
    if (out & (w == 1)).sum() < 5 or (~out & (w == 1)).sum() < 10:
        out = np.arange(len(us)) % 3 == (1 if len(us) > 10 else 4)  # too few shapes to hold any out: errors are those of the fit
    seen = ~out
    if not out.any():
        out = seen.copy()
    figures = figures or fit_figures(kind, hardware, dtype, {c: v[seen] for c, v in x.items()}, us[seen], w[seen], evaluations)
    model = kind(hardware, dtype, x)
    y = np.log(us / model.us(figures))
    over, by = knots_of(model)
    f = features(model, over, by)
    unseen = errors_unseen(f, y, shapes, w, ridge)
    out = (w == 1) & ~np.isnan(unseen)
    final = least_absolute(f, y, ridge, w)
    if len(final) > (w > 0).sum() and np.abs(unseen[out]).mean() >= np.abs(y[out]).mean():
        final, unseen = np.zeros_like(final), -y  # more weights than rows, which does not help on unseen shapes
    from_memory = x["over_l2"] >= (LEAST_CACHES if kind.kind in ("attention_decode", "attention_latent") else LEAST_SETS) if "over_l2" in x else out
    counted = out & from_memory if (out & from_memory).any() else out  # passes read weights and keys from memory
    spread = spread_of(unseen[counted])
    # Tables of attention often have one count of heads, and many contexts for it.
    told = shapes[w == 1] if kind.kind == "product" else zip(*(np.asarray(v)[w == 1] for v in x.values() if np.ndim(v)))
    few = len(set(told)) < LEAST_SHAPES
    spread = max(spread, FEW_SPREAD) if few else spread
    return {"figures": figures, "over": over, "by": by, "correction": final, "held_out": np.abs(np.expm1(unseen[out])), "spread": spread, "few": few,
            "in_spreads": in_spreads(unseen[out], folds(shapes, w)[out], counted[out]), "plain": np.abs(model.us(figures)[out] / us[out] - 1), "held_rows": 2.0 ** model.coordinates()[0][out],
            "from_memory": from_memory[out],
            "neighbours": errors_of_neighbours(x, us, shapes, out & from_memory) if kind.kind == "product" else np.array([])}


# ---- tables ----------------------------------------------------------------------------------------------------------------------


def rows_of_folder(folder, name):
    for path in (os.path.join(folder, name + ".csv.xz"), os.path.join(folder, name + ".csv")):
        if os.path.exists(path):
            with (lzma.open(path, "rt") if path.endswith(".xz") else open(path, encoding="utf-8")) as file:
                yield from csv.DictReader(file)
            return
    sys.exit(f"{folder}: no {name}.csv.xz")


def single_token(r):
    """Rows of attention_verify over one query token whose keys are split, as keys that heads share are: they count as decode attention."""
    return r["tokens"] == "1" and r["heads"] != r["kv_heads"] and ("FlashAttention 2 varlen" in r["kernel"] or "q=1" in r["kernel"])


def walks_of_single_tokens(folder):
    """Rows of vLLM's FlashAttention 2 over one token of heads that share no keys, which it does not split; without floors and cached sequences."""
    for r in rows_of_folder(folder, "attention_decode_aic"):
        whole = float(r["context"]) >= 256 and (r["batch"] == "1" or float(r["kv_over_l2"]) >= LEAST_CACHES)
        if whole and r["engine"] == "vllm" and r["kernel"] in ("vllm_flash_attn", "vllm_flash_attn_fa2") and r["heads"] == r["kv_heads"]:
            yield {**r, "kernel": WALK, "tokens": "1", "context": str(float(r["context"]) - 1)}


def own_rows():
    for path in sorted(glob.glob(OWN_TABLES)):
        yield from (r for r in rows_of_one(path, "attention_verify", "attention_verify")
                    if r["kernel"] in OWN_KERNELS and not single_token(r))


def cached_heads(r):
    return {"heads": float(r["heads"] or 64), "kv_heads": float(r["kv_heads"] or 8), "head_dim": float(r["head_dim"] or 128)}


def rows_of_one(path, kind, name):
    """The rows of a table that was given by name, if it is that table."""
    if TABLE_OF[kind] != name:
        return
    how = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    with (lzma.open(path, "rt", **how) if path.endswith(".xz") else open(path, **how)) as file:
        reader = csv.DictReader(file)
        for number, row in enumerate(reader, 2):
            if number > MOST_ROWS_OF_A_TABLE:
                raise BadTable(f"{path}:{reader.line_num}", "it has more rows", f"at most {MOST_ROWS_OF_A_TABLE} in a table to fit")
            for column, text in row.items():
                if not f"{column}{text}".isascii() and any("\ud800" <= c <= "\udfff" for c in f"{column}{text}"):
                    raise BadTable(f"{path}:{reader.line_num}", f"{ascii(text)[:64]} is no UTF-8", "text in UTF-8")
            yield row


def over_l2(r, column, size, dtype, hardware):
    """Bytes that a row reads, over the GPU's last-level cache: the table's own column, or else `size` elements of the type, read once."""
    return float(r[column]) if r.get(column) else size * weight_bytes()[dtype] / hardware[r["gpu"]]["l2"]


def groups(kind, folder, hardware):
    """Groups of rows that one fit is made for: (gpu, engine, dtype, kernel), columns, times, shapes and the weight of each row."""
    def table(where, name):
        rows = rows_of_one(where, kind, name) if os.path.isfile(where) else rows_of_folder(where, name)
        return (r for r in rows if not r["gpu"] or r["gpu"] in hardware)  # other GPUs have no data, such as a custom GPU file
    found = {}
    def add(key, figures, us, shape):
        if len(shape) > LONGEST_SHAPE:
            raise BadTable(folder, f"a shape of {len(shape)} characters, {shape[:LONGEST_SHAPE]!r}", "numbers")
        columns, times, shapes = found.setdefault(key, ({c: array.array("d") for c in figures}, array.array("d"), []))
        for c, value in figures.items():
            columns[c].append(value)
        times.append(us)
        shapes.append(sys.intern(shape))
    if kind == "product":
        for r in table(folder, "gemm_aic"):
            if float(r["m"]) <= MOST_ROWS:
                add((r["gpu"], r["engine"], r["dtype"], ""), {**{c: float(r[c]) for c in ("m", "n", "k")}, 
                     "over_l2": over_l2(r, "set_over_l2", float(r["n"]) * float(r["k"]), r["dtype"], hardware)},
                    float(r["us"]), f"{r['n']}x{r['k']}")
        for path in [] if os.path.isfile(folder) else sorted(glob.glob(OWN_PRODUCTS)):
            for r in rows_of_one(path, kind, "gemm_aic"):
                add((r["gpu"], WHOSE[r["kernel"]], r["dtype"], ""), {c: float(r[k]) for c, k in zip(("m", "n", "k", "over_l2"),
                                                                                                    ("m", "n", "k", "set_over_l2"))},
                    float(r["us"]), f"{r['n']}x{r['k']}")
        for r in [] if os.path.isfile(folder) else rows_of_folder(folder, "gemm_mi300x_aiter"):
            if r["dtype"] in AITER_TYPES and float(r["m"]) <= MOST_ROWS:  # its arguments were rotated, so they came from memory
                add((r["gpu"], "aiter", AITER_TYPES[r["dtype"]], ""), {**{c: float(r[c]) for c in ("m", "n", "k")}, "over_l2": 1e9},
                    float(r["us"]), f"{r['n']}x{r['k']}")
    elif kind == "attention_decode":
        for r in table(folder, "attention_decode_aic"):
            keys = float(r["batch"]) * float(r["context"]) * float(r["kv_heads"])
            over = over_l2(r, "kv_over_l2", 2 * keys * float(r["head_dim"]), r["kv_dtype"], hardware)
            add((r["gpu"], r["engine"], r["kv_dtype"], r["kernel"]),
                {**{c: float(r[c]) for c in ("heads", "kv_heads", "head_dim", "batch", "context")}, "over_l2": over},
                float(r["us"]), f"{r['heads']} {r['kv_heads']} {r['head_dim']}")
        for r in table(folder, "attention_verify"):
            if r["gpu"] and r["context"] and single_token(r):
                add((r["gpu"], "", r["kv_dtype"] or "float16", r["kernel"]),
                    {**cached_heads(r), "batch": float(r["batch"]), "context": float(r["context"]) + 1, "over_l2": 1e9},
                    float(r["us"]), f"{r['batch']} {r['context']}")
    elif kind == "attention_latent":
        for path in [folder] if os.path.isfile(folder) else sorted(glob.glob(LATENT_TABLES)):
            for r in rows_of_one(path, kind, "attention_latent_aic"):
                columns = {c: float(r[c]) for c in ("heads", "latent", "rope_dim", "batch", "tokens", "context")}
                if r["gpu"] not in hardware:
                    continue
                size = columns["batch"] * (columns["context"] + 1) * (columns["latent"] + columns["rope_dim"])
                if os.path.isfile(folder) or hardware[r["gpu"]]["kernels"] == r["gpu"]:  # the other rows test the fit
                    add((r["gpu"], r["engine"], r["kv_dtype"], r["kernel"]),
                        {**columns, "over_l2": over_l2(r, "kv_over_l2", size, r["kv_dtype"], hardware)}, float(r["us"]),
                        f"{r['batch']} {r['context']}")
    elif kind == "attention_prefill":
        for r in table(folder, "attention_prefill_aic"):
            add((r["gpu"], r["engine"], r["dtype"], r["kernel"]),
                {**{c: float(r[c]) for c in ("heads", "kv_heads", "head_dim", "batch", "tokens")}, "context": 0.0},
                float(r["us"]), f"{r['heads']} {r['kv_heads']} {r['head_dim']}")
    elif kind == "attention_verify":
        own = [] if os.path.isfile(folder) else itertools.chain(own_rows(), walks_of_single_tokens(folder))
        for r, is_own in itertools.chain(((r, False) for r in table(folder, "attention_verify")), ((r, True) for r in own)):
            if not r["gpu"] or not re.fullmatch("[0-9]+", r["tokens"]) or not r["context"] or single_token(r):
                continue
            add((r["gpu"], "", r["kv_dtype"] or "float16", r["kernel"]),
                {**cached_heads(r), **{c: float(r[c]) for c in ("batch", "tokens", "context")}}, float(r["us"]),
                f"{r['heads']} {r['kv_heads']} {r['head_dim']}" if is_own else f"{r['batch']} {r['tokens']}")  # tables of one layer
    elif kind == "experts":
        more = [] if os.path.isfile(folder) else table(folder, MORE_EXPERTS)
        for r in itertools.chain(table(folder, "moe_aic"), more):
            skew = 0.0 if r["routing"] == "balanced" else float(r["routing"].split("_")[-1])
            add((r["gpu"], r["engine"], r["dtype"], r["kernel"]),
                {**{c: float(r[c]) for c in ("hidden", "inter", "topk", "experts", "tp", "tokens")}, "matrices": matrices_of_expert(r), "skew": skew},
                float(r["us"]), f"{r['hidden']} {r['inter']} {r['topk']} {r['experts']}")
        for r in [] if os.path.isfile(folder) else (r for r in rows_of_folder(folder, "moe_mi300x_aiter") if float(r["us"]) > 0):
            add((r["gpu"], "aiter", AITER_EXPERTS[r["q_type"]], "fused"),
                {"hidden": float(r["model_dim"]), "inter": float(r["inter_dim"]), "topk": float(r["topk"]), "experts": float(r["experts"]),
                 "tp": 1.0, "tokens": float(r["tokens"]), "matrices": 3.0, "skew": AITER_SKEW}, float(r["us"]),
                f"{r['model_dim']} {r['inter_dim']} {r['topk']} {r['experts']}")
    elif kind == "allreduce":
        for r in newest_versions(list(table(folder, "allreduce_aic"))):
            add((r["gpu"], r["engine"], "bfloat16", r["kernel"]), {"gpus": float(r["gpus"]), "bytes": float(r["bytes"])},
                float(r["us"]), f"{r['gpus']} {r['bytes']}")
    for key, (columns, us, shapes) in found.items():
        columns = {c: np.array(values) for c, values in columns.items()}
        us, shapes = np.array(us), np.array(shapes)
        if key[2] not in weight_bytes() or key[0] not in hardware:
            continue
        if kind == "attention_decode":
            us = with_reading(hardware[key[0]], key[2], columns, us, 2 * columns["kv_heads"] * columns["head_dim"])
        elif kind == "attention_latent":
            us = with_reading(hardware[key[0]], key[2], columns, us, columns["latent"] + columns["rope_dim"])
        yield key, columns, us, shapes, weights_of(kind, columns, us)
        if kind == "product":
            small, us = small_products(hardware[key[0]], key[2], columns, us, shapes)
            if small.sum() >= LEAST_SMALL:
                yield (*key[:3], SMALL), columns, us, shapes, small.astype(float)


def newest_versions(rows):
    """For each GPU, engine and kernel, only the rows of the newest version: versions differ by up to four times."""
    def number(r):
        return [(len(part), part) for part in re.findall("0*([0-9]+)", r.get("version") or "")]  # ordered as their numbers are
    newest = {}
    for r in rows:
        key = r["gpu"], r["engine"], r["kernel"]
        newest[key] = max(newest.get(key, []), number(r))
    return [r for r in rows if number(r) == newest[r["gpu"], r["engine"], r["kernel"]]]


def small_products(hardware, dtype, x, us, shapes):
    """Which products are small ones from the cache, at any number of rows, and their times with weights from memory."""
    reading = 1e6 * x["n"] * x["k"] * weight_bytes()[dtype] / hardware["bandwidth"]
    _, of = np.unique(shapes, return_inverse=True)
    least = np.full(of.max() + 1, np.inf)
    np.minimum.at(least, of, us)
    return (x["over_l2"] < LEAST_SETS) & (reading < SMALL_SHARE * least[of]), us + 0.5 * reading


def with_reading(hardware, dtype, x, us, width):
    """Times of attention with keys of `size` elements from memory. Tables have few sequences with long caches from memory, though their times from
    the second-level cache show the cost of splitting and latency. From memory they take at least the larger of the time from the cache and of the
    reading time, and at most the sum; the mean of these bounds is used. Rows of one cache size and more lie on the line of larger ones."""
    reading = 1e6 * width * x["batch"] * x["context"] * weight_bytes()[dtype] / hardware["bandwidth"]
    return np.where(x["over_l2"] < 1, np.maximum(us, reading) + 0.5 * np.minimum(us, reading), us)


def weights_of(kind, x, us):
    """A row's weight in a fit: zero if weights were read from the second-level cache."""
    if kind == "product":
        weights = np.where(x["over_l2"] >= LEAST_SETS, 1.0, 0.0)
        # TensorRT-LLM's tables have few sets of weights: most shapes are partly read from the cache.
        for least in (1.0, 0.0):
            if len(set(zip(x["n"][weights > 0], x["k"][weights > 0]))) < 30:
                weights = np.maximum(weights, np.where(x["over_l2"] >= least, 0.2 if least else 0.05, 0.0))
        return weights if weights.max() == 1.0 else weights / weights.max()
    return np.ones(len(us))


def numbers(values, digits):
    """Numbers separated by spaces, in lines of at most 128 characters."""
    return "\n      ".join(textwrap.wrap(" ".join("0" if float(digits % v) == 0 else digits % v for v in values), 120))


def yaml_text(text):
    """The text as YAML, with any quotes and line breaks in it."""
    return json.dumps(text, ensure_ascii=False)


def plain_or_quoted(word):
    return word if re.fullmatch("[A-Za-z][A-Za-z0-9_]*", word) else yaml_text(word)


def quoted(values):
    return '"' + " ".join("%.5g" % v for v in values) + '"'


def others(path, fits):
    """The text of a file's fits that are not replaced now: each is the lines from " - kind:" on. A layer of experts runs on the fastest kernel of its
    engine, so the new table's fits replace those of all kernels."""
    import yaml
    with open(path, encoding="utf-8") as file:
        text = file.read()
    pieces = text.split("fits:\n", 1)[1].split("  - kind: ")[1:]
    def name(kind, engine, dtype, kernel):
        return kind, engine, dtype, "" if kind == "experts" else kernel
    made = {name(kind, engine or "any", dtype, kernel) for (kind, engine, dtype, kernel), _, _ in fits}
    read = yaml.safe_load(text)["fits"]
    return [(one["kind"], "  - kind: " + piece) for piece, one in zip(pieces, read)
            if name(one["kind"], one["engine"], one["dtype"], one["kernel"]) not in made]


def put(path, text):
    """Writes a file whole or not at all, and never through a link or into a pipe."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise BadTable(path, "is no regular file", "another --out, or none of this name there")
    part = None
    try:
        handle, part = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=f".{os.path.basename(path)}.", suffix=".part")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, path)
    except BaseException as error:
        if part is not None:
            os.unlink(part)
        if isinstance(error, OSError):
            error.filename = path
        raise


def write(path, gpu, fits, source=SHIPPED, beside=None):
    pieces = others(beside, fits) if beside else []
    for (kind, engine, dtype, kernel), f, rows in fits:
        if not f["spread"] <= MOST_SPREAD:
            raise BadTable(f"{gpu}, {kind}{f' of {kernel}' if kernel else ''}", f"the times differ from every formula by a factor of e^{f['spread']:.3g}", f"at most e^{MOST_SPREAD:g}: check the column us")
        e = 100 * f["held_out"]
        middle, high = np.expm1(f["spread"] * np.array([67.45, 164.5]) / 100) * 100 if f["few"] else np.percentile(e, [50, 90])
        remark = "  # of the spread: too few shapes to hold any out" if f["few"] else ""
        figures = ", ".join(f"{k}: {v:.4g}" for k, v in f["figures"].items())
        pieces.append((kind, f"  - kind: {kind}\n    engine: {plain_or_quoted(engine or 'any')}\n    dtype: {dtype}\n    kernel: {yaml_text(kernel)}\n"
                       + (f"    reads_keys: {reads_keys(kernel)}\n" if kind == "attention_verify" else "") + f"    rows: {rows}\n"
                       f"    spread: {f['spread']:.4g}\n    errors: [{middle:.3g}, {high:.3g}]{remark}\n"
                       f"    figures: {{{figures}}}\n    over: \"{numbers(f['over'], '%.5g')}\"\n"
                       f"    by: [{', '.join(quoted([] if k is None else k) for k in f['by'])}]\n"
                       f"    correction: \"{numbers(f['correction'], '%.3f')}\"\n"))
    order = list(KINDS)
    put(path, f"# Fitted kernel times of {gpu}, written by scripts/kernels/fit_kernels.py. spread: 95th percentile of the absolute error of the logarithm on\n"
              "# shapes that the fit did not see, divided by 1.96; errors: median and 90th percentile on them, percent. Correction: `docs/results/prices.md`.\n"
              f"source: {source}\nfits:\n" + "".join(piece for _, piece in sorted(pieces, key=lambda p: order.index(p[0]))))


@functools.lru_cache(maxsize=None)
def shipped_figures(folder, gpu):
    """The parameters in a GPU's file, by kind, engine, dtype and kernel."""
    import yaml
    with open(os.path.join(folder, gpu + ".yaml"), encoding="utf-8") as file:
        fits = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["fits"]
    return {(f["kind"], f["engine"], f["dtype"], f["kernel"]): f["figures"] for f in fits}


RIDGE = {"product": 0.6, "attention_decode": 0.15, "attention_latent": 0.15, "attention_prefill": 0.3, "attention_verify": 0.3, "experts": 1.0, "allreduce": 0.05}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables")
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", action="append", choices=sorted(KINDS))
    parser.add_argument("--gpu", action="append")
    parser.add_argument("--hardware", default="configs/hardware")
    parser.add_argument("--keep", help="a .pkl of fits that were made before: kinds that are not fitted now are taken from there")
    parser.add_argument("--corrections", action="store_true", help="figures stay as the files in --out have them, corrections alone are fitted")
    parser.add_argument("--report", help="a .csv of the errors on held-out shapes by kind, GPU, dtype and rows")
    parser.add_argument("--source", help="where one table is from")
    parser.add_argument("--existing", help="with one table: the folder of the fits that stay for kinds that the table lacks")
    options = parser.parse_args()
    if os.path.isfile(options.tables) and (len(options.only or []) != 1 or not options.source or not options.existing):
        parser.error("one table needs --only KIND, --source and the folder of the fits that stay (see --help)")
    hardware = read_hardware(options.hardware)
    by_gpu = {}
    if options.keep and os.path.exists(options.keep):
        with open(options.keep, "rb") as file:
            by_gpu = pickle.load(file)
    for kind in options.only or KINDS:
        for (gpu, engine, dtype, kernel), x, us, shapes, weights in groups(kind, options.tables, hardware):
            if options.gpu and gpu not in options.gpu:
                continue
            rows = weights > 0
            if rows.sum() < 3:
                continue
            figures = shipped_figures(options.out, gpu).get((kind, engine or "any", dtype, kernel)) if options.corrections else None
            f = fit(form_of(kind, kernel), hardware[gpu], dtype, {c: v[rows] for c, v in x.items()}, us[rows], shapes[rows], weights[rows],
                    RIDGE[kind], figures)
            e = 100 * f["held_out"]
            p = 100 * f["plain"]
            held = "held out " if not f["few"] else f"made of {len(set(shapes[rows]))} shapes alone, no error held out; on its own rows "
            print(f"{kind} {gpu} {engine} {dtype} {kernel[-40:]} rows {rows.sum()}: {held}{np.median(e):.1f} {np.percentile(e, 90):.1f}, "
                  f"formula alone {np.median(p):.1f} {np.percentile(p, 90):.1f}, {len(f['correction'])} weights", flush=True)
            key = (kind, engine, dtype, kernel)
            by_gpu.setdefault(gpu, {})[key] = (f, int(rows.sum()))
            if options.keep:
                with open(options.keep, "wb") as file:
                    pickle.dump(by_gpu, file)
    if options.report:
        write_report(options.report, by_gpu, KINDS, SMALL)
    for gpu, fits in by_gpu.items():
        order = {k: i for i, k in enumerate(KINDS)}
        ordered = [(k, *fits[k]) for k in sorted(fits, key=lambda k: (order[k[0]],) + k[1:])]
        if not os.path.isfile(options.tables):
            path = os.path.join(options.out, gpu + ".yaml")
            kept = path if options.only and os.path.exists(path) else None  # fits of kinds that are not fitted now stay
            write(path, gpu, ordered, beside=kept)
            continue
        shipped = os.path.join(options.existing, hardware[gpu]["kernels"] + ".yaml")  # a GPU of the same chip may use another GPU's file
        from_shipped = os.path.exists(shipped)
        source = options.source + (f"; other kernels: {SHIPPED}" if from_shipped else "")
        write(os.path.join(options.out, gpu + ".kernels.yaml"), gpu, ordered, "'" + source.replace("'", "''") + "'" if source.isprintable() else yaml_text(source), shipped if from_shipped else None)
        put(os.path.join(options.out, gpu + ".yaml"), f"# {gpu} with kernels as {yaml_text(options.source)[1:-1]} has them.\npreset: {gpu}\nkernels: {gpu}.kernels.yaml\n")
    if not by_gpu:
        sys.exit(3)  # specsim kernels prints the message


if __name__ == "__main__":
    try:
        main()
    except BadTable as bad:
        print(bad, file=sys.stderr)
        sys.exit(2)
    except OSError as failed:
        print(f"specsim: {failed.filename}: {failed.strerror}", file=sys.stderr)
        sys.exit(4)
