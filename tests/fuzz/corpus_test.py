#!/usr/bin/python3
"""Inputs on which the program once broke a promise (tests/fuzz/corpus, found by scripts/fuzz), again.

    tests/fuzz/corpus_test.py

Runs at the root of the repository; SPECSIM names the program. Each folder of the corpus holds a case's files, `command` (the
arguments) and `problem` (what was wrong then).
"""

import os
import subprocess
import sys
from pathlib import Path

cases = sorted(str(p.parent) for p in Path("tests/fuzz/corpus").rglob("command"))
if not cases:
    sys.exit("tests/fuzz/corpus holds no cases")
if os.environ.get("SPECSIM_SANITIZE"):
    print("not under a sanitizer, which maps more memory than a case may have")
    sys.exit(0)
sys.exit(subprocess.run([sys.executable, "scripts/fuzz", "--replay", *cases]).returncode)
