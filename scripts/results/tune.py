#!/usr/bin/python3
"""Measures how well `specsim tune` predicts servers from a few of their runs: writes results/tune.

  scripts/results/tune.py --servers DIR --numbers SERVING_NUMBERS.yaml [--out results/tune]

--servers: measured servers, a CSV file for each source; --numbers: published measurements of servers under load. For each server with at
least six cells, the runs that `--suggest` picks are given (none, 2, 4), and all other cells are predicted. SPECSIM names the program.

cells.csv has each predicted cell with its interval, table.csv the errors of all and by server, repeats.csv how far apart repetitions of one cell are.
Nothing is fitted here.
"""
import argparse
import collections
import csv
import datetime
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plots"))
from calls import version_of  # noqa: E402
from tables import write_rows  # noqa: E402

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
COLUMNS = ("run", "draft_length", "concurrency", "rate", "requests", "prompt_tokens", "output_tokens", "position_rates", "acceptance_length",
           "ttft_ms", "tpot_ms", "output_tokens_per_s")
METRICS = COLUMNS[-3:]
GIVEN = (0, 2, 4)
CLEAR = 0.05  # gains or losses above this count


class Server:
    """machine: servers of one machine, or of one engine on one kind of GPU in one source, share errors."""

    def __init__(self, machine, name, kind, options, runs):
        self.machine, self.name, self.kind, self.options, self.runs = machine, name, kind, options, runs


# Lengths that a benchmark draws evenly between 80 and 100 % of the stated one (--random-range-ratio 0.8). A run's mean scales them.
DRAWN_EVENLY = [part for side in ("prompt", "output") for part in ("--set", f"serve.lengths.{side}={{uniform: {{from: 8000, to: 10000}}}}")]


# ---- the sources -------------------------------------------------------------------------------------------------------------

def eagle3_on_a100(folder):
    """Llama-3.1-8B with EAGLE-3 under vLLM on an A100: weights by cache, means of three repeats."""
    prompts = {"gsm8k": 716, "humaneval": 207}  # the file omits them in most rows; its README has them
    cells = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in csv.DictReader(open(folder / "vllm_a100_llama8b_eagle3.csv")):
        if row["phase"] != "block0_results":
            cells[row["weights"], row["kv"]][row["workload"], int(row["K"]), int(row["concurrency"])].append(row)
    for (weights, cache), groups in cells.items():
        runs = []
        for (workload, length, clients), rows in groups.items():
            def mean(key, rows=rows):
                return statistics.mean(float(row[key]) for row in rows)
            runs.append({"run": f"{workload}-k{length}-c{clients}", "draft_length": length, "concurrency": clients, "requests": rows[0]["requests"],
                         "prompt_tokens": prompts[workload], "output_tokens": round(mean("output_tokens_mean")) + 1,
                         "acceptance_length": mean("acceptance_length") if length else "", "ttft_ms": mean("ttft_mean_ms"),
                         "tpot_ms": mean("tpot_derived_ms"), "output_tokens_per_s": mean("throughput_tok_s")})
        options = ["--hardware", "a100-80gb-sxm", "--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b", "--engine", "vllm"]
        if weights == "w4a16":
            options += ["--dtype", "int4"]
        if cache == "fp8":
            options += ["--set", "cost.target.kv_bits=8"]
        kind = "quantised" if weights == "w4a16" else "fp8 cache" if cache == "fp8" else "dense"
        yield Server("a100", f"a100 llama-3.1-8b {weights} weights, {cache} cache, eagle3", kind, options, runs)


