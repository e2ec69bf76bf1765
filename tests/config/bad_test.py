#!/usr/bin/python3
"""Bad configs and bad command lines: each is refused with exit code 2, exactly the message on record, and nothing written.

    tests/config/bad_test.py            check the cases of tests/config/bad/*.cases, and the command lines of bad_lines.py
    tests/config/bad_test.py --update   rewrite the messages of the cases; read them before you commit

Runs at the root of the repository; SPECSIM names the program. A table of cases begins with the config that all cases vary:

    base:
      KEY: VALUE              a section of the config, indented by two

    === NAME
    KEY: VALUE                a section that replaces the base's, or is added
    without: KEY              a section of the base that is left out
    --- refused
    FILE:9:5: MESSAGE         standard error; FILE is the config's path, <names of KIND> the names that specsim list prints

Instead of sections a case may have "whole:" and a config, or "bytes:" and a file as a Python literal.
"""

import ast
import os
import re
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bad_lines import CONFIG, LINES

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
BAD = Path("tests/config/bad")
GOOD = Path("tests/config/good")


def run(arguments):
    return subprocess.run([SPECSIM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)


def check(arguments, expected, out):
    """Lists the problems with how `arguments` are rejected; `out` must not exist afterwards."""
    result = run(arguments)
    shown = "specsim " + " ".join(arguments)
    problems = []
    if result.returncode != 2:
        problems.append(f"{shown}: exit code {result.returncode}, expected 2")
    if result.stderr.decode(errors="replace") != expected:
        problems.append(f"{shown}:\n  expected {expected!r}\n  got      {result.stderr.decode(errors='replace')!r}")
    if result.stdout:
        problems.append(f"{shown}: standard output has {result.stdout[:200]!r}")
    if out.exists():
        problems.append(f"{shown}: wrote {sorted(p.name for p in out.iterdir())}")
    return problems


@cache
def names_of(kind):
    """The parts of a kind as messages list them."""
    lines = run(["list", kind]).stdout.decode().splitlines()
    return ", ".join(line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   "))


KINDS = ("family", "transform", "context", "drafter", "verifier", "policy", "cost", "hardware", "model", "engine", "placement", "closed_form")


@cache
def presets_of(folder):
    """The presets of configs/models or configs/hardware as messages list them: each file's name, then its aliases."""
    names = []
    for path in sorted(Path("configs", folder).glob("*.yaml")):
        lines = path.read_text().splitlines()
        names += [line.split(":")[1].strip() for line in lines if line.startswith("name: ")] if folder == "models" else [path.stem]
        names += [alias.strip() for line in lines if line.startswith("aliases: ") for alias in line.split("[")[1].split("]")[0].split(",")]
    return ", ".join(names)


def with_names(text):
    text = re.sub("<presets of ([a-z]+)>", lambda match: presets_of(match.group(1)), text)
    return re.sub("<names of ([a-z_]+)>", lambda match: names_of(match.group(1)), text)


def without_names(text):
    """The reverse replacement, longest lists first; lists of fewer than three names are skipped because they may occur by chance."""
    for folder in ("models", "hardware"):
        text = text.replace(presets_of(folder), f"<presets of {folder}>")
    for kind in sorted(KINDS, key=lambda kind: -len(names_of(kind))):
        if names_of(kind).count(", ") >= 2:
            text = text.replace(names_of(kind), f"<names of {kind}>")
    return text


@dataclass
class Case:
    name: str
    recipe: list  # lines between the name and the message
    refused: str
    base: list  # (key, lines)

    def config(self):
        """The bytes of the config."""
        if self.recipe[0].startswith("bytes: "):
            return ast.literal_eval("b" + self.recipe[0][len("bytes: "):])
        if self.recipe[0] == "whole:":
            return "".join(line + "\n" for line in self.recipe[1:]).encode()
        sections = dict(self.base)
        without = [line[len("without: "):] for line in self.recipe if line.startswith("without: ")]
        for key in without:
            del sections[key]
        for key, lines in top_level([line for line in self.recipe if not line.startswith("without: ")]):
            sections[key] = lines
        return "".join(line + "\n" for lines in sections.values() for line in lines).encode()


def top_level(lines):
    """Lines of a config by top-level key."""
    sections = []
    for line in lines:
        if not line.startswith(" "):
            sections.append((line.split(":")[0], []))
        sections[-1][1].append(line)
    return sections


def read_cases(path):
    head, *parts = path.read_text(encoding="utf-8").split("\n=== ")
    base = top_level([line[2:] for line in head.splitlines() if line.startswith("  ")])
    cases = []
    for part in parts:
        recipe, refused = part.rstrip("\n").split("\n--- refused\n")
        name, *lines = recipe.split("\n")
        cases.append(Case(name, lines, refused, base))
    return head, cases


def write_cases(path, head, cases):
    text = head
    for case in cases:
        text += "\n=== " + "\n".join([case.name, *case.recipe]) + "\n--- refused\n" + case.refused + "\n"
    path.write_text(text, encoding="utf-8")


def place(case, scratch):
    path = scratch / "configs" / f"{case.name}.yaml"
    path.write_bytes(case.config())
    return path


def check_case(case, scratch):
    path = place(case, scratch)
    out = scratch / case.name
    return check(["run", str(path), "--out", str(out)], with_names(case.refused).replace("FILE", str(path)) + "\n", out)


def check_line(number, arguments, expected, scratch):
    out = scratch / f"line{number}"
    arguments = [str(out) if a == "OUT" else a for a in arguments]
    if arguments[:1] in (["run"], ["check"]) and "--out" not in arguments and not any(
            word in expected for word in ("without --out", "missing", "given without a value, or with one that it does not take, allowed: path")):
        arguments += ["--out", str(out)]
    return check(arguments, with_names(expected) + "\n", out)


def check_unreadable(scratch):
    """A config without read permission. Root can read everything, and skips this."""
    path = scratch / "unreadable.yaml"
    path.write_text("experiment: x\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        return []
    out = scratch / "unreadable"
    return check(["run", str(path), "--out", str(out)],
                 f"{path}: cannot be read: permission denied, allowed: a readable YAML file\n", out)


def check_no_file(scratch):
    """Calls without a command, and configs that are no plain file."""
    problems = []
    result = run([])
    if result.returncode != 2 or result.stdout or b"usage: specsim COMMAND" not in result.stderr:
        problems.append(f"specsim alone: exit code {result.returncode}, {result.stderr!r}")
    text = Path(CONFIG).read_bytes()
    result = subprocess.run([SPECSIM, "run", "/dev/stdin", "--set", "rounds=100"], input=text, capture_output=True, timeout=60)
    if result.returncode != 0 or result.stderr:
        problems.append(f"a config from a pipe: exit code {result.returncode}, {result.stderr!r}")
    if stat.S_ISCHR(os.stat("/dev/null").st_mode):
        out = scratch / "null"
        problems += check(["run", "/dev/null", "--out", str(out)], "/dev/null: the file is empty, allowed: one YAML document\n", out)
    return problems


def check_good(path):
    """Unusual but valid configs are accepted."""
    result = run(["run", str(path), "--set", "rounds=100"])
    refused = result.returncode != 0 or result.stderr
    return [f"{path} was refused: {result.stderr.decode(errors='replace')}"] if refused else []


def check_warnings(scratch):
    """A cost model's warning is printed once for all cells, and not at all with --quiet."""
    path = scratch / "larger.yaml"
    path.write_text(Path(CONFIG).read_text() + "cost: {model: roofline, hardware: rtx-3090, target: llama-3.2-1b, draft: llama-2-7b}\n"
                    "sweep:\n  workload.batch: [1, 2, 4]\n")
    expected = ["warning: NVIDIA GeForce RTX 3090: its figures are from memory, not verified",
                "warning: the draft (llama-2-7b, 6.74B) is larger than the target (llama-3.2-1b, 1.24B)"]
    problems = []
    for more, lines in (([], expected), (["--quiet"], [])):
        result = run(["run", str(path), "--set", "rounds=100", *more])
        if result.returncode != 0 or result.stderr.decode().splitlines() != lines:
            problems.append(f"a draft larger than its target {more}: exit code {result.returncode}, {result.stderr.decode()!r}")
    return problems


def update(tables, scratch):
    for path in tables:
        head, cases = read_cases(path)
        for case in cases:
            config = place(case, scratch)
            result = run(["run", str(config)])
            if result.returncode != 2:
                print(f"{path}: {case.name}: exit code {result.returncode}, its message stays", file=sys.stderr)
                continue
            case.refused = without_names(result.stderr.decode().rstrip("\n").replace(str(config), "FILE"))
        write_cases(path, head, cases)
    return 0


def main(arguments):
    if arguments not in ([], ["--update"]):
        print(__doc__)
        return 2
    tables = sorted(BAD.glob("*.cases"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        scratch = Path(folder)
        (scratch / "configs").mkdir()
        if arguments:
            return update(tables, scratch)
        cases = [case for path in tables for case in read_cases(path)[1]]
        problems = [f"{case.name} is the name of two cases" for i, case in enumerate(cases) if case.name in {c.name for c in cases[:i]}]
        if len(cases) < 300:
            problems.append(f"only {len(cases)} bad configs")
        jobs = [pool.submit(check_case, case, scratch) for case in cases]
        jobs += [pool.submit(check_line, n, line, text, scratch) for n, (line, text) in enumerate(LINES)]
        jobs += [pool.submit(check_good, path) for path in sorted(GOOD.glob("*.yaml"))]
        jobs += [pool.submit(check_unreadable, scratch), pool.submit(check_no_file, scratch),
                 pool.submit(check_warnings, scratch)]
        for job in jobs:
            problems += job.result()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(cases)} bad configs, {len(LINES)} bad command lines, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
