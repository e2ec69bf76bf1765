#!/usr/bin/python3
"""specsim import and plan --log: values from logs and metrics of each server, calculated here from the same numbers.

Runs at the root of the repository; SPECSIM names the program.
"""
import gzip
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "tests/support")
from program import SPECSIM, expect, finish, run  # noqa: E402

LOGS = Path("tests/data/logs")
PLAN = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "eagle-head-8b"]


def figure(out, name):
    found = re.search(rf"^ *{re.escape(name)} +([\d.]+)(?: +([\d.]+) +([\d.]+))? *$", out, re.M)
    return tuple(None if x is None else float(x) for x in found.groups()) if found else (None, None, None)


def says(what, out, *texts):
    for text in texts:
        expect(f"{what}: no line contains {text!r} in\n{out}", text in out)


def close(what, found, wanted, by=1e-4):
    expect(f"{what}: {found}, wanted {wanted}", found is not None and abs(found - wanted) <= by)


def imported(name, *more, text=None):
    status, out, err = run("import", LOGS / name if text is None else "-", *more, input=text)
    expect(f"{name}: status {status}, {err}", status == 0)
    return out


def vllm():
    # Four intervals of 99, 13, 4 and 10 rounds: each line has the weight of its rounds.
    out = imported("vllm.log")
    rounds, accepted = 99 + 13 + 4 + 10, 169 + 17 + 0 + 16
    close("vllm length", figure(out, "mean acceptance length")[0], 1 + accepted / rounds)
    first = (91 + 10 + 0 + 9) / rounds
    second = (78 + 7 + 0 + 7) / rounds
    says("vllm", out, f"4 lines (4 to 7), {rounds} rounds, draft length 2", f"--position-rates {first:.4g},{second:.4g} --policy fixed:2",
         "every round drafted 2", "follow from each other")
    close("vllm alpha", figure(out, "alpha")[0], accepted / (accepted + rounds - 92))
    # A mean over lines would be wrong:
    expect("vllm: lines were averaged", abs(figure(out, "mean acceptance length")[0] - (2.71 + 2.31 + 1 + 2.6) / 4) > 0.1)
    # A line whose figures contradict each other is reported with its number.
    out = imported("", text=(LOGS / "vllm.log").read_text().replace("Mean acceptance length: 2.31", "Mean acceptance length: 2.91"))
    says("contradiction", out, "INCONSISTENT: printed figures:", "line 5: mean acceptance length 2.91, but")
    # Drafts cut short.
    out = imported("vllm_variable.log")
    says("variable", out, "37 rounds, draft length 7", "note:         whole drafts: 6.757 draft tokens per round of at most 7")
    # Lines that cannot be read are counted and named.
    status, out, err = run("import", "-", input="SpecDecoding metrics: Accepted: many tokens\n" + (LOGS / "vllm.log").read_text())
    says("unread", err, 'warning: 1 line could not be read; line 1: no number after "Accepted:"')
    expect("unread: status", status == 0)


def vllm_v0():
    out = imported("vllm_v0.log")
    drafted, emitted, alone = 13311 + 300, 10616 + 200, 8547 + 150
    close("v0 length", figure(out, "mean acceptance length")[0], emitted / (drafted / 3))
    close("v0 alpha", figure(out, "alpha")[0], alone / drafted)
    lower = ("Speculative metrics: Draft acceptance rate: 0.900, System efficiency: 0.900, Number of speculative tokens: 3, Number of accepted tokens: {}, "
             "Number of draft tokens: {}, Number of emitted tokens: {}.\n")
    text = lower.format(900, 3000, 1500).replace("rate: 0.900", "rate: 0.300") + lower.format(1350, 1500, 1900)
    fallen = imported("", text=text)  # drafts fall, accepted and emitted tokens do not
    close("v0 restarted", figure(fallen, "mean acceptance length")[0], (1500 + 1900) / (1000 + 500))
    says("v0", out, "counters restarted 1 time", "judged independently", "--at-draft-length 3")


