#!/usr/bin/python3
"""results/roofline, results/timing_claims, results/servers, results/fidelity/steps and coverage, and estimates of results/gpu and of the kernels in
results/fidelity/sample agree with their scripts' output on the current program. results/method_claims belongs to the current configs, and a
ranking with fewer rounds agrees with the one on record.

Runs at the root of the repository; SPECSIM names the program. Values may differ in their last digit.
"""
import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, "scripts/results")
import latency_coverage
from tables import rows_of

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
RESULTS = Path("results")
# script, folder, its tables; its text
MADE = [("roofline", "roofline", ["roofline.csv"], None), ("published_speedups", "roofline", ["published_speedups.csv"], None),
        ("served_speedups", "served", ["served_speedups.csv"], "served_speedups.md"),
        ("llama_cpp_latencies", "roofline", ["llama_cpp.csv"], "llama_cpp.md"),
        ("timing_claims", "timing_claims", [f"{name}.csv" for name in ("knees", "crossings", "regimes", "varying_context", "placements", "batch")],
         "timing_claims.md")]
RANKED = ["variants", "adaptive", "trees"]
# Quick with fewer rounds. Speedups then have wider intervals; five standard errors are 1.7 of a half width at 99 %.
RERUN, ROUNDS, WIDTHS = "adaptive", 262144, 1.7


def same(a, b):
    """Whether texts are equal, except for the last printed digit of numbers."""
    if a == b:
        return True
    try:
        decimals = len(a.split("e")[0].partition(".")[2])
        unit = 10.0 ** -decimals if "e" not in a else 0.0
        return abs(float(a) - float(b)) <= 1e-6 * abs(float(a)) + 1.01 * unit
    except ValueError:
        return False


def compare(record, made_file):
    name = record.name
    with open(record, newline="") as old, open(made_file, newline="") as new:
        kept, made = list(csv.DictReader(old)), list(csv.DictReader(new))
    if len(kept) != len(made) or list(kept[0]) != list(made[0]):
        return [f"{name}: {len(kept)} rows of {list(kept[0])} on record, {len(made)} of {list(made[0])} made"]
    return [f"{name} row {number}: {key} is {made_row[key]}, on record {kept_row[key]}"
            for number, (kept_row, made_row) in enumerate(zip(kept, made), 2) for key in kept_row if not same(kept_row[key], made_row.get(key, ""))]


