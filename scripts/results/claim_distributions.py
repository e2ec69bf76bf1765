"""Claims on temperature, distributions and the tokens drawn from them (scripts/results/claims.py)."""
import math
from collections import defaultdict
from statistics import NormalDist

import numpy as np

from claim_figures import (ALPHA, Claim, EXACT, Figure, LENGTH, LEVEL, best_length, share, simulated, spearman, widened)
from tables import write_lines


def distribution_claims(runs, audits, out):
    unrelated, related, same = runs["temperature"], runs["temperature_related"], runs["temperature_same_argmax"]
    at = lambda run, t: [row for row in run.rows if row["pair.target_sampling.temperature"] == t][0]
    agreement = related.rows[-1]
    figures = [simulated(at(related, 0.01), "alpha", "1.00", "T = .01, related logits", related.name), simulated(at(unrelated, 0.01), "alpha", "1.00", "T = .01, unrelated logits", unrelated.name),
               simulated(at(same, 0.01), "alpha", "1.00", "T = .01, argmaxes always agree", same.name), simulated(agreement, "alpha", None, "argmaxes agree, related logits", related.name),
               simulated(at(related, 1), "alpha", None, "T = 1, related logits", related.name), simulated(at(related, 100), "alpha", None, "T = 100, related logits", related.name),
               simulated(at(unrelated, 1), "alpha", None, "T = 1, unrelated logits", unrelated.name), simulated(at(unrelated, 100), "alpha", None, "T = 100, unrelated logits", unrelated.name)]
    widened(figures)
    yield Claim("M12", "at very low temperature a approaches 1; higher temperature lowers acceptance", "1 when cold; falling",
                f"{figures[0].measured:.3f} at T = .01, {figures[4].measured:.3f} at 1, {figures[5].measured:.3f} at 100", figures,
                [figures[0].within and figures[1].within, figures[5].high < figures[4].low and figures[7].high < figures[6].low],
                f"the cold limit is the rate at which the argmaxes agree ({agreement['alpha']:.3f}; unrelated logits over 4 tokens {figures[1].measured:.3f}), the hot limit is 1: both distributions become uniform",
                f"{related.name}, {unrelated.name}, {same.name}")

    highest = {}
    for run, cold in ((unrelated, 0), (related, 0.01), (same, 0)):
        others = [row for row in run.rows if row["pair.target_sampling.temperature"] == 1]
        highest[run.name] = at(run, cold)["alpha"] > others[0]["alpha"]
    figures = [simulated(at(unrelated, 0), "alpha", None, "greedy, unrelated logits", unrelated.name), figures[6], simulated(agreement, "alpha", None, "greedy, related logits", related.name),
               figures[4], simulated(at(same, 0), "alpha", None, "greedy, argmaxes agree", same.name), simulated(at(same, 1), "alpha", None, "T = 1, argmaxes agree", same.name)]
    widened(figures)
    yield Claim("L5", "greedy decoding gives the highest alpha", "greedy above T = 1", f"{figures[2].measured:.3f} against {figures[3].measured:.3f} (related logits)", figures, list(highest.values()),
                f"greedy against T = 1: unrelated {figures[0].measured:.3f} to {figures[1].measured:.3f}, related {figures[2].measured:.3f} to {figures[3].measured:.3f}, "
                f"a draft that is only less sure {figures[4].measured:.3f} to {figures[5].measured:.3f}", f"{unrelated.name}, {related.name}, {same.name}", bounds=(f"{figures[2].low:.4f}", f"{figures[2].high:.4f}"), condition=
                "the argmaxes agree more often than the distributions overlap")

    pairs = runs["kl_and_alpha"]
    kl, alpha = np.array([r["kl"] for r in pairs.rows]), np.array([r["alpha"] for r in pairs.rows])
    rho = spearman(kl, alpha)
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) / math.sqrt(len(kl) - 3)
    low, high = math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)
    se = np.array([r["alpha_se"] for r in pairs.rows])
    pinsker, bretagnolle = (1 - alpha - 4 * se <= np.sqrt(kl / 2)).all(), (1 - alpha - 4 * se <= np.sqrt(1 - np.exp(-kl))).all()
    yield Claim("M13", "a falls as KL(target, draft) grows, 200 random 20-token pairs", "falls", f"Spearman {rho:.3f}", [Figure("Spearman correlation of alpha and KL", None, rho, source=pairs.name)],
                [high < 0, pinsker, bretagnolle], "1 - alpha lies below Pinsker's sqrt(KL / 2) and Bretagnolle-Huber's sqrt(1 - exp(-KL)) in every pair", pairs.name, bounds=(f"{low:.4f}", f"{high:.4f}"))

    sets = [runs[n] for n in ("mass_by_token", "tokens_per_round", "speedup_by_cost", "best_length", "kl_and_alpha")]
    cells = sum(len(s.rows) for s in sets)
    agree = sum(s.agree() for s in sets)
    z = max(abs(r["z_tokens_per_round"]) for s in sets for r in s.rows)
    yield Claim("M15", "five figures: masses; E[N] over a; speedup over a with break-even; speedup over k; a over KL", "theory lines", f"{agree} of {cells} points agree",
                [Figure("points that agree with their theory line", str(cells), agree, source="five experiments")], [s.agree() == len(s.rows) for s in sets],
                f"largest |z| {z:.1f} of {cells}; drawn in mass_decomposition, tokens_per_round, speedup_by_cost, speedup_by_length, alpha_over_kl (png)",
                ", ".join(s.name for s in sets), bounds=("", ""))

    soft, soft_audit = runs["soft_argmax"], audits["soft_argmax"]
    target = np.array([0.4, 0.3, 0.2, 0.1])
    figures = []
    for i in (0, 3):
        n = soft.tokens(i, 4)
        p, se = share(n[0], n.sum())
        figures.append(Figure(f"share of token 0 in the text, soft ratio, draft {'%g' % (0.5 if i == 0 else 0.35)}", 0.4, p, se, soft.name, tolerance=0.0))
    for i in (2, 5):
        n = soft.tokens(i, 4)
        p, se = share(n[0], n.sum())
        figures.append(Figure("share of token 0 in the text, draft token sampled", 0.4, p, se, soft.name, tolerance=0.0))
    widened(figures)
    figures += [Figure(f"first token: P(token 0), cell {i}", 0.4, soft_audit[i]["output"][0], source="audit", tolerance=EXACT) for i in (0, 3)]
    figures += [Figure(f"largest difference of the distribution, cell {i}", 0.0, soft_audit[i]["difference"], source="audit", tolerance=EXACT) for i in (1, 2, 4, 5)]
    biased, sound = figures[:2] + figures[4:6], figures[2:4] + figures[6:]
    yield Claim("G1", "pseudocode: draft by argmax, accept with t/d of the soft draft, resample from the soft residual", "token 0: 0.4", f"{figures[0].measured:.4f} of the text (first token {soft_audit[0]['output'][0]:.1f} and {soft_audit[3]['output'][0]:.1f})",
                figures, [f.within for f in biased],
                f"total variation {soft_audit[0]['first_variation']:.2f} and {soft_audit[3]['first_variation']:.2f} of the first token; "
                + ("exact if the draft token is sampled, or judged as the point mass it is" if all(f.within for f in sound) else "the sound rules fail too"), f"{soft.name} (audit)")

    match, match_audit = runs["sample_match"], audits["sample_match"]
    pair, greedy, token_pair, token_greedy = match.rows
    figures = [simulated(pair, "alpha", 2 / 3, "alpha against rejection sampling's, first pair", match.name, tolerance=0.0), simulated(greedy, "alpha", 1 / 3, "the same, target at temperature 0", match.name, tolerance=0.0),
               simulated(token_pair, "alpha", 2 / 3, "rejection sampling, first pair", match.name, tolerance=0.0)]
    widened(figures)
    worst = max(cell["difference"] for cell in match_audit)
    figures.append(Figure("largest difference of the joint distribution", 0.0, worst, source="audit", tolerance=EXACT))
    yield Claim("G5", "analogy: keep the draft while it matches what the target would have written", "2/3 (rejection sampling)", f"{pair['alpha']:.4f} (sum t d = 4/9)", figures,
                [figures[0].within, figures[1].within, figures[3].within], f"lossless (off by {worst:.0e}), but accepts with sum t d instead of sum min(t, d)", f"{match.name} (audit)",
                "the target runs at temperature 0; elsewhere it is lossless but accepts less")

    (note,), fixed = runs["note_example"].rows, runs["note_example_fixed"]
    alphas = np.array([row["alpha_theory"] for row in fixed.rows])
    figures = [simulated(note, "tokens_per_round", "3.22", "tokens per round", "note_example"), simulated(note, "alpha", "0.777", "alpha", "note_example"),
               Figure("spread of alpha over logits (sd)", "0.029", alphas.std(ddof=1), alphas.std(ddof=1) / math.sqrt(2 * (len(alphas) - 1)), fixed.name)]
    widened(figures)
    yield Claim("N1", "32 tokens, N = 4, draft at temperature 0.5: exact; three tokens from one pass", "3 tokens", f"{note['tokens_per_round']:.3f} tokens, alpha {note['alpha']:.4f}", figures,
                [runs["note_example"].passed, figures[0].low >= 3] + [f.within for f in figures],
                f"output distribution agrees (p = {note['p_output_law']:.2g}); over {len(alphas)} draws of the logits alpha has sd {alphas.std(ddof=1):.3f}", "note_example, note_example_fixed")

    # L7: L1 over rounds.
    text = runs["unbiasedness"]
    by_rounds = defaultdict(list)
    for i, row in enumerate(text.rows):
        n = text.tokens(i, 8)
        by_rounds[int(row["rounds"])].append((n.sum(), np.abs(n / n.sum() - 0.125).sum()))
    figures, table = [], []
    for rounds, values in sorted(by_rounds.items()):
        emitted, l1 = np.array(values).T
        expected = math.sqrt(2 / (math.pi * emitted.mean())) * 8 * math.sqrt(0.125 * 0.875)
        se = l1.std(ddof=1) / math.sqrt(len(l1))
        figures.append(Figure(f"L1 after {rounds} rounds ({emitted.mean():.0f} tokens)", expected, l1.mean(), se, text.name, tolerance=0.0))
        table.append([rounds, len(l1), f"{emitted.mean():.10g}", f"{l1.mean():.10g}", f"{se:.10g}", f"{l1.min():.10g}", f"{l1.max():.10g}", f"{expected:.10g}"])
    widened(figures)
    write_lines(out / "unbiasedness.csv", ["rounds", "seeds", "tokens", "l1", "l1_se", "l1_min", "l1_max", "l1_expected"], table)
    slope = np.polyfit(np.log([float(r[2]) for r in table]), np.log([float(r[3]) for r in table]), 1)[0]
    yield Claim("L7", "5,000 rounds: L1(empirical, target) converges to 0", "0 in the limit", f"{figures[0].measured:.3f} at 100 rounds, {figures[-1].measured:.4f} at 5,000", figures,
                [f.within for f in figures] + [abs(slope + 0.5) < 0.05], f"falls as tokens^{slope:.3f} and follows sqrt(2 / (pi n)) sum sqrt(p (1 - p)) = {figures[-1].claimed:.4f} at {float(table[-1][2]):.0f} tokens",
                text.name, bounds=(f"{figures[-1].low:.4f}", f"{figures[-1].high:.4f}"))

    view, wrong = runs["landscape"], runs["landscape_plus_one"]
    steps = sorted({row[ALPHA] for row in view.rows})
    ridge = {a: int(best_length(view.where(alpha=a))[LENGTH]) for a in steps}
    false_ridge = {a: int(max(wrong.where(alpha=a), key=lambda r: r["speedup_theory"])[LENGTH]) for a in steps}
    moved = sum(ridge[a] != false_ridge[a] for a in steps)
    largest = max(row["speedup_theory"] - row["speedup"] for row in wrong.rows)
    yield Claim("L10", "three views: masses by token, landscape of speedup(a, K) with the best K, unbiasedness over 5,000 rounds", "its landscape, by L2",
                f"L2's formula lies up to {largest:.2f}x too high", [Figure("largest excess of the text's landscape", 0.0, largest, source=wrong.name, tolerance=0.0),
                                                                  Figure("alphas whose best K moves", 0.0, moved, source=wrong.name, tolerance=0.0)],
                [runs["mass_by_token"].passed, text.agree() == len(text.rows), view.passed, largest <= 0],
                f"all three drawn from the shipped code; {view.agree()} of {len(view.rows)} cells agree with M4, {wrong.agree('refuted_as_expected')} of {len(wrong.rows)} refute L2, whose best K differs at {moved} of {len(steps)} alphas",
                f"mass_by_token, {view.name}, {wrong.name}, {text.name}", "the landscape is drawn with M4's formula in place of L2's", bounds=("", ""))
