#!/usr/bin/python3
"""Draws measurements on a GPU and specsim's estimates: the folder of scripts/gpu/gpu_calibrate and scripts/gpu/gpu_latencies.py.

    scripts/plots/plot_gpu.py results/gpu/h200-sxm    writes gpu.png there
"""
from pathlib import Path

import plot_style as style
from plot_style import plt

KERNELS = {  # names of kernels in the tables of attention, and in the legend
    "FlashAttention 2 varlen": "FlashAttention 2, reads all keys per block", "FlashAttention 2 dense": "FlashAttention 2, heads separate",
    "cuDNN": "cuDNN", "FlashAttention 2 dense, heads packed": "FlashAttention 2, heads packed", "FlashAttention 3 decode": "FlashAttention 3"}


def attention(axis, folder):
    rows = [row for table in ("attention.csv", "attention_fa3.csv") if (folder / "kernels" / table).exists()
            for row in style.read(folder / "kernels" / table)]
    rows = [row for row in rows if (row["heads"], row["kv_heads"], row["head_dim"], row["batch"], row["context"]) == (32, 8, 128, 1, 32768)]
    for colour, (kernel, name) in zip(style.COLOURS, KERNELS.items()):
        own = [row for row in rows if row["kernel"] == kernel]
        axis.plot([row["tokens"] for row in own], [row["us"] for row in own], "o-", markersize=3, color=colour, label=name)
    axis.set(title="attention over 32,768 keys, one sequence\n(32 heads on 8, of 128)", xlabel="tokens verified", ylabel="us per layer",
             xscale="log", yscale="log", ylim=(20, 12000))
    axis.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"], minor=False)
    axis.minorticks_off()
    axis.legend(loc="upper left", fontsize=7.5)


def steps(axis, folder):
    measured = [row for row in style.read(folder / "kernels/steps.csv") if row["model"] == "llama-3.1-8b"]
    priced = {(row["batch"], row["tokens"], row["context"]): row["priced_ms"] for row in style.read(folder / "prices.csv")
              if row["who"] == "PyTorch" and row["model"] == "llama-3.1-8b"}
    for colour, (batch, context) in zip(style.COLOURS, ((1, 2048), (1, 32768), (16, 2048), (16, 8192), (64, 2048))):
        own = [row for row in measured if (row["batch"], row["context"]) == (batch, context)]
        x = sorted({row["new_tokens"] for row in own})
        axis.plot(x, [min(row["ms"] for row in own if row["new_tokens"] == tokens) for tokens in x], "o", markersize=4, color=colour)
        axis.plot(x, [priced[batch, tokens, context] for tokens in x], color=colour, label=f"batch {batch}, {context:,} keys")
    axis.set(title="a captured step of Llama-3.1-8B\n(marks: measured; lines: estimated)", xlabel="tokens of each sequence", ylabel="ms", ylim=(0, None))
    axis.legend(fontsize=7.5)


def passes(axis, folder):
    rows = style.read(folder / "prices.csv")
    for colour, who, name in zip(style.COLOURS, ("PyTorch", "specsim", "transformers"), ("PyTorch's kernels, captured", "this project's kernels",
                                                                                      "transformers, eager")):
        own = [row for row in rows if row["who"] == who and row["tokens"] == 1]
        axis.plot([row["measured_ms"] for row in own], [row["priced_ms"] for row in own], "o", markersize=3.5, color=colour, label=name)
    ends = [0.8, 40]
    axis.plot(ends, ends, color="#444444", linewidth=0.9)
    axis.set(title="passes over one token per sequence,\nevery model, batch and context", xlabel="measured, ms", ylabel="estimated, ms", xscale="log",
             yscale="log", xlim=ends, ylim=ends)
    axis.legend(fontsize=7.5)


def draw(folder):
    folder = Path(folder)
    figure, axes = plt.subplots(1, 3, figsize=(12.4, 4.2))
    attention(axes[0], folder)
    steps(axes[1], folder)
    passes(axes[2], folder)
    style.save(figure, folder / "gpu.png")


if __name__ == "__main__":
    style.main(draw, __doc__)
