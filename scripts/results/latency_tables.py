"""Tables of the notes on latency, which scripts/dev/docs_pages.py makes of results/fidelity, and the values in their sentences.

unseen.csv is the output of `scripts/kernels/fit_kernels.py TABLES --out configs/kernels --corrections --report results/fidelity/unseen.csv`,
small.csv that of scripts/results/fidelity.py, and steps/ that of `scripts/results/step_latencies.py`. earlier.csv is a record of estimates before the
fits, which no command makes again.
"""
from pathlib import Path

import tables

FIDELITY = Path("results/fidelity")
# Largest allowed median and 90th percentile of the error, percent, by kind; of products by type too.
GOALS = {"attention_decode": (8, 20), "attention_latent": (8, 20), "attention_verify": (15, 40), "experts": (12, 35), "allreduce": (12, 35)}
PRODUCT_GOALS = {"bfloat16": (4, 12), "fp8": (6, 15), "fp8_block": (6, 15), "sq": (6, 15), "nvfp4": (8, 20), "int4_wo": (8, 20), "int8_wo": (8, 20)}
RATIOS = ("ratio_1", "ratio_2_16", "ratio_17_128", "ratio_129_512")
SIZES = ("0-2", "2-8", "8-32")


def rows_of(name):
    return tables.rows_of(FIDELITY / name)


def table(columns, lines):
    return "\n".join(["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|", *("| " + " | ".join(line) + " |" for line in lines)])


def earlier(name):
    """Figures of a table before the fits, by GPU and type."""
    found = {}
    for row in rows_of("earlier.csv"):
        if row["table"] == name:
            found.setdefault((row["gpu"], row["dtype"]), {})[row["figure"]] = row["value"]
    return found


def unseen_rows(kind):
    return [row for row in rows_of("unseen.csv") if row["kind"] == kind and row["rows"] == "all"]


# The rows of decode attention of these GPUs are of one layer each, held out by batch and context: the text under the next table has them.
ONE_LAYER = ("rtx-3090", "rtx-4090", "rtx-pro-6000")


def error(row, goal=None):
    """Median and 90th percentile, with a star if one of them misses its goal."""
    missed = goal and (float(row["median_percent"]) > goal[0] or float(row["p90_percent"]) > goal[1])
    return f"{row['median_percent']} / {row['p90_percent']}{' *' if missed else ''}"


def products():
    before, lines = earlier("products"), []
    for row in unseen_rows("product"):
        if row["dtype"] not in PRODUCT_GOALS:
            continue
        old, goal = before.get((row["gpu"], row["dtype"])), PRODUCT_GOALS[row["dtype"]]
        told = [f"{old['median_percent']} / {old['p90_percent']}", *(old[key] for key in RATIOS)] if old else [""] * 5
        near = f"{row['neighbours_median_percent']} / {row['neighbours_p90_percent']}" if row["neighbours_median_percent"] else ""
        lines.append([row["gpu"], row["dtype"], *told, error(row, goal), near, f"{goal[0]} / {goal[1]}"])
    return table(["GPU", "type", "before", "ratio at 1", "2-16", "17-128", "129-512 rows", "not seen, now", "next rows", "goal"], lines)


def unseen(kind):
    return table(["GPU", "type", "rows", "not seen"],
                 [[row["gpu"], row["dtype"], row["count"], error(row, GOALS.get(kind))] for row in unseen_rows(kind)
                  if kind != "attention_decode" or row["gpu"] not in ONE_LAYER])


def small():
    now = {(row["gpu"], row["dtype"], row["megabytes"]): row["outside_percent"] for row in rows_of("small.csv")}
    lines = [[*key, *old.values(), *(now.get((*key, size), "") for size in SIZES)] for key, old in earlier("small products").items()]
    return table(["GPU", "type", "before, 0-2 MB", "2-8", "8-32", "now, 0-2 MB", "2-8", "8-32"], lines)


def step_value(what):
    """A value of steps/errors.csv: "PAGE | GROUP | ratio, middle, high, worst or rows"."""
    page, group, figure = (word.strip() for word in what.split("|"))
    row = next((row for row in rows_of("steps/errors.csv") if row["page"] == page and row["group"] == group), None)
    if row is None:
        raise KeyError(f"results/fidelity/steps/errors.csv has no {page}, {group}")
    if figure == "ratio":
        return f"{float(row['median_ratio']):.2f}"
    return row[{"middle": "median_error_percent", "high": "p90_error_percent", "worst": "worst_error_percent", "rows": "rows"}[figure]]


def fidelity_value(what):
    """Least and most error at the 90th percentile over GPUs of a kind, percent: "KIND | dtype"."""
    kind, dtype = (word.strip() for word in what.split("|"))
    found = [float(row["p90_error_percent"]) for row in rows_of("fidelity.csv") if row["kind"] == kind and row["dtype"] == dtype and row["rows"] == "all"]
    return f"{min(found):.0f} to {max(found):.0f}"


def unseen_value(what):
    """Error on unseen shapes: "KIND | GPU | TYPE"."""
    kind, gpu, dtype = (word.strip() for word in what.split("|"))
    return next(error(row) for row in unseen_rows(kind) if row["gpu"] == gpu and row["dtype"] == dtype)


def unseen_span(what):
    """Least and most of a kind and type over GPUs, median or 90th percentile:  "KIND | TYPE | middle or high"."""
    kind, dtype, figure = (word.strip() for word in what.split("|"))
    found = [float(row[{"middle": "median_percent", "high": "p90_percent"}[figure]]) for row in unseen_rows(kind) if row["dtype"] == dtype]
    return f"{min(found):.1f} to {max(found):.1f} %"


TABLES = {"products": products, "small products": small,
          **{f"unseen {kind}": (lambda kind=kind: unseen(kind))
             for kind in ("attention_decode", "attention_latent", "attention_verify", "attention_prefill", "experts", "allreduce")}}
