#!/usr/bin/python3
"""Reads the timelines of placements as a viewer would: no verification before its drafts, no two spans of a lane at once.

    tests/placement/trace_test.py

SPECSIM names the program, SPECSIM_TESTS_PLACEMENT the test program that writes the timelines of single placements.
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

PROGRAM = os.path.abspath(os.environ.get("SPECSIM_TESTS_PLACEMENT", "build/specsim_tests_placement"))
SPECSIM = os.path.abspath(os.environ.get("SPECSIM", "build/specsim"))
LANES = {
    "serial": ["GPU"],
    "shared": ["GPU, target stream", "GPU, draft stream"],
    "two_gpus": ["target GPU", "draft GPU"],
    "network": ["target GPU", "draft device", "uplink", "downlink"],
}
COLOURS = {"good", "olive", "yellow", "bad", "terrible"}


def spans_of(path):
    """Lane names in their order, and each lane's spans. Decimal keeps the picoseconds that a double may round."""
    trace = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    lanes = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    spans = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            spans[lanes[event["tid"]]].append(event)
    return [lanes[tid] for tid in sorted(lanes)], spans


def end(span):
    return span["ts"] + span["dur"]


def overlaps(spans):
    order = sorted(spans, key=lambda s: (s["ts"], end(s)))
    return [b for a, b in zip(order, order[1:]) if b["ts"] < end(a)]


def by_round(spans, name):
    rounds = collections.defaultdict(list)
    for span in spans:
        if span["name"] == name:
            rounds[span["args"]["round"]].append(span)
    return rounds


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "[.trace]"], env={**os.environ, "SPECSIM_TRACES": folder}, check=True,
                           stdout=subprocess.DEVNULL, timeout=300)
            for path in sorted(Path(folder).glob("*.json")):
                cls.files[path.stem] = spans_of(path)

    def each(self):
        self.assertEqual(len(self.files), 16)
        for name, (lanes, spans) in self.files.items():
            kind, batch, draft = name.rsplit("_", 2)
            yield kind, int(batch), lanes, [s for lane in lanes for s in spans[lane]], spans

    def test_lanes(self):
        for kind, _, lanes, _, _ in self.each():
            self.assertEqual(lanes, LANES[kind] + ["end"])

    def test_spans_of_a_lane_do_not_overlap(self):
        checked = 0
        for kind, _, lanes, everything, spans in self.each():
            for lane in lanes:
                self.assertEqual(overlaps(spans[lane]), [], lane)
            if kind in ("shared", "two_gpus"):  # drawn in one lane, they overlap: the check can fail
                self.assertNotEqual(overlaps(everything), [])
                checked += 1
        self.assertEqual(checked, 8)

    def test_no_verification_before_its_drafts(self):
        for kind, batch, _, everything, spans in self.each():
            drafts, verified, ups = (by_round(everything, name) for name in ("draft", "verify", "drafts"))
            self.assertEqual(sorted(verified), list(range(len(verified))))
            self.assertGreater(len(verified), 50)
            for number, own in verified.items():
                self.assertEqual(len(own), 1)
                self.assertGreaterEqual(len(drafts[number]), 1)
                for cause in drafts[number] + ups[number]:
                    self.assertLessEqual(end(cause), own[0]["ts"])
                if number > 0:
                    self.assertLessEqual(end(verified[number - 1][0]), own[0]["ts"])
            prefill = [s for s in everything if s["name"] in ("prefill", "draft prefill")]
            self.assertEqual(len(prefill), 2)
            self.assertLessEqual(max(end(s) for s in prefill), min(s["ts"] for s in drafts[0]))
            # A block drafted during a verification that accepted everything is used; after a rejection it is wasted.
            if kind in ("shared", "two_gpus") and batch == 1:
                vain = by_round(everything, "draft in vain")
                for number in range(len(verified) - 1):
                    full = verified[number][0]["args"]["accepted"] == 3
                    self.assertEqual(len(vain[number + 1]), 0 if full else 1)
                    self.assertEqual(drafts[number + 1][0]["ts"] < end(verified[number][0]), full)

    def test_everything_is_there_to_the_end(self):
        for kind, _, _, everything, spans in self.each():
            delivery = 10 if kind == "network" else 0  # a message's span is its transmission; 10 us later it arrives
            self.assertEqual(max(end(s) for s in everything if s["name"] != "end") + delivery, end(spans["end"][0]))

    def test_colours(self):
        seen = set()
        for _, batch, _, everything, _ in self.each():
            for span in everything:
                if span["name"] != "verify":
                    continue
                self.assertIn(span["cname"], COLOURS)
                if batch == 1:
                    wanted = {0: "terrible", 1: "yellow", 2: "olive", 3: "good"}
                    self.assertEqual(span["cname"], wanted[span["args"]["accepted"]])
                seen.add(span["cname"])
        self.assertGreaterEqual(len(seen), 4)

    def test_the_program_writes_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            run = subprocess.run([SPECSIM, "run", "configs/examples/two_gpus.yaml", "--set", "rounds=1000", "--set", "sweep={}",
                                  "--trace", str(path), "--quiet"], capture_output=True, text=True, timeout=300)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            lanes, spans = spans_of(path)
            self.assertEqual(lanes, LANES["two_gpus"])
            self.assertGreater(len(spans["target GPU"]), 50)
            for lane in lanes:
                self.assertEqual(overlaps(spans[lane]), [])
            self.assertEqual(os.listdir(folder), ["trace.json"])


if __name__ == "__main__":
    sys.exit(unittest.main())