def rankings(scratch):
    """Problems of results/method_claims."""
    problems = []
    for name in RANKED:
        manifest = yaml.safe_load((RESULTS / "method_claims" / name / "manifest.yaml").read_text())
        config = yaml.safe_load(Path(f"configs/method_claims/{name}.yaml").read_text())
        if yaml.safe_load(manifest["experiments"][0]["config"]) != config:
            problems.append(f"results/method_claims/{name} is of another config than configs/method_claims/{name}.yaml")
    done = subprocess.run([SPECSIM, "compare", f"configs/method_claims/{RERUN}.yaml", "--rounds", str(ROUNDS), "--out", scratch],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return problems + [f"specsim compare {RERUN}.yaml: exit code {done.returncode}: {done.stderr}"]

    def speedups(path):
        with open(path, newline="") as file:
            return {(row["workload"], row["method"]): row for row in csv.DictReader(file)}

    kept, made = speedups(RESULTS / "method_claims" / RERUN / "ranking.csv"), speedups(Path(scratch) / "ranking.csv")
    if list(kept.keys() ^ made.keys()):
        return problems + [f"{RERUN}: other methods on record than made"]
    for cell, row in made.items():
        off = float(row["speedup"]) - float(kept[cell]["speedup"])
        if abs(off) > WIDTHS * float(row["speedup_half_width"]):
            problems.append(f"{RERUN} {cell}: speedup {row['speedup']} +- {row['speedup_half_width']}, on record {kept[cell]['speedup']}")
    return problems


def gpu_latencies(scratch):
    """Problems of results/gpu: the measurements are kept, and their estimates are computed again."""
    problems = []
    for measured in sorted((RESULTS / "gpu").iterdir()):
        folder = Path(scratch) / measured.name
        shutil.copytree(measured, folder)
        for name in ("prices.csv", "prices.md"):
            (folder / name).unlink()
        done = subprocess.run([sys.executable, "scripts/gpu/gpu_latencies.py", SPECSIM, folder], capture_output=True, text=True)
        if done.returncode != 0:
            problems.append(f"scripts/gpu/gpu_latencies.py: exit code {done.returncode}: {done.stderr}")
            continue
        problems += compare(measured / "prices.csv", folder / "prices.csv")
        if (measured / "prices.md").read_text() != (folder / "prices.md").read_text():
            problems.append(f"{measured}/prices.md differs from the record")
    return problems


def steps(scratch):
    """Problems of results/fidelity/steps, whose rows are kept there."""
    folder = RESULTS / "fidelity" / "steps"
    done = subprocess.run([sys.executable, "scripts/results/step_latencies.py", SPECSIM, folder, scratch], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"scripts/results/step_latencies.py: exit code {done.returncode}: {done.stderr}"]
    problems = [problem for path in sorted(folder.glob("*.csv")) for problem in compare(path, Path(scratch) / path.name)]
    return problems + [f"{path} differs from the record" for path in sorted(folder.glob("*.md")) if path.read_text() != (Path(scratch) / path.name).read_text()]


def coverage(scratch):
    """Problems of results/fidelity/coverage: how often measurements lie within the stated errors."""
    folder = RESULTS / "fidelity" / "coverage"
    done = subprocess.run([sys.executable, "scripts/results/latency_coverage.py", SPECSIM, scratch], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"scripts/results/latency_coverage.py: exit code {done.returncode}: {done.stderr}"]
    problems = [problem for path in sorted(folder.glob("*.csv")) for problem in compare(path, Path(scratch) / path.name)]
    with open(Path(scratch) / "coverage.csv", newline="") as file:
        checked = list(csv.DictReader(file))[-1]
    for key, (least, most) in latency_coverage.BANDS.items():
        if not least <= float(checked[key]) <= most:
            problems.append(f"{checked['set']}: {key} is {checked[key]}, allowed: {least} to {most}")
    return problems


def kernels(scratch):
    """Problems of results/fidelity/sample: rows of the tables of results/fidelity, estimated again."""
    problems = []
    for path in sorted((RESULTS / "fidelity" / "sample").glob("*.csv")):
        table, out = Path(scratch) / path.name, Path(scratch) / path.stem
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        columns = [key for key in rows[0] if key != "priced_us"]
        with open(table, "w", newline="") as file:
            write = csv.DictWriter(file, columns, extrasaction="ignore")
            write.writeheader()
            write.writerows(rows)
        done = subprocess.run([SPECSIM, "kernels", table, "--out", out, "--quiet"], capture_output=True, text=True)
        if done.returncode != 0:
            problems.append(f"specsim kernels {path}: exit code {done.returncode}: {done.stderr}")
            continue
        with open(out / "priced.csv", newline="") as file:
            made = list(csv.DictReader(file))
        problems += [f"{path} row {number}: priced_us is {new['priced_us']}, on record {old['priced_us']}"
                     for number, (old, new) in enumerate(zip(rows, made), 2) if not same(old["priced_us"], new["priced_us"])]
    return problems


def servers(scratch):
    """Problems of results/servers: two of its classes are made again, and every row of the configs is in it, with an estimate or a reason."""
    record = rows_of(RESULTS / "servers" / "rows.csv")
    problems = [f"results/servers: {row['row']}: neither an estimate nor a reason" for row in record if not row["estimated"] and not row["not_simulated"]]
    problems += [f"results/servers: {name} is missing" for name in sorted({row["row"] for row in rows_of("configs/published/servers.csv")} - {row["row"] for row in record})]
    for begins in ("six simulators", "threads"):
        done = subprocess.run([sys.executable, "scripts/results/measured_servers.py", SPECSIM, scratch, begins], capture_output=True, text=True)
        if done.returncode != 0:
            return [f"scripts/results/measured_servers.py: exit code {done.returncode}: {done.stderr}"]
        made, kept = rows_of(Path(scratch) / "rows.csv"), [row for row in record if row["class"].startswith(begins)]
        if len(made) != len(kept):
            problems.append(f"results/servers: {len(kept)} rows of {begins}, {len(made)} made")
        problems += [f"results/servers: {new['row']}, {new['quantity']}: {new['estimated']}, on record {old['estimated']}" for old, new in zip(kept, made)
                     if abs(float(new["estimated"]) / float(old["estimated"]) - 1) > 0.005]
    return problems


def main():
    with tempfile.TemporaryDirectory() as scratch:
        problems = rankings(scratch)
    with tempfile.TemporaryDirectory() as scratch:
        problems += gpu_latencies(scratch)
    for check in (steps, coverage, kernels, servers):
        with tempfile.TemporaryDirectory() as scratch:
            problems += check(scratch)
    for script, folder, tables, text in MADE:
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([sys.executable, f"scripts/results/{script}.py", SPECSIM, scratch], capture_output=True, text=True)
            if done.returncode != 0:
                problems.append(f"scripts/results/{script}.py: exit code {done.returncode}: {done.stderr}")
                continue
            for table in tables:
                problems += compare(RESULTS / folder / table, Path(scratch) / table)
            if text and (RESULTS / folder / text).read_text() != (Path(scratch) / text).read_text():
                problems.append(f"{text} differs from the record")
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
