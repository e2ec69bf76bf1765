#!/usr/bin/python3
"""results/scoreboard agrees with the tables that it collects, and no class of it gets worse without a word in CHANGELOG.md.

scoreboard_accepted.csv has the accepted median error and share inside the 95 % interval of each class. A class may be worse by one percentage
point. Beyond that the test fails until CHANGELOG.md has a line "Scoreboard: CLASS ..." and the accepted figures are set with --accept.
"""
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ACCEPTED = Path("tests/golden/scoreboard_accepted.csv")
RECORD = Path("results/scoreboard")
ALLOWED = 1.0  # percentage points
NEW = "a new class"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def figure(text):
    return float(text) if text else None


def worse(made, accepted):
    """Problems of the classes `made` compared with the accepted ones: by class, what is to be written to the changelog."""
    before = {row["class"]: row for row in accepted}
    problems = [(name, "the class is gone") for name in before if name not in {row["class"] for row in made}]
    for row in made:
        old = before.get(row["class"])
        if old is None:
            problems.append((row["class"], NEW))
            continue
        error, inside = (figure(row[key]) for key in ("median_error_percent", "inside_percent"))
        if error > figure(old["median_error_percent"]) + ALLOWED:
            problems.append((row["class"], f"median error {error} %, accepted {old['median_error_percent']} %"))
        if inside is not None and figure(old["inside_percent"]) is not None and inside < min(figure(old["inside_percent"]), 95.0) - ALLOWED:
            problems.append((row["class"], f"{inside} % inside the 95 % interval, accepted {old['inside_percent']} %"))
    return problems


def told(problems):
    word = 'write "Scoreboard: {} ..." to CHANGELOG.md and '
    return [f"{name}: {problem}; {'' if problem == NEW else word.format(name)}run this test with --accept" for name, problem in problems]


def unsaid(problems, changelog):
    """Those that the changelog has no line for."""
    return [(name, problem) for name, problem in problems if problem != NEW and f"Scoreboard: {name}" not in " ".join(changelog.split())]


# A single word in brackets would be a person's; figures, dates and addresses are not.
BRACKETS = re.compile(r"\((?!\d)([\w-]+)\)")


def labels(rows):
    """Problems of rows: each has a date and a version, and none names a person."""
    problems = [f"{row['source']}: no {key}" for row in rows for key in ("date", "version") if not row[key]]
    return problems + [f"{row['source']}: \"{word}\" may be a person" for row in rows for word in BRACKETS.findall(row["source"])]


def whole(folder):
    """Problems of the JSON, which has the rows of the tables."""
    data = json.loads((folder / "scoreboard.json").read_text())
    return [f"scoreboard.json: {name} are not those of {name}.csv" for name in ("rows", "classes")
            if [{key: str(value) for key, value in row.items()} for row in data[name]] != rows_of(folder / f"{name}.csv")]


def self_test():
    """The check finds what it is for."""
    accepted = [{"class": "steps: a", "median_error_percent": "5.0", "inside_percent": "95"}]
    for error, inside, found in (("5.9", "95", 0), ("6.1", "95", 1), ("5.0", "94", 0), ("5.0", "93", 1), ("1.0", "100", 0), ("7.0", "90", 2)):
        problems = worse([{"class": "steps: a", "median_error_percent": error, "inside_percent": inside}], accepted)
        assert len(problems) == found, (error, inside, problems)
    assert worse([], accepted)
    gone = [("served: DeepSeek", "the class is gone")]
    assert unsaid(gone, "Scoreboard: served: rounds are worse") and not unsaid(gone, "Scoreboard: served: DeepSeek is worse")
    good = {"source": "llama.cpp, RTX 5090 (card 1), (someone/project), (2025-07)", "date": "2026-08", "version": "build 1"}
    assert not labels([good]) and labels([{**good, "source": "RTX 5090 (some-one)"}]) and labels([{**good, "date": ""}])
    return []


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "scripts/results/scoreboard.py", folder], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"scripts/results/scoreboard.py: exit code {done.returncode}: {done.stderr}")
        made = rows_of(Path(folder) / "classes.csv")
        problems = whole(Path(folder)) + labels(rows_of(Path(folder) / "rows.csv"))
        problems += [f"{RECORD / name} is not what scripts/results/scoreboard.py makes of the other tables" for name in ("rows.csv", "classes.csv", "classes.md", "left_out.md", "peers.md", "peers_stated.md",
                     "scoreboard.json")
                    if (Path(folder) / name).read_bytes() != (RECORD / name).read_bytes()]
    if "--accept" in sys.argv[1:]:
        changelog = Path("CHANGELOG.md").read_text()
        silent = unsaid(worse(made, rows_of(ACCEPTED)), changelog) if ACCEPTED.exists() else []
        if silent:
            sys.exit("\n".join(told(silent)))
        with open(ACCEPTED, "w", newline="") as file:
            write = csv.DictWriter(file, ["class", "median_error_percent", "inside_percent"], extrasaction="ignore", lineterminator="\n")
            write.writeheader()
            write.writerows(made)
        return 0
    problems += self_test() + told(worse(made, rows_of(ACCEPTED)))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
