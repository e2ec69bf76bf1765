#!/usr/bin/python3
"""A plain reference of one serving engine: vLLM V1's scheduler, step by step, in whole picoseconds.

It shares no code with sim/serve and is written for reading: one class for the pool of blocks, one for the scheduler, one for
time. Sources: vllm/v1/core/sched/scheduler.py, async_scheduler.py and vllm/v1/core/kv_cache_manager.py of vLLM (2026).

    reference.py CONFIG --out DIR [--mutant NAME]

reads the `serve:` and `cost:` sections of the same YAML as `specsim serve` and writes requests.csv and steps.csv. Cost model
affine only. Random arrivals and lengths are its own: a comparison row by row uses traces, closed loops and fixed lengths.
A mutant is a deliberate mistake (MUTANTS): a comparison that does not notice it is no comparison.
"""
import argparse
import bisect
import csv
import datetime
import json
import math
import random
import sys
from collections import OrderedDict, deque
from pathlib import Path

PS = 10 ** 12  # picoseconds in a second
UNLIMITED = 1 << 60

MUTANTS = {
    "budget_off_by_one": "the token budget of a step is one less",
    "budget_of_draft_model": "a draft model takes no slots from the token budget",
    "victim_first": "the first of the running requests is preempted, not the last",
    "victim_not_refunded": "a scheduled victim of the priority policy does not give its tokens back to the budget",
    "victim_to_back": "a preempted request goes to the back of the queue",
    "admits_after_preemption": "waiting requests are admitted in a step that preempted",
    "no_lookahead": "no slots are kept for the draft's own cache",
    "lookahead_off_by_one": "one lookahead slot is forgotten",
    "no_watermark": "admission ignores the watermark",
    "watermark_when_idle": "the watermark holds although nothing runs",
    "no_full_isl": "a prompt is admitted when its first chunk fits",
    "skips_head_of_line": "a request that does not fit is passed over at admission",
    "threshold_ignored": "long prompts are not cut at long_prefill_token_threshold",
    "seqs_off_by_one": "one request more than max_num_seqs runs",
    "chunks_always": "prompts are cut although chunked prefill is off",
    "resumes_prompt_only": "a preempted request recomputes its prompt, not its output",
    "model_len_off_by_one": "positions may reach max_model_len",
    "rejection_kept": "computed is not set back by what was rejected",
    "bonus_dropped": "a round that accepts every draft emits no bonus token",
    "bonus_dropped_at_stop": "a bonus token that would be the last of its request is dropped",
    "tail_kept": "tokens behind a stop are emitted",
    "drafts_untrimmed": "a round whose drafts do not fit the budget loses all of them",
    "drafts_stale": "drafts stay although K of the step is zero",
    "table_by_decodes": "the table of draft lengths counts no prompt chunks",
    "table_by_running": "the table of draft lengths counts the running requests, scheduled or not",
    "draft_first_pass_narrow": "the first pass of the draft has one row for each request",
    "async_extra_step": "a request that is sure to end is scheduled again behind its last step",
    "async_as_sync": "steps are scheduled when the last one ended",
    "async_idle_waits": "behind the first step after a pause nothing is scheduled",
    "stale_placeholders": "placeholders of drafts survive a step in which their request was not scheduled",
    "hit_of_last_token": "the cache may give the last token of a prompt too",
    "eagle_keeps_block": "EAGLE keeps the last block of a hit",
    "hits_not_counted": "hit blocks of the free list take no free block",
    "freed_head_first": "blocks go back to the free list from the head, so that prefixes are evicted first",
    "cache_most_recent": "the most recently freed block is evicted first",
    "caches_drafts": "blocks are found in the cache although their tokens are not final",
    "arrival_of_turn": "the clock of a closed loop's request starts at its turn of the process, not at sending",
    "think_forgotten": "the next request of a closed loop is sent without thinking",
    "priority_ignored": "the queue is in order of arrival",
    "cost_of_uncached": "the price of cached tokens is left out",
}


