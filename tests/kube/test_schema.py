# SPDX-License-Identifier: Apache-2.0
"""What the API's schema lets through is what src/policy reads: the same fields, types, ranges, words and defaults."""
import json
import os
import pathlib
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = (ROOT / os.environ.get("BUILD", "build") / "tests/kube/objects").resolve()
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
TYPES = {"text": "string", "duration": "string", "integer": "integer", "boolean": "boolean", "word": "string", "mapping": "object",
         "list": "array"}
LIMITS = {0: "0s", 10**6: "1ms", 10**9: "1s", 600 * 10**9: "10m", 8760 * 3600 * 10**9: "8760h"}


def schema():
    definition = yaml.safe_load((ROOT / "deploy/crds/scaletozeros.yaml").read_text(encoding="utf-8"))
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def tables():
    return json.loads(subprocess.run([TOOL, "fields"], capture_output=True, check=True, timeout=60).stdout)


def read(*specs):
    done = subprocess.run([TOOL, "read"], input="".join(json.dumps(spec) + "\n" for spec in specs), capture_output=True, check=True,
                          text=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def pairs(table, properties, path="spec"):
    """(path, field of src/policy, its schema) of each field that both have, the deepest too."""
    for name in sorted(table.keys() & properties.keys()):
        field, described = table[name], properties[name]
        yield f"{path}.{name}", field, described
        if field["fields"]:
            inner = described.get("items", described)
            yield from pairs(field["fields"], inner["properties"], f"{path}.{name}")


def names(table, properties, path="spec"):
    """Fields that only one of the two has, as far as the other goes, too."""
    yield from (f"{path}.{name}" for name in table.keys() ^ properties.keys())
    for name in table.keys() & properties.keys():
        inner = properties[name].get("items", properties[name])
        if table[name]["fields"] or "properties" in inner:
            yield from names(table[name]["fields"], inner.get("properties", {}), f"{path}.{name}")


ALL = list(pairs(tables(), schema()["properties"]))


def of_type(*types):
    return [pytest.param(field, described, id=path) for path, field, described in ALL if field["type"] in types]


def test_both_know_the_same_fields():
    assert list(names(tables(), schema()["properties"])) == []
    assert len(ALL) > 25


def test_both_need_the_same_fields():
    for path, field, described in [("spec", {"fields": tables()}, schema()), *ALL]:
        inner = described.get("items", described)
        needed = {name for name, child in field["fields"].items() if child["required"]}
        assert set(inner.get("required", [])) == needed, path


@pytest.mark.parametrize("field, described", of_type(*TYPES))
def test_both_want_the_same_type(field, described):
    if described.get("x-kubernetes-int-or-string"):
        assert field["type"] == "text"
    else:
        assert described["type"] == TYPES[field["type"]]


@pytest.mark.parametrize("field, described", of_type("integer"))
def test_both_want_integers_of_the_same_range(field, described):
    assert (described["minimum"], described["maximum"]) == (field["min"], field["max"])


@pytest.mark.parametrize("field, described", of_type("duration"))
def test_both_want_durations_of_the_same_range(field, described):
    low, high = LIMITS[field["min"]], LIMITS[field["max"]]
    form, bounds = described["x-kubernetes-validations"]
    assert f"!{form['rule']} || (duration(self) >= duration('{low}') && duration(self) <= duration('{high}'))" == bounds["rule"]
    assert bounds["message"] == f"is out of range; write a duration from {low} to {high}"


@pytest.mark.parametrize("field, described", of_type("list"))
def test_both_want_lists_of_the_same_length(field, described):
    assert described["maxItems"] == field["max"]


@pytest.mark.parametrize("field, described", of_type("word"))
def test_both_know_the_same_words(field, described):
    assert described["enum"] == field["words"]


def defaults(properties, path=()):
    for name, described in properties.items():
        if "properties" in described:
            yield from defaults(described["properties"], (*path, name))
        elif "default" in described:
            yield (*path, name), described["default"]


def with_default(path, value):
    for name in reversed(path):
        value = {name: value}
    return {"target": TARGET, **value}


DEFAULTS = list(defaults(schema()["properties"]))


def test_a_default_of_the_schema_is_one_of_the_policy():
    answers = read(*(with_default(path, value) for path, value in DEFAULTS))
    assert {path: answer for (path, _), answer in zip(DEFAULTS, answers) if answer != {"problem": None, "fresh": True}} == {}
    assert len(DEFAULTS) == 14


def test_what_is_not_a_default_makes_another_policy():
    """Else the test before proved nothing."""
    other = {"after": "6m", "requestTimeout": "31m", "connections": "Hold", "outbound": "Hold", "cpu": 1, "minAwake": "2m",
             "holdTimeout": "61s", "maxHeld": 1, "parking": False, "readiness": "Ready", "scaledBy": "HorizontalPodAutoscaler",
             "dryRun": True, "onIdle": "Sleep"}
    answers = read(*(with_default(path, other[path[-1]]) for path, _ in DEFAULTS))
    assert answers == [{"problem": None, "fresh": False}] * len(DEFAULTS)


def test_objects_that_hold_defaults_are_filled_in_themselves():
    for name in ("idle", "wake"):
        assert schema()["properties"][name]["default"] == {}
    assert schema()["properties"]["idle"]["properties"]["gpu"]["default"] == {}


def examples():
    """Policies of the reference and of deploy/examples."""
    reference = (ROOT / "docs/kubernetes-api.md").read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    files = sorted((ROOT / "deploy/examples/kubernetes").glob("*.yaml"))
    for name, text in [("reference", reference), *((path.name, path.read_text(encoding="utf-8")) for path in files)]:
        for document in yaml.safe_load_all(text):
            if document["kind"] == "ScaleToZero":
                yield pytest.param(document["spec"], id=name)


@pytest.mark.parametrize("spec", examples())
def test_an_example_is_a_policy(spec):
    assert [answer["problem"] for answer in read(spec)] == [None]


def test_the_example_of_the_reference_has_every_field_and_the_defaults():
    reference, *_ = [example.values[0] for example in examples() if example.id == "reference"]

    def missing(properties, given, path):
        for name, described in properties.items():
            if name not in given:
                yield f"{path}.{name}"
            elif "properties" in described:
                yield from missing(described["properties"], given[name], f"{path}.{name}")
    assert list(missing(schema()["properties"], reference, "spec")) == []
    for (*path, last), value in DEFAULTS:
        given = reference
        for name in path:
            given = given[name]
        assert given[last] == value
