#!/usr/bin/python3
"""Judges the claims of public texts on the time of speculative decoding: the knee of a pass (L1), the three losing regimes (L9), and the effect
of context, placement and batch on the speedup (M14).

usage: scripts/results/timing_claims.py SPECSIM OUT    (from the repository's root: scripts/results/timing_claims.py build/specsim results/timing_claims)

Joins the outputs of `specsim pass`, `plan` and `run`; every time comes from them. Writes to OUT
  knees.csv       L1: verified tokens per sequence at which a target pass takes 1.1 times as long as over one token, and its parts
  crossings.csv   L1: cached tokens at which reading them takes as long as reading the weights
  regimes.csv     L9: the maps of `specsim plan`, pair by pair
  varying_context.csv, placements.csv, batch.csv   M14, from configs/timing_claims
  timing_claims.md, manifest.yaml
Intervals hold at 95 %. scripts/plots/plot_timing_claims.py OUT draws them.
"""
import math
import re
import sys
import tempfile
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from statistics import mean, stdev

from calls import called, printed_rows, version_of
from tables import rows_of, write_lines

CONFIGS = Path("configs/timing_claims")
KNEE = 1.1
EXPERTS = "qwen3-30b-a3b"
TEXT_TOKENS = 6  # the text's own example drafts 5; they are verified with the last token of the round before
GPUS = ["rtx-4090", "l40s", "a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200"]
MODELS = [("llama-2-7b", 1), ("llama-3.1-8b", 1), ("llama-3.1-70b", 4), (EXPERTS, 1)]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
CONTEXTS = [512, 8192, 32768]
MOST_TOKENS = 1024
PARTS = ["weights", "compute", "kv", "communication", "launch", "host", "sampling"]
# name, GPU, target, draft: a pair for each kind of setup.
PAIRS = [("cheap draft", "h100-sxm", "{preset: llama-3.1-70b, tensor_parallel: 4}", "llama-3.2-1b"),
         ("expensive draft", "h100-sxm", "llama-3.1-8b", "llama-3.2-3b"),
         ("one layer, window of 512", "h100-sxm", "llama-3.1-8b", "{preset: eagle-head-8b, kv_window: 512}"),
         ("batch into compute", "a100-80gb-sxm", "{preset: llama-3.1-70b, tensor_parallel: 8}", "llama-3.2-1b")]
LOSSES = {"low_acceptance": "low acceptance", "expensive_draft": "expensive draft", "compute_bound": "compute-bound batch"}
Z95 = 1.959964
T95_OF_8 = 2.364624  # Student's t, 7 degrees of freedom: the seeds of a config
LENGTH = "decode.drafter.draft_length"


def write_csv(path, rows):
    def text(value):
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    write_lines(path, rows[0], ([text(value) for value in row.values()] for row in rows))


def commas(values):
    return ",".join(map(str, values))


# ---- L1: number of tokens that one pass verifies in the time of one token ------------------------------------------------------------------

def first_crossing(points, level):
    """x at which y first reaches `level`, linear between neighbours; None if it does not."""
    before = None
    for x, y in points:
        if y >= level:
            return float(x) if before is None else before[0] + (x - before[0]) * (level - before[1]) / (y - before[1])
        before = (x, y)
    return None


