#!/usr/bin/python3
"""Compares the roofline with published speedups, pass times and cost ratios whose inputs are known. No parameter is tuned to a single row.

usage: scripts/results/published_speedups.py SPECSIM OUT    (from the repository's root: scripts/results/published_speedups.py build/specsim results/roofline)

Reads configs/published/speedups.csv (values, sources, assumptions) and writes published_speedups.csv and published_speedups.md to OUT.
Tokens per round are the published ones; only time is simulated. `plain` is the time of a pass without speculation.
  speedup     tokens_per_round plain / (draft_passes draft + verify + host)      published / simulated above 1: the simulator is too low
  plain_ms, verify_ms                                                     above 1: the simulator is too fast
  cost_ratio  draft_passes draft / plain
"""
import sys
from pathlib import Path

import yaml

from estimated_passes import ENGINES, engine_figure, total_ms
from tables import geometric_mean, rows_of, spread_factor, write_rows

ROWS = Path("configs/published/speedups.csv")
ROUNDS = ENGINES / "transformers.yaml"  # host time of a round by method
METHODS = [("eagle-2", "eagle2"), ("eagle2", "eagle2"), ("eagle", "eagle"), ("medusa", "medusa"), ("hydra", "hydra"), ("pld", "prompt_lookup"),
           ("prompt lookup", "prompt_lookup"), ("lookahead", "lookahead"), ("recycling", "recycling"), ("rest", "rest")]
TYPES = {"8": ("--dtype", "{weights: int8, activations: bf16}")}  # every row of 8 bits quantises only its weights


def round_ms(row):
    """Host time of a round beyond its passes; rows of eager engines without a method column have the method in their name."""
    method = row.get("method") or ""
    if not method and row["target_engine"] in ("eager", "transformers"):
        words = row["row"].lower()
        method = next((name for word, name in METHODS if word in words), "")
    engine = yaml.safe_load(ROUNDS.read_text())
    own = 1e-3 * engine_figure(row["target_engine"], "round_us", 0.0)
    return own + (1e-3 * engine["proposals"][method] * float(row.get("host_us_per_layer") or engine["host_us_per_layer"]) if method else 0.0)


def pass_ms(specsim, row, role, tokens, logits):
    model, shards = (row["target"], row["tensor_parallel"]) if role == "target" else (row["draft"], "1")
    bits, engine = row["weight_bits"], row[f"{role}_engine"]
    if row.get("host_us_per_layer"):
        engine = f"{{preset: {engine}, host_us_per_layer: {row['host_us_per_layer']}}}"
    arguments = ("--hardware", row["hardware"], "--model", model, "--role", role, "--engine", engine, "--tokens", str(tokens), "--batch",
                 row["batch"], "--context", row["context"], "--tensor-parallel", shards, *TYPES.get(bits, ("--weight-bits", bits)), "--head-bits", bits, "--logits", logits)
    return total_ms(specsim, arguments, f"published_speedups: {row['row']}")


def price(specsim, row):
    plain = pass_ms(specsim, row, "target", 1, "all")
    verify = pass_ms(specsim, row, "target", row["verify_tokens"], "all")
    draft = pass_ms(specsim, row, "draft", row["draft_tokens"], "all") if row["draft"] else 0.0
    drafting = int(row["draft_passes"]) * draft + (round_ms(row) if row["quantity"] == "speedup" else 0.0)
    value = {"speedup": float(row["tokens_per_round"]) * plain / (drafting + verify), "plain_ms": plain, "verify_ms": verify,
             "cost_ratio": drafting / plain}[row["quantity"]]
    return value, plain, verify, drafting


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    rows = rows_of(ROWS)
    groups = {}
    lines = []
    for row in rows:
        value, plain, verify, drafting = price(specsim, row)
        published = float(row["published"])
        ratio = published / value
        row.update(simulated=f"{value:.5g}", published_over_simulated=f"{ratio:.4f}", plain_ms=f"{plain:.5g}", verify_ms=f"{verify:.5g}", draft_ms=f"{drafting:.5g}")
        group = (row["quantity"], row["row"].split()[0])
        if row["scored"] == "yes":
            groups.setdefault(group, []).append(ratio)
            groups.setdefault((row["quantity"], "all"), []).append(ratio)
        comment = row["inputs"]
        if abs(ratio - 1) > 0.1:
            if row["quantity"] == "speedup":
                step = float(row["tokens_per_round"]) / published
                comment += (f"{'; ' if comment else ''}a round takes {step:.2f} plain passes, simulated {(verify + drafting) / plain:.2f} "
                            f"(verification {verify / plain:.2f}, drafting {drafting / plain:.2f})")
            comment += f"{'; ' if comment else ''}{row['term'] or 'no term known'}"
        lines.append(f"| {row['row']} | {row['quantity']} | {row['published']} | {value:.3f} | {ratio:.2f} | {row['scored']} | {comment} |\n")
    columns = ["row", "source", "quantity", "published", "simulated", "published_over_simulated", "plain_ms", "verify_ms", "draft_ms", "scored",
               "hardware", "tensor_parallel", "target", "draft", "weight_bits", "target_engine", "draft_engine", "host_us_per_layer", "method", "draft_passes", "draft_tokens", "verify_tokens",
               "batch", "context", "tokens_per_round", "inputs"]
    write_rows(out / "published_speedups.csv", rows, columns)
    text = ("Published values compared with the roofline's, for given tokens per round. Host time of a round by method is the same for all sources, that of "
            "engine transformers (configs/engines/transformers.yaml). It was estimated on an A100, from the rows of Spec-Bench that are not scored, and on "
            "a machine that its source does not name. If a source gives the time of its passes without speculation, its host is assumed to be as slow. "
            "Speedups: published / simulated above 1 means that the simulator promises too little. Times: above 1 means that it is too fast.\n\n"
            "| quantity | rows of | rows | published / simulated: geometric mean | spread (factor) | least | most | within 10 % |\n|---|---|---|---|---|---|---|---|\n")
    order = {"speedup": 0, "plain_ms": 1, "verify_ms": 2, "cost_ratio": 3}
    for (quantity, name), ratios in sorted(groups.items(), key=lambda g: (order[g[0][0]], g[0][1] == "all", g[0][1])):
        mean, spread = geometric_mean(ratios), spread_factor(ratios)
        inside = sum(abs(r - 1) <= 0.1 for r in ratios)
        text += f"| {quantity} | {name} | {len(ratios)} | {mean:.3f} | {spread:.3f} | {min(ratios):.3f} | {max(ratios):.3f} | {inside} |\n"
        if name == "all":
            print(f"{quantity:10} {len(ratios):3} rows, published / simulated {mean:.3f}, spread {spread:.3f}, {inside} within 10 %")
    text += ("\n| row | quantity | published | simulated | published / simulated | scored | inputs assumed; where it misses 10 %, the term |\n|---|---|---|---|---|---|---|\n"
             + "".join(lines))
    text += ("\nNot here: Leviathan's T5 (encoder and decoder, no shape for it), Chen's Chinchilla (its tokens per round come from its speedup), Medusa's and "
             "EAGLE's Table 1 and EAGLE-2 (no GPU stated for the values). Sources are in published_speedups.csv.\n")
    (out / "published_speedups.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
