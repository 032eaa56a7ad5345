"""Options of offload-server whose value no other file of tests shows to arrive: each test fails if the value is
ignored. docs/evidence/wiring.md lists the test of each option."""
import contextlib
import json
import re
import signal
import time
from urllib.request import urlopen

import pytest

from harness import BACKEND, PATIENCE, TIME_FACTOR, needs_cpu_worker, wait_until
from wire import IDLE_TIMED_OUT, TOO_LONG, TOO_MANY_OF_ADDRESS, Wire, frame, payloads, reverse

TWO_PORTS = ["--listen", "0=reverse", "--listen", "0=echo"]
ANSWERS = {"reverse": reverse, "echo": bytes}


def ports_of(server):
    """Returns the ports by their services, once the server listens on both."""
    server.wait_for_log("listening on", count=2)
    return {service: int(port) for port, service in
            re.findall(r"listening on \S+:(\d+) with \d+ threads, service (\w+)", server.log)}


def hold_up(wire):
    """Requests more than the sockets' buffers take and reads none of it."""
    wire.socket.settimeout(0.5)
    with contextlib.suppress(TimeoutError):
        while True:
            wire.send(frame(bytes(256)) * 1000)


def seconds_to_end(program, status):
    """Returns the seconds until the program has exited with that status."""
    begin = time.monotonic()
    assert program.wait() == status, program.log
    return time.monotonic() - begin


def one_is_quick(attempt, limit):
    """Checks that `attempt()` returns less than `limit` seconds, at least once: a busy machine may delay some."""
    took = []
    while len(took) < 5 and not (took and took[-1] < limit):
        took.append(attempt())
    assert took[-1] < limit, took


def figure(program, name):
    """Returns the value of a metric of the program."""
    place = program.wait_for_log(r"metrics on (http://\S+)")[1]
    page = urlopen(place, timeout=PATIENCE).read().decode()
    return sum(float(value) for value in re.findall(rf"^{name} (\S+)$", page, re.MULTILINE))


def test_the_number_of_slots(stage):
    """It is rounded up to a power of two: 8 slots of up to 32 requests."""
    server = stage.server("--max-concurrent-messages", 5, "--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    assert wait_until(lambda: figure(server, "offload_channel_slots"), "the metrics have the slots") == 8 * 32


def expect_polling(program, name):
    """Waits until the program has polled for one more second: a sleeping thread does not, however busy the machine is."""
    before = figure(program, name)
    wait_until(lambda: figure(program, name) > before + 1, f"{program.name} polls")


@needs_cpu_worker
def test_spin_of_the_server(stage):
    """An I/O thread polls for a due response as long as the option says: here, as long as the worker is stopped."""
    server = stage.server("--spin", "1h", "--metrics", 0, "--worker-timeout", "1h", "--request-timeout", 0)
    worker = stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as wire:
        worker.stop()
        wire.send(frame(b"question"))
        expect_polling(server, "offload_server_poll_seconds_total")
        worker.send_signal(signal.SIGCONT)
        wire.expect([b"noitseuq"])


@needs_cpu_worker
def test_spin_of_the_worker(stage):
    """The thread of a channel polls for requests as long as the option says, after the last one."""
    server = stage.server()
    worker = stage.worker("--spin", "1h", "--metrics", 0)
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.ask([b"question"])
    expect_polling(worker, "offload_worker_poll_seconds_total")


def test_a_short_shutdown(stage):
    """Half of the time is for clients: by default that is 2.5 s."""
    def shut_down():
        server, worker = stage.pair("--shutdown-timeout", "200ms")
        with Wire(server.port, receive_buffer=4096) as wire:
            hold_up(wire)
            server.send_signal(signal.SIGTERM)
            took = seconds_to_end(server, 0)
        assert "not all clients could be answered in time" in server.log
        assert worker.terminate() == 0
        return took
    one_is_quick(shut_down, 2.4)


@pytest.mark.parametrize("which", ANSWERS)
def test_each_port_has_the_limits(stage, which):
    idle = 1.5 * min(TIME_FACTOR, 4)
    server = stage.server(*TWO_PORTS, "--max-message-length", 100, "--slow-request", "1us", "--idle-timeout",
                          f"{idle}s", "--max-clients-per-address", 2)
    stage.worker()
    port, answer = ports_of(server)[which], ANSWERS[which]
    with Wire(port) as first, Wire(port) as second, Wire(port) as third:
        assert third.receive_error() == TOO_MANY_OF_ADDRESS
        first.ask([bytes(range(100))], answer)
        first.send(frame(bytes(101)))
        assert first.receive_error() == TOO_LONG
        assert second.receive_error() == IDLE_TIMED_OUT
    server.wait_for_log(f"of 100 bytes for {which}, took")


def test_each_port_has_the_threads(stage):
    server = stage.server(*TWO_PORTS, "--threads", 3)
    stage.worker()
    for service in ANSWERS:
        server.wait_for_log(rf"listening on \S+ with 3 threads, service {service}")
    assert {f"io-{number}" for number in range(6)} <= set(server.threads())


def test_several_networks_of_proxies(stage):
    """The second of them counts too: a connection without its header is closed."""
    server, _ = stage.pair("--proxy-from", "192.0.2.0/24", "--proxy-from", "127.0.0.2")
    with Wire(server.port, source="127.0.0.2") as bare:
        bare.send(frame(b"no header"))
        with pytest.raises(ConnectionResetError):
            bare.receive()
    with Wire(server.port) as direct:
        direct.ask(payloads(5, 20))


# ---- Options that several programs have

def start(stage, kind, *options):
    """Starts the program with its metrics, and waits until it has logged where they are."""
    if kind == "client":
        server, _ = stage.pair()
        program = stage.client(server, "--duration", "60s", "--metrics", 0, *options)
    else:
        program = getattr(stage, kind)("--metrics", 0, *options)
    wait_until(lambda: any(name.startswith("MHD") for name in program.threads()), f"{program.name} has its metrics")
    return program


def end(program):
    program.send_signal(signal.SIGTERM)
    assert program.wait() in (0, 130), program.log
    return program.log


KINDS = pytest.mark.parametrize("kind", ["server", "worker", "client"])


@KINDS
def test_the_format_of_the_log(stage, kind):
    log = end(start(stage, kind, "--log-format", "json"))
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["program"] for line in lines} == {f"offload-{kind}"}
    assert any("metrics on" in line["message"] for line in lines)


