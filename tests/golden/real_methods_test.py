#!/usr/bin/python3
"""results/real_methods is what the program does: the first prompts of each method anew, round by round.

    tests/golden/real_methods_test.py

Runs at the root of the repository; SPECSIM names the program. The record was made with AVX2, whose sums have the same bits on
every processor that has it and no wider vectors: there every round must be as on record. Other instruction sets add in another
order, and where two logits nearly tie a text may go another way: at most SPLIT of the requests may differ from the record.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "scripts")
from real_methods import METHODS, folder_of, run  # noqa: E402

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
PROMPTS = 2
SPLIT = 2
TEMPERATURES = (0, 1)


def as_on_record():
    """Whether this processor adds as the one of the record did."""
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    return "avx2" in flags and "avx512bw" not in flags


def lines(folder, temperature):
    with open(Path(folder) / f"rounds_t{temperature}.jsonl") as file:
        return [json.loads(line) for line, _ in zip(file, range(PROMPTS))]


def different(record, made):
    """(temperature, request) whose rounds are not those on record."""
    pairs = [(t, r, one, other) for t in TEMPERATURES for r, (one, other) in enumerate(zip(lines(record, t), lines(made, t), strict=True))]
    assert len(pairs) == PROMPTS * len(TEMPERATURES)
    return [(t, r) for t, r, one, other in pairs if one != other]


def main():
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        prompts = Path(scratch) / "prompts.jsonl"
        prompts.write_text("".join(open("tests/data/prompts/held_out.jsonl").readlines()[:PROMPTS]))
        record = Path("results/real_methods")
        for name, drafter, draft, _ in METHODS:
            made = Path(scratch) / folder_of(name)
            run(SPECSIM, drafter, draft, made, str(prompts))
            problems += [f"{name}, temperature {t}: request {r} is not as on record" for t, r in different(record / folder_of(name), made)]
        # Other random numbers must show: a method drawn anew at temperature 1.
        name, drafter, draft, _ = METHODS[0]
        run(SPECSIM, drafter, draft, Path(scratch) / "other", str(prompts), ["--seed", "1"])
        blind = not different(record / folder_of(name), Path(scratch) / "other")
    for problem in problems + ["another seed gives the same rounds"] * blind:
        print(problem, file=sys.stderr)
    print(f"{len(problems)} requests of {len(METHODS) * PROMPTS * len(TEMPERATURES)} not as on record")
    return 1 if blind or len(problems) > (0 if as_on_record() else SPLIT) else 0


if __name__ == "__main__":
    sys.exit(main())
