#!/usr/bin/python3
"""The parts of the time to first token and of the time per token, calculated by hand to the picosecond, and runs with wrong accounts.

The means by cause in summary.csv are compared with the times that a few requests must spend. Then typical accounting mistakes are made in the
same run, and each must be detected. Runs at the root of the repository; SPECSIM names the program.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Bench, Checks, columns, config  # noqa: E402

CAUSES = ("frontend", "queue", "prefill", "decode", "draft", "interference", "stalled", "preempted", "recompute", "transfer")
COST = {"target_fixed_ms": 1.0, "target_ms_per_token": 0.01, "draft_fixed_ms": 0.25}
FRONTEND = 0.5

# A request's milliseconds by cause up to its first token, those after it, and its tokens. Two sequences at once: a prompt of 100 tokens at 0 ms and
# one of 200 tokens 2.5 ms later, with 4 and 3 output tokens. Steps: 2 ms (the first prompt), 1.01, 3.01 (one row and the second prompt), 1.02, 1.01.
PLAIN = [({"frontend": 0.5, "prefill": 2.0}, {"decode": 1.01 + 1.02, "interference": 3.01}, 4),
         ({"frontend": 0.5, "queue": 0.51, "prefill": 3.01}, {"decode": 1.02 + 1.01}, 3)]
# With a draft that is never accepted every step has one more row for each decoding sequence, and 0.25 ms of drafting: 2.25, 1.27, 3.27, 1.29 and 1.27
# ms. The draft's time in a step that computes the request's own prompt belongs to the prompt.
DRAFTED = [({"frontend": 0.5, "prefill": 2.25}, {"decode": 1.02 + 1.04, "interference": 3.02, "draft": 0.75}, 4),
           ({"frontend": 0.5, "queue": 1.02, "prefill": 3.27}, {"decode": 1.04 + 1.02, "draft": 0.5}, 3)]
# A pool of 2 blocks of 16: two prompts of 12 tokens, outputs of 10 and 6. Both fit in one block until 16 tokens are cached; then the first takes the
# block that the second loses. The first: 1 step of both prompts (1.24 ms), 4 of two rows, 5 alone.
TIGHT = [({"prefill": 1.24}, {"decode": 4 * 1.02 + 5 * 1.01}, 10),
         ({"prefill": 1.24}, {"decode": 4 * 1.02, "preempted": 5 * 1.01, "recompute": 1.17}, 6)]


def means(requests, ttft=lambda first, after, tokens: first, tpot=lambda first, after, tokens: {c: t / (tokens - 1) for c, t in after.items()}):
    """The columns of summary.csv that these requests make."""
    parts = {}
    for name, part in (("ttft", ttft), ("tpot", tpot)):
        for cause in CAUSES:
            parts[f"mean_{name}_{cause}_ms"] = sum(part(*request).get(cause, 0.0) for request in requests) / len(requests)
    return parts


def moved(cause, to):
    """Wrong accounts, in which the time of one cause is recorded under another."""
    def rename(parts):
        renamed = dict(parts)
        renamed[to] = renamed.get(to, 0.0) + renamed.pop(cause, 0.0)
        return renamed
    return lambda requests: means([(rename(first), rename(after), tokens) for first, after, tokens in requests])


WRONG = {
    "interference written down as decoding": moved("interference", "decode"),
    "drafting written down as decoding": moved("draft", "decode"),
    "the queue written down as the prompt": moved("queue", "prefill"),
    "recomputing written down as decoding": moved("recompute", "decode"),
    "waiting after a preemption recorded as the queue": moved("preempted", "queue"),
    "the whole life in place of the time to the first token":
        lambda requests: means(requests, ttft=lambda first, after, tokens: {c: first.get(c, 0.0) + after.get(c, 0.0) for c in CAUSES}),
    "per token in place of per gap": lambda requests: means(requests, tpot=lambda first, after, tokens: {c: t / tokens for c, t in after.items()}),
    "sent, not arrived, left out": lambda requests: means(requests, ttft=lambda first, after, tokens: {c: t for c, t in first.items() if c != "frontend"}),
}
SEEN_BY = {"interference written down as decoding": PLAIN, "drafting written down as decoding": DRAFTED,
           "the queue written down as the prompt": PLAIN, "recomputing written down as decoding": TIGHT,
           "waiting after a preemption recorded as the queue": TIGHT,
           "the whole life in place of the time to the first token": PLAIN, "per token in place of per gap": PLAIN, "sent, not arrived, left out": PLAIN}


def differences(summary, parts):
    return [name for name, value in parts.items() if abs(float(summary[name][0]) - value) > 1e-9]


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)
        two = bench.trace("two", [(0, 100, 4, 0), (2500, 200, 3, 0)])
        never = {"policy": {"kind": "fixed", "draft_length": 1}, "acceptance": {"alpha": 0}}
        tight = bench.trace("tight", [(0, 12, 10, 0), (0, 12, 6, 0)])
        runs = ((PLAIN, config(two, COST, frontend_ms=FRONTEND, max_num_seqs=2)),
                (DRAFTED, config(two, COST, None, never, frontend_ms=FRONTEND, max_num_seqs=2)),
                (TIGHT, config(tight, COST, kv={"block": 16, "blocks": 3}, max_num_seqs=2)))
        for requests, made in runs:
            run = bench.run(made)
            summary = columns(run.folder / "summary.csv")
            checks.exact("means by cause", differences(summary, means(requests)), [])
            for name, wrong in WRONG.items():
                if SEEN_BY[name] is requests:
                    checks.rejects_exactly("means by cause", name, bool(differences(summary, wrong(requests))))
    return checks.finish("waterfalls")


if __name__ == "__main__":
    sys.exit(main())
