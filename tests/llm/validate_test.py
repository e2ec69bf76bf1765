#!/usr/bin/python3
"""specsim validate on six prompts: the acceptance in validation.csv follows from its other columns, also for texts that are shorter than a round
of the longest drafts.
"""
import csv
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, "tests/support")
from program import SPECSIM, expect, finish  # noqa: E402

MODELS = "tests/data/models/"
PROMPTS = 6


def student_cdf(t, freedom):
    x = np.linspace(0.0, t, 20001)
    density = (1 + x * x / freedom) ** (-(freedom + 1) / 2)
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return 0.5 + constant * float(np.sum((density[1:] + density[:-1]) * np.diff(x)) / 2)


def welch(row, of_trace):
    """t, and the degrees of freedom: the number of sequences minus one, and those of the trace's parts."""
    errors = float(row["tokens_per_round_se"]), float(row["predicted_se"])
    freedom = math.hypot(*errors) ** 4 / sum(error ** 4 / own for error, own in zip(errors, (PROMPTS - 1, of_trace)))
    return (float(row["tokens_per_round"]) - float(row["predicted_tokens_per_round"])) / math.hypot(*errors), freedom


def judged_right(row):
    # Parts of the trace are requests here. Unequal ones have fewer degrees of freedom than their number minus one, and at least one.
    (t, most), (_, least) = welch(row, PROMPTS - 1), welch(row, 1)
    limit = float(row["acceptance_t_99"])
    return (abs(t - float(row["acceptance_t"])) < 0.01 * (1 + abs(t))
            and student_cdf(limit, most) > 0.995 - 1e-4 and student_cdf(limit, least) < 0.995 + 1e-4
            and row["inside_99"] == str(int(abs(float(row["acceptance_t"])) <= limit)))


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for file in ("calibration", "held_out"):
        lines = Path(f"tests/data/prompts/{file}.jsonl").read_text().splitlines(keepends=True)
        (folder / f"{file}.jsonl").write_text("".join(lines[:PROMPTS]))
    common = ["--target", MODELS + "novels-0.7m-distilled", "--draft", MODELS + "novels-0.2m-distilled", "--prompts",
              folder / "calibration.jsonl", "--quick", "--threads", "1", "--clock", "cpu", "--draft-lengths", "1,8", "--tokens", "2", "--repetitions", "9"]
    subprocess.run([SPECSIM, "validate", *common, "--held-out", folder / "held_out.jsonl", "--out", folder / "validation"], check=True,
                   stdout=subprocess.DEVNULL)
    with open(folder / "validation/validation.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expect("other points", [(row["temperature"], row["draft_length"]) for row in rows] == [(t, k) for t in "01" for k in "018"])
    for row in rows:
        if row["draft_length"] == "0":
            expect(f"plain decoding is judged: {row}", row["inside_99"] == row["acceptance_t"] == "")
            continue
        expect(f"Welch's test of {row}", judged_right(row))
        expect("the normal distribution's interval passes for Student's", not judged_right({**row, "acceptance_t_99": "2.576"}))
        expect("a verdict that is the other way passes", not judged_right({**row, "inside_99": str(1 - int(row["inside_99"]))}))
    expect("no summary", "acceptance of other prompts: " in (folder / "validation/summary.txt").read_text())
    subprocess.run([SPECSIM, "calibrate", *common, "--out", folder / "calibration"], check=True, stdout=subprocess.DEVNULL)
    with open(folder / "calibration/speed.csv", newline="") as file:
        speeds = {row["draft_length"]: row["speedup_of_all_prompts"] for row in csv.DictReader(file)}
    expect(f"speeds at {speeds}", speeds.keys() == {"0", "1", "8"} and all(speeds.values()))
finish()
