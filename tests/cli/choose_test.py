#!/usr/bin/python3
"""specsim choose: its counts add up, cost is price times time, the search finds what trying everything finds, and the ranking follows from the
columns. Runs at the root of the repository; SPECSIM names the program.

Mutants that the checks reject: a ranking by speed in place of cost (the costs of two GPUs are exchanged, and the order with them), a cost that
leaves out the GPUs' number, a Pareto front of one figure, figures that count the start, a short run in place of the capacity, an interval of
a given rate without width, an acceptance without error, a draft beyond its table, ties by each setting's own error, lengths that no table
has as settings that do not fit, a pair that is known under one of the target's names only, n-grams of code edits in a chat, engines for prompts that cost nothing or that
the server does not have, ties by one standard error, a fleet by capacity or by the mean rate alone, a fleet one engine larger than needed.
"""
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
BASE = ["choose", "--target", "llama-3.1-8b", "--hardware", "h100-sxm,a100-80gb-sxm", "--tensor-parallel", "1,2", "--users", "16", "--prompt", "300",
        "--output", "100", "--requests", "60", "--draft", "none,eagle-head-8b"]
problems = []


def check(holds, what):
    if not holds:
        problems.append(what)


def rows_of(*arguments):
    pairs = [BASE[i:i + 2] for i in range(1, len(BASE), 2)]
    base = [BASE[0], *(word for pair in pairs if pair[0] not in arguments for word in pair)]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([SPECSIM, *base, *arguments, "--out", f"{scratch}/out"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):  # 3: no setting was found
            sys.exit(f"choose {arguments}: {done.stderr}")
        with open(f"{scratch}/out/choices.csv", newline="", encoding="utf-8") as file:
            text = file.read()
    return text, list(csv.DictReader(text.splitlines())), done.stdout


def number(row, key):
    return float(row[key]) if row[key] else math.nan


def gpus_of(row):
    return int(row["tensor_parallel"]) * (int(row["replicas"]) + int(row["prefill"]))


def ranked(rows):
    return sorted((row for row in rows if row["rank"]), key=lambda row: int(row["rank"]))


def name(row):
    return tuple(row[key] for key in ("hardware", "tensor_parallel", "replicas", "prefill", "draft", "draft_length"))


def choose(*arguments, target="llama-3.1-8b"):
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([SPECSIM, "choose", "--target", target, "--hardware", "h100-sxm", *([] if "--gpus" in arguments else ["--gpus", "1"]), *arguments, "--verbose", "--out",
                               f"{scratch}/out"], capture_output=True, text=True)
        check(done.returncode in (0, 3), f"choose {arguments}: status {done.returncode}: {done.stderr}")
        with open(f"{scratch}/out/choices.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file)), done.stdout


def check_load_and_drafts():
    load = ["--prompt", "1024", "--output", "60"]
    # Without the start, the figures are those of serve.
    rows, _ = choose("--tensor-parallel", "1", "--draft", "none", "--users", "20", *load)
    served = subprocess.run([SPECSIM, "serve", "--target", "llama-3.1-8b", "--hardware", "h100-sxm", "--engine", "vllm", "--policy", "off", "--concurrency",
                             "20", *load, "--requests", "800", "--warm-up", "mser", "--format", "json"], capture_output=True, text=True, check=True).stdout
    ttft = [row[1] for table in json.loads(served)["tables"] for row in table["rows"] if row[0] == "TTFT ms, p99"]
    check(len(ttft) == 1 and abs(number(rows[0], "p99_ttft_ms") / ttft[0] - 1) < 1e-3, f"TTFT p99 {rows[0]['p99_ttft_ms']}, serve {ttft}")

    # Above the capacity there is no rank; below it the interval has a width.
    rows, printed = choose("--draft", "none", "--rate", "20", "--prompt", "512", "--output", "256")
    row = ranked(rows)[0]
    check("it keeps up with probability" in printed, "no probability that the server keeps up")
    low, high = (number(row, f"dollars_per_million_tokens_{side}") for side in ("low", "high"))
    # At a rate that the server keeps up with, the rate decides the cost of a token. Mutant: the error of latencies in it.
    check(low == high, f"the cost at a given rate is from {low} to {high}")
    waiting = ranked(choose("--draft", "none", "--users", "20", "--prompt", "512", "--output", "256")[0])[0]
    low, high = (number(waiting, f"dollars_per_million_tokens_{side}") for side in ("low", "high"))
    check(high > 1.05 * low, f"with clients that wait, an interval from {low} to {high}")
    capacity = number(row, "capacity")
    check(0.5 < number(row, "keeps_up") <= 1 and capacity > 20, f"capacity {capacity}, keeps up {row['keeps_up']}")
    for share, keeps in ((0.98, True), (1.01, False)):
        rows, _ = choose("--draft", "none", "--rate", f"{share * capacity:.3f}", "--prompt", "512", "--output", "256")
        check(bool(ranked(rows)) or not keeps, f"no rank at {share} of the capacity")
        check(not ranked(rows) or keeps, f"a rank at {share} of the capacity")

    # Tables: named with their texts, never exceeded, and their spread counts.
    drafts = ["--tensor-parallel", "1", "--dtype", "fp8", "--users", "4", *load, "--requests", "60"]
    rows, printed = choose(*drafts, "--draft", "ngram,eagle3-qwen3-32b,qwen3-1.7b", "--draft-length", "3,4,5", target="qwen3-32b")
    by_draft = {row["draft"]: row for row in rows}
    check(by_draft["n-gram"]["draft_length"] == "3" and by_draft["n-gram"]["acceptance_unverified"] == "1", f"n-gram: {by_draft['n-gram']}")
    check(all(row["acceptance_text"] in printed for row in rows) and "comes from different texts and is unverified" in printed, printed)
    alone, _ = choose(*drafts, "--draft", "ngram", "--alpha", "ngram=0.5", "--draft-length", "3", target="qwen3-32b")
    widths = [number(row, "tokens_per_second_high") / number(row, "tokens_per_second_low") for row in (by_draft["n-gram"], alone[0])]
    check(widths[0] > 1.05 * widths[1], f"widths of intervals {widths}: acceptance has no error")
    rows, printed = choose(*drafts, "--draft", "none,ngram", "--draft-length", "7", "--longest", "3", target="qwen3-32b")
    check(len(rows) == 1 and " 1 cannot run, 0 do not fit" in printed and "no draft length of 7" in printed, printed)


    # Engines that only compute prompts: they count as GPUs, and the server has them.
    apart = ["--prompt", "2000", "--output", "60", "--users", "12", "--requests", "200"]
    rows, printed = choose("--gpus", "3", "--tensor-parallel", "1", "--replicas", "1,2", "--prefill", "0,1,2", "--draft", "none", "--price", "2.5", *apart)
    check({(row["replicas"], row["prefill"]) for row in rows} == {("1", "0"), ("1", "1"), ("1", "2"), ("2", "0"), ("2", "1")}, f"counts {printed}")
    for row in ranked(rows):
        expected = 1e6 * 2.5 * gpus_of(row) / 3600 / number(row, "tokens_per_second")
        check(abs(number(row, "dollars_per_million_tokens") / expected - 1) < 1e-6, f"{name(row)}: {row['dollars_per_million_tokens']}, expected {expected}")
    own = next(row for row in rows if row["replicas"] == "2" and row["prefill"] == "1")
    served = subprocess.run([SPECSIM, "serve", "--target", "llama-3.1-8b", "--hardware", "h100-sxm", "--engine", "vllm", "--policy", "off", "--concurrency", "12",
                             "--replicas", "2", "--set", "serve.replicas.prefill=1", *apart[:4], "--requests", "200", "--warm-up", "mser", "--no-capacity",
                             "--format", "json"], capture_output=True, text=True, check=True).stdout
    ttft = [row[1] for table in json.loads(served)["tables"] for row in table["rows"] if row[0] == "TTFT ms, p99"]
    check(len(ttft) == 1 and abs(number(own, "p99_ttft_ms") / ttft[0] - 1) < 1e-3, f"TTFT p99 {own['p99_ttft_ms']}, serve {ttft}")

    # A pair is known by each of its names. n-grams need a table on the text, or the user's word.
    both = {}
    for target in ("llama-3.3-70b", "llama-3.1-70b"):
        rows, _ = choose("--gpus", "4", "--tensor-parallel", "4", "--users", "4", *load, "--requests", "20", "--simulate", "1", target=target)
        both[target] = {row["draft"]: row["acceptance"] for row in rows}
    known = {"llama-3.2-1b": "llama-3.3-70b-1b-code", "eagle3-llama-3.3-70b": "eagle3-llama-3.3-70b-chat"}
    for target, drafts in both.items():
        check(all(drafts.get(draft) == source for draft, source in known.items()), f"tables of {target}: {drafts}")
    few = ["--tensor-parallel", "1", "--users", "4", *load, "--requests", "20", "--simulate", "1"]
    rows, printed = choose(*few)
    check("n-gram" not in {row["draft"] for row in rows} and " on chat: ngram" in printed, f"n-gram in a chat: {printed}")
    for more in (["--text", "code"], ["--draft", "none,ngram"]):
        rows, _ = choose(*few, *more)
        check("n-gram" in {row["draft"] for row in rows}, f"no n-gram with {more}")


def check_fleets():
    """A fleet is the smallest that keeps the limits in the busiest hour, as whole fleets under serve are; a day is engines times hours times cost."""
    hours = [30, 10, 60, 45]
    load = ["--prompt", "512", "--output", "128", "--draft", "none", "--dtype", "fp8", "--tensor-parallel", "1"]
    limits = ["--slo", "ttft=500,tpot=22"]
    with tempfile.TemporaryDirectory() as scratch:
        def day(*arguments):
            subprocess.run([SPECSIM, "choose", "--target", "llama-3.1-8b", "--hardware", "l40s", "--price", "2", *load, *arguments, "--force", "--out", f"{scratch}/out"],
                           capture_output=True, text=True, check=True)
            with open(f"{scratch}/out/choices.csv", newline="", encoding="utf-8") as file:
                return next(csv.DictReader(file))
        row = day(*limits, "--rate-by-hour", ",".join(map(str, hours)))
        replicas = int(row["replicas"])
        check(abs(number(row, "dollars_per_day") - 2 * replicas * len(hours)) < 1e-9, f"a day of {replicas} costs {row['dollars_per_day']}")
        by_hour = 2 * sum(math.ceil(replicas * rate / max(hours)) for rate in hours)
        check(abs(number(row, "dollars_per_day_by_hour") - by_hour) < 1e-9, f"{row['dollars_per_day_by_hour']} by hour, expected {by_hour}")
        check(day(*limits, "--rate-by-hour", "60,60")["replicas"] == row["replicas"], "the quiet hours change the fleet")

        def keeps(count):
            served = subprocess.run([SPECSIM, "serve", "--target", "{preset: llama-3.1-8b, dtype: fp8}", "--hardware", "l40s", "--engine", "vllm", "--policy", "off",
                                     *load[:4], *limits, "--rate", str(max(hours)), "--replicas", str(count), "--requests", str(1500 * count),
                                     "--warm-up", str(300 * count), "--no-capacity", "--format", "json"], capture_output=True, text=True, check=True).stdout
            return [line[1] for table in json.loads(served)["tables"] for line in table["rows"] if line[0] == "SLO kept"] == ["yes"]
        check(keeps(replicas) and not keeps(replicas - 1), f"{replicas} engines are not the fewest")
        # Another limit, another fleet: the load alone does not decide.
        slow = int(day("--slo", "tpot=40", "--rate-by-hour", "60")["replicas"])
        check(slow < replicas, f"{slow} engines within 40 ms, {replicas} within 22 ms")
        # Twice the load takes twice the engines, up to one.
        double = int(day(*limits, "--rate-by-hour", "240")["replicas"])
        check(abs(double - 4 * replicas) <= 4, f"{double} engines at four times the load of {replicas}")


def main():
    check_fleets()
    prices = {"h100-sxm": 3.0, "a100-80gb-sxm": 1.2}
    priced = ["--price", ",".join(f"{gpu}={price}" for gpu, price in prices.items())]
    text, rows, printed = rows_of(*priced, "--simulate", "3", "--threads", "1")
    check(text == rows_of(*priced, "--simulate", "3", "--threads", "2")[0], "choices.csv depends on the threads")
    counts = [int(word) for word in printed.split("\n")[0].replace(":", " ").replace(";", " ").replace(",", " ").split() if word.isdigit()]
    check(counts[0] == 2 * 2 * 2 == len(rows) + counts[1], f"{counts} combinations, {len(rows)} rows")
    check(counts[5] == sum(row["outcome"] in ("kept", "misses_slo") for row in rows), f"{counts[5]} simulated")

    for row in ranked(rows):
        gpus = gpus_of(row)
        expected = 1e6 * prices[row["hardware"]] * gpus / 3600 / number(row, "tokens_per_second")
        check(abs(number(row, "dollars_per_million_tokens") / expected - 1) < 1e-6, f"{name(row)}: ${row['dollars_per_million_tokens']} per million, expected {expected}")
        check(number(row, "dollars_per_million_tokens_low") < expected < number(row, "dollars_per_million_tokens_high"), f"{name(row)}: interval")
        watts = number(row, "joules_per_token") * number(row, "tokens_per_second") / gpus
        check(50 < watts < 700, f"{name(row)}: {watts:.0f} W per GPU")
    for row in ranked(rows)[1:]:
        worse = number(row, "probability_worse")
        check(0.5 <= worse <= 1 and (row["tied"] == "1") == (worse < 0.95), f"{name(row)}: tied {row['tied']}, worse with probability {worse}")
    costs = [number(row, "dollars_per_million_tokens") for row in ranked(rows)]
    check(costs == sorted(costs), f"costs {costs} are not in order")

    # Everything simulated: the same settings are the best three.
    everything = ranked(rows_of(*priced, "--simulate", "8")[1])
    check([name(row) for row in everything[:3]] == [name(row) for row in ranked(rows)[:3]], "the search misses one of the three best")
    for row in everything:
        better = [other for other in everything if number(other, "dollars_per_million_tokens") <= number(row, "dollars_per_million_tokens")
                  and number(other, "mean_tpot_ms") <= number(row, "mean_tpot_ms") and other is not row]
        check((row["pareto"] == "1") == (not better), f"{name(row)}: pareto is {row['pareto']}, {len(better)} are better")

    # Ties: the first is none, and their order is that of the ranking: whoever ties loses less than whoever does not, up to the error of each comparison.
    check(everything[0]["tied"] == "0", "the first ties with itself")
    best = number(everything[0], "dollars_per_million_tokens")
    for row in everything[1:]:
        lost = math.log(number(row, "dollars_per_million_tokens") / best)
        width = math.log(number(row, "dollars_per_million_tokens_high") / number(row, "dollars_per_million_tokens_low")) / (2 * 1.96)
        first = math.log(number(everything[0], "dollars_per_million_tokens_high") / number(everything[0], "dollars_per_million_tokens_low")) / (2 * 1.96)
        # Errors of two settings that share nothing add in squares; what they share cancels. So a tie at 95 % is within that sum.
        check(row["tied"] == "0" or lost < 1.645 * math.hypot(width, first), f"{name(row)}: a tie at a loss of {100 * lost:.0f} %")
    check(any(row["tied"] == "0" for row in everything[1:]), "everything ties with the first")
    # One GPU at two costs, a per cent apart: all errors are shared, so even that is no tie. Mutant: each setting's own error decides.
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy("configs/hardware/h100-sxm.yaml", f"{scratch}/copy.yaml")
        pair = ranked(rows_of("--hardware", f"{scratch}/copy.yaml,h100-sxm", "--price", f"{scratch}/copy.yaml=3,h100-sxm=3.03", "--tensor-parallel", "1",
                              "--draft", "none", "--simulate", "2")[1])
        check([row["hardware"] for row in pair] == [f"{scratch}/copy.yaml", "h100-sxm"] and pair[1]["tied"] == "0", f"one GPU at two costs: {pair}")

    # Settings above --gpus are counted, and the message names the option if none is left.
    _, few, printed = rows_of("--gpus", "1", "--simulate", "1")
    check(" 4 above --gpus, " in printed and all(row["tensor_parallel"] == "1" for row in few), f"of --gpus 1: {printed.splitlines()[0]}")
    done = subprocess.run([SPECSIM, *("4" if word == "1,2" else word for word in BASE), "--gpus", "2"], capture_output=True, text=True, check=False)
    check(done.returncode == 2 and "none of 4 combinations can run: more GPUs than --gpus allows" in done.stderr, f"{done.returncode}: {done.stderr}")

    # Costs exchanged: another GPU is the best.
    other = ranked(rows_of("--price", "h100-sxm=0.4,a100-80gb-sxm=6", "--simulate", "8")[1])
    check(everything[0]["hardware"] != other[0]["hardware"] or everything[0]["hardware"] == "h100-sxm", "the best GPU does not depend on what it costs")
    check(other[0]["hardware"] == "h100-sxm", f"{other[0]['hardware']} is the best at 15 times the cost")
    by_speed = ranked(rows_of(*priced, "--simulate", "8", "--rank-by", "tokens")[1])
    speeds = [number(row, "tokens_per_second_per_gpu") for row in by_speed]
    check(speeds == sorted(speeds, reverse=True), f"speeds {speeds} are not in order")

    # A limit that none keeps, and one that drops the slow ones.
    none = rows_of("--slo", "tpot=0.5")
    check(not ranked(none[1]) and "no combination keeps the SLO" in none[2], "an impossible limit is kept")
    huge = subprocess.run([SPECSIM, "choose", "--target", "llama-3.1-405b", "--hardware", "rtx-4090", "--users", "4"], capture_output=True, text=True)
    check(huge.returncode == 3 and "no combination fits into memory" in huge.stdout, f"nothing fits: {huge.returncode} {huge.stdout}")
    limit = 8.0
    kept = ranked(rows_of("--slo", f"tpot={limit}", "--simulate", "8")[1])
    check(all(number(row, "p99_tpot_ms") <= limit for row in kept), "a ranked setting misses the limit")

    # Values that are named twice are one. A GPU that cannot have the limit cannot run, and the others are ranked.
    twice = rows_of("--simulate", "2", "--hardware", "h100-sxm,a100-80gb-sxm,h100-sxm", "--tensor-parallel", "1,2,2,1", "--dtype", "bf16,bf16")[1]
    check(len(twice) == 8 and len({name(row) for row in ranked(twice)}) == len(ranked(twice)), f"{len(twice)} rows of values named twice")
    _, capped, said = rows_of("--simulate", "2", "--hardware", "h100-sxm,l40s,l4", "--power-cap", "300", "--verbose")
    check({row["hardware"] for row in capped} == {"h100-sxm", "l40s"}, f"GPUs under a limit of 300 W: {sorted({row['hardware'] for row in capped})}")
    check("cannot run: l4: a power cap of 300 W" in said, "the GPU that cannot have the limit is not named")

    with tempfile.TemporaryDirectory(prefix="two words ") as scratch:
        said = subprocess.run([SPECSIM, *BASE, "--simulate", "1", "--out", f"{scratch}/out"], capture_output=True, text=True, check=True).stdout
        check(f"specsim plot '{scratch}/out' draws" in said, "a path with a space is not quoted")

    document = json.loads(subprocess.run([SPECSIM, *BASE, "--simulate", "2", "--format", "json"], capture_output=True, text=True, check=True).stdout)
    check(document["tables"][0]["columns"][:2] == ["rank", "GPUs"], "--format json has no ranking")
    check(document["tables"][0]["title"] == "ranked by dollars per million output tokens", f"title {document['tables'][0]['title']}")
    check_load_and_drafts()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
