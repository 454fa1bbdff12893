# SPDX-License-Identifier: Apache-2.0
"""Warm traffic beside the same without lull, and what lull costs when nothing happens."""
import pathlib
import re
import resource
import time

from machine import policy
from wakes import resident_megabytes

ROUNDS = 20
CONNECTION_ROUNDS = 10
PORT = 8080
MANY = 10000
FIRST_PORT = 20000
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
IDLE_SECONDS = 20

NGINX = """\
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log /dev/null;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {directory};
    proxy_temp_path {directory};
    fastcgi_temp_path {directory};
    uwsgi_temp_path {directory};
    scgi_temp_path {directory};
    keepalive_requests 100000000;
    server {{ listen {port}; location / {{ return 200 "good morning"; }} }}
}}
"""


def nginx(node):
    """Its command line: one worker, on the first CPU; the load comes from the second."""
    configuration = node.directory / "nginx.conf"
    configuration.write_text(NGINX.format(directory=node.directory, port=PORT), encoding="ascii")
    return ["taskset", "--cpu-list", "0", "/usr/sbin/nginx", "-e", "/dev/null", "-c", str(configuration)]


def write_sleepers(node, count):
    """@count policies that nobody wakes, a thousand a file."""
    texts = [policy(f"sleeper-{i}", [f"tcp/0.0.0.0:{FIRST_PORT + i}"], ["/bin/true"]) for i in range(count)]
    for first in range(0, count, 1000):
        node.write_policy("---\n".join(texts[first:first + 1000]), f"sleepers-{first}")


def await_answer(node):
    deadline = time.monotonic() + 10
    while not (attempt := node.client("routed").connect(PORT)).connected:
        attempt.close()
        if time.monotonic() > deadline:
            raise RuntimeError("nginx does not answer")
    attempt.close()


def nginx_pids(node):
    master = int((node.directory / "nginx.pid").read_text(encoding="ascii"))
    return [master, *map(int, pathlib.Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii").split())]


def cpu_seconds(*pids):
    return sum(int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for pid in pids) / 1e9


def load(node, *options, seconds=1):
    """Requests a second, the 99th percentile of the latency in seconds, and CPU seconds a request of both sides."""
    pids = nginx_pids(node)
    server_before, client_before = cpu_seconds(*pids), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = node.client("routed").namespace.run(
        "taskset", "--cpu-list", "1", "wrk", "--threads", 1, "--connections", 16, "--duration", f"{seconds}s", "--latency",
        *options, f"http://192.0.2.1:{PORT}/").stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    latency, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", output).groups()
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    client_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = cpu_seconds(*pids) - server_before + client_after.ru_utime + client_after.ru_stime \
        - client_before.ru_utime - client_before.ru_stime
    return rate, float(latency) * UNITS[unit], cpu / requests


def rounds(nodes, count, *options):
    """In turns, forwards and backwards, so that drift hits all alike. Returns {name: [what load() returns]}."""
    results = {name: [] for name in nodes}
    for number in range(count):
        for name in list(nodes) if number % 2 else reversed(list(nodes)):
            results[name].append(load(nodes[name], *options))
    return results


def compare(report, results, what, name, title, rate_budget, latency_budget):
    (rates, latencies, cpu), (rates_without, latencies_without, cpu_without) = (zip(*results[which]) for which in (name, "none"))
    report.add_ratio(f"{what}, {title} ÷ without lull", rates, rates_without, rate_budget, "higher")
    report.add_ratio(f"{what}: p99 latency, {title} ÷ without lull", latencies, latencies_without, latency_budget)
    report.add_ratio(f"{what}: CPU time a request, {title} ÷ without lull", cpu, cpu_without, None)


def awake_under_lull(make_node, others=0):
    node = make_node()
    write_sleepers(node, others)
    daemon = node.start(policy("web", [f"tcp/0.0.0.0:{PORT}"], nginx(node)))
    await_answer(node)
    node.control.until_phase("Awake")
    if not others:
        node.control.until(lambda: not node.control.status()["hold"]["attached"], 5, "the hooks' detachment")
    return node, daemon.start_seconds


def hook_cost(node):
    """Nanoseconds a packet, whatever packet, while holding is attached. The statistics cost something too: not while timing."""
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text(encoding="ascii")

    def totals():
        hooks = [program for program in node.control.get("/v1/programs")["programs"] if program["type"] == "netfilter"]
        return sum(hook["run_count"] for hook in hooks), sum(hook["run_time_seconds"] for hook in hooks)
    switch.write_text("1", encoding="ascii")
    try:
        count, seconds = totals()
        load(node)
        count_after, seconds_after = totals()
    finally:
        switch.write_text(before, encoding="ascii")
    return (seconds_after - seconds) / (count_after - count) * 1e9


def measure_warm(report, make_node):
    none = make_node()
    process = none.namespace.start(*nginx(none))
    await_answer(none)
    awake, _ = awake_under_lull(make_node)
    many, start_seconds = awake_under_lull(make_node, MANY)
    hundred = make_node()
    write_sleepers(hundred, 100)
    hundred.start()
    idle_since, idle_cpu = time.monotonic(), cpu_seconds(hundred.daemon.pid)

    nodes = {"none": none, "awake": awake, "many": many}
    rounds(nodes, 1)  # warms caches, and is thrown away
    results = rounds(nodes, ROUNDS)
    compare(report, results, "warm requests", "awake", "all awake", 0.99, 1.01)
    compare(report, results, "warm requests", "many", "10,000 asleep", 0.97, 1.03)
    results = rounds(nodes, CONNECTION_ROUNDS, "--header", "Connection: close")
    compare(report, results, "a connection each", "awake", "all awake", 0.99, 1.01)
    compare(report, results, "a connection each", "many", "10,000 asleep", 0.97, 1.03)
    report.add("hook's time a packet, 10,000 asleep", "ns", hook_cost(many))

    report.add("10,000 policies: start to ready", "s", start_seconds, 2)
    report.add("resident memory, 10,000 policies", "MB", resident_megabytes(many.daemon.pid), 40)
    report.add("resident memory, 100 policies", "MB", resident_megabytes(hundred.daemon.pid), 10)
    idle_for = time.monotonic() - idle_since
    if idle_for < IDLE_SECONDS:
        time.sleep(IDLE_SECONDS - idle_for)
    share = (cpu_seconds(hundred.daemon.pid) - idle_cpu) / (time.monotonic() - idle_since)
    report.add("CPU with 100 policies asleep and nothing happening", "% core", share * 100, 0.1)
    process.terminate()
    process.wait()
