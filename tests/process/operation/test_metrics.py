"""--metrics: the state and figures that server and worker report over HTTP, and that they are right."""
import contextlib
import http.client
import json
import re
import select
import shutil
import signal
import socket
import subprocess
import time

import pytest

from harness import BIN, PATIENCE, ROOT, TIME_FACTOR, needs_cpu_worker, scaled, wait_until
from wire import TOO_LONG, Wire, frame, header, payloads

DOCUMENT = (ROOT / "docs/reference/metrics.md").read_text()


def port_of(program):
    return int(program.wait_for_log(r"metrics on http://127\.0\.0\.1:(\d+)/metrics")[1])


def ask(program, path, method="GET", host="localhost"):
    """Sends a request; returns status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(program), timeout=PATIENCE)
    try:
        connection.request(method, path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def page(program, query=""):
    status, text = ask(program, "/metrics" + query)
    assert status == 200
    return text


def figures(program, query=""):
    """Returns the samples by name and labels, from a page that was made after the call."""
    time.sleep(0.11)
    return {name: float(value) for name, value in
            re.findall(r"^([a-z]\S*) (\S+)$", page(program, query), re.MULTILINE)}


def spans_of(program):
    """Returns the spans of /trace, without the names of its rows."""
    return [event for event in json.loads(ask(program, "/trace")[1])["traceEvents"] if event["ph"] == "X"]


def families(text):
    return set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))


@pytest.fixture
def server(stage):
    return stage.server("--metrics", 0, "--threads", 2)


@pytest.fixture
def pair(stage, server):
    worker = stage.worker("--metrics", 0)
    server.wait_until_listening()
    worker.wait_for_log("attached to")
    return server, worker


def documented(heading):
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter|histogram) \|", section, re.MULTILINE))


@pytest.mark.parametrize("query", ["", "?per_thread=1"])
def test_the_document_lists_what_the_pages_have(pair, query):
    both = documented("Both programs")
    for program, heading in zip(pair, ("Server", "Worker")):
        assert families(page(program, query)) == both | documented(heading)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (prometheus) is not installed")
@pytest.mark.parametrize("query", ["", "?per_thread=1"])
def test_promtool_has_no_complaint(pair, query):
    for program in pair:
        checked = subprocess.run(["promtool", "check", "metrics"], input=page(program, query),
                                 capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_figures_are_those_of_the_clients(pair):
    server, _ = pair
    requests = payloads(scaled(640), 100)
    with Wire(server.port) as first, Wire(server.port) as second:
        first.ask(requests)
        second.ask(requests)
        now = figures(server)
        assert now["offload_server_connections"] == 2
        assert now["offload_channel_in_flight"] == 0
    count = 2 * len(requests)
    wait_until(lambda: figures(server)["offload_server_connections"] == 0, "the clients are gone")
    now = figures(server)
    assert now["offload_server_requests_total"] == count
    assert now['offload_server_responses_total{result="ok"}'] == count
    assert now["offload_server_request_bytes_sum"] == count * 100
    assert now['offload_server_request_bytes_bucket{le="64"}'] == 0
    assert now['offload_server_request_bytes_bucket{le="256"}'] == now["offload_server_request_bytes_count"] == count
    assert now["offload_server_receive_bytes_total"] == count * 112
    assert now["offload_server_transmit_bytes_total"] == count * 112
    assert now["offload_server_connections_accepted_total"] == 2
    assert now['offload_server_connections_closed_total{reason="peer"}'] == 2
    assert now["offload_server_busy_seconds_total"] > 0
    assert now["offload_server_sleep_seconds_total"] > 0
    assert 0 < now["offload_server_longest_turn_seconds"] <= now["offload_server_busy_seconds_total"]
    # The figures of separate threads have the same sum; each thread had one client.
    apart = figures(server, "?per_thread=1")
    for thread in "01":
        assert apart[f'offload_server_requests_total{{thread="{thread}"}}'] == count / 2


def test_stages_add_up_to_the_duration(pair):
    server, _ = pair
    with Wire(server.port) as client:
        for payload in payloads(200, 100):
            client.ask([payload])
    now = figures(server)
    duration = "offload_server_request_duration_seconds"
    assert now[f"{duration}_count"] == now[f'{duration}_bucket{{le="+Inf"}}'] == 200 // 64
    stages = [now[f'offload_server_stage_duration_seconds_sum{{stage="{stage}"}}']
              for stage in ("receive", "queue", "worker", "send")]
    assert stages[2] > 0 and stages[3] > 0
    assert sum(stages) == pytest.approx(now[f"{duration}_sum"], abs=2e-9 * 200)


@contextlib.contextmanager
def arrival_times():
    """Makes the kernel note when packets arrive: it starts some time after the first socket has asked for it."""
    timestamping, received_by_software = 37, 1 << 3 | 1 << 4  # SO_TIMESTAMPING, linux/net_tstamp.h
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setsockopt(socket.SOL_SOCKET, timestamping, received_by_software)
        own.bind(("127.0.0.1", 0))
        own.settimeout(PATIENCE)

        def has_time():
            own.sendto(b"", own.getsockname())
            return any(kind == timestamping and any(data) for _, kind, data in own.recvmsg(1, 256)[1])
        wait_until(has_time, "packets have an arrival time")
        yield


def test_a_request_begins_when_it_comes(stage):
    """It begins at its arrival, not when the server reads it."""
    server = stage.server("--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    with arrival_times(), Wire(server.port) as client:
        client.ask(payloads(63, 100))
        server.stop()
        client.send(frame(b"the 64th is sampled"))
        time.sleep(0.3)
        server.send_signal(signal.SIGCONT)
        client.expect([b"delpmas si ht46 eht"])
    # The sample is counted when the answer was sent.
    request, receive = wait_until(lambda: spans_of(server), "a sample")[:2]
    assert request["dur"] > receive["dur"] > 300_000


def test_a_breach_of_the_protocol_is_counted_by_its_reason(pair):
    server, _ = pair
    with Wire(server.port) as client:
        client.send(header(1 << 20, 4, (1 << 20) - 12))
        assert client.receive_error() == TOO_LONG
    wait_until(lambda: figures(server)["offload_server_connections"] == 0, "it is gone")
    now = figures(server)
    assert now['offload_server_responses_total{result="frame_too_long"}'] == 1
    assert now['offload_server_connections_closed_total{reason="protocol"}'] == 1
    assert now["offload_server_requests_total"] == 0


def test_readiness_follows_the_only_worker(stage, server):
    assert ask(server, "/readyz") == (503, "no worker answers\n")
    worker = stage.worker("--metrics", 0)
    server.wait_until_listening()
    wait_until(lambda: ask(server, "/readyz")[0] == 200, "the server is ready")
    wait_until(lambda: ask(worker, "/readyz")[0] == 200, "the worker is ready")
    worker.kill()
    wait_until(lambda: ask(server, "/readyz") == (503, "no worker answers\n"), "it is not ready")
    assert ask(server, "/healthz")[0] == 200
    stage.worker()
    wait_until(lambda: ask(server, "/readyz")[0] == 200, "it is ready again")
    now = figures(server)
    assert now["offload_server_workers_attaches_total"] == 2
    assert now["offload_server_workers_losses_total"] == 1
    assert now["offload_server_workers_attached"] == now["offload_server_ready"] == 1


def test_a_worker_is_ready_while_a_server_is_there(pair):
    server, worker = pair
    wait_until(lambda: ask(worker, "/readyz")[0] == 200, "it is ready")
    server.kill()
    wait_until(lambda: ask(worker, "/readyz")[0] == 503, "it is not ready")
    assert ask(worker, "/healthz")[0] == 200
    now = figures(worker)
    assert now["offload_worker_losses_total"] == now["offload_worker_attaches_total"] == 1
    assert now["offload_worker_channels"] == now["offload_worker_attached"] == 0


@needs_cpu_worker
def test_a_server_that_leaves_is_healthy_and_not_ready(pair):
    server, worker = pair
    with Wire(server.port) as client:
        worker.stop()
        client.send(frame(b"owed"))
        wait_until(lambda: figures(server)["offload_channel_in_flight"] == 1, "it is on its way")
        server.send_signal(15)
        wait_until(lambda: ask(server, "/readyz") == (503, "the server is shutting down\n"), "it leaves")
        assert ask(server, "/healthz")[0] == 200
        worker.send_signal(18)
        client.expect([b"dewo"])
    assert server.wait() == 0


def test_a_pause_of_a_program_is_no_hang(pair):
    """The health is requested right after the pause, when the answering thread may be the first one that runs."""
    for program in pair:
        program.stop()
    time.sleep(6)  # longer than a turn of a healthy thread
    asking = [socket.create_connection(("127.0.0.1", port_of(each)), PATIENCE) for each in 32 * pair]
    for one in asking:
        one.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
    for program in pair:
        program.send_signal(signal.SIGCONT)
    for one in asking:
        assert one.recv(12, socket.MSG_WAITALL)[-3:] == b"200"


def test_half_sent_requests_keep_nobody_waiting(pair):
    server, _ = pair
    halves = [socket.create_connection(("127.0.0.1", port_of(server)), PATIENCE) for _ in range(20)]
    for half in halves:
        half.sendall(b"GET /metrics HTTP/1.1\r\nHo")
    assert ask(server, "/healthz")[0] == 200
    assert select.select(halves, [], [], 0)[0] == [], "they were dropped first"
    for half in halves:
        half.close()


def test_a_thousand_scrapes_take_little_of_a_processor(pair):
    server, _ = pair
    before = server.cpu_seconds()
    for _ in range(1000):
        assert "offload_server_requests_total" in page(server)
    assert server.cpu_seconds() - before < 2
    with Wire(server.port) as client:
        client.ask(payloads(20, 64))


def test_the_status_says_who_is_there(pair):
    server, worker = pair
    wait_until(lambda: ask(server, "/readyz")[0] == 200, "it is ready")
    status = json.loads(ask(server, "/status")[1])
    assert status["program"] == "offload-server" and status["process"] == server.pid
    assert status["healthy"]["holds"] and len(status["state"]["threads"]) == 2
    attached = status["state"]["workers"][0]
    assert str(worker.pid) in attached["name"] and attached["backend"] and attached["channels"] == 2
    state = json.loads(ask(worker, "/status")[1])["state"]
    served = state["workers"][0]
    assert served["channels"] == 2 and served["data_path"] and served["backend"] == attached["backend"]


def test_nothing_can_be_changed(pair):
    for program in pair:
        for method in ("POST", "PUT", "DELETE"):
            assert ask(program, "/metrics", method)[0] == 405


def test_head_is_answered_as_get(pair):
    for program in pair:
        for path in ("/metrics", "/healthz", "/status", "/"):
            assert ask(program, path, "HEAD") == (200, "")


def test_a_page_of_another_name_reads_nothing(pair):
    """DNS rebinding: a stranger's name resolves to the address of this machine."""
    for program in pair:
        for path in ("/status", "/metrics", "/trace"):
            assert ask(program, path, host="evil.example")[0] == 421
        for host in ("localhost", f"127.0.0.1:{port_of(program)}", "[::1]:80"):
            assert ask(program, "/status", host=host)[0] == 200


