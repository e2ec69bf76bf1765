"""Tools of scripts/results/claims.py: runs and audits of specsim, values with their intervals, verdicts."""
import csv
import math
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import NormalDist

import numpy as np

CONFIGS = Path("configs/claims")
LEVEL = 0.99
EXACT = 1e-12  # largest difference that the audit accepts as equal

# Cells that are too short on purpose to detect a leak of 1 %: simulated and compared here, not judged by `specsim check`.
UNJUDGED = ["kl_and_alpha", "largest_deviation", "note_example_fixed", "unbiasedness"]
AUDITED = ["mass_by_token", "output_distribution", "restart", "sample_match", "soft_argmax"]
COMMITTED = ["best_length", "depth_drift", "kl_and_alpha", "landscape", "landscape_plus_one", "speedup_by_cost", "temperature",
             "temperature_related", "temperature_same_argmax", "tokens_per_round"]

ALPHA, RATIO, LENGTH = "pair.draft.value", "cost.target_to_draft_ratio", "decode.drafter.draft_length"


# ---- running specsim -------------------------------------------------------------------------------------------------------

class Row(dict):
    """One row of data.csv, with numbers where possible."""

    def __getitem__(self, name):
        text = super().__getitem__(name)
        try:
            return float(text)
        except ValueError:
            return text


