#!/usr/bin/python3
"""Estimates the prior of a server's factors from measured servers: writes prior.csv to results/tune.

  scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml [--out results/tune]

The servers are those of tune.py. For each run, `specsim tune --predict` gives the simulator's estimate and its derivative by each factor
(slopes.csv). The result is the most probable set of standard deviations, of the factors, of the part that no factor expresses and of the
noise, with a weak prior of their own (empirical Bayes). A server's runs count together as at most `--weight` runs, so that a long sweep of
one server does not outweigh ten others. SPECSIM names the program.

prior.csv has each parameter: the program's value, and the estimates with and without each third of the servers. prior_inside.csv has the share of
measurements inside their interval before any run, each server by the widths that were found without its third.
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
from scipy.optimize import minimize

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "plots")]
import tune  # noqa: E402
from calls import version_of  # noqa: E402
from tables import write_rows  # noqa: E402

FACTORS = {"products": 0.04, "arithmetic": 0.27, "experts": 0.25, "attention": 0.5, "verification": 0.31, "prefill": 0.22, "communication": 0.8,
           "speculation": 0.046, "step": 370.0, "sequence": 15.0, "row": 9.2, "round": 550.0, "draft_pass": 240.0, "request": 4100.0}
# Amplitudes of the discrepancy of TPOT by class of model, the noise by metric, and the scales over which discrepancies are correlated.
OTHERS = {"discrepancy": 0.03, "discrepancy_of_mixtures": 0.12, "noise_ttft": 0.05, "noise_tpot": 0.025, "noise_throughput": 0.03,
          "length_scale": 1.2, "modes_apart": 1.2}
DISCREPANCIES = numpy.array([4.0, 1.0, 1.0])  # by metric, as a multiple of TPOT's
PRIOR_WIDTH = 0.7  # standard deviation of the logarithm of a parameter around the assumed value
TPOT_AND_THROUGHPUT = -0.9
SAME_LENGTHS, OTHER_LENGTHS = 0.9, 0.5  # correlation of the errors of acceptance if it was not recorded
FURTHEST_TTFT = 1.2  # a TTFT with a larger error (as a logarithm) is a queue that the settings do not explain: left out


class Cells:
    """The measured values of a server's runs, and the simulator's estimates. A row is a run and a metric."""

    def __init__(self, server, slopes):
        self.name, self.kind = server.name, server.kind
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
        self.acceptance = numpy.array([float(row["acceptance_error"]) for row, _ in found])
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
        factors = numpy.array([values[name] for name in FACTORS])
        scaled = self.slope * factors
        amplitude = DISCREPANCIES[self.metric] * values["discrepancy_of_mixtures" if self.kind == "experts" else "discrepancy"]
        first = self.metric == 0
        metrics = numpy.where(self.metric[:, None] == self.metric[None, :], 1.0,
                              numpy.where(first[:, None] | first[None, :], 0.0, TPOT_AND_THROUGHPUT))
        noise = numpy.array([values["noise_ttft"], values["noise_tpot"], values["noise_throughput"]])[self.metric] ** 2 + 2 * self.sampling ** 2
        accepted = self.acceptance * numpy.array([0.0, -1.0, 1.0])[self.metric]
        alike = numpy.where(self.group[:, None] == self.group[None, :], 1.0,
                            numpy.where(abs(self.prompt[:, None] - self.prompt[None, :]) < 0.1, SAME_LENGTHS, OTHER_LENGTHS))
        return (scaled @ scaled.T + metrics * numpy.outer(amplitude, amplitude) * self.alike(values["length_scale"], values["modes_apart"]) +
                alike * numpy.outer(accepted, accepted), noise)


def log_likelihood(cells, values):
    among, noise = cells.covariance(values)
    factor = numpy.linalg.cholesky(among + numpy.diag(noise + 1e-6))
    white = numpy.linalg.solve(factor, cells.off)
    return -0.5 * white @ white - numpy.log(numpy.diag(factor)).sum() - 0.5 * len(white) * math.log(2 * math.pi)


def fit(servers, weight):
    names = [*FACTORS, *OTHERS]
    assumed = {**FACTORS, **OTHERS}

    def values(logs):
        return {name: assumed[name] * math.exp(log) for name, log in zip(names, logs)}

    def objective(logs):
        try:
            return misfit(logs)
        except numpy.linalg.LinAlgError:  # nearly singular far from the assumed values
            return 1e6

    def misfit(logs):
        total = 0.5 * numpy.sum((logs / PRIOR_WIDTH) ** 2)
        for one in servers:
            total -= min(1.0, weight / len(set(one.run))) * log_likelihood(one, values(logs))
        return total

    found = minimize(objective, numpy.zeros(len(names)), method="L-BFGS-B", bounds=[(-3.0, 3.0)] * len(names))
    return values(found.x)


def inside(servers, thirds, metric, of):
    """Percent of the rows of a metric inside their 95 % interval before any run, by the widths that were found without the server's third."""
    found = []
    for i, one in enumerate(servers):
        if of(one):
            among, noise = one.covariance(thirds[i % 3])
            found += list((abs(one.off) <= 1.96 * numpy.sqrt(numpy.diag(among) + noise))[one.metric == metric])
    return {"rows": len(found), "inside_percent": f"{100 * numpy.mean(found):.0f}"} if found else {"rows": 0, "inside_percent": ""}


def slopes_of(server, cache):
    path = cache / (hashlib.sha256(f"{server.name}{server.options}".encode()).hexdigest()[:16])
    if not (path / "slopes.csv").exists():
        cells = cache / f"{path.name}.csv"
        tune.write_runs(cells, server.runs, False)
        tune.call([*server.options, "--predict", str(cells), "--out", str(path), "--force", "--quiet"])
        sys.stderr.write(f"{server.name}: {len(server.runs)} runs\n")
    return Cells(server, list(csv.DictReader(open(path / "slopes.csv"))))


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
    write_rows(arguments.out / "prior.csv", [{"parameter": name, "assumed": assumed, "found": f"{found[name]:.4g}",
                                             **{f"without_{i + 1}": f"{third[name]:.4g}" for i, third in enumerate(thirds)}}
                                            for name, assumed in {**FACTORS, **OTHERS}.items()])
    classes = {"dense": lambda one: one.kind != "experts", "experts": lambda one: one.kind == "experts"}
    write_rows(arguments.out / "prior_inside.csv", [{"class": name, "metric": metric, **inside(servers, thirds, i, of)}
                                                    for name, of in classes.items() for i, metric in enumerate(tune.METRICS)])
    (arguments.out / "prior.yaml").write_text(
        f"command: scripts/results/tune_prior.py --servers DIR --numbers SERVING_NUMBERS.yaml\nversion: {json.dumps(version_of(tune.SPECSIM))}\n"
        f"servers: {len(servers)}\nruns: {sum(len(set(one.run)) for one in servers)}\n")


if __name__ == "__main__":
    main()
