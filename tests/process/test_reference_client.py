"""Programs that speak version 1 of the protocol work unchanged: DOCA's client with our server, its server with our
client, and the options of its command lines."""
import json
import socket
import struct
import threading

import pytest

from harness import PATIENCE, scaled, statistics
from wire import REQUEST, Wire, frame, payloads, reverse

IN_FLIGHT = 128  # the reference client's, per thread


class ReferenceClient(threading.Thread):
    """A thread of DOCA's client as it appears on the wire: one connection; requests with msg_id 4, up
    to 128 in flight; it checks length and payload of each response, never msg_id."""

    def __init__(self, port, iterations, message, expected):
        super().__init__()
        self.iterations, self.message, self.expected = iterations, message, expected
        self.wire = Wire(port)
        self.valid = 0

    def run(self):
        sent = received = 0
        while received < self.iterations:
            while sent < self.iterations and sent - received < IN_FLIGHT:
                self.wire.send(frame(self.message, REQUEST))
                sent += 1
            got = self.wire.receive()
            if got is None:
                return
            received += 1
            self.valid += got[1] == self.expected
        self.wire.close()


def test_the_reference_client_gets_its_answers(stage):
    server, _ = stage.pair("--threads", 2)
    count = scaled(5000)
    threads = [ReferenceClient(server.port, count, b"hello", b"olleh") for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(6 * PATIENCE)
    assert [thread.valid for thread in threads] == [count] * 4


@pytest.mark.parametrize("length", [1, 252, 256])
def test_every_length_that_the_reference_takes(stage, length):
    """The reference's limit of 256 bytes includes its 4-byte length field; with the same number, our server accepts
    every length that it accepts."""
    server, _ = stage.pair("--max-message-length", 256)
    message = payloads(1, length)[0]
    thread = ReferenceClient(server.port, 300, message, reverse(message))
    thread.start()
    thread.join(PATIENCE)
    assert thread.valid == 300


@pytest.mark.parametrize("options", ids=["short", "long", "equals"], argvalues=[
    ("-s {host} -p {port} -t 2 -i 500 -m hello -e olleh --max-concurrent-messages 16"),
    ("--server-ip-address {host} --server-ip-port {port} --thread-count 2 --iteration-count 500 "
     "--message-string hello --expected-response olleh --max-concurrent-messages 16"),
    ("--server-ip-address={host} --server-ip-port={port} --thread-count=2 --iteration-count=500 "
     "--message-string=hello --expected-response=olleh --max-concurrent-messages=16"),
])
def test_the_client_takes_the_reference_clients_options(stage, options, tmp_path):
    server, _ = stage.pair("--max-concurrent-messages", 128, "--max-message-length", 256)
    words = options.format(host="127.0.0.1", port=server.port).split()
    client = stage.program("offload-client", *words, "--output", tmp_path / "result.json")
    assert client.wait() == 0, client.log
    assert statistics(client)["Operation count"] == 1000
    chosen = json.loads((tmp_path / "result.json").read_text())["options"]
    assert chosen["thread_count"] == 2 and chosen["iteration_count"] == 500
    assert chosen["max_concurrent_messages"] == 16 and chosen["message_length"] == 5


def test_the_clients_statistics_have_the_reference_clients_names(stage):
    server, _ = stage.pair()
    client = stage.run_client(server, "-i", 100)
    names = [line.split(":")[0] for line in client.out.splitlines()]
    assert names[:5] == ["Duration (seconds)", "Operation count", "Tx Data rate (GiB/s)",
                         "Rx Data rate (GiB/s)", "IO rate (MIOP/s)"]


def test_the_clients_data_rates_are_those_of_payloads(stage, tmp_path):
    """The reference client's statistics have 5 bytes an operation for "hello", not the 17 of its frame."""
    server, _ = stage.pair()
    client = stage.run_client(server, "-i", 1000, "-m", "hello", "-e", "olleh", "--output", tmp_path / "r.json")
    run, = json.loads((tmp_path / "r.json").read_text())["runs"]
    gib = run["duration_seconds"] * 2**30
    for way in "tx", "rx":
        assert run[f"{way}_data_rate_gib_s"] * gib == pytest.approx(5 * 1000)
        assert run[f"{way}_wire_rate_gib_s"] * gib == pytest.approx(17 * 1000) == run[f"{way}_bytes"]
    printed = statistics(client)
    assert printed["Tx Data rate (GiB/s)"] == pytest.approx(run["tx_data_rate_gib_s"], abs=1e-6)
    assert printed["Rx Data rate (GiB/s)"] == pytest.approx(run["rx_data_rate_gib_s"], abs=1e-6)


class ReferenceServer(threading.Thread):
    """DOCA's server as it appears on the wire, for one client: answers with msg_id 4, not 5.
    `broken`: the number of a response in which one bit is wrong."""

    def __init__(self, receive_buffer=None, broken=None, close_after=None):
        super().__init__(daemon=True)
        self.broken, self.close_after = broken, close_after
        self.listener = socket.socket()
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.port = self.listener.getsockname()[1]
        self.bad_headers = 0

    def run(self):
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        with connection, connection.makefile("rb") as stream, self.listener:
            try:
                self.serve(connection, stream)
            except ConnectionError:
                pass  # a client that found an error disconnects without reading the rest

    def serve(self, connection, stream):
        answered = 0
        while answered != self.close_after:
            head = stream.read(12)
            if len(head) < 12:
                return
            wire_size, msg_id, length = struct.unpack(">III", head)
            self.bad_headers += wire_size != 12 + length or msg_id != REQUEST
            response = bytearray(reverse(stream.read(length)))
            if answered == self.broken:
                response[-1] ^= 1
            connection.sendall(frame(bytes(response), REQUEST))
            answered += 1


def test_the_client_works_with_the_reference_server(stage):
    server = ReferenceServer()
    server.start()
    client = stage.run_client(server, "-i", 1000, "-m", "hello", "-e", "olleh")
    assert statistics(client)["Valid responses"] == 1000
    assert server.bad_headers == 0


def test_the_client_goes_on_where_a_partial_write_ended(stage):
    """The reference client starts again at offset 0. Here 16 MiB are in flight to a server that reads slowly, which
    is more than the buffers of the two sockets take."""
    server = ReferenceServer(receive_buffer=4096)
    server.start()
    client = stage.run_client(server, "--size", "256k", "-i", 128, "--max-concurrent-messages", 64)
    assert statistics(client)["Valid responses"] == 128
    assert server.bad_headers == 0


def test_the_client_names_the_first_wrong_byte(stage):
    server = ReferenceServer(broken=37)
    server.start()
    client = stage.client(server, "-i", 100, "-m", "hello", "-e", "olleh")
    assert client.wait() == 1
    assert "thread 0, request 37: the response differs at offset 4 of 5: expected 68, got 69" \
        in client.log
    assert statistics(client)["Valid responses"] == 37


def test_the_client_does_not_take_a_lost_connection_for_success(stage):
    server = ReferenceServer(close_after=10)
    server.start()
    client = stage.client(server, "-i", 100)
    assert client.wait() == 1
    assert "thread 0, request 10:" in client.log
    assert statistics(client)["Valid responses"] == 10
