# SPDX-License-Identifier: Apache-2.0
"""Three candidates for one Lease of a real API server, which are killed, paused and cut off: never may two act at once.

The fencing rule is that of src/kube/election.h. Each candidate asks every few milliseconds whether it may act, and writes down
between which two moments of the machine's clock the answer was yes. An answer holds at some moment between the two, so two
candidates acted at once if the whole of one's answer lies within an unbroken row of the other's.
"""
import itertools
import os
import secrets
import signal
import time

import clients
import pytest
from lullcluster import layout

LEASE, RENEW, RETRY = 4, 3, 0.5
ROW = 50  # answers in a row that make a leader
# A candidate waits for the Lease to end, and for its own turn; the rest is for this machine, which has other things to do.
TAKEN_OVER_SECONDS = LEASE + 2.2 * RETRY + 5


def parse(line):
    word, *values = line.split(" ")
    return word, *(int(value) if value.isdigit() else value.rstrip("\n") for value in (text.strip() for text in values))


class Candidate(clients.Said):
    """The program elect on one machine of the cluster."""

    def __init__(self, place, cluster, namespace, environment=None):
        self.identity = f"candidate-{secrets.token_hex(4)}"
        super().__init__(place, clients.TOOLS / "cluster/elect", cluster.where.kubeconfig, namespace, "leader", self.identity,
                         f"{LEASE}s", f"{RENEW}s", f"{int(RETRY * 1000)}ms", parse=parse, environment=environment)

    def catch_up(self):
        """All it has said so far."""
        while not self.lines.empty():
            if line := self.lines.get():
                self.seen.append(line)
        return self.seen

    def acts(self):
        """Whether it has said for a while that it may act, and just now too."""
        last = [line for line in self.catch_up()[-2 * ROW:] if line[0] in ("act", "rest")][-ROW:]
        return len(last) == ROW and all(line[0] == "act" for line in last) and time.monotonic_ns() - last[-1][2] < 1e9

    def answers(self):
        return [line[1:] for line in self.catch_up() if line[0] == "act"]

    def rows(self):
        """Unbroken rows of yes: (end of the first answer, beginning of the last)."""
        for is_act, row in itertools.groupby((line for line in self.catch_up() if line[0] in ("act", "rest")),
                                             lambda line: line[0] == "act"):
            if is_act:
                row = list(row)
                yield row[0][2], row[-1][1]


def await_leader(candidates, other_than=None, seconds=TAKEN_OVER_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for one in candidates:
            if one is not other_than and one.acts():
                return one
        time.sleep(0.01)
    raise AssertionError(f"nobody leads after {seconds} s: {[one.catch_up()[-1:] for one in candidates]}")


def assert_never_two(candidates):
    rows = sorted((begin, end, one.identity) for one in candidates for begin, end in one.rows())
    for one in candidates:
        for before, after in one.answers():
            others = [row for row in rows if row[2] != one.identity and row[0] <= before and after <= row[1]]
            assert not others, f"{one.identity} acted at {before} to {after}, while {others}"
    assert sum(len(one.answers()) for one in candidates) > ROW


@pytest.fixture(name="candidate")
def fixture_candidate(cluster, namespace):
    """Starts candidates, and ends them; all of them, since what is asserted is about them together."""
    started = []
    places = itertools.cycle([cluster.client, cluster.nodes["n1"], cluster.nodes["n2"]])

    def start(place=None, environment=None):
        started.append(Candidate(place or next(places), cluster, namespace, environment))
        return started[-1]
    start.all = started
    yield start
    for one in started:
        one.signal(signal.SIGCONT)
        one.process.kill()
        one.process.wait()


def address_of(cluster, candidate):
    """Of the machine it is on."""
    there = os.stat(f"/proc/{candidate.process.pid}/ns/net").st_ino
    places = {cluster.client: layout.CLIENT, **{cluster.nodes[node.name]: node.addresses for node in cluster.where.nodes}}
    return next(pair for place, pair in places.items() if os.stat(place.namespace).st_ino == there)


def test_the_next_one_leads_when_the_leader_is_killed(candidate):
    for _ in range(3):
        candidate()
    for _ in range(2):
        leader = await_leader(candidate.all)
        leader.signal(signal.SIGKILL)
        leader.process.wait()
        await_leader(candidate.all, leader)
        candidate()
    assert_never_two(candidate.all)


def test_a_leader_that_was_paused_acts_no_more_when_it_goes_on(candidate):
    for _ in range(3):
        candidate()
    for _ in range(2):
        leader = await_leader(candidate.all)
        leader.signal(signal.SIGSTOP)
        await_leader(candidate.all, leader)
        leader.signal(signal.SIGCONT)
        leader.until(lambda line: line[0] == "rest", 10)
    assert_never_two(candidate.all)


def test_a_leader_that_is_cut_off_stops_before_the_next_one_begins(cluster, candidate):
    for _ in range(3):
        candidate()
    leader = await_leader(candidate.all)
    cluster.faults.cut_off(*address_of(cluster, leader))
    follower = await_leader(candidate.all, leader)
    cluster.faults.mend()
    leader.until(lambda line: line[0] == "holder" and line[2] == follower.identity, 30)
    assert not leader.acts()
    assert_never_two(candidate.all)


def test_clocks_that_are_wrong_change_nothing(candidate):
    """By a day, and by an eighth in rate: election.h allows for LEASE / RENEW, a third."""
    candidate(environment={"ELECT_CLOCK_OFFSET": "86400", "ELECT_CLOCK_RATE": "1.125"})
    candidate(environment={"ELECT_CLOCK_OFFSET": "3600"})
    candidate(environment={"ELECT_CLOCK_RATE": "0.9"})
    leader = await_leader(candidate.all)
    for _ in range(2):
        leader.signal(signal.SIGSTOP)
        follower = await_leader(candidate.all, leader)
        leader.signal(signal.SIGCONT)
        leader = follower
    assert_never_two(candidate.all)


def test_a_lease_given_back_is_taken_at_once(candidate):
    leader, other = candidate(), candidate()
    if await_leader(candidate.all) is other:
        leader, other = other, leader
    leader.signal(signal.SIGTERM)
    released = leader.until(lambda line: line[0] == "released", 10)
    began = other.until(lambda line: line[0] == "act", 10)
    print(f"taken over {(began[2] - released[1]) / 1e6:.0f} ms after it was given back")
    assert began[2] - released[1] < (2.2 * RETRY + 1) * 1e9
    assert leader.process.wait(10) == 0
    assert_never_two(candidate.all)


def test_a_clock_slower_than_the_rule_allows_is_found_out(cluster, candidate):
    """That the check can fail: this leader's 3 s last for 10."""
    leader = candidate(environment={"ELECT_CLOCK_RATE": "0.3"})
    await_leader([leader])
    other = candidate()
    cluster.faults.cut_off(*address_of(cluster, leader))
    await_leader([other])
    with pytest.raises(AssertionError, match="acted at"):
        assert_never_two(candidate.all)


def test_a_killed_and_a_hung_api_server_leave_one_leader_at_most(cluster, candidate):
    for _ in range(3):
        candidate()
    await_leader(candidate.all)
    with cluster.paused("kube-apiserver"):
        time.sleep(LEASE + 1)
        assert not any(one.acts() for one in candidate.all)
    await_leader(candidate.all, seconds=30)
    cluster.kill("kube-apiserver")
    cluster.await_server("kube-apiserver")
    await_leader(candidate.all, seconds=30)
    assert_never_two(candidate.all)
