#!/usr/bin/python3
"""Estimates the prior of a server's factors from measured servers: writes prior.csv and left_out.* to results/tune.

  scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml [--out results/tune]

The servers are those of tune.py. For each run, `specsim tune --predict` gives the simulator's estimate and its derivative by each factor
(slopes.csv). The result is the most probable set of standard deviations, of the factors, of the parts that no factor expresses and of the
noise, and of the means in MEANS, with a weak prior of their own (empirical Bayes). The stated errors of kernels are added as in the program. A
server's runs count together as at most `--weight` runs, so that a long sweep of one server does not outweigh ten others. SPECSIM names the program.

prior.csv has each parameter: the program's value, and the estimates with all servers and without each machine. left_out.csv predicts each
server, given the runs that tune.py gave (cells.csv in --out), with the program's widths and the means that were found without its machine;
left_out_table.csv and left_out.md have the errors of these cells in the form of tune.py's tables. prior_inside.csv compares them with the widths
that were found without its machine.
Predictions are linear in the factors here.
"""
import argparse
import csv
import hashlib
import json
import math
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy
import yaml
from scipy.optimize import minimize

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "plots")]
import tune  # noqa: E402
from calls import version_of  # noqa: E402
from tables import write_rows  # noqa: E402

FACTORS = {"products": 0.04, "arithmetic": 0.27, "experts": 0.35, "routing": 0.25, "attention": 0.4, "verification": 0.31, "prefill": 0.22,
           "communication": 0.8, "speculation": 0.046, "step": 370.0, "sequence": 15.0, "row": 9.2, "round": 550.0, "draft_pass": 240.0,
           "request": 1.2}
# Factors with a mean, relative to what the engines' files say (prompt_time, verified_us_per_row, request_us, independent_choices): logarithms,
# or microseconds.
MEANS = ["prefill", "row", "request", "routing"]
# Amplitudes of the discrepancies of TPOT and TTFT by class of model, the noise by metric, the scales over which discrepancies are correlated, and
# the error of tokens per round where no run recorded it.
OTHERS = {"ttft_discrepancy": 0.15, "tpot_discrepancy": 0.022, "throughput_discrepancy": 0.027, "ttft_discrepancy_of_mixtures": 0.4,
          "tpot_discrepancy_of_mixtures": 0.05, "throughput_discrepancy_of_mixtures": 0.05, "ttft_noise": 0.04, "tpot_noise": 0.018,
          "throughput_noise": 0.02, "length_scale": 1.2, "modes_apart": 1.2, "no_acceptance": 0.2}
NAMES = ["ttft", "tpot", "throughput"]  # of the metrics
MEAN_WIDTH = 0.5  # standard deviation of a mean around the assumed one, relative to the factor's width
DEGREES = 4.0  # of the noise of a run
PRIOR_WIDTH = 0.7  # standard deviation of the logarithm of a parameter around the assumed value
TPOT_AND_THROUGHPUT = -0.9
SAME_LENGTHS, OTHER_LENGTHS = 0.9, 0.5  # correlation of the errors of acceptance if it was not recorded
FURTHEST_TTFT = 1.2  # no parameter is estimated from a TTFT with a larger error (as a logarithm): a queue that the settings do not explain


