#!/usr/bin/python3
"""Estimates the prior of a server's factors from measured servers: writes prior.csv to results/tune.

  scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml [--out results/tune]

The servers are those of tune.py. For each run, `specsim tune --predict` gives the simulator's estimate and its derivative by each factor
(slopes.csv). The result is the most probable set of standard deviations, of the factors, of the part that no factor expresses and of the
noise, and of the means in MEANS, with a weak prior of their own (empirical Bayes). The stated errors of kernels are added as in the program. A
server's runs count together as at most `--weight` runs, so that a long sweep of one server does not outweigh ten others. SPECSIM names the program.

prior.csv has each parameter: the program's value, and the estimates with and without each third of the servers. prior_inside.csv has errors of
predictions and the share of measurements inside their interval, given the runs that tune.py gave (cells.csv in --out): by the neutral means,
and by the parameters that were found without the server's third. Predictions are linear in the factors here.
"""
import argparse
import csv
import hashlib
import json
import math
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import yaml
from scipy.optimize import minimize

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "plots")]
import tune  # noqa: E402
from calls import version_of  # noqa: E402
from tables import write_rows  # noqa: E402

FACTORS = {"products": 0.04, "arithmetic": 0.27, "experts": 0.25, "routing": 0.25, "attention": 0.5, "verification": 0.31, "prefill": 0.22,
           "communication": 0.8, "speculation": 0.046, "step": 370.0, "sequence": 15.0, "row": 9.2, "round": 550.0, "draft_pass": 240.0,
           "request": 18000.0}
# Means that differ from a neutral server's: GPU time in logarithms, host time in microseconds.
MEANS = {"routing": -0.13, "prefill": 0.12, "communication": 0.5, "row": 8.0}
# Amplitudes of the discrepancies of TPOT and TTFT by class of model, the noise by metric, the scales over which discrepancies are correlated, and
# the error of tokens per round where no run recorded it.
OTHERS = {"discrepancy": 0.027, "discrepancy_of_mixtures": 0.045, "ttft_discrepancy": 0.162, "ttft_discrepancy_of_mixtures": 0.45, "noise_ttft": 0.04,
          "noise_tpot": 0.018, "noise_throughput": 0.03, "length_scale": 1.2, "modes_apart": 1.2, "no_acceptance": 0.2}
MEAN_WIDTH = 0.5  # standard deviation of a mean around the assumed one, relative to the factor's width
DEGREES = 4.0  # of the noise of a run
PRIOR_WIDTH = 0.7  # standard deviation of the logarithm of a parameter around the assumed value
TPOT_AND_THROUGHPUT = -0.9
SAME_LENGTHS, OTHER_LENGTHS = 0.9, 0.5  # correlation of the errors of acceptance if it was not recorded
FURTHEST_TTFT = 1.2  # a TTFT with a larger error (as a logarithm) is a queue that the settings do not explain: left out


