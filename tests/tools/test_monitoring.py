# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard of deploy/monitoring, as Prometheus itself understands them, and of metrics that there are."""
import json
import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy/monitoring"
RULES, DASHBOARD = MONITORING / "gpu-alerts.yaml", MONITORING / "gpu-dashboard.json"
SCRAPED = {"instance", "job"}  # the labels that Prometheus adds


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def alerts():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def targets():
    """Every query of the dashboard, with the labels that its legend names."""
    return [target for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel.get("targets", ())]


def metrics():
    """The labels of every metric, as the reference has them; it is made from the table in the code, and a test compares the two."""
    rows = re.findall(r"^\| `(lull_\w+)` \| \w+ \| ([^|]*) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_prometheus_takes_the_rules():
    promtool("check", "rules", str(RULES))


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path):
    rules = [{"record": f"query:number{number}", "expr": target["expr"]} for number, target in enumerate(targets())]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert rules
    promtool("check", "rules", str(path))


@pytest.mark.parametrize("expression", [alert["expr"] for alert in alerts()] + [target["expr"] for target in targets()])
def test_what_is_asked_for_is_there(expression):
    known = metrics()
    names = re.findall(r"\blull_\w+", expression)
    assert names and set(names) <= set(known)
    labels = re.findall(r"\b(\w+)=", expression)
    for listed in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        labels += re.split(r",\s*", listed)
    assert set(labels) <= SCRAPED.union(*(known[name] for name in names))


def test_texts_name_labels_that_there_are():
    known = metrics()
    for alert in alerts():
        there = SCRAPED.union(*(known[name] for name in re.findall(r"\blull_\w+", alert["expr"])))
        for text in alert["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= there
    for target in targets():
        there = SCRAPED.union(*(known[name] for name in re.findall(r"\blull_\w+", target["expr"])))
        assert set(re.findall(r"{{\s*(\w+)\s*}}", target.get("legendFormat", ""))) <= there


SERIES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
{series}
  alert_rule_test:
  - {{eval_time: {minutes}m, alertname: {name}, exp_alerts: [{fired}]}}
"""


def series(name, value, **labels):
    listed = ", ".join(f'{key}="{text}"' for key, text in {"instance": "n1:9474", "job": "lull", "workload": "w", **labels}.items())
    return f"  - {{series: '{name}{{{listed}}}', values: '{value}x120'}}"


def check_alert(tmp_path, name, minutes, fires, *given):
    [alert] = [alert for alert in alerts() if alert["alert"] == name]
    expected = ""
    if fires:
        labels = {"instance": "n1:9474", "job": "lull", "workload": "w", **alert["labels"]}
        labels |= dict(re.findall(r'(state)="(\w+)"', alert["expr"]))
        texts = {key: text.replace("{{ $labels.workload }}", "w") for key, text in alert["annotations"].items()}
        expected = json.dumps({"exp_labels": labels, "exp_annotations": texts})
    path = tmp_path / "test.yaml"
    path.write_text(SERIES.format(rules=RULES, series="\n".join(given), minutes=minutes, name=name, fired=expected))
    promtool("test", "rules", str(path))


@pytest.mark.parametrize("name, state, minutes", [("LullGpuIdle", "idle", 60), ("LullGpuUnused", "unused", 30), ("LullGpuStuck", "stuck", 5),
                                                  ("LullGpuUnknown", "unknown", 60)])
def test_a_state_is_told_of_once_it_has_lasted(tmp_path, name, state, minutes):
    given = [series("lull_gpu_state", 1, state=state), series("lull_gpu_devices", 1)]
    check_alert(tmp_path, name, minutes - 1, False, *given)
    check_alert(tmp_path, name, minutes + 1, True, *given)
    check_alert(tmp_path, name, minutes + 1, False, series("lull_gpu_state", 0, state=state), series("lull_gpu_state", 1, state="active"),
                series("lull_gpu_devices", 1))


def test_an_idle_workload_without_a_gpu_is_not_told_of(tmp_path):
    check_alert(tmp_path, "LullGpuIdle", 61, False, series("lull_gpu_state", 1, state="idle"), series("lull_gpu_devices", 0))


@pytest.mark.parametrize("allocated, opened, fires", [(2, 1, True), (1, 1, False), (2, 0, False)])
def test_who_has_opened_some_of_its_gpus_is_told_of(tmp_path, allocated, opened, fires):
    check_alert(tmp_path, "LullGpuPartlyUnused", 61, fires, series("lull_gpu_devices", opened), series("lull_gpu_allocated_devices", allocated))
