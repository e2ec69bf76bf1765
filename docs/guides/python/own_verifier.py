"""A verifier of your own: is it lossless, and how does it rank?"""
import numpy as np

import specsim

CONFIG = "configs/examples/h100_8b.yaml"


class Careful:
    """Accepts only tokens that the target itself would take with a probability of at least 2 %."""

    def accept_all(self, target, draft):
        kept = np.divide(target, draft, out=np.zeros_like(target), where=draft > 0)
        return np.where(target >= 0.02, np.minimum(1, kept), 0)


with specsim.rule("careful", Careful()):
    # All outcomes of a round, over a vocabulary that is small enough to enumerate.
    audit = specsim.audit(CONFIG, set={"decode.verifier": "careful", "pair.vocab": 5, "context": {"process": "fixed"}})
    print(*(line for line in audit.text if line.startswith("verdict")))
    ranking = specsim.compare(CONFIG, set={"sweep.decode.verifier": ["careful", "token", "block"]})
    print("rank  tokens/round  speedup   low  high  method")
    shown = [ranking[name] for name in ("rank", "tokens/round", "speedup", "low", "high", "method")]
    for rank, tokens, speedup, low, high, method in zip(*shown):
        if rank > 0:  # the last line, without a rank, is plain decoding
            print(f"{rank:4.0f}  {tokens:12.2f}  {speedup:7.2f}  {low:4.2f}  {high:4.2f}  {method}")
