# SPDX-License-Identifier: Apache-2.0
"""Cold starts: what lull adds to a server's own start, alone, with many clients, and during a flood."""
import multiprocessing
import statistics

from machine import policy, tool
from machine.daemon import ROOT
from machine.policy import server
from machine.raw import RawClient

WAKES = 60
PYTHON_WAKES = 15
FLOOD_WAKES = 20
LISTEN = ["tcp/0.0.0.0:8080"]
PYTHON = ["/usr/bin/python3", "-m", "http.server", "8080", "--directory", str(ROOT / "docs")]


def start_by_hand(node, command):
    """Seconds from the start of the process to the first connection it takes."""
    return int(node.namespace.run(tool("time_start"), "127.0.0.1", 8080, *command).stdout) / 1e9


def sleep_again(node, name="web"):
    node.control.until_phase("Awake", name)
    node.control.sleep(name)
    node.control.until_phase("Asleep", name)
    node.control.until(lambda: node.control.policy(name)["target"]["state"] == "stopped", 5, "the end of the process")


def wake(node, port=8080, name="web"):
    """One cold start through lull: (seconds to connect, its phases, SYNs repeated)."""
    attempt = node.client("routed").connect(port)
    if not attempt.connected:
        raise RuntimeError(f"a first connection failed: {attempt}")
    node.control.until(lambda: (node.control.policy(name)["last_wake"] or {"phases": {"released": None}})["phases"]["released"], 5,
                       "the release")
    phases = node.control.policy(name)["last_wake"]["phases"]
    repeated = attempt.retransmissions
    attempt.close()
    return attempt.seconds, phases, repeated


def cold_starts(make_node, command, count):
    """Side by side, in turns, in two machines: by hand in one, through lull in the other."""
    by_hand_node, lull_node = make_node(), make_node()
    lull_node.start(policy("web", LISTEN, command))
    by_hand, through_lull, phases = [], [], []

    def start_through_lull():
        seconds, seen, _ = wake(lull_node)
        through_lull.append(seconds)
        phases.append(seen)
        sleep_again(lull_node)
    for number in range(count):
        turns = [lambda: by_hand.append(start_by_hand(by_hand_node, command)), start_through_lull]
        for turn in turns if number % 2 else reversed(turns):  # whoever is second finds warmer caches
            turn()
    return by_hand, through_lull, phases


def microseconds(phases, until, since=None):
    return [(seen[until] - (seen[since] if since else 0)) * 1e6 for seen in phases]


def added(report, name, by_hand, through_lull):
    ratio = statistics.median(through_lull) / statistics.median(by_hand)
    report.add(f"cold start through lull ÷ own start, {name} ({statistics.median(by_hand) * 1000:.1f} ms)", "ratio", ratio, 1.02,
               raw=[by_hand, through_lull])


def measure_cold_starts(report, make_node):
    by_hand, through_lull, phases = cold_starts(make_node, server(listen=LISTEN), WAKES)
    report.add_percentiles("first packet → start requested", "µs", microseconds(phases, "requested"), p50=200, p99=1000)
    report.add_percentiles("listening seen → packet re-injected", "µs", microseconds(phases, "released", "ready"), p50=None,
                           p99=1000)
    report.add("cold start: added to a small C server's own start, median", "ms",
               (statistics.median(through_lull) - statistics.median(by_hand)) * 1000, raw=[by_hand, through_lull])
    added(report, "small C server", by_hand, through_lull)
    by_hand, through_lull, _ = cold_starts(make_node, PYTHON, PYTHON_WAKES)
    added(report, "python3 -m http.server", by_hand, through_lull)


def measure_many_first_connections(report, make_node):
    node = make_node()
    node.start(policy("web", LISTEN, server("--backlog", "5", "--wait", "300", listen=LISTEN)))
    attempts = node.client("routed").connect_many(200, 8080)
    seconds = [attempt.seconds for attempt in attempts]
    unserved = sum(not attempt.connected or attempt.retransmissions > 0 for attempt in attempts)
    report.add("200 first connections, backlog 5: refused or waiting for a retransmission", "count", unserved, 0, raw=seconds)
    report.add("200 first connections, backlog 5: longest wait after listening (300 ms)", "ms", (max(seconds) - 0.3) * 1000,
               raw=seconds)


def resident_megabytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


def measure_flood(report, make_node):
    node = make_node()
    victim = ["tcp/0.0.0.0:8081"]
    node.start(policy("web", LISTEN, server(listen=LISTEN)),
               policy("victim", victim, ["/bin/sleep", "infinity"], wake={"holdTimeout": "10m"}))
    before = resident_megabytes(node.daemon.pid)
    flooder = RawClient(node.client("bridged"))
    flood = multiprocessing.get_context("fork").Process(target=flooder.flood, args=(8081, 1 << 40), daemon=True)
    flood.start()
    try:
        node.control.until(node.control.held, 5, "the flood's first packets")
        requested, repeated = [], 0
        for _ in range(FLOOD_WAKES):
            _, phases, again = wake(node)
            requested.append(phases["requested"] * 1000)
            repeated += again
            sleep_again(node)
    finally:
        flood.terminate()
        flood.join()
    flooded = node.control.packets("held") + node.control.packets("passed") + node.control.packets("dropped")
    report.add_percentiles(f"SYN flood at a neighbour ({flooded / 1e3:.0f} thousand): first packet → start requested", "ms",
                           requested, p99=10)
    report.add("SYN flood at a neighbour: SYNs repeated by the others' clients", "count", repeated, 0)
    report.add("SYN flood: memory grown by", "MB", resident_megabytes(node.daemon.pid) - before, 24)
