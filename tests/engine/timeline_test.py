#!/usr/bin/python3
"""Reads the timeline of a traced run as a viewer would, and checks that no effect comes before its cause.

    tests/engine/timeline_test.py

SPECSIM_TESTS_ENGINE names the test program that writes it.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal
from pathlib import Path

PROGRAM = os.path.abspath(os.environ.get("SPECSIM_TESTS_ENGINE", "build/specsim_tests_engine"))
REQUESTS = 2000


def overlaps(spans):
    """Pairs of spans of one lane that overlap, nested or not."""
    found = []
    end = None
    for span in sorted(spans, key=lambda s: (s["ts"], s["ts"] + s["dur"])):
        if end is not None and span["ts"] < end:
            found.append(span)
        end = max(end or 0, span["ts"] + span["dur"])
    return found


class Timeline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            subprocess.run([PROGRAM, "[.timeline]"], env={**os.environ, "SPECSIM_TIMELINE": str(path)}, check=True,
                           stdout=subprocess.DEVNULL, timeout=300)
            cls.text = path.read_text(encoding="utf-8")
            cls.left_behind = sorted(os.listdir(folder))
        # Decimal keeps the picoseconds that a double may round.
        cls.trace = json.loads(cls.text, parse_float=Decimal)
        cls.lanes = {e["tid"]: e["args"]["name"] for e in cls.trace["traceEvents"] if e["name"] == "thread_name"}
        cls.spans = collections.defaultdict(list)
        for event in cls.trace["traceEvents"]:
            if event["ph"] == "X":
                cls.spans[cls.lanes[event["tid"]]].append(event)

    def of(self, prefix):
        return [s for lane, spans in self.spans.items() if lane == prefix or lane.startswith(prefix + "/") for s in spans]

    def test_file(self):
        self.assertEqual(self.left_behind, ["trace.json"])
        self.assertEqual(set(self.trace), {"displayTimeUnit", "traceEvents"})
        self.assertEqual({e["ph"] for e in self.trace["traceEvents"]}, {"M", "X"})

    def test_lanes(self):
        self.assertEqual([self.lanes[i] for i in range(1, 6)], ["one", "three/0", "three/1", "three/2", "link"])
        shared = sorted(name for name in self.lanes.values() if name.startswith("shared/"))
        self.assertGreater(len(shared), 1)
        self.assertEqual(len(self.lanes), 5 + len(shared))

    def test_every_request_is_a_span_at_every_stage(self):
        for stage in ("one", "three", "shared", "link"):
            self.assertEqual(len(self.of(stage)), REQUESTS, stage)

    def test_picoseconds(self):
        for spans in self.spans.values():
            for span in spans:
                for key in ("ts", "dur"):
                    self.assertEqual(span[key] * 10**6 % 1, 0)
                    self.assertGreaterEqual(span[key], 0)
        # The work of a shared job is at most its span, because it never runs faster than alone; some ran slower.
        slower = 0
        for span in self.of("shared"):
            self.assertLessEqual(span["args"]["work_ps"], span["dur"] * 10**6 + 1)
            slower += span["args"]["work_ps"] < span["dur"] * 10**6 - 1
        self.assertGreater(slower, REQUESTS // 10)

    def test_spans_of_a_lane_do_not_overlap(self):
        for lane, spans in self.spans.items():
            self.assertEqual(overlaps(spans), [], lane)
        # The check can fail: three units drawn in one lane overlap.
        self.assertNotEqual(overlaps(self.of("three")), [])

    def test_effects_follow_their_causes(self):
        # A stage can have started no more jobs by any moment than the stage before has finished.
        stages = ["one", "three", "shared", "link"]

        def first_violation(before, after):
            ends = sorted(s["ts"] + s["dur"] for s in before)
            starts = sorted(s["ts"] for s in after)
            return next((i for i, (end, start) in enumerate(zip(ends, starts)) if start < end), None)

        for before, after in zip(stages, stages[1:]):
            self.assertIsNone(first_violation(self.of(before), self.of(after)), after)
            self.assertIsNotNone(first_violation(self.of(after), self.of(before)))


if __name__ == "__main__":
    sys.exit(unittest.main())
