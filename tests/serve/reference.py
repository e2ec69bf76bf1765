#!/usr/bin/python3
"""A plain reference of one serving engine: vLLM V1's scheduler, step by step, in whole picoseconds.

It shares no code with sim/serving/serve and is written for reading. reference_pool.py has the pool of blocks, reference_scheduler.py the
scheduler, reference_engine.py acceptance, latency and time; the config, the tables and the list of mutants are here. Sources:
vllm/v1/core/sched/scheduler.py, async_scheduler.py and vllm/v1/core/kv_cache_manager.py of vLLM (2026).

    reference.py CONFIG --out DIR [--mutant NAME]

reads the `serve:` and `cost:` sections of the same YAML as `specsim serve` and writes requests.csv and steps.csv. It knows only the cost
model affine. Random arrivals and lengths are its own, so a comparison row by row uses traces, closed loops and fixed lengths.
A mutant is a deliberate mistake (MUTANTS) that a comparison must detect.
"""
import argparse
import csv
import datetime
import json
import math
import random
import sys
from pathlib import Path

from reference_engine import Acceptance, AffineCost, Engine
from reference_pool import UNLIMITED, Pool, Request
from reference_scheduler import DraftPolicy, Scheduler

PS = 10 ** 12  # picoseconds in a second

MUTANTS = {
    "budget_off_by_one": "the token budget of a step is one less",
    "budget_of_draft_model": "a draft model takes no slots from the token budget",
    "victim_first": "the first of the running requests is preempted, not the last",
    "victim_not_refunded": "a scheduled victim of the priority policy does not give its tokens back to the budget",
    "victim_to_back": "a preempted request goes to the back of the queue",
    "admits_after_preemption": "waiting requests are admitted in a step that preempted",
    "no_lookahead": "no slots are kept for the draft's own cache",
    "lookahead_off_by_one": "one lookahead slot is forgotten",
    "no_watermark": "admission ignores the watermark",
    "watermark_when_idle": "the watermark holds although nothing runs",
    "no_full_isl": "a prompt is admitted when its first chunk fits",
    "skips_head_of_line": "a request that does not fit is passed over at admission",
    "threshold_ignored": "long prompts are not cut at long_prefill_token_threshold",
    "seqs_off_by_one": "one request more than max_num_seqs runs",
    "chunks_always": "prompts are cut although chunked prefill is off",
    "resumes_prompt_only": "a preempted request recomputes its prompt, not its output",
    "model_len_off_by_one": "positions may reach max_model_len",
    "rejection_kept": "computed is not set back by what was rejected",
    "bonus_dropped": "a round that accepts every draft emits no bonus token",
    "bonus_dropped_at_stop": "a bonus token that would be the last of its request is dropped",
    "tail_kept": "tokens after a stop are emitted",
    "drafts_untrimmed": "a round whose drafts do not fit the budget loses all of them",
    "drafts_stale": "drafts stay although K of the step is zero",
    "draft_cache_with_gaps": "a step that drafts nothing leaves the draft's cache as it is",
    "table_by_decodes": "the table of draft lengths counts no prompt chunks",
    "table_by_running": "the table of draft lengths counts the running requests, scheduled or not",
    "draft_first_pass_narrow": "the first pass of the draft has one row for each request",
    "async_extra_step": "a request that is sure to end is scheduled again behind its last step",
    "async_as_sync": "steps are scheduled when the last one ended",
    "async_idle_waits": "after the first step after a pause nothing is scheduled",
    "stale_placeholders": "placeholders of drafts survive a step in which their request was not scheduled",
    "hit_of_last_token": "the cache may give the last token of a prompt too",
    "eagle_keeps_block": "EAGLE keeps the last block of a hit",
    "hits_not_counted": "hit blocks of the free list take no free block",
    "freed_head_first": "blocks go back to the free list from the head, so that prefixes are evicted first",
    "cache_most_recent": "the most recently freed block is evicted first",
    "caches_drafts": "blocks are found in the cache although their tokens are not final",
    "arrival_of_turn": "the clock of a closed loop's request starts at its turn of the process, not at sending",
    "think_forgotten": "the next request of a closed loop is sent without thinking",
    "priority_ignored": "the queue is in order of arrival",
    "cost_of_uncached": "the cost of cached tokens is left out",
}


