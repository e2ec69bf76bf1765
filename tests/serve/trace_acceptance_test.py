#!/usr/bin/python3
"""Recorded acceptance in `specsim serve`: the rounds of each form, calculated by hand.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np  # noqa: E402

from bench import Bench, Checks, config, mean_p  # noqa: E402

REQUESTS, OUTPUT, LONGEST = 12, 70, 4


def walk(prefixes, drafted, output=OUTPUT):
    """Rounds and accepted drafts of an output whose first token comes with the prompt; a round's start is counted from that token."""
    rounds, accepted, at = 0, 0, 0
    while at < output - 1:
        got = min(prefixes[at % len(prefixes)], drafted)
        rounds, accepted, at = rounds + 1, accepted + got, at + got + 1
    return rounds, accepted


def main():
    checks = Checks()
    g = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, False)

        def run(records, drafted, requests=REQUESTS, **more):
            (bench.folder / "trace.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
            speculation = {"policy": {"kind": "fixed", "draft_length": drafted}, "acceptance": {"trace": "trace.jsonl", **more}}
            return bench.run(config({"process": "closed", "concurrency": 3, "requests": requests}, {"target_fixed_ms": 1},
                                    {"prompt": {"fixed": 16}, "output": {"fixed": OUTPUT}}, speculation, max_num_seqs=4))

        positions = [[g.randint(0, LONGEST) for _ in range(g.randint(30, 90))] for _ in range(5)]
        rounds = [[g.randint(0, LONGEST) for _ in range(25)] for _ in range(5)]
        for drafted in (1, 2, LONGEST):
            done = run([{"draft_length": LONGEST, "accepted": one} for one in positions], drafted)
            # Positions after the first output token that the record's end could not have cut.
            usable = [one[1:len(one) - LONGEST] for one in positions]
            expected = [walk(usable[i % 5], drafted) for i in range(REQUESTS)]
            checks.exact(f"accepted by position, {drafted} drafted", list(zip(done.whole("rounds"), done.whole("accepted"))), expected)
            shifted = [walk([one[0], *one[1:]], drafted) for one in positions]
            checks.rejects_exactly(f"accepted by position, {drafted} drafted", "a record that begins a token early", shifted != expected[:5])
            done = run([{"draft_length": LONGEST, "rounds": one} for one in rounds], drafted)
            spread = [[left for accepted in one for left in range(accepted, -1, -1)] for one in rounds]
            checks.exact(f"accepted by round, {drafted} drafted", list(zip(done.whole("rounds"), done.whole("accepted"))),
                         [walk(spread[i % 5], drafted) for i in range(REQUESTS)])
        kinds = [{"kind": "code", "draft_length": 2, "rounds": [2] * 40}, {"kind": "prose", "draft_length": 2, "rounds": [0] * 40}]
        checks.exact("requests of one kind", set(run(kinds, 2, kind="code").whole("rounds")), {23})
        checks.exact("both kinds in turn", run(kinds, 2).whole("rounds"), [23, 69] * (REQUESTS // 2))
        # Overlaps of 1 and 0 are deterministic; others are met in the mean.
        checks.exact("overlaps of 1", set(run([{"overlap": [1.0] * 20}], 2).whole("rounds")), {23})
        done = run([{"overlap": [0.6] * 50}], 3, requests=3000)
        per_round = 1 + 0.6 + 0.36 + 0.216
        counted, tokens = np.array(done.whole("rounds")), np.array(done.whole("rounds")) + np.array(done.whole("accepted"))
        checks.p("overlaps of 0.6", mean_p(tokens - per_round * counted, 0.0))
        checks.mutant("overlaps of 0.6", "overlaps of 0.62", mean_p(tokens - (1 + 0.62 + 0.62 ** 2 + 0.62 ** 3) * counted, 0.0))
    return checks.finish("recorded acceptance")


if __name__ == "__main__":
    sys.exit(main())
