#!/usr/bin/env python3
"""UDP echo over veth: offload-packets with a GPU and with a thread, beside an echo on a plain socket.

Makes two network namespaces, so it needs root. One client with one datagram in flight, and with several; the kinds in
turn, some rounds; prints medians over the rounds. Exit status 0 only if every datagram came back, reversed. Client and plain
echo are Python, which is in all figures alike.
"""
import argparse
import array
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

BIN = Path(os.environ.get("OFFLOAD_BIN_DIR", Path(__file__).resolve().parents[2] / "build/release/bin"))
HERE, THERE = f"cmp{os.getpid()}a", f"cmp{os.getpid()}b"
ADDRESS, PORT = "10.9.0.1", 4000
CLONE_NEWNET = 0x40000000
LIMIT_S = 20


def run(*command):
    subprocess.run(command, check=True, timeout=LIMIT_S)


@contextlib.contextmanager
def namespace(name):
    """This thread is in the namespace meanwhile, and sockets that it makes stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{name}") as other:
        if libc.setns(other.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(own.fileno(), CLONE_NEWNET)


@contextlib.contextmanager
def wire():
    try:
        for name in (HERE, THERE):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "x0", "netns", HERE, "type", "veth", "peer", "name", "x1", "netns", THERE)
        for name, interface, address in ((HERE, "x0", ADDRESS), (THERE, "x1", "10.9.0.2")):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", interface)
            run("ip", "-n", name, "link", "set", interface, "up")
        # Like `ethtool -K x1 tx off`: over veth there is no card to complete checksums.
        with namespace(THERE), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            value = array.array("B", struct.pack("II", 0x17, 0))
            fcntl.ioctl(control, 0x8946, struct.pack("16sP", b"x1", value.buffer_info()[0]))
        yield
    finally:
        for name in (HERE, THERE):
            subprocess.run(["ip", "netns", "del", name], timeout=LIMIT_S, check=False)


@contextlib.contextmanager
def plain_socket():
    with namespace(HERE):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((ADDRESS, PORT))
    server.settimeout(0.2)
    over = threading.Event()

    def answer():
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                message, peer = server.recvfrom(4096)
                server.sendto(message[::-1], peer)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        server.close()


@contextlib.contextmanager
def offload_packets(backend):
    process = subprocess.Popen(["ip", "netns", "exec", HERE, BIN / "offload-packets", "echo", "-i", "x0", "--port", str(PORT),
                                "--backend", backend], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        log = ""
        while "ready" not in log:
            line = process.stderr.readline()
            log += line
            if not line:
                sys.exit(log)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)


def measure(size, count, window):
    """Times of the datagrams in us, and datagrams a second."""
    with namespace(THERE):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(2)
    client.connect((ADDRESS, PORT))
    payload = os.urandom(size - 4)
    sent, times = [], []
    begun = time.perf_counter()
    for i in range(count + window):
        if i >= window:
            number = i - window
            answer = client.recv(4096)
            times.append((time.perf_counter() - sent[number]) * 1e6)
            if answer != (struct.pack("<I", number) + payload)[::-1]:
                sys.exit(f"datagram {number} came back wrong")
        if i < count:
            sent.append(time.perf_counter())
            client.send(struct.pack("<I", i) + payload)
    taken = time.perf_counter() - begun
    client.close()
    return sorted(times), count / taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="socket,cpu,cuda", help="which, separated by commas")
    parser.add_argument("--size", type=int, default=64, help="bytes, 4 at least")
    parser.add_argument("--count", type=int, default=5000, help="datagrams of a run")
    parser.add_argument("--in-flight", type=int, default=32, help="of the second figure")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    figures = {kind: [] for kind in kinds}
    with wire():
        for _ in range(options.rounds):
            for kind in kinds:
                with plain_socket() if kind == "socket" else offload_packets(kind):
                    measure(options.size, 500, 1)
                    times, _ = measure(options.size, options.count, 1)
                    _, rate = measure(options.size, options.count, options.in_flight)
                figures[kind].append((times[len(times) // 2], times[len(times) * 99 // 100], rate))
    print(f"{options.size} bytes, {options.rounds} rounds of {options.count}")
    for kind in kinds:
        p50, p99, rate = (statistics.median(column) for column in zip(*figures[kind]))
        print(f"{kind:8} one in flight: p50 {p50:7.1f} us  p99 {p99:7.1f} us   {options.in_flight} in flight: {rate:9.0f}/s")


if __name__ == "__main__":
    main()
