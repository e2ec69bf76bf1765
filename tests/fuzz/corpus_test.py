#!/usr/bin/python3
"""Runs the program again on inputs for which it once broke a promise.

    tests/fuzz/corpus_test.py

Runs at the root of the repository; SPECSIM names the program, SPECSIM_FUZZ the one with its readers (tests/fuzz/*.cpp). Each folder of
tests/fuzz/corpus holds a case's files, `command` (the arguments) and `problem` (the fault at that time). Each folder of tests/fuzz/inputs
is named for a reader and holds its inputs.
"""

import os
import subprocess
import sys
from pathlib import Path

failed = 0
for folder in sorted(Path("tests/fuzz/inputs").iterdir()):
    result = subprocess.run([os.environ.get("SPECSIM_FUZZ", "build/specsim_fuzz"), *sorted(folder.iterdir())], env={**os.environ, "SPECSIM_FUZZER": folder.name},
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    if result.returncode != 0:
        failed = 1
        print(f"{folder}: status {result.returncode}\n{result.stderr[-3000:]}")
cases = sorted(str(p.parent) for p in Path("tests/fuzz/corpus").rglob("command"))
if not cases:
    sys.exit("tests/fuzz/corpus holds no cases")
failed |= subprocess.run([sys.executable, "scripts/fuzz", "--replay", *cases]).returncode
sys.exit(failed)
