#!/usr/bin/python3
"""Compares speculation in real servers of 2025 and 2026, from public threads, with the simulator on the same inputs. Nothing is fitted.

usage: scripts/results/served_speedups.py SPECSIM OUT    (from the repository's root: scripts/results/served_speedups.py build/specsim results/served)

Reads configs/published/served_speedups.csv (values, sources, assumptions, which rows are scored and why not) and writes to OUT
served_speedups.csv, served_speedups.md and manifest.yaml. Tokens per round are the measured ones; only time is simulated. One rule
holds for all rows: steps are estimated by `specsim pass` over all clients at prompt plus half of the output,

  plain step   pass over 1 token per sequence (without speculation)
  round        draft_passes passes of the draft, pass over verify_tokens, the engine's round_us
  metric       tpot_ms, user_tok_s, clients_tok_s (clients / TPOT): step / tokens per round, and a prompt's pass for each output of
               another client; output_tok_s: a request's steps and all clients' prompts; decode_tok_s: steps alone; ratio: speedups alone

The same terms are subtracted from the measurements, so that plain steps and rounds are scored as well as speedups.
Measured over simulated: of a speedup above 1 the simulator promises too little, of a time above 1 it is too fast.
"""
import sys
from collections import defaultdict
from pathlib import Path

from calls import version_of
from estimated_passes import engine_figure, total_ms
from tables import geometric_mean, rows_of, spread_factor, write_rows

ROWS = Path("configs/published/served_speedups.csv")
SERVER = ["source", "engine", "version", "hardware", "gpus", "target", "target_dtype", "clients", "prompt", "workload", "plain"]  # columns shared by rows with different drafts
QUANTITIES = ["speedup", "plain", "round"]
GROUPS = [("engine", "engine"), ("GPU", "hardware"), ("target", "target_type"), ("draft", "draft_kind"), ("clock", "clock")]


def pass_ms(specsim, row, role, tokens, batch, context, logits):
    model, dtype = (row["target"], row["target_dtype"]) if role == "target" else (row["draft"], row["draft_dtype"])
    arguments = ["--hardware", row["hardware"], "--model", model, "--role", role, "--engine", row["engine"], "--tokens", str(tokens), "--batch", str(batch),
                 "--context", str(context), "--tensor-parallel", row["gpus"], "--logits", logits]
    arguments += ["--dtype", dtype] if dtype else []
    arguments += ["--head-bits", row["head_bits"]] if row["head_bits"] else []
    arguments += ["--kv-bits", row["kv_bits"]] if row["kv_bits"] else []
    return total_ms(specsim, arguments, f"served_speedups: {row['row']}")


def per_token(row, step, tokens, prompt_ms):
    """Milliseconds per token of a client in the row's metric, for a given step time and tokens per round; per_step is its inverse."""
    return step / tokens + beside(row, prompt_ms)


def beside(row, prompt_ms):
    clients, output = int(row["clients"]), float(row["output"])
    others = {"tpot_ms": clients - 1, "user_tok_s": clients - 1, "clients_tok_s": clients - 1, "output_tok_s": clients}
    return others.get(row["metric"], 0) * prompt_ms / output


def measured_ms(row, key):
    """Measured milliseconds per token of a client."""
    if not row[key] or row["metric"] == "ratio":
        return None
    value = float(row[key])
    return value if row["metric"] == "tpot_ms" else 1e3 / value if row["metric"] == "user_tok_s" else 1e3 * int(row["clients"]) / value


