"""A server that misbehaves gets an error; the worker retries or exits with an error, but neither crashes nor hangs."""
import contextlib
import os
import re
import struct

import pytest

from control import (CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE, DESCRIPTOR, HELLO, KEEP_ALIVE,
                     LOCAL_READ, READABLE, RELEASED, SERVER_LEAVES, SHUTDOWN_COMPLETE, START_SHUTDOWN, TAIL,
                     WELCOME, WRITABLE, FakeServer, Memory, consumer_id, descriptor, not_a_frame, welcome)
from harness import PATIENCE, wait_until
from wire import BAD_HELLO, BAD_VERSION, BUSY, ERROR, REQUEST, SHUTTING_DOWN, frame

SILENCE = 10 + PATIENCE
DEPTH, MAX_LENGTH = 16, 256
REGION = Memory(DEPTH, MAX_LENGTH).request_bytes  # as long as that of the responses


@pytest.fixture
def server(stage):
    with FakeServer(stage.comch, DEPTH, MAX_LENGTH) as fake:
        yield fake


def expect_recovery(server, worker):
    """The worker comes again, and with a server that behaves it works."""
    server.attach()
    server.memory.write(0, b"sense", response=False)
    server.ring()
    assert wait_until(lambda: server.memory.read(0, response=True), "an answer") == (0, b"esnes")
    assert worker.alive


def expect_complaint(server, worker, reason):
    """Checks that the server receives the error, and that the log has it."""
    code, text = server.control.expect_refusal()
    assert code == BAD_HELLO and reason in text
    worker.wait_for_log(reason)


WELCOMES = {
    "empty": (b"", "welcome"),
    "cut off": (welcome()[:-1], "welcome"),
    "too long": (welcome() + b"x", "welcome"),
    "no channels": (welcome(channels=0), "without channels"),
    "no keep-alive": (welcome(keep_alive_ms=0), "without channels or keep-alive"),
}


@pytest.mark.parametrize("payload, reason", WELCOMES.values(), ids=WELCOMES)
def test_the_worker_refuses_a_welcome(stage, server, payload, reason):
    worker = stage.worker()
    server.accept().send(WELCOME, payload)
    expect_complaint(server, worker, reason)
    expect_recovery(server, worker)


@pytest.mark.parametrize("payload, reason", [
    (welcome(version=2), "control version 2, this worker 4"),
    (welcome(version=3), "control version 3, this worker 4"),
    (welcome(version=5)[:2] + bytes(99), "control version 5"),
], ids=["version 2", "version 4", "a later version of another shape"])
def test_the_worker_does_not_serve_another_version(stage, server, payload, reason):
    worker = stage.worker()
    server.accept().send(WELCOME, payload)
    code, text = server.control.expect_refusal()
    assert code == BAD_VERSION and reason in text
    assert worker.wait() == 1
    assert reason in worker.log


OUT_OF_PLACE = {
    "a descriptor": frame(descriptor(0, DEPTH, MAX_LENGTH, REGION), DESCRIPTOR),
    "a consumer id": frame(consumer_id(0), CONSUMER_ID_RESPONSE),
    **{f"message {msg_id}": frame(b"", msg_id)
       for msg_id in (SHUTDOWN_COMPLETE, CONSUMER_ID_REQUEST, REQUEST, HELLO)},
    **not_a_frame(WELCOME, welcome()),
}


@pytest.mark.parametrize("message", OUT_OF_PLACE.values(), ids=OUT_OF_PLACE)
@pytest.mark.parametrize("step", ["first", "after the welcome", "when attached"])
def test_the_worker_refuses_what_is_out_of_place(stage, server, step, message):
    worker = stage.worker()
    if step == "when attached":
        server.attach()
    else:
        server.accept()
    if step == "after the welcome":
        server.control.send(WELCOME, welcome())
    server.control.send_raw(message)
    assert server.control.expect_refusal()[0] == BAD_HELLO
    worker.wait_for_log("the server is gone: ")
    expect_recovery(server, worker)