class Cells:
    """The measured values of a server's runs, and the simulator's estimates. A row is a run and a metric."""

    def __init__(self, server, slopes, variances, furthest_ttft=math.inf):
        self.server, self.machine, self.name, self.kind = server, server.machine, server.name, server.kind
        self.kernels = numpy.maximum(0.0, variances - numpy.array(list(FACTORS.values())) ** 2)  # variances that stated errors of kernels add
        measured = {run["run"]: run for run in server.runs}
        found = []
        for row in slopes:
            value = measured[row["run"]].get(row["metric"])
            if value in ("", None) or float(value) <= 0.0 or float(row["simulated"]) <= 0.0:
                continue
            off = math.log(float(value) / float(row["simulated"]))
            if row["metric"] != "ttft_ms" or abs(off) < furthest_ttft:
                found.append((row, off))
        self.run = [row["run"] for row, _ in found]
        self.metric = numpy.array([tune.METRICS.index(row["metric"]) for row, _ in found])
        self.off = numpy.array([off for _, off in found])  # logarithms: measured over simulated
        self.measured = numpy.array([math.log(float(measured[row["run"]][row["metric"]])) for row, _ in found])
        self.slope = numpy.array([[float(row[name]) for name in FACTORS] for row, _ in found])
        self.batch = numpy.log([float(row["batch"]) for row, _ in found])
        self.prompt = numpy.log([float(row["prompt_tokens"]) for row, _ in found])
        self.length = numpy.array([int(row["draft_length"]) for row, _ in found])
        self.sampling = numpy.array([float(row["sampling_error"]) for row, _ in found])
        self.no_acceptance = numpy.array([float(row["acceptance_error"]) > 0.0 for row, _ in found])
        index = {run: i for i, run in enumerate(dict.fromkeys(self.run))}
        self.group = numpy.array([index[run] for run in self.run])
        self.weighted = 2 * self.group + (self.metric == 0)  # rows of one weight: TPOT and throughput of a run, or its TTFT
        # Of two rows: squared distance, that of their draft lengths, 1 if one speculates and one does not, and the signs of the metrics.
        def apart(values):
            return values[:, None] - values[None, :]
        both = (self.length[:, None] > 0) & (self.length[None, :] > 0)
        self.distance = apart(self.batch) ** 2 + apart(self.prompt) ** 2
        self.drafts = numpy.where(both, (apart(self.length) / 8.0) ** 2, 0.0)
        self.modes = numpy.where(both | (self.length[:, None] == self.length[None, :]), 0.0, 1.0)
        first = self.metric == 0
        self.metrics = numpy.where(self.metric[:, None] == self.metric[None, :], 1.0,
                                   numpy.where(first[:, None] | first[None, :], 0.0, TPOT_AND_THROUGHPUT))
        self.accepted = numpy.where(self.group[:, None] == self.group[None, :], 1.0,
                                    numpy.where(abs(apart(self.prompt)) < 0.1, SAME_LENGTHS, OTHER_LENGTHS))
        sign = self.no_acceptance * numpy.array([0.0, -1.0, 1.0])[self.metric]
        self.accepted *= numpy.outer(sign, sign)

    def covariance(self, values):
        """The covariance of the rows without the noise, and the variances of the noise."""
        factors = numpy.array([values[name] for name in FACTORS]) ** 2 + self.kernels
        of = "_of_mixtures" if self.kind == "experts" else ""
        amplitude = numpy.array([values[f"{name}_discrepancy{of}"] for name in NAMES])[self.metric]
        alike = numpy.exp(-0.5 * (self.distance / values["length_scale"] ** 2 + self.drafts + values["modes_apart"] ** 2 * self.modes))
        noise = numpy.array([values[f"{name}_noise"] for name in NAMES])[self.metric] ** 2 + 2 * self.sampling ** 2
        among = (self.slope * factors) @ self.slope.T + self.metrics * numpy.outer(amplitude, amplitude) * alike
        return among + values["no_acceptance"] ** 2 * self.accepted, noise

    def shift(self, values):
        """Change of the expected rows by the means in `values`, relative to the assumed ones."""
        return sum(values[f"{name}, mean"] * self.slope[:, list(FACTORS).index(name)] for name in MEANS)

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
            for group in set(self.weighted[given]):
                of = self.weighted[given] == group
                weight[self.weighted == group] = (DEGREES + of.sum()) / (DEGREES + ((noise_mean ** 2 + left) / noise[given])[of].sum())
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
    return {f"{name}, mean": change for name, change in zip(MEANS, moved)}


def fit(servers, weight):
    widths = {**FACTORS, **OTHERS}
    values = {**widths, **dict.fromkeys((f"{name}, mean" for name in MEANS), 0.0)}

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


def runs_given(path):
    """By number of runs: those that tune.py gave each server."""
    given = {count: {} for count in tune.GIVEN}
    if path.exists():
        for row in csv.DictReader(open(path)):
            given[int(row["given"])][row["server"]] = row["runs"].split()
    return given


def predicted_cells(servers, values_of, runs):
    """Cells as tune.study's, predicted with the parameters that values_of(machine) gives."""
    for one in servers:
        for count in tune.GIVEN:
            given = runs[count].get(one.name, [])
            if count and not given:
                continue
            told = {}
            for row, off, deviation in zip(*one.predicted(values_of(one.machine), given)):
                metric = tune.METRICS[one.metric[row]]
                found = math.exp(one.measured[row] - off)
                told.setdefault(one.run[row], {}).update({metric: found, f"{metric}_low": found * math.exp(-1.96 * deviation),
                                                          f"{metric}_high": found * math.exp(1.96 * deviation)})
            unknown = {f"{metric}{part}": math.nan for metric in tune.METRICS for part in ("", "_low", "_high")}
            for run in one.server.runs:
                if run["run"] in told:
                    cell = tune.cell_of(one.server, count, given, run, {**unknown, **told[run["run"]]})
                    yield {**cell, **{f"measured_{metric}": math.nan for metric in tune.METRICS if math.isnan(cell[metric])}}


