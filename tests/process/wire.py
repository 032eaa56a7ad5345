"""The wire protocol's client side, written a second time from docs/wire-protocol.md."""
import random
import socket
import struct
import threading
from pathlib import Path

from harness import PATIENCE, wait_until

REQUEST, RESPONSE, ERROR = 4, 5, 6

# Codes of error frames.
TOO_SHORT, TOO_LONG, MISMATCH, UNKNOWN, MISPLACED = 1, 2, 3, 4, 5
WORKER_UNAVAILABLE, SHUTTING_DOWN, WORKER_FAILED, BAD_VERSION, BAD_HELLO, BUSY = 6, 7, 8, 9, 10, 11
BAD_KEY, REQUEST_TIMED_OUT, WORKER_STUCK = 12, 13, 14


def header(wire_size, msg_id, length):
    return struct.pack(">III", wire_size, msg_id, length)


def frame(payload, msg_id=REQUEST):
    return header(12 + len(payload), msg_id, len(payload)) + payload


def payloads(count, size, seed=1):
    """`count` different payloads of random bytes; `size`: bytes, or the sizes to pick from."""
    source = random.Random(seed)
    sizes = [size] if isinstance(size, int) else size
    return [source.randbytes(source.choice(sizes)) for _ in range(count)]


def reverse(payload):
    return payload[::-1]


class Wire:
    """A connection to a server that speaks frames. Every wait has a bound."""

    def __init__(self, port, host="127.0.0.1", receive_buffer=None):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self.socket.makefile("rb", buffering=1 << 16)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stream.close()
        self.socket.close()

    def reset(self):
        """Closes with a RST instead of a FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def finish_sending(self):
        self.socket.shutdown(socket.SHUT_WR)

    def receive(self):
        """The next frame as (msg_id, payload); None at the end of file."""
        head = self._stream.read(12)
        if not head:
            return None
        assert len(head) == 12, f"the stream ends inside a header: {head!r}"
        wire_size, msg_id, length = struct.unpack(">III", head)
        assert wire_size == 12 + length, f"a malformed frame came: {head!r}"
        payload = self._stream.read(length)
        assert len(payload) == length, "the stream ends inside a payload"
        return msg_id, payload

    def receive_error(self):
        """The next frame, which must be an error, as its code."""
        msg_id, payload = self.receive() or (None, b"")
        assert msg_id == ERROR, f"frame {msg_id} with {payload[:40]!r} instead of an error"
        assert payload[4:].decode(), "an error without a text"
        return struct.unpack_from(">I", payload)[0]

    def expect_end(self):
        assert self.receive() is None

    def expect(self, answers):
        """Receives exactly these responses, in this order."""
        for number, answer in enumerate(answers):
            got = self.receive()
            assert got is not None, f"end of file in place of response {number}"
            assert got[0] == RESPONSE, f"response {number} has msg_id {got[0]}: {got[1][:60]!r}"
            assert got[1] == answer, f"response {number} differs: {got[1][:40]!r}..."

    def ask(self, requests, answer=reverse):
        """Sends the requests at once and receives all their answers."""
        with self.sending(b"".join(map(frame, requests))):
            self.expect(map(answer, requests))

    def sending(self, *pieces):
        """A context in which the pieces are sent, each in a send() of its own, beside what is done
        there: neither side waits for the other to read."""
        return _Sending(self, pieces)

    def rest_unread(self):
        """Bytes that this end has sent and the server's program has not read yet."""
        ports = (self.socket.getsockname()[1], self.socket.getpeername()[1])
        queues = {}  # by the two ports of a connection's end: its bytes unsent and unread
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, _, queued, *_ = line.split()
            end = (int(local.split(":")[1], 16), int(remote.split(":")[1], 16))
            queues[end] = [int(count, 16) for count in queued.split(":")]
        return queues[ports][0] + queues[ports[::-1]][1]

    def wait_until_read(self):
        """Until the server's program has read all that was sent (IPv4)."""
        wait_until(lambda: self.rest_unread() == 0, "the server reads what it was sent")


class _Sending:
    def __init__(self, wire, pieces):
        self._wire, self._pieces, self._failure = wire, pieces, None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            for piece in self._pieces:
                self._wire.send(piece)
        except OSError as failure:
            self._failure = failure

    def __enter__(self):
        self._thread.start()

    def __exit__(self, kind, *_):
        self._thread.join(PATIENCE)
        if kind is None:
            assert not self._thread.is_alive(), "the server does not read"
            assert self._failure is None, f"sending failed: {self._failure}"
