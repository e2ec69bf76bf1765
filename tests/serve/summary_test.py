#!/usr/bin/python3
"""summary.csv calculated again from requests.csv, with numpy's percentiles, with and without the first requests; the condition for an
overloaded server; and the verdict of a single run, calculated again from both servers' requests.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import math
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np  # noqa: E402

from bench import Bench, Checks, columns, config, serve  # noqa: E402

SLO = {"ttft_ms": 60, "tpot_ms": 9}


def crowded(warm_up, rate=22.0, requests=600):
    speculation = {"policy": {"kind": "fixed", "draft_length": 2}, "acceptance": {"alpha": 0.7}}
    made = config({"process": "poisson", "rate": rate, "requests": requests}, {"target_fixed_ms": 5.0, "target_ms_per_token": 0.02, "draft_fixed_ms": 0.5},
                  {"prompt": {"lognormal": {"mean": 150, "cv": 1}}, "output": {"geometric": {"mean": 60}}}, speculation, max_num_seqs=32)
    made["serve"]["slo"] = SLO
    made["serve"]["warm_up"] = warm_up
    return made


def mser(times):
    """MSER-5: the cut, in requests, that makes the standard error of the mean of the rest smallest; the shortest one in a tie."""
    means = np.array(times[:len(times) // 5 * 5]).reshape(-1, 5).mean(axis=1)
    errors = [means[d:].var() / len(means[d:]) for d in range(len(means) // 2 + 1)]
    return 5 * int(np.argmin(errors))


def figures(run, cut):
    """The columns of summary.csv: rates and totals of the whole run, latencies and shares of the requests after the first `cut`."""
    sent, first, last = (run.seconds(name) * 1e3 for name in ("arrival_s", "first_token_s", "last_token_s"))
    output, prompt, rounds, accepted = (np.array(run.whole(name)) for name in ("output_tokens", "prompt_tokens", "rounds", "accepted"))
    seconds = 1e-3 * (last.max() - sent.min())
    made = {"requests": len(sent), "completed": len(sent), "warm_up_requests": cut, "duration_s": seconds, "request_throughput": len(sent) / seconds,
            "output_throughput": output.sum() / seconds, "total_token_throughput": (output.sum() + prompt.sum()) / seconds,
            "mean_concurrency": 1e-3 * (last - sent).sum() / seconds, "tokens_per_round": 1 + accepted.sum() / rounds.sum()}
    sent, first, last, output = sent[cut:], first[cut:], last[cut:], output[cut:]
    many = output > 1
    gaps = np.where(many, (last - first) / np.maximum(output - 1, 1), 0.0)
    samples = {"ttft": first - sent, "tpot": gaps[many], "e2el": last - sent}
    within = ((samples["ttft"] <= SLO["ttft_ms"]) & (gaps <= SLO["tpot_ms"])).mean()
    made |= {"slo_share": within, "request_goodput": within * made["request_throughput"]}
    for name, values in samples.items():
        made[f"mean_{name}_ms"], made[f"max_{name}_ms"] = values.mean(), values.max()
        for share in (50, 90, 95, 99):
            made[f"p{share}_{name}_ms"] = np.percentile(values, share)
    return made


def differences(summary, made):
    return [name for name, value in made.items() if not math.isclose(float(summary[name][0]), value, rel_tol=1e-8, abs_tol=1e-9)]


def verdict(folder, name, made):
    """The sentence of a single run, and both servers' requests."""
    (Path(folder) / f"{name}.yaml").write_text(json.dumps(made))
    text = " ".join(serve(folder, f"{name}.yaml", "--out", name).stdout.split())
    said = re.search(r"speculation at this load .*?(keep up with the load|\(\S+ %, 95 %: \S+ to \S+\)(?= (speculative|plain|most|wrote|no largest)))", text)
    return said.group() if said else "", *(columns(Path(folder) / name / f"{file}.csv") for file in ("requests", "requests_plain"))


def means(requests):
    """Mean TTFT and TPOT in milliseconds, and output tokens per second."""
    sent, first, last, output = (np.array([float(text) for text in requests[name]]) for name in ("arrival_s", "first_token_s", "last_token_s", "output_tokens"))
    many = output > 1
    return (1e3 * (first - sent).mean(), 1e3 * ((last - first)[many] / (output - 1)[many]).mean(), output.sum() / (last.max() - sent.min()))


