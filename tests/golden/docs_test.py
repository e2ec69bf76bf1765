#!/usr/bin/python3
"""README.md and docs/ agree with the program and results/ and are plain English; their links lead somewhere; the map of rooms agrees with the
sources; files that repeat CMakeLists.txt's version agree with it; and, if mkdocs is installed, the site builds without a warning.

Runs at the root of the repository; SPECSIM names the program. scripts/update_golden.sh rewrites the pages.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = ["scripts", "scripts/dev"]
import check_includes  # noqa: E402
import plot_rooms  # noqa: E402


def passes(*command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(command)}:\n{done.stdout}{done.stderr}", file=sys.stderr)
    return done.returncode == 0


def rooms_are_named():
    """Each group and each room has its line in the tables of the architecture page, and the map has its arrows."""
    page = Path("docs/development/architecture.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", page, re.M)
    known = [*check_includes.GROUPS, *check_includes.ALLOWED]
    problems = [f"architecture.md: the tables lack {room}" for room in known if room not in named]
    problems += [f"architecture.md: {room} is no room" for room in named if room not in known]
    if plot_rooms.drawn(Path("docs/development/rooms.svg").read_text()) != set(plot_rooms.arrows()):
        problems.append("docs/development/rooms.svg is out of date: scripts/dev/plot_rooms.py docs/development redraws it")
    for problem in problems:
        print(problem, file=sys.stderr)
    return not problems


def readme_is_short():
    """README.md has one screen and a half: at most 95 lines, none longer than 160 characters."""
    lines = Path("README.md").read_text(encoding="utf-8").splitlines()
    long = [f"README.md:{number}: {len(line)} characters, allowed: at most 160" for number, line in enumerate(lines, 1) if len(line) > 160]
    if len(lines) > 95:
        long.append(f"README.md: {len(lines)} lines, allowed: at most 95")
    for problem in long:
        print(problem, file=sys.stderr)
    return not long


def versions_agree():
    """Files with the version agree with CMakeLists.txt; other tools read these files."""
    version = re.search(r"^project\(specsim VERSION ([\d.]+)", Path("CMakeLists.txt").read_text(), re.M)[1]
    places = {"CITATION.cff": r"^version: ([\d.]+)", "CHANGELOG.md": r"^## ([\d.]+)"}
    other = {name: re.search(pattern, Path(name).read_text(), re.M)[1] for name, pattern in places.items()}
    for name, found in other.items():
        if found != version:
            print(f"{name}: version {found}, CMakeLists.txt has {version}", file=sys.stderr)
    return all(found == version for found in other.values())


def main():
    results = [passes("scripts/dev/docs_pages.py", "--check"), passes("scripts/dev/check_links.py", "--self-test"), passes("scripts/dev/check_links.py"),
               rooms_are_named(), readme_is_short(), versions_agree(), passes("scripts/check_prose", "--self-test"), passes("scripts/check_prose")]
    if shutil.which("mkdocs"):
        with tempfile.TemporaryDirectory() as scratch:
            results.append(passes("scripts/docs", "--no-setup", "--out", f"{scratch}/site"))
    else:
        print("mkdocs is not installed: the site was not built (scripts/docs installs it)")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
