#!/usr/bin/env python3
"""specsim plan over several batches. A batch that does not fit the GPU is left out and named; if none fits, the plan is refused. The draft of a
table of acceptance stays if --set changes other values, or single ones of a round. A plan on a table of one pass equals compare's result for
its chains, and ends with the block; it recommends the best of the measured lengths.
"""
import csv
import os
import subprocess
import tempfile
from pathlib import Path

SPECSIM = os.environ["SPECSIM"]


def plan(batches, context):
    return subprocess.run([SPECSIM, "plan", "--hardware", "rtx-4090", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7",
                           "--longest", "4", "--batch", batches, "--context", context], capture_output=True, text=True)


done = plan("1,3,256", "4096")
assert done.returncode == 0, done.stderr
assert "omitted: batch 256 at context 4096, more memory than there is (target weights" in done.stdout, done.stdout
planned = [line.split()[1] for line in done.stdout.splitlines() if line.strip() and line.split()[0].isdigit()]
assert planned == ["1", "3"], done.stdout
for cell in (0, 1):
    assert f"cell {cell}, draft length 3: memory: target weights" in done.stdout, done.stdout
assert done.stdout.count("vllm serve <path of llama-3.1-8b>") == 2, done.stdout
done = plan("128,256", "8192")
assert done.returncode == 2, (done.returncode, done.stdout)
assert "2 of 2 cells do not fit the GPU; the smallest: batch 128 at context 8192" in done.stderr, done.stderr
for more in ([], ["--set", "cost.draft_us=100"], ["--set", "cost.draft_floor_us=10"]):
    done = subprocess.run([SPECSIM, "plan", "--acceptance", "ngram-maths", "--target", "vicuna-7b", *more], capture_output=True, text=True)
    assert done.returncode == 0 and "the models of the table: --draft none" in done.stdout, (more, done.stdout, done.stderr)
done = subprocess.run([SPECSIM, "plan", "--acceptance", "medusa-vicuna-7b", "--target", "vicuna-7b", "--set", "cost.draft=llama-68m"],
                      capture_output=True, text=True)
assert done.returncode == 0 and "the models of the table" not in done.stdout and "drafted by llama-68m" in done.stdout, (done.stdout, done.stderr)
with tempfile.TemporaryDirectory() as folder:
    for command in ("plan", "compare"):
        subprocess.run([SPECSIM, command, "--acceptance", "dflash", "--out", f"{folder}/{command}"] + ["--batch", "8"] * (command == "plan"),
                       capture_output=True, text=True, check=True)
    with open(Path(folder) / "plan" / "plan.csv", newline="") as file:
        lengths = {int(row["draft_length"]): row for row in csv.DictReader(file)}
    assert max(lengths) == 15, list(lengths)
    with open(Path(folder) / "compare" / "ranking.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"].startswith("batch 8,")]
    assert rows
    for row in rows:
        own = lengths[int(row["method"].split()[2])]
        assert abs(float(row["tokens_per_round_exact"]) / float(own["tokens_per_round"]) - 1) < 1e-6, (row, own)
        # A round's time, without the randomness of its tokens.
        a, b = (float(one["tokens_per_round"]) / float(one["speedup"]) for one in (row, own))
        assert abs(a / b - 1) < 2e-3, (row, own)
done = subprocess.run([SPECSIM, "plan", "--draft", "none", "--position-rates", ".5,.4,.3"], capture_output=True, text=True, check=True)
text = " ".join(done.stdout.split())
assert "beyond it the last rate is assumed; on " in text and "The best measured length is 3, speedup 1.6644)" in text, done.stdout
print("a batch that does not fit is left out, all are refused")
