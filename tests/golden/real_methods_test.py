#!/usr/bin/python3
"""results/real_methods agrees with the program: the first prompts of each method are run again, round by round, and the tables follow from
the rounds.

    tests/golden/real_methods_test.py

Runs at the root of the repository; SPECSIM names the program. The record was made with AVX2, whose sums have the same bits on every
processor that has it and no wider vectors: there every round must equal the record. Other instruction sets add in another order, and
if two logits nearly tie a text may continue differently: at most SPLIT of a method's requests may differ from the record.
"""
import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "scripts/results")
import real_methods  # noqa: E402
from real_methods import METHODS, folder_of, run  # noqa: E402

SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
RECORD = Path("results/real_methods")
REQUESTS = 100
PROMPTS = 2
SPLIT = 1
TEMPERATURES = (0, 1)


def as_on_record():
    """Whether this processor adds in the same order as the record's."""
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    return "avx2" in flags and "avx512bw" not in flags


def lines(folder, temperature):
    with open(Path(folder) / f"rounds_t{temperature}.jsonl") as file:
        return [json.loads(line) for line, _ in zip(file, range(PROMPTS))]


def different(record, made):
    """The (temperature, request) pairs whose rounds differ from the record."""
    pairs = [(t, r, one, other) for t in TEMPERATURES for r, (one, other) in enumerate(zip(lines(record, t), lines(made, t), strict=True))]
    assert len(pairs) == PROMPTS * len(TEMPERATURES)
    return [(t, r) for t, r, one, other in pairs if one != other]


def tables_differ(scratch, shorter=""):
    """Names of the tables that do not follow from the rounds on record; a method named in `shorter` loses its last request."""
    def copy(_specsim, _drafter, _draft, folder):
        shutil.copytree(RECORD / folder.name, folder)
        for t in TEMPERATURES:
            path = folder / f"rounds_t{t}.jsonl"
            requests = path.read_text().splitlines(keepends=True)
            assert len(requests) == REQUESTS, path
            if folder.name == shorter:
                path.write_text("".join(requests[:-1]))
    real_methods.run, sys.argv = copy, ["real_methods.py", "", str(scratch)]
    with contextlib.redirect_stdout(None):
        real_methods.main()
    return [name for name in ("methods.csv", "methods.md") if (scratch / name).read_bytes() != (RECORD / name).read_bytes()]


def main():
    problems = []
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        prompts = Path(scratch) / "prompts.jsonl"
        prompts.write_text("".join(open("tests/data/prompts/held_out.jsonl").readlines()[:PROMPTS]))
        for name, drafter, draft, _ in METHODS:
            made = Path(scratch) / folder_of(name)
            run(SPECSIM, drafter, draft, made, str(prompts))
            new = [f"{name}, temperature {t}: request {r} is not as on record" for t, r in different(RECORD / folder_of(name), made)]
            problems += new
            failed |= len(new) > (0 if as_on_record() else SPLIT)
        # Other random numbers must be detected: a method sampled again at temperature 1.
        name, drafter, draft, _ = METHODS[0]
        run(SPECSIM, drafter, draft, Path(scratch) / "other", str(prompts), ["--seed", "1"])
        blind = not different(RECORD / folder_of(name), Path(scratch) / "other")
        drifted = tables_differ(Path(scratch) / "tables")
        # Each method's rounds must reach the tables.
        unread = [name for name, *_ in METHODS if "methods.csv" not in tables_differ(Path(scratch) / f"without {name}", folder_of(name))]
    print(f"{len(problems)} requests of {len(METHODS) * PROMPTS * len(TEMPERATURES)} not as on record")
    wrong = ["another seed gives the same rounds"] * blind
    wrong += [f"{name} is not the table of the rounds on record" for name in drifted]
    wrong += [f"methods.csv does not depend on the rounds of {name}" for name in unread]
    for problem in problems + wrong:
        print(problem, file=sys.stderr)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