DESCRIPTORS = {
    "empty": (b"", 4, "descriptor"),
    "cut off": (descriptor(0, DEPTH, MAX_LENGTH, REGION)[:-1], 4, "descriptor"),
    "too long": (descriptor(0, DEPTH, MAX_LENGTH, REGION) + b"x", 4, "descriptor"),
    "no region": (descriptor(0, DEPTH, MAX_LENGTH, REGION)[:12] + bytes(4) + TAIL, 4, "too short"),
    "a forged region": (descriptor(0, DEPTH, MAX_LENGTH, REGION)[:-len(TAIL) - 1] + b"x" + TAIL, 4, "checksum"),
    "requests of this process": (descriptor(0, DEPTH, MAX_LENGTH, REGION, access=LOCAL_READ), 4,
                                 "requests is not one range with the access"),
    "requests to write": (descriptor(0, DEPTH, MAX_LENGTH, REGION, access=WRITABLE), 4,
                          "requests is not one range with the access"),
    "responses to read": (descriptor(0, DEPTH, MAX_LENGTH, REGION, response_access=READABLE), 4,
                          "responses is not one range with the access"),
    "another channel": (descriptor(1, DEPTH, MAX_LENGTH, REGION), 4, "descriptor"),
    "no descriptors": (descriptor(0, DEPTH, MAX_LENGTH, REGION), 0, "descriptor"),
    "three descriptors": (descriptor(0, DEPTH, MAX_LENGTH, REGION), 3, "descriptor"),
    "depth 0": (descriptor(0, 0, MAX_LENGTH, REGION), 4, "shape"),
    "depth 3": (descriptor(0, 3, MAX_LENGTH, REGION), 4, "shape"),
    "depth 8192": (descriptor(0, 8192, MAX_LENGTH, REGION), 4, "shape"),
    "depth 4 Gi": (descriptor(0, 0xffffffff, MAX_LENGTH, REGION), 4, "shape"),
    "messages of 4 GiB": (descriptor(0, DEPTH, 0xffffffff, REGION), 4, "shape"),
    "responses of 4 GiB": (descriptor(0, DEPTH, MAX_LENGTH, REGION)[:-len(TAIL)] + b"\xff\xff\xff\xff\0", 4,
                           "shape"),
    "a service beyond the last": (descriptor(0, DEPTH, MAX_LENGTH, REGION)[:-1] + b"\1", 4, "descriptor"),
    "more depth than memory": (descriptor(0, 2 * DEPTH, MAX_LENGTH, REGION), 4, "laid out"),
    "longer messages than memory": (descriptor(0, DEPTH, 1 << 20, REGION), 4, "laid out"),
    "a region a page too short": (descriptor(0, DEPTH, MAX_LENGTH, REGION - 4096), 4, "laid out"),
    "a region of 1 byte": (descriptor(0, DEPTH, MAX_LENGTH, 1), 4, "laid out"),
    "a region longer than its memory": (descriptor(0, DEPTH, MAX_LENGTH, REGION + 4096), 4,
                                        "announced"),
    "a region of 0 bytes": (descriptor(0, DEPTH, MAX_LENGTH, 0), 4, "empty"),
    "a region of all memory": (descriptor(0, DEPTH, MAX_LENGTH, (1 << 64) - 1), 4,
                               "description of a memory region"),
}


@pytest.mark.parametrize("payload, count, reason", DESCRIPTORS.values(), ids=DESCRIPTORS)
def test_the_worker_refuses_a_channel(stage, server, payload, count, reason):
    worker = stage.worker()
    server.accept().send(WELCOME, welcome())
    server.control.send(DESCRIPTOR, payload, server.fds()[:count])
    expect_complaint(server, worker, reason)
    expect_recovery(server, worker)


@contextlib.contextmanager
def unsealed_memory(_):
    memory = Memory(DEPTH, MAX_LENGTH, seals=0)
    yield memory.fds[0]
    memory.close()


@contextlib.contextmanager
def plain_file(folder):
    with open(folder / "file", "w+b") as file:
        file.truncate(REGION)
        yield file.fileno()


@contextlib.contextmanager
def pipe(_):
    ends = os.pipe()
    yield ends[0]
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("make", [unsealed_memory, plain_file, pipe])
def test_the_worker_refuses_memory_that_could_vanish(stage, server, make):
    """Memory that its owner can shrink would kill the worker at its next access."""
    worker = stage.worker()
    server.accept().send(WELCOME, welcome())
    with make(stage.folder) as fd:
        server.control.send(DESCRIPTOR, server.descriptor(), [fd, *server.fds()[1:]])
        expect_complaint(server, worker, "not sealed against shrinking")
    expect_recovery(server, worker)


def test_a_channel_too_many(stage, server):
    worker = stage.worker()
    server.attach()
    server.control.send(DESCRIPTOR, descriptor(1, DEPTH, MAX_LENGTH, REGION), server.fds())
    expect_complaint(server, worker, "descriptor")
    expect_recovery(server, worker)


def test_a_service_that_the_worker_does_not_know(stage, server):
    worker = stage.worker()
    server.accept().send(WELCOME, welcome(service=b"rot13"))
    server.control.send(DESCRIPTOR, server.descriptor(), server.fds())
    assert worker.wait() == 1
    assert "no service 'rot13'" in worker.log


