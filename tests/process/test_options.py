"""The command lines: the help has every option; an error is one line that names the option and the allowed values;
valid options take effect."""
import os
import re
import subprocess

import pytest

from harness import BACKEND, BIN, ROOT, TIME_FACTOR, wait_until
from wire import Wire

SERVER, WORKER, CLIENT = "offload-server", "offload-worker", "offload-client"

PAGE = (ROOT / "docs/evidence/wiring.md").read_text()
ON_THE_PAGE = re.findall(r"^## (offload-\w+)$", PAGE, re.MULTILINE)
# offload-rdma: tests/rdma_tasks/tool/options_test.cpp.
PROGRAMS = sorted(path.name for path in BIN.glob("offload-*") if path.name != "offload-rdma")


def wired(name):
    """Returns the options of the program that the page of wiring lists, each with its effect and its test."""
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return {option for cell in cells for option in re.findall(r"`(--?[a-z][a-z-]*)`", cell)}


def printed(name, *words):
    done = subprocess.run([BIN / name, *words], capture_output=True, text=True, check=False, timeout=60 * TIME_FACTOR)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_mentions_every_option(name, flag):
    """The options at the beginning of a line are those whose tests docs/evidence/wiring.md lists: add a new option
    there."""
    assert name in ON_THE_PAGE
    text = printed(name, flag)
    assert "Exit status: 0" in text
    for command in re.findall(r"^  ([a-z-]+) {3,}\S", text, re.MULTILINE):
        text += printed(name, command, flag)
    heads = re.findall(r"^  (-[^ ]+)", text, re.MULTILINE)
    assert {option for head in heads for option in head.split(",")} == wired(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_version(name):
    assert re.fullmatch(rf"{name} \d+\.\d+\.\d+\n", printed(name, "--version"))


def test_list_devices(stage):
    """It needs no server. Without a GPU, or an RDMA device, it gives the reason."""
    worker = stage.program(WORKER, "--list-devices")
    assert worker.wait() == 0
    assert worker.out.startswith("host\n  memory ")
    assert re.search(r"^  shared_memory +yes$", worker.out, re.MULTILINE)
    assert ("gpu:0 " in worker.out) != ("no GPU: " in worker.out)
    assert ("rdma:0 " in worker.out) != ("no RDMA device: " in worker.out)


def expect_usage_error(program, *hints):
    """Expects exit status 2, and only one line on standard error, which has all the hints."""
    assert program.wait() == 2, program.log
    assert program.out == ""
    assert program.log.endswith("\n") and len(program.log.splitlines()) == 1
    assert program.log.startswith(program.kind + ": ")
    for hint in hints:
        assert hint in program.log


FIRST_CPU = str(min(os.sched_getaffinity(0)))
LONG_PATH = "unix:" + 108 * "x"
PORTS, TIMES = "a whole number from 0 to 65535", "a time from 0 to 1000h"


@pytest.mark.parametrize("options, hints", [
    (["--no-such-option"], ["--no-such-option"]),
    (["surplus"], ["surplus"]),
    (["--two\nlines"], ["--two?lines"]),
    (["-p", "65536"], ["--server-listen-port", "65536", PORTS]),
    (["-p", "-1"], ["--server-listen-port", PORTS]),
    (["-p", "80x"], ["--server-listen-port", PORTS]),
    (["-p", ""], ["--server-listen-port", PORTS]),
    (["-p"], ["--server-listen-port", "PORT"]),
    (["--client-memory", "1k"], ["--client-memory", "a size from 1m"]),
    (["--max-clients", "-1"], ["--max-clients", "a whole number from 0"]),
    (["--frame-timeout", "soon"], ["--frame-timeout", TIMES]),
    (["--threads", "0"], ["--threads", "from 1 to 256"]),
    (["--threads", "257"], ["--threads", "from 1 to 256"]),
    (["--threads", "2", "--threads", "3"], ["--threads", "1"]),
    (["--threads", "2", "--cpu", FIRST_CPU], ["--threads", "--cpu"]),
    (["--cpu", "99999"], ["--cpu", "99999", "processor"]),
    (["--cpu", FIRST_CPU, "--cpu", FIRST_CPU], ["--cpu", "twice", "one I/O thread is allowed on each"]),
    (["--cpu", "first"], ["--cpu", "first", "processor"]),
    (["--comch", "tcp:127.0.0.1"], ["--comch", "tcp:127.0.0.1", "unix:PATH"]),
    (["--comch", "unix:"], ["--comch", "unix:PATH"]),
    (["--comch", LONG_PATH], ["--comch", "107 bytes"]),
    (["-c", "a/b"], ["--comch-channel-name", "a name without '/'"]),
    (["--comch-allow", "10.0.0.0/33"], ["--comch-allow", "a network, such as 10.0.0.0/8"]),
    (["--insecure", "--comch-key-file", "x"], ["--insecure", "--comch-key-file"]),
    (["-c", "a", "--comch", "unix:/tmp/a"], ["--comch", "--comch-channel-name"]),
    (["--max-concurrent-messages", "0"], ["--max-concurrent-messages", "from 1 to 4096"]),
    (["--max-concurrent-messages", "4097"], ["--max-concurrent-messages", "from 1 to 4096"]),
    (["--max-message-length", "-1"], ["--max-message-length", "from 0 to 16777216"]),
    (["--max-message-length", "16777217"], ["--max-message-length", "from 0 to 16777216"]),
    (["--max-message-length", "1t"], ["--max-message-length", "from 0 to 16777216"]),
    (["--max-message-length", "16m", "--max-concurrent-messages", "4096"],
     ["--max-message-length", "--max-concurrent-messages", "are allowed"]),
    (["--service", "Rot13"], ["--service", "Rot13", "a name of 1 to 32 of a-z, 0-9, - and _"]),
    (["--listen", "70000=echo"], ["--listen", "PORT=NAME, a port and the name of a service"]),
    (["--listen", "7000=Echo"], ["--listen", "PORT=NAME, a port and the name of a service"]),
    (["--listen", "7000"], ["--listen", "PORT=NAME, a port and the name of a service"]),
    (["--listen", "0=echo", "-p", "0"], ["--listen", "--server-listen-port"]),
    (["--listen", "0=echo", "--service", "echo"], ["--listen", "--service"]),
    (["--listen", "0=echo"] * 17, ["--listen", "at most 16 times are allowed"]),
    (["--listen", "0=echo", "--listen", "0=reverse", "--threads", "129"], ["--listen", "at most 256 threads are allowed"]),
    (["--max-response-length", "47"], ["--max-response-length", "from 48 to 16777216"]),
    (["--metrics", "everywhere"], ["--metrics", "PORT or ADDRESS:PORT"]),
    (["--worker-timeout", "-1"], ["--worker-timeout", TIMES]),
    (["--worker-timeout", "nan"], ["--worker-timeout", TIMES]),
    (["--worker-timeout", "2000h"], ["--worker-timeout", TIMES]),
    (["--client-timeout", "-1"], ["--client-timeout", TIMES]),
    (["--shutdown-timeout", "soon"], ["--shutdown-timeout", TIMES]),
    (["--spin", "1 us"], ["--spin", TIMES]),
    (["--log-level", "loud"], ["--log-level", "trace, debug, info"]),
])
def test_what_the_server_does_not_take(stage, options, hints):
    expect_usage_error(stage.program(SERVER, *options), *hints)


@pytest.mark.parametrize("options, hints", [
    (["--no-such-option"], ["--no-such-option"]),
    (["surplus"], ["surplus"]),
    (["--backend", "gpu"], ["--backend", "auto, cuda, graph, cpu"]),
    (["-g", "the big one"], ["--gpu-pci-addr", "0000:01:00.0"]),
    (["--comch", "nowhere"], ["--comch", "unix:PATH"]),
    (["--comch", LONG_PATH], ["--comch", "107 bytes"]),
    (["-c", ""], ["--comch-channel-name", "a name without '/'"]),
    (["-c", "a", "--comch", "unix:/tmp/a"], ["--comch", "--comch-channel-name"]),
    (["--data-path", "dma"], ["--data-path", "auto, gpu, cpu"]),
    (["--data-path", "gpu"], ["--data-path gpu", "--comch rdma:HOST:PORT", "unix:"]),
    (["--backend", "cpu", "--warps-per-channel", "8"], ["--warps-per-channel", "--backend cuda"]),
    (["--backend", "cpu", "-g", "01:00.0"], ["--gpu-pci-addr", "--backend cuda"]),
    (["--backend", "graph", "--idle-sleep", "0"], ["--idle-sleep", "--backend cuda"]),
    (["--warps-per-channel", "5"], ["--warps-per-channel", "a multiple of 4 up to 64"]),
    (["--warps-per-channel", "68"], ["--warps-per-channel", "a multiple of 4 up to 64"]),
    (["--idle-sleep", "2ms"], ["--idle-sleep", "from 0 to 1ms"]),
    (["--stuck-after", "0"], ["--stuck-after", "from 1ms to 1000h"]),
    (["--connect-timeout", "-3"], ["--connect-timeout", TIMES]),
    (["--shutdown-timeout", ""], ["--shutdown-timeout", TIMES]),
])
def test_what_the_worker_does_not_take(stage, options, hints):
    expect_usage_error(stage.program(WORKER, *options), *hints)


@pytest.mark.parametrize("options, hints", [
    ([], ["--server-ip-address", "required"]),
    (["-s"], ["--server-ip-address"]),
    (["-s", "localhost", "--no-such-option"], ["--no-such-option"]),
    (["-s", "localhost", "surplus"], ["surplus"]),
    (["-s", "localhost", "-p", "0"], ["--server-ip-port", "from 1 to 65535"]),
    (["-s", "localhost", "-t", "0"], ["--thread-count", "from 1 to 1024"]),
    (["-s", "localhost", "-t", "1025"], ["--thread-count", "from 1 to 1024"]),
    (["-s", "localhost", "--connections", "0"], ["--connections", "from 1 to 65536"]),
    (["-s", "localhost", "-i", "0"], ["--iteration-count", "from 1 to"]),
    (["-s", "localhost", "-i", "1.5"], ["--iteration-count", "from 1 to"]),
    (["-s", "localhost", "-i", "99999999999999999999"], ["--iteration-count", "from 1 to"]),
    (["-s", "localhost", "-i", "1", "--duration", "1"], ["--iteration-count", "--duration"]),
    (["-s", "localhost", "--duration", "0"], ["--duration", "from 1ms to 1000h"]),
    (["-s", "localhost", "-m", "hello", "--size", "5"], ["--message-string", "--size"]),
    (["-s", "localhost", "-e", "olleh"], ["--expected-response", "--message-string"]),
    (["-s", "localhost", "--size", "17m"], ["--size", "from 0 to 16777216"]),
    (["-s", "localhost", "--size", "-1"], ["--size", "from 0 to 16777216"]),
    (["-s", "localhost", "--max-concurrent-messages", "0"],
     ["--max-concurrent-messages", "from 1 to 65536"]),
    (["-s", "localhost", "--service", "rot13"], ["--service", "reverse, echo, crc32c"]),
    (["-s", "localhost", "--response-timeout", "0"], ["--response-timeout", "from 1ms to 1000h"]),
    (["-s", "localhost", "--log-level", "loud"], ["--log-level", "trace, debug, info"]),
])
def test_what_the_client_does_not_take(stage, options, hints):
    expect_usage_error(stage.program(CLIENT, *options), *hints)


def test_an_address_that_does_not_resolve(stage):
    client = stage.program(CLIENT, "-s", "no-such-host.invalid", "--connect-timeout", "100ms")
    assert client.wait() == 1
    assert "cannot resolve 'no-such-host.invalid'" in client.log


def test_a_json_file_that_cannot_be_written(stage):
    """The error comes before the run, not after it."""
    client = stage.program(CLIENT, "-s", "127.0.0.1", "--output", stage.folder / "no" / "file.json")
    assert client.wait() == 1
    assert "no/file.json" in client.log and "No such file or directory" in client.log


def test_every_thread_runs_on_its_processor(stage):
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    server, _ = stage.pair(*(word for cpu in cpus for word in ("--cpu", cpu)))
    threads = server.threads()
    assert {name: cpu for name, cpu in threads.items() if name.startswith("io-")} == {
        f"io-{i}": str(cpu) for i, cpu in enumerate(cpus)}
    stage.run_client(server, "-t", 3, "-i", 100)


def test_threads_run_anywhere_unless_told_otherwise(stage):
    server, _ = stage.pair("--threads", 2)
    threads = server.threads()
    assert threads["io-0"] == threads["io-1"] == threads["offload-server"]


def test_only_the_address_listened_on_is_open(stage):
    server, _ = stage.pair()
    with pytest.raises(ConnectionRefusedError):
        Wire(server.port, host="127.0.0.2")
    with Wire(server.port, host="127.0.0.1") as wire:
        wire.ask([b"by the default"])


def test_a_name_as_listen_address(stage):
    server = stage.server("--listen-address", "localhost")
    stage.worker()
    host = server.wait_until_listening()[1]
    stage.run_client(server, "-i", 10, host="localhost")
    with Wire(server.port, host=host.strip("[]")) as wire:
        wire.ask([b"by its address"])


def test_the_reference_name_of_a_comch_channel(stage, monkeypatch):
    name = stage.folder.name
    stage.folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(stage.folder))
    server = stage.program(SERVER, "-c", name, "-p", 0)
    worker = stage.program(WORKER, "--comch-channel-name", name, "--backend", BACKEND)
    worker.wait_for_log(f"attached to unix:{stage.folder}/{name}.sock")
    assert server.terminate() == 0 and worker.terminate() == 0


def test_a_worker_may_start_before_its_servers_folder_is_there(stage, monkeypatch):
    """The services start in this way: their units name the folder."""
    folder = stage.folder / "run"
    monkeypatch.setenv("OFFLOAD_RUNTIME_DIR", str(folder))
    worker = stage.program(WORKER, "--backend", BACKEND)
    worker.wait_for_log("back end: ")
    server = stage.program(SERVER, "-p", 0)
    worker.wait_for_log(f"attached to unix:{folder}/dpu-gpu-offload.sock")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert server.terminate() == 0 and worker.terminate() == 0


def test_a_depth_that_is_no_power_of_two(stage):
    server, _ = stage.pair("--max-concurrent-messages", 5)
    stage.run_client(server, "-i", 1000, "--max-concurrent-messages", 20)


def test_log_level(stage):
    server = stage.server("--log-level", "off")
    worker = stage.worker("--log-level", "warning")
    wait_until(lambda: "io-0" in server.threads(), "the server serves")
    assert server.terminate() == 0 and worker.terminate() == 0
    assert server.log == "" and worker.log == ""
