#!/usr/bin/python3
"""Compares synthetic distributions with published acceptance: one value fits the draft, the others are predicted.

    scripts/results/language.py SPECSIM OUT [--keep]    writes OUT/language.csv, OUT/language.md and OUT/manifest.yaml

--keep keeps the values of OUT/language.csv, and computes those of new sets and families; the manifest records this.

Each published set of values comes from one pair of models. The draft's one free parameter is fitted to one of them ("fitted" in the table);
the rest are predictions. A family whose drafts cannot be as good as the fitted value has no predictions for that set. Nine families of
distributions are compared:
  language       contexts differ in entropy and in how well the draft knows them
  head, weak draft   the same, with drafts that differ more from context to context
  chat target    `language` with a target of lower entropy
  sure target    a head whose target was trained to chat; used where only the temperature changes
  flat head      a head whose logits, including its noise, are divided by an extra temperature of 1.7, and a target of lower entropy than `head`'s
  sharp module   the same with .55, and a target of slightly higher entropy; used for the MTP module alone, on which both values were chosen
  one sharpness  normal logits without the two spreads of `language`
  one overlap    a zipf target with the draft along its temperature, the same at every position

Parameters chosen on published values: the spread of `weak draft` on the acceptance by rank of Sequoia's repository; that of `head` on EAGLE's
trees of Vicuna-7B at temperature 0; the temperature of `flat head` on the three pairs of chains by their n-alpha at 0 and 1, and its target's
`sigma` on EAGLE-2's two trees at 1.
"""
import itertools
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from calls import version_of
from tables import rows_of, write_rows

# Families of the target and of the draft; {} is the parameter that is fitted, between the bounds that follow. True: the first bound is the better
# draft.
FAMILIES = {
    "language": ("{family: normal_logits, sigma: 8, spread: 0.4}", "{from: target, transform: logit_noise, value: {}, spread: 0.7}", 0.02, 30),
    "head": ("{family: normal_logits, sigma: 8, spread: 0.4}", "{from: target, transform: logit_noise, value: {}, spread: 1}", 0.01, 30),
    "weak draft": ("{family: normal_logits, sigma: 8, spread: 0.4}", "{from: target, transform: logit_noise, value: {}, spread: 1.4}", 0.01, 30),
    "chat target": ("{family: normal_logits, sigma: 12, spread: 0.4}", "{from: target, transform: logit_noise, value: {}, spread: 0.7}", 0.02, 45),
    "sure target": ("{family: normal_logits, sigma: 16, spread: 0.4}", "{from: target, transform: logit_noise, value: {}, spread: 1}", 0.01, 60),
    "flat head": ("{family: normal_logits, sigma: 12, spread: 0.4}",
                  "{from: {from: target, transform: logit_noise, value: {}, spread: 1}, transform: temperature, value: 1.7}", 0.01, 45),
    "sharp module": ("{family: normal_logits, sigma: 7, spread: 0.4}",
                     "{from: {from: target, transform: logit_noise, value: {}, spread: 0.7}, transform: temperature, value: 0.55}", 0.02, 45),
    "one sharpness": ("{family: normal_logits, sigma: 4}", "{from: target, transform: logit_noise, value: {}}", 0.02, 30),
    "one overlap": ("{family: zipf, exponent: 1.1}", "{from: target, transform: temperature, value: {}}", 1.0001, 30),
}
EAGLE_TREE = ("[[0], [1], [2], [3], [0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 1], [3, 0], [0, 0, 0], [0, 0, 1], [0, 0, 2], "
              "[0, 1, 0], [0, 1, 1], [0, 2, 0], [0, 2, 1], [1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]")


def chain(length, verifier="token"):
    return f"{{drafter: {{kind: chain, draft_length: {length}}}, verifier: {verifier}}}"


def argmaxes(length):
    return f"{{drafter: {{kind: chain, draft_length: {length}, selection: argmax}}, verifier: token}}"


def tree(shape, how):
    verifier = {"top_k": "tree_point_mass", "sampled": "multi_draft_recursive", "kseq": "kseq"}.get(how, how)
    siblings = "sampled" if how == "kseq" else how
    return f"{{drafter: {{kind: tree_static, {shape}, siblings: {siblings}}}, verifier: {verifier}}}"


def chains(count, length, how):
    return tree(f"branching: {[count] + [1] * (length - 1)}", how)


