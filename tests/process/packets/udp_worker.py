"""offload-worker --udp in the namespace HERE."""
import http.client
import re
import signal
import struct

import pytest

from harness import BACKEND, BIN
from veth import ADDRESS, HERE, LIMIT, THERE, Program, namespace, run

PORT = 4000
ADDRESS6, PEER6 = "fd09::1", "fd09::2"
SUMMARY = re.compile(r"(\d+) datagrams: (\d+) answered, (\d+) refused, (\d+) malformed "
                     r"\((\d+) of these")


def add_ipv6():
    for name, interface, address in ((HERE, "x0", ADDRESS6), (THERE, "x1", PEER6)):
        run("ip", "-n", name, "addr", "add", f"{address}/64", "dev", interface, "nodad")


def request(sequence, payload, size=None, kind=4, length=None):
    size = 12 + len(payload) if size is None else size
    length = len(payload) if length is None else length
    return struct.pack(">QIII", sequence, size, kind, length) + payload


class Worker(Program):
    """offload-worker --udp, which is ready; end() returns its counts."""

    def __init__(self, *options, place=f"{ADDRESS}:{PORT}"):
        super().__init__("serving", BIN / "offload-worker", "--udp", place, "--backend", BACKEND, *options)

    def end(self, number=signal.SIGTERM):
        super().end(number)
        names = ("datagrams", "answered", "refused", "malformed", "bad_frames")
        return dict(zip(names, map(int, SUMMARY.search(self.log).groups())))

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=LIMIT)


@pytest.fixture
def worker():
    """Returns a function that starts workers."""
    started = []

    def start(*options, **place):
        started.append(Worker(*options, **place))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()


def page_of(program, path="/metrics"):
    """Returns a page of --metrics in the worker's namespace; the worker makes a page ten times a second."""
    port = int(re.search(r"metrics on http://127\.0\.0\.1:(\d+)/", program.log)[1])
    with namespace(HERE):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def figures_of(program, query=""):
    status, text = page_of(program, "/metrics" + query)
    assert status == 200
    return {name: float(value) for name, value in re.findall(r"^([a-z].*) (\S+)$", text, re.MULTILINE)}
