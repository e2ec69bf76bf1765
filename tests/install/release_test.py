#!/usr/bin/python3
"""One version: CMakeLists.txt, the program, CITATION.cff, the wheel; and every script that the release workflow runs is there.

Runs at the root of the repository; SPECSIM names the program.
"""
import os
import re
import sys
from pathlib import Path

import yaml

sys.path.insert(0, "tests/support")
sys.path.insert(0, "scripts/wheel")
from program import expect, finish, run  # noqa: E402
import specsim_backend  # noqa: E402

version = re.search(r"^project\(specsim VERSION (\S+)", Path("CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE).group(1)
said = run("--version")[1]
expect(f"--version: {said}", re.fullmatch(rf"specsim {re.escape(version)} \((sources-)?[0-9a-f]{{40}}(\+dirty)?\)\n", said))
expect("CITATION.cff", yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8"))["version"] == version)
expect("the wheel", specsim_backend.project()["version"] == version)
expect("pyproject.toml", not re.search(r"^version", Path("pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE))

workflow = yaml.safe_load(Path(".github/workflows/release.yml").read_text(encoding="utf-8"))
expect("the workflow runs on tags alone", workflow[True] == {"push": {"tags": ["v*"]}})  # YAML 1.1 reads "on" as true
steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
text = "\n".join(step.get("run", "") for step in steps)
scripts = set(re.findall(r"\b((?:scripts|tests)/[\w/.]+)", text))
expect(f"scripts: {scripts}", {"scripts/packages", "scripts/web", "scripts/docs", "tests/slow/packages_test.py"} <= scripts)
for script in scripts:
    expect(f"{script} is not there, or not executable", os.access(script, os.X_OK))
for what in ("pip wheel", "docker build", "sha256sum"):
    expect(f"the workflow has no {what}", what in text)

finish()
