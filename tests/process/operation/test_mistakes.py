"""Mistakes of new users: command lines, files and environments that are wrong, and programs at each other's ports.
Each mistake ends the program with a status other than 0, and with a message that names what failed, its value, what
is allowed and what to do."""
import os
import socket
import sys

import pytest

from harness import BACKEND, PATIENCE, ROOT, TRANSPORT, Program, Server, free_port

sys.path.insert(0, str(ROOT / "tests/process/tls"))

from certificates import Authority, needs_openssl, own, trusting  # noqa: E402

pytestmark = [
    needs_openssl,
    pytest.mark.skipif(TRANSPORT != "unix" or BACKEND != "cpu", reason="the programs never get as far as a transport"),
]


@pytest.fixture(scope="module", name="ours")
def fixture_ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module", name="places")
def fixture_places(tmp_path_factory, ours):
    """Files and ports with something wrong, by the names that the table below has for them."""
    folder = tmp_path_factory.mktemp("places")

    def file(name, content, mode=0o600):
        path = folder / name
        path.write_bytes(content)
        path.chmod(mode)
        return path

    certificate, key = ours.issue("server", "DNS:server.test,IP:127.0.0.1")
    _, other_key = ours.issue("other", "DNS:other.test")
    os.mkfifo(folder / "fifo")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(folder / "stale.sock"))
    stale.close()
    with socket.create_server(("127.0.0.1", 0)) as busy:
        yield {
            "folder": folder, "missing": folder / "missing", "fifo": folder / "fifo",
            "certificate": certificate, "key": key, "other_key": other_key,
            "open_key": file("open.key", key.read_bytes(), 0o644),
            "text": file("text", b"some text\n"),
            "short_key": file("short.key", b"short"), "open_comch_key": file("open", os.urandom(32), 0o644),
            "comch_key": file("comch.key", os.urandom(32)),
            "empty": file("empty.toml", b""),
            "misspelt": file("misspelt.toml", b"thread = 2\n"),
            "wrong_type": file("type.toml", b'[server]\nthreads = 2\n'),
            "bare_unit": file("unit.toml", b"worker-timeout = 10s\n"),
            "wrong_value": file("value.toml", b'threads = "many"\n'),
            "twice": file("twice.toml", b"threads = 1\nthreads = 2\n"),
            "comma": file("comma.json", b'{"threads": 1,}'),
            "schedule": file("schedule", b"soon 64\n"),
            "frames": file("frames", b"GET / HTTP/1.1\r\n\r\n"),
            "no_module": file("module.so", b"#!/bin/sh\n"), "source": file("service.c", b""),
            "stale": folder / "stale.sock", "long": "/tmp/" + "x" * 110,
            "cpu": min(os.sched_getaffinity(0)), "busy": busy.getsockname()[1], "closed": free_port(),
        }


SERVER, WORKER, CLIENT, CTL = "offload-server", "offload-worker", "offload-client", "offload-ctl"

