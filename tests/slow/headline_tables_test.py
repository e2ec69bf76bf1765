#!/usr/bin/python3
"""The tables that README.md and docs/results depend on equal the output of their commands with the current program: claims, methods, published
values, methods on real models, claims about methods.

    tests/slow/headline_tables_test.py [NAME...]

Runs at the root of the repository; SPECSIM names the program. Each script writes to its own folder; every CSV and every text that is
committed for it must be made again. Numbers may differ in the last printed digit.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
# Folder of results/: the scripts that fill it.
TABLES = {name: [name] for name in ["claims", "methods", "published", "real_methods", "method_claims", "rankings"]} | {
    "language": ["language", "along_texts"]}
RECORDS = {"results/methods/theory.csv", "results/methods/trees.csv"}  # the default tests write and check these
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def same(kept, made):
    """Equal lines, or lines that differ only in the last printed digit of numbers."""
    if kept == made:
        return True
    if NUMBER.sub("#", kept) != NUMBER.sub("#", made):
        return False
    for old, new in zip(NUMBER.findall(kept), NUMBER.findall(made)):
        mantissa, _, exponent = old.replace(",", "").partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        whole = "." not in old and "e" not in old  # a count
        if old != new and (whole or abs(float(old.replace(",", "")) - float(new.replace(",", ""))) > 1.01 * unit):
            return False
    return True


def compare(name, kept_file, made_file):
    if not made_file.is_file():
        return [f"{name}: {kept_file} is committed and not made"]
    kept, made = kept_file.read_text().splitlines(), made_file.read_text().splitlines()
    problems = [] if len(kept) == len(made) else [f"{name}: {kept_file} has {len(kept)} lines, {len(made)} are made"]
    problems += [f"{name}: {kept_file}:{number}: on record\n  {old}\nmade\n  {new}"
                 for number, (old, new) in enumerate(zip(kept, made), 1) if not same(old, new)][:5]
    return problems


def rerun(name):
    folder = Path("results") / name
    kept = sorted(file for file in folder.rglob("*") if file.suffix in (".csv", ".md") and file.name != "README.md" and str(file) not in RECORDS)
    assert kept, f"{folder} has no table"
    with tempfile.TemporaryDirectory() as scratch:
        for script in TABLES[name]:
            done = subprocess.run([PYTHON, f"scripts/results/{script}.py", SPECSIM, scratch], capture_output=True, text=True)
            if done.returncode != 0:
                return [f"scripts/results/{script}.py: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"]
        return [problem for file in kept for problem in compare(name, file, Path(scratch) / file.relative_to(folder))]


def main():
    assert same("a 1.25 b", "a 1.26 b") and not same("a 1.25 b", "a 1.27 b") and not same("12 cells", "13 cells"), "the comparison cannot fail"
    problems = []
    for name in sys.argv[1:] or TABLES:
        found = rerun(name)
        print(f"{name}: {len(found)} differences", flush=True)
        problems += found
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
