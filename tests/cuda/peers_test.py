#!/usr/bin/python3
"""scripts/gpu/gpu_baselines.py without PyTorch and without a GPU: specsim's files for it, from the host's twin, are compared with a forward pass
in NumPy in place of transformers. The comparison must detect errors.
"""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np

sys.path[:0] = ["scripts/gpu", "scripts/golden", "tests/support"]
import gpu_baselines  # noqa: E402
import gpu_kernels  # noqa: E402
import llm_golden  # noqa: E402
from program import expect, finish  # noqa: E402


class Numbers:
    def __init__(self, kind):
        self.kind = kind

    def to(self, kind):
        return Numbers(kind)


class Model:
    """A module with the attributes of transformers' modules: a parameter and a buffer."""

    def __init__(self):
        self.weight = SimpleNamespace(data=Numbers("float16"))
        self.frequencies = Numbers("float32")
        self.generation_config = SimpleNamespace(eos_token_id=2)

    def parameters(self):
        return iter([self.weight])

    def to(self, kind):
        self.weight.data = self.frequencies = Numbers(kind)
        return self

    def cuda(self):
        return self

    eval = cuda


sys.modules["transformers"] = SimpleNamespace(AutoModelForCausalLM=SimpleNamespace(from_pretrained=lambda path: Model()))
model = gpu_baselines.load(SimpleNamespace(bfloat16="bfloat16"), gpu_baselines.TARGET)
expect(f"parameters are {model.weight.data.kind}, frequencies of positions {model.frequencies.kind}",
       model.weight.data.kind == "bfloat16" and model.frequencies.kind == "float32")
expect("generation may end early", model.generation_config.eos_token_id is None)

for device, name in (("NVIDIA H200", "h200-sxm"), ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("NVIDIA H100 PCIe", "h100-pcie"), ("NVIDIA L40S", "l40s"),
                     ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"), ("NVIDIA GeForce RTX 4090", "rtx-4090")):
    expect(f"{device} is taken for {gpu_kernels.hardware_name(device)}", gpu_kernels.hardware_name(device) == name)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    held_out = folder / "held_out.jsonl"
    held_out.write_text(Path("tests/data/prompts/held_out.jsonl").read_text().splitlines()[0] + "\n")
    subprocess.run([os.environ["SPECSIM_TWIN"], "calibrate", "--device", "cuda", "--peers", "--target", gpu_baselines.MODELS / gpu_baselines.TARGET,
                    "--draft", gpu_baselines.MODELS / gpu_baselines.DRAFT, "--held-out", held_out, "--draft-lengths", "3", "--batches", "1",
                    "--tokens", "6", "--repetitions", "1", "--quick", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    tokens, ours, generation = gpu_baselines.read_specsim(folder)
    theirs = llm_golden.logits(gpu_baselines.MODELS / gpu_baselines.TARGET, tokens)
    found = gpu_baselines.compare_logits(ours, theirs)
    expect(f"logits: {found}", gpu_baselines.logits_agree(*found))
    expect(f"only {found[1]} of {len(tokens)} rows are clear", found[1] >= len(tokens) // 2)
    swapped = ours.copy()
    row = int(np.argmax(np.diff(np.sort(theirs, 1)[:, -2:], axis=1)))
    first, second = np.argsort(theirs[row])[[-1, -2]]
    swapped[row, [first, second]] = swapped[row, [second, first]]
    for what, mutant in (("a row late", np.roll(ours, 1, 0)), ("a token late", np.roll(ours, 1, 1)), ("3 % too large", 1.03 * ours),
                         ("two tokens exchanged", swapped), ("a row short", ours[:-1]), ("not a number", ours + np.nan)):
        expect(f"logits that are {what} pass", not gpu_baselines.logits_agree(*gpu_baselines.compare_logits(mutant, theirs)))
    expect("generation of other draft lengths", [row["draft_length"] for row in generation] == ["0", "3"])
    expect("generation without tokens or time", all(int(row["tokens"]) >= 6 and float(row["ms_per_token"]) > 0 for row in generation))
    expect("drafts take more rounds than plain decoding", int(generation[1]["rounds"]) <= int(generation[0]["rounds"]))

    table = folder / "passes.csv"
    table.write_text("model,weights,tokens,batch,context,ms\ntarget,random,8,1,2048,1.5\ntarget,random,8,4,2048,2.5\ndraft,random,8,1,2048,0.5\n")
    expect("passes of others than one sequence of the target", gpu_baselines.read_passes(table) == {(8, 2048): "1.5"})
    expect("passes of no table", gpu_baselines.read_passes(None) == gpu_baselines.read_passes(folder / "none.csv") == {})

    # A failed part does not stop the others. PyTorch is replaced by the attributes that main uses.
    sys.modules["torch"] = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True), manual_seed=lambda seed: None,
                                           no_grad=contextlib.nullcontext)
    table.unlink()
    sys.argv = ["gpu_baselines", "--specsim", str(folder), "--passes", str(table), "--out", str(folder / "peers.csv")]
    parts = ["logits", "llama-3.1-8b", "llama-3.2-1b", "plain", "assisted"]
    for broken in [[], *([part] for part in parts), parts]:
        def part(say, what):
            say(what)
            if what in broken:
                raise RuntimeError(f"{what} is broken")

        gpu_baselines.logits = lambda torch, say, directory: part(say, "logits")
        gpu_baselines.passes = lambda torch, say, name, shape, ours: part(say, name)
        gpu_baselines.generation = lambda torch, say, directory, assisted: part(say, "assisted" if assisted else "plain")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as log:
            status = gpu_baselines.main()
        expect(f"status {status} where {broken} fail", status == bool(broken))
        expect(f"parts left out where {broken} fail", (folder / "peers.csv").read_text().split()[1:] == parts)
        expect(f"{broken} fail unseen", all(f"RuntimeError: {what} is broken" in log.getvalue() for what in broken))
    (folder / "logits.f32").write_bytes(b"1234")
    try:
        gpu_baselines.read_specsim(folder)
        expect("logits that are cut off are read", False)
    except ValueError:
        pass
finish()
