#!/usr/bin/python3
"""Shared prefixes of conversations are computed once: the prompt rows that vLLM's and SGLang's caches leave, and SGLang's queue orders.

Turns that never overlap leave one right count of rows, and one request at a time leaves one right order. Runs at the root of the
repository; SPECSIM names the program.
"""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks, config, serve  # noqa: E402

COST = {"target_fixed_ms": 1.0}
PREFIX, FRESH, ANSWER, TURNS = 75, 41, 23, 4


def conversations(bench, checks):
    arrivals = {"process": "sessions", "rate": 0.0002, "requests": 120, "turns": TURNS, "gap_s": 300, "prefix": PREFIX, "prompt": FRESH, "output": ANSWER}
    prompts = [PREFIX + turn * (FRESH + ANSWER) + FRESH for turn in range(TURNS)]

    def expected(run, block):
        """Cached tokens: for a turn all blocks of the one before, except its last token; for a session's first turn the common prefix."""
        rows = 0
        for number, prompt in enumerate(run.whole("prompt_tokens")):
            turn = prompts.index(prompt)
            known = prompt - FRESH - 1 if turn > 0 else PREFIX if number > 0 else 0
            rows += prompt - min(known, prompt - 1) // block * block
        return rows

    for name, block, scheduler in (("vLLM", 16, {"kind": "vllm_v1", "prefix_caching": True}), ("vLLM, asynchronous", 16, {"kind": "vllm_v1", "async": True, "prefix_caching": True}),
                                   ("SGLang, blocks of 16", 16, {"kind": "sglang", "radix_cache": True}), ("SGLang, longest prefix first", 16, {"kind": "sglang", "radix_cache": True, "schedule_policy": "lpm"})):
        made = config(dict(arrivals), COST, None, None, {"block": block, "blocks": 100000})
        made["serve"]["scheduler"] = scheduler
        run = bench.run(made, steps=True)
        checks.exact(f"{name}: rows of prompts", sum(run.whole("prefill_rows", steps=True)), expected(run, block))
        del scheduler["prefix_caching" if "prefix_caching" in scheduler else "radix_cache"]
        plain = bench.run(made, steps=True)
        checks.exact(f"{name}: all rows without a cache", sum(plain.whole("prefill_rows", steps=True)), sum(plain.whole("prompt_tokens")))
        checks.rejects_exactly(name, "no cache", sum(plain.whole("prefill_rows", steps=True)) != expected(plain, block))
    # Answers whose last computed token ends a block: the step of the end names the block before the request frees it (vLLM, asynchronous); also for
    # speculative steps, which end a block with accepted drafts.
    ends = dict(arrivals, output=13)
    prompts = [PREFIX + turn * (FRESH + 13) + FRESH for turn in range(TURNS)]
    for name, asynchronous, policy in (("plain", False, None), ("asynchronous", True, None), ("asynchronous with drafts", True, {"kind": "fixed", "draft_length": 3})):
        made = config(ends, COST, None, None, {"block": 16, "blocks": 100000}, prefix_caching=True)
        made["serve"]["scheduler"]["async"] = asynchronous
        if policy:
            made["serve"]["speculation"] = {"policy": policy, "method": "ngram", "acceptance": {"alpha": 0.6}}
        run = bench.run(made, steps=True)
        checks.exact(f"answers that end with a block, {name}: rows of prompts", sum(run.whole("prefill_rows", steps=True)), expected(run, 16))
    # An unlimited pool finds the same blocks as a large enough one of a stated size, and a pool of that size takes no memory.
    for name, kv, scheduler in (("vLLM", {"block": 16}, {"kind": "vllm_v1", "prefix_caching": True}), ("SGLang", {"block": 16}, {"kind": "sglang", "radix_cache": True}),
                                ("vLLM, the largest pool", {"block": 16, "blocks": 4000000000}, {"kind": "vllm_v1", "prefix_caching": True})):
        made = config(ends, COST, None, None, kv)
        made["serve"]["scheduler"] = scheduler
        run = bench.run(made, steps=True)
        checks.exact(f"{name} without a limit of memory: rows of prompts", sum(run.whole("prefill_rows", steps=True)), expected(run, 16))
    # A small pool drops the oldest conversations first, and still computes every necessary token.
    rows = {}
    for blocks in (60, 100000):
        made = config(dict(arrivals, rate=0.5, gap_s=3), COST, None, None, {"block": 16, "blocks": blocks})
        made["serve"]["scheduler"] = {"kind": "sglang", "radix_cache": True}
        run = bench.run(made, steps=True)
        rows[blocks] = sum(run.whole("prefill_rows", steps=True))
        if blocks == 60:
            free = run.whole("free_blocks", steps=True)
    checks.holds("SGLang: a small pool evicts", 1.1 * rows[100000] < rows[60] < sum(run.whole("prompt_tokens")))
    checks.holds("SGLang: blocks are given back", max(free) <= 59 and min(free) >= 0)
    # Replicas by prefix: a conversation stays on the replica of its first block.
    made = config(dict(arrivals, prefix=0), COST, None, None, {"block": 16, "blocks": 100000}, prefix_caching=True)
    made["serve"]["replicas"] = {"count": 4, "routing": "prefix_affinity"}
    near = bench.run(made, steps=True)
    made["serve"]["replicas"]["routing"] = "round_robin"
    spread = bench.run(made, steps=True)
    checks.holds("prefix affinity keeps conversations together",
                 sum(near.whole("prefill_rows", steps=True)) < 0.7 * sum(spread.whole("prefill_rows", steps=True)))
    # A prefix that all conversations share does not send them to one replica, and equally idle replicas get as many requests.
    for routing, rate, prefix in (("prefix_affinity", 30, 500), ("join_shortest_queue", 40, 0), ("least_loaded", 2, 0)):
        made = config(dict(arrivals, rate=rate, gap_s=1, prefix=prefix, requests=1200), {"target_fixed_ms": 8.0}, None, None, {"block": 16, "blocks": 100000},
                      prefix_caching=prefix > 0, max_num_seqs=64)
        made["serve"]["replicas"] = {"count": 4, "routing": routing}
        run = bench.run(made)
        counts = [run.whole("replica").count(replica) for replica in range(4)]
        checks.holds(f"{routing} at rate {rate}: {counts} requests for four replicas", max(counts) < 1.35 * min(counts))


