"""Laws that every run of a server obeys, request by request and step by step (oracles_test.py): Little, conservation of blocks and of
Kleinrock, monotonicity, limits, the law of steps, the region of stability.
"""
import numpy as np

from bench import config, kolmogorov_p, mean_p
from queue_oracles import ALONE, LONG, poisson


# ---- Q11 to Q15: exact laws of every run ---------------------------------------------------------------------------------------------

def blocks_integral(prompt, output, step, block=16):
    return step * sum(-(-(prompt + i) // block) for i in range(output))


def q11_q12(bench, checks):
    cost = {"target_fixed_ms": 2.0}
    lengths = {"prompt": {"list": [5, 40, 17, 90]}, "output": {"list": [9, 1, 33, 20, 7]}}
    total = 500

    def judge(run, exact):
        steps, requests = run.ps("duration_s", True), run.whole("requests", True)
        held = [total - 1 - free for free in run.whole("free_blocks", True)]
        alive = sum(a - b for a, b in zip(run.ps("last_token_s"), run.ps("first_scheduled_s")))
        exact("Q11, Little: batch over time = time in service", sum(n * t for n, t in zip(requests, steps)), alive)
        want = sum(blocks_integral(p, o, 2 * 10 ** 9) for p, o in zip(run.whole("prompt_tokens"), run.whole("output_tokens")))
        exact("Q11, Little: blocks over time", sum(n * t for n, t in zip(held, steps)), want)
        exact("Q12, rows of prompts", sum(run.whole("prefill_rows", True)), sum(run.whole("prompt_tokens")))
        exact("Q12, decode rows = rounds", sum(run.whole("decode_rows", True)), sum(run.whole("rounds")))
        exact("Q12, plain rounds", run.whole("rounds"), [o - 1 for o in run.whole("output_tokens")])
        starts = run.ps("start_s", True)
        exact("Q12, no two steps at once", [i for i in range(1, len(starts)) if starts[i] < starts[i - 1] + steps[i - 1]], [])

    arrivals = {"process": "closed", "concurrency": 20, "requests": 300}
    one = config(arrivals, cost, lengths, kv={"block": 16, "blocks": total}, max_num_seqs=12)
    judge(bench.run(one, steps=True), checks.exact)
    # Records of the same run with one wrong entry: only the corresponding identity breaks.
    for table, column, text, broken in (("raw_steps", "requests", "1", "Q11, Little: batch over time = time in service"),
                                        ("raw_steps", "free_blocks", "7", "Q11, Little: blocks over time"),
                                        ("raw_steps", "prefill_rows", "3", "Q12, rows of prompts"),
                                        ("raw_steps", "decode_rows", "3", "Q12, decode rows = rounds"),
                                        ("raw_steps", "start_s", "0", "Q12, no two steps at once"),
                                        ("raw", "output_tokens", "2", "Q12, plain rounds")):
        books = bench.run(one, steps=True)
        entries = list(getattr(books, table)[column])
        entries[40] = text
        getattr(books, table)[column] = entries
        noticed = []
        judge(books, lambda name, a, b, noticed=noticed: noticed.append(name) if a != b else None)
        checks.rejects_exactly(broken, f"a wrong entry of {column}", broken in noticed)
    # With speculation and preemption: rows, tokens and blocks still add up.
    speculation = {"policy": {"kind": "fixed", "draft_length": 3}, "acceptance": {"alpha": 0.6}}
    for mutant in (None, "tail_kept"):
        run = bench.run(config(arrivals, dict(cost, draft_fixed_ms=0.5), lengths, speculation, kv={"block": 16, "blocks": 30}, max_num_seqs=12),
                        mutant, steps=True)
        asked = [[9, 1, 33, 20, 7][number % 5] for number in run.whole("request")]
        if mutant:
            checks.rejects_exactly("Q12, tokens asked", mutant, run.whole("output_tokens") != asked)
            continue
        checks.exact("Q12, tokens asked", run.whole("output_tokens"), asked)
        checks.exact("Q12, draft rows = drafted", sum(run.whole("draft_rows", True)), sum(run.whole("drafted")))
        checks.exact("Q12, decode rows = rounds, speculative", sum(run.whole("decode_rows", True)), sum(run.whole("rounds")))
        recomputed = sum(run.whole("prefill_rows", True)) - sum(run.whole("prompt_tokens"))
        checks.holds("Q12, preempted requests recompute", recomputed >= sum(run.whole("preemptions")) > 0)
        given = zip(run.whole("output_tokens"), run.whole("rounds"), run.whole("accepted"), run.whole("preemptions"))
        # A token of each prefill, one of each round and the accepted ones; tokens after a stop are dropped.
        checks.holds("Q12, where tokens come from", all(o <= 1 + back + r + a <= o + 3 + back for o, r, a, back in given))


def random_trace(generator, requests, mean_gap_us, priorities=1):
    time, rows = 0, []
    for _ in range(requests):
        time += 1 + int(generator.exponential(mean_gap_us))
        rows.append((time, int(generator.integers(1, 60)), int(generator.integers(1, 30)), int(generator.integers(priorities))))
    return rows


def q13(bench, checks):
    """Kleinrock: one at a time, the sum of service times waiting times is the same in every order that ignores the lengths' future."""
    rows = random_trace(np.random.default_rng(13), 3000, 17000, 3)
    arrivals = bench.trace("kleinrock", rows)

    def total(run):
        served = [last - first for last, first in zip(run.ps("last_token_s"), run.ps("first_scheduled_s"))]
        return sum(s * (first - came) for s, first, came in zip(served, run.ps("first_scheduled_s"), run.ps("arrival_s")))

    def once(policy, mutant=None):
        return bench.run(config(arrivals, {"target_fixed_ms": 1.0}, policy=policy), mutant)

    in_order, ranked = once("fcfs"), once("priority")
    checks.exact("Q13, Kleinrock's conservation law", total(ranked), total(in_order))
    checks.holds("Q13, priorities change the order", ranked.ps("last_token_s") != in_order.ps("last_token_s"))
    waits = [np.mean([w for w, row in zip(ranked.wait(), rows) if row[3] == rank]) for rank in range(3)]
    checks.holds("Q13, lower numbers wait less", waits[0] < waits[1] < waits[2])
    checks.rejects_exactly("Q13, Kleinrock's conservation law", "two at a time", total(once("priority", "seqs_off_by_one")) != total(in_order))


def q14(bench, checks):
    """Path by path: one at a time, first come first served, a later or an additional arrival never makes any request end earlier."""
    rows = random_trace(np.random.default_rng(14), 800, 16000)
    base = bench.run(config(bench.trace("monotone", rows), {"target_fixed_ms": 1.0})).ps("last_token_s")
    more = bench.run(config(bench.trace("added", rows[:300] + [(rows[299][0], 40, 25, 0)] + rows[300:]), {"target_fixed_ms": 1.0}))
    ends = more.ps("last_token_s")
    checks.holds("Q14, one request more", all(a >= b for a, b in zip(ends[:300] + ends[301:], base)) and ends != base)
    later = [(row[0] + (5000 if 200 <= i else 0), *row[1:]) for i, row in enumerate(rows)]
    ends = bench.run(config(bench.trace("later", later), {"target_fixed_ms": 1.0})).ps("last_token_s")
    checks.holds("Q14, later arrivals", all(a >= b for a, b in zip(ends, base)))
    ends = bench.run(config(bench.trace("monotone", rows), {"target_fixed_ms": 1.1})).ps("last_token_s")
    checks.holds("Q14, slower steps", all(a > b for a, b in zip(ends, base)))
    # If ranks overtake, a later arrival can let others end earlier.
    ranked = random_trace(np.random.default_rng(14), 800, 16000, 3)
    base = bench.run(config(bench.trace("ranked", ranked), {"target_fixed_ms": 1.0}, policy="priority")).ps("last_token_s")
    later = [(row[0] + (5000 if 200 <= i else 0), *row[1:]) for i, row in enumerate(ranked)]
    ends = bench.run(config(bench.trace("ranked_later", later), {"target_fixed_ms": 1.0}, policy="priority")).ps("last_token_s")
    checks.rejects_exactly("Q14, later arrivals", "an order by rank", any(a < b for a, b in zip(ends, base)))


def q15(bench, checks):
    rows = random_trace(np.random.default_rng(15), 120, 3000)
    arrivals = bench.trace("limits", rows)
    settings = {"max_num_seqs": 8, "max_num_batched_tokens": 64}
    cost = {"target_fixed_ms": 1.0, "target_ms_per_token": 0.125, "draft_fixed_ms": 0.25}

    def once(speculation, price=cost, mutant=None, **more):
        return bench.run(config(arrivals, price, None, speculation, kv={"block": 16, "blocks": 40}, **{**settings, **more}), mutant, steps=True)

    for mode in (False, True):
        plain = once(None, **{"async": mode})
        zero = once({"policy": {"kind": "fixed", "draft_length": 0}, "acceptance": {"alpha": 0.5}}, **{"async": mode})
        for name in ("requests.csv", "steps.csv"):
            checks.exact(f"Q15, draft length 0 is no speculation, {name}", (zero.folder / name).read_bytes(), (plain.folder / name).read_bytes())
        drafting = once({"policy": {"kind": "fixed", "draft_length": 1}, "acceptance": {"alpha": 0}}, **{"async": mode})
        checks.rejects_exactly("Q15, draft length 0 is no speculation", "a draft that nobody accepts",
                               (drafting.folder / "requests.csv").read_bytes() != (plain.folder / "requests.csv").read_bytes())
    for accepted in (0, 1):
        run = once({"policy": {"kind": "fixed", "draft_length": 3}, "acceptance": {"alpha": accepted}}, max_num_batched_tokens=100000)
        pairs = [(r, o, back) for r, o, back in zip(run.whole("rounds"), run.whole("output_tokens"), run.whole("preemptions")) if not back]
        want = [-(-(o - 1) // (3 * accepted + 1)) for _, o, _ in pairs]
        checks.exact(f"Q15, rounds at acceptance {accepted}", [r for r, _, _ in pairs], want)
    wrong = once({"policy": {"kind": "fixed", "draft_length": 3}, "acceptance": {"alpha": 1}}, mutant="bonus_dropped", max_num_batched_tokens=100000)
    checks.rejects_exactly("Q15, rounds at acceptance 1", "bonus_dropped",
                           wrong.whole("rounds") != [-(-(o - 1) // 4) for o in wrong.whole("output_tokens")])
    wrong = once({"policy": {"kind": "fixed", "draft_length": 3}, "acceptance": {"alpha": 0.02}}, max_num_batched_tokens=100000)
    checks.rejects_exactly("Q15, rounds at acceptance 0", "one draft in fifty accepted",
                           any(r != o - 1 for r, o, back in zip(wrong.whole("rounds"), wrong.whole("output_tokens"), wrong.whole("preemptions")) if not back))
    # Time scales: everything twice as slow, arrivals too.
    once_more = bench.run(config(bench.trace("slow", [(2 * row[0], *row[1:]) for row in rows]), {name: 2 * value for name, value in cost.items()},
                                 kv={"block": 16, "blocks": 40}, **settings), steps=True)
    plain = once(None)
    checks.exact("Q15, time scales", once_more.ps("last_token_s"), [2 * time for time in plain.ps("last_token_s")])
    hurried = once(None, {name: 2 * value for name, value in cost.items()})
    checks.rejects_exactly("Q15, time scales", "arrivals that do not slow down", hurried.ps("last_token_s") != once_more.ps("last_token_s"))
    checks.exact("Q15, the same steps", once_more.whole("prefill_rows", True), plain.whole("prefill_rows", True))


# ---- Q17: the law of steps --------------------------------------------------------------------------------------------------------

def q17(bench, checks):
    """A probe waits for the end of the running step, whose rest is uniform; asynchronous: for the queued step too."""
    generator = np.random.default_rng(17)
    step, probes = 0.01, 3000 if ALONE else 6000
    times = np.cumsum(generator.exponential(0.2, probes)) + 1.0
    rows = [(0, 1, int((times[-1] + 5) / step), 0)] + [(int(time * 1e6), 1, 1, 0) for time in times]
    arrivals = bench.trace("probes", rows)

    def judge(queued, mutant=None):
        run = bench.run(config(arrivals, {"target_fixed_ms": 1e3 * step}, None, max_num_seqs=1000, max_model_len=1 << 22,
                               **{"async": queued > 0}), mutant)
        return kolmogorov_p(run.ttft()[1:], lambda x: min(1.0, max(0.0, (x - step * (1 + queued)) / step)))

    checks.p("Q17, first token at low load", judge(0))
    checks.p("Q17, first token at low load, asynchronous", judge(1))
    checks.mutant("Q17, first token at low load, asynchronous", "async_as_sync", judge(1, "async_as_sync"))


# ---- Q18: the region of stability -------------------------------------------------------------------------------------------------

def q18(bench, checks):
    """`batch` outputs of `output` steps each at once: at most batch / (output x step) requests per second. Below that rate the backlog does not grow;
    above it, it grows by the excess."""
    batch, output, step = 8, 25, 1e-3
    capacity = batch / (output * step)
    lengths = {"prompt": {"fixed": 1}, "output": {"fixed": output}}

    def slope(rate, slots, wanted, mutant=None):
        run = bench.run(config(poisson(rate, LONG // 8), {"target_fixed_ms": 1e3 * step}, lengths, max_num_seqs=slots), mutant)
        came, went = run.seconds("arrival_s"), np.sort(run.seconds("last_token_s"))
        grid = np.linspace(0, came[-1], 1001)
        backlog = np.searchsorted(came, grid) - np.searchsorted(went, grid)
        return mean_p(np.diff(backlog) / np.diff(grid), wanted, allowance=0.003 * capacity)

    checks.p("Q18, below capacity", slope(0.93 * capacity, batch, 0.0))
    checks.mutant("Q18, below capacity", "a slot less", slope(0.93 * capacity, batch - 1, 0.0))
    checks.p("Q18, above capacity", slope(1.1 * capacity, batch, 0.1 * capacity))
    checks.mutant("Q18, above capacity", "seqs_off_by_one", slope(1.1 * capacity, batch, 0.1 * capacity, "seqs_off_by_one"))
