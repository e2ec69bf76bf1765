"""Helpers of the queueing tests: a run of `specsim serve` (or of the reference, with a mutant) as arrays, and p-values.

A statistical check gives a p-value. The level is set once all are counted, so that the whole file raises a false alarm in one of
ten thousand choices of its seeds (Sidak). Each check also runs on a wrong result that it must reject.
"""
import csv
import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np

import reference

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
FALSE_ALARMS = 1e-4
PS = reference.PS


def picoseconds(text):
    whole, _, fraction = text.partition(".")
    return int(whole) * PS + int(fraction.ljust(12, "0") or 0)


class Run:
    """requests and steps as columns; times in whole picoseconds (`ps`) or in seconds."""

    def __init__(self, requests, steps):
        self.raw, self.raw_steps = requests, steps

    def ps(self, name, steps=False):
        return [picoseconds(text) for text in (self.raw_steps if steps else self.raw)[name]]

    def seconds(self, name):
        return np.array([float(text) for text in self.raw[name]])

    def whole(self, name, steps=False):
        return [int(text) for text in (self.raw_steps if steps else self.raw)[name]]

    def wait(self):
        return self.seconds("first_scheduled_s") - self.seconds("arrival_s")

    def residence(self):
        return self.seconds("last_token_s") - self.seconds("arrival_s")

    def ttft(self):
        return self.seconds("first_token_s") - self.seconds("arrival_s")


def columns(path):
    with open(path, newline="") as file:
        rows = csv.reader(file)
        names = next(rows)
        return dict(zip(names, zip(*rows)))


def serve(folder, *options, wanted=0):
    """Runs `specsim serve` in a folder and returns its output; the test ends if the status is not the expected one."""
    done = subprocess.run([SPECSIM, "serve", *map(str, options)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != wanted:
        raise SystemExit(f"serve {' '.join(map(str, options))}: exit {done.returncode}: {done.stderr.strip()}")
    return done


class Bench:
    """Runs configs in a folder: with the program, or only with the reference."""

    def __init__(self, folder, alone):
        self.folder, self.alone, self.count = Path(folder), alone, 0

    def trace(self, name, rows):
        """A trace file: (arrived_us, prompt, output, priority)."""
        path = self.folder / f"{name}.csv"
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["arrived_us", "prompt", "output", "priority"])
            writer.writerows(rows)
        return {"process": "trace", "file": path.name}

    def run(self, config, mutant=None, steps=False):
        self.count += 1
        out = self.folder / f"out{self.count}"
        if mutant is not None or self.alone:
            reference.write(reference.build(config, self.folder, mutant).run(), out)
        else:
            path = self.folder / f"config{self.count}.yaml"
            path.write_text(json.dumps(config, indent=1) + "\n")
            serve(self.folder, path.name, "--out", out.name, *(["--steps"] if steps else []))
        run = Run(columns(out / "requests.csv"), columns(out / "steps.csv") if steps else None)
        run.folder = out
        return run


def config(arrivals, cost, lengths=None, speculation=None, kv=None, frontend_ms=0, seed=1, **scheduler):
    """Synchronous, one request at a time by default."""
    section = {"kind": "vllm_v1", "max_num_batched_tokens": 100000, "max_num_seqs": 1, "async": False, "reserve_full_isl": False}
    section.update(scheduler)
    serve = {"scheduler": section, "kv": kv or {"block": 16}, "arrivals": arrivals}
    if lengths:
        serve["lengths"] = lengths
    if speculation:
        serve["speculation"] = speculation
    if frontend_ms:
        serve["frontend_ms"] = frontend_ms
    return {"experiment": "oracle", "seed": seed, "serve": serve, "cost": dict({"model": "affine"}, **cost)}


# ---- p-values ----------------------------------------------------------------------------------------------------------------

def student(t, freedom):
    """P(|T| > t) of Student's distribution, by Simpson's rule over the angle whose tangent is t / sqrt(freedom)."""
    angle = math.atan2(abs(t), math.sqrt(freedom))
    grid = np.linspace(angle, math.pi / 2, 2001)
    density = np.cos(grid) ** (freedom - 1)
    weights = np.ones(2001)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    integral = (density * weights).sum() * (math.pi / 2 - angle) / 6000
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return min(1.0, 2 * factor * integral)


def mean_p(samples, expected, allowance=0.0, batches=32):
    """p-value of a stationary mean from batch means, the first batch dropped. `allowance`: a stated bound of the model's bias."""
    samples = np.asarray(samples, dtype=float)
    size = len(samples) // (batches + 1)
    means = samples[size:(batches + 1) * size].reshape(batches, size).mean(axis=1)
    error = means.std(ddof=1) / math.sqrt(batches)
    excess = max(abs(means.mean() - expected) - allowance, 0.0)
    if error == 0:
        return 1.0 if excess < 1e-9 * max(abs(expected), 1e-30) else 0.0
    return student(excess / error, batches - 1)


def kolmogorov_p(samples, distribution):
    """p-value of the Kolmogorov distance of independent samples from a continuous distribution."""
    ordered = np.sort(np.asarray(samples, dtype=float))
    n = len(ordered)
    values = np.array([distribution(x) for x in ordered])
    distance = max((np.arange(1, n + 1) / n - values).max(), (values - np.arange(n) / n).max())
    x = (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n)) * distance
    return min(1.0, max(0.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101)))) if x > 0.2 else 1.0


class Checks:
    def __init__(self):
        self.good, self.bad, self.failures = [], [], 0

    def exact(self, name, ours, expected):
        if ours != expected:
            self.failures += 1
            print(f"{name}: {str(ours)[:200]}, expected {str(expected)[:200]}")

    def holds(self, name, truth):
        if not truth:
            self.failures += 1
            print(f"{name}: does not hold")

    def rejects_exactly(self, name, mutant, differs):
        if not differs:
            self.failures += 1
            print(f"{name}: does not notice {mutant}")

    def p(self, name, value):
        self.good.append((name, value))

    def mutant(self, name, mutant, value):
        self.bad.append((name, mutant, value))

    def finish(self, title):
        level = 1 - (1 - FALSE_ALARMS) ** (1 / max(len(self.good), 1))
        for name, value in self.good:
            if value < level:
                self.failures += 1
                print(f"{name}: p = {value:.2g} below {level:.2g}")
        for name, mutant, value in self.bad:
            if value >= level:
                self.failures += 1
                print(f"{name}: does not reject {mutant}: p = {value:.2g}, level {level:.2g}")
        smallest = min((value for _, value in self.good), default=1.0)
        print(f"{title}: {len(self.good)} statistical checks at level {level:.2g} each (smallest p {smallest:.2g}), "
              f"{len(self.bad)} mutants, {self.failures} failures")
        return 1 if self.failures else 0
