#!/usr/bin/python3
"""Draft lengths of `specsim serve` that follow from the inputs of its policies: a length for each request, by batch and context, by queue.

Acceptance 1 and 0 and fixed times leave one right answer for every round. Runs at the root of the repository; SPECSIM names the
program.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks, config  # noqa: E402

COST = {"target_fixed_ms": 1.0, "draft_fixed_ms": 0.1}


def speculation(policy, rate=1):
    return {"policy": policy, "acceptance": {"alpha": rate}}


def rounds_of(output, first, step, longest):
    """Rounds and drafts of a request whose length grows from `first` by `step` per round, with everything accepted."""
    left, length, rounds, drafted, lengths = output - 1, first, 0, 0, []  # the first token comes with the prompt
    while left > 0:
        lengths.append(length)
        rounds, drafted, left = rounds + 1, drafted + length, left - length - 1
        length = min(length + step, longest)
    return rounds, drafted, lengths


def adaptive(bench, checks):
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": 60}}
    arrivals = {"process": "closed", "concurrency": 3, "requests": 9}
    policy = {"kind": "adaptive", "longest": 6, "policy": {"kind": "additive", "first": 1, "up": 2, "down": 1}}
    run = bench.run(config(arrivals, COST, lengths, speculation(policy), max_num_seqs=8))
    rounds, drafted, _ = rounds_of(60, 1, 2, 6)
    checks.exact("adaptive, all accepted: rounds", set(run.whole("rounds")), {rounds})
    checks.exact("adaptive, all accepted: drafted", set(run.whole("drafted")), {drafted})
    fixed = bench.run(config(arrivals, COST, lengths, speculation({"kind": "fixed", "draft_length": 6}), max_num_seqs=8))
    checks.rejects_exactly("adaptive", "the longest for all", set(fixed.whole("rounds")) != {rounds})
    run = bench.run(config(arrivals, COST, lengths, speculation(policy, 0), max_num_seqs=8))
    checks.exact("adaptive, none accepted: rounds, and a draft in each", set(zip(run.whole("rounds"), run.whole("drafted"))), {(59, 59)})
    # Classes: requests with high acceptance draft long, the others short, in one batch.
    mixed = {"policy": policy, "acceptance": {"classes": [{"share": 0.5, "alpha": 1}, {"share": 0.5, "alpha": 0}]}}
    run = bench.run(config(dict(arrivals, requests=40), COST, lengths, mixed, max_num_seqs=8))
    checks.exact("adaptive, two classes", sorted(set(run.whole("rounds"))), [rounds, 59])
    # The draft's passes: as many as the longest draft of the batch, each with one row per sequence that still drafts.
    alone = bench.run(config(dict(arrivals, concurrency=1, requests=1), COST, lengths, speculation(policy)), steps=True)
    _, _, chosen = rounds_of(60, 1, 2, 6)
    expected = [1_000_000_000 + 100_000_000 * length for length in chosen]
    took = alone.ps("duration_s", steps=True)
    checks.exact("adaptive: time of passes", took[:len(chosen)], expected)


def by_context(bench, checks):
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": 64}}
    policy = {"kind": "table", "table": [[1, 1, 0, 39, 3], [1, 8, 40, 1000, 1]]}
    run = bench.run(config({"process": "closed", "concurrency": 1, "requests": 1}, COST, lengths, speculation(policy)), steps=True)
    chosen, cached = [], 0
    for prefill, decode, drafts in zip(*(run.whole(name, steps=True) for name in ("prefill_rows", "decode_rows", "draft_rows"))):
        chosen.append(3 if cached <= 39 else 1)
        cached += prefill + decode + drafts
    checks.exact("table by batch and context", run.whole("draft_length", steps=True), chosen)
    two = bench.run(config({"process": "closed", "concurrency": 2, "requests": 2}, COST, lengths, speculation(policy), max_num_seqs=8), steps=True)
    checks.exact("table by batch and context: no row holds two short requests", two.whole("draft_length", steps=True)[0], 0)


def by_queue(bench, checks):
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": 8}}
    for policy in ({"kind": "fixed", "draft_length": 2}, {"kind": "goodput", "longest": 2}, {"kind": "table", "table": [[1, 8, 2]]},
                   {"kind": "adaptive", "longest": 2, "policy": {"kind": "additive", "first": 2}}):
        run = bench.run(config({"process": "closed", "concurrency": 4, "requests": 12}, COST, lengths,
                               speculation(dict(policy, disable_above_queue=1))), steps=True)
        pairs = list(zip(run.whole("waiting", steps=True), run.whole("draft_length", steps=True)))
        checks.exact(f"{policy['kind']}: nothing drafted above the queue", {length for waiting, length in pairs if waiting > 1}, {0})
        checks.exact(f"{policy['kind']}: drafted below it", {length for waiting, length in pairs if waiting <= 1}, {2})


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        for part in (adaptive, by_context, by_queue):
            part(bench, checks)
    return checks.finish("policies of servers")


if __name__ == "__main__":
    sys.exit(main())