def knees(specsim):
    tokens = [*range(1, 33), *range(36, 128, 4), *range(128, MOST_TOKENS + 1, 32)]
    groups = defaultdict(list)
    for (model, shards), engine in product(MODELS, ("vllm", "bare")):
        for row in printed_rows(specsim, "pass", "--csv", "--engine", engine, "--hardware", commas(GPUS), "--model", model, "--tensor-parallel", shards,
                                "--tokens", commas(tokens), "--batch", commas(BATCHES), "--context", commas(CONTEXTS)):
            groups[model, shards, engine, row["hardware"], int(row["batch"]), int(row["context"])].append(row)
    table = []
    for (model, shards), gpu, batch, context in product(MODELS, GPUS, BATCHES, CONTEXTS):
        passes = {}
        for engine in ("vllm", "bare"):
            own = groups[model, shards, engine, gpu, batch, context]
            one = float(own[0]["total_ms"])
            passes[engine] = [(int(row["tokens"]), float(row["total_ms"]) / one) for row in own]
        own = groups[model, shards, "vllm", gpu, batch, context]
        knee = first_crossing(passes["vllm"], KNEE)
        one = own[0]
        # The parts of the time that the first pass beyond the knee adds.
        at = next((row for row in own if knee is not None and int(row["tokens"]) >= knee), own[-1])
        added = {part: float(at[f"{part}_ms"]) - float(one[f"{part}_ms"]) for part in PARTS}
        largest = max(PARTS, key=added.get)
        row = {"model": model, "gpus": shards, "hardware": gpu, "context": context, "batch": batch, "fits": int(one["fits"]), "knee_tokens": knee,
               "knee_tokens_bare": first_crossing(passes["bare"], KNEE), f"ratio_at_{TEXT_TOKENS}": dict(passes["vllm"])[TEXT_TOKENS],
               "one_token_ms": float(one["total_ms"])}
        row |= {f"{part}_share": float(one[f"{part}_ms"]) / float(one["total_ms"]) for part in ("weights", "kv", "host")}
        row |= {"added_most_by": largest, "its_share_of_added": added[largest] / sum(added.values())}
        table.append(row)
    return table


def crossings(specsim):
    contexts = [2 ** i for i in range(6, 24)]
    table = []
    for model, shards in MODELS:
        groups = defaultdict(list)
        for row in printed_rows(specsim, "pass", "--csv", "--engine", "bare", "--hardware", commas(GPUS), "--model", model, "--tensor-parallel", shards,
                                "--tokens", 1, "--context", commas(contexts)):
            groups[row["hardware"]].append((int(row["context"]), float(row["kv_ms"]) / float(row["weights_ms"])))
        table += [{"model": model, "gpus": shards, "hardware": gpu, "cached_tokens": first_crossing(groups[gpu], 1.0)} for gpu in GPUS]
    return table


def share_text(part, whole):
    return f"{len(part)} of {len(whole)}"


def spread_text(rows, key, form="{:.0f}"):
    values = [row[key] for row in rows]
    return f"{form.format(min(values))} to {form.format(max(values))}"


def knee_text(row):
    return "-" if not row["fits"] else f"over {MOST_TOKENS}" if row["knee_tokens"] is None else f"{row['knee_tokens']:.1f}"


