#!/usr/bin/env python3
"""Times transformers on this machine's GPU, for a look beside specsim's figures: one-token decode and verification passes of a shape
with random weights, and plain and assisted generation of the small trained models.

    scripts/gpu_peers.py --out peers.csv

Columns: what, model, tokens, context, ms, unit. Every line is written as soon as it is measured.
"""

import argparse
import statistics
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

SHAPES = {
    "llama-3.1-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=False),
    "llama-3.2-1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, tie_word_embeddings=True),
}


def timed(work, repetitions=9):
    for _ in range(3):
        work()
    times = []
    for _ in range(repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    out = parser.parse_args().out
    if not torch.cuda.is_available():
        print("gpu_peers: PyTorch sees no GPU", file=sys.stderr)
        return 2
    with open(out, "w", encoding="utf-8") as file:

        def say(*fields):
            line = ",".join(str(field) for field in fields)
            print(line, flush=True)
            file.write(line + "\n")
            file.flush()

        say("what", "model", "tokens", "context", "ms", "unit")
        torch.manual_seed(0)
        with torch.inference_mode():
            small(say)
            for name, shape in SHAPES.items():
                passes(say, name, shape)
    return 0


def passes(say, name, shape):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(LlamaConfig(max_position_embeddings=4096, **shape)).eval()
    torch.set_default_dtype(torch.float32)
    for context in (128, 2048):
        prompt = torch.randint(0, shape["vocab_size"], (1, context), device="cuda")
        cache = model(prompt, use_cache=True).past_key_values
        for tokens in (1, 8, 64):
            more = torch.randint(0, shape["vocab_size"], (1, tokens), device="cuda")

            def once():
                model(more, past_key_values=cache, use_cache=True)
                cache.crop(context)

            say("pass", name, tokens, context, f"{timed(once):.4f}", "ms a pass")
    del model
    torch.cuda.empty_cache()


def small(say):
    directory = "tests/data/models/"
    load = lambda name: AutoModelForCausalLM.from_pretrained(directory + name, dtype=torch.bfloat16).cuda().eval()
    target, draft = load("novels-5m"), load("novels-0.7m-distilled")
    prompt = torch.tensor([[1] + list(range(100, 131))], device="cuda")
    for what, extra in (("plain", {}), ("assisted", {"assistant_model": draft})):
        run = lambda: target.generate(prompt, max_new_tokens=96, min_new_tokens=96, do_sample=False, **extra)
        say(f"{what} generation at temperature 0", "novels-5m", 96, prompt.shape[1], f"{timed(run, 5) / 96:.4f}", "ms a token")


if __name__ == "__main__":
    sys.exit(main())
