"""Acceptance, latency and simulated time of the reference engine (reference.py)."""
import bisect
import csv
from collections import deque


class Acceptance:
    """Draft token i of a round after n output tokens is accepted if u(request, n + i) < c_i."""

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
    """Times: fixed, per row, per cached token; for the target's pass and for each pass of the draft."""

    def __init__(self, section, method, longest=0, mutant=None):
        self.method, self.longest, self.mutant = method, longest, mutant
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
        elif self.longest > 0 and self.method != "ngram" and self.mutant != "draft_cache_with_gaps":
            time += self.draft_round + self.draft_fixed + self.draft_row * rows + self.draft_kv * cached  # its cache is kept for later drafts
        return time

    def duration(self, step):
        return round(self.milliseconds(step) * 1e9)


class Engine:
    """Time: arrivals, consecutive steps, and the requests that closed loops send when others end."""

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
                # Tokens computed for a request that has ended (asynchronous) are discarded: none of them counts as rejected.
                request = item.request
                item.accepted = item.drafts if request.done else self.acceptance.accepted(request.number, request.out, item.drafts)
        step.start, step.duration = now, self.cost.duration(step)
        self.steps.append(step)
        return now + step.duration

    def finish(self, step, following, now):
        """Delivers the outputs of a step. Rejected tokens were counted as computed in the step that is already scheduled."""
        ended = self.scheduler.update(step, now)
        if following is not None:
            rejected = {item.request.number: item.drafts - item.accepted for item in step.items if item.drafts}
            for item in following.items:
                if not item.prefill:
                    item.base -= rejected.get(item.request.number, 0)
        self.ended(ended, now)

    def attempt(self, now):
        """Schedules a step; a scheduling that only preempted is followed by another at once."""
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
