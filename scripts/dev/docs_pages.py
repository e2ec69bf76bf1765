#!/usr/bin/python3
"""Fills README.md, docs/ and results/notes/ from the program and results/, and checks that they are up to date.

usage: scripts/dev/docs_pages.py [--check]     (from the repository's root; SPECSIM names the program, build/specsim by default)

Writes docs/reference.md (specsim reference) and fills the blocks of README.md, docs/**/*.md and results/notes/*.md, which end at <!-- end -->.
Each drafter, verifier and policy of the registry has a page docs/methods/KIND-NAME.md. Its prose is written by hand; a missing page is
created with an outline.
  <!-- output: build/specsim ARGUMENTS ;; REGEX -->   the command's output: the lines that match the expression, or all lines without one
  <!-- python: PATH -->           what a script prints that imports the package; left as it is where PYTHONPATH does not lead to the package
  <!-- include: PATH -->          the content of a file; PATH#N: its Nth paragraph; PATH ;; REGEX: the lines that match the expression
  <!-- code: PATH#NAME -->        the lines of a source between "[NAME]" and "[end of NAME]" in its comments; without #NAME: all
  <!-- table: NAME -->            a table that a function below makes
  <!-- part: KIND/NAME -->        a method's kind and source; <!-- figures: KIND/NAME -->: its parameters, an example, simulated values
  <!-- value: NAME -->            a number in a sentence, from a CSV; "step: PAGE | GROUP | FIGURE" is one of results/fidelity/steps/errors.csv;
                                  "method:", "side by side:", "adaptive:", "trees:" and "heatmap:" name a row and column (see method_value and others)
--check writes no files, prints the differences, and ends with status 1 if there are any.
"""
import difflib
import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results"))
import latency_tables  # noqa: E402
import served_speedups  # noqa: E402
from tables import geometric_mean, quantile, rows_of  # noqa: E402

SPECSIM = os.environ.get("SPECSIM", "build/specsim")
REFERENCE = Path("docs/reference.md")
METHODS = Path("docs/methods")
EXAMPLES = Path("configs/examples/methods")
KINDS = {"drafter": "Drafters", "verifier": "Verifiers", "policy": "Policies"}
WIDTH = 150  # characters of a command's line


