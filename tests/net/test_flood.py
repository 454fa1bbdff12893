# SPDX-License-Identifier: Apache-2.0
"""A flood at one sleeping frontend costs the others nothing, and the daemon a bounded amount of memory."""
import concurrent.futures

from machine import policy
from machine.policy import server
from machine.raw import RawClient

FLOODED = ["tcp/0.0.0.0:8081"]


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        [line] = [line for line in status if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def start_with_a_flooded_neighbour(node, **wake):
    node.start(policy("web", ["tcp/0.0.0.0:8080"], server(listen=["tcp/0.0.0.0:8080"])),
               policy("victim", FLOODED, server("--wait", "600000", listen=FLOODED), wake={"holdTimeout": "60s", **wake}))


def test_a_flood_keeps_nobody_else_from_waking(node):
    start_with_a_flooded_neighbour(node)
    flooder = RawClient(node.client("routed"))

    with concurrent.futures.ThreadPoolExecutor(1) as background:
        flood = background.submit(flooder.flood, 8081, 50000)
        node.control.until(node.control.held, 5, "the flood's first packets")
        attempt = node.client("bridged").connect(8080)
        flood.result()

    assert attempt.connected, attempt
    assert attempt.retransmissions == 0
    assert node.control.phase("victim") == "Waking"


def test_a_flood_takes_a_bounded_amount_of_memory(node):
    start_with_a_flooded_neighbour(node)
    flooder = RawClient(node.client("routed"))
    before = resident_bytes(node.daemon.pid)

    flooder.flood(8081, 50000)
    node.control.until(node.control.held, 5, "parked packets")

    assert node.control.policy("victim")["held"]["parked"] <= 1024  # maxHeld
    assert resident_bytes(node.daemon.pid) - before < 24 * 1024 * 1024  # all policies together park 16 MiB at most


def test_one_flooding_source_leaves_room_for_others_at_the_same_frontend(node):
    start_with_a_flooded_neighbour(node)
    RawClient(node.client("routed")).flood(8081, 20000)

    node.client("bridged").begin(8081)

    def parked_sources():
        return {packet["flow"].split()[1].rsplit(":", 1)[0] for packet in node.control.held()}
    node.control.until(lambda: "198.51.100.2" in parked_sources(), 5, "a parked packet of the other source")


def test_a_flood_past_max_held_keeps_no_more_than_that(node):
    start_with_a_flooded_neighbour(node, maxHeld=100)

    RawClient(node.client("routed")).flood(8081, 5000)
    node.control.until(node.control.held, 5, "parked packets")

    assert node.control.policy("victim")["held"]["parked"] <= 100