def judge_knees(table, crossed):
    fit = [row for row in table if row["fits"]]
    held = [row for row in fit if row[f"ratio_at_{TEXT_TOKENS}"] < KNEE]
    alone = [row for row in fit if row["batch"] == 1]
    heavy = [row for row in fit if row["kv_share"] > row["weights_share"]]
    short = [row for row in alone if row["context"] == CONTEXTS[0]]
    dense = [row for row in fit if row["model"] != EXPERTS]
    experts = [row for row in alone if row["model"] == EXPERTS]

    def held_share(low, high):
        own = [row for row in dense if low <= row["batch"] <= high]
        return share_text([row for row in own if row in held], own)
    claim = {"id": "L1", "claim": "a K-token forward costs about the same as a one-token forward, because each step reads the whole KV cache once",
             "claimed": f"1x; its own example has K = {TEXT_TOKENS - 1}",
             "measured": f"{TEXT_TOKENS} tokens within {100 * (KNEE - 1):.0f} % of one in {share_text(held, fit)} cells that fit; worst "
                         f"{max(row[f'ratio_at_{TEXT_TOKENS}'] for row in fit):.2f}x",
             "verdict": f"holds only if the pass stays below its knee: dense models {held_share(1, 8)} cells to batch 8, {held_share(16, 16)} at 16, "
                        f"{held_share(32, 256)} beyond; a mixture of experts not even at batch 1 (knee {spread_text(experts, 'knee_tokens', '{:.1f}')} tokens)",
             "reason": f"and the reason is wrong at short context: at batch 1 and {CONTEXTS[0]} cached tokens the cache is "
                       f"{100 * min(r['kv_share'] for r in short):.0f} to {100 * max(r['kv_share'] for r in short):.0f} % of the pass, the weights "
                       f"{100 * min(r['weights_share'] for r in short):.0f} to {100 * max(r['weights_share'] for r in short):.0f} %; the cache takes longer than "
                       f"the weights in {share_text(heavy, fit)} cells"}
    text = ("## L1: the knee\n\nVerified tokens per sequence at which a target pass takes 1.1 times as long as over one token, engine vllm; `-` does not fit.\n\n"
            "| model | GPU | " + " | ".join(f"batch {batch}, {context}" for context in CONTEXTS[:2] for batch in (1, 8, 32, 128)) + " | cached tokens that weigh as "
            "much as the weights |\n" + "|---" * 11 + "|\n")
    find = {(row["model"], row["hardware"], row["batch"], row["context"]): row for row in table}
    for row in crossed:
        model, gpu = row["model"], row["hardware"]
        cells = [knee_text(find[model, gpu, batch, context]) for context in CONTEXTS[:2] for batch in (1, 8, 32, 128)]
        if all(cell == "-" for cell in cells):
            continue
        name = model if row["gpus"] == 1 else f"{model} on {row['gpus']}"
        text += f"| {name} | {gpu} | {' | '.join(cells)} | {row['cached_tokens']:.3g} |\n"
    reached = [row for row in fit if row["knee_tokens"] is not None]
    adds = Counter(row["added_most_by"] for row in reached)
    by_batch = "; ".join(f"{batch}: {held_share(batch, batch)}" for batch in BATCHES)
    text += f"\n- {TEXT_TOKENS} tokens within 10 % of one, dense models, by batch: {by_batch}.\n"
    text += ("- The RTX 4090, A100 and H100 are fitted to measured passes (results/roofline); the others borrow a fit. Knees at odd batches jump, for products are computed in "
             "whole tiles of rows: a batch that has filled a tile can verify within the next one.\n")
    text += f"- What the first pass beyond the knee adds is mostly {', '.join(f'{part} ({n} cells)' for part, n in adds.most_common())}.\n"
    moved = [(row, find[row["model"], row["hardware"], row["batch"], CONTEXTS[1]]) for row in reached if row["context"] == CONTEXTS[0] and row["batch"] == 32]
    moved = [(a, b) for a, b in moved if b["fits"] and b["knee_tokens"] is not None]
    later = [a for a, b in moved if b["knee_tokens"] > a["knee_tokens"]]
    text += (f"- A long cache does move the knee out, since it is read once whatever the tokens: from {CONTEXTS[0]} to {CONTEXTS[1]} tokens at batch 32 in "
             f"{len(later)} of {len(moved)} cells, to {min(b['knee_tokens'] / a['knee_tokens'] for a, b in moved):.1f} to "
             f"{max(b['knee_tokens'] / a['knee_tokens'] for a, b in moved):.1f} times as many.\n")
    bare = [row["knee_tokens"] / row["knee_tokens_bare"] for row in reached if row["knee_tokens_bare"] is not None]
    text += (f"- Host time and padding of the engine hide or add tokens: the knee with them is {min(bare):.2f} to {max(bare):.2f} times the knee without "
             "(column knee_tokens_bare).\n")
    return claim, text


# ---- L9: when speculation loses --------------------------------------------------------------------------------------------

def regimes(specsim, scratch):
    table = []
    for number, (name, gpu, target, draft) in enumerate(PAIRS):
        out = scratch / f"plan_{number}"
        called(specsim, "plan", "--alpha", 0.7, "--hardware", gpu, "--set", f"cost.target={target}", "--draft", draft, "--batch", 1, "--context", 512, "--out", out)
        table += [{"pair": name, **row} for row in rows_of(out / "map.csv")]
    return table


