#!/usr/bin/python3
"""Draws what specsim choose --out DIR wrote: choices.png, cost per million output tokens (or joules per token where no price is known)
against time per output token, with the settings that no other betters.

usage: scripts/plots/plot_choose.py DIR
"""
from pathlib import Path

from plot_style import BadInput, COLOURS, main, plt, read, save  # first: it finds matplotlib

NUMBERS = ("mean_tpot_ms", "dollars_per_million_tokens", "dollars_per_million_tokens_low", "dollars_per_million_tokens_high", "joules_per_token",
           "joules_per_token_low", "joules_per_token_high", "tokens_per_second_per_gpu", "pareto")


def label(row):
    gpus = int(row["tensor_parallel"]) * int(row["replicas"])
    draft = row["draft"] if row["draft"] == "no speculation" else f"{row['draft']}, K={float(row['draft_length']):.0f}"
    return f"{gpus} {row['hardware']}{' ' + row['dtype'] if row['dtype'] else ''}: {draft}"


def draw(folder):
    folder = Path(folder)
    rows = [row for row in read(folder / "choices.csv", numbers=NUMBERS) if row["outcome"] == "kept"]
    if not rows:
        raise BadInput(folder / "choices.csv", "no setting that keeps the SLO", "one at least")
    priced = all(row["dollars_per_million_tokens"] == row["dollars_per_million_tokens"] for row in rows)
    figure_of = "dollars_per_million_tokens" if priced else "joules_per_token"
    figure, axes = plt.subplots(figsize=(8.4, 4.8))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(sorted({row["hardware"] for row in rows}))}
    for name, colour in colours.items():
        own = [row for row in rows if row["hardware"] == name]
        values = [row[figure_of] for row in own]
        errors = [[value - row[f"{figure_of}_low"] for value, row in zip(values, own)], [row[f"{figure_of}_high"] - value for value, row in zip(values, own)]]
        axes.errorbar([row["mean_tpot_ms"] for row in own], values, yerr=errors, fmt="o", markersize=4, capsize=2, linewidth=0.8, color=colour, label=name)
    front = sorted((row for row in rows if row["pareto"] == 1), key=lambda row: row["mean_tpot_ms"])
    axes.plot([row["mean_tpot_ms"] for row in front], [row[figure_of] for row in front], "--", color="#888888", linewidth=0.9, label="no other is better in both")
    for row in front:
        axes.annotate(label(row), (row["mean_tpot_ms"], row[figure_of]), xytext=(5, -9), textcoords="offset points", fontsize=7)
    axes.set(xlabel="time per output token, ms (mean)", ylabel="$ per million output tokens" if priced else "joules per output token")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right", fontsize=8)
    save(figure, folder / "choices.png", bbox_inches="tight")


if __name__ == "__main__":
    main(draw, __doc__)
