"""--admin and offload-ctl: commands to running programs, and which users may give them."""
import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import threading

import pytest
from harness import BIN, PATIENCE, TIME_FACTOR, needs_cpu_worker, wait_until
from wire import Wire, frame, payloads


def ctl(path, *command):
    """Runs offload-ctl; returns its exit status and its output."""
    done = subprocess.run([BIN / "offload-ctl", "--admin", f"unix:{path}", *map(str, command)],
                          check=False, text=True, capture_output=True, timeout=60 * TIME_FACTOR)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(name="doors")
def some_doors(stage):
    return stage.folder / "server.admin", stage.folder / "worker.admin"


@pytest.fixture(name="pair")
def a_pair(stage, doors):
    server = stage.server("--admin", f"unix:{doors[0]}")
    worker = stage.worker("--admin", f"unix:{doors[1]}")
    server.wait_until_listening()
    worker.wait_for_log("attached to")
    return server, worker


def test_the_door_is_its_owners_and_goes_with_the_program(pair, doors):
    for program, door in zip(pair, doors):
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        assert ctl(door, "health")[0] == 0
    for program, door in zip(pair, doors):
        assert program.terminate() == 0
        assert not door.exists()
        status, said = ctl(door, "health")
        assert status == 1 and str(door) in said


def test_options_may_follow_the_command(pair, doors):  # pylint: disable=unused-argument
    done = subprocess.run([BIN / "offload-ctl", "log-level", "warning", "--admin", f"unix:{doors[0]}"], check=False,
                          text=True, capture_output=True, timeout=60 * TIME_FACTOR)
    assert (done.returncode, done.stdout) == (0, "the log level is warning\n"), done.stderr


