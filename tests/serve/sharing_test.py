#!/usr/bin/python3
"""Engines that share a mixture's experts: their steps begin and end together, and a prompt on one engine delays the other's tokens.

Runs at the root of the repository; SPECSIM names the program.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks, config  # noqa: E402

TARGET = {"preset": "qwen3-30b-a3b", "expert_parallel": 2}


def sharing(arrivals, asynchronous, count=2, target=None):
    made = config(arrivals, {}, None, None, None, max_num_seqs=16)
    made["serve"]["scheduler"]["async"] = asynchronous
    made["serve"]["replicas"] = count
    made["cost"] = {"model": "roofline", "hardware": "rtx-pro-6000", "target": target or TARGET, "draft": "none"}
    return made


def steps_of(run):
    """[replica]: {start: (duration, prefill rows)}, in picoseconds."""
    engines = {}
    for replica, start, duration, rows in zip(run.whole("replica", steps=True), run.ps("start_s", steps=True), run.ps("duration_s", steps=True),
                                              run.whole("prefill_rows", steps=True)):
        engines.setdefault(replica, {})[start] = (duration, rows)
    return engines


def together(bench, checks, asynchronous):
    # Requests go to the engines in turn; the second one's prompts come while the first decodes.
    lines = [(0, 500, 60, 0), (40_000, 1900, 40, 0), (90_000, 300, 30, 0), (130_000, 1500, 30, 0)]
    run = bench.run(sharing(bench.trace("four", lines), asynchronous), steps=True)
    first, second = (steps_of(run)[replica] for replica in (0, 1))
    common = sorted(set(first) & set(second))
    checks.exact("both take part in some steps", len(common) > 20, True)
    checks.exact("steps of both are as long", [first[start][0] for start in common], [second[start][0] for start in common])
    bounds = sorted({(start, start + duration) for steps in (first, second) for start, (duration, _) in steps.items()})
    checks.exact("no step begins within another", all(before[1] <= after[0] for before, after in zip(bounds, bounds[1:])), True)
    held_up = [first[start][0] for start in common if second[start][1] > 1000 and first[start][1] == 0]
    plain = [first[start][0] for start in common if second[start][1] == 0 and first[start][1] == 0]
    checks.exact("a prompt of the other holds up tokens", len(held_up) > 0 and min(held_up) > 2 * max(plain), True)
    checks.exact("all is served", run.whole("output_tokens"), [line[2] for line in lines])
    # Two separate servers with half of the experts each do not affect each other.
    apart = bench.run(sharing(bench.trace("four", lines), asynchronous, target={"preset": "qwen3-30b-a3b", "experts": 64}), steps=True)
    checks.rejects_exactly("in step", "servers that step apart", set(steps_of(apart)[0]) & set(steps_of(apart)[1]) == set())


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        for asynchronous in (True, False):
            together(bench, checks, asynchronous)
    return checks.finish("engines that share experts")


if __name__ == "__main__":
    sys.exit(main())
