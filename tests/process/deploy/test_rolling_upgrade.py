"""deploy/rolling-upgrade: servers behind HAProxy, and their workers, get a new build under load."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from balancer import CONFIGURATION, balancers
from harness import BIN, PATIENCE, ROOT, free_port, statistics, wait_until
from wire import Wire

SCRIPT = ROOT / "deploy/rolling-upgrade"
NAMES = ("one", "two", "three", "four")

# Starts and restarts programs, as units would: KIND-NAME has the options of one.
UNIT = """#!/bin/bash
# usage: unit BUILD start|restart KIND NAME [OPTION...]
set -euo pipefail
cd "$(dirname "$0")"
build=$1 what=$2 kind=$3 name=$4
shift 4
if [[ $what == restart ]]; then
  old=$(tail -n 1 "$kind-$name.pid")
  kill -TERM "$old"
  for ((i = 0; i < 600; ++i)); do
    readlink "/proc/$old/exe" >/dev/null || break
    sleep 0.05
  done
  ((i < 600)) || { echo "$kind $name does not exit" >&2; exit 1; }
fi
mapfile -t options <"$kind-$name"
setsid "./$build/offload-$kind" "${options[@]}" "$@" >>"$kind-$name.log" 2>&1 </dev/null &
echo $! >>"$kind-$name.pid"
"""


class Fleet:
    """Servers and workers that a script starts: they are no children of this process."""

    def __init__(self, names):
        self.folder = Path(tempfile.mkdtemp(prefix="offload-", dir="/tmp"))
        self.names = names
        self.ports = {name: free_port() for name in names}
        self.metrics = {name: free_port() for name in names}
        self.ctl = f"{BIN}/offload-ctl --admin unix:{self.folder}/{{}}.admin"
        self.unit = f"{self.folder}/unit"
        Path(self.unit).write_text(UNIT)
        os.chmod(self.unit, 0o755)
        for build in ("old", "new"):
            (self.folder / build).mkdir()
            for program in ("offload-server", "offload-worker"):
                (self.folder / build / program).symlink_to(BIN / program)
        for name in names:
            comch = ["--comch", f"unix:{self.folder}/{name}.sock"]
            server = ["-p", self.ports[name], "--threads", 1, "--metrics", self.metrics[name],
                      "--admin", f"unix:{self.folder}/{name}.admin"]
            (self.folder / f"server-{name}").write_text("\n".join(map(str, [*comch, *server])) + "\n")
            (self.folder / f"worker-{name}").write_text("\n".join([*comch, "--backend", "cpu"]) + "\n")

    def start(self):
        for name in self.names:
            for kind in ("server", "worker"):
                subprocess.run([self.unit, "old", "start", kind, name], check=True, timeout=PATIENCE)
        wait_until(lambda: all(self.is_ready(name) for name in self.names), "all servers are ready")

    def is_ready(self, name):
        return subprocess.run([*self.ctl.replace("{}", name).split(), "ready"], timeout=PATIENCE, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def upgrade(self, *options):
        """Starts the script for all servers; its output is the process's stdout."""
        return subprocess.Popen([SCRIPT, "--ctl", self.ctl, "--server", f"{self.unit} new restart server {{}}",
                                 "--settle", "1", *options, *self.names],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def pids(self, *kinds):
        """Returns all that was ever started: the last one of each program is the one that should run."""
        return {path.stem: [int(pid) for pid in path.read_text().split()]
                for kind in kinds or ("server", "worker") for path in self.folder.glob(f"{kind}-*.pid")}

    def builds(self, *kinds):
        """Returns the builds of the programs that run."""
        words = [command(pid) for pids in self.pids(*kinds).values() for pid in pids]
        return {word.split("/")[1] for word in words if word}

    def logs(self):
        return "\n".join(f"---- {path.stem}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in (pid for pids in self.pids().values() for pid in pids if command(pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            try:
                wait_until(lambda: not self.builds(), "all programs end")
                break
            except AssertionError:
                if number == signal.SIGKILL:
                    raise
        print(self.logs())  # pytest shows it if the test failed
        shutil.rmtree(self.folder)


def command(pid):
    """Returns the first word of the command line of a program of a fleet; empty if it has exited."""
    try:
        word = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return word if word.startswith(("./old/", "./new/")) else ""


@pytest.fixture
def fleet():
    made = []

    def make(*names):
        made.append(Fleet(names))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def balanced(fleet):
    """A fleet of four behind HAProxy, and the port of HAProxy."""
    four, port = fleet(*NAMES), free_port()
    text = CONFIGURATION.read_text().replace("inter 1s", "inter 200ms")
    last = '  server two "${TWO}" port "${TWO_METRICS}"\n'
    assert last in text and "inter 200ms" in text
    more = "".join(f"  server {name} 127.0.0.1:{four.ports[name]} port {four.metrics[name]}\n" for name in NAMES[2:])
    (four.folder / "haproxy.cfg").write_text(text.replace(last, last + more))
    environment = {"LISTEN": f"127.0.0.1:{port}"}
    for name in NAMES[:2]:
        environment |= {name.upper(): f"127.0.0.1:{four.ports[name]}",
                        f"{name.upper()}_METRICS": str(four.metrics[name])}
    with balancers(four.folder) as make:
        proxy = make(environment)
        proxy.start(four.folder / "haproxy.cfg")
        wait_until(lambda: proxy.is_up(*NAMES), "all servers are up")
        yield four, port


def worker_commands(fleet, way):
    if way == "replace":
        return ["--worker", "", "--replace", f"{fleet.unit} new start worker {{}} --replace"]
    return ["--worker", f"{fleet.unit} new restart worker {{}}"]


needs_haproxy = pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")


@needs_haproxy
@pytest.mark.parametrize("way", ["replace", "restart"])
def test_no_request_fails(stage, balanced, way):
    fleet, port = balanced
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", port, "--connections", 8, "--size", 64,
                           "--rate", 2000, "--reconnect-every", 50, "--duration", "600s")
    client.wait_for_log("connected to")
    script = fleet.upgrade(*worker_commands(fleet, way))
    out, _ = script.communicate(timeout=120)
    assert script.returncode == 0, out
    assert fleet.builds() == {"new"}
    assert client.alive, client.log
    client.send_signal(signal.SIGINT)
    assert client.wait() == 130, client.log
    table = statistics(client)
    assert table["Valid responses"] == table["Operation count"] > 1000, client.out
    assert "Unanswered requests" not in table, client.out


@needs_haproxy
def test_it_stops_at_a_server_that_does_not_start(stage, balanced):
    fleet, port = balanced
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", port, "--connections", 4, "--size", 64,
                           "--rate", 1000, "--reconnect-every", 50, "--duration", "600s")
    client.wait_for_log("connected to")
    (fleet.folder / "server-two").write_text("--no-such-option\n")
    script = fleet.upgrade(*worker_commands(fleet, "restart"), "--step-timeout", "8")
    out, _ = script.communicate(timeout=120)
    assert script.returncode == 1
    assert "two: not within 8 s: the server is ready" in out
    assert "upgraded: one; not begun: three four" in out
    client.send_signal(signal.SIGINT)
    assert client.wait() == 130, client.log
    table = statistics(client)
    assert table["Valid responses"] == table["Operation count"] > 0, client.out