def test_a_command_to_several_programs(pair, doors):
    words = [BIN / "offload-ctl", "--admin", f"unix:{doors[0]}", "--admin", f"unix:{doors[1]}"]

    def both(*command):
        done = subprocess.run([*words, *command], check=False, text=True, timeout=60 * TIME_FACTOR,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    said = "".join(f"unix:{door}:\nthe log level is warning\n" for door in doors)
    assert both("log-level", "warning") == (0, said)
    assert pair[0].terminate() == 0
    status, said = both("log-level", "info")  # the second one gets the command although the first one is gone
    assert status == 1
    first, _, second = said.partition(f"unix:{doors[1]}:\n")
    assert first.startswith(f"unix:{doors[0]}:\noffload-ctl: unix:{doors[0]}: there is no such socket")
    assert second == "the log level is info\n"


def test_the_reason_of_a_failed_connection(stage):
    door = stage.folder / "door"
    assert ctl(door, "health") == (1, f"offload-ctl: unix:{door}: there is no such socket: the program does not run, "
                                      "or runs with another --admin\n")
    server = stage.server("--admin", f"unix:{door}")
    server.wait_for_log("commands are accepted")
    server.kill()
    assert ctl(door, "health") == (1, f"offload-ctl: unix:{door}: no program listens there any more: the program that "
                                      "made the socket was killed\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_told_that_it_is_forbidden(stage):
    door = stage.folder / "door"
    server = stage.server("--admin", f"unix:{door}")
    server.wait_for_log("commands are accepted")
    copy = stage.folder / "offload-ctl"
    shutil.copy(BIN / "offload-ctl", copy)
    stage.folder.chmod(0o755)
    done = subprocess.run([copy, "--admin", f"unix:{door}", "drain"], check=False, text=True, capture_output=True,
                          timeout=60 * TIME_FACTOR, user=NOBODY, group=NOBODY, extra_groups=[])
    assert (done.returncode, done.stderr) == (1, f"offload-ctl: unix:{door}: permission denied: only the user of the "
                                                 "program and root may give commands\n")


def test_what_may_be_looked_at(pair, doors):
    server, worker = pair
    wait_until(lambda: ctl(doors[0], "ready") == (0, "a worker answers\n"), "it is ready")
    assert json.loads(ctl(doors[0], "status")[1])["process"] == server.pid
    assert json.loads(ctl(doors[1], "status")[1])["process"] == worker.pid
    assert "offload_server_requests_total" in ctl(doors[0], "metrics")[1]
    assert [event["name"] for event in json.loads(ctl(doors[0], "trace")[1])["traceEvents"]] == ["process_name"]


def test_log_levels_change_by_component(pair, doors):
    for program, door in zip(pair, doors):
        assert ctl(door, "log-level", "warning") == (0, "the log level is warning\n")
        lines = len(program.log.splitlines())
        assert ctl(door, "health")[0] == 0
        assert ctl(door, "log-level", "loud")[0] == 1  # its line is not reported
        assert len(program.log.splitlines()) == lines
        assert ctl(door, "log-level", "warning,telemetry=info")[0] == 0
        program.wait_for_log("command log-level warning,telemetry=info")


def test_a_drained_server_is_not_ready_and_serves(pair, doors):
    server, _ = pair
    with Wire(server.port) as client:
        assert ctl(doors[0], "drain")[0] == 0
        wait_until(lambda: ctl(doors[0], "ready") == (1, "drained by a command\n"), "it is not ready")
        client.ask(payloads(20, 64))
        with Wire(server.port) as late:
            late.ask(payloads(20, 64))
    assert ctl(doors[0], "undrain")[0] == 0
    wait_until(lambda: ctl(doors[0], "ready")[0] == 0, "it is ready again")


@needs_cpu_worker
def test_a_worker_is_let_go_once_it_owes_nothing(stage, pair, doors):
    server, worker = pair
    other = stage.worker()
    other.wait_for_log("attached to")
    with Wire(server.port) as client:
        worker.stop()
        client.send(frame(b"owed"))
        assert ctl(doors[0], "detach", 1) == (0, "worker 1 detaches when it has answered all\n")
        assert ctl(doors[0], "detach") == (1, "detach needs a worker's number (see status)\n")
        assert ctl(doors[0], "detach", 7) == (1, "there is no worker '7'\n")
        worker.send_signal(18)
        client.expect([b"dewo"])
        assert worker.wait() == 0
        client.ask(payloads(20, 64))
    assert other.alive


def test_a_worker_may_be_told_to_leave(pair, doors):
    _, worker = pair
    assert ctl(doors[1], "detach")[0] == 0
    assert worker.wait() == 0


def test_reload_says_whether_it_went_well(stage):
    file = stage.folder / "settings.toml"
    file.write_text("")
    server = stage.server("--config", file, "--admin", f"unix:{stage.folder}/door")
    server.wait_for_log("commands are accepted")
    assert ctl(stage.folder / "door", "reload")[0] == 0
    file.write_text("log-level = 7")
    assert ctl(stage.folder / "door", "reload") == (1, "nothing was changed: the log has the reason\n")
    server.wait_for_log("nothing was changed: .*settings.toml:1:1")


def test_what_is_no_command_changes_nothing(pair, doors):
    server, worker = pair
    for door in doors:
        done = subprocess.run([BIN / "offload-ctl", "--admin", f"unix:{door}", "stop"], check=False,
                              capture_output=True, timeout=60 * TIME_FACTOR)
        assert done.returncode == 2
    status, said = ctl(doors[1], "drain")
    assert status == 1 and said == "unknown command; the worker has log-level, reload and detach\n"
    assert server.alive and worker.alive


@pytest.mark.parametrize("address", ["tcp:127.0.0.1:80", "unix:", "unix:" + 108 * "x"])
def test_what_is_no_address_of_a_door(stage, address):
    server = stage.program("offload-server", "--admin", address)
    assert server.wait() == 2
    assert "is not unix:PATH, with a path of at most 107 bytes" in server.log


def test_a_door_that_is_taken_is_an_error(pair, stage, doors):  # pylint: disable=unused-argument
    worker = stage.worker("--admin", f"unix:{doors[0]}")
    assert worker.wait() == 1
    assert "another program listens there" in worker.log


NOBODY = 65534
EVIL = b"\x1b]0;owned\x07\x1b[2J\xff\tall is well\n"
SHOWN = r"\u001b]0;owned\u0007\u001b[2J\ufffd" + "\tall is well\n"


@contextlib.contextmanager
def strange_door(path, user):
    """A socket of `user` that every user may connect to; answers once, with text that controls a terminal."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o777)
    asked = []

    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            asked.append(connection.recv(4096))
            if asked[-1]:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EVIL) + EVIL)

    listener.settimeout(PATIENCE)
    own = os.geteuid()
    os.seteuid(user)  # a socket belongs to the user who calls listen()
    listener.listen()
    os.seteuid(own)
    thread = threading.Thread(target=answer)
    thread.start()
    yield asked
    thread.join(PATIENCE)
    listener.close()


def test_what_a_program_says_commands_no_terminal(stage):
    with strange_door(stage.folder / "door", os.geteuid()) as asked:
        assert ctl(stage.folder / "door", "status") == (0, SHOWN)
    assert asked[0].startswith(b"GET /status ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_the_door_of_another_user_is_told_nothing(stage):
    stage.folder.chmod(0o1777)
    with strange_door(stage.folder / "door", NOBODY) as asked:
        status, said = ctl(stage.folder / "door", "detach", 1)
    assert status == 1 and asked == [b""]
    assert f"the socket belongs to user {NOBODY}" in said and "only user 0 and root are trusted" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_root_trusts_a_service_in_the_services_own_folder(stage):
    """The folder is like the unit's: it belongs to another user, and only that user may write in it."""
    folder = stage.folder / "service"
    folder.mkdir(mode=0o755)
    os.chown(folder, NOBODY, NOBODY)
    with strange_door(folder / "door", NOBODY) as asked:
        assert ctl(folder / "door", "health")[0] == 0
    assert asked[0].startswith(b"GET /healthz ")


def test_a_door_in_place_of_its_own_stays(stage):
    door = stage.folder / "door"
    first = stage.server("--admin", f"unix:{door}")
    first.wait_for_log("commands are accepted")
    door.unlink()
    stage.server("--admin", f"unix:{door}", comch=stage.folder / "second.sock").wait_for_log(
        "commands are accepted")
    assert first.terminate() == 0
    assert ctl(door, "health")[0] == 0
