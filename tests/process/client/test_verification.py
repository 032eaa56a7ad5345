"""How the load client checks responses: each way takes what it should take and refuses what it should refuse, and the
results say which way it was."""
import re
import struct

import pytest

from harness import ROOT, TIME_FACTOR
from results import load, load_once, requests_of
from test_requests import Recorder
from wire import RESPONSE, frame

SERVICES = ("reverse", "echo", "crc32c")
REQUEST = 4
COUNT = ["-i", 100, "--on-error", "count"]
REVERSE = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"


def ports_of_services(stage):
    """Starts a server with a port for each service, and returns these."""
    server = stage.server(*(word for name in SERVICES for word in ("--listen", f"0={name}")))
    stage.worker()
    server.wait_for_log(r"listening on \S+", count=len(SERVICES))
    found = re.findall(r"listening on \S+:(\d+) with \d+ threads, service (\w+)", server.log)
    return {name: int(port) for port, name in found}


def sole(result):
    run, = result["runs"]
    return run


@pytest.mark.parametrize("verify, right", [
    ("builtin", ["reverse"]), ("none", ["reverse", "echo", "crc32c"]), ("length", ["reverse", "echo"]),
    ("length:4", ["crc32c"]), ("length:64", ["reverse", "echo"]), ("file:{}/answer", []),
    (f"command:python3 -c '{REVERSE}'", ["reverse"]), ("command:cat", ["echo"])])
def test_each_way_and_each_service(stage, verify, right):
    (stage.folder / "answer").write_bytes(bytes(64))
    verify = verify.format(stage.folder)
    for service, port in ports_of_services(stage).items():
        is_right = service in right
        result = load(stage, port, "--size", 64, "--verify", verify, *COUNT, status=int(not is_right))
        run = sole(result)
        assert result["options"]["verify"] == verify
        assert result["options"]["service"] == ("reverse" if verify == "builtin" else None)
        # Latency is reported, however responses are checked.
        assert run["operation_count"] == 100 and run["service_time_us"]["count"] == (100 if is_right else 0)
        assert run["errors"] == ({} if is_right else {"mismatch": 100})


def test_the_content_of_a_file_with_zeros(stage):
    answer = stage.folder / "answer"
    answer.write_bytes(b"\x00b\x00a")
    server, _ = stage.pair("--service", "reverse")
    (stage.folder / "request").write_bytes(b"a\x00b\x00")
    client = stage.client(server, "--payload", f"file:{stage.folder}/request", "--verify", f"file:{answer}", "-i", 100)
    assert client.wait() == 0, client.log
    assert f"Verification:             file:{answer}\n" in client.out


@pytest.mark.parametrize("verify, fault", [
    ("length:5", "the response has 4 bytes, expected 5; it begins with 61 00 62 63"),
    ("file:{}/longer", "the response has 4 bytes, expected 6; it differs at offset 4: expected 64 65, got nothing"),
    ("file:{}/other", "the response differs at offset 1 of 4: expected 58 62 63, got 00 62 63"),
    ("file:{}/empty", "the response has 4 bytes, expected 0; it begins with 61 00 62 63"),
])
def test_a_wrong_answer_is_shown(stage, verify, fault):
    for name, content in (("longer", b"a\0bcde"), ("other", b"aXbc"), ("empty", b""), ("request", b"a\0bc")):
        (stage.folder / name).write_bytes(content)
    server, _ = stage.pair("--service", "echo")
    result = load(stage, server, "--payload", f"file:{stage.folder}/request", "--verify", verify.format(stage.folder),
                  "-t", 2, *COUNT, status=1)
    # One for each thread, of 200.
    assert result["faults"] == [f"thread {i}, request 0: {fault}" for i in range(2)]


def test_a_wrong_answer_after_another_error_is_shown(stage):
    """The server refuses the long request and closes, which may lose a short one; the next ones have wrong answers."""
    path = record(stage.folder / "requests", [(bytes(2048), b""), *[(b"abc", b"abX")] * 3])
    server, _ = stage.pair("--service", "echo", "--max-message-length", "1k")
    result = load(stage, server, "--requests", path, "--in-order", "--max-concurrent-messages", 1, "-i", 20,
                  "--on-error", "count", status=1)
    assert len(result["faults"]) == 2
    assert "request 0: the server reports error 2" in result["faults"][0]
    assert "the response differs at offset 2 of 3: expected 58, got 63" in result["faults"][1]


@pytest.mark.parametrize("verify, hint", [
    ("command:false", "failed for a request of 64 bytes: exit status 1"),
    ("command:kill -9 $$", "signal 9"),
    ("command:no-such-program 2>&-", "exit status 127"),
    ("command:head -c 17m /dev/zero", "printed more than 16 MiB"),
    ("file:{}/nothing", "No such file or directory"),
    ("file:{}", "Is a directory"),
])
def test_what_cannot_be_had_is_one_line(stage, verify, hint):
    server, _ = stage.pair()
    client = stage.client(server, "--size", 64, "--verify", verify.format(stage.folder))
    assert client.wait(60 * TIME_FACTOR) == 2, client.log
    line, = client.log.splitlines()
    assert line.startswith("offload-client: ") and hint in line


