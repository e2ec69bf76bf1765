#!/usr/bin/python3
"""Holds `specsim serve` to measured servers and writes results/serving: table.csv, runs.csv and index.md.

  scripts/serving.py --numbers SERVING_NUMBERS.yaml --runs vllm_runs [--out results/serving]

--numbers: published figures of servers under load, a row for each cell (target, draft, draft length, concurrency); --runs: real
vLLM runs request by request. SPECSIM names the program. What is fitted, and to what, is said in index.md: the price of a step to
the rows without speculation of the same target and hardware, one time per drafter to one cell; nothing to a row by itself.
"""
import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
METHODS = {"draft-model": "draft_model", "draft_model": "draft_model", "eagle3": "eagle", "nosd": "eagle"}
# Shapes of models (their config.json): layers x KV heads x head size, parameters in 1e9.
SHAPES = {"Qwen/Qwen3-32B": (64 * 8 * 128, 32.8), "Llama-3.3-70B-Instruct": (80 * 8 * 128, 70.6), "Qwen3-1.7B": (28 * 8 * 128, 1.72),
          "Qwen3-32B-speculator.eagle3": (8 * 128, 0.8), "Llama-3.2-1B (TP2)": (16 * 8 * 64, 1.24)}
NAMES = ["target_fixed_ms", "target_ms_per_token", "target_compute_ms_per_token", "target_ms_per_kv_token", "frontend_ms"]
START = [35.0, 0.03, 0.1, 0.00015, 10.0]
PRIOR = 0.05      # weight that holds a number that the rows do not tell at its start, relative


class Program:
    """Runs one config; configs already run are remembered."""

    def __init__(self, folder):
        self.folder, self.known = Path(folder), {}

    def run(self, config):
        text = json.dumps(config)
        if text not in self.known:
            path = self.folder / "config.yaml"
            path.write_text(text + "\n")
            out = self.folder / "out"
            command = [str(Path(SPECSIM).resolve()), "serve", str(path), "--alone", "--force", "--threads", "1", "--out", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder)
            if done.returncode != 0:
                raise SystemExit(f"serving: {done.stderr.strip()}\n{text}")
            with open(out / "summary.csv", newline="") as file:
                row = next(csv.DictReader(file))
            self.known[text] = {"ttft": float(row["mean_ttft_ms"]), "tpot": float(row["mean_tpot_ms"]), "itl50": float(row["p50_itl_ms"]),
                                "itl": float(row["mean_itl_ms"]), "throughput": float(row["output_throughput"]),
                                "preemptions": int(float(row["preemptions"])), "e2el": float(row["mean_e2el_ms"]),
                                "duration": float(row["duration_s"])}
        return self.known[text]


def measured(cell):
    m = cell["metrics_ms"]
    return {"ttft": m["ttft_mean"], "tpot": m["tpot_mean"], "itl50": m["itl_p50"], "itl": m["itl_mean"], "throughput": cell["output_tok_s"]}


def capped_lengths(mean, cap, count, seed):
    """Lengths on 1..cap with that mean and the largest entropy: p proportional to exp(t x)."""
    low, high = -1.0, 1.0
    lengths = np.arange(1, cap + 1)
    for _ in range(80):
        t = (low + high) / 2
        weights = np.exp(t * (lengths - (cap if t > 0 else 1)))
        low, high = (t, high) if (weights * lengths).sum() / weights.sum() < mean else (low, t)
    return random.Random(seed).choices(range(1, cap + 1), weights=weights.tolist(), k=count)


def config_of(cell, cost, natural_ends, draft=None):
    server, load, work = cell["server"], cell["load"], cell["workload"]
    lengths = {"prompt": {"lognormal": {"mean": work["mean_prompt"], "cv": 0.5}}, "output": {"fixed": round(work["mean_output"])}}
    if natural_ends:
        lengths["output"] = {"list": capped_lengths(work["mean_output"], work["output_cap"], load["requests"], 17)}
        lengths["max_tokens"] = work["output_cap"]
    price = {"model": "affine", **{name: value for name, value in cost.items() if name != "frontend_ms"}}
    serve = {"scheduler": {"kind": "vllm_v1", "max_num_batched_tokens": server["max_num_batched_tokens"], "max_num_seqs": server["max_num_seqs"],
                           "max_model_len": server["max_model_len"], "async": server["async_scheduling"], "reserve_full_isl": False},
             "kv": {"block": server["block"], "tokens": server["kv_pool_tokens"]},
             "arrivals": {"process": "closed", "concurrency": load["closed_loop_max_concurrency"], "requests": load["requests"],
                          "rate": load["poisson_rps"]},
             "lengths": lengths, "frontend_ms": cost["frontend_ms"]}
    if draft is not None:
        serve["speculation"] = {"policy": {"kind": "fixed", "draft_length": cell["K"]}, "method": METHODS[cell["method"]],
                                "acceptance": {"position_rates": cell["acceptance"]["position_rates"]}}
        price.update(draft)
    return {"experiment": cell["id"].replace(".", "_"), "seed": 1, "serve": serve, "cost": price}


