#!/usr/bin/python3
"""Draws the output of specsim serve --out DIR.

usage: scripts/plots/plot_serve.py DIR

  curve.png      latency, throughput and goodput over the load, with and without speculation: intervals, capacities, the end of the SLO, and
                 the points where the curves cross
  requests.png   TTFT and TPOT of every request and the parts of their means, next to those without speculation if they were simulated
  steps.png      batch, queue, cache and draft length over time, if there is a steps.csv
"""
import math
from pathlib import Path

from plot_style import BadInput, COLOURS, config_of, cost_in_words, known, main, plt, read, save  # first: it finds matplotlib
from matplotlib.lines import Line2D


FIGURES = ("mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "output_throughput", "request_goodput")
PLAIN, SPECULATIVE = COLOURS[7], COLOURS[0]
CAUSES = {"frontend": "frontend", "queue": "in the queue", "prefill": "prompt", "decode": "target's passes", "draft": "draft's passes",
          "interference": "passes shared with prompts", "stalled": "not scheduled", "preempted": "preempted", "recompute": "computed again",
          "transfer": "between engines"}


def setting(folder):
    """The server and its policy, in a line."""
    config = config_of(folder, "cost", "serve")
    speculation = config["serve"].get("speculation")
    policy = speculation["policy"] if speculation else None
    drafting = ""
    if isinstance(policy, dict):
        drafting = "; " + ", ".join([policy["kind"]] + [f"{key.replace('_', ' ')} {value}" for key, value in policy.items() if key != "kind"])
    return cost_in_words(config["cost"]) + drafting


def crossing(rows, load, figure):
    """The load of the verdict at which the two servers' curves of a quantity cross: interpolated linearly in the logarithm of the load."""
    by_load = {}
    for row in rows:
        by_load.setdefault(row[load], {})[row["speculative"]] = row[figure]
    points = [(x, math.log(both[1] / both[0])) for x, both in sorted(by_load.items()) if both.get(0) and both.get(1)]
    for (x, before), (y, behind) in zip(points, points[1:]):
        if before < 0 < behind:
            return math.exp(math.log(x) + before / (before - behind) * math.log(y / x))
    return None


def mark_limits(panel, rows, limits, load):
    """Draws the capacities and the end of the SLO, with its interval, as vertical lines; `limits`: rows of slo.csv."""
    for speculative, colour in ((0, PLAIN), (1, SPECULATIVE)):
        capacity = next((row.get("capacity") for row in rows if row["speculative"] == speculative), None)
        if capacity:
            panel.axvline(capacity, color=colour, linestyle=":", linewidth=1.2, zorder=0)
        limit = next((row for row in limits if row["draft_length"] == (-1 if speculative else 0)), None)
        keeps = limit and limit[f"largest_{load}_that_keeps"]
        if keeps:  # on the axis, where a wide interval hides no curve
            width = limit.get("half_width") or 0
            panel.errorbar([keeps], [0.02], xerr=[[min(width, 0.999 * keeps)], [width]], fmt="^", markersize=6, capsize=3, color=colour,
                           transform=panel.get_xaxis_transform(), clip_on=False, zorder=6)


def draw_curve(folder):
    load = "concurrency" if any(name == "concurrency" for name in read(folder / "curve.csv", some=True)[0]) else "rate"
    rows = read(folder / "curve.csv", numbers=(load, "speculative", "overloaded"), maybe=FIGURES, where=("capacity", *(f"{name}_half_width" for name in FIGURES)))
    limits = read(folder / "slo.csv", numbers=("draft_length", ), maybe=(f"largest_{load}_that_keeps", ),
                  where=("half_width", )) if (folder / "slo.csv").is_file() else []
    slo = config_of(folder, "cost", "serve")["serve"].get("slo") or {}
    label = "requests per second" if load == "rate" else "requests in flight"
    panels = [("mean_ttft_ms", "p99_ttft_ms", "TTFT, ms", "ttft_ms"), ("mean_tpot_ms", "p99_tpot_ms", "TPOT, ms", "tpot_ms"),
              ("output_throughput", None, "output tokens per second", None)]
    if any(row["request_goodput"] is not None for row in rows):
        panels.append(("request_goodput", None, "goodput: requests per second within the SLO", None))
    figure, axes = plt.subplots(2, 2, figsize=(9.6, 7.4))
    handles = {}
    for panel, (mean, tail, title, limit) in zip(axes.flat, panels):
        means = [row[mean] for row in rows if row[mean]]
        bottom = 0.5 * min(means) if mean == "mean_ttft_ms" and means else 0.0  # TTFT's axis is logarithmic
        for speculative, colour, name in ((0, PLAIN, "baseline"), (1, SPECULATIVE, "with speculation")):
            own = [row for row in rows if row["speculative"] == speculative]
            if not own:
                continue
            x = [row[load] for row in own]
            error = [row.get(f"{mean}_half_width") or 0 for row in own]
            below = [min(width, max((row[mean] or 0) - bottom, 0)) for row, width in zip(own, error)]  # no interval leaves the panel
            handles[name] = panel.errorbar(x, [known(row[mean]) for row in own], yerr=[below, error], fmt="o-", markersize=3.5, color=colour)
            over = [row for row in own if row["overloaded"] > 0.5 or row[load] > (row.get("capacity") or math.inf)]
            handles["overloaded"] = panel.plot([row[load] for row in over], [known(row[mean]) for row in over], "o", markersize=5.5, markerfacecolor="white", zorder=5,
                                               color=colour, linestyle="none")[0]
            if tail:
                handles[f"{name}, p99 and its interval"], = panel.plot(x, [known(row[tail]) for row in own], "--", color=colour)
                width = [row.get(f"{tail}_half_width") or 0 for row in own]
                panel.fill_between(x, [max(known(row[tail]) - w, bottom) for row, w in zip(own, width)], [known(row[tail]) + w for row, w in zip(own, width)],
                                   color=colour, alpha=0.15, linewidth=0)
        panel.set(xlabel=label, title=title)
        if limit and slo.get(limit):
            handles["limit of the SLO"] = panel.axhline(slo[limit], color=COLOURS[1], linewidth=1.0)
        if bottom > 0:
            panel.set_yscale("log")
        panel.set_ylim(bottom=bottom)
        at = crossing(rows, load, mean) if mean == "mean_tpot_ms" else None
        if at:
            handles["the TPOT curves cross"] = panel.axvline(at, color=COLOURS[2], linestyle="-.", linewidth=1.2)
        if load == "concurrency":
            panel.set_xscale("log", base=2)
        mark_limits(panel, rows, limits, load)
    for panel in list(axes.flat)[len(panels):]:
        panel.axis("off")
    if any(row.get("capacity") for row in rows):
        handles["capacity (upright)"] = Line2D([], [], color=PLAIN, linestyle=":")
    if limits:
        handles["largest load within the SLO, ± (on the axis)"] = Line2D([], [], color=PLAIN, linestyle="none", marker="^")
    figure.get_layout_engine().set(rect=(0, 0.08, 1, 0.92))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncol=4)
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "curve.png")


