#!/usr/bin/python3
"""Server policy adaptive_verification: a budget that never binds equals policy fixed, and the effect of a budget equals enumeration.

The theory here shares nothing with the program: the accepted tokens of a round by all patterns of accepted and rejected drafts, the budget by a
search of all budgets. A round's expectation given its verified part holds whatever was verified before, so that sums of differences are
martingales. Mutants that must be rejected: drafts that are judged although they were dropped, executed rounds that end where longer ones
did, budgets that ignore the draft's time. Runs at the root of the repository; SPECSIM names the program.
"""
import csv
import itertools
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np  # noqa: E402

from bench import SPECSIM, Bench, Checks, config, mean_p  # noqa: E402

COST = {"target_fixed_ms": 6, "target_ms_per_token": 0.02, "target_ms_per_kv_token": 0.0001, "draft_fixed_ms": 1, "draft_ms_per_token": 0.004}
PAIR = {"vocab": 24, "target": {"family": "zipf", "exponent": 1.0}, "draft": {"from": "target", "transform": "temperature", "value": 1.6}}
TEXT = {"process": "text", "persistence": 0.88, "between_requests": 0.1, "drift": 0.3}
LOGITS = {"vocab": 100, "target": {"family": "normal_logits", "sigma": 8, "spread": 0.4}, "draft": {"from": "target", "transform": "logit_noise", "value": 0.7, "spread": 1}}
SCHEDULERS = {"vllm_v1": {}, "vllm_v1, async": {"async": True}, "sglang": {"kind": "sglang"}, "trtllm": {"kind": "trtllm"}}


def policy(**more):
    return {"kind": "adaptive_verification", "draft_length": 5, **more}


def crowded(scheduler, speculation, blocks, cut):
    """Queues; with `cut`, prompts and drafts are cut and requests preempted too."""
    arrivals = {"process": "gamma", "rate": 40, "burstiness": 0.5, "requests": 150}
    lengths = {"prompt": {"lognormal": {"mean": 120, "cv": 1, "most": 900}}, "output": {"uniform": {"from": 1, "to": 120}}}
    config_of = config(arrivals, COST, lengths, speculation, {"block": 16, "blocks": blocks})
    config_of["serve"]["scheduler"] = {"kind": "vllm_v1", "async": False, **({"max_num_seqs": 24, "max_num_batched_tokens": 120} if cut else {}), **scheduler}
    if scheduler.get("kind", "vllm_v1") != "vllm_v1":
        config_of["serve"]["scheduler"] = scheduler
    return config_of


def like_fixed(bench, checks):
    """Whether drafts are known or not, a budget that never binds changes nothing."""
    stated = {"acceptance": {"position_rates": [0.8, 0.6, 0.5, 0.4, 0.3]}}
    executed = {"pair": LOGITS, "context": TEXT, "decode": {"drafter": {"kind": "chain", "draft_length": 5}, "verifier": "token"}}

    def files(scheduler, own, stated_acceptance):
        cell = crowded(scheduler, {"policy": own, **(stated if stated_acceptance else {})}, 160 if stated_acceptance else 16000, stated_acceptance)
        run = bench.run(cell if stated_acceptance else {**cell, **executed})
        return [(run.folder / name).read_bytes() for name in ("requests.csv", "summary.csv")]

    for name, scheduler in SCHEDULERS.items():
        for stated_acceptance, confidences in ((True, ["history"]), (False, ["history", "estimate", "head"])):
            fixed = files(scheduler, {"kind": "fixed", "draft_length": 5}, stated_acceptance)
            for confidence in confidences:
                own = policy(confidence=confidence, budget="rows", rows=64)
                checks.holds(f"{name}, {confidence}: as fixed, {'stated' if stated_acceptance else 'executed'}", files(scheduler, own, stated_acceptance) == fixed)
            checks.rejects_exactly(f"{name}: as fixed", "a budget that binds", files(scheduler, policy(confidence="history", budget="rows", rows=4.5), stated_acceptance) != fixed)
    # A block that is guessed in one pass is cut like a chain.
    block = {"pair": dict(LOGITS, vocab=12), "context": {"process": "markov", "order": 1},
             "decode": {"drafter": {"kind": "dspark", "block_size": 5, "markov_head": 0.6}, "verifier": "block"}}
    runs = [(bench.run({**crowded({}, {"policy": own}, 16000, False), **block}).folder / "requests.csv").read_bytes()
            for own in ({"kind": "fixed", "draft_length": 5}, policy(budget="rows", rows=64), policy(budget="rows", rows=4.5))]
    checks.holds("a block: as fixed", runs[0] == runs[1])
    checks.rejects_exactly("a block: as fixed", "a budget that binds", runs[0] != runs[2])
    # Pass times that do not change with rows leave nothing to save: vLLM's budget is all rows.
    free = {"target_fixed_ms": 6, "draft_fixed_ms": 1}
    runs = []
    for own in ({"kind": "fixed", "draft_length": 5}, policy(), policy(largest_graph=0)):
        cell = crowded({}, {"policy": own, **stated}, 160, True)
        runs.append((bench.run({**cell, "cost": {"model": "affine", **free}}).folder / "requests.csv").read_bytes())
    checks.holds("where rows are free, all are verified", runs[0] == runs[1] == runs[2])


