"""A client that notices how long it has to wait for answers, and whatever is wrong with them."""

import selectors
import socket
import struct
import sys
import threading
import time
from collections import deque

PATIENCE_S = 60
REQUEST, RESPONSE = 4, 5
MIB = 1 << 20


class Connection:
    """A probe's connection. Request n is n, eight bytes, again and again."""

    def __init__(self, port, size):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.size = size
        self.sent = self.answered = 0
        self.output, self.input = memoryview(b""), bytearray()
        self.times = deque()  # of answers

    def payload(self, number):
        return struct.pack(">Q", number) * (self.size // 8)

    def ask(self):
        payload = self.payload(self.sent)
        self.sent += 1
        header = struct.pack(">III", 12 + len(payload), REQUEST, len(payload))
        self.output = memoryview(bytes(self.output) + header + payload)
        self.write()

    def write(self):
        try:
            while self.output:
                self.output = self.output[self.socket.send(self.output):]
        except BlockingIOError:
            pass

    def read(self, probe):
        piece = self.socket.recv(4 * MIB)
        if not piece:
            raise ConnectionError("the server closed a connection")
        self.input += piece
        while len(self.input) >= 12:
            whole, kind, length = struct.unpack_from(">III", self.input)
            if len(self.input) < whole:
                return
            if kind != RESPONSE:
                probe.refused += 1
            elif self.input[12:whole] != self.payload(self.answered)[::-1]:
                probe.wrong += 1
            self.answered += 1
            del self.input[:whole]
            self.times.append(time.monotonic())


class Probe:
    """Connections of one size, driven by a separate thread."""

    def __init__(self, port, size, connections, in_flight, interval):
        self.connections = [Connection(port, size) for _ in range(connections)]
        self.in_flight, self.interval = in_flight, interval
        self.refused = self.wrong = 0
        self.failure = None
        self._ending = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._drive()
        except Exception as failure:  # of any kind: end() raises it
            self.failure = failure

    def _drive(self):
        selector = selectors.DefaultSelector()
        for each in self.connections:
            selector.register(each.socket, selectors.EVENT_READ, each)
        next_send = time.monotonic()
        while not self._ending or any(each.answered < each.sent for each in self.connections):
            now = time.monotonic()
            if now >= next_send and not self._ending:
                next_send = max(next_send + self.interval, now)
                for each in self.connections:
                    if each.sent - each.answered < self.in_flight:
                        each.ask()
            for each in self.connections:
                selector.modify(each.socket, selectors.EVENT_READ |
                                (selectors.EVENT_WRITE if each.output else 0), each)
            for key, events in selector.select(max(0, next_send - time.monotonic())):
                if events & selectors.EVENT_WRITE:
                    key.data.write()
                if events & selectors.EVENT_READ:
                    key.data.read(self)

    def mark(self):
        """Prepares for an event: forgets the times of all answers but the last."""
        for each in self.connections:
            while len(each.times) > 1:
                each.times.popleft()

    def gap_until_served(self, answers=5):
        """The longest time between two answers since mark(), once each connection had some."""
        deadline = time.monotonic() + PATIENCE_S
        while any(len(each.times) <= answers for each in self.connections):
            if self.failure or time.monotonic() > deadline:
                sys.exit(f"the probe is not answered: {self.failure or 'nothing comes'}")
            time.sleep(0.002)
        gaps = []
        for each in self.connections:
            times = list(each.times)
            gaps += [after - before for before, after in zip(times, times[1:])]
        return max(gaps)

    def end(self):
        """(answered, wrong, refused, unanswered)"""
        self._ending = True
        self._thread.join(PATIENCE_S)
        unanswered = sum(each.sent - each.answered for each in self.connections)
        if self.failure:
            print(f"probe: {self.failure}", file=sys.stderr)
        return (sum(each.answered for each in self.connections), self.wrong, self.refused,
                unanswered)