def latencies(rows):
    """TTFT and TPOT of all requests, in milliseconds and in order."""
    ttft = sorted(1e3 * (row["first_token_s"] - row["arrival_s"]) for row in rows)
    tpot = sorted(1e3 * (row["last_token_s"] - row["first_token_s"]) / (row["output_tokens"] - 1) for row in rows if row["output_tokens"] > 1)
    return ttft, tpot


def draw_waterfall(panel, means, what):
    """The parts of a mean, one cause after the other; `means`: [server] of {cause: milliseconds}, the bars of the server without speculation below and paler."""
    colours = dict(zip(CAUSES, COLOURS + ["#bbbbbb", "#dddddd"]))
    longest = max(sum(mean.values()) for mean in means)
    shown = [cause for cause in CAUSES if any(mean[cause] > 1e-3 * longest for mean in means)]
    height = 0.8 / len(means)
    for at, mean in enumerate(means):
        left = 0.0
        for line, cause in enumerate(shown):
            panel.barh([line + (at - 0.5 * (len(means) - 1)) * height], [mean[cause]], height=0.95 * height, left=[left], color=colours[cause],
                       alpha=0.45 if at else 1.0)
            left += mean[cause]
    panel.set_yticks(range(len(shown)), [CAUSES[cause] for cause in shown])
    panel.invert_yaxis()
    panel.set(xlabel=f"mean {what}, ms", title=f"parts of {what}" + (" (pale: baseline)" if len(means) > 1 else ""))


