#!/usr/bin/python3
"""Draws the results on the examined claims, from simulation, with theory lines: seven PNGs next to the CSVs in DIR.

usage: scripts/plots/plot_claims.py DIR
"""
import math
from pathlib import Path

import numpy as np
from plot_style import ACCEPTED, COLOURS, DRAFT, RESIDUAL, TARGET, main, plt, points, read, save  # first: it finds matplotlib
from matplotlib.colors import TwoSlopeNorm


ALPHA, RATIO, LENGTH = "pair.draft.value", "cost.target_to_draft_ratio", "decode.drafter.draft_length"


def column(rows, name):
    return np.array([row[name] for row in rows])


def steps(rows, name):
    return sorted({row[name] for row in rows})


def mass_decomposition(folder):
    rows = read(folder / "mass_by_token.csv")
    token = column(rows, "token")
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    accepted, residual = column(rows, "accepted_theory"), column(rows, "residual_theory")
    axes.bar(token, accepted, width=0.62, color=ACCEPTED, alpha=0.55, label="accepted, min(target, draft)")
    axes.bar(token, residual, width=0.62, bottom=accepted, color=RESIDUAL, alpha=0.55, label="residual, max(0, target - draft)")
    axes.hlines(column(rows, "target"), token - 0.4, token + 0.4, color=TARGET, linewidth=1.8, label="target")
    axes.hlines(column(rows, "draft"), token - 0.4, token + 0.4, color=DRAFT, linewidth=1.8, linestyle=(0, (3, 1.2)), label="draft")
    points(axes, token - 0.12, column(rows, "accepted"), column(rows, "accepted_se"), "#003d66", "accepted, simulated", size=4.5)
    points(axes, token + 0.12, column(rows, "emitted"), column(rows, "emitted_se"), "black", "emitted, simulated", size=4.5)
    axes.set(xlabel="token", ylabel="probability", xticks=token, title=f"one pair of distributions: accepted {accepted.sum():.2f} + residual {residual.sum():.2f} = target")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper right", ncols=2)
    save(figure, folder / "mass_decomposition.png")


def geometric(alpha, length):
    """Tokens per round where every position accepts with alpha, independently (Leviathan et al., equation 1)."""
    return sum(alpha ** i for i in range(int(length) + 1))


FINE = np.linspace(0, 0.99, 400)


def tokens_per_round(folder):
    rows = read(folder / "data_tokens_per_round.csv")
    figure, axes = plt.subplots()
    for length, colour in zip(steps(rows, LENGTH)[::-1], COLOURS):
        own = [row for row in rows if row[LENGTH] == length]
        axes.plot(FINE, geometric(FINE, length), color=colour)
        points(axes, column(own, ALPHA), column(own, "tokens_per_round"), column(own, "tokens_per_round_se"), colour, f"draft length {length:.0f}")
    top = max(row["tokens_per_round"] for row in rows)
    axes.set(xlabel="alpha", ylabel="tokens per round", title="tokens per round (line: theory, points: simulated, 95 %)", xlim=(0, 1), ylim=(0.8, 1.25 * top))
    axes.legend(loc="upper left")
    save(figure, folder / "tokens_per_round.png")


def speedup_by_cost(folder):
    rows = read(folder / "data_speedup_by_cost.csv")
    figure, axes = plt.subplots()
    axes.axhline(1, color="#888888", linewidth=0.9)
    for ratio, colour in zip(steps(rows, RATIO)[::-1], COLOURS):
        own = [row for row in rows if row[RATIO] == ratio]
        theory = geometric(FINE, 5) / (1 + 5 / ratio)
        axes.plot(FINE, theory, color=colour)
        even = np.interp(1.0, theory, FINE)
        marked = theory.min() < 1 < theory.max()
        points(axes, column(own, ALPHA), column(own, "speedup"), column(own, "speedup_se"), colour,
               f"target = {ratio:.0f} draft passes" + (f", break-even {even:.2f}" if marked else ""))
        if marked:
            axes.plot([even], [1], marker="D", color="white", markeredgecolor=colour, markersize=7, markeredgewidth=1.5, zorder=5)
    axes.set(xlabel="alpha", ylabel="speedup", title="speedup at draft length 5 (diamonds: break-even)", xlim=(0, 1), ylim=(0, None))
    axes.legend(loc="upper left")
    save(figure, folder / "speedup_by_cost.png")


def speedup_by_length(folder):
    rows = [row for row in read(folder / "data_best_length.csv") if row[RATIO] == 20]
    figure, axes = plt.subplots()
    axes.axhline(1, color="#888888", linewidth=0.9)
    for alpha, colour in zip(steps(rows, ALPHA)[::-1], COLOURS):
        own = [row for row in rows if row[ALPHA] == alpha]
        best = max(own, key=lambda row: row["speedup"])
        axes.plot(column(own, LENGTH), column(own, "speedup_theory"), color=colour)
        points(axes, column(own, LENGTH), column(own, "speedup"), column(own, "speedup_se"), colour, f"alpha {alpha:g}: best at {best[LENGTH]:.0f}")
        axes.plot([best[LENGTH]], [best["speedup"]], marker="o", markersize=8.5, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=1.5)
    axes.set(xlabel="draft length", ylabel="speedup", title="speedup, target = 20 draft passes (rings: best)", xticks=range(0, 25, 4), ylim=(0, 6))
    axes.legend(loc="upper left", ncols=2)
    save(figure, folder / "speedup_by_length.png")


