"""The clients' port with TLS 1.3: which clients are accepted, which are refused, and every byte right."""
import contextlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from urllib.request import urlopen

import pytest

from certificates import Authority, needs_openssl, own, trusting
from harness import PATIENCE, TIME_FACTOR, Load, expect_server_left, hang_up_with_fifo, scaled, statistics, wait_until
from wire import TLS_REQUIRED, TOO_LONG, Wire, frame, payloads, reverse

pytestmark = needs_openssl


@pytest.fixture(scope="module", name="others")
def fixture_others(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("others"), "others")


@pytest.fixture(scope="module", name="client_certificate")
def fixture_client_certificate(ours):
    return ours.issue("client", "DNS:client.test")


class TlsWire(Wire):
    """A Wire in TLS, by Python's own binding, which takes one thread at a time: no sending()."""

    def __init__(self, port, authority, certificate=None):
        super().__init__(port)
        context = ssl.create_default_context(cafile=authority.ca)
        if certificate:
            context.load_cert_chain(*certificate)
        self.use(context.wrap_socket(self.socket, server_hostname="server.test"))


def expect_refused(stage, server, *options, why):
    client = stage.client(server, *options, "-i", 1, "--connect-timeout", "5s")
    assert client.wait() == 1
    assert why in client.log, client.log


def test_every_size_and_depth(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate), "--max-message-length", "1m", "--max-concurrent-messages", 16,
                           "--threads", 2)
    for size, depth in ((0, 128), (1, 1), (64, 128), (373, 16), (4096, 128), (65536, 16),
                        (1 << 20, 4)):
        count = scaled(500 if size < 4096 else 20, lowest=5)
        client = stage.run_client(server, *trusting(ours), "--size", size, "-t", 2, "-i", count,
                                  "--connections", 2, "--max-concurrent-messages", depth)
        assert statistics(client)["Valid responses"] == 4 * count
    assert "connected to 127.0.0.1" in client.log and "with TLS" in client.log


def test_frames_cut_anywhere_and_a_half_closed_connection(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate), "--max-message-length", "64k")
    with TlsWire(server.port, ours) as wire:
        for sizes in ([0, 1, 300, 5000], 65536):
            requests = payloads(20 if isinstance(sizes, list) else 1, sizes)
            data = b"".join(map(frame, requests))
            for cut in range(0, len(data), 999):
                wire.send(data[cut:cut + 999])
            wire.expect(map(reverse, requests))
        assert wire.socket.version() == "TLSv1.3"
        # A frame that breaks the protocol: the error comes in TLS too, and then the end.
        wire.send(frame(bytes(70000)))
        assert wire.receive_error() == TOO_LONG
        wire.expect_end()


def test_a_client_that_reads_late(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate), "--max-message-length", "64k")
    client = stage.client(server, *trusting(ours), "--size", "64k", "--duration", "2s",
                          "--max-concurrent-messages", 1000)
    client.wait_for_log("connected to")
    for _ in range(3):
        time.sleep(0.2)
        client.stop()
        time.sleep(0.2)  # what it does not take waits in the server, a record in part
        client.send_signal(signal.SIGCONT)
    assert client.wait(60 * TIME_FACTOR) == 0, client.log
    assert statistics(client)["Valid responses"] > 0


def test_a_client_checks_who_the_server_is(stage, ours, others, certificate):
    server, _ = stage.pair(*own(certificate))
    expect_refused(stage, server, *trusting(others), why="certificate is refused")
    server.wait_for_log(r"client \d+, 127\.0\.0\.1:\d+: the TLS handshake failed: "
                        "the peer refused: .*unknown ca")
    expect_refused(stage, server, "--tls", why="certificate is refused")  # the system's authorities
    expect_refused(stage, server, *trusting(ours), "--tls-server-name", "other.test",
                   why="ostname mismatch")
    stage.run_client(server, *trusting(ours), "--tls-server-name", "server.test", "-i", 10)


def test_an_expired_certificate(stage, ours):
    server, _ = stage.pair(*own(ours.issue("old", "IP:127.0.0.1", days=-1)))
    expect_refused(stage, server, *trusting(ours), why="certificate has expired")


