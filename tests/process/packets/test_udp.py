"""The request path over UDP: offload-worker --udp on one end of a wire, offload-client --udp on the other."""
import contextlib
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from frames import checksum
from harness import BACKEND, BIN, RIGHT, ROOT, SERVICES, TIME_FACTOR, scaled, wait_until
from lossy_wire import LossyWire
from udp_worker import ADDRESS6, PORT, add_ipv6, figures_of, request, page_of, worker  # noqa: F401, a fixture
from veth import ADDRESS, HERE, LIMIT, PEER, THERE, both_ends, namespace, run

sys.path.insert(0, str(ROOT / "clients/python/src"))

from offload_client import PacketClient  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def wire():
    if not (BIN / "offload-packets").exists():
        pytest.skip("offload-worker has no --udp: no libbpf or clang")
    with both_ends():
        add_ipv6()
        run("ip", "-n", THERE, "link", "set", "lo", "up")  # for datagrams to a socket in the same namespace
        yield


def client_command(tmp_path, *options, to=ADDRESS):
    if "--response-timeout" not in options:  # a busy machine may keep a thread waiting for a second
        options += ("--response-timeout", f"{LIMIT:.0f}s")
    return ["ip", "netns", "exec", THERE, BIN / "offload-client", "--udp", "-s", to, "-p", str(PORT),
            "--output", tmp_path / "client.json", *options]


def client(tmp_path, *options, status=0, to=ADDRESS):
    """Runs the client; returns the fates of its datagrams, and its results."""
    done = subprocess.run(client_command(tmp_path, *options, to=to), capture_output=True, text=True,
                          timeout=4 * LIMIT)
    assert done.returncode in (RIGHT if status == 0 else (status,)), done.stderr + done.stdout
    result = json.loads((tmp_path / "client.json").read_text())["runs"][0]
    return result["datagrams"], result


def sizes():
    """Returns sizes from none to the largest datagram of this wire, and at the borders of the services' blocks."""
    return ",".join(f"{size}:1" for size in (0, 1, 3, 4, 15, 16, 17, 84, 85, 500, 1451, 1452))


@pytest.mark.parametrize("service", ["reverse", "echo", "crc32c"])
def test_every_response_is_right(worker, tmp_path, service):
    program = worker("--udp-service", service)
    count = scaled(20000)
    datagrams, result = client(tmp_path, "--mix", sizes(), "--service", service, "-i", str(count))
    assert datagrams == {"sent": count, "answered": count, "lost": 0, "duplicates": 0, "late": 0,
                         "wrong": 0, "sent_again": 0}
    assert result["valid_responses"] == count and result["errors"] == {}
    assert program.end() == {"datagrams": count, "answered": count, "refused": 0, "malformed": 0,
                             "bad_frames": 0}


def test_ipv6_and_an_open_loop(worker, tmp_path):
    program = worker(place=f"[fd09::1]:{PORT}")
    datagrams, result = client(tmp_path, "--size", "100", "--rate", "1000", "-i", "300",
                               "--lag-tolerance", "1s", to="fd09::1")
    assert datagrams["answered"] == 300 and result["response_time_us"]["count"] == 300
    assert program.end(signal.SIGINT)["answered"] == 300


@contextlib.contextmanager
def sockets_with_ports(first, count):
    """Sets the range of ports: a client with `count` sockets has all these ports, in some order."""
    with namespace(THERE), open("/proc/sys/net/ipv4/ip_local_port_range", "r+") as ports:
        before = ports.read()
        ports.seek(0)
        ports.write(f"{first} {first + count - 1}")
    try:
        yield [first + i for i in range(count)]
    finally:
        with namespace(THERE), open("/proc/sys/net/ipv4/ip_local_port_range", "w") as ports:
            ports.write(before)


def queue_of(source_port, queues):
    """Returns which of `queues` queues the XDP program chooses (lib/packets/program/steering.h)."""
    mixed = int.from_bytes(socket.inet_aton(PEER), sys.byteorder) ^ (source_port << 16 | PORT)
    for _ in range(2):
        mixed ^= mixed >> 16
        mixed = mixed * 0x9e3779b1 & 0xffffffff
    return (mixed >> 16) * queues >> 16


def by_queue(ports, queues, each=1):
    """Returns how many datagrams each queue gets if each of these ports sends `each`."""
    counts = [0] * queues
    for port in ports:
        counts[queue_of(port, queues)] += each
    return counts


def documented(heading):
    section = (ROOT / "docs/reference/metrics.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \| (?:gauge|counter) \|", section, re.MULTILINE))


