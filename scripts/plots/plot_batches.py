#!/usr/bin/python3
"""Speedup by batch and draft length: batches.png next to the data.csv of a config that sweeps both, such as configs/examples/eagle_70b.yaml.

usage: scripts/plots/plot_batches.py DIR
"""
from pathlib import Path

from plot_style import config_of, cost_in_words, main, plt, read, save  # first: it finds matplotlib
from matplotlib.colors import TwoSlopeNorm

BATCH, LENGTH = "workload.batch", "decode.drafter.draft_length"


def draw(folder):
    folder = Path(folder)
    rows = read(folder / "data.csv")
    config = config_of(folder)
    measured = len(config["context"].get("drafts", []))
    batches, lengths = sorted({row[BATCH] for row in rows}), sorted({row[LENGTH] for row in rows})
    speedup = {(row[BATCH], row[LENGTH]): row["speedup"] for row in rows}
    top = max(speedup.values())
    figure, axes = plt.subplots(figsize=(8.2, 4.3))
    image = axes.imshow([[speedup[batch, length] for batch in batches] for length in lengths], origin="lower", aspect="auto", cmap="RdBu",
                        norm=TwoSlopeNorm(1.0, 2 - top, top))
    for x, batch in enumerate(batches):
        best = max(lengths, key=lambda length: speedup[batch, length])
        for y, length in enumerate(lengths):
            value = speedup[batch, length]
            deep = value > 1 + 0.62 * (top - 1) or value < 1 - 0.62 * (top - 1)
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=8.5, color="white" if deep else "#222222",
                      fontweight="bold" if length == best else "normal")
            if length == best:
                axes.add_patch(plt.Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, fill=False, edgecolor="black", linewidth=1.8))
    if 0 < measured < len(lengths):
        axes.axhline(measured - 0.5, color="#444444", linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(f"acceptance measured to depth {measured};\nabove, its last rate is assumed", (0, measured - 0.5), xytext=(1.015, (measured - 0.5) / len(lengths)),
                      textcoords="axes fraction", fontsize=8, color="#444444", va="bottom")
    axes.set(xlabel="batch, sequences decoded together", ylabel="draft length, tokens", xticks=range(len(batches)), xticklabels=[f"{batch:.0f}" for batch in batches],
             yticks=range(len(lengths)), yticklabels=[f"{length:.0f}" for length in lengths])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(f"Speedup over plain decoding: {cost_in_words(config['cost'])}\nframed: the best draft length of a batch; red: slower than plain decoding", fontsize=9.5)
    save(figure, folder / "batches.png")


if __name__ == "__main__":
    main(draw, __doc__)
