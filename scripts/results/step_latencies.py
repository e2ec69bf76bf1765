#!/usr/bin/python3
"""Compares steps and served times of real servers with their estimates, in tables.

usage: scripts/results/step_latencies.py SPECSIM TABLES OUT    (from the repository's root: scripts/results/step_latencies.py build/specsim TABLES results/fidelity/steps)

TABLES is the folder of public measurements, as for scripts/results/fidelity.py, or OUT itself: a test estimates the rows there again without
the folder. Estimates the three tables of SOURCES with `specsim kernels` and writes to OUT
  TABLE.csv       the estimated rows, with measured and estimated milliseconds
  errors.csv      by the groups of the pages: rows, median of estimated over measured, median error, 90th percentile and worst, percent
  dense.md, linear.md, served.md   the tables of `results/notes/prices.md`, which includes them
  manifest.yaml
"""
import csv
import sys
import tempfile
from pathlib import Path

from calls import called, version_of
from fidelity import table_in
from tables import quantile, rows_of, write_lines, write_rows

# Table: the columns that are kept.
SOURCES = {
    "steps_vllm_b300_fpm": ["gpu", "engine", "model", "tp", "ep", "batch", "mean_context", "median_ms"],
    "steps_vllm_b300_layerwise": ["gpu", "engine", "model", "tp", "phase", "batch", "new_tokens", "context", "ms"],
    "serving_tpot": ["backend", "backend_version", "model_path", "system", "precision", "gemm_quant_mode", "isl", "osl", "tp_size", "concurrency",
                     "batch_size", "attention_dp_size", "moe_tp_size", "moe_ep_size", "silicon_ttft_ms", "silicon_tpot_ms"]}
LIVE, LAYERS, SERVED = SOURCES
DENSE, LINEAR = "Qwen3-32B", "Qwen3.6-35B-A3B"
SEQUENCES = "on 16 to 32,768"


def priced(specsim, tables, name, scratch):
    """The rows of a table that have an estimate, with priced_ms and ratio."""
    with table_in(tables, name) as file:
        rows = list(csv.DictReader(file))
    columns = [key for key in rows[0] if key not in ("priced_ms", "ratio")]
    source = scratch / f"{name}.csv"
    write_rows(source, rows, columns)
    called(specsim, "kernels", source, "--out", scratch / name)
    return [row for row in rows_of(scratch / name / "priced.csv") if row["ratio"]]


def errors(rows):
    """Rows, median of estimated over measured, median error, 90th percentile and worst, percent."""
    ratios = [float(row["ratio"]) for row in rows]
    off = [100 * abs(ratio - 1) for ratio in ratios]
    return len(rows), quantile(ratios, 0.5), quantile(off, 0.5), quantile(off, 0.9), max(off)


def error_cells(group):
    """A group's columns of a table in Markdown."""
    count, ratio, middle, high, worst = group
    return f"{count} | {ratio:.2f} | {middle:.1f} / {high:.1f} / {worst:.1f}"


def between(column, least, most):
    return lambda row: least <= float(row[column]) <= most


def both(*tests):
    return lambda row: all(test(row) for test in tests)


def is_(column, *values):
    return lambda row: row[column] in values


def dense_groups(live, layers):
    """(table, GPUs, what) and its rows, in the order of the page."""
    found = {}
    live = [row for row in live if row["model"] == DENSE]
    for tp in ("1", "4"):
        for words, least, most in (("batch 1", 1, 1), ("batch 2 to 8", 2, 8), ("batch 9 to 32", 9, 32)):
            found["live server", tp, f"decoding, {words}"] = list(filter(both(is_("tp", tp), between("batch", least, most)), live))
    found["live server", "all", "decoding"] = live
    decoding, prompts = ([row for row in layers if row["phase"] == phase] for phase in ("gen", "ctx"))
    for tp in ("1", "4", "8"):
        for words, least, most in (("batch 1 to 8", 1, 8), ("batch 16 to 128", 16, 128), ("batch 256", 256, 256)):
            found["by layers", tp, f"decoding, {words}"] = list(filter(both(is_("tp", tp), between("batch", least, most)), decoding))
    found["by layers", "all", "decoding, batch 1 to 128"] = list(filter(between("batch", 1, 128), decoding))
    for tp in ("1", "4", "8"):
        for words, least, most in (("1 to 128", 1, 128), ("256 to 2,048", 256, 2048)):
            found["by layers", tp, f"prompt of {words} tokens {SEQUENCES}"] = list(
                filter(both(is_("tp", tp), between("new_tokens", least, most)), prompts))
    found["by layers", "all", "prompts"] = prompts
    found["both", "all", "all"] = live + layers
    return found