# ---- the config ------------------------------------------------------------------------------------------------------------

def draw(section, number, generator):
    """One length from a distribution of the config."""
    (kind, value), = section.items()
    if kind == "fixed":
        return int(value)
    if kind == "list":
        return int(value[number % len(value)])
    if kind == "uniform":
        return generator.randint(int(value["from"]), int(value["to"]))
    if kind == "geometric":
        return 1 + int(math.log(1.0 - generator.random()) / math.log1p(-1.0 / value["mean"])) if value["mean"] > 1 else 1
    if kind == "lognormal":
        variance = math.log1p(value["cv"] ** 2)
        return max(1, round(generator.lognormvariate(math.log(value["mean"]) - variance / 2, math.sqrt(variance))))
    raise SystemExit(f"reference: lengths {kind} are not known here")


def hashes_of(text):
    """"0-146 150" or "0-146;150": hashes of a prompt's full blocks of 16 tokens."""
    hashes = []
    for part in text.replace(";", " ").split():
        first, _, last = part.partition("-")
        hashes.extend(range(int(first), int(last or first) + 1))
    return tuple(hashes)


def read_trace(path, limit):
    """(time in ps, prompt, output, priority, hashes) of each row of a trace."""
    rows = []
    with open(path, newline="") as file:
        if path.suffix == ".jsonl":
            for line in file:
                row = json.loads(line)
                parts = 512 // 16
                hashes = tuple((one, part) for one in row.get("hash_ids", ()) for part in range(parts))
                rows.append((round(row["timestamp"] * 10 ** 9), row["input_length"], row["output_length"], 0,
                             hashes[:row["input_length"] // 16]))
        else:
            origin = None
            for row in csv.DictReader(file):
                if "TIMESTAMP" in row:
                    whole, _, fraction = row["TIMESTAMP"].partition(".")
                    seconds = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
                    time = int(seconds.timestamp()) * PS + int(fraction.ljust(12, "0"))
                    origin = time if origin is None else origin
                    rows.append((time - origin, int(row["ContextTokens"]), int(row["GeneratedTokens"]), 0, ()))
                else:
                    rows.append((int(row["arrived_us"]) * 10 ** 6, int(row["prompt"]), int(row["output"]),
                                 int(row.get("priority") or 0), hashes_of(row.get("block_hashes") or "")))
    return rows[:limit] if limit else rows


def poisson_times(section, count, generator):
    rate, shape = section["rate"], section.get("burstiness", 1.0)
    if rate == math.inf:
        return [0] * count
    gaps = [generator.gammavariate(shape, 1.0 / (rate * shape)) for _ in range(count)]
    times, time = [], 0.0
    for gap in gaps:
        time += gap
        times.append(time)
    if section.get("rescaled"):
        times = [one * (count / rate) / times[-1] for one in times]
    return [round(one * PS) for one in times]


def build(config, folder, mutant=None):
    """The engine that a config describes."""
    serve = config["serve"]
    settings = serve.get("scheduler", {})
    if settings.get("kind", "vllm_v1") != "vllm_v1":
        raise SystemExit("reference: vllm_v1 only")
    kv = serve.get("kv", {})
    block = kv.get("block", 16)
    blocks = kv["blocks"] if "blocks" in kv else kv["tokens"] // block if "tokens" in kv else UNLIMITED
    generator = random.Random(config.get("seed", 1))
    arrivals = serve["arrivals"]
    lengths = serve.get("lengths", {"prompt": {"fixed": 1}, "output": {"fixed": 1}})
    process = arrivals["process"]
    how = {"frontend": round(serve.get("frontend_ms", 0) * 1e9)}
    if process == "trace":
        rows = read_trace(folder / arrivals["file"], arrivals.get("requests"))
        requests = [Request(number, row[1], row[2], row[3], row[4]) for number, row in enumerate(rows)]
        how["times"] = [round(row[0] * arrivals.get("time_scale", 1)) for row in rows]
    else:
        count = arrivals["requests"]
        requests = [Request(number, draw(lengths["prompt"], number, generator), draw(lengths["output"], number, generator))
                    for number in range(count)]
        if process == "closed":
            how["concurrency"], how["think"] = arrivals["concurrency"], round(arrivals.get("think_ms", 0) * 1e9)
            how["times"] = poisson_times(arrivals, count, generator) if "rate" in arrivals else None
        elif process == "deterministic":
            how["times"] = [round(number * PS / arrivals["rate"]) for number in range(count)]
        elif process in ("poisson", "gamma"):
            how["times"] = poisson_times(arrivals, count, generator)
        else:
            raise SystemExit(f"reference: arrivals {process} are not known here")
    for request in requests:
        request.max_tokens = max(request.output, int(lengths.get("max_tokens", 0)))
    speculation = serve.get("speculation", {})
    policy = DraftPolicy(speculation.get("policy"))
    method = speculation.get("method", "eagle")
    pool = Pool(blocks, block, settings.get("prefix_caching", False), mutant)
    scheduler = Scheduler(settings, pool, policy, method, mutant)
    cost = AffineCost(config["cost"], method, policy.longest, mutant)
    acceptance = Acceptance(speculation.get("acceptance"), folder, config.get("seed", 1))
    return Engine(scheduler, cost, acceptance, requests, how, mutant)


# ---- the tables ------------------------------------------------------------------------------------------------------------

def seconds(picoseconds):
    whole, rest = divmod(picoseconds, PS)
    return f"{whole}.{rest:012d}".rstrip("0").rstrip(".")


REQUEST_COLUMNS = ["replica", "request", "arrival_s", "first_scheduled_s", "first_token_s", "last_token_s", "prompt_tokens",
                   "output_tokens", "rounds", "drafted", "accepted", "preemptions"]
STEP_COLUMNS = ["replica", "step", "start_s", "duration_s", "requests", "waiting", "prefill_rows", "decode_rows", "draft_rows",
                "preempted", "free_blocks", "draft_length"]


def request_rows(engine):
    for one in engine.requests:
        yield [0, one.number, seconds(one.arrival), seconds(one.first_scheduled), seconds(one.first_token),
               seconds(one.last_token), one.prompt, one.out, one.rounds, one.drafted, one.accepted, one.preemptions]


def step_rows(engine):
    for number, step in enumerate(engine.steps):
        prefill = sum(item.new for item in step.items if item.prefill)
        decode = sum(1 for item in step.items if not item.prefill)
        drafts = sum(item.new - 1 for item in step.items if not item.prefill)
        yield [0, number, seconds(step.start), seconds(step.duration), len(step.items), step.waiting, prefill, decode, drafts,
               step.preempted, step.free, step.draft_length]


def write(engine, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns, rows in (("requests.csv", REQUEST_COLUMNS, request_rows(engine)),
                                ("steps.csv", STEP_COLUMNS, step_rows(engine))):
        with open(folder / name, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)


def main():
    import yaml  # only here, because the tests pass a dictionary
    parser = argparse.ArgumentParser(description="a plain reference of vLLM's scheduler")
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mutant", choices=sorted(MUTANTS))
    arguments = parser.parse_args()
    with open(arguments.config) as file:
        config = yaml.safe_load(file)
    write(build(config, arguments.config.parent, arguments.mutant).run(), arguments.out)


if __name__ == "__main__":
    sys.exit(main())
