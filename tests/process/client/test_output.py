"""The output of the load client's results: JSON in any case, files that are not its own are not overwritten, and
the old results stay until the new ones are complete."""
import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from harness import BIN, PATIENCE, free_port
from results import RIGHT, start

SHORT = ["-i", 100]
LARGE = ["-i", 1000, "--repeat", 10]  # whose JSON has more than 4 KiB
FILES = ["--output", "--csv", "--hlog", "--log-requests"]


def only_line(client):
    """Returns the client's output on standard error, which must be one line."""
    line, = client.log.splitlines()
    assert line.startswith("offload-client: ")
    return line


def test_json_of_a_client_that_cannot_connect(stage):
    path = stage.folder / "result.json"
    client = stage.client(free_port(), "--connect-timeout", "100ms", "--output", path)
    assert client.wait() == 1
    result = json.loads(path.read_text())
    assert result["program"] == "offload-client" and result["format"] == 1
    assert result["status"] == "failed" and result["runs"] == []
    fault, = result["faults"]
    assert "Connection refused" in fault and fault in client.log
    assert result["command_line"] == client.command
    assert result["options"]["server_ip_port"] == int(client.command[4])


def test_what_the_json_has_of_a_run(stage):
    server, _ = stage.pair()
    client = start(stage, server, "-t", 2, "-i", 100, "--size", 64)
    assert client.wait() == 0
    result = json.loads(client.json_file.read_text())
    assert result["status"] == "ok" and result["faults"] == []
    assert result["repeats"] is None and result["search"] is None and result["server"] is None
    assert result["machine"]["processors"] == os.cpu_count()
    assert result["machine"]["host"] == os.uname().nodename
    run, = result["runs"]
    assert run["operation_count"] == run["valid_responses"] == 200
    assert run["tx_bytes"] == run["rx_bytes"] == 200 * (64 + 12)
    assert run["connections"] == 2 and run["errors"] == {} and run["unanswered_requests"] == 0
    assert list(run["service_time_us"]) == ["count", "min", "mean", "p50", "p90", "p95", "p99", "p99_9",
                                            "p99_99", "p99_999", "max", "histogram"]


def scraped_server(stage):
    """Starts a server and a worker. Returns the server, and where its metrics are."""
    server = stage.server("--metrics", 0)
    stage.worker()
    server.wait_until_listening()
    return server, server.wait_for_log(r"metrics on http://(127\.0\.0\.1:\d+)/metrics")[1]


@pytest.mark.parametrize("runs, status, texts", [
    (SHORT, 0, ["Valid responses:          100"]),
    ([*SHORT, "--repeat", 6], 0, ["service time p50", ": +median ", "Verification: "]),
    (["--search", "p90:10s", "--duration", "50ms", "--rate", 40, "--lag-tolerance", "1s"], 1, ["Search: too few"]),
])
def test_json_on_standard_output(stage, runs, status, texts):
    """All of the text is on standard error."""
    server, address = scraped_server(stage)
    client = stage.client(server, *runs, "--scrape", address, "--output", "-")
    assert client.wait() == status
    assert json.loads(client.out)["program"] == "offload-client"
    for text in [*texts, "Server:  "]:
        assert re.search(text, client.log), text


@pytest.mark.parametrize("option", FILES)
def test_a_file_of_somebody_elses(stage, option):
    """The file is not changed, and the error comes before anything else: no server listens at the port."""
    path = stage.folder / "thesis.txt"
    for content in (b"the only copy\n", b'{"program": "another"}', bytes(5000)):
        path.write_bytes(content)
        client = stage.client(free_port(), option, path)
        assert client.wait() == 1
        line = only_line(client)
        assert option in line and str(path) in line and "is not overwritten" in line
        assert path.read_bytes() == content and client.out == ""
    assert list(stage.folder.glob("thesis*")) == [path]


@pytest.mark.parametrize("option", FILES)
def test_a_file_of_its_own_is_replaced(stage, option):
    """An empty file, as mktemp makes it, is replaced too; no link is left, and the permissions stay."""
    server, _ = stage.pair()
    path = stage.folder / "result"
    path.touch(mode=0o600)
    seen = set()
    for _ in range(2):
        stage.run_client(server, *SHORT, option, path)
        seen.add(path.read_text())
        assert path.stat().st_mode & 0o777 == 0o600
    assert len(seen) == 2 and "" not in seen
    assert list(stage.folder.glob("result*")) == [path]


@pytest.mark.parametrize("option", FILES)
def test_a_place_that_cannot_be_written(stage, option):
    for path, why in ((stage.folder / "no" / "file", "No such file or directory"),
                      (stage.folder, "Is a directory")):
        client = stage.client(free_port(), option, path)
        assert client.wait() == 1
        line = only_line(client)
        assert str(path) in line and why in line


@pytest.mark.parametrize("option", ["--csv", "--hlog"])
def test_the_json_is_there_though_another_file_fails(stage, option):
    server, _ = stage.pair()
    client = start(stage, server, *SHORT, option, "/dev/full")
    assert client.wait() == 1
    assert client.log.splitlines()[-1] == "offload-client: cannot write '/dev/full': No space left on device"
    assert json.loads(client.json_file.read_text())["runs"][0]["valid_responses"] == 100


def test_a_pipe_as_output(stage):
    server, _ = stage.pair()
    pipe = stage.folder / "pipe"
    os.mkfifo(pipe)
    client = stage.client(server, *SHORT, "--output", pipe)
    with open(pipe) as reader:
        assert json.load(reader)["status"] == "ok"
    assert client.wait() == 0 and pipe.is_fifo()


