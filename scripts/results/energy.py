#!/usr/bin/python3
"""How well energy per token is predicted on measured servers: writes results/energy.

  scripts/results/energy.py --servers DIR [--out results/energy]

--servers: measured servers, a CSV file for each source. table.csv has each measured row with the power, speed and joules per output token that
the program (SPECSIM, build/specsim) predicts; summary.md the errors. The powers in configs/hardware were fitted to the rows whose role is "fit";
the others had no part in them.
"""
import argparse
import csv
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from calls import version_of

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
COLUMNS = ("gpu", "server", "cap_w", "draft_length", "clients", "tokens_per_round", "role", "watts", "predicted_watts", "watts_error_percent", "tokens_per_s",
           "predicted_tokens_per_s", "tokens_per_s_error_percent", "joules_per_token", "predicted_joules_per_token", "joules_error_percent", "low", "high",
           "over_uncapped", "predicted_over_uncapped", "over_uncapped_error_percent")


def run(arguments, file):
    """The rows of a CSV file that the program writes."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([SPECSIM, *arguments, "--out", f"{scratch}/out"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"energy: specsim {' '.join(arguments)}: {done.stderr}")
        with open(f"{scratch}/out/{file}", newline="") as lines:
            return list(csv.DictReader(lines))


def row_of(gpu, server, cap, length, clients, tokens, role, measured, predicted):
    """`measured` and `predicted`: watts, tokens per second, joules per token; predicted with the bounds of the last."""
    line = dict(zip(("gpu", "server", "cap_w", "draft_length", "clients", "tokens_per_round", "role"), (gpu, server, cap, length, clients, tokens, role)))
    for name, short, real, ours in zip(("watts", "tokens_per_s", "joules_per_token"), ("watts", "tokens_per_s", "joules"), measured, predicted):
        line[name] = f"{real:.4g}"
        line[f"predicted_{name}"] = f"{ours:.4g}"
        line[f"{short}_error_percent"] = f"{100 * (ours / real - 1):.1f}"
    line["low"], line["high"] = (f"{bound:.4g}" for bound in predicted[3:])
    return line


def capped_plan(cap, length, tokens_per_round):
    """Watts, tokens per second and joules per token, with the bounds of the last, of Qwen3.8-27B and its MTP module on one RTX 5090."""
    acceptance = ["--mean-acceptance-length", str(tokens_per_round), "--at-draft-length", str(length)] if length else ["--alpha", "0.5"]
    limit = ["--power-cap", str(cap)] if cap else []
    lines = run(["plan", "--hardware", "rtx-5090", "--target", "{preset: qwen3.6-27b, dtype: q4_k_m}", "--draft",
                 "{preset: qwen3.6-27b-mtp, dtype: q4_k_m}", "--engine", "llama_cpp", "--context", "250", "--longest", str(max(length, 1)), *acceptance, *limit],
                "plan.csv")
    own = next(line for line in lines if int(line["draft_length"]) == length)
    return [float(own[key]) for key in ("watts_per_gpu", "tokens_per_second", "joules_per_token", "joules_per_token_low", "joules_per_token_high")]


def power_caps(folder):
    """Qwen3.8-27B with its MTP module under llama.cpp on one RTX 5090, by power cap and draft length; one client."""
    for row in csv.DictReader(open(folder / "llamacpp_rtx5090_mtp_power.csv")):
        cap, length = int(row["cap_w"]), int(row["n_max"])
        tokens = round(1 + length * float(row["acceptance"] or 0), 3)
        role = "fit" if length in (0, 3, 6) else "held out"
        yield row_of("rtx-5090", "llama.cpp, Qwen3.8-27B Q4_K_XL, MTP", cap, length, 1, tokens, role,
                     [float(row[key]) for key in ("draw_w", "tok_s", "joules_per_token")], capped_plan(cap, length, tokens))


def clients(folder):
    """gpt-oss-120b with its EAGLE-3 head under vLLM on one H200, by clients; power with prompts of 7,200 tokens in it."""
    for row in csv.DictReader(open(folder / "vllm_h200_gptoss120b_eagle3.csv")):
        if not row["table_power_mean_w"]:
            continue
        length, requests = int(row["K"]), int(row["requests"])
        rates = [float(row[f"accepted_pos{i}"]) / float(row["server_drafts"]) for i in range(1, length + 1)]
        drafted = ["--policy", f"fixed:{length}", "--position-rates", ",".join(f"{rate:.4f}" for rate in rates)] if length else ["--policy", "off"]
        own = run(["serve", "--hardware", "h200-sxm", "--target", "gpt-oss-120b", "--draft", "eagle3-gpt-oss-120b" if length else "none",
                   "--engine", "vllm", "--set", "serve.kv.tokens=1474368", "--set", "serve.kv.plain_tokens=1659040", "--concurrency", row["concurrency"],
                   "--requests", str(requests), "--prompt", f"{float(row['input_tokens']) / requests:.0f}", "--output",
                   f"{float(row['output_tokens']) / requests:.0f}", "--alone", "--no-capacity", *drafted], "summary.csv")[0]
        yield row_of("h200-sxm", "vLLM, gpt-oss-120b, EAGLE-3", "", length, int(row["concurrency"]), row["acceptance_length"] or 1, "fit" if length == 0 else "held out",
                     [float(row[key]) for key in ("table_power_mean_w", "output_tok_s", "joules_per_output_token")],
                     [float(own[key]) for key in ("watts_per_gpu", "output_throughput", "joules_per_token", "joules_per_token_low", "joules_per_token_high")])


def add_effect(rows):
    """Joules per token over those without a cap, measured and predicted: the effect of the cap, without what latency is missed by."""
    free = {row["draft_length"]: row for row in rows if row["cap_w"] == 600}
    for row in rows:
        base = free.get(row["draft_length"]) if row["cap_w"] else None
        if base is None:
            continue
        measured, predicted = (float(row[key]) / float(base[key]) for key in ("joules_per_token", "predicted_joules_per_token"))
        row["over_uncapped"], row["predicted_over_uncapped"] = f"{measured:.3f}", f"{predicted:.3f}"
        row["over_uncapped_error_percent"] = f"{100 * (predicted / measured - 1):.1f}"


SOURCES = {"rtx-5090": power_caps, "h200-sxm": clients}


def errors(rows, key):
    return [abs(float(row[key])) for row in rows]


def summary(rows):
    lines = ["| GPU | rows | role | watts, median error % | largest | tokens/s, median error % | joules/token, median error % | largest "
             "| effect of the cap, largest error % | within the 95 % interval |", "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
    for (gpu, role), group in itertools.groupby(sorted(rows, key=lambda row: (row["gpu"], row["role"])), key=lambda row: (row["gpu"], row["role"])):
        own = list(group)
        inside = sum(float(row["low"]) <= float(row["joules_per_token"]) <= float(row["high"]) for row in own)
        watts, speed, joules = (errors(own, f"{key}_error_percent") for key in ("watts", "tokens_per_s", "joules"))
        figures = [statistics.median(watts), max(watts), statistics.median(speed), statistics.median(joules), max(joules)]
        effect = errors([row for row in own if row.get("over_uncapped")], "over_uncapped_error_percent")
        cells = [f"{x:.1f}" for x in figures] + [f"{max(effect):.1f}" if effect else ""]
        lines.append(f"| {gpu} | {len(own)} | {role} | " + " | ".join(cells) + f" | {inside} of {len(own)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, type=Path)
    parser.add_argument("--out", default="results/energy", type=Path)
    arguments = parser.parse_args()
    rows = [row for source in SOURCES.values() for row in source(arguments.servers)]
    add_effect(rows)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with open(arguments.out / "table.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (arguments.out / "summary.md").write_text(summary(rows))
    commit = version_of(SPECSIM)
    (arguments.out / "manifest.yaml").write_text(
        f"command: scripts/results/energy.py\ncommit: {commit}\nsources:\n"
        "  llamacpp_rtx5090_mtp_power.csv: github.com/sudoingX/qwen38-mtp c7bc4153, Apache-2.0\n"
        "  vllm_h200_gptoss120b_eagle3.csv: github.com/GloriaXimingLu/inferencex-profiling 237385b, figures alone\n")
    print(summary(rows), end="")


if __name__ == "__main__":
    main()
