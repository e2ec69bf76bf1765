#!/usr/bin/python3
"""Collects every measured row that the project compares itself with: writes results/scoreboard.

usage: scripts/results/scoreboard.py OUT    (from the repository's root: scripts/results/scoreboard.py results/scoreboard)

Reads the tables that other scripts of this folder wrote to results/ and estimates nothing again:
  results/fidelity/unseen.csv          kernels on shapes that no fit saw, by kind and type (summaries; their rows are too many to keep)
  results/fidelity/coverage/rows.csv   steps, served times and published passes, with the error that the program states
  results/tune/cells.csv               runs of servers, predicted without any run of them
  results/roofline, results/served     speedups that papers and servers published
  results/gpu                          steps of PyTorch
  results/servers                      servers simulated from what their sources state, and threads
Dates and versions are those of these tables, or of configs/published/sources.csv by the beginning of the source; "not stated" if a source has none.
Writes
  rows.csv       class, source, date, version (of the engine), quantity, unit, measured, estimated, the 95 % interval if one is stated, inside (yes or no)
  classes.csv    rows, median and 90th percentile of the error, share of rows inside their interval, by class
  scoreboard.json  both and the peers' errors, in one file
  classes.md     classes.csv as a table for pages
  left_out.md    rows without an estimate, by class and reason
  peers.md, peers_stated.md  mean errors of other simulators on published stages, and the errors that they state of themselves
  scoreboard.png estimated over measured by class (scripts/plots/plot_scoreboard.py)
To add a row, add a line to configs/published/servers.csv, threads.csv, served_speedups.csv or speedups.csv and run the script that estimates it.
"""
import json
import math
import re
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
COLUMNS = ["class", "source", "date", "version", "quantity", "unit", "measured", "estimated", "low", "high", "inside"]
SOURCES = rows_of("configs/published/sources.csv")
PEERS = Path("configs/published/peers.csv")
STAGES = "six simulators"  # the class of the rows that PEERS names
NOT_STATED = "not stated"


def row(kind, source, quantity, unit, measured, estimated, low=None, high=None, date="", version=""):
    known = next((one for one in SOURCES if source.startswith(one["begins"])), {"date": NOT_STATED, "version": NOT_STATED})
    return {"class": kind, "source": source, "date": date or known["date"], "version": version or known["version"], "quantity": quantity, "unit": unit,
            "measured": measured, "estimated": estimated, "low": "" if low is None else f"{low:.5g}", "high": "" if high is None else f"{high:.5g}",
            "inside": "" if low is None else "yes" if low <= float(measured) <= high else "no"}


def with_error(kind, source, quantity, unit, measured, estimated, error, date="", version=""):
    """error: standard deviation of the logarithm of the estimate."""
    factor = math.exp(Z95 * error)
    return row(kind, source, quantity, unit, measured, estimated, float(estimated) / factor, float(estimated) * factor, date, version)


def step_rows():
    for one in rows_of(RESULTS / "fidelity" / "coverage" / "rows.csv"):
        kind = SETS.get(one["set"], one["set"])
        quantity = "round" if kind.endswith("rounds") else "step"
        yield with_error(kind, one["server"], quantity, "ms", one["measured_ms"], one["estimated_ms"], 0.01 * float(one["stated_error_percent"]),
                         one["date"], one["version"])


def server_rows():
    for one in rows_of(RESULTS / "tune" / "cells.csv"):
        if one["given"] != "0":
            continue
        for metric, (quantity, unit) in METRICS.items():
            if one[f"measured_{metric}"] in ("", "nan") or not one[metric]:
                continue
            month = re.search(r", (\d{4}-\d\d)$", one["server"])
            yield row(f"runs of servers, {one['class']}: {quantity}", f"{one['server']}, {one['run']}", quantity, unit, one[f"measured_{metric}"],
                      one[metric], float(one[f"{metric}_low"]), float(one[f"{metric}_high"]), month.group(1) if month else "")


def simulated_rows(lines):
    for one in lines:
        if one["estimated"]:
            bounds = (float(one["low"]), float(one["high"])) if one["low"] else ()
            yield {**row(one["class"], f"{one['row']} ({one['source']})", one["quantity"], one["unit"], one["measured"], one["estimated"], *bounds),
                   "date": one["date"], "version": one["version"]}


def speedup_rows():
    for one in rows_of(RESULTS / "roofline" / "published_speedups.csv"):
        if one["scored"] == "yes" and one["quantity"] == "speedup":
            made = row("speedups: papers", one["source"], "speedup", "x", one["published"], one["simulated"])
            yield {**made, "source": f"{one['row']} ({one['source']})"}
    for one in rows_of(RESULTS / "served" / "served_speedups.csv"):
        if one["scored"] == "yes" and one["measured_speedup"] and one["simulated_speedup"]:
            yield row("speedups: servers", f"{one['row']} ({one['source']})", "speedup", "x", one["measured_speedup"], one["simulated_speedup"],
                      date=one["date"], version=one["version"])