def price(specsim, row):
    clients = int(row["clients"])
    context = int(row["prompt"]) + int(row["output"]) // 2
    prompt_ms = pass_ms(specsim, row, "target", row["prompt"], 1, 0, "1") if beside(row, 1.0) > 0 else 0.0
    made = {"plain": pass_ms(specsim, row, "target", 1, clients, context, "all")}
    tokens = float(row["tokens_per_round"] or 0)
    if tokens and row["draft"] != "unknown":
        made["verify"] = pass_ms(specsim, row, "target", row["verify_tokens"], clients, context, "all")
        draft = pass_ms(specsim, row, "draft", row["draft_tokens"], clients, context, "all") if row["draft"] else 0.0
        made["draft"] = int(row["draft_passes"]) * draft
        made["round"] = made["verify"] + made["draft"] + 1e-3 * engine_figure(row["engine"], "round_us", 0.0)
        made["speedup"] = per_token(row, made["plain"], 1, prompt_ms) / per_token(row, made["round"], tokens, prompt_ms)
    seen = {}
    plain, spec = measured_ms(row, "plain"), measured_ms(row, "speculative")
    if plain:
        seen["plain"] = plain - beside(row, prompt_ms)
    if spec and tokens:
        seen["round"] = (spec - beside(row, prompt_ms)) * tokens
    if plain and spec:
        seen["speedup"] = plain / spec
    if row["metric"] == "ratio":
        seen["speedup"] = float(row["speculative"]) / float(row["plain"])
    return made, seen


def summary(ratios):
    spread = f"{spread_factor(ratios):.2f}" if len(ratios) > 1 else "-"
    inside = [sum(abs(r - 1) <= bound for r in ratios) for bound in (0.1, 0.2)]
    return (f"{len(ratios)} | {geometric_mean(ratios):.2f} | {spread} | {min(ratios):.2f} | {max(ratios):.2f} | "
            f"{100 * inside[0] / len(ratios):.0f} | {100 * inside[1] / len(ratios):.0f}")


def repeated(rows):
    """Times without speculation that several rows of a source share count once."""
    once = {}
    for row in rows:
        once.setdefault((row["source"], row["target"], row["target_dtype"], row["hardware"], row["gpus"], row["clients"], row["plain"], row["prompt"]), row)
    return list(once.values())


def ratios_of(rows, quantity):
    rows = [row for row in rows if row[f"{quantity}_ratio"]]
    return [float(row[f"{quantity}_ratio"]) for row in (repeated(rows) if quantity == "plain" else rows)]


def table_of_groups(rows):
    head = "| | {} | rows | measured / simulated: geometric mean | spread (factor) | least | most | within 10 %, percent | 20 % |\n|---|---|---|---|---|---|---|---|---|\n"
    text = ""
    for quantity in QUANTITIES:
        text += {"speedup": "\nSpeedups.\n\n", "plain": "\nPlain steps (each server once).\n\n", "round": "\nRounds.\n\n"}[quantity] + head.format("")
        text += f"| all | | {summary(ratios_of(rows, quantity))} |\n"
        for name, key in GROUPS:
            for value in sorted({row[key] for row in rows if row[f"{quantity}_ratio"] and row[key]}):
                text += f"| {name} | {value} | {summary(ratios_of([r for r in rows if r[key] == value], quantity))} |\n"
    return text


def settings(rows):
    """A source's rows that differ only in the draft; simulated and measured tokens per second of each, relative to 1 without speculation."""
    sets = defaultdict(list)
    for row in rows:
        if row["round_ratio"]:
            sets[tuple(row[key] for key in SERVER)].append(row)
    return [group for group in sets.values() if len(group) > 1 or group[0]["plain"]]


