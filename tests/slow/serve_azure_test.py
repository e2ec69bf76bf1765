#!/usr/bin/python3
"""The whole Azure conversation trace (19,366 requests), row by row compared with the plain reference: at its own rate and in overload, with
chunks, preemption, speculation and asynchronous steps.

SPECSIM_TRACES names the folder that holds azure2023_conv.csv (AzureLLMInferenceTrace_conv.csv of Azure/AzurePublicDataset,
CC-BY 4.0). Without it only the 300 requests in tests/data/serve are run, and the test prints a message.
"""
import csv
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "serve"))
import exact_test  # noqa: E402

EXCERPT = Path("tests/data/serve/azure_conversation_300.csv")
COST = {"model": "affine", "target_fixed_ms": 5.886, "target_ms_per_token": 0.021, "target_ms_per_kv_token": 0.0, "draft_fixed_ms": 0.8,
        "draft_ms_per_token": 0.002, "overhead_ms": 0.15}
CASES = {
    "own rate": ({"max_num_batched_tokens": 2048, "max_num_seqs": 256, "async": False}, {"block": 16, "blocks": 20000}, None),
    "overload, preemption": ({"max_num_batched_tokens": 1024, "max_num_seqs": 64, "async": False}, {"block": 16, "blocks": 1400}, None),
    "asynchronous": ({"max_num_batched_tokens": 2048, "max_num_seqs": 256, "async": True, "long_prefill_token_threshold": 700},
                     {"block": 16, "blocks": 4000}, None),
    "speculation": ({"max_num_batched_tokens": 2048, "max_num_seqs": 128, "async": False, "reserve_full_isl": False},
                    {"block": 16, "blocks": 1200}, [[1, 8, 4], [9, 40, 2], [41, 512, 0]]),
    "speculation, asynchronous": ({"max_num_batched_tokens": 2048, "max_num_seqs": 96, "async": True}, {"block": 16, "blocks": 3000},
                                  [[1, 512, 3]]),
}


def case(name, trace, folder, requests):
    scheduler, kv, table = CASES[name]
    shutil.copyfile(trace, folder / "trace.csv")
    serve = {"scheduler": dict(scheduler, kind="vllm_v1", max_model_len=131072), "kv": kv,
             "arrivals": {"process": "trace", "file": "trace.csv", "requests": requests}}
    if table:
        generator = random.Random(name)
        with open(folder / "trace.csv", newline="") as file:
            outputs = [int(row["GeneratedTokens"]) for row in csv.DictReader(file)][:requests]
        with open(folder / "uniforms.csv", "w") as file:
            file.write("request,position,uniform\n")
            for request, output in enumerate(outputs):
                for position in range(1, output + 16):
                    file.write(f"{request},{position},{generator.random():.6f}\n")
        serve["speculation"] = {"policy": {"kind": "table", "table": table}, "method": "eagle",
                                "acceptance": {"conditional_rates": [0.8, 0.7, 0.6], "replay": "uniforms.csv"}}
    return {"experiment": "azure", "seed": 1, "serve": serve, "cost": COST}


def main():
    traces = os.environ.get("SPECSIM_TRACES")
    trace, requests = EXCERPT, 300
    if traces:
        trace, requests = Path(traces) / "azure2023_conv.csv", 19366
    else:
        print("serve_azure_test: SPECSIM_TRACES is not set: only 300 requests are run")
    exact_test.reference.Engine.limit = 1 << 40
    exact_test.STEPS = 1 << 40
    failures = 0
    for name in CASES:
        # Speculation needs a file of uniform numbers: the first 4,000 requests keep it small.
        count = min(requests, 4000) if CASES[name][2] else requests
        with tempfile.TemporaryDirectory() as folder:
            config = case(name, trace, Path(folder), count)
            got, expected = exact_test.run_program(config, Path(folder)), exact_test.run_reference(config, Path(folder))
            wrong = exact_test.difference(got, expected)
            preemptions = sum(int(row[-1]) for row in expected["requests.csv"][1])
            print(f"{name}: {len(expected['steps.csv'][1])} steps, {preemptions} preemptions: {wrong or 'equal'}")
            failures += wrong is not None
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
