# SPDX-License-Identifier: Apache-2.0
"""What lull costs: requests to the API server, memory, CPU, and whether warm traffic notices it."""
import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import tempfile
import time

import lull as deployed
import workloads
from clients import Audit, api_time
from kubernetes_setting import CLIENT_NODE, ask
from kubernetes_wakes import PERIOD_1
from lullcluster import layout, objects, up

CYCLES = 5
FEW, MANY = 100, 1000
MAKERS = 8  # at once
IDLE_SECONDS = 120
REFERENCE_SECONDS = 60
QUIET_SECONDS = 3  # without a request: what was begun is done
QUIET_TIMEOUT = 60
HOUR = 3600
WARM_ROUNDS = 20
SERVER_NODE = "n1"
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


class Record:
    """Requests as the API server's own audit log has them, each when it was received: a watch counts when it begins."""

    ACCOUNT = re.compile(f"system:serviceaccount:{deployed.NAMESPACE}:lull-(agent|controller)$")

    def __init__(self, setting):
        self.setting, self.stack = setting, contextlib.ExitStack()

    def __enter__(self):
        directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.audit = self.stack.enter_context(Audit(self.setting.cluster, directory))
        self.setting.lull.ready()
        self.until_quiet()
        return self

    def __exit__(self, *details):
        return self.stack.__exit__(*details)

    def requests(self):
        """(when it was received, "agent" or "controller", "patch scaletozeros/status" or the like) of each"""
        for line in self.audit.path.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            account = self.ACCOUNT.match(event["user"].get("username", ""))
            if account and event["stage"] == "RequestReceived":
                reference = event.get("objectRef", {})
                resource = "/".join(filter(None, (reference.get("resource", event["requestURI"]), reference.get("subresource"))))
                yield api_time(event["requestReceivedTimestamp"]), account[1], f"{event['verb']} {resource}"

    def counts(self, since, until):
        """{"agent" or "controller": Counter of requests}"""
        found = {"agent": collections.Counter(), "controller": collections.Counter()}
        for received, role, request in self.requests():
            if since <= received < until:
                found[role][request] += 1
        return found

    def until_quiet(self):
        """Until nothing follows any more from what was done: Leases are renewed all the time."""
        began = time.time()
        while time.time() < began + QUIET_TIMEOUT:
            newest = max((received for received, _, request in self.requests() if not request.endswith(" leases")), default=0)
            remaining = max(began, newest) + QUIET_SECONDS - time.time()
            if remaining <= 0:
                return
            time.sleep(remaining)
        raise TimeoutError(f"lull's pods did not stop to write within {QUIET_TIMEOUT} s")


def describe(counts, per):
    """"2.0 patch nodeactivities/status, …" for people."""
    return ", ".join(f"{count / per:.1f} {what}" for what, count in sorted(counts.items()) if abs(count / per) >= 0.05)


def annotate(setting, name, annotation):
    setting.api.patch(f"{policies(setting)}/{name}", {"metadata": {"annotations": {annotation: str(time.time())}}})


def policies(setting):
    return f"/apis/lull.dev/v1alpha1/namespaces/{setting.namespace}/scaletozeros"


def until_let_go(setting, name):
    """A wake is over when no node holds anything for it any more."""
    setting.lull.until_policy(setting.namespace, lambda policy: policy["status"]["phase"] == "Awake" and not policy["status"]["endpoints"],
                              name=name)
    for node in setting.cluster.nodes:
        up.await_true(lambda node=node: not setting.lull.holds(node, setting.namespace, name, ""),
                      f"the agent on {node}, to hold {name} no longer,", 20)


def cycle(setting, record, sleeper):
    """One wake and one sleep: when each began, and the last one ended."""
    moments = [time.time()]
    ask(setting.client, sleeper.address)
    until_let_go(setting, sleeper.name)
    record.until_quiet()
    moments.append(time.time())
    annotate(setting, sleeper.name, "lull.dev/sleep")
    sleeper.until_phase("Asleep")
    setting.until_gone(sleeper.name)
    record.until_quiet()
    return [*moments, time.time()]


def measure_requests(report, setting):
    """Of all agents and both controllers together, less what they ask for when nothing happens."""
    sleeper = setting.with_lull("cycle", PERIOD_1)
    with Record(setting) as record:
        cycles = [cycle(setting, record, sleeper) for _ in range(CYCLES)]
        idle_since = time.time()
        time.sleep(REFERENCE_SECONDS)
        idle = record.counts(idle_since, time.time())
        for what, first in (("wake", 0), ("sleep", 1)):
            total = collections.Counter()
            for moments in cycles:
                began, ended = moments[first:first + 2]
                for role, counts in record.counts(began, ended).items():
                    total.update({f"{role}: {key}": count for key, count in counts.items()})
                for role, counts in idle.items():
                    total.subtract({f"{role}: {key}": count * (ended - began) / REFERENCE_SECONDS for key, count in counts.items()})
            report.add(f"API requests a {what}, of two agents and two controllers", "count", sum(total.values()) / CYCLES)
            print(f"    {describe(total, CYCLES)}")


# Memory and idleness