def gpt_oss_on_h200(folder):
    runs = []
    for row in csv.DictReader(open(folder / "vllm_h200_gptoss120b_eagle3.csv")):
        length, requests = int(row["K"]), int(row["requests"])
        rates = [float(row[f"accepted_pos{i}"]) / float(row["server_drafts"]) for i in range(1, length + 1)]
        runs.append({"run": f"k{length}-c{row['concurrency']}", "draft_length": length, "concurrency": int(row["concurrency"]), "requests": requests,
                     "prompt_tokens": float(row["input_tokens"]) / requests, "output_tokens": float(row["output_tokens"]) / requests,
                     "position_rates": " ".join(f"{rate:.4f}" for rate in rates), "ttft_ms": row["ttft_mean_ms"], "tpot_ms": row["tpot_mean_ms"],
                     "output_tokens_per_s": row["output_tok_s"]})
    options = ["--hardware", "h200-sxm", "--target", "gpt-oss-120b", "--draft", "eagle3-gpt-oss-120b", "--engine", "vllm", *DRAWN_EVENLY,
               "--set", "serve.kv.tokens=1474368", "--set", "serve.kv.plain_tokens=1659040"]  # as the servers logged
    yield Server("gpt-oss", "h200 gpt-oss-120b, eagle3", "experts", options, runs)


def evenly(tokens):
    """Mean of lengths that were drawn so."""
    return 0.9 * float(tokens)


CAMPAIGN_DAYS = 7  # runs further apart are of other versions of the engine; within such a week a repeated cell differs by half a percent


def campaigns(rows):
    """The rows in groups: no two neighbours by date are further apart than CAMPAIGN_DAYS."""
    groups = []
    for row in sorted(rows, key=lambda row: row["date"]):
        day = datetime.date.fromisoformat(row["date"])
        if not groups or (day - last).days > CAMPAIGN_DAYS:
            groups.append([])
        groups[-1].append(row)
        last = day
    return groups


HARDWARE = {"h100": "h100-sxm", "h200": "h200-sxm"}
FRAMEWORKS = {"trt": "trtllm", "sglang": "sglang", "vllm": "vllm"}


# Days on which repeated cells took two to three times as long as days later.
DOUBTFUL = {("b200", "2026-05-15"), ("b300", "2026-04-17")}


def inferencex_rows(folder):
    """DeepSeek-R1 on one server: one engine, attention without data parallelism."""
    return [row for row in csv.DictReader(open(folder / "inferencex_dsr1.csv"))
            if row["disagg"] == row["is_multinode"] == "False" and row["decode_dp_attention"] != "True" and row["decode_ep"] == "1"
            and row["framework"] in FRAMEWORKS and (row["hardware"], row["date"]) not in DOUBTFUL]


def seconds_of(row, metric):
    return float(row[f"mean_{metric}"] or row[f"median_{metric}"])


def deepseek_by_inferencex(folder):
    """With and without its MTP module. A server is one campaign, and the newest run of each cell in it."""
    groups = collections.defaultdict(list)
    for row in inferencex_rows(folder):
        groups[row["hardware"], row["framework"], row["precision"], row["decode_tp"]].append(row)
    for (gpu, framework, precision, gpus), rows in groups.items():
        length = 3 if framework == "trt" or gpu.startswith("mi") else 2  # from the recipe; acceptance was not recorded
        options = ["--hardware", HARDWARE.get(gpu, gpu), "--target", "deepseek-v3", "--tensor-parallel", gpus, "--draft", "deepseek-v3-mtp",
                   "--engine", FRAMEWORKS[framework], *DRAWN_EVENLY]
        if precision == "fp4":
            options += ["--dtype", "nvfp4"]
        # As in the recipes of InferenceX (benchmarks/single_node/fixed_seq_len/dsr1_*.sh). SGLang on NVIDIA looks for new requests at each 10th
        # step, or at each 30th for 16 clients or more, which most runs have. TTFT shows that 512 ran at once.
        if not gpu.startswith("mi"):
            options += ["--set", "cost.target.kv_bits=8"]
            if framework == "sglang":
                options += ["--set", "serve.scheduler.max_running_requests=512", "--set", "serve.scheduler.chunked_prefill_size=16384",
                            "--set", "serve.scheduler.max_prefill_tokens=16384", "--set", "serve.scheduler.scheduler_recv_interval=30",
                            "--set", "serve.kv.utilization=0.82"]
            else:
                options += ["--set", "serve.kv.utilization=0.8"]
        else:
            options += ["--set", "serve.scheduler.max_running_requests=1024", "--set", "serve.scheduler.chunked_prefill_size=196608",
                        "--set", "serve.scheduler.max_prefill_tokens=196608", "--set", "serve.kv.utilization=0.8"]
        for campaign in campaigns(rows):
            runs = {}
            for row in campaign:  # by date
                speculates = row["spec_method"] != "none"
                name = f"{row['isl']}-{row['osl']}-k{length if speculates else 0}-c{row['conc']}"
                runs[name] = {"run": name, "draft_length": length if speculates else 0, "concurrency": int(row["conc"]),
                              "requests": 10 * int(row["conc"]), "prompt_tokens": evenly(row["isl"]), "output_tokens": evenly(row["osl"]),
                              "acceptance_length": "", "ttft_ms": 1e3 * seconds_of(row, "ttft"), "tpot_ms": 1e3 * seconds_of(row, "tpot"),
                              "output_tokens_per_s": float(row["output_tput_per_gpu"]) * int(gpus)}
            yield Server(f"{gpu} {framework}", f"{gpu} deepseek-r1 {precision}, {framework}, tp {gpus}, {campaign[-1]['date'][:7]}", "experts", options, list(runs.values()))


