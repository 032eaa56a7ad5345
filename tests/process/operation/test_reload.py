"""SIGHUP rereads what can be reread. It never ends a program, and a wrong file changes nothing."""
import json
import os
import signal

import pytest

from harness import wait_until
from wire import Wire, payloads

PROGRAMS = ["server", "worker"]


@pytest.fixture(params=PROGRAMS)
def running(request, stage):
    """A server with its worker, one of which has a file of settings: it, the file, and the server."""
    file = stage.folder / "settings.json"
    file.write_text("{}")
    option = ["--reload-file", file]
    server = stage.server(*(option if request.param == "server" else []))
    worker = stage.worker(*(option if request.param == "worker" else []))
    server.wait_until_listening()
    worker.wait_for_log("attached to")
    return server if request.param == "server" else worker, file, server


def hang_up(program, answer, count):
    program.send_signal(signal.SIGHUP)
    program.wait_for_log(answer, count=count)


def test_a_good_file_changes_the_log_level_and_a_wrong_one_nothing(running):
    program, file, server = running
    file.write_text(json.dumps({"log-level": "warning", "shutdown-timeout": "2s"}))
    program.send_signal(signal.SIGHUP)  # silent, as it goes well
    wrong = ["", "[]", '{"log-level": "loud"}', '{"log-level": "debug", "shutdown-timeout": "soon"}',
             '{"log-level": "debug", "no-such-option": 1}']
    for count, text in enumerate(wrong, 1):
        file.write_text(text)
        hang_up(program, "error .*SIGHUP: nothing is changed: .*settings.json", count)
    file.unlink()
    hang_up(program, "nothing is changed: .*No such file", 1)
    assert "are reread" not in program.log
    file.write_text(json.dumps({"log-level": "info"}))
    hang_up(program, "info .*SIGHUP: settings and keys are reread", 1)
    with Wire(server.port) as client:
        client.ask(payloads(20, 64))


def test_many_hangups_end_nothing(running):
    program, _, server = running
    with Wire(server.port) as client:
        for _ in range(100):
            program.send_signal(signal.SIGHUP)
        client.ask(payloads(20, 64))
        program.wait_for_log("SIGHUP")
    assert program.alive
    assert program.terminate() == 0


def test_without_a_file_a_hangup_is_harmless(stage):
    server, worker = stage.pair()
    for program in (server, worker):
        hang_up(program, "SIGHUP", 1)
    with Wire(server.port) as client:
        client.ask(payloads(20, 64))


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_wrong_file_at_the_start_is_an_error(stage, kind):
    file = stage.folder / "settings.json"
    file.write_text('{"log-level": "loud"}')
    program = getattr(stage, kind)("--reload-file", file)
    assert program.wait() == 1
    assert "log-level: 'loud' is not one of" in program.log


def test_a_worker_rereads_its_key(stage):
    stage.key_options()[1].chmod(0o600)
    worker = stage.worker("--comch-key-file", stage.key_options()[1])
    worker.wait_for_log("back end")
    stage.key_options()[1].write_bytes(b"short")
    hang_up(worker, "nothing is changed: the key file", 1)
    stage.key_options()[1].write_bytes(os.urandom(32))
    hang_up(worker, "are reread", 1)
    wait_until(lambda: worker.alive, "the worker lives")
