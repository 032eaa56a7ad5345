"""Texts of a peer appear in log and terminal as printable text."""
import socket
import struct

from control import HELLO, Control, hello
from harness import PATIENCE, on_one_machine
from wire import BAD_HELLO, BUSY, ERROR, WORKER_UNAVAILABLE, frame

EVIL = b"\x1b[2J\x1b]0;owned\x07\r\n2026-01-01 error offload-server: forged \xff"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\x0d\x0a2026-01-01 error offload-server: forged \xff"


def expect_shown(log):
    assert SHOWN in log
    assert not set(log) & {"\x1b", "\x07", "\r", "\ufffd"}, log


@on_one_machine
def test_a_workers_back_end_and_its_refusal(stage):
    server = stage.server()
    server.wait_for_log("waiting for a worker")
    with Control.connect(stage.comch) as worker:
        greeting = hello().replace(b"\4fake", bytes([len(EVIL)]) + EVIL)
        worker.send_raw(frame(greeting, HELLO))
        server.wait_for_log("attaches")
        worker.send(ERROR, struct.pack(">I", BUSY) + EVIL)
        server.wait_for_log("it refused")
    expect_shown(server.log)
    assert server.log.count(SHOWN) == 2


@on_one_machine
def test_a_servers_refusal(stage):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(stage.comch))
        listener.listen()
        listener.settimeout(PATIENCE)
        worker = stage.worker()
        with Control(listener.accept()[0]) as server:
            server.expect(HELLO)
            server.send(ERROR, struct.pack(">I", BAD_HELLO) + EVIL)
            assert worker.wait() == 1
    expect_shown(worker.log)


def test_a_servers_error_to_a_client(stage):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        client = stage.client(listener.getsockname()[1], "-i", 1)
        connected, _ = listener.accept()
        with connected:
            connected.settimeout(PATIENCE)
            connected.recv(1 << 16)
            connected.sendall(frame(struct.pack(">I", WORKER_UNAVAILABLE) + EVIL, ERROR))
            assert client.wait() == 1
    expect_shown(client.log)