def test_a_client_that_stays_stops_it(fleet):
    one = fleet("one")
    before = one.pids()
    with Wire(one.ports["one"]) as wire:
        wire.ask([b"first"])
        script = one.upgrade("--worker", "", "--clients-timeout", "1")
        out, _ = script.communicate(timeout=60)
        assert script.returncode == 1
        assert "not within 1 s: no client is connected" in out and "its drain is cancelled" in out
        wire.ask([b"second"])
    assert one.is_ready("one") and one.pids() == before


def test_clients_that_stay_can_be_disconnected(fleet):
    one = fleet("one")
    with Wire(one.ports["one"]) as wire:
        wire.ask([b"first"])
        script = one.upgrade("--worker", "", "--clients-timeout", "1", "--disconnect")
        out, _ = script.communicate(timeout=60)
        assert script.returncode == 0, out
        wire.expect_end()
    assert one.builds("server") == {"new"} and one.builds("worker") == {"old"}


def test_a_dry_run_changes_nothing(fleet):
    one = fleet("one")
    before = one.pids()
    out, _ = one.upgrade(*worker_commands(one, "restart"), "--dry-run").communicate(timeout=60)
    for words in ("one.admin drain\n", "unit new restart server one\n", "unit new restart worker one\n"):
        assert words in out
    assert one.is_ready("one") and one.pids() == before


def test_a_server_of_two_services_is_upgraded(fleet):
    one = fleet("one")
    options = one.folder / "server-one"
    services = f"--listen\n{one.ports['one']}=reverse\n--listen\n{free_port()}=echo\n"
    options.write_text(services + options.read_text().replace(f"-p\n{one.ports['one']}\n", ""))
    for number in range(2):  # the first upgrade begins with one service
        script = one.upgrade("--worker", "", "--step-timeout", "20")
        out, _ = script.communicate(timeout=60)
        assert script.returncode == 0, f"upgrade {number}: {out}"
    assert one.builds("server") == {"new"} and one.is_ready("one")


def test_a_restart_that_fails_cancels_the_drain(fleet):
    one = fleet("one")
    before = one.pids()
    script = one.upgrade("--server", "false {}", "--worker", "")
    out, _ = script.communicate(timeout=60)
    assert script.returncode == 1
    assert "'false one' failed with status 1" in out and "its drain is cancelled" in out
    assert one.is_ready("one") and one.pids() == before
