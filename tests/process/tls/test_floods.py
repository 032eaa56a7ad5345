"""One address floods a port with all that it can: clients of another address are served at their first
attempt, probes are answered, and memory stays within the budget."""
import http.client
import re
import socket
import ssl
import subprocess
import sys
import time

import pytest

from certificates import needs_openssl, own
from harness import PATIENCE, SANITIZE, TIME_FACTOR, free_port, needs_cpu_worker, scaled, wait_until
from wire import RESPONSE, Wire, frame

pytestmark = [needs_openssl, needs_cpu_worker]

HOSTILE, HONEST = "127.0.0.2", "127.0.0.3"
MEGABYTE = 1 << 20
BUDGET = 8 * MEGABYTE
# What the program takes beside what it counts, as it works: heaps of threads, buffers of its own.
BESIDE = 8 * MEGABYTE
# Connections that the hostile address holds at a time; it closes the oldest.
HELD = 2000
NEWCOMERS = scaled(20, lowest=3)

# Connects as fast as it can and sends the first words of KIND; "tls" completes the handshake, too.
FLOOD = """
import collections, resource, socket, ssl, sys, time
source, port, kind, most = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
most = min(most, limit - 50)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
mouth, ear = ssl.MemoryBIO(), ssl.MemoryBIO()
try:
    context.wrap_bio(ear, mouth).do_handshake()
except ssl.SSLWantReadError:
    pass
words = {"silent": b"", "hello": mouth.read(), "tls": b"", "http": b"GET /healthz HTTP/1.1\\r\\nX: "}[kind]
held, count, began, told = collections.deque(), 0, time.monotonic(), 0
while True:
    s = socket.socket()
    try:
        s.settimeout(5)
        s.bind((source, 0))
        s.connect(("127.0.0.1", port))
        if kind == "tls":
            s = context.wrap_socket(s)
        s.send(words)
        held.append(s)
        count += 1
    except OSError:
        s.close()
    if len(held) > most:
        held.popleft().close()
    now = time.monotonic()
    if now - told > 0.2 and (len(held) == most or now - began > 3):
        told = now
        print(count / (now - began), flush=True)
"""


class Flood:
    """A program that floods `port`, from when it has what it holds."""

    def __init__(self, port, kind):
        self._process = subprocess.Popen([sys.executable, "-ISc", FLOOD, HOSTILE, str(port), kind, str(HELD)],
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.rate = float(self._process.stdout.readline())
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


@pytest.fixture(scope="module", name="slow_certificate")
def fixture_slow_certificate(ours):
    """With an RSA key: a signature takes the server much longer than a ClientHello takes a client."""
    return ours.issue("slow", "DNS:server.test", key=("rsa:3072",))


def ask(port, context):
    """A new client's request and its answer: the seconds that they took."""
    began = time.monotonic()
    with Wire(port, source=HONEST) as wire:
        plain = wire.socket
        if context:
            wire.use(context.wrap_socket(plain, server_hostname="server.test"))
        wire.send(frame(b"hello"))
        assert wire.receive() == (RESPONSE, b"olleh")
    return time.monotonic() - began


def probe(port, path="/healthz"):
    """The answer to a probe."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(HONEST, 0))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read().decode()
    finally:
        connection.close()


def limited(metrics, door):
    found = re.search(rf'^offload_limited_connections_total{{door="{door}"}} (\d+)', probe(metrics, "/metrics"), re.M)
    return int(found[1])


@pytest.mark.parametrize("door, kind", [("clients", "silent"), ("tls", "silent"), ("tls", "hello"),
                                        ("tls", "tls"), ("http", "silent"), ("http", "http"),
                                        ("control", "silent")])
def test_one_address_does_not_keep_others_out(stage, ours, slow_certificate, door, kind):
    tls = own(slow_certificate) if door == "tls" else []
    control, key = free_port(), stage.key_options()
    comch = ["--comch", f"tcp:127.0.0.1:{control}", *key]
    server = stage.program("offload-server", *comch, "-p", 0, "--metrics", 0, "--threads", 1,
                           "--client-memory", BUDGET, "--max-clients-per-address", HELD // 4 if door == "clients" else 0,
                           *tls)
    stage.program("offload-worker", *comch, "--backend", "cpu")
    port = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
    metrics = int(server.wait_for_log(r"metrics on http://\S+:(\d+)/metrics")[1])
    context = ssl.create_default_context(cafile=ours.ca) if tls else None
    ask(port, context)
    before = server.resident_bytes()
    with Flood({"http": metrics, "control": control}.get(door, port), kind) as flood:
        times = []
        for _ in range(NEWCOMERS):
            times.append(ask(port, context))
            assert "the control thread turned" in probe(metrics)
            probe(metrics, "/readyz")
            if not any(SANITIZE):
                assert server.resident_bytes() - before < BUDGET + BESIDE
        if door == "control":
            stage.program("offload-worker", *comch, "--backend", "cpu")
            server.wait_for_log("is ready", count=2, seconds=30 * TIME_FACTOR)
        held = server.resident_bytes() - before
        wait_until(lambda: limited(metrics, door if kind != "tls" else "clients") > 0, "the flood is counted")
    print(f"{door}, {kind}: {flood.rate:.0f}/s; a new client was served after {min(times):.3f} to {max(times):.3f} s, "
          f"{held / MEGABYTE:.1f} MiB more")
    server.wait_for_log(rf"{HOSTILE}:\d+.*(makes room for another|is turned away|is disconnected)")
