"""What deploy/ has: the alerts against made-up series, and HAProxy before two servers."""
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
from harness import BIN, PATIENCE, ROOT, wait_until

DEPLOY = ROOT / "deploy"


def run(*command, **options):
    done = subprocess.run([*map(str, command)], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE, **options)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (prometheus) is not installed")
def test_the_alerts_fire_when_they_should():
    folder = DEPLOY / "prometheus"
    run("promtool", "check", "rules", folder / "rules.yml")
    run("promtool", "test", "rules", folder / "rules_test.yml")
    run("promtool", "check", "config", folder / "prometheus.yml")


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (prometheus) is not installed")
def test_the_alerts_know_the_metrics():
    used = set(re.findall(r"\b(?:offload|process)_\w+", (DEPLOY / "prometheus/rules.yml").read_text()))
    used |= set(re.findall(r"\b(?:offload|process)_\w+", (DEPLOY / "grafana/dashboard.json").read_text()))
    known = set(re.findall(r"`((?:offload|process)_\w+)`", (ROOT / "docs/metrics.md").read_text()))
    assert {re.sub(r"_bucket$", "", name) for name in used} <= known


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
def test_a_server_behind_haproxy_may_be_drained(stage):
    """Two servers under load through one port. One is drained, gets no new connections, loses those that it
    has as the client makes new ones, and ends: no request is lost or refused."""
    servers = []
    for number in range(2):
        comch = stage.folder / f"comch{number}.sock"
        server = stage.server("--metrics", 0, "--admin", f"unix:{stage.folder}/admin{number}", comch=comch)
        stage.worker(comch=comch)
        server.wait_until_listening()
        servers.append(server)

    def address_of(server):
        return server.wait_for_log(r"metrics on (http://127\.0\.0\.1:(\d+))/metrics")

    def connections_of(server):
        with urllib.request.urlopen(address_of(server)[1] + "/metrics", timeout=PATIENCE) as answer:
            page = answer.read().decode()
        return int(re.search(r"^offload_server_connections (\d+)", page, re.MULTILINE)[1])

    port = free_port()
    text = (DEPLOY / "haproxy/haproxy.cfg").read_text().replace("bind :12345", f"bind 127.0.0.1:{port}")
    text = text.replace("inter 500ms", "inter 50ms")
    for number, server in enumerate(servers, 1):
        text = text.replace(f"dpu{number}.example:12345 port 9480",
                            f"127.0.0.1:{server.port} port {address_of(server)[2]}")
    config = stage.folder / "haproxy.cfg"
    config.write_text(text)
    run("haproxy", "-c", "-q", "-f", config)
    with subprocess.Popen(["haproxy", "-q", "-db", "-f", config]) as proxy:
        try:
            def reaches_a_server():
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    return True
                except OSError:
                    return False
            wait_until(reaches_a_server, "HAProxy listens")
            time.sleep(0.3)  # its first checks
            client = stage.program("offload-client", "-s", "127.0.0.1", "-p", port, "-t", 2,
                                   "--connections", 8, "--reconnect-every", 50, "--rate", 2000,
                                   "--duration", "6s", "--quiet")
            for server in servers:
                wait_until(lambda s=server: connections_of(s) > 0, "both have clients")
            run(BIN / "offload-ctl", "--admin", f"unix:{stage.folder}/admin0", "drain")
            wait_until(lambda: connections_of(servers[0]) == 0, "the drained one has none")
            assert servers[0].terminate() == 0
            # 3, 4: late, on a busy machine. An error of any request would end it with 1.
            assert client.wait() in (0, 3, 4), client.out + client.log
        finally:
            proxy.terminate()
            proxy.wait(PATIENCE)
