"""SIGHUP rereads what can be reread. It never ends a program, and a wrong file changes nothing."""
import json
import os
import re
import signal

import pytest

from harness import hang_up_with_fifo
from wire import Wire, payloads

PROGRAMS = ["server", "worker"]


@pytest.fixture(params=PROGRAMS)
def running(request, stage):
    """A server with its worker, one of which has a configuration: it, the file, and the server."""
    file = stage.folder / "settings.toml"
    file.write_text("")
    option = ["--config", file]
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
    file.write_text('log-level = "debug"\nshutdown-timeout = "2s"\n')
    hang_up(program, "were reread", 1)
    wrong = ["=", "[]", 'log-level = "loud"', 'log-level = "debug"\nshutdown-timeout = "soon"',
             'log-level = "debug"\nno-such-option = 1']
    for count, text in enumerate(wrong, 1):
        file.write_text(text)
        hang_up(program, r"error .*SIGHUP: nothing was changed: .*settings.toml:\d:\d+: ", count)
    file.unlink()
    hang_up(program, "nothing was changed: .*settings.toml was not readable", 1)
    file.write_text(json.dumps({"log-level": "info"}))  # the same as JSON
    hang_up(program, "info .*SIGHUP: settings and keys were reread", 2)
    with Wire(server.port) as client:
        client.ask(payloads(20, 64))


def test_what_needs_a_restart_is_named(running):
    program, file, _ = running
    file.write_text('comch = "unix:/tmp/elsewhere.sock"\nspin = "1us"\nlog-level = "debug"\n')
    hang_up(program, "were reread", 1)
    # The command line has given the file's place, and it has priority.
    assert re.search(r"warning .*changes only after a restart: spin \d+us \(default\) -> 1us\n", program.log)


def test_the_log_says_what_changed_from_what_to_what(running):
    program, file, _ = running
    told = re.escape("SIGHUP: settings and keys were reread: ")
    file.write_text('shutdown-timeout = "2s"\n')
    hang_up(program, told + r"shutdown-timeout \d+ \(default\) -> 2s\n", 1)
    file.write_text('shutdown-timeout = "3s"\nlog-level = "info,comch=debug"\n')
    hang_up(program, told + r"shutdown-timeout 2s -> 3s, log-level info \(default\) -> info,comch=debug\n", 1)
    hang_up(program, told + "nothing changed\n", 1)
    file.write_text("")
    hang_up(program, told + r"shutdown-timeout 3s -> \d+ \(default\), log-level info,comch=debug -> info \(default\)\n", 1)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_log_names_a_key_that_changed_and_never_shows_it(stage, kind):
    options = stage.key_options()
    path = options[1]
    program = getattr(stage, kind)(*([] if "--comch-key-file" in stage.comch_options() else options))
    program.wait_for_log("waiting for a worker" if kind == "server" else "back end")
    new = os.urandom(32).hex()  # printable, so that nothing escapes it
    path.write_text(new)
    hang_up(program, f"were reread: the content of {path}\n", 1)
    hang_up(program, "were reread: nothing changed\n", 1)
    assert new not in program.log and new[:16] not in program.log


