"""The client library with the real server and worker, in a program that checks every response."""
import re
import signal
import struct
import sys
from pathlib import Path

import pytest

from harness import TIME_FACTOR, free_port, scaled, wait_until
from wire import BadServer, ERROR, RESPONSE, frame, header

sys.path.insert(0, str(Path(__file__).parents[1] / "tls"))

from certificates import Authority, needs_openssl, own  # noqa: E402

ENDLESS = 10**9  # until it is stopped


class Load:
    """client_library_load against a port; results: how many requests ended how, and why."""

    def __init__(self, stage, port, host="127.0.0.1", **options):
        words = [f"{name.replace('_', '-')}={value}" for name, value in options.items()]
        self.program = stage.program("client_library_load", host, port, *words)

    def wait_until_answered(self):
        self.program.wait_for_log("first ok")

    def stop(self):
        """Lets it end; returns results()."""
        self.program.process.send_signal(signal.SIGTERM)
        return self.results()

    def results(self, seconds=60 * TIME_FACTOR):
        """Returns {name: count} and {name: text}, once it has ended."""
        assert self.program.wait(seconds) == 0, self.program.log
        lines = [line.split(" ", 2) for line in self.program.out.splitlines()]
        return {name: int(count) for name, count, _ in lines}, {name: text for name, _, text in lines}


def load(stage, server, **options):
    return Load(stage, server.port, **options).results()


@pytest.mark.parametrize("in_flight", [1, 64, 1000])
def test_every_response(stage, in_flight):
    server, _ = stage.pair("--max-message-length", 5000)
    counts, _ = load(stage, server, count=scaled(20_000), in_flight=in_flight, size=4000, threads=2)
    assert counts == {"ok": 2 * scaled(20_000)}


def test_the_longest_requests(stage):
    """More is in flight than the sockets' buffers take: it must send and receive in turns."""
    server, _ = stage.pair("--max-message-length", "8m", "--max-concurrent-messages", 4, "--threads", 1)
    counts, _ = load(stage, server, count=20, in_flight=10, size=8_000_000)
    assert counts == {"ok": 20}


def test_workers_killed_under_load(stage):
    """No request is lost, because the server keeps them for the next worker. It kills only two, because the server
    refuses a request with which three workers were lost."""
    server, worker = stage.pair("--worker-timeout", "60s")
    running = Load(stage, server.port, count=ENDLESS, threads=2, timeout=60000)
    running.wait_until_answered()
    for death in (2, 3):
        worker.kill()
        worker = stage.worker()
        server.wait_until_served(death)
    assert set(running.stop()[0]) == {"ok"}


def restart_under_load(stage, restarts=3, **options):
    """Returns the results of a load during which the server is killed and restarted."""
    port = free_port()
    server = stage.server("-p", port)
    stage.worker()
    server.wait_until_listening()
    running = Load(stage, port, count=ENDLESS, reconnect_timeout=60000, timeout=100000, **options)
    running.wait_until_answered()
    for _ in range(restarts):
        wait_until(lambda: established(port), "the client is connected")
        server.kill()
        server = stage.server("-p", port)
        server.wait_until_listening()
    return running.stop()


