"""Rollouts while the target is trained: mean time of a batch if the draft is trained again every N steps."""
import numpy as np

import specsim

CONFIG = "configs/serve/rollouts.yaml"


def served(steps):
    return specsim.serve(CONFIG, no_capacity=True, alone=True, set={"serve.speculation.acceptance.drift.steps": steps})


aged = [served(steps) for steps in range(64)]
makespans = np.array([one["makespan, s"] for one in aged])
tokens, low, high = (aged[0]["output tokens/s" + end] for end in ("", ", 95 % low", ", 95 % high"))
never = makespans.mean()
print("trained every  batch takes s    low   high  training may take s")
for steps in (1, 4, 16, 64):
    mean = makespans[:steps].mean()
    pays = f"{steps * (never - mean):.0f}" if steps < 64 else "-"
    print(f"{steps:7} steps  {mean:13.1f}  {mean * tokens / high:5.1f}  {mean * tokens / low:5.1f}  {pays:>19}")
