#!/usr/bin/python3
"""The commands that specsim plan prints start servers: sizes and vocabularies meet the engines' requirements, heads are not passed as draft
models, and assumed settings are listed. Its break-even, table and lists are consistent.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import os
import re
import subprocess
import sys
import tempfile


def plan(*options):
    done = subprocess.run([os.environ.get("SPECSIM", "build/specsim"), "plan", *options, "--verbose"], capture_output=True, text=True, check=True)
    return done.stdout


def said(*words, status=0):
    """All that a command prints, as one line."""
    done = subprocess.run([os.environ.get("SPECSIM", "build/specsim"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def flags(*options):
    head, *tail = re.split(r"start a server(?: on \d+ GPUs)? with\n", plan(*options))
    assert tail, head
    return tail[0]


def main():
    pair = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--context", "2048"]
    model = flags(*pair, "--draft", "llama-3.2-1b", "--alpha", "0.8")
    head = flags(*pair, "--draft", "eagle-head-8b", "--alpha", "80%")
    assert '{"method": "draft_model", "model": "<path of llama-3.2-1b>", ' in model and "STANDALONE" in model and "--model-draft <path of llama-3.2-1b>" in model, model
    assert '{"method": "eagle", "model": "<path of eagle-head-8b>", ' in head and " EAGLE " in head and "no: it supports EAGLE heads" in head, head

    # Only SGLang runs Domino's heads, on one GPU.
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"architectures": ["DominoDraftModel"], "model_type": "qwen3", "block_size": 16, "head_dim": 128, "hidden_size": 4096,
                       "intermediate_size": 12288, "num_attention_heads": 32, "num_hidden_layers": 5, "num_key_value_heads": 8,
                       "num_target_layers": 36, "vocab_size": 151936,
                       "dflash_config": {"emb_dim": 256, "gru_hidden_dim": 1024, "projector_type": "domino", "target_layer_ids": [1, 9, 17, 25, 33]}},
                      file)
        qwen = ["--hardware", "h100-sxm", "--target", "qwen3-8b", "--draft", folder, "--alpha", "0.8", "--context", "2048"]
        text = flags(*qwen)
        assert "--speculative-algorithm DFLASH --speculative-draft-model-path" in text and "Domino only for greedy decoding" in text, text
        assert text.count("no: it supports no drafters of this kind (domino)") == 3, text
        assert "no: it runs Domino on one GPU only" in flags(*qwen, "--tensor-parallel", "2")

    # A target that is divided over four GPUs has a draft that is divided over four, with the corresponding estimate.
    large = ["--hardware", "h100-sxm", "--target", "llama-3.1-70b", "--tensor-parallel", "4", "--draft", "llama-3.2-1b", "--context", "4096",
             "--position-rates", "72.3%, 45.5%, 0.291, 0.16", "--batch", "16", "--longest", "8"]
    text = plan(*large)
    assert "drafted by llama-3.2-1b (4 GPUs)" in text and '"draft_tensor_parallel_size": 4' in text and " 1.8327 " in text, text
    assert "ASSUMED" not in text, text
    text = plan(*large, "--draft-tensor-parallel", "1")
    assert "drafted by llama-3.2-1b on" in text and "plan again with --draft-tensor-parallel 4" in text, text

    # Drafts end at the block that a drafter was trained on. Mutant: 13 at this load.
    for drafter, block in (("dspark-qwen3-8b", 7), ("dflash-qwen3-8b", 15)):
        text = plan("--hardware", "h100-sxm", "--target", "qwen3-8b", "--draft", drafter, "--alpha", "0.9", "--batch", "4", "--context", "2048", "--longest", "24")
        lengths = [int(length) for length in re.findall(r"^ +(\d+) +\d+\.\d{4} ", text, re.MULTILINE)]
        assert max(lengths) == block and f"(no longer draft is tried: {drafter} drafts at most {block} tokens)" in text, text

    # What decides whether a server starts is printed without --verbose too.
    for options, need in ((["--target", "qwen3-14b", "--draft", "qwen3-0.6b", "--dtype", "q4_k_m"], "(GGUF files need its plug-in vllm-gguf-plugin"),
                          (["--target", "llama-3-8b", "--draft", "none", "--context", "16000"], "longer than the model's own limit"),
                          (["--target", "llama-3.1-70b", "--tensor-parallel", "16", "--draft", "none"], "(it runs on 2 machines with 8 GPUs each")):
        text = said("plan", "--hardware", "h100-sxm", "--engine", "vllm", "--alpha", "0.8", *options)
        assert need in text and "start" in text, text

    # Messages name what to do.
    for options, parts in ((["--dtype", "awq", "--alpha", "0.7"], ['weights is "awq", use int4 instead; allowed: ']), (["--dtype", "gptq", "--alpha", "0.7"], ["use int4 instead"]),
                           (["--dtype", "fp4", "--alpha", "0.7"], ['weights is "fp4", use nvfp4 or mxfp4 instead']),
                           (["--target", "llama-3.1-70b", "--alpha", "0.7"], ["allowed: 4 GPUs (--tensor-parallel 4, or"]),
                           (["--batch", "100", "--context", "8192", "--alpha", "0.7"], ["allowed: at most 49 sequences, 2 GPUs (--tensor-parallel 2, or"]),
                           ([], ["published for n-grams: --acceptance ngram-code-edits, --acceptance ngram-maths"])):
        target = [] if "--target" in options else ["--target", "llama-3.1-8b"]
        text = said("plan", "--hardware", "h100-sxm", "--draft", "none", *target, *options, status=2)
        assert all(part in text for part in parts), text
    # The batch that the message names fits, and the next one does not.
    fits = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "none", "--context", "8192", "--alpha", "0.7"]
    plan(*fits, "--batch", "49")
    assert "at most 49 sequences" in said("plan", *fits, "--batch", "50", status=2)

    # compare prints that trees are left out where the table has one rate per depth.
    for table, trees in (("eagle3-llama-3.1-8b-chat", False), ("medusa-vicuna-7b", True)):
        text = said("compare", "--hardware", "h100-sxm", "--acceptance", table, "--batches", "8", "--rounds", "2048")
        assert ("Each tree is the best of its size" in text) == trees and ("Trees are left out" in text) != trees and ("tree_" in text) == trees, text

    text = plan("--target", "qwen2.5-7b", "--draft", "qwen2.5-0.5b", "--alpha", "0.6")
    assert text.startswith("ASSUMED (defaults): --hardware h100-sxm --context 2048\n"), text
    assert "WARNING: the vocabularies differ (152,064 tokens, the draft's 151,936): vLLM and SGLang refuse the pair" in text, text
    assert "WARNING" not in model

    # The printed break-even alpha breaks even when it is used for a plan.
    where = [*pair[:4], "--draft", "eagle-head-8b", "--batch", "512", "--context", "177", "--longest", "1"]
    even = plan(*where, "--alpha", "0.7").partition("break-even alpha: ")[2].split()[0]
    row = next(line.split() for line in plan(*where, "--alpha", even).splitlines() if re.match(r" +1 +\d\.\d{4} ", line))
    assert abs(float(row[7]) - 1) < 1e-3, (even, row)

    # Lists, n-grams, and an acceptance rate at the draft length of its measurement.
    text = plan(*pair, "--draft", "none", "--acceptance-rate", "30%", "--at-draft-length", "4", "--batch", "1,8,33")
    rows = [line.split() for line in text.splitlines() if re.match(r" +[012] +\d+ ", line)]
    assert [row[1] for row in rows] == ["1", "8", "33"] and "if every round drafted 4" in text, text


if __name__ == "__main__":
    sys.exit(main())
