#!/usr/bin/python3
"""Compares forward passes of the trained target, widened beyond the caches, with llama.cpp's on the same weights: one thread, alternating.

    scripts/results/llama_cpp.py build/specsim OUT            writes OUT/llama_cpp.csv and OUT/manifest.yaml
    scripts/results/llama_cpp.py build/specsim OUT --rounds 5 --node-modules DIR

llama.cpp comes with npm's node-llama-cpp (its own prebuilt libraries). It is installed in build/baselines unless DIR has it. Both read the
same weights in F32 or F16. llama.cpp's argmaxes on a golden prompt must equal those of scripts/golden/llm_golden.py, so that both run the same
model. Seconds are wall clock; every value is a median of medians over the rounds.
"""
import argparse
import csv
import datetime
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
from llm_golden import logits, read_tensors  # noqa: E402

LOCKED = Path(__file__).resolve().parents[1] / "npm" / "llama_cpp"  # its package-lock.json has every package's checksum
TARGET = Path("tests/data/models/novels-5m")
DRAFT = Path("tests/data/models/novels-0.7m-distilled")
WIDEN_MIB = 128
TOKENS = [1, 2, 4, 8]
PRECISIONS = {"f32": (np.float32, 0), "f16": (np.float16, 1)}  # and its number in GGUF


def text(value):
    raw = value.encode()
    return len(raw).to_bytes(8, "little") + raw


def entry(key, value):
    """A key and its value as GGUF stores them; types as its specification numbers them."""
    if isinstance(value, str):
        return text(key) + (8).to_bytes(4, "little") + text(value)
    if isinstance(value, int):
        return text(key) + (4).to_bytes(4, "little") + value.to_bytes(4, "little")
    if isinstance(value, float):
        return text(key) + (6).to_bytes(4, "little") + np.float32(value).tobytes()
    kind, items = (8, b"".join(map(text, value))) if isinstance(value[0], str) else (
        (5, np.asarray(value, np.int32).tobytes()) if isinstance(value[0], int) else (6, np.asarray(value, np.float32).tobytes()))
    return text(key) + (9).to_bytes(4, "little") + kind.to_bytes(4, "little") + len(value).to_bytes(8, "little") + items


