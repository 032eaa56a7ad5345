"""deploy/prometheus and deploy/grafana: runs the rules' own tests, and checks that the metrics they use exist."""
import json
import re
import shutil
import subprocess

import pytest

from harness import ROOT

RULES = ROOT / "deploy/prometheus"
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
METRICS = ROOT / "docs/reference/metrics.md"


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool")
@pytest.mark.parametrize("words", [("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml"),
                                   ("check", "config", "prometheus.yml")])
def test_prometheus_takes_the_rules(words):
    done = subprocess.run(["promtool", *words], cwd=RULES, text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_each_alert_says_what_is_the_matter():
    rules = (RULES / "rules.yml").read_text()
    alerts = re.findall(r"- alert: (\w+)\n(.*?)(?=\n      - alert|\Z)", rules, re.DOTALL)
    assert len(alerts) == rules.count("alert:")
    for name, body in alerts:
        assert "severity:" in body and "summary:" in body, name


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_has_no_two_panels_at_one_place(file):
    panels = json.loads(file.read_text())["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len({panel["id"] for panel in panels}) == len(panels) > 0


@pytest.mark.parametrize("file", [RULES / "rules.yml", *DASHBOARDS])
def test_they_ask_for_metrics_that_there_are(file):
    listed = set(re.findall(r"`((?:offload|process)_\w+)`", METRICS.read_text()))
    asked = set(re.findall(r"\b(?<!:)((?:offload|process)_\w+)\b(?!:)", file.read_text()))
    assert {re.sub("_bucket$", "", name) for name in asked} - listed == set()
    recorded = set(re.findall(r"- record: (\S+)", (RULES / "rules.yml").read_text()))
    assert set(re.findall(r"\b(?:instance|fleet):\w+:\w+", file.read_text())) - recorded == set()


def test_the_pod_monitor_gives_the_jobs_their_names():
    folder = ROOT / "deploy/kubernetes"
    jobs = re.findall(r"job_name: (\S+)", (RULES / "prometheus.yml").read_text())
    monitor = (folder / "monitoring/pod-monitor.yaml").read_text()
    assert re.findall(r"targetLabel: job, replacement: ([\w-]+)", monitor) == jobs
    ports = re.findall(r"- port: (\S+)", monitor)
    for file in ("server.yaml", "dpu/server.yaml", "dpu/worker.yaml"):
        named = re.findall(r"- \{name: (\S+), containerPort", (folder / file).read_text())
        assert set(ports) & set(named), file
    assert len(ports) == len(jobs)
