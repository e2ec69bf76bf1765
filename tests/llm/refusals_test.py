#!/usr/bin/python3
"""What calibrate and validate refuse: models that this machine cannot hold, with figures and before any weight is made, drafts that are none,
a user's journal.txt."""
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
HUGE = "llama-3.1-405b"  # 756 GiB in 16 bits
SECONDS = 60  # processor time that a refusal may take; making a hundredth of its weights takes longer
failed = False


def check(right, what):
    global failed
    if not right:
        failed = True
        print(f"refusals_test: {what}", file=sys.stderr)


def refusal(*arguments):
    """What the command says; it must end with status 2, soon, and leave nothing."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([SPECSIM, "calibrate", *arguments, "--out", out], capture_output=True, text=True, timeout=10 * SECONDS, check=False)
        check(run.returncode == 2, f"status {run.returncode} of {arguments}: {run.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        check(spent < SECONDS, f"{spent:.0f} s until {arguments} were refused")
        check(max(before.ru_maxrss, after.ru_maxrss) < 1 << 20, f"over 1 GiB of memory for {arguments}")
        check(not out.exists(), f"{arguments} left something")
        return run.stderr


said = refusal("--target", HUGE, "--draft", "llama-3.2-1b")
found = re.search(r'--target: ([0-9.]+) GiB of weights \("llama-3.1-405b" ([0-9.]+), "llama-3.2-1b" ([0-9.]+)\), allowed: the [0-9.]+ GiB', said)
check(found is not None, f"no figures: {said}")
if found:
    whole, target, draft = map(float, found.groups())
    check(abs(whole - target - draft) < 0.11 and abs(target - 755.9) < 1.5 and abs(draft - 2.3) < 0.1, f"other figures: {said}")
said = refusal("--target", "llama-3.2-1b", "--draft", HUGE)
check("--draft: " in said and "GiB of weights" in said, f"a draft that is too large: {said}")
# Whatever the target takes, a wrong draft is told first.
said = refusal("--target", HUGE, "--draft", "llama-3.2-1bb")
check('--draft: "llama-3.2-1bb" is no directory and no known shape' in said, f"an unknown draft: {said}")
said = refusal("--target", HUGE, "--draft", "llama-68m")
check("vocab_size is 32000 and the target's is 128256" in said, f"a draft of another vocabulary: {said}")
said = refusal("--target", HUGE, "--draft", "llama-3.2-1b", "--verifier", "tokens")
check('--verifier: "tokens", allowed: a verifier' in said, f"an unknown verifier: {said}")
# A user's file that has the name of a journal is no unfinished run to be dropped.
MODEL = "tests/data/models/novels-0.2m-distilled"
with tempfile.TemporaryDirectory() as name:
    journal = Path(name) / "journal.txt"
    journal.write_text("Dear diary\n")
    prompts = {}
    for kind in ("calibration", "held_out"):
        prompts[kind] = Path(name) / f"{kind}.jsonl"
        prompts[kind].write_text("".join(Path(f"tests/data/prompts/{kind}.jsonl").read_text().splitlines(keepends=True)[:2]))
    run = subprocess.run([SPECSIM, "validate", "--quick", "--target", MODEL, "--draft", MODEL, "--prompts", prompts["calibration"], "--held-out",
                          prompts["held_out"], "--force", "--out", name], capture_output=True, text=True, timeout=10 * SECONDS, check=False)
    check(run.returncode == 2 and "journal.txt: is no journal of an unfinished run" in run.stderr, f"status {run.returncode}: {run.stderr}")
    check(journal.read_text() == "Dear diary\n", "a user's journal.txt was touched")
sys.exit(failed)