def inside_table(program, found):
    """Errors and shares inside for machines that were left out, with the program's widths and with those found without the machine."""
    for row, other in zip(program, found):
        if row["group"] in {"all", "dense", "experts", "quantised", "fp8 cache"}:
            yield {"class": row["group"], "given": row["given"], "cells": row["cells"],
                   **{f"{metric}_{part}{of}": one[f"{metric}_{part}"] for metric in tune.METRICS for part in ("median", "p90", "inside")
                      for of, one in (("", row), ("_found", other))}}


def slopes_of(server, cache):
    path = cache / (hashlib.sha256(f"{server.name}{server.options}".encode()).hexdigest()[:16])
    if not (path / "slopes.csv").exists():
        cells = cache / f"{path.name}.csv"
        tune.write_runs(cells, server.runs, False)
        tune.call([*server.options, "--predict", str(cells), "--out", str(path), "--force", "--quiet"])
        sys.stderr.write(f"{server.name}: {len(server.runs)} runs\n")
    prior = yaml.safe_load((path / "server.yaml").read_text())["tuned"]["covariance"]
    slopes, variances = list(csv.DictReader(open(path / "slopes.csv"))), numpy.diag(numpy.array(prior))
    return Cells(server, slopes, variances), Cells(server, slopes, variances, FURTHEST_TTFT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, type=Path)
    parser.add_argument("--numbers", required=True, type=Path)
    parser.add_argument("--out", default="results/tune", type=Path)
    parser.add_argument("--weight", default=12.0, type=float, help="runs that a server's runs count as, at most")
    parser.add_argument("--cache", type=Path, help="directory for what the simulator expects and for the fits, to go on from")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = arguments.cache or Path(folder)
        kept = cache / "fits.json"
        cache.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda server: slopes_of(server, cache), tune.all_servers(arguments.servers, arguments.numbers)))
        servers, estimated_from = zip(*found)
        machines = list(dict.fromkeys(one.machine for one in servers))
        if not kept.exists():
            with ProcessPoolExecutor(2) as pool:
                fits = list(pool.map(fit, [[one for one in estimated_from if one.machine != left] for left in [None, *machines]],
                                     [arguments.weight] * (1 + len(machines))))
            kept.write_text(json.dumps(fits))
        fits = json.loads(kept.read_text())
    all_found, without = fits[0], dict(zip(machines, fits[1:]))
    arguments.out.mkdir(parents=True, exist_ok=True)
    program = {**FACTORS, **dict.fromkeys((f"{name}, mean" for name in MEANS), 0.0), **OTHERS}
    write_rows(arguments.out / "prior.csv", [{"parameter": name, "program": value, "found": f"{all_found[name]:.4g}",
                                             **{f"without {machine.split(' (')[0]}": f"{one[name]:.4g}" for machine, one in without.items()}}
                                            for name, value in program.items()])
    runs = runs_given(arguments.out / "cells.csv")
    # The program's widths are assumed; its means were found over all machines. A new machine gets these widths and other machines' means.
    means = {f"{name}, mean" for name in MEANS}
    left_out = {machine: {**program, **{name: value for name, value in found.items() if name in means}} for machine, found in without.items()}
    cells = list(predicted_cells(servers, lambda machine: left_out[machine], runs))
    table = tune.errors_table(cells)
    of_found = tune.errors_table(list(predicted_cells(servers, lambda machine: without[machine], runs)))
    write_rows(arguments.out / "left_out.csv", [tune.rounded({key: value for key, value in cell.items() if key != "load"}) for cell in cells])
    write_rows(arguments.out / "left_out_table.csv", table)
    (arguments.out / "left_out.md").write_text(tune.summary_table(table))
    write_rows(arguments.out / "prior_inside.csv", list(inside_table(table, of_found)))
    (arguments.out / "prior.yaml").write_text(
        f"command: scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml\nversion: {json.dumps(version_of(tune.SPECSIM))}\n"
        f"servers: {len(servers)}\nruns: {sum(len(set(one.run)) for one in servers)}\n")


if __name__ == "__main__":
    main()
