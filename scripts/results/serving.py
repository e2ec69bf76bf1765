#!/usr/bin/python3
"""Compares `specsim serve` with measured servers and writes results/serving: table.csv, runs.csv and index.md.

  scripts/results/serving.py --numbers SERVING_NUMBERS.yaml --runs vllm_runs [--out results/serving]

--numbers: published measurements of servers under load, a row for each cell (target, draft, draft length, concurrency). --runs: real vLLM
runs request by request. SPECSIM names the program. Each cell is simulated twice: with the roofline of the GPU and the models unchanged,
and with a few of its values fitted to the rows without speculation of the same server. Nothing is fitted to a single row.
"""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plots"))
import plot_serving  # noqa: E402
import serving_pages as pages  # noqa: E402
from calls import version_of  # noqa: E402
from tables import rows_of as read_rows, write_rows  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPECSIM = os.environ.get("SPECSIM", "build/specsim")
METHODS = {"draft-model": "draft_model", "draft_model": "draft_model", "eagle3": "eagle"}
SEEDS = 3          # runs of a cell that are averaged; one simulated run would be as random as the one measured run
FRONTEND_MS = 12   # HTTP and tokenisation of the prompt, if nothing is fitted
# Servers of the record. `fit`: the parameters that are fitted to its rows without speculation. If the record does not name the GPU, its memory (pool
# and weights) and its rows without speculation at one request determine it: 70.6 GB of weights on each GPU of 2.0 TB/s. These GPUs communicate
# through the host's memory: half of PCIe's bandwidth less a fifth, and the latency of a launched collective.
SERVERS = {
    "Qwen/Qwen3-32B": {
        "hardware": {"preset": "h100-sxm-94gb"}, "target": {"preset": "qwen3-32b"},
        "drafts": {"Qwen3-1.7B": {"preset": "qwen3-1.7b"}, "Qwen3-32B-speculator.eagle3": {"preset": "eagle3-qwen3-32b"}},
        "fit": ["bandwidth_gb_per_s", "bf16_tflops", "attention_efficiency", "frontend_ms"]},
    "Llama-3.3-70B-Instruct": {
        "hardware": {"preset": "h100-pcie", "link_gb_per_s": 25, "graph_link_latency_us": 27},
        "target": {"preset": "llama-3.1-70b", "tensor_parallel": 2},
        "drafts": {"Llama-3.2-1B (TP2)": {"preset": "llama-3.2-1b", "tensor_parallel": 2}},
        "fit": ["bandwidth_gb_per_s", "link_gb_per_s", "graph_link_latency_us", "frontend_ms"]}}
SPREAD_MOST = 64   # requests at once of the cells that determine how far requests differ: no cache is full there
PRIOR = 0.02       # relative weight that keeps an undetermined parameter at its start value


