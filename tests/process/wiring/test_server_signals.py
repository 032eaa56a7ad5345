"""SIGHUP to offload-server and offload-worker: each setting that it rereads takes effect, on each port. The first
values would make each test wait for an hour."""
import contextlib
import re
import shutil
import signal
import sys
import time

import pytest

from harness import ROOT, needs_cpu_worker, wait_until
from test_server_options import ANSWERS, TWO_PORTS, hold_up, ports_of
from wire import REQUEST_TIMED_OUT, WORKER_UNAVAILABLE, Wire, frame

sys.path[:0] = [str(ROOT / "tests/process" / folder) for folder in ("tls", "operation")]

from certificates import Authority, needs_openssl, own, trusting  # noqa: E402
from test_metrics import arrival_times  # noqa: E402


@pytest.fixture(name="file")
def fixture_file(stage):
    path = stage.folder / "settings.toml"
    path.write_text('worker-timeout = "1h"\nrequest-timeout = "1h"\nshutdown-timeout = "1h"\n')
    return path


@pytest.fixture(name="pair")
def fixture_pair(stage, file):
    """A server with two ports, its worker, and the ports by their services."""
    server = stage.server("--config", file, *TWO_PORTS)
    worker = stage.worker()
    return server, worker, ports_of(server)


def reread(program, file, text, count=1):
    file.write_text(text)
    program.send_signal(signal.SIGHUP)
    program.wait_for_log("were reread", count=count)


PORTS = pytest.mark.parametrize("which", ANSWERS)


@needs_cpu_worker
@PORTS
def test_the_time_of_a_request(file, pair, which):
    server, worker, ports = pair
    with Wire(ports[which]) as wire:
        wire.ask([b"before"], ANSWERS[which])
        reread(server, file, 'worker-timeout = "1h"\nrequest-timeout = "200ms"\n')
        worker.stop()
        wire.send(frame(b"question"))
        assert wire.receive_error() == REQUEST_TIMED_OUT
        worker.send_signal(signal.SIGCONT)
        reread(server, file, 'worker-timeout = "1h"\nrequest-timeout = 0\n', count=2)
        wire.ask([b"after"], ANSWERS[which])


@PORTS
def test_slow_requests(file, pair, which):
    server, _, ports = pair
    with Wire(ports[which]) as wire:
        wire.ask([b"before"], ANSWERS[which])
        reread(server, file, 'slow-request = "1us"\n')
        # The thread takes the limit some turns after the line of the reread.
        wait_until(lambda: wire.ask([b"slow"], ANSWERS[which]) or f"of 4 bytes for {which}, took" in server.log,
                   "a slow request is logged")
    assert "of 6 bytes for" not in server.log


@needs_cpu_worker
@PORTS
def test_the_time_after_which_a_worker_is_stuck(file, pair, which):
    """One port has a request. A stopped worker is gone only after 5 s, for another reason."""
    server, worker, ports = pair
    reread(server, file, 'worker-timeout = "1s"\nrequest-timeout = "1h"\n')
    with Wire(ports[which]) as wire:
        worker.stop()
        wire.send(frame(b"question"))
        assert wire.receive_error() == WORKER_UNAVAILABLE
    assert "it has answered no request on channel" in server.wait_until_worker_gone()[2]
    worker.send_signal(signal.SIGCONT)


@PORTS
@pytest.mark.parametrize("under_way", [True, False])
def test_the_time_without_a_worker(file, pair, under_way, which):
    server, worker, ports = pair
    with Wire(ports[which]) as wire:
        wire.ask([b"before"], ANSWERS[which])
        if not under_way:
            reread(server, file, 'worker-timeout = "100ms"\n')
        worker.kill()
        server.wait_until_worker_gone()
        wire.send(frame(b"question"))
        if under_way:
            reread(server, file, 'worker-timeout = "100ms"\n')
        assert wire.receive_error() == WORKER_UNAVAILABLE


def test_the_time_of_a_shutdown(stage, file):
    server = stage.server("--config", file)
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port, receive_buffer=4096) as wire:
        hold_up(wire)
        reread(server, file, 'shutdown-timeout = "200ms"\n')
        assert server.terminate() == 0
    assert "not all clients could be answered in time" in server.log


