#!/usr/bin/python3
"""Logits of a Llama-architecture model in float64 NumPy, written from the papers and the files alone: the reference for the C++ forward pass.

    scripts/golden/llm_golden.py    writes tests/data/llm_golden.json and the tiny random models of tests/data/models

Prompts are encoded by spm_encode (Debian package sentencepiece).
"""
import json
import subprocess
from pathlib import Path

import numpy as np

MODELS = Path("tests/data/models")
PROMPTS = {
    "novels-5m": ["And it came to pass in those days, that there went out a decree", "def read(self, size=-1): return self.buffer[:size]"],
    "novels-0.7m-distilled": ["And the LORD spake unto Moses, saying,"],
}
TINY = {
    # Every key that the trained family does not use: grouped heads, biases, separate LM head, scaled positions.
    "tiny-qwen": ("F32", dict(model_type="qwen2", hidden_size=24, intermediate_size=50, num_hidden_layers=2, num_attention_heads=6,
                              num_key_value_heads=2, head_dim=6, vocab_size=40, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=1e6,
                              hidden_act="silu", tie_word_embeddings=False, rope_scaling={"rope_type": "linear", "factor": 4.0}, bos_token_id=1)),
    "tiny-llama3": ("BF16", dict(model_type="llama", hidden_size=32, intermediate_size=70, num_hidden_layers=3, num_attention_heads=4,
                                 num_key_value_heads=1, head_dim=20, vocab_size=50, max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=5e5,
                                 hidden_act="silu", tie_word_embeddings=True, bos_token_id=0,
                                 rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                               "original_max_position_embeddings": 16})),
    # In transformers 5's form: the rotary base within rope_parameters.
    "tiny-qwen3": ("F32", dict(model_type="qwen3", hidden_size=24, intermediate_size=50, num_hidden_layers=2, num_attention_heads=4,
                               num_key_value_heads=2, head_dim=10, vocab_size=40, max_position_embeddings=64, rms_norm_eps=1e-6, hidden_act="silu",
                               tie_word_embeddings=False, rope_parameters={"rope_theta": 1e6, "rope_type": "default"}, bos_token_id=None,
                               attention_bias=False, sliding_window=None, use_sliding_window=False, layer_types=["full_attention"] * 2)),
    "tiny-gemma": ("BF16", dict(model_type="gemma", hidden_size=32, intermediate_size=70, num_hidden_layers=2, num_attention_heads=4,
                                num_key_value_heads=1, head_dim=12, vocab_size=50, max_position_embeddings=64, rms_norm_eps=1e-6,
                                hidden_act="gelu_pytorch_tanh", rope_parameters={"rope_theta": 1e4, "rope_type": "default"}, bos_token_id=2)),
}


def read_tensors(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = raw[8 + size + begin:8 + size + end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data, {"F16": "<f2", "F32": "<f4"}[entry["dtype"]])
        tensors[name] = values.astype(np.float64).reshape(entry["shape"])
    return tensors


def frequencies(config, width):
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = scaling.get("rope_theta", config.get("rope_theta", 10000.0)) ** (-np.arange(0, width, 2) / width)
    kind = scaling.get("rope_type", "default")
    if kind == "linear":
        return base / scaling["factor"]
    if kind == "llama3":
        wavelength = 2 * np.pi / base
        trained = scaling["original_max_position_embeddings"]
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        smooth = (trained / wavelength - low) / (high - low)
        blended = (1 - smooth) * base / scaling["factor"] + smooth * base
        return np.where(wavelength > trained / low, base / scaling["factor"], np.where(wavelength < trained / high, base, blended))
    return base


def logits(directory, tokens):
    return forward(json.loads((directory / "config.json").read_text()), read_tensors(directory / "model.safetensors"), tokens)


def forward(config, w, tokens):
    gemma = config["model_type"] == "gemma"
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    width = config.get("head_dim") or config["hidden_size"] // heads
    n = len(tokens)
    angles = np.outer(np.arange(n), frequencies(config, width))
    cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]

    def norm(x, weight):
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + config["rms_norm_eps"]) * (weight + gemma)

    def activation(x):
        if gemma:
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
        return x / (1 + np.exp(-x))

    def rotate(x):
        a, b = x[..., :width // 2], x[..., width // 2:]
        return np.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1)

    x = w["model.embed_tokens.weight"][tokens] * (np.sqrt(config["hidden_size"]) if gemma else 1.0)
    hidden_future = np.triu(np.full((n, n), -np.inf), 1)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        h = norm(x, w[at + "input_layernorm.weight"])

        def project(name, count):
            y = h @ w[f"{at}self_attn.{name}_proj.weight"].T + w.get(f"{at}self_attn.{name}_proj.bias", 0.0)
            y = y.reshape(n, count, width)
            return norm(y, w[f"{at}self_attn.{name}_norm.weight"]) if config["model_type"] == "qwen3" and name != "v" else y
        q, k, v = rotate(project("q", heads)), rotate(project("k", kv_heads)), project("v", kv_heads)
        out = np.empty((n, heads, width))
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = q[:, head] @ k[:, group].T / np.sqrt(width) + hidden_future
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = scores / scores.sum(-1, keepdims=True) @ v[:, group]
        x = x + out.reshape(n, -1) @ w[at + "self_attn.o_proj.weight"].T
        h = norm(x, w[at + "post_attention_layernorm.weight"])
        gate = h @ w[at + "mlp.gate_proj.weight"].T
        x = x + (activation(gate) * (h @ w[at + "mlp.up_proj.weight"].T)) @ w[at + "mlp.down_proj.weight"].T
    head = w["model.embed_tokens.weight" if config.get("tie_word_embeddings", gemma) else "lm_head.weight"]
    return norm(x, w["model.norm.weight"]) @ head.T


