"""Keys, and the permitted peers, as the programs' options give them."""
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from urllib.request import urlopen

import pytest

from harness import PATIENCE, SANITIZE, Program, free_port, wait_until
from wire import BAD_HELLO, ERROR, Wire, frame, payloads

PROGRAMS = ["offload-server", "offload-worker"]


def key_file(stage, name, content=None, mode=0o600):
    path = stage.folder / name
    path.write_bytes(os.urandom(32) if content is None else content)
    path.chmod(mode)
    return path


def keys(*files):
    return [word for file in files for word in ("--comch-key-file", file)]


@pytest.fixture
def comch(stage):
    class Comch:
        port = free_port()
        address = ["--comch", f"tcp:127.0.0.1:{port}"]

        def server(self, *options):
            server = stage.program("offload-server", *self.address, "-p", 0, *options)
            server.wait_for_log("waiting for a worker")
            return server

        def worker(self, *options):
            return stage.program("offload-worker", *self.address, "--backend", "cpu", *options)

        def expect_service(self, server, worker, count=1):
            server.wait_for_log("is ready", count=count)
            port = int(server.wait_for_log(r"listening on \S+:(\d+) with")[1])
            with Wire(port) as wire:
                wire.ask(payloads(20, 100))
    return Comch()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_no_key_no_tcp(stage, program, host):
    ended = stage.program(program, "--comch", f"tcp:{host}:4711")
    assert ended.wait() == 1
    assert "requires a key (--comch-key-file), on loopback too; --insecure disables this" in ended.log