def digits(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def single(folder, checks):
    """Speculation that pays, that does not pay, and that costs throughput; each value of the sentence is computed from the requests."""
    cheap = crowded(0, rate=6.0, requests=400)
    dear = crowded(0, rate=6.0, requests=400)
    dear["cost"]["draft_fixed_ms"] = 9.0
    clients = crowded(0, requests=400)
    clients["serve"]["arrivals"] = {"process": "closed", "concurrency": 24, "requests": 400}
    clients["cost"]["target_ms_per_token"] = 0.2
    some = ""
    for name, made, begins in (("cheap", cheap, "pays: mean TPOT "), ("dear", dear, "does not pay: mean TPOT "), ("clients", clients, "")):
        said, own, plain = verdict(folder, name, made)
        checks.holds(f"{name}: the verdict is that it {begins}", said.startswith(f"speculation at this load {begins}"))
        (ttft, tpot, throughput), before = means(own), means(plain)
        some = f"mean TPOT {before[1]:.4g} -> {tpot:.4g} ms ({100 * (tpot / before[1] - 1):+.1f} %"
        checks.holds(f"{name}: TPOT", some in said)
        checks.holds(f"{name}: TTFT", f"mean TTFT {before[0]:.4g} -> {ttft:.4g} ms ({100 * (ttft / before[0] - 1):+.1f} %" in said)
        given = f"output tokens/s {digits(before[2])} -> {digits(throughput)} ({100 * (throughput / before[2] - 1):+.1f} %, 95 %: "
        checks.holds(f"{name}: throughput", given in said if name == "clients" else "both servers keep up with the load" in said)
        checks.rejects_exactly("the verdict of a run", "the two servers exchanged", f"mean TPOT {tpot:.4g} -> {before[1]:.4g}" not in said)
    said, own, plain = verdict(folder, "drowned", crowded(0, rate=100.0, requests=400))
    checks.holds("a server that is sent more than it answers has no mean TTFT", "TTFT grows without limit" in said and "mean TTFT" not in said)
    # Of 40 requests none waits in a queue, though they come at twice the capacity.
    said, own, plain = verdict(folder, "short", crowded(0, rate=100.0, requests=40))
    checks.holds("a run too short to show that its load is above the capacity", "keep up" not in said and "TTFT grows without limit" in said)
    alone = crowded(0, rate=6.0, requests=100)
    del alone["serve"]["speculation"]
    (Path(folder) / "alone.yaml").write_text(json.dumps(alone))
    done = serve(folder, "alone.yaml", "--out", "alone")
    checks.holds("a server without speculation is not compared with another one", "at this load" not in done.stdout and not (Path(folder) / "alone" / "requests_plain.csv").exists())


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        single(folder, checks)
        whole = None
        for warm_up in (0, 37, "mser"):
            run = bench.run(crowded(warm_up))
            summary = columns(run.folder / "summary.csv")
            residence = list(run.residence())
            cut = mser(residence) if warm_up == "mser" else warm_up
            checks.exact(f"values after a warm-up of {warm_up}", differences(summary, figures(run, cut)), [])
            checks.rejects_exactly("figures of a run", "one request more in the warm-up", bool(differences(summary, figures(run, cut + 1))))
            if warm_up == "mser":
                checks.holds("MSER-5 leaves something out here", 0 < cut <= 300)
                later = [d for d in (cut - 5, cut + 5) if d >= 0]
                checks.rejects_exactly("MSER-5's cut", "a batch more or less", all(differences(summary, figures(run, d)) for d in later))
            whole = whole or run
            checks.exact("leaving requests out of the figures changes no request", run.raw, whole.raw)
        # Their steps are scheduled ahead, so the last step of each request is not one of its rounds.
        ahead = crowded(0)
        ahead["serve"]["scheduler"]["async"] = True
        run = bench.run(ahead)
        summary = columns(run.folder / "summary.csv")
        checks.exact("figures of an asynchronous engine", differences(summary, figures(run, 0)), [])
        header = (run.folder / "summary.csv").read_text().splitlines()[0].split(",")
        checks.exact("columns of a name", [name for name in set(header) if header.count(name) > 1], [])
        life = sum(float(values[0]) for name, values in summary.items() if name.startswith("mean_e2el_") and name != "mean_e2el_ms")
        checks.holds("the causes of a life add up to it", abs(life - float(summary["mean_e2el_ms"][0])) < 1e-6)
        # Requests of 6.7 s that wait only for the end of a long step, and a server with half of the necessary capacity.
        busy = crowded(0, 45.0, 300)
        busy["cost"] = {"model": "affine", "target_fixed_ms": 360.0}
        busy["serve"]["scheduler"]["max_num_seqs"] = 100000
        summary = columns(bench.run(busy).folder / "summary.csv")
        checks.holds("the busy server's last requests wait for 2 % of the run", float(summary["mean_queue_ms"][0]) > 0.02 * 1e3 * 300 / 45)
        checks.exact("a busy server is not overloaded", summary["overloaded"], ("0", "0"))
        short = config({"process": "deterministic", "rate": 200, "requests": 300}, {"target_fixed_ms": 1.0}, {"prompt": {"fixed": 5}, "output": {"fixed": 10}})
        for warm_up in (0, 150, "mser"):
            short["serve"]["warm_up"] = warm_up
            summary = columns(bench.run(short).folder / "summary.csv")
            checks.exact(f"a server of half the capacity is, after a warm-up of {warm_up}", summary["overloaded"], ("1",))
            checks.holds(f"it is busy all the time and no longer, after a warm-up of {warm_up}", 0.98 < float(summary["busy_share"][0]) <= 1.0)
        # Eight clients whose requests all take equally long: the first requests do not differ from the last.
        even = config({"process": "closed", "concurrency": 8, "requests": 800}, {"target_fixed_ms": 7.3}, {"prompt": {"fixed": 5}, "output": {"fixed": 5}},
                      max_num_seqs=8)
        even["serve"]["warm_up"] = "mser"
        summary = columns(bench.run(even).folder / "summary.csv")
        checks.holds("every request of the even run takes as long", float(summary["max_e2el_ms"][0]) - float(summary["p50_e2el_ms"][0]) < 1e-6)
        checks.exact("MSER-5 leaves nothing out of an even run", summary["warm_up_requests"], ("0",))
        path = bench.folder / "all.yaml"
        path.write_text(json.dumps(crowded(600)))
        done = serve(folder, path.name, wanted=2)
        checks.holds("a warm-up of the whole run is refused", "all.yaml: warm_up is 600 and the run has 600 requests, allowed: fewer" in done.stderr)
        for wrong in ("-1", "1.5", "mse"):
            done = serve(folder, path.name, "--warm-up", wrong, wanted=2)
            checks.holds(f"a warm-up of {wrong} is refused", "warm_up is" in done.stderr and "allowed: a number of requests, or mser" in done.stderr)
    return checks.finish("summaries")


if __name__ == "__main__":
    sys.exit(main())