def own_rows():
    for path in sorted((RESULTS / "gpu").glob("*/prices.csv")):
        machine = (path.parent / "machine.txt").read_text()
        date, version = re.search(r"\w+ (\w+ +\d+) [\d:]+ +(\d{4})", machine), re.search(r"torch ([\d.]+)", machine)
        for one in rows_of(path):
            if one["who"] != "specsim":  # the project's own kernels are a reference for results, not for time
                yield row(f"steps: PyTorch on {path.parent.name}", f"{one['model']}, batch {one['batch']}, {one['tokens']} tokens, "
                          f"context {one['context']}", "step", "ms", one["measured_ms"], one["priced_ms"],
                          date=" ".join(date.groups()), version=f"PyTorch {version.group(1)}")


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


def left_out(lines):
    """Cells without an estimate."""
    groups = defaultdict(set)
    for one in lines:
        if not one["estimated"]:
            groups[one["class"].rsplit(":", 1)[0], one["not_simulated"]].add(one["row"])
    text = "| class | cells | not simulated |\n|---|---|---|\n"
    return text + "".join(f"| {kind} | {len(cells)} | {reason} |\n" for (kind, reason), cells in sorted(groups.items()))


def peer_errors(lines):
    """Mean errors of E2E, ITL and TTFT by simulator, each on the stages that it was run for, and specsim's on the same stages."""
    own = {(one["row"], one["quantity"]): one for one in lines if one["class"].startswith(STAGES)}

    def error(estimated, measured):
        return 100 * abs(float(estimated) / float(measured) - 1)
    groups = defaultdict(list)
    for one in rows_of(PEERS):
        groups[one["peer"]].append(one)
    everything = [{"row": stage, "quantity": quantity, "measured_ms": one["measured"], "estimated_ms": one["estimated"]} for (stage, quantity), one in own.items()]
    for peer, found in [("specsim", everything), *groups.items()]:
        made = {"peer": peer, "stages": len({one["row"] for one in found})}
        for quantity in ("E2E", "ITL", "TTFT"):
            of = [one for one in found if one["quantity"] == quantity]
            same = [own[one["row"], quantity] for one in of]
            made[quantity] = f"{sum(error(one['estimated_ms'], one['measured_ms']) for one in of) / len(of):.1f}"
            made[f"specsim_{quantity}"] = f"{sum(error(one['estimated'], one['measured']) for one in same) / len(same):.1f}"
        yield made


def peer_table(errors):
    text = "| simulator | stages | mean error of E2E / ITL / TTFT | specsim on the same stages |\n" + "|---" * 4 + "|\n"
    for one in errors:
        cells = [" / ".join(one[f"{who}{quantity}"] for quantity in ("E2E", "ITL", "TTFT")) + " %" for who in ("", "specsim_")]
        text += f"| {one['peer']} | {one['stages']} | {cells[0]} | {cells[1] if one['peer'] != 'specsim' else '-'} |\n"
    return text


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    simulated = rows_of(RESULTS / "servers" / "rows.csv")
    rows = [*step_rows(), *server_rows(), *speedup_rows(), *own_rows(), *simulated_rows(simulated)]
    peers = list(peer_errors(simulated))
    lines = [*kernel_classes(), *classes(rows)]
    write_rows(out / "rows.csv", rows, COLUMNS)
    write_rows(out / "classes.csv", lines)
    (out / "classes.md").write_text(table(lines))
    (out / "left_out.md").write_text(left_out(simulated))
    (out / "peers.md").write_text(peer_table(peers))
    stated = rows_of(PEERS.with_name("peers_stated.csv"))
    (out / "peers_stated.md").write_text("| simulator | what | stated error |\n|---|---|---|\n" +
                                         "".join(f"| {one['simulator']} | {one['what']} | {one['error']} |\n" for one in stated))
    parts = [f'"{name}": [\n' + ",\n".join(json.dumps(one) for one in part) + "\n]" for name, part in
             (("classes", lines), ("peers", peers), ("peers_stated", stated), ("rows", rows))]
    (out / "scoreboard.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")
    (out / "manifest.yaml").write_text('script: scripts/results/scoreboard.py\ncommand: "scripts/results/scoreboard.py results/scoreboard"\n'
                                       "data: results/fidelity, results/tune, results/roofline, results/served, results/gpu, results/servers\n")
    from plot_scoreboard import draw
    draw(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
