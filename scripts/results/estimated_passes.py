"""Asks `specsim pass` for single passes, once each, for the scripts that compare its estimates with published figures."""
import csv
import io
import subprocess
import sys
from pathlib import Path

import yaml

ENGINES = Path("configs/engines")
kept = {}


def engine_figure(name, key, otherwise):
    """A value of an engine's file, or of the file that it is based on."""
    engine = yaml.safe_load((ENGINES / f"{name}.yaml").read_text())
    return engine[key] if key in engine else engine_figure(engine["preset"], key, otherwise) if "preset" in engine else otherwise


def pass_of(specsim, arguments, row):
    """The output line for the pass that `arguments` describe; ends the program if it is refused, with the name of the row."""
    key = tuple(arguments)
    if key not in kept:
        done = subprocess.run([specsim, "pass", "--csv", *key], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{row}: {done.stderr}")
        kept[key] = next(csv.DictReader(io.StringIO(done.stdout)))
    return kept[key]


def total_ms(specsim, arguments, row):
    return float(pass_of(specsim, arguments, row)["total_ms"])
