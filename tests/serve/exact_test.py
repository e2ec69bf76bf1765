#!/usr/bin/python3
"""`specsim serve` decides, step by step, as the plain reference in this folder does: every row of requests.csv and steps.csv.

Small random configs over all options of the scheduler, in overload: chunks, preemption, speculation with accepted drafts from a file,
prefix caching, priorities, synchronous and asynchronous. Every deliberate mistake of reference.MUTANTS must make at least one comparison
fail. Runs at the root of the repository; SPECSIM names the program. `exact_test.py --self` runs without the program and shows that the
configs detect each mutant.
"""
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reference  # noqa: E402

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
CONFIGS = 120
SEED = 20260117
STEPS = 20000  # a small config needs far fewer; a mutant may never end


def milliseconds(microseconds):
    return microseconds / 1000


def make(number, folder):
    """One config with its trace and its file of uniform numbers in `folder`."""
    g = random.Random(f"{SEED} {number}")
    folder.mkdir(parents=True, exist_ok=True)
    tight_budget, tight_pool, ranked = (number % 5 == kind for kind in (1, 2, 3))
    block = 4 if ranked else g.choice([16, 16, 8, 4])
    method = g.choice(["eagle", "draft_model", "ngram"])
    speculates = g.random() < 0.6
    policy = {"kind": "off"}
    longest = 0
    if ranked or (speculates and g.random() < 0.6):
        longest = g.randint(3, 5) if ranked else g.randint(1, 5)
        policy = {"kind": "fixed", "draft_length": longest}
    elif speculates:
        edges = sorted(g.sample(range(2, 12), 2))
        lengths = [g.randint(1, 4), g.randint(0, 3), g.choice([0, 0, 1])]
        longest = max(lengths)
        policy = {"kind": "table", "table": [[1, edges[0] - 1, lengths[0]], [edges[0], edges[1] - 1, lengths[1]], [edges[1], 512, lengths[2]]]}

    requests = g.randint(12, 36)
    caching = g.random() < 0.35
    longest_prompt, longest_output = (20 if tight_budget or ranked else 90), (4 if tight_pool and g.random() < 0.5 else 40)
    prompts = [g.randint(1, 8) if g.random() < (0.8 if ranked else 0.2) else g.randint(8, longest_prompt) for _ in range(requests)]
    outputs = [1 if g.random() < 0.1 else g.randint(2, longest_output) for _ in range(requests)]
    largest = max(p + o for p, o in zip(prompts, outputs))
    seqs = g.choice([6, 12]) if ranked else g.choice([1, 3, 6, 12, 64])
    model_len = largest if g.random() < 0.2 else largest + g.choice([8, 500])
    chunked = ranked or g.random() < 0.85
    tokens = g.randint(6, 14) if ranked else g.randint(4, 14) if tight_budget else g.randint(10, 120)
    if method == "draft_model" and longest:
        g.choice([0, seqs])  # vLLM does not start without a row for each request
        tokens += seqs
    if not chunked:
        tokens = largest + g.randint(0, 60) + (seqs if method == "draft_model" and longest else 0)
    watermark = g.choice([0.1, 0.3]) if tight_pool else g.choice([0, 0, 0.05, 0.2])
    need = -(-(largest + 2 * longest + 2) // block) + 2
    blocks = need + (0 if tight_pool else g.randint(0, need) if ranked else g.randint(0, 3 * need))
    limited = g.random() < 0.9 or caching
    scheduler = {"kind": "vllm_v1", "max_num_batched_tokens": tokens, "max_num_seqs": seqs, "max_model_len": model_len,
                 "long_prefill_token_threshold": g.choice([0, 0, 0, g.randint(3, 40)]), "chunked_prefill": chunked,
                 "policy": "priority" if ranked else g.choice(["fcfs", "fcfs", "priority"]), "async": g.random() < 0.5,
                 "reserve_full_isl": g.random() < 0.5, "watermark": watermark if limited else 0, "prefix_caching": caching}
    serve = {"scheduler": scheduler, "kv": {"block": block}}
    if limited:
        serve["kv"]["blocks"] = blocks

    # A trace in overload, or a closed loop.
    if g.random() < 0.75 or caching or scheduler["policy"] == "priority":
        families = g.randint(1, 4)
        time = 0
        with open(folder / "trace.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["arrived_us", "prompt", "output", "block_hashes", "priority"])
            for request in range(requests):
                family, full = g.randrange(families), prompts[request] // 16
                shared = g.randint(0, full)
                hashes = [1000 * family + i for i in range(shared)] + [100000 + 100 * request + i for i in range(shared, full)]
                writer.writerow([time, prompts[request], outputs[request], " ".join(str(one) for one in hashes),
                                 requests - request if ranked else g.randint(0, 2)])
                time += g.choice([0, 1, g.randint(1, 40000)]) if scheduler["policy"] == "fcfs" else g.randint(1, 9000 if ranked else 40000)
        serve["arrivals"] = {"process": "trace", "file": "trace.csv"}
    else:
        serve["arrivals"] = {"process": "closed", "concurrency": g.randint(1, 14), "requests": requests,
                             "think_ms": g.choice([0, 0, milliseconds(g.randint(1, 30000))])}
        serve["lengths"] = {"prompt": {"list": prompts}, "output": {"list": outputs}}
    if g.random() < 0.3:
        serve["frontend_ms"] = milliseconds(g.randint(1, 9000))

    if policy["kind"] != "off":
        rates = [round(g.uniform(0.3, 1.0), 3) for _ in range(g.randint(1, max(longest, 1)))]
        level = g.choice([0.0, 0.5, 0.9])
        with open(folder / "uniforms.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["request", "position", "uniform"])
            for request in range(requests):
                for position in range(1, outputs[request] + 3 * longest + 4):
                    writer.writerow([request, position, round(g.random() * (1 - level), 9)])
        serve["speculation"] = {"policy": policy, "method": method,
                                "acceptance": {"conditional_rates": rates, "replay": "uniforms.csv"}}
    cost = {"model": "affine", "target_fixed_ms": milliseconds(g.randint(1000, 9000)), "target_ms_per_token": milliseconds(g.randint(1, 60)),
            "target_ms_per_kv_token": milliseconds(g.randint(0, 3)), "draft_fixed_ms": milliseconds(g.randint(100, 900)),
            "draft_ms_per_token": milliseconds(g.randint(1, 9)), "draft_ms_per_kv_token": milliseconds(g.randint(0, 2)),
            "draft_fixed_ms_per_round": milliseconds(g.randint(0, 300)), "overhead_ms": milliseconds(g.randint(0, 300))}
    return {"experiment": f"exact_{number}", "seed": 1, "serve": serve, "cost": cost}


def run_reference(config, folder, mutant=None):
    """Its rows as written, or a word if a mutant came to a halt."""
    try:
        engine = reference.build(config, folder, mutant)
        engine.limit = STEPS
        engine.run()
    except (SystemExit, KeyError, IndexError, ValueError, ZeroDivisionError) as error:
        if mutant is None:
            raise
        return f"{type(error).__name__} {error}"
    return {"requests.csv": (reference.REQUEST_COLUMNS, [[str(cell) for cell in row] for row in reference.request_rows(engine)]),
            "steps.csv": (reference.STEP_COLUMNS, [[str(cell) for cell in row] for row in reference.step_rows(engine)])}


def run_program(config, folder):
    path = folder / "config.yaml"
    path.write_text(json.dumps(config, indent=1) + "\n")  # JSON is YAML
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [Path(SPECSIM).resolve(), "serve", path.name, "--out", str(out.resolve()), "--steps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    tables = {}
    for name, columns in (("requests.csv", reference.REQUEST_COLUMNS), ("steps.csv", reference.STEP_COLUMNS)):
        with open(out / name, newline="") as file:
            rows = list(csv.DictReader(file))
        missing = [column for column in columns if rows and column not in rows[0]]
        if missing:
            return f"{name} has no column {missing[0]}"
        tables[name] = (columns, [[row[column] for column in columns] for row in rows])
    return tables


def same_cell(column, a, b):
    if a == b:
        return True
    if column == "free_blocks":
        return not a.isdigit() or int(a) >= 1 << 30 or int(b) >= 1 << 30  # a pool without a limit has no value to compare
    if column.endswith("_s"):
        return a != "" and b != "" and Decimal(a) == Decimal(b)
    return False


def difference(ours, theirs):
    """The first difference of two runs in a line, or None."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return None if ours == theirs else f"{ours if isinstance(ours, str) else 'ran'} | {theirs if isinstance(theirs, str) else 'ran'}"
    for name in ("steps.csv", "requests.csv"):
        columns, rows = ours[name]
        others = theirs[name][1]
        for number, (row, other) in enumerate(zip(rows, others)):
            for column, a, b in zip(columns, row, other):
                if not same_cell(column, a, b):
                    return f"{name} row {number} {column}: {a}, reference {b}"
        if len(rows) != len(others):
            return f"{name}: {len(rows)} rows, reference {len(others)}"
    return None


def main():
    alone = "--self" in sys.argv
    keep = Path(sys.argv[sys.argv.index("--keep") + 1]) if "--keep" in sys.argv else None
    with tempfile.TemporaryDirectory() as temporary:
        root = keep or Path(temporary)
        runs, failures, preempted, cached = [], 0, 0, 0
        for number in range(CONFIGS):
            folder = root / str(number)
            config = make(number, folder)
            expected = run_reference(config, folder)
            got = expected if alone else run_program(config, folder)
            wrong = difference(got, expected)
            if wrong:
                failures += 1
                print(f"exact_test: config {number}: {wrong}")
            preempted += any(row[-1] != "0" for row in expected["requests.csv"][1])
            runs.append((number, config, folder, got))
        if preempted < CONFIGS // 4:
            failures += 1
            print(f"exact_test: only {preempted} of {CONFIGS} configs preempt")
        for mutant in sorted(reference.MUTANTS):
            killers = 0
            for number, config, folder, got in runs:
                if difference(got, run_reference(config, folder, mutant)):
                    killers += 1
                    if not alone:
                        break
            if alone:
                print(f"{mutant}: {killers} of {CONFIGS}")
            if not killers:
                failures += 1
                print(f"exact_test: no config detects the mutant {mutant} ({reference.MUTANTS[mutant]})")
    print(f"exact_test: {CONFIGS} configs, {preempted} with preemption, {len(reference.MUTANTS)} mutants, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
