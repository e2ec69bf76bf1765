"""Queueing theory of a server's waits: formulas that share nothing with the simulator, each with a config for which it holds
(oracles_test.py): M/D/1, Erlang, Pollaczek-Khinchine with a speculative service time, Erlang C, processor sharing, Inoue's batches,
saturation, heavy traffic.
"""
import math
import sys

import numpy as np

from bench import config, kolmogorov_p, mean_p

ALONE = "--self" in sys.argv
LONG = 20000 if ALONE else 120000   # requests of a run that is judged by batch means
FEW = 12000                         # requests of a mutant, which the reference runs


def poisson(rate, requests):
    return {"process": "poisson", "rate": rate, "requests": requests}


# ---- path by path: exact, without statistical error ------------------------------------------------------------------------------------------

def waits_of(arrivals, services, servers=1):
    """Lindley's recursion, and Kiefer and Wolfowitz's for several servers: first come, first served waits. All in picoseconds."""
    free, waits = [0] * servers, []
    for came, served in zip(arrivals, services):
        first = min(range(servers), key=free.__getitem__)
        start = max(came, free[first])
        waits.append(start - came)
        free[first] = start + served
    return waits


def follows_path(name, run, services, checks, servers=1, step=0):
    """Every wait follows from the run's own arrivals and services; `step`: an arrival waits at most for the end of a running step."""
    asked = run.ps("arrival_s")
    waited = [a - b for a, b in zip(run.ps("first_scheduled_s"), asked)]

    def far(expected):
        return max(max(b - a, a - b - step) for a, b in zip(waited, expected))

    checks.holds(f"{name}, wait by wait", far(waits_of(asked, services, servers)) <= 1)
    late = [services[0]] + services[:-1]
    if len(set(services)) > 1:
        checks.rejects_exactly(f"{name}, wait by wait", "the service of the request before", far(waits_of(asked, late, servers)) > 1)
    checks.rejects_exactly(f"{name}, wait by wait", "services 1 % longer", far(waits_of(asked, [s + s // 100 for s in services], servers)) > 1)


def poisson_gaps(name, run, rate, checks):
    gaps = np.diff(run.seconds("arrival_s"))
    checks.p(f"{name}, gaps", kolmogorov_p(gaps, lambda x: 1 - math.exp(-rate * x)))
    checks.mutant(f"{name}, gaps", "a rate 3 % higher", kolmogorov_p(gaps, lambda x: 1 - math.exp(-1.03 * rate * x)))


# ---- Q1, Q2, Q16: M/D/1 --------------------------------------------------------------------------------------------------------

def erlang(x, rate, service):
    """P(W <= x) of M/D/1 (Erlang 1909)."""
    rho = rate * service
    total = 0.0
    for k in range(int(x / service) + 1):
        u = rate * (k * service - x)
        total += u ** k / math.factorial(k) * math.exp(-u)
    return (1 - rho) * total


def q1_q2(bench, checks):
    rate, service, output = 160.0, 0.005, 5
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": output}}
    expected = rate * service * service / (2 * (1 - rate * service))

    def judge(name, run, report):
        wait = run.wait()
        report(f"{name} mean", mean_p(wait, expected))
        for x in (0.0, 0.004, 0.012, 0.03):
            report(f"{name} P(W <= {x})", mean_p(wait <= x + 1e-12, erlang(x, rate, service)))

    run = bench.run(config(poisson(rate, LONG), {"target_fixed_ms": 1.0}, lengths))
    judge("Q1 and Q2, M/D/1", run, checks.p)
    follows_path("Q1 and Q2, M/D/1", run, [output * 10 ** 9] * len(run.whole("request")), checks)
    poisson_gaps("Q1 and Q2, M/D/1", run, rate, checks)
    # Two wrong runs: one with an extra step for each request, one with a second request at the same time.
    slower = bench.run(config(poisson(rate, LONG), {"target_fixed_ms": 1.0}, {"prompt": {"fixed": 16}, "output": {"fixed": output + 1}}))
    checks.mutant("Q1, M/D/1", "a first token counted as a round", mean_p(slower.wait(), expected))
    beside = bench.run(config(poisson(rate, FEW), {"target_fixed_ms": 1.0}, lengths), "seqs_off_by_one")
    checks.mutant("Q2, M/D/1", "seqs_off_by_one", mean_p(beside.wait() <= 1e-12, erlang(0.0, rate, service)))


def q16(bench, checks):
    """Heavy traffic: the tail of M/D/1 at load 0.95 falls as exp(-s x), lambda (exp(s D) - 1) = s."""
    service, rho = 0.001, 0.95
    rate = rho / service
    low, high = 1e-9, 10 / service
    for _ in range(200):
        s = (low + high) / 2
        low, high = (s, high) if rate * (math.exp(s * service) - 1) < s else (low, s)
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": 1}}

    def tail(run):
        # P(W > 2 m) / P(W > m) at two points beyond the first mean; judged as a mean of the difference.
        wait, m = run.wait(), 0.01
        ratio = math.exp(-s * m)
        return mean_p((wait > 2 * m) * 1.0 - ratio * (wait > m), 0.0, batches=24)

    checks.p("Q16, tail in heavy traffic", tail(bench.run(config(poisson(rate, 4 * LONG), {"target_fixed_ms": 1.0}, lengths))))
    random = {"prompt": {"fixed": 16}, "output": {"geometric": {"mean": 2}}}
    checks.mutant("Q16, tail in heavy traffic", "a service time of the same mean that varies",
                  tail(bench.run(config(poisson(rate, 4 * LONG), {"target_fixed_ms": 0.5}, random))))


# ---- Q3: Pollaczek-Khinchine with a speculative service time -------------------------------------------------------------------

def rounds_distribution(tokens, rates):
    """P(N = n) of the rounds until `tokens` tokens are emitted; rates: conditional acceptance by position."""
    of_round, reached = [], 1.0
    for rate in rates:
        of_round.append(reached * (1 - rate))
        reached *= rate
    of_round.append(reached)                      # index a: a drafts accepted, a + 1 tokens
    state, distribution = {tokens: 1.0}, []
    while state:
        following, ended = {}, 0.0
        for left, p in state.items():
            for accepted, q in enumerate(of_round):
                if left - accepted - 1 <= 0:
                    ended += p * q
                else:
                    following[left - accepted - 1] = following.get(left - accepted - 1, 0.0) + p * q
        distribution.append(ended)
        state = following
    return distribution  # distribution[i]: i + 1 rounds


def q3(bench, checks):
    rates, output, rate = [0.8, 0.7, 0.5], 21, 44.0
    step = 1e-3 * (1.0 + 3 * 0.2)                     # the target's pass and three of the draft, including the prefill
    cost = {"target_fixed_ms": 1.0, "draft_fixed_ms": 0.2}
    speculation = {"policy": {"kind": "fixed", "draft_length": 3}, "acceptance": {"conditional_rates": rates}}
    lengths = {"prompt": {"fixed": 16}, "output": {"fixed": output}}
    distribution = rounds_distribution(output - 1, rates)
    moment = [sum(p * ((n + 2) * step) ** power for n, p in enumerate(distribution)) for power in (1, 2, 3)]
    rho = rate * moment[0]
    mean = rate * moment[1] / (2 * (1 - rho))
    square = 2 * mean ** 2 + rate * moment[2] / (3 * (1 - rho))
    run = bench.run(config(poisson(rate, LONG), cost, lengths, speculation))
    rounds = np.array(run.whole("rounds"))
    checks.p("Q3, rounds of a request", mean_p(rounds, sum(p * (n + 1) for n, p in enumerate(distribution))))
    checks.p("Q3, square of the rounds", mean_p(rounds ** 2.0, sum(p * (n + 1) ** 2 for n, p in enumerate(distribution))))
    checks.p("Q3, Pollaczek-Khinchine, mean", mean_p(run.wait(), mean))
    checks.p("Q3, Pollaczek-Khinchine, square", mean_p(run.wait() ** 2, square))
    follows_path("Q3, Pollaczek-Khinchine", run, [(int(n) + 1) * round(step * 1e12) for n in rounds], checks)
    for mutant in ("bonus_dropped", "bonus_dropped_at_stop"):
        wrong = bench.run(config(poisson(rate, FEW), cost, lengths, speculation), mutant)
        checks.mutant("Q3, rounds of a request", mutant, mean_p(wrong.whole("rounds"), sum(p * (n + 1) for n, p in enumerate(distribution))))
    wrong = bench.run(config(poisson(rate, FEW), cost, lengths, speculation), "bonus_dropped")
    checks.mutant("Q3, Pollaczek-Khinchine, mean", "bonus_dropped", mean_p(wrong.wait(), mean))


# ---- Q4, Q5, Q6: exponential servers --------------------------------------------------------------------------------------------

def q4(bench, checks):
    """Geometric outputs, one at a time: M/Geo/1 exactly in the mean, M/M/1 in the tail up to the length of a step."""
    mean_output, step = 50, 1e-3
    p = 1 / mean_output
    first, second = step * mean_output, step * step * (2 - p) / p ** 2
    rate = 0.7 / first
    expected = rate * second / (2 * (1 - rate * first))
    lengths = {"prompt": {"fixed": 1}, "output": {"geometric": {"mean": mean_output}}}

    def judge(name, run, report):
        report(f"{name} mean wait", mean_p(run.wait(), expected))
        fall = 1 / first - rate
        for t in (0.5 / fall, 1.5 / fall):
            report(f"{name} P(R > {t:.3f})", mean_p(run.residence() > t, math.exp(-fall * t), allowance=step / first))

    requests = LONG // 2
    run = bench.run(config(poisson(rate, requests), {"target_fixed_ms": 1.0}, lengths))
    judge("Q4, M/M/1,", run, checks.p)
    follows_path("Q4, M/M/1", run, [tokens * 10 ** 9 for tokens in run.whole("output_tokens")], checks)
    wrong = bench.run(config(poisson(rate, requests), {"target_fixed_ms": 1.15}, lengths))
    checks.mutant("Q4, M/M/1, mean wait", "a step 15 % longer", mean_p(wrong.wait(), expected))


def erlang_c(servers, load):
    top = load ** servers / math.factorial(servers) / (1 - load / servers)
    return top / (top + sum(load ** k / math.factorial(k) for k in range(servers)))


def q5_q6(bench, checks):
    servers, mean_output, step = 4, 100, 1e-3
    service = mean_output * step
    rate = 0.8 * servers / service
    delay = erlang_c(servers, rate * service) / (servers / service - rate)
    lengths = {"prompt": {"fixed": 1}, "output": {"geometric": {"mean": mean_output}}}
    run = bench.run(config(poisson(rate, LONG // 2), {"target_fixed_ms": 1.0}, lengths, max_num_seqs=servers))
    # An arrival waits for the running step even if a server is free: up to one step.
    checks.p("Q5, M/M/4 mean wait", mean_p(run.wait() - step / 2, delay, allowance=step))
    wrong = bench.run(config(poisson(rate, FEW // 4), {"target_fixed_ms": 1.0}, lengths, max_num_seqs=servers), "seqs_off_by_one")
    checks.mutant("Q5, M/M/4 mean wait", "seqs_off_by_one", mean_p(wrong.wait() - step / 2, delay, allowance=step))
    fixed = bench.run(config(poisson(rate, LONG // 2), {"target_fixed_ms": 1.0}, {"prompt": {"fixed": 1}, "output": {"fixed": mean_output}},
                             max_num_seqs=servers))
    band = 0.1 * delay / 2 + step
    checks.p("Q6, M/D/4 within 10 % of half the wait of M/M/4", mean_p(fixed.wait() - step / 2, delay / 2, allowance=band))
    checks.mutant("Q6, M/D/4 within 10 % of half the wait of M/M/4", "outputs that vary", mean_p(run.wait() - step / 2, delay / 2, allowance=band))
    # An arrival joins at the next end of a step, so at most a step later than without steps. By induction this holds for every later arrival.
    for name, one in (("Q5, M/M/4", run), ("Q6, M/D/4", fixed)):
        follows_path(name, one, [tokens * 10 ** 9 for tokens in one.whole("output_tokens")], checks, servers, 10 ** 9)


# ---- Q7, Q8: processor sharing --------------------------------------------------------------------------------------------------

def q7_q8(bench, checks):
    """Every request runs at once; a step of n takes t0 + c n: state-dependent processor sharing, insensitive to the distribution of lengths."""
    base, share, mean_output = 0.4e-3, 0.1e-3, 60
    rate = 0.75 / (share * mean_output)
    weights, n = [1.0], 0
    while n < 4000 and (n < 50 or weights[-1] > 1e-16 * max(weights)):
        n += 1
        weights.append(weights[-1] * rate * mean_output * (base + share * n) / n)
    total = sum(weights)
    number = sum(k * w for k, w in enumerate(weights)) / total
    step_time = base + share * number
    cost = {"target_fixed_ms": base * 1e3, "target_ms_per_token": share * 1e3}
    distributions = {"geometric": {"geometric": {"mean": mean_output}}, "fixed": {"fixed": mean_output},
            "uniform": {"uniform": {"from": 1, "to": 2 * mean_output - 1}}}
    requests = LONG // 4

    def residence_p(run):
        return mean_p(run.residence(), number / rate, allowance=0.03 * number / rate)  # steps are not infinitely short: the grid and the first step

    for name, distribution in distributions.items():
        run = bench.run(config(poisson(rate, requests), cost, {"prompt": {"fixed": 1}, "output": distribution}, max_num_seqs=100000))
        checks.p(f"Q8, processor sharing, {name}", residence_p(run))
        if name == "uniform":
            residence, output = run.residence(), np.array(run.whole("output_tokens"))
            for long in (False, True):
                some = (output > mean_output) == long
                each = number / rate / mean_output    # time per token, whatever the length
                checks.p(f"Q8, residence in proportion to length, {'long' if long else 'short'}",
                         mean_p(residence[some] - each * output[some], 0.0, allowance=0.03 * each * output[some].mean() + 1.5 * step_time))
    wrong = bench.run(config(poisson(rate, requests), dict(cost, target_ms_per_token=share * 1.2e3),
                             {"prompt": {"fixed": 1}, "output": {"fixed": mean_output}}, max_num_seqs=100000))
    checks.mutant("Q8, processor sharing", "a row costs 20 % more", residence_p(wrong))
    # Q7: no fixed part. E[R | x] = x / (1 - rho), checked separately for short and for long requests, because all of them together have the same mean
    # in any order that never idles, if lengths are memoryless.
    pure = {"target_ms_per_token": share * 1e3}
    rho = rate * share * mean_output

    def slowdown(at_once):
        run = bench.run(config(poisson(rate, requests), pure, {"prompt": {"fixed": 1}, "output": {"geometric": {"mean": mean_output}}},
                               max_num_seqs=at_once))
        served = share * np.array(run.whole("output_tokens"))
        for name, some in (("short", served <= share * mean_output), ("long", served > share * mean_output)):
            yield name, mean_p((run.residence() - served / (1 - rho))[some], 0.0, allowance=0.03 * share * mean_output / (1 - rho))

    for name, p in slowdown(100000):
        checks.p(f"Q7, slowdown of processor sharing, {name}", p)
    for at_once in (1, 3):
        for name, p in slowdown(at_once):
            checks.mutant(f"Q7, slowdown of processor sharing, {name}", f"{at_once} at a time", p)


# ---- Q9: batches of all waiting requests ------------------------------------------------------------------------------------------

def q9(bench, checks):
    base, each, rate = 2e-3, 0.5e-3, 1600.0
    size = 400
    moves = np.zeros((size, size))                    # the batch after a batch of b: those that arrived, or the next one
    for b in range(1, size):
        mean = rate * (base + each * b)
        distribution = np.exp(np.arange(size) * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in range(size)]))
        distribution[1] += distribution[0]
        distribution[0] = 0.0
        moves[b] = distribution / distribution.sum()
    state = np.full(size, 1.0 / size)
    state[0] = 0.0
    for _ in range(3000):
        state = state @ moves
        state /= state.sum()
    batches = np.arange(size)
    served = base + each * batches
    response = (state * (rate * served ** 2 / 2 + batches * served)).sum() / (state * batches).sum()
    la = rate * each
    bound = min((each + base) / (2 * (1 - la)) * (1 + 2 * rate * base + (1 - rate * base) / (1 + la)),
                1.5 * base / (1 - la) + each / 2 * (la + 2) / (1 - la * la))
    checks.holds("Q9, exact value below Inoue's bound", response <= bound * (1 + 1e-9))
    cost = {"target_fixed_ms": base * 1e3, "target_ms_per_token": each * 1e3}
    lengths = {"prompt": {"fixed": 1}, "output": {"fixed": 1}}

    # A batch that begins after an idle time contains only the request that arrived: its wait is zero, and the formula's first step begins with it.
    def judge(run):
        return mean_p(run.residence(), exact)

    exact = idle_response(state, served, rate, base, each, size)
    checks.p("Q9, batches of all who wait", judge(bench.run(config(poisson(rate, LONG), cost, lengths, max_num_seqs=100000))))
    wrong = bench.run(config(poisson(rate, LONG), cost, lengths, max_num_seqs=100000, max_num_batched_tokens=12))
    checks.mutant("Q9, batches of all who wait", "at most twelve at once", judge(wrong))


def idle_response(state, served, rate, base, each, size):
    """E[R] by cycles: requests that arrive during a batch wait for its end and join the next; after an idle time a request is alone."""
    people = time = 0.0
    for b in range(1, size):
        length = served[b]
        come = rate * length
        people += state[b] * (come + math.exp(-come))             # if none waits, the next arrival begins at once
        # Requests that arrive during this batch wait on average for half of it, then for a batch of their number; E[k (t0 + a k)] for k Poisson.
        time += state[b] * (come * length / 2 + base * come + each * (come + come * come) + math.exp(-come) * (base + each))
    return time / people


# ---- Q10: saturation -------------------------------------------------------------------------------------------------------------

def q10(bench, checks):
    batch, output, requests = 8, 30, 8 * 25
    closed = {"process": "closed", "concurrency": batch, "requests": requests}
    run = bench.run(config(closed, {"target_fixed_ms": 2.0, "target_ms_per_token": 0.25}, {"prompt": {"fixed": 1}, "output": {"fixed": output}},
                           max_num_seqs=batch))
    # Equal lengths run in lockstep: requests / batch generations of `output` steps of 2 + 0.25 batch ms.
    want = requests // batch * output * (2000 + 250 * batch) * 10 ** 6
    checks.exact("Q10, saturated throughput", max(run.ps("last_token_s")), want)
    more = bench.run(config(dict(closed, concurrency=2 * batch), {"target_fixed_ms": 2.0, "target_ms_per_token": 0.25},
                            {"prompt": {"fixed": 1}, "output": {"fixed": output}}, max_num_seqs=batch), "seqs_off_by_one")
    checks.rejects_exactly("Q10, saturated throughput", "seqs_off_by_one", max(more.ps("last_token_s")) != want)
    rates, tokens = [0.7, 0.6], 41
    distribution = rounds_distribution(tokens - 1, rates)
    rounds = sum(p * (n + 1) for n, p in enumerate(distribution))
    speculation = {"policy": {"kind": "fixed", "draft_length": 2}, "acceptance": {"conditional_rates": rates}}
    lengths = {"prompt": {"fixed": 1}, "output": {"fixed": tokens}}
    cost = {"target_fixed_ms": 1.0, "draft_fixed_ms": 0.25}

    def gaps(run):
        """Time between ends in a saturated server of constant steps: (1 + E[N]) T / batch."""
        ends = np.sort(run.seconds("last_token_s"))
        cut = len(ends) // 20
        return mean_p(np.diff(ends[cut:-cut]), (1 + rounds) * 1.5e-3 / batch, batches=32)

    closed = {"process": "closed", "concurrency": 3 * batch, "requests": LONG // 6}
    checks.p("Q10, saturated throughput with speculation", gaps(bench.run(config(closed, cost, lengths, speculation, max_num_seqs=batch))))
    wrong = bench.run(config(dict(closed, requests=FEW // 3), cost, lengths, speculation, max_num_seqs=batch), "bonus_dropped")
    checks.mutant("Q10, saturated throughput with speculation", "bonus_dropped", gaps(wrong))
