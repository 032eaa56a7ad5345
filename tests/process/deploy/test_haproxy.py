"""deploy/haproxy: two servers behind HAProxy, of which one is drained and ended under load."""
import os
import shutil
import socket
import subprocess

import pytest

from harness import BIN, PATIENCE, ROOT, TIME_FACTOR, free_port, wait_until
from wire import TOO_MANY_OF_ADDRESS, Wire

pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")
CONFIGURATION = ROOT / "deploy/haproxy/haproxy.cfg"


class Balancer:
    """HAProxy with the file as it is."""

    def __init__(self, folder, environment):
        self.admin = folder / "admin"
        self.environment = {**os.environ, **environment, "ADMIN": str(self.admin)}
        self.process = None

    def start(self, file=CONFIGURATION):
        self.process = subprocess.Popen(["haproxy", "-db", "-f", file], env=self.environment)

    def command(self, line):
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(PATIENCE)
            admin.connect(str(self.admin))
            admin.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: admin.recv(65536), b"")).decode()

    def is_up(self):
        return self.admin.exists() and all(
            f"offload,{name}," in self.command("show stat") and self.field(name, 17) == "UP" for name in ("one", "two"))

    def field(self, server, index):
        for line in self.command("show stat").splitlines():
            if line.startswith(f"offload,{server},"):
                return line.split(",")[index]
        return None


@pytest.fixture
def balancer(stage):
    made = []

    def make(environment):
        made.append(Balancer(stage.folder, environment))
        return made[-1]

    yield make
    for one in made:
        if one.process:
            one.process.kill()
            one.process.wait(PATIENCE)


def test_the_file_is_one_that_haproxy_takes(balancer):
    one = {"ONE": "127.0.0.1:1", "TWO": "127.0.0.1:2", "ONE_METRICS": "3", "TWO_METRICS": "4", "LISTEN": "127.0.0.1:5"}
    subprocess.run(["haproxy", "-c", "-f", CONFIGURATION], env={**balancer(one).environment}, check=True, timeout=20)


def test_limits_see_the_clients_behind_it(stage, balancer):
    """The file with send-proxy-v2, as scale-out.md says: one client of HAProxy's address is not another one's."""
    metrics = free_port()
    server, _ = stage.pair("--metrics", metrics, "--proxy-from", "127.0.0.1", "--max-clients-per-address", 1)
    port = free_port()
    at = f"127.0.0.1:{server.port}"
    proxy = balancer({"ONE": at, "TWO": at, "ONE_METRICS": str(metrics), "TWO_METRICS": str(metrics),
                      "LISTEN": f"127.0.0.1:{port}"})
    changed = stage.folder / "haproxy.cfg"
    text = CONFIGURATION.read_text()
    assert "default-server check" in text
    changed.write_text(text.replace("default-server check", "default-server send-proxy-v2 check"))
    proxy.start(changed)
    wait_until(proxy.is_up, "the server is up")
    with Wire(port, source="127.0.0.2") as one, Wire(port, source="127.0.0.3") as other:
        one.ask([b"one"])
        other.ask([b"other"])
        with Wire(port, source="127.0.0.2") as again:
            assert again.receive_error() == TOO_MANY_OF_ADDRESS
        server.wait_for_log(r"client \d+, 127\.0\.0\.2:\d+, is rejected: the limit of clients of this address")
        one.ask([b"still"])


def test_a_server_is_drained_without_an_error(stage, balancer):
    servers, environment = [], {}
    for name in ("ONE", "TWO"):
        metrics, comch = free_port(), stage.folder / f"{name}.sock"
        stage.worker(comch=comch)
        servers.append(stage.server("--metrics", metrics, "--admin", f"unix:{stage.folder}/{name}", comch=comch))
        servers[-1].wait_until_listening()
        environment |= {name: f"127.0.0.1:{servers[-1].port}", f"{name}_METRICS": str(metrics)}
    port = free_port()
    proxy = balancer({**environment, "LISTEN": f"127.0.0.1:{port}"})
    proxy.start()
    wait_until(proxy.is_up, "both servers are up")
    client = stage.program("offload-client", "-s", "127.0.0.1", "-p", port, "--connections", 8, "--size", 64,
                           "--reconnect-every", 200, "--duration", f"{3 * TIME_FACTOR}s")
    wait_until(lambda: int(proxy.field("one", 7)) > 10 and int(proxy.field("two", 7)) > 10, "both have clients")
    subprocess.run([BIN / "offload-ctl", "--admin", f"unix:{stage.folder}/ONE", "drain"], check=True, timeout=PATIENCE)
    wait_until(lambda: proxy.field("one", 17) == "DOWN" and proxy.field("one", 4) == "0",
               "the drained one gets no session and has none")
    assert servers[0].terminate() == 0
    assert client.wait() == 0, client.log
    assert int(proxy.field("two", 7)) > 20