def table_of_choices(rows):
    lines, best, losses, signs, wrong = [], 0, [], 0, 0
    for group in settings(rows):
        seen = {row["row"]: 1 / float(row["measured_ms_a_token"]) for row in group}
        made = {row["row"]: 1 / float(row["simulated_ms_a_token"]) for row in group}
        if group[0]["plain"]:
            seen["plain"], made["plain"] = 1 / float(group[0]["measured_plain_a_token"]), 1 / float(group[0]["simulated_plain_a_token"])
        chosen, fastest = max(made, key=made.get), max(seen, key=seen.get)
        loss = 100 * (1 - seen[chosen] / seen[fastest])
        best += chosen == fastest
        losses.append(loss)
        for row in group:
            if row["plain"]:
                wrong += (seen[row["row"]] > seen["plain"]) != (made[row["row"]] > made["plain"])
                signs += 1
        lines.append(f"| {group[0]['source']}, {group[0]['hardware']}, {group[0]['clients']} clients{', ' + group[0]['workload'] if group[0]['workload'] else ''} | {len(seen)} | {fastest} | {chosen} | {loss:.1f} |\n")
    head = (f"{len(losses)} servers have several settings, including no drafting if it was timed. The simulator's fastest setting is the measured one for {best}. Its "
            f"choice\nloses {sorted(losses)[len(losses) // 2]:.1f} % (median) and {max(losses):.1f} % at most. It predicts correctly whether drafting pays for "
            f"{signs - wrong} of {signs} settings.\n\n| server | settings | fastest measured | fastest simulated | loses, percent |\n|---|---|---|---|---|\n")
    return head + "".join(lines)


def main():
    if any(word in ("-h", "--help") for word in sys.argv[1:]):
        print(__doc__)
        return 0
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    rows = rows_of(ROWS)
    columns = list(rows[0])
    for row in rows:
        made, seen = price(specsim, row)
        for quantity in QUANTITIES:
            row[f"measured_{quantity}"] = f"{seen[quantity]:.5g}" if quantity in seen else ""
            row[f"simulated_{quantity}"] = f"{made[quantity]:.5g}" if quantity in made else ""
            row[f"{quantity}_ratio"] = f"{seen[quantity] / made[quantity]:.4f}" if quantity in seen and quantity in made else ""
        row["simulated_verify"], row["simulated_draft"] = (f"{made[key]:.5g}" if key in made else "" for key in ("verify", "draft"))
        if row["round_ratio"]:
            tokens = float(row["tokens_per_round"])
            row["measured_ms_a_token"], row["simulated_ms_a_token"] = seen["round"] / tokens, made["round"] / tokens
            row["measured_plain_a_token"], row["simulated_plain_a_token"] = seen.get("plain"), made["plain"]
    columns += [f"{kind}_{quantity}" for quantity in QUANTITIES for kind in ("measured", "simulated")] + ["simulated_verify", "simulated_draft"]
    columns += [f"{quantity}_ratio" for quantity in QUANTITIES]
    write_rows(out / "served_speedups.csv", rows, columns)
    scored = [row for row in rows if row["scored"] == "yes"]
    text = (f"{len(scored)} scored rows of {len({row['source'] for row in scored})} texts and tables, {len(rows) - len(scored)} more that are not scored; tokens per round as measured "
            "there. Measured over simulated: of a speedup above 1 the simulator promises too little, of a time above 1 it is too fast.\n")
    text += table_of_groups(scored) + "\n" + table_of_choices(scored)
    text += "\nEvery row; times in ms.\n\n| row | tokens per round | speedup measured, simulated | plain step | round | ratios | scored | inputs |\n|---|---|---|---|---|---|---|---|\n"
    for row in rows:
        cells = [", ".join(row[f"{kind}_{quantity}"] or "-" for kind in ("measured", "simulated")) for quantity in QUANTITIES]
        text += (f"| {row['row']} | {row['tokens_per_round'] or '-'} | {' | '.join(cells)} | {', '.join(row[f'{q}_ratio'][:4] or '-' for q in QUANTITIES)} | "
                 f"{row['scored']} | {row['inputs']} |\n")
    (out / "served_speedups.md").write_text(text)
    (out / "manifest.yaml").write_text(f"script: scripts/results/served_speedups.py\ncommand: \"scripts/results/served_speedups.py build/specsim results/served\"\nprogram: \"{version_of(specsim)}\"\n"
                                       f"data: {ROWS}\n")
    for quantity in QUANTITIES:
        print(f"{quantity:8} {summary(ratios_of(scored, quantity))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