class Program:
    """Runs configs; the results of earlier runs are kept."""

    def __init__(self, folder, threads=2):
        self.folder, self.known, self.pool = Path(folder), {}, ThreadPoolExecutor(threads)

    def measure(self, text):
        if text in self.known:
            return self.known[text]
        own = Path(tempfile.mkdtemp(dir=self.folder))
        (own / "config.yaml").write_text(text + "\n")
        command = [str(Path(SPECSIM).resolve()), "serve", "config.yaml", "--alone", "--force", "--threads", "1", "--out", "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=own)
        if done.returncode != 0:
            raise SystemExit(f"serving: {done.stderr.strip()}\n{text}")
        row = read_rows(own / "out/summary.csv")[0]
        requests = [(float(r["first_token_s"]), float(r["last_token_s"]), int(r["output_tokens"])) for r in read_rows(own / "out/requests.csv")]
        for path in sorted(own.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        own.rmdir()
        self.known[text] = {"ttft": float(row["mean_ttft_ms"]), "tpot": float(row["mean_tpot_ms"]), "tpot99": float(row["p99_tpot_ms"]),
                            "itl50": float(row["p50_itl_ms"]), "itl": float(row["mean_itl_ms"]),
                            "throughput": float(row["output_throughput"]), "preemptions": float(row["preemptions"]),
                            "e2el": float(row["mean_e2el_ms"]), "duration": float(row["duration_s"]), "requests": requests}
        return self.known[text]

    def run(self, config):
        return self.measure(json.dumps(config))

    def run_all(self, configs):
        return list(self.pool.map(self.run, configs))

    def means(self, configs):
        """The mean over seeds of each config."""
        runs = self.run_all([dict(config, seed=seed) for config in configs for seed in range(1, SEEDS + 1)])
        groups = [runs[i:i + SEEDS] for i in range(0, len(runs), SEEDS)]
        return [{name: statistics.mean(run[name] for run in group) for name in group[0] if name != "requests"} for group in groups]


# ---- configs of the servers --------------------------------------------------------------------------------------------

def edits(mean_prompt, mean_output, cap, count, template, seed=17):
    """Prompts and outputs of code to edit: a template and an instruction of `template` tokens, code of lognormal length, and an output that is as
    long as the code up to a factor, cut at `cap`. The spread of 60 tokens is that of the means of the first 50, 80, 160, ..., 2,560 prompts of the
    record, which come from one shuffled list."""
    generator, mean = random.Random(seed), mean_prompt - template
    sigma = math.sqrt(math.log(1 + (60 / mean) ** 2))
    noise = math.sqrt(math.log(1 + 0.3 ** 2))
    code = [generator.lognormvariate(0, sigma) for _ in range(count)]
    code = [mean * count * one / sum(code) for one in code]
    factors = [math.exp(generator.gauss(0, noise)) for _ in range(count)]
    low, high = 0.01, 100.0
    for _ in range(60):
        ratio = math.sqrt(low * high)
        outputs = [min(cap, max(1, round(ratio * one * factor))) for one, factor in zip(code, factors)]
        low, high = (ratio, high) if sum(outputs) / count < mean_output else (low, ratio)
    return [max(1, round(template + one)) for one in code], outputs


# Characters of MT-bench's 80 questions, first turns (fastchat/llm_judge/data/mt_bench/question.jsonl of lm-sys/FastChat 0e6d3e4b).
QUESTIONS = [127, 250, 292, 219, 126, 183, 166, 163, 226, 365, 140, 223, 450, 511, 450, 317, 410, 186, 169, 209, 178, 163, 94, 89, 862, 334, 85,
             77, 240, 672, 103, 241, 296, 95, 294, 38, 68, 112, 257, 57, 133, 69, 109, 541, 93, 132, 110, 176, 155, 102, 684, 1028, 1556, 742,
             758, 1237, 1044, 1642, 385, 519, 121, 237, 216, 92, 317, 221, 319, 210, 186, 110, 179, 72, 135, 219, 131, 105, 77, 83, 68, 113]
TEMPLATE = 9       # tokens of Qwen3's chat template around a question


def questions(mean_prompt, count, seed=17):
    """Prompts of MT-bench's questions, each once, in their own order: tokens proportional to characters, with mean `mean_prompt`."""
    each = (mean_prompt - TEMPLATE) / statistics.mean(QUESTIONS)
    tokens = [max(1, round(TEMPLATE + each * size)) for size in QUESTIONS]
    random.Random(seed).shuffle(tokens)
    return [tokens[i % len(tokens)] for i in range(count)]


def lengths_of(cell, natural_ends):
    work, count = cell["workload"], cell["load"]["requests"]
    if work["dataset"] == "mt-bench":
        return {"prompt": {"list": questions(work["mean_prompt"], count)}, "output": {"fixed": round(work["mean_output"])}}
    if work["dataset"] != "InstructCoder":
        return {"prompt": {"lognormal": {"mean": work["mean_prompt"], "cv": 0.5}}, "output": {"fixed": round(work["mean_output"])}}
    # vLLM's benchmark asks for 200 tokens with this data set; templates and instructions of the two families of models.
    prompts, outputs = edits(work["mean_prompt"], work["mean_output"], 200, count, 70 if natural_ends else 42)
    if natural_ends:
        return {"prompt": {"list": prompts}, "output": {"list": outputs}, "max_tokens": 200}
    return {"prompt": {"list": prompts}, "output": {"fixed": round(work["mean_output"])}}


def classes(rates, spread, count=5):
    """Kinds of requests whose conditional rates differ on the logit scale, with that standard deviation; their mean over rounds is `rates`."""
    if spread == 0:
        return {"position_rates": rates}
    places = [statistics.NormalDist().inv_cdf((i + 0.5) / count) for i in range(count)]
    size = math.sqrt(sum(place ** 2 for place in places) / count)
    conditional = [min(max(rate / before, 0.001), 0.999) for rate, before in zip(rates, [1.0] + rates[:-1])]
    logits = np.log(np.array(conditional) / (1 - np.array(conditional)))
    shifts = np.array(places)[:, None] / size * spread
    offsets = logits.copy()
    for _ in range(300):
        own = np.cumprod(1 / (1 + np.exp(-(offsets[None, :] + shifts))), axis=1)
        weights = 1 / (1 + own.sum(axis=1))                 # rounds of a request with this number of tokens
        mean = (weights[:, None] * own).sum(axis=0) / weights.sum()
        now = np.clip(mean / np.concatenate([[1.0], mean[:-1]]), 1e-6, 1 - 1e-6)
        offsets += logits - np.log(now / (1 - now))
    return {"classes": [{"share": 1 / count, "position_rates": [float(f"{rate:.6f}") for rate in row]} for row in own]}


def config_of(cell, server, figures, natural_ends, spread):
    """`figures`: values that replace the server's own."""
    asked, load = cell["server"], cell["load"]
    hardware = dict(server["hardware"])
    for name, value in figures.items():
        if name == "attention_efficiency":
            preset = yaml.safe_load((ROOT / "configs" / "hardware" / f"{hardware['preset']}.yaml").read_text())
            hardware["calibration"] = {**preset["calibration"], name: min(1.0, value)}
        elif name not in ("frontend_ms", "draft_us"):
            hardware[name] = value
    # The GPUs' calibration is used, because products of these servers are a fifth slower at 256 rows than kernels that were measured alone.
    cost = {"model": "roofline", "hardware": hardware, "kernels": "none", "target": server["target"],
            "draft": server["drafts"].get(cell.get("draft"), "none")}
    serve = {"scheduler": {"kind": "vllm_v1", "max_num_batched_tokens": asked["max_num_batched_tokens"], "max_num_seqs": asked["max_num_seqs"],
                           "max_model_len": asked["max_model_len"], "async": asked["async_scheduling"], "reserve_full_isl": False},
             "kv": {"block": asked["block"], "tokens": asked["kv_pool_tokens"]},
             "arrivals": {"process": "closed", "concurrency": load["closed_loop_max_concurrency"], "requests": load["requests"],
                          "rate": load["poisson_rps"]},
             "lengths": lengths_of(cell, natural_ends), "frontend_ms": figures.get("frontend_ms", FRONTEND_MS)}
    if cell["K"]:
        serve["speculation"] = {"policy": {"kind": "fixed", "draft_length": cell["K"]}, "method": METHODS[cell["method"]],
                                "acceptance": classes(cell["acceptance"]["position_rates"], spread)}
        if "draft_us" in figures:
            cost["draft_us"] = figures["draft_us"]
    return {"experiment": cell["id"].replace(".", "_"), "seed": 1, "serve": serve, "cost": cost}


# ---- fits ----------------------------------------------------------------------------------------------------------

WEIGHTS = {"tpot": 1.0, "itl50": 1.0, "throughput": 0.5, "ttft": 0.5}


def measured(cell):
    m = cell["metrics_ms"]
    return {"ttft": m["ttft_mean"], "tpot": m["tpot_mean"], "itl50": m["itl_p50"], "itl": m["itl_mean"], "throughput": cell["output_tok_s"]}


def levenberg(residuals, start, prior=PRIOR, rounds=6):
    """Levenberg and Marquardt's method. Residuals of whole simulations jump, so derivatives are taken over three percent."""
    def whole(point):
        return np.concatenate([residuals(point), prior * (point - start)])

    x, damping = start.copy(), 1e-3
    r = whole(x)
    for _ in range(rounds):
        jacobian = np.array([(whole(x + 0.03 * unit) - r) / 0.03 for unit in np.eye(len(x))]).T
        for _ in range(6):
            square = jacobian.T @ jacobian
            step = np.linalg.solve(square + damping * np.diag(np.diag(square)), -jacobian.T @ r)
            trial = x + np.clip(step, -0.4, 0.4)
            new = whole(trial)
            if new @ new < r @ r:
                x, r, damping = trial, new, damping / 5
                break
            damping *= 5
        else:
            break
    return x


def preset_figures(server):
    """Start of the fit: the values of the GPU's file."""
    preset = yaml.safe_load((ROOT / "configs" / "hardware" / f"{server['hardware']['preset']}.yaml").read_text())
    own = {**preset, "attention_efficiency": 0.8, **preset["calibration"], "frontend_ms": FRONTEND_MS, **server["hardware"]}
    return {name: float(own[name]) for name in server["fit"]}


def fit_plain(program, cells, server, natural_ends):
    """Fits the server's parameters to its rows without speculation, as logarithms."""
    start = preset_figures(server)

    def residuals(point):
        figures = dict(zip(start, np.exp(point).tolist()))
        got = program.run_all([config_of(cell, server, figures, natural_ends, 0) for cell in cells])
        return np.array([weight * math.log(one[name] / measured(cell)[name]) for one, cell in zip(got, cells)
                         for name, weight in WEIGHTS.items()])

    x = levenberg(residuals, np.log(np.array(list(start.values()))))
    return {name: float(f"{value:.4g}") for name, value in zip(start, np.exp(x))}, float(np.sqrt((residuals(x) ** 2).mean()))


def spread_of(program, cells, server, natural_ends):
    """How far requests differ in acceptance: the spread for which the simulated 99th percentile of TPOT over its mean equals the measured one in the
    cells where no cache is full. Cells are weighed by their requests, because with 50 requests the 99th percentile is the slowest one and very
    random."""
    weights = [cell["load"]["requests"] for cell in cells]
    wanted = np.average([cell["metrics_ms"]["tpot_p99"] / cell["metrics_ms"]["tpot_mean"] for cell in cells], weights=weights)
    grid = [0.0, 0.15, 0.3, 0.45, 0.7, 1.0]
    ratios = []
    for spread in grid:
        got = program.run_all([config_of(cell, server, {}, natural_ends, spread) for cell in cells])
        ratios.append(np.average([one["tpot99"] / one["tpot"] for one in got], weights=weights))
        if ratios[-1] > wanted:
            break
    return float(f"{np.interp(wanted, ratios, grid[:len(ratios)]):.3f}")


def fit_draft(program, cell, server, figures, natural_ends, spread):
    """Host time of a draft pass, in microseconds, that gives this cell's time per output token."""
    low, high = 10.0, 3000.0
    for _ in range(10):
        time = math.sqrt(low * high)
        got = program.means([config_of(cell, server, {**figures, "draft_us": time}, natural_ends, spread)])[0]["tpot"]
        low, high = (time, high) if got < cell["metrics_ms"]["tpot_mean"] else (low, time)
    return float(f"{math.sqrt(low * high):.3g}")


# ---- the cells ---------------------------------------------------------------------------------------------------------------

FIGURES = ["tpot", "throughput", "ttft", "itl50", "itl"]


def cells_of(numbers):
    with open(numbers) as file:
        rows = yaml.safe_load(file)["rows"]
    return [row for row in rows if row["target"] in SERVERS and "closed_loop_max_concurrency" in row["load"]
            and "kv_pool_tokens" in row["server"] and (row["K"] == 0 or row["draft"] in SERVERS[row["target"]]["drafts"])]


def rows_of(cells, runs, way, fitted_to):
    rows = []
    for cell, got in zip(cells, runs):
        want = measured(cell)
        role = "fitted" if way == "fitted" and not cell["K"] else "one time fitted" if way == "fitted" and cell["id"] in fitted_to else "predicted"
        row = {"id": cell["id"], "price": way, "target": cell["target"], "draft": cell.get("draft") or "none",
               "dataset": cell["workload"]["dataset"], "draft_length": cell["K"],
               "concurrency": cell["load"]["closed_loop_max_concurrency"], "role": role, "preemptions": round(got["preemptions"], 1)}
        for name in FIGURES:
            row.update({f"{name}_measured": want[name], f"{name}_simulated": round(got[name], 3), f"{name}_error": round(got[name] / want[name] - 1, 4)})
        rows.append(row)
    return rows


def compare_cells(program, numbers, say):
    """A row for each cell and latency model; the fitted values; and the errors if a draft's time is fitted to another draft length's cell."""
    table, fitted, others = [], [], []
    cells = cells_of(numbers)
    for target in dict.fromkeys(cell["target"] for cell in cells):
        server, group = SERVERS[target], [cell for cell in cells if cell["target"] == target]
        plain = [cell for cell in group if cell["K"] == 0]
        # Outputs that have the same length in all cells were cut at that length; others ended by themselves.
        means = [cell["workload"]["mean_output"] for cell in group if cell["workload"]["dataset"] == "InstructCoder"]
        natural_ends = max(means) - min(means) > 0.5
        alone = [cell for cell in sorted(group, key=lambda one: one["K"]) if cell["K"] and cell["load"]["closed_loop_max_concurrency"] == 1]
        kinds = dict.fromkeys((cell["draft"], cell["workload"]["dataset"]) for cell in alone)
        usual = [cell for cell in group if cell["K"] and cell["load"]["closed_loop_max_concurrency"] <= SPREAD_MOST]
        spreads = {kind: spread_of(program, [cell for cell in usual if (cell["draft"], cell["workload"]["dataset"]) == kind], server, natural_ends)
                   for kind in kinds}

        def configs(some, figures, times, server=server, natural_ends=natural_ends, spreads=spreads):
            return [config_of(cell, server, {**figures, **({"draft_us": times[cell["draft"]]} if cell["K"] and times else {})}, natural_ends,
                              spreads.get((cell.get("draft"), cell["workload"]["dataset"]), 0)) for cell in some]

        table += rows_of(group, program.means(configs(group, {}, {})), "roofline", [])
        say(f"{target}: {len(group)} cells with nothing fitted")
        figures, rms = fit_plain(program, plain, server, natural_ends)
        fitted.append({"model": target, "figures": figures, "to": f"{len(plain)} rows without speculation, rms {pages.percent(rms)}"})
        times, fitted_to = {}, []
        for draft in server["drafts"]:
            own = [cell for cell in alone if cell["draft"] == draft and cell["workload"]["dataset"] == "InstructCoder"]
            if not own:
                continue
            spread = spreads[(draft, "InstructCoder")]
            one = next((cell for cell in own if cell["K"] == 3), own[0])
            ends = [cell for cell in (own[0], own[-1]) if cell is not one]     # the shortest and the longest draft length
            by_length = {cell["K"]: fit_draft(program, cell, server, figures, natural_ends, spread) for cell in (one, *ends)}
            times[draft] = by_length[one["K"]]
            fitted_to.append(one["id"])
            fitted.append({"model": draft, "figures": {"draft_us": times[draft]}, "to": f"`{one['id']}`; to those of the shortest and longest "
                           f"draft length: {' and '.join(format(by_length[cell['K']], 'g') for cell in ends)}"})
            # A series is a draft length: its cells are predicted with the draft time of another length.
            for cell in ends:
                rest = [other for other in group if other.get("draft") == draft and other["K"] != cell["K"]]
                rows = rows_of(rest, program.run_all(configs(rest, figures, {draft: by_length[cell["K"]]})), "left out", [])
                others.append({"draft": draft, "to": cell["K"], "rows": rows})
        for (draft, dataset), spread in spreads.items():
            fitted.append({"model": draft, "figures": {"spread": spread}, "to": f"percentiles of TPOT, up to 64 requests at once, {dataset}"})
        table += rows_of(group, program.means(configs(group, figures, times)), "fitted", fitted_to)
        say(f"{target}: {len(group)} cells, fitted")
    table.sort(key=lambda row: (row["price"], row["target"], row["dataset"], row["draft"], row["draft_length"], row["concurrency"]))
    return table, fitted, others


def crossings(table):
    """The first concurrency of the grid at which speculation has less throughput than no speculation: measured, simulated, steps between."""
    out = []
    plain = {(row["target"], row["dataset"], row["concurrency"]): row for row in table if row["draft_length"] == 0}
    series = {}
    for row in table:
        if row["draft_length"]:
            series.setdefault((row["target"], row["dataset"], row["draft"], row["draft_length"]), []).append(row)
    for key, rows in series.items():
        grid = [row["concurrency"] for row in rows]

        def first(what, rows=rows, grid=grid):
            for index, row in enumerate(rows):
                base = plain.get((row["target"], row["dataset"], row["concurrency"]))
                if base and row[f"throughput_{what}"] < base[f"throughput_{what}"]:
                    return index
            return len(grid)

        ours, theirs = first("simulated"), first("measured")
        words = [str(grid[index]) if index < len(grid) else f"above {grid[-1]}" for index in (theirs, ours)]
        out.append((*key, *words, abs(ours - theirs)))
    return out


# ---- the runs ----------------------------------------------------------------------------------------------------------------

# The record runs vLLM's engine in its own process, without HTTP, and its times are the engine's: no time of clients is added.
NO_CLIENTS = {"preset": "vllm", "client_us_per_sequence": 0}
RUNS = {
    "RTX4090_Llama-3.1-8B": {"trace": "sharegpt-llama-3.1-8b-300-sps10.blocks.csv", "blocks": 2588, "max_num_seqs": 256, "replicas": 1,
                             "roofline": {"hardware": "rtx-4090", "target": "llama-3.1-8b", "draft": "none", "engine": NO_CLIENTS}},
    # data_parallel_size 2 and enable_expert_parallel. The cache of its two GPUs of 96 GB is never full; this number of blocks is more than the run
    # needs. The record does not measure the link; 16 GB/s and 20 us are the values of its authors' simulator for this machine.
    "RTXPRO6000_Qwen3-30B-A3B-Instruct-2507": {"trace": "sharegpt-qwen3-32b-300-sps10.blocks.csv", "blocks": 30000, "max_num_seqs": 128,
                                               "replicas": 2, "roofline": {
                                                   "hardware": {"preset": "rtx-pro-6000", "link_gb_per_s": 16, "link_latency_us": 20},
                                                   "draft": "none", "engine": NO_CLIENTS,
                                                   "target": {"preset": "qwen3-30b-a3b", "expert_parallel": 2}}},
}
RUN_FIGURES = ["ttft", "tpot", "e2el", "duration"]
LINE = ["target_fixed_ms", "target_ms_per_token", "target_ms_per_kv_token"]
GROUP = 30  # consecutive requests whose mean TPOT is one value of a fit


def group_means(requests):
    """Mean TPOT of each group, in ms; `requests`: first and last token in s, tokens."""
    times = [1e3 * (last - first) / (tokens - 1) for first, last, tokens in requests if tokens > 1]
    return [statistics.mean(times[i:i + GROUP]) for i in range(0, len(times) - GROUP + 1, GROUP)]


def measured_run(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    # queued_ts is when the engine, between two steps, takes the request from its inbox; arrival_time covers the wait before.
    lag = [(row["queued_ts"] - rows[0]["queued_ts"]) - (row["arrival_time"] - rows[0]["arrival_time"]) for row in rows]
    first = [row["first_token_ts"] - row["queued_ts"] for row in rows]
    return {"ttft": 1e3 * statistics.mean(first), "inbox": 1e3 * (statistics.mean(lag) - min(lag)),
            "tpot": statistics.mean(1e3 * (row["last_token_ts"] - row["first_token_ts"]) / (row["output_toks"] - 1)
                                    for row in rows if row["output_toks"] > 1),
            "e2el": 1e3 * statistics.mean(row["last_token_ts"] - row["queued_ts"] for row in rows),
            "duration": max(row["last_token_ts"] for row in rows) - min(row["queued_ts"] for row in rows),
            "groups": group_means([(row["first_token_ts"], row["last_token_ts"], row["output_toks"]) for row in rows])}


def config_of_run(run, folder, cost):
    serve = {"scheduler": {"kind": "vllm_v1", "max_num_batched_tokens": 2048, "max_num_seqs": run["max_num_seqs"], "max_model_len": 32768,
                           "async": True, "prefix_caching": True}, "kv": {"block": 16, "blocks": run["blocks"]},
             "arrivals": {"process": "trace", "file": str((folder / run["trace"]).resolve())}, "replicas": run["replicas"]}
    return {"experiment": "run", "seed": 1, "serve": serve, "cost": cost}


def compare_runs(program, folder, say):
    rows = []
    for name, run in RUNS.items():
        want = measured_run(folder / f"{name}.requests.jsonl")

        def residuals(point, run=run, want=want):
            cost = {"model": "affine", **dict(zip(LINE, np.exp(point).tolist()))}
            got = program.run(config_of_run(run, folder, cost))
            return np.array([math.log(ours / theirs) for ours, theirs in zip(group_means(got["requests"]), want["groups"])]
                            + [2 * math.log(got["duration"] / want["duration"])])

        with_clients = {key: value for key, value in run["roofline"]["engine"].items() if key != "client_us_per_sequence"}
        x = levenberg(residuals, np.log(np.array([17.0, 0.09, 0.00011])), prior=0.005, rounds=14)
        fitted = {"model": "affine", **dict(zip(LINE, (float(f"{value:.4g}") for value in np.exp(x))))}
        ways = [("three numbers, fitted to TPOT in ten groups and the duration", fitted),
                ("roofline, nothing fitted", {"model": "roofline", **run["roofline"]}),
                ("the same, with the time of a server's clients", {"model": "roofline", **run["roofline"], "engine": with_clients})]
        for way, cost in ways:
            got = program.run(config_of_run(run, folder, cost))
            row = {"run": name, "price": way, "numbers": "; ".join(f"{key} {value}" for key, value in cost.items() if key != "model"),
                   "preemptions": round(got["preemptions"]), "inbox_measured": round(want["inbox"], 3)}
            for figure in RUN_FIGURES:
                row.update({f"{figure}_measured": round(want[figure], 3), f"{figure}_simulated": round(got[figure], 3),
                            f"{figure}_error": round(got[figure] / want[figure] - 1, 4)})
            rows.append(row)
        say(f"{name}: {len(ways)} ways")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/serving"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    def say(text):
        print(text, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        program = Program(folder)
        runs = compare_runs(program, arguments.runs, say)
        table, fitted, others = compare_cells(program, arguments.numbers, say)
    write_rows(arguments.out / "table.csv", table)
    write_rows(arguments.out / "runs.csv", runs)
    crossed = {way: crossings([row for row in table if row["price"] == way]) for way in ("fitted", "roofline")}
    (arguments.out / "index.md").write_text(pages.page(table, fitted, others, crossed, runs))
    plot_serving.draw(arguments.out)
    (arguments.out / "manifest.yaml").write_text(
        "# Made by scripts/results/serving.py from published figures, which index.md names.\n"
        f"program: {version_of(SPECSIM)}\ncommand: scripts/results/serving.py --numbers SERVING_NUMBERS.yaml --runs vllm_runs\nseed: 1\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