@pytest.mark.parametrize("kind", ["server", "worker"])
@pytest.mark.parametrize("option", ["log-level", "sdk-log-level"])
def test_the_levels_of_the_log(stage, kind, option):
    """The line that tells of the change is one of the library. Each program logs it if its level is info by then."""
    file = stage.folder / "settings.toml"
    file.write_text(f'{option} = "error"\n')
    program = getattr(stage, kind)("--config", file, "--metrics", 0)
    wait_until(lambda: any(name.startswith("MHD") for name in program.threads()), "it has its metrics")
    reread(program, file, f'{option} = "info"\n')
    assert "metrics on" not in program.log


@pytest.mark.parametrize("kind", ["server", "worker"])
def test_a_lower_level_of_the_log(stage, kind):
    """From then on, not even the next change is logged."""
    file = stage.folder / "settings.toml"
    file.write_text("")
    program = getattr(stage, kind)("--config", file)
    program.wait_for_log("waiting for a worker|back end")
    file.write_text("log-level = 7\n")
    program.send_signal(signal.SIGHUP)
    program.wait_for_log("nothing was changed")
    file.write_text('log-level = "off"\n')
    program.send_signal(signal.SIGHUP)
    assert program.terminate() == 0
    assert not re.search("were reread|SIGTERM", program.log)


@needs_openssl
@PORTS
def test_certificates(stage, which):
    """The server's certificate, its key, and the authorities of clients: those of the next connection, on each port."""
    old, new = (Authority(stage.folder, name) for name in ("old", "new"))
    pairs = {each: each.issue("server", "DNS:server.test,IP:127.0.0.1") for each in (old, new)}
    clients = {each: each.issue("client", "DNS:client.test") for each in (old, new)}
    files = [stage.folder / name for name in ("server.pem", "server.key")]
    ca = stage.folder / "clients.pem"

    def install(authority):
        for source, target in zip((*pairs[authority], authority.ca), (*files, ca)):
            shutil.copy(source, target)
        files[1].chmod(0o600)

    install(old)
    server = stage.server(*TWO_PORTS, *own(files), "--tls-client-ca", ca)
    stage.worker()
    port = ports_of(server)[which]

    def status(authority, certificate):
        client = stage.client(port, *trusting(authority), *own(clients[certificate]), "--service", which, "-i", 100)
        return client.wait()

    assert (status(old, old), status(new, old), status(old, new)) == (0, 1, 1)
    install(new)
    server.send_signal(signal.SIGHUP)
    server.wait_for_log("were reread: the content of")
    assert (status(new, new), status(old, new), status(new, old)) == (0, 1, 1)


@needs_cpu_worker
def test_a_second_signal_ends_a_worker_at_once(stage):
    """SIGINT, as SIGTERM in comch/test_worker_signals.py: the server, which is stopped, does not detach it."""
    server, worker = stage.server(), stage.worker("--shutdown-timeout", "1h")
    server.wait_until_served()
    server.stop()
    worker.send_signal(signal.SIGINT)
    wait_until(lambda: not worker.blocks(signal.SIGINT), "the first signal is taken")
    with contextlib.suppress(ProcessLookupError):
        worker.send_signal(signal.SIGINT)
    assert worker.wait() == -signal.SIGINT


@needs_cpu_worker
def test_slow_requests_count_from_their_arrival(stage, file):
    """Also if nothing else but the limit, which SIGHUP has switched on, needs the arrival of a request: the server is
    stopped when it arrives."""
    server = stage.server("--config", file)
    stage.worker()
    server.wait_until_listening()
    reread(server, file, 'slow-request = "300ms"\nworker-timeout = "1h"\n')

    def is_logged():
        with Wire(server.port) as wire:
            wire.ask([b"quick"])
            server.stop()
            wire.send(frame(b"waits"))
            time.sleep(0.5)
            server.send_signal(signal.SIGCONT)
            wire.expect([b"stiaw"])
        return "of 5 bytes for reverse, took" in server.log
    # The ports and the threads take the option some turns after the line of the reread.
    with arrival_times():
        wait_until(is_logged, "the request that waited is logged")
