#!/usr/bin/python3
"""The table of specsim run distinguishes placements, as data.csv does: by the end, not by the round alone.

Runs at the root of the repository; SPECSIM names the program.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([SPECSIM, "run", "configs/examples/two_gpus.yaml", "--set", "rounds=20000", "--out", f"{scratch}/out"], capture_output=True, text=True,
                              check=True)
        with open(Path(scratch) / "out/data.csv", newline="") as file:
            rows = list(csv.DictReader(file))
    head, *lines = done.stdout.splitlines()
    assert re.split(r"  +", head.strip())[-3:] == ["e2e speedup", "TTFT ms", "TPOT p50 ms"], head
    shown = [re.split(r"  +", line.strip()) for line in lines[:len(rows)]]
    for row, cells in zip(rows, shown):
        # One sequence: its median is its mean.
        assert cells[-3:] == [f"{float(row['e2e_speedup']):.4f}", f"{float(row['ttft_ms']):.2f}", f"{float(row['tpot_ms']):.3f}"], (row, cells)
    names = {cells[1] for cells in shown}
    assert len(names) == len({row["placement"] for row in rows}), f"placements look alike: {names}"
    best = max(rows, key=lambda row: float(row["e2e_speedup"]))
    assert f"e2e speedup {float(best['e2e_speedup']):.4f}" in done.stdout, done.stdout
    assert f"{float(best['e2e_speedup_equal_hardware']):.4f} relative to plain decoding on both GPUs" in done.stdout, done.stdout
    # If a value is missing, the table leaves its cell empty and gives the reason.
    one = subprocess.run([SPECSIM, "run", "configs/examples/two_gpus.yaml", "--set", "rounds=2000", "--set", "workload.output_tokens=1"], capture_output=True, text=True,
                         check=True).stdout
    assert not re.search(r"\b(nan|inf)\b", one), one
    assert "TPOT -: no answer has a second token (output_tokens is 1, or an end token came first)\n" in one, one
    # A draft without cost has no best length, which was once printed as "inf".
    free = subprocess.run([SPECSIM, "theory", "--alpha", "0.5", "--cost-ratio", "0", "--form", "all"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(nan|inf)\b", free), free
    assert "none: if a draft token costs nothing, every additional one pays\n" in free, free
    print(f"{len(rows)} cells")


if __name__ == "__main__":
    sys.exit(main())