class Request:
    __slots__ = ("number", "prompt", "output", "priority", "hashes", "turn", "arrival", "out", "computed", "spec", "held",
                 "placeholders", "prefill_until", "preemptions", "running", "done", "first_scheduled", "first_token", "last_token",
                 "rounds", "drafted", "accepted", "cached_blocks", "chunks", "max_tokens")

    def __init__(self, number, prompt, output, priority=0, hashes=()):
        self.number, self.prompt, self.output, self.priority, self.hashes = number, prompt, output, priority, hashes
        self.max_tokens = output             # what the engine was told; a request may end before, at its end-of-text token
        self.turn = self.arrival = None      # the turn of the arrival process and the moment of sending
        self.out = self.computed = self.spec = self.placeholders = self.preemptions = 0
        self.rounds = self.drafted = self.accepted = 0
        self.prefill_until = 0               # tokens that count as prefill since the last admission
        self.held = []                       # blocks; only their number where nothing is cached by prefix
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
        """Hashes of a trace are of 16 tokens each, whatever the size of a block; what has none is the request's own."""
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
        """Blocks for `tokens` tokens of the request, or False. full_tokens: what must fit although it is not taken now, or 0."""
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


class Item:
    """One request's part of a step."""
    __slots__ = ("request", "base", "new", "drafts", "prefill", "last", "accepted", "emits")

    def __init__(self, request, base, new, drafts, prefill):
        self.request, self.base, self.new, self.drafts, self.prefill = request, base, new, drafts, prefill
        self.emits = False
        self.accepted = 0


class Step:
    __slots__ = ("items", "preempted", "waiting", "free", "draft_length", "start", "duration")


