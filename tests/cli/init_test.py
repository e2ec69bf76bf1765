#!/usr/bin/python3
"""specsim init --ask: five questions, a config that fits into the GPU's memory, and the two commands that it recommends.

Runs at the root of the repository; SPECSIM names the program.
"""
import re
import shlex
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

# GPU, engine, target, quantisation, draft (empty: the one that is offered); the expected answer, and the config's values.
LIST = [
    (["", "", "", "", ""], [], {"hardware": "h100-sxm", "engine": "vllm", "target": "llama-3.1-8b", "draft": "eagle3-llama-3.1-8b"}),
    (["rtx-4090", "llama_cpp", "qwen3-8b", "q4_k_m", "none"], [], {"target": {"preset": "qwen3-8b", "dtype": "q4_k_m"}, "draft": "none"}),
    (["rtx-3060", "llama_cpp", "qwen3-14b", "q4_k_m", "none"], ["reduced to batch"], {"hardware": "rtx-3060"}),
    (["rtx-3090", "vllm", "qwen3-32b", "int4", ""], ["it needs 2 GPUs"], {"draft": {"preset": "eagle3-qwen3-32b", "tensor_parallel": 2}}),
    (["rtx-4090", "vllm", "llama-3.1-8b", "bf16", "llama-3.2-1b"], ["reduced to batch"], {"draft": "llama-3.2-1b"}),
    (["h100-sxm", "sglang", "llama-3.1-70b", "bf16", "llama-3.2-1b"], ["it needs", "GPUs"], {"engine": "sglang"}),
    (["h200-sxm", "trtllm", "gpt-oss-20b", "", ""], [], {"draft": "eagle3-gpt-oss-20b"}),
    (["mi300x", "vllm", "qwen3-30b-a3b", "fp8", ""], [], {"hardware": "mi300x"}),
]


def question(answers, folder, *more):
    return run("init", "--ask", *more, cwd=folder, input="".join(f"{answer}\n" for answer in answers))


for answers, says, has in LIST:
    with tempfile.TemporaryDirectory() as folder:
        status, printed, error = question(answers, folder)
        expect(f"{answers}: {status} {error}", status == 0)
        if status:
            continue
        for part in says:
            expect(f"{answers}: no {part!r} in {printed}", part in printed)
        expect(f"{answers}: it reduces what fits", says or "reduced" not in printed)
        text = (Path(folder) / "experiment.yaml").read_text(encoding="utf-8")
        cost = yaml.safe_load(text)["cost"]
        for key, value in has.items():
            expect(f"{answers}: {key} is {cost[key]}", cost[key] == value)
        memory = re.search(r"memory: .*: ([\d.]+) of ([\d.]+) GiB", printed)
        expect(f"{answers}: memory", memory and float(memory.group(1)) <= float(memory.group(2)))
        commands = re.search(r"try: (.*)$", printed, re.MULTILINE).group(1).split(", ")
        expect(f"{answers}: {commands}", len(commands) == 2)
        for command in commands:
            words = shlex.split(command)
            expect(command, words[0] == "specsim")
            status, out, error = run(*words[1:], cwd=folder)
            expect(f"{answers}: {command}: {status} {error[-300:]} {out[-300:]}", status == 0)

# The acceptance: a published table of the pair, or an assumption that plan prints as one. Mutants: one invented rate for every pair,
# printed as the user's.
for answers, table in ((["", "", "", "", ""], "eagle3-llama-3.1-8b-chat"), (["h100-sxm", "vllm", "qwen3-30b-a3b", "", "eagle3-qwen3-30b-a3b"], "eagle3-qwen3-30b-a3b-chat"),
                       (["rtx-3090", "llama_cpp", "qwen3-8b", "q4_k_m", "none"], None)):
    with tempfile.TemporaryDirectory() as folder:
        status, printed, error = question(answers, folder)
        expect(f"{answers}: {printed}{error}", status == 0 and (f"published table {table}" if table else "acceptance: assumed") in printed)
        if status:
            continue
        status, out, error = run("plan", "experiment.yaml", cwd=folder)
        expect(f"plan of {answers}: {out}{error}", status == 0 and ("ASSUMED (pair.assumed" in out) == (table is None) and (", yours " in out) == (table is not None))
        if table:  # the figures are those of the table
            recorded = run("plan", "--acceptance", table, "--hardware", "h100-sxm", "--engine", "vllm", "--batch", "8", "--context", "2048")[1]
            of_length = [re.search(r"^ +3 +(\d\.\d+)", text, re.MULTILINE) for text in (out, recorded)]
            expect(f"{table}: {of_length}", all(of_length) and abs(float(of_length[0].group(1)) / float(of_length[1].group(1)) - 1) < 0.02)

# Types that the GPU cannot multiply are not offered, and pairs that no server runs are warned of.
with tempfile.TemporaryDirectory() as folder:
    status, printed, error = question(["rtx-3090", "", "", "fp8"], folder)
    expect(f"fp8 on an RTX 3090: {printed}{error}", status == 2 and '"fp8" is none of them' in error and "fp8" not in printed.split("Quantisation")[1].split("?")[0])
for answers, warning in ((["", "", "qwen3-14b", "", "eagle3-qwen3-8b"], "4096 wide, the target's are 5120"),
                         (["", "vllm", "qwen2.5-7b", "", "qwen2.5-0.5b"], "cannot run this pair: the vocabularies differ")):
    with tempfile.TemporaryDirectory() as folder:
        status, printed, error = question(answers, folder)
        expect(f"{answers}: {printed}{error}", status == 0 and warning in " ".join((printed + error).split()))

with tempfile.TemporaryDirectory() as folder:
    expect("comments", question([""] * 5, folder)[0] == 0 and (Path(folder) / "experiment.yaml").read_text().count("#") > 6)
    status, _, error = question([""] * 5, folder)
    expect("init over a config", status == 2 and "experiment.yaml: exists already" in error)
    for answers, wanted in ((["h100"], '"h100" is none of them'), ([""], "it ended before an answer"), (["", "vllm", "eagle-head-8b"], '"eagle-head-8b" is none of them'),
                            (["a100-80gb-sxm", "", "", "q4_k_m"], '"q4_k_m" is none of them'),
                            (["rtx-3060", "", "llama-3.1-405b", "bf16", "none"], "does not fit into the memory of 8 rtx-3060")):
        status, _, error = question(answers, folder, "--force")
        expect(f"{answers}: {status} {error}", status == 2 and wanted in error and error.startswith("standard input"))

finish()