@pytest.fixture(name="old")
def fixture_old(stage):
    """Starts a server, and writes an older result into a separate folder."""
    server, _ = stage.pair()
    folder = stage.folder / "results"
    folder.mkdir()
    path = folder / "result.json"
    stage.run_client(server, *SHORT, "--output", path)
    return server, path, path.read_text()


def test_a_file_that_may_not_grow(stage, old):
    """The limit acts like a full disk, without root: the old result stays, and one line gives the reason."""
    server, path, content = old
    # The limit is in blocks of 512 bytes: enough for the log, but not for the JSON.
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", server.port, *LARGE, "--output", path,
                           wrapper=["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"])
    assert client.wait() == 1
    assert client.log.splitlines()[-1] == (f"offload-client: cannot write '{path}': File too large "
                                           "(the limit is 4096 bytes, ulimit -f)")
    assert path.read_text() == content
    assert list(path.parent.iterdir()) == [path]
    assert len(re.findall("service time p50", client.out)) == 10  # at least this


def can_mount():
    return shutil.which("unshare") and subprocess.run(
        ["unshare", "-m", "true"], capture_output=True, timeout=PATIENCE, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs root, for a small file system of its own")
def test_a_full_disk(stage, old):
    """Only the client and its shell see this file system, which is full but for a few bytes."""
    server, path, content = old
    saved, kept, listing = (stage.folder / name for name in ("saved", "kept", "listing"))
    saved.write_text(content)
    script = """mount -t tmpfs -o size=64k none "$1" && cp "$2" "$1/result.json" || exit 99
        dd if=/dev/zero of="$1/filler" bs=4k 2>&-
        out=$1 kept=$3 listing=$4; shift 4
        "$@"; status=$?
        cp "$out/result.json" "$kept"; ls "$out" > "$listing"; exit $status"""
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", server.port, *LARGE, "--output", path,
                           wrapper=["unshare", "-m", "sh", "-c", script, "sh", *map(str, (path.parent, saved, kept,
                                                                                  listing))])
    assert client.wait() == 1, client.log
    assert client.log.splitlines()[-1] == f"offload-client: cannot write '{path}': No space left on device"
    assert kept.read_text() == content
    assert listing.read_text().split() == ["filler", "result.json"]


def test_a_client_that_is_killed(stage, old):
    server, path, content = old
    client = stage.client(server, "--duration", "60s", "--output", path, "--quiet")
    client.wait_until_it_works()
    client.kill()
    assert path.read_text() == content
    assert list(path.parent.iterdir()) == [path]


def run_on_terminal(server, *options):
    """Returns a client's standard error on a terminal, after a successful run."""
    terminal, its_other_end = pty.openpty()
    try:
        done = subprocess.run([BIN / "offload-client", "-s", "127.0.0.1", "-p", str(server.port), *options],
                              stdout=subprocess.PIPE, stderr=its_other_end, timeout=6 * PATIENCE, check=False)
    finally:
        os.close(its_other_end)
    assert done.returncode in RIGHT
    assert b"Valid responses" in done.stdout
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # EIO: all ends are closed and all is read
        pass
    os.close(terminal)
    return shown.decode()


LIVE = r"^ *[\d.]+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +(\d+) +(\d+)\r?$"


def test_a_live_table_on_a_terminal(stage):
    server, _ = stage.pair()
    shown = run_on_terminal(server, "--duration", "2050ms", "--max-concurrent-messages", "4")
    assert re.search(r"^ *time s +responses/s +in flight +service p50 us", shown, re.MULTILINE)
    lines = re.findall(LIVE, shown, re.MULTILINE)
    # There is a line a second, with the remaining seconds.
    assert len(lines) >= 2 and all(errors == "0" for errors, _ in lines)
    left = [int(left) for _, left in lines]
    assert left == sorted(left, reverse=True) and left[-1] == 0
    # An open loop shows the response time.
    shown = run_on_terminal(server, "--duration", "200ms", "--rate", "1k", "--lag-tolerance", "1s")
    assert "response p50 us" in shown


def test_no_live_table_elsewhere(stage):
    server, _ = stage.pair()
    assert run_on_terminal(server, "--duration", "200ms", "--quiet") == ""
    client = stage.run_client(server, "--duration", "200ms")
    assert len(client.log.splitlines()) == 1 and "connected to" in client.log
    assert "responses/s" not in client.out + client.log


def test_the_server_s_own_figures(stage):
    server, address = scraped_server(stage)
    for _ in range(2):  # the figures are those of this run alone, without earlier runs
        client = start(stage, server, "-i", 6400, "--scrape", address)
        assert client.wait() == 0, client.log
        figures = json.loads(client.json_file.read_text())["server"]
        assert figures["requests"] == figures["responses"] == 6400 and figures["errors"] == 0
        assert 0 < figures["stages"]["request"]["count"] <= 100  # one of 64, and one a turn at most
        worker = figures["stages"]["worker"]
        assert worker["p50_us"] > 0 and (worker["p99_us"] is None) == (worker["count"] < 100)
        assert abs(figures["busy"] + figures["polling"] + figures["asleep"] - 1) < 1e-6
        assert "Server:  " in client.out


def test_a_server_that_tells_nothing(stage):
    server, _ = stage.pair()
    client = stage.client(server, *SHORT, "--scrape", f"127.0.0.1:{free_port()}")
    assert client.wait() == 1
    assert re.search("--scrape 127.0.0.1:.*connect", only_line(client))
    client = stage.client(server, *SHORT, "--scrape", f"127.0.0.1:{server.port}")  # speaks no HTTP
    assert client.wait() == 1 and "--scrape" in only_line(client)
