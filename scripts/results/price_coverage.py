#!/usr/bin/python3
"""Whether the standard errors that prices state are right: how often what was measured lies within one and two of them.

usage: scripts/results/price_coverage.py SPECSIM OUT    (from the repository's root: scripts/results/price_coverage.py build/specsim results/fidelity/coverage)

Needs nothing but the repository. Prices whole steps, served times (results/fidelity/steps), published passes, rounds and speedups
(configs/published) anew, each with the error that the program states, and writes to OUT
  coverage.csv    by set: rows, servers, stated error in the middle, percent within one and two errors, by kernels' errors alone and by all
  estimates.csv   the errors beside those of kernels, as the rows that they are estimated from give them
  coverage.md, estimates.md, kernels.md   the tables of docs/results/prices.md
  manifest.yaml
A normal error lies within one standard error in 68 of 100 cases and within two in 95. Rows of one server (a text, an engine, a GPU, a
model and its type) err together, so that servers count alike, whatever their rows. BANDS says what a test holds the last line to.
"""
import csv
import math
import sys
import tempfile
import zlib
from collections import defaultdict
from pathlib import Path

import published_speedups
import served_speedups
from calls import version_of
from priced_passes import pass_of
from step_prices import priced

# What the program states beside errors of kernels, as sim/hardware/latency/server_error.h has it: a step of a server, dense and with experts, and what
# rounds that draft have beyond plain steps. Each is the estimate below, in whole percent.
SERVER, SERVER_OF_EXPERTS, ROUND = 0.07, 0.16, 0.17
NORMAL_MIDDLE = 0.6745
STEPS = Path("results/fidelity/steps")
KERNELS = Path("results/fidelity/unseen.csv")
DEVELOPED_ON = "DeepSeek"  # the mixture whose served times prices were developed beside; the others came after the fits
# Percent of all rows that nothing was estimated from, servers alike, within one and two errors: what tests/golden/results_test.py holds
# them to. A normal law has 68 and 95; of 91 servers such shares have standard errors of 5 and 2.3, and three of them are allowed.
# Mutants: kernels' errors alone (50 and 74), twice or half of what is stated.
BANDS = {"within_1_percent": (53, 83), "within_2_percent": (88, 100)}
ROUNDED = 0.6  # percent between an estimate and the whole percent that is stated, at most
SPEEDUPS = "served: speedups, half of the texts"


def halved(source):
    """Whether a text is of the half that rounds' error is estimated from."""
    return zlib.crc32(("half " + source).encode()) % 2 == 0


class Row:
    """A measured quantity beside its price. error: logarithm of measured over priced; kernels, beside: parts of the stated error."""

    def __init__(self, server, error, kernels, beside=0.0):
        self.server, self.error, self.kernels, self.beside = server, error, kernels, beside

    @property
    def stated(self):
        return math.hypot(self.kernels, self.beside)


class Asked:
    """Passes that a script's price() asks for, in its order."""

    def __init__(self, module):
        self.list = []
        module.total_ms = self

    def __call__(self, specsim, arguments, row):
        made = pass_of(specsim, arguments, row)
        of = arguments[arguments.index("--role") + 1]
        error, kernels = (0.01 * float(made[key]) for key in ("error_percent", "kernel_error_percent"))
        beside = math.sqrt(max(0.0, error ** 2 - kernels ** 2))
        server = min((SERVER, SERVER_OF_EXPERTS, 0.0), key=lambda figure: abs(beside - figure))
        if abs(beside - server) > 0.02:  # it is told in tenths of a percent
            sys.exit(f"{row}: the program states {beside:.3f} beside kernels, this script {SERVER} or {SERVER_OF_EXPERTS}")
        self.list.append((of, float(made["total_ms"]), kernels, server, float(made["shared"])))
        return float(made["total_ms"])

    def of(self, role):
        return [one[1:] for one in self.list if one[0] == role]


def round_kernels(verify, draft, draft_ms, total):
    return math.hypot(verify[1] * verify[0] / total, draft[1] * draft_ms / total if draft else 0.0)


def apart(a, b, rows_alike, drafting):
    """Standard error of the logarithm of a over b by kernels: errors of two passes, each by its share of the time, and the drafts'."""
    of_a, of_b, shared = a[0], b[0], a[1]
    verify = of_a - of_b if rows_alike else math.hypot(math.sqrt(shared) * (of_a - of_b), math.sqrt(1 - shared) * math.hypot(of_a, of_b))
    return math.hypot(verify, drafting)


