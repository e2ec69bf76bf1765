"""Runs the program for scripts: returns its output, or ends the script if it fails."""
import csv
import io
import subprocess
import sys
from pathlib import Path


def called(specsim, *arguments):
    words = [str(argument) for argument in arguments]
    done = subprocess.run([specsim, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).stem}: specsim {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def printed_rows(specsim, *arguments):
    """The rows of a table that the program prints as CSV."""
    return list(csv.DictReader(io.StringIO(called(specsim, *arguments))))


def version_of(specsim):
    return called(specsim, "--version").strip()
