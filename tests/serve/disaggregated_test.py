#!/usr/bin/python3
"""Engines that compute prompts and engines that decode, with a link between them: every moment of a request, calculated by hand.

Runs at the root of the repository; SPECSIM names the program.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks, columns, config  # noqa: E402

MS = 1_000_000_000  # picoseconds
COST = {"target_fixed_ms": 2.0, "target_ms_per_token": 0.01, "draft_fixed_ms": 0.5}
BYTES, GB, LATENCY = 100_000, 1.0, 0.25  # a token's cache takes 0.1 ms on the link


SCHEDULERS = ({"kind": "vllm_v1", "async": False, "max_num_seqs": 16}, {"kind": "sglang", "max_running_requests": 16},
              {"kind": "sglang", "radix_cache": True, "schedule_policy": "lpm"}, {"kind": "trtllm", "max_batch_size": 16},
              {"kind": "trtllm", "capacity": "max_utilization"}, {"kind": "static", "batch": 16})


def disaggregated(arrivals, prefill=1, count=1, speculation=None, lengths=None, scheduler=None, **more):
    made = config(arrivals, COST, lengths, speculation, more.pop("kv", None), max_num_seqs=16, **more)
    if scheduler:
        made["serve"]["scheduler"] = scheduler
    made["serve"]["replicas"] = {"count": count, "prefill": prefill, "link_gb_per_s": GB, "link_ms": LATENCY, "kv_bytes_per_token": BYTES}
    return made


def one(bench, checks, scheduler):
    """Prompts of 100 tokens, two sent 0.5 ms apart to two prefill engines: the second cache waits for the link."""
    run = bench.run(disaggregated(bench.trace("two", [(0, 100, 5, 0), (500, 100, 5, 0)]), prefill=2, scheduler=scheduler), steps=True)
    prompt, move, step = 3 * MS, 10 * MS, 2_010_000_000
    first = [prompt, prompt + MS // 2]
    arrives = [prompt + move + MS // 4, prompt + 2 * move + MS // 4]
    checks.exact("first tokens", run.ps("first_token_s"), first)
    checks.exact("ends", run.ps("last_token_s"), [arrives[0] + 4 * step, max(arrives[1], arrives[0] + 4 * step) + 4 * step])
    checks.exact("on the link", run.ps("transfer_s"), [move + MS // 4, arrives[1] - first[1]])
    checks.exact("rows of prompts are computed once", sum(run.whole("prefill_rows", steps=True)), 200)
    checks.rejects_exactly("ends", "a link without a queue", run.ps("last_token_s")[1] != first[1] + move + MS // 4 + 4 * step)
    # The second comes over the link while the first decodes, and waits in a queue again, after its first token.
    run = bench.run(disaggregated(bench.trace("long", [(0, 100, 20, 0), (500, 100, 5, 0)]), prefill=2, scheduler=scheduler))
    summary = columns(run.folder / "summary.csv")
    checks.exact("before the first admission nobody waits", float(summary["mean_queue_ms"][0]), 0.0)
    checks.holds("the second waits for the engine that decodes", float(summary["mean_e2el_queue_ms"][0]) > 0.0)
    # The client gets no token from the prefill engine, and the decoding engine computes the prompt's last token again.
    made = disaggregated(bench.trace("silent", [(0, 100, 5, 0), (500, 100, 5, 0), (90000, 100, 1, 0)]), prefill=2, scheduler=scheduler)
    made["serve"]["replicas"]["first_token"] = "decode"
    run = bench.run(made)
    begins = [arrives[0], max(arrives[1], arrives[0] + 5 * step), 90 * MS + prompt + move + MS // 4]
    checks.exact("first tokens of the engine that decodes", run.ps("first_token_s"), [begin + step for begin in begins])
    checks.exact("ends behind them", run.ps("last_token_s"), [begins[0] + 5 * step, begins[1] + 5 * step, begins[2] + step])
    # If more is sent over the link than it carries, the server does not keep up.
    for rate, overloaded in ((200, "1"), (50, "0")):
        run = bench.run(disaggregated({"process": "poisson", "rate": rate, "requests": 400}, prefill=4, count=4, scheduler=scheduler,
                                      lengths={"prompt": {"fixed": 100}, "output": {"fixed": 2}}))
        if scheduler["kind"] != "static":
            checks.exact(f"{rate} caches per second over a link of 100", columns(run.folder / "summary.csv")["overloaded"][0].split(".")[0], overloaded)
    # The prefill engine gives only one token.
    run = bench.run(disaggregated(bench.trace("short", [(0, 100, 1, 0)]), scheduler=scheduler))
    checks.exact("one token", run.ps("last_token_s"), [prompt])


def crowded(bench, checks, scheduler):
    """Conservation under load, with other schedulers than vLLM's: every second has one cause, and prompts are computed separately."""
    lengths = {"prompt": {"uniform": {"from": 20, "to": 150}}, "output": {"uniform": {"from": 1, "to": 60}}}
    speculation = {"policy": {"kind": "fixed", "draft_length": 2}, "acceptance": {"alpha": 0.6}}
    run = bench.run(disaggregated({"process": "poisson", "rate": 60, "requests": 200}, 2, 2, speculation, lengths, scheduler, kv={"block": 16, "blocks": 60}), steps=True)
    causes = [name for name in run.raw if name.endswith("_s") and name not in ("arrival_s", "first_scheduled_s", "first_token_s", "last_token_s")]
    lives = zip(run.ps("arrival_s"), run.ps("last_token_s"), *(run.ps(name) for name in causes))
    name = " ".join(str(value) for value in scheduler.values())
    checks.exact(f"{name}: every second has one cause", sum(last - sent != sum(parts) for sent, last, *parts in lives), 0)
    checks.exact(f"{name}: all end", run.whole("finished").count(1), 200)
    prompts = sum(run.whole("prefill_rows", steps=True)) - sum(run.whole("recomputed_tokens"))
    checks.exact(f"{name}: rows of prompts", prompts, sum(run.whole("prompt_tokens")))
    checks.holds(f"{name}: they speculate", sum(run.whole("drafted")) > sum(run.whole("rounds")))


