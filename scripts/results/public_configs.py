#!/usr/bin/python3
"""Reads public config.json files and compares their parameters with the published counts: results/files/public_configs.csv.

    scripts/results/public_configs.py --specsim build/specsim --clones DIR [--only MODEL]

configs/published/public_configs.csv names the files: a model, a repository on GitHub, a commit, a path, and for files of Python the
name of the value there. DIR holds a clone of each repository as OWNER+NAME (or OWNER+NAME/repo).

The published count is the number of parameters in the tensors of the model's page on Hugging Face, as recorded by AlexsJones/llmfit
(a3e0eb27), or the number in the model's name or on its card. Tensors also count the multi-token prediction module and the image encoder.
The first is added by FOLDER:mtp, the second from the width and depth in its own keys. Some checkpoints store tied embeddings twice.

A row is right if the difference is below 1.2 %, or below half a unit of the last digit of a rounded count and 4 %.
"""

import argparse
import ast
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from calls import version_of

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "configs/published/public_configs.csv"
TABLE = ROOT / "results/files/public_configs.csv"
TYPES = {"Gemma3Config": "gemma3", "Gemma2Config": "gemma2", "Qwen2Config": "qwen2", "Qwen3Config": "qwen3", "LlamaConfig": "llama",
         "Qwen3MoeConfig": "qwen3_moe", "Gemma3TextConfig": "gemma3_text"}


def text_at(clones, repository, commit, path):
    name = repository.replace("/", "+")
    for folder in (clones / name, clones / name / "repo"):
        found = subprocess.run(["git", "-C", str(folder), "show", f"{commit}:{path}"], capture_output=True)
        if found.returncode == 0:
            return found.stdout.decode()
    raise SystemExit(f"{repository}: no clone with {path} at {commit} in {clones}")


def literal(node):
    """A value of Python source: a dict, or a configuration that is made by keywords."""
    if isinstance(node, ast.Call):
        made = {word.arg: literal(word.value) for word in node.keywords}
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if name in TYPES:
            made["model_type"] = TYPES[name]
        return made
    if isinstance(node, ast.Dict):
        return {literal(key): literal(value) for key, value in zip(node.keys, node.values)}
    if isinstance(node, ast.BinOp):
        left, right = literal(node.left), literal(node.right)
        return left * right if isinstance(node.op, ast.Mult) else left + right
    if isinstance(node, (ast.List, ast.Tuple)):
        return [literal(item) for item in node.elts]
    if isinstance(node, (ast.Name, ast.Attribute)):  # torch.bfloat16
        return None
    return ast.literal_eval(node)


