# SPDX-License-Identifier: Apache-2.0
"""lull leaves as it came: what sleeps is woken first."""
import lull as deployed
import places as clients


def test_removing_it_as_documented_wakes_what_sleeps_and_leaves_nothing(lull, cluster, sleeping, places):
    workloads = [sleeping("one"), sleeping("two")]

    cluster.kubectl("delete", "scaletozeros", "--all", "--all-namespaces", timeout=90)
    assert [workload.replicas() for workload in workloads] == [1, 1]
    lull.remove()

    try:
        assert cluster.kubectl("api-resources", "--api-group=lull.dev", "--no-headers") == ""
        assert cluster.kubectl("get", "clusterroles,clusterrolebindings,validatingadmissionpolicies", "--selector",
                               "app.kubernetes.io/part-of=lull", "--output", "name") == ""
        for workload in workloads:
            workload.pods()
            met = clients.dialling(places.pod("n2"), workload.address, count=20, every=0.1).finish()
            assert met[-1].error == ""
    finally:
        lull.apply()
        lull.ready()


def test_a_policy_whose_target_is_gone_can_be_deleted(cluster, sleeping):
    workload = sleeping()
    cluster.api.delete(f"/apis/apps/v1/namespaces/{workload.namespace}/deployments/web")

    cluster.api.delete(f"{deployed.STZ.format(workload.namespace)}/web")

    cluster.api.until(deployed.STZ.format(workload.namespace), lambda found: not found, timeout=20)