def judge_regimes(table):
    known = [row for row in table if row["regime"] != "does_not_fit"]
    loses = [row for row in known if row["regime"] in LOSSES]
    counts = Counter(row["regime"] for row in loses)
    find = {(row["pair"], row["alpha"], row["batch"], row["context"]): row for row in table}

    def first_loss(pair, context, alpha="0.7"):
        batches = [int(row["batch"]) for row in known if row["pair"] == pair and row["context"] == context and row["alpha"] == alpha]
        for batch in batches:
            if find[pair, alpha, str(batch), context]["regime"] in LOSSES:
                return f"from {batch}"
        return f"not to {max(batches)}" if batches else "-"

    text = ("## L9: where speculation loses\n\nNo draft length from 1 to 16 is faster than plain decoding. Alpha .3 to .95, batch 1 to 512, context 512 to 131,072; cells "
            "that fit in memory. A loss is called low acceptance if a draft that is right 60 % of the time would win there; else after the larger of what drafting and "
            "what verification add to the round.\n\n"
            "| pair | on | cells | pays | " + " | ".join(LOSSES.values()) + " | at alpha .7 loses, context 512 | context 8,192 |\n" + "|---" * 9 + "|\n")
    for name, gpu, target, draft in PAIRS:
        own = [row for row in known if row["pair"] == name]
        number = Counter(row["regime"] for row in own)
        models = " + ".join(re.sub(r"\{preset: ([^,}]+).*", r"\1", model) for model in (target, draft))
        shards = re.search(r"tensor_parallel: (\d+)", target)
        text += (f"| {name}: {models} | {gpu}{f' x {shards[1]}' if shards else ''} | {len(own)} | {number['pays']} | "
                 + " | ".join(str(number[regime]) for regime in LOSSES) + f" | {first_loss(name, '512')} | {first_loss(name, '8192')} |\n")
    shared = [name for name, *_ in PAIRS if len({row["regime"] for row in loses if row["pair"] == name}) > 1]
    direction = []
    for name, *_ in PAIRS:
        one, many = find[name, "0.7", "1", "8192"], find[name, "0.7", "16", "8192"]
        direction.append(f"{name} {float(one['speedup']):.2f}x to {float(many['speedup']):.2f}x")
    text += f"\n- From batch 1 to 16 at 8,192 cached tokens and alpha .7: {'; '.join(direction)}.\n"
    for regime, label in LOSSES.items():
        own = [row for row in loses if row["regime"] == regime]
        text += (f"- {label}: {len(own)} cells, batch {min(int(r['batch']) for r in own)} to {max(int(r['batch']) for r in own)}, context "
                 f"{min(int(r['context']) for r in own):,} to {max(int(r['context']) for r in own):,}, alpha {min(float(r['alpha']) for r in own):g} to "
                 f"{max(float(r['alpha']) for r in own):g}.\n")
    claim = {"id": "L9", "claim": "there are three regimes where it loses (their list is lost; our reading: low alpha, expensive draft, compute-bound batch)",
             "claimed": "three regimes",
             "measured": f"{share_text(loses, known)} cells lose: " + ", ".join(f"{LOSSES[regime]} {counts[regime]}" for regime in LOSSES),
             "verdict": "confirmed, as we read it" if all(counts[regime] for regime in LOSSES) else "refuted in part",
             "reason": f"each occurs, in {len(shared)} of {len(PAIRS)} pairs more than one, by batch and context: what a draft costs depends on its cache as well as on its size. "
                       "Every loss is given to one of the three, so a fourth could not show"}
    return claim, text


# ---- M14: context, placement, batch --------------------------------------------------------------------------------------------

def simulate(specsim, scratch, name, command):
    called(specsim, command, CONFIGS / f"{name}.yaml", "--quiet", "--out", scratch / name)
    return rows_of(scratch / name / "data.csv")


