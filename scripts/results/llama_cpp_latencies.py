#!/usr/bin/python3
"""Compares llama.cpp's passes, as users measured them on consumer cards, with the estimates of engine llama_cpp.

usage: scripts/results/llama_cpp_latencies.py SPECSIM OUT [--engine YAML]    (from the repository's root: scripts/results/llama_cpp_latencies.py build/specsim results/roofline)

Reads configs/published/llama_cpp.csv (tokens per second that llama-bench printed, with their sources). Writes llama_cpp.csv, each row with
its estimate, and llama_cpp.md to OUT, and prints the latter: published / simulated by GPU, tokens of a pass and context. A ratio above 1
means that the simulator is too fast. --engine estimates with another description of the engine.

Column `set`: "fit" rows determined the values of configs/engines/llama_cpp.yaml. "held" rows did not; they are of other cards, models or authors.
"earlier" rows were measured before a change to the kernels that the row names, and enter no value. pp is a pass over many tokens that computes
only the last one's logits; tg is decoding without speculation.
"""
import argparse
import sys
from pathlib import Path

from calls import printed_rows
from tables import quantile, rows_of, write_rows

ROWS = Path("configs/published/llama_cpp.csv")
# A file's type by its name in GGUF. IQ4_NL has the bits of Q4_0, and the S variant of a K-quant is M with fewer bits.
TYPES = {"mxfp4": "{weights: q8_0, experts: mxfp4}", "iq4_nl": "q4_0", "q4_k_s": "q4_k_m", "q5_k_s": "q5_k_m"}
SETS = {"fit": "fitted to", "held": "held back", "earlier": "of earlier kernels"}
TOKENS = [(1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (32, "10-32"), (128, "64-128"), (512, "256-512")]
FEW = 8  # tokens up to which a kernel for few tokens computes the products
MIXTURES = ("a3b", "a4b", "gpt-oss")
CONTEXTS = [(4095, "to 4K"), (16383, "8K"), (1e9, "32K")]


def band(bands, value):
    return next(name for most, name in bands if value <= most)


def price(specsim, engine, rows):
    """Adds published_ms, simulated_ms and their ratio to rows that differ only in their tokens."""
    one = rows[0]
    passes = printed_rows(specsim, "pass", "--csv", "--hardware", one["hardware"], "--model", one["model"], "--engine", engine,
                          "--dtype", TYPES.get(one["file_type"], one["file_type"]), "--context", one["context"],
                          "--tokens", ",".join(row["tokens"] for row in rows), "--logits", "none" if one["test"].startswith("pp") else "all")
    priced = {row["tokens"]: float(row["total_ms"]) for row in passes}
    for row in rows:
        published = 1e3 * int(row["tokens"]) / float(row["tokens_per_s"])
        row.update(published_ms=f"{published:.4f}", simulated_ms=f"{priced[row['tokens']]:.4f}",
                   published_over_simulated=f"{published / priced[row['tokens']]:.3f}")


def error_cells(rows):
    """Count, median of published / simulated with least and most, and the error's median and 90th percentile in percent."""
    ratios = [float(row["published_over_simulated"]) for row in rows]
    if not ratios:
        return " | | |"
    errors = [100 * abs(ratio - 1) for ratio in ratios]
    return (f" {len(ratios)} | {quantile(ratios, 0.5):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{quantile(errors, 0.5):.0f} / {quantile(errors, 0.9):.0f} |")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("specsim")
    parser.add_argument("out", type=Path)
    parser.add_argument("--engine", default="llama_cpp")
    arguments = parser.parse_args()
    rows = rows_of(ROWS)
    alike = {}
    for row in rows:
        key = (row["hardware"], row["model"], row["file_type"], row["context"], row["test"].startswith("pp"))
        alike.setdefault(key, {})[row["tokens"], row["source"]] = row
    for group in alike.values():
        by_tokens = {}
        for row in group.values():
            by_tokens.setdefault(row["source"], []).append(row)
        for some in by_tokens.values():
            price(arguments.specsim, arguments.engine, some)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_rows(arguments.out / "llama_cpp.csv", rows)
    groups = {"all": rows}
    for gpu in sorted({row["hardware"] for row in rows}):
        groups[gpu] = [row for row in rows if row["hardware"] == gpu]
    for most, name in TOKENS:
        groups[f"{name} token{'s' if most > 1 else ''}"] = [row for row in rows if band(TOKENS, int(row["tokens"])) == name]
    for _, name in CONTEXTS:
        groups[f"context {name}"] = [row for row in rows if band(CONTEXTS, int(row["context"])) == name]
    few = [row for row in rows if int(row["tokens"]) <= FEW]
    for mixture, name in ((False, "without experts"), (True, "with experts")):
        groups[f"to {FEW} tokens, {name}"] = [row for row in few if mixture == any(word in row["model"] for word in MIXTURES)]
    text = ("llama-bench's passes of one sequence, compared with the estimates of engine llama_cpp: rows, median of published / simulated (least and most; "
            "above 1 the simulator is too fast), and the error's median and 90th percentile, percent.\n\n"
            "| rows |" + "".join(f" {words} | ratio | error |" for words in SETS.values()) + "\n|---|" + "---|---|---|" * len(SETS) + "\n")
    for name, group in groups.items():
        text += f"| {name} |" + "".join(error_cells([row for row in group if row["set"] == kind]) for kind in SETS) + "\n"
    (arguments.out / "llama_cpp.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