def test_metrics_are_what_was_done(worker, tmp_path):
    run("ip", "-n", HERE, "link", "set", "lo", "up")
    program = worker("--metrics", "0", "--udp-queues", "2", "--udp-service", "echo")
    before = figures_of(program)
    assert before["offload_udp_datagrams_total"] == 0 and before["offload_udp_ready"] == 1
    with sockets_with_ports(5000, 8) as ports:
        datagrams, _ = client(tmp_path, "--size", "100", "-i", "300", "--connections", "8", "--service", "echo")
    count = datagrams["answered"]
    assert count == datagrams["sent"] == 8 * 300 and not datagrams["sent_again"]
    strangers = [6000, 6001, 6002]
    for port in strangers:
        with namespace(THERE), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((PEER, port))
            stranger.sendto(b"no request", (ADDRESS, PORT))
    rule = f'rule="udp vlan 0 dst {ADDRESS} dport {PORT} to 0-1"'
    deadline = time.monotonic() + LIMIT
    while (now := figures_of(program))["offload_udp_datagrams_total"] < count + 3 \
            or now[f"offload_udp_rule_packets_total{{{rule}}}"] < count + 3:
        assert time.monotonic() < deadline, now
        time.sleep(0.1)
    assert now['offload_udp_answers_total{result="ok"}'] == count
    assert now['offload_udp_answers_total{result="worker_failed"}'] == 0
    assert now['offload_udp_dropped_total{reason="request"}'] == 3
    assert now['offload_udp_dropped_total{reason="frame"}'] == 0
    frame = 14 + 20 + 8 + 8 + 12 + 100
    assert now["offload_udp_transmit_bytes_total"] == count * frame
    assert now["offload_udp_receive_bytes_total"] == count * frame + 3 * (14 + 20 + 8 + 10)
    assert now[f"offload_udp_rule_packets_total{{{rule}}}"] == count + 3
    assert now[f"offload_udp_rule_bytes_total{{{rule}}}"] == now["offload_udp_receive_bytes_total"]
    assert now["offload_udp_wake_ups_total"] > 0
    assert now["offload_udp_busy_seconds_total"] > before["offload_udp_busy_seconds_total"]
    assert now["offload_udp_poll_seconds_total"] > before["offload_udp_poll_seconds_total"]
    of_threads = figures_of(program, "?per_thread=1")
    shares = [of_threads[f'offload_udp_datagrams_total{{queue="{i}"}}'] for i in range(2)]
    answered, dropped = by_queue(ports, 2, each=300), by_queue(strangers, 2)
    assert min(answered) > 0 and min(dropped) > 0, "choose other ports"
    assert shares == [sum(both) for both in zip(answered, dropped)]
    families = set(re.findall(r"^# TYPE (\S+)", page_of(program)[1], re.MULTILINE))
    assert families == documented("Both programs") | documented("Worker with --udp")
    assert page_of(program, "/healthz")[0] == page_of(program, "/readyz")[0] == 200
    assert json.loads(page_of(program, "/status")[1])["state"]["service"] == "echo"
    program.end()


def module(name):
    path = SERVICES / f"test_{name}.so"
    if not path.exists() or BACKEND != "cpu":
        pytest.skip(f"{path} is not built, or has no code for a GPU")
    return path


def test_a_service_of_a_module(worker, tmp_path):
    program = worker("--service-module", module("shifted"), "--udp-service", "shifted")
    client(tmp_path, "-m", "HAL", "-e", "IBM", "-i", "500")
    assert program.end()["answered"] == 500


def test_an_answer_that_does_not_fit_is_refused(worker, tmp_path):
    program = worker("--service-module", module("shifted"), "--udp-service", "shifted",
                     "--service-option", "longer=1452")
    datagrams, result = client(tmp_path, "--mix", "1:1", "-i", "20", "--on-error", "count", status=1)
    assert datagrams["answered"] == 20 and result["errors"] == {"worker_failed": 20}
    assert program.end()["refused"] == 20


def test_clients_are_spread_over_queues(worker, tmp_path):
    program = worker("--udp-queues", "4", place=f"x0:{PORT}")
    each = scaled(300)
    with sockets_with_ports(5000, 32) as ports:
        datagrams, _ = client(tmp_path, "--size", "64", "--connections", "32", "-i", str(each),
                              "--max-concurrent-messages", "8")
    assert datagrams["answered"] == datagrams["sent"] == 32 * each
    assert program.end()["answered"] == datagrams["sent"]
    counts = list(map(int, re.search(r"by queue: (.*)", program.log)[1].split(",")))
    shares = by_queue(ports, 4, each)
    assert shares == [7 * each, 9 * each, 8 * each, 8 * each]  # as in spread_test.cpp
    assert counts[:4] == shares and not any(counts[4:])


