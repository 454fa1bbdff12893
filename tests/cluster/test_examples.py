# SPDX-License-Identifier: Apache-2.0
"""The examples are what the API server and the reader of policies accept."""
import json
import pathlib

import pytest
from lullcluster import api

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "deploy/examples/kubernetes").glob("*.yaml"))
CRDS = [ROOT / "deploy/crds/scaletozeros.yaml", ROOT / "deploy/crds/nodeactivities.yaml"]


@pytest.fixture(name="api_of_lull", scope="module")
def fixture_api_of_lull(running):
    """The custom resources are known; those that were there before stay."""
    there = {item["metadata"]["name"] for item in running.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]}
    for path in CRDS:
        running.kubectl("apply", "--server-side", "--force-conflicts", "--filename", path)
    for name in ("scaletozeros.lull.dev", "nodeactivities.lull.dev"):
        running.api.until("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                          lambda found, name=name: api.condition(found[f"/{name}"], "Established") == "True")
    yield
    for name in {"scaletozeros.lull.dev", "nodeactivities.lull.dev"} - there:
        running.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_accepted_whole(cluster, namespace, api_of_lull, path):  # pylint: disable=unused-argument
    said = cluster.kubectl("--namespace", namespace, "apply", "--dry-run=server", "--validate=strict", "--filename", path)

    assert "scaletozero.lull.dev/" in said
    assert said.count("server dry run") == path.read_text(encoding="utf-8").count("\nkind:")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_makes_what_its_policy_names(cluster, namespace, api_of_lull, path):  # pylint: disable=unused-argument
    """Its target and its Services exist in it, and each Service selects the target's pods."""
    made = _documents(cluster, namespace, path)
    policy = next(item for item in made if item["kind"] == "ScaleToZero")
    target = policy["spec"]["target"]
    [workload] = [item for item in made if (item["apiVersion"], item["kind"], item["metadata"]["name"])
                  == (target["apiVersion"], target["kind"], target["name"])]
    labels = workload["spec"]["template"]["metadata"]["labels"].items()
    services = {item["metadata"]["name"]: item for item in made if item["kind"] == "Service"}

    assert services
    for name in policy["spec"].get("services", services):
        assert services[name]["spec"].get("clusterIP") != "None"
        assert services[name]["spec"]["selector"].items() <= labels


def _documents(cluster, namespace, path):
    """As the API server would make them."""
    text = cluster.kubectl("--namespace", namespace, "apply", "--dry-run=server", "--output=json", "--filename", path)
    return json.loads(text)["items"]