class Cells:
    """The measured values of a server's runs, and the simulator's estimates. A row is a run and a metric."""

    def __init__(self, server, slopes, variances):
        self.name, self.kind = server.name, server.kind
        self.kernels = numpy.maximum(0.0, variances - numpy.array(list(FACTORS.values())) ** 2)  # variances that stated errors of kernels add
        measured = {run["run"]: run for run in server.runs}
        found = []
        for row in slopes:
            value = measured[row["run"]].get(row["metric"])
            if value in ("", None) or float(value) <= 0.0 or float(row["simulated"]) <= 0.0:
                continue
            off = math.log(float(value) / float(row["simulated"]))
            if row["metric"] != "ttft_ms" or abs(off) < FURTHEST_TTFT:
                found.append((row, off))
        self.run = [row["run"] for row, _ in found]
        self.metric = numpy.array([tune.METRICS.index(row["metric"]) for row, _ in found])
        self.off = numpy.array([off for _, off in found])  # logarithms: measured over simulated
        self.slope = numpy.array([[float(row[name]) for name in FACTORS] for row, _ in found])
        self.batch = numpy.log([float(row["batch"]) for row, _ in found])
        self.prompt = numpy.log([float(row["prompt_tokens"]) for row, _ in found])
        self.length = numpy.array([int(row["draft_length"]) for row, _ in found])
        self.sampling = numpy.array([float(row["sampling_error"]) for row, _ in found])
        self.no_acceptance = numpy.array([float(row["acceptance_error"]) > 0.0 for row, _ in found])
        index = {run: i for i, run in enumerate(dict.fromkeys(self.run))}
        self.group = numpy.array([index[run] for run in self.run])

    def alike(self, scale, modes_apart):
        """Correlation of the discrepancies of two rows."""
        def apart(values):
            return values[:, None] - values[None, :]
        both = (self.length[:, None] > 0) & (self.length[None, :] > 0)
        same = self.length[:, None] == self.length[None, :]
        drafts = numpy.where(both, apart(self.length) / 8.0, numpy.where(same, 0.0, modes_apart))
        return numpy.exp(-0.5 * ((apart(self.batch) / scale) ** 2 + (apart(self.prompt) / scale) ** 2 + drafts ** 2))

    def covariance(self, values):
        """The covariance of the rows without the noise, and the variances of the noise."""
        factors = numpy.array([values[name] for name in FACTORS]) ** 2 + self.kernels
        first = self.metric == 0
        of = "_of_mixtures" if self.kind == "experts" else ""
        amplitude = numpy.where(first, values[f"ttft_discrepancy{of}"], values[f"discrepancy{of}"])
        metrics = numpy.where(self.metric[:, None] == self.metric[None, :], 1.0,
                              numpy.where(first[:, None] | first[None, :], 0.0, TPOT_AND_THROUGHPUT))
        noise = numpy.array([values["noise_ttft"], values["noise_tpot"], values["noise_throughput"]])[self.metric] ** 2 + 2 * self.sampling ** 2
        accepted = values["no_acceptance"] * self.no_acceptance * numpy.array([0.0, -1.0, 1.0])[self.metric]
        alike = numpy.where(self.group[:, None] == self.group[None, :], 1.0,
                            numpy.where(abs(self.prompt[:, None] - self.prompt[None, :]) < 0.1, SAME_LENGTHS, OTHER_LENGTHS))
        return ((self.slope * factors) @ self.slope.T + metrics * numpy.outer(amplitude, amplitude) * self.alike(values["length_scale"], values["modes_apart"]) +
                alike * numpy.outer(accepted, accepted), noise)


    def shift(self, values):
        """Change of the expected rows by the means in `values`, relative to the assumed ones."""
        return sum((values[f"{name}, mean"] - assumed) * self.slope[:, list(FACTORS).index(name)] for name, assumed in MEANS.items())

    def log_likelihood(self, values):
        among, noise = self.covariance(values)
        factor = numpy.linalg.cholesky(among + numpy.diag(noise + 1e-6))
        white = numpy.linalg.solve(factor, self.off - self.shift(values))
        return -0.5 * white @ white - numpy.log(numpy.diag(factor)).sum() - 0.5 * len(white) * math.log(2 * math.pi)

    def predicted(self, values, runs):
        """Rows of the runs that are not given, their errors after `runs`, and the standard deviations: as sim/answers/tune/learn.cpp."""
        among, noise = self.covariance(values)
        off = self.off - self.shift(values)
        given = numpy.isin(self.run, runs)
        rest = numpy.flatnonzero(~given)
        if not given.any():
            return rest, off[rest], numpy.sqrt((numpy.diag(among) + noise)[rest])
        weight = numpy.ones(len(off))
        own = among[numpy.ix_(given, given)]
        for _ in range(20):
            total = own + numpy.diag((noise / weight)[given])
            noise_mean = off[given] - own @ numpy.linalg.solve(total, off[given])
            left = numpy.diag(own - own @ numpy.linalg.solve(total, own))
            for group in set(self.group[given]):
                of = self.group[given] == group
                weight[self.group == group] = (DEGREES + of.sum()) / (DEGREES + ((noise_mean ** 2 + left) / noise[given])[of].sum())
        cross = among[numpy.ix_(rest, given)]
        variance = numpy.diag(among)[rest] - numpy.einsum("ij,ji->i", cross, numpy.linalg.solve(total, cross.T))
        return rest, off[rest] - cross @ numpy.linalg.solve(total, off[given]), numpy.sqrt(numpy.maximum(0.0, variance) + noise[rest])


def share(one, weight):
    return min(1.0, weight / len(set(one.run)))


def means_of(servers, values, weight):
    """The most probable means for the widths of `values`: generalised least squares with a weak prior around the assumed ones."""
    columns = [list(FACTORS).index(name) for name in MEANS]
    precision = numpy.diag([(MEAN_WIDTH * values[name]) ** -2 for name in MEANS])
    moved = numpy.zeros(len(MEANS))
    for one in servers:
        among, noise = one.covariance(values)
        slope = one.slope[:, columns]
        precision += share(one, weight) * slope.T @ numpy.linalg.solve(among + numpy.diag(noise + 1e-6), slope)
        moved += share(one, weight) * slope.T @ numpy.linalg.solve(among + numpy.diag(noise + 1e-6), one.off)
    moved = numpy.linalg.solve(precision, moved)
    return {f"{name}, mean": assumed + change for (name, assumed), change in zip(MEANS.items(), moved)}