def requests_of(path):
    times = ("arrival_s", "first_token_s", "last_token_s", "output_tokens")
    rows = read(path, numbers=("finished", ), maybe=times)
    for row in rows:
        if row["finished"] == 1:
            for name in times:
                row.real(name)
    return rows


def draw_requests(folder):
    servers = []
    summaries = {row["server"]: row for row in read(folder / "summary.csv", words=("server", ), some=True,
                                                       where=[f"mean_{what}_{cause}_ms" for what in ("ttft", "tpot") for cause in CAUSES])}
    for server, name, file, colour in (("speculative", "with speculation", "requests.csv", SPECULATIVE), ("plain", "baseline", "requests_plain.csv", PLAIN)):
        if server in summaries:
            own = folder / file if len(summaries) > 1 else folder / "requests.csv"
            rows = [row for row in requests_of(own) if row["finished"] == 1] if own.is_file() else []
            if rows:
                servers.append((name, rows, colour, summaries[server]))
    if not servers:
        return
    figure, axes = plt.subplots(2, 2, figsize=(10.2, 6.6))
    for column, (what, title) in enumerate((("ttft", "TTFT"), ("tpot", "TPOT"))):
        panel, ends = axes[0][column], []
        for name, rows, colour, _ in servers:
            values = latencies(rows)[column]
            if values:
                panel.plot(values, [100 * (i + 1) / len(values) for i in range(len(values))], color=colour, drawstyle="steps-post", label=name)
                ends += [max(values[0], 1e-9), values[-1]]
        panel.set(xlabel=f"{title}, ms", title=f"share of requests below, % ({title})")
        if ends and max(ends) > 20 * min(ends):
            panel.set_xscale("log")
        draw_waterfall(axes[1][column], [{cause: summary.get(f"mean_{what}_{cause}_ms") or 0.0 for cause in CAUSES} for *_, summary in servers], title)
    if len(servers) > 1:
        figure.get_layout_engine().set(rect=(0, 0.05, 1, 0.95))
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncol=2)
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "requests.png")


def draw_steps(folder):
    rows = read(folder / "steps.csv", numbers=("replica", "start_s"), maybe=("requests", "waiting", "free_blocks", "draft_length"), some=True)
    rows = [row for row in rows if row["replica"] == 0]
    time = [row["start_s"] for row in rows]
    panels = (("requests", "requests in a step"), ("waiting", "requests waiting"), ("free_blocks", "free blocks of the cache"), ("draft_length", "draft length"))
    shown = [(column, title) for column, title in panels if any(row[column] for row in rows)]
    if not shown:
        raise BadInput(folder / "steps.csv", "no step of replica 0 with a request", "steps that served requests")
    empty = [title for column, title in panels if (column, title) not in shown]
    figure, axes = plt.subplots(len(shown), 1, figsize=(9.5, 1.4 + 1.55 * len(shown)), sharex=True, squeeze=False)
    for panel, (column, title) in zip(axes.flat, shown):
        panel.plot(time, [known(row[column]) for row in rows], color=SPECULATIVE, linewidth=0.8, drawstyle="steps-post")
        panel.set(title=title)
        panel.set_ylim(0, 1.05 * max(row[column] or 0 for row in rows))
    axes[-1][0].set(xlabel="seconds" + "".join(f"; {title}: always 0" for title in empty))
    figure.suptitle(setting(folder), fontsize=10)
    save(figure, folder / "steps.png")


def draw(folder):
    folder = Path(folder)
    for name, how in (("curve.csv", draw_curve), ("requests.csv", draw_requests), ("steps.csv", draw_steps)):
        if (folder / name).is_file():
            how(folder)


if __name__ == "__main__":
    main(draw, __doc__)