class Scheduler:
    def __init__(self, settings, pool, policy, method, mutant):
        get = settings.get
        self.mutant, self.pool, self.policy_of_drafts, self.method = mutant, pool, policy, method
        self.budget = get("max_num_batched_tokens", 2048)
        self.seqs = get("max_num_seqs", 256)
        self.longest_draft = policy.longest
        if method == "draft_model" and self.longest_draft and self.budget > self.seqs and mutant != "budget_of_draft_model":
            self.budget -= self.seqs
        if mutant == "budget_off_by_one":
            self.budget -= 1
        if mutant == "seqs_off_by_one":
            self.seqs += 1
        self.model_len = get("max_model_len", 131072)
        if mutant == "model_len_off_by_one":
            self.model_len += 1
        self.threshold = 0 if mutant == "threshold_ignored" else get("long_prefill_token_threshold", 0)
        self.chunked = get("chunked_prefill", True) or mutant == "chunks_always"
        self.priority = get("policy", "fcfs") == "priority"
        self.asynchronous = get("async", True)
        self.full_isl = get("reserve_full_isl", True) and mutant != "no_full_isl"
        self.watermark = 0 if mutant == "no_watermark" else math.floor(get("watermark", 0) * min(pool.size, UNLIMITED))
        self.lookahead = 0 if method == "ngram" or mutant == "no_lookahead" else self.longest_draft
        if mutant == "lookahead_off_by_one" and self.lookahead:
            self.lookahead -= 1
        self.waiting, self.running = deque(), []

    # -- the queue

    def rank(self, request):
        return (request.priority, request.arrival, request.number)

    def enqueue(self, request):
        if self.priority and self.mutant != "priority_ignored":
            ranks = [self.rank(other) for other in self.waiting]
            self.waiting.insert(bisect.bisect(ranks, self.rank(request)), request)
        else:
            self.waiting.append(request)

    def preempt(self, request):
        self.pool.release(request)
        request.computed = request.spec = 0
        request.preemptions += 1
        request.running = False
        if (self.priority and self.mutant != "priority_ignored") or self.mutant == "victim_to_back":
            self.enqueue(request)
        else:
            self.waiting.appendleft(request)

    # -- one scheduling

    def allocate(self, request, new, hits=(), admission=False):
        base = len(hits) * self.pool.block if hits else request.computed
        tokens = min(base + new + self.lookahead, self.model_len)
        watermark = self.watermark if admission and (self.running or self.mutant == "watermark_when_idle") else 0
        full = min(request.tokens, self.model_len) if admission and self.full_isl else 0
        final = base + new if self.mutant == "caches_drafts" else min(base + new, request.tokens)
        return self.pool.take(request, tokens, full, watermark, list(hits), final)

    def schedule(self, now):
        """The next step, or None where nothing can be scheduled; `self.preempted` says how many were preempted."""
        budget = self.budget
        items, scheduled = [], {}
        self.preempted = 0
        index = 0
        running = self.running
        while index < len(running) and budget > 0:
            request = running[index]
            if request.placeholders and request.computed + 2 - request.placeholders >= request.prompt + request.max_tokens \
                    and self.mutant != "async_extra_step":
                index += 1
                continue
            new = request.tokens + request.spec + request.placeholders - request.computed
            if 0 < self.threshold < new:
                new = self.threshold
            new = min(new, budget, self.model_len - 1 - request.computed)
            if new <= 0:
                index += 1
                continue
            while not (fits := self.allocate(request, new)):
                if self.priority:
                    victim = max(running, key=lambda other: (other.priority, other.arrival, other.number))
                    running.remove(victim)
                    if victim.number in scheduled:
                        item = scheduled.pop(victim.number)
                        items.remove(item)
                        if self.mutant != "victim_not_refunded":
                            budget += item.new
                        index -= 1
                else:
                    victim = running.pop(0 if self.mutant == "victim_first" else -1)
                    if self.mutant == "victim_first":
                        if victim.number in scheduled:
                            items.remove(scheduled.pop(victim.number))
                            index -= 1
                self.preempt(victim)
                self.preempted += 1
                if victim is request:
                    break
            if not fits:
                break
            drafts = 0
            if request.spec:
                drafts = min(request.spec, max(new + request.computed - request.tokens - request.placeholders, 0))
                if drafts < request.spec and self.mutant == "drafts_untrimmed":
                    new -= drafts
                    drafts = 0
                request.spec = 0
            item = Item(request, request.computed, new, drafts, request.computed < request.prefill_until)
            items.append(item)
            scheduled[request.number] = item
            budget -= new
            index += 1
        if not self.preempted or self.mutant == "admits_after_preemption":
            budget = self.admit(now, budget, items)
        if not items:
            self.forget_placeholders(set())
            return None
        step = Step()
        step.items, step.preempted, step.waiting, step.free = items, self.preempted, len(self.waiting), self.pool.count
        counted = len(items)
        if self.mutant == "table_by_decodes":
            counted = max(sum(not item.prefill for item in items), 1)
        elif self.mutant == "table_by_running":
            counted = len(running)
        step.draft_length = self.policy_of_drafts.length(counted)
        self.after_schedule(step)
        return step

    def admit(self, now, budget, items):
        position = 0
        while position < len(self.waiting) and budget > 0 and len(self.running) < self.seqs:
            request = self.waiting[position]
            hits = self.pool.hit(request, self.method == "eagle" and self.longest_draft > 0)
            base = len(hits) * self.pool.block
            target = request.prompt if self.mutant == "resumes_prompt_only" else request.tokens
            new = max(target - base, 1)
            if 0 < self.threshold < new:
                new = self.threshold
            if not self.chunked and new > budget:
                break
            new = min(new, budget)
            if not self.allocate(request, new, hits, admission=True):
                if self.mutant != "skips_head_of_line":
                    break
                position += 1
                continue
            del self.waiting[position]
            self.running.append(request)
            request.running = True
            request.computed = base
            request.prefill_until = request.tokens
            if request.first_scheduled is None:
                request.first_scheduled = now
            items.append(Item(request, base, new, 0, True))
            budget -= new
        return budget

    def after_schedule(self, step):
        scheduled = set()
        for item in step.items:
            request = item.request
            scheduled.add(request.number)
            request.computed += item.new
            item.emits = request.computed >= request.tokens + request.placeholders
            if self.mutant == "resumes_prompt_only" and item.prefill and request.computed >= request.prompt:
                request.computed = request.tokens
                item.emits = True
            if self.asynchronous and item.emits:
                request.placeholders += 1 + item.drafts
                request.spec = step.draft_length
        self.forget_placeholders(scheduled)

    def forget_placeholders(self, scheduled):
        """Placeholders are good for the next scheduling only: the draft tokens that they stand for are gone afterwards."""
        if self.asynchronous and self.mutant != "stale_placeholders":
            for request in self.running:
                if request.number not in scheduled:
                    request.spec = 0

    # -- what a step returned

    def update(self, step, now):
        """Delivers the outputs of a step; returns the requests that ended."""
        ended = []
        for item in step.items:
            request = item.request
            if request.done or not item.emits:
                continue
            emitted = item.accepted + 1
            rejected = item.drafts - item.accepted
            if self.mutant == "bonus_dropped" and item.drafts and item.accepted == item.drafts:
                emitted -= 1
            if not item.prefill:
                request.rounds += 1
            if item.drafts:
                request.drafted += item.drafts
                request.accepted += item.accepted
                if request.computed > 0 and self.mutant != "rejection_kept":
                    request.computed -= rejected
                if request.placeholders > 0:
                    request.placeholders -= rejected
            room = min(request.output - request.out, self.model_len - request.tokens)
            if self.mutant == "bonus_dropped_at_stop" and item.drafts and emitted == room and emitted > 1:
                emitted -= 1
                if request.placeholders:
                    request.placeholders -= 1
                request.computed -= 1 if request.computed else 0
            kept = emitted if self.mutant == "tail_kept" else min(emitted, room)
            request.out += kept
            if self.asynchronous:
                request.placeholders -= kept
            if request.first_token is None:
                request.first_token = now
            request.last_token = now
            request.chunks.append((now, kept))
            if request.out >= request.output or request.tokens >= self.model_len:
                request.done = True
                self.pool.release(request)
                if request.running:
                    self.running.remove(request)
                else:
                    self.waiting.remove(request)
                ended.append(request)
            else:
                if self.asynchronous:
                    if request.running:
                        self.pool.remember(request, request.computed - request.placeholders)
                else:
                    request.spec = step.draft_length
                    if self.mutant == "drafts_stale" and not step.draft_length:
                        request.spec = self.longest_draft
        return ended


