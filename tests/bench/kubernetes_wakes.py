# SPDX-License-Identifier: Apache-2.0
"""Cold starts as a client sees them: with lull, with lull waiting for the data plane, and with a client that retries."""
import contextlib
import statistics
import time

import lull as deployed
from kubernetes_setting import App, ReadyWatch, ask

QUICK_ROUNDS, SLOW_ROUNDS = 15, 6
NO_PROBE = App("no probe")
PERIOD_1 = App("period 1 s", period=1)
SLOW_1 = App("period 1 s, listens after 2 s", period=1, listens_after_ms=2000)
SLOW_10 = App("period 10 s, listens after 2 s", period=10, listens_after_ms=2000)
ROUNDS = {NO_PROBE.title: QUICK_ROUNDS, PERIOD_1.title: QUICK_ROUNDS, SLOW_1.title: SLOW_ROUNDS, SLOW_10.title: SLOW_ROUNDS}
STEPS = ("detected", "reported", "endpoint", "ready", "released", "answered")


def wake_with_lull(setting, name, address):
    """Returns what the client met, when the API said Ready, and the agent's steps."""
    watch = ReadyWatch(setting.api, setting.namespace, name)
    answered = ask(setting.client, address)
    ready = watch.ready()
    steps = setting.last_wake(name)
    setting.lull.until_phase(setting.namespace, "Awake", name=name)
    setting.put_down(name)
    setting.lull.until_phase(setting.namespace, "Asleep", name=name)
    return answered, ready, steps


def wake_by_hand(setting, name, address):
    """Somebody scales at the very moment of the client's first attempt. Returns what the client met, and the seconds from then until
    the API said Ready."""
    setting.until_refused(address)
    watch = ReadyWatch(setting.api, setting.namespace, name)
    began = time.monotonic()
    setting.scale(name, 1)
    answered = ask(setting.client, address)
    answered.began = began
    ready = watch.ready()
    setting.put_down(name)
    return answered, ready - began


def milliseconds(seconds):
    return [1000 * value for value in seconds]


def add_first_bytes(report, app, what, samples):
    refused = sum(sample.refused for sample in samples)
    report.add(f"first byte, {app.title}: {what}, median", "ms", 1000 * statistics.median(sample.seconds for sample in samples),
               raw=[sample.seconds for sample in samples])
    report.add(f"first byte, {app.title}: {what}, refusals a wake", "count", refused / len(samples),
               0 if what.startswith("lull") and app is not NO_PROBE else None)


def add_shares(report, steps):
    """Our own part of a wake, in its steps."""
    def between(until, since=None):
        return [seen[until] - (seen[since] if since else 0) for seen in steps if seen.get(until) is not None]
    report.add_percentiles("first packet → known to the agent", "µs", [1e6 * value for value in between("detected")], p50=200, p99=1000)
    report.add_percentiles("known to the agent → demand written", "ms", milliseconds(between("reported", "detected")), p50=None, p99=None)
    report.add_percentiles("demand written → an endpoint in the status", "ms", milliseconds(between("endpoint", "reported")), p50=None)
    report.add_percentiles("endpoint in the status → passed its probe, or Ready", "ms", milliseconds(between("ready", "endpoint")),
                           p50=None)
    report.add_percentiles("readiness known → first packet handed on", "ms", milliseconds(between("released", "ready")), p50=None, p99=1)
    report.add_percentiles("first packet handed on → answered", "ms", milliseconds(between("answered", "released")), p50=None)


def measure_wakes(report, setting):
    """Side by side, in turns."""
    all_steps = []
    for number, app in enumerate((NO_PROBE, PERIOD_1, SLOW_1, SLOW_10)):
        sleeper = setting.with_lull(f"lull{number}", app)
        by_hand_name = f"hand{number}"
        by_hand_address = setting.without_lull(by_hand_name, app)
        with_lull, by_hand, to_ready = [], [], []

        def take_lull(sleeper=sleeper, with_lull=with_lull):
            with_lull.append(wake_with_lull(setting, sleeper.name, sleeper.address))

        def take_hand(name=by_hand_name, address=by_hand_address, by_hand=by_hand, to_ready=to_ready):
            answered, ready = wake_by_hand(setting, name, address)
            by_hand.append(answered)
            to_ready.append(ready)
        for turn in range(ROUNDS[app.title] + 1):
            for take in (take_lull, take_hand) if turn % 2 else (take_hand, take_lull):
                take()
        for samples in (with_lull, by_hand, to_ready):
            samples.pop(0)  # the first reads files that no later one reads
        answered = [one[0] for one in with_lull]
        add_first_bytes(report, app, "lull", answered)
        add_first_bytes(report, app, "scaled by hand, the client retries", by_hand)
        report.add_percentiles(f"scale-to-ready, {app.title}", "ms", milliseconds(to_ready), p50=None)
        report.add_ratio(f"cold start through lull ÷ scale-to-ready, {app.title}",
                         [one.seconds for one in answered], to_ready, 1.05)
        if app.period:
            report.add_percentiles(f"the app listens → first packet at the pod, {app.title}", "ms",
                                   milliseconds(one.accepted - one.listening for one in answered), p50=None, p99=50)
        all_steps += [one[2] for one in with_lull]
    add_shares(report, all_steps)


@contextlib.contextmanager
def waiting_agents(lull):
    """Agents that always leave flows to the data plane."""
    path = f"/apis/apps/v1/namespaces/{deployed.NAMESPACE}/daemonsets/lull-agent"
    before = lull.api.get(path)["spec"]["template"]["spec"]["containers"][0]["args"]

    def roll_out(arguments):
        lull.api.patch(path, [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}], "json")
        lull.cluster.kubectl("--namespace", deployed.NAMESPACE, "rollout", "status", "daemonset/lull-agent", "--timeout=60s", timeout=90)
        lull.ready()
    roll_out([*before, "--release=wait"])
    try:
        yield
    finally:
        roll_out(before)


def measure_fall_back(report, setting):
    with waiting_agents(setting.lull):
        for number, app in enumerate((NO_PROBE, PERIOD_1, SLOW_1, SLOW_10)):
            sleeper = setting.with_lull(f"wait{number}", app)
            rounds = 1 + max(SLOW_ROUNDS, ROUNDS[app.title] // 2)
            samples = [wake_with_lull(setting, sleeper.name, sleeper.address)[0] for _ in range(rounds)][1:]
            add_first_bytes(report, app, "lull waiting for the data plane", samples)
