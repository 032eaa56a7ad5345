"""Several services at once: a port for each, which have nothing in common that a client could notice."""
import json
import re
from urllib.request import urlopen as ask

import pytest

import wire
from harness import BACKEND, PATIENCE, SERVICES, TIME_FACTOR, Load, free_port, on_one_machine, wait_until

pytestmark = pytest.mark.skipif(BACKEND != "cpu", reason="the modules of tests have no code for GPUs")

BY_TWO = ["--service-module", SERVICES / "test_shifted.so", "--service-option", "by=2"]
COMPLEMENT = ["--service-module", SERVICES / "complement.so"]

ANSWERS = {
    "reverse": lambda request: request[::-1],
    "echo": lambda request: request,
    "shifted": lambda request: bytes((octet + 2) % 256 for octet in request),
    "complement": lambda request: bytes(255 - octet for octet in request),
}


def listen(*services):
    return [word for service in services for word in ("--listen", f"0={service}")]


def ports_of(server, count):
    """The port of each service, once the server listens on all."""
    server.wait_for_log(r"listening on \S+", count=count)
    return {service: int(port) for port, service in
            re.findall(r"listening on \S+:(\d+) with \d+ threads, service ([\w-]+)", server.log)}


def sum_of(page, metric):
    """The sum of a metric's samples."""
    return sum(float(value) for value in re.findall(rf"^{metric}(?:{{.*}})? (\S+)$", page, re.MULTILINE))


@pytest.mark.parametrize("threads", [1, 2])
def test_each_port_has_its_own_service(stage, threads):
    server = stage.server(*listen(*ANSWERS), "--threads", threads, "--max-message-length", "4k")
    worker = stage.worker(*BY_TWO, *COMPLEMENT)
    ports = ports_of(server, 4)
    assert set(ports) == set(ANSWERS) and len(set(ports.values())) == 4
    assert f"serving {4 * threads} channels, service reverse, echo, shifted, complement" in worker.log
    clients = {service: wire.Wire(port) for service, port in ports.items()}
    for _ in range(3):
        for service, client in clients.items():
            client.ask(wire.payloads(200, [0, 1, 48, 372, 373, 4096]), ANSWERS[service])
    for client in clients.values():
        client.close()


def test_metrics_name_the_service(stage):
    view = free_port()
    server = stage.server(*listen("reverse", "echo"), "--threads", 2, "--metrics", view)
    stage.worker()
    ports = ports_of(server, 2)
    for service, count in (("reverse", 30), ("echo", 700)):
        with wire.Wire(ports[service]) as client:
            client.ask(wire.payloads(count, 10), ANSWERS[service])

    def page(path="/metrics"):
        return ask(f"http://127.0.0.1:{view}{path}", timeout=PATIENCE).read().decode()
    # Responses are counted last, at the end of a turn.
    wait_until(lambda: sum_of(page(), "offload_server_responses_total") == 730, "all responses are counted")
    text = page()
    for service, count in (("reverse", 30), ("echo", 700)):
        assert f'offload_server_requests_total{{service="{service}"}} {count}\n' in text
        assert re.search(rf'offload_server_responses_total{{(?=[^}}]*result="ok")(?=[^}}]*service="{service}").*}} {count}\n', text)
        assert f'offload_server_connections{{service="{service}"}}' in text
        assert f'offload_channel_slots{{service="{service}"}}' in text
        assert f'offload_server_busy_seconds_total{{service="{service}"}}' in text
    # One of 64 is timed, at most one a turn.
    assert re.search(r'offload_server_request_duration_seconds_count{service="echo"} [1-9]', text)
    assert re.search(r'offload_server_stage_duration_seconds_count{(?=[^}]*stage="worker")(?=[^}]*service="echo").*} [1-9]', text)
    assert len(re.findall(r'offload_server_requests_total{thread="\d",service="echo"}', page("/metrics?per_thread=1"))) == 2
    threads = json.loads(page("/status"))["state"]["threads"]
    assert [thread["service"] for thread in threads] == ["reverse", "reverse", "echo", "echo"]


def test_metrics_of_one_service_name_none(stage):
    view = free_port()
    server = stage.server("--metrics", view)
    stage.worker()
    server.wait_until_listening()
    assert "service=" not in ask(f"http://127.0.0.1:{view}/metrics", timeout=PATIENCE).read().decode()


def test_a_worker_that_takes_over_has_them_all(stage):
    server = stage.server(*listen("reverse", "shifted"))
    worker = stage.worker(*BY_TWO)
    ports = ports_of(server, 2)
    clients = {service: wire.Wire(port) for service, port in ports.items()}
    for attached in (2, 3):
        worker.kill()
        server.wait_until_worker_gone(attached - 1)
        worker = stage.worker(*BY_TWO)
        for service, client in clients.items():
            client.ask(wire.payloads(100, 20), ANSWERS[service])
    for client in clients.values():
        client.close()


def test_nobody_is_let_in_before_a_worker_has_all_services(stage):
    server = stage.server(*listen("echo", "complement"))
    worker = stage.worker(*BY_TWO)
    assert worker.wait(20 * TIME_FACTOR) == 1
    assert "the worker has no service 'complement'" in worker.log
    assert "listening" not in server.log
    stage.worker(*COMPLEMENT)
    assert set(ports_of(server, 2)) == {"echo", "complement"}


@on_one_machine
def test_a_slow_service_holds_up_no_other(stage):
    server = stage.server(*listen("reverse", "shifted"))
    stage.worker(*BY_TWO, "--service-option", "pause-us=20000")
    ports = ports_of(server, 2)
    with Load(stage, ports["shifted"], "-m", "AA", "-e", "CC",
              "--max-concurrent-messages", 4):
        client = stage.run_client(ports["reverse"], "-m", "hello", "-e", "olleh", "-i", 2000,
                                  "--max-concurrent-messages", 1)
    # One of the slow ones takes 20 ms at least, so 2000 behind such would take 40 s at least.
    seconds = float(re.search(r"Duration.*?([\d.]+)", client.out)[1])
    assert seconds < 40
