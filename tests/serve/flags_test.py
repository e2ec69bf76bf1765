#!/usr/bin/python3
"""The end of the output of `specsim serve`: the draft length by requests in the step, and the flags of the engine whose scheduler was simulated.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import math
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Checks, columns, config, serve  # noqa: E402

SERVER = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b", "--rate", "6", "--requests", "40", "--alone"]
RATES = ("--position-rates", "0.73,0.5,0.34")


def served(*options, folder=".", acceptance=RATES, server=SERVER):
    return serve(folder, *server, *acceptance, *options).stdout


def table_of(text):
    """The printed table, as numbers and as printed text; lines are wrapped."""
    flat = " ".join(text.split())
    printed = re.search(r"\[\[.*?\]\]", flat[flat.index("most tokens per second"):]).group()
    return json.loads(printed), printed


def kind(scheduler):
    return ["--set", f"serve.scheduler={{kind: {scheduler}}}"]


def engines(checks):
    others = {"vllm_v1": "vllm serve", "sglang": "sglang.launch_server", "trtllm": "trtllm-serve", "llama_cpp": "llama-server"}
    busy = [*SERVER[:6], "--rate", "100", "--requests", "400", "--alone"]  # steps of more than 96 requests, from where the best length is shorter
    for scheduler, own in others.items():
        text = served("--policy", "fixed:3", *kind(scheduler), server=busy if scheduler in ("vllm_v1", "trtllm") else SERVER)
        checks.exact(f"{scheduler}: commands", [name for name in others.values() if name in text], [own])
        checks.exact(f"{scheduler}: vLLM's table", "num_speculative_tokens_per_batch_size" in text, scheduler == "vllm_v1")
        ranges, _ = table_of(text)
        checks.exact(f"{scheduler}: draft lengths are the server's own or shorter", max(row[2] for row in ranges), 3)
        if scheduler == "vllm_v1":
            config = json.loads(re.search(r"--speculative-config '(.*)'", text).group(1))
            checks.exact("vLLM's flags are JSON and hold the table", (config["num_speculative_tokens"], config["num_speculative_tokens_per_batch_size"]), (3, ranges))
            checks.holds("and say which version knows it", "needs vLLM 0.24 or later" in text)
            checks.holds("and keep full CUDA graphs", "VLLM_USE_V2_MODEL_RUNNER=1 vllm serve" in text)
        if scheduler == "sglang":
            checks.holds("SGLang's flags", "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4" in text)
        if scheduler == "trtllm":
            schedule = ", ".join(f"{to}: {length}" for _, to, length in ranges)
            checks.holds("TensorRT-LLM's schedule", f"max_draft_len: 3, draft_len_schedule: {{{schedule}}}}}" in text)
        if scheduler == "llama_cpp":
            checks.exact("llama.cpp's slots bound its steps", (ranges[-1][1], "--spec-draft-n-max 3" in text), (4, True))
    # A table changes nothing for steps that all draft the same. Mutant: printed whenever it has several ranges.
    for scheduler in ("vllm_v1", "trtllm"):
        text = served("--policy", "fixed:3", *kind(scheduler))
        checks.exact(f"{scheduler}: no table for few requests",
                     (len(table_of(text)[0]) > 1, "no table, since steps of this load" in " ".join(text.split()), "per_batch_size" in text or "draft_len_schedule" in text,
                      "VLLM_USE_V2_MODEL_RUNNER" in text), (True, True, False, False))
    # The latency table of an engine selects its scheduler.
    for engine, scheduler in (("trtllm", "trtllm"), ("sglang_sync", "sglang"), ("vllm_sync", "vllm_v1")):
        text = served("--policy", "fixed:3", "--engine", engine)
        checks.exact(f"--engine {engine}: commands", [name for name in others.values() if name in text], [others[scheduler]])
    text = served("--policy", "goodput")
    checks.holds("a policy that no server has is named", "these lengths were not simulated: the run's policy is goodput" in " ".join(text.split()))
    checks.holds("static batches are no engine's", "flags for" not in served("--policy", "fixed:3", "--set", "serve.scheduler={kind: static, batch: 8}"))
    checks.holds("without a draft there is nothing to say", "most tokens" not in served("--policy", "off"))


def plain_server(checks):
    """A table's 0 still keeps the draft's cache, so a server without a draft is compared separately."""
    def ends(cost, alpha, *more):
        with tempfile.TemporaryDirectory() as folder:
            made = config({"process": "closed", "concurrency": 8, "requests": 40}, {"target_fixed_ms": 10.0, **cost}, {"prompt": {"fixed": 1}, "output": {"fixed": 100}},
                          {"policy": {"kind": "fixed", "draft_length": 1}, "acceptance": {"alpha": alpha}}, max_num_seqs=8)
            (Path(folder) / "c.yaml").write_text(json.dumps(made))
            return " ".join(serve(folder, "c.yaml", "--alone", *more).stdout.split())

    never = "a server without a draft is faster at every concurrency: do not speculate"
    # 1.1 tokens in 11.5 ms with a draft, 1 in 10 ms without; a step without drafts still takes 1.5 ms to keep the draft's cache.
    text = ends({"draft_fixed_ms": 1.5}, 0.1)
    checks.exact("slower than its drafts are worth", ("[[1, 8, 1]]" in text, never in text), (True, True))
    text = ends({"draft_fixed_ms": 1.5}, 0.2)
    checks.exact("worth its price", ("[[1, 8, 1]]" in text, "without a draft" in text), (True, False))
    # With B requests, 1.3 tokens in 11.5 + 2.5 B ms, and 1 in 10 + B without: equal at B = 1.25. The table drafts up to B = 3.
    text = ends({"draft_fixed_ms": 1.5, "draft_ms_per_token": 0.25, "target_ms_per_token": 1.0}, 0.3)
    checks.holds("from two requests on a server without is faster", "from 2 concurrent requests on a server without a draft is faster: do not speculate if your load stays there" in text)
    text = ends({"draft_fixed_ms": 1.5}, 0.1, "--method", "ngram")
    checks.holds("a draft without passes has no cache to keep", "without a draft" not in text)
    server = [*SERVER[:5], "llama-3.2-1b", *SERVER[6:], "--alpha", "0.1", "--policy", "fixed:1"]
    none = " ".join(serve(".", *server).stdout.split())
    checks.exact("no flags where the server is faster without", ("flags for" in none, "flags: none, the server is faster without speculation" in none, never in none),
                 (False, True, True))
    # One length for all steps: the busiest load decides. There no speculation is faster, though not with few requests.
    busy = [*SERVER[:5], "llama-3.2-1b", "--alpha", "0.4", "--policy", "fixed:1", "--rate", "200", "--requests", "900", "--prompt", "100", "--output", "400", "--alone",
            "--set", "serve.scheduler={kind: sglang, max_running_requests: 600}"]
    text = " ".join(serve(".", *busy).stdout.split())
    checks.exact("no flags where the busiest load is faster without", ("flags for" in text, "flags: none" in text, never in text), (False, True, False))


def running(checks):
    """SGLang runs at most 48 requests at once when it speculates, and any number otherwise."""
    def most(*options):
        with tempfile.TemporaryDirectory() as folder:
            done = serve(".", *SERVER[:6], *RATES, "--policy", "fixed:1", "--concurrency", "100", "--requests", "300", "--prompt", "64", "--output", "32",
                         *options, "--out", f"{folder}/out")
            said = "SGLang by default runs at most 48 concurrent requests with speculation" in " ".join(done.stdout.split())
            return *(float(cell) for cell in columns(Path(folder) / "out" / "summary.csv")["largest_batch"]), said

    checks.exact("48 at once with speculation, all hundred without", most(*kind("sglang")), (48, 100, True))
    checks.exact("or as many as the option allows", most("--set", "serve.scheduler={kind: sglang, max_running_requests: 64}"), (64, 64, False))


def unknown_capacity(checks):
    """Prompts with a long tail: only the longer run contains the longest ones."""
    chunks = ("--policy", "fixed:3", "--set", "serve.scheduler.max_num_batched_tokens=8192")
    for chunked in ("true", "false"):
        text = " ".join(served(*chunks, "--set", f"serve.scheduler.chunked_prefill={chunked}").split())
        checks.exact(f"chunked_prefill {chunked}: the largest stable rate is given, or reported as unknown",
                     ("capacity" in text, "no largest stable rate is given: the longer run" in text), (chunked == "true", chunked == "false"))


def replicas(checks):
    """A few replicas represent many, so that their capacity is found in seconds."""
    def capacity(count):
        server = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--rate", "3", "--requests", "10", "--alone", "--set", f"serve.replicas={count}"]
        return float(re.search(r"plain: capacity (\S+) requests/s", serve(".", *server).stdout).group(1))

    few, many = capacity(4), capacity(4096)
    checks.holds(f"{many} of 4096, {few} of 4", abs(many / few / 1024 - 1) < 1e-3)


def measured(checks):
    five = served("--policy", "fixed:5")
    checks.exact("only positions that were measured", max(row[2] for row in table_of(five)[0]), 3)
    checks.holds("which is said", "drafts longer than 3 are not considered" in " ".join(five.split()))
    one = served("--policy", "fixed:5", acceptance=("--alpha", "0.9"))
    checks.exact("one rate for all positions goes on", (max(row[2] for row in table_of(one)[0]), "not considered" in one), (5, False))


def pool(checks):
    text = " ".join(served("--policy", "fixed:3", "--set", "serve.kv={tokens: 16000}", "--prompt", "512", "--output", "256").split())
    fitting = int(re.search(r"the cache holds (\d+) such requests", text).group(1))
    checks.exact("999 blocks hold so many requests of 640 tokens and three drafts", fitting, 999 // 41)
    checks.exact("the table ends there", table_of(text)[0][-1][1], fitting)


def pasted(checks):
    """The printed flags are a policy."""
    with tempfile.TemporaryDirectory() as folder:
        ranges, printed = table_of(served("--policy", "fixed:3"))
        checks.holds("several ranges", len(ranges) > 1)
        own = [",".join(f"{low}-{high}={length}" for low, high, length in ranges), printed, json.dumps(ranges)]
        made = []
        for number, text in enumerate(own):
            served("--policy", f"table:{text}", "--out", f"{number}", folder=folder)
            made.append((Path(folder) / f"{number}" / "requests.csv").read_bytes())
        checks.exact("the printed table is the same policy as its ranges", made, [made[0]] * 3)
        checks.exact("and is a table's description of itself", table_of(served("--policy", f"table:{printed}"))[0], ranges)
        checks.holds("and drafts", float(columns(Path(folder) / "1" / "summary.csv")["drafted"][0]) > 0)


def ties(checks):
    """Two servers that the latency estimates cannot distinguish tie; others do not."""
    def swept(rate, *more):
        return serve(".", *SERVER[:6], "--policy", "fixed:1", "--position-rates", rate, "--requests", "200", "--sweep", "concurrency=4,32", *more).stdout
    close = swept("0.21")
    noise, tied = re.search(r"tie within the error of the latency model, ([\d.]+) %: (.*)", close).groups()
    tpot = {(load, speculates): float(value) for load, speculates, value in re.findall(r"^ +(\d+) +(no|yes) +\S+ ± \S+ +\S+ +(\S+) ±", close, re.MULTILINE)}
    apart = 100 * math.log(tpot["4", "no"] / tpot["4", "yes"])
    # Not shared by a step and a speculative round: the prior's 4.6 % of speculative passes and .55 ms of host time per round of 8.1 ms, and kernels' 4 %.
    # Together 9.1 %. Mutants: kernels' errors alone (4 %), and without host time (6.1 %).
    checks.holds(f"TPOT at 4 requests, {apart:.1f} % apart, {noise} % unknown", 0 < apart < 9 < float(noise) < 30 and "TPOT at concurrency 4" in tied)
    checks.holds("a gain of a third is no tie", "tie within" not in swept("0.9"))


def main():
    checks = Checks()
    for part in (engines, plain_server, running, unknown_capacity, replicas, measured, pool, pasted, ties):
        part(checks)
    return checks.finish("flags of servers")


if __name__ == "__main__":
    sys.exit(main())
