#!/usr/bin/python3
"""Compares simulation with published values of speculative decoding. Nothing is fitted.

usage: scripts/results/published.py SPECSIM OUT     (from the repository's root: scripts/results/published.py build/specsim results/published)

Runs configs/published/*.yaml, joins their cells with configs/published/rows.csv (values and sources) and writes to OUT
  published.csv, published.md   published, simulated with a 95 % interval, closed form, ratio, scored or not
  data_*.csv, manifest_*.yaml   the sources of the simulated values
A row is scored unless its inputs were inferred from its own value (circular) or it has no value of its own.
"""
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

from tables import geometric_mean, rows_of, write_rows

CONFIGS = Path("configs/published")
Z = NormalDist().inv_cdf(0.975)


def simulate(specsim, out, name):
    folder = out / name
    done = subprocess.run([specsim, "check", str(CONFIGS / f"{name}.yaml"), "--out", str(folder), "--force", "--quiet"], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"published: specsim check {name}: {done.stderr}")
    if done.returncode != 0:  # 3: nothing disagrees, but some check is underpowered; figures have their own intervals
        print(f"published: specsim check {name} {'does not pass' if done.returncode == 1 else 'was not tested in every cell'}:\n{done.stdout}")
    shutil.move(folder / "manifest.yaml", out / f"manifest_{name}.yaml")
    shutil.move(folder / "data.csv", out / f"data_{name}.csv")
    shutil.rmtree(folder)
    return rows_of(out / f"data_{name}.csv"), done.returncode == 1


def check_inputs(row, cell):
    """Checks that the config's cell is the one that rows.csv refers to."""
    alphas = row["alpha"].split()
    if "context.drafts" in cell:
        same = all(f"value: {a}" in part for a, part in zip(alphas, cell["context.drafts"].split("}, {"), strict=True))
    else:
        same = float(cell["pair.draft.value"]) == float(alphas[0])
    if "decode.drafter.draft_length" in cell:
        same = same and int(cell["decode.drafter.draft_length"]) == int(row["draft_length"])
    if "cost.cost_ratio" in cell:
        same = same and float(cell["cost.cost_ratio"]) == float(row["cost_ratio"])
    if int(cell["drafted"]) != int(row["draft_length"]) * int(cell["rounds"]) or not same:
        sys.exit(f"published: {row['row']} and cell {row['cell']} of {row['config']} have different inputs")


def closed_form_tokens(row):
    """1 + a_1 + a_1 a_2 + ...; one alpha holds for every position."""
    alphas = [float(a) for a in row["alpha"].split()]
    total = reach = 1.0
    for position in range(int(row["draft_length"])):
        reach *= alphas[min(position, len(alphas) - 1)]
        total += reach
    return total


def figure(row, cell):
    """Simulated value and standard error, and the closed form, of the row's quantity."""
    tokens, se = float(cell["tokens_per_round"]), float(cell["tokens_per_round_se"])
    length, ratio = int(row["draft_length"]), float(row["cost_ratio"])
    closed = closed_form_tokens(row)
    if row["quantity"] == "tokens_per_round":
        return tokens, se, closed
    if row["quantity"] == "speedup":
        return float(cell["speedup"]), float(cell["speedup_se"]), closed / (length * ratio + 1)
    if row["quantity"] == "operations":  # target operations per token; the draft's are neglected
        return (length + 1) / tokens, (length + 1) * se / tokens ** 2, (length + 1) / closed
    return float(cell["alpha"]), float(cell["alpha_se"]), float(row["alpha"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    rows = rows_of(CONFIGS / "rows.csv")
    names = sorted(path.stem for path in CONFIGS.glob("*.yaml") if path.stem != "rankings")  # which is of scripts/results/rankings.py
    if {row["config"] for row in rows} != set(names):
        sys.exit("published: rows.csv and the configs do not name the same experiments")
    runs, failed = {}, 0
    for name in names:
        runs[name], disagrees = simulate(specsim, out, name)
        failed += disagrees

    results, scores = [], {}
    for row in rows:
        cell = runs[row["config"]][int(row["cell"])]
        check_inputs(row, cell)
        value, se, closed = figure(row, cell)
        published = float(row["published"]) if row["published"] else None
        low, high = value - Z * se, value + Z * se
        ratio, comment = None, row["note"]
        if published is not None:
            ratio = published / value
            digits = len(row["published"].split(".")[1]) if "." in row["published"] else 0
            inside = low <= published + 0.5 * 10.0 ** -digits and high >= published - 0.5 * 10.0 ** -digits
            comment = ("agrees" if inside else f"published is {abs(100 * (ratio - 1)):.1f} % {'above' if ratio > 1 else 'below'}") + f"; {row['note']}"
            if row["scored"] == "yes":
                group = row["row"].split()[0] + (" " + row["row"].split()[-1] if row["row"].split()[0] == "leviathan_table2_4" else "")
                scores.setdefault(group, []).append(ratio)
        results.append({"row": row["row"], "source": row["source"], "setting": row["setting"], "quantity": row["quantity"], "published": row["published"],
                        "simulated": f"{value:.10g}", "low": f"{low:.10g}", "high": f"{high:.10g}", "closed_form": f"{closed:.10g}",
                        "published_over_simulated": "" if ratio is None else f"{ratio:.10g}", "alpha": row["alpha"], "draft_length": row["draft_length"],
                        "cost_ratio": row["cost_ratio"], "tokens_per_round": cell["tokens_per_round"], "scored": row["scored"], "comment": comment})

    write_rows(out / "published.csv", results)
    summary = [(group, len(ratios), geometric_mean(ratios), min(ratios), max(ratios)) for group, ratios in scores.items()]
    with open(out / "published.md", "w") as file:
        file.write("| scored rows | rows | published / simulated: geometric mean | least | most |\n|---|---|---|---|---|\n")
        for group, count, mean, least, most in summary:
            file.write(f"| {group} | {count} | {mean:.3f} | {least:.3f} | {most:.3f} |\n")
        file.write("\n| row | quantity | published | simulated (95 % interval) | closed form | published / simulated | scored | comment |\n|---|---|---|---|---|---|---|---|\n")
        for r in results:
            number = lambda text: f"{float(text):.3f}" if text else "-"
            shown = f"{number(r['simulated'])} ({number(r['low'])} to {number(r['high'])})"
            if r["quantity"] == "alpha":
                shown += f", {number(r['tokens_per_round'])} tokens per round at K = {r['draft_length']}"
            file.write(f"| {r['row']} | {r['quantity']} | {r['published'] or '-'} | {shown} | {number(r['closed_form'])} | {number(r['published_over_simulated'])} | {r['scored']} | {r['comment']} |\n")
        file.write("\nSources are in published.csv. Temperature 0: one-hot distributions whose argmaxes agree at the published alpha; else a Zipf vocabulary of 32,000 and a draft with "
                   "that overlap. Nothing is fitted.\n")
    with open(out / "manifest.yaml", "w") as file:
        file.write(f'script: scripts/results/published.py\ncommand: "scripts/results/published.py {specsim} {out}"\nseed: 20260117\nplots: scripts/plots/plot_published.py\n'
                   "runs:  # manifest_NAME.yaml and data_NAME.csv each; folders named there are merged into this one\n" + "".join(f"  - {name}\n" for name in names))
    for group, count, mean, least, most in summary:
        print(f"{group:32} {count:3} rows, published / simulated {mean:.3f} ({least:.3f} to {most:.3f})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
