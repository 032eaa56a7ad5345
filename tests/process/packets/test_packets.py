"""offload-packets on veth: in a separate network namespace, with the peer in another one."""
import json
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from frames import checksum, mac, udp_frame
from harness import BACKEND, BIN, TIME_FACTOR, wait_until
from veth import ADDRESS, HERE, LIMIT, PEER, THERE, Program, both_ends, link_of, namespace

PROGRAM = BIN / "offload-packets"


@pytest.fixture(scope="module", autouse=True)
def wire():
    if not PROGRAM.exists():
        pytest.skip("offload-packets is not built: no libbpf or clang")
    with both_ends():
        yield


class Packets(Program):
    """offload-packets, ready for packets; end() returns its results."""

    def __init__(self, tmp_path, *options, where=HERE, interface="x0"):
        self.output = tmp_path / f"results-{interface}.json"
        super().__init__("ready", PROGRAM, options[0], "-i", interface, "--output", self.output, "--backend",
                         BACKEND, *options[1:], where=where)

    def end(self, number=signal.SIGINT):
        super().end(number)
        return json.loads(self.output.read_text())


@pytest.fixture
def packets(tmp_path):
    programs = []

    def start(*options, **place):
        programs.append(Packets(tmp_path, *options, **place))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.process.communicate()


def udp(port):
    with namespace(THERE):
        connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    connection.settimeout(LIMIT)
    connection.connect((ADDRESS, port))
    return connection


def test_echo(packets):
    program = packets("echo", "--port", "4000")
    with udp(4000) as client:
        for i in range(500):
            message = b"%d." % i * (1 + i % 90)
            client.send(message)
            assert client.recv(4096) == message[::-1]
    results = program.end()
    assert results["answered"] == results["packets"] == 500
    assert results["errors"] == {} and results["dropped"] == 0
    assert results["rules"][0] == {"rule": f"udp vlan 0 dst {ADDRESS} dport 4000 to 0", "packets": 500,
                                   "bytes": results["bytes"]}


def test_a_wrong_checksum_is_counted(packets):
    program = packets("echo", "--port", "4000")
    with namespace(THERE):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("x1", 0x0800))
    ip = bytes.fromhex("4500002000000000401100000a0900020a090001")
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~total & 0xffff) + ip[12:]
    datagram = struct.pack(">HHHH", 1, 4000, 12, 1) + b"data"
    with raw, udp(4000) as client:
        raw.send(b"\xff" * 6 + b"\2" + bytes(5) + b"\x08\0" + ip + datagram)
        client.send(b"right")
        assert client.recv(100) == b"thgir"
    results = program.end()
    assert results["errors"] == {"transport-checksum": 1}
    assert results["packets"] == 2 and results["answered"] == 1


class Forger:
    """Sends datagrams to ADDRESS that claim to come from a port of PEER."""

    def __init__(self):
        self.ends = {"to": mac(link_of(HERE, "x0")["address"]), "by": mac(link_of(THERE, "x1")["address"]),
                     "source": PEER, "destination": ADDRESS}
        with namespace(THERE):
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.raw.bind(("x1", 0x0800))

    def send(self, source_port, port, **more):
        self.raw.send(udp_frame(b"round", source_port=source_port, port=port, **self.ends, **more))


def test_what_an_echo_may_have_sent_is_not_echoed(packets):
    program = packets("echo", "--port", "4000")
    forger = Forger()
    with forger.raw, udp(4000) as client:
        for source_port in (4000, 7, 19, 1023):
            forger.send(source_port, 4000)
        forger.send(5000, 4000, hops=1)
        forger.send(0, 4000)
        forger.send(5000, 4000, tags=(7,))
        client.send(b"right")
        assert client.recv(100) == b"thgir"
    results = program.end()
    assert results["answered"] == 1 and results["errors"] == {"loop": 5, "source-port": 1}


def test_two_echoes_end(packets):
    """Each echo takes one of the 64 hops."""
    received = link_of(HERE, "x0")["stats64"]["rx"]["packets"]
    programs = [packets("echo", "--port", "4001"),
                packets("echo", "--port", "4002", where=THERE, interface="x1")]
    forger = Forger()
    with forger.raw:
        forger.send(4002, 4001)
    wait_until(lambda: link_of(HERE, "x0")["stats64"]["rx"]["packets"] >= received + 32, "they echo", LIMIT)
    answered = [program.end()["answered"] for program in programs]
    assert 2 <= sum(answered) <= 63


