#!/usr/bin/env python3
"""Compares specsim with transformers on this machine's GPU: logits along a prompt of a small trained model in bf16, one-token decode and
verification passes of shapes with random weights, then plain and assisted generation of small trained models.

    scripts/gpu/gpu_baselines.py --specsim DIRECTORY [--passes passes.csv] --out peers.csv

DIRECTORY is the output of `specsim calibrate --device cuda --peers`, passes.csv that of a calibration of the same shapes. Columns: what,
model, tokens, context, specsim, transformers, unit. Every line is written as soon as it is measured, and a failed part does not stop
the others. Exit status: 0; 1 if a part failed or the difference of logits is above its limit; 2 without a GPU.
"""

import argparse
import csv
import statistics
import sys
import time
import traceback
from pathlib import Path

import numpy as np

MODELS = Path("tests/data/models")
TARGET, DRAFT = "novels-5m", "novels-0.7m-distilled"
FARTHEST = 2e-2  # largest allowed difference of bf16 logits: the norm of the difference over the norm of the logits
SHAPES = {
    "llama-3.1-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=False),
    "llama-3.2-1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=True),
}


def read_specsim(directory):
    """Tokens of the prompt, logits [token][vocab], and rows of generation.csv."""
    tokens = [int(token) for token in (directory / "prompt.txt").read_text().split()]
    logits = np.fromfile(directory / "logits.f32", "<f4")
    if not tokens or logits.size == 0 or logits.size % len(tokens):
        raise ValueError(f"{directory}: {logits.size} logits for {len(tokens)} tokens")
    with open(directory / "generation.csv", encoding="utf-8") as file:
        return tokens, logits.reshape(len(tokens), -1), list(csv.DictReader(file))


def compare_logits(ours, theirs):
    """Relative difference, the number of rows whose likeliest token is clear, and how many of those differ. Clear means a lead over the second by
    more than FARTHEST of the row's largest logit."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("inf"), 0, 0
    difference = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
    second, first = np.sort(theirs, 1)[:, -2:].T
    clear = first - second > FARTHEST * np.abs(theirs).max(1)
    return float(difference), int(clear.sum()), int((clear & (ours.argmax(1) != theirs.argmax(1))).sum())


def logits_agree(difference, clear, wrong):
    return difference <= FARTHEST and clear > 0 and wrong == 0


def read_passes(path):
    """Milliseconds of the target's passes of one sequence by (tokens, context); empty if there is no such table."""
    if path is None or not path.exists():
        return {}
    with open(path, encoding="utf-8") as file:
        return {(int(row["tokens"]), int(row["context"])): row["ms"] for row in csv.DictReader(file)
                if row["model"] == "target" and row["batch"] == "1"}


def timed(torch, work, warm_up=3, repetitions=9):
    for _ in range(warm_up):
        work()
    times = []
    for _ in range(repetitions):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def load(torch, name):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(MODELS / name).cuda().eval()
    for parameter in model.parameters():  # not a buffer, so that the frequencies of positions stay as exact as specsim's
        parameter.data = parameter.data.to(torch.bfloat16)
    model.generation_config.eos_token_id = None  # never stops before the requested number of tokens
    return model


def logits(torch, say, directory):
    tokens, ours, _ = read_specsim(directory)
    theirs = load(torch, TARGET)(torch.tensor([tokens], device="cuda")).logits[0].float().cpu().numpy()
    found = compare_logits(ours, theirs)
    say("relative difference of logits", TARGET, len(tokens), 0, f"{found[0]:.5f}", "", f"at most {FARTHEST}")
    say("likeliest token differs", TARGET, len(tokens), 0, found[2], "", f"of {found[1]} clear ones")
    if not logits_agree(*found):
        raise ValueError("logits are further apart than they may be")


def generation(torch, say, directory, assisted):
    tokens, _, rows = read_specsim(directory)
    target = load(torch, TARGET)
    draft = load(torch, DRAFT) if assisted else None
    prompt = torch.tensor([tokens], device="cuda")
    for row in rows:
        length, count = int(row["draft_length"]), int(row["tokens"])
        if (length > 0) != assisted:
            continue
        extra = {}
        if assisted:
            extra["assistant_model"] = draft
            settings = draft.generation_config  # the same number of tokens in every round, as specsim drafts
            settings.num_assistant_tokens = length
            settings.num_assistant_tokens_schedule = "constant"
            settings.assistant_confidence_threshold = 0.0

        def run():
            made = target.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False, pad_token_id=0,
                                   **extra)
            if made.shape[1] != len(tokens) + count:
                raise ValueError(f"{made.shape[1] - len(tokens)} tokens of {count}")

        what = f"assisted generation, {length} drafts" if assisted else "plain generation"
        ms = timed(torch, run, warm_up=1, repetitions=3) / count
        say(what, TARGET, count, len(tokens), row["ms_per_token"], f"{ms:.4f}", "ms a token")


def passes(torch, say, name, shape, ours):
    from transformers import LlamaConfig, LlamaForCausalLM

    try:
        torch.set_default_dtype(torch.bfloat16)
        with torch.device("cuda"):
            model = LlamaForCausalLM(LlamaConfig(max_position_embeddings=4096, **shape)).eval()
    finally:
        torch.set_default_dtype(torch.float32)
    for context in (128, 2048):
        prompt = torch.randint(0, shape["vocab_size"], (1, context), device="cuda")
        cache = model(prompt, use_cache=True).past_key_values
        for tokens in (1, 8, 64):
            more = torch.randint(0, shape["vocab_size"], (1, tokens), device="cuda")

            def once():
                model(more, past_key_values=cache, use_cache=True)
                cache.crop(context)

            say("pass", name, tokens, context, ours.get((tokens, context), ""), f"{timed(torch, once):.4f}", "ms a pass")
    del model, cache
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--specsim", type=Path, required=True)
    parser.add_argument("--passes", type=Path, help="passes.csv of llama-3.1-8b")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("gpu_baselines: PyTorch sees no GPU", file=sys.stderr)
        return 2
    with open(arguments.out, "w", encoding="utf-8") as file:

        def say(*fields):
            line = ",".join(f'"{field}"' if "," in str(field) else str(field) for field in fields)
            print(line, flush=True)
            file.write(line + "\n")
            file.flush()

        say("what", "model", "tokens", "context", "specsim", "transformers", "unit")
        torch.manual_seed(0)
        parts = [lambda: logits(torch, say, arguments.specsim)]
        for name, shape in SHAPES.items():
            parts.append(lambda name=name, shape=shape: passes(
                torch, say, name, shape, read_passes(arguments.passes) if name == "llama-3.1-8b" else {}))
        for assisted in (False, True):
            parts.append(lambda assisted=assisted: generation(torch, say, arguments.specsim, assisted))
        status = 0
        with torch.no_grad():
            for part in parts:
                try:
                    part()
                except Exception:
                    traceback.print_exc()
                    status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
