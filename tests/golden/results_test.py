#!/usr/bin/python3
"""results/roofline and results/timing_claims are what their scripts make of the program as it is.

Runs at the root of the repository; SPECSIM names the program. Figures may differ in their last digit.
"""
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
RESULTS = Path("results")
# script, folder, its tables; its text
MADE = [("roofline", "roofline", ["roofline.csv"], None), ("published_speedups", "roofline", ["published_speedups.csv"], None),
        ("timing_claims", "timing_claims", [f"{name}.csv" for name in ("knees", "crossings", "regimes", "varying_context", "placements", "batch")],
         "timing_claims.md")]


def same(a, b):
    if a == b:
        return True
    try:
        return abs(float(a) - float(b)) <= 1e-4 * abs(float(a)) + 2e-3
    except ValueError:
        return False


def compare(record, made_file):
    name = record.name
    with open(record, newline="") as old, open(made_file, newline="") as new:
        kept, made = list(csv.DictReader(old)), list(csv.DictReader(new))
    if len(kept) != len(made):
        return [f"{name}: {len(kept)} rows on record, {len(made)} made"]
    return [f"{name} row {number}: {key} is {made_row[key]}, on record {kept_row[key]}"
            for number, (kept_row, made_row) in enumerate(zip(kept, made), 2) for key in kept_row if not same(kept_row[key], made_row.get(key, ""))]


def main():
    problems = []
    for script, folder, tables, text in MADE:
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([sys.executable, f"scripts/{script}.py", SPECSIM, scratch], capture_output=True, text=True)
            if done.returncode != 0:
                problems.append(f"scripts/{script}.py: exit code {done.returncode}: {done.stderr}")
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