def test_a_server_that_refuses_the_worker_for_good(stage, server):
    worker = stage.worker()
    server.accept().send(ERROR, struct.pack(">I", BAD_VERSION) + "zu alt – sorry".encode())
    assert worker.wait() == 1
    assert "this worker cannot attach: zu alt – sorry" in worker.log


@pytest.mark.parametrize("code", [BUSY, SHUTTING_DOWN])
def test_a_server_that_refuses_the_worker_for_now(stage, server, code):
    worker = stage.worker()
    for _ in range(3):
        server.accept().send(ERROR, struct.pack(">I", code) + b"come again")
        server.control.expect_end()
    expect_recovery(server, worker)


def test_a_server_that_hangs_up(stage, server):
    worker = stage.worker()
    for _ in range(3):
        server.accept().socket.close()
    server.accept().send(WELCOME, welcome())
    server.control.socket.close()
    server.accept().send(WELCOME, welcome())
    server.control.send(DESCRIPTOR, server.descriptor(), server.fds())
    server.control.socket.close()
    expect_recovery(server, worker)


@pytest.mark.parametrize("attached", [False, True], ids=["from the start", "when attached"])
def test_a_server_that_falls_silent(stage, server, attached):
    worker = stage.worker()
    if attached:
        server.attach(keep_alive_ms=50)  # until the welcome it is a second
    else:
        server.accept()
    worker.wait_for_log("the server is gone: it has been silent for too long", SILENCE)
    expect_recovery(server, worker)


def test_a_server_that_makes_the_workers_doorbell_block(stage, server):
    """It has the ends that it passed, too: fills one, and makes both block. The worker serves all the same."""
    worker = stage.worker()
    server.attach()
    os.set_blocking(server.bells[1], False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(server.bells[1], bytes(4096))
    for bell in server.bells:
        os.set_blocking(bell, True)
    for sequence in range(3):
        struct.pack_into("=I", server.memory.responses, 128, 1)  # armed: the worker rings
        server.memory.write(sequence, b"sense", response=False)
        server.ring()
        assert wait_until(lambda at=sequence: server.memory.read(at, response=True), "an answer") == (0, b"esnes")
    server.control.send(START_SHUTDOWN, RELEASED)
    server.control.expect(SHUTDOWN_COMPLETE)
    assert worker.wait() == 0


def test_a_doorbell_that_is_no_pipe(stage, server):
    worker = stage.worker()
    server.accept().send(WELCOME, welcome())
    with plain_file(stage.folder) as file:
        server.control.send(DESCRIPTOR, server.descriptor(), [*server.fds()[:3], file])
        expect_complaint(server, worker, "a doorbell is not a pipe")
    expect_recovery(server, worker)


def test_a_server_that_never_lets_the_worker_in(stage, server):
    """It keeps saying that it is alive, and no more: the worker's patience has an end."""
    worker = stage.worker("--connect-timeout", "1s")
    server.accept()
    server.control.socket.settimeout(0.1)

    def tell():
        with contextlib.suppress(OSError):
            server.control.send(KEEP_ALIVE, bytes(8))
        return not worker.alive
    wait_until(tell, "the worker gives up")
    assert worker.wait() == 1
    assert re.search(r"no server at \S+ accepted this worker within 1 s: the server sent no channels", worker.log)


def test_a_server_that_ends_before_it_began(stage, server):
    worker = stage.worker("--connect-timeout", "300ms")
    server.accept().send(START_SHUTDOWN, SERVER_LEAVES)
    server.listener.close()
    server.control.socket.close()
    assert worker.wait() in (0, 1)


def test_a_server_that_lets_the_worker_go(stage, server):
    worker = stage.worker()
    server.attach()
    server.control.send(START_SHUTDOWN, RELEASED)
    server.control.expect(SHUTDOWN_COMPLETE)
    assert worker.wait() == 0
    assert "the server has detached this worker" in worker.log


def test_keep_alives_come_and_go(stage, server):
    """With an interval of 50 ms, a worker that hears from its server stays, and sends keep-alives itself."""
    stage.worker()
    server.accept().send(WELCOME, welcome(keep_alive_ms=50))
    server.control.send(DESCRIPTOR, server.descriptor(), server.fds())
    for _ in range(20):
        message = server.control.socket.recv(100)
        kind, = struct.unpack_from(">I", message, 4)
        assert kind in (KEEP_ALIVE, CONSUMER_ID_REQUEST)
        server.control.send(KEEP_ALIVE, bytes(8))
