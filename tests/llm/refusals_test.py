#!/usr/bin/python3
"""Models that calibrate and validate refuse: ones that do not fit this machine (with sizes, before any weight is made), drafts that do not exist,
and a user's journal.txt.
"""
import re
import resource
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

HUGE = "llama-3.1-405b"  # 756 GiB in 16 bits
SECONDS = 60  # processor time that a refusal may take; making a hundredth of its weights takes longer


def refusal(*arguments):
    """Standard error of the command; it must end with status 2, soon, and leave no files."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        status, _, error = run("calibrate", *arguments, "--out", out, timeout=10 * SECONDS)
        expect(f"status {status} of {arguments}: {error}", status == 2)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        expect(f"{spent:.0f} s until {arguments} were refused", spent < SECONDS)
        expect(f"over 1 GiB of memory for {arguments}", max(before.ru_maxrss, after.ru_maxrss) < 1 << 20)
        expect(f"{arguments} left something", not out.exists())
        return error


error_text = refusal("--target", HUGE, "--draft", "llama-3.2-1b")
found = re.search(r'--target: ([0-9.]+) GiB of weights \("llama-3.1-405b" ([0-9.]+), "llama-3.2-1b" ([0-9.]+)\), allowed: the [0-9.]+ GiB', error_text)
expect(f"no figures: {error_text}", found is not None)
if found:
    whole, target, draft = map(float, found.groups())
    expect(f"other figures: {error_text}", abs(whole - target - draft) < 0.11 and abs(target - 755.9) < 1.5 and abs(draft - 2.3) < 0.1)
error_text = refusal("--target", "llama-3.2-1b", "--draft", HUGE)
expect(f"a draft that is too large: {error_text}", "--draft: " in error_text and "GiB of weights" in error_text)
# A wrong draft is reported first, whatever the target needs.
error_text = refusal("--target", HUGE, "--draft", "llama-3.2-1bb")
expect(f"an unknown draft: {error_text}", '--draft: "llama-3.2-1bb" is neither a directory nor a known shape' in error_text)
error_text = refusal("--target", HUGE, "--draft", "llama-68m")
expect(f"a draft of another vocabulary: {error_text}", "vocab_size is 32000 and the target's is 128256" in error_text)
error_text = refusal("--target", HUGE, "--draft", "llama-3.2-1b", "--verifier", "tokens")
expect(f"an unknown verifier: {error_text}", '--verifier: "tokens", allowed: a verifier' in error_text)
# A user's file with the name of a journal must not be dropped as an unfinished run.
MODEL = "tests/data/models/novels-0.2m-distilled"
with tempfile.TemporaryDirectory() as name:
    journal = Path(name) / "journal.txt"
    journal.write_text("Dear diary\n")
    prompts = {}
    for kind in ("calibration", "held_out"):
        prompts[kind] = Path(name) / f"{kind}.jsonl"
        prompts[kind].write_text("".join(Path(f"tests/data/prompts/{kind}.jsonl").read_text().splitlines(keepends=True)[:2]))
    status, _, error = run("validate", "--quick", "--target", MODEL, "--draft", MODEL, "--prompts", prompts["calibration"], "--held-out",
                           prompts["held_out"], "--force", "--out", name, timeout=10 * SECONDS)
    expect(f"status {status}: {error}", status == 2 and "journal.txt: is no journal of an unfinished run" in error)
    expect("a user's journal.txt was touched", journal.read_text() == "Dear diary\n")
finish()