@functools.lru_cache(maxsize=None)
def printed(arguments):
    """The program's output; its standard error is shown if it fails."""
    done = subprocess.run([SPECSIM, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"docs_pages: specsim {shlex.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


# ---- the registry, as docs/reference.md has it

class Part:
    """A part's section of the reference: "### kind/name", its sentences, and the table of its parameters."""

    def __init__(self, kind, name, body):
        self.kind, self.name = kind, name
        text, _, table = body.partition("\n| key |")
        self.table = f"| key |{table}".rstrip() if table else ""
        text = re.sub(r" Page: \[\S+$", "", " ".join(text.split()))
        text, _, source = text.partition(" Source: ")
        self.source = source.rstrip(".")
        self.lossless = None
        if kind == "verifier":
            self.lossless = "(lossless)." in text
        mark = re.match(r"(.*?)\s*(\((?:not )?lossless\))?\.(?: (?:(?:Not l|L)ossless\. )?(.*))?$", text) if kind == "verifier" else re.match(r"(.*?)()\.(?: (.*))?$", text)
        self.summary, self.description = mark[1], mark[3] or ""

    @property
    def page(self):
        return f"{self.kind}-{self.name.replace('_', '-')}.md"


def parts(reference):
    """The parts by kind and name, in the registry's order."""
    found = {}
    for section in re.split(r"^### ", reference, flags=re.M)[1:]:
        title, _, body = section.partition("\n")
        kind, _, name = title.strip().partition("/")
        if kind in KINDS and name:
            found[kind, name] = Part(kind, name, re.split(r"^## ", body, flags=re.M)[0].strip())
    return found


def linked(source):
    """Turns arXiv numbers into links."""
    return re.sub(r"(?:arXiv )?\b(\d{4}\.\d{5})\b", r"[arXiv \1](https://arxiv.org/abs/\1)", source)


# ---- figures of a method

def kind_of(cell, kind):
    return cell[kind].split()[0] if cell[kind] else ""


# Drafters by their source of drafts; one without a group has its own group at the end.
GROUPS = {
    "Chains of a draft model": ["chain", "pard", "early_exit", "cs_drafting", "saguaro"],
    "Heads on the target": ["eagle", "eagle3", "mtp", "medusa", "hydra", "redrafter", "parallel", "dflash", "dflash2", "dspark", "domino"],
    "Trees": ["tree_static", "tree_ranked", "tree_sequoia", "tree_dynamic", "opt_tree", "spec_exec", "dyspec", "ddtree", "caddtree", "jetspec"],
    "N-grams and retrieval": ["prompt_lookup", "suffix", "suffix_decoding", "ngram_simple", "ngram_mod", "ngram_cache", "ngram_map_k", "ngram_map_k4v",
                              "sglang_ngram", "lookahead", "token_recycling", "sam_decoding", "rest"],
    "Combinations": ["hybrid", "in_turn"],
}


def what_it_is(part):
    """The first sentence of the method's page, or the registry's."""
    path = METHODS / part.page
    opening = path.read_text().split("\n\n")[1].replace("\n", " ") if path.exists() else "<!--"
    return f"{part.summary[0].upper()}{part.summary[1:]}" if opening.startswith("<!--") else re.split(r"(?<=\.) (?=[A-Z]|llama\.cpp|vLLM)", opening)[0].rstrip(".")


def methods_table(_):
    """Drafters by group, then verifiers, each with its first sentence."""
    every = list(parts(REFERENCE.read_text()).values())
    grouped = [(title, [part for name in names for part in every if (part.kind, part.name) == ("drafter", name)]) for title, names in GROUPS.items()]
    known = [part for _, group in grouped for part in group]
    grouped.append(("Other drafters", [part for part in every if part.kind == "drafter" and part not in known]))
    grouped += [("Lossless verifiers", [part for part in every if part.lossless]), ("Lossy verifiers", [part for part in every if part.lossless is False])]
    lines = []
    for title, group in grouped:
        if not group:
            continue
        lines += [f"### {title}", ""]
        lines += [f"- [`{part.name}`]({part.page}): {what_it_is(part)}." for part in group]
        lines.append("")
    return "\n".join(lines).rstrip()


def policies_table(_):
    policies = [part for part in parts(REFERENCE.read_text()).values() if part.kind == "policy"]
    return "\n".join(f"- [`{part.name}`]({part.page}): {what_it_is(part)}." for part in policies)


def example_of(part):
    """The decode section of the first config in configs/examples/methods that uses the part, as YAML, and the config's name; None if none does."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        config = yaml.safe_load(path.read_text())
        sweep = config.get("sweep", {})
        sections = [config["decode"]]
        for axes in (sweep, sweep.get("zip", {})):
            sections += [{**config["decode"], **section} for section in axes.get("decode", [])]
            for key, values in axes.items():
                if key in ("decode.drafter", "decode.verifier", "decode.policy"):
                    sections += [{**config["decode"], key.removeprefix("decode."): value} for value in values]
        for section in sections:
            value = section.get(part.kind)
            if (value if isinstance(value, str) else (value or {}).get("kind")) == part.name:
                shown = "\n".join(f"  {key}: {yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10000).strip().removesuffix('...').strip()}"
                                  for key, value in section.items())
                return f"decode:\n{shown}", path
    return None


def part_named(what):
    kind, _, name = what.partition("/")
    return parts(REFERENCE.read_text())[kind, name]


def part_block(what):
    """A method's kind and source, as the registry has them."""
    part = part_named(what)
    kind = {"drafter": "Drafter", "verifier": "Verifier, lossless" if part.lossless else "Verifier, not lossless", "policy": "Draft length policy"}[part.kind]
    return f"**{kind}.**" + (f" Source: {linked(part.source)}." if part.source else "")


def parameters_of(part):
    """A method's table of parameters. Those of every fixed tree are only on the page of tree_static."""
    tree = part_named("drafter/tree_static")
    shared = [row for row in part.table.splitlines()[2:] if part.name != tree.name and row in tree.table.splitlines()]
    own = [row for row in part.table.splitlines() if row not in shared]
    keys = ", ".join(row.split(" | ")[0].strip("| ") for row in shared)
    return "\n".join(own * (len(own) > 2) + [""] * (len(own) > 2 and bool(shared)) + [f"{keys}: as for [tree_static]({tree.page}#parameters)."] * bool(shared)) or "None."


def figures_block(what):
    """A method's parameters, the first example that uses it, and its cell of results/methods, of that example if there is one."""
    part = part_named(what)
    lines = ["## Parameters", "", parameters_of(part), ""]
    example = example_of(part)
    if example:
        lines += ["## In a config", "", "```yaml", example[0], "```", "", f"From [{example[1].name}](../../{example[1]}).", ""]
    cells = [cell for cell in rows_of("results/methods/methods.csv") if kind_of(cell, part.kind) == part.name]
    if cells:
        cell = next((cell for cell in cells if example and cell["config"] == example[1].stem), cells[0])
        other = {"drafter": "verifier", "verifier": "drafter", "policy": "drafter"}[part.kind]
        method = f"`{cell[part.kind]}` with {other} `{cell[other]}`" + (f" and policy `{cell['policy']}`" if cell["policy"] and part.kind != "policy" else "")
        figures = f"{float(cell['tokens_per_round']):.3f} tokens, with {float(cell['draft_passes']):.3g} draft passes and {float(cell['verified_rows']):.3g} verified rows"
        where = "" if example and cell["config"] == example[1].stem else f" (config {cell['config']})"
        lines += [f"Simulated{where}, a round of {method} emits {figures}. [All methods](../results/methods.md).", ""]
    return "\n".join(lines).rstrip()


def new_page(part):
    """A method's page before anybody has written it."""
    name = f"{part.kind}/{part.name}"
    return "\n".join([f"# {part.name}", "", "Two sentences on what it is.", "", f"<!-- part: {name} -->", "<!-- end -->", "", "## When to use it", "",
                      "## How it works", "", f"<!-- figures: {name} -->", "<!-- end -->", ""])


def words_of(row, words):
    """Whether a row matches "COLUMN WORDS, COLUMN WORDS, ...": cells begin with the words, numbers are equal."""
    for word in re.split(r",\s+(?=(?:config|cell|verifier|drafter|policy|method|batch) )", words):
        column, _, wanted = word.strip().partition(" ")
        found = row["workload"].split()[1].rstrip(",") if column == "batch" else row[column]
        if found != wanted and (column in ("config", "cell", "batch") or not found.startswith(wanted + " ")):
            return False
    return True


def only_row(path, words):
    found = [row for row in rows_of(path) if words_of(row, words)]
    if len(found) != 1:
        sys.exit(f"docs_pages: {path} has {len(found)} rows of \"{words}\", allowed: one")
    return found[0]


def method_value(what):
    """Tokens per round, or "WORDS | speedup", of a cell of results/methods/methods.csv: "config lossy, verifier lenience"."""
    words, _, figure = (word.strip() for word in what.partition("|"))
    return f"{float(only_row('results/methods/methods.csv', words)[figure or 'tokens_per_round']):.2f}"


def side_by_side_value(what):
    """Speedup at a batch, of results/methods/side_by_side.csv: "drafter tree_dynamic | 32"."""
    words, _, batch = (word.strip() for word in what.partition("|"))
    return f"{float(only_row('results/methods/side_by_side.csv', words)[f'speedup_batch_{batch}']):.2f}"


def against_fixed(what):
    """How much faster a policy is than the best fixed draft length, percent, of results/method_claims/adaptive: "batch 32, method entropy"."""
    batch, _, policy = what.partition(", method ")
    rows = [row for row in rows_of("results/method_claims/adaptive/ranking.csv") if words_of(row, batch)]
    fixed = max(float(row["speedup"]) for row in rows if re.fullmatch(r"chain draft_length \d+ \| token", row["method"]))
    found = [float(row["speedup"]) for row in rows if f"| {policy} |" in row["method"]]
    if len(found) != 1:
        sys.exit(f"docs_pages: results/method_claims/adaptive has {len(found)} rows of \"{what}\", allowed: one")
    percent = 100 * (found[0] / fixed - 1)
    return "as fast as" if abs(percent) < 0.05 else f"{abs(percent):.1f} % {'faster' if percent > 0 else 'slower'} than"


def tree_value(what):
    """Speedup of a method in results/method_claims/trees: "batch 32, method tree_sequoia"."""
    return f"{float(only_row('results/method_claims/trees/ranking.csv', what)['speedup']):.2f}"


# ---- measurements on real models

def heatmap_value(what):
    """Of results/eagle_70b: the best draft length of a batch, "batch 1, best", or a speedup, "batch 256, draft length 5"."""
    batch, figure = re.fullmatch(r"batch (\d+), (best|draft length \d+)", what).groups()
    speedups = {row["decode.drafter.draft_length"]: float(row["speedup"]) for row in rows_of("results/eagle_70b/data.csv") if row["workload.batch"] == batch}
    return max(speedups, key=speedups.get) if figure == "best" else f"{speedups[figure.split()[-1]]:.2f}"


def span(values, form="{:.2f}"):
    """Least and most of the values; one value if both print the same."""
    least, most = form.format(min(values)), form.format(max(values))
    return least if least == most else f"{least} to {most}"


def calibration_table(_):
    """Passes of results/calibration/novels, and acceptance and decoding at temperature 1."""
    folder = Path("results/calibration/novels")
    passes = rows_of(folder / "passes.csv")
    passes = [row for row in passes if 1 < int(row["context"]) < 100]  # one context of the three
    first = {(row["model"], row["batch"], row["context"]): float(row["ms"]) for row in reversed(passes)}
    lines = ["| model | tokens | ms, median | ratio to fewest tokens | GB/s of weights |", "|---|---|---|---|---|"]
    for row in passes:
        ratio = float(row["ms"]) / first[row["model"], row["batch"], row["context"]]
        lines.append(f"| {row['model']} | {row['tokens']} | {float(row['ms']):.3f} | {ratio:.2f} | {float(row['weight_gb_per_s']):.1f} |")
    lines += ["", "| position | judged | alpha, by outcomes | alpha, by distributions | z |", "|---|---|---|---|---|"]
    for row in (row for row in rows_of(folder / "acceptance.csv") if row["temperature"] == "1"):
        lines.append(f"| {row['condition']} | {row['judged']} | {float(row['alpha_outcomes']):.3f} | "
                     f"{float(row[next(name for name in row if name.startswith('alpha_') and name != 'alpha_outcomes')]):.3f} | {float(row['z']):.2f} |")
    lines += ["", "| draft length | tokens per round | tokens per second | speedup | speedup at all prompts' tokens per round |", "|---|---|---|---|---|"]
    for row in (row for row in rows_of(folder / "speed.csv") if row["temperature"] == "1"):
        lines.append(f"| {row['draft_length']} | {float(row['tokens_per_round']):.3f} | {float(row['tokens_per_second']):.1f} | "
                     f"{float(row['speedup']):.2f} ± {float(row['speedup_se']):.2f} | {float(row['speedup_of_all_prompts']):.2f} |")
    return "\n".join(lines)


def validation_table(_):
    rows = rows_of("results/validation/novels/validation.csv")
    errors = [100 * float(row["timing_error"]) for row in rows]
    speedups_off = [abs(100 * float(row["speedup_error"])) for row in rows if float(row["draft_length"]) > 0]
    judged = [row for row in rows if row["inside_99"]]
    iid = [abs(100 * (float(row["iid_tokens_per_round"]) / float(row["predicted_tokens_per_round"]) - 1)) for row in judged]
    gaps = [abs(100 * (float(row["tokens_per_round"]) / float(row["predicted_tokens_per_round"]) - 1)) for row in judged]
    longer = sum(error > 0 for error in errors)
    plain = [100 * float(row["timing_error"]) for row in rows if row["draft_length"] == "0"]
    whole = sum(float(row["measured_s"]) for row in rows)

    groups = {}
    for row, error in zip(rows, errors):
        groups.setdefault((row["temperature"], row["batch"]), []).append(error)
    means = [sum(group) / len(group) for group in groups.values()]

    def part_off(*names):
        """Predicted minus measured seconds of some parts, in % of the measured time of all runs."""
        off = sum(float(row[f"predicted_{name}_s"]) - float(row[f"measured_{name}_s"]) for row in rows for name in names)
        return 100 * (off - (sum(float(row["measured_judging_s"]) for row in rows) if "target" in names else 0)) / whole
    return "\n".join([
        "| | measured | goal |", "|---|---|---|",
        f"| time of {len(rows)} runs, error: median, largest | {median(map(abs, errors)):.1f} %, {max(map(abs, errors)):.1f} % | 3 %, 8 % |",
        f"| predicted too long | {longer} of {len(rows)}, {sum(errors) / len(errors):+.1f} % on average; {len(plain)} runs without a draft: {sum(plain) / len(plain):+.1f} % | |",
        f"| mean error of the runs of one temperature and batch | {min(means):+.1f} to {max(means):+.1f} % | |",
        f"| predicted minus measured, all runs | target passes with judging {part_off('target'):+.1f} %, draft passes {part_off('first_draft', 'other_drafts'):+.1f} % | |",
        f"| standard error of one such error, median | {median(100 * float(row['timing_noise']) for row in rows):.1f} % | |",
        f"| tokens per round of held-out prompts inside the 99 % interval | {sum(row['inside_99'] == '1' for row in judged)} of {len(judged)}, "
        f"off by up to {max(gaps):.1f} % | all |",
        f"| speedup (time and acceptance), error: median, largest | {median(speedups_off):.1f} %, {max(speedups_off):.1f} % | |",
        f"| tokens per round by one alpha instead of the trace | up to {max(iid):.1f} % off | |"])


def gpu_table(_):
    folder = Path("results/gpu/h200-sxm")
    runs = rows_of(folder / "enlarged/validation.csv")
    errors = [100 * float(row["timing_error"]) for row in runs]
    judged = [row for row in runs if row["inside_99"] and row["batch"] == runs[0]["batch"]]  # the same prompts in every batch
    speedups = [abs(100 * float(row["speedup_error"])) for row in runs if float(row["draft_length"]) > 0]
    best = max(runs, key=lambda row: float(row["speedup"]))
    lines = ["| | measured | goal |", "|---|---|---|",
             f"| time of {len(runs)} runs, given their accepted counts, error: median, largest | {median(map(abs, errors)):.1f} %, {max(map(abs, errors)):.1f} % | 3 %, 8 % |",
             f"| predicted too long | {sum(error > 0 for error in errors)} of {len(runs)}, {sum(errors) / len(errors):+.1f} % on average | |",
             f"| tokens per round of held-out prompts inside the 99 % interval | {sum(row['inside_99'] == '1' for row in judged)} of {len(judged)} | all |",
             f"| speedup (time and acceptance), error: median, largest | {median(speedups):.1f} %, {max(speedups):.1f} % | |",
             f"| largest speedup | {float(best['speedup']):.2f} at batch {best['batch']}, draft length {best['draft_length']}, temperature {best['temperature']} | |"]
    for run, what in (("llama-8b-1b", "batch 1 to 16"), ("llama-8b-1b-batch-64", "batch 64")):
        rounds = [abs(100 * float(row["error"])) for row in rows_of(folder / run / "rounds.csv")]
        lines.append(f"| {len(rounds)} rounds (Llama-3.1-8B, 3.2-1B) and the sum of their parts, {what}, error: median, largest | {median(rounds):.1f} %, {max(rounds):.1f} % | |")
    shares = {row["what"]: float(row["gb_per_s"]) for row in rows_of(folder / "llama-8b-1b/bandwidth.csv")}
    lines.append(f"| memory read and copied, GB/s (data sheet: 4800) | {shares['read']:.0f}, {shares['copy']:.0f} | |")
    terms = rows_of(folder / "llama-8b-1b/terms.csv")
    for what, name, goal in (("host_and_launches", "the host, launches and gaps", 3), ("draws_and_acceptance", "draws and acceptance", 2)):
        own = [100 * float(row["share_of_round"]) for row in terms if row["what"] == what and row["share_of_round"]]
        if own:
            lines.append(f"| {name}, of a round | {span(own, '{:.1f}')} % | {goal} % |")
    peers = {row["what"]: row for row in rows_of(folder / "peers.csv")}
    lines.append(f"| logits in bf16: difference from transformers' | {100 * float(peers['relative difference of logits']['specsim']):.1f} % | 2 % |")
    return "\n".join(lines)


def measured_table(_):
    lines = ["| | measured | goal |", "|---|---|---|"]
    folders = {"novels-5m, widened to 134 MB, F32": "novels", "llama-160m's shape, F32": "llama-160m", "llama-160m's shape, BF16": "llama-160m-bf16"}
    for name, folder in folders.items():
        rows = [row for row in rows_of(f"results/calibration/{folder}/passes.csv") if row["model"] == "target"]
        plain = {row["context"]: float(row["ms"]) for row in rows if row["tokens"] == "1"}
        shares = [100 * float(row["weight_gb_per_s"]) / float(row["read_gb_per_s"]) for row in rows if row["tokens"] == "1"]
        lines.append(f"| {name}: share of the measured bandwidth that one token reaches | {span(shares, '{:.0f}')} % | 80 % |")
        if folder != "novels":
            many = {tokens: span([float(row["ms"]) / plain[row["context"]] for row in rows if row["tokens"] == tokens]) for tokens in ("4", "8")}
            lines.append(f"| {name}: 4 and 8 tokens over one | {many['4']}; {many['8']} | 1.25; 1.6 |")
    compared = rows_of("results/llama_cpp/llama_cpp.csv")
    for precision in ("f32", "f16"):
        ratios = "; ".join(span([float(row["ratio"]) for row in compared if row["precision"] == precision and row["tokens"] == tokens]) for tokens in ("1", "4", "8"))
        lines.append(f"| time over llama.cpp's, one thread, {precision.upper()}: 1, 4 and 8 tokens | {ratios} | |")
    return "\n".join(lines)


# ---- claims

def refuted_table(_):
    lines = ["| id | claim | claimed | measured |", "|---|---|---|---|"]
    for row in rows_of("results/claims/claims.csv"):
        if row["verdict"].startswith("refuted"):
            lines.append("| " + " | ".join(row[key].replace("|", "\\|") for key in ("id", "claim", "claimed", "measured")) + " |")
    return "\n".join(lines)


# ---- values in sentences

def claims_counted():
    verdicts = [row["verdict"] for row in rows_of("results/claims/claims.csv")]
    return len(verdicts), sum(verdict.startswith("confirmed") for verdict in verdicts), sum(verdict.startswith("refuted") for verdict in verdicts)


def published_ratios(quantity):
    return [float(row["published_over_simulated"]) for row in rows_of("results/roofline/published_speedups.csv")
            if row["quantity"] == quantity and row["scored"] == "yes"]


def published_speedup_ratios():
    return published_ratios("speedup")


def served_ratios(quantity):
    """Ratios of scored rows; a server's speed without speculation counts once."""
    rows = [row for row in rows_of("results/served/served_speedups.csv") if row["scored"] == "yes"]
    return served_speedups.ratios_of(rows, quantity)


def served(quantity):
    ratios = served_ratios(quantity)
    return f"{geometric_mean(ratios):.2f} ({len(ratios)} rows: {sum(abs(ratio - 1) <= 0.1 for ratio in ratios)} within 10 %, {sum(abs(ratio - 1) <= 0.2 for ratio in ratios)} within 20 %)"


def llama_cpp_held():
    """Error of llama.cpp's passes to 8 tokens that no parameter was fitted to, as scripts/results/llama_cpp_latencies.py rounds it."""
    ratios = [float(row["published_over_simulated"]) for row in rows_of("results/roofline/llama_cpp.csv") if row["set"] == "held" and int(row["tokens"]) <= 8]
    errors = [100 * abs(ratio - 1) for ratio in ratios]
    return f"{median(errors):.0f} % at the median and {quantile(errors, 0.9):.0f} % at the 90th percentile ({len(errors)} rows)"


def timing_errors(folder="results/validation/novels"):
    return sorted(abs(100 * float(row["timing_error"])) for row in rows_of(f"{folder}/validation.csv") if row["timing_error"])


def served_choices(pattern):
    """Two numbers of the text of results/served/served_speedups.md."""
    found = re.search(pattern, Path("results/served/served_speedups.md").read_text(), re.S)
    return f"{found[2]} of {found[1]}"


def language_errors(what):
    """Least and most error of predicted rows of results/language/language.csv, percent: "SOURCE; METHOD; TEMPERATURE; COLUMN", with words of each."""
    source, method, temperature, column = (word.strip() for word in what.split(";"))
    errors = [100 * (float(row[column]) / float(row["published"]) - 1) for row in rows_of("results/language/language.csv")
              if source in row["source"] and method in row["method"] and row["temperature"] == temperature and row["role"] == "predicted"]
    return span(errors, "{:+.0f}") + " %"


def side_by_side_table(_):
    shown = {"chain of 2": "verifier token, drafter chain draft_length 2", "block verification, chain of 4": "verifier block, drafter chain draft_length 4",
             "`eagle`, chain of 4": "drafter eagle branching [1,1,1,1]", "`eagle`, tree of 21": "drafter eagle branching [3,2,1,1]",
             "`tree_dynamic`, 21 nodes": "drafter tree_dynamic", "`prompt_lookup`": "drafter prompt_lookup"}
    return latency_tables.table(["example", "speedup at batch 1", "at batch 8", "at batch 32"],
                 [[name, *(side_by_side_value(f"{words} | {batch}") for batch in (1, 8, 32))] for name, words in shown.items()])


def shared_rows_table(_):
    """Speedups of the cells of one budget of rows, all rows, and a perfect head, by batch (configs/examples/methods/shared_rows.yaml)."""
    cells = {32: (30, 22, 38), 128: (31, 23, 39)}
    return latency_tables.table(["batch", "verified by estimate", "all verified", "perfect head"],
                              [[str(batch), *(method_value(f"config shared_rows, cell {cell} | speedup") for cell in shown)] for batch, shown in cells.items()])


def language_table(_):
    shown = [("block verification", "`spread: 0.7`", "block verification; block; 1; language"),
             ("siblings without replacement, Llama-3 70B and 8B", "`spread: 0.7`", "appendix E; sibling; 1; language"),
             ("siblings, Medusa's heads", "`spread: 1.4`", "Medusa; sibling; 0; weak draft"),
             ("EAGLE's tree of 25, temperature 0", "`spread: 1`", "Tables 2 and 5; EAGLE's tree of 25; 0; head"),
             ("EAGLE-2's tree, temperature 0", "`spread: 1`", "Tables 2 and 5; EAGLE-2; 0; head"),
             ("EAGLE's tree of 25, temperature 1", "`spread: 1`", "Tables 2 and 5; EAGLE's tree of 25; 1; head"),
             ("Sequoia's trees, temperature 0", "`spread: 1.4`", "Tables 1 and 3; Sequoia's tree; 0; weak draft"),
             ("Sequoia's trees, temperature 0.6", "`spread: 1.4`", "Tables 1 and 3; Sequoia's tree; 0.6; weak draft"),
             ("EAGLE's tree at temperature 1, fitted at 0", "flat head", "Table 1:; EAGLE's tree of 25; 1; flat head"),
             ("EAGLE-2's tree at temperature 1, fitted at 0", "flat head", "six tasks; EAGLE-2; 1; flat head"),
             ("many drafts of a small model (SpecTr)", "`spread: 0.7`", "SpecTr; K-SEQ; 1; language")]
    return latency_tables.table(["method", "setting", "predicted against published"], [[method, setting, language_errors(what)] for method, setting, what in shown])


def kernel_errors_table(_):
    shown = {"products, bf16": "product | bfloat16", "products, fp8": "product | fp8", "decode attention, bf16": "attention_decode | bfloat16",
             "latent attention, bf16": "attention_latent | bfloat16", "experts, bf16": "experts | bfloat16"}
    return latency_tables.table(["kernel, shapes that no fit saw", "median error over GPUs", "90th percentile"],
                 [[name, *(latency_tables.unseen_span(f"{words} | {figure}") for figure in ("middle", "high"))] for name, words in shown.items()])


def rankings(figure):
    """(least, most) of a column of results/rankings/rankings.md, by batch: "lost | 1"."""
    column, _, batch = (word.strip() for word in figure.partition("|"))
    lines = [line.strip("| ").split(" | ") for line in Path("results/rankings/rankings.md").read_text().split("\n\n")[1].splitlines()]
    at = lines[0].index(column)
    found = [float(re.match(r"[-\d.]+", line[at])[0]) for line in lines[2:] if batch in ("", line[1])]
    return f"{min(found):g} to {max(found):g}"


VALUES = {
    "served settings": lambda: served_choices(r"(\d+) servers have several settings.*?is the measured one for (\d+)"),
    "drafters": lambda: str(sum(kind == "drafter" for kind, _ in parts(REFERENCE.read_text()))),
    "verifiers": lambda: str(sum(kind == "verifier" for kind, _ in parts(REFERENCE.read_text()))),
    "claims": lambda: f"{claims_counted()[0]}",
    "claims confirmed": lambda: f"{claims_counted()[1]}",
    "claims refuted": lambda: f"{claims_counted()[2]}",
    "claims conditional": lambda: f"{claims_counted()[0] - claims_counted()[1] - claims_counted()[2]}",
    "published speedups": lambda: f"{len(published_speedup_ratios())}",
    "served speedups": lambda: served("speedup"),
    "served plain steps": lambda: served("plain"),
    "served rounds": lambda: served("round"),
    "published over simulated": lambda: f"{geometric_mean(published_speedup_ratios()):.2f}",
    "published over simulated, least": lambda: f"{min(published_speedup_ratios()):.2f}",
    "published over simulated, most": lambda: f"{max(published_speedup_ratios()):.2f}",
    "published cost ratios": lambda: f"{len(published_ratios('cost_ratio'))}",
    "published cost ratios over simulated": lambda: f"{geometric_mean(published_ratios('cost_ratio')):.2f}",
    "llama.cpp held": llama_cpp_held,
    "runs timed": lambda: f"{len(timing_errors())}",
    "timing error, middle": lambda: f"{median(timing_errors()):.1f} %",
    "timing error on a GPU, middle": lambda: f"{median(timing_errors('results/gpu/h200-sxm/enlarged')):.1f} %",
    "timing error on a GPU, worst": lambda: f"{timing_errors('results/gpu/h200-sxm/enlarged')[-1]:.1f} %",
    "timing error, worst": lambda: f"{timing_errors()[-1]:.1f} %",
}
TABLES = {"methods": methods_table, "refuted": refuted_table, "policies": policies_table, "calibration": calibration_table, "validation": validation_table, "measured": measured_table, "gpu": gpu_table,
          "side by side": side_by_side_table, "shared rows": shared_rows_table, "language": language_table, "kernel errors": kernel_errors_table,
          **{name: (lambda _, make=make: make()) for name, make in latency_tables.TABLES.items()}}
# Values that name a row of a table: "step: PAGE | GROUP | FIGURE".
OF_ROWS = {"language": language_errors, "rankings": rankings, "method": method_value, "side by side": side_by_side_value, "adaptive": against_fixed, "trees": tree_value,
           "heatmap": heatmap_value,
           "step": latency_tables.step_value, "fidelity": latency_tables.fidelity_value, "unseen": latency_tables.unseen_value,
           "unseen span": latency_tables.unseen_span}


# ---- blocks

def shown_command(arguments):
    """The command as a reader would type it, in lines of at most WIDTH."""
    lines, line = [], "$ build/specsim"
    for word in map(shlex.quote, arguments):
        starts = word.startswith("--") and len(line) > 60
        if len(line) + 1 + len(word) > WIDTH or (starts and len(line) > WIDTH - 40):
            lines.append(line + " \\")
            line = "   "
        line += " " + word
    return "\n".join(lines + [line])


def output_block(what):
    command, _, pattern = what.partition(" ;; ")
    program, *arguments = shlex.split(command)
    if program != "build/specsim":
        sys.exit(f"docs_pages: a block shows \"{program}\", allowed: build/specsim")
    lines = printed(tuple(arguments)).splitlines()
    if pattern:
        lines = [line for line in lines if re.search(pattern, line)]
        if not lines:
            sys.exit(f"docs_pages: no line of specsim {shlex.join(arguments)} has {pattern}")
    return "\n".join(["```console", shown_command(arguments), *lines, "```"])


def python_block(path):
    """None without the package, which needs a build of its own."""
    if importlib.util.find_spec("specsim") is None:
        return None
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"docs_pages: {path}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return "\n".join(["```console", f"$ python3 {path}", *done.stdout.splitlines(), "```"])


def include_block(what):
    what, _, pattern = what.partition(" ;; ")
    path, _, paragraph = what.partition("#")
    text = "\n".join(line for line in Path(path).read_text().strip().splitlines() if re.search(pattern, line))
    return text.split("\n\n")[int(paragraph) - 1] if paragraph else text


def code_block(what):
    path, _, name = what.partition("#")
    lines = Path(path).read_text().splitlines()
    if name:
        begin = next((i for i, line in enumerate(lines) if f"[{name}]" in line), None)
        end = next((i for i, line in enumerate(lines) if f"[end of {name}]" in line), None)
        if begin is None or end is None:
            sys.exit(f"docs_pages: {path} has no [{name}] ... [end of {name}]")
        lines = lines[begin + 1:end]
    language = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".yaml": "yaml", ".txt": "cmake"}.get(Path(path).suffix, "")
    return "\n".join([f"```{language}", *lines, "```"])


BLOCKS = {"output": output_block, "python": python_block, "include": include_block, "code": code_block, "table": lambda name: TABLES[name](name),
          "part": part_block, "figures": figures_block}
BLOCK = re.compile(r"(?P<open><!-- (?P<kind>output|python|include|code|table|part|figures): (?P<what>.*?) -->\n).*?(?P<close>^<!-- end -->)", re.S | re.M)
VALUE = re.compile(r"(?P<open><!-- value: (?P<what>[^>]*?) -->)[^<]*(?P<close><!-- end -->)")


def value(what):
    what = what.replace("\\|", "|")  # as a table's cell has it
    kind, _, row = what.partition(": ")
    return OF_ROWS[kind](row) if kind in OF_ROWS else VALUES[what]()


def filled(text):
    def block(found):
        content = BLOCKS[found["kind"]](found["what"])
        return found[0] if content is None else f"{found['open']}\n{content}\n\n{found['close']}"
    text = BLOCK.sub(block, text)
    return VALUE.sub(lambda found: found["open"] + value(found["what"]) + found["close"], text)


# ---- all pages

def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    different = []

    def write(path, text):
        old = path.read_text() if path.exists() else ""
        if old == text:
            return
        different.append(str(path))
        if check:
            sys.stderr.writelines(difflib.unified_diff(old.splitlines(True), text.splitlines(True), str(path), "what it should be", n=1))
        else:
            path.write_text(text)
            print(f"wrote {path}")

    write(REFERENCE, printed(("reference",)))
    reference = REFERENCE.read_text()
    pages = {METHODS / part.page: part for part in parts(reference).values()}
    for path in sorted(METHODS.glob("*.md")):
        if path not in pages and path.name != "index.md":
            different.append(f"{path} (of no part)")
    for path, part in pages.items():
        if not path.exists():
            write(path, new_page(part))
    for path in [Path("README.md"), *sorted(Path("docs").rglob("*.md")), *sorted(Path("results/notes").glob("*.md"))]:
        if path != REFERENCE:
            write(path, filled(path.read_text()))
    if check and different:
        sys.exit(f"docs_pages: out of date, scripts/update_golden.sh rewrites them: {', '.join(different)}")
    print(f"{len(pages)} pages of methods, {len(different)} files {'differ' if check else 'written'}")


if __name__ == "__main__":
    main()
