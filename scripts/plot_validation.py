#!/usr/bin/python3
"""Predictions against real runs: the validation.csv of `specsim validate` or of `specsim calibrate --device cuda`.

    scripts/plot_validation.py DIR    writes DIR/validation.png
"""
import math
import sys
from pathlib import Path

import plot_style as style
from plot_style import plt


def main():
    directory = Path(sys.argv[1])
    rows = [{name: math.nan if value is None else value for name, value in row.items()} for row in style.read(directory / "validation.csv")]
    figure, (speed, length, timing) = plt.subplots(1, 3, figsize=(11.5, 3.9))
    temperatures = sorted({row["temperature"] for row in rows})
    for colour, temperature in zip(style.COLOURS, temperatures):
        for batch, marker in zip(sorted({row["batch"] for row in rows}), "os^v"):
            own = [row for row in rows if row["temperature"] == temperature and row["batch"] == batch]
            label = f"temperature {temperature:g}, batch {batch:g}"
            speed.plot([row["draft_length"] for row in own], [row["speedup"] for row in own], marker, color=colour, markersize=4, label=label)
            speed.plot([row["draft_length"] for row in own], [row["predicted_speedup"] for row in own], "-" if marker == "o" else "--", color=colour)
            timing.plot([row["draft_length"] for row in own], [100 * row["timing_error"] for row in own], marker, color=colour, markersize=4)
        own = [row for row in rows if row["temperature"] == temperature and row["batch"] == rows[0]["batch"]]
        x = [row["draft_length"] for row in own]
        style.points(length, x, [row["tokens_per_round"] for row in own], [row["tokens_per_round_se"] for row in own], colour, f"temperature {temperature:g}")
        length.plot(x, [row["predicted_tokens_per_round"] for row in own], color=colour)
        length.plot(x, [row["iid_tokens_per_round"] for row in own], color=colour, linestyle=":")
    speed.set(title="speedup: measured (marks), predicted (lines)", xlabel="draft length", ylabel="speedup")
    speed.legend(fontsize=7)
    length.set(title="tokens per round of held-out prompts\nlines: other prompts' trace; dotted: one alpha", xlabel="draft length", ylabel="tokens per round")
    length.legend()
    timing.axhline(0, color="#444444", linewidth=0.8)
    timing.set(title="time of a run given its accepted counts", xlabel="draft length", ylabel="predicted / measured - 1, %")
    style.save(figure, directory / "validation.png")


main()
