#!/usr/bin/python3
"""results/scoreboard agrees with the tables that it collects, and no class of it gets worse without a word in CHANGELOG.md.

scoreboard_accepted.csv has the accepted median error and share inside the 95 % interval of each class. A class may be worse by one percentage
point. Beyond that the test fails until CHANGELOG.md has a line "Scoreboard: CLASS ..." and the accepted figures are set with --accept.
"""
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

ACCEPTED = Path("tests/golden/scoreboard_accepted.csv")
RECORD = Path("results/scoreboard")
ALLOWED = 1.0  # percentage points


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def figure(text):
    return float(text) if text else None


def worse(made, accepted):
    """Problems of the classes `made` compared with the accepted ones."""
    before = {row["class"]: row for row in accepted}
    problems = [f"{name}: the class is gone" for name in before if name not in {row["class"] for row in made}]
    for row in made:
        old = before.get(row["class"])
        if old is None:
            problems.append(f"{row['class']}: a new class, run this test with --accept")
            continue
        error, inside = (figure(row[key]) for key in ("median_error_percent", "inside_percent"))
        if error > figure(old["median_error_percent"]) + ALLOWED:
            problems.append(f"{row['class']}: median error {error} %, accepted {old['median_error_percent']} %")
        if inside is not None and figure(old["inside_percent"]) is not None and inside < min(figure(old["inside_percent"]), 95.0) - ALLOWED:
            problems.append(f"{row['class']}: {inside} % inside the 95 % interval, accepted {old['inside_percent']} %")
    return [f"{problem}; write \"Scoreboard: {problem.split(': ')[0]} ...\" to CHANGELOG.md and run this test with --accept" for problem in problems]


def self_test():
    """The check finds what it is for."""
    accepted = [{"class": "steps: a", "median_error_percent": "5.0", "inside_percent": "95"}]
    for error, inside, found in (("5.9", "95", 0), ("6.1", "95", 1), ("5.0", "94", 0), ("5.0", "93", 1), ("1.0", "100", 0), ("7.0", "90", 2)):
        problems = worse([{"class": "steps: a", "median_error_percent": error, "inside_percent": inside}], accepted)
        assert len(problems) == found, (error, inside, problems)
    assert worse([], accepted)
    return []


def main():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "scripts/results/scoreboard.py", folder], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"scripts/results/scoreboard.py: exit code {done.returncode}: {done.stderr}")
        made = rows_of(Path(folder) / "classes.csv")
        problems = [f"{RECORD / name} is not what scripts/results/scoreboard.py makes of the other tables" for name in ("rows.csv", "classes.csv", "classes.md")
                    if (Path(folder) / name).read_bytes() != (RECORD / name).read_bytes()]
    if "--accept" in sys.argv[1:]:
        changelog = Path("CHANGELOG.md").read_text()
        unsaid = [problem for problem in worse(made, rows_of(ACCEPTED)) if f"Scoreboard: {problem.split(':')[0]}" not in changelog
                  and "a new class" not in problem] if ACCEPTED.exists() else []
        if unsaid:
            sys.exit("\n".join(unsaid))
        with open(ACCEPTED, "w", newline="") as file:
            write = csv.DictWriter(file, ["class", "median_error_percent", "inside_percent"], extrasaction="ignore", lineterminator="\n")
            write.writeheader()
            write.writerows(made)
        return 0
    problems += self_test() + worse(made, rows_of(ACCEPTED))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
