#!/usr/bin/python3
"""docs/questions.md: each question has one command, an answer of at most five lines with an interval, and a link; every command ends well and takes
little work.

Runs at the root of the repository; SPECSIM names the program. docs_test compares the answers with what the commands print. The work is counted in
processor seconds, which another program on the machine does not change much. Questions that a script answers with the package for Python run only
where PYTHONPATH leads to the package; tests/python/pages_test.py always runs them.
"""
import importlib.util
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
ANSWER, HEAD = 5, 1   # lines; a table has a head
MOST = 60.0           # processor seconds: 30 on two cores
INTERVAL = re.compile(r"95 %|±|\b(?:after )?low +(?:after )?high\b")
# Answers by theory from stated figures, without an estimated time, speed or cost.
EXACT = {"What does my log report?", "Can the program reproduce a paper's table?", "How do I plot a sweep?", "Can CI check my configs against theory?"}


def sections():
    text = Path("docs/questions.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        yield part.partition("\n")[0], part


def main():
    problems = []
    count = 0
    for title, part in sections():
        count += 1
        commands = [[SPECSIM, *shlex.split(one)] for one in re.findall(r"<!-- output: build/specsim (.*?) ;; .*?-->", part)]
        commands += [[sys.executable, one] for one in re.findall(r"<!-- python: (.*?) -->", part)]
        if len(commands) != 1:
            problems.append(f"{title}: {len(commands)} commands, allowed: one")
            continue
        block = re.search(r"```console\n(.*?)```", part, re.S)[1].splitlines()
        answer = [line for line in block if not line.startswith(("$", "    --"))]
        if not 1 <= len(answer) <= ANSWER + HEAD:
            problems.append(f"{title}: an answer of {len(answer)} lines, allowed: at most {ANSWER} and a head")
        if title not in EXACT and not INTERVAL.search("\n".join(answer)):
            problems.append(f"{title}: no interval")
        if not re.search(r"\]\([\w/.#-]+\)", part):
            problems.append(f"{title}: no link")
        if commands[0][0] == sys.executable and importlib.util.find_spec("specsim") is None:
            continue
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(commands[0], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{seconds:6.1f} s  {title}")
        if done.returncode != 0:
            problems.append(f"{title}: ended with status {done.returncode}: {done.stderr}")
        if seconds > MOST:
            problems.append(f"{title}: {seconds:.0f} processor seconds, allowed: {MOST:.0f}")
    if count < 10:
        problems.append(f"{count} questions, expected at least 10")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
