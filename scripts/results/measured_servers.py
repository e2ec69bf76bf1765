#!/usr/bin/python3
"""Simulates measured servers under load from what their sources state: writes results/servers. Nothing is fitted.

usage: scripts/results/measured_servers.py SPECSIM OUT [CLASS]    (from the repository's root: scripts/results/measured_servers.py build/specsim results/servers)

With CLASS only rows whose class begins so, such as threads.

Reads configs/published/servers.csv, one line for each measured cell: the deployment, its load, means of what was measured, and `inputs`, what had to be
assumed. Rows with `not_simulated` are passed on without an estimate; that column says why. Rows that differ only in date or version have one estimate.
Reads configs/published/threads.csv too: plain steps, rounds and speedups that people posted, in the columns of served_speedups.csv and priced as those.
Writes rows.csv (class, row, source, date, version, quantity, unit, measured, estimated, low, high, not_simulated) and manifest.yaml.
To add a server, add a line to configs/published/servers.csv.
"""
import csv
import io
import json
import math
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import served_speedups
from calls import version_of
from latency_coverage import Asked
from tables import rows_of, write_rows

ROWS = Path("configs/published/servers.csv")
THREADS = Path("configs/published/threads.csv")
Z95 = 1.96
# column of the file: quantity, unit, the program's figure, the figure whose relative interval it shares
QUANTITIES = {"ttft_ms": ("TTFT", "ms", "TTFT ms, mean", "TTFT ms, mean"), "tpot_ms": ("TPOT", "ms", "TPOT ms, mean", "TPOT ms, mean"),
              "tpot_p50_ms": ("TPOT, median", "ms", "TPOT ms, p50", "TPOT ms, mean"),
              "itl_ms": ("ITL", "ms", "ITL between chunks ms, mean", "TPOT ms, mean"), "e2e_ms": ("E2E", "ms", "end to end ms, mean", "TPOT ms, mean"),
              "output_tokens_per_s": ("throughput", "tokens/s", "output tokens/s", "output tokens/s")}
COLUMNS = ["class", "row", "source", "date", "version", "quantity", "unit", "measured", "estimated", "low", "high", "not_simulated"]
BLOCK = 16  # tokens of one hash of a trace