def established(port):
    """Returns whether a client is connected to this port of loopback."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "01" for line in table)


def test_servers_restarted_under_load(stage):
    """A client whose requests are idempotent notices nothing."""
    assert set(restart_under_load(stage, idempotent=1)[0]) == {"ok"}


def test_servers_restarted_under_load_of_other_requests(stage):
    """Those that were sent are lost, each once; the others are sent to the next server. A server that is being killed
    may accept one more connection."""
    counts, texts = restart_under_load(stage, in_flight=100)
    assert set(counts) == {"ok", "lost"} and counts["lost"] <= 2 * 3 * 100
    assert re.search("the server closed the connection|the connection failed", texts["lost"])


def test_a_client_that_does_not_reconnect(stage):
    server, worker = stage.pair()
    running = Load(stage, server.port, count=ENDLESS, in_flight=10)
    running.wait_until_answered()
    server.kill()
    worker.kill()
    counts, _ = running.results()
    assert counts["lost"] in range(1, 12)  # those in flight, and the submission that came next


def test_a_paused_server(stage):
    """Requests time out; their late responses are dropped, and the connection goes on."""
    server, _ = stage.pair("--shutdown-timeout", "1s")
    running = Load(stage, server.port, count=ENDLESS, in_flight=100, timeout=300)
    running.wait_until_answered()
    server.stop()
    running.program.wait_for_log("first timed_out")
    server.send_signal(signal.SIGCONT)
    running.program.wait_for_log("ok again")
    counts, texts = running.stop()
    assert set(counts) == {"ok", "timed_out"} and counts["timed_out"] >= 1 and texts["timed_out"] == "no response within the time limit"


def test_refusals_by_name(stage):
    server, worker = stage.pair("--max-message-length", 100, "--worker-timeout", "300ms")
    counts, texts = load(stage, server, count=200, size=200, in_flight=1)
    assert counts["frame_too_long"] == 1 and "lost" in counts
    assert texts["frame_too_long"] == "frame_too_long (2): the message is longer than this server accepts"
    worker.kill()
    server.wait_until_worker_gone()
    counts, texts = load(stage, server, count=10, size=10)
    assert counts == {"worker_unavailable": 10}
    assert texts["worker_unavailable"].endswith("no worker is attached to process the request")


def test_a_client_too_many(stage):
    server, _ = stage.pair("--max-clients", 1, "--max-clients-per-address", 1)
    running = Load(stage, server.port, count=ENDLESS)
    running.wait_until_answered()
    counts, texts = load(stage, server, count=1)
    assert set(counts) <= {"too_many_clients", "too_many_of_address", "lost"}
    assert any("limit of clients" in text for text in texts.values())
    running.program.kill()


# ---- TLS

@pytest.fixture(scope="module", name="ours")
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@needs_openssl
def test_tls(stage, ours):
    certificate = ours.issue("server", "DNS:server.test,IP:127.0.0.1")
    client_certificate, client_key = ours.issue("client", "DNS:client.test")
    server, _ = stage.pair(*own(certificate), "--tls-client-ca", ours.ca, "--max-message-length", "1m",
                           "--max-concurrent-messages", 16)
    proper = {"tls": 1, "ca": ours.ca, "certificate": client_certificate, "key": client_key}
    counts, _ = load(stage, server, count=scaled(2000), size=100_000, in_flight=20, **proper)
    assert counts == {"ok": scaled(2000)}
    counts, _ = load(stage, server, count=10, server_name="server.test", **proper)
    assert counts == {"ok": 10}
    other = Authority(stage.folder, "other")
    for wrong, why in (({"ca": other.ca}, "certificate is refused"), ({"server_name": "other.test"}, "certificate is refused")):
        counts, texts = load(stage, server, count=10, **{**proper, **wrong})
        assert counts == {"connect_failed": 1} and why in texts["connect_failed"]
    # In TLS 1.3 the server's refusal comes after the client's end of the handshake.
    counts, texts = load(stage, server, count=10, tls=1, ca=ours.ca)
    assert set(counts) <= {"lost", "connect_failed"} and "ok" not in counts
    counts, texts = load(stage, server, count=10)
    assert "requires TLS" in texts["tls_required"] and set(counts) <= {"tls_required", "lost"}


@needs_openssl
def test_a_revoked_server_is_refused_and_named(stage, ours):
    certificate = ours.issue("server", "IP:127.0.0.1")
    server, _ = stage.pair(*own(certificate))

    def results(crl):
        counts, texts = load(stage, server, count=10, tls=1, ca=ours.ca, crl=crl)
        return counts, *texts.values()

    assert results(ours.revoke()) == ({"ok": 10}, "")
    counts, why = results(ours.revoke(certificate[0]))
    assert counts == {"connect_failed": 1} and "certificate revoked (CN=server, serial number " in why
    counts, why = results(crl := ours.revoke(until="20200102000000Z"))
    assert counts == {"invalid": 1} and why.startswith(f"the revocation list of CN=ours in {crl} expired at Jan  2 ")
    counts, why = results(Authority(stage.folder, "other").revoke())
    assert counts == {"invalid": 1} and "is of an authority that is trusted" in why
    counts, why = results("/nowhere/list")
    assert counts == {"invalid": 1} and why.startswith("cannot use the revocation lists in /nowhere/list: ")


@needs_openssl
def test_tls_servers_killed_under_load(stage, ours):
    """The program does not ignore SIGPIPE, and lives."""
    certificate = ours.issue("server", "IP:127.0.0.1")
    for _ in range(3):
        server, worker = stage.pair(*own(certificate))
        running = Load(stage, server.port, count=ENDLESS, tls=1, ca=ours.ca, in_flight=1000)
        running.wait_until_answered()
        server.kill()
        worker.kill()
        assert running.results()[0]["lost"] > 0


# ---- Hostile servers

@pytest.mark.parametrize("answer, status", [
    (header(0, RESPONSE, 0), "malformed"),
    (header(0xffffffff, RESPONSE, 0xfffffff3), "malformed"),
    (header(17, RESPONSE, 6), "malformed"),
    (frame(b"", ERROR), "malformed"),
    (frame(struct.pack(">I", 0xffffffff), ERROR), "malformed"),
    (frame(b"x", 16), "malformed"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed"),
    (frame(struct.pack(">I", 24) + b"\x1b[2J", ERROR), "too_many_of_address"),
    (frame(struct.pack(">I", 25), ERROR), "tls_required"),
], ids=range(9))
def test_hostile_servers(stage, answer, status):
    with BadServer(answer, size=1) as server:
        counts, texts = load(stage, server, count=10, in_flight=10)
    counts.pop("lost", None)  # the submission after the end
    assert counts == {status: 10}
    assert all(text.isprintable() for text in texts.values())


def test_a_wrong_response_is_found(stage):
    """So the other tests can fail."""
    with BadServer(frame(b"wrong", RESPONSE), "close", size=1) as server:
        program = Load(stage, server.port, count=1).program
        assert program.wait() == 1
    assert "a wrong response" in program.log