def many(bench, checks):
    """Conservation under load, with speculation and preemption on the decoding engines."""
    lengths = {"prompt": {"lognormal": {"mean": 80, "cv": 1}}, "output": {"uniform": {"from": 1, "to": 60}}}
    speculation = {"policy": {"kind": "fixed", "draft_length": 2}, "acceptance": {"alpha": 0.6}}
    for asynchronous in (False, True):
        run = bench.run(disaggregated({"process": "poisson", "rate": 60, "requests": 400}, 2, 2, speculation, lengths, kv={"block": 16, "blocks": 60},
                              **{"async": asynchronous, "reserve_full_isl": True}))
        causes = [name for name in run.raw if name.endswith("_s") and name not in ("arrival_s", "first_scheduled_s", "first_token_s", "last_token_s")]
        lives = zip(run.ps("arrival_s"), run.ps("last_token_s"), *(run.ps(name) for name in causes))
        checks.exact("every second has one cause", sum(last - sent != sum(parts) for sent, last, *parts in lives), 0)
        moved = [(tokens > 1) == (time > 0) for tokens, time in zip(run.whole("output_tokens"), run.ps("transfer_s"))]
        checks.exact("what has a second token goes over the link", moved.count(False), 0)
        checks.exact("all end", run.whole("finished").count(1), 400)
        checks.holds("some are preempted", sum(run.whole("preemptions")) > 0)
        rounds, drafted = run.whole("rounds"), run.whole("drafted")
        checks.holds("they speculate", sum(drafted) > sum(rounds))


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        for scheduler in SCHEDULERS:
            one(bench, checks, scheduler)
        for scheduler in SCHEDULERS[1:]:
            crowded(bench, checks, scheduler)
        many(bench, checks)
    return checks.finish("prefill and decoding disaggregated")


if __name__ == "__main__":
    sys.exit(main())
