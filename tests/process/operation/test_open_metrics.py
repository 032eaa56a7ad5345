"""/metrics as OpenMetrics: who gets it, what is in it, and exemplars that lead to the log of slow requests."""
import http.client
import re
import time

import pytest

from harness import PATIENCE, needs_cpu_worker, wait_until
from open_metrics import ACCEPT, CONTENT_TYPE, parse
from test_metrics import families, port_of
from wire import Wire, payloads

DURATION = "offload_server_request_duration_seconds"
LINE = r"client (\d+), 127\.0\.0\.1:\d+: slow request (\d+), of \d+ bytes for reverse, took ([\d.]+) ms"


def ask(program, accept, query=""):
    """Returns the content type and the text of the page."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(program), timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics" + query, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def exemplars(program):
    """Returns the exemplars of the page by client and number."""
    kind, text = ask(program, ACCEPT)
    assert kind == CONTENT_TYPE
    found = {}
    for name, family in parse(text).items():
        for sample in family.samples:
            if sample.exemplar:
                assert (name, sample.suffix) == (DURATION, "_bucket")
                labels = sample.exemplar.labels
                assert list(labels) == ["client", "slow_request"]
                found[labels["client"], labels["slow_request"]] = sample.exemplar
    return found


@pytest.mark.parametrize("query", ["", "?per_thread=1"])
def test_both_formats_have_the_same_series(stage, query):
    """So that nothing ends or begins in Prometheus when it is told to ask for the other one."""
    server, worker = stage.server("--metrics", 0, "--threads", 2), stage.worker("--metrics", 0)
    server.wait_until_listening()
    with Wire(server.port) as client:
        for payload in payloads(200, 100):
            client.ask([payload])
    for program in (server, worker):
        kind, text = ask(program, ACCEPT, query)
        assert kind == CONTENT_TYPE
        page = parse(text)
        for accept in (None, "*/*", "text/plain", "application/openmetrics-text;q=0.1,*/*"):
            kind, classic = ask(program, accept, query)
            assert kind == "text/plain; version=0.0.4; charset=utf-8"
            series = [re.findall(r"^([a-z]\S*) ", each, re.MULTILINE) for each in (text, classic)]
            assert sorted(series[0]) == sorted(series[1])
        of_type = {name: family.metadata["TYPE"] for name, family in page.items()}
        assert {name + "_total" * (kind == "counter") for name, kind in of_type.items()} == families(classic)
        units = {name: family.metadata.get("UNIT") for name, family in page.items()}
        assert units["process_cpu_seconds"] == "seconds" and units["process_resident_memory_bytes"] == "bytes"
        assert units["process_open_fds"] is None


@needs_cpu_worker
def test_an_exemplar_leads_to_the_line_of_a_slow_request(stage):
    """Each is one that was logged; the last one of its bucket stays."""
    server = stage.server("--metrics", 0, "--slow-request", "1us", "--threads", 2)
    stage.worker()
    server.wait_until_listening()
    began = time.time()
    with Wire(server.port) as first, Wire(server.port) as second:
        for client in (first, second):
            for payload in payloads(20, 64):
                client.ask([payload])

    def those_logged():
        """Returns the exemplars with the milliseconds of their lines, once all have lines: these come a moment later."""
        logged = {match.groups()[:2]: float(match[3]) for match in re.finditer(LINE, server.log)}
        found = exemplars(server)
        return found and found.keys() <= logged.keys() and [(found[key], logged[key]) for key in found]

    for exemplar, milliseconds in wait_until(those_logged, "each exemplar has a line"):
        assert exemplar.value == pytest.approx(milliseconds / 1000, abs=1e-6)
        assert began - 1 < exemplar.time < time.time() + 1
    assert {client for client, _ in exemplars(server)} <= {"1", "2"}
    assert "# {" not in ask(server, None)[1]


def test_without_slow_requests_there_are_no_exemplars(stage):
    server, _ = stage.pair("--metrics", 0)
    with Wire(server.port) as client:
        client.ask(payloads(200, 64))
    assert exemplars(server) == {}