def counters():
    text = (LOGS / "vllm_metrics.txt").read_text()
    out = imported("vllm_metrics.txt")
    close("counters length", figure(out, "mean acceptance length")[0], 2.5)
    says("counters", out, "1000 rounds, draft length 3", "--position-rates 0.75,0.45,0.3")
    alpha, low, high = figure(out, "alpha")
    judged = 1500 + 1000 - 300
    close("counters alpha", alpha, 1500 / judged)
    half = 1.959964 * math.sqrt(alpha * (1 - alpha) / judged)
    close("counters interval", low, alpha - half, 2e-4)
    close("counters interval", high, alpha + half, 2e-4)
    # The same scrape twice adds no round; --growth subtracts earlier counts; a counter that falls has restarted.
    expect("scraped twice", "1000 rounds" in imported("", text=text + text))
    more = re.sub(r"(} )(\d+)\.0$", lambda m: f"{m[1]}{2 * int(m[2])}.0", text, flags=re.M)
    expect("growth", "1000 rounds" in imported("", "--growth", text=text + more))
    less = re.sub(r"(} )(\d+)\.0$", lambda m: f"{m[1]}{int(m[2]) // 2}.0", text, flags=re.M)
    out = imported("", text=text + less)
    says("restart", out, "1500 rounds", "counters restarted 1 time")
    # Drafts fall at the restart and accepted tokens do not: both began at 0. Everything counted whole: 1000 + 600 rounds.
    def scrape(drafts, accepted, position, model="m", created=None):
        labels = f'{{engine="0",model_name="{model}"}}'
        text = f"vllm:spec_decode_num_drafts_total{labels} {drafts}.0\nvllm:spec_decode_num_draft_tokens_total{labels} {2 * drafts}.0\n"
        text += f"vllm:spec_decode_num_accepted_tokens_total{labels} {accepted}.0\n"
        if created is not None:
            text += f"vllm:spec_decode_num_drafts_created{labels} {created}\n"
        for i, count in enumerate(position):
            text += f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",model_name="{model}",position="{i}"}} {count}.0\n'
        return text
    first, second = scrape(1000, 700, (500, 200)), scrape(600, 1000, (550, 450))
    out = imported("", text=first + second)
    close("one counter falls", figure(out, "mean acceptance length")[0], 1 + (700 + 1000) / 1600)
    says("one counter falls", out, "1600 rounds", "counters restarted 1 time", f"--position-rates {1050 / 1600:.4g},{650 / 1600:.4g}")
    expect("one counter falls: consistent", "INCONSISTENT: positions" not in out and "INCONSISTENT: printed" not in out)
    # Another model's server counts separately, and a truncated scrape has no effect on the restart.
    out = imported("", text=first + scrape(100, 70, (50, 20), "other") + second.splitlines(keepends=True)[0] + second)
    says("cut off", out, "1600 rounds", "counters restarted 1 time", "100 rounds")
    # A scrape that was cut at the end of the file, before a restart, or after it does not count at all: 1 + 700 / 1000.
    cut = "".join(scrape(9000, 7000, (5000, 2000)).splitlines(keepends=True)[:2])
    for name, scraped, rounds, accepted in (("at the end", first + cut, 1000, 700), ("before a restart", first + cut + second, 1600, 1700),
                                            ("after a restart", first + "".join(second.splitlines(keepends=True)[:2]), 1000, 700)):
        status, out, err = run("import", "-", input=scraped)
        close(f"a cut scrape {name}", figure(out, "mean acceptance length")[0], 1 + accepted / rounds)
        says(f"a cut scrape {name}", out, f"{rounds} rounds")
        says(f"a cut scrape {name}", err, "a scrape without counters that others have, left out")
    # The growth from a scrape whose beginning is missing is not known: 3000 - 2000 rounds. Mutant: 1000 rounds and 2600 - 700 accepted tokens.
    timed = [line + f" {1700000000000 + 60000 * i}\n" for i, one in enumerate((first, scrape(2000, 1700, (1200, 500)), scrape(3000, 2600, (1800, 800)))) for line in one.splitlines()]
    out = imported("", "--growth", text="".join(timed[1:]))
    close("a scrape cut at its beginning", figure(out, "mean acceptance length")[0], 1.9)
    # After a restart with a shorter draft the counters of the last positions do not come again.
    shorter = [re.sub(r".*position=\"1\".*\n", "", scrape(drafts, accepted, (accepted, 0))) for drafts, accepted in ((100, 60), (300, 200))]
    says("a shorter draft", imported("", text=first + "".join(shorter)), "1300 rounds", "counters restarted 1 time")
    # Counters one after the other, each with all its scrapes: by time they are the scrapes. Mutant: the file's order, 1 + 1700 / 1300.
    def by_series(times, *scrapes):
        rows = [[line + time for line in one.splitlines()] for time, one in zip(times, scrapes)]
        return "".join(row[i] + "\n" for i in range(len(rows[0])) for row in rows)
    for name, times in (("in milliseconds", (" 1700000000000", " 1700000060000", " 1700000120000")), ("in seconds", (" 1700000000.5", " 1700000060.5", " 1700000120.5")),
                        ("of promtool", (" @[1700000000.5]", " @[1700000060.5]", " @[1700000120.5]"))):
        out = imported("", text=by_series(times, first, second))
        close(f"by series, {name}", figure(out, "mean acceptance length")[0], 1 + 1700 / 1600)
        says(f"by series, {name}", out, "1600 rounds", "counters restarted 1 time")
    status, out, err = run("import", "-", input=by_series(("", "", ""), first, second, scrape(900, 1500, (800, 700))))
    says("by series, without times", err, "counters that do not come scrape by scrape, allowed: whole scrapes, or values with their times")
    expect("by series, without times: status", status == 2)
    # No counter fell, but they began later: vLLM's "created" time shows it.
    out = imported("", text=scrape(1000, 700, (500, 200), created="1.7e+09") + scrape(2000, 1700, (1000, 700), created="1.7000001e+09"))
    says("created", out, "3000 rounds", "counters restarted 1 time")
    out = imported("", text=scrape(1000, 700, (500, 200), created="1.7e+09") + scrape(2000, 1700, (1000, 700), created="1.7e+09"))
    says("created before", out, "2000 rounds")
    expect("created before", "restarted" not in out)
    # Counters that began earlier are another server's: 1000 + 2000 rounds in any order, and again as both go on.
    earlier, later = scrape(1000, 700, (500, 200), created="1.7e+09"), scrape(2000, 1700, (1000, 700), created="1.7000001e+09")
    for scraped, rounds in ((later + earlier, 3000), (earlier + later, 3000), (later + earlier + later.replace(" 2000.0", " 2100.0") + earlier.replace(" 1000.0", " 1010.0"), 3110)):
        says("two servers", imported("", text=scraped), f"{rounds} rounds")
    out = imported("", "--growth", text=first + second)
    says("growth and a restart", out, "600 rounds")
    # Two engines, each a process with a time at which its counters began: one restarts, the other only grows: 1000 + 100 and 1000 + 50 rounds.
    # Without these times both restart: 1000 + 1100 and 1000 + 50. Mutant: a server's engines always restart together.
    def engine(i, drafts, accepted, created):
        return scrape(drafts, accepted, (accepted - accepted // 3, accepted // 3), created=created).replace('engine="0"', f'engine="{i}"')
    before, after = "1.7e+09", "1.7005e+09"
    for name, old, new, rounds, accepted in (("times", before, after, 2150, 990 + 105), ("no times", None, None, 3150, 900 + 990 + 105)):
        for stays, falls in ((0, 1), (1, 0)):
            scrapes = [engine(stays, 1000, 900, old), engine(falls, 1000, 100, old), engine(stays, 1100, 990, old), engine(falls, 50, 5, new)]
            for order in ((0, 1, 2, 3), (1, 0, 3, 2)):
                out = imported("", text="".join(scrapes[i] for i in order))
                says(f"two engines, {name}", out, f"{rounds} rounds", "counters restarted 1 time")
                close(f"two engines, {name}", figure(out, "mean acceptance length")[0], 1 + accepted / rounds)
    scrapes = [engine(0, 1000, 900, before), engine(1, 1000, 100, before), engine(1, 50, 5, after), engine(0, 1100, 990, before)]
    says("two engines, scraped apart", imported("", text="".join(scrapes)), "2150 rounds")
    # --growth counts the engine that restarted from 0, and only the growth of the other one.
    says("two engines, growth", imported("", "--growth", text="".join(scrapes)), ", 150 rounds")
    # The same of vLLM's V0 engine: alpha is accepted / drafted, 700 of 1600 and 1200 of 2500. Mutant: each counter for itself.
    def old(drafted, accepted, created=None):
        labels = '{model_name="m"}'
        counts = {"accepted": accepted, "draft": drafted, "emitted": 500}
        return "".join(f"vllm:spec_decode_num_{name}_tokens_total{labels} {count}.0\n" for name, count in counts.items()) + \
            ("" if created is None else "".join(f"vllm:spec_decode_num_{name}_tokens_created{labels} {created}\n" for name in counts))
    for name, scraped, alpha in (("falls", old(1000, 300) + old(600, 400), 700 / 1600),
                                 ("began later", old(1000, 300, "1.7e+09") + old(1500, 900, "1.7000001e+09"), 1200 / 2500),
                                 ("went on", old(1000, 300, "1.7e+09") + old(1500, 900, "1.7e+09"), 900 / 1500)):
        out = imported("", text=scraped)
        close(f"V0 {name}", figure(out, "alpha")[0], alpha)
        expect(f"V0 {name}: {out}", ("counters restarted 1 time" in out) == (name != "went on"))
    # And of llama.cpp's totals: where one drafter's fall, the other's began at 0 as well.
    def totals(drafter, drafts, accepted):
        return f"I statistics {drafter}: #calls(b,g,a) = 1 {drafts} {drafts}, #gen drafts = {drafts}, #acc drafts = 0, #gen tokens = {2 * drafts}, " \
               f"#acc tokens = {accepted}, #mean acc len = {1 + accepted / drafts:.2f}, #acc rate/pos = (), dur(b,g,a) = 0, 0, 0 ms\n"
    out = imported("", text=totals("draft-mtp", 1000, 700) + totals("ngram-mod", 1000, 700) + totals("draft-mtp", 600, 1000) + totals("ngram-mod", 1400, 1500))
    says("llama.cpp's totals", out, "1600 rounds", "2400 rounds")
    expect(f"llama.cpp's totals: {out}", out.count("counters restarted 1 time") == 2)
    # A quotation mark in a name, as Prometheus escapes it, and lines that end as an old Mac's.
    out = imported("", text=first.replace('"m"', r'"b\"x"') + scrape(100, 70, (50, 20), "c"))
    says("a quote in a name", out, r'model_name="b\"x"')
    out = imported("", text=(LOGS / "vllm.log").read_text().replace("\n", "\r"))
    says("carriage returns", out, "4 lines", "126 rounds")
    # The same beyond 64 MiB, which is the longest line.
    line = "SpecDecoding metrics: Mean acceptance length: 2.00, Accepted: 100 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.5, 0.3, 0.2"
    out = imported("", text=f"{line}\r" + ("x" * 1000 + "\r") * 70000 + f"{line}\r")
    says("carriage returns beyond the longest line", out, "2 lines", "200 rounds")
    status, out, err = run("import", "-", input=f"{line}\n" + "x" * (66 << 20))
    says("a line that is too long", err, "standard input: lines of more than 67108864 bytes were cut")
    # Text output keeps the notes that CSV drops.
    status, out, _ = run("import", "-", "--format", "csv", input=first + scrape(1000, 900, (500, 100), "other"))
    says("csv", out, 'model_name=""m""', 'model_name=""other""', "positions", ",no,")
    expect("csv: status", status == 0)
    # Servers of two models in one file are distinguished, each with its positions.
    other = text.replace('model_name="', 'model_name="another/').replace(' 750.0', ' 150.0')
    out = imported("", text=text + other)
    says("two models", out, "model_name=", "another/", "--position-rates 0.75,0.45,0.3")
    expect("two models: summed", out.count("1000 rounds") == 2 and out.count("specsim plan") == 2)
    # The same drafts in lines and counters: compared, and one command to paste.
    log = "SpecDecoding metrics: Mean acceptance length: 2.50, Accepted: 1500 tokens, Drafted: 3000 tokens, Per-position acceptance rate: 0.750, 0.450, 0.300, Avg Draft acceptance rate: 50.0%\n"
    out = imported("", text=log + text)
    says("both", out, "consistent:   vLLM's \"SpecDecoding metrics\" lines and vLLM's counters")
    expect("both: pasted once", out.count("specsim plan") == 1)
    out = imported("", text=log.replace("2.50", "3.10").replace("1500", "2100").replace("0.750, 0.450", "0.950, 0.850") + text)
    says("both unlike", out, "INCONSISTENT: vLLM's \"SpecDecoding metrics\" lines and")


def sglang():
    out = imported("sglang.log")
    close("sglang", figure(out, "mean acceptance length")[0], (3.14 + 3 * 2.62) / 4)  # by requests
    says("sglang", out, "draft length 4", "--at-draft-length 4")
    newer = (LOGS / "sglang.log").read_text().replace("accept rate: 0.63", "accept rate: 0.71").replace("accept rate: 0.52", "accept rate: 0.54")
    says("sglang's newer rate", imported("", text=newer), "draft length 3")
    early = re.sub(r"accept rate: [\d.]+, ", "", newer)
    out = imported("", text=early)
    says("sglang without rates", out, "set it with --at-draft-length")
    says("sglang told", imported("", "--at-draft-length", "5", text=early), "--at-draft-length 5")
    broken = newer.replace("accept rate: 0.54", "accept rate: 0.11")
    says("sglang contradicting", imported("", text=broken), "INCONSISTENT: printed figures")


def by_context():
    # Lines of 40 steps each: 1 request at 1,000 tokens, 4 at 1,500 each, 2 at 6,000 each; classes [512, 1024), [1024, 2048), [4096, 8192).
    line = "Decode batch. #running-req: {}, #token: {}, token usage: 0.06, accept len: {}, accept rate: {}, cuda graph: True, gen throughput (token/s): 500, #queue-req: 0,"
    log = [(1, 1000, 3.0), (4, 6000, 2.5), (2, 12000, 1.5), (1, 7000, 1.2)]
    text = "\n".join(line.format(n, tokens, length, round((length - 1) / 4, 2)) for n, tokens, length in log)
    out = imported("", "--by-context", "--at-draft-length", "4", text=text)
    rows = dict(re.findall(r"^ +(\d+) +(0\.\d+) +(?=[\d.]+$)", out, re.M))
    expect(f"by context: shares {rows}", rows == {"1000": "0.1250", "1500": "0.5000", "6333": "0.3750"})
    long = (2 * 1.5 + 1.2) / 3
    says("by context", out, "{context: 1000, mean_acceptance_length: 3, draft_length: 4}", "{context: 1500, mean_acceptance_length: 2.5, draft_length: 4}",
         f"{{context: 6333, mean_acceptance_length: {long:.4g}, draft_length: 4}}")
    # The printed file is one that plan takes, and its rates are those of the planned context.
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "table.yaml")
        file.write_text(re.search(r"\{by_context: .*\}", out)[0])
        lengths = [float(re.search(r"^ +4 +([\d.]+)", run("plan", *PLAN, "--acceptance", file, "--context", context)[1], re.M)[1])
                   for context in ("1000", "1250", "1500", "20000")]
    close("planned at the first context", lengths[0], 3.0)
    close("planned at the second context", lengths[2], 2.5)
    close("planned beyond the last", lengths[3], long, 1e-3)
    expect(f"planned between: {lengths}", lengths[2] < lengths[1] < lengths[0])
    says("by context of vLLM", imported("vllm.log", "--by-context"), "do not state the cached tokens")
    says("by context without a length", imported("", "--by-context", text=text.replace("accept rate: ", "x: ")), "set the draft length")


def sglang_gauges():
    def scrape(length, rate, shape=None, running=1, rank=0):
        labels = f'{{dp_rank="{rank}",engine_type="unified",model_name="m",tp_rank="0"}}'
        lines = [f"sglang:num_running_reqs{labels} {running:.1f}", f"sglang:num_queue_reqs{labels} 7.0",
                 "# HELP sglang:spec_accept_length Mean acceptance length.", "# TYPE sglang:spec_accept_length gauge",
                 f"sglang:spec_accept_length{labels} {length!r}", f"sglang:spec_accept_rate{labels} {rate!r}"]
        if shape:
            lines += [f"sglang:spec_num_steps{labels} {shape[0]:.1f}", f"sglang:spec_num_draft_tokens{labels} {shape[1]:.1f}"]
        return "\n".join(lines) + "\n"
    # Two intervals weigh by running requests; one that is scraped twice counts once, one without drafts does not count.
    first, second = 3.1416, 2.6203
    newer = scrape(first, (first - 1) / 3, (3, 4)) + 2 * scrape(second, (second - 1) / 3, (3, 4), running=3) + scrape(0.0, 0.0, (3, 4))
    out = imported("", text=newer)
    close("gauges", figure(out, "mean acceptance length")[0], (first + 3 * second) / 4)
    says("gauges", out, "SGLang's gauges sglang:spec_*: 4 lines", "draft length 3", "--at-draft-length 3", "follow from each other")
    # Ranks are distinguished by their labels; without the draft's shape it follows from the two figures, in either meaning.
    ranks = scrape(first, first / 4) + scrape(first, first / 4, rank=1)
    says("gauges of ranks", imported("", text=ranks), "about 80 rounds", "draft length 3")
    # The size of a tree is not taken for a draft length.
    out = imported("", text=scrape(first, (first - 1) / 7, (4, 8)))
    says("gauges of a tree", out, "set it with --at-draft-length")
    expect("gauges of a tree: a contradiction", "INCONSISTENT" not in out)
    says("gauges contradicting", imported("", text=scrape(first, 0.2, (3, 4))), "INCONSISTENT: printed figures")
    # The same server's log lines are in the same input.
    out = imported("", text=(LOGS / "sglang.log").read_text() + newer)
    says("gauges and log", out, 'SGLang\'s "Decode batch" lines', "SGLang's gauges")


def llama_cpp():
    out = imported("llama_cpp.log")
    close("llama.cpp requests", figure(out, "mean acceptance length")[0], 1 + 257 / 97)
    says("llama.cpp", out, "97 rounds, draft length 4", "134 rounds, draft length 4", "draft-mtp")
    out = imported("llama_cpp_trace.log")
    says("llama.cpp -lv 4", out, "97 rounds, draft length 4", "--position-rates 0.8041,0.701,0.6289,0.5155")
    out = imported("llama_cpp_old.log")
    close("llama.cpp, the earliest", figure(out, "mean acceptance length")[0], 2048 / (2048 - 1186))
    says("llama.cpp, the earliest", out, "about 862 rounds", "set it with --at-draft-length")
    close("llama-speculative", figure(imported("llama_example.log"), "mean acceptance length")[0], 3.0)


def tensorrt_llm():
    out = imported("trtllm.jsonl")
    close("TensorRT-LLM", figure(out, "mean acceptance length")[0], 1 + 35 / 16)
    says("TensorRT-LLM", out, "16 rounds, draft length 4", "--mean-acceptance-length 3.188 --at-draft-length 4")
    out = imported("trtllm_metrics.txt", "--at-draft-length", "4")
    says("TensorRT-LLM's counters", out, "--acceptance-rate 0.625 --at-draft-length 4")


def benchmarks():
    """The summaries that benchmark clients print at the end of a run."""
    out = imported("vllm_bench.txt")
    close("vllm bench serve", figure(out, "mean acceptance length")[0], 1 + 14090 / 6393)
    says("vllm bench serve", out, "6393 rounds, draft length 3", "--position-rates 0.8342,0.7291,0.6407 --policy fixed:3", "follow from each other", "every round drafted 3")
    text = (LOGS / "vllm_bench.txt").read_text()
    says("two reports", imported("", text=text + text), "2 lines", "12786 rounds")
    says("two reports with prefixes", imported("", text=re.sub("^", "bench-1  | 10:02 ", text + text, flags=re.M)), "12786 rounds")
    says("vllm bench serve contradicting", imported("", text=text.replace("3.20", "3.40")), "INCONSISTENT: printed figures", "acceptance length 3.40, but 14090")
    saved = ('{"date": "20251101", "backend": "vllm", "total_output_tokens": 20480, "spec_decode_acceptance_rate": 73.47, "spec_decode_acceptance_length": 3.204, '
             '"spec_decode_num_drafts": 6393, "spec_decode_draft_tokens": 19179, "spec_decode_accepted_tokens": 14090, '
             '"spec_decode_per_position_acceptance_rates": [0.83419, 0.72908, 0.64070]}\n')
    says("vllm bench serve's JSON", imported("", text=saved * 2), "12786 rounds, draft length 3", "--position-rates 0.8342,0.7291,0.6407")
    out = imported("sglang_bench.txt")
    close("sglang.bench_serving", figure(out, "mean acceptance length")[0], 2.93)
    expect("an interval without data", figure(out, "mean acceptance length")[1:] == (None, None))
    says("sglang.bench_serving", out, "about 6485 rounds", "set it with --at-draft-length")
    out = imported("trtllm_serving.txt", "--at-draft-length", "4")
    close("TensorRT-LLM's benchmark_serving", figure(out, "mean acceptance length")[0], 2.71)
    # 80 requests of 1125 / 3 rounds, 649 accepted, each on average.
    out = imported("trtllm_bench.txt")
    close("trtllm-bench", figure(out, "mean acceptance length")[0], 1 + 649 / 375)
    close("trtllm-bench's rate", figure(out, "accepted / drafted")[0], 649 / 1125)
    says("trtllm-bench", out, "30000 rounds, draft length 3", "--mean-acceptance-length 2.731 --at-draft-length 3")
    text = (LOGS / "trtllm_bench.txt").read_text()
    says("trtllm-bench twice", imported("", text=text + text), "60000 rounds, draft length 3")
    says("trtllm-bench contradicting", imported("", text=text.replace("[AL] P50    : 2.72", "[AL] P50    : 2.12")), "INCONSISTENT: printed figures")


def answers():
    out = imported("llama_answers.jsonl")
    close("llama.cpp's answers", figure(out, "mean acceptance length")[0], (200 + 665) / (200 + 665 - 65 - 515))
    says("llama.cpp's answers", out, "2 lines (1 to 2), about 285 rounds", "set it with --at-draft-length")
    # JSON as jq prints it, with one field per line; and in pieces, each of which counts from the answer's beginning, with two answers at a time.
    def pretty(emitted, drafted, accepted):
        return f'{{\n  "prompt_n": 1,\n  "predicted_n": {emitted},\n  "predicted_ms": 1.5,\n  "draft_n": {drafted},\n  "draft_n_accepted": {accepted}\n}}\n'
    says("jq", imported("", text=pretty(200, 347, 65) + pretty(300, 400, 100)), "about 335 rounds")
    def piece(name, emitted, drafted, accepted):
        return (f'data: {{"choices":[],"id":"{name}","object":"chat.completion.chunk","timings":{{"prompt_n":1,"predicted_n":{emitted},"predicted_ms":1.5,'
                f'"draft_n":{drafted},"draft_n_accepted":{accepted}}}}}\n\n')
    out = imported("", text=piece("a", 3, 4, 2) + piece("b", 5, 8, 1) + piece("a", 10, 12, 6) + piece("b", 9, 16, 4) + piece("a", 20, 24, 12) + "data: [DONE]\n")
    says("pieces", out, f"about {20 - 12 + 9 - 4} rounds")
    close("pieces", figure(out, "accepted / drafted")[0], 16 / 40)


def wrapped():
    """Lines as containers, journals and terminals pass them on give the same values as plain ones."""
    plain = re.sub(r",\n +", ", ", (LOGS / "vllm.log").read_text()).splitlines()
    wanted = imported("vllm.log").partition("rounds")[2]
    ways = {"colours": lambda t: f"\033[1;36m(APIServer pid=7)\033[0;0m {t}\033[0m", "Windows": lambda t: t + "\r", "journald": lambda t: f"Sep 01 14:02:11 host vllm[812]: {t}",
            "Kubernetes": lambda t: f"2025-09-01T14:02:11.123456789Z stderr F {t}", "compose": lambda t: f"vllm-1  | {t}",
            "Docker's JSON": lambda t: json.dumps({"log": t + "\n", "stream": "stderr", "time": "2025-09-01T14:02:11.123Z"})}
    for name, way in ways.items():
        expect(f"{name}: other figures", imported("", text="\n".join(map(way, plain)) + "\n").partition("rounds")[2] == wanted)
    # If a log was cut within a line, the rest is read.
    text = "\n".join(plain) + "\n"
    cut = next(line for line in plain if "SpecDecoding metrics" in line)[:150]
    status, out, err = run("import", "-", input=cut + "\n" + text)
    expect(f"cut: {err}", status == 0 and "warning: 1 line could not be read; line 1" in err and out.partition("rounds")[2] == wanted)
    # The first lines of V1 give only counts; intervals without drafts are no mistake.
    first = "INFO 03-20 10:00:00 metrics.py:86] Speculative metrics: Draft acceptance rate: {}, Number of accepted tokens: {}, Number of draft tokens: {}, \n"
    out = imported("", "--at-draft-length", "2", text=first.format("0.853", 169, 198) + first.format("nan", 0, 0))
    says("the first of V1", out, "1 line (1)", "--acceptance-rate 0.8535 --at-draft-length 2")
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "vllm.log.gz"
        packed.write_bytes(gzip.compress(text.encode()))
        for file, told in ((packed, f"{packed}: it is packed by gzip, allowed: text, as by zcat {packed} | specsim import -"),):
            status, out, err = run("import", file)
            expect(f"packed: {status} {err}", status == 2 and told in err)
        packed.write_bytes(text.encode("utf-16"))
        status, out, err = run("import", packed)
        expect(f"UTF-16: {status} {err}", status == 2 and "it is UTF-16, as PowerShell writes it, allowed: text, as by iconv -f UTF-16 -t UTF-8" in err)
        # A log above the size limit of other files is read with little memory: a sparse file with lines at its end.
        large = Path(folder) / "large.log"
        with large.open("wb") as file:
            for _ in range(9):
                file.seek(64 << 20, os.SEEK_CUR)
                file.write(b"\n")
            file.write(text.encode())
        limit = "unlimited" if os.environ.get("SPECSIM_SANITIZE") else "1500000"  # a sanitizer maps terabytes
        done = subprocess.run(["bash", "-c", f'ulimit -v {limit}; exec "$0" import "$1"', SPECSIM, str(large)], capture_output=True, text=True)
        expect(f"large: {done.returncode} {done.stderr}", done.returncode == 0 and done.stdout.partition("rounds")[2] == wanted)


def as_json():
    tables = json.loads(imported("vllm.log", "--format", "json"))["tables"]
    rows = {row[0]: row[1:] for row in tables[0]["rows"]}
    expect(f"JSON: {rows}", all(len(row) == 3 and all(isinstance(x, float) for x in row) and row[1] < row[0] < row[2] for row in rows.values()) and len(rows) == 3)
    tables = json.loads(imported("sglang_bench.txt", "--format", "json"))["tables"]
    expect(f"JSON without intervals: {tables}", all(row[2:] == [None, None] for row in tables[0]["rows"]))


def constant_alpha():
    def line(rates, rounds):
        counts = [round(r * rounds) for r in rates]
        return (f"SpecDecoding metrics: Mean acceptance length: {1 + sum(counts) / rounds:.2f}, Accepted: {sum(counts)} tokens, Drafted: {rounds * len(rates)} tokens, "
                f"Per-position acceptance rate: {', '.join(f'{c / rounds:.3f}' for c in counts)}, Avg Draft acceptance rate: 0%\n")
    out = imported("", text=line([0.7, 0.49, 0.343], 1000))
    says("constant", out, "consistent:   one alpha for all positions")
    out = imported("", text=line([0.7, 0.55, 0.48], 1000))
    says("rising", out, "note:         one alpha for all positions", "a mix of easy and hard text")
    expect("rising: a contradiction", "INCONSISTENT" not in out)
    # Falling acceptance is no contradiction. Mutant: any change of rate is INCONSISTENT.
    out = imported("", text=line([0.8, 0.5, 0.2], 1000))
    says("falling", out, "note:         one alpha for all positions", "use the rates by position, not one alpha (p < 1e-6)")
    expect("falling: a contradiction", "INCONSISTENT" not in out)
    # Lines that differ more than by chance widen the interval.
    even = figure(imported("", text=line([0.7, 0.49, 0.343], 1000) * 8), "alpha")
    odd = figure(imported("", text=(line([0.9, 0.81, 0.729], 1000) + line([0.5, 0.25, 0.125], 1000)) * 4), "alpha")
    expect(f"intervals {even} and {odd}", odd[2] - odd[1] > 5 * (even[2] - even[1]))


def plans():
    def table(*arguments, text=None):
        status, out, err = run("plan", *PLAN, *arguments, input=text)
        expect(f"plan {arguments}: status {status} {err}", status == 0)
        return out.partition("draft_length")[2]
    expect("plan --log", table("--log", LOGS / "vllm_metrics.txt") == table("--position-rates", "0.75,0.45,0.3"))
    expect("plan --log -", table("--log", "-", text=(LOGS / "vllm_metrics.txt").read_text()) == table("--position-rates", "0.75,0.45,0.3"))
    # The options that import prints give the same plan.
    out = imported("sglang.log")
    options = re.search(r"specsim plan .* (--mean-acceptance-length \S+ --at-draft-length \d+)", out)[1].split()
    expect("pasted", table(*options) == table("--log", LOGS / "sglang.log"))


def refusals():
    def refused(text, *arguments, of=None):
        status, out, err = run(*arguments, input=of)
        expect(f"{arguments}: status {status}, {err}", status == 2 and text in err)
    refused("no_such.log: cannot be read: no such file or directory, allowed: a readable server's log", "import", "no_such.log")
    refused("standard input: no speculative decoding in 2 lines, allowed: lines, metrics or answers of vLLM", "import", "-", of="a\nb\n")
    refused('in 1 line (1 could not be read; line 1: no number after "Drafted:")', "import", "-", of="SpecDecoding metrics: Accepted: 3 tokens")
    idle = "SpecDecoding metrics: Draft acceptance rate: nan%, Accepted: 0 tokens, Drafted: 0 tokens\n"
    refused("nothing was drafted yet: 1 line of 2 contains no draft, allowed:", "import", "-", of="a\n" + idle)
    zero = re.sub(r"} [\d.]+$", "} 0.0", (LOGS / "vllm_metrics.txt").read_text(), flags=re.M)
    refused("nothing was drafted yet:", "import", "-", of=zero)
    refused("2 files, allowed: one", "import", "a", "b")
    refused('--server: unknown server "vlm", did you mean "vllm"? allowed: vllm, sglang, llama.cpp, tensorrt-llm, lmdeploy, tabbyapi, aiperf, spec-bench', "import", "-", "--server", "vlm")
    refused('--at-draft-length: "0", allowed: an integer in [1, 64]', "import", "-", "--at-draft-length", "0")
    both = (LOGS / "vllm.log").read_text() + (LOGS / "sglang.log").read_text()
    refused("--log: the log has vLLM's \"SpecDecoding metrics\" lines at draft length 2 and SGLang's", "plan", *PLAN, "--log", "-", of=both)
    status, out, _ = run("plan", *PLAN, "--log", "-", "--server", "sglang", input=both)
    expect("plan --server", status == 0 and "SGLang" in out)
    refused("--server: the log has SGLang's \"Decode batch\" lines at draft length 4, allowed:", "import", LOGS / "sglang.log", "--server", "vllm")
    refused("do not state the draft length, allowed: with --at-draft-length", "plan", *PLAN, "--log", LOGS / "trtllm_metrics.txt")
    refused("--log: given together with --trace", "plan", *PLAN, "--log", "x", "--trace", "y")


def refused_or_told(what, text, told, status=None, *arguments):
    """Rejected, or reported as inconsistent, within seconds; no figure of it is infinite or none."""
    done = subprocess.run([SPECSIM, "import", "-", *arguments], input=text, capture_output=True, text=True, timeout=60)
    expect(f"{what}: status {done.returncode}, {done.stderr}{done.stdout}", status is None or done.returncode == status)
    says(what, done.stdout + done.stderr, told)
    expect(f"{what}: figures in {done.stdout}", not re.search(r"\b(inf|nan)\b", done.stdout))


def impossible():
    """Numbers that no server can have counted."""
    def line(length, accepted, drafted, rates):
        return f"SpecDecoding metrics: Mean acceptance length: {length}, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {rates}\n"
    refused_or_told("beyond 2^53", line(2.7, "1e18", "1e18", "0.9, 0.8, x"), 'line 1: no number after "Accepted:"', 2)
    for length in ("2.7", "1.0", "1.01"):
        refused_or_told(f"2^53 at length {length}", line(length, 2**53, 2**53, "0.9, 0.8"), "INCONSISTENT: printed figures: 1 of 1 lines", 0)
    for rates in ("nan, nan", "0.9, NaN", "1.9, 0.8", "-0.5", "0.9, inf", ", ".join(["0.5"] * 513)):
        refused_or_told(f"rates {rates[:20]}", line(2.7, 100, 120, rates), 'line 1: no rates in [0, 1] after "Per-position acceptance rate:"', 2)
    refused_or_told("length nan", line("nan", 100, 120, "0.9, 0.8"), 'line 1: no number after "Mean acceptance length:"', 2)
    refused_or_told("rising", line("2.50", 150, 200, "0.5, 1.0"), "INCONSISTENT: positions: position 2 is accepted in 100 rounds, position 1 before it in 50", 0)
    # A line that was cut after a comma absorbs the next one, whose first word must not be read as infinity.
    says("cut before INFO", imported("", text=line("1.75", 75, 200, "0.5, 0.25,") + "INFO 09-01 10:00:00\n"), "100 rounds, draft length 2")
    # Counters: if one of a set is invalid, the others are ignored.
    trtllm = (LOGS / "trtllm_metrics.txt").read_text()
    vllm_text = (LOGS / "vllm_metrics.txt").read_text()
    refused_or_told("TensorRT-LLM", trtllm.replace(" 500.0", " 900.0"), "line 3: 900 accepted of 800 drafted tokens", 2)
    refused_or_told("vLLM", re.sub(r"^(vllm:spec_decode_num_accepted_tokens_total.* )\d+\.0$", r"\g<1>99999", vllm_text, flags=re.M), "accepted of 3000 drafted tokens", 2)
    refused_or_told("vLLM's positions", re.sub(r'(per_pos_total.*position="0".* )[\d.]+$', r"\g<1>1750", vllm_text, flags=re.M),
                    "tokens accepted at position 0 of 1000 drafts", 2)
    # Without a counter of accepted tokens nothing is known. Mutant: none were accepted, mean length 1.
    for what, text, of in (("vLLM", vllm_text, "vllm:spec_decode_"), ("TensorRT-LLM", trtllm, "trtllm_spec_decode_")):
        without = "".join(text_line for text_line in text.splitlines(keepends=True) if f"{of}num_accepted" not in text_line)
        refused_or_told(f"{what} without accepted tokens", without, "drafts without a counter of accepted tokens, allowed: num_accepted_tokens next to it", 2)
    # The positions alone are enough.
    whole = imported("", text=vllm_text)
    totals_gone = "".join(text_line for text_line in vllm_text.splitlines(keepends=True) if "num_accepted_tokens_total" not in text_line)
    close("positions alone", figure(imported("", text=totals_gone), "mean acceptance length")[0], figure(whole, "mean acceptance length")[0])
    two = "".join(f'vllm:spec_decode_num_drafts_total{{model_name="{model}"}} 100\nvllm:spec_decode_num_draft_tokens_total{{model_name="{model}"}} 300\n'
                  f'vllm:spec_decode_num_accepted_tokens_total{{model_name="{model}"}} {accepted}\n' for model, accepted in (("a", 70), ("b", 900)))
    refused_or_told("the second model", two, 'line 6, model_name="b": 900 accepted of 300 drafted tokens', 0)
    for value in ("1e-308", "5e-324", "NaN", "-3", "1e300", "0.5"):
        refused_or_told(f"drafted {value}", trtllm.replace(" 800.0", f" {value}"), 'no count of tokens or drafts after "trtllm_spec_decode_num_draft_tokens"', 2)
        refused_or_told(f"drafts {value}", re.sub(r"^(vllm:spec_decode_num_drafts_total.* )\d+\.0$", rf"\g<1>{value}", vllm_text, flags=re.M),
                        'no count of tokens or drafts after "vllm:spec_decode_num_drafts"', 2)
    v0 = "Speculative metrics: Draft acceptance rate: 0.6, Number of speculative tokens: 3, Number of accepted tokens: {}, Number of draft tokens: 300, Number of emitted tokens: {}.\n"
    refused_or_told("V0 accepted", v0.format(301, 200), "line 1: 301 accepted of 300 drafted tokens", 2)
    refused_or_told("V0 emitted", v0.format(200, 401), "line 1: 401 emitted tokens, but 300 drafted ones at draft length 3", 2)
    # A draft length, which is searched step by step, is not taken from any two counts.
    stats = '"specDecodingStats": {{"numDraftTokens": {}, "numAcceptedTokens": {}, "numRequestsWithDraftTokens": {}}}\n'
    refused_or_told("2e9 tokens a draft", stats.format(2_000_000_000, 1_900_000_000, 1), "INCONSISTENT: acceptance length: 1.9e+09 tokens per round", 0)
    refused_or_told("requests", stats.format(20, 10, 30), "line 1: 30 requests with draft tokens, but 20 draft tokens", 2)
    totals = "statistics draft: #gen drafts = 10, #gen tokens = 50, #acc tokens = {}, #acc rate/pos = ({})\n"
    refused_or_told("llama.cpp's totals", totals.format(60, 0.5), "line 1: 60 accepted of 50 drafted tokens", 2)
    refused_or_told("llama.cpp's rates", totals.format(40, "nan"), 'line 1: no rates in [0, 1] after "#acc rate/pos"', 2)
    refused_or_told("a gauge", 'sglang:spec_accept_length{a="b"} 9.5\nsglang:spec_num_steps{a="b"} 3.0\nsglang:spec_num_draft_tokens{a="b"} 4.0\n',
                    "INCONSISTENT: printed figures: 1 of 1 lines contradict themselves; line 1: accept length 9.5 at draft length 3", 0)
    refused_or_told("SGLang's report", "Total generated tokens: 5\nAccept length: 1e12\n", "of 5 generated tokens", 2)
    bench = (LOGS / "vllm_bench.txt").read_text()
    refused_or_told("vllm bench serve", bench.replace("83.42", "nan"), 'no rates in [0, 1] after "Position 0:"', 2)
    # A counter whose name is only the prefix (mutant: an exception), and a broken line with carriage returns in it.
    refused_or_told("a bare prefix", 'vllm:spec_decode_total{engine="0"} 400.0\n', "no speculative decoding in 1 line", 2)
    refused_or_told("carriage returns", "a\ndraft acceptance = \nb\rc\rd\ndraft acceptance = \n", "line 2: no number after", 2)
    # A long line is read only once.
    refused_or_told("a line of beginnings", '"specDecodingStats": {' * 1_000_000, "could not be read; line 1: an object of JSON that is incomplete", 2)
    names = "".join(f"statistics d{i}: #gen drafts = 10, #gen tokens = 50, #acc tokens = 30\n" for i in range(20_000))
    refused_or_told("names", names, "19744 lines could not be read; line 257: more than 256 drafters", 0)


def unreadable():
    """Inputs that cannot be read to their end, or have none."""
    for command in (["import"], ["plan", *PLAN, "--log"]):
        for file, told in (("/proc/self/mem", "cannot be read: input/output error, allowed: a readable server's log"),
                           ("/dev/zero", "it is larger than 536870912 bytes, allowed: at most 536870912 bytes")):
            done = subprocess.run([SPECSIM, *command, file], capture_output=True, text=True, timeout=120)
            expect(f"{command[0]} {file}: {done.returncode} {done.stderr}", (done.returncode, done.stdout, done.stderr) == (2, "", f"{file}: {told}\n"))
    with tempfile.TemporaryDirectory() as folder:
        hole = Path(folder) / "hole.log"
        with hole.open("wb") as file:
            try:
                file.truncate((1 << 40) + 1)
            except OSError:  # a file system of smaller files
                return
        status, _, err = run("import", hole)
        expect(f"a hole: {err}", status == 2 and err == f"{hole}: it is larger than 1099511627776 bytes, allowed: at most 1099511627776 bytes\n")


def broken_lines():
    """Lines that a terminal or the end of a file cut: the rest gives no other draft length, and no counts."""
    whole = "(APIServer pid=1) INFO 10-16 19:05:47 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.71, Accepted throughput: 0.68 tokens/s, " \
                      "Drafted throughput: 0.80 tokens/s, Accepted: 169 tokens, Drafted: 198 tokens, Per-position acceptance rate: 0.919, 0.788, Avg Draft acceptance rate: 85.4%"
    told = "to paste\n  specsim plan --hardware GPU --target MODEL --draft MODEL --position-rates 0.9192,0.7879\n"
    start = whole.index("SpecDecoding")
    complete = whole.index("0.788") + 5
    for end in [*range(start + 22, len(whole), 7), complete - 4, complete - 3]:
        out = imported("", text=f"{whole}\n{whole[:end]}")
        says(f"cut at {end}", out, told, "198 rounds" if end >= complete else ", 99 rounds")
        expect(f"cut at {end}: two drafts", out.count("specsim plan") == 1)
    for width in range(41, 200, 13):
        out = imported("", text="INFO a line before\n" + "\n".join(whole[i:i + width] for i in range(0, len(whole), width)) + "\nINFO a line after\n")
        says(f"broken at {width}", out, told, " lines: 1 line (", ", 99 rounds")
    for name, line in {"sglang": (LOGS / "sglang.log").read_text().splitlines()[2], "v0": (LOGS / "vllm_v0.log").read_text().splitlines()[0]}.items():
        wanted = imported("", text=line).partition("rounds")[2]
        for width in (60, 80, 100):
            out = imported("", text="\n".join(line[i:i + width] for i in range(0, len(line), width)) + "\n")
            expect(f"{name} broken at {width}: {out}", out.partition("rounds")[2] == wanted)
    # An answer of Loki or CloudWatch has many lines of a log on one of its own.
    for name, answer in {"lists": {"result": [{"values": [["1", "INFO " + whole], ["2", "say \"x\" " + whole]]}]},
                         "maps": {"events": [{"message": whole + "\n"}, {"message": json.dumps({"log": whole})}]}}.items():
        says(f"lines in one line of JSON, {name}", imported("", text=json.dumps(answer) + "\n"), told, "198 rounds")
    # plan reads the rest and reports the omitted lines.
    status, _, err = run("plan", *PLAN, "--log", "-", input=f"{whole}\n{whole[:complete - 2]}")
    expect(f"plan of a cut log: {status} {err}", status == 0 and "1 line could not be read; line 2: it ends within its rates" in err)
    # vLLM 0.5 counts tokens twice: 53716 / 4 rounds emitted 34244 tokens, 32594 of 53716 accepted.
    old = "Speculative metrics: Draft acceptance rate: 0.607, System efficiency: 0.510, Number of speculative tokens: 4, Number of accepted tokens: 32594, " \
          "Number of draft tokens tokens: 53716, Number of emitted tokens tokens: 34244.\n"
    out = imported("", text=old)
    close("vLLM 0.5", figure(out, "mean acceptance length")[0], 34244 / 13429)
    close("vLLM 0.5, alpha", figure(out, "alpha")[0], 32594 / 53716)


def forms():
    """Other forms, each calculated by hand from its own values."""
    answer = {"mean_acceptance_length": 1.2325581395348837, "draft_acceptance_rate": 0.0775, "acceptance_histogram": [39, 1, 0, 3], "num_spec_steps": 43,
              "num_accepted_draft_tokens": 10, "num_draft_tokens": 129, "num_spec_tokens": 3}
    rates = "--position-rates 0.09302,0.06977,0.06977"  # 4, 3 and 3 of 43
    for name, text in {"line": json.dumps({"metrics": {"speculative_decoding": answer}}), "indented": json.dumps({"metrics": {"speculative_decoding": answer}}, indent=2),
                       "choice": json.dumps({"choices": [{"speculative_decoding_stats": {**answer, "acceptance_histogram": {"0": 39, "1": 1, "3": 3}}}]}),
                       "pieces": "data: " + json.dumps({"metrics": {"speculative_decoding": answer}}) + "\n\ndata: [DONE]",
                       "in a log": "INFO answer: " + json.dumps({"metrics": {"speculative_decoding": answer}}) + " sent"}.items():
        out = imported("", text=text + "\n")
        says(f"vLLM's answer, {name}", out, "43 rounds, draft length 3", rates, "every round drafted 3", "follow from each other")
    out = imported("", text=json.dumps({"spec_decode_acceptance": answer, "metrics": {"spec_decode_steps": {"value": 43}}}) + "\n" + json.dumps({"spec_decode_acceptance": answer}))
    says("AIPerf's records", out, "AIPerf's records: 2 lines", "86 rounds, draft length 3", rates)
    wrong = {**answer, "num_accepted_draft_tokens": 12}
    says("a histogram's sum", imported("", text=json.dumps({"metrics": {"speculative_decoding": wrong}})), "INCONSISTENT: printed figures")
    out = imported("", text="-----\ntotal_num_output_tokens: 16990\nnum_drafts: 4816\nnum_draft_tokens: 33712\nnum_accepted_tokens: 12208\nmean acceptance length: 3.53\n-----\n" +
                   "".join(f"acceptance at token {i}: {r}\n" for i, r in enumerate((0.74, 0.54, 0.41, 0.31, 0.23, 0.17, 0.13))))
    says("spec_decode.py", out, "4816 rounds, draft length 7", "--position-rates 0.74,0.5401,0.4101,0.31,0.2301,0.1701,0.13")
    meta = {"id": "a", "completion_tokens": 128, "spec_accept_length": 4.2667, "spec_accept_histogram": [4, 0, 2, 2, 22], "spec_accept_token_num": 98, "spec_draft_token_num": 120,
            "spec_verify_ct": 30, "finish_reason": {"type": "stop", "matched": None}}
    for name, text in {"Finish": f"[2026-02-05] Finish: obj=GenerateReqInput(rid='a', sampling_params={{'n': 1}}), out={{'meta_info': {meta}}}", "answer": json.dumps({"meta_info": meta})}.items():
        out = imported("", text=text + "\n")
        # 26, 26, 24 and 22 of 30 rounds.
        says(f"SGLang's {name}", out, "30 rounds, draft length 4", "--position-rates 0.8667,0.8667,0.8,0.7333")
    info = {"speculative_num_steps": 3, "speculative_num_draft_tokens": 4, "internal_states": [{"avg_spec_accept_length": 2.71}]}
    says("server info", imported("", text=json.dumps(info)), "draft length 3", "--mean-acceptance-length 2.71 --at-draft-length 3")
    says("server info of a tree", imported("", text=json.dumps({**info, "speculative_num_draft_tokens": 16}, indent=1)), "set it with --at-draft-length")
    started = {**info, "internal_states": [{"avg_spec_accept_length": 0.0}]}
    for name, text in {"server info": json.dumps(started), "gauges": 'sglang:spec_accept_length{model_name="m"} 0.0\n'}.items():
        status, out, err = run("import", "-", input=text)
        expect(f"{name} before any request: {err}", status == 2 and "nothing was drafted yet" in err)
    says("one field", imported("", text='   "avg_spec_accept_length": 2.71,\n'), "set it with --at-draft-length")
    out = imported("", text=(LOGS / "vllm_metrics.txt").read_text().replace("vllm:", "lmdeploy:"))
    says("LMDeploy", out, "LMDeploy's counters", "1000 rounds, draft length 3", "--position-rates 0.75,0.45,0.3")
    table = "┃ Metric ┃ avg ┃ min ┃\n│ Acceptance Length (ratio) │ 3.1 │ 1.0 │\n│ Token-Weighted Acceptance Length │ 3.20 │ N/A │\n│ Overall Draft Acceptance Rate (%) │ 44.00 │ N/A │\n" \
            "│ Spec Decode Steps (count) │ 1,128.00 │ 40.00 │\n  Accepted-draft histogram (% steps):  0: 25%   1: 18%   2: 15%   3: 13%   4: 12%   5: 17%\n"
    out = imported("", text=table)
    says("AIPerf's table", out, "about 1128 rounds, draft length 5", "--position-rates 0.75,0.57,0.42,0.29,0.17", "follow from each other")
    close("AIPerf's table", figure(out, "mean acceptance length")[0], 3.2)
    out = imported("", text=json.dumps({"total_spec_decode_steps": {"avg": 16.0}, "total_accepted_draft_tokens": {"avg": 36.0}, "total_draft_tokens": {"avg": 64.0},
                                        "pooled_spec_decode_acceptance_histogram": {"0": 2, "1": 2, "2": 4, "3": 6, "4": 2}}, indent=2))
    says("AIPerf's JSON", out, "16 rounds, draft length 4", "--position-rates 0.875,0.75,0.5,0.125")
    row = {"question_id": 81, "choices": [{"index": 0, "turns": ['say {"a": 1}'], "new_tokens": [9], "accept_lengths": [4, 1, 4]}]}
    out = imported("", text=(json.dumps(row) + "\n") * 3)
    says("Spec-Bench", out, "9 rounds, draft length 3", "--position-rates 0.6667,0.6667,0.6667")
    row = {"choices": [{"idxs": [9, 4], "new_tokens": [35, 15]}]}  # 10 and 5 rounds
    close("EAGLE", figure(imported("", text=json.dumps(row)), "mean acceptance length")[0], 50 / 15)
    table = "| task | run | stage | tokens | stop | time(s) | tok/s | rounds | accepted | rate | a.len | pos accept |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n" \
            "| code | 1 | mtp | 759 | eog | 11.0 | 68.5 | 220 | 538/660 | 81.52% | 3.45 | 90.5% 80.5% 73.6% |\n| extract | 1 | mtp | 1024 | limit | 15 | 67 | 300 | 722/899 | 80.31% | 3.41 | 91.3% 80.0% 69.6% |\n"
    out = imported("", text=table)
    # 199 + 274, 177 + 240 and 162 + 209 of 520. The last draft of an answer may be short: mutant, INCONSISTENT.
    says("llama-spec-bench", out, "520 rounds, draft length 3", "--position-rates 0.9096,0.8019,0.7135", "except for the last ones of answers")
    expect("llama-spec-bench: a contradiction", "INCONSISTENT" not in out)
    tabby = "Metrics (ID: a): 200 tokens generated in 3.2 seconds\n(Queue: 0.0 s, Generate: 62.5 T/s, Draft: 120 / 150 tokens accepted (80.00%))\n"
    usage = json.dumps({"usage": {"completion_tokens": 200, "completion_tokens_details": {"accepted_prediction_tokens": 120, "rejected_prediction_tokens": 30}}})
    for name, text in {"log": tabby, "usage": usage}.items():
        out = imported("", text=text)
        close(f"tabbyAPI's {name}", figure(out, "accepted / drafted")[0], 0.8)
        close(f"tabbyAPI's {name}", figure(out, "mean acceptance length")[0], 200 / 80)
    def series(name, values, one=False, **labels):
        points = [[1000 + 15 * i, str(v)] for i, v in enumerate(values)]
        return {"metric": {"__name__": name, "engine": "0", **labels}, **({"value": points[0]} if one else {"values": points})}
    # A restart where accepted tokens do not fall: 1000 + 600 rounds, 700 + 1000 accepted. Mutant: the counters restart at different scrapes, 1300.
    query = {"data": {"result": [series("vllm:spec_decode_num_drafts_total", (1000, 600)), series("vllm:spec_decode_num_draft_tokens_total", (2000, 1200)),
                                 series("vllm:spec_decode_num_accepted_tokens_total", (700, 1000))]}}
    # Also where each counter is an answer of its own. Mutant: each answer is evaluated alone.
    alone = "".join(json.dumps({"data": {"result": [one]}}) + "\n" for one in query["data"]["result"])
    for name, text in {"in one answer": json.dumps(query), "in three answers": alone, "twice": alone + alone}.items():
        out = imported("", text=text)
        says(f"PromQL {name}", out, "1600 rounds", "counters restarted 1 time")
        close(f"PromQL {name}", figure(out, "mean acceptance length")[0], 1 + 1700 / 1600)
    # Queries sent one after the other have times of their own.
    later = json.dumps(query["data"]["result"][2]).replace("1000, ", "1000.4, ").replace("1015, ", "1015.4, ")
    says("PromQL asked one after the other", imported("", text=json.dumps({"data": {"result": query["data"]["result"][:2]}}) + '\n{"data": {"result": [' + later + "]}}"), "1600 rounds", "1 time")
    # Two servers whose labels differ only beyond the limit are refused, not taken for one.
    long = [{**one, "metric": {**one["metric"], "annotation": 990 * "x", "instance": host}} for host in ("h1", "h2") for one in query["data"]["result"]]
    status, out, err = run("import", "-", input=json.dumps({"data": {"result": long}}))
    says("long labels", err, "a counter whose name and labels are longer than 1024 bytes")
    expect("long labels: status", status == 2)
    flat = [f'vllm:spec_decode_{name}{{engine="0", job="v"}}' for name in ("num_drafts_total", "num_draft_tokens_total", "num_accepted_tokens_total")]
    for name, form in {"its page": "{} | {}", "promtool": "{} => {} @[1756736798.7]"}.items():
        out = imported("", text="".join(form.format(*pair) + "\n" for pair in zip(flat, (22, 44, 11))))
        says(f"PromQL on {name}", out, "22 rounds")
    stats = json.dumps({"iter": 1, "specDecodingStats": {"numDraftTokens": 20, "numAcceptedTokens": 15, "numRequestsWithDraftTokens": 5, "acceptanceLength": 4.0}})
    for name, text in {"once": json.dumps({"log": f"[TRT-LLM] [I] {stats}\n", "stream": "stdout"}), "twice": json.dumps({"log": json.dumps({"message": stats}) + "\n"})}.items():
        says(f"JSON in JSON {name}", imported("", text=text + "\n"), "5 rounds, draft length 4")
    bench = {"spec_decode_num_drafts": 1000, "spec_decode_draft_tokens": 2000, "spec_decode_accepted_tokens": 630, "spec_decode_acceptance_length": 1.63,
             "spec_decode_per_position_acceptance_rates": [0.43, 0.2]}
    says("vllm bench serve, indented", imported("", text=json.dumps(bench, indent=4)), "--position-rates 0.43,0.2")
    # With nothing accepted, alpha is 0. Mutant: the rest of a bisection, 4e-19.
    none = "vllm:spec_decode_num_drafts_total 30\nvllm:spec_decode_num_draft_tokens_total 90\nvllm:spec_decode_num_accepted_tokens_total 0\n"
    says("nothing accepted", imported("", text=none), "--alpha 0 ")
    # Lines without the number of drafted tokens leave it open for all.
    short = {"id": "b", "completion_tokens": 106, "spec_verify_ct": 43}
    out = imported("", text=json.dumps({"meta_info": meta}) + "\n" + json.dumps({"meta_info": short}))
    expect(f"unlike answers: {out}", figure(out, "accepted / drafted")[0] is None)


for test in (broken_lines, forms, vllm, vllm_v0, counters, sglang, by_context, sglang_gauges, llama_cpp, tensorrt_llm, benchmarks, answers, wrapped, as_json, constant_alpha, plans, refusals, impossible, unreadable):
    test()
finish()
