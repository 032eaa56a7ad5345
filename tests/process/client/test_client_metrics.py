"""--metrics of the load client: what Prometheus reads from a run under way."""
import http.client
import json
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import PATIENCE, ROOT, free_port, wait_until
from results import finish, start

DOCUMENT = (ROOT / "docs/reference/metrics.md").read_text()


def ask(program, path):
    """Returns status and text of an answer that was made after the call."""
    port = int(program.wait_for_log(r"metrics on http://127\.0\.0\.1:(\d+)/metrics")[1])
    time.sleep(0.11)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def figures(program):
    return {name: float(value) for name, value in
            re.findall(r"^offload_client_(\S+) (\S+)$", ask(program, "/metrics")[1], re.MULTILINE)}


def begin(stage, server, *load):
    """A client whose run does not end by itself, with its metrics once it has some."""
    client = start(stage, server, *load, "--metrics", 0, "--duration", "600s")
    first = wait_until(lambda: (seen := figures(client))["valid_responses_total"] and seen, "it has counted responses")
    return client, first


def documented():
    section = DOCUMENT.split("\n## Load client\n")[1].split("\n## ")[0]
    both = DOCUMENT.split("\n## Both programs\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram) \|", section + both, re.MULTILINE))


def test_two_scrapes_of_an_open_loop(stage):
    """Between two scrapes all counters grow, alike, and what the result says is not less than what they said."""
    server, _ = stage.pair()
    client, first = begin(stage, server, "--rate", 500, "--connections", 2)
    assert first["running"] == 1 and first["runs_total"] == 0 and first["connects_total"] == 2
    second = wait_until(lambda: (seen := figures(client))["requests_total"] > first["requests_total"] + 300 and seen,
                        "it goes on")
    for name in ("responses_total", "due_requests_total", "transmit_bytes_total", "receive_bytes_total",
                 "in_flight_seconds_total", "service_time_seconds_count", "response_time_seconds_sum",
                 "schedule_lag_seconds_count"):
        assert second[name] > first[name] > 0, name
    assert second["service_time_seconds_count"] == second["valid_responses_total"] == second["responses_total"]
    assert second['service_time_seconds_bucket{le="+Inf"}'] == second["service_time_seconds_count"]
    assert second['errors_total{kind="mismatch"}'] == 0
    assert ask(client, "/readyz") == (200, "a run is under way\n")
    assert ask(client, "/healthz")[0] == 200
    assert json.loads(ask(client, "/status")[1])["state"]["totals"]["requests"] >= second["requests_total"]
    client.send_signal(signal.SIGINT)
    run, = finish(client, 130)["runs"]
    assert run["valid_responses"] >= second["valid_responses_total"]
    assert run["tx_bytes"] >= second["transmit_bytes_total"]


def test_errors_by_kind(stage):
    """A refusal has its name; kinds of errors that did not occur are 0, so that a rate of them is known."""
    server, _ = stage.pair("--max-message-length", "1k")
    client = start(stage, server, "--metrics", 0, "--duration", "600s", "--on-error", "count", "--size", "2k")
    name = 'errors_total{kind="frame_too_long"}'
    seen = wait_until(lambda: (seen := figures(client)).get(name) and seen, "it has counted errors")
    assert seen[name] > 0 == seen["valid_responses_total"]
    assert seen["service_time_seconds_count"] == 0 == seen['errors_total{kind="late"}']
    client.send_signal(signal.SIGINT)
    assert client.wait() == 1


@pytest.mark.parametrize("load", [["--rate", 500], []], ids=["open loop", "closed loop"])
def test_the_document_lists_what_the_page_has(stage, load):
    server, _ = stage.pair()
    client, _ = begin(stage, server, *load)
    families = set(re.findall(r"^# TYPE (\S+)", ask(client, "/metrics")[1], re.MULTILINE))
    of_open_loop = {name for name in documented() if re.search("response_time|lag|due_|noticed|held", name)}
    assert len(of_open_loop) == 5
    assert families == documented() - (set() if load else of_open_loop)
    client.send_signal(signal.SIGINT)
    client.wait()


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (prometheus) is not installed")
def test_promtool_has_no_complaint(stage):
    server, _ = stage.pair()
    client, _ = begin(stage, server, "--rate", 500)
    checked = subprocess.run(["promtool", "check", "metrics"], input=ask(client, "/metrics")[1],
                             capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    client.send_signal(signal.SIGINT)
    client.wait()


def test_a_port_that_is_taken(stage):
    """It is found before the first request, and an older result stays."""
    server, _ = stage.pair()
    client = stage.client(server, "-i", 10, "--metrics", server.port)
    assert client.wait() == 1
    assert "Address already in use" in client.log and client.out == ""
    client = stage.client(free_port(), "--metrics", "no-port")
    assert client.wait() == 2 and "--metrics" in client.log
