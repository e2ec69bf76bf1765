#!/usr/bin/python3
"""Draws estimates and measurements of kernels: ratios.png, attention.png and published.png in DIR.

usage: scripts/plots/plot_fidelity.py DIR    (from the repository's root; DIR holds what scripts/results/fidelity.py wrote)
"""
from pathlib import Path

from plot_style import COLOURS, main, plt, read, save

PUBLISHED = Path("results/roofline/published_speedups.csv")
GPUS = [("a100-80gb-sxm", "A100"), ("h100-sxm", "H100"), ("h200-sxm", "H200"), ("b200", "B200"), ("l40s", "L40S")]
# GPU, kernel begins with, tokens that are shown
PANELS = [("rtx-4090", "RTX 4090: FlashAttention 2", "vLLM 0.19", (1, 16, 128, 512)), ("rtx-3090", "RTX 3090: FlashAttention 2", "FA2", (1, 8)),
          ("rtx-pro-6000", "RTX PRO 6000: FlashAttention 2", "vLLM 0.19", (1, 16, 128, 512))]


def ratios(folder):
    rows = read(folder / "ratios.csv")
    types = sorted({row["dtype"] for row in rows})
    figure, axes = plt.subplots(1, len(GPUS), figsize=(13, 3.4), sharey=True)
    for axis, (gpu, title) in zip(axes, GPUS):
        for dtype in types:
            own = sorted((row for row in rows if row["gpu"] == gpu and row["dtype"] == dtype), key=lambda row: row["rows"])
            colour = COLOURS[types.index(dtype) % len(COLOURS)]
            x = [row["rows"] for row in own]
            if dtype == "bfloat16":
                axis.fill_between(x, [row["low_ratio"] for row in own], [row["high_ratio"] for row in own], color=colour, alpha=0.18, linewidth=0)
            if own:
                axis.plot(x, [row["median_ratio"] for row in own], color=colour, label=dtype)
        axis.set(title=title, xscale="log", xlabel="rows of the product", ylim=(0.7, 1.35))
        axis.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
        axis.minorticks_off()
        axis.axhline(1, color="#222222", linewidth=0.8)
    axes[0].set_ylabel("estimated / measured")
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels())}
    axes[1].legend(list(handles.values())[:4], list(handles)[:4], loc="upper left", fontsize=7.5)
    axes[2].legend(list(handles.values())[4:], list(handles)[4:], loc="upper left", fontsize=7.5)
    figure.suptitle("matrix products: median of the ratio by type; band: 10th to 90th percentile in bfloat16", x=0.01, ha="left", fontsize=10.5)
    save(figure, folder / "ratios.png")


def attention(folder):
    rows = read(folder / "attention.csv")
    figure, axes = plt.subplots(1, len(PANELS), figsize=(11.5, 3.8))
    for axis, (gpu, title, begins, shown) in zip(axes, PANELS):
        at = 0
        for kernel in sorted({row["kernel"] for row in rows if row["gpu"] == gpu and row["kernel"].startswith(begins)}):
            for tokens in shown:
                own = [row for row in rows if (row["gpu"], row["kernel"], row["tokens"]) == (gpu, kernel, tokens) and row["context"]]
                if not own:
                    continue
                how = ", keys split" if "split restored" in kernel or tokens == 1 else ""
                colour = COLOURS[at % len(COLOURS)]
                at += 1
                axis.plot([row["context"] for row in own], [row["priced_us"] for row in own], color=colour,
                          label=f"{tokens:g} query token{'s' if tokens > 1 else ''}{how}")
                axis.plot([row["context"] for row in own], [row["measured_us"] for row in own], "o", color=colour, markersize=3.2)
        axis.set(title=title, xscale="log", yscale="log", xlabel="cached keys")
        axis.legend(loc="upper left", fontsize=7.5)
    axes[0].set_ylabel("us per layer; points: measured, lines: estimated")
    figure.suptitle("attention of one sequence over its context, by kernel", x=0.01, ha="left", fontsize=10.5)
    save(figure, folder / "attention.png")


def published(folder):
    rows = [row for row in read(PUBLISHED) if row["quantity"] == "speedup" and row["scored"] == "yes"]
    figure, axis = plt.subplots(figsize=(5.6, 5))
    sources = sorted({row["row"].split()[0] for row in rows})
    for colour, source in zip(COLOURS, sources):
        own = [row for row in rows if row["row"].split()[0] == source]
        axis.plot([row["simulated"] for row in own], [row["published"] for row in own], "o", color=colour, markersize=5, label=source)
    low, high = 0.5, 4.4
    axis.plot([low, high], [low, high], color="#222222", linewidth=0.9)
    for factor in (0.9, 1.1):
        axis.plot([low, high], [factor * low, factor * high], color="#222222", linewidth=0.8, linestyle="--", label="10 %" if factor < 1 else None)
    axis.set(xlabel="simulated speedup", ylabel="published speedup", xlim=(low, high), ylim=(low, high), title="published speedups, tokens per round given")
    axis.legend(loc="upper left")
    save(figure, folder / "published.png")


def draw(folder):
    folder = Path(folder)
    ratios(folder)
    attention(folder)
    published(folder)


if __name__ == "__main__":
    main(draw, __doc__)
