#!/usr/bin/python3
"""Compares measured kernels with their estimates, by kind, GPU and type, in one table.

usage: scripts/results/fidelity.py SPECSIM TABLES OUT    (from the repository's root: scripts/results/fidelity.py build/specsim TABLES results/fidelity)

TABLES is the folder of public measurements that scripts/kernels/fit_kernels.py names. Estimates each of its seven tables, and that of latent
attention in configs/kernels/tables, with `specsim kernels`, and writes to OUT
  fidelity.csv    count, median ratio, median and 90th percentile of the error in percent, by kind, GPU, type and rows; a row "all" for each
  ratios.csv      of products, by GPU, type and rows: 10th percentile, median, 90th
  attention.csv   attention over context by kernel, one sequence
  small.csv       products whose weights came from the second-level cache: percent of estimates outside of the possible range, by GPU, type and
                  megabytes of the weights
  fidelity.md     one line for each GPU and type
  sample/         some rows of each table with their estimates, for a test that has no TABLES
  ratios.png, attention.png, published.png   (scripts/plots/plot_fidelity.py; the last from results/roofline/published_speedups.csv)
  manifest.yaml
The parameters were fitted to two thirds of the shapes, the corrections to all rows. `results/notes/prices.md` has the errors on held-out shapes.
"""
import lzma
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("kernels", "plots")]
from calls import called, version_of  # noqa: E402
from kernel_formulas import read_hardware, weight_bytes  # noqa: E402
from plot_fidelity import PANELS, draw  # noqa: E402
from tables import quantile, rows_of, write_lines, write_rows  # noqa: E402

# kind: (tables, column of rows, type, goal for median and 90th percentile)
TABLES = {"product": ("gemm_aic", "m", "dtype"), "decode attention": ("attention_decode_aic", "batch", "kv_dtype"),
          "latent attention": ("attention_latent_aic", "batch", "kv_dtype"),
          "verification attention": ("attention_verify", "tokens", "kv_dtype"), "prefill attention": ("attention_prefill_aic", "tokens", "dtype"),
          "experts": ("moe_aic moe_more", "tokens", "dtype"), "all-reduce": ("allreduce_aic", "bytes", "")}
COLD = {"product": ("set_over_l2", 3.0), "decode attention": ("kv_over_l2", 2.0), "latent attention": ("kv_over_l2", 2.0)}
MOST = {"product": 512}
BANDS = [(1, "1"), (16, "2-16"), (64, "17-64"), (128, "65-128"), (512, "129-512"), (4096, "513-4096"), (1e18, "over 4096")]
# For weights from the cache, the time from memory lies between the measured time and that time plus the reading of the weights. An estimate counts as
# outside beyond this share.
SIZES, OUTSIDE = [(2, "0-2"), (8, "2-8"), (32, "8-32")], 0.05
OWN_TABLES = Path("configs/kernels/tables")
SAMPLE = 60  # rows of a table in sample/, approximately
FINE = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512]


def path_of(tables, name):
    source = next((path for path in (tables / f"{name}.csv.xz", tables / f"{name}.csv", OWN_TABLES / f"{name}.csv.xz") if path.exists()), None)
    if source is None:
        sys.exit(f"no {name}.csv.xz in {tables}")
    return source


def table_in(tables, name):
    """A table of the folder, opened as text."""
    path = path_of(tables, name)
    return lzma.open(path, "rt", newline="") if path.suffix == ".xz" else open(path, newline="")


def priced(specsim, tables, name, scratch):
    source = path_of(tables, name)
    out = scratch / name
    called(specsim, "kernels", source, "--out", out)
    return rows_of(out / "priced.csv")


