#!/usr/bin/python3
"""Small GGUF files, written from the public description of the format, and the float64 logits that they must give.

    scripts/golden/gguf_golden.py    writes tests/data/models/tiny-*.gguf and tests/data/gguf_golden.json

tiny-qwen.gguf and tiny-llama3.gguf are the safetensors models of the same names, number for number. tiny-mixed.gguf has a tensor in each format
of quantised blocks; its logits are those of the blocks' values. The packers search no better scales than the range of a block gives.
"""
import json
import struct
from pathlib import Path

import numpy as np

from llm_golden import MODELS, TINY, forward, frequencies, read_tensors

TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "BF16": 30}


def halves(x):
    return x.astype("<f2").tobytes()


def pack_q4_0(block):
    d = np.float16(np.abs(block).max() / 7)
    q = np.clip(np.round(block / np.float32(d)) + 8, 0, 15).astype(np.uint8)
    return halves(d) + (q[:16] | q[16:] << 4).tobytes(), np.float32(d) * (q.astype(np.float32) - 8)


def pack_q8_0(block):
    d = np.float16(np.abs(block).max() / 127)
    q = np.clip(np.round(block / np.float32(d)), -127, 127).astype(np.int8)
    return halves(d) + q.tobytes(), np.float32(d) * q.astype(np.float32)


def pack_k(block, bits):
    """Q4_K and Q5_K: 8 parts of 32 values, each d scale q - m minimum with six bits for scale and minimum."""
    parts = block.reshape(8, 32)
    low = np.minimum(parts.min(1), 0)
    step = (parts.max(1) - low) / (2 ** bits - 1)
    d, m = np.float16(step.max() / 63), np.float16(-low.min() / 63)
    scale = np.round(step / np.float32(d)).astype(np.uint8)
    minimum = np.round(-low / np.float32(m)).astype(np.uint8)
    steps, offsets = np.float32(d) * scale.astype(np.float32), np.float32(m) * minimum.astype(np.float32)
    q = np.clip(np.round((parts + offsets[:, None]) / np.maximum(steps, 1e-12)[:, None]), 0, 2 ** bits - 1).astype(np.uint8)
    packed = np.zeros(12, np.uint8)
    packed[0:4] = scale[:4] | scale[4:] >> 4 << 6
    packed[4:8] = minimum[:4] | minimum[4:] >> 4 << 6
    packed[8:12] = scale[4:] & 15 | (minimum[4:] & 15) << 4
    high = b""
    if bits == 5:
        high = np.bitwise_or.reduce((q >> 4) << np.arange(8, dtype=np.uint8)[:, None], 0).astype(np.uint8).tobytes()
    low_bits = b"".join((q[2 * i] & 15 | (q[2 * i + 1] & 15) << 4).tobytes() for i in range(4))
    return halves(d) + halves(m) + packed.tobytes() + high + low_bits, (steps[:, None] * q - offsets[:, None]).reshape(-1)


def pack_q6_k(block):
    parts = block.reshape(16, 16)
    step = np.abs(parts).max(1) / 31
    d = np.float16(step.max() / 127)
    scale = np.round(step / np.float32(d)).astype(np.int8)
    steps = np.float32(d) * scale.astype(np.float32)
    q = np.clip(np.round(parts / np.maximum(steps, 1e-12)[:, None]), -32, 31).astype(np.int8)
    u = (q.reshape(2, 4, 32) + 32).astype(np.uint8)
    low = b"".join((u[h, 0] & 15 | (u[h, 2] & 15) << 4).tobytes() + (u[h, 1] & 15 | (u[h, 3] & 15) << 4).tobytes() for h in range(2))
    high = b"".join((u[h, 0] >> 4 | u[h, 1] >> 4 << 2 | u[h, 2] >> 4 << 4 | u[h, 3] >> 4 << 6).tobytes() for h in range(2))
    return low + high + scale.tobytes() + halves(d), (steps[:, None] * q).reshape(-1)


PACKERS = {"Q4_0": (32, pack_q4_0), "Q8_0": (32, pack_q8_0), "Q4_K": (256, lambda b: pack_k(b, 4)), "Q5_K": (256, lambda b: pack_k(b, 5)),
           "Q6_K": (256, pack_q6_k)}


def pack(values, kind):
    """The tensor's bytes, and the values that they represent."""
    values = values.astype(np.float32)
    if kind == "F32":
        return values.tobytes(), values
    if kind == "F16":
        return halves(values), values.astype(np.float16).astype(np.float32)
    if kind == "BF16":
        kept = values.view(np.uint32) >> 16
        return kept.astype("<u2").tobytes(), (kept << 16).view(np.float32)
    size, packer = PACKERS[kind]
    blocks = [packer(block) for block in values.reshape(-1, size)]
    return b"".join(raw for raw, _ in blocks), np.concatenate([kept for _, kept in blocks]).reshape(values.shape)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def value(x):
    if isinstance(x, bool):
        return struct.pack("<IB", 7, x)
    if isinstance(x, int):
        return struct.pack("<II", 4, x)
    if isinstance(x, float):
        return struct.pack("<If", 6, x)
    if isinstance(x, str):
        return struct.pack("<I", 8) + text(x)
    return struct.pack("<IIQ", 9, 8 if isinstance(x[0], str) else 4, len(x)) + b"".join(value(item)[4:] for item in x)


NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down"}


def gguf_name(name):
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight", "model.norm.weight": "output_norm.weight"}
    if name in fixed:
        return fixed[name]
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    stem, end = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[stem]}.{end}"


def interleaved(rows, heads):
    """llama.cpp's order of a head's rows in architecture llama: the two halves alternate, for a rotary embedding of neighbours."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def write(name, config, tensors, kinds, extra):
    """Returns the tensors as a reader gets them."""
    architecture = {"qwen2": "qwen2", "llama": "llama"}[config["model_type"]]
    metadata = {"general.architecture": architecture, "general.name": name, **{f"{architecture}.{key}": x for key, x in {
        "embedding_length": config["hidden_size"], "block_count": config["num_hidden_layers"], "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"], "feed_forward_length": config["intermediate_size"],
        "context_length": config["max_position_embeddings"], "attention.key_length": config["head_dim"], "attention.value_length": config["head_dim"],
        "rope.dimension_count": config["head_dim"], "rope.freq_base": float(config["rope_theta"]),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]), **extra}.items()}, "tokenizer.ggml.bos_token_id": config["bos_token_id"]}
    stored, kept = {}, {}
    for tensor, values in tensors.items():
        kind = kinds(tensor) if values.ndim == 2 else "F32"
        raw, kept[tensor] = pack(values, kind)
        for part, heads in (("q_proj.weight", "num_attention_heads"), ("k_proj.weight", "num_key_value_heads")):
            if architecture == "llama" and tensor.endswith(part):
                raw = pack(interleaved(kept[tensor], config[heads]), kind)[0] if kind in ("F32", "F16", "BF16") else interleaved(
                    np.frombuffer(raw, np.uint8).reshape(len(values), -1), config[heads]).tobytes()
        stored[gguf_name(tensor)] = (kind, values.shape, raw)
    if config.get("rope_scaling", {}).get("rope_type") == "llama3":
        plain = {**config, "rope_scaling": None}
        factors = (frequencies(plain, config["head_dim"]) / frequencies(config, config["head_dim"])).astype("<f4")
        stored["rope_freqs.weight"] = ("F32", factors.shape, factors.tobytes())
    header = b"GGUF" + struct.pack("<IQQ", 3, len(stored), len(metadata)) + b"".join(text(key) + value(x) for key, x in metadata.items())
    data = b""
    for tensor, (kind, shape, raw) in stored.items():
        header += text(tensor) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", TYPES[kind], len(data))
        data += raw + bytes(-len(raw) % 32)
    (MODELS / f"{name}.gguf").write_bytes(header + bytes(-len(header) % 32) + data)
    return kept


def main():
    qwen, llama = TINY["tiny-qwen"][1], TINY["tiny-llama3"][1]
    write("tiny-qwen", qwen, read_tensors(MODELS / "tiny-qwen/model.safetensors"), lambda _: "F32",
          {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
    write("tiny-llama3", llama, read_tensors(MODELS / "tiny-llama3/model.safetensors"), lambda _: "BF16", {})
    mixed = dict(model_type="llama", hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                 head_dim=32, vocab_size=40, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=1e4, bos_token_id=1, tie_word_embeddings=True)
    kinds = {"embed_tokens": "Q8_0", "q_proj": "Q4_0", "k_proj": "Q8_0", "v_proj": "Q6_K", "o_proj": "F16", "gate_proj": "Q4_K", "up_proj": "Q5_K",
             "down_proj": "Q6_K"}
    random = np.random.default_rng(7)
    at, tensors = "model.layers.0.", {}
    for name, shape in {"model.embed_tokens.weight": (40, 256), "model.norm.weight": (256,), at + "input_layernorm.weight": (256,),
                        at + "post_attention_layernorm.weight": (256,), at + "self_attn.q_proj.weight": (64, 256),
                        at + "self_attn.k_proj.weight": (32, 256), at + "self_attn.v_proj.weight": (32, 256),
                        at + "self_attn.o_proj.weight": (256, 64), at + "mlp.gate_proj.weight": (256, 256), at + "mlp.up_proj.weight": (256, 256),
                        at + "mlp.down_proj.weight": (256, 256)}.items():
        tensors[name] = random.normal(float(len(shape) == 1), 1.5 / np.sqrt(shape[-1]), shape).astype("<f4")
    kept = write("tiny-mixed", mixed, tensors, lambda tensor: kinds[tensor.split(".")[-2]], {})
    worst = max(np.abs(kept[name] - tensors[name]).max() / np.abs(tensors[name]).max() for name in tensors)
    assert worst < 0.15, worst  # the packers are right: a block's values are near the original ones
    tokens = [int(i) for i in random.integers(0, 40, 20)]
    rows = forward(mixed, {name: x.astype(np.float64) for name, x in kept.items()}, tokens)
    case = {"model": "tiny-mixed.gguf", "tokens": tokens, "step": 1,
            "rows": [{"row": r, "logits": [float(f"{x:.10g}") for x in rows[r]]} for r in (0, 10, 19)]}
    Path("tests/data/gguf_golden.json").write_text("[" + json.dumps(case) + "]\n")


if __name__ == "__main__":
    main()
