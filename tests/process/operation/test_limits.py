"""Programs under the limits of the system: each names the limit that it meets, and fails."""
import os
import re
import resource
import socket
import subprocess
import uuid
from pathlib import Path

import pytest
from harness import BACKEND, BIN, EXTENSIONS, RIGHT, SANITIZE, TIME_FACTOR, free_port, needs_cpu_worker, wait_until
from wire import Wire

LIMIT = 60 * TIME_FACTOR
PROGRAMS = sorted(path.name for path in BIN.glob("offload-*"))
MEGABYTE = 1 << 20

without_sanitizer = pytest.mark.skipif(SANITIZE != [""], reason="a sanitizer has threads and memory of its own")


@pytest.fixture(name="group")
def fixture_group():
    """Makes a control group with a limit, as a wrapper that runs a program in it; version 1 or 2."""
    made = []

    def make(controller, files, value):
        for parent, file in ((Path("/sys/fs/cgroup", controller), files[0]), (Path("/sys/fs/cgroup"), files[1])):
            folder = parent / f"offload-{uuid.uuid4().hex}"
            try:
                folder.mkdir()
                made.append(folder)
                (folder / file).write_text(str(value))
            except OSError:
                continue
            return ["sh", "-c", f'echo 0 > {folder}/cgroup.procs && exec "$@"', "sh"], folder / file
        pytest.skip("making control groups needs root and their file system")

    yield make
    for folder in made:
        def removed(folder=folder):
            try:
                folder.rmdir()
            except OSError:
                return False
            return True
        wait_until(removed, "the control group has no process any more")


def threads(group, count):
    return group("pids", ("pids.max", "pids.max"), count)


def run(*command, limits=(), wrapper=(), **options):
    def set_limits():
        for what, value in limits:
            resource.setrlimit(what, (value, value))
    return subprocess.run([*wrapper, BIN / command[0], *map(str, command[1:])], preexec_fn=set_limits, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT, check=False, **options)


# ---- Files

@pytest.mark.parametrize("name", PROGRAMS)
def test_standard_output_that_may_not_grow(name, tmp_path):
    with open(tmp_path / "out", "w") as out:
        done = run(name, "--help", limits=[(resource.RLIMIT_FSIZE, 0)], stdout=out)
    assert done.returncode == 1
    assert done.stderr == f"{name}: cannot write standard output: File too large (the limit is 0 bytes, ulimit -f)\n"


@pytest.mark.skipif("report" not in EXTENSIONS, reason="a build without the extension report")
def test_a_report_that_may_not_grow(stage, tmp_path):
    server, _ = stage.pair()
    result = tmp_path / "result.json"
    assert stage.client(server, "-i", 10, "--output", result).wait() in RIGHT
    page = tmp_path / "page.html"
    done = run("offload-report", "html", result, "-o", page, limits=[(resource.RLIMIT_FSIZE, 1024)])
    assert done.returncode == 1
    assert f"cannot write '{page}': File too large (the limit is 1024 bytes, ulimit -f)" in done.stderr
    assert list(tmp_path.iterdir()) == [result]


# ---- Threads

@without_sanitizer
@needs_cpu_worker
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["server", "worker", "client"])
def test_threads(group, stage, name, count):
    """A program that gets fewer threads than it needs reports it and fails; it does not serve in part."""
    wrapper, file = threads(group, count)
    of = {"server": [], "worker": [], "client": []} | {name: wrapper}
    server = stage.server("--threads", 2, "--metrics", 0, wrapper=of["server"])
    worker = stage.worker(wrapper=of["worker"])
    programs = {"server": server, "worker": worker}
    if name == "client":
        server.wait_until_served()
        server.wait_until_listening()
        programs["client"] = stage.program("offload-client", "-s", "127.0.0.1", "-p", server.port, "-i", 20, "-t", 4,
                                           wrapper=wrapper)
        ended = programs["client"].wait() is not None
    else:
        ended = wait_until(lambda: programs[name].process.poll() is not None or "listening on" in server.log
                           and "serves" in server.log, "the limited program ends or serves")
        ended = programs[name].process.poll() is not None
    limited = programs[name]
    assert ended or count > 1, "each program has more than one thread"
    if ended and limited.wait() not in RIGHT:
        assert limited.process.returncode == 1, limited.log
        assert re.search(rf"Resource temporarily unavailable; limits of threads: .*{count} \({file}\)", limited.log)


# ---- Memory

def test_the_budget_of_clients_follows_the_control_group(group, stage):
    wrapper, file = group("memory", ("memory.limit_in_bytes", "memory.max"), 256 * MEGABYTE)
    server = stage.server(wrapper=wrapper)
    stage.worker()
    server.wait_until_listening()
    assert "clients may use 64 MiB for" in server.log
    if "doctor" in EXTENSIONS:
        done = run("offload-doctor", wrapper=wrapper, stdout=subprocess.PIPE)
        assert f"256 MiB at most: {file}" in done.stdout


# ---- Descriptors

@pytest.mark.skipif("undefined" in SANITIZE,
                    reason="the sanitizer takes descriptors itself, to look at an object's type")