def trace(bench, name, rows):
    path = bench.folder / f"{name}.csv"
    path.write_text("arrived_us,prompt,output,priority,block_hashes\n" + "".join(f"{at},160,{output},{priority},{first}-{first + 9}\n" for at, output, priority, first in rows))
    return {"process": "trace", "file": path.name}


def orders(bench, checks):
    # The first runs while the others come; number: (due, output, priority, first hash).
    rows = [(0, 40, 0, 0), (2000, 5, 3, 100), (2001, 6, 2, 0), (2002, 30, 1, 200), (2003, 9, 0, 200)]
    arrivals = trace(bench, "orders", rows)

    def order(policy, most=1, radix=True, which=arrivals):
        made = config(which, COST, None, None, {"block": 16, "blocks": 100000})
        made["serve"]["scheduler"] = {"kind": "sglang", "radix_cache": radix, "schedule_policy": policy, "max_running_requests": most}
        run = bench.run(made)
        begun = run.ps("first_scheduled_s")
        return sorted(range(len(begun)), key=lambda i: (begun[i], i))

    checks.exact("fcfs", order("fcfs"), [0, 1, 2, 3, 4])
    checks.exact("lpm", order("lpm"), [0, 2, 1, 3, 4])
    checks.exact("lpm without a cache is fcfs", order("lpm", radix=False), [0, 1, 2, 3, 4])
    checks.exact("dfs-weight", order("dfs-weight"), [0, 2, 1, 3, 4])
    checks.exact("lof", order("lof"), [0, 3, 4, 2, 1])
    checks.exact("priority", order("priority"), [0, 4, 3, 2, 1])
    checks.holds("random", sorted(order("random")) == [0, 1, 2, 3, 4] and order("random") == order("random"))
    # By uncached tokens; number: (due, prompt, output, first hash). The last one comes while the second or third runs.
    path = bench.folder / "uncached.csv"
    rows = [(0, 480, 40, 0), (2000, 320, 30, 100), (2001, 320, 5, 1000), (2002, 512, 5, 0), (45000, 64, 5, 300)]
    path.write_text("arrived_us,prompt,output,priority,block_hashes\n"
                    + "".join(f"{at},{prompt},{output},0,{first}-{first + prompt // 16 - 1}\n" for at, prompt, output, first in rows))
    uncached = {"process": "trace", "file": path.name}
    checks.exact("shortest-prefill-first", order("shortest-prefill-first", which=uncached), [0, 3, 4, 1, 2])
    # After the second one the fourth has waited for 320 tokens, 10 times its own 32; after both the third for 352, 1.1 times its own, and the last
    # for 32, half of them.
    checks.exact("hrrn", order("hrrn", which=uncached), [0, 1, 3, 2, 4])
    for policy in ("hrrn", "shortest-prefill-first", "fcfs"):
        checks.exact(f"{policy} without a cache is fcfs", order(policy, radix=False, which=uncached), [0, 1, 2, 3, 4])
    # Two that share an uncomputed prefix: the second waits for the first, and one that shares nothing goes before it.
    pair = trace(bench, "pair", [(0, 3, 0, 0), (200, 4, 0, 300), (201, 4, 0, 300), (202, 4, 0, 400)])
    begun = {}
    for policy in ("fcfs", "lpm"):
        made = config(pair, COST, None, None, {"block": 16, "blocks": 100000})
        made["serve"]["scheduler"] = {"kind": "sglang", "radix_cache": True, "schedule_policy": policy, "max_running_requests": 3}
        begun[policy] = bench.run(made).ps("first_scheduled_s")
    checks.holds("fcfs takes the pair", begun["fcfs"][1] <= begun["fcfs"][2] < begun["fcfs"][3])
    checks.holds("lpm lets the second wait", begun["lpm"][3] < begun["lpm"][2])


