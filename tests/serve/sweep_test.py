#!/usr/bin/python3
"""Sweeps of `specsim serve`: the same bytes for any number of threads and after any interruption; the largest load that keeps an SLO; timelines.

Servers whose capacity is known to the picosecond bound the result of the bisection. Runs at the root of the repository; SPECSIM names the
program.
"""
import csv
import json

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import SPECSIM, Checks, columns, config, picoseconds, serve  # noqa: E402

INTERRUPTED = 6
STEP = 0.001


def program(folder, config, *options, wanted=0):
    path = folder / "config.yaml"
    path.write_text(json.dumps(config))
    return serve(folder, path.name, *options, wanted=wanted)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.yaml"}


def one_at_a_time(rate=1.0, slo=None, output=9, speculation=None, requests=400):
    """Evenly spaced arrivals at a server of one request at a time: no queue up to the capacity, and a growing one above it."""
    made = config({"process": "deterministic", "rate": rate, "requests": requests}, {"target_fixed_ms": 1000 * STEP},
                  {"prompt": {"fixed": 16}, "output": {"fixed": output}}, speculation)
    if slo:
        made["serve"]["slo"] = slo
    return made


def closed(folder, checks):
    """One run of a closed loop sends as many requests as a sweep does at its load, or warns that they are too few."""
    server = {"experiment": "closed", "seed": 3, "serve": {
        "scheduler": {"kind": "vllm_v1", "async": False}, "arrivals": {"process": "closed", "concurrency": 64},
        "lengths": {"prompt": {"fixed": 16}, "output": {"geometric": {"mean": 50}}}},
        "cost": {"model": "affine", "target_fixed_ms": 10, "target_ms_per_token": 0.1}}
    program(folder, server, "--out", "once")
    program(folder, server, "--sweep", "concurrency=64", "--out", "swept")
    once, swept = columns(folder / "once" / "summary.csv"), columns(folder / "swept" / "curve.csv")
    checks.exact("one run and a sweep's only point", [once[name] for name in ("requests", "mean_ttft_ms", "output_throughput")],
                 [swept[name] for name in ("requests", "mean_ttft_ms", "output_throughput")])
    checks.holds("40 times 64 requests and more", float(once["requests"][0]) >= 2560)
    server["serve"]["arrivals"]["requests"] = 300
    checks.holds("300 are too few, with a warning", "run too short for steady state: use" in program(folder, server).stdout)


def saturated(folder, checks):
    """A run that is too short to show its queue claims no rate above the completed one, and warns that it is short."""
    server = {"experiment": "short", "seed": 3, "serve": {
        "scheduler": {"kind": "vllm_v1", "max_num_seqs": 64, "async": False}, "arrivals": {"process": "poisson", "rate": 10, "requests": 100},
        "lengths": {"prompt": {"fixed": 16}, "output": {"fixed": 200}}, "slo": {"ttft_ms": 1500, "tpot_ms": 100}},
        "cost": {"model": "affine", "target_fixed_ms": 10, "target_ms_per_token": 0.1}}
    exact = 64 / (200 * 0.0164 + 64 * 0.0015)  # 200 steps of 64 rows, and the prompts' other rows
    named = lambda text: float(text.split("plain: capacity ")[1].split()[0])
    text = program(folder, server, "--sweep", "rate=10,25").stdout
    checks.holds(f"saturated: {named(text)} requests/s, by hand {exact:.4g}", abs(named(text) / exact - 1) < 0.01)
    keeps = float(text.split("keeps the SLO without: ")[1].split()[0].rstrip(","))
    checks.holds(f"no rate above it keeps the SLO: {keeps}", keeps <= named(text))
    checks.holds("25 per second are too many", "overloaded at rate 25" in text)
    checks.holds("the run at 10 per second is too short", "run too short for steady state at rate 10: use" in text)
    checks.holds("a sweep above the capacity names it", abs(named(program(folder, server, "--sweep", "rate=200,400").stdout) / exact - 1) < 0.01)
    server["serve"]["arrivals"].update(rate=200, requests=4000)
    once = program(folder, server).stdout
    checks.holds("one overloaded run names it", abs(named(once) / exact - 1) < 0.01 and "are sent" in once)
    server["serve"]["arrivals"].update(rate=15, requests=100)
    checks.holds("a run that is too short prints a warning", "run too short" in program(folder, server).stdout)
    del server["serve"]["arrivals"]["requests"]
    chosen = program(folder, server, "--out", "chosen").stdout
    sent = len(columns(folder / "chosen" / "requests.csv")["request"])
    checks.holds(f"without a number it is as long as it must be: {sent} requests", sent >= 2400 and "too short" not in chosen)
    recorded = folder / "recorded.csv"
    recorded.write_text("arrived_us,prompt,output\n" + "".join(f"{10000 * i},16,200\n" for i in range(2000)))
    server["serve"]["arrivals"] = {"process": "trace", "file": "recorded.csv"}
    checks.holds("recorded requests that are too many", abs(named(program(folder, server).stdout) / exact - 1) < 0.01)


