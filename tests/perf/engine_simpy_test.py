#!/usr/bin/python3
"""The same M/M/1 queue in specsim's engine and in SimPy: the speed of both, and whether they agree on the mean wait.

    tests/perf/engine_simpy_test.py

SPECSIM_PERF names the program with the timings. Skipped with a message if SimPy (Debian: python3-simpy3) is missing.
"""

import math
import os
import random
import subprocess
import sys
import time

PROGRAM = os.path.abspath(os.environ.get("SPECSIM_PERF", "build/specsim_perf"))
LOAD = 0.8
ENGINE_CUSTOMERS = 4_000_000
SIMPY_CUSTOMERS = 200_000
Z = 4.9  # 1e-6, two-sided


def simpy_queue(simpy, customers, seed):
    """Events (an arrival and a departure per customer), seconds, mean wait in mean services."""
    draws = random.Random(seed)
    environment = simpy.Environment()
    server = simpy.Resource(environment, capacity=1)
    total = [0.0]

    def customer():
        came = environment.now
        with server.request() as request:
            yield request
            total[0] += environment.now - came
            yield environment.timeout(draws.expovariate(1.0))

    def source():
        for _ in range(customers):
            environment.process(customer())
            yield environment.timeout(draws.expovariate(LOAD))

    environment.process(source())
    start = time.perf_counter()
    environment.run()
    return 2 * customers, time.perf_counter() - start, total[0] / customers


def engine_queue(customers):
    output = subprocess.run([PROGRAM, "[.mm1]"], env={**os.environ, "SPECSIM_CUSTOMERS": str(customers)}, check=True,
                            stdout=subprocess.PIPE, text=True, timeout=600).stdout
    line = next(line for line in output.splitlines() if line.startswith("mm1 "))
    events, seconds, wait = line.split()[1:]
    return int(events), float(seconds), float(wait)


def standard_error(customers):
    """Daley's asymptotic variance of the mean of successive waits in M/M/1, in mean services."""
    r = LOAD
    return math.sqrt(r * (2 + 5 * r - 4 * r * r + r**3) / (1 - r) ** 4 / customers)


def agree(wait, other, error):
    return abs(wait - other) < Z * error


def main():
    try:
        import simpy
    except ImportError:
        print("skipped: SimPy is missing (Debian: python3-simpy3)")
        return 0
    ours = max((engine_queue(ENGINE_CUSTOMERS) for _ in range(3)), key=lambda r: r[0] / r[1])
    theirs = simpy_queue(simpy, SIMPY_CUSTOMERS, 20260402)
    rate, simpy_rate = ours[0] / ours[1], theirs[0] / theirs[1]
    print(f"M/M/1 at load {LOAD}: {rate * 1e-6:.2f} million events/s, SimPy {simpy.__version__} {simpy_rate * 1e-6:.3f}, "
          f"ratio {rate / simpy_rate:.0f}")
    closed = LOAD / (1 - LOAD)
    ours_error, error = standard_error(ENGINE_CUSTOMERS), math.hypot(standard_error(ENGINE_CUSTOMERS),
                                                                     standard_error(SIMPY_CUSTOMERS))
    print(f"mean wait: {ours[2]:.4f} +- {ours_error:.4f}, SimPy {theirs[2]:.4f} +- {standard_error(SIMPY_CUSTOMERS):.4f}, "
          f"closed form {closed:.4f}")
    if not agree(ours[2], closed, ours_error):
        print("the engine's mean wait disagrees with the closed form", file=sys.stderr)
        return 1
    if not agree(ours[2], theirs[2], error):
        print("the mean waits disagree", file=sys.stderr)
        return 1
    # The checks can fail: a service 2 % slower is a load of 0.816.
    slower = 1.02 * (1.02 * LOAD) / (1 - 1.02 * LOAD)
    if agree(slower, closed, ours_error):
        print("the check of the mean wait is blind to a service 2 % slower", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
