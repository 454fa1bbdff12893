# SPDX-License-Identifier: Apache-2.0
"""Where Ready decides, and clients that arrive while the data planes catch up."""
import places as clients
from kubernetes_setting import App, ReadyWatch, ask
from kubernetes_wakes import PERIOD_1, milliseconds

READY_ROUNDS = 15
ARRIVAL_ROUNDS = 3
EVERY, FOR = 0.005, 2.0  # seconds


def measure_ready_decides(report, setting):
    """wake.readiness: Ready. The moment is when a watch of ours showed the endpoint as ready: that is as late as lull's own."""
    app = App("Ready decides", period=1)
    sleeper = setting.with_lull("ready", app, wake={"readiness": "Ready"})
    delays = []
    for _ in range(READY_ROUNDS):
        watch = ReadyWatch(setting.api, setting.namespace, sleeper.name)
        answered = ask(setting.client, sleeper.address)
        delays.append(answered.accepted - watch.ready())
        setting.lull.until_phase(setting.namespace, "Awake", name=sleeper.name)
        setting.put_down(sleeper.name)
        setting.lull.until_phase(setting.namespace, "Asleep", name=sleeper.name)
    report.add_percentiles("endpoint Ready (API) → first packet at the pod, where Ready decides", "ms", milliseconds(delays), p50=None,
                           p99=15)


def measure_arrivals(report, setting):
    """From Ready on for two seconds: this node's data plane does not know the endpoint for the first of them."""
    sleeper = setting.with_lull("arrivals", PERIOD_1)
    arrived = []
    for _ in range(ARRIVAL_ROUNDS):
        watch = ReadyWatch(setting.api, setting.namespace, sleeper.name)
        first = clients.dialling(setting.client, sleeper.address)
        watch.ready()
        arrived += clients.dialling(setting.client, sleeper.address, count=round(FOR / EVERY), every=EVERY).finish()
        first.finish()
        setting.lull.until_phase(setting.namespace, "Awake", name=sleeper.name)
        setting.put_down(sleeper.name)
        setting.lull.until_phase(setting.namespace, "Asleep", name=sleeper.name)
    connected = [one.connected for one in arrived if one.connected is not None]
    what = f"new connections every {EVERY * 1000:.0f} ms from Ready to Ready + {FOR:.0f} s"
    report.add(f"{what}: refused or unanswered", "count", len(clients.errors(arrived)), 0)
    report.add_percentiles(f"{what}: time to connect", "ms", milliseconds(connected), p50=None, p99=None)
    report.add(f"{what}: longest time to connect", "ms", 1000 * max(connected), 50, raw=connected)