def step_rows(specsim):
    """Rows of the kept tables of steps by set."""
    found = defaultdict(list)
    seen = set()
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(STEPS.glob("s*.csv")):
            for row in priced(specsim, STEPS, path.stem, Path(scratch)):
                error, kernels = (0.01 * float(row[key]) for key in ("error_percent", "kernel_error_percent"))
                one = Row("", -math.log(float(row["ratio"])), kernels, math.sqrt(max(0.0, error ** 2 - kernels ** 2)))
                if path.stem != "serving_tpot":
                    one.server = (path.stem, row["model"], row["tp"], row.get("phase"))
                    found["steps of vLLM on a B300"].append(one)
                    continue
                model = row["model_path"].split("/")[-1]
                family = DEVELOPED_ON if DEVELOPED_ON in model else model
                one.server = (family, row["system"], row["backend"], row["precision"])
                key = one.server + tuple(row[column] for column in ("isl", "osl", "tp_size", "concurrency", "silicon_tpot_ms"))
                if key in seen or (family == DEVELOPED_ON and row["backend_version"].endswith("post3")):
                    continue  # two of its versions share rows; of post3 an unknown part drafts
                seen.add(key)
                hopper = row["system"].startswith("h")
                found[("served: Llama on H100, H200" if hopper else "served: Llama on B200") if "Llama" in model else
                      "served: DeepSeek" if family == DEVELOPED_ON else "served: Qwen3.5, Kimi-K2.5, GLM-5"].append(one)
    return found


def published_rows(specsim):
    found = defaultdict(list)
    asked = Asked(published_speedups)
    with open(published_speedups.ROWS, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["scored"] == "yes"]
    for row in rows:
        asked.list.clear()
        value, _, verify_ms, drafting = published_speedups.price(specsim, row)
        plain, verify = asked.of("target")
        draft = (asked.of("draft") or [None])[0]
        total = verify_ms + drafting
        draft_ms = int(row["draft_passes"]) * draft[0] if draft else 0.0
        drafted = draft[1] * draft_ms / total if draft else 0.0
        kernels, beside = {
            "plain_ms": (plain[1], plain[2]), "verify_ms": (verify[1], plain[2]),
            "speedup": (apart((plain[1], plain[3]), (verify[1] * verify[0] / total, 0), row["verify_tokens"] == "1", drafted), ROUND),
            "cost_ratio": (math.hypot(plain[1], draft[1] if draft else 0.0), ROUND)}[row["quantity"]]
        one = Row((row["source"], row["hardware"], row["target_engine"], row["target"]), math.log(float(row["published"]) / value), kernels, beside)
        found["published: " + {"plain_ms": "passes", "verify_ms": "passes", "speedup": "speedups", "cost_ratio": "cost ratios"}[row["quantity"]]].append(one)
    return found


def served_rows(specsim):
    found = defaultdict(list)
    asked = Asked(served_speedups)
    sets, plains = defaultdict(list), set()
    with open(served_speedups.ROWS, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["scored"] == "yes"]
    for row in rows:
        asked.list.clear()
        made, seen = served_speedups.price(specsim, row)
        targets = asked.of("target")[1 if served_speedups.beside(row, 1.0) > 0 else 0:]
        plain, verify, draft = targets[0], targets[1] if len(targets) > 1 else None, (asked.of("draft") or [None])[0]
        server = tuple(row[key] for key in ("source", "hardware", "engine", "target", "target_dtype"))
        once = tuple(row[key] for key in ("source", "target", "target_dtype", "hardware", "gpus", "clients", "plain", "prompt"))
        if "plain" in seen and once not in plains:
            plains.add(once)
            found["served: plain steps"].append(Row(server, math.log(seen["plain"] / made["plain"]), plain[1], plain[2]))
        if verify is None:
            continue
        share, drafted = verify[1] * verify[0] / made["round"], draft[1] * made["draft"] / made["round"] if draft else 0.0
        if "round" in seen:  # those of the other half alone: a round and its speedup are one measurement
            error = math.log(seen["round"] / made["round"])
            if not halved(row["source"]):
                found["served: rounds, the other half"].append(Row(server, error, math.hypot(share, drafted), math.hypot(plain[2], ROUND)))
            sets[server + (row["clients"], row["prompt"], row["workload"], row["draft"])].append((int(row["verify_tokens"]), error, share, drafted, plain[3]))
        if "speedup" in seen:
            found[SPEEDUPS if halved(row["source"]) else "served: speedups, the other half"].append(
                Row(server, math.log(seen["speedup"] / made["speedup"]), apart((plain[1], plain[3]), (share, 0), row["verify_tokens"] == "1", drafted), ROUND))
    for key, own in sets.items():  # every two neighbouring lengths of a server
        own.sort()
        for a, b in zip(own, own[1:]):
            if a[0] < b[0]:
                found["served: two draft lengths"].append(Row(key[:5], a[1] - b[1], apart((a[2], a[4]), (b[2], 0), False, a[3] - b[3])))
    return found


def by_server(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row.server].append(row)
    return list(groups.values())


def within(rows, times, of):
    """Percent within so many errors, servers alike."""
    groups = by_server(rows)
    return 100 * sum(sum(abs(row.error) <= times * of(row) for row in group) / len(group) for group in groups) / len(groups)


