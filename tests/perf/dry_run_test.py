#!/usr/bin/python3
"""The run time that specsim run --dry-run estimates is within a factor of 5 of the run, for chains, trees, pools and fresh distributions.

Both are processor time on one thread. Runs at the root of the repository; SPECSIM names the program.
"""
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
FACTOR = 5.0
STARTED = 0.1  # seconds that the program takes to start, which its estimate leaves out
ZIPF = "pair: {vocab: 1000, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, value: 0.7}}\n"


def normal(vocab, contexts):
    return f"pair: {{vocab: {vocab}, target: {{family: normal_logits, sigma: 3}}, draft: {{from: target, transform: logit_noise, value: 1}}}}\ncontext: {{process: iid, {contexts}}}\n"


def chain(length, more=""):
    return f"decode: {{drafter: {{kind: chain, draft_length: {length}}}{more}}}\n"


CONFIGS = {
    "chain": ZIPF + chain(4) + "rounds: 5e7\n",
    "long chain": ZIPF + chain(64) + "rounds: 2e7\n",
    "chain, block": ZIPF + chain(6, ", verifier: block") + "rounds: 5e6\n",
    "fresh distributions": normal(5000, "fresh: true") + chain(4) + "rounds: 1500\n",
    "fresh distributions of a large vocabulary": normal(128256, "fresh: true") + chain(4) + "rounds: 64\n",
    "pool": normal(5000, "pool: 500") + chain(4) + "rounds: 1e7\n",
    "pool that is long in making": normal(32000, "pool: 400") + chain(4) + "rounds: 1e6\n",  # mutant: the time to make distributions is left out
    "pool of a large vocabulary": normal(128256, "pool: 64") + chain(4) + "rounds: 1e7\n",
    "tree with replacement": normal(1000, "pool: 20") + "decode: {drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: multi_draft_recursive}\nrounds: 5e5\n",
    "tree without replacement": normal(4000, "pool: 20") +
                                "decode: {drafter: {kind: tree_static, branching: [3, 2, 1], siblings: without_replacement}, verifier: without_replacement}\nrounds: 1e5\n",
    "dynamic tree": normal(1000, "pool: 20") + "decode: {drafter: {kind: tree_dynamic, depth: 4, width: 5, nodes: 21}, verifier: tree_point_mass}\nrounds: 2e5\n",
    "large dynamic tree": ZIPF + "decode: {drafter: {kind: tree_dynamic, depth: 6, width: 10, nodes: 60}, verifier: tree_point_mass}\nrounds: 1e5\n",
    "sweep": normal(2000, "pool: 50") + chain(4) + "rounds: 1e6\nsweep: {decode.drafter.draft_length: [1, 2, 4, 8, 16], pair.vocab: [100, 2000, 30000]}\n",
}


def processor_time():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def main():
    failed = False
    for name, config in CONFIGS.items():
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "timed.yaml"
            path.write_text("experiment: timed\nseed: 1\n" + config)
            printed = subprocess.run([SPECSIM, "run", path, "--dry-run", "--threads", "1"], capture_output=True, text=True, check=True).stdout
            estimate = float(re.search(r"about ([0-9.]+) s on", printed)[1])
            started = processor_time()
            subprocess.run([SPECSIM, "run", path, "--threads", "1", "--quiet"], stdout=subprocess.DEVNULL, check=True)
            took = processor_time() - started
        # Below ten seconds the estimate is printed with one digit.
        wrong = estimate + 0.05 + STARTED < took / FACTOR or estimate - 0.05 > FACTOR * took
        failed = failed or wrong
        print(f"{name}: estimated {estimate:g} s, took {took:.2f} s{'  <- beyond a factor of 5' if wrong else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