def draft_prices(cell, cost, time_ms):
    """A draft's numbers: one time of its own, the rest the target's in proportion to what the two models hold."""
    (target_kv, target_weights), (draft_kv, draft_weights) = SHAPES[cell["target"]], SHAPES[cell["draft"]]
    return {"draft_fixed_ms": time_ms, "draft_ms_per_token": cost["target_ms_per_token"] * draft_kv / target_kv,
            "draft_compute_ms_per_token": cost["target_compute_ms_per_token"] * draft_weights / target_weights,
            "draft_ms_per_kv_token": cost["target_ms_per_kv_token"] * draft_kv / target_kv}


WEIGHTS = {"tpot": 1.0, "itl50": 1.0, "throughput": 0.5, "ttft": 0.5}


def levenberg(residuals, start, prior=PRIOR, rounds=14):
    """Levenberg and Marquardt; residuals of whole simulations jump, so derivatives are taken over three percent."""
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


def fit_plain(program, cells, natural_ends):
    """The five numbers, over the rows without speculation; on logarithms."""
    start = np.log(np.array(START))
    start[0] = math.log(min(cell["metrics_ms"]["itl_p50"] for cell in cells))

    def residuals(point):
        cost = dict(zip(NAMES, np.exp(point)))
        out = []
        for cell in cells:
            got, want = program.run(config_of(cell, cost, natural_ends)), measured(cell)
            out += [weight * math.log(got[name] / want[name]) for name, weight in WEIGHTS.items()]
        return np.array(out)

    x = levenberg(residuals, start)
    return dict(zip(NAMES, (float(f"{value:.5g}") for value in np.exp(x)))), float(np.sqrt((residuals(x) ** 2).mean()))


def fit_draft(program, cell, cost, natural_ends):
    """The time of one draft pass that gives this cell's time per output token."""
    low, high = 0.01, cost["target_fixed_ms"]
    for _ in range(24):
        time = math.sqrt(low * high)
        got = program.run(config_of(cell, cost, natural_ends, draft_prices(cell, cost, time)))["tpot"]
        low, high = (time, high) if got < cell["metrics_ms"]["tpot_mean"] else (low, time)
    return float(f"{math.sqrt(low * high):.4g}")


# ---- the cells ----------------------------------------------------------------------------------------------------------------

FIGURES = ["tpot", "throughput", "ttft", "itl50", "itl"]
COLUMNS = ["id", "target", "draft", "dataset", "draft_length", "concurrency", "role", "preemptions"] + \
          [f"{name}_{what}" for name in FIGURES for what in ("measured", "simulated", "error")]


def cells_of(numbers):
    with open(numbers) as file:
        rows = yaml.safe_load(file)["rows"]
    return [row for row in rows if row["target"] in SHAPES and "closed_loop_max_concurrency" in row["load"]
            and "kv_pool_tokens" in row["server"] and (row["K"] == 0 or row["draft"] in SHAPES)]