class DraftPolicy:
    """How many tokens the draft proposes after a step of so many requests."""

    def __init__(self, section):
        section = section or {"kind": "off"}
        self.kind = section.get("kind", "off")
        self.fixed = int(section.get("draft_length", 0)) if self.kind == "fixed" else 0
        self.table = [tuple(row) for row in section.get("table", [])]
        self.longest = {"off": 0, "fixed": self.fixed, "table": max((row[2] for row in self.table), default=0)}[self.kind]

    def length(self, requests):
        if self.kind != "table":
            return self.fixed
        length = self.table[0][2]  # a gap of the table has the length of the range before it
        for low, _, drafts in self.table:
            if requests >= low:
                length = drafts
        return length


class Acceptance:
    """Draft token i of a round behind n output tokens is accepted if u(request, n + i) < c_i."""

    def __init__(self, section, folder, seed):
        section = section or {}
        self.seed, self.replay = seed, None
        if "replay" in section:
            with open(folder / section["replay"], newline="") as file:
                self.replay = {(int(row["request"]), int(row["position"])): float(row["uniform"]) for row in csv.DictReader(file)}
        if "conditional_rates" in section:
            self.rates = [float(rate) for rate in section["conditional_rates"]]
        elif "position_rates" in section:
            rates = [float(rate) for rate in section["position_rates"]]
            self.rates = [rate / before if before > 0 else 0.0 for rate, before in zip(rates, [1.0] + rates)]
        else:
            self.rates = [float(section.get("alpha", 0.0))]

    def uniform(self, request, position):
        if self.replay is not None:
            return self.replay.get((request, position), 1.0)
        x = (self.seed * 0x9E3779B97F4A7C15 + request * 0xD1B54A32D192ED03 + position * 0x8CB92BA72F3D8DD7) & (2 ** 64 - 1)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            x = ((x ^ (x >> shift)) * factor) & (2 ** 64 - 1)
        return (x >> 11) / 2 ** 53

    def accepted(self, request, emitted, drafts):
        for i in range(1, drafts + 1):
            if not self.uniform(request, emitted + i) < self.rates[min(i, len(self.rates)) - 1]:
                return i - 1
        return drafts


