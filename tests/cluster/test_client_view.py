# SPDX-License-Identifier: Apache-2.0
"""The reflector of src/kube against a real API server."""
import clients

OBJECTS = 5000
VALUE_BYTES = 400


def value(number):
    return f"{number}:" + "x" * VALUE_BYTES


def expected(namespace, count):
    return {f"{namespace}/object-{number:05}": value(number) for number in range(count)}


def own(view):
    """Without what Kubernetes puts into every namespace."""
    return {key: held for key, held in view.items() if not key.endswith("/kube-root-ca.crt")}


def test_five_thousand_objects_are_listed_and_followed(cluster, namespace, reflectors):
    etcd = clients.Etcd(cluster)
    etcd.fill(namespace, OBJECTS, value)
    alone = reflectors("kube-public")
    alone.until_event("synced")
    watcher = reflectors(namespace)
    watcher.until_event("synced")

    held = expected(namespace, OBJECTS)
    assert own(watcher.ask("view")["view"]) == held

    path = clients.CONFIG_MAPS.format(namespace)
    cluster.api.patch(f"{path}/object-00007", {"data": {"value": "changed"}})
    cluster.api.delete(f"{path}/object-00008")
    clients.write_sentinel(cluster, namespace, "last")
    watcher.until_event("sentinel", value="last")
    held[f"{namespace}/object-00007"] = "changed"
    held[f"{namespace}/sentinel"] = "last"
    del held[f"{namespace}/object-00008"]
    assert own(watcher.ask("view")["view"]) == held
    assert watcher.counters()[0]["lists"] == 1

    # 0.6 kB of JSON each, 0.5 kB of which are kept here: the rest is what one object in parsing needs, and the allocator's.
    (_, most), (_, nothing) = watcher.memory(), alone.memory()
    print(f"{OBJECTS} objects of {VALUE_BYTES} bytes: at most {(most - nothing) / 1e6:.1f} MB above {nothing / 1e6:.1f} MB")
    etcd.empty(namespace, OBJECTS)