def test_a_server_without_descriptors_for_clients(stage):
    """For each limit: it serves, or ends and says why."""
    stage.worker()
    served = False
    for limit in range(12, 80, 4):
        server = stage.server("--metrics", 0, wrapper=["prlimit", f"--nofile={limit}:{limit}"])
        wait_until(lambda server=server: not server.alive or "listening on" in server.log, "it listens or ends")
        if server.alive:
            server.wait_until_listening()
            with Wire(server.port) as client:
                client.ask([b"in"])
            assert server.terminate() == 0
            served = True
            continue
        assert not served, f"it serves with fewer than {limit}"
        assert server.wait() == 1
        assert f"the limit of {limit} open files" in server.log or f"(the limit is {limit}, ulimit -n)" in server.log
    assert served


FEW = range(4, 32)


def prlimit(limit):
    return ["prlimit", f"--nofile={limit}:{limit}"]


def names(limit, log):
    """127 is the dynamic loader's, which needs a descriptor too."""
    return re.search(rf"\(the limit is {limit}, ulimit -n\)|limit of {limit} open files|loading shared libraries", log)


@without_sanitizer
@needs_cpu_worker
def test_few_descriptors_for_a_worker(stage):
    """For each limit: it serves, or ends and names the limit."""
    stage.server()
    served = 0
    for limit in FEW:
        worker = stage.worker("--connect-timeout", "200ms", wrapper=prlimit(limit))
        wait_until(lambda worker=worker: not worker.alive or "serving" in worker.log, "it ends or serves")
        if worker.alive:
            assert worker.terminate() == 0
            served += 1
            continue
        assert worker.wait() in (1, 127)
        assert names(limit, worker.log), worker.log
    assert served


@without_sanitizer
@needs_cpu_worker
@pytest.mark.parametrize("name", ["client", "ctl"])
def test_few_descriptors(stage, name):
    """For each limit: the work is done, or the program ends and names the limit."""
    admin = f"unix:{stage.folder}/admin"
    server, _ = stage.pair("--admin", admin)
    command = {"client": ["offload-client", "-s", "127.0.0.1", "-p", server.port, "-i", 20, "-t", 2],
               "ctl": ["offload-ctl", "--admin", admin, "status"]}[name]
    done = 0
    for limit in FEW:
        ended = run(*command, wrapper=prlimit(limit), stdout=subprocess.DEVNULL)
        if ended.returncode in RIGHT:
            done += 1
            continue
        assert ended.returncode in (1, 127)
        assert names(limit, ended.stderr), ended.stderr
    assert done


@without_sanitizer
@needs_cpu_worker
def test_little_address_space_for_a_client(stage):
    """For each limit: the work is done, or it ends and names the limit; below are limits that the loader meets."""
    server, _ = stage.pair()
    done = 0
    for limit in range(20 * MEGABYTE, 100 * MEGABYTE, MEGABYTE):
        ended = run("offload-client", "-s", "127.0.0.1", "-p", server.port, "-i", 20, "-t", 2, "--output", "-",
                    limits=[(resource.RLIMIT_AS, limit)], stdout=subprocess.DEVNULL)
        if ended.returncode in RIGHT:
            done += 1
            continue
        assert ended.returncode in (1, 127)
        assert "ulimit -v" in ended.stderr or "loading shared libraries" in ended.stderr, ended.stderr
    assert done


@pytest.mark.parametrize("size", [0, 4096, 256 << 10])
def test_files_too_small_for_a_channel(tmp_path, size):
    """No worker could attach, so the server ends at its start."""
    done = run("offload-server", "--comch", f"unix:{tmp_path}/comch.sock", "-p", free_port(), "--threads", 2,
               limits=[(resource.RLIMIT_FSIZE, size)], stdout=subprocess.DEVNULL)
    assert done.returncode == 1
    assert re.search(r"cannot create the 2 channels of a worker: cannot make \d+ bytes of shared memory: "
                     rf"File too large \(the limit is {size} bytes, ulimit -f\)\n", done.stderr), done.stderr


@without_sanitizer
def test_little_address_space_for_a_server(stage):
    """For each limit: it serves, or ends and names the limit; below are limits that the loader meets."""
    stage.worker()
    for limit in range(20 * MEGABYTE, 100 * MEGABYTE, MEGABYTE):
        server = stage.server(wrapper=["prlimit", f"--as={limit}:{limit}"])
        wait_until(lambda server=server: not server.alive or "listening on" in server.log, "it listens or ends")
        if server.alive:
            break
        assert server.wait() in (1, 127)
        of_loader = "loading shared libraries" in server.log or server.log == "out of memory\n"
        assert "ulimit -v" in server.log or of_loader, server.log
    server.wait_until_listening()
    with Wire(server.port) as client:
        client.ask([b"in"])


def test_closed_standard_descriptors(stage):
    """No socket and no file takes their numbers."""
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    port = free_port()
    server = stage.server("-p", port, wrapper=closed)
    worker = stage.worker(wrapper=closed)

    def answer():
        try:
            with Wire(port) as client:
                client.ask([b"in"])
        except OSError:
            return False
        return True

    wait_until(answer, "the server serves")
    for program in (server, worker):
        for number in range(3):
            assert os.readlink(f"/proc/{program.pid}/fd/{number}") == "/dev/null"
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", port, "-i", 10,
                           wrapper=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert client.wait() == 1
    assert "offload-client: cannot write standard output" in client.log