def resident(setting, pod):
    """In all, and what is the process's own: not of files, which it shares with others that use the same libraries. MB."""
    with open(f"/proc/{setting.cluster.container_pid(pod)}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))


def add_memory(report, setting, count, agents_budget):
    for role, pods in each_pod(setting, resident).items():
        report.add(f"{role}: resident memory, {count} policies asleep", "MB", max(pod[0] for pod in pods),
                   agents_budget if role == "agent" else None)
        report.add(f"{role}: of that, its own rather than of files and maps", "MB", max(pod[1] for pod in pods))


def cpu_seconds(setting, pod):
    with open(f"/proc/{setting.cluster.container_pid(pod)}/schedstat", encoding="ascii") as schedstat:
        return int(schedstat.read().split()[0]) / 1e9


def node_octets(setting):
    """Payload that one agent's connections have carried so far; they last longer than it is looked at."""
    pod = setting.lull.agent(CLIENT_NODE)
    pid = setting.cluster.container_pid(pod)
    listed = setting.cluster.nodes[CLIENT_NODE].run("ss", "-tinpH", "state", "established", f"( dport = :{layout.API_PORT} or dport = :443 )")
    lines = listed.splitlines()
    return sum(int(count) for head, detail in zip(lines[::2], lines[1::2]) if f"pid={pid}," in head
               for count in re.findall(r"\bbytes_(?:acked|received):(\d+)", detail))


def each_pod(setting, function):
    return {role: [function(setting, pod) for pod in pods] for role, pods in setting.pods().items()}


def holding(setting, node):
    """For how many policies that node's agent holds first packets."""
    return sum(policy["held"]["holding"] for policy in setting.lull.agent_says(node, "/v1/policies")["policies"])


def make_sleepers(setting, first, last):
    def make(number):
        name = f"sleeper-{number}"
        objects.create(setting.api, setting.namespace, setting.deployment(name, PERIOD_1), objects.service(name))
        setting.api.post(policies(setting), workloads.policy(name))
    with concurrent.futures.ThreadPoolExecutor(MAKERS) as pool:
        list(pool.map(make, range(first, last)))
    setting.api.until(policies(setting), lambda policies: len(policies) == last and all(
        policy.get("status", {}).get("phase") == "Asleep" for policy in policies.values()), 300)
    for node in setting.cluster.nodes:
        up.await_true(lambda node=node: holding(setting, node) == last, f"the agent on {node}, to hold {last} policies,", 60)


def measure_idle(report, setting):
    with Record(setting) as record:  # first: it restarts the API server
        make_sleepers(setting, 0, FEW)
        add_memory(report, setting, FEW, 10)
        make_sleepers(setting, FEW, MANY)
        add_memory(report, setting, MANY, None)  # the budget is for 100 and for 10,000

        record.until_quiet()
        cpu, octets, began, since = each_pod(setting, cpu_seconds), node_octets(setting), time.monotonic(), time.time()
        time.sleep(IDLE_SECONDS)
        seconds, until = time.monotonic() - began, time.time()
        later, octets_later = each_pod(setting, cpu_seconds), node_octets(setting)
        counts = record.counts(since, until)
    for role, pods in setting.pods().items():
        shares = [100 * (after - before) / seconds for before, after in zip(cpu[role], later[role])]
        report.add(f"{role}: CPU when nothing happens, {MANY} policies asleep", "% core", max(shares), 0.1 if role == "agent" else None)
        report.add(f"{role}: API requests in an idle hour (extrapolated from {IDLE_SECONDS} s)", "count",
                   sum(counts[role].values()) / len(pods) * HOUR / seconds)
        print(f"    {describe(counts[role], len(pods) * seconds / HOUR)}")
    report.add(f"agent: bytes from and to the API server in an idle hour (extrapolated from {IDLE_SECONDS} s)", "kB",
               (octets_later - octets) / 1000 * HOUR / seconds)


# Warm traffic

def load(setting, address):
    """Requests a second, and the 99th percentile of the latency in seconds, from a pod on one node to a pod on the other."""
    output = setting.client.place.run("taskset", "--cpu-list", "1", "wrk", "--threads", 1, "--connections", 16, "--duration", "1s", "--latency",
                                f"http://{address}/met")
    latency, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", output).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1)), float(latency) * UNITS[unit]


def measure_warm(report, setting):
    """One pod with a policy that is awake, one without, both on the first CPU of the other node; the load comes from the second."""
    managed = setting.with_lull("managed", PERIOD_1, node=SERVER_NODE)
    addresses = {"lull": managed.address, "none": setting.without_lull("none", PERIOD_1, replicas=1, node=SERVER_NODE)}
    ask(setting.client, managed.address)
    until_let_go(setting, managed.name)
    for name in ("managed", "none"):
        [pod] = setting.cluster.ready_pods(setting.namespace, 1, f"app={name}")
        os.sched_setaffinity(setting.cluster.container_pid(pod), {0})
    results = {name: [] for name in addresses}
    for turn in range(WARM_ROUNDS + 1):
        for name in addresses if turn % 2 else reversed(addresses):
            results[name].append(load(setting, addresses[name]))
    (rates, latencies), (rates_without, latencies_without) = (zip(*results[name][1:]) for name in ("lull", "none"))
    report.add_ratio("warm requests between pods, awake under lull ÷ without a policy", rates, rates_without, 0.99, "higher")
    report.add_ratio("warm requests between pods: p99 latency, awake under lull ÷ without a policy", latencies, latencies_without, 1.01)
