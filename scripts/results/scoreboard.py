#!/usr/bin/python3
"""Collects every measured row that the project compares itself with: writes results/scoreboard.

usage: scripts/results/scoreboard.py OUT    (from the repository's root: scripts/results/scoreboard.py results/scoreboard)

Reads the tables that other scripts of this folder wrote to results/ and estimates nothing again:
  results/fidelity/unseen.csv          kernels on shapes that no fit saw, by kind and type (summaries; their rows are too many to keep)
  results/fidelity/coverage/rows.csv   steps, served times and published passes, with the error that the program states
  results/tune/cells.csv               runs of servers, predicted without any run of them
  results/roofline, results/served     speedups that papers and servers published
  results/gpu                          steps of PyTorch
Writes
  rows.csv       class, source, quantity, unit, measured, estimated, the 95 % interval if one is stated, inside (yes or no)
  classes.csv    rows, median and 90th percentile of the error, share of rows inside their interval, by class
  classes.md     the same as a table for pages
  scoreboard.png estimated over measured by class (scripts/plots/plot_scoreboard.py)
To add a row, add a line to configs/published/served_speedups.csv or configs/published/speedups.csv and run the script that estimates it.
"""
import math
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plots"))
from tables import quantile, rows_of, write_rows  # noqa: E402

RESULTS = Path("results")
Z95 = 1.96
KINDS = {"product": "kernels: products", "attention_decode": "kernels: decode attention", "attention_latent": "kernels: latent attention",
         "attention_prefill": "kernels: prefill attention", "attention_verify": "kernels: verification attention", "experts": "kernels: experts",
         "allreduce": "kernels: all-reduces"}
SETS = {"published: passes": "steps: published passes", "steps of vLLM on a B300": "steps: vLLM on a B300"}
METRICS = {"tpot_ms": ("TPOT", "ms"), "ttft_ms": ("TTFT", "ms"), "output_tokens_per_s": ("throughput", "tokens/s")}
COLUMNS = ["class", "source", "quantity", "unit", "measured", "estimated", "low", "high", "inside"]


def row(kind, source, quantity, unit, measured, estimated, low=None, high=None):
    return {"class": kind, "source": source, "quantity": quantity, "unit": unit, "measured": measured, "estimated": estimated,
            "low": "" if low is None else f"{low:.5g}", "high": "" if high is None else f"{high:.5g}",
            "inside": "" if low is None else "yes" if low <= float(measured) <= high else "no"}


def with_error(kind, source, quantity, unit, measured, estimated, error):
    """error: standard deviation of the logarithm of the estimate."""
    factor = math.exp(Z95 * error)
    return row(kind, source, quantity, unit, measured, estimated, float(estimated) / factor, float(estimated) * factor)


def step_rows():
    for one in rows_of(RESULTS / "fidelity" / "coverage" / "rows.csv"):
        kind = SETS.get(one["set"], one["set"])
        quantity = "round" if kind.endswith("rounds") else "step"
        yield with_error(kind, one["server"], quantity, "ms", one["measured_ms"], one["estimated_ms"], 0.01 * float(one["stated_error_percent"]))


def server_rows():
    for one in rows_of(RESULTS / "tune" / "cells.csv"):
        if one["given"] != "0":
            continue
        for metric, (quantity, unit) in METRICS.items():
            if one[f"measured_{metric}"] in ("", "nan") or not one[metric]:
                continue
            yield row(f"runs of servers, {one['class']}: {quantity}", f"{one['server']}, {one['run']}", quantity, unit, one[f"measured_{metric}"],
                      one[metric], float(one[f"{metric}_low"]), float(one[f"{metric}_high"]))


def speedup_rows():
    for one in rows_of(RESULTS / "roofline" / "published_speedups.csv"):
        if one["scored"] == "yes" and one["quantity"] == "speedup":
            yield row("speedups: papers", f"{one['row']} ({one['source']})", "speedup", "x", one["published"], one["simulated"])
    for one in rows_of(RESULTS / "served" / "served_speedups.csv"):
        if one["scored"] == "yes" and one["measured_speedup"] and one["simulated_speedup"]:
            yield row("speedups: servers", f"{one['row']} ({one['source']}, {one['date']})", "speedup", "x", one["measured_speedup"],
                      one["simulated_speedup"])


def own_rows():
    for path in sorted((RESULTS / "gpu").glob("*/prices.csv")):
        for one in rows_of(path):
            if one["who"] != "specsim":  # the project's own kernels are a reference for results, not for time
                yield row(f"steps: PyTorch on {path.parent.name}", f"{one['model']}, batch {one['batch']}, {one['tokens']} tokens, "
                          f"context {one['context']}", "step", "ms", one["measured_ms"], one["priced_ms"])


def kernel_classes():
    """Summaries of kernels: the median over GPUs and types, weighted with their rows."""
    groups = defaultdict(list)
    for one in rows_of(RESULTS / "fidelity" / "unseen.csv"):
        if one["rows"] == "all" and one["within_2_percent"]:
            groups[KINDS[one["kind"]]].append([float(one[key]) for key in ("count", "median_percent", "p90_percent", "within_2_percent")])
    for kind, found in sorted(groups.items()):
        total = sum(count for count, *_ in found)
        middle, high, inside = (sum(one[0] * one[place] for one in found) / total for place in (1, 2, 3))
        yield {"class": kind, "rows": int(total), "median_error_percent": f"{middle:.1f}", "p90_error_percent": f"{high:.1f}",
               "inside_percent": f"{inside:.0f}", "estimated_over_measured": ""}


def classes(rows):
    groups = defaultdict(list)
    for one in rows:
        groups[one["class"]].append(one)
    for kind, found in sorted(groups.items()):
        logs = [math.log(float(one["estimated"]) / float(one["measured"])) for one in found]
        errors = [100 * abs(math.expm1(log)) for log in logs]
        inside = [one["inside"] == "yes" for one in found if one["inside"]]
        yield {"class": kind, "rows": len(found), "median_error_percent": f"{quantile(errors, 0.5):.1f}",
               "p90_error_percent": f"{quantile(errors, 0.9):.1f}", "inside_percent": f"{100 * sum(inside) / len(inside):.0f}" if inside else "",
               "estimated_over_measured": f"{math.exp(quantile(logs, 0.5)):.2f}"}


def table(lines):
    text = "| class | rows | error: median / 90 % | estimated over measured, median | inside 95 % |\n" + "|---" * 5 + "|\n"
    for one in lines:
        inside = f"{one['inside_percent']} %" if one["inside_percent"] else "not stated"
        text += (f"| {one['class']} | {one['rows']} | {one['median_error_percent']} / {one['p90_error_percent']} % | "
                 f"{one['estimated_over_measured'] or '-'} | {inside} |\n")
    return text


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    rows = [*step_rows(), *server_rows(), *speedup_rows(), *own_rows()]
    lines = [*kernel_classes(), *classes(rows)]
    write_rows(out / "rows.csv", rows, COLUMNS)
    write_rows(out / "classes.csv", lines)
    (out / "classes.md").write_text(table(lines))
    (out / "manifest.yaml").write_text('script: scripts/results/scoreboard.py\ncommand: "scripts/results/scoreboard.py results/scoreboard"\n'
                                       "data: results/fidelity, results/tune, results/roofline, results/served, results/gpu\n")
    from plot_scoreboard import draw
    draw(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
