"""A client that checks its answers and notices every fault."""
import struct
import threading

from harness import TIME_FACTOR, wait_until
from wire import Wire, frame, reverse


class Asker(threading.Thread):
    """A client that sends payloads of which no two are alike, keeps some in flight all the time, and
    checks each answer. stop() ends it and raises if anything was wrong."""

    def __init__(self, port, in_flight=40, size=None, patience=60 * TIME_FACTOR,
                 source=None):
        """`size`: the length of each request, a multiple of 8; by default all up to some 600 bytes. `source`: its
        address."""
        super().__init__(daemon=True)
        self.wire = Wire(port, source=source)
        self.wire.socket.settimeout(patience)
        self.in_flight = in_flight
        self.size = size
        self.sent = self.answered = 0
        self._stopping = threading.Event()
        self._failure = None
        self.start()

    def run(self):
        try:
            self.ask()
        except Exception as failure:  # of any kind: stop() raises it
            self._failure = failure

    def payload(self, number):
        if self.size:
            return struct.pack(">Q", number) * (self.size // 8)
        return b"question %d" % number + bytes(number * 37 % 600)

    def ask(self):
        while not self._stopping.is_set() or self.answered < self.sent:
            if not self._stopping.is_set() and self.sent - self.answered < self.in_flight:
                request = frame(self.payload(self.sent))
                self.sent += 1
                self.wire.send(request)
            else:
                self.wire.expect([reverse(self.payload(self.answered))])
                self.answered += 1
        self.wire.finish_sending()
        self.wire.expect_end()

    def stop(self):
        self._stopping.set()
        self.join(60 * TIME_FACTOR)
        assert not self.is_alive(), "answers are missing"
        if self._failure:
            raise self._failure


def wait_for_progress(asker, answers=200):
    """Waits until the asker has `answers` more answers."""
    aim = asker.answered + answers
    wait_until(lambda: asker.answered >= aim or not asker.is_alive(), f"{answers} more answers")
    if not asker.is_alive():
        asker.stop()
