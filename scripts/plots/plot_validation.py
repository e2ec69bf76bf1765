#!/usr/bin/python3
"""Draws predictions and real runs: the validation.csv of `specsim validate` or of `specsim calibrate --device cuda`.

    scripts/plots/plot_validation.py DIR    writes DIR/validation.png
"""
from pathlib import Path

import plot_style as style
from plot_style import plt  # first: it finds matplotlib
from matplotlib.lines import Line2D


MARKERS = "os^v"
FIGURES = ("speedup", "predicted_speedup", "timing_error", "tokens_per_round", "tokens_per_round_se", "predicted_tokens_per_round", "iid_tokens_per_round")


def draw(directory):
    directory = Path(directory)
    rows = style.read(directory / "validation.csv", numbers=("temperature", "batch", "draft_length"), maybe=FIGURES, some=True)
    for row in rows:
        row.update({name: style.known(row[name]) for name in FIGURES})
    figure, (speed, length, timing) = plt.subplots(1, 3, figsize=(11.8, 4.4))
    figure.set_constrained_layout_pads(wspace=0.05)
    temperatures = sorted({row["temperature"] for row in rows})
    batches = sorted({row["batch"] for row in rows})
    for colour, temperature in zip(style.COLOURS, temperatures):
        for batch, marker in zip(batches, MARKERS):
            own = [row for row in rows if row["temperature"] == temperature and row["batch"] == batch]
            x = [row["draft_length"] for row in own]
            speed.plot(x, [row["speedup"] for row in own], marker, color=colour, markersize=4)
            speed.plot(x, [row["predicted_speedup"] for row in own], "-" if batch == batches[0] else "--", color=colour)
            timing.plot(x, [100 * row["timing_error"] for row in own], marker, color=colour, markersize=4)
        own = [row for row in rows if row["temperature"] == temperature and row["batch"] == batches[0]]
        x = [row["draft_length"] for row in own]
        style.points(length, x, [row["tokens_per_round"] for row in own], [row["tokens_per_round_se"] for row in own], colour)
        length.plot(x, [row["predicted_tokens_per_round"] for row in own], color=colour)
        length.plot(x, [row["iid_tokens_per_round"] for row in own], color=colour, linestyle=":")
    speed.set(title="speedup", xlabel="draft length", ylabel="marks: measured; lines: predicted")
    length.set(title="tokens per round of held-out prompts (95 %)", xlabel="draft length", ylabel="tokens per round")
    length.legend([Line2D([], [], color="#444444"), Line2D([], [], color="#444444", linestyle=":")], ["by the trace of other prompts", "by one alpha of that trace"], loc="upper left")
    errors = [100 * row["timing_error"] for row in rows]
    mean = sum(errors) / len(errors)
    timing.axhline(0, color="#444444", linewidth=0.9)
    timing.axhline(mean, color="#444444", linewidth=0.9, linestyle="--")
    timing.set(title=f"time of a run, given its accepted counts\n(dashed: the mean, {mean:+.1f} %)", xlabel="draft length", ylabel="predicted over measured, %")
    handles = [Line2D([], [], marker="o", linestyle="none", color=colour) for colour, _ in zip(style.COLOURS, temperatures)]
    handles += [Line2D([], [], marker=marker, linestyle="-" if batch == batches[0] else "--", color="#444444") for batch, marker in zip(batches, MARKERS)]
    figure.legend(handles, [f"temperature {temperature:g}" for temperature in temperatures] + [f"batch {batch:g}" for batch in batches], loc="upper center",
                  bbox_to_anchor=(0.5, 0.0), ncol=len(handles))
    style.save(figure, directory / "validation.png", bbox_inches="tight")


if __name__ == "__main__":
    style.main(draw, __doc__)
