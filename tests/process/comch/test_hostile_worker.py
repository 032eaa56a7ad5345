"""A worker attaches correctly and then does its worst with the memory and doorbells that it was given. It may spoil
its own answers; it must not delay, crash or spoil anything else."""
import contextlib
import fcntl
import mmap
import os
import random
import select
import socket
import struct
import threading

import pytest

from harness import PATIENCE, on_one_machine, wait_until
from wire import (ERROR, RESPONSE, WORKER_FAILED, WORKER_UNAVAILABLE, Wire, frame, payloads,
                  reverse)

pytestmark = on_one_machine

VERSION, MAGIC = 4, 0x4f464c44
CONSUMER_ID_REQUEST, CONSUMER_ID_RESPONSE = 2, 3
HELLO, WELCOME, DESCRIPTOR, KEEP_ALIVE = 16, 17, 18, 19
RINGS_DOORBELL = 1
LIMIT = ["--worker-timeout", "3s"]  # in which the next worker starts on a busy machine
SIZES = ["--max-message-length", 1024, "--max-concurrent-messages", 8]


class HostileWorker:
    """A worker that is attached with one channel; `requests` and `responses` are descriptors of its memory. A thread
    sends its keep-alives, so that the server does not detach it for silence."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(server.socket_file))
        self._send(HELLO, struct.pack(">IHIII", MAGIC, VERSION, RINGS_DOORBELL, 64, 16 << 20)
                   + b"\4evil" + b"\1\7reverse")
        self._expect(WELCOME)
        self.requests, self.responses, self.waits_at, self.rings_at = self._expect(DESCRIPTOR)
        self._send(CONSUMER_ID_REQUEST, struct.pack(">II", 0, 0))
        self._expect(CONSUMER_ID_RESPONSE)
        server.wait_until_served()
        self.memory = mmap.mmap(self.responses, os.fstat(self.responses).st_size)
        self._over = threading.Event()
        self._thread = None
        self._left = threading.Event()
        self._keeper = threading.Thread(target=self._keep_alive, daemon=True)
        self._keeper.start()

    def _send(self, kind, payload):
        self.socket.send(frame(payload, kind))

    def _expect(self, kind):
        message, fds, _, _ = socket.recv_fds(self.socket, 2048, 8)
        assert struct.unpack_from(">I", message, 4)[0] == kind, message
        return fds

    def _keep_alive(self):
        with contextlib.suppress(OSError):  # the server has detached it
            while not self._left.wait(0.5):
                self._send(KEEP_ALIVE, bytes(8))

    def write_all(self, piece):
        """Fills its memory with the piece, and rings."""
        self.memory[:] = (piece * (len(self.memory) // len(piece) + 1))[:len(self.memory)]
        with contextlib.suppress(OSError):  # the pipe is full, or its reader is gone
            os.write(self.rings_at, b"!")

    def begin(self, rubbish):
        """Writes the results of `rubbish()` again and again, from a thread."""
        def run():
            while not self._over.is_set():
                self.write_all(rubbish())
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def leave(self):
        """Ends the attachment; the worker keeps memory and doorbells, and continues to use them."""
        self._left.set()
        self._keeper.join()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        if self._thread:
            self._thread.join()
        self.leave()
        self.memory.close()
        for fd in (self.requests, self.responses, self.waits_at, self.rings_at):
            os.close(fd)


@pytest.fixture
def server(stage):
    """A server that waits for its first worker."""
    server = stage.server(*LIMIT, *SIZES)
    server.wait_for_log("waiting for a worker")
    return server


def expect_right_answers(stage, server, former):
    """Checks an honest worker's answers while the hostile one continues with the memory that it has."""
    former.leave()
    server.wait_until_worker_gone()
    stage.worker()
    server.wait_until_served(2)
    with Wire(server.port) as wire:
        for seed in range(20):
            wire.ask(payloads(50, [0, 8, 64, 372, 373, 1024], seed=seed))
    assert server.alive


def fill(fd):
    """Fills a pipe, given either of its ends."""
    with contextlib.suppress(BlockingIOError), \
            os.fdopen(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK), "wb",
                      buffering=0) as other:
        while True:
            if not other.write(bytes(65536)):
                break
    assert not select.select([], [fd], [], 0)[1]