def write_gguf(path, config, tensors, ffn, precision):
    """Writes the model with `ffn` neurons per layer: added neurons have random input weights and zero output weights, so they change no result."""
    kind, number = PRECISIONS[precision]
    random = np.random.default_rng(1)
    heads, hidden, own = config["num_attention_heads"], config["hidden_size"], config["intermediate_size"]

    def turned(matrix):  # llama.cpp rotates neighbouring elements, the files the halves of a head
        return matrix.reshape(heads, 2, -1, matrix.shape[1]).swapaxes(1, 2).reshape(matrix.shape)

    def rows(matrix):
        return np.concatenate([matrix, random.uniform(-0.05, 0.05, (ffn - own, hidden))])

    out = {"token_embd.weight": tensors["model.embed_tokens.weight"], "output_norm.weight": tensors["model.norm.weight"]}
    for i in range(config["num_hidden_layers"]):
        layer = {name: tensors[f"model.layers.{i}.{name}.weight"] for name in (
            "input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
            "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
        out |= {f"blk.{i}.{name}.weight": value for name, value in {
            "attn_norm": layer["input_layernorm"], "ffn_norm": layer["post_attention_layernorm"],
            "attn_q": turned(layer["self_attn.q_proj"]), "attn_k": turned(layer["self_attn.k_proj"]), "attn_v": layer["self_attn.v_proj"],
            "attn_output": layer["self_attn.o_proj"], "ffn_gate": rows(layer["mlp.gate_proj"]), "ffn_up": rows(layer["mlp.up_proj"]),
            "ffn_down": np.concatenate([layer["mlp.down_proj"], np.zeros((hidden, ffn - own))], axis=1)}.items()}
    vocab = config["vocab_size"]
    keys = {
        "general.architecture": "llama", "general.alignment": 32, "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": hidden, "llama.block_count": config["num_hidden_layers"], "llama.feed_forward_length": ffn,
        "llama.attention.head_count": heads, "llama.attention.head_count_kv": heads, "llama.rope.dimension_count": config["head_dim"],
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"], "llama.rope.freq_base": config["rope_theta"], "llama.vocab_size": vocab,
        # Tokens are passed as numbers; their texts are read only as bytes.
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + [f"t{i}" for i in range(259, vocab)],
        "tokenizer.ggml.scores": [0.0] * vocab, "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (vocab - 259),
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}
    info, data = b"", b""
    for name, value in out.items():
        as_kind, as_number = (np.float32, 0) if value.ndim == 1 else (kind, number)  # norms stay floats
        raw = np.ascontiguousarray(value, as_kind).tobytes()
        info += text(name) + value.ndim.to_bytes(4, "little") + b"".join(n.to_bytes(8, "little") for n in reversed(value.shape))
        info += as_number.to_bytes(4, "little") + len(data).to_bytes(8, "little")
        data += raw + bytes(-len(raw) % 32)
    head = b"GGUF" + (3).to_bytes(4, "little") + len(out).to_bytes(8, "little") + len(keys).to_bytes(8, "little")
    head += b"".join(entry(key, value) for key, value in keys.items()) + info
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def stop(message):
    print(f"llama_cpp: {message}", file=sys.stderr)
    sys.exit(2)


def called(*command):
    """Standard output of a command; a failure is reported with the command's own output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        stop(f"{command[0]} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def find_peer(modules):
    """The folder that has node-llama-cpp, and its version: the one installed now, else the folder's record."""
    own = Path("build/baselines/node_modules")
    locked = json.loads((LOCKED / "package.json").read_text())["dependencies"]
    if modules is None and not (own / "node-llama-cpp").is_dir():
        if shutil.which("npm") is None:
            stop("npm is not here (Debian package npm); or give --node-modules with node-llama-cpp in it")
        shutil.copytree(LOCKED, own.parent, dirs_exist_ok=True)
        called("npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--prefix", own.parent)
        return own.resolve(), [f"{name}@{version}" for name, version in sorted(locked.items(), reverse=True)]
    modules = modules or own
    package = modules / "node-llama-cpp" / "package.json"
    if not package.is_file():
        stop(f"{modules} has no node-llama-cpp")
    return modules.resolve(), [f"node-llama-cpp@{json.loads(package.read_text())['version']}"]


def at_least_1(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}, where at least 1 is wanted")
    return int(text)


def ours(program, precision, folder, tokens):
    """Milliseconds by (context, tokens), the neurons of a widened layer, and the manifest."""
    prompts = folder / "prompts.jsonl"
    prompts.write_text(Path("tests/data/prompts/calibration.jsonl").read_text().splitlines()[0] + "\n")
    out = folder / "specsim"
    called(program, "calibrate", "--target", TARGET, "--draft", DRAFT, "--prompts", prompts, "--threads", "1", "--precision", precision,
           "--widen", WIDEN_MIB if precision == "f32" else WIDEN_MIB // 2, "--temperatures", "0", "--batches", "1", "--draft-lengths",
           ",".join(str(n - 1) for n in tokens if n > 1), "--tokens", "4", "--repetitions", "7", "--out", out)
    with open(out / "passes.csv", encoding="utf-8") as file:
        passes = {(int(row["context"]), int(row["tokens"])): float(row["ms"]) for row in csv.DictReader(file) if row["model"] == "target"}
    manifest = (out / "manifest.yaml").read_text()
    return passes, int(manifest.split("target_shape: {")[1].split("ffn: ")[1].split(",")[0]), manifest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rounds", type=at_least_1, default=5)
    parser.add_argument("--node-modules", type=Path)
    options = parser.parse_args()
    if shutil.which(options.program) is None:
        stop(f"{options.program} is no program that can be run")
    if shutil.which("node") is None:
        stop("node is not here (Debian package nodejs)")
    modules, packages = find_peer(options.node_modules)
    config = json.loads((TARGET / "config.json").read_text())
    tensors = read_tensors(TARGET / "model.safetensors")
    prompt = next(case["tokens"] for case in json.loads(Path("tests/data/llm_golden.json").read_text()) if case["model"] == TARGET.name)
    argmax = logits(TARGET, prompt).argmax(-1).tolist()
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for precision in PRECISIONS:
            gguf = folder / f"{precision}.gguf"
            times = {"specsim": {}, "llama.cpp": {}}
            for _ in range(options.rounds):
                passes, ffn, manifest = ours(options.program, precision, folder, TOKENS)
                if not gguf.exists():
                    write_gguf(gguf, config, tensors, ffn, precision)
                request = {"contexts": sorted({context for context, _ in passes}), "tokens": TOKENS, "repetitions": 7, "vocab": config["vocab_size"],
                           "prompt": prompt}
                (folder / "request.json").write_text(json.dumps(request))
                answer = json.loads(called("node", "scripts/results/llama_cpp.mjs", gguf, folder / "request.json", modules).splitlines()[-1])
                if answer["argmax"] != argmax:
                    stop(f"argmaxes {answer['argmax']}, not {argmax}: another model")
                for key, ms in passes.items():
                    times["specsim"].setdefault(key, []).append(ms)
                for key, samples in answer["ms"].items():
                    times["llama.cpp"].setdefault(tuple(map(int, key.split())), []).append(statistics.median(samples))
            for key in sorted(times["llama.cpp"]):
                own, other = (statistics.median(times[who][key]) for who in ("specsim", "llama.cpp"))
                ratios = [a / b for a, b in zip(times["specsim"][key], times["llama.cpp"][key])]  # one for each round of timing
                lines.append([precision, *key, f"{own:.3f}", f"{other:.3f}", f"{own / other:.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}"])
                print(*lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "llama_cpp.csv", "w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([["precision", "context", "tokens", "specsim_ms", "llama_cpp_ms", "ratio", "ratio_least", "ratio_most"], *lines])
    kept = [line for line in manifest.splitlines() if line.split(":")[0] in ("specsim", "commit", "machine")]
    (options.out / "manifest.yaml").write_text("\n".join([
        f"command: {json.dumps(shlex.join(sys.argv))}", *kept,
        f'date: "{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"', f"packages: {json.dumps(packages)}", "threads: 1", ""]))


if __name__ == "__main__":
    main()
