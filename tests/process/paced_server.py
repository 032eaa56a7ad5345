"""A server of the wire protocol with a known capacity: it answers `echo` requests at once if they come within a token
bucket, and the others in order, at the bucket's rate."""
import contextlib
import select
import socket
import struct
import threading
import time
from collections import deque

from wire import REQUEST, RESPONSE

MOST_LENGTH = 1 << 20
HEADER = struct.Struct(">III")


class Pacer:
    """The token bucket: `burst` tokens at most, `rate` new ones a second. Times are seconds of any
    clock that does not go back."""

    def __init__(self, rate, burst):
        self._interval = 1 / rate
        self._tolerance = (burst - 1) * self._interval
        self._next = float("-inf")  # the arrival time of the next request if all came evenly (GCRA)

    def admit(self, now):
        """Returns the time to answer a request that arrives now: now or later, never before that of an earlier
        request."""
        due = max(now, self._next)
        self._next = due + self._interval
        return max(now, due - self._tolerance)


class _Connection:
    def __init__(self, accepted):
        self.socket = accepted
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received, self.unsent = bytearray(), bytearray()
        self.writing = False  # waits for room to send

    def requests(self):
        """Yields the responses to the whole requests received so far. Raises ValueError for invalid frames."""
        start = 0
        while len(self.received) - start >= HEADER.size:
            wire_size, msg_id, length = HEADER.unpack_from(self.received, start)
            if wire_size != HEADER.size + length or msg_id != REQUEST or length > MOST_LENGTH:
                raise ValueError("no request")
            if len(self.received) - start < wire_size:
                break
            payload = self.received[start + HEADER.size:start + wire_size]
            yield HEADER.pack(wire_size, RESPONSE, length) + payload
            start += wire_size
        del self.received[:start]


class PacedServer:
    """A context in which a separate thread serves any number of connections of loopback. All share one
    bucket. A client that violates the protocol is disconnected."""

    def __init__(self, rate, burst=32):
        self._pacer = Pacer(rate, burst)
        self._queue = deque()  # (time of the answer, connection, response)
        self._connections = {}  # by descriptor
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._stopped, self._stop = socket.socketpair()
        self._epoll = select.epoll()
        for source in (self._listener, self._stopped):
            self._epoll.register(source.fileno(), select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.close()
        self._thread.join(10)
        assert not self._thread.is_alive(), "the paced server does not end"

    def _run(self):
        with contextlib.ExitStack() as stack:
            for each in (self._epoll, self._listener, self._stopped):
                stack.enter_context(contextlib.closing(each))
            while self._serve_once():
                pass
            for connection in list(self._connections.values()):
                self._close(connection)

    def _serve_once(self):
        if self._queue:
            # epoll's time-out is in milliseconds, that of select() in microseconds.
            wait = max(0, self._queue[0][0] - time.monotonic())
            select.select([self._epoll.fileno()], [], [], wait)
        for descriptor, events in self._epoll.poll(0 if self._queue else None):
            if descriptor == self._stopped.fileno():
                return False
            if descriptor == self._listener.fileno():
                self._accept()
                continue
            connection = self._connections.get(descriptor)
            if connection and events & ~select.EPOLLOUT:
                self._receive(connection)
            if connection and events & select.EPOLLOUT:
                self._send(connection)
        self._answer()
        return True

    def _accept(self):
        with contextlib.suppress(BlockingIOError):
            connection = _Connection(self._listener.accept()[0])
            self._connections[connection.socket.fileno()] = connection
            self._epoll.register(connection.socket.fileno(), select.EPOLLIN)

    def _receive(self, connection):
        try:
            data = connection.socket.recv(1 << 18)
            now = time.monotonic()
            connection.received += data
            for response in connection.requests():
                self._queue.append((self._pacer.admit(now), connection, response))
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data = b""
        if not data:
            self._close(connection)

    def _answer(self):
        """Sends the responses that are due by now."""
        now = time.monotonic()
        touched = {}
        while self._queue and self._queue[0][0] <= now:
            _, connection, response = self._queue.popleft()
            connection.unsent += response
            touched[id(connection)] = connection
        for connection in touched.values():
            self._send(connection)

    def _send(self, connection):
        if connection.socket.fileno() < 0:
            return
        try:
            with memoryview(connection.unsent) as unsent:
                sent = connection.socket.send(unsent) if unsent else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return
        del connection.unsent[:sent]
        writing = bool(connection.unsent)
        if writing != connection.writing:
            connection.writing = writing
            events = select.EPOLLIN | (select.EPOLLOUT if writing else 0)
            self._epoll.modify(connection.socket.fileno(), events)

    def _close(self, connection):
        if self._connections.pop(connection.socket.fileno(), None):
            connection.socket.close()  # this also removes it from the epoll
