"""A relay between server and worker: forwards, records, delays or changes their messages."""
import queue
import socket
import threading
import time

from harness import PATIENCE


class Relay:
    """Listens on loopback and forwards each connection to `port`."""

    def __init__(self, port, delay=0, source=None, host="127.0.0.1"):
        """`delay`: seconds that bytes take in each direction. `source`: the address of loopback that the
        connections to `port` come from, if it is not `host`. `host`: an address of this machine
        to use instead of loopback's."""
        self._target = port
        self._delay = delay
        self._host = host
        self._source = source or host
        self._listener = socket.create_server((host, 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.heard = []  # (connection, direction, bytes), in the order in which they came
        self._change = None
        self.held = 0  # chunks that wait for the next one, to be changed together
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        for each in self._sockets:
            each.close()

    def change_once(self, direction, change, control=False):
        """Replaces the next bytes of `direction` on a data connection, or on a control connection, by the chunks that
        `change(chunks)` returns; if it returns None, the chunk waits for the next, and `change` gets
        both."""
        # The second of an attachment's two connections is that of its channel.
        self._change = (direction, change, 0 if control else 1)

    def changed(self):
        return self._change is None

    def _accept(self):
        number = 0
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._connect, args=(number, near), daemon=True).start()
            number += 1

    def _connect(self, number, near):
        """Connects to the target. With a delay, the first bytes arrive with the end of TCP's handshake, as they do
        over a distance."""
        try:
            if self._delay:
                near.recv(1, socket.MSG_PEEK)
                time.sleep(self._delay)
            far = socket.create_connection((self._host, self._target), PATIENCE,
                                           source_address=(self._source, 0))
        except OSError:
            near.close()
            return
        for each in (near, far):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.settimeout(None)
            self._sockets.append(each)
        self._pump(number, "to server", near, far, 0 if self._delay else None)
        self._pump(number, "to worker", far, near)

    def _pump(self, number, direction, source, target, first_delay=None):
        """`first_delay`: the delay of the first chunk, if it is not that of all chunks."""
        chunks = queue.Queue()

        def read():
            delay = self._delay if first_delay is None else first_delay
            while True:
                try:
                    chunk = source.recv(65536)
                except OSError:
                    chunk = b""
                chunks.put((time.monotonic() + delay, chunk))
                delay = self._delay
                if not chunk:
                    return

        def write():
            held = []
            while True:
                due, chunk = chunks.get()
                time.sleep(max(0, due - time.monotonic()))
                self.heard.append((number, direction, chunk))
                try:
                    if not chunk:
                        return target.shutdown(socket.SHUT_WR)
                    change = self._change
                    if change and change[0] == direction and number % 2 == change[2]:
                        held.append(chunk)
                        changed = change[1](held)
                        if changed is None:
                            self.held = len(held)
                            continue
                        self._change = None
                        held = []
                        for each in changed:
                            target.sendall(each)
                        continue
                    target.sendall(chunk)
                except OSError:
                    return
        for each in (read, write):
            threading.Thread(target=each, daemon=True).start()
