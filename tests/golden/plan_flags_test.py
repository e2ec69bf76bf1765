#!/usr/bin/python3
"""The flags that specsim plan ends with name what servers can start: heads are no draft models.

Runs at the root of the repository; SPECSIM names the program.
"""
import os
import subprocess
import sys


def flags(draft):
    done = subprocess.run([os.environ.get("SPECSIM", "build/specsim"), "plan", "--hardware", "h100-sxm", "--target", "llama-3.1-8b", "--draft", draft, "--alpha", "0.8"],
                          capture_output=True, text=True, check=True)
    head, found, tail = done.stdout.partition("start a server with\n")
    assert found, done.stdout
    return tail


def main():
    model, head = flags("llama-3.2-1b"), flags("eagle-head-8b")
    assert '{"model": "llama-3.2-1b", ' in model and "STANDALONE" in model and "--model-draft llama-3.2-1b.gguf" in model, model
    assert '{"method": "eagle", "model": "eagle-head-8b", ' in head and " EAGLE " in head and "llama.cpp" not in head, head


if __name__ == "__main__":
    sys.exit(main())