def test_ping(packets):
    program = packets("ping")
    with namespace(THERE):
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    raw.settimeout(LIMIT)
    with raw:
        for i in range(20):
            body = struct.pack(">HH", 77, i) + bytes(range(56))
            request = struct.pack(">BBH", 8, 0, checksum(b"\x08\0\0\0" + body)) + body
            raw.sendto(request, (ADDRESS, 0))
            while True:
                reply = raw.recv(4096)[20:]
                if reply[0] == 0 and reply[4:6] == body[:2]:
                    break
            assert reply[4:] == body and checksum(reply) == 0
    results = program.end()
    assert results["answered"] == 20
    assert results["rules"][0]["rule"] == f"icmp vlan 0 dst {ADDRESS} type 8 to 0"


def test_filter(packets):
    program = packets("filter", "--every", "10", "--rule", "udp dport 9 to 0",
                      "--rule", "tcp dport 80 to 0")
    with udp(9) as client:
        for _ in range(25):
            client.send(b"x")
    with namespace(THERE):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("x1", 0x0800))
    text = b"GET /index.html HTTP/1.1\r\n\r\n"
    tcp = struct.pack(">HHIIBBHHH", 1, 80, 0, 0, 0x50, 0x18, 100, 0, 0) + text
    pseudo = socket.inet_aton(PEER) + socket.inet_aton(ADDRESS) + struct.pack(">HH", 6, len(tcp))
    tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + pseudo[:8]
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    with raw:
        raw.send(b"\xff" * 6 + b"\2" + bytes(5) + b"\x08\0" + ip + tcp)
    deadline = time.monotonic() + LIMIT
    text = ""
    while "HTTP: " not in text and time.monotonic() < deadline:
        text += program.process.stdout.readline()
    results = program.end()
    assert "HTTP: GET /index.html HTTP/1.1\n" in text
    assert results["http_gets"] == 1 and results["packets"] == 26
    assert 1 <= results["statistics"] <= 2 and results["missed"] == 0


def test_capture(packets, tmp_path):
    file = tmp_path / "c.pcap"
    program = packets("capture", "--rule", "udp dport 9 to 0", "--file", str(file), "-n", "30")
    with udp(9) as client:
        for i in range(30):
            client.send(b"%02d" % i + bytes(i))
    assert program.process.wait(LIMIT) == 0  # by itself
    data = file.read_bytes()
    assert struct.unpack("IHHIIII", data[:24])[0] == 0xa1b23c4d
    at = 24
    for i in range(30):
        _, _, kept, length = struct.unpack("IIII", data[at:at + 16])
        frame = data[at + 16:at + 16 + kept]
        assert kept == length == 44 + i and frame[42:] == b"%02d" % i + bytes(i)
        at += 16 + kept
    assert at == len(data)


def test_a_capture_that_cannot_be_written(packets):
    """The file has every packet that is reported as captured: the capture ends at the first that is not written."""
    program = packets("capture", "--rule", "udp dport 9 to 0", "--file", "/dev/full", "-n", "30")
    with udp(9) as client:
        for _ in range(30):
            client.send(b"data")
    text, log = program.process.communicate(timeout=LIMIT)
    assert program.process.returncode == 1
    assert log.endswith("offload-packets: writing /dev/full: No space left on device\n") and "captured" not in text


def test_send(packets):
    with namespace(THERE):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((PEER, 5000))
    server.settimeout(LIMIT)
    with server:
        program = packets("send", "--from", f"{ADDRESS}:6000", "--to", f"{PEER}:5000", "--to-mac",
                          link_of(THERE, "x1")["address"], "--size", "64,200", "--rate", "100", "-n", "200")
        begin = time.monotonic()
        for i in range(200):
            message, sender = server.recvfrom(4096)
            assert sender == (ADDRESS, 6000)
            assert len(message) == (64, 200)[i % 2] and struct.unpack(">Q", message[:8])[0] == i
        assert time.monotonic() - begin > 0.3  # the first ones may come before it; without a rate all do
        assert program.process.wait(LIMIT) == 0
    results = json.loads(program.output.read_text())
    assert results["sent"] == 200 and results["late_mean_us"] >= 0


