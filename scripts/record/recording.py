"""Shared by the recorders of accepted drafts: options, reading of prompts, writing of lines."""
import argparse
import json
import sys
from pathlib import Path


def stop(message, status=2):
    print(f"{Path(sys.argv[0]).stem}: {message}", file=sys.stderr)
    sys.exit(status)


def parser_of(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompts")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--tokens", type=int, default=256, help="most tokens of each output")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def read_prompts(path):
    """[(prompt, kind or None)]"""
    try:
        lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as failure:
        stop(f"{path}: {failure}")
    prompts = []
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("{"):
            prompts.append((line, None))
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as wrong:
            stop(f"{path}:{number}: {wrong.msg}, allowed: an object with \"prompt\"")
        if not isinstance(record.get("prompt"), str):
            stop(f"{path}:{number}: no text at \"prompt\", allowed: an object with \"prompt\" and, if wanted, \"kind\"")
        prompts.append((record["prompt"], record.get("kind")))
    if not prompts:
        stop(f"{path}: no prompt in it, allowed: JSON lines with \"prompt\", or a prompt a line")
    return prompts


def write(out, records):
    lines = [json.dumps(record) for record in records]
    if not lines:
        stop("no request had a whole round, allowed: more --tokens")
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {out}, {len(lines)} requests")