def compare_cells(program, numbers, say):
    """A row for each cell, and the numbers that were fitted."""
    table, fitted = [], []
    cells = cells_of(numbers)
    for target in dict.fromkeys(cell["target"] for cell in cells):
        group = [cell for cell in cells if cell["target"] == target]
        plain = [cell for cell in group if cell["K"] == 0]
        # Outputs of one length in all cells were asked for so; others ended by themselves, below their cap.
        means = [cell["workload"]["mean_output"] for cell in plain if cell["workload"]["dataset"] == "InstructCoder"]
        natural_ends = max(means) - min(means) > 0.5
        cost, rms = fit_plain(program, plain, natural_ends)
        fitted.append((target, cost, rms, len(plain)))
        times = {}
        for cell in group:
            draft = cell.get("draft")
            if cell["K"] and draft not in times:
                one = next(other for other in group if other.get("draft") == draft and other["K"] == 3
                           and other["load"]["closed_loop_max_concurrency"] == 1 and other["workload"]["dataset"] == "InstructCoder")
                times[draft] = (fit_draft(program, one, cost, natural_ends), one["id"])
                fitted.append((draft, draft_prices(one, cost, times[draft][0]), None, one["id"]))
            prices = draft_prices(cell, cost, times[draft][0]) if cell["K"] else None
            got, want = program.run(config_of(cell, cost, natural_ends, prices)), measured(cell)
            role = "fitted" if not cell["K"] else "one time fitted" if cell["id"] == times[draft][1] else "predicted"
            row = {"id": cell["id"], "target": target, "draft": draft or "none", "dataset": cell["workload"]["dataset"],
                   "draft_length": cell["K"], "concurrency": cell["load"]["closed_loop_max_concurrency"], "role": role,
                   "preemptions": got["preemptions"]}
            for name in FIGURES:
                row.update({f"{name}_measured": want[name], f"{name}_simulated": round(got[name], 3),
                            f"{name}_error": round(got[name] / want[name] - 1, 4)})
            table.append(row)
        say(f"{target}: {len(group)} cells")
    table.sort(key=lambda row: (row["target"], row["dataset"], row["draft"], row["draft_length"], row["concurrency"]))
    return table, fitted


def crossings(table):
    """The first concurrency of the grid at which speculation has less throughput than none: measured, simulated, steps between."""
    out = []
    plain = {(row["target"], row["dataset"], row["concurrency"]): row for row in table if row["draft_length"] == 0}
    series = {}
    for row in table:
        if row["draft_length"]:
            series.setdefault((row["target"], row["dataset"], row["draft"], row["draft_length"]), []).append(row)
    for key, rows in series.items():
        grid = [row["concurrency"] for row in rows]

        def first(what):
            for index, row in enumerate(rows):
                base = plain.get((row["target"], row["dataset"], row["concurrency"]))
                if base and row[f"throughput_{what}"] < base[f"throughput_{what}"]:
                    return index
            return len(grid)

        ours, theirs = first("simulated"), first("measured")
        words = [str(grid[index]) if index < len(grid) else f"above {grid[-1]}" for index in (theirs, ours)]
        out.append((*key, *words, abs(ours - theirs)))
    return out


# ---- the runs -----------------------------------------------------------------------------------------------------------------

RUNS = {
    "RTX4090_Llama-3.1-8B": {"trace": "sharegpt-llama-3.1-8b-300-sps10.blocks.csv", "blocks": 2588, "max_num_seqs": 256, "replicas": 1,
                             "roofline": {"hardware": "rtx-4090", "target": "llama-3.1-8b", "draft": "llama-3.2-1b"}},
    "RTXPRO6000_Qwen3-30B-A3B-Instruct-2507": {"trace": "sharegpt-qwen3-32b-300-sps10.blocks.csv", "blocks": None, "max_num_seqs": 128,
                                               "replicas": 2, "roofline": None},
}
RUN_FIGURES = ["ttft", "tpot", "e2el", "duration"]
LINE = ["target_fixed_ms", "target_ms_per_token", "target_ms_per_kv_token"]


