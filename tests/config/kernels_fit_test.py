#!/usr/bin/env python3
"""specsim kernels --fit: if kernels take twice the estimated time, the fitted GPU's kernels take twice as long and nothing else changes."""
import csv
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["SPECSIM_PROGRAM"] = SPECSIM = os.environ["SPECSIM"]
try:
    import scipy  # noqa: F401
    import yaml
except ImportError:
    print("skipped: SciPy is missing (Debian: python3-scipy)")
    sys.exit(0)


def specsim(*arguments, status=0):
    done = subprocess.run([SPECSIM, *arguments], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def columns(text):
    return {row["tokens"]: row for row in csv.DictReader(text.splitlines())}


with tempfile.TemporaryDirectory() as folder:
    table = os.path.join(folder, "products.csv")
    shapes = [(n, k, m) for n in (1024, 4096, 6144, 8192, 14336, 28672) for k in (4096, 6144, 8192, 14336) for m in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)]

    def write(times):
        with open(table, "w", encoding="utf-8") as file:
            file.write("gpu,engine,version,dtype,kernel,n,k,m,us,set_over_l2\n")
            for (n, k, m), us in zip(shapes, times):
                file.write(f"h100-sxm,vllm,1,bfloat16,mine,{n},{k},{m},{us},9\n")

    write([100.0] * len(shapes))
    specsim("kernels", table, "--out", os.path.join(folder, "shipped"))
    with open(os.path.join(folder, "shipped", "priced.csv"), encoding="utf-8") as file:
        priced = [float(row["priced_us"]) for row in csv.DictReader(file)]
    write([2.0 * us for us in priced])
    out = os.path.join(folder, "out")
    told = specsim("kernels", table, "--out", out, "--fit")
    mine = os.path.join(out, "fitted", "h100-sxm.yaml")
    assert f"the GPU with these latencies: --hardware {mine}\n" in told, told
    arguments = ("--model", "llama-3.1-8b", "--tokens", "1,16,128", "--context", "4000", "--logits", "none", "--csv")
    before = columns(specsim("pass", "--hardware", "h100-sxm", *arguments))
    after = columns(specsim("pass", "--hardware", mine, *arguments))
    for tokens in ("1", "16", "128"):
        products = [sum(float(of[tokens][part]) for part in ("weights_ms", "compute_ms")) for of in (before, after)]
        # The correction follows a shape within 5 %; a fit without effect would stay at 1.
        assert 1.9 < products[1] / products[0] < 2.1, (tokens, products)
        assert before[tokens]["kv_ms"] == after[tokens]["kv_ms"], tokens
    # A GPU that uses the fits of a similar GPU keeps them for kinds that the table lacks.
    with open(table, encoding="utf-8") as file:
        text = file.read()
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace("h100-sxm", "h800"))
    specsim("kernels", table, "--out", os.path.join(folder, "sibling"), "--fit")
    before = columns(specsim("pass", "--hardware", "h800", *arguments))
    after = columns(specsim("pass", "--hardware", os.path.join(folder, "sibling", "fitted", "h800.yaml"), *arguments))
    for tokens in ("1", "16", "128"):
        assert before[tokens]["kv_ms"] == after[tokens]["kv_ms"], tokens
        assert float(after[tokens]["weights_ms"]) > 1.8 * float(before[tokens]["weights_ms"]), tokens
    with open(table, "w", encoding="utf-8") as file:
        file.write(text)
    # A custom GPU estimates rows that have its name and rows that name its file; a GPU without any row is rejected.
    def middle(of):
        with open(os.path.join(folder, of, "errors.csv"), encoding="utf-8") as file:
            return float(next(row["median_ratio"] for row in csv.DictReader(file) if row["rows"] == "all"))

    specsim("kernels", table, "--out", os.path.join(folder, "own"), "--hardware", mine)
    assert 0.95 < middle("own") < 1.05, middle("own")
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace("h100-sxm,", mine + ","))
    specsim("kernels", table, "--out", os.path.join(folder, "path"))
    assert middle("path") == middle("own"), middle("path")
    refused = specsim("kernels", table, "--out", os.path.join(folder, "none"), "--hardware", "rtx-4090", status=2)
    assert "--hardware: no row was measured on this GPU" in refused, refused
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace("h100-sxm,", "nowhere.yaml,"))
    refused = specsim("kernels", table, "--out", os.path.join(folder, "none"), status=2)
    assert f"{table}:2:1: hardware nowhere.yaml: cannot be read" in refused, refused
    with open(table, "w", encoding="utf-8") as file:
        file.write(text)
    # A fitted GPU reproduces its own table.
    errors = specsim("kernels", table, "--out", os.path.join(folder, "again"))
    assert "0.500" in errors, errors  # the built-in estimates are half of the measured times
    with open(table, encoding="utf-8") as file:
        lines = file.readlines()
    # Three rows of one shape give no information on others.
    with open(table, "w", encoding="utf-8") as file:
        file.writelines(lines[:4])
    told = specsim("kernels", table, "--out", os.path.join(folder, "one"), "--fit")
    assert "made of 1 shapes alone, no error held out" in told and ": held out" not in told, told
    with open(os.path.join(folder, "one", "fitted", "h100-sxm.kernels.yaml"), encoding="utf-8") as file:
        spread = file.read().split("    spread: ")[1:]
    assert any(float(text.split()[0]) >= 0.1 and "too few shapes" in text[:120] for text in spread), spread
    with open(table, "w", encoding="utf-8") as file:
        file.writelines(lines[:3])
    message = specsim("kernels", table, "--out", os.path.join(folder, "few"), "--fit", status=2)
    assert "products.csv: nothing to fit, allowed: three rows or more of one engine and type on a GPU of configs/hardware" in message, message
    # Times that no formula has: the fit is refused, as specsim would refuse its file. Mutant: a file with a spread above 10.
    write([us * (1e12 if i % 3 == 0 else 1.0) for i, us in enumerate(priced)])
    message = specsim("kernels", table, "--out", os.path.join(folder, "wild"), "--fit", status=2)
    assert "h100-sxm, product: the times differ from every formula by a factor of e^" in message, message
    # A name with quotes and a byte order mark; rows on a custom GPU file are estimated, not fitted.
    strange = os.path.join(folder, "it's \"mine\": {x.csv")
    own = os.path.join(folder, "own.yaml")
    shutil.copyfile("configs/hardware/h100-sxm.yaml", own)
    with open(strange, "w", encoding="utf-8-sig") as file:
        file.writelines([*lines, *(line.replace("h100-sxm,", f"{own},").replace(",mine,", ',"it\'s ""mine""",') for line in lines[1:20])])
    told = specsim("kernels", strange, "--out", os.path.join(folder, "strange"), "--fit")
    assert "Traceback" not in told and "the GPU with these latencies" in told, told
    fitted = os.path.join(folder, "strange", "fitted")
    specsim("pass", "--hardware", os.path.join(fitted, "h100-sxm.yaml"), *arguments)
    with open(os.path.join(fitted, "h100-sxm.kernels.yaml"), encoding="utf-8") as file:
        assert strange in yaml.safe_load(file)["source"]
    # On a full disk the fit ends with the file's name, and leaves no part of a file. Mutant: a file cut at the limit.
    full = os.path.join(folder, "full")
    os.makedirs(full)
    code = (f"import resource, signal, sys; sys.path.insert(0, 'scripts/kernels'); import fit_kernels; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            f"try: fit_kernels.put({os.path.join(full, 'x.yaml')!r}, 5000 * 'x')\n"
            f"except OSError as error: print(error.filename)\n")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == os.path.join(full, "x.yaml") + "\n" and not os.listdir(full), (ended.stdout, os.listdir(full))
    # A table of a few bytes that expands to a large size: it is refused before it is stored, and only the numbers of a row are stored. Mutants: no
    # limit; a dict for each row, 12 times the text.
    sys.path.insert(0, "scripts/kernels")
    import fit_kernels
    import resource
    row = ",vllm,1,bfloat16,mine,4096,4096,{},100,9\n"
    with open(table, "w", encoding="utf-8") as file:
        file.write(lines[0] + "".join(row.format(i % 512) for i in range(fit_kernels.MOST_ROWS_OF_A_TABLE - 1)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert not list(fit_kernels.groups("product", table, {}))
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / os.path.getsize(table)
    assert grown < 8, grown
    with open(table, "a", encoding="utf-8") as file:
        file.write(3 * row.format(1))
    refused = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, 'scripts/kernels'); import fit_kernels; list(fit_kernels.groups('product', {table!r}, {{}}))"],
                             capture_output=True, text=True)
    assert refused.returncode != 0 and "allowed: at most 200000 in a table to fit" in refused.stderr, refused.stderr
print("twice the measured times, twice the estimate")