EAGLE_2 = "{drafter: {kind: tree_dynamic, depth: 6, width: 10, nodes: 59}, verifier: tree_point_mass}"
SPECTR = "Sun et al. (SpecTr), arXiv 2310.15141, Table 1"
BLOCK = "Sun et al. (block verification), arXiv 2403.10444, means over its data sets"
EAGLE = "Li et al. (EAGLE), arXiv 2401.15077, Tables 2 and 5, MT-bench"
EAGLE_N_ALPHA = "Li et al. (EAGLE), arXiv 2401.15077, Table 2, chains by their n-alpha at both temperatures"
EAGLE_1 = "Li et al. (EAGLE), arXiv 2401.15077, Table 1"
EAGLE_2_MEANS = "Li et al. (EAGLE-2), arXiv 2406.16858, Table 1, means over six tasks"
SEQUOIA = "Chen et al. (Sequoia), arXiv 2402.12374, Tables 1 and 3"
RANKS = "Chen et al. (Sequoia), its repository, acceptance-rate-vector.pt; pair and temperature not stated, taken for 0"
HEADS = "Cai et al. (Medusa), its repository, assets/medusa_acc.csv, the first head"
MTP = "vLLM pull request 56724 (gf239, September 2026): Qwen3.5-9B and its MTP module, temperature 1; draft length assumed to be 3, as it is not stated"
SIBLINGS = "Chen et al. (Sequoia), arXiv 2402.12374, appendix E: Llama-3 70B with 8B, CNN"


def sequoia(budget, depth, how):
    """The family's own tree for its acceptance by rank; {vector} is replaced by these rates."""
    verifier = {"top_k": "tree_point_mass"}.get(how, how)
    return (f"{{drafter: {{kind: tree_sequoia, budget: {budget - 1}, depth: {depth - 1}, acceptance: {{vector}}, siblings: {how}}}, "
            f"verifier: {verifier}}}")


# Sets: source, temperature, [(description, method, published tokens per round, another temperature)]; the first entry of a set is the fitted one.
SETS = [
    (BLOCK, 1, [("chain of 4, token", chain(4), 2.89), ("chain of 6, token", chain(6), 3.23), ("chain of 8, token", chain(8), 3.41),
                ("chain of 4, block", chain(4, "block"), 2.99), ("chain of 6, block", chain(6, "block"), 3.43),
                ("chain of 8, block", chain(8, "block"), 3.70)]),
    (SPECTR + ": PaLM-2 Bison with Gecko", 1, [("chain of 8, token", chain(8), 2.9), ("8 chains of 8, K-SEQ", chains(8, 8, "kseq"), 4.0)]),
    (SIBLINGS, 1, [("1 sibling", chains(1, 1, "without_replacement"), 1.7732)] + [
        (f"{n} siblings", chains(n, 1, "without_replacement"), tokens) for n, tokens in ((2, 1.8771), (3, 1.9173), (4, 1.9379), (6, 1.9588), (8, 1.9695))]),
]
SETS.append((RANKS, 0, [(f"{n} sibling{'s' if n > 1 else ''}", chains(n, 1, "top_k"), tokens)
                        for n, tokens in ((1, 1.6342), (2, 1.7421), (4, 1.8216), (8, 1.8636), (16, 1.9056), (32, 1.9265))]))
for target, cumulative in (("Vicuna-7B", (0.56, 0.672, 0.727, 0.76, 0.78)), ("Vicuna-33B", (0.605, 0.716, 0.765, 0.798, 0.822))):
    SETS.append((f"{HEADS} of {target}", 0, [(f"{n + 1} sibling{'s' if n else ''}", chains(n + 1, 1, "top_k"), 1 + right)
                                             for n, right in enumerate(cumulative)]))
for pair, tokens in (("Vicuna-7B", (3.2, 3.94, 4.98)), ("LLaMA2-Chat-7B", (3.0, 3.62, 4.70)), ("LLaMA2-Chat-70B", (3.12, 3.81, None))):
    SETS.append((f"{EAGLE}: {pair}", 0, [("chain of 5", argmaxes(5), tokens[0]), ("EAGLE's tree of 25", tree(f"paths: {EAGLE_TREE}", "top_k"), tokens[1])] + (
        [("EAGLE-2's tree of 59", EAGLE_2, tokens[2])] if tokens[2] else [])))