def ethernet_frame(payload, ip_checksum=0, udp_checksum=0, udp_length=None):
    """Returns a datagram to the worker. `ip_checksum`, `udp_checksum`: the errors of the checksums."""
    udp = struct.pack(">HHHH", 999, PORT, 8 + len(payload) if udp_length is None else udp_length, 0)
    addresses = socket.inet_aton("10.9.0.2") + socket.inet_aton(ADDRESS)
    pseudo = addresses + struct.pack(">HH", 17, 8 + len(payload))
    right = checksum(pseudo + udp + payload)
    udp = udp[:6] + struct.pack(">H", right ^ udp_checksum)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0) + addresses
    ip = ip[:10] + struct.pack(">H", checksum(ip) ^ ip_checksum) + ip[12:]
    return b"\xff" * 6 + b"\2" + bytes(5) + b"\x08\0" + ip + udp + payload


def test_malformed_datagrams_cost_nobody_else(worker, tmp_path):
    program = worker()
    command = client_command(tmp_path, "--size", "100", "--rate", "2000", "--duration", "1s",
                             "--lag-tolerance", "1s")
    with namespace(THERE):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        raw.bind(("x1", 0x0800))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.settimeout(LIMIT)
    udp.connect((ADDRESS, PORT))
    wrong_requests = [b"", b"x", request(1, b"")[:19], request(2, b"abc", size=14),
                      request(3, b"abc", size=16), request(4, b"abc", length=4),
                      request(5, b"abc", length=0xffffffff), request(6, b"abc", kind=5),
                      request(7, b"abc", size=0), request(8, b"abc") + b"y"]
    wrong_frames = [ethernet_frame(request(9, b"abc"), ip_checksum=1),
                    ethernet_frame(request(10, b"abc"), udp_checksum=0x100),
                    ethernet_frame(request(11, b"abc"), udp_length=7),
                    ethernet_frame(request(12, b"abc"), udp_length=200)]
    rounds = 20
    with raw, udp, subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
        for _ in range(rounds):
            for datagram in wrong_requests:
                udp.send(datagram)
            for frame in wrong_frames:
                raw.send(frame)
            udp.send(request(99, b"right"))
            assert udp.recv(4096) == struct.pack(">QIII", 99, 17, 5, 5) + b"thgir"
        assert load.wait(4 * LIMIT) in RIGHT
    datagrams = json.loads((tmp_path / "client.json").read_text())["runs"][0]["datagrams"]
    assert datagrams["answered"] == datagrams["sent"] > 0
    counts = program.end()
    assert counts["bad_frames"] == rounds * len(wrong_frames)
    assert counts["malformed"] == rounds * len(wrong_requests) + counts["bad_frames"]
    assert counts["answered"] == datagrams["answered"] + rounds


@pytest.mark.parametrize("retries", [0, 20])
def test_loss_and_duplicates_are_counted(worker, tmp_path, retries):
    program = worker()
    count = 2000
    wire_between = LossyWire(PORT, late_s=0.15 * TIME_FACTOR)
    try:
        datagrams, result = client(tmp_path, "--mix", "0:1,40:1,900:1", "-i", str(count),
                                   "--max-concurrent-messages", "64", "--on-error", "count",
                                   "--response-timeout", f"{0.1 * TIME_FACTOR}s", "--udp-retries",
                                   str(retries), to="10.9.0.2", status=0 if retries else 1)
    finally:
        wire_between.close()
    assert datagrams["sent"] == count == datagrams["answered"] + datagrams["lost"]
    assert datagrams["wrong"] == 0 and datagrams["duplicates"] > 50
    assert result["valid_responses"] == datagrams["answered"]
    if retries:
        assert datagrams["lost"] == 0 and result["errors"] == {}
        assert datagrams["sent_again"] > 100
    else:
        assert datagrams["lost"] == result["errors"]["time_out"] == result["unanswered_requests"] > 100
        assert datagrams["late"] > 10 and datagrams["sent_again"] == 0
    counts = program.end()
    assert counts["malformed"] == 0 and counts["answered"] == counts["datagrams"] > 0.9 * count


