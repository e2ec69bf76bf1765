#!/usr/bin/python3
"""The program reads the recorders' files: vLLM's and transformers', with stand-ins for the interfaces that they use.

    SPECSIM=build/specsim tests/logs/record_test.py        (at the root of the repository)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SPECSIM = os.environ.get("SPECSIM", "build/specsim")

# In vLLM's engine a step gives every running request its accepted tokens and one more; the first one computes the prompt.
VLLM = '''
import random
class EngineArgs:
    def __init__(self, model, speculative_config, tensor_parallel_size, max_num_seqs, **more):
        self.drafts = speculative_config["num_speculative_tokens"]
class SamplingParams:
    def __init__(self, temperature, max_tokens, seed, ignore_eos, output_kind):
        assert output_kind == sampling_params.RequestOutputKind.DELTA
        self.max_tokens, self.seed = max_tokens, seed
class Output:
    def __init__(self, tokens): self.token_ids = tokens
class RequestOutput:
    def __init__(self, request_id, tokens): self.request_id, self.outputs = request_id, [Output(tokens)]
class LLMEngine:
    def __init__(self, drafts): self.drafts, self.running, self.random = drafts, {}, random.Random(7)
    @classmethod
    def from_engine_args(cls, engine_args): return cls(engine_args.drafts)
    def add_request(self, request_id, prompt, params): self.running[request_id] = [params.max_tokens, 0]
    def has_unfinished_requests(self): return bool(self.running)
    def step(self):
        outputs = []
        for name, state in list(self.running.items()):
            state[1] += 1
            if state[1] == 1:  # a part of the prompt
                outputs.append(RequestOutput(name, []))
                continue
            accepted = 0
            while state[1] > 2 and accepted < self.drafts and self.random.random() < ALPHA: accepted += 1
            emitted = min(accepted + 1, state[0])
            state[0] -= emitted
            outputs.append(RequestOutput(name, [5] * emitted))
            if state[0] == 0: del self.running[name]
        return outputs
from . import sampling_params
'''
SAMPLING = "import enum\nclass RequestOutputKind(enum.Enum):\n    CUMULATIVE = 0\n    DELTA = 1\n    FINAL_ONLY = 2\n"

# In transformers' assisted decoding every round ends with update_candidate_strategy(input_ids, scores, num_matches).
TRANSFORMERS = '''
import random
from .generation import candidate_generator
class Batch(dict):
    def to(self, device): return self
class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, name): return cls()
    def __call__(self, text, return_tensors): return Batch(input_ids=text)
class Config: pass
class AutoModelForCausalLM:
    device = "cpu"
    def __init__(self): self.generation_config = Config()
    @classmethod
    def from_pretrained(cls, name, **more): return cls()
    def generate(self, input_ids, max_new_tokens, do_sample, temperature=None, assistant_model=None, prompt_lookup_num_tokens=None):
        left = max_new_tokens
        if assistant_model is not None:
            own = assistant_model.generation_config
            assert own.num_assistant_tokens_schedule == "constant" and own.assistant_confidence_threshold == 0.0
            generator, drafts = candidate_generator.AssistedCandidateGenerator(), own.num_assistant_tokens
        else:
            generator, drafts = candidate_generator.PromptLookupCandidateGenerator(), prompt_lookup_num_tokens
        while left > 0:
            drafted = drafts if assistant_model is not None or rng.random() < 0.7 else 0
            accepted = 0
            while accepted < drafted and rng.random() < ALPHA: accepted += 1
            left -= accepted + 1
            generator.update_candidate_strategy(input_ids, [[0] * (drafted + 1)], accepted)
        assert generator.updates > 0
rng = random.Random(3)
def set_seed(seed): rng.seed(seed)
'''
GENERATORS = '''
class CandidateGenerator:
    updates = 0
    def update_candidate_strategy(self, input_ids, scores, num_matches): raise NotImplementedError
class AssistedCandidateGenerator(CandidateGenerator):
    def update_candidate_strategy(self, input_ids, scores, num_matches): self.updates += 1
class AssistedCandidateGeneratorDifferentTokenizers(AssistedCandidateGenerator):
    pass
class PromptLookupCandidateGenerator(CandidateGenerator):
    def update_candidate_strategy(self, input_ids, scores, num_matches): self.updates += 1
'''


class Record(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = Path(self.scratch.name)
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps({"prompt": f"prompt {i}", "kind": "even" if i % 2 == 0 else "odd"}) + "\n" for i in range(200)))

    def stand_in(self, name, files):
        for path, text in files.items():
            file = self.folder / "packages" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("ALPHA", "0.7"))

    def record(self, script, *options, prompts="prompts.jsonl"):
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "packages")}
        return subprocess.run([sys.executable, f"scripts/record/{script}", str(self.folder / prompts), str(self.folder / "out.jsonl"), *options],
                              capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)

    def read(self):
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def held(self, lines, draft_length):
        """The records, and the program that reads them, recover alpha."""
        judged = accepted = 0
        for line in lines:
            self.assertEqual(line["draft_length"], draft_length)
            self.assertEqual(line["kind"], "even" if line["request"] % 2 == 0 else "odd")
            for got, drafted in zip(line["rounds"], line.get("drafted", [draft_length] * len(line["rounds"]))):
                accepted += got
                judged += min(got + 1, drafted)
        self.assertGreater(judged, 5000)
        # 5 standard errors of the share; a recorder that counts the prompt's step or cut rounds as rounds is off by ten of them.
        self.assertLess(abs(accepted / judged - 0.7), 5 * (0.21 / judged) ** 0.5)
        few = self.folder / "few.jsonl"
        few.write_text("".join(json.dumps(line) + "\n" for line in lines[:12]))
        for command in (["plan", "--trace", self.folder / "out.jsonl"], ["fit", few, "--draft-length", str(draft_length)]):
            done = subprocess.run([SPECSIM, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_answer_files(self):
        """Answer files of Spec-Bench and of vLLM's requests are records: their rounds can be fitted and used for a plan."""
        self.folder.mkdir(exist_ok=True)
        lengths = [[4, 1, 4, 2, 3, 1], [2, 3, 4], [1, 1, 2, 4]]
        forms = {"Spec-Bench": [{"question_id": i, "choices": [{"index": 0, "turns": ["a"], "new_tokens": [sum(row)], "accept_lengths": row}]}
                                for i, row in enumerate(lengths)],
                 "vLLM": [{"metrics": {"speculative_decoding": {"per_step_accepted": [n - 1 for n in row], "per_step_drafted": [3] * len(row)}}}
                          for row in lengths]}
        printed = {}
        for name, rows in forms.items():
            path = self.folder / "answers.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
            for command in (["fit", path, "--draft-length", "3"], ["plan", "--trace", path]):
                done = subprocess.run([SPECSIM, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stderr)
                printed.setdefault(command[0], []).append(done.stdout)
            self.assertIn("12 requests, draft length 3: 2.4615 tokens per round", printed["fit"][-1])  # 32 tokens in 13 rounds
        self.assertEqual(printed["fit"][0], printed["fit"][1])
        # EAGLE's answers count rounds turn by turn, not round by round.
        path.write_text(json.dumps({"question_id": 1, "choices": [{"idxs": [9, 4], "new_tokens": [35, 15]}]}) + "\n")
        done = subprocess.run([SPECSIM, "fit", path, "--draft-length", "4"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no record of acceptance", done.stderr)

    def test_vllm(self):
        self.stand_in("vllm", {"__init__.py": VLLM, "sampling_params.py": SAMPLING})
        done = self.record("record_vllm.py", "--model", "m", "--speculative", '{"method": "eagle", "model": "d", "num_speculative_tokens": 4}', "--tokens", "128")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.read()
        self.assertEqual(len(lines), 200)
        self.held(lines, 4)

    def test_vllm_joined_steps(self):
        self.stand_in("vllm", {"__init__.py": VLLM.replace("self.drafts = speculative_config[\"num_speculative_tokens\"]", "self.drafts = 9"), "sampling_params.py": SAMPLING})
        done = self.record("record_vllm.py", "--model", "m", "--speculative", '{"num_speculative_tokens": 2}')
        self.assertEqual(done.returncode, 2)
        self.assertIn("in a step that drafted 2: steps of this engine are joined", done.stderr)

    def test_transformers(self):
        self.stand_in("transformers", {"__init__.py": TRANSFORMERS, "generation/__init__.py": "", "generation/candidate_generator.py": GENERATORS})
        done = self.record("record_transformers.py", "--model", "m", "--assistant", "d", "--draft-length", "5", "--tokens", "128", "--temperature", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = self.read()
        self.assertNotIn("drafted", lines[0])
        self.held(lines, 5)

    def test_prompt_lookup(self):
        self.stand_in("transformers", {"__init__.py": TRANSFORMERS, "generation/__init__.py": "", "generation/candidate_generator.py": GENERATORS})
        done = self.record("record_transformers.py", "--model", "m", "--assistant", "none", "--draft-length", "3", "--tokens", "128")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.held(self.read(), 3)

    def test_messages(self):
        for script, options, said, status in [
                ("record_vllm.py", ["--model", "m", "--speculative", "{}"], "has no num_speculative_tokens, allowed", 2),
                ("record_vllm.py", ["--model", "m", "--speculative", '{"num_speculative_tokens": 2}'], "vLLM is not installed", 77),
                ("record_transformers.py", ["--model", "m", "--assistant", "d"], "transformers is not installed", 77),
                ("record_transformers.py", ["--model", "m", "--assistant", "d", "--draft-length", "0"], "allowed: at least 1", 2)]:
            if status == 77:  # hidden from the import, whatever is installed on this machine
                self.stand_in("vllm", {"__init__.py": "raise ImportError('no vllm')"})
                self.stand_in("transformers", {"__init__.py": "raise ImportError('no transformers')"})
            done = self.record(script, *options)
            self.assertEqual((done.returncode, said in done.stderr), (status, True), done.stderr)
        (self.folder / "wrong.jsonl").write_text('{"prompt": "a"}\n{"text": "b"}\n')
        done = self.record("record_vllm.py", "--model", "m", "--speculative", '{"num_speculative_tokens": 2}', prompts="wrong.jsonl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("wrong.jsonl:2: no text at \"prompt\"", done.stderr)


if __name__ == "__main__":
    unittest.main()