def alpha_over_kl(folder):
    rows = read(folder / "data_kl_and_alpha.csv")
    kl = column(rows, "kl")
    figure, axes = plt.subplots()
    line = np.linspace(1e-9, 1.08 * kl.max(), 400)
    pinsker, bretagnolle = 1 - np.sqrt(line / 2), 1 - np.sqrt(1 - np.exp(-line))
    bottom = 0.05 * math.floor(20 * min(pinsker[-1], column(rows, "alpha").min()))
    axes.fill_between(line, 0, np.maximum(pinsker, bretagnolle), color="#eeeeee", linewidth=0)
    axes.text(0.1 * kl.max(), bottom + 0.1 * (1 - bottom), "no pair can lie here", color="#777777")
    axes.plot(line, pinsker, color=COLOURS[1], label="Pinsker: 1 - sqrt(KL / 2)")
    axes.plot(line, bretagnolle, color=COLOURS[2], linestyle="--", label="Bretagnolle-Huber: 1 - sqrt(1 - exp(-KL))")
    points(axes, kl, column(rows, "alpha"), column(rows, "alpha_se"), COLOURS[0], f"{len(rows)} random pairs over 20 tokens, simulated", size=2.8)
    axes.set(xlabel="KL(target || draft), nats", ylabel="alpha", xlim=(0, line[-1]), ylim=(bottom, 1.01), title="acceptance against divergence")
    axes.legend(loc="upper right")
    save(figure, folder / "alpha_over_kl.png")


def landscape(folder):
    right, wrong = read(folder / "data_landscape.csv"), read(folder / "data_landscape_plus_one.csv")
    alphas, lengths = steps(right, ALPHA), steps(right, LENGTH)
    def grid(rows, name):
        at = {(row[LENGTH], row[ALPHA]): row[name] for row in rows}
        return np.array([[at[k, a] for a in alphas] for k in lengths])
    simulated, text = grid(right, "speedup"), grid(wrong, "speedup_theory")
    ridge = lambda z: [lengths[i] for i in z.argmax(axis=0)]
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.3), sharey=True)
    step = (alphas[1] - alphas[0]) / 2
    extent = (alphas[0] - step, alphas[-1] + step, lengths[0] - 0.5, lengths[-1] + 0.5)
    titles = ("simulated speedup, cost ratio 0.1", "what the text's formula adds to it")
    for axes, z, title, norm, colours in zip(panels, (simulated, text - simulated), titles, (TwoSlopeNorm(1.0, 0.3, simulated.max()), None), ("RdBu", "OrRd")):
        image = axes.imshow(z, origin="lower", aspect="auto", extent=extent, norm=norm, cmap=colours)
        bar = figure.colorbar(image, ax=axes, pad=0.02)
        bar.ax.set_title("speedup" if axes is panels[0] else "excess", fontsize=8.5, loc="left")
        if axes is panels[0]:
            bar.set_ticks([0.4, 0.6, 0.8, 1, 2, 3, 4])
        axes.set(xlabel="alpha", title=title)
        axes.grid(visible=False)
    contour = panels[0].contour(alphas, lengths, simulated, levels=[0.5, 1, 1.5, 2, 3], colors="black", linewidths=[0.6, 1.4, 0.6, 0.6, 0.6])
    panels[0].clabel(contour, fmt="%g", fontsize=8)
    for axes in panels:
        axes.plot(alphas, ridge(simulated), "o-", color="#f0c000", markeredgecolor="black", markeredgewidth=0.5, markersize=5, label="best draft length, simulated")
    panels[1].plot(alphas, ridge(text), "x--", color="black", markersize=5, linewidth=0.9, label="best by the text's formula")
    panels[0].set_ylabel("draft length")
    for axes in panels:
        axes.legend(loc="upper left", frameon=True, framealpha=0.85)
    save(figure, folder / "landscape.png")


def l1_to_target(folder):
    rows = read(folder / "unbiasedness.csv")
    rounds = column(rows, "rounds")
    figure, axes = plt.subplots()
    axes.fill_between(rounds, column(rows, "l1_min"), column(rows, "l1_max"), color=COLOURS[0], alpha=0.13, linewidth=0, label=f"least to most of {rows[0]['seeds']:.0f} seeds")
    axes.plot(rounds, column(rows, "l1_expected"), color=COLOURS[1], label="expected of samples of the target")
    points(axes, rounds, column(rows, "l1"), column(rows, "l1_se"), COLOURS[0], "mean, simulated, 95 %", size=4.5)
    axes.set(xlabel="rounds", ylabel="L1(emitted tokens, target)", xscale="log", yscale="log", title="the emitted text approaches the target, uniform distribution over 8 tokens")
    axes.set_xticks(rounds, [f"{r:,.0f}" for r in rounds])
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    save(figure, folder / "l1_to_target.png")


def draw(folder):
    for picture in (mass_decomposition, tokens_per_round, speedup_by_cost, speedup_by_length, alpha_over_kl, landscape, l1_to_target):
        picture(Path(folder))


if __name__ == "__main__":
    main(draw, __doc__)