def test_clients_need_a_certificate_if_the_server_says_so(stage, ours, others, certificate,
                                                          client_certificate):
    server, _ = stage.pair(*own(certificate), "--tls-client-ca", ours.ca)
    stage.run_client(server, *trusting(ours), *own(client_certificate), "-i", 10)
    expect_refused(stage, server, *trusting(ours), why="certificate required")
    server.wait_for_log(r"client \d+, 127\.0\.0\.1:\d+: the TLS handshake failed: "
                        "peer did not return a certificate")
    time.sleep(1)  # a line of this kind a second
    expect_refused(stage, server, *trusting(ours), *own(others.issue("stranger", "DNS:x.test")),
                   why="unknown ca")
    server.wait_for_log("failed: the peer's certificate is refused")
    stage.run_client(server, *trusting(ours), *own(client_certificate), "-i", 10)


def test_a_revoked_certificate_is_refused_named_and_counted(stage, ours, certificate, client_certificate):
    """Also after SIGHUP; a list that cannot be used changes nothing then."""
    crl = ours.revoke()
    server, _ = stage.pair(*own(certificate), "--tls-client-ca", ours.ca, "--tls-client-crl", crl, "--metrics", 0)
    lost = ours.issue("lost", "DNS:lost.test")
    for good in (lost, client_certificate):
        stage.run_client(server, *trusting(ours), *own(good), "-i", 10)
    ours.revoke(lost[0])
    server.send_signal(signal.SIGHUP)
    server.wait_for_log(f"were reread: the content of {crl}\n")
    expect_refused(stage, server, *trusting(ours), *own(lost), why="certificate revoked")
    server.wait_for_log(r"client \d+, 127\.0\.0\.1:\d+: the TLS handshake failed: the peer's certificate is refused: "
                        r"certificate revoked \(CN=lost, serial number [0-9A-F]+\)")
    address = server.wait_for_log(r"metrics on (http://127\.0\.0\.1:\d+/metrics)")[1]

    def failures(reason):
        with urlopen(address, timeout=PATIENCE) as page:
            return int(re.search(rf'offload_server_tls_failures_total{{reason="{reason}"}} (\d+)', page.read().decode())[1])
    wait_until(lambda: failures("revoked") == 1, "the client is counted")
    assert failures("certificate") == 0
    ours.revoke(until="20200102000000Z")
    server.send_signal(signal.SIGHUP)
    server.wait_for_log(rf"error .*SIGHUP: nothing was changed: the revocation list of CN=ours in {crl} expired at Jan  2 ")
    expect_refused(stage, server, *trusting(ours), *own(lost), why="certificate revoked")
    stage.run_client(server, *trusting(ours), *own(client_certificate), "-i", 10)


