"""Composition of a step of the reference engine (reference.py): vllm/v1/core/sched/scheduler.py and async_scheduler.py."""
import bisect
import math
from collections import deque

from reference_pool import UNLIMITED


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
        if method == "draft_model" and self.longest_draft and mutant != "budget_of_draft_model":
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
        """The next step, or None if nothing can be scheduled; `self.preempted` counts the preempted requests."""
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
        """Placeholders are valid for the next scheduling only: afterwards their draft tokens no longer exist."""
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
                if self.asynchronous and request.running:
                    self.pool.remember(request, request.computed - request.placeholders)
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
    """The number of draft tokens after a step of this number of requests."""

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