for pair, tokens in (("Vicuna-7B", (2.86, 3.17)), ("LLaMA2-Chat-7B", (2.82, 3.30)), ("LLaMA2-Chat-70B", (2.87, 3.46))):
    SETS.append((f"{EAGLE}: {pair}, the chain by its n-alpha", 1, [
        ("chain of 5", chain(5), tokens[0]), ("EAGLE's tree of 25", tree(f"paths: {EAGLE_TREE}", "without_replacement"), tokens[1])]))
for target, task, temperature, size, levels, five, best in (
        ("7B", "C4", 0, 128, 10, 3.96, 5.08), ("7B", "C4", 0.6, 128, 7, 2.97, 3.92), ("7B", "OpenWebText", 0, 128, 7, 3.15, 3.86),
        ("7B", "OpenWebText", 0.6, 128, 6, 2.54, 3.33), ("7B", "CNN", 0, 128, 7, 3.27, 4.05), ("7B", "CNN", 0.6, 128, 6, 2.58, 3.45),
        ("7B", "MT-Bench", 0, 128, 10, 4.01, 4.98), ("7B", "MT-Bench", 0.6, 128, 7, 2.97, 3.96), ("13B", "C4", 0, 64, 9, 3.64, 4.2),
        ("13B", "C4", 0.6, 64, 7, 2.87, 3.57), ("13B", "OpenWebText", 0, 64, 7, 3.05, 3.49), ("13B", "OpenWebText", 0.6, 64, 6, 2.49, 3.06),
        ("13B", "CNN", 0, 64, 7, 3.22, 3.68), ("13B", "CNN", 0.6, 64, 6, 2.54, 3.17)):
    cold = temperature == 0
    SETS.append((f"{SEQUOIA}: Llama-2 {target} with 68M, {task}", temperature, [
        ("5 chains of 8 (SpecInfer)", chains(5, 8, "top_k" if cold else "sampled"), five),
        (f"Sequoia's tree of {size}, {levels} levels", sequoia(size, levels, "top_k" if cold else "without_replacement"), best)]))


# Predictions at another temperature than the fitted value's: chains of the same heads by their acceptance at each depth, and the gain of a tree.
for pair, cold, warm, tree_warm in (("Vicuna-7B", 3.31, 2.86, 3.17), ("LLaMA2-Chat-7B", 3.04, 2.82, 3.30), ("LLaMA2-Chat-70B", 2.96, 2.87, 3.46)):
    SETS.append((f"{EAGLE_N_ALPHA}: {pair}", 0, [
        ("chain of 5", argmaxes(5), cold), ("chain of 5", chain(5), warm, 1),
        ("EAGLE's tree of 25", tree(f"paths: {EAGLE_TREE}", "without_replacement"), tree_warm, 1)]))
# For the same heads, the loss of a tree when the target and the draft are sampled.
for pair, task, cold, warm in (("Vicuna-7B", "HumanEval", 4.29, 3.43), ("Vicuna-7B", "GSM8K", 4.0, 3.29), ("Vicuna-7B", "Alpaca", 3.86, 3.3),
                               ("LLaMA2-Chat-7B", "HumanEval", 4.24, 3.79), ("LLaMA2-Chat-7B", "GSM8K", 3.82, 3.52), ("LLaMA2-Chat-7B", "Alpaca", 3.71, 3.33)):
    SETS.append((f"{EAGLE_1}: {pair}, {task}", 0, [("EAGLE's tree of 25", tree(f"paths: {EAGLE_TREE}", "top_k"), cold),
                                                   ("EAGLE's tree of 25", tree(f"paths: {EAGLE_TREE}", "without_replacement"), warm, 1)]))
for pair, cold, warm in (("Vicuna-7B", 4.68, 4.2), ("LLaMA2-Chat-7B", 4.64, 4.41)):
    SETS.append((f"{EAGLE_2_MEANS}: {pair}", 0, [("EAGLE-2's tree of 59", EAGLE_2, cold), ("EAGLE-2's tree of 59", EAGLE_2, warm, 1)]))