def repeats(folder):
    """How far apart repetitions of one cell are: within a campaign and between neighbouring ones. It is the least error of a prediction from runs
    of another version."""
    cells = collections.defaultdict(list)
    for row in inferencex_rows(folder):
        cells[tuple(row[key] for key in ("hardware", "framework", "precision", "decode_tp", "spec_method", "isl", "osl", "conc"))].append(row)
    apart = collections.defaultdict(list)
    for rows in cells.values():
        groups = campaigns(rows)
        for group in groups:
            apart["within a week"] += itertools.pairwise(group)
        apart["next version"] += [(before[-1], after[-1]) for before, after in itertools.pairwise(groups)]
    for name, pairs in apart.items():
        line = {"repeated": name, "pairs": len(pairs)}
        for metric in ("tpot", "ttft"):
            errors = sorted(abs(seconds_of(after, metric) / seconds_of(before, metric) - 1) for before, after in pairs)
            line |= {f"{metric}_median": f"{statistics.median(errors):.4g}", f"{metric}_p90": f"{errors[int(0.9 * (len(errors) - 1))]:.4g}"}
        yield line


def specbundle(folder):
    """Llama-3.1-8B with two EAGLE-3 heads under SGLang on an H200, chains, one client. Lengths and TTFT were not recorded, nor the other models'
    number of GPUs."""
    rows = [row for row in csv.DictReader(open(folder / "specbundle_sglang_h200.csv"))
            if row["model"] == "Llama-3.1-8B-Instruct" and row["topk"] == "1" and row["batch_size"] == "1"]
    plain = collections.defaultdict(list)
    for row in rows:
        if float(row["accept_length"]) == 1:
            plain[row["task"]].append(float(row["output_tok_s"]))
    for draft in sorted({row["name"] for row in rows if float(row["accept_length"]) > 1}):
        runs = [{"run": f"{task}-k0", "draft_length": 0, "concurrency": 1, "prompt_tokens": "", "output_tokens_per_s": statistics.mean(speeds)}
                for task, speeds in plain.items()]
        runs += [{"run": f"{row['task']}-k{row['steps']}", "draft_length": int(row["steps"]), "concurrency": 1, "prompt_tokens": "",
                  "acceptance_length": row["accept_length"], "output_tokens_per_s": float(row["output_tok_s"])}
                 for row in rows if row["name"] == draft]
        options = ["--hardware", "h200-sxm", "--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b", "--engine", "sglang"]
        yield Server("specbundle", f"h200 llama-3.1-8b, {draft.split('/')[-1]}, sglang", "dense", options, runs)