def moments(rates, verified):
    """Mean and variance of the accepted tokens of a round that verifies `verified` tokens, by every pattern of accepted and rejected ones."""
    mean = square = 0.0
    for pattern in itertools.product((False, True), repeat=verified):
        chance = math.prod(rate if good else 1.0 - rate for rate, good in zip(rates, pattern))
        accepted = len(list(itertools.takewhile(bool, pattern)))
        mean, square = mean + chance * accepted, square + chance * accepted ** 2
    return mean, square - mean ** 2


def excess_p(rates, run, fewest):
    """p-value of the accepted tokens beyond the expectation, for requests whose rounds verify `fewest` drafts or one more."""
    rounds, drafted, accepted = (np.array(run.whole(name)) for name in ("rounds", "drafted", "accepted"))
    longer = (drafted - fewest * rounds).sum()
    (low, low_spread), (high, high_spread) = moments(rates, fewest), moments(rates, fewest + 1)
    shorter = rounds.sum() - longer
    z = (accepted.sum() - shorter * low - longer * high) / math.sqrt(shorter * low_spread + longer * high_spread)
    return math.erfc(abs(z) / math.sqrt(2.0))


def fixed_budget(bench, checks):
    rates = [0.85, 0.75, 0.7, 0.6, 0.5]
    arrivals = {"process": "closed", "concurrency": 4, "requests": 4}
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": 30000}}

    def run(own, steps=False):
        return bench.run(config(arrivals, COST, lengths, {"policy": own, "acceptance": {"conditional_rates": rates}}, max_num_seqs=8), steps=steps)

    budget = run(policy(budget="rows", rows=2.5), steps=True)
    counts = list(zip(*(budget.whole(name, steps=True) for name in ("decode_rows", "draft_rows", "draft_length"))))
    decoding = [(sequences, drafts) for sequences, drafts, _ in counts if sequences > 0]
    checks.exact("rows of the budget, at every step", {drafts - math.floor(2.5 * sequences) for sequences, drafts in decoding}, {0})
    checks.exact("all of them draft", {length for _, _, length in counts}, {5})
    checks.exact("the last rows are those of the first sequences", [drafted > 2 * rounds for drafted, rounds in zip(budget.whole("drafted"), budget.whole("rounds"))][:2], [True, True])
    checks.p("accepted tokens at a budget", excess_p(rates, budget, 2))
    whole = run({"kind": "fixed", "draft_length": 5})
    judged = JudgedWhole(budget, whole)
    checks.mutant("accepted tokens at a budget", "dropped drafts that are judged", excess_p(rates, judged, 2))
    checks.mutant("accepted tokens at a budget", "rates of all rounds for those of rounds that reach a position", excess_p(list(np.cumprod(rates)), budget, 2))


class JudgedWhole:
    """A run that verifies as many tokens as `budget` and accepts, per round, as many as `whole`."""

    def __init__(self, budget, whole):
        share = sum(whole.whole("accepted")) / sum(whole.whole("rounds"))
        self.columns = {"rounds": budget.whole("rounds"), "drafted": budget.whole("drafted"), "accepted": [share * r for r in budget.whole("rounds")]}

    def whole(self, name):
        return self.columns[name]