def test_doorbells_that_are_full_and_blocking(stage, server):
    """O_NONBLOCK is cleared on the worker's ends, which are not the server's ends."""
    with HostileWorker(server) as hostile, contextlib.ExitStack() as held:
        server.wait_until_listening()
        for fd in (hostile.waits_at, hostile.rings_at):
            fill(fd)
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
        # Every word is set, including the doorbells': the server rings with each request. No flag is
        # even, so it finds no answer.
        hostile.memory[:] = struct.pack("<I", 2) * (len(hostile.memory) // 4)
        wires = [held.enter_context(Wire(server.port)) for _ in range(3)]
        for wire in wires:
            wire.send(frame(bytes(600)) * 2)
        # The server's I/O thread continues: it refuses unanswered requests, and accepts new clients.
        for wire in wires:
            for _ in range(2):
                expect_any_answer(wire)
        expect_right_answers(stage, server, hostile)


def expect_any_answer(wire):
    """Receives a whole frame: a response no longer than the service's, or an error."""
    kind, payload = wire.receive() or (None, b"")
    assert kind in (RESPONSE, ERROR), "the server closed the connection"
    if kind == ERROR:
        assert struct.unpack_from(">I", payload)[0] in (WORKER_FAILED, WORKER_UNAVAILABLE)
    return kind, payload


def test_rubbish_all_over_its_memory(stage, server):
    """Writes random bytes, and packets that look like answers of any length to any message."""
    source = random.Random(11)

    def rubbish():
        if source.random() < 0.2:
            return source.randbytes(4096)
        length = source.choice([0, 5, 40, 41, 1000, 1024, 1025, 1 << 20, 0xffffffff])
        status = source.choice([0, 0, 0, 1, 77, 0xffffffff])
        return struct.pack("<IIII", length, status, 0, source.randrange(64))

    with HostileWorker(server) as hostile:
        server.wait_until_listening()
        hostile.begin(rubbish)
        with Wire(server.port) as wire:
            for _ in range(100):
                wire.send(frame(bytes(40)))
                kind, payload = expect_any_answer(wire)
                assert kind == ERROR or len(payload) <= 40
                if "is gone" in server.log:
                    break
        expect_right_answers(stage, server, hostile)


def test_a_response_that_is_longer_than_the_service_gives(stage):
    """A response of 16 bytes to a request of 8 is refused with the name of the fault."""
    server = stage.server(*SIZES)  # its timeout is longer than this test takes on a busy machine
    server.wait_for_log("waiting for a worker")
    with HostileWorker(server) as hostile:
        server.wait_until_listening()
        with Wire(server.port) as wire:
            wire.send(frame(bytes(8)))
            wire.wait_until_read()
            flags = iter(range(1, 10))

            def answered():
                hostile.write_all(struct.pack("<IIII", 16, 0, 0, next(flags)))
                return select.select([wire.socket], [], [], 0.05)[0]
            wait_until(answered, "the server takes one of the flags")
            assert wire.receive_error() == WORKER_FAILED
        expect_right_answers(stage, server, hostile)


def test_requests_cannot_be_written(stage, server):
    with HostileWorker(server) as hostile:
        size = os.fstat(hostile.requests).st_size
        with mmap.mmap(hostile.requests, size, prot=mmap.PROT_READ) as requests:
            with pytest.raises(PermissionError):
                mmap.mmap(hostile.requests, size)
            with pytest.raises(OSError):  # it is open for reading only
                os.pwrite(hostile.requests, b"x", 0)
            for fd in (hostile.requests, hostile.responses):
                with pytest.raises(OSError):
                    os.ftruncate(fd, 0)
            with contextlib.ExitStack() as opened, pytest.raises(PermissionError):
                again = os.open(f"/proc/self/fd/{hostile.requests}", os.O_RDWR)
                opened.callback(os.close, again)
                mmap.mmap(again, size)  # the seal belongs to the memory
            assert len(requests) == size
        server.wait_until_listening()
        expect_right_answers(stage, server, hostile)


def test_what_it_read_goes_to_its_successor(stage):
    """If a worker took a request and wrote no wrong answer, the next worker answers it."""
    server = stage.server("--worker-timeout", "20s", *SIZES)  # time in which the next one starts
    server.wait_for_log("waiting for a worker")
    with HostileWorker(server) as hostile:
        server.wait_until_listening()
        with Wire(server.port) as wire:
            wire.send(frame(b"question"))
            wire.wait_until_read()
            hostile.leave()
            stage.worker()
            wire.expect([reverse(b"question")])
