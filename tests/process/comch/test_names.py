"""Names of servers: with several addresses, unknown for a while, or moved to another address."""
import re
import socket
import urllib.request

import pytest

from harness import BIN, PATIENCE, TIME_FACTOR, free_port
from wire import Wire

RESOLVER = BIN / "libknown_names.so"
ELSEWHERE = "192.0.2.1"  # TEST-NET-1: no machine has it

pytestmark = pytest.mark.skipif(not RESOLVER.exists(),
                                reason="no resolver of the tests' own beside a sanitizer's")


@pytest.fixture(name="names")
def fixture_names(stage, monkeypatch):
    """Returns a function that sets the addresses of names, for programs that start afterwards."""
    file = stage.folder / "names"
    file.write_text("")
    monkeypatch.setenv("OFFLOAD_NAMES", str(file))
    monkeypatch.setenv("LD_PRELOAD", str(RESOLVER))

    def set_names(**addresses):
        new = stage.folder / "names.new"
        new.write_text("".join(f"{name} {' '.join(each)}\n" for name, each in addresses.items()))
        new.rename(file)
    return set_names


@pytest.fixture(name="port")
def fixture_port():
    return free_port()


def worker_to(stage, port, *options, host="dpu"):
    return stage.program("offload-worker", "--comch", f"tcp:{host}:{port}", "--backend", "cpu",
                         *(options or stage.key_options()))


def server_at(stage, host, port, *options):
    return stage.program("offload-server", "--comch", f"tcp:{host}:{port}", "-p", 0,
                         *stage.key_options(), *options)


def test_a_worker_tries_every_address(stage, names, port):
    """No server listens at the first address, a stranger at the second, the server at the third."""
    names(dpu=["127.0.0.2", "127.0.0.3", "127.0.0.4"])
    server = server_at(stage, "127.0.0.4", port)
    server.wait_for_log("waiting for a worker")
    with socket.create_server(("127.0.0.3", port)):
        worker = worker_to(stage, port)
        server.wait_for_log("is ready")
        assert worker.alive


def test_a_worker_says_at_once_why_it_cannot_attach_and_at_the_end_again(stage, names, port):
    names(dpu=["127.0.0.2", "127.0.0.3"])
    worker = worker_to(stage, port, "--insecure", "--connect-timeout", f"{3 * TIME_FACTOR}s")
    worker.wait_for_log(f"cannot connect to tcp:dpu:{port} at 127.0.0.3:{port}: Connection refused")
    assert worker.alive
    assert worker.wait() == 1
    assert re.search(rf"no server at tcp:dpu:{port} accepted this worker within [\d.]+ s: "
                     rf"cannot connect to tcp:dpu:{port} at 127.0.0.3:{port}: Connection refused", worker.log)
    # It is logged once at the begin, and perhaps again after ten seconds: not at each attempt.
    assert len(re.findall("info offload-worker: .*cannot connect", worker.log)) <= 1 + 3 * TIME_FACTOR / 10


def test_a_worker_waits_for_a_name_and_follows_it(stage, names, port):
    worker = worker_to(stage, port)
    worker.wait_for_log("cannot resolve 'dpu'")
    server = server_at(stage, "127.0.0.2", port)
    names(dpu=["127.0.0.2"])
    server.wait_for_log("is ready")
    server.terminate()
    names(dpu=["127.0.0.3"])
    server = server_at(stage, "127.0.0.3", port)
    server.wait_for_log("is ready")
    assert worker.alive


def test_a_server_listens_at_every_address_of_its_names(stage, names, port):
    names(svc=["127.0.0.2", ELSEWHERE, "127.0.0.3"], dpu=["127.0.0.4", "127.0.0.5"],
          view=["127.0.0.6", "127.0.0.7"])
    server = server_at(stage, "dpu", port, "--listen-address", "svc", "--metrics", "view:0",
                       "--threads", 2)
    workers = [worker_to(stage, port, host=host) for host in ("127.0.0.4", "127.0.0.5")]
    server.wait_for_log("is ready", count=2)
    clients = int(server.wait_for_log(r"listening on 127\.0\.0\.3:(\d+) with")[1])
    assert f"listening on 127.0.0.2:{clients} with" in server.log
    assert f"cannot listen on {ELSEWHERE}:" in server.log and "this address is skipped" in server.log
    for host in ("127.0.0.2", "127.0.0.3"):
        with Wire(clients, host=host) as wire:
            wire.ask([b"one", b"two"])
    view = int(server.wait_for_log(r"metrics on http://127\.0\.0\.7:(\d+)/metrics")[1])
    for host in ("127.0.0.6", "127.0.0.7"):
        with urllib.request.urlopen(f"http://{host}:{view}/healthz", timeout=PATIENCE) as answer:
            assert answer.status == 200
    assert all(worker.alive for worker in workers)


def test_a_server_of_no_address_of_this_machine(stage, names, port):
    names(svc=[ELSEWHERE])
    server = server_at(stage, "127.0.0.1", port, "--listen-address", "svc")
    assert server.wait() == 1
    assert f"cannot listen on {ELSEWHERE}:" in server.log
    assert "skipped" not in server.log


def test_a_client_waits_for_a_name(stage, names):
    server, _ = stage.pair()
    client = stage.client(server, "-i", 10, "--connect-timeout", f"{20 * TIME_FACTOR}s", host="svc")
    client.wait_for_log("waiting for the server: cannot resolve 'svc'")
    names(svc=["127.0.0.2", "127.0.0.1"])
    assert client.wait() in (0, 5), client.log


def test_a_signal_ends_the_wait_for_a_name(stage, names):  # pylint: disable=unused-argument
    client = stage.client(1, "-i", 10, "--connect-timeout", "10m", host="svc")
    client.wait_for_log("waiting for the server: cannot resolve 'svc'")
    assert client.terminate() == 130


def test_a_name_that_stays_unknown(stage, names):  # pylint: disable=unused-argument
    client = stage.client(1, "-i", 10, "--connect-timeout", "100ms", host="svc")
    assert client.wait() == 1
    assert re.search(r"cannot resolve 'svc': .* \(--connect-timeout is over\)", client.log)
