#!/usr/bin/env python3
"""specsim plan over several batches: one that does not fit the GPU is left out and named; where none fits, the plan is refused. And the draft
that a table of acceptance names stays where --set changes other figures, or single ones of a round."""
import os
import subprocess

SPECSIM = os.environ["SPECSIM"]


def plan(batches, context):
    return subprocess.run([SPECSIM, "plan", "--hardware", "rtx-4090", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.7",
                           "--longest", "4", "--batch", batches, "--context", context], capture_output=True, text=True)


done = plan("1,4,256", "4096")
assert done.returncode == 0, done.stderr
assert "left out: batch 256 at context 4096, more memory than there is (target weights" in done.stdout, done.stdout
planned = [line.split()[1] for line in done.stdout.splitlines() if line.strip() and line.split()[0].isdigit()]
assert planned == ["1", "4"], done.stdout
done = plan("128,256", "8192")
assert done.returncode == 2, (done.returncode, done.stdout)
assert "2 of 2 cells do not fit the GPU, the smallest: batch 128 at context 8192" in done.stderr, done.stderr
for more in ([], ["--set", "cost.draft_us=100"], ["--set", "cost.draft_floor_us=10"]):
    done = subprocess.run([SPECSIM, "plan", "--acceptance", "ngram-maths", "--target", "vicuna-7b", *more], capture_output=True, text=True)
    assert done.returncode == 0 and "the models of the table: --draft none" in done.stdout, (more, done.stdout, done.stderr)
done = subprocess.run([SPECSIM, "plan", "--acceptance", "medusa-vicuna-7b", "--target", "vicuna-7b", "--set", "cost.draft=llama-68m"],
                      capture_output=True, text=True)
assert done.returncode == 0 and "the models of the table" not in done.stdout and "drafted by llama-68m" in done.stdout, (done.stdout, done.stderr)
print("a batch that does not fit is left out, all are refused")
