#!/usr/bin/python3
"""Whether the program's intervals hold the truth at their stated rate: serve's relative changes, import's values, and the standard
deviation over draws of the distributions that run prints. (run's own: tests/stat/coverage_test.cpp; compare's: tests/unit/
ranking_test.cpp; plan's: tests/unit/plan_test.cpp; serve's means and percentiles: tests/serve/intervals_test.cpp.)

Runs at the root of the repository; SPECSIM names the program. Seeds are fixed: a failure is repeated exactly.
"""
import csv
import json
import math
import random
import re
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

SEEDS = 300
# A true coverage of .93 to .97 is accepted. Of 300 intervals at .93, 258 or fewer hold the truth with probability 1e-6, and 300 of 300 at .97 with
# 1e-4: `held` is refused below 259.
LEAST = 259


def covers(held, seeds=SEEDS):
    return held * SEEDS >= LEAST * seeds


# ---- serve: relative change of a mean against the server without speculation, over the same requests. Times of steps have no error here (cost model
# affine), so the intervals are those of the requests alone.
CHANGE = re.compile(r"mean (TPOT|TTFT) [\d.]+ -> [\d.]+ ms \(([+-][\d.]+) %, 95 %: ([+-][\d.]+) to ([+-][\d.]+)\)")
KNOWN_TIMES = ["--set", "cost={model: affine, target_fixed_ms: 7.6, target_ms_per_token: 0.03, target_ms_per_kv_token: 2e-5, draft_fixed_ms: 0.5}", "--set",
               "serve.kv={block: 16, blocks: 27000}"]


def pairs(folder, figure):
    """Values of requests on both servers in the order of sending, without the warm-up that the program leaves out: none here."""
    both = []
    for name in ("requests_plain.csv", "requests.csv"):
        with open(folder / name, newline="") as file:
            rows = list(csv.DictReader(file))
        if figure == "TTFT":
            both.append([float(row["first_token_s"]) - float(row["arrival_s"]) for row in rows])
        else:
            both.append([(float(row["last_token_s"]) - float(row["first_token_s"])) / (int(row["output_tokens"]) - 1) if int(row["output_tokens"]) > 1
                         else None for row in rows])
    return [(a, b) for a, b in zip(*both) if a is not None and b is not None]


BATCHES, T = 5, 2.776  # number of batch means of an interval, and Student's t of one fewer: serve::batch_intervals()
# The mean of such a half width over 1.96 standard deviations: a standard deviation of five values is .940 of the true one in the mean.
WIDTH = T * 0.940 / 1.96


def plain_taken_as_exact(folder, figure):
    """The mutant: batch means of (speculative - without speculation), divided by the latter's mean as if that were known."""
    own = pairs(folder, figure)
    size = len(own) // BATCHES
    means = [statistics.mean(b - a for a, b in own[i * size:(i + 1) * size]) for i in range(BATCHES)]
    return 100 * T * statistics.stdev(means) / math.sqrt(BATCHES) / statistics.mean(a for a, _ in own)


def served(seed):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        status, text, err = run("serve", "configs/serve/chat.yaml", "--requests", "2000", "--seed", seed, "--no-capacity", *KNOWN_TIMES, "--out", out)
        assert status == 0, err
        stated = {name: tuple(map(float, figures)) for name, *figures in CHANGE.findall(text)}
        return {name: (*stated[name], plain_taken_as_exact(out, name)) for name in ("TPOT", "TTFT")}


with ThreadPoolExecutor() as pool:
    runs = list(pool.map(served, range(1, SEEDS + 1)))
for name in ("TPOT", "TTFT"):
    truth = statistics.mean(one[name][0] for one in runs)
    held = sum(one[name][1] <= truth <= one[name][2] for one in runs)
    mutant = sum(abs(one[name][0] - truth) <= one[name][3] for one in runs)
    stated = statistics.mean((one[name][2] - one[name][1]) / 2 for one in runs)
    sd = statistics.stdev(one[name][0] for one in runs)
    print(f"serve, change of mean {name}: {held} of {SEEDS}; 1.96 standard deviations {1.96 * sd:.2f} %, stated ± {stated:.2f}; "
          f"with the plain mean as exact {mutant}, ± {statistics.mean(one[name][3] for one in runs):.2f}")
    expect(f"serve {name}: {held} of {SEEDS}", covers(held))
    ratio = stated / (1.96 * sd) / WIDTH
    expect(f"serve {name}: {ratio:.2f} times the width that such intervals have", 0.8 <= ratio <= 1.25)
    # The mutant of TPOT is far too wide; that of TTFT, whose times on the two servers are less correlated, has about the right width.
    wide = statistics.mean(one[name][3] for one in runs) / (1.96 * sd) / WIDTH
    expect(f"serve {name}: the mutant passes: {mutant}, {wide:.2f} times the true width", name == "TTFT" or not 0.8 <= wide <= 1.25)


# ---- serve under a policy that can settle on different draft lengths from run to run: the interval is from five runs.
LEARNED = 100  # seeds


def learned(seed):
    with tempfile.TemporaryDirectory() as folder:
        status, text, err = run("serve", "configs/serve/chat.yaml", "--requests", "1000", "--seed", seed, "--no-capacity", "--policy", "goodput",
                                *KNOWN_TIMES, "--out", Path(folder) / "out")
        assert status == 0, err
        assert "intervals of TTFT and TPOT are from 5 runs" in text, text
        stated = {name: tuple(map(float, figures)) for name, *figures in CHANGE.findall(text)}
        return {name: (*stated[name], plain_taken_as_exact(Path(folder) / "out", name)) for name in ("TPOT", "TTFT")}


