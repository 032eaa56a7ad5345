"""Server and worker over RDMA. The tests for every transport also run over RDMA, in the guest of
scripts/rdma-guest; this file has the tests for RDMA alone."""
import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from harness import (BIN, DATA_PATH, LONG, PATIENCE, RDMA_DEVICE, TIME_FACTOR, TRANSPORT, Server, free_port,
                     statistics)
from relay import Relay

SHORT_REQUESTS = int(os.environ.get("OFFLOAD_SHORT_REQUESTS", "50000"))
on_rdma = pytest.mark.skipif(TRANSPORT != "rdma", reason="needs an RDMA device: rdma.programs runs it in a guest")
# An mlx5 card reads the rings of a worker itself.
READS_RINGS = RDMA_DEVICE.startswith("mlx5")
without_devices = pytest.mark.skipif(any(Path("/sys/class/infiniband").glob("*")),
                                     reason="there is an RDMA device")
PROGRAMS = pytest.mark.parametrize("program", ["offload-server", "offload-worker"])


def key_file(stage):
    path = stage.folder / "some.key"
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return ["--comch-key-file", path]


@PROGRAMS
@without_devices
def test_without_a_device(stage, program):
    ended = stage.program(program, "--comch", "rdma:192.0.2.1:4711", *key_file(stage))
    assert ended.wait() == 1
    assert re.search("rdma:192.0.2.1:4711: .*RDMA", ended.log)


@PROGRAMS
@on_rdma
def test_no_key_no_network(stage, program):
    """The program refuses this machine's own address too: other machines reach it."""
    ended = stage.program(program, "--comch", f"rdma:{os.environ['RDMA_GUEST_ADDRESS']}:4711")
    assert ended.wait() == 1
    assert "requires a key (--comch-key-file)" in ended.log


@on_rdma
def test_an_address_that_no_device_has(stage):
    ended = stage.program("offload-server", "--comch", "rdma:192.0.2.1:4711", *key_file(stage))
    assert ended.wait() == 1
    assert "192.0.2.1" in ended.log


@on_rdma
def test_workers_by_addresses_of_either_family(stage):
    """Each worker is answered from the address that it connected to, whichever address earlier ones used."""
    subprocess.run(["busybox", "ip", "-6", "addr", "add", "fd77::1/64", "dev", "dummy0"], check=True)
    port = free_port()
    server = stage.add(Server(stage.folder, ["--comch", f"rdma:[::]:{port}", *stage.key_options()]))
    for number, host in enumerate([os.environ["RDMA_GUEST_ADDRESS"], "[fd77::1]"] * 2, start=1):
        worker = stage.program("offload-worker", "--backend", "cpu", "--comch",
                               f"rdma:{host}:{port}", *stage.key_options())
        server.wait_until_attached(count=number)
        server.wait_until_listening()
        stage.run_client(server, "-i", 100)
        worker.kill()
        server.wait_until_worker_gone(count=number)


@on_rdma
@pytest.mark.parametrize("direction", ["to worker", "to server"])
def test_a_changed_byte_on_the_control_connection_ends_the_attachment(stage, direction):
    """A program between the two can neither read nor change a control message. The queue pairs' data does
    not pass through it."""
    host, port = os.environ["RDMA_GUEST_ADDRESS"], free_port()
    server = stage.add(Server(stage.folder, ["--comch", f"rdma:{host}:{port}", *stage.key_options()]))
    server.wait_for_log("waiting for a worker")  # the relay's first connection is the control connection
    with Relay(port, host=host) as relay:
        worker = stage.program("offload-worker", "--backend", "cpu", "--comch",
                               f"rdma:{host}:{relay.port}", *stage.key_options())
        server.wait_until_attached()
        server.wait_until_listening()
        stage.run_client(server, "-i", 100)
        seen = b"".join(chunk for _, _, chunk in list(relay.heard))
        assert len(seen) > 500
        assert b"reverse" not in seen, "the name of the service, in the welcome"
        relay.change_once(direction, lambda held: [held[0][:-1] + bytes([held[0][-1] ^ 1])], control=True)
        server.wait_until_worker_gone()
        worker.wait_for_log("the server is gone")
        assert re.search("TLS: .*a third party is between its two ends", server.log + worker.log)
        server.wait_until_attached(count=2)
        stage.run_client(server, "-i", 100)
        # The relay still exists: the worker detaches through it.
        assert server.terminate() == 0
        assert worker.terminate() == 0


@on_rdma
def test_strangers_who_say_nothing_keep_no_worker_out(stage):
    host, port = os.environ["RDMA_GUEST_ADDRESS"], free_port()
    server = stage.add(Server(stage.folder, ["--comch", f"rdma:{host}:{port}", *stage.key_options()]))
    server.wait_for_log("waiting for a worker")
    with contextlib.ExitStack() as strangers:
        for _ in range(100):
            strangers.enter_context(socket.create_connection((host, port), PATIENCE))
        stage.program("offload-worker", "--backend", "cpu", "--comch", f"rdma:{host}:{port}", *stage.key_options())
        server.wait_until_attached()
        server.wait_until_listening()
        stage.run_client(server, "-i", 100)
    assert "is closed to make room for another" in server.log


