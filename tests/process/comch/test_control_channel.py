"""A peer that misbehaves on the control channel is refused and disconnected; the server stays up, and
a real worker attaches afterwards."""
import contextlib
import os
import stat

import pytest

from control import (CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE, DESCRIPTOR, HELLO, KEEP_ALIVE,
                     SHUTDOWN_COMPLETE, START_SHUTDOWN, WELCOME, Control, FakeWorker, consumer_id,
                     hello, not_a_frame)
from harness import PATIENCE, wait_until
from wire import (BAD_HELLO, BAD_VERSION, BUSY, ERROR, MISMATCH, MISPLACED, REQUEST, RESPONSE,
                  UNKNOWN, Wire, frame, payloads, reverse)

# Five keep-alive intervals of a second, and then some.
SILENCE = 10 + PATIENCE


def expect_real_worker(stage, server, attached_before=0):
    """A real worker attaches, and requests are answered."""
    worker = stage.worker()
    server.wait_until_attached(attached_before + 1)
    server.wait_until_listening()
    with Wire(server.port) as wire:
        wire.ask(payloads(20, 100))
    assert worker.alive


GREETINGS = {
    "wrong magic": (frame(hello(magic=0x4f464c45), HELLO), BAD_HELLO, "greeting"),
    "empty": (frame(b"", HELLO), BAD_HELLO, "greeting"),
    "cut off": (frame(hello()[:-1], HELLO), BAD_HELLO, "greeting"),
    "too long": (frame(hello() + b"x", HELLO), BAD_HELLO, "greeting"),
    "no version": (frame(hello()[:5], HELLO), BAD_HELLO, "greeting"),
    "version 0": (frame(hello(version=0), HELLO), BAD_VERSION, "version 0, this server 4"),
    "version 2": (frame(hello(version=2), HELLO), BAD_VERSION, "version 2, this server 4"),
    "a later version of another shape": (frame(hello(version=7)[:6] + bytes(99), HELLO),
                                         BAD_VERSION, "version 7, this server 4"),
    "no channels": (frame(hello(max_channels=0), HELLO), BAD_HELLO, "serves 0 channels"),
    "short messages": (frame(hello(max_length=100), HELLO), BAD_HELLO, "messages of 100 bytes"),
    **{f"message {msg_id} first": (frame(b"", msg_id), BAD_HELLO, "expected a greeting first")
       for msg_id in (START_SHUTDOWN, SHUTDOWN_COMPLETE, CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE,
                      REQUEST, RESPONSE, ERROR, WELCOME, DESCRIPTOR, KEEP_ALIVE)},
    **{name: (message, BAD_HELLO, "not one whole frame")
       for name, message in not_a_frame(HELLO, hello()).items()},
}


@pytest.mark.parametrize("message, code, reason", GREETINGS.values(), ids=GREETINGS)
def test_the_server_refuses_a_greeting(stage, message, code, reason):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with Control.connect(stage.comch) as peer:
        peer.send_raw(message)
        refusal = peer.expect_refusal()
    assert refusal[0] == code and reason in refusal[1]
    server.wait_for_log(f"refused: .*{reason}")
    expect_real_worker(stage, server)


LATER = {
    "a second greeting": (frame(hello(), HELLO), MISPLACED, "does not belong"),
    "a channel that is not there": (frame(consumer_id(1), CONSUMER_ID_REQUEST), BAD_HELLO,
                                    "consumer id"),
    "a channel far away": (frame(consumer_id(0xffffffff), CONSUMER_ID_REQUEST), BAD_HELLO,
                           "consumer id"),
    "a consumer id cut off": (frame(consumer_id(0)[:-1], CONSUMER_ID_REQUEST), BAD_HELLO,
                              "consumer id"),
    "a keep-alive cut off": (frame(bytes(7), KEEP_ALIVE), MISMATCH, "keep-alive"),
    **{f"message {msg_id}": (frame(b"", msg_id), MISPLACED, "does not belong")
       for msg_id in (CONSUMER_ID_RESPONSE, REQUEST, RESPONSE, WELCOME, DESCRIPTOR)},
    **{name: (message, UNKNOWN, "not one whole frame")
       for name, message in not_a_frame(HELLO, hello()).items()},
}