GPU_94 = "1x H100 94 GB (LRZ lrz-hgx-h100-94x4)"
GPU_PCIE = "2x GPU of 80-94 GB, no P2P (brev; model not named in the logs)"
SERVED = [("h100 qwen3-32b, qwen3-1.7b", GPU_94, "Qwen/Qwen3-32B", "Qwen3-1.7B",
           ["--hardware", "h100-sxm-94gb", "--target", "qwen3-32b", "--draft", "qwen3-1.7b"]),
          ("h100 qwen3-32b, eagle3", GPU_94, "Qwen/Qwen3-32B", "Qwen3-32B-speculator.eagle3",
           ["--hardware", "h100-sxm-94gb", "--target", "qwen3-32b", "--draft", "eagle3-qwen3-32b"]),
          ("2 x h100-pcie llama-3.3-70b, llama-3.2-1b", GPU_PCIE, "Llama-3.3-70B-Instruct", "Llama-3.2-1B (TP2)",
           ["--hardware", "h100-pcie", "--target", "llama-3.1-70b", "--draft", "llama-3.2-1b", "--tensor-parallel", "2"])]


def served(path):
    rows = [row for row in yaml.safe_load(Path(path).read_text())["rows"] if "output_tok_s" in row and "kv_pool_tokens" in row.get("server", {})]
    for name, gpu, target, draft, options in SERVED:
        by_workload = collections.defaultdict(list)
        for row in rows:
            if row["hardware"] == gpu and row["target"] == target and row.get("draft", draft if row["K"] == 0 else "") == draft:
                by_workload[row["workload"]["dataset"]].append(row)
        for workload, own in by_workload.items():
            asked = next((row for row in own if row["K"] > 0), own[0])["server"]
            plain = next((row for row in own if row["K"] == 0), {"server": asked})["server"]
            settings = {"serve.scheduler.kind": "vllm_v1", "serve.scheduler.async": str(asked["async_scheduling"]).lower(),
                        "serve.plain_scheduler": f"{{async: {str(plain['async_scheduling']).lower()}}}",
                        "serve.scheduler.max_num_batched_tokens": asked["max_num_batched_tokens"],
                        "serve.scheduler.max_num_seqs": asked["max_num_seqs"], "serve.scheduler.max_model_len": asked["max_model_len"],
                        "serve.scheduler.reserve_full_isl": "false", "serve.kv.block": asked["block"], "serve.kv.tokens": asked["kv_pool_tokens"],
                        "serve.kv.plain_tokens": plain["kv_pool_tokens"]}
            runs = [{"run": row["id"], "draft_length": row["K"], "concurrency": row["load"]["closed_loop_max_concurrency"],
                     "rate": row["load"].get("poisson_rps", ""), "requests": row["load"]["requests"], "prompt_tokens": row["workload"]["mean_prompt"],
                     "output_tokens": row["workload"]["mean_output"],
                     "position_rates": " ".join(map(str, row["acceptance"]["position_rates"])) if row["K"] else "",
                     "ttft_ms": row["metrics_ms"]["ttft_mean"], "tpot_ms": row["metrics_ms"]["tpot_mean"], "output_tokens_per_s": row["output_tok_s"]}
                    for row in own]
            more = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
            yield Server(gpu, f"{name}, {workload}", "dense", [*options, "--engine", "vllm", *more], runs)


def all_servers(folder, numbers):
    """Servers with six runs or more, with and without speculation."""
    for source in (eagle3_on_a100(folder), gpt_oss_on_h200(folder), deepseek_by_inferencex(folder), specbundle(folder), served(numbers)):
        for server in source:
            if len(server.runs) >= 6 and {run["draft_length"] > 0 for run in server.runs} == {False, True}:
                yield server


# ---- calls of the program --------------------------------------------------------------------------------------------

def write_runs(path, runs, measured):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows({key: value for key, value in run.items() if measured or key not in METRICS} for run in runs)