class AffineCost:
    """Fixed, per row, per cached token; of the target's pass and of each pass of the draft."""

    def __init__(self, section, method, mutant=None):
        self.method, self.mutant = method, mutant
        terms = ("target_fixed_ms", "target_ms_per_token", "target_ms_per_kv_token", "draft_fixed_ms", "draft_ms_per_token",
                 "draft_ms_per_kv_token", "draft_fixed_ms_per_round", "overhead_ms")
        (self.fixed, self.row, self.kv, self.draft_fixed, self.draft_row, self.draft_kv, self.draft_round,
         self.overhead) = (float(section.get(term, 0)) for term in terms)
        if mutant == "cost_of_uncached":
            self.kv = self.draft_kv = 0.0

    def milliseconds(self, step):
        rows = sum(item.new for item in step.items)
        cached = sum(item.base for item in step.items)
        time = self.fixed + self.row * rows + self.kv * cached
        k = step.draft_length
        if k > 0:
            time += self.overhead
            if self.method != "ngram":
                batch = len(step.items)
                after = sum(item.base + item.new - (item.drafts - item.accepted) for item in step.items)
                first = batch if self.mutant == "draft_first_pass_narrow" else rows
                time += self.draft_round + self.draft_fixed + self.draft_row * first + self.draft_kv * cached
                for j in range(1, k):
                    time += self.draft_fixed + self.draft_row * batch + self.draft_kv * (after + j * batch)
        return time

    def duration(self, step):
        return round(self.milliseconds(step) * 1e9)


class Engine:
    """Time: arrivals, steps one behind the other, and the requests that closed loops send when others end."""

    def __init__(self, scheduler, cost, acceptance, requests, arrivals, mutant=None, horizon=None):
        self.scheduler, self.cost, self.acceptance = scheduler, cost, acceptance
        self.requests, self.mutant = requests, mutant
        self.frontend = arrivals.get("frontend", 0)
        self.steps = []
        self.pending = deque()        # (moment at the engine, request) in order
        self.concurrency, self.think, self.held = arrivals.get("concurrency"), arrivals.get("think", 0), deque()
        self.horizon, self.turns = horizon, deque()
        times = arrivals["times"]     # None: the closed loop alone decides
        self.in_flight = 0
        if self.concurrency is None:
            for request, time in zip(requests, times):
                request.turn = request.arrival = time
                self.pending.append((time + self.frontend, request))
        elif times is None:
            for request in requests:
                request.turn = 0
            for request in requests[:self.concurrency]:
                self.send(request, 0)
            self.held.extend(requests[self.concurrency:])
        else:
            for request, time in zip(requests, times):
                request.turn = time
            self.turns = deque(zip(times, requests))

    def send(self, request, time):
        request.arrival = time
        self.in_flight += 1
        entry = (time + self.frontend, request.number, request)
        place = bisect.bisect([(moment, other.number) for moment, other in self.pending], entry[:2])
        self.pending.insert(place, (entry[0], request))

    limit = 1 << 40  # steps; a mutant may never end

    def next_arrival(self):
        moments = [self.pending[0][0]] if self.pending else []
        if self.turns and self.in_flight < self.concurrency:
            moments.append(self.turns[0][0])
        return min(moments) if moments else None

    def drain(self, now):
        """Requests that have reached the engine by now join its queue."""
        while self.turns and self.in_flight < self.concurrency and self.turns[0][0] <= now:
            request = self.turns.popleft()[1]
            self.send(request, request.turn)
        while self.pending and self.pending[0][0] <= now:
            _, request = self.pending.popleft()
            if self.mutant == "arrival_of_turn":
                request.arrival = request.turn
            self.scheduler.enqueue(request)

    def ended(self, requests, now):
        for request in sorted(requests, key=lambda one: one.number):
            self.in_flight -= 1
            if self.held:
                following = self.held.popleft()
                self.send(following, now + (0 if self.mutant == "think_forgotten" else self.think))
            elif self.turns and self.turns[0][0] <= now:
                self.send(self.turns.popleft()[1], now)

    def begin(self, step, now):
        if len(self.steps) >= self.limit:
            raise SystemExit(f"reference: more than {self.limit} steps")
        for item in step.items:
            if item.emits and item.drafts:
                # What is computed for a request that has ended (asynchronous) is thrown away: nothing of it is rejected.
                request = item.request
                item.accepted = item.drafts if request.done else self.acceptance.accepted(request.number, request.out, item.drafts)
        step.start, step.duration = now, self.cost.duration(step)
        self.steps.append(step)
        return now + step.duration

    def finish(self, step, following, now):
        """Outputs of a step; what it rejected was counted as computed in the step that is already scheduled."""
        ended = self.scheduler.update(step, now)
        if following is not None:
            rejected = {item.request.number: item.drafts - item.accepted for item in step.items if item.drafts}
            for item in following.items:
                if not item.prefill:
                    item.base -= rejected.get(item.request.number, 0)
        self.ended(ended, now)

    def attempt(self, now):
        """Schedules; a scheduling that only preempted is followed by another at once."""
        step = self.scheduler.schedule(now)
        if step is None and self.scheduler.preempted:
            step = self.scheduler.schedule(now)
        return step

    def run(self):
        now = 0
        ahead = self.scheduler.asynchronous and self.mutant != "async_as_sync"
        if self.mutant == "async_as_sync":
            self.scheduler.asynchronous = False
        current, queued = None, None
        while True:
            self.drain(now)
            if current is None:
                current = self.attempt(now)
                if current is None:
                    now = self.next_arrival()
                    if now is None:
                        break
                    continue
                end = self.begin(current, now)
                queued = self.scheduler.schedule(now) if ahead and self.mutant != "async_idle_waits" else None
            now = end
            if self.horizon is not None and now > self.horizon:
                break
            self.finish(current, queued, now)
            current = queued
            if current is not None:
                end = self.begin(current, now)
                self.drain(now)
                queued = self.scheduler.schedule(now)
        unfinished = [request.number for request in self.requests if not request.done]
        if unfinished and self.horizon is None:
            raise SystemExit(f"reference: {len(unfinished)} requests never ended, the first is {unfinished[0]}")
        return self


