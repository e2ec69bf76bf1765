#!/usr/bin/python3
"""Every committed picture equals its script's drawing of the tables next to it, pixel by pixel, and every picture has its script.

Runs at the root of the repository. Pictures depend on the version of matplotlib. With another version than that of the committed pictures
(Debian 12's), as many pixels may differ as moved text causes, so a picture of other data may pass. The map of rooms is compared if
Graphviz is installed.
"""
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

sys.path[:0] = ["scripts/plots", "scripts/dev"]
import matplotlib  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.image import imread  # noqa: E402

DREW = "3.6"  # matplotlib of the committed pictures
# Script (without plot_), and the folders that it draws in.
DRAWN = {
    "batches": ["results/eagle_70b"], "claims": ["results/claims"], "methods": ["results/methods"], "plan": ["results/plan"],
    "compare": [f"results/method_claims/{name}" for name in ("adaptive", "trees", "variants")], "published": ["results/published"], "fidelity": ["results/fidelity"],
    "quickstart": ["results/quickstart"], "roofline": ["results/roofline"], "rooms": ["docs/development"],
    "serve": ["results/chat/curve", "results/chat/run"],
    "serving": ["results/serving"], "tune": ["results/tune"], "scoreboard": ["results/scoreboard"], "timing_claims": ["results/timing_claims"],
    "validation": ["results/validation/novels", "results/gpu/h200-sxm/enlarged"], "gpu": ["results/gpu/h200-sxm"],
}
KINDS = (".png", ".svg")
SHOTS = Path("docs/explorer/pictures")  # screenshots of the page in Chromium, whose fonts differ: scripts/web --test --shots takes them

NOTEBOOK = "docs/guides/pictures/notebook_*.png"  # scripts/dev/notebook draws them when it executes the notebook; tests/slow/notebook_test.sh runs it


def pictures(folder):
    return {path.name for path in folder.iterdir() if path.suffix in KINDS}


def difference(committed, drawn):
    """The difference of two pictures in words; None if they are equal."""
    if committed.suffix == ".svg":
        return None if committed.read_text() == drawn.read_text() else "is another drawing"
    old, new = imread(committed), imread(drawn)
    if old.shape != new.shape:
        return f"has {old.shape[1]} x {old.shape[0]} pixels, redrawn {new.shape[1]} x {new.shape[0]}"
    other = (np.abs(old - new).max(axis=2) > 1 / 64).mean()
    allowed = 0 if matplotlib.__version__.startswith(DREW) else 0.05
    return f"differs in {100 * other:.3f} % of its pixels" if other > allowed else None


def main():
    problems, seen = [], set()
    for script, folders in DRAWN.items():
        if script == "rooms" and shutil.which("dot") is None:
            seen |= {Path(folders[0]) / "rooms.svg", Path(folders[0]) / "walks.svg"}
            continue
        draw = importlib.import_module(f"plot_{script}").draw
        for folder in map(Path, folders):
            with tempfile.TemporaryDirectory() as scratch:
                copy = Path(scratch) / folder.name
                shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.png", "*.svg", "*.jsonl", "*.md"))
                draw(copy)
                drawn = pictures(copy)
                for name in sorted(drawn | pictures(folder)):
                    seen.add(folder / name)
                    if name not in drawn:
                        problems.append(f"{folder / name}: plot_{script}.py draws no such picture")
                    elif not (folder / name).exists():
                        problems.append(f"{folder / name}: plot_{script}.py draws it, and it is not there")
                    elif what := difference(folder / name, copy / name):
                        problems.append(f"{folder / name} {what}: plot_{script}.py {folder} draws it from the tables as they are")
    for path in sorted([*Path("results").rglob("*"), *Path("docs").rglob("*")]):
        if path.suffix in KINDS and path not in seen and path.parent != SHOTS and not path.match(NOTEBOOK):
            problems.append(f"{path}: no script of tests/golden/pictures_test.py draws it")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(seen)} pictures, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
