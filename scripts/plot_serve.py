#!/usr/bin/python3
"""What specsim serve --out DIR wrote, as pictures: curve.png (latency and throughput over the load, with speculation and without),
requests.png (TTFT and TPOT of every request, and what a request's life goes to), steps.png (batch, queue, cache and draft length
over time, where there is a steps.csv).

usage: scripts/plot_serve.py DIR
"""
import sys
from pathlib import Path

from plot_style import COLOURS, config_of, cost_in_words, plt, read, save

PLAIN, SPECULATIVE = COLOURS[7], COLOURS[0]
CAUSES = {"frontend": "frontend", "queue": "in the queue", "prefill": "prompt", "decode": "target's passes", "draft": "draft's passes",
          "interference": "passes shared with prompts", "stalled": "not scheduled", "preempted": "preempted", "recompute": "computed again",
          "transfer": "between engines"}


def setting(folder):
    """The server and its policy, in a line."""
    config = config_of(folder)
    speculation = config["serve"].get("speculation")
    policy = speculation["policy"] if speculation else None
    drafting = ""
    if isinstance(policy, dict):
        drafting = "; " + ", ".join([policy["kind"]] + [f"{key.replace('_', ' ')} {value}" for key, value in policy.items() if key != "kind"])
    return cost_in_words(config["cost"]) + drafting


def draw_curve(folder):
    rows = read(folder / "curve.csv")
    load = "rate" if "rate" in rows[0] else "concurrency"
    label = "requests a second" if load == "rate" else "requests in flight"
    panels = (("mean_ttft_ms", "p99_ttft_ms", "TTFT, ms"), ("mean_tpot_ms", "p99_tpot_ms", "TPOT, ms"), ("output_throughput", None, "output tokens a second"))
    figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.9))
    for panel, (mean, tail, title) in zip(axes, panels):
        for speculative, colour, name in ((0, PLAIN, "plain"), (1, SPECULATIVE, "with speculation")):
            own = [row for row in rows if row["speculative"] == speculative]
            if not own:
                continue
            x = [row[load] for row in own]
            error = [row.get(f"{mean}_half_width") or 0 for row in own]
            panel.errorbar(x, [row[mean] for row in own], yerr=error, fmt="o-", markersize=3.5, color=colour, label=name + (", mean" if tail else ""))
            if tail:
                panel.plot(x, [row[tail] for row in own], "--", color=colour, label=name + ", p99")
        panel.set(xlabel=label, title=title)
        if mean == "mean_ttft_ms":
            panel.set_yscale("log")
            lowest = min(row[mean] for row in rows)
            panel.set_ylim(bottom=0.5 * lowest)
        if load == "concurrency":
            panel.set_xscale("log", base=2)
    axes[0].legend()
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "curve.png")


def draw_requests(folder):
    rows = [row for row in read(folder / "requests.csv") if row["finished"] == 1]
    if not rows:
        return
    figure, axes = plt.subplots(1, 3, figsize=(11.4, 3.9))
    ttft = sorted(1e3 * (row["first_token_s"] - row["arrival_s"]) for row in rows)
    tpot = sorted(1e3 * (row["last_token_s"] - row["first_token_s"]) / (row["output_tokens"] - 1) for row in rows if row["output_tokens"] > 1)
    for panel, values, title in ((axes[0], ttft, "TTFT, ms"), (axes[1], tpot, "TPOT, ms")):
        if not values:
            continue
        panel.plot(values, [100 * (i + 1) / len(values) for i in range(len(values))], color=SPECULATIVE, drawstyle="steps-post")
        panel.set(xlabel=title, title=f"share of requests below, % ({title.split(',')[0]})")
        if values[-1] > 20 * max(values[0], 1e-9):
            panel.set_xscale("log")
    left = 0.0
    for (cause, name), colour in zip(CAUSES.items(), COLOURS + ["#bbbbbb", "#dddddd"]):
        mean = sum(row.get(f"{cause}_s", 0.0) for row in rows) / len(rows)
        if mean > 0:
            axes[2].barh([name], [mean], left=[left], color=colour)
            left += mean
    axes[2].invert_yaxis()
    axes[2].set(xlabel="seconds, mean over requests", title="what a request's life goes to")
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "requests.png")


def draw_steps(folder):
    rows = [row for row in read(folder / "steps.csv") if row["replica"] == 0]
    time = [row["start_s"] for row in rows]
    figure, axes = plt.subplots(4, 1, figsize=(9.5, 7.5), sharex=True)
    panels = (("requests", "requests in a step"), ("waiting", "requests waiting"), ("free_blocks", "free blocks of the cache"), ("draft_length", "draft length"))
    for panel, (column, title) in zip(axes, panels):
        panel.plot(time, [row[column] for row in rows], color=SPECULATIVE, linewidth=0.8, drawstyle="steps-post")
        panel.set(title=title)
        panel.set_ylim(bottom=0)
    axes[-1].set(xlabel="seconds")
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "steps.png")


def draw(folder):
    folder = Path(folder)
    for name, how in (("curve.csv", draw_curve), ("requests.csv", draw_requests), ("steps.csv", draw_steps)):
        if (folder / name).is_file():
            how(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    draw(sys.argv[1])