def test_a_client_refuses_a_revoked_server(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    stage.run_client(server, *trusting(ours), "--tls-crl", ours.revoke(), "-i", 10)
    expect_refused(stage, server, *trusting(ours), "--tls-crl", ours.revoke(certificate[0]),
                   why="certificate revoked (CN=server, ")


def test_one_too_many_is_told_nothing_before_its_handshake(stage, ours, certificate):
    """A frame of the protocol would be bytes that are no TLS."""
    server, _ = stage.pair(*own(certificate), "--max-clients", 1)
    with TlsWire(server.port, ours) as wire:
        wire.send(frame(b"the only one"))
        wire.expect([reverse(b"the only one")])
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as late:
            assert late.recv(1) == b""
        server.wait_for_log("is rejected")


def test_who_does_not_speak_tls_at_a_port_that_does(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    client = stage.client(server, "-i", 1)
    assert client.wait() == 1
    assert "the server reports error 25: this port requires TLS" in client.log
    server.wait_for_log(r"client \d+, 127\.0\.0\.1:\d+: the TLS handshake failed: the peer does not use TLS")
    with Wire(server.port) as wire:
        wire.send(frame(b"plain"))
        assert wire.receive_error() == TLS_REQUIRED
        wire.expect_end()
    stage.run_client(server, *trusting(ours), "-i", 10)


def test_a_browser_at_a_port_with_tls(stage, ours, certificate):
    """With http:// and with https://."""
    server, _ = stage.pair(*own(certificate))
    for kind in (Wire, lambda port: TlsWire(port, ours)):
        with kind(server.port) as wire:
            wire.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert wire.receive_rest().startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_who_speaks_tls_at_a_port_that_does_not(stage, ours):
    server, _ = stage.pair()
    expect_refused(stage, server, *trusting(ours), why="the peer does not use TLS")
    server.wait_for_log("a TLS client at a port without TLS")


# Nothing, the begin of a record, of a ClientHello.
BEGUN = (b"", b"\x16\x03", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def begin_handshakes(server, count, stack):
    """Begins handshakes that do not go on."""
    for number in range(count):
        wire = stack.enter_context(Wire(server.port))
        wire.send(BEGUN[number % len(BEGUN)])


def test_handshakes_that_do_not_go_on_keep_nobody_out(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    with contextlib.ExitStack() as silent:
        begin_handshakes(server, 200, silent)
        stage.run_client(server, *trusting(ours), "-i", 100, "-t", 4)


def test_handshakes_that_do_not_go_on_hold_no_server_that_ends(stage, ours, certificate):
    server, worker = stage.pair(*own(certificate), "--threads", 1)
    with contextlib.ExitStack() as silent:
        begin_handshakes(server, 6, silent)
        stage.run_client(server, *trusting(ours), "-i", 10)  # it was accepted after them
        server.send_signal(signal.SIGTERM)
        expect_server_left(server, worker)
    assert "not all clients could be answered in time" not in server.log


def test_a_flood_of_handshakes_beside_clients(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    with Load(stage, server, *trusting(ours), "--max-concurrent-messages", 4):
        end = time.monotonic() + 1
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                for wire in [Wire(server.port) for _ in range(20)]:
                    wire.send(b"\x16\x03\x01\x00\x05garbage")
                    wire.reset()


def test_the_openssl_tool_is_a_client_too(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    request = frame(b"hello")
    run = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile", ours.ca,
         "-verify_return_error", "-quiet"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        run.stdin.write(request)
        run.stdin.flush()
        assert run.stdout.read(len(request)).endswith(b"olleh")
    finally:
        run.kill()
        run.communicate(timeout=PATIENCE)


def test_an_older_version_of_tls_is_refused(stage, ours, certificate):
    server, _ = stage.pair(*own(certificate))
    context = ssl.create_default_context(cafile=ours.ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.settimeout(10 * TIME_FACTOR)
        context.wrap_socket(raw, server_hostname="server.test")
    server.wait_for_log("failed: unsupported protocol")


def test_files_that_will_not_do(stage, ours, certificate, tmp_path):
    open_key = tmp_path / "open.key"
    shutil.copy(certificate[1], open_key)
    open_key.chmod(0o644)
    for options, why in (
            (["--tls-certificate", certificate[0], "--tls-key", open_key], "is accessible to others than its owner"),
            (["--tls-certificate", "/nowhere", "--tls-key", certificate[1]], "/nowhere"),
            ([*own(certificate), "--tls-client-ca", "/nowhere"], "/nowhere"),
            ([*own(certificate), "--tls-client-ca", ours.ca, "--tls-client-crl", "/nowhere"], "/nowhere"),
            ([*own(certificate), "--tls-client-ca", ours.ca, "--tls-client-crl", ours.ca], "has no list in PEM"),
            ([*own(certificate), "--tls-client-ca", ours.ca, "--tls-client-crl", ours.revoke(until="20200102000000Z")],
             "expired at Jan  2 00:00:00 2020 GMT: get a newer one from the authority")):
        server = stage.server(*options)
        assert server.wait() == 1
        assert why in server.log, server.log
    for options in (["--tls-certificate", certificate[0]], ["--tls-key", certificate[1]],
                    ["--tls-client-ca", ours.ca], [*own(certificate), "--tls-client-crl", ours.ca]):
        assert stage.server(*options).wait() == 2


def test_a_fifo_in_the_place_of_a_certificate_is_an_error(stage, tmp_path):
    """OpenSSL opens the files of certificates itself; otherwise the case is that of test_reload.py."""
    authority = Authority(tmp_path, "of this test")
    certificate = authority.issue("server", "DNS:server.test")
    crl = authority.revoke()
    server, _ = stage.pair(*own(certificate), "--tls-client-ca", authority.ca, "--tls-client-crl", crl)
    for count, file in enumerate((*certificate, authority.ca, crl), 1):
        hang_up_with_fifo(server, file, count)
    assert server.terminate() == 0
