#!/usr/bin/python3
"""Scheduler llama_cpp makes the same decisions and takes the same time, to the picosecond, as a plain reference of llama.cpp's server loop, on
random small servers.

The reference is below, written from tools/server: slots that draft one by one, prompts that fill up n_batch, passes of n_ubatch.
Deliberate mistakes in it must be detected. Runs at the root of the repository; SPECSIM names the program.
"""
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks  # noqa: E402

US = 1_000_000  # picoseconds


class Server:
    """All times in microseconds. Acceptance is all or nothing."""

    def __init__(self, setting, requests, accept, mutant=None):
        self.s, self.requests, self.accept, self.mutant = setting, requests, accept, mutant

    def target(self, rows, sequences, cached):
        passes, left = 0, rows
        while left > 0:
            piece = min(left, self.s["n_batch"])
            passes += -(-piece // self.s["n_ubatch"])
            left -= piece
        return passes * self.s["fixed"] + rows * self.s["row"]

    def run(self):
        s, now, queue, slots = self.s, 0, [], [None] * self.s["slots"]
        todo, steps, ends = list(enumerate(self.requests)), [], {}
        while todo or queue or any(slots):
            while todo and todo[0][1][0] <= now:
                queue.append(todo.pop(0))
            for i, slot in enumerate(slots):
                if slot is None and queue:
                    number, (_, prompt, output) = queue.pop(0)
                    slots[i] = {"id": number, "prompt": prompt, "output": output, "done": 0, "out": 0, "draft_has": 0}
            if not any(slots):
                now = todo[0][1][0]
                continue
            time, rows, work = 0, 0, []
            for slot in slots:
                if slot is None or slot["done"] < slot["prompt"]:
                    continue
                tokens = slot["prompt"] + slot["out"]
                k = min(s["k"], slot["output"] - slot["out"] - 1, s["context"] - tokens - 1)
                if self.mutant == "drafts beyond the output":
                    k = min(s["k"], s["context"] - tokens - 1)
                k = 0 if k < s["draft_min"] else k
                if k > 0:
                    first = tokens - slot["draft_has"] if self.mutant != "the prompt is not drafted over" else min(2, tokens - slot["draft_has"])
                    time += k * s["draft_fixed"] + (first + k - 1) * s["draft_row"]
                    slot["draft_has"] = tokens + k - 1
                work.append((slot, 1 + k, k))
                rows += 1 + k
            limit = s["n_batch"] + (1 if self.mutant == "n_batch off by one" else 0)
            for slot in slots:
                if slot is not None and slot["done"] < slot["prompt"] and not any(slot is other for other, _, _ in work) and rows < limit:
                    take = min(slot["prompt"] - slot["done"], limit - rows)
                    work.append((slot, take, None))
                    rows += take
            if self.mutant == "drafts in one batch":
                drafting = [k for _, _, k in work if k]
                time = (max(drafting) * s["draft_fixed"] if drafting else 0) + time - sum(k * s["draft_fixed"] for k in drafting)
            time += self.target(rows, len(work), 0)
            steps.append((now, time, len(work), len(queue), sum(k or 0 for _, _, k in work)))
            now += time
            for slot, take, k in work:
                if k is None:
                    slot["done"] += take
                    if slot["done"] < slot["prompt"]:
                        continue
                    k = 0
                tokens = slot["prompt"] + slot["out"]
                accepted = k if self.accept else 0
                got = min(accepted + 1, slot["output"] - slot["out"], s["context"] - tokens)
                slot["out"] += got
                slot["draft_has"] = min(slot["draft_has"], tokens + accepted)
                if slot["out"] >= slot["output"] or slot["prompt"] + slot["out"] >= s["context"]:
                    ends[slot["id"]] = now
                    slots[slots.index(slot)] = None
        return steps, ends


def make(number):
    g = random.Random(f"llama {number}")
    s = {"slots": g.choice([1, 2, 4, 7]), "n_batch": g.choice([8, 32, 64]), "n_ubatch": g.choice([4, 8, 64]), "k": g.choice([0, 1, 3, 5]),
         "draft_min": g.choice([0, 0, 2]), "context": g.choice([90, 4096]), "fixed": 1000, "row": 10, "draft_fixed": 100, "draft_row": 3}
    at, requests = 0, []
    for _ in range(g.randint(5, 30)):
        at += g.choice([0, g.randint(0, 20000)])
        prompt = g.randint(1, 80)
        requests.append((at, prompt, min(g.randint(1, 40), s["context"] - prompt)))  # longer ones are refused
    return s, requests, g.random() < 0.5


def config(s, accept, trace):
    return {"experiment": "slots", "seed": 1,
            "serve": {"scheduler": {"kind": "llama_cpp", "slots": s["slots"], "context": s["context"], "n_batch": s["n_batch"], "n_ubatch": s["n_ubatch"],
                                    "draft_min": s["draft_min"]},
                      "arrivals": trace,
                      "speculation": {"policy": {"kind": "fixed", "draft_length": s["k"]}, "acceptance": {"alpha": 1 if accept else 0}, "method": "draft_model"}},
            "cost": {"model": "affine", "target_fixed_ms": s["fixed"] / 1000, "target_ms_per_token": s["row"] / 1000, "draft_fixed_ms": s["draft_fixed"] / 1000,
                     "draft_ms_per_token": s["draft_row"] / 1000}}


def main():
    checks = Checks()
    mutants = ["drafts in one batch", "the prompt is not drafted over", "n_batch off by one", "drafts beyond the output"]
    noticed = {mutant: 0 for mutant in mutants}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        for number in range(40):
            s, requests, accept = make(number)
            trace = bench.trace(f"trace{number}", [(at, prompt, output, 0) for at, prompt, output in requests])
            run = bench.run(config(s, accept, trace), steps=True)
            ours = (list(zip(run.ps("start_s", True), run.ps("duration_s", True), run.whole("requests", True), run.whole("waiting", True),
                             run.whole("draft_rows", True))), dict(zip(run.whole("request"), run.ps("last_token_s"))))
            for mutant in [None, *mutants]:
                steps, ends = Server(s, requests, accept, mutant).run()
                expected = ([(start * US, time * US, *rest) for start, time, *rest in steps], {n: end * US for n, end in ends.items()})
                if mutant is None:
                    checks.exact(f"server {number}: steps", ours[0], expected[0])
                    checks.exact(f"server {number}: ends", ours[1], expected[1])
                else:
                    noticed[mutant] += ours != expected
    for mutant, count in noticed.items():
        checks.rejects_exactly("llama_cpp", mutant, count > 0)
    return checks.finish("llama.cpp's slots")


if __name__ == "__main__":
    sys.exit(main())
