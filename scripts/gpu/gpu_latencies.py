#!/usr/bin/python3
"""Compares the measurements of scripts/gpu/gpu_calibrate with specsim's estimates, which use only the GPU's preset.

    scripts/gpu/gpu_latencies.py build/specsim results/gpu/h200-sxm    writes prices.csv and prices.md there

The folder's name is the GPU's in configs/hardware. Whole passes are estimated by `specsim pass`, products by `specsim kernels`. Tables that
estimates were fitted to (kernels/attention_fa2.csv, attention_fa3.csv, products_w4a16.csv) are left out. PyTorch has two ways to attend
several tokens, with heads that share keys together or apart; the faster one counts.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results"))
from calls import called, printed_rows  # noqa: E402
from tables import quantile, rows_of, write_lines  # noqa: E402

COLUMNS = ["who", "model", "batch", "tokens", "context", "measured_ms", "priced_ms", "ratio"]


def passes(program, gpu, measured, engine):
    """`measured` (model, batch, tokens, context, ms), each with the estimated time of its pass."""
    cells = sorted({(model, batch, context) for model, batch, _, context, _ in measured})
    priced = {}
    for model, batch, context in cells:
        tokens = sorted({row[2] for row in measured if (row[0], row[1], row[3]) == (model, batch, context)})
        table = printed_rows(program, "pass", "--hardware", gpu, "--model", model, "--engine", engine, "--batch", batch, "--context", context,
                             "--tokens", ",".join(map(str, tokens)), "--csv", "--quiet")
        for row in table:
            priced[model, batch, int(row["tokens"]), context] = float(row["total_ms"])
    return [(*row, priced[row[:4]]) for row in measured]


def kernels(program, table):
    with tempfile.TemporaryDirectory() as out:
        called(program, "kernels", table, "--out", out, "--quiet")
        return [row for row in rows_of(Path(out) / "priced.csv") if row["priced_us"]]


def errors(what, of):
    """A line of the table: count, median of estimated over measured, median error and its 90th percentile."""
    ratios = [ratio for ratio in of if ratio]
    if not ratios:
        return []
    off = [100 * abs(ratio - 1) for ratio in ratios]
    return [f"| {what} | {len(ratios)} | {quantile(ratios, 0.5):.3f} | {quantile(off, 0.5):.1f} / {quantile(off, 0.9):.1f} |"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, folder = sys.argv[1], Path(sys.argv[2])
    gpu = folder.name
    models = {"target": "llama-3.1-8b", "draft": "llama-3.2-1b"}
    own = [(models[row["model"]], int(row["batch"]), int(row["tokens"]), int(row["context"]), float(row["ms"]))
           for run in ("llama-8b-1b", "llama-8b-1b-batch-64") for row in rows_of(folder / run / "passes.csv")]
    fastest = {}
    for row in rows_of(folder / "kernels/steps.csv"):
        cell = (row["model"], int(row["batch"]), int(row["new_tokens"]), int(row["context"]))
        fastest[cell] = min(fastest.get(cell, float("inf")), float(row["ms"]))
    torch = [(*cell, ms) for cell, ms in fastest.items()]
    eager = [(row["model"], 1, int(row["tokens"]), int(row["context"]), float(row["transformers"]))
             for row in rows_of(folder / "peers.csv") if row["what"] == "pass"]
    made = [(who, *row) for who, engine, measured in (("specsim", "graphs", own), ("PyTorch", "graphs", torch),
                                                      ("transformers", "transformers", eager))
            for row in passes(program, gpu, measured, engine)]
    write_lines(folder / "prices.csv", COLUMNS, ([*row[:6], f"{row[6]:.5g}", f"{row[6] / row[5]:.4f}"] for row in made))

    def of(who, least, most, several):
        return [row[6] / row[5] for row in made if row[0] == who and least <= row[2] <= most and (row[3] > 1) == several]

    lines = ["| measured | rows | estimated over measured | error, median / 90th, % |", "|---|---|---|---|"]
    products = kernels(program, folder / "kernels/products.csv")
    for dtype, name in (("bfloat16", "products of cuBLAS in bf16"), ("fp8", "products of cuBLAS in fp8, a scale per row")):
        for band, low, high in (("1 to 16 rows", 1, 16), ("17 to 128 rows", 17, 128), ("129 to 512 rows", 129, 512)):
            lines += errors(f"{name}, {band}", [float(row["ratio"]) for row in products if row["dtype"] == dtype and low <= int(row["m"]) <= high])
    for who, name in (("PyTorch", "a captured step of PyTorch's kernels"), ("specsim", "a pass of this project's kernels")):
        for several, tokens in ((False, "one token"), (True, "several tokens")):
            for least, most in ((1, 1), (4, 32), (64, 128)):
                batch = f"batch {least}" if least == most else f"batch {least} to {most}"
                lines += errors(f"{name}, {tokens}, {batch}", of(who, least, most, several))
    lines += errors("an eager pass of transformers", [row[6] / row[5] for row in made if row[0] == "transformers"])
    (folder / "prices.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
