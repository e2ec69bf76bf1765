#!/usr/bin/python3
"""Rounds that `specsim serve` executes are those of `specsim run` and of its theory: every drafter, every verifier, decode's policies.

Each method is served to requests of a fixed length, several at once. Its tokens per round are compared with the exact theory that `specsim run`
prints, or, if a method remembers earlier rounds, with a long run of `specsim run` itself. A round's expected tokens are the same wherever an
output ends (Wald), so a request's tokens minus the expectation times its rounds have mean zero. The verified rows must be exactly the
tree's nodes. Mutants that must be rejected: a tree of which only the eldest children are judged, and a chain whose length is not
adapted. Runs at the root of the repository; SPECSIM names the program.
"""
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np  # noqa: E402

from bench import SPECSIM, Bench, Checks, mean_p  # noqa: E402

PAIR = {"vocab": 24, "target": {"family": "zipf", "exponent": 1.0}, "draft": {"from": "target", "transform": "temperature", "value": 1.6}}
SMALL = {"vocab": 6, "target": {"family": "zipf", "exponent": 1.0}, "draft": {"from": "target", "transform": "overlap", "value": 0.75}}
COPY = {"process": "copy", "prompt_tokens": 128, "fidelity": 0.9, "entry": 0.5}
FADING = {"context": COPY}  # for drafters that draft less and less as a text goes on
CHAIN = {"kind": "chain", "draft_length": 4}


def tree(siblings=None, branching=(3, 2, 1)):
    drafter = {"kind": "tree_static", "branching": list(branching)}
    return drafter if siblings is None else dict(drafter, siblings=siblings)