def middle(rows, of):
    """The middle of a quantity, servers alike."""
    weighted = sorted((of(row), 1 / len(group)) for group in by_server(rows) for row in group)
    half, before = 0.5 * sum(weight for _, weight in weighted), 0.0
    for value, weight in weighted:
        before += weight
        if before >= half - 1e-12:
            return value
    return weighted[-1][0]


def estimate(rows):
    """The error beside kernels' with which the middle of the rows lies where a normal law has it: far ones count no more than near ones."""
    low, high = 0.0, 1.0
    for _ in range(40):
        guess = 0.5 * (low + high)
        low, high = (guess, high) if middle(rows, lambda row: abs(row.error) / math.hypot(row.kernels, guess)) > NORMAL_MIDDLE else (low, guess)
    return low


# name, set, what the program states
ESTIMATED = [("a step of a server, dense models", "served: Llama on H100, H200", SERVER),
             ("a step of a server, models with experts", "served: DeepSeek", SERVER_OF_EXPERTS),
             ("a round beyond plain steps", SPEEDUPS, ROUND)]


def kernel_lines():
    """Kernels on shapes that no fit saw, each against the spread of the other folds (scripts/kernels/fit_kernels.py): rows, percent within 1 and 2."""
    found = defaultdict(list)
    with open(KERNELS, newline="") as file:
        for row in csv.DictReader(file):
            if row["rows"] == "all" and row["within_1_percent"]:
                for kind in (row["kind"], "all"):
                    found[kind].append([float(row[key]) for key in ("count", "within_1_percent", "within_2_percent")])
    lines = "| kernels not seen | rows | within 1 / 2 of the stated error, % |\n|---|---|---|\n"
    for kind in [*(kind for kind in found if kind != "all"), "all"]:
        rows = sum(count for count, _, _ in found[kind])
        shares = [sum(own[0] * own[times] for own in found[kind]) / rows for times in (1, 2)]
        lines += f"| {kind.replace('_', ' ')} | {rows:.0f} | {shares[0]:.0f} / {shares[1]:.0f} |\n"
    return lines


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    specsim, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    sets = {**step_rows(specsim), **published_rows(specsim), **served_rows(specsim)}
    fitted = [name for _, name, _ in ESTIMATED]
    order = fitted + sorted(name for name in sets if name not in fitted)
    held = [row for name in order if name not in fitted for row in sets[name]]
    groups = [(name, "estimated" if name in fitted else "checked", sets[name]) for name in order] + [("all that is checked", "checked", held)]
    with open(out / "coverage.csv", "w", newline="") as file:
        write = csv.writer(file, lineterminator="\n")
        write.writerow(["set", "use", "rows", "servers", "kernel_error_percent", "stated_error_percent", "kernels_within_1_percent", "kernels_within_2_percent",
                        "within_1_percent", "within_2_percent", "needed_over_stated"])
        lines = []
        for name, use, rows in groups:
            kernels, stated = (lambda row: row.kernels), (lambda row: row.stated)
            needed = middle(rows, lambda row: abs(row.error) / max(row.stated, 1e-9)) / NORMAL_MIDDLE
            shares = [within(rows, times, of) for of in (kernels, stated) for times in (1, 2)]
            write.writerow([name, use, len(rows), len(by_server(rows)), *(f"{100 * middle(rows, of):.1f}" for of in (kernels, stated)),
                            *(f"{share:.0f}" for share in shares), f"{needed:.2f}"])
            lines.append(f"| {name} | {use} | {len(rows)} | {len(by_server(rows))} | {100 * middle(rows, kernels):.1f} | {shares[0]:.0f} / {shares[1]:.0f} | "
                         f"{100 * middle(rows, stated):.1f} | {shares[2]:.0f} / {shares[3]:.0f} | {needed:.2f} |\n")
    columns = ["error", "from", "rows", "servers", "estimate_percent", "stated_percent"]
    table = [[name, of, len(sets[of]), len(by_server(sets[of])), f"{100 * estimate(sets[of]):.1f}", f"{100 * stated:.0f}"] for name, of, stated in ESTIMATED]
    with open(out / "estimates.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *table])
    told = [["beside kernels", "estimated from", "rows", "servers", "estimate, %", "stated, %"], ["---"] * len(columns), *table]
    (out / "estimates.md").write_text("".join(f"| {' | '.join(map(str, line))} |\n" for line in told))
    (out / "coverage.md").write_text(
        "| rows | used | rows | servers | error of kernels, % | within 1 / 2 of it, % | stated error, % | within 1 / 2 of it, % | needed / stated |\n"
        + "|---" * 9 + "|\n" + "".join(lines))
    (out / "kernels.md").write_text(kernel_lines())
    (out / "manifest.yaml").write_text(f'script: scripts/results/price_coverage.py\ncommand: "scripts/results/price_coverage.py build/specsim results/fidelity/coverage"\n'
                                       f'program: "{version_of(specsim)}"\ndata: {KERNELS}, {STEPS}, {published_speedups.ROWS}, {served_speedups.ROWS}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