@pytest.mark.parametrize("message, code, reason", LATER.values(), ids=LATER)
@pytest.mark.parametrize("attached", [False, True], ids=["greeted", "attached"])
def test_the_server_refuses_what_comes_later(stage, message, code, reason, attached):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with Control.connect(stage.comch) as peer:
        peer.send(HELLO, hello())
        peer.expect(WELCOME)
        for fd in peer.expect(DESCRIPTOR)[1]:
            os.close(fd)
        if attached:
            peer.send(CONSUMER_ID_REQUEST, consumer_id(0))
            peer.expect(CONSUMER_ID_RESPONSE)
        peer.send_raw(message)
        refusal = peer.expect_refusal()
    assert refusal[0] == code and reason in refusal[1]
    server.wait_for_log(f"refused: .*{reason}")
    expect_real_worker(stage, server, attached_before=attached)


def test_the_server_refuses_a_consumer_id_twice(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with FakeWorker(stage.comch) as fake:
        fake.control.send(CONSUMER_ID_REQUEST, consumer_id(0))
        assert fake.control.expect_refusal()[0] == BAD_HELLO
    expect_real_worker(stage, server, attached_before=1)


def test_descriptors_sent_to_the_server_are_closed(stage):
    """The message has as many descriptors as allowed, and more."""
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    before = server.descriptors()
    for count in (1, 3, 4, 100):
        with Control.connect(stage.comch) as peer, open(os.devnull, "rb") as file:
            peer.send(KEEP_ALIVE, bytes(8), [file.fileno()] * count)
            peer.expect_refusal()
    wait_until(lambda: server.descriptors() == before, "the server closes what it was sent")
    expect_real_worker(stage, server)


def test_peers_that_come_and_go(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    before = server.descriptors()
    for _ in range(20):
        Control.connect(stage.comch).socket.close()
        with Control.connect(stage.comch) as peer:
            peer.send(HELLO, hello())
    # One more: the process of the former worker.
    wait_until(lambda: server.descriptors() <= before + 1, "the server closes its connections")
    expect_real_worker(stage, server)


def test_a_silent_peer_does_not_keep_workers_out(stage):
    """A peer that connects and sends no Hello blocks others for a few seconds at most."""
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with Control.connect(stage.comch):
        stage.worker()
        server.wait_for_log("is ready", SILENCE)


def test_an_attached_worker_that_falls_silent(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with FakeWorker(stage.comch):
        server.wait_until_listening()
        with Wire(server.port) as wire:
            wire.send(frame(b"is anybody there?"))
            server.wait_for_log("is gone: it has been silent", SILENCE)
            stage.worker()
            wire.expect([reverse(b"is anybody there?")])


def test_sixteen_workers_at_most(stage):
    """One that is attaching counts."""
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with contextlib.ExitStack() as attached:
        for _ in range(16):
            attached.enter_context(FakeWorker(stage.comch))
        last = attached.enter_context(Control.connect(stage.comch))
        last.send(HELLO, hello())
        code, text = last.expect_refusal()
        assert code == BUSY and "16 workers are attached" in text


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_socket_is_its_owners_alone(stage, open_umask):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    assert stat.filemode(stage.comch.stat().st_mode) == "srw-------"


def test_a_worker_asks_the_server_to_end(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with FakeWorker(stage.comch) as fake:
        server.wait_until_listening()
        fake.control.send(START_SHUTDOWN)
        fake.control.expect(START_SHUTDOWN)
        fake.control.send(SHUTDOWN_COMPLETE)
        assert server.wait() == 0