def linear_groups(live):
    rows = [row for row in live if row["model"] == LINEAR]
    bands = {"batch 1": (1, 1), "batch 2 to 8": (2, 8), "batch 9 to 32": (9, 32)}
    return {**{("1 and 4", f"decoding, {words}"): list(filter(between("batch", *band), rows)) for words, band in bands.items()},
            ("1 and 4", "decoding"): rows}


def served_groups(rows):
    found = {}
    for row in sorted(rows, key=lambda r: (r["model_path"].split("/")[-1], r["system"], r["backend"], r["precision"])):
        found.setdefault((row["model_path"].split("/")[-1], row["system"], row["backend"], row["precision"] or "not said"), []).append(row)
    found["Llama", "all", "all", "all"] = [row for row in rows if "Llama" in row["model_path"]]
    found["all", "all", "all", "all"] = rows
    return found


def prose_groups(rows):
    """Groups of served rows that the notes on latency discuss besides their table."""
    cut = [row for row in rows if "DeepSeek" in row["model_path"] and row["system"] == "b200_sxm" and row["backend"] == "trtllm"]
    found = {(f"DeepSeek {post}", precision):
             [row for row in cut if row["backend_version"].endswith(post) and row["precision"] == precision]
             for post in ("post2", "post3") for precision in ("fp4", "fp8")}
    found["DeepSeek and Llama", "without post3"] = [
        row for row in rows if ("DeepSeek" in row["model_path"] or "Llama" in row["model_path"]) and not row["backend_version"].endswith("post3")]
    found["Qwen3.5, Kimi-K2.5 and GLM-5", "all"] = [row for row in rows if any(name in row["model_path"] for name in ("Qwen3.5", "Kimi-K2.5", "GLM-5"))]
    return found


def markdown(columns, groups):
    lines = ["| " + " | ".join([*columns, "rows", "ratio", "error"]) + " |", "|---" * (len(columns) + 3) + "|"]
    return "\n".join(lines + [f"| {' | '.join(key)} | {error_cells(errors(rows))} |" for key, rows in groups.items()]) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    specsim, tables, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        rows = {name: priced(specsim, tables, name, Path(scratch)) for name in SOURCES}
    out.mkdir(parents=True, exist_ok=True)
    for name, columns in SOURCES.items():
        write_rows(out / f"{name}.csv", rows[name], [*columns, "priced_ms", "ratio"])
    pages = {"dense": (["table", "GPUs", "what"], dense_groups(rows[LIVE], rows[LAYERS])),
             "linear": (["GPUs", "what"], linear_groups(rows[LIVE])),
             "served": (["model", "GPU", "engine", "type"], served_groups(rows[SERVED]))}
    for name, (columns, groups) in pages.items():
        (out / f"{name}.md").write_text(markdown(columns, groups))
    lines = []
    for name, groups in [*((name, groups) for name, (_, groups) in pages.items()), ("prose", prose_groups(rows[SERVED]))]:
        for key, own in groups.items():
            count, ratio, *off = errors(own)
            lines.append([name, "; ".join(key), count, f"{ratio:.3f}", *(f"{x:.1f}" for x in off)])
    write_lines(out / "errors.csv", ["page", "group", "rows", "median_ratio", "median_error_percent", "p90_error_percent", "worst_error_percent"], lines)
    (out / "manifest.yaml").write_text(
        'script: scripts/results/step_latencies.py\ncommand: "scripts/results/step_latencies.py build/specsim TABLES results/fidelity/steps"\n'
        f'program: "{version_of(specsim)}"\ntables: "ai-dynamo/aiconfigurator, Apache-2.0: steps of vLLM 0.20.1 on a B300, branch dev-layerwise-collector (60a0ffc30); '
        'served times, systems/silicon_sample.csv (095f58a51c4c): InferenceMAX and NVIDIA; rows without an estimate are left out"\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