@pytest.mark.parametrize("options, hint", [
    (["--verify", "some"], "length:BYTES, file:PATH"), (["--verify", "length:17m"], "--verify"),
    (["--verify", "file:"], "--verify"), (["--verify", "none", "--service", "echo"], "excludes --service"),
    (["--verify", "none", "-m", "a", "-e", "a"], "excludes --expected-response"),
    (["--verify", "recorded"], "requires --requests"), (["--in-order"], "--requests"),
    (["--requests", "file", "--size", "64"], "--size"), (["--requests", "file", "--schedule", "x"], "--schedule"),
], ids=str)
def test_a_wrong_command_line(stage, options, hint):
    client = stage.client(1, *options)
    assert client.wait() == 2
    line, = client.log.splitlines()
    assert hint in line


# ---- --requests

def record(path, pairs, with_answers=True):
    path.write_bytes(b"".join(
        frame(request, REQUEST) + (frame(answer, RESPONSE) if with_answers else b"") for request, answer in pairs))
    return path


@pytest.mark.parametrize("sizes", [[3, 3, 3], [0, 5, 300, 5]], ids=["one size", "several sizes"])
def test_requests_in_order(stage, sizes):
    requests = [bytes([number]) * size for number, size in enumerate(sizes)]
    path = record(stage.folder / "requests", [(request, request) for request in requests])
    server = Recorder()
    run = load_once(stage, server, "--requests", path, "--in-order", "-i", 1000, "--max-concurrent-messages", 7)
    assert run["valid_responses"] == 1000
    assert server.payloads == [requests[number % len(requests)] for number in range(1000)]


@pytest.mark.parametrize("sizes", [[3, 3, 3], [0, 5, 300, 5]], ids=["one size", "several sizes"])
def test_requests_by_seed(stage, sizes):
    requests = [bytes([number]) * size for number, size in enumerate(sizes)]
    path = record(stage.folder / "requests", [(request, request) for request in requests])
    orders = []
    for seed in (1, 1, 2):
        server = Recorder()
        load_once(stage, server, "--requests", path, "-i", 1000, "--max-concurrent-messages", 1, "--seed", seed)
        orders.append(server.payloads)
        assert set(server.payloads) == set(requests)
    assert orders[0] == orders[1] != orders[2]


def test_recorded_answers_are_compared(stage):
    server, _ = stage.pair("--service", "reverse")
    pairs = [(b"a\0", b"\0a"), (b"bcd", b"dcb"), (b"", b"")]
    result = load(stage, server, "--requests", record(stage.folder / "right", pairs), "-t", 2, "-i", 300)
    assert result["options"]["verify"] == "recorded" and sole(result)["valid_responses"] == 600
    log = stage.folder / "log"
    run = load_once(stage, server, "--requests", record(stage.folder / "wrong", [*pairs, (b"efgh", b"efgh")]),
                    "--log-requests", log, "-i", 300, "--on-error", "count", status=1)
    outcomes = {(each["bytes"], each["outcome"]) for each in requests_of(log)}
    assert outcomes == {(2, "ok"), (3, "ok"), (0, "ok"), (4, "mismatch")}
    assert 0 < run["errors"]["mismatch"] < 300
    # Without answers they are checked in another way, which must be said.
    plain = record(stage.folder / "plain", pairs, with_answers=False)
    for how in (["--service", "reverse"], ["--verify", "length"], ["--verify", f"command:python3 -c '{REVERSE}'"]):
        load(stage, server, "--requests", plain, "-i", 100, *how)
    client = stage.client(server, "--requests", plain)
    assert client.wait() == 2 and "has no responses: say by --verify" in client.log


@pytest.mark.parametrize("content, hint", [
    (b"", "has no requests"),
    (b"GET / HTTP/1.1\r\n", "frame 0 at offset 0: "),
    (frame(b"abc", REQUEST)[:-1], "frame 0 at offset 0: the file ends within it"),
    (frame(b"abc", REQUEST) + bytes(5), "frame 1 at offset 15: "),
    (frame(b"abc", RESPONSE), "frame 0 at offset 0: this response belongs to no request"),
    (frame(b"a", REQUEST) + 2 * frame(b"a", RESPONSE), "frame 2 at offset 26: this response"),
    (2 * frame(b"a", REQUEST) + frame(b"a", RESPONSE), "frame 2 at offset 26: this response"),
    (frame(b"a", REQUEST) + frame(b"a", RESPONSE) + frame(b"a", REQUEST), "the last request has no response"),
    (frame(b"a", 6), "its kind is 6"),
    (struct.pack(">III", 12 + 2**25, REQUEST, 2**25), "frame 0 at offset 0: "),
    (struct.pack(">III", 2**32 - 1, REQUEST, 2**32 - 1), "frame 0 at offset 0: "),
], ids=range(11))
def test_a_wrong_file_of_requests(stage, content, hint):
    path = stage.folder / "requests"
    path.write_bytes(content)
    output = stage.folder / "result.json"
    client = stage.client(1, "--requests", path, "--output", output)
    assert client.wait() == 2, client.log
    line, = client.log.splitlines()
    assert str(path) in line and hint in line and not output.exists()


def test_the_python_of_the_documentation(stage):
    """docs/reference/load-client.md shows how to write such a file."""
    page = (ROOT / "docs/reference/load-client.md").read_text()
    code, = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    path = stage.folder / "requests.bin"
    exec(code.replace('"requests.bin"', repr(str(path))), {})  # pylint: disable=exec-used
    server = Recorder()
    result = load(stage, server, "--requests", path, "-i", 100, "--on-error", "count", status=1)
    assert sole(result)["operation_count"] == 100
    assert result["options"]["requests_file"] == str(path)