def value_named(source, key):
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(statement, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id == key:
                return literal(statement.value)
            if isinstance(statement.value, ast.Dict):
                for name, value in zip(statement.value.keys, statement.value.values):
                    if isinstance(name, ast.Constant) and name.value == key:
                        return literal(value)
    raise SystemExit(f"no value {key}")


def counted(specsim, what):
    """The model's own parameters, in units, or the message of the refusal."""
    answer = subprocess.run([specsim, "describe", what], capture_output=True, text=True)
    if answer.returncode != 0:
        return None, answer.stderr.strip().splitlines()[0], 0.0
    found = re.search(r"^ +total +([\d.]+)", answer.stdout, re.MULTILINE)
    notes = [line.strip() for line in answer.stdout.splitlines() if "assumed:" in line]
    head = re.search(r"^ +LM head +([\d.]+)", answer.stdout, re.MULTILINE)
    tied = head is not None and "  embeddings" not in answer.stdout
    return 1e9 * float(found.group(1)), "; ".join(notes), 1e9 * float(head.group(1)) if tied else 0.0


def vision(config):
    """Parameters of an encoder of images with a projector, by its keys: 4 h^2 of attention and the feed-forward part per layer."""
    own = config.get("vision_config") or {}
    width = own.get("hidden_size") or own.get("width")
    depth = own.get("depth") or own.get("num_hidden_layers") or own.get("vt_num_hidden_layers")
    if own.get("vt_hidden_size"):
        width = own["vt_hidden_size"]
    if not width or not depth:
        return 0.0
    inner = own.get("intermediate_size") or own.get("vt_intermediate_size") or 4 * width
    gates = 3 if own.get("hidden_act") in ("silu", "swiglu") else 2
    merged = width * own.get("spatial_merge_size", 1) ** 2
    out = own.get("out_hidden_size") or (config.get("text_config") or {}).get("hidden_size") or width
    mergers = 1 + len(own.get("deepstack_visual_indexes") or [])
    return depth * (4.0 * width * width + gates * width * inner) + mergers * (merged * merged + merged * out)


def allowed(published, source):
    if source.startswith("tensors"):
        return 0.012
    digits = f"{published:.15g}".rstrip("0").lstrip("0")
    unit = published / float(digits.replace(".", "")) if digits else published
    return min(0.04, max(0.012, 0.5 * unit / published))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--specsim", required=True)
    options.add_argument("--clones", required=True, type=Path)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    rows = []
    for row in csv.DictReader(MANIFEST.open()):
        if chosen.only not in row["model"]:
            continue
        text = text_at(chosen.clones, row["repository"], row["commit"], row["path"])
        config = value_named(text, row["key"]) if row["key"] else json.loads(text)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(config))
            side = row["path"].replace("_config.json", "_hf_quant_config.json")
            if side != row["path"]:
                beside = subprocess.run(["git", "-C", str(chosen.clones / row["repository"].replace("/", "+") / "repo"), "show",
                                         f"{row['commit']}:{side}"], capture_output=True)
                if beside.returncode == 0:
                    Path(folder, "hf_quant_config.json").write_bytes(beside.stdout)
            own, notes, copy = counted(chosen.specsim, folder)
            module = images = 0.0
            if own is not None and row["source"].startswith("tensors"):
                images = vision(config)
                counts = json.dumps(config)
                if re.search(r'"(num_nextn_predict_layers|mtp_num_hidden_layers)": [1-9]', counts):
                    module = counted(chosen.specsim, folder + ":mtp")[0] or 0.0
        published = float(row["published_parameters"] or 0)
        line = {"model": row["model"], "repository": row["repository"], "path": row["path"], "key": row["key"],
                "published_parameters": row["published_parameters"], "source": row["source"], "parameters": "", "module": "",
                "images": "", "difference_percent": "", "verdict": "refused" if own is None else "no count",
                "notes": "; ".join(text for text in (row["note"], notes.replace(folder + "/", "")) if text)}
        if own is not None:
            line.update(parameters=f"{own:.0f}", module=f"{module:.0f}", images=f"{images:.0f}")
            if published:
                # The tensors outside the language model that a page counts differ from page to page.
                copies = [0.0, copy] if row["source"].startswith("tensors") else [0.0]
                sums = [own + more + encoder + stored for more in (0.0, module) for encoder in (0.0, images) for stored in copies]
                best = min(sums, key=lambda total: abs(total / published - 1.0))
                difference = best / published - 1.0
                line["difference_percent"] = f"{100 * difference:.2f}"
                line["verdict"] = "right" if abs(difference) <= allowed(published, row["source"]) else "differs"
        rows.append(line)
    if chosen.only:
        for line in rows:
            print(line)
        return
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    (TABLE.parent / "manifest.yaml").write_text('script: scripts/results/public_configs.py\n'
                                                'command: "scripts/results/public_configs.py --specsim build/specsim --clones DIR"\n'
                                                f'program: "{version_of(chosen.specsim)}"\ndata: {MANIFEST.relative_to(ROOT)}\n')
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    verdicts = [line["verdict"] for line in rows]
    print(", ".join(f"{verdicts.count(word)} {word}" for word in sorted(set(verdicts))), "of", len(rows))
    for line in rows:
        if line["verdict"] != "right":
            print(line["verdict"], line["model"], line["repository"], line["published_parameters"], line["parameters"],
                  line["difference_percent"], line["notes"][:150], file=sys.stderr)


if __name__ == "__main__":
    main()
