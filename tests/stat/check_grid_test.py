#!/usr/bin/python3
"""The CI gate: `specsim check` over configs/ci agrees, is large enough, and can fail."""
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPECSIM = os.environ["SPECSIM"]
GRID = sorted(str(path) for path in Path("configs/ci").glob("*.yaml"))
SANITIZERS = os.environ.get("SPECSIM_SANITIZE", "")


def run(*arguments):
    return subprocess.run([SPECSIM, *arguments], capture_output=True, text=True)


def run_sanitized():
    """Every cell of the grid, with too few rounds for a verdict: sanitizers look for faults, the plain build for disagreement."""
    with tempfile.TemporaryDirectory() as folder:
        result = run("run", *GRID, "--set", "rounds=2000", "--out", folder)
        print(result.stdout[-500:], result.stderr[-2000:])
        if result.returncode != 0 or "Sanitizer" in result.stderr or "runtime error" in result.stderr:
            sys.exit(f"exit {result.returncode} under {SANITIZERS}")
        with open(f"{folder}/data.csv") as file:
            if len(list(csv.DictReader(file))) < 200:
                sys.exit("at least 200 cells wanted")


def main():
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        result = run("check", *GRID, "--out", folder)
        seconds = time.time() - start
        print(result.stdout[-2000:], result.stderr[-500:], f"{seconds:.0f} s")
        if result.returncode != 0:
            sys.exit("theory and simulation disagree")
        with open(f"{folder}/data.csv") as file:
            rows = list(csv.DictReader(file))
    if len(rows) < 200:
        sys.exit(f"{len(rows)} cells, at least 200 wanted")
    verdicts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in {row["verdict"] for row in rows}}
    print(verdicts)
    if verdicts.get("refuted_as_expected", 0) < 7 or verdicts.get("no_theory", 0) > 0:
        sys.exit("a cell of the grid was not judged as it should be")

    # The gate must be able to close: a right form that is expected to be refuted, a wrong one that is expected to agree, and a run too short to
    # detect a leak must each fail.
    cases = {
        "a right form expected to be refuted": (["--set", "theory={name: geometric, expect: refuted}"], 1),
        "a wrong form expected to agree": (["--set", "theory.name=geometric_plus_one"], 1),
        "too few rounds to see a leak": (["--set", "rounds=1000"], 3),
        "too few rounds of a lossy rule": (["--set", "rounds=1000", "--set", "decode.verifier=lenience"], 3),
        "too few rounds of a pair that is nearly equal": (
            ["--set", "rounds=1000", "--set", "pair.draft={from: target, transform: temperature, value: 0.98}"], 3),
    }
    for what, (overrides, status) in cases.items():
        result = run("check", "configs/quickstart.yaml", "--set", "sweep={decode.drafter.draft_length: [4]}", *overrides)
        if result.returncode != status:
            sys.exit(f"check passed {what}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    print("the gate closes:", ", ".join(cases))

    # A closed form that does not apply to the cell gives a reason, and the row names no theory.
    with tempfile.TemporaryDirectory() as folder:
        result = run("check", "configs/quickstart.yaml", "--set", "sweep={decode.drafter.draft_length: [4]}", "--set", "rounds=1000", "--set",
                     "decode.verifier=judge_decoding", "--set", "theory.name=geometric_plus_one", "--out", folder)
        with open(f"{folder}/data.csv") as file:
            row = next(csv.DictReader(file))
    if result.returncode != 3 or "no theory: closed form geometric_plus_one reads" not in result.stdout or row["theory"] != "none":
        sys.exit(f"a form without a theory: exit {result.returncode}, theory {row['theory']}\n{result.stdout}{result.stderr}")


run_sanitized() if SANITIZERS else main()
