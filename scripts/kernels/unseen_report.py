"""Reports the errors of scripts/kernels/fit_kernels.py on rows whose shape no correction had seen."""
import math

import numpy as np

BANDS = {"1": (0, 1), "2-16": (1, 16), "17-64": (16, 64), "65-128": (64, 128), "129-512": (128, 512), "over 512": (512, 1e15)}


def spread_of(error):
    """The standard deviation of a normal distribution whose 95 % interval holds 95 % of errors like these. Errors of kernels have heavy tails: the median
    of the absolute error, or its root mean square, gives intervals that hold too few or too many rows. With few errors a higher one of them is taken, so
    that one more error lies inside with that probability (split conformal prediction, Vovk, Gammerman and Shafer 2005)."""
    ordered = np.sort(np.abs(error))
    return float(ordered[min(len(ordered), math.ceil(0.95 * (len(ordered) + 1))) - 1] / 1.96)


def in_spreads(error, of, counted):
    """Errors of held-out rows, in units of the spread of the other folds: a test of stated errors on rows that they were not computed from."""
    z = np.full(len(error), np.nan)
    for k in sorted(set(of)):
        if (of == k).any() and ((of != k) & counted).any():
            z[of == k] = np.abs(error[of == k]) / spread_of(error[(of != k) & counted])
    return z


def within(spreads, most):
    """Percent of rows within `most` spreads; empty if too few shapes were held out."""
    known = spreads[~np.isnan(spreads)]
    return f"{100 * np.mean(known <= most):.0f}" if len(known) else ""


def write_report(path, by_gpu, kinds, small):
    """Errors on unseen shapes, all engines and kernels together. Decode attention and all-reduces by bytes are not divided into bands. If any row of
    a fit reads its weights or keys from memory, only those rows count."""
    lines = ["kind,gpu,dtype,rows,count,median_percent,p90_percent,neighbours_median_percent,neighbours_p90_percent,within_1_percent,within_2_percent"]
    for kind in kinds:
        for gpu, fits in sorted(by_gpu.items()):
            for dtype in sorted({k[2] for k in fits if k[0] == kind and k[3] != small}):
                of = [fits[k][0] for k in fits if k[0] == kind and k[2] == dtype and k[3] != small]
                counts = [f["from_memory"] | (not f["from_memory"].any()) for f in of]
                error = 100 * np.concatenate([f["held_out"][c] for f, c in zip(of, counts)])
                spreads = np.concatenate([f["in_spreads"][c] for f, c in zip(of, counts)])
                rows = np.concatenate([f["held_rows"][c] for f, c in zip(of, counts)])
                neighbours = 100 * np.concatenate([f["neighbours"] for f in of])
                neighbours = f"{np.median(neighbours):.1f},{np.percentile(neighbours, 90):.1f}" if len(neighbours) else ","
                bands = {"all": (-1, 1e18), **(BANDS if kind not in ("attention_decode", "attention_latent", "allreduce") else {})}
                for band, (over, most) in bands.items():
                    at = (rows > over * 1.0001) & (rows <= most * 1.0001)
                    if at.any():
                        lines.append(f"{kind},{gpu},{dtype},{band},{at.sum()},{np.median(error[at]):.1f},{np.percentile(error[at], 90):.1f},"
                                     f"{neighbours if band == 'all' else ','},{within(spreads[at], 1)},{within(spreads[at], 2)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
