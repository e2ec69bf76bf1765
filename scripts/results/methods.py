#!/usr/bin/python3
"""Runs every method of configs/examples/methods for its page, and all kinds of them on one workload, by batch.

usage: scripts/results/methods.py SPECSIM OUT [CONFIG ...]
(from the repository's root: scripts/results/methods.py build/specsim results/methods)
With CONFIG, such as block_trees, it rewrites the rows of these configs in methods.csv, and keeps all other results in OUT.

Runs the configs with the cost model that they name, and configs/methods/side_by_side.yaml at batches 1, 8 and 32, and writes to OUT
  methods.csv     cell by cell: tokens per round with its standard error, draft passes and verified rows per round, speedup
  side_by_side.csv  the methods that share a workload: tokens per round, and the speedup with its standard error by batch
  published.csv   published, by theory, simulated from the same acceptance: EAGLE's chains (theory.csv of results/methods), Medusa's and Sequoia's
                  trees (trees.csv of results/methods), Lookahead's formula
  methods.png     the methods that share a workload: speedup by batch
  manifest_*.yaml the sources of the values
"""
import shutil
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plots"))
import plot_methods  # noqa: E402
from calls import called  # noqa: E402
from tables import rows_of, write_rows  # noqa: E402

CONFIGS = Path("configs/examples/methods")
RECORD = Path("results/methods")  # theory.csv and trees.csv, written by the tests of published trees
SIDE_BY_SIDE = Path("configs/methods/side_by_side.yaml")
ROUNDS = 200000  # limit of rounds for configs that ask for more
BATCHES = [1, 8, 32]


def run(specsim, out, config, name, *settings):
    folder = out / "run"
    arguments = [part for setting in settings for part in ("--set", setting)]
    called(specsim, "run", config, *arguments, "--out", folder, "--force", "--quiet")
    rows = rows_of(folder / "data.csv")
    shutil.move(folder / "manifest.yaml", out / f"manifest_{name}.yaml")
    shutil.rmtree(folder)
    return rows


def method_of(config, row):
    """The cell's (verifier, drafter, rest) in words: the config's decode section with the cell's axes set."""
    decode = dict(config["decode"])
    for path, value in row.items():
        if path == "decode":
            decode = yaml.safe_load(value)
        elif path == "decode.drafter.draft_length":
            decode["drafter"] = {**decode["drafter"], "draft_length": int(value)}
        elif path.startswith("decode."):
            decode[path.removeprefix("decode.")] = yaml.safe_load(value)

    def words(part):
        if not isinstance(part, dict):
            return str(part)
        kind = part["kind"]
        rest = [f"{key} {str(value).replace(' ', '')}" for key, value in part.items() if key not in ("kind", "accuracies", "acceptance")]
        return " ".join([kind, *rest])

    return words(decode["verifier"]), words(decode["drafter"]), words(decode["policy"]) if "policy" in decode else ""


def simulate(specsim, out, only=()):
    table = []
    for path in sorted(CONFIGS.glob("*.yaml")):
        if only and path.stem not in only:
            table += [row for row in rows_of(out / "methods.csv") if row["config"] == path.stem]
            continue
        config = yaml.safe_load(path.read_text())
        for row in run(specsim, out, path, path.stem, f"rounds={min(ROUNDS, int(float(config['rounds'])))}"):
            verifier, drafter, policy = method_of(config, row)
            table.append({"config": path.stem, "cell": int(row["cell"]), "verifier": verifier, "drafter": drafter, "policy": policy,
                          "tokens_per_round": row["tokens_per_round"], "tokens_per_round_se": row["tokens_per_round_se"],
                          "draft_passes": row["draft_passes"], "verified_rows": row["verified_rows"], "speedup": row["speedup"]})
    return table


def side_by_side(specsim, out):
    """Methods in the order of the config, each with its speedup at every batch."""
    config = yaml.safe_load(SIDE_BY_SIDE.read_text())
    table = []
    for row in run(specsim, out, SIDE_BY_SIDE, "side_by_side", f"sweep.workload.batch={BATCHES}"):
        if int(row["cell"]) % len(BATCHES) == 0:  # the batch is the last axis
            verifier, drafter, _ = method_of(config, row)
            table.append({"verifier": verifier, "drafter": drafter, "draft": row["cost.draft"], "alpha": row["alpha"],
                          "tokens_per_round": row["tokens_per_round"], "tokens_per_round_se": row["tokens_per_round_se"],
                          "draft_passes": row["draft_passes"], "verified_rows": row["verified_rows"]})
        for figure in ("speedup", "speedup_se"):
            table[-1][f"{figure}_batch_{row['workload.batch']}"] = row[figure]
    return table


def published(specsim, out):
    """EAGLE's chains of five from n-alpha and the trees of trees.csv, next to the figures published with them; a formula next to itself."""
    theory = {row["setting"]: row for row in rows_of(RECORD / "theory.csv") if row["method"] == "eagle_chain"}
    known = [row for row in rows_of("configs/published/rows.csv") if row["config"] == "eagle1_nalpha"]
    cells = run(specsim, out, "configs/published/eagle1_nalpha.yaml", "eagle1_nalpha")
    rows = []
    for row in known:
        setting = next(name for name in theory if all(part in row["setting"] for part in name.split(", ")))
        cell = cells[int(row["cell"])]
        rows.append({"method": "eagle_chain", "setting": setting, "published": theory[setting]["published_tokens_per_round"],
                     "theory": theory[setting]["theory_low"], "simulated": cell["tokens_per_round"], "simulated_se": cell["tokens_per_round_se"]})
    rows += [{"method": row["method"], "setting": row["setting"], "published": row["published_tokens_per_round"],
              "theory": row["theory"], "simulated": row["simulated"], "simulated_se": row["simulated_se"]} for row in rows_of(RECORD / "trees.csv")]
    for cell in run(specsim, out, "configs/ci/lookahead_formula.yaml", "lookahead_formula", "rounds=1000000"):
        alpha, branching = float(cell["pair.draft.value"]), yaml.safe_load(cell["decode.drafter.branching"])
        formula = len(branching) + 1 - sum((1 - alpha ** i) ** branching[0] for i in range(1, len(branching) + 1))
        rows.append({"method": "lookahead_formula", "setting": f"alpha {alpha:g}, {branching[0]} n-grams of {len(branching)} guesses", "published": "",
                     "theory": f"{formula:.6f}", "simulated": cell["tokens_per_round"], "simulated_se": cell["tokens_per_round_se"]})
    return rows


def write(path, rows):
    write_rows(path, rows, list(max(rows, key=len)))
    print(f"wrote {path}: {len(rows)} rows")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    specsim, out, only = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    write(out / "methods.csv", simulate(specsim, out, only))
    if only:
        return
    write(out / "side_by_side.csv", side_by_side(specsim, out))
    write(out / "published.csv", published(specsim, out))
    plot_methods.draw(out)


main()