def test_a_hundred_hangups_under_load(stage):
    """Every third file is wrong: each is answered with a line, and no request is lost."""
    file = stage.folder / "settings.toml"
    file.write_text("")
    server = stage.server("--config", file)
    stage.worker()
    server.wait_until_listening()
    client = stage.client(server, "-t", 2, "--max-concurrent-messages", 8, "--duration", 60, "--quiet")
    for i in range(1, 101):
        wrong = i % 3 == 0
        file.write_text("log-level = 7\n" if wrong else f'log-level = "info"\nworker-timeout = "{i}s"\n')
        hang_up(server, "nothing was changed" if wrong else "were reread", i // 3 if wrong else i - i // 3)
    client.send_signal(signal.SIGINT)
    assert client.wait() == 130, client.log  # the signal's; each response was right
    lines = [line for line in server.log.splitlines() if "SIGHUP" in line]
    assert len(lines) == 100


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
    file = stage.folder / "settings.toml"
    file.write_text('\nlog-level = "loud"')
    program = getattr(stage, kind)("--config", file)
    assert program.wait() == 2
    assert re.search(r"settings.toml:2:1: --log-level: 'loud' is not one of", program.log)
    assert len(program.log.splitlines()) == 1


WRONG = ["threads = [1, 2", "thread = 1", "threads = 0", "threads = 1\nthreads = 2", "[server]\nspin = 1",
         "threads = 1\ncpu = [0]", 'tls-key = "x"', '{"threads": 1,}', 'insecure = "yes"',
         '{"device-id": "mlx5_0"}', 'comch = ["unix:a", "unix:b"]', "\udcff"]


@pytest.mark.parametrize("text", WRONG)
def test_wrong_files_are_one_line_with_the_place(stage, text):
    file = stage.folder / "wrong"
    file.write_bytes(text.encode(errors="surrogateescape"))
    program = stage.program("offload-server", "--config", file, "--check-config")
    assert program.wait() == 2
    assert re.fullmatch(rf"offload-server: {file}:\d:\d+: .+\n", program.log), program.log


def test_a_configuration_is_checked_with_its_files_and_printed(stage):
    def run(*options):
        program = stage.program("offload-server", *options)
        return program.wait(), program.out, program.log

    key = stage.folder / "short.key"
    key.write_bytes(b"short")
    key.chmod(0o600)
    file = stage.folder / "settings.toml"
    file.write_text(f'comch-key-file = ["{key}"]\nthreads = 2\n')
    status, _, said = run("--config", file, "--check-config")
    assert status == 1 and "the key file" in said
    key.write_bytes(os.urandom(32))
    assert run("--config", file, "--check-config")[0] == 0
    status, printed, _ = run("--config", file, "--threads", 3, "--print-config")
    assert status == 0 and "\nthreads = 3\n" in printed and str(key) in printed
    file.write_text(printed)
    assert run("--config", file, "--print-config") == (0, printed, "")


def test_a_wrong_key_file_changes_nothing(stage):
    """The worker uses a right one: comch/test_security_keys.py."""
    worker = stage.worker("--comch-key-file", stage.key_options()[1])
    worker.wait_for_log("back end")
    stage.key_options()[1].write_bytes(b"short")
    hang_up(worker, "nothing was changed: the key file", 1)
    stage.key_options()[1].write_bytes(os.urandom(32))
    hang_up(worker, "were reread", 1)
    assert worker.alive


def test_a_worker_that_waits_takes_the_time_limit_that_it_rereads(stage):
    file = stage.folder / "settings.toml"
    file.write_text('connect-timeout = "1h"')
    worker = stage.worker("--config", file)
    worker.wait_for_log("back end")
    file.write_text('connect-timeout = "100ms"')
    hang_up(worker, "were reread", 1)
    assert worker.wait() == 1
    assert "accepted this worker within 0.1 s" in worker.log


def test_a_worker_that_serves_takes_the_time_limit_that_it_rereads(stage):
    file = stage.folder / "settings.toml"
    file.write_text('shutdown-timeout = "1h"')
    server, worker = stage.server(), stage.worker("--config", file)
    server.wait_until_served()
    worker.wait_for_log("attached to")
    file.write_text('shutdown-timeout = "100ms"')
    hang_up(worker, "were reread", 1)
    server.stop()
    assert worker.terminate() == 0
    assert "the server did not detach this worker in time" in worker.log


def test_a_fifo_in_the_place_of_a_file_is_an_error(stage):
    """open() of a FIFO waits for a writer without O_NONBLOCK: the control thread would never return."""
    file, key = stage.folder / "settings.toml", stage.key_options()[1]
    file.write_text("")
    server = stage.server("--config", file, "--comch-key-file", key)
    stage.worker()
    server.wait_until_listening()
    hang_up_with_fifo(server, file, 1)
    hang_up_with_fifo(server, key, 2)
    assert server.terminate() == 0