def measured_run(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    first = [row["first_token_ts"] - row["queued_ts"] for row in rows]
    return {"ttft": 1e3 * statistics.mean(first),
            "tpot": statistics.mean(1e3 * (row["last_token_ts"] - row["first_token_ts"]) / (row["output_toks"] - 1)
                                    for row in rows if row["output_toks"] > 1),
            "e2el": 1e3 * statistics.mean(row["last_token_ts"] - row["queued_ts"] for row in rows),
            "duration": max(row["last_token_ts"] for row in rows) - min(row["queued_ts"] for row in rows)}


def config_of_run(run, folder, cost):
    kv = {"block": 16, "blocks": run["blocks"]} if run["blocks"] else {"block": 16}
    caching = run["blocks"] is not None
    serve = {"scheduler": {"kind": "vllm_v1", "max_num_batched_tokens": 2048, "max_num_seqs": run["max_num_seqs"], "max_model_len": 32768,
                           "async": True, "prefix_caching": caching}, "kv": kv,
             "arrivals": {"process": "trace", "file": str((folder / run["trace"]).resolve())}, "replicas": run["replicas"]}
    return {"experiment": "run", "seed": 1, "serve": serve, "cost": cost}


def compare_runs(program, folder, say):
    rows = []
    for name, run in RUNS.items():
        want = measured_run(folder / f"{name}.requests.jsonl")
        ways = []

        def residuals(point, run=run, want=want):
            cost = {"model": "affine", **dict(zip(LINE, np.exp(point)))}
            got = program.run(config_of_run(run, folder, cost))
            return np.array([math.log(got[figure] / want[figure]) for figure in ("tpot", "duration")])

        x = levenberg(residuals, np.log(np.array([17.0, 0.09, 0.00011])), prior=0.02)
        cost = {"model": "affine", **dict(zip(LINE, (float(f"{value:.4g}") for value in np.exp(x))))}
        ways.append(("three numbers, fitted to TPOT and duration", cost))
        if run["roofline"]:
            ways.append(("roofline, nothing fitted", {"model": "roofline", **run["roofline"]}))
        for way, cost in ways:
            got = program.run(config_of_run(run, folder, cost))
            row = {"run": name, "price": way, "numbers": "; ".join(f"{key} {value}" for key, value in cost.items() if key != "model"),
                   "preemptions": got["preemptions"]}
            for figure in RUN_FIGURES:
                row.update({f"{figure}_measured": round(want[figure], 3), f"{figure}_simulated": round(got[figure], 3),
                            f"{figure}_error": round(got[figure] / want[figure] - 1, 4)})
            rows.append(row)
        say(f"{name}: {len(ways)} ways")
    return rows


# ---- the pages ------------------------------------------------------------------------------------------------------------------

def percent(value):
    return f"{100 * value:.1f} %"


def spread(rows, figure):
    """Median, 90th percentile and worst of the absolute errors."""
    errors = sorted(abs(row[f"{figure}_error"]) for row in rows)
    if not errors:
        return "-"
    return f"{percent(statistics.median(errors))}, {percent(errors[min(int(0.9 * len(errors)), len(errors) - 1)])}, {percent(errors[-1])}"


def circumstances(row):
    """What sets a missed cell apart: where to look for the term, not a proof of it."""
    words = [f"up to {row['concurrency'] * (row['draft_length'] + 1)} rows of verification in a step"]
    if row["preemptions"]:
        words.append(f"a full cache, {row['preemptions']} preemptions")
    if row["dataset"] == "mt-bench":
        words.append(f"80 requests in all, {row['concurrency']} at once: no steady state" if row["concurrency"] > 8 else "80 requests in all")
    return "; ".join(words)


def page(table, fitted, crossed, runs):
    speculative = [row for row in table if row["role"] == "predicted"]
    lines = ["# Real servers", "",
             "`scripts/serving.py` holds [`specsim serve`](../../docs/guides/serving.md) to servers that others measured. Every figure is in",
             "`table.csv` and `runs.csv`; errors are simulated over measured, less one.", "",
             "## Published cells of vLLM with speculation", "",
             "Qwen3-32B on one GPU with a draft model of 1.7B or an EAGLE-3 head, Llama-3.3-70B on two GPUs with a draft model of 1B; draft lengths 1",
             "to 8; 1 to 256 requests at once ([tomasruizt/vllm-scripts](https://github.com/tomasruizt/vllm-scripts)).",
             "Given: the size of the cache, acceptance by position, mean lengths. Fitted: five numbers (a step's",
             "fixed time, time per row, arithmetic per row, time per cached token, and the time before a request reaches the "
             "engine) to the rows *without* speculation of the target, and one time per drafter to one cell (draft",
             "length 3, one request at once). The draft's other prices are the target's in proportion to weights (arithmetic) and cache",
             "(the rest). Prompt lengths are lognormal with a coefficient of variation of 0.5,",
             "an assumption; outputs are of one length where the mean is the same in all cells, else of the law of largest entropy below their cap.", "",
             "What was chosen by looking at these cells too, so that their errors are not wholly those of a forecast: the 4-norm that joins memory and",
             "arithmetic (against the norms 2 and 3, the larger of the two, and a plain line), and the proportion for the draft's price per row",
             "(against the vocabularies', and against none). Tried and left out: a price per sampled row, and rows rounded up to tiles of 128.", "",
             "| predicted cells | number | TPOT: median, 90 %, worst | throughput | mean TTFT below 1 s | mean TTFT above 1 s |",
             "|---|---|---|---|---|---|"]
    groups = [("all", speculative)]
    groups += [(draft, [row for row in speculative if row["draft"] == draft]) for draft in dict.fromkeys(row["draft"] for row in speculative)]
    for name, rows in groups:
        low = [row for row in rows if row["ttft_measured"] < 1000]
        high = [row for row in rows if row["ttft_measured"] >= 1000]
        lines.append(f"| {name} | {len(rows)} | {spread(rows, 'tpot')} | {spread(rows, 'throughput')} | {spread(low, 'ttft')} | {spread(high, 'ttft')} |")
    lines += ["", "The roofline is not held to these cells: the record names neither the pair of GPUs nor the bandwidth of the single one.", "",
              "What was fitted (ms):", "", "| model | fixed | per row | arithmetic per row | per cached token | frontend | to what |",
              "|---|---|---|---|---|---|---|"]
    for name, cost, rms, source in fitted:
        kind = "target" if rms is not None else "draft"
        values = [cost[f"{kind}_fixed_ms"], cost[f"{kind}_ms_per_token"], cost[f"{kind}_compute_ms_per_token"], cost[f"{kind}_ms_per_kv_token"]]
        to = f"{source} rows without speculation, rms {percent(rms)}" if rms is not None else f"fixed time to `{source}`"
        lines.append(f"| {name} | " + " | ".join(f"{value:.4g}" for value in values) + f" | {cost.get('frontend_ms', '')} | {to} |")
    lines += ["", "## Where speculation stops paying", "",
              "The first number of requests at once at which the server with speculation emits fewer tokens a second than without.", "",
              "| target | requests | draft | draft length | measured | simulated | steps of the grid between |", "|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in crossed]
    missed = [row for row in speculative if max(abs(row["tpot_error"]), abs(row["throughput_error"]), abs(row["ttft_error"])) > 0.1]
    lines += ["", "## Misses above 10 %", "", f"{len(missed)} of {len(speculative)} cells miss one of the three by more than a tenth.", "",
              "| cell | TPOT | throughput | TTFT | circumstances (where to look for the term) |", "|---|---|---|---|---|"]
    for row in missed:
        errors = " | ".join(f"{100 * row[f'{name}_error']:+.1f} %" for name in ("tpot", "throughput", "ttft"))
        lines.append(f"| `{row['id']}` | {errors} | {circumstances(row)} |")
    lines += ["", "## Two vLLM runs, request by request", "",
              "300 requests of ShareGPT sessions, ten a second, far above what the server sustains (casys-kaist/LLMServingSim, MIT).",
              "Times are in ms, the duration in s, from the engine's queue; simulated / measured. The three",
              "numbers are fitted to this run's own TPOT and duration, so that these two agree by construction; in overload "
              "the duration nearly settles TTFT and end to end too. The roofline is fitted to nothing. The second run is two",
              "engines that share experts and step together, which is simulated as two servers in turn, with no limit of the",
              "cache, which is not known.", "",
              "| run | price | TTFT | TPOT | end to end | duration | preemptions |", "|---|---|---|---|---|---|---|"]
    for row in runs:
        cells = [f"{row[f'{figure}_simulated']:.6g} / {row[f'{figure}_measured']:.6g} ({100 * row[f'{figure}_error']:+.1f} %)" for figure in RUN_FIGURES]
        lines.append(f"| {row['run']} | {row['price']} | " + " | ".join(cells) + f" | {row['preemptions']} |")
    return "\n".join(lines) + "\n"


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


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
        table, fitted = compare_cells(program, arguments.numbers, say)
    write(arguments.out / "table.csv", table)
    write(arguments.out / "runs.csv", runs)
    (arguments.out / "index.md").write_text(page(table, fitted, crossings(table), runs))
    version = subprocess.run([SPECSIM, "--version"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    (arguments.out / "manifest.yaml").write_text(
        "# Made by scripts/serving.py from published figures, which index.md names.\n"
        f"program: {version}\ncommand: scripts/serving.py --numbers SERVING_NUMBERS.yaml --runs vllm_runs\nseed: 1\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
