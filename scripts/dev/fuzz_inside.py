"""Fuzzers within one process, tests/fuzz/*.cpp, as scripts/fuzz starts them."""
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from fuzz_words import ROOT, SECONDS, TIMED_OUT, MEMORY, NUMBERS, TEXTS, OPTIONS

INSIDE = "in."  # the prefix of the names of fuzzers within one process


class Inside:
    """The fuzzers of tests/fuzz/*.cpp."""

    def __init__(self, program, fuzzer, keep):
        self.program, self.fuzzer, self.keep = program, fuzzer, keep
        self.folder = Path(tempfile.mkdtemp(prefix="specsim_fuzz_", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.executions = {}
        self.seconds = {}

    @staticmethod
    def names(program):
        """The program's own list; empty if it was not built."""
        if not os.access(program, os.X_OK):
            return []
        return subprocess.run([program], env={}, capture_output=True, text=True).stderr.split(":")[-1].split()

    def seeds(self, name):
        """Initial inputs: files of this kind in the repository, up to the size that a fuzzer handles well."""
        data = ROOT / "tests/data"
        configs = [re.sub(r"(vocab|pool): \d+", r"\1: 12", text).encode() for text in self.fuzzer.configs if len(text) < 3000]
        presets = {kind: [p.read_bytes() for p in (ROOT / "configs" / kind).glob("*.yaml")] for kind in ("hardware", "models")}
        traces = [b"".join(p.read_bytes().splitlines(keepends=True)[:4])[:8000] for p in [*data.glob("*.jsonl"), *(data / "acceptance").glob("*.jsonl")]]
        traces += [b'{"draft_length": 2, "accepted": [0, 1, 2, 0]}', b'{"draft_length": 2, "rounds": [0, 1, 2], "drafted": [2, 2, 2]}', b'{"overlap": [0.5, 1, 0]}',
                   b'{"target": [[0.5, 0.5], {"0": 1}], "draft": [[0.9, 0.1], {"1": 0.5}]}']
        weights = [b"\x40f" + p.read_bytes()[8:8 + int.from_bytes(p.read_bytes()[:8], "little")] for p in data.glob("models/tiny*/*.safetensors")]
        weights += [b'\x02f{"a":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}}']
        kinds = {"yaml": configs, "experiment": configs, "json": [p.read_bytes() for p in data.glob("models/*/config.json")] + traces[:2],
                 "overrides": [b"rounds=1e3\npair.vocab=10\nsweep.decode.drafter.draft_length=[1, 2]", b"pair={vocab: 3}\nsweep={}\ncost={model: ratio, cost_ratio: 0.1}"],
                 "hardware": presets["hardware"], "model": presets["models"], "trace": traces, "context_trace": traces, "prompts": [b'{"prompt": "a"}\n{"tokens": [1, 2], "kind": "b"}'],
                 "cost_table": [b"".join((data / "pass_times.csv").read_bytes().splitlines(keepends=True)[:30])],
                 "llama_bench": [b"| model | size | params | backend | threads | test | t/s |\n| --- | --- | --- | --- | --- | --- | --- |\n| a | 1 GiB | 1 B | CPU | 4 | pp512 | 100.0 \xc2\xb1 1.0 |\n",
                                 b"n_prompt,n_gen,n_depth,avg_ts\n1,0,0,10\n0,128,0,9\n", b'[{"n_prompt": 4, "n_gen": 0, "n_depth": 0, "avg_ts": 10.0}]'],
                 "journal": [b"0 0 0:1 1:2\n0 1 0:5 13:2 14:1", b"!torn\n1 3 0:1", b"?x"], "counts": [b"experiment,cell,count,index,value\na,0,rounds,0,5\na,1,reached,2,3\n"],
                 "manifest": [b'command: "x"\nidentity: "a"\nthreads: 2\nshard: "1/2"\ncells: 1\nwall_seconds: 0.1\nexperiments:\n  - file: "a"\n    config: "{}"\ninputs:\n  - file: "b"\n    checksum: "0"'],
                 "server_log": [p.read_bytes()[:4000] for p in sorted((data / "logs").iterdir())] + [
                     b'{"metrics": {"speculative_decoding": {"acceptance_histogram": [3, 1, 2], "num_spec_steps": 6, "num_accepted_draft_tokens": 5, "num_draft_tokens": 12, "num_spec_tokens": 2}}}',
                     b"Finish: out={'meta_info': {'id': 'a', 'completion_tokens': 9, 'spec_verify_ct': 4, 'spec_accept_histogram': [2, 1, 1]}}",
                     b'{"data": {"result": [{"metric": {"__name__": "vllm:spec_decode_num_drafts_total", "engine": "0"}, "values": [[1, "5"], [2, "3"]]}]}}',
                     b'{"log": "{\\"choices\\": [{\\"accept_lengths\\": [1, 3]}]}\\n", "stream": "stdout"}'],
                 "counters": [b"\x05\x03\x09\x06\x02\x02"],
                 "request_trace": [b"arrived_us,prompt,output,block_hashes\n0,40,3,0-1\n9,33,4,0 5-6\n", b"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-05-12 00:00:00.003908+00:00,1,1452,5\n",
                                   b'{"chat_id": 0, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 33, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [7, 8, 9]}\n',
                                   b'{"session_id": "a", "timestamp": 0, "input_length": 1030, "output_length": 40, "hash_ids": [1, 2, 3]}\n{"session_id": "a", "delay": 200, "input_length": 10, "output_length": 7}\n',
                                   b'{"prompt": "What?", "output_tokens": 10}\n'],
                 "safetensors": weights, "gguf": [p.read_bytes()[:20000] for p in data.glob("models/*.gguf")],
                 "tokenizer_json": [p.read_bytes() for p in data.glob("tokenizers/*.json")], "model_config": [p.read_bytes() for p in data.glob("models/*/config.json")],
                 "config_json": [p.read_bytes() for p in data.glob("models/*/config.json")] + [b'{"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, '
                                 b'"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 9, '
                                 b'"intermediate_size": 7, "vocab_size": 99, "quantization_config": {"quant_method": "awq", "bits": 4}, "layer_types": ["sliding_attention"]}'],
                 "theory": [b"--alpha\n0.7\n--draft-length\n5\n--cost-ratio\n0.2\n--form\nall", b"--requests\n0.9:1,0.5:1\n--overhead\n0.1", b"--alphas\n0.7,60%\n--verify-inflation\n1.1",
                            b"--acceptance-rate\n0.6\n--target-to-draft-ratio\n20", b"--mean-acceptance-length\n3", b"--position-rates\n0.9,0.5"],
                 "pass": [b"--hardware\nh100-sxm\n--model\nllama-2-7b\n--tokens\n1,8,64\n--batch\n4\n--context\n100\n--tensor-parallel\n1,2", b"--hardware\nrtx-4090\n--model\neagle-head-7b\n--role\ndraft\n--csv"]}
        return kinds.get(name, [])

    def words(self):
        """A dictionary for libFuzzer: keys, names of parts, numbers on the edge."""
        texts = {*self.fuzzer.keys, *self.fuzzer.parts, *self.fuzzer.values, *NUMBERS, *OPTIONS, *(text for text in TEXTS if len(text) < 40), "data_offsets", "tokenizer.ggml.tokens"}
        quoted = ("".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\x{b:02x}" for b in text.encode("utf-8", "replace")[:60]) for text in sorted(texts) if text)
        return "".join(f'"{text}"\n' for text in quoted)

    def run(self, name, seconds):
        """Runs one fuzzer; returns whether it found something."""
        seeds, corpus = self.folder / name, self.keep / "corpus" / name
        if not seeds.exists():
            seeds.mkdir()
            for i, text in enumerate(self.seeds(name)):
                (seeds / str(i)).write_bytes(text)
            (self.folder / "words").write_text(self.words())
        corpus.mkdir(parents=True, exist_ok=True)
        own = ROOT / "tests/fuzz/inputs" / name
        command = [self.program, f"-max_total_time={max(1, round(seconds))}", f"-seed={self.fuzzer.rng.randrange(1, 2**31)}", "-timeout=200", f"-rss_limit_mb={MEMORY >> 20}", "-max_len=20000",
                   "-len_control=20", f"-dict={self.folder / 'words'}", "-close_fd_mask=1", "-print_final_stats=1", f"-artifact_prefix={self.keep}/{name}_", corpus, seeds, *([own] if own.is_dir() else [])]
        environment = {**os.environ, "SPECSIM_FUZZER": name, "TMPDIR": str(self.folder), "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=65536",
                       "UBSAN_OPTIONS": "print_stacktrace=1"}
        started = time.monotonic()
        process = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder)
        said = process.stderr.decode(errors="replace")
        done = re.findall(r"stat::number_of_executed_units: *(\d+)", said)
        self.executions[name] = self.executions.get(name, 0) + (int(done[-1]) if done else 0)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
        if process.returncode == 0 or process.returncode == TIMED_OUT and not self.slow(said, environment):
            return False
        told = [line for line in said.splitlines() if re.search(r"ERROR|runtime error|not kept|terminate|what\(\)|SUMMARY|Test unit written|^ +#[0-9] ", line)]
        print(f"{INSIDE}{name}: status {process.returncode}\n    " + "\n    ".join(told[:25] or said.splitlines()[-5:]), flush=True)
        return True

    def slow(self, said, environment):
        """Whether an input that libFuzzer called too slow takes that much processor time: libFuzzer's clock includes the time of other programs."""
        found = re.search(r"Test unit written to (.*timeout-.*)", said)
        if not found:
            return True
        spent = lambda: (lambda used: used.ru_utime + used.ru_stime)(resource.getrusage(resource.RUSAGE_CHILDREN))
        before = spent()
        again = subprocess.run([self.program, "-timeout=4000", f"-rss_limit_mb={MEMORY >> 20}", found[1]], env=environment, stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder)
        if again.returncode == 0 and spent() - before < SECONDS * self.fuzzer.slowness:
            os.remove(found[1])
            return False
        return True

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
