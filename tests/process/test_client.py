"""The load client notices errors, and ends when it should: Ctrl-C makes the reference client hang."""
import resource
import signal
import socket
import subprocess

import pytest

from harness import BIN, PATIENCE, statistics, wait_until

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM],
                                  ids=["SIGINT", "SIGTERM"])


def test_the_client_notices_a_wrong_answer(stage):
    server, _ = stage.pair("--service", "echo")
    client = stage.client(server, "-i", 10, "-m", "hello", "-e", "olleh")
    assert client.wait() == 1
    assert "thread 0, request 0: the response differs at offset 0 of 5" in client.log
    assert "expected 6f 6c 6c 65 68, got 68 65 6c 6c 6f" in client.log


def test_more_threads_than_the_soft_limit_on_descriptors_allows(stage):
    server, _ = stage.pair()
    command = [BIN / "offload-client", "-s", "127.0.0.1", "-p", str(server.port), "-t", "100",
               "-i", "10", "-m", "hello", "-e", "olleh"]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                (128, hard)))
    assert done.returncode == 0, done.stderr
    assert "1000" in done.stdout


def expect_interrupted(client):
    assert client.wait() == 130, client.log
    table = statistics(client)
    assert table["Valid responses"] == table["Operation count"]
    return table


@SIGNALS
def test_a_client_that_is_interrupted_prints_what_it_has(stage, number):
    server, _ = stage.pair()
    client = stage.client(server, "-t", 2, "--duration", "60s")
    client.wait_for_log("connected to")
    client.wait_until_it_works()
    client.send_signal(number)
    table = expect_interrupted(client)
    assert table["Operation count"] > 0
    assert table["service time max"] > 0
    assert "Unanswered requests" not in table


def test_a_client_interrupted_while_it_connects(stage):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # not listening: connections are refused
        client = stage.client(nobody.getsockname()[1], "--connect-timeout", "60s")
        client.wait_for_log("waiting for the server")
        client.send_signal(signal.SIGINT)
        expect_interrupted(client)


def test_a_client_whose_server_never_answers(stage):
    """It waits a second for due responses; after a second Ctrl-C it does not even do that."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        client = stage.client(mute.getsockname()[1], "-i", 10)
        client.wait_for_log("connected to")
        client.send_signal(signal.SIGINT)
        assert expect_interrupted(client).get("Operation count") == 0

        impatient = stage.client(mute.getsockname()[1], "-i", 10)
        impatient.wait_for_log("connected to")
        impatient.send_signal(signal.SIGINT)
        wait_until(lambda: not impatient.blocks(signal.SIGINT), "the first signal is taken")
        impatient.send_signal(signal.SIGINT)
        assert impatient.wait() in (130, -signal.SIGINT)


def test_a_client_gives_up_on_a_server_that_never_answers(stage):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        client = stage.client(mute.getsockname()[1], "-i", 10, "--response-timeout", "300ms")
        assert client.wait() == 1
        assert "no response for 0.3" in client.log and "10 requests unanswered" in client.log


def test_a_client_gives_up_on_a_server_that_is_not_there(stage):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        client = stage.client(nobody.getsockname()[1], "--connect-timeout", "300ms")
        assert client.wait() == 1
        assert "Connection refused" in client.log