@pytest.mark.parametrize("name", ["offload-server", "offload-worker"])
def test_a_port_that_is_taken_is_an_error(stage, name):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        program = stage.program(name, *stage.comch_options(), "--metrics", taken.getsockname()[1])
        assert program.wait() == 1
        assert "Address already in use" in program.log


def test_without_the_option_nothing_listens(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    assert "metrics on" not in server.log
    assert not [name for name in server.threads() if name.startswith("MHD")]


def test_a_long_turn_is_told_with_what_it_did(stage):
    """Every turn exceeds the limit."""
    server = stage.server("--metrics", 0, "--stall-limit", "1us")
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(20, 64))
    server.wait_for_log(r"I/O thread 0: a turn took [\d.]+ ms, with \d+ requests, \d+ answers")
    assert figures(server)["offload_server_stalls_total"] >= 1
    events = json.loads(ask(server, "/status")[1])["state"]["events"]
    assert any(event["text"].startswith("I/O thread 0: a turn took") for event in events)
    server.wait_for_log(r"control thread: a turn took [\d.]+ ms, with \d+ workers attached, \d+ gone")
    assert figures(server)["offload_server_control_stalls_total"] >= 1
    assert figures(server)["offload_server_control_longest_turn_seconds"] > 0


@needs_cpu_worker
def test_a_full_channel_is_told_by_its_time(stage):
    """There are four slots of up to 32 requests each, and the worker does not answer for a while."""
    server = stage.server("--metrics", 0, "--max-concurrent-messages", 4)
    worker = stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(4, 64))
        before = figures(server)["offload_channel_full_seconds_total"]
        began = time.monotonic()
        worker.stop()
        client.send(b"".join(frame(payload) for payload in payloads(200, 64)))
        wait_until(lambda: figures(server)["offload_channel_in_flight"] == 128, "the channel is full")
        time.sleep(0.3)
        worker.send_signal(signal.SIGCONT)
        wait_until(lambda: figures(server)["offload_channel_full_seconds_total"] >= before + 0.3,
                   "its time is counted")
        took = time.monotonic() - began
    assert figures(server)["offload_channel_full_seconds_total"] - before <= took


