#!/usr/bin/python3
"""Compares the order in which `specsim compare` ranks methods with the order that others measured on one machine.

usage: scripts/results/rankings.py SPECSIM OUT    (from the repository's root: scripts/results/rankings.py build/specsim results/rankings)

Reads configs/published/rankings.yaml and writes OUT/rankings.csv, OUT/rankings.md and OUT/manifest.yaml. For engines, compare gets an acceptance
preset and ranks all draft lengths at the measured batches; the measured quantity is the time per output token. For Spec-Bench's
leaderboard, tokens per round are the published ones and time is the roofline's. Pairs in the opposite order are listed with their cause:
the difference between the simulated and measured ratios of tokens per round and of round times.
"""
import itertools
import math
import sys
import tempfile
from pathlib import Path

import yaml

import published_speedups
from calls import called, version_of
from tables import rows_of, write_rows

TABLE = Path("configs/published/rankings.yaml")
CLOSE = 0.03  # measured speedups that differ by less are a tie: two runs of one setting differ by this much
AROUND = {32: (20, 24, 28, 32)}  # batches that a server with this number of requests passes through, because some wait, read prompts or have ended


def measured_batches(setting):
    return sorted({batch for draft in setting["drafts"] for method in draft["methods"] for batch in method["ms"]})


def batches_of(setting):
    return sorted({batch for measured in measured_batches(setting) for batch in AROUND.get(measured, (measured,))})


def compared(specsim, setting, draft):
    """{(batch, length): (speedup, tokens per round)} by `specsim compare` on an acceptance preset."""
    with tempfile.TemporaryDirectory() as folder:
        called(specsim, "compare", "--acceptance", draft["acceptance"], "--hardware", setting["hardware"], "--engine", "vllm", "--target", setting["target"],
               "--draft", draft["draft"], "--tensor-parallel", setting["tensor_parallel"], "--context", setting["context"],
               "--batches", ",".join(map(str, batches_of(setting))), "--out", f"{folder}/out")
        found = {}
        for row in rows_of(f"{folder}/out/ranking.csv"):
            batch = int(row["workload"].split(",")[0].removeprefix("batch "))
            found[batch, int(row["draft_passes"])] = (float(row["speedup"]), float(row["tokens_per_round"]))
        return found


def engine_rows(specsim, setting):
    """If no run without speculation exists, both sides are relative to the first method."""
    first = {}
    for draft in setting["drafts"]:
        simulated = compared(specsim, setting, draft)
        for method, batch in itertools.product(draft["methods"], measured_batches(setting)):
            speedup, tokens = simulated[batch, method["length"]]
            if "plain" in setting:
                first[batch] = (setting["plain"][batch], 1.0)
            first.setdefault(batch, (method["ms"][batch], speedup))
            yield {"setting": setting["name"], "batch": batch, "method": f"{draft['draft']}, {method['length']} tokens",
                   "measured": first[batch][0] / method["ms"][batch], "simulated": speedup / first[batch][1],
                   "measured_tokens": method["tokens"][batch], "simulated_tokens": tokens, "source": setting["source"],
                   "around": len(AROUND[batch]) / sum(1 / simulated[b, method["length"]][0] for b in AROUND[batch]) if batch in AROUND else None}


def leaderboard_rows(specsim, setting):
    shapes = {row["row"]: row for row in rows_of(published_speedups.ROWS)}
    for method in setting["methods"]:
        row = dict(shapes[method["row"]], hardware=setting["hardware"], target=setting["target"], tokens_per_round=str(method["tokens"]))
        if row["draft"].startswith("eagle-head"):
            row["draft"] = "eagle-head-" + setting["target"].removeprefix("vicuna-")
        speedup = published_speedups.price(specsim, row)[0]
        yield {"setting": setting["name"], "batch": 1, "method": method["row"].removeprefix("spec-bench "), "measured": method["speedup"],
               "simulated": speedup, "measured_tokens": method["tokens"], "simulated_tokens": method["tokens"], "source": setting["source"]}


def ranks(values):
    order = sorted(values, reverse=True)
    return [order.index(value) + 0.5 * (order.count(value) - 1) for value in values]


def correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    over = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return over / math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))


def cause(above, below):
    """Why `above`, measured to be faster, is simulated to be slower: in factors of the ratio of the two methods."""
    tokens = math.log(above["simulated_tokens"] / below["simulated_tokens"] / (above["measured_tokens"] / below["measured_tokens"]))
    whole = math.log(above["simulated"] / below["simulated"] / (above["measured"] / below["measured"]))
    time = whole - tokens
    if math.log(above["measured"] / below["measured"]) < math.log1p(CLOSE):
        return "a tie as measured"
    if abs(time) < abs(tokens):
        return f"acceptance, which differed between runs (time {100 * math.expm1(time):+.0f} %, tokens {100 * math.expm1(tokens):+.0f} %)"
    rounds = ["{:.2f} and {:.2f}".format(*(row[f"{side}_tokens"] / row[side] for row in (above, below))) for side in ("measured", "simulated")]
    return f"time of a round, in plain passes: measured {rounds[0]}, simulated {rounds[1]}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    settings = yaml.safe_load(TABLE.read_text())
    rows = [row for setting in settings["engines"] for row in engine_rows(specsim, setting)]
    rows += [row for setting in settings["leaderboard"] for row in leaderboard_rows(specsim, setting)]
    summary, inversions = [], []
    for (name, batch), group in itertools.groupby(sorted(rows, key=lambda r: (r["setting"], r["batch"])), key=lambda r: (r["setting"], r["batch"])):
        group = sorted(group, key=lambda r: -r["measured"])
        measured_ranks = ranks([r["measured"] for r in group])
        rho = f"{correlation(measured_ranks, ranks([r['simulated'] for r in group])):.2f}"
        if batch in AROUND:
            rho += f" ({correlation(measured_ranks, ranks([r['around'] for r in group])):.2f})"
        pairs = list(itertools.combinations(group, 2))
        wrong = [(a, b) for a, b in pairs if a["simulated"] < b["simulated"]]
        clear = [pair for pair in wrong if not cause(*pair).startswith("a tie")]
        best = max(group, key=lambda r: r["simulated"])
        lost = 1 - best["measured"] / group[0]["measured"]
        error = math.exp(sum(math.log(r["simulated"] / r["measured"]) for r in group) / len(group))
        summary.append(f"| {name} | {batch} | {len(group)} | {rho} | {len(wrong)} of {len(pairs)} | {len(clear)} | {group[0]['method']} | {best['method']} | "
                       f"{100 * lost:.1f} % | {error:.2f} |\n")
        inversions += [f"| {name} | {batch} | {a['method']} | {b['method']} | {a['measured'] / b['measured']:.3f} | {a['simulated'] / b['simulated']:.3f} | {cause(a, b)} |\n"
                       for a, b in wrong]
    write_rows(out / "rankings.csv", [{key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()} for row in rows],
               ["setting", "batch", "method", "measured", "simulated", "measured_tokens", "simulated_tokens", "source"])
    text = (f"Speedups over plain decoding. Rank correlation is Spearman's; in brackets that of the mean of compare's times at batches {AROUND[32][0]} to "
            f"{AROUND[32][-1]}, through which a server with 32 requests passes. Measured speedups within 3 % of each other count as a tie. Lost: how much less the "
            "method that is simulated to be the best measured than the one that measured best.\n\n"
            "| setting | batch | methods | rank correlation | pairs the other way round | of them no tie | best as measured | best as simulated | lost | simulated / measured |\n"
            "|---|---|---|---|---|---|---|---|---|---|\n" + "".join(summary) +
            "\nEvery pair that stands the other way round: the first of the two measured faster.\n\n"
            "| setting | batch | measured faster | than | by a factor of | simulated | where the two part |\n|---|---|---|---|---|---|---|\n" + "".join(inversions))
    (out / "rankings.md").write_text(text)
    (out / "manifest.yaml").write_text(f"program: {version_of(specsim)}\ncommand: scripts/results/rankings.py SPECSIM results/rankings\nseed: 1\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
