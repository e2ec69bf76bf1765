#!/usr/bin/python3
"""Every server command of the presets is one that its engine reads, and whose memory rule lets it start.

The hidden case [.commands] of the unit tests writes the commands of all targets, drafts and engines on several GPUs, with and without
speculation; specsim plan and specsim choose print those of the deployments below. Each is read by a model of its engine's argument parser (tests/data/servers/arguments.yaml: names,
types, allowed words, combinations), and the memory that it asks for is computed here from the preset's file. Mutants that must be
refused: a misspelt flag, a word for a number, a method that does not exist, a table with a gap, a context that does not fit, a context
below the model's own where that fits, a table that the engine drops or pays for, a split that llama.cpp refuses, a GPU without a server.

Runs at the root of the repository; SPECSIM names the program and SPECSIM_TESTS_UNIT the test program.
"""
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, "tests/support")
from program import expect, finish, run  # noqa: E402

UNIT = os.path.abspath(os.environ.get("SPECSIM_TESTS_UNIT", "build/specsim_tests_unit"))
ENGINES = yaml.safe_load(Path("tests/data/servers/arguments.yaml").read_text(encoding="utf-8"))
PATH = "MODELPATH"
GGUF = "MODELPATH.gguf"
# Deployments whose printed commands did not start when a user tried them.
DEPLOYMENTS = [
    (["--hardware", "h200-sxm", "--target", "{preset: deepseek-v3, expert_parallel: 8}", "--draft", "mtp", "--batch", "16"],
     {"vLLM": ["--data-parallel-size 8", "--enable-expert-parallel"], "SGLang": ["--tp 8 --dp 8 --enable-dp-attention --ep 8"],
      "llama.cpp": None, "TensorRT-LLM": ["enable_attention_dp: true", "--ep_size 8"]}),
    (["--hardware", "rtx-3090", "--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b", "--batch", "1"],
     {"vLLM": ["--max-model-len"], "llama.cpp": ["--ctx-size"]}),
    # The model's own context fits: no flag, which would refuse longer requests ("!": absent).
    (["--hardware", "b300", "--target", "mistral-small-24b", "--draft", "none"], {"vLLM": ["!--max-model-len"], "TensorRT-LLM": ["!--max_seq_len"]}),
    (["--hardware", "h200-sxm", "--target", "llama-3.3-70b", "--tensor-parallel", "2", "--draft", "none"], {"vLLM": ["!--max-model-len"], "llama.cpp": ["--ctx-size 131072"]}),
    (["--hardware", "rtx-3090", "--target", "llama-3-8b", "--draft", "none"], {"vLLM": ["!--max-model-len"], "llama.cpp": ["--ctx-size 8192"]}),
    (["--hardware", "h200-sxm", "--target", "{preset: qwen3-8b, context: 0}", "--draft", "none"], {"vLLM": ["!--max-model-len"]}),
    (["--hardware", "h200-sxm", "--target", "gemma-4-31b", "--draft", "gemma-4-31b-assistant"],
     {"vLLM": ['"method": "mtp", "model": "<path of gemma-4-31b-assistant>"'], "SGLang": ["--speculative-algorithm NEXTN --speculative-draft-model-path"],
      "llama.cpp": ["--spec-type draft-mtp --model-draft"], "TensorRT-LLM": ["decoding_type: MTP, speculative_model"]}),
    (["--hardware", "h200-sxm", "--target", "deepseek-v3", "--tensor-parallel", "8", "--draft", "none"], {"vLLM": ["--tensor-parallel-size 8"], "llama.cpp": None}),
    (["--hardware", "h100-sxm", "--target", "gemma-3-12b", "--draft", "gemma-3-1b"], {"vLLM": None, "SGLang": None, "llama.cpp": ["draft-simple"]}),
    (["--hardware", "tpu-v4", "--target", "llama-3.2-1b", "--draft", "none"], {"vLLM": None, "SGLang": None, "llama.cpp": None, "TensorRT-LLM": None}),
    (["--hardware", "apple-m4-max", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b"], {"vLLM": None, "SGLang": None, "llama.cpp": ["--model"], "TensorRT-LLM": None}),
    (["--hardware", "v100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b"], {"vLLM": None, "SGLang": None, "llama.cpp": ["--model"], "TensorRT-LLM": None}),
    (["--hardware", "mi300x", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b"], {"vLLM": ["vllm serve"], "llama.cpp": ["--model"], "TensorRT-LLM": None}),
    (["--hardware", "h100-sxm", "--target", "qwen3-14b", "--draft", "qwen3-0.6b", "--dtype", "q4_k_m"],
     {"vLLM": ["<path of qwen3-14b.gguf with", "--tokenizer <path of qwen3-14b>"], "SGLang": ["--load-format gguf --speculative-draft-load-format auto"],
      "llama.cpp": ["draft-simple"], "TensorRT-LLM": None}),
    (["--hardware", "h100-sxm", "--target", "qwen3-14b", "--draft", "qwen3-0.6b", "--dtype", "fp8"], {"vLLM": ["!.gguf"], "llama.cpp": None}),
    (["--hardware", "h200-sxm", "--target", "minimax-m2", "--tensor-parallel", "8", "--draft", "none"],
     {"vLLM": ["--tensor-parallel-size 8 --enable-expert-parallel"], "SGLang": ["--tp 8 --ep 8"], "TensorRT-LLM": ["--tp_size 8 --ep_size 8"]}),
    (["--hardware", "h200-sxm", "--target", "minimax-m2", "--tensor-parallel", "4", "--draft", "none"], {"vLLM": ["!expert-parallel"], "SGLang": ["!--ep"]}),
    *((["--hardware", "h200-sxm", "--target", target, "--dtype", "fp8_block", "--tensor-parallel", gpus, "--draft", "none"],
       {"vLLM": ["--enable-expert-parallel"], "SGLang": [f"--ep {gpus}"]})
      for target, gpus in (("qwen3-235b-a22b", "8"), ("qwen3-coder-480b-a35b", "8"), ("qwen3-30b-a3b", "4"), ("qwen3.8-flash-next", "4"))),
    (["--hardware", "h100-sxm", "--target", "deepseek-v3", "--tensor-parallel", "16", "--draft", "none"],
     {"vLLM": ["--nnodes 2 --node-rank 0 --master-addr <address of machine 0>", "((it runs on 2 machines with 8 GPUs each", "(--node-rank N --headless)"],
      "SGLang": ["--nnodes 2 --node-rank 0 --dist-init-addr <address of machine 0>:5000", "(with --node-rank N)"], "llama.cpp": None,
      "TensorRT-LLM": ["--tp_size 16", "(srun --nodes 2 --ntasks-per-node 8 --mpi pmix trtllm-llmapi-launch"]}),
    (["--hardware", "gb200", "--target", "llama-3.1-70b", "--tensor-parallel", "8", "--draft", "none"], {"vLLM": ["--nnodes 2"], "SGLang": ["--nnodes 2"]}),
    (["--hardware", "gb200", "--target", "llama-3.1-70b", "--tensor-parallel", "4", "--draft", "none"], {"vLLM": ["!--nnodes"], "SGLang": ["!--nnodes"]}),
    (["--hardware", "h200-sxm", "--target", "{preset: deepseek-v3, expert_parallel: 16}", "--draft", "none"],
     {"vLLM": ["--data-parallel-size-local 8 --data-parallel-address <address of machine 0>", "(--headless --data-parallel-start-rank 8N"]}),
    *((["--hardware", "h200-sxm", "--target", target, "--tensor-parallel", "16", "--draft", "none"],
       {"vLLM": ["--trust-remote-code"], "SGLang": ["--trust-remote-code"]}) for target in ("kimi-k2", "kimi-k2.5")),
    (["--hardware", "h100-sxm", "--target", "phi-4", "--tensor-parallel", "4", "--draft", "none"], {"vLLM": None, "SGLang": None, "TensorRT-LLM": None}),
    (["--hardware", "h100-sxm", "--target", "phi-4", "--tensor-parallel", "2", "--draft", "none"], {"vLLM": ["--tensor-parallel-size 2"]}),
    (["--hardware", "mi300x", "--target", "qwen3-8b", "--draft", "none"], {"vLLM": ['"method": "ngram"'], "SGLang": None}),
    (["--hardware", "mi300x", "--target", "qwen3-8b", "--draft", "dspark-qwen3-8b"], {"vLLM": ['"method": "dspark"'], "SGLang": None}),
    (["--hardware", "arc-pro-b60", "--target", "qwen3-8b", "--draft", "dspark-qwen3-8b"], {"SGLang": None}),
    (["--hardware", "h100-sxm", "--target", "llama-3.1-70b", "--tensor-parallel", "4", "--draft", "llama-3.2-1b", "--batch", "16"],
     {"vLLM": ["--tensor-parallel-size 4"], "SGLang": ["--tp 4"], "llama.cpp": ["--split-mode tensor"], "TensorRT-LLM": ["--tp_size 4"]}),
]


class Refused(Exception):
    pass


def check_value(name, rule, value):
    kind = rule["type"]
    try:
        if kind == "int" and not (isinstance(value, int) and not isinstance(value, bool) if not isinstance(value, str) else re.fullmatch(r"-?\d+", value)):
            raise ValueError
        if kind == "number":
            float(value)
        if kind == "bool" and not isinstance(value, bool):
            raise ValueError
        if kind == "map" and not isinstance(value, dict):
            raise ValueError
    except ValueError:
        raise Refused(f"{name} is {value!r}, not {kind}") from None
    if kind == "path" and value not in (PATH, GGUF) and not str(value).endswith(".yaml"):
        raise Refused(f"{name} is {value!r}, no path")
    if "least" in rule and float(value) < rule["least"]:
        raise Refused(f"{name} is {value}, less than {rule['least']}")
    if "one_of" in rule and value not in rule["one_of"]:
        raise Refused(f"{name} is {value!r}, not one of {rule['one_of']}")


def check_keys(name, rules, values):
    for key, value in values.items():
        if key not in rules:
            raise Refused(f"{name} has no {key}")
        check_value(f"{name} {key}", rules[key], value)


def flags_of(engine, words):
    """{flag: value or None} and the words without a dash."""
    rules = ENGINES[engine]
    program = rules["program"]
    if words[:len(program)] != program:
        raise Refused(f"starts with {words[:len(program)]}, not {program}")
    flags, places = {}, []
    waiting = iter(words[len(program):])
    for word in waiting:
        if not word.startswith("--"):
            places.append(word)
            continue
        if word not in rules["arguments"]:
            raise Refused(f"no argument {word}")
        if word in flags:
            raise Refused(f"{word} twice")
        rule = rules["arguments"][word]
        flags[word] = None
        if rule["type"] != "none":
            flags[word] = next(waiting, None)
            if flags[word] is None:
                raise Refused(f"{word} has no value")
            if rule["type"] != "json":
                check_value(word, rule, flags[word])
    if len(places) != rules["places"] or any(place not in (PATH, GGUF) for place in places):
        raise Refused(f"words without a dash: {places}")
    for needed in rules.get("required", []):
        if needed not in flags:
            raise Refused(f"{needed} is missing")
    # Each engine's way to read a GGUF file: vLLM's plug-in wants a tokenizer, SGLang a format, TensorRT-LLM has none.
    model = places[0] if places else flags["--model" if engine == "llama.cpp" else "--model-path"]
    if model == GGUF and {"vLLM": "--tokenizer" not in flags, "SGLang": flags.get("--load-format") != "gguf", "TensorRT-LLM": True}.get(engine):
        raise Refused("a GGUF file")
    return flags


def check_vllm(flags, rules, environment):
    if "--enable-expert-parallel" in flags and int(flags.get("--data-parallel-size", 1)) * int(flags.get("--tensor-parallel-size", 1)) < 2:
        raise Refused("--enable-expert-parallel on one GPU")
    if "--speculative-config" not in flags:
        return 0
    config = json.loads(flags["--speculative-config"])
    check_keys("--speculative-config", rules["speculative"], config)
    if "num_speculative_tokens" not in config or "method" not in config:
        raise Refused("method or num_speculative_tokens is missing")
    if config["method"] == "ngram" if "model" in config else config["method"] not in rules["without_model"]:
        raise Refused(f"{config['method']} and its model")
    own = int(flags.get("--tensor-parallel-size", 1))
    # The draft is cut as the target is: DraftModelProposer._raise_if_draft_tp_mismatch.
    if config["method"] == "draft_model" and config.get("draft_tensor_parallel_size", own) != own:
        raise Refused("draft_tensor_parallel_size is not the target's")
    if config.get("draft_tensor_parallel_size", own) not in (1, own):
        raise Refused("draft_tensor_parallel_size is neither 1 nor the target's")
    if config["method"] == "ngram" and config["prompt_lookup_min"] > config["prompt_lookup_max"]:
        raise Refused("prompt_lookup_min is above prompt_lookup_max")
    # Without the second model runner the table costs full CUDA graphs; with data parallelism it is dropped.
    if "num_speculative_tokens_per_batch_size" in config and (environment.get("VLLM_USE_V2_MODEL_RUNNER") != "1" or int(flags.get("--data-parallel-size", 1)) > 1
                                                              or config["method"] not in rules["second_model_runner"]):
        raise Refused("a table that is dropped, or costs more than it gains")
    following = 1
    for start, end, length in config.get("num_speculative_tokens_per_batch_size", []):
        if start != following or end < start or not 0 <= length <= config["num_speculative_tokens"]:
            raise Refused(f"table: [{start}, {end}, {length}]")
        following = end + 1
    return config["num_speculative_tokens"]


def check_sglang(flags, rules):
    method = flags.get("--speculative-algorithm")
    model = "--speculative-draft-model-path" in flags
    if method and (model and method == "NGRAM" or not model and method not in rules["without_model"]):
        raise Refused(f"{method} and its model")
    tensor, data, experts = (int(flags.get(name, 1)) for name in ("--tp", "--dp", "--ep"))
    if tensor % data or tensor % experts:
        raise Refused("--tp is no multiple of --dp and --ep")
    if "--enable-dp-attention" in flags:
        if data < 2 or method in rules["not_with_dp_attention"]:
            raise Refused(f"--enable-dp-attention with --dp {data} and {method}")
        if method in rules["lm_head_with_dp_attention"] and "--enable-dp-lm-head" not in flags:
            raise Refused(f"{method} needs --enable-dp-lm-head")
    elif data > 1:
        raise Refused("--dp makes whole copies of the model without --enable-dp-attention")
    if method is None:
        return 0
    verified = int(flags.get("--speculative-num-draft-tokens", 0))
    if method in ("EAGLE", "EAGLE3", "STANDALONE", "NEXTN"):
        if flags.get("--speculative-eagle-topk") != "1" or verified != int(flags["--speculative-num-steps"]) + 1:
            raise Refused("with topk 1, --speculative-num-draft-tokens is --speculative-num-steps + 1")
        return verified - 1
    return int(flags["--speculative-dspark-block-size"]) if method == "DSPARK" else verified - 1


def check_llama(flags, rules):
    if ("--cache-type-k" in flags) != ("--cache-type-v" in flags):
        raise Refused("one cache type of two")
    if flags.get("--split-mode") == "tensor" and flags.get("--cache-type-k", "f16") not in ("f32", "f16", "bf16"):
        raise Refused("--split-mode tensor with a quantised cache")
    method = flags.get("--spec-type")
    if method is None:
        return 0
    if (method in rules["without_model"]) == ("--model-draft" in flags) and not ("--model-draft" in flags and method in rules["with_model_too"]):
        raise Refused(f"{method} and its model")
    return int(flags["--spec-ngram-simple-size-m"] if method == "ngram-simple" else flags["--spec-draft-n-max"])


def check_tensorrt(flags, rules, options):
    check_keys("options", rules["options"], options)
    tensor, experts = int(flags.get("--tp_size", 1)), int(flags.get("--ep_size", 1))
    if tensor % experts or (options.get("enable_attention_dp", False) and tensor < 2):
        raise Refused(f"--tp_size {tensor}, --ep_size {experts}")
    config = options.get("speculative_config")
    if config is None:
        return 0
    check_keys("speculative_config", rules["speculative"], config)
    if ("speculative_model" in config) and config["decoding_type"] == "NGram" or (
            "speculative_model" not in config and config["decoding_type"] not in rules["without_model"]):
        raise Refused(f"{config['decoding_type']} and its model")
    schedule = config.get("draft_len_schedule")
    if schedule is not None and (list(schedule) != sorted(schedule) or next(iter(schedule.values())) != config["max_draft_len"]):
        raise Refused(f"draft_len_schedule {schedule}")
    return config["max_draft_len"]


def read_command(engine, command):
    """The flags of a command, its draft length; throws Refused where the engine would."""
    command = command.replace("<address of machine 0>", "machine-0")
    command = re.sub(r"<path of ([^<>]*)>", lambda path: GGUF if ".gguf" in path.group(1) else PATH, command)
    options, environment = {}, {}
    while (setting := re.match(r"(\w+)=(\S+) ", command)):
        if setting.group(2) not in ENGINES[engine].get("environment", {}).get(setting.group(1), []):
            raise Refused(setting.group(0))
        environment[setting.group(1)] = setting.group(2)
        command = command[setting.end():]
    if engine == "TensorRT-LLM" and " && " in command:
        written, command = command.split(" && ")
        echo, text, to, file = shlex.split(written)
        if (echo, to) != ("echo", ">") or f"--extra_llm_api_options {file}" not in command:
            raise Refused(written)
        options = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    flags = flags_of(engine, shlex.split(command))
    rules = ENGINES[engine]
    if engine == "TensorRT-LLM":
        return flags, check_tensorrt(flags, rules, options)
    if engine == "vLLM":
        return flags, check_vllm(flags, rules, environment)
    return flags, {"SGLang": check_sglang, "llama.cpp": check_llama}[engine](flags, rules)


@functools.cache
def presets():
    """The descriptions of models by each of their names."""
    names = {}
    for path in Path("configs/models").glob("*.yaml"):
        shape = yaml.safe_load(path.read_text(encoding="utf-8"))
        names[path.stem] = shape
        for alias in shape.get("aliases", []):
            names[alias] = {**shape, "context": shape.get("alias_contexts", {}).get(alias, shape.get("context", 0))}
    return names


def described(model):
    return presets()[model]


@functools.cache
def plain(model):
    """The description of a dense model with one kind of attention, computed here; None for others."""
    shape = described(model) if model != "none" else {}
    known = {"name", "aliases", "source", "context", "alias_contexts", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "gated", "vocab", "tied_embeddings"}
    return shape if shape and set(shape) <= known else None


def weights(shape):
    attention = shape["hidden"] * shape["head_dim"] * (2 * shape["heads"] + 2 * shape["kv_heads"])
    dense = shape["hidden"] * shape["ffn"] * (3 if shape.get("gated", True) else 2)
    return 2 * (shape["layers"] * (attention + dense) + shape["vocab"] * shape["hidden"] * (1 if shape.get("tied_embeddings") else 2))


def cache(shape, tokens):
    return 2 * 2 * shape["layers"] * shape["kv_heads"] * shape["head_dim"] * tokens


def check_memory(line, flags):
    """The engine's memory rule, for plain models in 16 bits: what a server keeps when it starts, of the GPU's memory. vLLM has
    gpu_memory_utilization 0.92, SGLang's mem_fraction_static is at most 0.95, TensorRT-LLM caches in 0.9 of what weights leave."""
    target, draft = plain(line["target"]), plain(line["draft"])
    if target is None or (draft is None and line["draft"] != "none"):
        return False
    known = {"vLLM": "--max-model-len", "llama.cpp": "--ctx-size", "TensorRT-LLM": "--max_seq_len"}
    tokens = float(flags.get(known.get(line["engine"], ""), None) or line["context"])
    kept = weights(target) / line["tensor_parallel"] + (weights(draft) if draft else 0)
    cached = cache(target, tokens) / line["tensor_parallel"] + (cache(draft, tokens) if draft else 0)
    share = {"vLLM": 0.92, "SGLang": 0.95, "llama.cpp": 0.92, "TensorRT-LLM": 1.0}[line["engine"]]
    asked = kept + cached / (0.9 if line["engine"] == "TensorRT-LLM" else 1.0)
    if asked > share * line["gpu_bytes"]:
        raise Refused(f"{asked / 2**30:.1f} GiB on a GPU of {line['gpu_bytes'] / 2**30:.1f} GiB")
    # A flag below the model's own context is only for a cache that does not hold that: here far from it, since servers set more aside.
    own = target.get("context")
    if line["engine"] in ("vLLM", "TensorRT-LLM") and known[line["engine"]] in flags and own and tokens < own:
        whole = kept + (cache(target, own) / line["tensor_parallel"] + (cache(draft, own) if draft else 0))
        if whole < 0.75 * line["gpu_bytes"]:
            raise Refused(f"{known[line['engine']]} {tokens:.0f} for a context of {own}, which fits")
    return True


def check_split(line, flags, rules):
    """How the target is divided over GPUs and machines."""
    engine, target = line["engine"], described(line["target"])
    tensor, machines = line["tensor_parallel"], -(-line["tensor_parallel"] * line["expert_parallel"] // line["machine_gpus"])
    for model in (target, described(line["draft"])) if line["draft"] != "none" else (target,):
        heads = 1 if {"latent", "one_vector", "prediction_heads"} & set(model) else model["kv_heads"]
        if rules.get("equal_heads") and heads % tensor and tensor % heads:
            raise Refused(f"{heads} key and value heads over {tensor} GPUs")
    types = target.get("dtype", "")
    blocks = (types if isinstance(types, str) else types.get("experts", types.get("weights"))) == "fp8_block"
    whole = "--enable-expert-parallel" in flags or int(flags.get("--ep", flags.get("--ep_size", 1))) > 1
    if "expert_block" in rules and blocks and target.get("experts") and not whole and target["expert_ffn"] // int(tensor) % rules["expert_block"]:
        raise Refused("a slice of an expert cuts blocks of scales")
    if "own_code" in rules and line["target"] in rules["own_code"]["targets"] and rules["own_code"]["flag"] not in flags and ".gguf" not in line["command"]:
        raise Refused("code of the repository")
    if engine == "llama.cpp" and machines > 1:
        raise Refused("several machines")
    if engine == "SGLang" and int(flags.get("--nnodes", 1)) != machines:
        raise Refused(f"{machines} machines")
    if engine == "vLLM" and machines > 1:
        local = line["expert_parallel"] / int(flags["--data-parallel-size-local"]) if line["expert_parallel"] > 1 else int(flags["--nnodes"])
        if local != machines or not ("--master-addr" in flags or "--data-parallel-address" in flags):
            raise Refused(f"{machines} machines")


def check_line(line):
    flags, length = read_command(line["engine"], line["command"])
    rules = ENGINES[line["engine"]]
    check_split(line, flags, rules)
    if flags.get("--speculative-algorithm") in rules.get("nvidia_only", []) and line["gpu"] in ("mi300x", "arc-pro-b60"):
        raise Refused(f"{flags['--speculative-algorithm']} on {line['gpu']}")
    if line["gpu"] in rules.get("no_server_on", []):
        raise Refused(f"no server on {line['gpu']}")
    if flags.get("--split-mode") == "tensor" and line["target"] in rules["no_tensor_split"]:
        raise Refused(f"--split-mode tensor for {line['target']}")
    method = json.loads(flags.get("--speculative-config") or "{}").get("method", flags.get("--speculative-algorithm"))
    if method in rules.get("equal_vocabularies", []) and described(line["target"])["vocab"] != described(line["draft"])["vocab"]:
        raise Refused("unequal vocabularies")
    if "--max-model-len" in flags and not described(line["target"]).get("context"):
        raise Refused("--max-model-len for a model whose own context is not known")
    if length != line["draft_length"]:
        raise Refused(f"drafts {length} tokens, {line['draft_length']} are planned")
    gpus = {"vLLM": int(flags.get("--tensor-parallel-size", 1)) * int(flags.get("--data-parallel-size", 1)), "SGLang": int(flags.get("--tp", 1)),
            "TensorRT-LLM": int(flags.get("--tp_size", 1))}.get(line["engine"])
    if gpus is not None and gpus != line["tensor_parallel"] * line["expert_parallel"]:
        raise Refused(f"runs on {gpus} GPUs")
    slots = int(flags.get("--parallel", 1)) if line["engine"] == "llama.cpp" else 1
    for name in ("--max-model-len", "--ctx-size", "--max_seq_len"):
        if name in flags and line["engine"] != "TensorRT-LLM" and int(flags[name]) / slots < min(line["context"], 2048):
            raise Refused(f"{name} {flags[name]} for {line['context']} tokens")
    return check_memory(line, flags)


def refused(line, **changes):
    try:
        check_line({**line, **changes})
    except (Refused, KeyError, json.JSONDecodeError):
        return True
    return False


def mutants(lines):
    """Wrong commands that the checks must refuse, made from right ones."""
    def first(engine, part):
        return next(line for line in lines if line["engine"] == engine and part in line["command"])
    for engine, right, wrong in (("vLLM", "--speculative-config", "--speculative-confg"), ("SGLang", "--speculative-num-steps", "--speculative-steps"),
                                 ("llama.cpp", "--spec-draft-n-max", "--draft-max"), ("TensorRT-LLM", "--max_batch_size", "--max-batch-size"),
                                 ("vLLM", "\"eagle3\"", "\"eagle4\""), ("vLLM", "[[1, 8, 4], [9,", "[[1, 8, 4], [10,"),
                                 ("vLLM", "--data-parallel-size 8", "--data-parallel-size 4"), ("vLLM", "VLLM_USE_V2_MODEL_RUNNER=1 ", ""),
                                 ("llama.cpp", "--split-mode tensor", "--split-mode tensor --cache-type-k q8_0 --cache-type-v q8_0"),
                                 ("SGLang", "--speculative-num-draft-tokens 5", "--speculative-num-draft-tokens 6"),
                                 ("llama.cpp", "--ctx-size ", "--ctx-size 99"), ("TensorRT-LLM", "decoding_type: Eagle3", "decoding_type: Eagle")):
        line = first(engine, right)
        if right == "--ctx-size ":
            line = next(one for one in lines if one["engine"] == engine and plain(one["target"]) and one["draft"] == "none")
        expect(f"mutant {right} to {wrong} of {engine} passes", refused(line, command=line["command"].replace(right, wrong)))
    line = next(one for one in lines if one["engine"] == "vLLM" and "--max-model-len" in one["command"] and plain(one["target"]) and one["draft"] == "none")
    expect("a context of 2304 tokens passes where more fits", refused({**line, "gpu_bytes": 288e9}, command=re.sub(r"--max-model-len \d+", "--max-model-len 2304", line["command"])))
    line = next(one for one in lines if "--split-mode tensor" in one["command"])
    expect("a split of DeepSeek2 passes", refused(line, target="deepseek-v3"))
    line = next(one for one in lines if one["engine"] == "vLLM" and '"draft_model"' in one["command"])
    expect("unequal vocabularies pass", refused(line, draft="gemma-3-1b"))
    line = next(one for one in lines if one["engine"] == "vLLM" and one["gpu"] == "mi300x")
    expect("a TPU passes", refused(line, gpu="tpu-v4"))
    line = next(one for one in lines if one["engine"] == "vLLM" and "--max-model-len" in one["command"] and plain(one["target"]) and one["draft"] == "none")
    for engine, target, right, wrong in (("vLLM", "minimax-m2", " --enable-expert-parallel", ""), ("SGLang", "minimax-m2", " --ep 8", ""),
                                         ("TensorRT-LLM", "minimax-m2", " --ep_size 8", ""), ("vLLM", "kimi-k2", " --trust-remote-code", ""),
                                         ("SGLang", "deepseek-v3", "--nnodes 2", "--nnodes 3"), ("vLLM", "deepseek-v3", "--data-parallel-size-local 8", "--data-parallel-size-local 16")):
        own = next((one for one in lines if one["engine"] == engine and one["target"] == target and right in one["command"]), None)
        expect(f"{engine} {target} {right} passes", own and refused(own, command=own["command"].replace(right, wrong)))
    own = next(one for one in lines if one["engine"] == "SGLang" and "NGRAM" in one["command"])
    expect("NGRAM on AMD passes", refused(own, gpu="mi300x"))
    own = next(one for one in lines if one["engine"] == "vLLM" and one["tensor_parallel"] == 8 and one["draft"] == "none")
    expect("10 heads on 8 GPUs pass", refused(own, target="phi-4"))
    expect("a context that does not fit passes", refused(line, command=re.sub(r"--max-model-len \d+", "--max-model-len 131072000", line["command"])))


def printed(deployment, wanted):
    """The commands of specsim plan --verbose by engine."""
    status, out, err = run("plan", *deployment, "--alpha", "0.8", "--longest", "4", "--context", "4096", "--verbose")
    expect(f"plan {deployment}: {err}", status == 0)
    found = {}
    for engine in ENGINES:
        row = re.search(rf"^  {re.escape(engine)} \S+ +(.*)$", out, re.MULTILINE)
        expect(f"{engine} is not there: {deployment}", row)
        found[engine] = row.group(1) if row else ""
    for engine, parts in wanted.items():
        if parts is None:
            expect(f"{engine}: {found[engine]}", found[engine].startswith("no: "))
            continue
        for part in parts:
            absent = part.startswith("!")
            if part.startswith("("):  # in a note
                expect(f"{engine}: {part}: {out}", part[1:] in out)
                continue
            expect(f"{engine}: {part} in {found[engine]}", (part.lstrip("!") in found[engine]) != absent)
    for engine, command in found.items():
        if not command.startswith("no: "):
            try:
                read_command(engine, command)
            except Refused as why:
                expect(f"{engine}: {why}: {command}", False)
    gpus = re.search(r"start a server on (\d+) GPUs", out)
    expect(f"{deployment}: how many GPUs", bool(gpus) == ("expert_parallel" in " ".join(deployment) or "--tensor-parallel" in deployment))


# Settings that specsim choose ranks: the parts of its start line, and how many servers there are.
SETTINGS = [
    *((["--target", "llama-3.1-8b", "--hardware", "rtx-3090", "--tensor-parallel", "1", "--engine", preset, "--draft", draft], engine, parts, 1)
      for preset, engine, plain, drafted in (("vllm", "vLLM", "--max-model-len", '"method": "eagle3"'), ("sglang", "SGLang", "--model-path", "EAGLE3"),
                                             ("llama_cpp", "llama.cpp", "--ctx-size", "draft-eagle3"), ("trtllm", "TensorRT-LLM", "--max_seq_len", "Eagle3"))
      for draft, parts in (("none", [plain]), ("eagle3-llama-3.1-8b", [drafted]))),
    (["--target", "deepseek-v3", "--hardware", "h200-sxm", "--tensor-parallel", "1", "--expert-parallel", "8", "--replicas", "8", "--draft", "none"],
     "vLLM", ["--data-parallel-size 8 --enable-expert-parallel"], 1),
    (["--target", "llama-3.1-8b", "--hardware", "h100-sxm", "--tensor-parallel", "2", "--replicas", "2", "--dtype", "fp8", "--kv-bits", "8",
      "--draft", "none"], "vLLM", ["with 8-bit weights>", "--tensor-parallel-size 2", "--kv-cache-dtype fp8"], 2),
]


def chosen(setting, engine, parts, servers):
    """The start line of specsim choose. Mutants: vLLM's command for every engine; one of tensor parallelism alone without speculation."""
    options = ["choose", *setting, "--users", "2", "--prompt", "100", "--output", "20", "--requests", "20", "--rank-by", "tokens"]
    status, out, err = run(*options)
    line = re.search(r"^start: (?:(\d+) servers, with a router in front, each by: )?(.*)$", out, re.MULTILINE)
    expect(f"choose {setting}: {out}{err}", status == 0 and line)
    if not line:
        return
    expect(f"choose {setting}: {line.group(0)}", int(line.group(1) or 1) == servers and all(part in line.group(2) for part in parts))
    try:
        _, length = read_command(engine, line.group(2))
        expect(f"choose {setting}: drafts {length}", (length == 0) == (setting[-1] == "none"))
    except (Refused, ValueError) as why:
        expect(f"choose {setting}: {why}: {line.group(2)}", False)


# A pair and an acceptance table of other models: the options, and a part of the warning that plan, serve and compare print.
OTHERS = [
    (["--target", "qwen3-8b", "--acceptance", "eagle3-llama-3.1-8b-chat"], "eagle3-llama-3.1-8b was trained for llama-3.1-8b, the target is qwen3-8b"),
    (["--target", "qwen3-8b", "--acceptance", "eagle3-llama-3.1-8b-chat"], "recorded with llama-3.1-8b drafted by eagle3-llama-3.1-8b, not with qwen3-8b drafted by"),
    (["--target", "qwen3-32b", "--draft", "qwen3-1.7b", "--acceptance", "eagle3-gpt-oss-120b-code"], "recorded with gpt-oss-120b drafted by eagle3-gpt-oss-120b, not with qwen3-32b"),
    (["--target", "qwen3-32b", "--draft", "qwen3-0.6b", "--acceptance", "qwen3-32b-1.7b-chat"], "not with qwen3-32b drafted by qwen3-0.6b"),
    (["--target", "qwen3-8b", "--draft", "qwen3-0.6b", "--acceptance", "ngram-maths"], "drafted by n-grams, not with qwen3-8b drafted by qwen3-0.6b"),
    (["--target", "llama-3.3-70b", "--tensor-parallel", "4", "--draft", "llama-3.2-1b", "--acceptance", "llama-3.3-70b-1b-code"], None),  # an alias of the table's
    (["--target", "llama-3.1-8b", "--acceptance", "eagle-code-edits"], None),  # its target is not known
]


def warned(options, warning):
    for command, more in (("plan", []), ("plan", ["--batch", "1,4"]), ("compare", ["--batches", "1", "--rounds", "2000"]),
                          ("serve", ["--rate", "1", "--requests", "5", "--alone", "--no-capacity"])):
        status, out, err = run(command, "--hardware", "h200-sxm", *options, *more)
        text = " ".join((out + err).split())
        expect(f"{command} {options}: {err[-300:]}", status == 0)
        expect(f"{command} {options}: {warning}", warning in text if warning else "was recorded with" not in text and "was trained for" not in text)


def named():
    """The name in a model file is one word of each command, or within one."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("x; touch pw #", "x'; touch pw #", "$(touch pw)"):
            file = Path(folder) / "model.yaml"
            text = Path("configs/models/llama-3.1-8b.yaml").read_text(encoding="utf-8")
            file.write_text(re.sub("^name: .*", lambda _: f"name: {json.dumps(name)}", text, count=1, flags=re.MULTILINE), encoding="utf-8")
            for engine in ("vllm", "sglang", "llama_cpp"):
                _, out, err = run("plan", "--hardware", "h100-sxm", "--target", file, "--draft", "llama-3.2-1b", "--engine", engine, "--alpha", "0.8", "--longest", "3")
                start = re.search("^start[^:]*: (.*)", out, re.MULTILINE)
                expect(f"{engine}: no command for {name}: {out} {err}", start is not None and f"<path of {name}>" in shlex.split(start[1]))
            for engine in ("vllm", "sglang"):  # the draft
                _, out, err = run("plan", "--hardware", "h100-sxm", "--target", "llama-3.3-70b", "--tensor-parallel", "4", "--draft", file, "--engine", engine, "--alpha", "0.9", "--longest", "3")
                start = re.search("^start[^:]*: (.*)", out, re.MULTILINE)
                expect(f"{engine}: no command for the draft {name}: {out} {err}", start is not None and any(f"<path of {name}>" in word for word in shlex.split(start[1])))


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "commands.jsonl"
        done = subprocess.run([UNIT, "[.commands]"], env={**os.environ, "SPECSIM_COMMANDS": str(path)}, capture_output=True, text=True, timeout=600)
        expect(f"[.commands]: {done.stdout[-500:]}", done.returncode == 0)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    flags = [line for line in lines if "flag" in line]
    lines = [line for line in lines if "command" in line]
    for line in flags:
        rules = ENGINES[line["engine"]]
        expect(f"{line}: not in arguments.yaml", line["flag"] in rules["arguments"] and line["version"] == str(rules["version"]) and line["source"] == rules["arguments"][line["flag"]].get("source", rules["source"]))
    expect("arguments.yaml has flags that no command uses", sum(len(rules["arguments"]) for rules in ENGINES.values()) == len(flags))
    weighed = 0
    for line in lines:
        try:
            weighed += check_line(line)
            bad = ""
        except (Refused, KeyError, json.JSONDecodeError) as why:
            bad = f"{line['engine']} on {line['gpu']}: {why}: {line['command']}"
        expect(bad, not bad)
    expect(f"only {len(lines)} commands", len(lines) > 1000)
    expect(f"the memory of only {weighed} commands", weighed > 100)
    mutants(lines)
    for deployment, wanted in DEPLOYMENTS:
        printed(deployment, wanted)
    for setting in SETTINGS:
        chosen(*setting)
    for options, warning in OTHERS:
        warned(options, warning)
    _, out, _ = run("choose", "--target", "llama-3.1-8b", "--hardware", "h100-sxm", "--users", "2", "--kv-bits", "3", "--requests", "20", "--draft", "none")
    expect(f"a cache of 3 bits: {out}", re.search(r"^start: vLLM .* cannot run this (?:plan|setting): it has no cache of 3 bits", out, re.MULTILINE))
    _, out, _ = run("plan", "--hardware", "rtx-5090", "--target", "llama-3.1-8b", "--draft", "eagle3-llama-3.1-8b", "--engine", "llama_cpp", "--alpha", "0.8")
    expect(f"plan for llama.cpp: {out}", "\nstart: llama-server " in out)
    named()
    print(f"{len(lines)} commands, the memory of {weighed} of them")


main()
finish()
