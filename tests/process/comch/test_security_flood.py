"""Strangers in numbers on the control port: a worker with the key is let in all the same."""
import contextlib
import socket
import subprocess
import sys
import time

import pytest

from harness import LONG, PATIENCE, TIME_FACTOR, Program, free_port, wait_until
from relay import Relay

# Strangers of one address, as many a second as the machine gives: some thousand. `silent` ones stay
# for a while without a word, others say what no holder of the key would.
FLOOD = """
import socket, struct, sys, time
port, rate, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
words = {"silent": b"", "garbage": b"GET / HTTP/1.1\\r\\n\\r\\n",
         "tls": b"\\x16\\x03\\x01\\x00\\x40" + bytes(64)}[kind]
open_ones, count, began = [], 0, time.monotonic()
while True:
    for _ in range(25):
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.connect_ex(("127.0.0.1", port))
        try:
            if words:
                s.send(words)
        except OSError:
            pass
        open_ones.append(s)
        count += 1
    while len(open_ones) > 400:
        open_ones.pop(0).close()
    ahead = count / rate - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
    if count % 2500 == 0:
        print(count / (time.monotonic() - began), flush=True)
"""
RATE = 5000
FAR = 0.010  # seconds each way: the worker is 20 ms away
TRIES = 20 if LONG else 3


@pytest.mark.parametrize("source", ["127.0.0.2", "127.0.0.1"])
@pytest.mark.parametrize("kind", ["silent", "garbage", "tls"])
def test_a_worker_attaches_among_strangers(stage, kind, source):
    """`source`: whether the worker comes from another address than they do, or from theirs."""
    port = free_port()
    key = stage.key_options()
    server = stage.program("offload-server", "--comch", f"tcp:127.0.0.1:{port}", "-p", 0, *key)
    server.wait_for_log("waiting for a worker")
    flood = subprocess.Popen([sys.executable, "-ISc", FLOOD, str(port), str(RATE), kind],
                             stdout=subprocess.PIPE, text=True)
    try:
        rate = float(flood.stdout.readline())
        times = []
        with Relay(port, delay=FAR, source=source) as relay:
            for count in range(1, TRIES + 1):
                began = time.monotonic()
                worker = stage.program("offload-worker", "--comch", f"tcp:127.0.0.1:{relay.port}",
                                       "--backend", "cpu", *key)
                worker.wait_for_log("attached to", seconds=30 * TIME_FACTOR)
                times.append(time.monotonic() - began)
                worker.kill()
                server.wait_for_log(r"worker .+ is gone", count=count)
    finally:
        flood.kill()
        flood.wait()
    print(f"{kind} strangers, {rate:.0f}/s: a worker from {source} attached after "
          f"{min(times):.2f} to {max(times):.2f} s")


def test_clients_and_strangers_leave_descriptors_for_a_worker(stage):
    """A server of few descriptors, with as many clients and silent strangers as it takes."""
    port = free_port()
    key = stage.key_options()
    comch = ["--comch", f"tcp:127.0.0.1:{port}"]
    server = stage.add(Program(stage.folder, "offload-server", *comch, "-p", 0, *key,
                               wrapper=["prlimit", "--nofile=300"]))
    first = stage.program("offload-worker", *comch, "--backend", "cpu", *key)
    server.wait_for_log("is ready")
    clients = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
    with contextlib.ExitStack() as others:
        for number, of_each in ((clients, 300), (port, 200)):
            for _ in range(of_each):
                others.enter_context(socket.create_connection(("127.0.0.1", number), PATIENCE))
        wait_until(lambda: server.descriptors() > 200, "the server has as many as it takes")
        first.kill()
        server.wait_for_log(r"worker .+ is gone")
        stage.program("offload-worker", *comch, "--backend", "cpu", *key)
        server.wait_for_log("is ready", count=2)