def fit(servers, weight):
    widths = {**FACTORS, **OTHERS}
    values = {**widths, **{f"{name}, mean": mean for name, mean in MEANS.items()}}

    def at(logs):
        return {**values, **{name: assumed * math.exp(log) for (name, assumed), log in zip(widths.items(), logs)}}

    def objective(logs):
        try:
            return 0.5 * numpy.sum((logs / PRIOR_WIDTH) ** 2) - sum(share(one, weight) * one.log_likelihood(at(logs)) for one in servers)
        except numpy.linalg.LinAlgError:  # nearly singular far from the assumed values
            return 1e6

    logs = numpy.zeros(len(widths))
    for _ in range(2):
        values |= means_of(servers, at(logs), weight)
        logs = minimize(objective, logs, method="L-BFGS-B", bounds=[(-3.0, 3.0)] * len(widths)).x
    return {**at(logs), **means_of(servers, at(logs), weight)}


def held_out(servers, values_of, runs, metric):
    """Errors of the cells of a metric, and the share inside their 95 % intervals; `values_of`: the parameters for a server's place in the list."""
    errors, inside = [], []
    for i, one in servers:
        rest, off, deviation = one.predicted(values_of(i), runs.get(one.name, []))
        mine = one.metric[rest] == metric
        errors += list(abs(off[mine]))
        inside += list(abs(off[mine]) <= 1.96 * deviation[mine])
    if not errors:
        return {}
    return {"rows": len(errors), "median": f"{100 * numpy.median(errors):.1f}", "p90": f"{100 * numpy.quantile(errors, 0.9):.1f}",
            "inside": f"{100 * numpy.mean(inside):.0f}"}


def runs_given(path):
    """By number of runs: those that tune.py gave each server."""
    given = {count: {} for count in tune.GIVEN}
    if path.exists():
        for row in csv.DictReader(open(path)):
            given[int(row["given"])][row["server"]] = row["runs"].split()
    return given


def inside_table(servers, thirds, path):
    neutral = [{**third, **{f"{name}, mean": 0.0 for name in MEANS}} for third in thirds]
    for kind in ("dense", "experts"):
        ours = [(i, one) for i, one in enumerate(servers) if (one.kind == "experts") == (kind == "experts")]
        for metric, name in enumerate(tune.METRICS):
            for count, runs in runs_given(path).items():
                if count and not runs:
                    continue
                before = held_out(ours, lambda i: neutral[i % 3], runs, metric)
                found = held_out(ours, lambda i: thirds[i % 3], runs, metric)
                yield {"class": kind, "metric": name, "given": count, "rows": found["rows"],
                       **{f"{part}_neutral_means": before[part] for part in ("median", "p90", "inside")},
                       **{part: found[part] for part in ("median", "p90", "inside")}}


def slopes_of(server, cache):
    path = cache / (hashlib.sha256(f"{server.name}{server.options}".encode()).hexdigest()[:16])
    if not (path / "slopes.csv").exists():
        cells = cache / f"{path.name}.csv"
        tune.write_runs(cells, server.runs, False)
        tune.call([*server.options, "--predict", str(cells), "--out", str(path), "--force", "--quiet"])
        sys.stderr.write(f"{server.name}: {len(server.runs)} runs\n")
    prior = yaml.safe_load((path / "server.yaml").read_text())["tuned"]["covariance"]
    return Cells(server, list(csv.DictReader(open(path / "slopes.csv"))), numpy.diag(numpy.array(prior)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, type=Path)
    parser.add_argument("--numbers", required=True, type=Path)
    parser.add_argument("--out", default="results/tune", type=Path)
    parser.add_argument("--weight", default=12.0, type=float, help="runs that a server's runs count as, at most")
    parser.add_argument("--cache", type=Path, help="directory for what the simulator expects, to go on from")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = arguments.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(2) as pool:
            servers = list(pool.map(lambda server: slopes_of(server, cache), tune.all_servers(arguments.servers, arguments.numbers)))
    found = fit(servers, arguments.weight)
    thirds = [fit([one for i, one in enumerate(servers) if i % 3 != left], arguments.weight) for left in range(3)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    assumed = {**FACTORS, **{f"{name}, mean": mean for name, mean in MEANS.items()}, **OTHERS}
    write_rows(arguments.out / "prior.csv", [{"parameter": name, "assumed": value, "found": f"{found[name]:.4g}",
                                             **{f"without_{i + 1}": f"{third[name]:.4g}" for i, third in enumerate(thirds)}}
                                            for name, value in assumed.items()])
    write_rows(arguments.out / "prior_inside.csv", list(inside_table(servers, thirds, arguments.out / "cells.csv")))
    (arguments.out / "prior.yaml").write_text(
        f"command: scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml\nversion: {json.dumps(version_of(tune.SPECSIM))}\n"
        f"servers: {len(servers)}\nruns: {sum(len(set(one.run)) for one in servers)}\n")


if __name__ == "__main__":
    main()