# Effect of a target's cut tail on drawn and on likeliest tokens. If the draft is cut too, the text begins with "both".
CUT, BOTH = "top_k: 20, top_p: 0.95", "both top_k: 20, top_p: 0.95"
SETS.append((MTP, 1, [
    ("chain of 3", chain(3), 2.64), ("chain of 3, likeliest tokens", argmaxes(3), 2.10), ("chain of 3", chain(3), 2.64, "top_p: 0.95"),
    ("chain of 3, likeliest tokens", argmaxes(3), 2.27, "top_p: 0.95"), ("chain of 3", chain(3), 2.65, CUT), ("chain of 3", chain(3), 2.74, BOTH),
    ("chain of 3, likeliest tokens", argmaxes(3), 2.39, CUT), ("chain of 3", chain(3), 2.46, "top_k: 1"), ("chain of 3, likeliest tokens", argmaxes(3), 2.92, "top_k: 1")]))
# Families that apply to some sets alone, or to all but some.
ONLY = {"sure target": (EAGLE_N_ALPHA, EAGLE_1, EAGLE_2_MEANS), "sharp module": (MTP,)}


class Family:
    """Sets share the ends of their fits, and whole fits: each result of a family's program is computed once."""

    def __init__(self, specsim, name, rounds):
        self.specsim, self.rounds, self.said = specsim, rounds, {}
        self.target, self.draft, self.best, self.worst = FAMILIES[name]

    def tokens_per_round(self, value, temperature, methods):
        """Tokens per round by method, from the same contexts and random numbers. A text instead of the temperature is the cut of the target's
        tail."""
        if isinstance(temperature, str):
            cut = temperature.removeprefix("both ")
            cold = f", target_sampling: {{{cut}}}" + (f", draft_sampling: {{{cut}}}" if cut != temperature else "")
        else:
            cold = f", target_sampling: {{temperature: {temperature}}}" + (f", draft_sampling: {{temperature: {temperature}}}" if temperature else "")
        text = (
            f"experiment: language\nrounds: {self.rounds}\n"
            f"pair: {{vocab: 1000, target: {self.target}, draft: {self.draft.replace('{}', repr(value))}{cold if temperature != 1 else ''}}}\n"
            f"context: {{process: iid, pool: 1000}}\ndecode: {methods[0]}\nsweep:\n  decode:\n" + "".join(f"    - {method}\n" for method in methods))
        if text not in self.said:
            with tempfile.TemporaryDirectory() as folder:
                config = Path(folder) / "config.yaml"
                config.write_text(text)
                done = subprocess.run([self.specsim, "run", str(config), "--out", f"{folder}/out", "--threads", "1"], capture_output=True, text=True)
                if done.returncode != 0:
                    raise RuntimeError(f"{done.stderr}\n{text}")
                self.said[text] = [float(row["tokens_per_round"]) for row in rows_of(f"{folder}/out/data.csv")]
        return self.said[text]

    def fit(self, temperature, method, wanted):
        """The value with which `method` emits this number of tokens per round: false position on its logarithm, at most 12 steps."""
        ends = [math.log(self.best), math.log(self.worst)]
        off = [self.tokens_per_round(math.exp(end), temperature, [method])[0] - wanted for end in ends]
        if off[0] < 0 or off[1] > 0:
            return None  # no draft of this family is that good, or that bad
        for _ in range(12):
            share = min(max(off[0] / (off[0] - off[1]), 0.1), 0.9)
            middle = ends[0] + share * (ends[1] - ends[0])
            gap = self.tokens_per_round(math.exp(middle), temperature, [method])[0] - wanted
            if abs(gap) < 0.002 * wanted:
                break
            side = 0 if gap > 0 else 1
            ends[side], off[side] = middle, gap
        return math.exp(middle)

    def acceptance_by_rank(self, value, temperature, ranks=16):
        """Probability that the sibling of rank 1, 2, ... is the accepted one, with siblings drafted as in Sequoia."""
        how = "without_replacement" if temperature else "top_k"
        within = self.tokens_per_round(value, temperature, [chains(n, 1, how) for n in range(1, ranks + 1)])
        return [max(after - before, 0.0) for before, after in itertools.pairwise([1.0, *within])]


def kept_rows(out):
    """Rows of an earlier run by the set's source and temperature and the place in the set, and the program that made them."""
    kept = {}
    for row in rows_of(out / "language.csv"):
        if row["role"] == "fitted":  # each set begins with it
            of_set, place = (row["source"], float(row["temperature"])), 0
        kept[*of_set, place] = row
        place += 1
    manifest = (out / "manifest.yaml").read_text().splitlines()
    return kept, next(line.split(": ", 1)[1] for line in manifest if line.startswith("program: "))