def varying_context(specsim, scratch):
    table = []
    for row in simulate(specsim, scratch, "varying_context", "check"):
        leave = float(re.match(r"\[\[[\d.]+, ([\d.]+)\]", row["context.transition"])[1])
        table.append({"stretch_tokens": round(1 / leave), "draft_length": int(row[LENGTH]), "alpha_of_log": float(row["alpha"]),
                      "tokens_per_round": float(row["tokens_per_round"]), "speedup": float(row["speedup"]), "half_width": Z95 * float(row["speedup_se"]),
                      "formula_at_log_alpha": float(row["speedup_theory"])})
    iid = {row["draft_length"]: row["formula_at_log_alpha"] for row in table if row["stretch_tokens"] == 2}
    for row in table:
        row["formula_at_text_alpha"] = iid[row["draft_length"]]  # each position drawn independently: the log shows the text's mean
    return table


def decode_speedups(rows, axes, baseline):
    """Time per output token without speculation over that of each setting, over its seeds. `baseline`: the setting without speculation."""
    times = defaultdict(dict)
    firsts = {}
    for row in rows:
        key = tuple(row[axis] for axis in axes) + (int(row[LENGTH]),)
        times[key][row["seed"]] = float(row["tpot_ms"])
        firsts[key] = float(row["ttft_ms"])
    table = []
    for key, own in times.items():
        ratios = [times[baseline(key) + (0,)][seed] / ms for seed, ms in own.items()]
        table.append({**{axis.split(".")[-1].removesuffix("_length"): value for axis, value in zip(axes, key)}, "draft_length": key[-1], "ttft_ms": firsts[key], "tpot_ms": mean(own.values()),
                      "speedup": mean(ratios), "half_width": T95_OF_8 * stdev(ratios) / math.sqrt(8)})
    return table


def best_of(rows):
    return max(rows, key=lambda row: row["speedup"])


def figure(row):
    return f"{row['speedup']:.3f} +- {row['half_width']:.3f}"


def apart(more, less):
    """Whether the intervals do not overlap."""
    return more["speedup"] - more["half_width"] > less["speedup"] + less["half_width"]


def placements(specsim, scratch):
    axes = ["cost.target.tensor_parallel", "placement", "workload.batch"]
    table = decode_speedups(simulate(specsim, scratch, "placements", "run"), axes, lambda key: ("1", "{kind: serial}", key[2]))
    for row in table:
        row["gpus"] = int(row["tensor_parallel"]) + (1 if re.search("two_gpus|network", row["placement"]) else 0)
    return table


def batch(specsim, scratch):
    axes = ["cost.draft", "workload.context_length", "workload.batch"]
    return decode_speedups(simulate(specsim, scratch, "batch", "run"), axes, lambda key: key[:3])


def placement_name(row):
    kind = re.search(r"kind: (\w+)", row["placement"])[1]
    latency = re.search(r"latency_ms: ([\d.]+)", row["placement"])
    name = {"serial": "in turn", "shared": "sharing a GPU", "two_gpus": "draft on its own GPU", "network": "draft across a network"}[kind]
    return name + (f", {latency[1]} ms" if latency else "") + (", target on both" if row["tensor_parallel"] == "2" else "")


