# SPDX-License-Identifier: Apache-2.0
"""A reflector whose API server is busy, forgetful, or gone without a word."""
import time

import clients
from lullcluster import layout

RETRY_AFTER = 3
CLIENTS = 20
NOTICED_SECONDS = 60


def test_a_busy_server_is_left_alone_for_as_long_as_it_says(cluster, namespace, watch, tmp_path):
    cluster.faults.too_many_requests(RETRY_AFTER, match="configmaps", times=2)
    user = {f"client-{part}": cluster.where.certificates / f"admin.{end}" for part, end in (("certificate", "crt"), ("key", "key"))}
    began = time.monotonic()
    watcher = watch(clients.write_kubeconfig(cluster, tmp_path / "kubeconfig", user, port=layout.FRONT_PORT))

    synced = watcher.until("synced")

    assert synced["at"] - began >= 2 * RETRY_AFTER
    assert watcher.counters()["failures"] == 2
    codes = {(row["verb"], row["code"]): row["requests"] for row in watcher.ask("client")["requests"]}
    assert codes[("watch", 429)] == 2 and codes[("watch", 200)] == 1


def test_a_version_that_is_compacted_away_costs_one_list_each(cluster, namespace, reflectors, tmp_path):
    etcd = clients.Etcd(cluster)
    with clients.Audit(cluster, tmp_path) as audit:
        watching = reflectors(namespace, CLIENTS)
        watching.until_each("synced")
        cluster.stop("kube-apiserver", 9)
        etcd.fill(namespace, 100, str)
        etcd.compact()
        gone = time.time()
        cluster.start("kube-apiserver")
        watching.until_each("synced")

        requests = [request for request in audit.requests("lull/", gone) if f"{namespace}/configmaps" in request[2]]
        counters = watching.counters()
    assert [one["relists"] for one in counters] == [1] * CLIENTS
    assert [one["objects"] for one in counters] == [101] * CLIENTS
    # The refused watch (as a status, or as an event in a stream), the list, and a watch if they are not one; some are busy first.
    assert len(requests) <= 4 * CLIENTS, requests
    etcd.empty(namespace, 100)


def test_a_connection_that_is_half_open_is_noticed_within_a_minute(cluster, namespace, watch):
    watcher = watch()
    watcher.until("synced")
    cluster.faults.cut_off(*layout.CLIENT)
    cut = time.monotonic()

    stale = watcher.until("stale", seconds=NOTICED_SECONDS)

    print(f"noticed after {stale['at'] - cut:.1f} s: {stale['problem']}")
    assert stale["at"] - cut < NOTICED_SECONDS
    assert watcher.counters()["failures"] >= 1
    clients.write_sentinel(cluster, namespace, "while it is away")
    cluster.faults.mend()
    watcher.until("added", key=f"{namespace}/sentinel", seconds=60)
    assert watcher.counters()["relists"] == 0
