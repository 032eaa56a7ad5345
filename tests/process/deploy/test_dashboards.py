"""deploy/grafana and deploy/prometheus with Prometheus itself, a server, its worker and a load."""
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from harness import PATIENCE, ROOT, free_port, wait_until

RULES = ROOT / "deploy/prometheus"
DASHBOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
# Queries that have no result while all is well, and those of a worker with --udp.
EMPTY = ('count(up{job="offload-server"} == 0)', 'count(offload_server_ready{job="offload-server"} == 0)',
         "topk(5, instance:offload_server_refusals:ratio_rate5m > 0)", "offload_server_connections_closed_total",
         "instance:offload_server_refusals:ratio_rate5m", "offload_udp_")


@pytest.fixture
def prometheus(stage):
    """Prometheus with the two jobs of deploy/prometheus, which have one target each, and with storage for exemplars;
    yields a function that queries it."""
    metrics, port = {"dpu.example:9480": free_port(), "gpu.example:9481": free_port()}, free_port()
    server = stage.server("--metrics", metrics["dpu.example:9480"], "--slow-request", "1us")
    stage.worker("--metrics", metrics["gpu.example:9481"])
    server.wait_until_served()
    server.wait_until_listening()
    text = (RULES / "prometheus.yml").read_text()
    for target, of in metrics.items():
        assert target in text
        text = text.replace(target, f"127.0.0.1:{of}")
    assert text.count("15s") == 2
    (stage.folder / "prometheus.yml").write_text(text.replace("15s", "1s"))
    shutil.copy(RULES / "rules.yml", stage.folder)
    log = open(stage.folder / "prometheus.log", "wb")
    process = subprocess.Popen(["prometheus", f"--config.file={stage.folder}/prometheus.yml",
                                f"--storage.tsdb.path={stage.folder}/data", f"--web.listen-address=127.0.0.1:{port}",
                                "--enable-feature=exemplar-storage"],
                               stdout=log, stderr=log)

    def query(expression, exemplars=False):
        words = urllib.parse.urlencode({"query": expression, "start": 0, "end": time.time() + 60})
        path = f"api/v1/query_exemplars?{words}" if exemplars else f"api/v1/query?{words}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=PATIENCE) as reply:
                data = json.load(reply)["data"]
                return data if exemplars else data["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []  # it is just starting
            raise AssertionError(f"{expression}: {error.read()}") from None
        except OSError:
            return []  # it does not listen yet

    query.server = server
    try:
        yield query
    finally:
        process.terminate()
        process.wait(PATIENCE)
        log.close()


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus, as promtool does")
def test_each_panel_has_data(stage, prometheus):
    client = stage.client(prometheus.server, "--rate", 1000, "--reconnect-every", 100, "--duration", "600s")
    client.wait_for_log("connected to")
    wait_until(lambda: len(prometheus("up == 1")) == 2, "both are scraped")
    wait_until(lambda: prometheus("fleet:offload_server_responses:rate5m > 0"), "the rules are evaluated")
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                text = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
                if any(words in text for words in EMPTY):
                    prometheus(text)  # only its syntax
                else:
                    wait_until(lambda text=text: prometheus(text), f"{file.stem}, '{panel['title']}': {text}")
    assert client.alive, client.log


@pytest.mark.skipif(not shutil.which("prometheus"), reason="needs prometheus, as promtool does")
def test_the_panel_of_durations_has_slow_requests_of_the_log(stage, prometheus):
    client = stage.client(prometheus.server, "--rate", 1000, "--duration", "600s")
    client.wait_for_log("connected to")
    panels = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text())["panels"]
    with_exemplars = [target for panel in panels for target in panel["targets"] if target.get("exemplar")]
    assert len(with_exemplars) == 1
    text = with_exemplars[0]["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
    series = wait_until(lambda: prometheus(text, exemplars=True), "Prometheus has stored exemplars")
    for labels in (exemplar["labels"] for of in series for exemplar in of["exemplars"]):
        line = rf"client {labels['client']}, \S+: slow request {labels['slow_request']}, of "
        wait_until(lambda line=line: re.search(line, prometheus.server.log), f"the log has {line}")
    assert client.alive, client.log