def write_tiny(name, precision, config):
    random = np.random.default_rng(len(name))
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    queries, keys = config["num_attention_heads"] * config["head_dim"], config["num_key_value_heads"] * config["head_dim"]
    shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not config.get("tie_word_embeddings", config["model_type"] == "gemma"):
        shapes["lm_head.weight"] = (vocab, hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        shapes |= {at + "input_layernorm.weight": (hidden,), at + "post_attention_layernorm.weight": (hidden,),
                   at + "mlp.gate_proj.weight": (ffn, hidden), at + "mlp.up_proj.weight": (ffn, hidden), at + "mlp.down_proj.weight": (hidden, ffn),
                   at + "self_attn.o_proj.weight": (hidden, queries)}
        for letter, rows in (("q", queries), ("k", keys), ("v", keys)):
            shapes[f"{at}self_attn.{letter}_proj.weight"] = (rows, hidden)
            if config["model_type"] == "qwen2":
                shapes[f"{at}self_attn.{letter}_proj.bias"] = (rows,)
            if config["model_type"] == "qwen3" and letter != "v":
                shapes[f"{at}self_attn.{letter}_norm.weight"] = (config["head_dim"],)
    header, data = {}, b""
    for tensor, shape in sorted(shapes.items()):
        scale = 0.5 if len(shape) == 1 else 1.5 / np.sqrt(shape[1])
        values = random.normal(float(tensor.endswith("norm.weight") and config["model_type"] != "gemma"), scale, shape).astype("<f4")
        raw = values.tobytes() if precision == "F32" else (values.view("<u4") >> 16).astype("<u2").tobytes()
        header[tensor] = {"dtype": precision, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    folder = MODELS / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def main():
    cases = []
    for name, prompts in PROMPTS.items():
        for prompt in prompts:
            run = subprocess.run(["spm_encode", f"--model={MODELS / name / 'tokenizer.model'}", "--output_format=id"], input=prompt,
                                 capture_output=True, text=True, check=True)
            cases.append((name, [1] + [int(i) for i in run.stdout.split()]))
    for name, (precision, config) in TINY.items():
        write_tiny(name, precision, config)
        cases.append((name, [int(i) for i in np.random.default_rng(5).integers(0, config["vocab_size"], 40)]))
    golden = []
    for name, tokens in cases:
        rows = logits(MODELS / name, tokens)
        step = max(1, rows.shape[1] // 64)
        golden.append({"model": name, "tokens": tokens, "step": step,
                       "rows": [{"row": r, "logits": [float(f"{x:.10g}") for x in rows[r, ::step]]} for r in sorted({0, 1, len(tokens) // 2, len(tokens) - 1})]})
    Path("tests/data/llm_golden.json").write_text("[" + ",\n ".join(json.dumps(case) for case in golden) + "]\n")


if __name__ == "__main__":
    main()
