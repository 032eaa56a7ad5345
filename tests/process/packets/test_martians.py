"""The worker answers the same datagrams as the kernel's own stack, for all kinds of source and destination."""
import contextlib
import os
import select
import socket
import subprocess
import threading
from collections import Counter

import pytest

from frames import Datagram, mac, udp_frame
from harness import BIN, wait_until
from udp_worker import ADDRESS6, PEER6, PORT, add_ipv6, figures_of, request, worker  # noqa: F401, a fixture
from veth import ADDRESS, HERE, LIMIT, PEER, THERE, both_ends, link_of, namespace, run

ROUTED, HOST, OTHER_ADDRESS, OTHER_ADDRESS6 = f"pk{os.getpid()}c", "10.9.1.2", "10.9.1.1", "fd0a::1"
OF_KERNEL = PORT + 1
OWN, STATION, BROADCAST = "own", "02:00:00:00:00:99", "ff:ff:ff:ff:ff:ff"

# The worker's reaction to a datagram: "ok", it answers; "stack", it leaves it to the kernel; else why it drops it.
KINDS = [
    ("ok", {}),
    *(("ok", {"source": each}) for each in ("10.9.0.0", "10.9.0.99", "192.0.2.1", "169.254.3.4", "0.1.2.3", "240.0.0.1",
                                            "255.255.255.254")),
    *(("source", {"source": each}) for each in (
        "255.255.255.255", "224.0.0.1", "239.255.255.250", "10.9.0.255", "10.9.1.255", ADDRESS, OTHER_ADDRESS,
        "127.0.0.1", "127.9.9.9", "0.0.0.0")),
    ("source_port", {"source_port": 0}),
    ("ok", {"source_port": OWN}),
    ("source", {"source": ADDRESS, "source_port": OWN}),
    ("ok", {"hops": 1}),
    ("ok", {"hops": 0}),
    ("ok", {"has_checksum": False}),
    ("ok", {"options": bytes((7, 7, 4, 0, 0, 0, 0, 0))}),  # record route
    ("destination", {"options": bytes((131, 7, 4, 10, 9, 0, 77, 0))}),  # loose source route, and strict, used up
    ("destination", {"options": bytes((137, 7, 8, 10, 9, 0, 77, 0))}),
    ("destination", {"options": bytes((7, 99, 4, 0))}),
    *(("stack", {"destination": each}) for each in (
        "10.9.0.255", "255.255.255.255", "224.0.0.1", "127.0.0.1", "0.0.0.0", "10.9.0.77", OTHER_ADDRESS)),
    ("ethernet", {"to": STATION}),
    ("ok", {"to": BROADCAST}),
    ("ok", {"to": "01:00:5e:00:00:01"}),
    ("ethernet", {"by": BROADCAST}),
    ("ethernet", {"by": "01:00:5e:00:00:01"}),
    ("ethernet", {"by": OWN}),
    *(("ok", {"tags": each}) for each in ((0,), (0x6000,), (0, 0))),
    *(("stack", {"tags": each}) for each in ((7,), (0x6007,), (7, 8), (0, 7), (7, 0))),
    ("ok", {"destination": ADDRESS6}),
    *(("ok", {"source": each}) for each in ("fd09::99", "2001:db8::1")),
    *(("source", {"source": each}) for each in (
        "ff02::1", "ff05::1:3", "::1", "::", ADDRESS6, OTHER_ADDRESS6, "::ffff:10.9.0.2", "::ffff:127.0.0.1")),
    ("source_port", {"destination": ADDRESS6, "source_port": 0}),
    ("ok", {"destination": ADDRESS6, "hops": 0}),
    ("frame", {"destination": ADDRESS6, "has_checksum": False}),
    *(("stack", {"destination": each}) for each in ("ff02::1", "fd09::77", "::1", "::", OTHER_ADDRESS6)),
    ("ethernet", {"destination": ADDRESS6, "to": STATION}),
    ("ok", {"destination": ADDRESS6, "to": "33:33:00:00:00:01"}),
    ("ok", {"destination": ADDRESS6, "tags": (0,)}),
    ("stack", {"destination": ADDRESS6, "tags": (7,)}),
]


def stricter(kind):
    """Returns whether the worker does not answer, but the kernel does: the worker answers to the Ethernet address that
    the frame came from, the kernel asks its neighbours for the address."""
    return kind.get("by") in (BROADCAST, "01:00:5e:00:00:01", OWN)