def capacity(bench, checks):
    """Equal prompts, far more than a server of one request at a time takes: its capacity is printed if no prefix is cached; if the cache decides, a
    message replaces it."""
    arrivals = trace(bench, "alike", [(at, 20, 0, 0) for at in range(400)])
    shared = None
    for caching, words in ((True, "no largest stable rate is given"), (False, "plain: capacity")):
        made = config(arrivals, COST, None, None, {"block": 16, "blocks": 100}, prefix_caching=caching)
        path = bench.folder / "capacity.yaml"
        path.write_text(json.dumps(made))
        done = serve(bench.folder, path.name)
        shared = shared or done
        checks.exact(f"prefix_caching {caching}: the note about the capacity", [one for one in ("no largest stable rate is given", "plain: capacity")
                                                                                  if one in done.stdout], [words])
    # Conversations, whose rate a sweep varies, and options that conflict with them.
    for caching in (True, False):
        made = config({"process": "sessions", "rate": 2.0, "requests": 60, "prompt": {"fixed": 64}, "output": {"fixed": 8}, "most": 4000}, COST, None, None,
                      {"block": 16, "blocks": 400}, prefix_caching=caching)
        path.write_text(json.dumps(made))
        done = serve(bench.folder, path.name, "--sweep", "rate=1,2")
        checks.exact(f"prefix_caching {caching}: a sweep reports that there is no capacity", "no largest stable rate is given" in done.stdout, caching)
    made = config({"process": "poisson", "rate": 2.0, "requests": 60}, COST, {"prompt": {"fixed": 64}, "output": {"fixed": 8}}, None, {"block": 16, "blocks": 400},
                  prefix_caching=True, policy="priority")
    made["serve"]["replicas"] = {"count": 2, "routing": "prefix_affinity"}
    path.write_text(json.dumps(made))
    done = serve(bench.folder, path.name)
    for words in ("policy priority changes nothing", "prefix_caching changes nothing", "the routing finds no prefixes"):
        checks.holds(f"{words} is said", words in done.stdout)
        checks.rejects_exactly("what changes nothing", f"a trace that shares prefixes: {words}", words not in shared.stdout)


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        conversations(bench, checks)
        orders(bench, checks)
        capacity(bench, checks)
    return checks.finish("prefixes that requests share")


if __name__ == "__main__":
    sys.exit(main())
