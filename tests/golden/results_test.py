#!/usr/bin/python3
"""results/roofline is what scripts/roofline.py and scripts/published_speedups.py make of the program as it is.

Runs at the root of the repository; SPECSIM names the program. Figures may differ in their last digit.
"""
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
RESULTS = Path("results/roofline")


def same(a, b):
    if a == b:
        return True
    try:
        return abs(float(a) - float(b)) <= 1e-4 * abs(float(a)) + 2e-3
    except ValueError:
        return False


def compare(name, folder):
    with open(RESULTS / name, newline="") as old, open(folder / name, newline="") as new:
        kept, made = list(csv.DictReader(old)), list(csv.DictReader(new))
    if len(kept) != len(made):
        return [f"{name}: {len(kept)} rows on record, {len(made)} made"]
    return [f"{name} row {number}: {key} is {made_row[key]}, on record {kept_row[key]}"
            for number, (kept_row, made_row) in enumerate(zip(kept, made), 2) for key in kept_row if not same(kept_row[key], made_row.get(key, ""))]


def main():
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for script, name in (("roofline", "roofline.csv"), ("published_speedups", "published_speedups.csv")):
            done = subprocess.run([sys.executable, f"scripts/{script}.py", SPECSIM, scratch], capture_output=True, text=True)
            problems += compare(name, Path(scratch)) if done.returncode == 0 else [f"scripts/{script}.py: exit code {done.returncode}: {done.stderr}"]
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
