#!/usr/bin/python3
"""Queueing theory compared with `specsim serve`: formulas that share nothing with the simulator, each with a config for which it holds.

Formulas of waits (queue_oracles.py) and laws of every run (run_oracles.py). Runs at the root of the repository; SPECSIM names the program.
`--self` runs the reference instead, with fewer requests; `q3 q13 ...` runs only these.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks  # noqa: E402
from queue_oracles import ALONE, q1_q2, q3, q4, q5_q6, q7_q8, q9, q10, q16  # noqa: E402
from run_oracles import q11_q12, q13, q14, q15, q17, q18  # noqa: E402

ONLY = [word for word in sys.argv[1:] if word.startswith("q")]


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, ALONE)
        for oracle in (q1_q2, q3, q4, q5_q6, q7_q8, q9, q10, q11_q12, q13, q14, q15, q16, q17, q18):
            if not ONLY or oracle.__name__ in ONLY:
                oracle(bench, checks)
    return checks.finish("oracles_test")


if __name__ == "__main__":
    sys.exit(main())