def order(folder, checks):
    """Loads in any order, and repeated, are the same sweep: its verdict goes from the lowest to the highest."""
    server = {"experiment": "order", "seed": 3, "serve": {
        "scheduler": {"kind": "vllm_v1", "async": False}, "arrivals": {"process": "closed", "concurrency": 4, "requests": 200},
        "lengths": {"prompt": {"fixed": 16}, "output": {"fixed": 40}},
        "speculation": {"policy": {"kind": "fixed", "draft_length": 3}, "method": "ngram", "acceptance": {"conditional_rates": [0.5]}}},
        "cost": {"model": "affine", "target_fixed_ms": 6, "target_ms_per_token": 0.2}}
    texts = [program(folder, server, "--sweep", f"concurrency={loads}").stdout for loads in ("1,4,16,64", "64,16,4,1", "4,1,64,16,1,4", "1,4,16,64,64")]
    checks.holds("the curves cross", "the curves cross at concurrency" in texts[0])
    for text in texts[1:]:
        checks.exact("a sweep in another order", text, texts[0])


def finished(folder, checks):
    """The same sweep again, with --resume or without, runs again and gives the same bytes."""
    server = one_at_a_time(rate=10, requests=50)
    first = program(folder, server, "--sweep", "rate=10,20", "--out", "again")
    before = files(folder / "again")
    for more in ([], ["--resume"]):
        done = program(folder, server, "--sweep", "rate=10,20", "--out", "again", *more)
        checks.holds(f"a finished sweep again {more}", files(folder / "again") == before and done.stdout == first.stdout)
    checks.holds("--resume reports that it is finished", "is finished already" in done.stderr)


