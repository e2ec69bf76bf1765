"""A drafter of your own: how does it rank?"""
import specsim

CONFIG = "configs/examples/methods/without_draft_model.yaml"  # text that repeats itself


class FrequentPair:
    """Copies what followed the last two tokens most often, token by token."""

    def draft(self, block):
        text = block.text.tolist()
        followers = {}
        for before, last, token in zip(text, text[1:], text[2:]):
            counts = followers.setdefault((before, last), {})
            counts[token] = counts.get(token, 0) + 1
        end = tuple(text[-2:])
        node = 0
        for _ in range(block.draft_length):
            if end not in followers:
                break
            token = max(followers[end], key=followers[end].get)
            node = block.add(token, after=node)
            end = (end[1], token)


with specsim.drafter("frequent_pair", FrequentPair()):
    drafters = [{"kind": "frequent_pair", "draft_length": 5}, {"kind": "prompt_lookup", "draft_length": 5}, {"kind": "suffix", "draft_length": 8}]
    result = specsim.run(CONFIG, rounds=20000, sweep__decode__drafter=drafters)
    for drafter, tokens, speedup in zip(result["decode.drafter"], result["tokens_per_round"], result["speedup"]):
        print(f"{tokens:.2f} tokens per round, speedup {speedup:.2f}: {drafter}")
