"""A relay between server and worker over tcp:, without a key, can neither read nor change anything."""
import os
import re
import socket

import pytest

from harness import PATIENCE, free_port, wait_until
from relay import Relay
from wire import Wire, frame, payloads, reverse

SECRET = b"the-secret-of-a-request-" * 4


@pytest.fixture
def lines(stage):
    """Yields a server, a relay to it, and a worker that is attached through the relay."""
    port = free_port()
    key = stage.key_options()
    server = stage.program("offload-server", "--comch", f"tcp:127.0.0.1:{port}", "-p", 0, *key)
    server.wait_for_log("waiting for a worker")
    with Relay(port) as relay:
        worker = stage.program("offload-worker", "--comch", f"tcp:127.0.0.1:{relay.port}",
                               "--backend", "cpu", *key)
        server.wait_for_log("is ready")
        clients = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
        yield server, relay, worker, clients
        # The relay still exists: the worker detaches through it.
        assert server.terminate() == 0
        assert worker.terminate() == 0


def test_it_sees_nothing(lines):
    server, relay, worker, clients = lines
    with Wire(clients) as wire:
        wire.ask([SECRET] + payloads(20, 100))
    seen = b"".join(chunk for _, _, chunk in relay.heard)
    assert len(seen) > 2000
    assert SECRET[:16] not in seen and reverse(SECRET)[:16] not in seen
    assert b"reverse" not in seen, "the name of the service, in the welcome"
    assert "TLS 1.3" in worker.log


CHANGES = {
    "rewrites": lambda held: [held[0][:-3] + bytes([held[0][-3] ^ 1]) + held[0][-2:]],
    "replays": lambda held: [held[0], held[0]],
    "injects": lambda held: [b"\x17\x03\x03\x00\x30" + os.urandom(48), held[0]],
    "injects what is no TLS": lambda held: [frame(b"", 0), held[0]],
    "reorders": lambda held: None if len(held) < 2 else [held[1], held[0]],
    "leaves out": lambda held: None if len(held) < 2 else [held[1]],
    "cuts off": lambda held: [held[0][:-1]],
}


@pytest.mark.parametrize("direction", ["to worker", "to server"])
@pytest.mark.parametrize("change", CHANGES)
def test_it_changes_nothing(lines, change, direction):
    """The receiver of the change detects and reports it; the attachment ends, and the requests are answered with the
    next one, correctly."""
    server, relay, worker, clients = lines
    with Wire(clients) as wire:
        wire.ask([b"before"])
        relay.change_once(direction, CHANGES[change])
        asked = [b"first", SECRET, SECRET]
        wire.send(frame(asked[0]))
        # Another request follows if the change needs a second chunk or the end of one.
        wait_until(lambda: relay.changed() or relay.held, "a chunk that the relay has")
        for payload in asked[1:]:
            wire.send(frame(payload))
        server.wait_for_log(r"worker .+ is gone")
        worker.wait_for_log("the server is gone")
        # The detecting side tells the other, whose control connection may end before that message arrives.
        assert re.search("TLS: .*a third party is between its two ends", server.log + worker.log)
        server.wait_for_log("is ready", count=2)
        wire.expect([reverse(payload) for payload in asked])


def test_what_it_heard_is_worth_nothing_later(lines):
    """A replay of all bytes that a worker has sent neither attaches nor does any harm."""
    server, relay, worker, clients = lines
    with Wire(clients) as wire:
        wire.ask([b"before"])
        for number in (0, 1):
            heard = b"".join(chunk for connection, direction, chunk in list(relay.heard)
                             if connection == number and direction == "to server")
            with socket.create_connection(("127.0.0.1", relay._target), PATIENCE) as again:
                try:
                    again.sendall(heard)
                    while again.recv(65536):
                        pass
                except ConnectionError:
                    pass
        wire.ask([SECRET])
    server.wait_for_log(r"a control connection of 127.0.0.1:\d+ is refused: TLS: ")
    assert "is gone" not in server.log and "is gone" not in worker.log