@pytest.fixture(scope="module", autouse=True)
def wire():
    """Makes a wire with one queue, so that all frames stay in order; behind HERE is another host, ROUTED."""
    if not (BIN / "offload-packets").exists():
        pytest.skip("offload-worker has no --udp: no libbpf or clang")
    with both_ends("numrxqueues", "1", "numtxqueues", "1"):
        add_ipv6()
        run("ip", "-n", HERE, "link", "set", "lo", "up")
        try:
            run("ip", "netns", "add", ROUTED)
            run("ip", "link", "add", "y0", "netns", HERE, "type", "veth", "peer", "name", "y1", "netns", ROUTED)
            for name, interface, *addresses in ((HERE, "y0", f"{OTHER_ADDRESS}/24", f"{OTHER_ADDRESS6}/64"),
                                                (ROUTED, "y1", f"{HOST}/24")):
                for each in addresses:
                    run("ip", "-n", name, "addr", "add", each, "dev", interface)
                run("ip", "-n", name, "link", "set", interface, "up")
            run("ip", "-n", ROUTED, "route", "add", "default", "via", OTHER_ADDRESS)
            run("ip", "-n", THERE, "route", "add", "10.9.1.0/24", "via", ADDRESS)
            # The kernel has a route to each source that it would answer.
            run("ip", "-n", HERE, "route", "add", "default", "via", PEER)
            run("ip", "-n", HERE, "-6", "route", "add", "default", "via", PEER6)
            for each in (PEER, "10.9.0.0", "10.9.0.99", PEER6, "fd09::99"):
                run("ip", "-n", HERE, "neigh", "replace", each, "lladdr", link_of(THERE, "x1")["address"], "dev", "x0")
            with namespace(HERE):
                for each in ("all", "default", "x0"):
                    for name in ("rp_filter", "accept_source_route", "drop_unicast_in_l2_multicast", "accept_local"):
                        set_option(f"conf/{each}/{name}", 0)
            yield
        finally:
            subprocess.run(["ip", "netns", "del", ROUTED], capture_output=True, timeout=LIMIT)


def set_option(name, value):
    with open(f"/proc/sys/net/ipv4/{name}", "w") as option:
        option.write(str(value))