def is_kept(kept, of_set, made, name):
    """Whether an earlier run tried `name` on all values of a set; cells are empty if it has no such draft."""
    return all(name in kept.get((*of_set, place), {}) for place in range(len(made)))


def answers(family, temperature, figures):
    """Tokens per round for a set whose first value the draft is fitted to; empty if the family has no such draft."""
    value = family.fit(temperature, figures[0][1], figures[0][2])
    if value is None:
        return {}
    methods = [figure[1] for figure in figures]
    if any("{vector}" in method for method in methods):
        vector = [math.floor(p * 1e4) / 1e4 for p in family.acceptance_by_rank(value, temperature)]
        methods = [method.replace("{vector}", str(vector)) for method in methods]
    degrees = [figure[3] if len(figure) > 3 else temperature for figure in figures]
    found = {}
    for one in sorted(set(degrees), key=str):
        places = [place for place, own in enumerate(degrees) if own == one]
        found.update(zip(places, family.tokens_per_round(value, one, [methods[place] for place in places])))
    return found


def where(temperature, figure):
    """The content of a row's temperature column."""
    other = figure[3] if len(figure) > 3 else temperature
    return f"{temperature}, {other}" if isinstance(other, str) else other


def main():
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    kept, kept_program = kept_rows(out) if "--keep" in sys.argv[3:] else ({}, "")
    families = {name: Family(specsim, name, 100000) for name in FAMILIES}
    rows, asked = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (source, temperature, figures) in enumerate(SETS):
            made = [{"source": source, "temperature": where(temperature, figure), "method": figure[0],
                     "published": figure[2], "role": "predicted" if i else "fitted"} for i, figure in enumerate(figures)]
            rows += made
            for name in FAMILIES:
                if not source.startswith(ONLY.get(name, "")) or source == MTP and name in ("weak draft", "one sharpness", "one overlap"):
                    continue
                if is_kept(kept, (source, float(temperature)), made, name):
                    for place, row in enumerate(made):
                        if tokens := kept[source, float(temperature), place][name]:
                            row[name] = float(tokens)
                    continue
                asked.append((number, name, made, pool.submit(answers, families[name], temperature, figures)))
        for number, name, made, answer in asked:
            print(f"{number + 1}/{len(SETS)} {SETS[number][0]}: {name}", file=sys.stderr)
            for place, tokens in answer.result().items():
                made[place][name] = round(tokens, 3)
    write(out, rows)
    keeps = f"kept: the output of {kept_program}, which --keep preserves\n" if kept else ""
    (out / "manifest.yaml").write_text(
        f"program: {version_of(specsim)}\ncommand: scripts/results/language.py SPECSIM results/language{' --keep' if kept else ''}\n{keeps}seed: 20260117\n")


def write(out, rows):
    write_rows(out / "language.csv", rows, ["source", "temperature", "method", "published", "role", *FAMILIES])
    with open(out / "language.md", "w") as file:
        file.write("| temperature | method | published tokens per round | " + " | ".join(FAMILIES) + " |\n" + "|---" * (3 + len(FAMILIES)) + "|\n")
        for source, group in itertools.groupby(rows, lambda row: row["source"]):
            file.write(f"| | *{source}* |" + " |" * (1 + len(FAMILIES)) + "\n")
            for row in group:
                cells = []
                for name in FAMILIES:
                    tokens = row.get(name)
                    error = "" if tokens is None or row["role"] == "fitted" else f" ({100 * (tokens / row['published'] - 1):+.1f} %)"
                    cells.append(("not asked" if name in ONLY or source == MTP else "none so good") if tokens is None else f"{tokens:.2f}{error}")
                file.write(f"| {row['temperature']} | {row['method']}{', fitted' if row['role'] == 'fitted' else ''} | {row['published']:.2f} | "
                           + " | ".join(cells) + " |\n")
        file.write("\n")
        for name in FAMILIES:
            errors = sorted(abs(row[name] / row["published"] - 1) for row in rows if row["role"] == "predicted" and name in row)
            file.write(f"* {name}: {len(errors)} predictions, median error {100 * errors[len(errors) // 2]:.1f} %, "
                       f"largest {100 * errors[-1]:.1f} %.\n")


if __name__ == "__main__":
    main()