@KINDS
@pytest.mark.parametrize("options, seen", [
    ([], {True, False}), (["--sdk-log-level", "off"], {False}), (["--log-level", "off,telemetry=info"], {True}),
    (["-l", "10"], set())], ids=["default", "library", "component", "off"])
def test_the_levels_of_the_log(stage, kind, options, seen):
    """Each program logs lines itself, and the address of its metrics, which is a line of the library."""
    program = start(stage, kind, *options)
    if kind == "client" and False in seen:
        program.wait_for_log("connected to")
    log = end(program)
    assert {"metrics on" in line for line in log.splitlines()} == seen


@pytest.mark.parametrize("kind", ["server", "worker"])
@pytest.mark.parametrize("option", ["--config", "--json", "-j"])
def test_the_names_of_the_file(stage, kind, option):
    file = stage.folder / "settings"
    file.write_text('{"spin": "7us"}')
    program = stage.program(f"offload-{kind}", option, file, "--print-config")
    assert program.wait() == 0
    assert '\nspin = "7us"\n' in program.out
    file.write_text('{"spin": "soon"}')
    program = stage.program(f"offload-{kind}", option, file, "--check-config")
    assert program.wait() == 2 and "--spin: 'soon'" in program.log


def test_the_worker_checks_its_key(stage):
    key = stage.key_options()[1]
    check = ["--comch", "tcp:127.0.0.1:1", "--comch-key-file", key, "--check-config"]
    good = stage.program("offload-worker", *check)
    assert good.wait() == 0 and good.out == "offload-worker: the configuration is valid\n"
    key.write_bytes(b"short")
    bad = stage.program("offload-worker", *check)
    assert bad.wait() == 1 and "the key file" in bad.log


@KINDS
def test_a_broken_pipe_ends_no_program(stage, kind):
    program = start(stage, kind)
    program.send_signal(signal.SIGPIPE)
    log = end(program)  # by this signal, not by the one before
    assert kind == "client" or "SIGTERM" in log


@pytest.mark.parametrize("options, says", [
    (["--rdma-device", "none"], "--rdma-device"), (["--gid-index", 3], "--gid-index"),
    (["--traffic-class", 104], "--traffic-class"), (["--service-level", 1], "--service-level"),
    (["--pkey", "0x8001"], "--pkey")], ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("kind", ["server", "worker"])
def test_options_of_a_path_need_rdma(stage, kind, options, says):
    """Each is known to be set where the transport is chosen. Its effect needs a device: comch/test_comch_rdma.py."""
    program = stage.program(f"offload-{kind}", "--comch", f"unix:{stage.comch}", *options,
                            *(["--backend", BACKEND] if kind == "worker" else []))
    assert program.wait() == 1
    assert says in program.log and "are for --comch rdma:HOST:PORT" in program.log
