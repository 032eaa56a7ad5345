"""A server that violates the protocol, for tests of clients."""
import contextlib
import socket
import struct
import threading

from harness import PATIENCE
from wire import frame

REQUEST_SIZE = len(frame(b"hello"))


class BadServer(threading.Thread):
    """Reads `size` bytes of requests on one connection, sends `answer`, and then closes, resets, or waits for the client
    to close."""

    def __init__(self, answer, then="wait", size=REQUEST_SIZE):
        super().__init__(daemon=True)
        self._answer, self._then, self._size = answer, then, size
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]
        self.client_closed = False

    def run(self):
        connection, _ = self._listener.accept()
        connection.settimeout(PATIENCE)
        with self._listener, connection:
            got = 0
            while got < self._size:
                got += len(connection.recv(self._size - got))
            connection.sendall(self._answer)
            if self._then == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif self._then == "wait":
                with contextlib.suppress(ConnectionResetError):
                    while connection.recv(1 << 16):
                        pass
                self.client_closed = True

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.join(PATIENCE)
        assert not self.is_alive()