def call(arguments):
    done = subprocess.run([SPECSIM, "tune", *arguments, "--threads", "1"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"tune: {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def cell_of(server, count, given, run, told):
    """A predicted cell; `told`: the metrics with their intervals."""
    return {"server": server.name, "class": server.kind, "given": count, "runs": " ".join(given), "run": run["run"],
            "draft_length": run["draft_length"],
            "load": (run["concurrency"], run["prompt_tokens"] // 50 if run["prompt_tokens"] else run["run"].split("-k")[0]),
            **{f"{metric}{part}": float(told[f"{metric}{part}"]) for metric in METRICS for part in ("", "_low", "_high")},
            **{f"measured_{metric}": float(run[metric]) if run.get(metric) else math.nan for metric in METRICS}}


def study(server):
    """The cells that are predicted from none, two and four runs."""
    with tempfile.TemporaryDirectory() as folder:
        cells = f"{folder}/cells.csv"
        write_runs(cells, server.runs, False)
        found = []
        # Suggestions are greedy: the first two of four equal the suggestion of two.
        told = json.loads(call([*server.options, "--predict", cells, "--suggest", str(max(GIVEN)), "--settled", "0", "--format", "json", "--quiet"]))
        suggested = [row[1] for row in told["tables"][-1]["rows"]]
        for count in GIVEN:
            given = suggested[:count]
            runs = f"{folder}/runs-{count}.csv"
            write_runs(runs, [run for run in server.runs if run["run"] in given], True)
            rest = f"{folder}/rest-{count}.csv"
            others = [run for run in server.runs if run["run"] not in given]
            write_runs(rest, others, False)
            out = f"{folder}/out-{count}"
            call([*([runs] if given else []), *server.options, "--predict", rest, "--out", out, "--quiet"])
            for run, told in zip(others, csv.DictReader(open(f"{out}/predicted.csv"))):
                found.append(cell_of(server, count, given, run, told))
            sys.stderr.write(f"{server.name}: {count} runs given ({', '.join(given)})\n")
    return found


def measured(cells, metric):
    return [cell for cell in cells if not math.isnan(cell[f"measured_{metric}"])]


def errors(cells, metric):
    return sorted(abs(math.log(cell[metric] / cell[f"measured_{metric}"])) for cell in measured(cells, metric))


def at(values, share):
    return values[min(len(values) - 1, int(share * len(values)))] if values else math.nan


def inside(cells, metric):
    held = [cell[f"{metric}_low"] <= cell[f"measured_{metric}"] <= cell[f"{metric}_high"] for cell in measured(cells, metric)]
    return statistics.mean(held) if held else math.nan


def decisions(cells):
    """For each load: the sign of each clear gain, and the loss of the recommended draft length relative to the best measured one. By TPOT, or by
    throughput if only that was measured."""
    loads = collections.defaultdict(list)
    for cell in cells:
        loads[cell["server"], cell["load"]].append(cell)
    right, losses = [], []
    for choices in loads.values():
        plain = [cell for cell in choices if cell["draft_length"] == 0]
        if not plain or len(choices) < 2:
            continue
        by_tpot = not math.isnan(plain[0]["measured_tpot_ms"])

        def speed(cell, what, by_tpot=by_tpot):
            return 1 / cell[f"{what}tpot_ms"] if by_tpot else cell[f"{what}output_tokens_per_s"]
        for cell in choices:
            gain = math.log(speed(cell, "measured_") / speed(plain[0], "measured_"))
            if cell["draft_length"] and abs(gain) > CLEAR:
                right.append((math.log(speed(cell, "") / speed(plain[0], "")) > 0) == (gain > 0))
        best = max(speed(cell, "measured_") for cell in choices)
        losses.append(best / speed(max(choices, key=lambda cell: speed(cell, "")), "measured_") - 1)
    return right, losses


def summary(cells):
    right, losses = decisions(cells)
    row = {"cells": len(cells)}
    for metric in METRICS:
        found = errors(cells, metric)
        row |= {f"{metric}_median": at(found, 0.5), f"{metric}_p90": at(found, 0.9), f"{metric}_inside": inside(cells, metric)}
    return row | {"clear_signs": len(right), "signs_right": statistics.mean(right) if right else math.nan,
                  "loss_of_best": statistics.mean(losses) if losses else math.nan}


def errors_table(cells):
    """Errors by number of runs: of all cells, and by server and class."""
    keys = {"server": sorted({cell["server"] for cell in cells}), "class": sorted({cell["class"] for cell in cells})}
    table = [{"given": count, "group": "all", **rounded(summary([cell for cell in cells if cell["given"] == count]))} for count in GIVEN]
    for key, values in keys.items():
        table += [{"given": count, "group": value, **rounded(summary([cell for cell in cells if cell["given"] == count and cell[key] == value]))}
                  for value in values for count in GIVEN]
    return table


def summary_table(table):
    """The tables of docs/results/tune.md."""
    lines = ["| servers | runs given | cells | TPOT error, median / 90 % | throughput | TTFT | inside 95 %: TPOT, throughput, TTFT | sign of the gain right | loss of the best draft length |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in table:
        if row["group"] != "all" and row["group"] not in {"dense", "experts", "quantised", "fp8 cache"}:
            continue
        errors = [" / ".join(f"{100 * float(row[f'{metric}_{part}']):.1f}" for part in ("median", "p90")) + " %"
                  for metric in ("tpot_ms", "output_tokens_per_s", "ttft_ms")]
        inside = ", ".join(f"{100 * float(row[f'{metric}_inside']):.0f}" for metric in ("tpot_ms", "output_tokens_per_s", "ttft_ms"))
        lines.append(f"| {row['group']} | {row['given']} | {row['cells']} | {' | '.join(errors)} | {inside} % | "
                     f"{100 * float(row['signs_right']):.0f} % of {row['clear_signs']} | {100 * float(row['loss_of_best']):.1f} % |")
    return "\n".join(lines) + "\n"


def rounded(row):
    return {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}


def repeats_table(rows):
    text = "| a cell repeated | pairs | TPOT differs by, median / 90 % | TTFT |\n" + "|---" * 4 + "|\n"
    for row in rows:
        tpot, ttft = (" / ".join(f"{100 * float(row[f'{metric}_{part}']):.1f}" for part in ("median", "p90")) + " %" for metric in ("tpot", "ttft"))
        text += f"| {row['repeated']} | {row['pairs']} | {tpot} | {ttft} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, type=Path)
    parser.add_argument("--numbers", required=True, type=Path)
    parser.add_argument("--out", default="results/tune", type=Path)
    parser.add_argument("--only", default="", help="servers whose name has this")
    arguments = parser.parse_args()
    servers = [server for server in all_servers(arguments.servers, arguments.numbers) if arguments.only in server.name]
    with ThreadPoolExecutor(2) as pool:
        cells = [cell for found in pool.map(study, servers) for cell in found]
    arguments.out.mkdir(parents=True, exist_ok=True)
    table = errors_table(cells)
    write_rows(arguments.out / "table.csv", table)
    write_rows(arguments.out / "cells.csv", [rounded({key: value for key, value in cell.items() if key != "load"}) for cell in cells])
    (arguments.out / "summary.md").write_text(summary_table(table))
    again = list(repeats(arguments.servers))
    write_rows(arguments.out / "repeats.csv", again)
    (arguments.out / "repeats.md").write_text(repeats_table(again))
    version = version_of(SPECSIM)
    (arguments.out / "manifest.yaml").write_text(
        f"command: scripts/results/tune.py --servers DIR --numbers SERVING_NUMBERS.yaml{f' --only {arguments.only}' if arguments.only else ''}\nversion: {json.dumps(version)}\n"
        f"servers: {len(servers)}\ncells: {len(cells)}\n")
    for row in table:
        if row["group"] == "all" or arguments.only:
            print(row)


if __name__ == "__main__":
    main()