def trace(row):
    """Requests whose prompts begin with one of `prefixes` shared texts in turn, as a trace: at equal gaps, or all at the start without a rate."""
    prompt, shared, prefixes, rate = int(row["prompt"]), int(row["shared_prefix"]), int(row["prefixes"]), float(row["rate"] or 0)
    blocks, common = -(-prompt // BLOCK), shared // BLOCK
    lines = []
    for i in range(int(row["requests"])):
        first = prefixes * common + i * (blocks - common)
        hashes = [i % prefixes * common + j for j in range(common)] + list(range(first, first + blocks - common))
        lines.append(json.dumps({"chat_id": i, "parent_chat_id": -1, "timestamp": i / rate if rate else 0, "input_length": prompt,
                                 "output_length": int(row["output"]), "type": "text", "turn": 1, "hash_ids": hashes}) + "\n")
    return "".join(lines)


def length(tokens, drawn_from):
    """drawn_from: lengths are drawn evenly from this share of `tokens` to all of them."""
    return f"{{uniform: {{from: {round(float(drawn_from) * int(tokens))}, to: {tokens}}}}}" if drawn_from else tokens


def arguments_of(row):
    arguments = ["--hardware", row["hardware"], "--target", row["target"], "--engine", row["engine"], "--tensor-parallel", row["tensor_parallel"]]
    arguments += ["--dtype", row["dtype"]] if row["dtype"] else []
    if row["draft"]:
        arguments += ["--draft", row["draft"], "--policy", f"fixed:{row['draft_length']}"]
        arguments += (["--position-rates", row["position_rates"].replace(" ", ",")] if row["position_rates"] else
                      ["--mean-acceptance-length", row["acceptance_length"], "--at-draft-length", row["draft_length"]])
    for setting in filter(None, row["settings"].split("; ")):
        arguments += ["--set", setting]
    if not row["shared_prefix"]:
        arguments += ["--concurrency", row["clients"], "--requests", row["requests"], "--prompt", length(row["prompt"], row["drawn_from"]),
                      "--output", length(row["output"], row["drawn_from"])]
    return arguments


def simulated(specsim, row):
    """Figures of the server that the row describes, or what the program found wrong."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        arguments = arguments_of(row)
        if row["shared_prefix"]:
            file.write(trace(row))
            file.flush()
            arguments += ["--trace", file.name]
        done = subprocess.run([specsim, "serve", *arguments, "--alone", "--no-capacity", "--format", "csv", "--quiet", "--threads", "1"],
                              capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.split("allowed:")[0].split(":1:1: ")[-1].strip(" ,\n")
    return {line[0]: line[-1] for line in csv.reader(io.StringIO(done.stdout)) if len(line) > 1}


def loads(row):
    """All that the estimate depends on."""
    return tuple(row[key] for key in row if key not in ("class", "row", "source", "date", "version", "not_simulated", "inputs", *QUANTITIES))


def lines_of(row, figures):
    for key, (quantity, unit, figure, bounds) in QUANTITIES.items():
        if not row[key]:
            continue
        line = {**row, "class": f"{row['class']}: {quantity.split(',')[0]}", "quantity": quantity, "unit": unit, "measured": row[key]}
        if isinstance(figures, dict):
            estimated, middle = float(figures[figure]), float(figures[bounds])
            line["estimated"] = f"{estimated:.5g}"
            for side in ("low", "high"):
                line[side] = f"{estimated * float(figures[f'{bounds}, 95 % {side}']) / middle:.5g}"
        else:
            line["not_simulated"] = row["not_simulated"] or f"refused: {figures}"
        yield line


def thread_lines(specsim):
    """A round's interval is that of the pass over its rows. A speedup has none."""
    asked = Asked(served_speedups)
    plains = set()
    for row in rows_of(THREADS):
        asked.list.clear()
        made, seen = served_speedups.price(specsim, row)
        errors = dict(zip(("plain", "round"), (error for _, _, error in asked.of("target"))))
        for key in ("plain", "round", "speedup"):
            if key not in made or key not in seen or (key == "plain" and (row["source"], row["hardware"], row["plain"], row["clients"]) in plains):
                continue
            plains.add((row["source"], row["hardware"], row["plain"], row["clients"]))
            bounds = {}
            if key in errors:
                factor = math.exp(Z95 * errors[key])
                bounds = {"low": f"{made[key] / factor:.5g}", "high": f"{made[key] * factor:.5g}"}
            yield {**row, "class": f"threads: {'speedups' if key == 'speedup' else 'rounds' if key == 'round' else 'plain steps'}", "quantity": key,
                   "unit": "x" if key == "speedup" else "ms", "measured": f"{seen[key]:.5g}", "estimated": f"{made[key]:.5g}", **bounds}


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    specsim, out, begins = sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) == 4 else ""
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for row in rows_of(ROWS) if row["class"].startswith(begins)]
    first = {loads(row): row for row in rows if not row["not_simulated"]}
    with ThreadPoolExecutor(2) as pool:
        made = dict(zip(first, pool.map(lambda row: simulated(specsim, row), first.values())))
    lines = [line for row in rows for line in lines_of(row, made.get(loads(row)) if not row["not_simulated"] else None)]
    lines += thread_lines(specsim) if "threads".startswith(begins) else []
    write_rows(out / "rows.csv", lines, COLUMNS)
    (out / "manifest.yaml").write_text('script: scripts/results/measured_servers.py\ncommand: "scripts/results/measured_servers.py build/specsim results/servers"\n'
                                       f'program: "{version_of(specsim)}"\ndata: {ROWS}, {THREADS}\nestimates: {len(made)}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