def test_the_trace_has_the_sampled_requests(pair):
    server, _ = pair
    with Wire(server.port) as client:
        for payload in payloads(130, 100):
            client.ask([payload])
    spans = spans_of(server)
    assert [span["name"] for span in spans] == ["request", "receive", "queue", "worker", "send"] * 2
    for request, *stages in zip(*(spans[i::5] for i in range(5))):
        assert request["args"]["bytes"] == 100
        assert sum(stage["dur"] for stage in stages) == pytest.approx(request["dur"], abs=0.01)


def test_spans_of_a_row_are_apart_or_within_each_other(stage):
    """Viewers require this, even if many requests are in progress."""
    server = stage.server("--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask(payloads(scaled(6400), 100))
    rows = {}
    for span in wait_until(lambda: spans_of(server), "a sample"):
        begin = round(1000 * span["ts"])
        rows.setdefault(span["tid"], []).append((begin, begin + round(1000 * span["dur"]), span["name"]))
    for spans in rows.values():
        requests = [span for span in spans if span[2] == "request"]
        for one, other in zip(requests, requests[1:]):
            assert one[1] <= other[0]
        assert len(spans) == 5 * len(requests)
    names = [event["args"]["name"] for event in json.loads(ask(server, "/trace")[1])["traceEvents"]
             if event["ph"] == "M"]
    assert names[:2] == ["offload-server", "I/O thread 0"] and len(names) == 1 + len(rows)


def test_the_worker_says_where_its_time_goes(pair):
    server, worker = pair
    with Wire(server.port) as client:
        client.ask(payloads(2000, 100))
    wait_until(lambda: figures(worker)["offload_worker_busy_seconds_total"] > 0, "it was busy")
    before = figures(worker)
    server.kill()  # the worker starts its back end again for the next server; no counter decreases
    wait_until(lambda: figures(worker)["offload_worker_attached"] == 0, "it has no server")
    now = figures(worker)
    for what in ("busy", "poll", "sleep"):
        name = f"offload_worker_{what}_seconds_total"
        assert now[name] >= before[name]


@needs_cpu_worker
def test_the_service_time_of_a_worker_is_within_its_stage(pair):
    server, worker = pair
    with Wire(server.port) as client:
        for payload in payloads(400, 100):
            client.ask([payload])
    now, of_worker = figures(server), figures(worker)
    name = "offload_worker_service_duration_seconds"
    assert of_worker[f"{name}_count"] == 400 // 64
    stage = now['offload_server_stage_duration_seconds_sum{stage="worker"}']
    # The worker reads the clock after the answer is there: it may have been preempted in between.
    late = 0.001 * TIME_FACTOR
    assert 0 < of_worker[f"{name}_sum"] < stage + late
    spans = spans_of(worker)
    assert [span["name"] for span in spans] == ["service"] * (400 // 64)
    # Both use one clock: each span lies within its request's span of the server's trace.
    requests = [span for span in spans_of(server) if span["name"] == "worker"]
    for span, request in zip(spans, requests):
        assert request["ts"] <= span["ts"]
        assert span["ts"] + span["dur"] <= request["ts"] + request["dur"] + 1e6 * late


@pytest.mark.skipif(not shutil.which("readelf"), reason="readelf (binutils) is not installed")
def test_the_programs_have_their_probes():
    notes = subprocess.run(["readelf", "-n", BIN / "offload-server"], capture_output=True, text=True,
                           check=True, timeout=PATIENCE).stdout
    if "stapsdt" not in notes:
        pytest.skip("built without <sys/sdt.h> (systemtap-sdt-dev)")
    assert {"attach", "loss", "accept", "close", "stall"} <= set(re.findall(r"Name: (\w+)", notes))