# name: drafter, verifier, longest path, and the other keys of the config.
METHODS = {
    "chain, token": (CHAIN, "token", 4, {}),
    "chain, greedy": (dict(CHAIN, selection="argmax"), "greedy", 4, {"pair": dict(PAIR, target_sampling={"temperature": 0})}),
    "chain, sample_match": (CHAIN, "sample_match", 4, {}),
    "chain, soft_argmax": (dict(CHAIN, selection="argmax"), "soft_argmax", 4, {}),
    "chain, block": (CHAIN, "block", 4, {}),
    "chain, hsd": (CHAIN, "hsd", 4, {}),
    "chain, typical": (CHAIN, {"kind": "typical", "epsilon": 0.1, "delta": 0.5}, 4, {}),
    "chain, lenience": (CHAIN, {"kind": "lenience", "lenience": 0.5}, 4, {}),
    "chain, gumbel": (CHAIN, "gumbel", 4, {}),
    "chain, relaxed_threshold": (CHAIN, {"kind": "relaxed_threshold", "single": 0.4, "acc": 0.8}, 4, {}),
    "chain, relaxed_top_n": (CHAIN, {"kind": "relaxed_top_n", "n": 3, "delta": 0.2}, 4, {}),
    "chain, speculative_cascade": (CHAIN, {"kind": "speculative_cascade", "rule": "token_v3", "alpha": 0.4}, 4, {}),
    "chain, judge_decoding": (CHAIN, {"kind": "judge_decoding", "rate": 0.3}, 4, {}),
    "chain, top_k_match": (CHAIN, {"kind": "top_k_match", "k": 3}, 4, {}),
    "chain, ema_tiers": (CHAIN, "token", 4, {"policy": {"kind": "ema_tiers", "tiers": [1, 2]}}),
    "chain, confidence": (CHAIN, "block", 4, {"policy": {"kind": "confidence", "least": 0.1}}),
    "tree, recursive": (tree(), "multi_draft_recursive", 3, {}),
    "tree, kseq": (tree(), "kseq", 3, {}),
    "tree, transport": (tree(branching=(2, 1)), "optimal_transport", 2, {"pair": SMALL}),
    "tree, without replacement": (tree("without_replacement"), "without_replacement", 3, {}),
    "tree, point masses": (tree("top_k"), "tree_point_mass", 3, {}),
    "tree, greedy": (tree("top_k"), "greedy_tree", 3, {"pair": dict(PAIR, target_sampling={"temperature": 0})}),
    "tree, traversal": (tree(), "traversal", 3, {}),
    "tree, paths": (tree(branching=(3, 1, 1)), "greedy_multi_path", 3, {}),
    "tree, hub": (tree("hub", branching=(2, 2, 1)), "spec_hub", 3, {}),
    "sequoia": ({"kind": "tree_sequoia", "budget": 12, "acceptance": [0.6, 0.2, 0.1], "siblings": "without_replacement"}, "without_replacement", None, {}),
    "tree_ranked": ({"kind": "tree_ranked", "nodes": 8, "acceptance": [[0.6, 0.2, 0.1], [0.5, 0.2], [0.4]], "siblings": "top_k"}, "tree_point_mass", None, {}),
    "typical_medusa": (tree("top_k"), "typical_medusa", 3, {}),
    "tree_dynamic": ({"kind": "tree_dynamic", "depth": 4, "width": 3, "nodes": 12}, "tree_point_mass", 4, {}),
    "medusa": ({"kind": "medusa", "nodes": 12, "accuracies": [[0.5, 0.15, 0.08], [0.35, 0.12], [0.25, 0.1]]}, "tree_point_mass", None, {}),
    "eagle": ({"kind": "eagle", "branching": [3, 2, 1]}, "multi_draft_recursive", 3, {}),
    "early_exit": ({"kind": "early_exit", "draft_length": 4, "exit_share": 0.5}, "multi_draft_recursive", 4, {}),
    "parallel": ({"kind": "parallel", "draft_length": 4}, "tree_point_mass", 4, {}),
    "lookahead": ({"kind": "lookahead", "window": 3, "ngram": 4, "guesses": 3}, "tree_point_mass", 3, {"context": COPY}),
    "prompt_lookup": ({"kind": "prompt_lookup", "draft_length": 4}, "tree_point_mass", 4, {"context": COPY}),
    "suffix_decoding": ({"kind": "suffix_decoding", "draft_length": 4}, "tree_point_mass", 4, {"context": COPY}),
    "mtp": ({"kind": "mtp", "draft_length": 3, "selection": "argmax"}, "tree_point_mass", 3, {}),
    "eagle3": ({"kind": "eagle3", "depth": 3, "width": 3, "nodes": 10}, "tree_point_mass", 3, {}),
    "pard": ({"kind": "pard", "draft_length": 4}, "tree_point_mass", 4, {}),
    "dflash": ({"kind": "dflash", "block_size": 5}, "tree_point_mass", 4, {}),
    "dspark": ({"kind": "dspark", "block_size": 4, "markov_head": 0.6}, "block", 4, {"pair": SMALL, "context": {"process": "markov", "order": 1}}),
    "domino": ({"kind": "domino", "block_size": 5, "causal_head": 0.6}, "token", 4, {"pair": SMALL, "context": {"process": "markov", "order": 1}}),
    "dflash2": ({"kind": "dflash2", "block_size": 5, "selector": 0.6, "candidates": 2}, "token", 4, {"pair": SMALL, "context": {"process": "markov", "order": 1}}),
    "ddtree": ({"kind": "ddtree", "block_size": 5, "nodes": 8}, "tree_point_mass", 4, {}),
    "caddtree": ({"kind": "caddtree", "block_size": 5, "nodes": 8, "draft_time": 0.2, "row_time": 0.1}, "tree_point_mass", 4, {}),
    "jetspec": ({"kind": "jetspec", "depth": 4, "width": 2, "nodes": 8}, "tree_point_mass", 4, {}),
    "hybrid": ({"kind": "hybrid", "draft_length": 3, "text_length": 6}, "tree_point_mass", 6, {"context": COPY}),
    "rest": ({"kind": "rest", "datastore": [[1, 2, 3, 4, 5, 1, 2, 3, 1, 2]], "draft_length": 4, "nodes": 12}, "tree_point_mass", 4, {"context": COPY}),
    "opt_tree": ({"kind": "opt_tree", "nodes": 8, "threshold": 0.3, "max_depth": 5}, "tree_point_mass", 4, {}),
    "spec_exec": ({"kind": "spec_exec", "budget": 12, "beams": 12, "width": 4, "max_depth": 4}, "tree_point_mass", 4, {}),
    "dyspec": ({"kind": "dyspec", "nodes": 10, "max_depth": 4, "threshold": 0.05}, "without_replacement", 4, {}),
    "token_recycling": ({"kind": "token_recycling", "branching": [3, 2, 1]}, "tree_point_mass", 3, {"context": COPY}),
    "sam_decoding": ({"kind": "sam_decoding", "draft_length": 6, "threshold": 2}, "tree_point_mass", 6, {"context": COPY}),
    "hydra": ({"kind": "hydra", "branching": [3, 2, 1]}, "tree_point_mass", 3, {}),
    "redrafter": ({"kind": "redrafter", "beams": 4, "draft_length": 3}, "tree_point_mass", 3, {}),
    "cs_drafting": ({"kind": "cs_drafting", "draft_length": 4}, "multi_draft_recursive", 4, {}),
    "suffix": ({"kind": "suffix", "draft_length": 4}, "tree_point_mass", 4, {"context": COPY}),
    "sglang_ngram": ({"kind": "sglang_ngram", "nodes": 8, "max_trie_depth": 6}, "tree_point_mass", 5, {"context": COPY}),
    "ngram_simple": ({"kind": "ngram_simple", "draft_length": 4, "size_n": 2}, "tree_point_mass", 4, {"context": COPY}),
    "ngram_mod": ({"kind": "ngram_mod", "draft_length": 4, "n_match": 2, "n_min": 1}, "tree_point_mass", 4, {"context": COPY}),
    "ngram_cache": ({"kind": "ngram_cache", "draft_length": 4}, "tree_point_mass", 4, {"context": COPY}),
    "ngram_map_k": ({"kind": "ngram_map_k", "draft_length": 4, "size_n": 2}, "tree_point_mass", 4, FADING),
    "ngram_map_k4v": ({"kind": "ngram_map_k4v", "draft_length": 4, "size_n": 2}, "tree_point_mass", 4, FADING),
    "in_turn": ({"kind": "in_turn", "drafters": [{"kind": "ngram_map_k4v", "draft_length": 4, "size_n": 2}, {"kind": "mtp", "draft_length": 2}]},
                "tree_point_mass", 4, FADING),
}
NODES = {"tree, recursive": 15, "tree, transport": 4, "sequoia": 12, "early_exit": 4, "medusa": 12, "chain, block": 4, "sglang_ngram": 8}
OUTPUT, LONG_OUTPUT = 96, 3000