def executed(folder, bench, checks):
    """Rounds that are cut at two tokens are rounds of two, by the exact theory of `specsim run` and, for a fixed pair, by hand."""
    for verifier in ("token", "block"):
        method = {"pair": PAIR, "decode": {"drafter": {"kind": "chain", "draft_length": 7}, "verifier": verifier}}

        def served(own, requests=2500):
            return {"experiment": "executed", "seed": 3, "cost": {"model": "affine", "target_fixed_ms": 1, "draft_fixed_ms": 0.1},
                    "serve": {"scheduler": {"kind": "vllm_v1", "async": False}, "arrivals": {"process": "closed", "concurrency": 5, "requests": requests},
                              "lengths": {"prompt": {"fixed": 16}, "output": {"fixed": 96}}, "speculation": {"policy": own}}, **method}

        run_config = {"experiment": "two", "seed": 4, "rounds": 4096, "context": {"process": "fixed"}, **method}
        run_config["decode"] = {"drafter": {"kind": "chain", "draft_length": 2}, "verifier": verifier}
        (folder / "two.yaml").write_text(json.dumps(run_config))
        done = subprocess.run([SPECSIM, "run", str(folder / "two.yaml"), "--out", str(folder / "two"), "--force"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"specsim run: {done.stderr}")
        with open(folder / "two" / "data.csv", newline="") as file:
            expected = float(next(csv.DictReader(file))["tokens_per_round_theory"])
        for confidence in ("estimate", "head", "history"):
            run = bench.run(served({"kind": "adaptive_verification", "draft_length": 7, "confidence": confidence, "budget": "rows", "rows": 2}))
            rounds, accepted = np.array(run.whole("rounds")), np.array(run.whole("accepted"))
            checks.exact(f"{verifier}, {confidence}: two of seven are verified in the mean", sum(run.whole("drafted")), 2 * int(rounds.sum()))
            if confidence == "history":  # all drafts of one position have equal confidence, so that every round verifies two
                checks.p(f"{verifier}: tokens per round", mean_p(rounds + accepted - expected * rounds, 0.0))
        if verifier == "token":
            cut = bench.run(served({"kind": "fixed", "draft_length": 2}))
            rounds, accepted = np.array(cut.whole("rounds")), np.array(cut.whole("accepted"))
            checks.mutant("token: tokens per round", "rounds that end where executed ones of seven did", mean_p(rounds + accepted - expected * rounds, 0.0))
        more = moments([0.9] * 7, 2)[0]  # a pair that overlaps more
        checks.mutant(f"{verifier}: tokens per round", "another overlap", mean_p(rounds + accepted - (1.0 + more) * rounds, 0.0))


def best_rows(survivals, sequences, target, draft):
    """The number of verified drafts with the most expected tokens per time, from all numbers; the smallest one in a tie."""
    ordered = sorted(survivals, reverse=True)
    rate = [(sequences + sum(ordered[:rows])) / (draft(sequences) + target(sequences + rows)) for rows in range(len(ordered) + 1)]
    return rate.index(max(rate))


def chosen_budget(folder, bench, checks):
    """vLLM's budget if every draft's probability is known: the first step's drafts count as certain, later ones with their probability."""
    length, overlap = 4, 0.7
    (folder / "even.jsonl").write_text(json.dumps({"overlap": [overlap] * 40}) + "\n")
    cost = {"target_fixed_ms": 6, "target_ms_per_token": 0.5, "draft_fixed_ms": 0.8, "draft_ms_per_token": 0.03}

    def target(rows):
        return cost["target_fixed_ms"] + cost["target_ms_per_token"] * rows

    def draft(sequences):  # its first pass has all rows of a step in which all drafts are verified
        return length * cost["draft_fixed_ms"] + cost["draft_ms_per_token"] * (sequences * (length + 1) + (length - 1) * sequences)

    differ = 0
    for sequences in (1, 2, 3, 6, 9, 14):
        arrivals = {"process": "closed", "concurrency": sequences, "requests": sequences}
        own = {"kind": "adaptive_verification", "draft_length": length, "confidence": "head", "largest_graph": 0}
        run = bench.run(config(arrivals, cost, {"prompt": {"fixed": 16}, "output": {"fixed": 80}},
                               {"policy": own, "acceptance": {"trace": "even.jsonl"}}, max_num_seqs=20), steps=True)
        steps = [drafts for n, drafts in zip(run.whole("decode_rows", steps=True), run.whole("draft_rows", steps=True)) if n == sequences]
        even = [overlap ** (k + 1) for k in range(length)] * sequences
        wanted = best_rows(even, sequences, target, draft)
        checks.exact(f"{sequences} requests: rows of the first drafts", steps[0], best_rows([1.0] * len(even), sequences, target, draft))
        checks.exact(f"{sequences} requests: rows of later ones", set(steps[1:]), {wanted})
        differ += wanted != best_rows(even, sequences, target, lambda n: 0.0)
    checks.rejects_exactly("vLLM's budget", "one that forgets what the draft takes", differ > 0)


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = Bench(folder, False)
        like_fixed(bench, checks)
        fixed_budget(bench, checks)
        executed(folder, bench, checks)
        chosen_budget(folder, bench, checks)
    return checks.finish("adaptive verification of servers")


if __name__ == "__main__":
    sys.exit(main())
