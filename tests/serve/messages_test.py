#!/usr/bin/python3
"""Error messages of specsim serve: where, what was found, what is allowed, and exit 2; no file is written."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SPECSIM = os.path.abspath(os.environ["SPECSIM"])
BASE = """experiment: x
serve:
  scheduler: {kind: vllm_v1}
  kv: {block: 16, blocks: 200}
  arrivals: {process: poisson, rate: 5, requests: 20}
  lengths: {prompt: 100, output: 50}
  speculation: {policy: {kind: fixed, draft_length: 3}, acceptance: {alpha: 0.7}}
cost: {model: affine, target_fixed_ms: 6, target_ms_per_token: 0.02}
"""
TREE = BASE.replace(", acceptance: {alpha: 0.7}", "") + """pair: {vocab: 24, target: {family: zipf, exponent: 1}, draft: {from: target, transform: temperature, value: 1.6}}
decode: {drafter: {kind: tree_static, branching: [3, 2, 1]}, verifier: multi_draft_recursive}
"""
PARTLY = BASE.replace("{kind: fixed, draft_length: 3}", "{kind: adaptive_verification, draft_length: 3, confidence: estimate}")
FILES = {"base.yaml": BASE, "partly.yaml": PARTLY, "overlaps.jsonl": '{"overlap": [0.5, 0.7, 0.9, 0.4, 0.6]}\n', "tree.yaml": TREE, "plain.yaml": BASE.replace("  lengths: {prompt: 100, output: 50}\n", ""),
         "unsorted.csv": "arrived_us,prompt,output\n100,5,5\n50,5,5\n", "zero.csv": "arrived_us,prompt,output\n100,0,5\n",
         "header.csv": "a,b\n1,2\n", "short.csv": "arrived_us,prompt,output\n1,2\n", "empty.csv": "arrived_us,prompt,output\n",
         "large.csv": "arrived_us,prompt,output\n1,2,3\n2,90000,3\n", "lines.jsonl": '{"timestamp": 0, "input_length": 5}\n',
         "more.csv": "arrived_us,prompt,output\n1,2,3\n4,5,6,7\n",
         "hashes.jsonl": '{"timestamp": 0, "input_length": 1025, "output_length": 5, "hash_ids": [1, 2]}\n',
         "blocks.csv": "arrived_us,prompt,output,block_hashes\n0,47,5,\n0,47,5,1-2\n0,48,5,1-2\n",
         "none.jsonl": '{"timestamp": 0, "input_length": 5, "output_length": 5}\n{"timestamp": 0, "input_length": 0, "output_length": 5}\n',
         "broken.jsonl": '{"timestamp": 0, "input\n', "february.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-29 00:00:00,3,4\n2023-02-29 00:00:00,3,4\n",
         "more.jsonl": '{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2, 3]}\n',
         "over.csv": "arrived_us,prompt,output,block_hashes\n0,47,5,1-3\n0,48,5,1-4\n", "huge.csv": "arrived_us,prompt,output,block_hashes\n0,47,5,0-9999998 1-5\n",
         "twice.csv": "arrived_us,prompt,output,prompt_tokens\n1,2,3,4\n", "times.csv": "TIMESTAMP,prompt,output,arrived_us\n",
         "long.csv": "arrived_us,prompt,output\n1,2,3\n2,4000,200\n",
         "burst.csv": "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,3,ChatGPT,472,0,472,API log\n",
         "two.jsonl": '{"draft_length": 2, "rounds": [2, 0, 1]}\n', "short.jsonl": '{"draft_length": 2, "accepted": [1, 0]}\n',
         "laws.jsonl": '{"target": [[0.5, 0.5]], "draft": [[0.5, 0.5]]}\n',
         "azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:15:46.68,374,44\n"}
GPU = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--rate", "2", "--policy", "fixed:3", "--alpha", "0.6"]
CASES = [
    (["--rate", "2", "--hardware", "rtx-pro-6000", "--set", "cost.target={preset: qwen3-30b-a3b, expert_parallel: 2}"],
     "count is 1, prefill 0, and expert_parallel of the target 2, allowed: count 2 (--replicas) and prefill 0, since engines that share experts step together"),
    (["--rate", "2", "--hardware", "rtx-pro-6000", "--replicas", "3", "--set", "cost.target={preset: qwen3-30b-a3b, expert_parallel: 3}"],
     "expert_parallel is 3 with 128 experts, tensor_parallel 1, allowed: a divisor of the experts, with tensor_parallel 1 and all weights on the GPUs"),
    (["--rate", "2", "--target", "llama-3.1-8b", "--set", "cost.target={preset: llama-2-7b}"], "--set: cost.target is set together with --target, allowed: one of them"),
    (["--rate", "2", "--hardware", "h100-sxm", "--set", "cost.hardware={preset: h100-sxm, tensor_parallel: 4}"], "--set: cost.hardware is set together with --hardware"),
    (["--rate", "2", "--target", "llama-3.1-8b", "--set", "cost.target.tensor_parallell=4"], 'unknown key "tensor_parallell"'),
    (["base.yaml", "--set", "serve.scheduler.kind=vllm"], 'unknown scheduler "vllm", did you mean "vllm_v1"? allowed: vllm_v1'),
    (["base.yaml", "--set", "serve.scheduler.max_num_seq=5"], 'unknown key "max_num_seq" in scheduler vllm_v1, did you mean "max_num_seqs"?'),
    (["base.yaml", "--set", "serve.arrivals.rate=0"], "rate is 0, allowed: a number in"),
    (["base.yaml", "--set", "serve.arrivals.process=burst"], 'unknown arrival process "burst", allowed: poisson'),
    (["base.yaml", "--set", "serve.lengths.prompt=-3"], "fixed is -3, allowed: an integer in [1,"),
    (["base.yaml", "--set", "serve.kv.blocks=5"], "base.yaml:6:12: request 0 of serve.lengths can never be served: it needs 10 blocks to its end, allowed: at most the pool's 4"),
    (["base.yaml", "--set", "serve.kv.tokens=500"], "tokens is given together with blocks, allowed: one of"),
    (["base.yaml", "--set", "serve.speculation.acceptance={position_rates: [0.5, 0.7]}"], "position_rates rises from 0.5 to 0.7, allowed:"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: table, table: [[2, 5, 3]]}"], "the table starts at 2, allowed: 1"),
    (["base.yaml", "--policy", "table:1-4"], '--policy: "1-4" in the table, allowed:'),
    (["base.yaml", "--policy", "fixed:100"], "--policy: draft_length is 100, allowed: an integer in [0, 64]"),
    (["base.yaml", "--sweep", "speed=1:2:3"], '--sweep: "speed=1:2:3", allowed:'),
    (["base.yaml", "--sweep", "concurrency=1,2"], "--sweep: the arrivals have no concurrency, allowed:"),
    (["base.yaml", "--slo", "ttft"], '--slo: "ttft", allowed: ttft=MS'),
    (["base.yaml", "--steps"], "--steps: given without --out, allowed: with --out"),
    (["base.yaml", "--rate", "3", "--concurrency", "4"], "given with another load, allowed: one of"),
    (["base.yaml", "--rate", "3", "--set", "serve.arrivals.process=gamma"], "--set: serve.arrivals.process is set together with --rate, allowed: one of them"),
    (["--set", "serve.kv.blocks=100"], "specsim serve needs a config, or a load: --rate, --concurrency, --trace, --sweep or --set serve.arrivals="),
    (["--rate", "2", "--set", "serve.scheduler.kind=nope"], 'unknown scheduler "nope", allowed:'),
    (["--rate", "2", "--set", "serve.scheduler=nope"], 'unknown scheduler "nope", allowed:'),
    (["--rate", "2", "--target", "llama-3.1-8b", "--set", "cost={model: affine, target_fixed_ms: 5}"], 'unknown key "target" in'),
    (["base.yaml", "--policy", "adaptive:nope"], 'unknown policy "nope"'),
    (["--rate", "2", "--set", "serve.kv.blocks=30"], "allowed: at most the pool's 29"),
    (["base.yaml", "--trace", "nothere.csv"], "cannot be read: no such file or directory"),
    (["plain.yaml", "--trace", "unsorted.csv"], "unsorted.csv:3:1: arrives 5e-05 s before the line above, allowed:"),
    (["plain.yaml", "--trace", "zero.csv"], 'zero.csv:2:5: prompt is "0", allowed: a whole number from 1'),
    (["plain.yaml", "--trace", "header.csv"], 'header.csv:1:1: the columns are "a,b", allowed: arrived_us'),
    (["plain.yaml", "--trace", "short.csv"], "short.csv:2:4: the line has 2 fields, allowed: 3"),
    (["plain.yaml", "--trace", "more.csv"], "more.csv:3:1: the line has 4 fields, allowed: 3 as in the first line"),
    (["plain.yaml", "--trace", "hashes.jsonl"], "hashes.jsonl:1:1: hash_ids has 2 numbers, allowed: at least 3, one for each 512 tokens of input_length, 1025"),
    (["plain.yaml", "--trace", "blocks.csv"], "blocks.csv:4:1: block_hashes has 2 hashes, allowed: at least 3, one for each 16 tokens of its prompt's 48"),
    (["plain.yaml", "--trace", "more.jsonl"], "more.jsonl:1:1: hash_ids has 3 numbers, allowed: at most 2, one for each 512 tokens of input_length, 1024"),
    (["plain.yaml", "--trace", "over.csv"], "over.csv:3:1: block_hashes has 4 hashes, allowed: at most 3, one for each 16 tokens of its prompt's 48"),
    (["plain.yaml", "--trace", "huge.csv"], 'huge.csv:2:8: block_hashes is "0-9999998 1-5", allowed: whole numbers below 2^63 and ranges, as 0-146 or 3 7-9'),
    (["plain.yaml", "--trace", "twice.csv"], 'twice.csv:1:26: the columns "prompt_tokens" and "prompt" mean the same, allowed: one of them'),
    (["plain.yaml", "--trace", "times.csv"], 'times.csv:1:25: the columns "arrived_us" and "TIMESTAMP" mean the same, allowed: one of them'),
    (["base.yaml", "--slo", "percentile=50"], "--slo: percentile is set without a limit, allowed: with ttft_ms, tpot_ms or e2el_ms"),
    (["plain.yaml", "--trace", "empty.csv"], "empty.csv: has no request, allowed: at least one"),
    (["plain.yaml", "--trace", "large.csv"], "large.csv:3:1: request 1 can never be served: it needs"),
    (["plain.yaml", "--trace", "lines.jsonl"], "lines.jsonl:1:1: lacks output_length, allowed: a whole number from 1 to 1e+08"),
    (["plain.yaml", "--trace", "none.jsonl"], 'none.jsonl:2:34: input_length is "0", allowed: a whole number from 1 to 1e+08'),
    (["plain.yaml", "--trace", "broken.jsonl"], "broken.jsonl:1:1: is no request, allowed:"),
    (["plain.yaml", "--trace", "february.csv"], 'february.csv:3:1: TIMESTAMP is "2023-02-29 00:00:00", allowed: as'),
    (["plain.yaml", "--trace", "azure.csv"], 'azure.csv:2:1: TIMESTAMP is "2023-13-16 18:15:46.68", allowed:'),
    (["base.yaml", "--set", "serve.replicas=2", "--routing", "nope"], 'unknown routing "nope", allowed: round_robin'),
    (["base.yaml", "--requests", "1e12"], "requests is 1e12, allowed: an integer in [1,"),
    (["base.yaml", "--set", "cost={model: ratio, draft_cost: 0.1}"], "cost"),
    (["base.yaml", "--set", "cost.target_fixed_ms=1e9"], "the run lasts longer than 4.5e+06 s, where simulated time ends, allowed:"),
    (["base.yaml", "--set", "cost.target_ms_per_token=1e9"], "a step takes 1e+08 s by the cost model, allowed: less than 4.5e+06 s"),
    (["base.yaml", "--set", "serve.arrivals.rate=1e-9"], "base.yaml: the run lasts longer than 4.5e+06 s, where simulated time ends, allowed:"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: table, table: [[1, 5, 0, 100, 3], [6, 9, 2]]}"], "a row of the table has 3 numbers, allowed: like the first"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: adaptive, policy: {kind: confidence}}"], "confidence looks at the draft's distributions, allowed:"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: adaptive, policy: oracle}"], "oracle knows what will be accepted, allowed:"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: adaptive, policy: {kind: nope}}"], 'unknown policy "nope", allowed:'),
    (["tree.yaml", "--policy", "fixed:2"], "the policy drafts 2 tokens, allowed: 0 or 3, the longest path of this method, which cannot be cut"),
    (["tree.yaml", "--policy", "goodput:2"], "the policy tries up to 2 tokens, allowed: 3, the only draft length that this method supports in a server"),
    (["tree.yaml", "--set", "decode={drafter: {kind: chain, draft_length: 3}, verifier: token, policy: {kind: oracle}}"], "decode's policy oracle knows what will be accepted, allowed:"),
    (["tree.yaml", "--set", "decode={drafter: {kind: chain, draft_length: 3}, verifier: token}", "--policy", "fixed:4"], "the policy drafts up to 4 tokens, allowed: at most decode's draft_length, 3"),
    (["tree.yaml", "--set", "context={process: requests, request_tokens: 20, types: [{weight: 1, draft: {from: target, transform: overlap, value: 0.7}}]}"], "the text of a request has 20 tokens and the longest output 50, allowed:"),
    (["base.yaml", "--policy", "adaptive_verification:0"], "--policy: draft_length is 0, allowed: an integer in [1, 64]"),
    (["partly.yaml"], "partly.yaml:7:84: confidence is estimate, and acceptance states only the acceptance of drafts, allowed: history, or pair and decode"),
    (["partly.yaml", "--set", "serve.speculation.policy.confidence=head"], "confidence is head, and acceptance states only the acceptance of drafts, allowed: history"),
    (["partly.yaml", "--set", "serve.speculation.acceptance={trace: overlaps.jsonl}"], "partly.yaml:7:84: confidence is estimate, and the trace records only overlaps of drafts, allowed: head, history, or pair"),
    (["partly.yaml", "--set", "serve.speculation.policy.confidence=sure"], 'confidence:1:1: confidence is "sure", allowed: estimate, history, head'),
    (["partly.yaml", "--set", "serve.speculation.policy={kind: adaptive_verification, draft_length: 3, rows: 65}"], "rows is 65, allowed: a number in [0, 64]"),
    (["partly.yaml", "--set", "serve.speculation.acceptance={trace: two.jsonl}", "--set", "serve.speculation.policy.confidence=history"],
     "the policy drafts up to 3 tokens, allowed: at most the drafts in the trace, 2"),
    (["tree.yaml", "--policy", "adaptive_verification:3"], "--policy: policy adaptive_verification verifies a part of the drafted tokens, and decode has a tree or its own policy; allowed: a chain"),
    (["tree.yaml", "--set", "decode={drafter: {kind: chain, draft_length: 3}, verifier: token, policy: {kind: additive}}", "--policy", "adaptive_verification:3"],
     "policy adaptive_verification verifies a part of the drafted tokens, and decode has a tree or its own policy"),
    (["tree.yaml", "--set", "decode={drafter: {kind: chain, draft_length: 3}, verifier: token}", "--policy", "adaptive_verification:4"],
     "the policy drafts up to 4 tokens, allowed: at most decode's draft_length, 3"),
    (["tree.yaml", "--set", "decode={drafter: {kind: chain, draft_length: 3}, verifier: token}", "--set", "context={process: iid, fresh: true}", "--set",
      "serve.speculation.policy={kind: adaptive_verification, draft_length: 3, confidence: head}"],
     "confidence is head, and drafts of fresh distributions or of recorded acceptance have none, allowed: history, or contexts from a pool"),
    (["base.yaml", "--set", "serve.speculation.policy={kind: adaptive, policy: adaptive_verification}"], "adaptive_verification shares out the rows of a batch that decode runs, allowed:"),
    (["base.yaml", "--slo", "mlperf:llama2-70b"], 'preset is "mlperf:llama2-70b", '),
    (["base.yaml", "--resume", "--out", "out"], "--resume: given without --sweep, allowed: with --sweep"),
    (["base.yaml", "--resume", "--sweep", "rate=1,2"], "--resume: given without --out, allowed: with --out"),
    (["base.yaml", "--resume", "--force", "--sweep", "rate=1,2", "--out", "none"], "--resume: given together with --force"),
    (["base.yaml", "--timeline", "t.json", "--sweep", "rate=1,2"], "--timeline: given together with --sweep, allowed: with a single run"),
    (["base.yaml", "--slo", "ttft=5,tpot=9,ttft=6"], '--slo: "ttft" is given twice, allowed: each limit once'),
    (["base.yaml", "--timeline", "./base.yaml"], "--timeline: ./base.yaml is an input of this command, allowed: another file"),
    (["base.yaml", "--timeline", "--quiet"], "--timeline: given without a value before --quiet, allowed: FILE.json"),
    (["base.yaml", "--out", "--steps"], "--out: given without a value before --steps, allowed: "),
    (["base.yaml", "--timeline", ""], '--timeline: "", allowed: a file'),
    (["base.yaml", "--draft-lengths", "0,1"], "--draft-lengths: given without --sweep, allowed: with --sweep"),
    (["base.yaml", "--draft-lengths", "0,1", "--sweep", "rate=1,2"], "--draft-lengths: given without --slo, allowed: with --slo"),
    (["tree.yaml", "--draft-lengths", "2", "--sweep", "rate=1,2", "--slo", "ttft=50"], "--draft-lengths: 2 is no draft length of decode's method, allowed: 0 or 3"),
    (["base.yaml", "--set", "serve.speculation.acceptance={trace: nothere.jsonl}"], "nothere.jsonl"),
    (["base.yaml", "--set", "serve.speculation.acceptance={trace: two.jsonl}"], "the policy drafts up to 3 tokens, allowed: at most the drafts in the trace, 2"),
    (["base.yaml", "--set", "serve.speculation.acceptance={trace: two.jsonl, alpha: 0.5}"], "alpha is given together with trace, allowed: one of them"),
    (["base.yaml", "--set", "serve.speculation.acceptance={kind: code, alpha: 0.5}"], "kind is given without trace, allowed: with trace"),
    (["base.yaml", "--set", "serve.speculation.acceptance={trace: laws.jsonl}"], "laws.jsonl:1"),
    (["base.yaml", "--set", "serve.speculation.acceptance={trace: short.jsonl}", "--policy", "fixed:2"], "no record of short.jsonl is long enough for a round of 2 tokens, allowed:"),
    (["base.yaml", "--set", "serve.scheduler={kind: llama_cpp, context: 90}"], "can never be served: its prompt has 100 tokens, allowed: fewer than a slot's context, 90"),
    (["base.yaml", "--set", "serve.scheduler={kind: sglang, schedule_policy: fifo}"], 'schedule_policy is "fifo", did you mean "fcfs"? allowed: fcfs, lpm'),
    (["base.yaml", "--set", "serve.replicas={prefill: 1}"], "the cost model does not have the size of a token's cache, allowed: kv_bytes_per_token"),
    (["base.yaml", "--set", "serve.scheduler={kind: llama_cpp}", "--set", "serve.replicas={prefill: 1, kv_bytes_per_token: 1e5}"], "prefill is set with scheduler llama_cpp, allowed: another one, since its server computes a prompt in the slot that decodes it"),
    (["plain.yaml", "--set", "serve.arrivals={process: sessions, rate: 1, output: 5}"], "prompt"),
    (["base.yaml", "--slo", "foo=5"], '--slo: unknown limit "foo", allowed: ttft, tpot, e2el, percentile'),
    (["base.yaml", "--alpha", "0.5", "--position-rates", "0.7,0.4"], "--position-rates: given together with --alpha, allowed: one figure of acceptance"),
    (["base.yaml", "--routing", "least_loaded"], "--routing: given without several --replicas, allowed: with several --replicas"),
    (["base.yaml", "--replications", "4"], "--replications: given without --sweep, allowed: with --sweep"),
    (["base.yaml", "--set", "serve.scheduler={kind: sglang}", "--set", "serve.kv.blocks=11"],
     "can never be served: its admission asks for 166 tokens, prompt, output and a block, allowed: at most the pool's 160"),
    (["base.yaml", "--set", "serve.scheduler={kind: sglang, chunked_prefill_size: 8}"], "chunked_prefill_size is 8 and its prompt has 100 tokens, allowed: at least a block, 16"),
    (["base.yaml", "--set", "serve.scheduler={kind: llama_cpp, context: 4096}"], "can never be served: a slot's context needs 256 blocks, allowed: at most the pool's 199"),
    (["base.yaml", "--set", "serve.scheduler={kind: llama_cpp, context: 120}"], "its prompt has 100 tokens and its output 50, allowed: together at most a slot's context, 120"),
    (["base.yaml", "--set", "serve.scheduler.max_model_len=149"], "its prompt has 100 tokens and its output 50, allowed: together at most max_model_len, 149"),
    (["plain.yaml", "--trace", "long.csv", "--set", "serve.scheduler.max_model_len=4096", "--set", "serve.kv.blocks=1000"],
     "long.csv:3:1: request 1 can never be served: its prompt has 4000 tokens and its output 200, allowed: together at most max_model_len, 4096"),
    (["base.yaml", "--method", "draft_model", "--set", "serve.scheduler.max_num_batched_tokens=256"],
     "max_num_batched_tokens is 256 and a draft model reserves a row for each of max_num_seqs, 256, allowed: more than these"),
    (["base.yaml", "--method", "draft_model", "--set", "serve.scheduler.max_num_batched_tokens=200"],
     "max_num_batched_tokens is 200 and a draft model reserves a row for each of max_num_seqs, 256, allowed: more than these"),
    ([*GPU, "--draft", "eagle3-llama-3.1-8b", "--method", "ngram"], "--method:1:1: method ngram is set with the draft eagle3-llama-3.1-8b"),
    ([*GPU, "--draft", "llama-3.2-1b", "--method", "eagle"], "--method:1:1: method eagle is set with the draft llama-3.2-1b, an independent model, allowed: draft_model"),
    ([*GPU, "--draft", "eagle3-llama-3.1-8b", "--method", "draft_model"], "method draft_model is set with the draft eagle3-llama-3.1-8b, a head of the target, allowed: eagle"),
    (GPU, "nothing drafts: the cost model has no draft, allowed: a draft, or method ngram"),
    (["base.yaml", "--set", "serve.kv={tokens: 3200, draft_tokens: 20}"], "20 tokens are 1 blocks, allowed: at least 2"),
    ([*GPU, "--draft", "llama-3.2-1b", "--set", "serve.kv.draft_tokens=1000"], "draft_tokens is given together with utilization, which holds both caches, allowed: together with blocks or tokens"),
    ([*GPU, "--draft", "llama-3.2-1b", "--set", "serve.kv.utilization=0.2"], "weights take 14.96 GiB and activations 4.81 GiB, which is 3.94 GiB more than available, allowed: room for two blocks"),
    ([*GPU, "--tensor-parallel", "3"], "tensor_parallel"),
    (["plain.yaml", "--trace", "burst.csv"], 'burst.csv:2:18: output is "0", allowed: a whole number from 1'),
    (["base.yaml", "--set", "serve.lengths.prompt={file: {path: burst.csv, column: tokens}}"], 'burst.csv:1:1: has no column "tokens", allowed: '),
    (["base.yaml", "--set", "serve.lengths.prompt={file: {path: burst.csv, column: Response tokens}}"], 'burst.csv:2:18: Response tokens is "0", allowed: a whole number from 1'),
    (["base.yaml", "--set", "serve.lengths.prompt={file: {path: nothere.csv, column: prompt}}"], "nothere.csv: cannot be read"),
    ([], "specsim serve needs a config, or a load"),
    (["nothere.yaml"], "nothere.yaml: cannot be read"),
]

failures = 0
with tempfile.TemporaryDirectory() as folder:
    for name, text in FILES.items():
        Path(folder, name).write_text(text)
    for arguments, wanted in CASES:
        done = subprocess.run([SPECSIM, "serve", *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode != 2 or wanted not in done.stderr or done.stdout or "should not happen" in done.stderr:
            print(f"specsim serve {' '.join(arguments)}\n  wanted exit 2 and: {wanted}\n  exit {done.returncode}: {done.stderr.strip()}")
            failures += 1
    good = subprocess.run([SPECSIM, "serve", "base.yaml", "--out", "out", "--steps"], cwd=folder, capture_output=True, text=True, timeout=600)
    if good.returncode != 0 or sorted(os.listdir(Path(folder, "out"))) != ["manifest.yaml", "requests.csv", "requests_plain.csv", "steps.csv", "summary.csv"]:
        print(f"the base config does not run: {good.stderr}")
        failures += 1
    again = subprocess.run([SPECSIM, "serve", "base.yaml", "--out", "out", "--rate", "7"], cwd=folder, capture_output=True, text=True, timeout=600)
    if again.returncode != 2:
        print(f"another run's results were replaced without --force: exit {again.returncode}")
        failures += 1
    # Defaults of vllm serve by GPU, unless given; both models on the same number of GPUs.
    for more, wanted in ((["--hardware", "h100-sxm"], ["max_num_batched_tokens: 8192", "max_num_seqs: 1024"]),
                         (["--hardware", "a100-80gb-sxm"], ["max_num_batched_tokens: 2048", "max_num_seqs: 256"]),
                         (["--hardware", "rtx-4090"], ["max_num_batched_tokens: 2048", "max_num_seqs: 256"]),
                         (["--hardware", "h100-sxm", "--set", "serve.scheduler={kind: sglang}"], ["chunked_prefill_size: 8192", "utilization: 0.8"]),
                         (["--hardware", "b200", "--set", "serve.scheduler={kind: sglang}"], ["chunked_prefill_size: 16384"]),
                         (["--hardware", "h100-sxm", "--set", "serve.scheduler={kind: trtllm}"], ["max_batch_size: 2048", "utilization: 0.9"]),
                         (["--hardware", "h100-sxm", "--set", "serve.scheduler.max_num_seqs=64"], ["max_num_batched_tokens: 8192", "max_num_seqs: 64"]),
                         (["--tensor-parallel", "2", "--policy", "fixed:2", "--alpha", "0.5", "--draft", "llama-3.2-1b"],
                          ["target: {preset: llama-3.1-8b, tensor_parallel: 2}", "draft: {preset: llama-3.2-1b, tensor_parallel: 2}"])):
        flags = subprocess.run([SPECSIM, "serve", *more, "--target", "llama-3.1-8b", "--rate", "2", "--requests", "3", "--out", "flags", "--force"],
                               cwd=folder, capture_output=True, text=True, timeout=600)
        config = Path(folder, "flags", "manifest.yaml").read_text() if flags.returncode == 0 else flags.stderr
        if any(part not in config for part in wanted):
            print(f"specsim serve {' '.join(more)}: wanted {wanted}\n  {config}")
            failures += 1
    # Settings that are simulated as given but that the user should know of.
    doubts = (("drafts are free", ["base.yaml"], True), ("drafts are free", ["base.yaml", "--set", "cost.draft_fixed_ms=1"], False),
              ("drafts are free", ["base.yaml", "--method", "ngram"], False), ("drafts are free", ["base.yaml", "--policy", "off"], False),
              ("drafts up to 3 tokens, but acceptance is stated for 2", ["base.yaml", "--position-rates", "0.7,0.4"], True),
              ("acceptance is stated for", ["base.yaml", "--position-rates", "0.7,0.4,0.3"], False), ("acceptance is stated for", ["base.yaml"], False))
    for words, arguments, is_printed in doubts:
        done = subprocess.run([SPECSIM, "serve", *arguments], cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode != 0 or (words in done.stderr) != is_printed:
            print(f"specsim serve {' '.join(arguments)}: {words!r} {'is not' if is_printed else 'is'} printed: {done.stderr}")
            failures += 1
    if sorted(os.listdir(folder)) != sorted([*FILES, "out", "flags"]):
        print(f"files were left: {os.listdir(folder)}")
        failures += 1
print(f"{len(CASES) + 3} cases, {failures} wrong")
sys.exit(failures > 0)
