"""The log never waits for its reader, and no other thread waits for the log."""
import contextlib
import json
import os
import re

import pytest
from harness import free_port, scaled, wait_until
from wire import TOO_SHORT, Wire, header, payloads

BAD_FRAME = header(0, 4, 0)


def full_pipe(path):
    """Makes a named pipe that is full and that this process holds open but does not read; returns its descriptor."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 65536)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x")
    return pipe


def read_all(pipe):
    text = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(pipe, 1 << 16):
            text += piece
    return text.decode(errors="replace")


def test_nobody_reads_standard_error(stage):
    pipe = full_pipe(stage.folder / "standard-error")
    to_pipe = ["sh", "-c", f'exec "$@" 2> {stage.folder / "standard-error"}', "sh"]
    port = free_port()
    server = stage.server("-p", port, "--threads", 1, "--log-level", "debug", wrapper=to_pipe)
    worker = stage.worker()
    worker.wait_for_log("attached to")

    def connected():
        with contextlib.suppress(OSError):
            return Wire(port)
        return None

    with wait_until(connected, "the server takes clients") as client:
        for _ in range(scaled(1000)):
            with Wire(port) as hostile:
                hostile.send(BAD_FRAME)
                assert hostile.receive_error() == TOO_SHORT
        client.ask(payloads(100, 64))
    assert server.terminate() == 0
    assert worker.terminate() == 0
    os.close(pipe)


def test_lines_that_waited_come_once_somebody_reads(stage):
    pipe = full_pipe(stage.folder / "standard-error")
    to_pipe = ["sh", "-c", f'exec "$@" 2> {stage.folder / "standard-error"}', "sh"]
    stage.server(wrapper=to_pipe)
    worker = stage.worker()
    worker.wait_for_log("attached to")
    text = ""

    def said():
        nonlocal text
        text += read_all(pipe)
        return "listening on" in text

    wait_until(said, "the server's log is read")
    assert "waiting for a worker" in text
    os.close(pipe)


@pytest.mark.parametrize("kind", ["server", "worker"])
def test_the_first_line_is_the_configuration(stage, kind):
    door = stage.folder / "door"
    program = stage.program(f"offload-{kind}", "--comch", f"tcp:127.0.0.1:{free_port()}", "--insecure", "--metrics", 0,
                            "--admin", f"unix:{door}")
    program.wait_for_log("commands are accepted at")
    first = program.log.splitlines()[0]
    assert re.search(rf"info offload-{kind}: configuration: .*metrics 0 \(command line\), admin unix:{door} \(command line\)",
                     first), first


def test_every_line_of_a_client_has_its_number(stage):
    server = stage.server("--log-level", "debug", "--log-format", "json")
    stage.worker()
    server.wait_until_listening()
    with Wire(server.port) as good, Wire(server.port) as bad:
        good.ask(payloads(1, 64))
        bad.send(BAD_FRAME)
        assert bad.receive_error() == TOO_SHORT
        port = bad.socket.getsockname()[1]
    server.wait_for_log("is disconnected")
    messages = [json.loads(line)["message"] for line in server.log.splitlines()]
    lines = [message for message in messages if f"127.0.0.1:{port}" in message]
    assert [line.split(": the frame")[0] for line in lines] == [
        f"client 2, 127.0.0.1:{port}, is admitted", f"client 2, 127.0.0.1:{port}, is disconnected"]