def sampled(rows):
    """About SAMPLE of a table's estimated rows, evenly spread."""
    kept = [row for row in rows if row["priced_us"]]
    return kept[::max(1, len(kept) // SAMPLE)]


def small_product(row, ratio, hardware, weights):
    """The band of sizes of a product whose weights came from the cache, None elsewhere; and whether its estimate is outside of the bounds."""
    if row["dtype"] not in weights or row["gpu"] not in hardware or float(row[COLD["product"][0]]) >= COLD["product"][1]:
        return None, False
    size = float(row["n"]) * float(row["k"]) * weights[row["dtype"]]
    us, price = float(row["us"]), float(row["us"]) * ratio
    most = us + 1e6 * size / hardware[row["gpu"]]["bandwidth"]
    return next((label for mb, label in SIZES if size <= 1e6 * mb), None), price < (1 - OUTSIDE) * us or price > (1 + OUTSIDE) * most


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def score(ratios):
    errors = [abs(r - 1) for r in ratios]
    return len(ratios), quantile(ratios, 0.5), 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    specsim, tables, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    (out / "sample").mkdir(parents=True, exist_ok=True)
    groups, curves, attention, small = {}, {}, [], {}
    hardware = read_hardware("configs/hardware")
    with tempfile.TemporaryDirectory() as scratch:
        for kind, (name, column, dtype) in TABLES.items():
            table = []
            for one in name.split():
                rows = priced(specsim, tables, one, Path(scratch))
                write_rows(out / "sample" / f"{one}.csv", sampled(rows), [key for key in rows[0] if key not in ("ratio", "covered", "why")])
                table += rows
            for row in table:
                ratio, rows = number(row["ratio"]), number(row[column])
                if ratio is None or rows is None or rows > MOST.get(kind, 1e18):
                    continue
                if kind == "product":
                    size, outside = small_product(row, ratio, hardware, weight_bytes(specsim))
                    if size:
                        small.setdefault((row["gpu"], row["dtype"], size), []).append(outside)
                if kind in COLD and float(row[COLD[kind][0]]) < COLD[kind][1]:
                    continue
                of = (kind, row["gpu"], (row[dtype] or "float16") if dtype else "")
                band = next(label for most, label in BANDS if rows <= most)
                for key in ("all", band):
                    groups.setdefault((*of, key), []).append(ratio)
                if kind == "product":
                    curves.setdefault((*of[1:], min(FINE, key=lambda x: abs(x - rows) / x)), []).append(ratio)
                if kind == "verification attention" and row["batch"] == "1" and any(
                        row["gpu"] == gpu and row["kernel"].startswith(begins) and rows in shown for gpu, _, begins, shown in PANELS):
                    attention.append({"gpu": row["gpu"], "kernel": row["kernel"], "tokens": row["tokens"], "context": row["context"],
                                      "measured_us": row["us"], "priced_us": row["priced_us"]})
    order = ["all"] + [label for _, label in BANDS]
    kinds = list(TABLES)
    scores = {key: score(groups[key]) for key in sorted(groups, key=lambda k: (kinds.index(k[0]), k[1], k[2], order.index(k[3])))}
    write_lines(out / "fidelity.csv", ["kind", "gpu", "dtype", "rows", "count", "median_ratio", "median_error_percent", "p90_error_percent"],
                ([*key, count, f"{ratio:.3f}", f"{median:.1f}", f"{high:.1f}"] for key, (count, ratio, median, high) in scores.items()))
    write_lines(out / "ratios.csv", ["gpu", "dtype", "rows", "count", "low_ratio", "median_ratio", "high_ratio"],
                ([*key, len(ratios), *(f"{quantile(ratios, q):.3f}" for q in (0.1, 0.5, 0.9))] for key, ratios in sorted(curves.items())))
    write_lines(out / "small.csv", ["gpu", "dtype", "megabytes", "count", "outside_percent"],
                ([*key, len(outside), f"{100 * sum(outside) / len(outside):.0f}"] for key, outside in sorted(small.items())))
    write_rows(out / "attention.csv", sorted(attention, key=lambda r: (r["gpu"], r["kernel"], float(r["tokens"]), float(r["context"]))))
    text = ("Median and 90th percentile of the error of a kernel's estimated time, percent, over all measured rows of all engines (products: 1 to 512 rows with "
            "weights from memory; decode and latent attention: caches beyond the second-level cache).\n\n"
            "| GPU | type | " + " | ".join(kinds) + " |\n|---|---|" + "---|" * len(kinds) + "\n")
    cells = {}
    for (kind, gpu, dtype, band), (_, _, median, high) in scores.items():
        if band == "all":
            cells.setdefault((gpu, dtype or "bfloat16"), {})[kind] = f"{median:.1f} / {high:.0f}"
    for (gpu, dtype), own in sorted(cells.items()):
        text += f"| {gpu} | {dtype} | " + " | ".join(own.get(kind, "") for kind in kinds) + " |\n"
    (out / "fidelity.md").write_text(text)
    (out / "manifest.yaml").write_text(
        f'script: scripts/results/fidelity.py\ncommand: "scripts/results/fidelity.py build/specsim TABLES results/fidelity"\nprogram: "{version_of(specsim)}"\n'
        'tables: "gemm_aic, attention_decode_aic, attention_latent_aic, attention_prefill_aic, moe_aic, moe_more, allreduce_aic: ai-dynamo/aiconfigurator 095f58a51c4c (Apache-2.0); '
        'attention_verify: Vidur 7d47513363ec, LLMServingSim 5daddb21a545 (MIT), figures of public threads"\nplots: scripts/plots/plot_fidelity.py\n')
    draw(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