def test_the_next_hop(packets):
    next_hop = "02:00:00:00:00:77"
    with namespace(THERE):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        raw.bind(("x1", 0x0800))
    raw.settimeout(LIMIT)
    with raw:
        program = packets("send", "--from", f"{ADDRESS}:6000", "--to", f"{PEER}:5001", "--to-mac", next_hop, "-n", "1")
        wait_until(lambda: raw.recv(4096)[:6] == mac(next_hop), "a datagram comes", LIMIT)
        assert program.process.wait(LIMIT) == 0


def test_count_leaves_traffic_alone(packets):
    program = packets("count")
    with namespace(HERE):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ADDRESS, 7000))
    server.settimeout(LIMIT)
    with server, udp(7000) as client:
        for i in range(50):
            client.send(b"%d" % i)
            assert server.recv(100) == b"%d" % i
        program.end(signal.SIGTERM)
        rules = {each["rule"]: each["packets"] for each in json.loads(program.output.read_text())["rules"]}
        assert rules["udp to stack"] == 50
        client.send(b"after")
        assert server.recv(100) == b"after"


def test_queues_and_a_duration(packets):
    """The rule may name the last of four queues, and the program ends by itself."""
    program = packets("capture", "--queues", "4", "--rule", "udp dport 9 to 3", "--file", "/dev/null", "--duration",
                      f"{2 * TIME_FACTOR}s")
    with udp(9) as client:
        client.send(b"data")
    assert program.process.wait(LIMIT) == 0
    assert json.loads(program.output.read_text())["packets"] == 1


def mapped_bytes(program):
    """Returns the address space of offload-packets, which is the child of `ip netns exec` or has replaced it."""
    return int(re.search(r"VmSize:\s+(\d+)", open(f"/proc/{program.process.pid}/status").read())[1]) * 1024


def test_the_memory_of_frames(packets):
    """A frame has 2 KiB."""
    mapped = []
    for frames in (64, 8192):
        program = packets("echo", "--frames", str(frames))
        mapped.append(mapped_bytes(program))
        program.end()
    assert mapped[1] - mapped[0] > 0.9 * 8192 * 2048


@pytest.mark.parametrize("options, seen", [
    ([], {True, False}), (["--sdk-log-level", "off"], {False}), (["--log-level", "info,lib=off"], {False}),
    (["--log-format", "json"], {True, False})], ids=["default", "library", "level", "format"])
def test_the_log(packets, options, seen):
    """The program logs that it is ready; the library logs the queues."""
    program = packets("echo", *options)
    program.end()
    lines = program.log.splitlines()
    assert {"queues on" in line for line in lines} == seen
    assert ("json" in options) == all(line.startswith("{") for line in lines)


def test_killed(packets):
    """The kernel's own frames arrive at once, and the next program can use the interface."""
    program = packets("echo", "--port", "7000")
    with udp(7000) as client:
        client.send(b"ab")
        assert client.recv(10) == b"ba"
        program.process.kill()
        program.process.communicate(timeout=LIMIT)
        deadline = time.monotonic() + LIMIT
        while "xdp" in subprocess.run(["ip", "-n", HERE, "link", "show", "x0"], timeout=LIMIT,
                                      capture_output=True, text=True).stdout:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        again = packets("echo", "--port", "7000")
        client.send(b"cd")
        assert client.recv(10) == b"dc"
        again.end()


@pytest.mark.parametrize("options, wrong", [
    (["echo", "-i", "none"], "there is no interface 'none'"),
    (["count", "-i", "lo", "--rule", "udp"], "rule 'udp': expected [PROTOCOL]"),
    (["filter", "-i", "lo"], "--rule is required"),
    (["send", "-i", "lo", "--from", "x", "--to", "1.2.3.4:5"], "'x' is not an IPv4 address and port"),
    (["echo", "-i", "lo", "--frames", "100"], "--frames must be a power of two"),
])
def test_wrong_command_lines(options, wrong):
    done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode in (1, 2)
    assert wrong in done.stderr
