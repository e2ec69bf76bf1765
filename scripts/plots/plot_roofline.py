#!/usr/bin/python3
"""Measured and predicted passes over tokens: roofline.png next to DIR/roofline.csv.

usage: scripts/plots/plot_roofline.py DIR
"""
from pathlib import Path

from plot_style import COLOURS, main, plt, read, save

PANELS = [("A100 80GB", [("a100-80gb-sxm", "llama-2-7b", 1, "products"), ("a100-80gb-sxm", "llama-3-8b", 1, "products"), ("a100-80gb-sxm", "llama-2-70b", 8, "products")]),
          ("H100", [("h100-sxm", "llama-2-7b", 1, "products"), ("h100-sxm", "internlm-20b", 1, "products"), ("h100-sxm", "qwen-72b", 8, "products")]),
          ("RTX 4090", [("rtx-4090", "llama-3.1-8b", 1, "products"), ("rtx-4090", "llama-3.1-8b", 1, "pass")])]


def draw(folder):
    folder = Path(folder)
    rows = read(folder / "roofline.csv")
    figure, ((*axes, ), (*errors, )) = plt.subplots(2, 3, figsize=(11, 6.6), sharex=True, height_ratios=[1.35, 1])
    for axis, below, (title, sets) in zip(axes, errors, PANELS):
        for colour, key in zip(COLOURS, sets):
            own = sorted((row for row in rows if (row["gpu"], row["model"], row["tp"], row["work"]) == key), key=lambda row: row["tokens"])
            seen = {row["in_fit"] for row in own}
            name = f"{key[1]}{f' x {key[2]:g}' if key[2] > 1 else ''}{', whole pass' if key[3] == 'pass' else ''}"
            label = f"{name} ({'fitted' if seen == {1.0} else 'unseen' if seen == {0.0} else 'a third fitted'})"
            x = [row["tokens"] for row in own]
            axis.plot(x, [row["predicted_ratio"] for row in own], color=colour, label=label)
            axis.plot(x, [row["measured_ratio"] for row in own], "o", color=colour, markersize=3.4)
        gpu = sets[0][0]
        for kind, colour, label in ((1.0, "#bbbbbb", "seen by the fit"), (0.0, COLOURS[0], "not seen by the fit")):
            own = [row for row in rows if row["gpu"] == gpu and row["in_fit"] == kind and row["work"] != "products_unfused"]
            below.plot([row["tokens"] for row in own], [row["error_percent"] for row in own], "o", color=colour, markersize=2.2, label=label)
        for low, high, limit in ((1, 128, 10), (128, 512, 17)):
            for sign in (-1, 1):
                below.plot([low, high], [sign * limit, sign * limit], color="#222222", linestyle="--", linewidth=0.9,
                           label="goal: 10 % to 128 tokens, 17 % to 512" if (low, sign) == (1, 1) else None)
        axis.set(title=f"{title}: time over that of one token", xscale="log", ylim=(0.8, 4.2))
        axis.legend(loc="upper left", fontsize=7.5)
        below.set(title=f"{title}: estimated over measured, all rows", xlabel="tokens of the pass", ylim=(-31, 26))
        below.set_xticks([1, 4, 16, 64, 128, 512], ["1", "4", "16", "64", "128", "512"])
        below.minorticks_off()
    errors[0].legend(loc="lower left", fontsize=7.5)
    axes[0].set_ylabel("points: published measurements; lines: estimated")
    errors[0].set_ylabel("error, %")
    figure.suptitle("matrix products of a pass as the roofline estimates them, compared with published kernel times", x=0.01, ha="left", fontsize=10.5)
    save(figure, folder / "roofline.png")


if __name__ == "__main__":
    main(draw, __doc__)