def decode_of(method):
    drafter, verifier, _, more = METHODS[method]
    decode = {"drafter": drafter, "verifier": verifier}
    if "policy" in more:
        decode["policy"] = more["policy"]
    return {"pair": more.get("pair", PAIR), "decode": decode, **({"context": more["context"]} if "context" in more else {})}


def longest_path(folder, method):
    """A tree that a drafter makes by itself: `specsim serve` reports it when asked for another."""
    if METHODS[method][2] is not None:
        return METHODS[method][2]
    path = folder / "probe.yaml"
    path.write_text(json.dumps(served(method, 60, 1, 2)))
    done = subprocess.run([SPECSIM, "serve", str(path)], capture_output=True, text=True, check=False)
    return int(done.stderr.split("allowed: 0 or ")[1].split(",")[0])


def served(method, length, requests, output, scheduler=None):
    return {"experiment": "executed", "seed": 3, "cost": {"model": "affine", "target_fixed_ms": 1, "draft_fixed_ms": 0.1},
            "serve": {"scheduler": scheduler or {"kind": "vllm_v1", "async": False},
                      "arrivals": {"process": "closed", "concurrency": 5, "requests": requests},
                      "lengths": {"prompt": {"fixed": 16}, "output": {"fixed": output}},
                      "speculation": {"policy": {"kind": "fixed", "draft_length": length}}},
            **decode_of(method)}