with ThreadPoolExecutor() as pool:
    runs = list(pool.map(learned, range(501, 501 + LEARNED)))
for name in ("TPOT", "TTFT"):
    truth = statistics.mean(one[name][0] for one in runs)
    held = sum(one[name][1] <= truth <= one[name][2] for one in runs)
    one_run = sum(abs(one[name][0] - truth) <= one[name][3] for one in runs)
    print(f"serve with goodput, change of mean {name}: {held} of {LEARNED}; 1.96 standard deviations "
          f"{1.96 * statistics.stdev(one[name][0] for one in runs):.2f} %; by one run {one_run}")
    expect(f"serve with goodput, {name}: {held} of {LEARNED}", covers(held, LEARNED))
    expect(f"serve with goodput, {name}: the mutant, an interval from one run, holds {one_run}", name == "TPOT" or not covers(one_run, LEARNED))


# ---- import: acceptance length and alpha from a log
def log_of(seed, spread):
    """A vLLM log of 20 lines of 100 rounds that draft three tokens; alpha of a line is uniform in .7 +- spread."""
    draw = random.Random(seed)
    lines = []
    for line in range(20):
        alpha = 0.7 + spread * (2 * draw.random() - 1)
        by_position = [0, 0, 0]
        for _ in range(100):
            for position in range(3):
                if draw.random() >= alpha:
                    break
                by_position[position] += 1
        accepted = sum(by_position)
        rates = ", ".join(f"{count / 100:.3f}" for count in by_position)
        lines.append(f"INFO 06-01 22:{line:02}:02 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {1 + accepted / 100:.2f}, Accepted "
                     f"throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: 30.00 tokens/s, Accepted: {accepted} tokens, Drafted: 300 tokens, "
                     f"Per-position acceptance rate: {rates}, Avg Draft acceptance rate: {accepted / 3:.1f}%")
    return "\n".join(lines) + "\n"


def imported(arguments):
    seed, spread = arguments
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        log.write_text(log_of(seed, spread))
        status, text, err = run("import", log, "--format", "json")
        assert status == 0, err
        rows = json.loads(text)["tables"][0]["rows"]
        return {row[0].strip(): row[1:4] for row in rows}


for spread, name in ((0.0, "independent rounds"), (0.25, "lines that differ")):
    with ThreadPoolExecutor() as pool:
        logs = list(pool.map(imported, [(seed, spread) for seed in range(SEEDS)]))
    # alpha is accepted over judged tokens, a ratio of means: over many lines E[accepted] / E[judged].
    grid = [0.7 + spread * (2 * (i + 0.5) / 2000 - 1) for i in range(2000)]
    lengths = statistics.mean(1 + a + a * a + a ** 3 for a in grid)
    judged = statistics.mean(1 + a + a * a for a in grid)
    truths = {"mean acceptance length": lengths, "alpha": (lengths - 1) / judged}
    for figure, truth in truths.items():
        held = sum(one[figure][1] <= truth <= one[figure][2] for one in logs)
        # The wider of two errors is used, so more than 95 % may hold the truth.
        print(f"import, {figure}, {name}: {held} of {SEEDS}")
        expect(f"import, {figure}, {name}: {held} of {SEEDS}", covers(held))
        if figure == "alpha" and spread > 0:  # the mutant: tokens as independent trials
            tokens = 20 * 100 * judged
            half = 1.96 * math.sqrt(truth * (1 - truth) / tokens)
            mutant = sum(abs(one[figure][0] - truth) <= half for one in logs)
            expect(f"import: the mutant passes with {mutant}", not covers(mutant))


# ---- run: the standard deviation over draws of the distributions
status, text, err = run("run", "configs/quickstart.yaml", "--set", "sweep.decode.drafter.draft_length=[5]", "--set", "rounds=200000")
stated = re.search(r"tokens/round has a standard deviation of ([\d.e-]+) and speedup one of ([\d.e-]+) \(from 8 draws\)", text)
expect(f"run states no spread over draws: {text} {err}", stated)
if stated:
    def drawn(seed):
        _, text, _ = run("run", "configs/quickstart.yaml", "--set", "sweep.decode.drafter.draft_length=[5]", "--set", "rounds=200000", "--seed", seed,
                         "--format", "json")
        table = json.loads(text)["tables"][0]
        row = dict(zip(table["columns"], table["rows"][0]))
        return row["tokens/round"], row["speedup"]
    with ThreadPoolExecutor() as pool:
        figures = list(pool.map(drawn, range(1, 41)))
    for index, name in enumerate(("tokens/round", "speedup")):
        sd = statistics.stdev(one[index] for one in figures)
        ratio = float(stated[index + 1]) / sd
        print(f"run, {name}: standard deviation over draws stated {stated[index + 1]}, {sd:.3g} over 40 seeds")
        # F of 7 and 39 degrees of freedom lies within .08 and 3.9 with probability .998.
        expect(f"run, {name}: stated {stated[index + 1]}, over 40 seeds {sd:.3g}", 0.08 <= ratio ** 2 <= 3.9)

finish()