def judge_context(table):
    text = ("## M14: acceptance that varies with context\n\nHalf of the text at alpha .9, half at .4, in stretches; llama-3.1-70b with llama-3.2-1b on four H100, batch 8. The formula "
            "for one alpha gets the text's mean (.65), or the alpha that a log of the run shows at that draft length.\n\n"
            "| stretch | best draft length | speedup | formula, text's alpha: best, speedup | formula, log's alpha | loss of the draft length for the text's alpha |\n"
            + "|---" * 6 + "|\n")
    errors, misses, lengths, outside, lost = {}, [], {}, [], []
    for stretch in sorted({row["stretch_tokens"] for row in table}):
        own = [row for row in table if row["stretch_tokens"] == stretch]
        best = best_of(own)
        chosen = max(own, key=lambda row: row["formula_at_text_alpha"])
        errors[stretch] = chosen["formula_at_text_alpha"] / chosen["speedup"] - 1
        misses.append(max(row["formula_at_log_alpha"] / row["speedup"] - 1 for row in own))
        lengths[stretch] = best["draft_length"]
        outside.append(abs(chosen["formula_at_text_alpha"] - chosen["speedup"]) > chosen["half_width"])
        loss = best["speedup"] - chosen["speedup"]
        lost.append(loss)
        width = math.hypot(best["half_width"], chosen["half_width"])  # too wide: the lengths share their random numbers
        text += (f"| {stretch if stretch > 2 else 'none: positions are independent'} | {best['draft_length']} | {figure(best)} | {chosen['draft_length']}, {chosen['formula_at_text_alpha']:.3f} | "
                 f"{best['formula_at_log_alpha']:.3f} | {'none' if best is chosen else f'{loss:.3f} +- {width:.3f}'} |\n")
    worst = max(errors, key=errors.get)
    losses = f"{max(lost):.3f}x at most" if max(lost) else "nothing"
    anew, *stretched = outside
    return {"id": "M14", "claim": "acceptance varies with context, so the iid formula misses", "claimed": "it misses",
            "measured": f"speedup predicted at the text's mean alpha {100 * errors[min(errors)]:+.1f} % off if positions are independent, {100 * errors[worst]:+.1f} % in stretches of "
                        f"{worst}; at the alpha of a log up to {100 * max(misses):+.1f} %",
            "verdict": "confirmed" if all(stretched) and not anew else "holds only in part",
            "reason": f"hard text takes more rounds than its share of the text, and with them the time; best draft length by stretch "
                      f"{', '.join(f'{stretch}: {length}' for stretch, length in lengths.items())}, and the formula's draft length loses {losses}"}, text


def judge_placements(table):
    text = ("## M14: where target and draft run\n\nllama-3.1-70b at 8 bits with llama-3.2-1b on H200s, alpha .75, 2,048 tokens of prompt, 1,024 of output, a batch in lockstep. Speedup of the time "
            "per output token (the draft's prefill falls in it) over plain decoding on one GPU, at the best draft length, over 8 seeds.\n\n"
            "| GPUs | placement | batch 1: draft length | speedup | TPOT, ms | batch 16: draft length | speedup | TPOT, ms |\n" + "|---" * 8 + "|\n")
    best, plain = {}, {}
    names = list(dict.fromkeys((row["gpus"], placement_name(row)) for row in table))
    for row in table:
        if row["draft_length"] == 0 and placement_name(row).startswith("in turn"):
            plain[row["gpus"], row["batch"]] = row
    for name in sorted(names):
        for size in ("1", "16"):
            best[name, size] = best_of([row for row in table if (row["gpus"], placement_name(row)) == name and row["batch"] == size and row["draft_length"] > 0])
    for gpus in (1, 2):
        cells = [f"0 | {plain[gpus, size]['speedup']:.3f} | {plain[gpus, size]['tpot_ms']:.2f}" for size in ("1", "16")]
        text += f"| {gpus} | plain decoding{', target on both' if gpus == 2 else ''} | {' | '.join(cells)} |\n"
        for name in names:
            if name[0] == gpus:
                cells = [f"{best[name, size]['draft_length']} | {figure(best[name, size])} | {best[name, size]['tpot_ms']:.2f}" for size in ("1", "16")]
                text += f"| {gpus} | {name[1]} | {' | '.join(cells)} |\n"
    own, both = (2, "draft on its own GPU"), (2, "in turn, target on both")
    measured = "; ".join(f"batch {size}: second GPU for the draft {best[own, size]['speedup']:.2f}x, for the target {best[both, size]['speedup']:.2f}x, one GPU in turn "
                         f"{best[(1, 'in turn'), size]['speedup']:.2f}x" for size in ("1", "16"))
    shared = [1 - best[(1, "sharing a GPU"), size]["speedup"] / best[(1, "in turn"), size]["speedup"] for size in ("1", "16")]
    better = [apart(best[both, size], best[own, size]) for size in ("1", "16")]
    return {"id": "M14", "claim": "target and draft contend on one GPU, or run on two", "claimed": "no figure", "measured": measured,
            "verdict": "confirmed" if min(shared) > 0 else "refuted",
            "reason": f"sharing costs {100 * shared[0]:.0f} % of the speed at batch 1 and {100 * shared[1]:.0f} % at 16 against taking turns; on equal hardware the second GPU "
                      f"{'is worth more to the target than to the draft' if all(better) else 'may go to either'}"}, text


