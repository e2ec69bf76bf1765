#!/usr/bin/python3
"""Use of `specsim serve` apart from its results: where files are looked for, what is assumed, and which files and messages are written.

Runs at the root of the repository; SPECSIM names the program.
"""
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from bench import Checks, columns, config, serve  # noqa: E402

COST = {"target_fixed_ms": 5.0, "draft_fixed_ms": 1.0}
TRACE = "arrived_us,prompt,output\n0,20,5\n900,30,6\n"
FLAGS = ["--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", "llama-3.2-1b", "--alpha", "0.6", "--rate", "4", "--requests", "20"]


def files(folder, checks):
    """A trace is next to its config, or where the program is started; a byte-order mark at its start is ignored."""
    (folder / "there").mkdir()
    config_text = json.dumps(config({"process": "trace", "file": "requests.csv"}, COST))
    (folder / "there" / "c.yaml").write_text(config_text)
    (folder / "there" / "requests.csv").write_bytes(b"\xef\xbb\xbf" + TRACE.encode())
    (folder / "here.yaml").write_text(config_text.replace("requests.csv", "there/requests.csv"))
    for name in ("there/c.yaml", "here.yaml"):
        serve(folder, name, "--out", "out", "--steps", "--force")
        checks.exact(f"{name}: prompts", columns(folder / "out" / "requests.csv")["prompt_tokens"], ("20", "30"))
        inputs = (folder / "out" / "manifest.yaml").read_text().split("results:")[0]
        checks.holds(f"{name}: its steps are no input of a run, and the trace is", "steps.csv" not in inputs and "there/requests.csv" in inputs)
    done = serve(folder, "there/c.yaml", "--set", "serve.arrivals.requests=1", "--trace", "no.csv", wanted=2)
    checks.holds("a file that is nowhere", "cannot be read: no such file" in done.stderr)
    (folder / "there" / "requests.csv").rename(folder / "there" / "other.csv")
    done = serve(folder, "there/c.yaml", wanted=2)
    checks.holds("where it was looked for", "looked for next to the config and in the working directory" in done.stderr)


def never(folder, checks):
    """A server that never drafts equals the server without speculation, byte for byte, including its name."""
    summaries = []
    without = [*FLAGS[:6], *FLAGS[8:]]  # no acceptance, which is unnecessary without drafts
    for name, options in (("off", [*FLAGS, "--policy", "off"]), ("zero", [*FLAGS, "--policy", "fixed:0"]), ("neither", [*without, "--policy", "off"])):
        serve(folder, *options, "--out", name)
        summaries.append((folder / name / "summary.csv").read_bytes())
    checks.exact("summaries", summaries, [summaries[0]] * 3)
    refused = serve(folder, *without, wanted=2).stderr
    checks.holds("a draft without its acceptance is refused", "--draft: given without its acceptance, allowed: with --alpha" in refused)
    checks.holds("none has limits, and none keeps them", columns(folder / "off" / "summary.csv")["meets_slo"] == ("",))


def words(folder, checks):
    said = " ".join(serve(folder, "--rate", "3", "--requests", "20").stdout.split())
    for part in ("--hardware h100-sxm", "--target llama-3.1-8b", "--prompt {lognormal: {mean: 512, cv: 1}}"):
        checks.holds(f"{part} is assumed, with a note", part in said.split("requests sent")[0])
    full = serve(folder, *FLAGS, "--prompt", "100", "--output", "20", "--policy", "fixed:1")
    checks.holds("nothing is assumed if everything is given", "assumed" not in full.stdout)
    table = json.loads(serve(folder, *FLAGS, "--policy", "fixed:1", "--format", "json").stdout)["tables"][0]
    times = {row[0]: row[1:] for row in table["rows"] if " ms, " in row[0]}
    checks.exact("a figure of times in each row, as a number", (len(times), {type(cell) for row in times.values() for cell in row} <= {int, float}), (19, True))
    (folder / "free.yaml").write_text(json.dumps(config({"process": "poisson", "rate": 5, "requests": 10}, {"target_fixed_ms": 5.0}, {"prompt": 10, "output": 10},
                                                        {"policy": {"kind": "fixed", "draft_length": 2}, "acceptance": {"alpha": 0.5}})))
    checks.holds("acceptance of a server that does not draft causes a note that it has no effect",
                 "--alpha has no effect: the server does not speculate" in serve(folder, *FLAGS, "--policy", "off").stderr)
    checks.holds("a warning", "warning" in serve(folder, "free.yaml").stderr)
    checks.exact("and none with --quiet", serve(folder, "free.yaml", "--quiet").stderr, "")


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for part in (files, never, words):
            part(Path(folder), checks)
    return checks.finish("use of serve")


if __name__ == "__main__":
    sys.exit(main())