# The program, the mistake, the exit status, and what the last line of standard error has to say about it.
MISTAKES = [
    # Misspelt, and in the wrong place.
    (SERVER, "help", 2, ["unexpected argument 'help'", "did you mean --help?"]),
    (SERVER, "version", 2, ["unexpected argument 'version'", "did you mean --version?"]),
    (SERVER, "-v", 2, ["unknown option '-v'", "did you mean --version?"]),
    (WORKER, "--verbose", 2, ["unknown option '--verbose'", "did you mean --log-level debug?"]),
    (SERVER, "--tls-cert {certificate}", 2, ["unknown option '--tls-cert'", "did you mean --tls-certificate?"]),
    (WORKER, "--config", 2, ["--config requires a value, FILE"]),
    (CLIENT, "127.0.0.1:7000", 2, ["unexpected argument '127.0.0.1:7000'",
                                   "did you mean --server-ip-address 127.0.0.1:7000?"]),
    (CTL, "help", 2, ["unknown command 'help'", "did you mean --help?"]),
    (CTL, "stop", 2, ["unknown command 'stop'", "the commands are status, "]),
    (CTL, "", 2, ["a command is required: status, "]),
    (SERVER, "--treads 2", 2, ["unknown option '--treads'", "did you mean --threads?"]),
    (SERVER, "--backend cpu", 2, ["unknown option '--backend'", "--help"]),
    (SERVER, "7000", 2, ["unexpected argument '7000'", "--help"]),
    (SERVER, "-d mlx5_0", 2, ["--device-id", "reference application", "use --comch rdma:ADDRESS:PORT"]),
    (SERVER, "-p", 2, ["--server-listen-port", "--help"]),
    (SERVER, "-p 1 -p 2", 2, ["--server-listen-port"]),
    (WORKER, "--listen 7000=echo", 2, ["unknown option '--listen'"]),
    (CLIENT, "-s 127.0.0.1 --thread-cuont 2", 2, ["'--thread-cuont'", "did you mean --thread-count?"]),
    (CLIENT, "-i 10", 2, ["--server-ip-address is required"]),
    (CTL, "--admin unix:{missing} stats", 2, ["unknown command 'stats'", "did you mean status?"]),
    # Units and ranges.
    (SERVER, "--worker-timeout 10x", 2, ["--worker-timeout: '10x'", "a time from 0 to 1000h, such as 2s or 500ms"]),
    (SERVER, "--shutdown-timeout=-1", 2, ["--shutdown-timeout: '-1'", "a time from 0"]),
    (SERVER, "--max-message-length 64kb", 2, ["--max-message-length: '64kb'", "such as 4096 or 64k"]),
    (SERVER, "--max-message-length 17m", 2, ["'17m'", "a size from 0 to 16777216 bytes"]),
    (SERVER, "--max-message-length 16m --max-concurrent-messages 4096", 2, [
        "--max-message-length", "at most 4294967296"]),
    (SERVER, "--client-memory 1k", 2, ["--client-memory: '1k'", "a size from 1m"]),
    (SERVER, "--threads 0", 2, ["--threads: '0'", "from 1 to 256"]),
    (SERVER, "--cpu 9999", 2, ["--cpu: '9999'", "an allowed processor: "]),
    (WORKER, "--max-memory 0", 2, ["--max-memory: '0'", "such as 512m or 64g"]),
    (CLIENT, "-s 127.0.0.1 --size 17m", 2, ["--size: '17m'", "0 to 16777216 bytes"]),
    (CLIENT, "-s 127.0.0.1 --rate 0", 2, ["--rate: '0'", "such as 500, 20k or 1.5m"]),
    # Ports and addresses.
    (SERVER, "-p 70000", 2, ["--server-listen-port: '70000'", "from 0 to 65535"]),
    (SERVER, "-p http", 2, ["'http' is not a whole number from 0 to 65535"]),
    (SERVER, "-p {busy}", 1, ["127.0.0.1:{busy}", "Address already in use", "choose another port"]),
    (SERVER, "--metrics {busy} -p 0", 1, ["127.0.0.1:{busy}", "Address already in use", "choose another port"]),
    (SERVER, "--listen 7000", 2, ["--listen: '7000'", "PORT=NAME"]),
    (SERVER, "--listen 7000=echo --listen 7000=reverse", 2, ["--listen: port 7000 is given twice", "its own port"]),
    (SERVER, "--check-config --listen 7000=echo --listen 7000=echo", 2, ["--listen: port 7000 is given twice"]),
    (SERVER, "-p 7000 --listen 7001=echo", 2, ["excludes", "--listen", "--server-listen-port"]),
    (SERVER, "-p 7000 --metrics 7000", 2, ["--metrics: 127.0.0.1:7000 is a port for clients", "choose another"]),
    (SERVER, "--metrics ::1:9100", 2, ["--metrics: '::1:9100'", "[::1]:9100"]),
    (SERVER, "--listen-address 300.1.1.1 -p 0", 1, ["cannot resolve '300.1.1.1'"]),
    (SERVER, "--listen-address 192.0.2.1 -p 0", 1, [
        "192.0.2.1:0", "Cannot assign requested address", "this machine does not have the address"]),
    (SERVER, "--listen-address 0.0.0.0:7000", 2, ["'0.0.0.0:7000' has a port", "--listen-address 0.0.0.0 -p 7000"]),
    (SERVER, "--listen-address [::1]:7000", 2, ["'[::1]:7000' has a port", "--listen-address [::1] -p 7000"]),
    (SERVER, "--listen-address fe80::1 -p 0", 1, ["fe80::1 needs its interface, as in fe80::1%eth0"]),
    (SERVER, "--listen-address server.invalid -p 0", 1, ["cannot resolve 'server.invalid'", "correct it, or use an address"]),
    (CLIENT, "-s fe80::1 --connect-timeout 0.1s", 1, ["fe80::1 needs its interface, as in fe80::1%eth0"]),
    (CLIENT, "-s 127.0.0.1 --scrape http://127.0.0.1:9100", 2, ["is a URL", "HOST:PORT, such as 10.0.0.2:9100"]),
    (SERVER, "--proxy-from 10.0.0.0/33", 2, ["--proxy-from: '10.0.0.0/33'", "such as 10.0.0.0/8"]),
    (CLIENT, "-s http://127.0.0.1:7000/", 2, ["is a URL", "10.0.0.2:7000"]),
    (CLIENT, "-s 127.0.0.1:http", 2, ["'127.0.0.1:http'", "a port from 1 to 65535"]),
    (CLIENT, "-s 127.0.0.1:7000 -p 7001", 2, ["port 7000", "7001", "give the port once"]),
    (CLIENT, "-s server.invalid", 1, ["cannot resolve 'server.invalid'"]),
    (CLIENT, "-s 127.0.0.1:{closed} --connect-timeout 0.1s", 1, ["127.0.0.1", "{closed}", "Connection refused"]),
    # Server and worker.
    (SERVER, "--comch {folder}/comch.sock", 2, ["is not a comch address", "did you mean unix:{folder}/comch.sock?"]),
    (SERVER, "--comch 127.0.0.1:7000", 2, ["did you mean tcp:127.0.0.1:7000?", "unix:PATH"]),
    (SERVER, "--comch tcp:127.0.0.1", 2, ["'tcp:127.0.0.1' has no port", "tcp:HOST:PORT"]),
    (SERVER, "--comch http://127.0.0.1:7000/", 2, ["did you mean tcp:127.0.0.1:7000?"]),
    (SERVER, "--comch tcp:127.0.0.1:0 --comch-key-file a --comch-key-file b --comch-key-file c", 2, [
        "--comch-key-file: 'c'", "two: the new key and the old one"]),
    (SERVER, "--admin unix:{missing}/admin.sock -p 0", 1, ["{missing}/admin.sock", "make the folder, or choose another"]),
    (WORKER, "--comch tcp:127.0.0.1:{closed} --insecure --connect-timeout 0.1s --backend cpu", 1, [
        "127.0.0.1:{closed}", "Connection refused", "start it, or correct --comch"]),
    (WORKER, "--comch tcp:server.invalid:7000 --insecure --connect-timeout 0.1s --backend cpu", 1, [
        "cannot resolve 'server.invalid'", "correct it, or use an address"]),
    (SERVER, "--comch unix:{long}", 2, ["has a path longer than 107 bytes"]),
    (SERVER, "--comch unix:{missing}/comch.sock", 1, ["{missing}/comch.sock", "No such file or directory"]),
    (SERVER, "--comch tcp:127.0.0.1:0", 1, ["tcp:127.0.0.1:0 requires a key (--comch-key-file)", "--insecure"]),
    (SERVER, "--comch tcp:127.0.0.1:0 --comch-key-file {missing}", 1, ["{missing}", "No such file", "openssl rand"]),
    (SERVER, "--comch tcp:127.0.0.1:0 --comch-key-file {short_key}", 1, [
        "{short_key} must have 32 to 4096 bytes", "openssl rand"]),
    (SERVER, "--comch tcp:127.0.0.1:0 --comch-key-file {open_comch_key}", 1, ["{open_comch_key}", "chmod"]),
    (SERVER, "--comch tcp:127.0.0.1:0 --comch-key-file {folder}", 1, ["{folder}", "regular file"]),
    (SERVER, "--insecure --comch-key-file {comch_key}", 2, ["excludes", "--insecure", "--comch-key-file"]),
    (SERVER, "--rdma-device mlx5_0", 1, ["--rdma-device", "--comch rdma:HOST:PORT", "not unix:"]),
    (SERVER, "--admin {folder}/admin.sock", 2, ["--admin: '{folder}/admin.sock'", "unix:PATH"]),
    (SERVER, "--service Rot13", 2, ["--service: 'Rot13'", "a-z"]),
    (SERVER, "--threads 2 --cpu {cpu}", 2, ["excludes", "--threads", "--cpu"]),
    (WORKER, "--comch unix:{missing} --connect-timeout 0.1s", 1, [
        "unix:{missing}", "No such file", "start it, or correct --comch"]),
    (WORKER, "--comch 127.0.0.1:7000", 2, ["did you mean tcp:127.0.0.1:7000?"]),
    (WORKER, "--service-module {missing}", 1, ["{missing}", "No such file"]),
    (WORKER, "--service-module {no_module}", 1, ["service module '{no_module}'", "file too short"]),
    (WORKER, "--service-source {source}", 2, ["--service-source", "{source}", ".cu or .cpp"]),
    (WORKER, "--service-option verbose", 2, ["--service-option: 'verbose'", "KEY=VALUE"]),
    (WORKER, "--backend gpu", 2, ["--backend: 'gpu'", "auto, cuda, graph, cpu"]),
    (WORKER, "-g mlx5_0", 2, ["--gpu-pci-addr: 'mlx5_0'", "such as 0000:01:00.0"]),
    (WORKER, "--backend cpu --warps-per-channel 4", 2, ["--warps-per-channel", "--backend cuda or auto"]),
    (WORKER, "--stand-by --replace", 2, ["excludes", "--stand-by", "--replace"]),
    (WORKER, "--data-path gpu", 2, ["--data-path gpu needs RDMA", "--comch rdma:HOST:PORT"]),
    # Certificates and keys.
    (SERVER, "--tls-certificate {certificate}", 2, ["--tls-certificate requires --tls-key"]),
    (SERVER, "--tls-key {key}", 2, ["--tls-key requires --tls-certificate"]),
    (SERVER, "--check-config --tls-certificate {missing} --tls-key {key}", 1, ["{missing}", "No such file"]),
    (SERVER, "--check-config --tls-certificate {folder} --tls-key {key}", 1, ["{folder}"]),
    (SERVER, "--check-config --tls-certificate {text} --tls-key {key}", 1, ["{text}", "PEM"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {other_key}", 1, ["{other_key}", "match"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {open_key}", 1, ["{open_key}", "chmod"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {key} --tls-client-ca {missing}", 1, [
        "{missing}"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {key} --tls-client-crl {text}", 2, [
        "--tls-client-crl requires --tls-client-ca"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {key} --tls-client-ca {certificate} "
     "--tls-client-crl {missing}", 1, ["{missing}", "No such file"]),
    (SERVER, "--check-config --tls-certificate {certificate} --tls-key {key} --tls-client-ca {certificate} "
     "--tls-client-crl {certificate}", 1, ["{certificate}", "has no list in PEM", "openssl crl"]),
    (CLIENT, "-s 127.0.0.1 --tls-crl {text}", 2, ["--tls-crl requires --tls"]),
    (CLIENT, "-s 127.0.0.1 --tls-ca {certificate}", 2, ["--tls-ca requires --tls"]),
    (CLIENT, "-s 127.0.0.1 --tls --tls-ca {missing}", 1, ["{missing}", "No such file"]),
    # Configuration files.
    (SERVER, "--config {missing}", 2, ["--config: {missing} was not readable: it does not exist, or this user may not"]),
    (SERVER, "--config {folder}", 2, ["{folder}", "is not a regular file"]),
    (SERVER, "--config {fifo}", 2, ["{fifo}", "is not a regular file"]),
    (SERVER, "--config {misspelt}", 2, ["{misspelt}:1:1: 'thread' is not an option", "did you mean threads?"]),
    (SERVER, "--config {wrong_type}", 2, ["{wrong_type}:1", "a table; expected options"]),
    (SERVER, "--config {bare_unit}", 2, ["{bare_unit}:1:"]),
    (SERVER, "--config {wrong_value}", 2, ["{wrong_value}:1:1: --threads: 'many'", "from 1 to 256"]),
    (SERVER, "--config {twice}", 2, ["{twice}:2:"]),
    (SERVER, "--config {comma}", 2, ["{comma}:1:", "is not valid JSON"]),
    # The load client's own.
    (CLIENT, "-s 127.0.0.1 -m hello --size 64", 2, ["excludes", "--size", "--message-string"]),
    (CLIENT, "-s 127.0.0.1 -e olleh", 2, ["--expected-response requires --message-string"]),
    (CLIENT, "-s 127.0.0.1 --search p99:1ms", 2, ["--search requires --duration"]),
    (CLIENT, "-s 127.0.0.1 --schedule {schedule}", 1, ["{schedule}", "line 1", "soon 64"]),
    (CLIENT, "-s 127.0.0.1 --requests {frames}", 2, ["{frames}", "frame 0", "has frames of requests and responses"]),
    (CLIENT, "-s 127.0.0.1:{closed} --output {missing}/result.json", 1, ["{missing}/result.json", "No such file"]),
    # Commands.
    (CTL, "--admin unix:{missing} status", 1, ["unix:{missing}", "there is no such socket", "another --admin"]),
    (CTL, "--admin unix:{stale} status", 1, ["unix:{stale}", "no program listens"]),
    (CTL, "--admin unix:{text} status", 1, ["unix:{text}"]),
    (CTL, "--admin 127.0.0.1:9100 status", 2, ["--admin: '127.0.0.1:9100'", "unix:PATH"]),
    (CTL, "status", 2, ["systemd runs no server here", "--admin unix:PATH"]),
]


def run(stage, name, *options):
    """Runs a program to its end; it is ended if it does not end by itself."""
    program = Program(stage.folder, name, *options)
    try:
        program.wait()
    finally:
        program.process.kill()
    return program


def last_line(program):
    line = program.log.splitlines()[-1]
    assert line.startswith(f"{program.kind}: "), program.log
    return line


@pytest.mark.parametrize("name, options, status, hints", MISTAKES,
                         ids=[f"{case[0][8:]} {case[1]}" for case in MISTAKES])
def test_a_mistake_is_explained(stage, places, name, options, status, hints):
    words = options.format(**places).split()
    if name == SERVER and "--comch" not in words and "--rdma-device" not in words:
        words += ["--comch", f"unix:{stage.comch}"]
    program = run(stage, name, *words)
    assert program.process.returncode == status, program.log
    line = last_line(program)
    for hint in hints:
        assert hint.format(**places) in line
    # One line for an invalid command line; the log comes before any other error.
    assert status == 1 or len(program.log.splitlines()) == 1


def test_an_empty_configuration_is_valid(stage, places):
    program = stage.program(SERVER, "--config", places["empty"], "--check-config")
    assert program.wait() == 0 and "the configuration is valid" in program.out


# ---- Programs that reach each other, but not as they should

@pytest.fixture(scope="module", name="running")
def fixture_running(shared_stage):
    """A server whose worker attaches over TCP with a key, and the port of --metrics."""
    metrics, comch = free_port(), free_port()
    address = ["--comch", f"tcp:127.0.0.1:{comch}"]
    server = shared_stage.add(Server(shared_stage.folder, address, *shared_stage.key_options(), "--metrics", metrics,
                                     "--admin", f"unix:{shared_stage.folder}/admin.sock"))
    shared_stage.program(WORKER, *address, *shared_stage.key_options(), "--backend", "cpu")
    server.wait_until_listening()
    return server, comch, metrics


def refused(program, *hints, status=1):
    assert program.wait() == status, program.log
    line = last_line(program)
    for hint in hints:
        assert hint in line
    return line


def test_a_second_server_at_the_same_place(stage):
    stage.server().wait_for_log("waiting for a worker")
    refused(stage.server(), str(stage.comch), "another server")


def test_a_second_program_at_the_same_admin_socket(shared_stage, running, stage):
    running[0].wait_for_log("listening")
    path = shared_stage.folder / "admin.sock"
    refused(stage.server("--admin", f"unix:{path}"), str(path), "another program")


def test_a_command_with_a_wrong_value(shared_stage, running):
    running[0].wait_for_log("listening")
    control = run(shared_stage, CTL, "--admin", f"unix:{shared_stage.folder}/admin.sock", "log-level", "loud")
    assert control.process.returncode == 1 and "loud" in control.log and "is not a level, such as debug" in control.log


@pytest.mark.parametrize("at", ["the workers' port", "the port of --metrics"])
def test_a_client_at(stage, running, at):
    _, comch, metrics = running
    client = stage.client(comch if "workers" in at else metrics, "-i", 10, "--response-timeout", f"{PATIENCE}s")
    refused(client, "never sent anything: is this the port for clients?")


@pytest.mark.parametrize("at", ["the clients' port", "the port of --metrics"])
def test_a_worker_at(stage, running, at):
    server, _, metrics = running
    port = server.port if "clients" in at else metrics
    worker = stage.program(WORKER, "--comch", f"tcp:127.0.0.1:{port}", "--comch-key-file", stage.key_options()[1],
                           "--backend", "cpu", "--connect-timeout", "0.2s")
    line = refused(worker, f"no server at tcp:127.0.0.1:{port} accepted this worker", "TLS: ")
    assert ("the peer does not use TLS: it is not the --comch of an offload server" in line
            or "the address is not its --comch but another port" in line and "clients" not in at), line


@pytest.mark.parametrize("at", ["the clients' port", "the port of --metrics"])
def test_a_worker_without_a_key_at(stage, running, at):
    server, _, metrics = running
    port = server.port if "clients" in at else metrics
    worker = stage.program(WORKER, "--comch", f"tcp:127.0.0.1:{port}", "--insecure", "--backend", "cpu",
                           "--connect-timeout", "0.2s")
    if "clients" in at:
        refused(worker, "this worker cannot attach: ", "--comch is the address of a port for clients")
    else:
        refused(worker, f"no server at tcp:127.0.0.1:{port} accepted this worker", "its --comch")


def test_a_worker_with_another_key(stage, running):
    server, comch, _ = running
    worker = stage.program(WORKER, "--comch", f"tcp:127.0.0.1:{comch}", *stage.key_options(), "--backend", "cpu",
                           "--connect-timeout", "0.2s")
    refused(worker, "the server lacks this worker's key")
    server.wait_for_log("a control connection of .* is refused: it knows no key of this server")


def test_a_client_without_tls_at_a_port_with_tls(stage, places):
    server, _ = stage.pair(*own((places["certificate"], places["key"])))
    refused(stage.client(server, "-i", 1), "error 25: this port requires TLS")
    server.wait_for_log("the TLS handshake failed: the peer does not use TLS")


def test_a_client_with_tls_at_a_port_without_tls(stage, ours):
    server, _ = stage.pair()
    refused(stage.client(server, *trusting(ours)), "cannot use TLS", "the peer does not use TLS")
    server.wait_for_log("a TLS client at a port without TLS")


@pytest.mark.parametrize("wrong, hints", [
    ("authority", ["certificate is refused", "self-signed|unable to get local issuer"]),
    ("name", ["certificate is refused", "ame"]),
    ("expired", ["certificate is refused", "certificate has expired"]),
])
def test_a_certificate_that_is_refused(stage, ours, tmp_path, places, wrong, hints):
    certificate = places["certificate"], places["key"]
    trusted, name = trusting(ours), []
    if wrong == "authority":
        trusted = trusting(Authority(tmp_path, "others"))
    elif wrong == "name":
        name = ["--tls-server-name", "elsewhere.test"]
    else:
        certificate = ours.issue("expired", "IP:127.0.0.1", days=-1)
    server, _ = stage.pair(*own(certificate))
    line = refused(stage.client(server, *trusted, *name, "-i", 1), hints[0])
    assert any(hint in line for hint in hints[1].split("|"))


def test_a_request_longer_than_the_server_takes(stage):
    server, _ = stage.pair("--max-message-length", 64)
    refused(stage.client(server, "--size", 65, "-i", 1), "error 2: the message is longer than this server accepts")


def test_a_service_that_no_worker_has(stage):
    server = stage.server("--service", "nonsense")
    worker = stage.worker("--connect-timeout", "0.5s")
    assert worker.wait() == 1
    assert "the worker has no service 'nonsense'; it has: reverse, echo, crc32c; correct --service" in last_line(worker)
    assert "give the worker a --service-module" in last_line(worker)
    server.wait_for_log("nonsense")


def test_responses_of_another_service(stage):
    server, _ = stage.pair("--service", "echo")
    client = stage.client(server, "-i", 1, "--size", 64)
    refused(client, "the response differs at offset 0 of 64: expected ")