def judge_batch(table):
    text = ("## M14: many sequences at once\n\nllama-3.1-8b on one H200, alpha .7, 1,024 tokens of output, a batch in lockstep with acceptance of its own for each sequence; speedup of the time per output token at the "
            "best draft length (in brackets), over 8 seeds.\n\n")
    sizes = sorted({int(row["batch"]) for row in table})
    text += "| draft | context | " + " | ".join(f"batch {size}" for size in sizes) + " |\n" + "|---" * (2 + len(sizes)) + "|\n"
    ends, rising, moved = [], [], []
    for draft in dict.fromkeys(row["draft"] for row in table):
        name = "eagle-head-8b, window of 512," if "kv_window" in draft else draft
        for context in dict.fromkeys(row["context"] for row in table):
            best = [best_of([row for row in table if (row["draft"], row["context"], int(row["batch"])) == (draft, context, size)]) for size in sizes]
            text += f"| {name.rstrip(',')} | {context} | " + " | ".join(f"{figure(row)} ({row['draft_length']})" for row in best) + " |\n"
            ends.append(f"{name} at {context}: {best[0]['speedup']:.2f}x to {best[-1]['speedup']:.2f}x")
            top = best_of(best)
            if apart(top, best[0]):
                rising.append(f"{name} at {context}, which gains to {top['speedup']:.2f}x at batch {top['batch']}")
            moved.append(apart(top, best[-1]))
    return {"id": "M14", "claim": "continuous batching complicates it", "claimed": "no figure", "measured": f"batch {sizes[0]} to {sizes[-1]}: {'; '.join(ends)}",
            "verdict": "confirmed" if all(moved) else "holds only in part",
            "reason": f"at batch {sizes[-1]} less than at the best one in {sum(moved)} of {len(moved)} settings, by verification and by the draft's own cache; a batch gains "
                      f"only with {' and '.join(rising) or 'none'}. Static batches: queues of requests are not simulated yet"}, text


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        tables = {"knees": knees(specsim), "crossings": crossings(specsim), "regimes": regimes(specsim, scratch)}
        for made in (varying_context, placements, batch):
            tables[made.__name__] = made(specsim, scratch)
    for name, table in tables.items():
        write_csv(out / f"{name}.csv", table)
    judged = [judge_knees(tables["knees"], tables["crossings"]), judge_regimes(tables["regimes"]), judge_context(tables["varying_context"]),
              judge_placements(tables["placements"]), judge_batch(tables["batch"])]
    claims = [claim for claim, _ in judged]
    columns = list(claims[0])
    text = "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"
    text += "".join("| " + " | ".join(claim[column] for column in columns) + " |\n" for claim in claims)
    (out / "timing_claims.md").write_text(text + "\n" + "\n".join(part for _, part in judged))
    (out / "manifest.yaml").write_text(f'script: scripts/results/timing_claims.py\ncommand: "scripts/results/timing_claims.py {specsim} {out}"\nprogram: "{version_of(specsim)}"\n'
                                       f"configs: {CONFIGS}\nplots: scripts/plots/plot_timing_claims.py\n")
    for claim in claims:
        print(f"{claim['id']}: {claim['verdict']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
