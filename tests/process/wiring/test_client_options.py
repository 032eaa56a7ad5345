"""Options of offload-client, offload-ctl, offload-bench and offload-packets whose value no other file of tests shows to
arrive: each test fails if the value is ignored. docs/evidence/wiring.md lists the test of each option."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from harness import BIN, PATIENCE, ROOT, TIME_FACTOR, free_port
from test_server_options import one_is_quick, seconds_to_end

sys.path[:0] = [str(ROOT / "tests/process" / folder) for folder in ("client", "experiment", "packets")]

from bench import bench  # noqa: E402
from results import finish, start  # noqa: E402

QUICK = 6  # seconds: less than the default of --connect-timeout, 10 s


def test_the_time_to_connect(stage):
    one_is_quick(lambda: seconds_to_end(stage.client(free_port(), "-i", 1, "--connect-timeout", "100ms"), 1), QUICK)


def test_the_time_to_connect_again(stage):
    """A connection that broke has the same time. --on-error count keeps the client from stopping at the first error."""
    def give_up():
        server, worker = stage.pair()
        client = stage.client(server, "--duration", "1h", "--on-error", "count", "--connect-timeout", "100ms",
                              "--think", "10ms", "--max-concurrent-messages", 1)
        client.wait_for_log("connected to")
        server.kill()
        took = seconds_to_end(client, 1)
        worker.kill()
        return took
    one_is_quick(give_up, QUICK)


@pytest.mark.parametrize("tolerance, late", [("1us", True), ("1h", False)])
def test_the_lag_tolerance(stage, tolerance, late):
    """The client is stopped in the middle of its run, for longer than the default."""
    server, _ = stage.pair()
    client = start(stage, server, "--rate", 1000, "--duration", "1s", "--max-concurrent-messages", 8192,
                   "--lag-tolerance", tolerance)
    client.wait_for_log("connected to")
    time.sleep(0.2)
    client.stop()
    time.sleep(0.3)
    client.send_signal(signal.SIGCONT)
    run, = finish(client)["runs"]
    assert (run["verdict"]["code"] == "client_late") == late


# ---- offload-ctl and the services of systemd

def can_mount():
    return shutil.which("unshare") and subprocess.run(
        ["unshare", "-m", "true"], capture_output=True, timeout=PATIENCE, check=False).returncode == 0


@pytest.fixture(name="services")
def fixture_services(stage):
    """Returns a function that runs offload-ctl where /run has the sockets of two servers and a worker, as the units
    name them."""
    if not can_mount():
        pytest.skip("needs root, for a /run of its own")
    run = stage.folder / "run"

    def door(folder, name):
        (run / folder).mkdir(parents=True)
        return f"unix:{run / folder / name}"

    programs = {
        "one": stage.server("--admin", door("dpu-gpu-offload-one", "server.admin")),
        "two": stage.server("--admin", door("dpu-gpu-offload-two", "server.admin"), comch=stage.folder / "two.sock"),
        "gpu": stage.worker("--admin", door("offload-worker-gpu", "worker.admin")),
    }
    for program in programs.values():
        program.wait_for_log("commands are accepted at")

    def ctl(*words):
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /run && exec "$@"', run,
                               BIN / "offload-ctl", *words], text=True, capture_output=True, check=False,
                              timeout=60 * TIME_FACTOR)
        return done.returncode, done.stdout, done.stderr

    def processes(*words):
        """Returns the names of the programs that report their status."""
        status, out, log = ctl(*words, "status")
        assert status == 0, log
        return [name for name, program in programs.items() if f'"process":{program.pid}' in out.replace(" ", "")]

    yield ctl, processes


def test_instances(services):
    ctl, processes = services
    for option in ("--instance", "-i"):
        assert processes(option, "one") == ["one"] and processes(option, "two") == ["two"]
    assert processes("-i", "one", "-i", "two") == ["one", "two"]
    for option in ("--all", "-a"):
        assert processes(option) == ["one", "two"]
    for option in ("--worker", "-w"):
        assert processes(option) == ["gpu"]
    assert processes("-w", "-i", "gpu") == ["gpu"]
    status, _, log = ctl("status")
    assert status == 2 and "several servers run here: one, two; choose with --instance, or --all" in log


# ---- offload-bench

@pytest.mark.parametrize("options, seen", [([], False), (["--log-level", "info"], True),
                                           (["--log-level", "info", "--log-format", "json"], True)],
                         ids=["default", "level", "format"])
def test_the_log_of_a_benchmark(tmp_path, stage, options, seen):
    server, _ = stage.pair()
    text = (f'question = "soak"\ntime = "1s"\n[base]\naddress = "127.0.0.1:{server.port}"\n'
            "[[load]]\nsize = 64\n")
    done = bench(tmp_path, text, *options)
    assert done.returncode == 0, done.out + done.log
    assert ("connected to" in done.log) == seen
    if "json" in options:
        assert all(json.loads(line)["program"] == "offload-bench" for line in done.log.splitlines())


def test_the_folder_of_logs_has_a_default(tmp_path):
    """The command that it starts ends at once, and its words are kept."""
    (tmp_path / "experiment.toml").write_text(
        f'question = "soak"\n[base]\naddress = "127.0.0.1:{free_port()}"\nstart = ["echo no such luck"]\n'
        "[[load]]\nsize = 64\nconnect-timeout = 1\n")
    done = subprocess.run([BIN / "offload-bench", "experiment.toml"], cwd=tmp_path, capture_output=True, text=True,
                          check=False, timeout=60 * TIME_FACTOR, env=dict(os.environ))
    assert done.returncode == 1
    assert (tmp_path / "offload-bench-logs/base-1.log").read_text() == "no such luck\n"