def run_row(folder, method, rounds, sequence_rounds):
    """data.csv of `specsim run`: other random numbers than the server's."""
    config = {"experiment": "executed", "seed": 4, "rounds": rounds, **decode_of(method)}
    if "context" not in config:
        config["context"] = {"process": "fixed"}
    config["context"] = dict(config["context"], sequence_rounds=sequence_rounds)
    path, out = folder / "run.yaml", folder / "run"
    path.write_text(json.dumps(config))
    done = subprocess.run([SPECSIM, "run", str(path), "--out", str(out), "--force", "--threads", "2"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{method}: specsim run: {done.stderr}")
    with open(out / "data.csv", newline="") as file:
        return next(csv.DictReader(file))


def excess(run, expected):
    """By request: tokens of its rounds beyond the expectation."""
    rounds, accepted = np.array(run.whole("rounds")), np.array(run.whole("accepted"))
    return rounds + accepted - expected * rounds


def judge(folder, bench, checks, method):
    remembers = any(key in METHODS[method][3] for key in ("context", "policy"))
    length = longest_path(folder, method)
    if remembers:
        row = run_row(folder, method, 100000, 1000)
        expected = float(row["tokens_per_round"])
        # As many rounds as the run's sequences have, because the mean changes with the number of rounds of a sequence.
        output = round(1000 * expected) if METHODS[method][3] is FADING else LONG_OUTPUT
        run = bench.run(served(method, length, 50, output), steps=True)
        # Four standard errors of the long run, plus the start, which is a different share of the two runs.
        allowance = (4 * float(row["tokens_per_round_se"]) + 0.004 * expected) * np.mean(run.whole("rounds"))
        checks.p(method, mean_p(excess(run, expected), 0.0, allowance))
    else:
        row = run_row(folder, method, 20000, 64)
        if not row["tokens_per_round_theory"]:
            row = run_row(folder, method, 1000000, 64)
        exact = row["tokens_per_round_theory"]
        expected = float(exact or row["tokens_per_round"])
        run = bench.run(served(method, length, 1000, OUTPUT), steps=True)
        allowance = 0.0 if exact else 4 * float(row["tokens_per_round_se"]) * np.mean(run.whole("rounds"))
        checks.p(method, mean_p(excess(run, expected), 0.0, allowance))
        checks.mutant(method, "a tenth of a token more per round", mean_p(excess(run, expected + 0.1), 0.0, allowance))
    if method in NODES:
        rows = zip(run.whole("draft_rows", steps=True), run.whole("decode_rows", steps=True))
        checks.exact(f"{method}: verified rows", sum(drafts != NODES[method] * decodes for drafts, decodes in rows), 0)
    return expected


def main():
    checks = Checks()
    parts = {kind: {line.split()[0] for line in subprocess.run([SPECSIM, "list", kind], capture_output=True, text=True, check=True).stdout.splitlines()[1:]}
             for kind in ("drafter", "verifier")}
    name = lambda part: part if isinstance(part, str) else part["kind"]
    # saguaro drafts on its own GPU, which servers here do not have.
    checks.exact("drafters that are served", {name(drafter) for drafter, *_ in METHODS.values()}, parts["drafter"] - {"saguaro"})
    checks.exact("verifiers that are served", {name(verifier) for _, verifier, *_ in METHODS.values()}, parts["verifier"])
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        bench = Bench(folder, False)
        expected = {method: judge(folder, bench, checks, method) for method in METHODS}
        path = folder / "saguaro.yaml"
        path.write_text(json.dumps({**served("tree, recursive", 3, 8, OUTPUT), "decode": {"drafter": {"kind": "saguaro", "draft_length": 3}, "verifier": "token"}}))
        refused = subprocess.run([SPECSIM, "serve", str(path)], capture_output=True, text=True, check=False)
        checks.exact("saguaro is refused", (refused.returncode, "drafter saguaro prepares rounds on a GPU of its own" in refused.stderr), (2, True))
        # Other schedulers take the same rounds, including an asynchronous one.
        for scheduler in ({"kind": "vllm_v1"}, {"kind": "sglang"}, {"kind": "trtllm"}, {"kind": "static", "batch": 4}):
            run = bench.run(served("tree, recursive", 3, 800, OUTPUT, scheduler))
            checks.p(f"tree, recursive under {scheduler['kind']}", mean_p(excess(run, expected["tree, recursive"]), 0.0))
        eldest = served("tree, recursive", 3, 800, OUTPUT)
        eldest["decode"]["drafter"] = {"kind": "tree_static", "branching": [1, 1, 1]}
        checks.mutant("tree, recursive", "eldest children alone", mean_p(excess(bench.run(eldest), expected["tree, recursive"]), 0.0))
        whole = served("chain, ema_tiers", 4, 50, LONG_OUTPUT)
        del whole["decode"]["policy"]
        checks.mutant("chain, ema_tiers", "chains that nobody shortens", mean_p(excess(bench.run(whole), expected["chain, ema_tiers"]), 0.0))
        longer = served("ngram_map_k", 4, 50, LONG_OUTPUT)
        checks.mutant("ngram_map_k", "drafts that do not fade", mean_p(excess(bench.run(longer), expected["ngram_map_k"]), 0.0))
    return checks.finish("rounds that a server executes")


if __name__ == "__main__":
    sys.exit(main())