def test_netem(worker, tmp_path):
    """The kernel loses and duplicates datagrams on the wire itself."""
    netem = ["tc", "-n", THERE, "qdisc", "add", "dev", "x1", "root", "netem", "loss", "5%",
             "duplicate", "5%"]
    try:
        added = subprocess.run(netem, capture_output=True, text=True, timeout=LIMIT)
    except OSError as error:
        pytest.skip(f"no tc: {error}")
    if added.returncode != 0:
        pytest.skip(f"no netem: {added.stderr.strip()}")
    try:
        worker()
        datagrams, _ = client(tmp_path, "--size", "64", "-i", "2000", "--on-error", "count",
                              "--response-timeout", "200ms", status=1)
    finally:
        run("tc", "-n", THERE, "qdisc", "del", "dev", "x1", "root")
    assert datagrams["sent"] == 2000 == datagrams["answered"] + datagrams["lost"]
    assert datagrams["lost"] > 20 and datagrams["duplicates"] > 20 and datagrams["wrong"] == 0


def test_a_worker_that_is_killed_and_another_one(worker, tmp_path):
    def serves(program):
        wait_until(lambda: figures_of(program)["offload_udp_datagrams_total"] > 100, "some are answered", LIMIT)

    run("ip", "-n", HERE, "link", "set", "lo", "up")
    first = worker("--metrics", "0")
    command = client_command(tmp_path, "--size", "64", "--on-error", "count", "--duration", "500s",
                             "--response-timeout", "100ms", "--rate", "1000",
                             "--lag-tolerance", "1s", "--max-concurrent-messages", "1024")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        serves(first)
        first.kill()
        second = worker("--metrics", "0")
        serves(second)
        load.send_signal(signal.SIGINT)
        assert load.wait(4 * LIMIT) == 1
    result = json.loads((tmp_path / "client.json").read_text())["runs"][0]
    datagrams = result["datagrams"]
    assert datagrams["sent"] >= datagrams["answered"] + datagrams["lost"]  # the client was interrupted
    assert datagrams["lost"] > 0 and datagrams["wrong"] == 0
    after = second.end()["answered"]
    # The first worker took over a hundred. On a busy machine answers of the second come too late, or after the end.
    assert 0 < after < datagrams["sent"] and datagrams["answered"] > 0


def test_nobody_listens(tmp_path):
    done = subprocess.run(client_command(tmp_path, "-i", "1000", "--max-concurrent-messages", "1",
                                         "--response-timeout", "100ms"),
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1
    assert re.search("Connection refused|no answer for 0.1", done.stderr), done.stderr


@pytest.mark.parametrize("program, options, wrong", [
    ("worker", ["--udp", "10.9.0.1"], "is not ADDRESS:PORT or INTERFACE:PORT"),
    ("worker", ["--udp", "lo:0"], "is not ADDRESS:PORT or INTERFACE:PORT"),
    ("worker", ["--udp", "none:4000", "--backend", "cpu"], "there is no Ethernet interface 'none'"),
    ("worker", ["--udp", "192.0.2.77:4000", "--backend", "cpu"],
     "no Ethernet interface of this machine has the address 192.0.2.77"),
    ("worker", ["--udp", "lo:4000", "--backend", "cpu", "--udp-service", "x"], "no service 'x'"),
    ("worker", ["--udp", "lo:4000", "--stand-by"], "--udp excludes --stand-by"),
    ("worker", ["--udp", "lo:4000", "--backend", "graph"], "--udp excludes --backend graph"),
    ("worker", ["--udp-queues", "2"], "--udp-queues requires --udp"),
    ("client", ["--udp", "-s", "127.0.0.1", "--tls"], "--udp excludes --tls"),
    ("client", ["--udp", "-s", "127.0.0.1", "--size", "70k"], "does not fit in a datagram"),
    ("client", ["-s", "127.0.0.1", "--udp-retries", "1"], "--udp-retries requires --udp"),
])
def test_wrong_command_lines(program, options, wrong):
    done = subprocess.run([BIN / f"offload-{program}", *options], capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode in (1, 2)
    assert wrong in done.stderr


@pytest.mark.parametrize("host, most", [(ADDRESS, 1452), (ADDRESS6, 1432)])
def test_the_python_client(worker, host, most):
    program = worker(place=f"[{host}]:{PORT}" if ":" in host else f"{host}:{PORT}")
    with namespace(THERE):
        client = PacketClient(host, PORT, timeout=LIMIT)
    with client:
        for size in (0, 1, 16, 500, most):
            request_bytes = bytes(index % 251 for index in range(size))
            assert client.request(request_bytes) == request_bytes[::-1]
        with pytest.raises(ValueError, match=f"at most {most} bytes"):
            client.request(bytes(most + 1))
    assert program.end()["answered"] == 5
