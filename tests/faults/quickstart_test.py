#!/usr/bin/python3
"""scripts/quickstart with a noisy setup and a build that exists or fails: it prints a screen that ends with the decision, keeps the noise in
build/quickstart.log, and shows the end of that log if a step fails.

Runs at the root of the repository; SPECSIM names the program.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOISE = 'for ((i = 0; i < 400; ++i)); do echo "Unpacking package $i"; done'
BUILT = 'ln -sf "$SPECSIM" build/specsim'
BROKEN = 'echo "fatal error: yaml-cpp/yaml.h: No such file"; exit 3'
SCREEN = 25  # lines


def quickstart(folder, build):
    for name in ("scripts", "build"):
        (folder / name).mkdir(exist_ok=True)
    shutil.copy("scripts/quickstart", folder / "scripts/quickstart")
    for name in ("configs", "scripts/plots"):
        if not (folder / name).exists():
            (folder / name).symlink_to(Path(name).resolve())
    for name, text in (("setup", NOISE), ("build", build)):
        (folder / "scripts" / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / "scripts" / name).chmod(0o755)
    environment = {**os.environ, "SPECSIM": os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))}
    return subprocess.run([folder / "scripts/quickstart"], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


problems = []
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    done = quickstart(folder, BUILT)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) > SCREEN:
        problems.append(f"status {done.returncode}, {len(lines)} lines, allowed: 0 and at most {SCREEN}:\n{done.stdout}{done.stderr}")
    for wanted in ("  recommendation: draft length ", "break-even alpha ", "  start: vllm serve ", "theory agree on 8 cells", "build/quickstart/plan/plan.png", "try next"):
        if wanted not in done.stdout:
            problems.append(f"{wanted!r} is missing in\n{done.stdout}{done.stderr}")
    if not (folder / "build/quickstart/plan/plan.png").is_file():
        problems.append("there is no picture")
    if "Unpacking package 399" not in (folder / "build/quickstart.log").read_text():
        problems.append("the log lacks what setup printed")
    done = quickstart(folder, BROKEN)
    if done.returncode != 1 or "yaml-cpp/yaml.h" not in done.stderr or "best: " in done.stdout or "Unpacking package 0\n" in done.stderr:
        problems.append(f"with a build that fails: status {done.returncode}\n{done.stdout}{done.stderr}")
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