@on_rdma
def test_a_device_is_named_and_the_log_says_which_path(stage):
    """It works through loopback too, whose address no device has."""
    port = free_port()
    path = ["--comch", f"rdma:127.0.0.1:{port}", "--rdma-device", RDMA_DEVICE, "--traffic-class", "104"]
    server = stage.add(Server(stage.folder, [*path, *stage.key_options()]))
    worker = stage.program("offload-worker", "--backend", "cpu", *path, *stage.key_options())
    server.wait_until_attached()
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)
    for program in (server, worker):
        program.wait_for_log(rf"RDMA for 127\.0\.0\.1: {RDMA_DEVICE} port 1, GID \S+ \(index \d+\), traffic class 104, "
                             "service level 0, partition 0xffff")


@on_rdma
def test_the_log_says_who_carries_out_what_the_back_end_posts(stage):
    server = stage.server()
    worker = stage.program("offload-worker", *stage.comch_options(), "--backend", "cpu", "--data-path", "gpu")
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)
    worker.wait_for_log("the back end posts responses .*, " +
                        (f"{RDMA_DEVICE} itself carries that out" if READS_RINGS
                         else f"a thread carries that out on {RDMA_DEVICE}"))


@on_rdma
def test_a_server_where_no_device_is(stage):
    ended = stage.program("offload-server", "--comch", "rdma:127.0.0.1:4711", *key_file(stage))
    assert ended.wait() == 1
    assert "no RDMA device has the address 127.0.0.1" in ended.log


@on_rdma
@pytest.mark.parametrize("without", ["server", "worker"])
def test_a_device_without_atomic_operations(stage, without):
    """Slots cannot be written there, which the program reports on request; messages still arrive by a thread."""
    preload = ["env", f"LD_PRELOAD={BIN / 'libno_atomics.so'}"]
    server = stage.server(wrapper=preload if without == "server" else [])

    def worker(path):
        return stage.program("offload-worker", *stage.comch_options(), "--backend", "cpu", "--data-path", path,
                             wrapper=preload if without == "worker" else [])

    refused = worker("gpu")
    assert refused.wait() == 1
    where = "this server cannot write into a worker's slots: " if without == "server" else ""
    assert f"this worker cannot attach: {where}{RDMA_DEVICE} has no atomic operations" in refused.log
    worker("cpu")
    server.wait_until_attached()
    server.wait_until_listening()
    stage.run_client(server, "-i", 100)


@on_rdma
def test_many_requests(stage):
    """Short messages go in vectors and long ones between slots, over several channels; every byte is right."""
    server, _ = stage.pair("--threads", 2, "--max-message-length", "64k")
    for size, count in {"64": SHORT_REQUESTS, "64k": 1_000 if LONG else 100}.items():
        client = stage.run_client(server, "-t", 2, "-i", count, "--size", size,
                                  seconds=60 * TIME_FACTOR)
        assert statistics(client)["Valid responses"] == 2 * count


@on_rdma
@pytest.mark.skipif(READS_RINGS, reason="replaces the function that posts to the RDMA device, by which an mlx5 card's "
                                        "rings are not posted to; softcard.programs has a card with --unordered")
def test_many_requests_whose_writes_change_places(stage, monkeypatch):
    """Each end writes into the other's slots, over a fabric that places writes in any order: see
    tests/rdma/guest/unordered_writes.hpp."""
    monkeypatch.setenv("LD_PRELOAD", str(BIN / "libunordered_writes.so"))
    server = stage.server("--threads", 2, "--max-message-length", "64k")
    worker = stage.program("offload-worker", *stage.comch_options(), "--backend", "cpu", "--data-path", "gpu")
    server.wait_until_listening()
    for size, count in {"64": 1_000, "1k": 1_000, "64k": 50}.items():
        client = stage.run_client(server, "-t", 2, "-i", count, "--size", size)
        assert statistics(client)["Valid responses"] == 2 * count
    assert server.terminate() == 0
    assert worker.terminate() == 0
    for program in (server, worker):
        assert int(re.search(r"unordered writes: (\d+) pieces", program.log)[1]) > 0, program.log


@on_rdma
@pytest.mark.skipif(DATA_PATH == "gpu", reason="about a worker that is woken; a GPU looks")
def test_an_idle_channel_takes_no_processor_time(stage):
    server, worker = stage.pair("--threads", 2)
    stage.run_client(server, "-i", 100)
    before = server.cpu_seconds() + worker.cpu_seconds()
    with pytest.raises(AssertionError):  # nothing more is logged for a while
        server.wait_for_log("is gone", seconds=5)
    # This covers the keep-alive messages of both sides, and the cost of a device that is emulated in software.
    assert server.cpu_seconds() + worker.cpu_seconds() - before < 1.5