@contextlib.contextmanager
def answering(name, address, port, answer):
    """A socket of the kernel's stack that sends `answer`(datagram) to each sender."""
    with namespace(name):
        own = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    with own:
        own.bind((address, port))
        end, stop = os.pipe()

        def serve():
            while end not in select.select([own, end], [], [])[0]:
                datagram, sender = own.recvfrom(2048)
                with contextlib.suppress(OSError):  # there is no route to the sender
                    own.sendto(answer(datagram), sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            os.write(stop, b"x")
            thread.join(LIMIT)
            os.close(end)
            os.close(stop)


class Wire:
    """The far end of the wire, which sends and receives frames."""

    def __init__(self):
        self.here, self.there = (mac(link_of(*each)["address"]) for each in ((HERE, "x0"), (THERE, "x1")))
        with namespace(THERE):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind(("x1", 0x0003))
        self.socket.settimeout(LIMIT)

    def frame(self, port, number, kind):
        is_v6 = ":" in kind.get("source", "") + kind.get("destination", "")
        parts = {"source": PEER6 if is_v6 else PEER, "destination": ADDRESS6 if is_v6 else ADDRESS, "to": self.here,
                 "by": self.there, "source_port": 5000, **kind}
        for name in ("to", "by"):
            if isinstance(parts[name], str):
                parts[name] = self.here if parts[name] == OWN else mac(parts[name])
        if parts["source_port"] == OWN:
            parts["source_port"] = port
        return udp_frame(request(number, b"hello"), port=port, **parts)

    def answers(self, number, kind):
        """Sends a datagram of this kind to worker and kernel; returns the answers by port. No other answer may come."""
        fence = {"destination": ADDRESS6 if ":" in kind.get("source", "") + kind.get("destination", "") else ADDRESS}
        for each, datagram in ((2 * number, kind), (2 * number + 1, fence)):
            for port in (PORT, OF_KERNEL):
                self.socket.send(self.frame(port, each, datagram))
        found, fences = {}, 0
        while fences < 2:
            frame, where = self.socket.recvfrom(2048)
            datagram = Datagram(frame)
            if where[2] == socket.PACKET_OUTGOING or datagram.source_port not in (PORT, OF_KERNEL):
                continue
            answered = int.from_bytes(datagram.payload[:8], "big")
            assert answered in (2 * number, 2 * number + 1), "an answer that comes late"
            if answered == 2 * number:
                found[datagram.source_port] = datagram
            else:
                fences += 1
        return found


def expect_turned(answer, asked):
    """Checks that the answer goes from the asked address to the asking one."""
    assert answer.destination == asked.source and answer.source == asked.destination
    assert answer.port == asked.source_port and answer.to == asked.by


def test_as_the_kernel_answers(worker):  # noqa: F811
    assert len(KINDS) >= 40
    program = worker("--metrics", "0", place=f"x0:{PORT}")
    ends = Wire()
    with ends.socket, answering(HERE, ADDRESS, OF_KERNEL, bytes), answering(HERE, ADDRESS6, OF_KERNEL, bytes):
        for number, (outcome, kind) in enumerate(KINDS):
            answers = ends.answers(number, kind)
            assert (PORT in answers) == (outcome == "ok"), kind
            assert (OF_KERNEL in answers) == (outcome == "ok" or stricter(kind)), kind
            for port, answer in answers.items():
                assert answer.by == ends.here
                if port == PORT:
                    expect_turned(answer, Datagram(ends.frame(PORT, 2 * number, kind)))
    expected = Counter(outcome for outcome, _ in KINDS)
    left_alone = expected.pop("stack")
    expected["ok"] += len(KINDS)  # the second datagrams

    def counts():
        figures = figures_of(program)
        dropped = {name.split('"')[1]: value for name, value in figures.items()
                   if name.startswith("offload_udp_dropped_total")}
        ok = figures['offload_udp_answers_total{result="ok"}']
        return {"ok": ok, **{name: value for name, value in dropped.items() if value != 0}}

    wait_until(lambda: sum(counts().values()) >= sum(expected.values()), "all are counted", LIMIT)
    assert counts() == expected
    figures = figures_of(program)
    assert figures["offload_udp_datagrams_total"] == sum(expected.values())
    assert figures['offload_udp_rule_packets_total{rule="no rule"}'] >= left_alone
    program.end()


@contextlib.contextmanager
def forwarding():
    with namespace(HERE):
        set_option("ip_forward", 1)
    try:
        with answering(ROUTED, HOST, PORT, lambda _: b"the host"):
            yield
    finally:
        with namespace(HERE):
            set_option("ip_forward", 0)


@pytest.mark.parametrize("place", [f"x0:{PORT}", f"{ADDRESS}:{PORT}"])
def test_what_this_host_forwards_is_left_alone(worker, place):  # noqa: F811
    program = worker(place=place)
    with namespace(THERE):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(LIMIT)
    with client, forwarding():
        client.sendto(request(1, b"hello"), (HOST, PORT))
        assert client.recvfrom(100) == (b"the host", (HOST, PORT))
        client.sendto(request(1, b"hello"), (ADDRESS, PORT))
        assert client.recvfrom(100)[1] == (ADDRESS, PORT)
    assert program.end()["datagrams"] == 1


def test_other_addresses_of_the_interface(worker):  # noqa: F811
    """The rules follow the addresses. Requests to a removed address are not answered."""
    program = worker("--metrics", "0", place=f"x0:{PORT}")

    def rules():
        return {name for name in figures_of(program) if name.startswith("offload_udp_rule_packets_total")}

    def has_rule(address):
        return any(f"dst {address} " in each for each in rules())

    assert has_rule(ADDRESS) and not has_rule("10.9.0.5")
    run("ip", "-n", HERE, "addr", "add", "10.9.0.5/24", "dev", "x0")
    wait_until(lambda: has_rule("10.9.0.5"), "it has a rule", LIMIT)
    with namespace(THERE):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(LIMIT)
    with client:
        client.sendto(request(1, b"hello"), ("10.9.0.5", PORT))
        assert client.recvfrom(100)[1] == ("10.9.0.5", PORT)
    run("ip", "-n", HERE, "addr", "del", "10.9.0.5/24", "dev", "x0")
    wait_until(lambda: not has_rule("10.9.0.5"), "it has none", LIMIT)
    assert program.end()["answered"] == 1


def test_an_interface_without_an_address():
    run("ip", "-n", HERE, "link", "add", "z0", "type", "veth", "peer", "name", "z1")
    done = subprocess.run(["ip", "netns", "exec", HERE, BIN / "offload-worker", "--udp", f"z0:{PORT}", "--backend",
                           "cpu"], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1 and "z0 has no address; give it one" in done.stderr
