#!/usr/bin/python3
"""scripts/record/record_llama_cpp.mjs on a real llama.cpp (npm's node-llama-cpp) with the trained pair of tests/data/models.

At temperature 0 its rounds must emit the text of the target alone; at temperature 1 they must accept as often as the two models'
distributions overlap; the program must read the record. Without npm, node or the package it prints a message and passes. Runs at the root
of the repository; SPECSIM names the program, SPECSIM_NODE_MODULES a folder with node-llama-cpp (by default it is installed in build/baselines).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = ["scripts/results", "scripts/golden"]
import llama_cpp  # noqa: E402
from llm_golden import read_tensors  # noqa: E402

SPECSIM = os.environ.get("SPECSIM", "build/specsim")


def record(folder, modules, gguf, *options):
    environment = {**os.environ, "SPECSIM_RECORD_TEXT": str(folder / "text.json")}
    done = subprocess.run(["node", "scripts/record/record_llama_cpp.mjs", folder / "prompts.jsonl", folder / "out.jsonl", "--model", gguf[0], "--draft", gguf[1],
                           "--node-modules", modules, *options], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()], json.loads((folder / "text.json").read_text())


def main():
    if shutil.which("node") is None:
        print("skipped: node is not here")
        return
    try:
        modules, packages = llama_cpp.find_peer(Path(os.environ["SPECSIM_NODE_MODULES"]) if "SPECSIM_NODE_MODULES" in os.environ else None)
    except SystemExit:
        print("skipped: node-llama-cpp is not to be had")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gguf = []
        for model in (llama_cpp.TARGET, llama_cpp.DRAFT):
            config = json.loads((model / "config.json").read_text())
            gguf.append(folder / f"{model.name}.gguf")
            llama_cpp.write_gguf(gguf[-1], config, read_tensors(model / "model.safetensors"), config["intermediate_size"], "f32")
        # Tokens by number, from the models' own tokenizer: any text will do.
        prompts = [[1] + [(i * 7919 + j * 104729) % 1700 + 300 for j in range(12)] for i in range(8)]
        (folder / "prompts.jsonl").write_text("".join(json.dumps({"tokens": tokens, "kind": "numbers"}) + "\n" for tokens in prompts))
        greedy, text = record(folder, modules, gguf, "--tokens", "96")
        _, alone = record(folder, modules, gguf, "--tokens", "96", "--form", "overlap")
        for i, (own, plain) in enumerate(zip(text, alone)):
            assert own[:len(plain)] == plain, f"request {i}: rounds emit another text than the target alone"
        assert all(line["draft_length"] == 4 and max(line["rounds"]) == 4 for line in greedy), "no whole draft was accepted"
        sampled, _ = record(folder, modules, gguf, "--tokens", "180", "--temperature", "1", "--form", "rounds")
        judged = sum(min(got + 1, 4) for line in sampled for got in line["rounds"])
        alpha = sum(got for line in sampled for got in line["rounds"]) / judged
        subprocess.run([SPECSIM, "plan", "--trace", folder / "out.jsonl"], check=True, stdout=subprocess.DEVNULL)
        shared, _ = record(folder, modules, gguf, "--tokens", "180", "--temperature", "1", "--form", "overlap")
        overlaps = [x for line in shared for x in line["overlap"]]
        overlap = sum(overlaps) / len(overlaps)
        # 5 standard errors of a share, widened because texts differ: a rule that judges by the smaller probability instead of the ratio is off by .2.
        assert abs(alpha - overlap) < 0.08, f"rounds accept {alpha:.3f} of {judged} judged drafts, the distributions share {overlap:.3f}"
        subprocess.run([SPECSIM, "plan", "--trace", folder / "out.jsonl"], check=True, stdout=subprocess.DEVNULL)
        refused = subprocess.run(["node", "scripts/record/record_llama_cpp.mjs", folder / "none", folder / "o", "--model", gguf[0], "--draft", gguf[1]],
                                 capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and "no such file" in refused.stderr, refused.stderr
        print(f"{packages}: rounds accept {alpha:.3f} of {judged} judged drafts, the distributions share {overlap:.3f} at {len(overlaps)} tokens")


if __name__ == "__main__":
    main()
