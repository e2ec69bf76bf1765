#!/usr/bin/python3
"""Speedup by method and batch: methods.png beside DIR/methods.csv.

usage: scripts/plot_methods.py DIR
"""
import csv
import sys
from pathlib import Path

from plot_style import COLOURS, plt, save

BATCHES = [1, 8, 32]


def draw(folder):
    with open(Path(folder) / "methods.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["speedup_batch_1"]]
    figure, axes = plt.subplots(figsize=(9.2, 0.24 * len(rows) + 1.2))
    for at, row in enumerate(rows):
        for batch, colour in zip(BATCHES, COLOURS):
            axes.plot(float(row[f"speedup_batch_{batch}"]), at, "o", markersize=4.2, color=colour, label=f"batch {batch}" if at == 0 else None)
    axes.axvline(1, color="#888888", linewidth=0.8)
    names = [f"{row['config']}: {row['policy'] or row['verifier']}, {row['drafter']}" for row in rows]
    names = [f"{name}, cell {row['cell']}" if names.count(name) > 1 else name for name, row in zip(names, rows)]
    axes.set_yticks(range(len(rows)), [name if len(name) < 88 else name[:86] + ".." for name in names], fontsize=7)
    axes.invert_yaxis()
    axes.margins(y=0.02)
    axes.set(xlabel="speedup over plain decoding")
    figure.suptitle("llama-3.1-8b on an H100, context 1,024; distributions are the same within a config, not between", fontsize=10.5)
    axes.legend(loc="lower right")
    save(figure, Path(folder) / "methods.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    draw(sys.argv[1])
