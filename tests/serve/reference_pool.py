"""Requests and the paged cache of the reference engine (reference.py): vllm/v1/core/kv_cache_manager.py and block_pool.py."""
from collections import OrderedDict

UNLIMITED = 1 << 60


class Request:
    __slots__ = ("number", "prompt", "output", "priority", "hashes", "turn", "arrival", "out", "computed", "spec", "held",
                 "placeholders", "prefill_until", "preemptions", "running", "done", "first_scheduled", "first_token", "last_token",
                 "rounds", "drafted", "accepted", "cached_blocks", "chunks", "max_tokens")

    def __init__(self, number, prompt, output, priority=0, hashes=()):
        self.number, self.prompt, self.output, self.priority, self.hashes = number, prompt, output, priority, hashes
        self.max_tokens = output             # the engine's limit; a request may end before, at its end-of-text token
        self.turn = self.arrival = None      # the turn of the arrival process and the moment of sending
        self.out = self.computed = self.spec = self.placeholders = self.preemptions = 0
        self.rounds = self.drafted = self.accepted = 0
        self.prefill_until = 0               # tokens that count as prefill since the last admission
        self.held = []                       # blocks; only their number if there is no prefix caching
        self.cached_blocks = 0
        self.running = self.done = False
        self.first_scheduled = self.first_token = self.last_token = None
        self.chunks = []                     # (time, tokens) of each streamed chunk

    @property
    def tokens(self):
        return self.prompt + self.out


class Pool:
    """Blocks of the cache. With prefix caching each block has a number, a count of users and, once full, a hash."""

    def __init__(self, blocks, block_size, prefix_caching, mutant):
        self.size, self.block, self.caching, self.mutant = blocks, block_size, prefix_caching, mutant
        self.count = blocks - 1                       # free blocks; block 0 stands for "none" and is never handed out
        if prefix_caching:
            if blocks >= UNLIMITED:
                raise SystemExit("reference: prefix caching needs a pool of stated size")
            self.free_list = OrderedDict((number, None) for number in range(1, blocks))  # the least recently freed first
            self.users = [0] * blocks
            self.hash_of = [None] * blocks
            self.by_hash = {}                         # hash: numbers of the blocks that hold it, the oldest first

    def blocks_for(self, tokens):
        return -(-tokens // self.block)

    def hash(self, request, index):
        """Hashes of a trace cover 16 tokens each, whatever the size of a block; tokens without a hash belong to the request alone."""
        first, last = index * self.block // 16, ((index + 1) * self.block - 1) // 16
        if last >= len(request.hashes):
            return (request.number, index)
        return (request.hashes[first:last + 1], index * self.block % 16)

    def hit(self, request, eagle):
        """Blocks of the longest cached prefix; the last token of the request is always computed."""
        if not self.caching:
            return []
        last = 0 if self.mutant == "hit_of_last_token" else 1
        blocks = []
        for index in range((request.tokens - last) // self.block):
            holders = self.by_hash.get(self.hash(request, index))
            if not holders:
                break
            blocks.append(next(iter(holders)))
        if eagle and blocks and self.mutant != "eagle_keeps_block":
            blocks.pop()
        return blocks

    def take(self, request, tokens, full_tokens, watermark, hits, final):
        """Blocks for `tokens` tokens of the request, or False. full_tokens: tokens that must fit although their blocks are not allocated now, or
        0."""
        have = len(request.held) + len(hits)
        idle_hits = 0
        if hits and self.mutant != "hits_not_counted":
            idle_hits = sum(1 for number in hits if self.users[number] == 0)
        if full_tokens and max(self.blocks_for(full_tokens) - have, 0) + idle_hits + watermark > self.count:
            return False
        new = max(self.blocks_for(tokens) - have, 0)
        if new + idle_hits + watermark > self.count:
            return False
        if not self.caching:
            self.count -= new
            request.held.extend([0] * new)
            return True
        for number in hits:
            if self.users[number] == 0:
                del self.free_list[number]
            self.users[number] += 1
            request.held.append(number)
        request.cached_blocks = max(request.cached_blocks, len(hits))
        for _ in range(new):
            number, _ = self.free_list.popitem(last=self.mutant == "cache_most_recent")
            self.forget(number)
            self.users[number] = 1
            request.held.append(number)
        self.count = len(self.free_list)
        self.remember(request, final)
        return True

    def forget(self, number):
        old = self.hash_of[number]
        if old is not None:
            holders = self.by_hash[old]
            del holders[number]
            if not holders:
                del self.by_hash[old]
            self.hash_of[number] = None

    def remember(self, request, final):
        """Full blocks of `final` tokens can be found from now on."""
        if not self.caching:
            return
        for index in range(request.cached_blocks, final // self.block):
            number = request.held[index]
            self.hash_of[number] = self.hash(request, index)
            self.by_hash.setdefault(self.hash_of[number], OrderedDict())[number] = None
        request.cached_blocks = max(request.cached_blocks, final // self.block)

    def release(self, request):
        if not self.caching:
            self.count += len(request.held)
        else:
            order = request.held if self.mutant == "freed_head_first" else reversed(request.held)
            for number in order:
                self.users[number] -= 1
                if self.users[number] == 0:
                    self.free_list[number] = None
            self.count = len(self.free_list)
        request.held = []
        request.cached_blocks = 0