class Experiment:
    def __init__(self, specsim, out, name):
        self.name = name
        folder = out / name
        command = "run" if name in UNJUDGED else "check"
        done = subprocess.run([specsim, command, str(CONFIGS / f"{name}.yaml"), "--out", str(folder), "--force", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 1, 3):
            sys.exit(f"claims: specsim {command} {name}: {done.stderr}")
        self.passed = done.returncode != 1  # 3: nothing disagrees, but some check is underpowered; claims have their own intervals
        self.said = done.stdout
        with open(folder / "data.csv", newline="") as file:
            self.rows = [Row(row) for row in csv.DictReader(file)]
        self.output = defaultdict(dict)  # cell -> class -> emitted tokens
        with open(folder / "counts.csv", newline="") as file:
            for row in csv.DictReader(file):
                if row["name"] == "output":
                    self.output[int(row["cell"])][int(row["index"])] = int(row["value"])
        shutil.move(folder / "manifest.yaml", out / f"manifest_{name}.yaml")
        if name in COMMITTED:
            shutil.move(folder / "data.csv", out / f"data_{name}.csv")
        shutil.rmtree(folder)

    def where(self, **wanted):
        names = {"alpha": ALPHA, "ratio": RATIO, "length": LENGTH, "cost": "cost.cost_ratio"}
        return [row for row in self.rows if all(abs(row[names[k]] - v) < 1e-9 for k, v in wanted.items())]

    def one(self, **wanted):
        (row,) = self.where(**wanted)
        return row

    def agree(self, verdict="agree"):
        return sum(row["verdict"] == verdict for row in self.rows)

    def tokens(self, cell, vocab):
        """Emitted tokens by rank of the target's probability (classes 17.. of sim/rounds/decode/output_classes.h)."""
        return np.array([self.output[cell].get(17 + i, 0) for i in range(vocab)], float)


def audit(specsim, name):
    """Exact values of the built-in verifier for each cell, by enumeration."""
    done = subprocess.run([specsim, "audit", str(CONFIGS / f"{name}.yaml")], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(f"claims: specsim audit {name}: {done.stderr}")
    cells = []
    for block in re.split(rf"^{name} cell \d+", done.stdout, flags=re.M)[1:]:
        number = lambda label: float(re.search(rf"^{label}:\s+(\S+)", block, re.M).group(1))
        table = block[block.index("first token\n"):].split("\n\n")[0]
        first = [[float(x) for x in line.split()[1:3]] for line in table.splitlines()[2:]]
        cells.append({"alpha": number("alpha"), "difference": number("largest difference"),
                      "first_variation": number("total variation of the first token"), "target": np.array([t for t, _ in first]),
                      "output": np.array([o for _, o in first])})
    return cells


# ---- figures, claims and verdicts ------------------------------------------------------------------------------------------

class Figure:
    """A claimed figure (its last digit gives its precision) and a measured one; se 0: exact or computed."""

    def __init__(self, what, claimed, measured, se=0.0, source="", tolerance=None):
        self.what, self.measured, self.se, self.source = what, float(measured), float(se), source
        self.claimed = None if claimed is None else float(claimed)
        if tolerance is None and claimed is not None:
            digits = len(claimed.split(".")[1]) if isinstance(claimed, str) and "." in claimed else 0
            tolerance = 0.5 * 10.0 ** -digits if isinstance(claimed, str) else EXACT
        self.tolerance = tolerance
        self.low = self.high = self.measured

    def widen(self, z):
        self.low, self.high = self.measured - z * self.se, self.measured + z * self.se

    @property
    def within(self):
        return self.low - 1e-9 * abs(self.low) <= self.claimed + self.tolerance and self.high + 1e-9 * abs(self.high) >= self.claimed - self.tolerance


def widened(figures):
    simulated = sum(f.se > 0 for f in figures)
    z = NormalDist().inv_cdf(0.5 + 0.5 * LEVEL ** (1.0 / max(simulated, 1)))
    for figure in figures:
        figure.widen(z)
    return z


class Claim:
    """parts: whether each part of the claim holds, from the figures. Some parts but not all: `condition` states when it holds."""

    def __init__(self, name, text, claimed, measured, figures, parts, reason, source, condition=None, bounds=None):
        self.name, self.text, self.claimed, self.measured, self.figures = name, text, claimed, measured, figures
        self.parts, self.reason, self.source, self.bounds = parts, reason, source, bounds
        if all(parts):
            self.verdict = "confirmed"
        elif not any(parts):
            self.verdict = "refuted"
        else:
            self.verdict = f"holds only if {condition}" if condition else "refuted in part"

    def interval(self):
        if self.bounds is not None:
            return self.bounds
        return (f"{self.figures[0].low:.4f}", f"{self.figures[0].high:.4f}") if self.figures and self.figures[0].se > 0 else ("", "")


def simulated(row, column, claimed, what, source, **more):
    return Figure(what, claimed, row[column], row[column + "_se"], source, **more)


def share(count, n):
    p = count / n
    return p, math.sqrt(max(p * (1 - p), 0.0) / n)


def geometric(alpha, length):
    return sum(alpha ** i for i in range(int(length) + 1))


def lost(row, best):
    return 1.0 - row["speedup"] / best["speedup"]


def best_length(rows):
    return max(rows, key=lambda row: row["speedup"])


def ties(rows, z):
    """Draft lengths whose speedup the paired simulation cannot distinguish from the best one's. Cells share their draws: a round that accepts min(A,
    K) drafts at length K has one A for all K, and the longest cell counts the distribution of A."""
    longest = max(rows, key=lambda row: row[LENGTH])
    n, depth = longest["rounds"], int(longest[LENGTH])
    at_least = np.array([n] + [longest[f"accepted_pos_{i}"] for i in range(1, depth + 1)] + [0.0])
    distribution = (at_least[:-1] - at_least[1:]) / n
    accepted = np.arange(depth + 1)
    best = best_length(rows)
    per_round = lambda row: (1 + np.minimum(accepted, row[LENGTH])) * row["speedup"] / row["tokens_per_round"]
    tied = []
    for row in rows:
        gain = per_round(best) - per_round(row)
        mean = (distribution * gain).sum()
        se = math.sqrt(max((distribution * gain * gain).sum() - mean * mean, 0.0) / n)
        if mean <= z * se:
            tied.append(int(row[LENGTH]))
    return tied


def continuous_best(alpha, ratio):
    """Root of the derivative of (1 - alpha^(k+1)) / ((1 - alpha) (1 + k / ratio)): bisection, and Lambert W's lower branch."""
    slope = lambda k: -alpha ** (k + 1) * math.log(alpha) * (ratio + k) - (1 - alpha ** (k + 1))
    low, high = 0.0, 200.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    a = 1 - (ratio - 1) * math.log(alpha)
    y = a + math.log(a)  # y = -W_-1(-exp(-a)) solves y - ln y = a, y > 1
    for _ in range(100):
        y = a + math.log(y)
    return low, (a - y) / math.log(alpha) - 1


def spearman(x, y):
    rank = lambda v: np.argsort(np.argsort(v)).astype(float)
    return float(np.corrcoef(rank(x), rank(y))[0, 1])