WEAK = {
    "short": (os.urandom(31), 0o600, "32 to 4096 bytes"),
    "a password": (b"correct horse battery staple, for ever\n", 0o600, "may be guessed"),
    "zeroes": (bytes(64), 0o600, "may be guessed"),
    "a pattern": (b"0123456789abcdef" * 8, 0o600, "may be guessed"),
    "open to others": (os.urandom(32), 0o644, "is accessible to others than its owner"),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", WEAK)
def test_a_bad_key_file(stage, program, kind):
    content, mode, text = WEAK[kind]
    ended = stage.program(program, "--comch", "tcp:127.0.0.1:0",
                          *keys(key_file(stage, "key", content, mode)))
    assert ended.wait() == 1
    assert text in ended.log
    assert mode != 0o600 or "openssl rand -out" in ended.log


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is not installed")
def test_the_command_in_the_refusal_makes_a_good_key(stage, comch):
    path = stage.folder / "new"
    subprocess.run(["sh", "-c", f"(umask 077; openssl rand -out {path} 32)"], check=True,
                   timeout=PATIENCE)
    server = comch.server(*keys(path))
    comch.expect_service(server, comch.worker(*keys(path)))


def test_another_key(stage, comch):
    right, wrong = key_file(stage, "right"), key_file(stage, "wrong")
    server = comch.server(*keys(right))
    worker = comch.worker(*keys(wrong), "--connect-timeout", "1s")
    assert worker.wait() == 1
    assert "the server lacks this worker's key" in worker.log
    assert "is refused: it knows no key of this server" in server.log
    comch.expect_service(server, comch.worker(*keys(right)))


def workers_of(server):
    address = server.wait_for_log(r"metrics on (http://127\.0\.0\.1:\d+)/")[1]
    with urlopen(address + "/status", timeout=PATIENCE) as page:
        return json.loads(page.read())["state"]["workers"]


def test_rotation(stage, comch):
    """The server has both keys; workers change one by one from the old to the new. All of them attach meanwhile."""
    new, old = key_file(stage, "new"), key_file(stage, "old")
    server = comch.server(*keys(new, old), "--metrics", 0)
    for count, files in enumerate([[old], [new], [new, old]], 1):
        worker = comch.worker(*keys(*files))
        comch.expect_service(server, worker, count)
        # A page is kept for a tenth of a second.
        shown = wait_until(lambda: [each for each in workers_of(server) if each["worker"] == count],
                           "the worker is shown")[0]
        assert shown["has_newest_key"] == (files[0] == new)
        server.wait_for_log(f"worker .* attaches: .*, with the key {shown['key']}\n")
        worker.kill()
        server.wait_for_log(r"worker .+ is gone", count=count)


def change(program, file, content):
    """Writes another key and has the program reread it."""
    file.write_bytes(content)
    program.send_signal(signal.SIGHUP)
    program.wait_for_log("SIGHUP: settings and keys were reread")


def test_a_key_that_changes_by_hangups_alone(stage, comch):
    """Server and worker run on, and keep their attachment; each uses the key for its next one."""
    old, new = os.urandom(32), os.urandom(32)
    of_server, of_worker = key_file(stage, "server.key", old), key_file(stage, "worker.key", old)
    server, worker = comch.server(*keys(of_server), "--metrics", 0), comch.worker(*keys(of_worker))
    comch.expect_service(server, worker)
    assert workers_of(server)[0]["has_newest_key"]
    change(server, of_server, new)
    wait_until(lambda: not workers_of(server)[0]["has_newest_key"], "the server has a newer key")
    change(worker, of_worker, new)
    comch.expect_service(server, comch.worker(*keys(key_file(stage, "new", new))), count=2)
    late = comch.worker(*keys(key_file(stage, "old", old)), "--connect-timeout", "500ms")
    assert late.wait() == 1 and "the server lacks this worker's key" in late.log
    assert "is gone" not in server.log and "the server is gone" not in worker.log
    server.kill()
    server = comch.server(*keys(of_server))
    worker.wait_for_log("attached to", count=2)


def test_a_worker_that_waits_uses_a_key_that_it_rereads(stage, comch):
    """The server came back with another key while the worker looked for it."""
    new, of_worker = os.urandom(32), key_file(stage, "worker.key")
    worker = comch.worker(*keys(of_worker))
    server = comch.server(*keys(key_file(stage, "new", new)))
    worker.wait_for_log("the server lacks this worker's key")
    change(worker, of_worker, new)
    comch.expect_service(server, worker)


@pytest.mark.parametrize("program", PROGRAMS)
def test_three_keys(stage, program):
    ended = stage.program(program, "--comch", "tcp:127.0.0.1:0",
                          *keys(*(key_file(stage, str(i)) for i in range(3))))
    assert ended.wait() == 2
    assert "the new key and the old one" in ended.log


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_key_and_insecure(stage, program):
    ended = stage.program(program, "--comch", "tcp:127.0.0.1:0", "--insecure",
                          *keys(key_file(stage, "key")))
    assert ended.wait() == 2


@pytest.mark.skipif(SANITIZE != [""], reason="a sanitizer's shadow makes the core dump too large")
def test_the_key_is_in_no_core_dump(stage, comch):
    """No page that a core dump contains (VmFlags without dd: core(5), proc(5)) has the key."""
    content = os.urandom(32)
    server = comch.server(*keys(key_file(stage, "key", content)))
    dumped = found = 0
    ranges, current = [], None
    for line in open(f"/proc/{server.pid}/smaps"):
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            current = (words[0].split("-"), words[1])
        elif words[0] == "VmFlags:" and current[1].startswith("rw"):
            ranges.append((int(current[0][0], 16), int(current[0][1], 16), "dd" in words))
    with open(f"/proc/{server.pid}/mem", "rb") as memory:
        for first, end, left_out in ranges:
            memory.seek(first)
            with contextlib.suppress(OSError):
                there = content in memory.read(end - first)
                dumped += there and not left_out
                found += there
    assert found and not dumped


def test_an_error_that_anybody_could_send_ends_no_worker(stage):
    """The error comes from a program in the server's position, before any proof; then the real server starts."""
    key = keys(key_file(stage, "key"))
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(PATIENCE)
        worker = stage.program("offload-worker", "--comch", f"tcp:127.0.0.1:{port}", "--backend",
                               "cpu", *key)
        for _ in range(3):
            with listener.accept()[0] as connection:
                connection.sendall(frame(struct.pack(">I", BAD_HELLO) + b"leave!", ERROR))
                with contextlib.suppress(ConnectionError):
                    connection.settimeout(PATIENCE)
                    while connection.recv(4096):
                        pass
    assert worker.alive
    worker.wait_for_log("the peer does not use TLS: it is not the --comch of an offload server, or has --insecure")
    server = stage.program("offload-server", "--comch", f"tcp:127.0.0.1:{port}", "-p", 0, *key)
    server.wait_for_log("is ready")
    assert worker.log.count("the server lacks this worker's key") < 3, "once, not each time"


def test_comch_allow(stage, comch):
    key = keys(key_file(stage, "key"))
    server = comch.server(*key, "--comch-allow", "10.0.0.0/8", "--comch-allow", "fd00::/8")
    refused = comch.worker(*key, "--connect-timeout", "1s")
    assert refused.wait() == 1
    assert "--comch-allow lacks its network" in server.log
    assert server.terminate() == 0
    server = comch.server(*key, "--comch-allow", "10.0.0.0/8", "--comch-allow", "127.0.0.1")
    comch.expect_service(server, comch.worker(*key))


@pytest.mark.parametrize("wrong", ["", "10.0.0.0/33", "host"])
def test_what_is_no_network(stage, wrong):
    ended = stage.program("offload-server", "--comch-allow", wrong)
    assert ended.wait() == 2
    assert "a network, such as 10.0.0.0/8 or fd00::/8" in ended.log


# ---- One machine: who is at the other end of the socket, and who made its folder

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


def as_nobody(stage, name, *options):
    stage.folder.chmod(0o755)
    wrapper = ["env", "-u", "XDG_RUNTIME_DIR", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
               "--clear-groups"]
    return stage.add(Program(stage.folder, name, *options, wrapper=wrapper))


@pytest.fixture
def folder():
    """Yields the default folder of user NOBODY; it does not exist at first, nor afterwards."""
    path = f"/tmp/dpu-gpu-offload-{NOBODY}"
    shutil.rmtree(path, ignore_errors=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@as_root
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_folder_that_somebody_else_made(stage, program, folder):
    """Root has made the default folder of user NOBODY first."""
    os.mkdir(folder, 0o777)
    ended = as_nobody(stage, program, "--backend", "cpu") if program == "offload-worker" else \
        as_nobody(stage, program, "-p", 0)
    assert ended.wait() == 1
    assert f"{folder} is not private to this user: it belongs to user 0, not to user {NOBODY}" in ended.log
    assert "OFFLOAD_RUNTIME_DIR" in ended.log


@as_root
def test_the_default_is_private(stage, folder):
    server = as_nobody(stage, "offload-server", "-p", 0)
    server.wait_for_log(f"waiting for a worker on unix:{folder}/dpu-gpu-offload.sock")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    worker = as_nobody(stage, "offload-worker", "--backend", "cpu")
    server.wait_for_log("is ready")
    assert server.terminate() == 0 and worker.terminate() == 0
    os.rmdir(folder)


@as_root
def test_another_users_server_is_not_served(stage):
    path = stage.folder / "squatted"
    script = (f"import os, socket, time; os.setuid({NOBODY}); s = socket.socket(socket.AF_UNIX, "
              f"socket.SOCK_SEQPACKET); s.bind({str(path)!r}); s.listen(); print(flush=True); "
              "time.sleep(60)")
    stage.folder.chmod(0o777)
    squatter = subprocess.Popen([sys.executable, "-ISc", script], stdout=subprocess.PIPE)
    try:
        squatter.stdout.readline()
        worker = stage.program("offload-worker", "--comch", f"unix:{path}", "--backend", "cpu")
        assert worker.wait() == 1
        assert f"belongs to user {NOBODY}" in worker.log
    finally:
        squatter.kill()
        squatter.wait()
