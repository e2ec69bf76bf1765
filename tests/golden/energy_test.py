#!/usr/bin/python3
"""results/energy is what the program predicts, and its errors are within what the page promises.

Runs at the root of the repository; SPECSIM names the program. The rows of the RTX 5090 are predicted again. Mutants that the limits reject: a cap
that costs no time, and energy without the cap.
"""
import csv
import sys

sys.path.insert(0, "scripts/results")
import energy  # noqa: E402

MOST = 0.10  # of watts, and of joules per token under a cap over those without


def main():
    with open("results/energy/table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    problems = []
    timeless, limitless = [], []
    uncapped = {row["draft_length"]: row for row in rows if row["cap_w"] == "600"}
    for row in rows:
        if row["gpu"] != "rtx-5090":
            continue
        cap, length, tokens = int(row["cap_w"]), int(row["draft_length"]), float(row["tokens_per_round"])
        watts, speed, joules, _, _ = energy.capped_plan(cap, length, tokens)
        where = f"cap {cap} W, draft length {length}"
        for name, ours in (("watts", watts), ("tokens_per_s", speed), ("joules_per_token", joules)):
            if abs(ours / float(row[f"predicted_{name}"]) - 1) > 1e-3:
                problems.append(f"{where}: {name} is {ours:.4g}, on record {row[f'predicted_{name}']}")
        if abs(watts / float(row["watts"]) - 1) > MOST:
            problems.append(f"{where}: {watts:.0f} W, measured {row['watts']}")
        base = uncapped[row["draft_length"]]
        measured = float(row["joules_per_token"]) / float(base["joules_per_token"])
        full = energy.capped_plan(600, length, float(base["tokens_per_round"]))
        if abs(joules / full[2] / measured - 1) > MOST:
            problems.append(f"{where}: {joules / full[2]:.3f} of the energy without a cap, measured {measured:.3f}")
        timeless.append(abs(min(cap, full[0]) / full[0] / measured - 1))
        limitless.append(abs(1 / measured - 1))
    if max(timeless) <= MOST or max(limitless) <= MOST:
        problems.append("the measured rows do not reject a cap that costs no time, or energy without the cap: the limits are too wide")
    inside = [float(row["low"]) <= float(row["joules_per_token"]) <= float(row["high"]) for row in rows]
    if sum(inside) < 0.9 * len(inside):
        problems.append(f"{sum(inside)} of {len(inside)} measured rows are within their 95 % intervals")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
