"""One address floods one of the five ports with all its capacity: each new client of another address is served, probes
are answered, and memory stays within the budget."""
import http.client
import re
import socket
import ssl
import subprocess
import sys

import pytest

from certificates import needs_openssl, own
from harness import BIN, PATIENCE, ROOT, SANITIZE, TIME_FACTOR, free_port, needs_cpu_worker, scaled, wait_until
from wire import RESPONSE, Wire, frame

sys.path.insert(0, str(ROOT / "tests/process/packets"))
from udp_worker import PORT, figures_of, page_of, request, worker  # noqa: E402, F401, after the line above; a fixture
from veth import ADDRESS, HERE, PEER, THERE, both_ends, namespace, run  # noqa: E402

pytestmark = [needs_openssl, needs_cpu_worker]

HOSTILE, HONEST = "127.0.0.2", "127.0.0.3"
NEWCOMER = "10.9.0.3"  # on the wire, where the hostile address is PEER
RESIDENT = "process_resident_memory_bytes"
MEGABYTE = 1 << 20
BUDGET = 8 * MEGABYTE
# The memory that the program uses beyond the memory that it counts: heaps of threads, other buffers.
BESIDE = 8 * MEGABYTE
# The connections that the hostile address holds at a time; it closes the oldest.
HELD = 2000
NEWCOMERS = scaled(20, lowest=3)

# Connects as fast as it can and sends the first bytes of KIND; "tls" completes the handshake, too.
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
held, began, told = collections.deque(), time.monotonic(), False
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
    except OSError:
        s.close()
    if len(held) > most:
        held.popleft().close()
    if not told and (len(held) == most or time.monotonic() - began > 3):
        told = True
        print("It floods.", flush=True)
"""

# Sends the words WORDS in datagrams as fast as it can, from many ports.
FLOOD_OF_DATAGRAMS = """
import itertools, socket, sys
source, address, port, words = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
for s in sockets:
    s.bind((source, 0))
    s.connect((address, port))
    s.setblocking(False)
for number, s in enumerate(itertools.cycle(sockets)):
    try:
        s.send(words)
    except OSError:
        pass
    if number == 10000:
        print("It floods.", flush=True)
"""


class Flood:
    """A program that floods; the context begins when it reports that it does."""

    def __init__(self, program, *arguments):
        self._process = subprocess.Popen([sys.executable, "-ISc", program, *map(str, arguments)],
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        assert self._process.stdout.readline() == "It floods.\n"
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


@pytest.fixture(scope="module", name="slow_certificate")
def fixture_slow_certificate(ours):
    """Issues a certificate with an RSA key: a signature takes the server much longer than a ClientHello takes a
    client."""
    return ours.issue("slow", "DNS:server.test", key=("rsa:3072",))


def ask(port, context):
    """Sends a new client's request and expects its answer."""
    with Wire(port, source=HONEST) as wire:
        plain = wire.socket
        if context:
            wire.use(context.wrap_socket(plain, server_hostname="server.test"))
        wire.send(frame(b"hello"))
        assert wire.receive() == (RESPONSE, b"olleh")


def probe(port, path="/healthz"):
    """Returns the answer to a probe."""
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
    with Flood(FLOOD, HOSTILE, {"http": metrics, "control": control}.get(door, port), kind, HELD):
        for _ in range(NEWCOMERS):
            ask(port, context)
            assert "the control thread turned" in probe(metrics)
            probe(metrics, "/readyz")
            if not any(SANITIZE):
                assert server.resident_bytes() - before < BUDGET + BESIDE
        if door == "control":
            stage.program("offload-worker", *comch, "--backend", "cpu")
            server.wait_for_log("is ready", count=2, seconds=30 * TIME_FACTOR)
        wait_until(lambda: limited(metrics, door if kind != "tls" else "clients") > 0, "the flood is counted")
    server.wait_for_log(rf"{HOSTILE}:\d+.*(to make room for another|is rejected|is disconnected)")


@pytest.fixture(name="wire")
def fixture_wire():
    """Makes a wire with PEER and NEWCOMER at its other end."""
    if not (BIN / "offload-packets").exists():
        pytest.skip("offload-worker has no --udp: no libbpf or clang")
    with both_ends():
        run("ip", "-n", HERE, "link", "set", "lo", "up")  # for the worker's metrics
        run("ip", "-n", THERE, "addr", "add", f"{NEWCOMER}/24", "dev", "x1")
        yield


def ask_by_datagrams(number):
    """Repeats a new client's request until it has its answer, as nothing else makes up for a lost datagram."""
    payload = b"newcomer %d" % number
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((NEWCOMER, 0))
        s.connect((ADDRESS, PORT))
        s.settimeout(0.1)

        def answer():
            s.send(request(number, payload))
            try:
                return s.recv(2048)
            except TimeoutError:
                return None

        assert wait_until(answer, "a newcomer's answer") == request(number, payload[::-1], kind=RESPONSE)


@pytest.mark.parametrize("words", [request(7, b"of the flood"), b"\xff" * 64], ids=["requests", "garbage"])
def test_datagrams_of_one_address_do_not_keep_others_out(wire, worker, words):  # noqa: F811
    program = worker("--metrics", "0")
    with namespace(THERE):
        ask_by_datagrams(0)
        before = figures_of(program)[RESIDENT]
        with Flood(FLOOD_OF_DATAGRAMS, PEER, ADDRESS, PORT, words.hex()):
            for number in range(NEWCOMERS):
                ask_by_datagrams(1 + number)
                for path in ("/healthz", "/readyz"):
                    assert page_of(program, path)[0] == 200
                if not any(SANITIZE):
                    assert figures_of(program)[RESIDENT] - before < BESIDE
    assert program.end()["answered"] > NEWCOMERS