def capacity(output, length=0):
    rounds = -(-(output - 1) // (length + 1))
    return 1 / (STEP * (1 + rounds))


def slo_limits(folder, checks):
    """A TTFT limit a little above one step is kept exactly up to the capacity."""
    speculation = {"policy": {"kind": "fixed", "draft_length": 1}, "acceptance": {"alpha": 1}}
    low, high = 50.0, 610.0
    out = folder / "limits"
    done = program(folder, one_at_a_time(slo={"ttft_ms": 1.001, "percentile": 100}, speculation=speculation), "--sweep", f"rate={low}:{high}:5",
                   "--draft-lengths", "0,1,3,7", "--out", out.name)
    with open(out / "slo.csv", newline="") as file:
        rows = [(int(row["draft_length"]), float(row["largest_rate_that_keeps"]), float(row["smallest_rate_that_does_not"])) for row in csv.DictReader(file)]
    checks.exact("lines of slo.csv", [row[0] for row in rows], [0, -1, 0, 1, 3, 7])
    for length, keeps, fails in rows:
        true = capacity(9, 1 if length == -1 else length)
        checks.holds(f"draft length {length}: {keeps} to {fails} holds {true}", keeps <= true * (1 + 1e-6) and true < fails)
        checks.holds(f"draft length {length}: bisected", abs(fails - keeps - (high - low) / 4 / 64) < 1e-6)
    checks.rejects_exactly("slo.csv", "a capacity of one step more per request", any(not keeps <= 1 / (1 / capacity(9, 1) + STEP) < fails for length, keeps, fails in rows if length == -1))
    checks.holds("K by SLO is printed", "draft length that keeps the SLO up to the largest rate: 7" in done.stdout)
    none = program(folder, one_at_a_time(slo={"ttft_ms": 0.5}), "--sweep", f"rate={low}:{high}:3")
    checks.holds("an SLO that nothing keeps", "largest rate that keeps the SLO without: none of those tried" in none.stdout)
    every = program(folder, one_at_a_time(slo={"ttft_ms": 0.5, "preset": "mlperf:llama2-70b-server"}), "--slo", "ttft=5000", "--sweep", "rate=10,20")
    checks.holds("an SLO that all keep", "without: 20, the largest tried" in every.stdout)
    # A request takes 9 ms without drafts and 5 with them: the rate that clients send is not to the server's credit.
    idle, busy = (program(folder, one_at_a_time(speculation=speculation), "--sweep", f"rate={rates}") for rates in ("40,80", "40,150"))
    checks.holds("both keep up", "both keep up with every rate tried" in idle.stdout and "raises output throughput" not in idle.stdout)
    checks.holds("one does not", "if one of them is overloaded, speculation raises output throughput at every load tried" in busy.stdout)
    closed = one_at_a_time(slo={"tpot_ms": 4.5, "percentile": 100})
    closed["serve"]["arrivals"] = {"process": "closed", "concurrency": 1, "requests": 60}
    closed["serve"]["scheduler"]["max_num_seqs"] = 64
    closed["cost"] = {"model": "affine", "target_ms_per_token": 1}
    whole = program(folder, closed, "--sweep", "concurrency=1,16", "--out", "closed")
    with open(folder / "closed" / "slo.csv", newline="") as file:
        row = next(csv.DictReader(file))
    # A step of n sequences takes n milliseconds: four keep 4.5 ms per token in steps without prompts, and prompts of 16 rows break it.
    keeps, fails = float(row["largest_concurrency_that_keeps"]), float(row["smallest_concurrency_that_does_not"])
    checks.exact("concurrencies are whole numbers", (fails - keeps, keeps == int(keeps)), (1.0, True))
    del whole


def presets(folder, checks):
    named = one_at_a_time(rate=20.0, slo={"preset": "mlperf:llama2-70b-interactive"})
    out = folder / "preset"
    program(folder, named, "--out", out.name)
    checks.exact("a preset's limits are kept", columns(out / "summary.csv")["meets_slo"], ("1",))
    program(folder, named, "--out", out.name, "--slo", "ttft=0.9", "--force")
    checks.exact("one limit of a preset is replaced", columns(out / "summary.csv")["meets_slo"], ("0",))


def crowded():
    speculation = {"policy": {"kind": "goodput", "longest": 4}, "acceptance": {"classes": [{"share": 0.5, "alpha": 0.9}, {"share": 0.5, "alpha": 0.4}]}}
    made = config({"process": "gamma", "rate": 10, "burstiness": 0.5, "requests": 1500}, {"target_fixed_ms": 6, "target_ms_per_token": 0.02, "draft_fixed_ms": 0.5},
                  {"prompt": {"lognormal": {"mean": 200, "cv": 1}}, "output": {"lognormal": {"mean": 150, "cv": 1}}}, speculation, {"block": 16, "blocks": 900},
                  max_num_seqs=64, max_num_batched_tokens=2048)
    made["serve"]["slo"] = {"ttft_ms": 400, "tpot_ms": 30}
    return made


def resume(folder, checks):
    options = ["--sweep", "rate=5:45:5", "--replications", "3"]
    program(folder, crowded(), *options, "--threads", "1", "--out", "one")
    program(folder, crowded(), *options, "--threads", "2", "--out", "two")
    whole = files(folder / "one")
    checks.exact("two threads", files(folder / "two"), whole)
    command = [SPECSIM, "serve", "config.yaml", *options, "--threads", "2", "--out", "ended"]
    journal = folder / "ended" / "journal.txt"
    lines = lambda: len(journal.read_text().splitlines()) if journal.exists() else 0
    kept = []
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        before = max(lines(), 1)  # the first names the sweep
        process = subprocess.Popen([*command, *(["--resume"] if kept else [])], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and lines() <= before:
            time.sleep(0.002)
        process.send_signal(how)
        error = process.communicate()[1]
        if process.returncode == 0:  # it ended before this process had a turn
            break
        checks.exact(f"{how.name}: exit", process.returncode, -how if how == signal.SIGKILL else INTERRUPTED)
        if how != signal.SIGKILL:
            checks.holds(f"{how.name}: prints how to go on", "and --resume (" in error)
        kept.append(lines())
        refused = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        checks.holds("an unfinished sweep is not replaced", refused.returncode == 2 and "--resume" in refused.stderr)
    checks.holds("the journal grows", all(a < b for a, b in zip([1, *kept], kept)))
    if journal.exists():
        # A torn line, as after a sudden end, and another config, which the journal does not belong to.
        with open(journal, "a") as file:
            file.write("3 1 3ff")
        other = subprocess.run([*command, "--resume", "--seed", "9"], cwd=folder, capture_output=True, text=True, check=False)
        checks.exact("another seed is refused", other.returncode, 2)
        program(folder, crowded(), *options, "--threads", "2", "--out", "ended", "--resume")
    checks.exact("the same bytes after all that", files(folder / "ended"), whole)


def timeline(folder, checks):
    made = crowded()
    made["serve"]["arrivals"]["requests"] = 120
    made["serve"]["kv"]["blocks"] = 260
    made["serve"]["arrivals"]["rate"] = 40
    out = folder / "traced"
    program(folder, made, "--alone", "--steps", "--out", out.name, "--timeline", "trace.json", "--timeline-requests", "100")
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    requests, steps = columns(out / "requests.csv"), columns(out / "steps.csv")
    checks.exact("a track for each of the first requests", sorted(names.values()), sorted(f"request {i}" for i in range(100)))
    spans = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault(names[event["tid"]], []).append((round(event["ts"] * 1e6), round((event["ts"] + event["dur"]) * 1e6), event))
    for number in range(100):
        own = sorted(spans[f"request {number}"], key=lambda span: span[0])
        begin, end = (picoseconds(requests[name][number]) for name in ("arrival_s", "last_token_s"))
        near = [abs(a - b) for a, b in [(own[0][0], begin), (own[-1][1], end), *((x[1], y[0]) for x, y in zip(own, own[1:]))]]
        checks.holds(f"request {number}: its spans fill its life", max(near) <= 64)
        checks.exact(f"request {number}: accepted", sum(span[2].get("args", {}).get("accepted", 0) for span in own), int(requests["accepted"][number]))
    checks.holds("preempted requests wait", any(span[2]["name"] == "preempted" for own in spans.values() for span in own))
    batch = [event for event in events if event["ph"] == "C" and event["name"] == "replica 0 batch"]
    checks.exact("graph of the batch", [str(event["args"]["decode"]) for event in batch], list(steps["decode_rows"]))
    pool = [259 - event["args"]["used blocks"] for event in events if event["ph"] == "C" and event["name"] == "replica 0 pool"]
    checks.exact("graph of the pool", [str(free) for free in pool], list(steps["free_blocks"]))
    queue = [str(event["args"]["waiting"]) for event in events if event["ph"] == "C" and event["name"] == "replica 0 queue"]
    checks.exact("graph of the queue", queue, list(steps["waiting"]))


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for part in (slo_limits, closed, saturated, order, finished, presets, resume, timeline):
            part(folder, checks)

    return checks.finish("sweeps of servers")


if __name__ == "__main__":
    sys.exit(main())
