"""deploy/haproxy: servers behind HAProxy, which are drained and ended under load, or come by DNS."""
import shutil
import subprocess

import pytest

from balancer import CONFIGURATION, Names, balancers
from harness import BIN, PATIENCE, TIME_FACTOR, free_port, wait_until
from wire import TOO_MANY_OF_ADDRESS, Wire

pytestmark = pytest.mark.skipif(not shutil.which("haproxy"), reason="needs haproxy")


@pytest.fixture
def balancer(stage):
    with balancers(stage.folder) as make:
        yield make


@pytest.mark.parametrize("servers", [
    {"ONE": "127.0.0.1:1", "TWO": "127.0.0.1:2", "ONE_METRICS": "3", "TWO_METRICS": "4"},
    {"NAME": "offload.test:1", "NAME_METRICS": "2", "NAMESERVER": "127.0.0.1:3", "AT_MOST": "50"}])
def test_the_file_is_one_that_haproxy_takes(balancer, servers):
    environment = balancer({**servers, "LISTEN": "127.0.0.1:5"}).environment
    subprocess.run(["haproxy", "-c", "-f", CONFIGURATION], env=environment, check=True, timeout=20)


def test_servers_come_with_the_records_of_their_name(stage, balancer):
    port, metrics, addresses = free_port(), free_port(), ("127.0.0.11", "127.0.0.12")
    for address in addresses:
        comch = stage.folder / f"{address}.sock"
        stage.worker(comch=comch)
        stage.server("-p", port, "--listen-address", address, "--metrics", f"{address}:{metrics}",
                     comch=comch).wait_until_listening()
    with Names(addresses[0]) as names:
        listen = free_port()
        proxy = balancer({"NAME": f"offload.test:{port}", "NAME_METRICS": str(metrics), "AT_MOST": "3",
                          "NAMESERVER": f"127.0.0.1:{names.port}", "LISTEN": f"127.0.0.1:{listen}"})
        changed = stage.folder / "haproxy.cfg"
        text = CONFIGURATION.read_text()
        assert "timeout resolve 5s" in text
        changed.write_text(text.replace("timeout resolve 5s", "timeout resolve 200ms"))
        proxy.start(changed)
        wait_until(lambda: proxy.is_up("server1"), "the first server is up")
        assert proxy.field("server2", 17).startswith("MAINT")
        names.addresses = list(addresses)
        wait_until(lambda: proxy.is_up("server1", "server2"), "the second server is up")
        with Wire(listen) as one, Wire(listen) as other:
            one.ask([b"one"])
            other.ask([b"other"])
            assert [proxy.field(name, 4) for name in ("server1", "server2", "server3")] == ["1", "1", "0"]


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
