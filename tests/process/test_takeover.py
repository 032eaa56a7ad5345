"""Servers start where another has been, and not where another is."""
import signal
import stat

from harness import expect_server_left
from wire import Wire


def test_a_server_on_the_same_path_and_port_at_once(stage):
    """Also with connections of the former that linger in TIME_WAIT; the worker comes along."""
    port = 0
    worker = stage.worker()
    for _ in range(3):
        server = stage.server("-p", port)
        server.wait_until_listening()
        port = port or server.port
        wire = Wire(port)
        wire.ask([b"again"])
        server.send_signal(signal.SIGTERM)
        wire.expect_end()  # the server closes first, so TIME_WAIT is its own
        wire.close()
        expect_server_left(server, worker)


def test_the_socket_file_of_a_killed_server_is_taken_over(stage):
    server, worker = stage.pair()
    server.kill()
    assert stat.S_ISSOCK(server.socket_file.stat().st_mode)
    successor = stage.server()
    successor.wait_until_listening()
    stage.run_client(successor, "-i", 100)
    successor.send_signal(signal.SIGTERM)
    expect_server_left(successor, worker)


def expect_refusal(program, text):
    """It exits with 1 and one line that says why, before it serves anything."""
    assert program.wait() == 1
    lines = [line for line in program.log.splitlines() if " info " not in line]
    assert len(lines) == 1 and text in lines[0], program.log


def test_a_second_server_on_the_same_comch_path(stage):
    server, _ = stage.pair()
    expect_refusal(stage.server(), f"unix:{stage.comch}: another server listens there")
    stage.run_client(server, "-i", 100)
    assert stage.comch.exists()


def test_a_second_server_on_the_same_port(stage):
    server, _ = stage.pair()
    comch = stage.folder / "other.sock"
    second = stage.server("-p", server.port, comch=comch)
    worker = stage.worker(comch=comch)
    expect_refusal(second, f"cannot listen on 127.0.0.1:{server.port}: Address already in use")
    assert not comch.exists()
    stage.run_client(server, "-i", 100)
    assert worker.alive and worker.terminate() == 0


def test_a_path_that_is_not_a_socket_is_left_alone(stage):
    stage.comch.write_text("precious")
    expect_refusal(stage.server(), "the path exists and is not a socket")
    assert stage.comch.read_text() == "precious"


def test_a_path_that_cannot_be_made(stage):
    comch = stage.folder / "no" / "such" / "folder"
    expect_refusal(stage.server(comch=comch), f"unix:{comch}")