# ---- the config ------------------------------------------------------------------------------------------------------------

def draw(section, number, generator):
    """One length from a distribution of the config."""
    (kind, value), = section.items()
    if kind == "fixed":
        return int(value)
    if kind == "list":
        return int(value[number % len(value)])
    if kind == "uniform":
        return generator.randint(int(value["from"]), int(value["to"]))
    if kind == "geometric":
        return 1 + int(math.log(1.0 - generator.random()) / math.log1p(-1.0 / value["mean"])) if value["mean"] > 1 else 1
    if kind == "lognormal":
        variance = math.log1p(value["cv"] ** 2)
        return max(1, round(generator.lognormvariate(math.log(value["mean"]) - variance / 2, math.sqrt(variance))))
    raise SystemExit(f"reference: lengths {kind} are not known here")


def hashes_of(text):
    """"0-146 150" or "0-146;150": hashes of a prompt's full blocks of 16 tokens."""
    hashes = []
    for part in text.replace(";", " ").split():
        first, _, last = part.partition("-")
        hashes.extend(range(int(first), int(last or first) + 1))
    return tuple(hashes)


def read_trace(path, limit):
    """(time in ps, prompt, output, priority, hashes) of each row of a trace."""
    rows = []
    with open(path, newline="") as file:
        if path.suffix == ".jsonl":
            for line in file:
                row = json.loads(line)
                parts = 512 // 16
                hashes = tuple((one, part) for one in row.get("hash_ids", ()) for part in range(parts))
                rows.append((round(row["timestamp"] * 10 ** 9), row["input_length"], row["output_length"], 0,
                             hashes[:row["input_length"] // 16]))
        else:
            origin = None
            for row in csv.DictReader(file):
                if "TIMESTAMP" in row:
                    whole, _, fraction = row["TIMESTAMP"].partition(".")
                    seconds = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
                    time = int(seconds.timestamp()) * PS + int(fraction.ljust(12, "0"))
                    origin = time if origin is None else origin
                    rows.append((time - origin, int(row["ContextTokens"]), int(row["GeneratedTokens"]), 0, ()))
                else:
                    rows.append((int(row["arrived_us"]) * 10 ** 6, int(row["prompt"]), int(row["output"]),
                                 int(row.get("priority") or 0), hashes_of(row.get("block_hashes") or "")))
    return rows[:limit] if limit else rows


def poisson_times(section, count, generator):
    rate, shape = section["rate"], section.get("burstiness", 1.0)
    if rate == math.inf:
        return [0] * count
    gaps = [generator.gammavariate(shape, 1.0 / (rate * shape)) for _ in range(count)]
    times, time = [], 0.0
    for gap in gaps:
        time += gap
        times.append(time)
    if section.get("rescaled"):
        times = [one * (count / rate) / times[-1] for one in times]
    return [round(one * PS) for one in times]


def build(config, folder, mutant=None):
    """The engine that a config describes."""
    serve = config["serve"]
    settings = serve.get("scheduler", {})
    if settings.get("kind", "vllm_v1") != "vllm_v1":
        raise SystemExit("reference: vllm_v1 only")
    kv = serve.get("kv", {})
    block = kv.get("block", 16)
    blocks = kv["blocks"] if "blocks" in kv else kv["tokens"] // block if "tokens" in kv else UNLIMITED
    generator = random.Random(config.get("seed", 1))
    arrivals = serve["arrivals"]
    lengths = serve.get("lengths", {"prompt": {"fixed": 1}, "output": {"fixed": 1}})
    process = arrivals["process"]
    how = {"frontend": round(serve.get("frontend_ms", 0) * 1e9)}
    if process == "trace":
        rows = read_trace(folder / arrivals["file"], arrivals.get("requests"))
        requests = [Request(number, row[1], row[2], row[3], row[4]) for number, row in enumerate(rows)]
        how["times"] = [round(row[0] * arrivals.get("time_scale", 1)) for row in rows]
    else:
        count = arrivals["requests"]
        requests = [Request(number, draw(lengths["prompt"], number, generator), draw(lengths["output"], number, generator))
                    for number in range(count)]
        if process == "closed":
            how["concurrency"], how["think"] = arrivals["concurrency"], round(arrivals.get("think_ms", 0) * 1e9)
            how["times"] = poisson_times(arrivals, count, generator) if "rate" in arrivals else None
        elif process == "deterministic":
            how["times"] = [round(number * PS / arrivals["rate"]) for number in range(count)]
        elif process in ("poisson", "gamma"):
            how["times"] = poisson_times(arrivals, count, generator)
        else:
            raise SystemExit(f"reference: arrivals {process} are not known here")
    for request in requests:
        request.max_tokens = max(request.output, int(lengths.get("max_tokens", 0)))
    speculation = serve.get("speculation", {})
    policy = DraftPolicy(speculation.get("policy"))
    method = speculation.get("method", "eagle")
    pool = Pool(blocks, block, settings.get("prefix_caching", False), mutant)
    scheduler = Scheduler(settings, pool, policy, method, mutant)
    cost = AffineCost(config["cost"], method, mutant)
    acceptance = Acceptance(speculation.get("acceptance"), folder, config.get("seed", 1))
    return Engine(scheduler, cost, acceptance, requests, how, mutant)


# ---- the tables ------------------------------------------------------------------------------------------------------------

def seconds(picoseconds):
    whole, rest = divmod(picoseconds, PS)
    return f"{whole}.{rest:012d}".rstrip("0").rstrip(".")


REQUEST_COLUMNS = ["replica", "request", "arrival_s", "first_scheduled_s", "first_token_s", "last_token_s", "prompt_tokens",
                   "output_tokens", "rounds", "drafted", "accepted", "preemptions"]
STEP_COLUMNS = ["replica", "step", "start_s", "duration_s", "requests", "waiting", "prefill_rows", "decode_rows", "draft_rows",
                "preempted", "free_blocks", "draft_length"]


def request_rows(engine):
    for one in engine.requests:
        yield [0, one.number, seconds(one.arrival), seconds(one.first_scheduled), seconds(one.first_token),
               seconds(one.last_token), one.prompt, one.out, one.rounds, one.drafted, one.accepted, one.preemptions]


def step_rows(engine):
    for number, step in enumerate(engine.steps):
        prefill = sum(item.new for item in step.items if item.prefill)
        decode = sum(1 for item in step.items if not item.prefill)
        drafts = sum(item.new - 1 for item in step.items if not item.prefill)
        yield [0, number, seconds(step.start), seconds(step.duration), len(step.items), step.waiting, prefill, decode, drafts,
               step.preempted, step.free, step.draft_length]


def write(engine, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns, rows in (("requests.csv", REQUEST_COLUMNS, request_rows(engine)),
                                ("steps.csv", STEP_COLUMNS, step_rows(engine))):
        with open(folder / name, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)


def main():
    import yaml  # only here: the tests hand over a dictionary
    parser = argparse.ArgumentParser(description="a plain reference of vLLM's scheduler")
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mutant", choices=sorted(MUTANTS))
    arguments = parser.parse_args()
    with open(arguments.config) as file:
        config = yaml.safe_load(file)
    write(build(config, arguments.config.parent, arguments.mutant).run(), arguments.out)


if __name__ == "__main__":
    sys.exit(main())
